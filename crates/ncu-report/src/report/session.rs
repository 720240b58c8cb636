//! Provenance: which ncu made the report, when, and with which command.

use super::wire::Slice;
use crate::error::ReadError;

/// The session that a report was made in.
#[derive(Default)]
pub(super) struct Session {
    pub(super) created_unix_s: Option<u64>,
    pub(super) profiler_version: Option<String>,
    pub(super) command_line: Option<String>,
}

impl Session {
    /// `ReportSessionDetails { 2: CreationTime, 8: VersionInfo, 11: ProfilerCmdline }`. They are
    /// spread over several blocks; the first one of each kind is kept.
    pub(super) fn merge(&mut self, mut details: Slice<'_>) -> Result<(), ReadError> {
        while let Some(field) = details.field()? {
            match field.number {
                2 if self.created_unix_s.is_none() => {
                    self.created_unix_s = Some(field.integer()?);
                }
                8 if self.profiler_version.is_none() => {
                    self.profiler_version = profiler_version(field.bytes()?)?;
                }
                11 if self.command_line.is_none() => {
                    self.command_line = Some(field.bytes()?.text()?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// `VersionInfo { 1: Provider, 2: Version }`. CUDA and PerfWorks state their versions here too.
fn profiler_version(mut info: Slice<'_>) -> Result<Option<String>, ReadError> {
    let (mut provider, mut version) = (String::new(), String::new());
    while let Some(field) = info.field()? {
        match field.number {
            1 => provider = field.bytes()?.text()?,
            2 => version = field.bytes()?.text()?,
            _ => {}
        }
    }
    Ok(provider.starts_with("Nsight Compute").then_some(version))
}
