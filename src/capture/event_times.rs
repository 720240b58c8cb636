//! The last resort where neither counters nor kernel times can be had: the times that a program
//! takes itself with CUDA events around its launches, from its result file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::session::failure_of_program;
use super::{Capture, Pending, Watched, watched};
use crate::build::Artifact;
use crate::config::{Config, Variant};
use crate::device::Gpu;
use crate::files::{read_regular, write_atomically};
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_hex;
use crate::metric::DURATION_COUNTER;
use crate::process::{self, Invocation};
use crate::terms::Phase;
use crate::verify::program_argv;
use ncu_report::{
    Kernel, Launch, Measurement, Metrics, ReadError, Recording, ResultKind, Rounding, Unit, Value,
};

/// How a capture file begins; the number is its version. After it stand `gpu NAME` and
/// `compute-capability MAJOR.MINOR`, a line each, and the program's result file as it is.
pub const MAGIC: &[u8] = b"sparsek-gate event times 1\n";

/// What a result file says of times. `correct` was asked when the variant was verified.
#[derive(Deserialize)]
struct Times {
    /// Name of the kernel.
    kernel: String,
    /// One entry a launch, in microseconds.
    times_us: Vec<Option<f64>>,
}

/// Runs one artifact once with its `time_args`, into files `<stem>.*` of a folder, and watches the
/// GPU meanwhile.
///
/// # Errors
/// [`Error`] where the machine failed; whatever keeps the variant from being measured is a finding.
pub fn time(
    config: &Config,
    variant: &Variant,
    artifact: &Artifact,
    gpu: &Gpu,
    env: &BTreeMap<String, String>,
    folder: &Path,
    stem: &str,
) -> Result<Result<Pending, Finding>, Error> {
    let path = |ending: &str| folder.join(format!("{stem}.{ending}"));
    let (log, result) = (path("program.log"), path("result.json"));
    if result.exists() {
        fs::remove_file(&result).map_err(Error::io("clear", &result))?;
    }
    let mut env = env.clone();
    env.extend(variant.env.clone());
    let run = Invocation {
        argv: program_argv(
            variant,
            artifact,
            &variant.time_args,
            &result,
            variant.launches(Phase::Timing),
        ),
        dir: config.root.clone(),
        env,
        timeout: variant.profile.timeout,
        stdout: log.clone(),
        stderr: log.clone(),
    };
    let ran = watched(variant, &run, Some(&gpu.uuid), &path("argv"), "the program")?;
    let Watched {
        finished,
        device,
        line,
    } = match ran {
        Ok(ran) => ran,
        Err(finding) => return Ok(Err(finding)),
    };
    if let Some(finding) =
        failure_of_program(variant, finished.ending, "while it timed itself", &line)
    {
        return Ok(Err(finding.detail(process::tail(&log, 12))));
    }
    let unreadable = |why: String| {
        Ok(Err(Finding::deny(
            Code::ResultUnreadable,
            &variant.id,
            format!("the program tells no times: {why}"),
            format!(
                "`time_args` must have it write JSON with `kernel` and `times_us` to {{result}}; run it by hand: {line}"
            ),
        )))
    };
    let bytes = match read_regular(&result) {
        Ok(bytes) => bytes,
        Err(error) => return unreadable(format!("{}: {error}", result.display())),
    };
    let mut content = MAGIC.to_vec();
    let head = format!(
        "gpu {}\ncompute-capability {}\n",
        gpu.name, gpu.compute_capability
    );
    content.extend_from_slice(head.as_bytes());
    content.extend_from_slice(&bytes);
    let report = match read(&content) {
        Ok(report) => report,
        Err(error) => return unreadable(error.to_string()),
    };
    let filter = variant.kernel_filter();
    let meant = |launch: &Launch| filter.matches(&launch.kernel.function);
    if !report.launches.iter().any(meant) {
        return unreadable("none is of a kernel that `kernels` means".to_owned());
    }
    let report_path = path("times");
    write_atomically(&report_path, &content).map_err(Error::io("write", &report_path))?;
    Ok(Ok(Pending::of(
        Capture {
            report_sha256: sha256_hex(&content),
            report_path,
            page: None,
            phase: Phase::Timing,
            device,
            argv: run.argv,
            report,
        },
        finished.wall,
    )))
}

/// Reads a capture file of event times. A program tells neither grid nor block of its launches:
/// they are zeros, which no launch has.
///
/// # Errors
/// [`ReadError::Records`], with the line.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let error = |line: u64, problem: &str| ReadError::Records {
        line,
        problem: problem.to_owned(),
    };
    let text = bytes
        .strip_prefix(MAGIC)
        .and_then(|rest| std::str::from_utf8(rest).ok())
        .ok_or_else(|| error(1, "not a file of event times"))?;
    let mut parts = text.splitn(3, '\n');
    let mut value = |key: &str| parts.next()?.strip_prefix(key)?.strip_prefix(' ');
    let gpu = value("gpu").ok_or_else(|| error(2, "`gpu` was expected"))?;
    let (major, minor) = value("compute-capability")
        .and_then(|text| text.split_once('.'))
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| error(3, "`compute-capability` was expected"))?;
    let times: Times = serde_json::from_str(parts.next().unwrap_or_default())
        .map_err(|cause| error(4, &cause.to_string()))?;
    let launch = |time_us: &Option<f64>| {
        let duration = match time_us {
            Some(time_us) if time_us.is_finite() && *time_us > 0.0 => Value::Float(time_us * 1e3),
            _ => Value::Missing,
        };
        let measurements = [
            (DURATION_COUNTER, duration, Unit::named("ns")),
            (
                "device__attribute_display_name",
                Value::Text(gpu.into()),
                Unit::NONE,
            ),
            (
                "device__attribute_compute_capability_major",
                Value::Integer(major),
                Unit::NONE,
            ),
            (
                "device__attribute_compute_capability_minor",
                Value::Integer(minor),
                Unit::NONE,
            ),
        ];
        let metrics: BTreeMap<Arc<str>, Measurement> = measurements
            .into_iter()
            .map(|(name, value, unit)| (name.into(), Measurement { value, unit }))
            .collect();
        Launch {
            kind: ResultKind::Kernel,
            kernel: Kernel {
                function: times.kernel.clone(),
                mangled: None,
                demangled: None,
            },
            grid: [0; 3],
            block: [0; 3],
            process_id: None,
            device: None,
            context: None,
            stream: None,
            clock_locked: None,
            compute_capability: Some((major, minor)),
            metrics: Metrics::from(metrics),
            labels: Vec::new(),
            source: None,
        }
    };
    Ok(Recording {
        launches: times.times_us.iter().map(launch).collect(),
        profiler_version: Some("CUDA events of the program".to_owned()),
        command_line: None,
        created_unix_s: None,
        format_version: None,
        rounding: Rounding::default(),
    })
}
