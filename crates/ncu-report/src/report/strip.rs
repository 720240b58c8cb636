//! Copies of reports that can be published: without sources, without machine code, and without the
//! names of people and machines.
//!
//! A field that is kept keeps its bytes. The messages around removed fields get new lengths.

use super::block::Block;
use super::compressed;
use super::debug_sections::without_debug_sections;
use super::file::{File, KNOWN_FORMAT_VERSION, MAGIC};
use super::layout::{LAYOUTS, Layout};
use super::raw::{self, Raw, insert_key, write_bytes, write_integer, write_sized};
use super::strings::StringTable;
use super::wire::Slice;
use crate::error::ReadError;
use crate::launch::ResultKind;
use crate::strip::Scrubber;

/// Attributes of the device that differ between the GPUs of one machine.
const IDENTIFYING: [&str; 3] = [
    "device__attribute_pci_bus_id", "device__attribute_pci_device_id",
    "device__attribute_pci_domain_id",
];

/// The host name in a copy.
const NO_HOST: &str = "localhost";

/// Deepest message in a message that is searched.
const DEEPEST: usize = 32;

/// Whether a metric identifies the GPU instead of measuring it: PCI addresses, UUIDs, serial
/// numbers.
///
/// ```
/// use ncu_report::report::identifies_the_gpu;
///
/// assert!(identifies_the_gpu("device__attribute_pci_bus_id"));
/// assert!(!identifies_the_gpu("dram__bytes_read.sum"));
/// ```
pub fn identifies_the_gpu(metric: &str) -> bool {
    IDENTIFYING.contains(&metric) || metric.contains("uuid") || metric.contains("serial_number")
}

/// A copy of a report without sources, source lines, machine code (unless it is kept), host names,
/// network addresses, and metrics that identify the GPU. Every other number is kept. The copy of a
/// compressed report is not compressed.
///
/// # Errors
/// [`ReadError::NotAReport`] and [`ReadError::Report`], as [`read`](crate::report::read). A report of
/// another format version than [`KNOWN_FORMAT_VERSION`] is an error too, because its fields are not
/// known.
///
/// ```no_run
/// use ncu_report::{Scrubber, report};
///
/// let mut scrubber = Scrubber::default();
/// scrubber.learn_user("ada");
/// let copy = report::strip(&std::fs::read("gemm.ncu-rep")?, &mut scrubber, false)?;
/// std::fs::write("public.ncu-rep", copy)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn strip(
    bytes: &[u8],
    scrubber: &mut Scrubber,
    keep_machine_code: bool,
) -> Result<Vec<u8>, ReadError> {
    let mut stripping = Stripping {
        scrubber,
        keep_machine_code,
    };
    let bytes = compressed::plain(bytes)?;
    let file = File::open(&bytes)?;
    if file.version != Some(KNOWN_FORMAT_VERSION) {
        let version = match file.version {
            Some(version) => format!("format version {version}"),
            None => "no format version".to_owned(),
        };
        return Err(ReadError::report(
            file.header.offset(),
            format!(
                "the report has {version}, and only the fields of version {KNOWN_FORMAT_VERSION} \
                 are known: a copy could contain what must be removed"
            ),
        ));
    }
    let names = metric_names(file.blocks)?;
    let mut copy = MAGIC.to_vec();
    write_sized(&mut copy, file.header.bytes)?;
    let mut blocks = file.blocks;
    while let Some(block) = Block::next(&mut blocks)? {
        let payload = stripping.payload(&block, &names)?;
        let header = stripping.header(&block, payload.len())?;
        write_sized(&mut copy, &header)?;
        copy.extend_from_slice(&payload);
    }
    Ok(copy)
}

/// The names of the metrics, by `NameId`.
fn metric_names(mut blocks: Slice<'_>) -> Result<Vec<String>, ReadError> {
    let mut strings = StringTable::new(blocks.bytes.len());
    while let Some(block) = Block::next(&mut blocks)? {
        block.header.each(4, |table| strings.merge(table))?;
    }
    let text = |name: &&[u8]| String::from_utf8_lossy(name).into_owned();
    Ok(strings.strings.iter().map(text).collect())
}

/// A copy that is being made.
struct Stripping<'a> {
    scrubber: &'a mut Scrubber,
    /// Whether the cubins are kept, with zeros in their debug sections.
    keep_machine_code: bool,
}

/// The options of ncu's command line that say how it measured: without them, the conditions of an
/// imported report are unknown.
fn conditions_only(line: &str) -> String {
    const CONDITIONS: [&str; 4] = [
        "--clock-control", "--cache-control", "--replay-mode", "--graph-profiling",
    ];
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut kept = vec!["ncu".to_owned()];
    for (at, word) in words.iter().enumerate() {
        let value = CONDITIONS
            .iter()
            .find_map(|name| match word.strip_prefix(name)? {
                "" => Some((name, *words.get(at.checked_add(1)?)?)),
                rest => Some((name, rest.strip_prefix('=')?)),
            });
        let spelled = |value: &str| value.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if let Some((name, value)) = value.filter(|(_, value)| spelled(value)) {
            kept.push(format!("{name} {value}"));
        }
    }
    kept.join(" ")
}

impl Stripping<'_> {
    /// The sources and the results of a block.
    fn payload(&mut self, block: &Block<'_>, names: &[String]) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::with_capacity(block.payload.bytes.len());
        let mut left = block.payload;
        for _ in 0..block.sources {
            let source = left.take_sized("a source")?;
            write_sized(&mut out, &self.source(source)?)?;
        }
        for (layout, count) in LAYOUTS.iter().zip(block.results) {
            for _ in 0..count {
                let result = left.take_sized(format_args!("a {} result", layout.name))?;
                write_sized(&mut out, &self.result(result, layout, names)?)?;
            }
        }
        if !left.bytes.is_empty() {
            self.scrubber.count("unknown data");
        }
        Ok(out)
    }

    /// The header of a block whose payload has another size now.
    fn header(&mut self, block: &Block<'_>, payload_size: usize) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        let mut fields = block.header;
        while let Some(field) = raw::next(&mut fields)? {
            match (field.number, field.content) {
                (3, Some(session)) => write_bytes(&mut out, 3, &self.session(session)?),
                (5, None) => write_integer(&mut out, 5, payload_size as u64),
                (6, Some(process)) => write_bytes(&mut out, 6, &self.process(process)?),
                // The counts, and the names of the metrics.
                (1 | 2 | 4 | 7 | 8 | 9, _) => out.extend_from_slice(field.whole),
                _ => self.scrubber.count("unknown data"),
            }
        }
        Ok(out)
    }

    /// `ReportSessionDetails { 1: ProcessID, 2: CreationTime, 3 and 4: systems, 6: device,
    /// 8: VersionInfo, 11: ProfilerCmdline }`.
    fn session(&mut self, mut session: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(field) = raw::next(&mut session)? {
            match (field.number, field.content) {
                (1 | 2, None) | (8, Some(_)) => out.extend_from_slice(field.whole),
                (3 | 4, Some(system)) => {
                    write_bytes(&mut out, field.number, &self.system(system)?);
                }
                (5, Some(text)) if text.bytes.is_empty() => out.extend_from_slice(field.whole),
                (6, Some(device)) => write_bytes(&mut out, 6, &self.device(device)?),
                (11, Some(line)) => {
                    self.scrubber.count("command line");
                    let line = conditions_only(&line.text()?);
                    write_bytes(&mut out, 11, line.as_bytes());
                }
                _ => self.scrubber.count("session detail"),
            }
        }
        Ok(out)
    }

    /// `{ 1: operating system, 2: its version, 3: CPU, 4: architecture, 5: host, 6: cores,
    /// 7: addresses }`.
    fn system(&mut self, mut system: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(field) = raw::next(&mut system)? {
            match (field.number, field.content) {
                (1 | 3 | 4, Some(_)) | (6, None) => out.extend_from_slice(field.whole),
                (2, Some(_)) => {
                    self.scrubber.count("kernel of the operating system");
                    write_bytes(&mut out, 2, b"");
                }
                (5, Some(name)) => {
                    self.remove_host(&name.text()?);
                    write_bytes(&mut out, 5, NO_HOST.as_bytes());
                }
                (7, _) => self.scrubber.count("network address"),
                _ => self.scrubber.count("session detail"),
            }
        }
        Ok(out)
    }

    fn remove_host(&mut self, name: &str) {
        if !matches!(name, "" | NO_HOST | "127.0.0.1") {
            self.scrubber.count("host name");
            self.scrubber.learn_host(name);
        }
    }

    /// `ProcessInfo { 1: ProcessID, 2: host, 3: program }`.
    fn process(&mut self, mut process: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(field) = raw::next(&mut process)? {
            match (field.number, field.content) {
                (1, None) => out.extend_from_slice(field.whole),
                (2, Some(host)) => {
                    self.remove_host(&host.text()?);
                    write_bytes(&mut out, 2, NO_HOST.as_bytes());
                }
                (3, Some(program)) => {
                    let program = program.text()?;
                    let name = self.scrubber.whole(&program);
                    write_bytes(&mut out, 3, name.as_bytes());
                }
                _ => self.scrubber.count("session detail"),
            }
        }
        Ok(out)
    }

    /// `DeviceAttributes { 1: ordinal, 2: model, 3: repeated { 1: name, 2: value } }`.
    fn device(&mut self, mut device: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(field) = raw::next(&mut device)? {
            if let (3, Some(mut attribute)) = (field.number, field.content) {
                let name = raw::next(&mut attribute)?.and_then(|name| name.content);
                let name = name.map(|name| name.text()).transpose()?;
                if name.is_some_and(|name| identifies_the_gpu(&name)) {
                    self.scrubber.count("identity of the GPU");
                    continue;
                }
            }
            self.unknown(&field, &mut out, 0);
        }
        Ok(out)
    }

    /// `SourceData`: the reference, the level, the architecture and the functions are kept.
    fn source(&mut self, mut source: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(field) = raw::next(&mut source)? {
            match (field.number, field.content) {
                (1 | 5 | 6 | 7, None) | (9, Some(_)) => out.extend_from_slice(field.whole),
                (4, Some(cubin)) => write_bytes(&mut out, 4, &self.cubin(cubin.bytes)),
                (2, Some(_)) => self.scrubber.count("listing of machine code"),
                (3, Some(_)) => self.scrubber.count("intermediate code"),
                (8, Some(mut files)) => {
                    while let Some(file) = raw::next(&mut files)? {
                        if file.content.is_some() {
                            self.scrubber.count("source file");
                        }
                    }
                }
                _ => self.scrubber.count("unknown data"),
            }
        }
        Ok(out)
    }

    /// The kept cubin; empty where its debug sections cannot be found.
    fn cubin(&mut self, cubin: &[u8]) -> Vec<u8> {
        let mut kept = None;
        if self.keep_machine_code {
            self.scrubber.count("debug information");
            kept = without_debug_sections(cubin);
        }
        if kept.is_none() {
            self.scrubber.count("machine code");
        }
        kept.unwrap_or_default()
    }

    fn result(
        &mut self,
        mut result: Slice<'_>,
        layout: &Layout,
        names: &[String],
    ) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::with_capacity(result.bytes.len());
        while let Some(field) = raw::next(&mut result)? {
            // The names of the kernel say what was measured.
            let is_name = layout.kind == ResultKind::Kernel && matches!(field.number, 5..=7);
            if is_name {
                out.extend_from_slice(field.whole);
            } else if field.number == layout.metrics && metric_identifies_the_gpu(&field, names)? {
                self.scrubber.count("identity of the GPU");
            } else {
                self.unknown(&field, &mut out, 0);
            }
        }
        Ok(out)
    }

    /// Copies a field of unknown meaning. If it contains a path or a name, it is rewritten as a
    /// message or as a text; where it is neither, it is removed.
    fn unknown(&mut self, field: &Raw<'_>, out: &mut Vec<u8>, depth: usize) {
        let suspect = |content: &Slice<'_>| self.scrubber.suspects(content.bytes);
        let Some(content) = field.content.filter(suspect) else {
            out.extend_from_slice(field.whole);
            return;
        };
        if depth < DEEPEST && is_message(content) {
            // The message is written in place and its key before it at the end: a copy for each
            // level of nesting would be many times the file.
            let start = out.len();
            let mut fields = content;
            while let Ok(Some(field)) = raw::next(&mut fields) {
                self.unknown(&field, out, depth.saturating_add(1));
            }
            insert_key(out, field.number, start);
        } else if let Ok(text) = std::str::from_utf8(content.bytes) {
            let clean = self.scrubber.whole(text);
            write_bytes(out, field.number, clean.as_bytes());
        } else {
            self.scrubber.count("unknown data");
        }
    }
}

/// `ProfileMetricResult { 1: NameId }`.
fn metric_identifies_the_gpu(metric: &Raw<'_>, names: &[String]) -> Result<bool, ReadError> {
    let Some(mut metric) = metric.content else {
        return Ok(false);
    };
    let id = match metric.field()? {
        Some(field) if field.number == 1 => field.integer_32().ok(),
        _ => None,
    };
    let name = id.and_then(|id| names.get(id as usize));
    Ok(name.is_some_and(|name| identifies_the_gpu(name)))
}

/// Whether all bytes are a message. A path is not: no key of a field begins with a slash.
fn is_message(mut content: Slice<'_>) -> bool {
    loop {
        match content.field() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_of_a_command_line_are_kept() {
        let line = "/opt/x/ncu --clock-control none --replay-mode=kernel -o /home/a/b ./p --cache-control $(id)";
        assert_eq!(
            conditions_only(line),
            "ncu --clock-control none --replay-mode kernel"
        );
    }
}
