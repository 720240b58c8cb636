//! A report without what must not be published: sources, machine code, and who measured where.
//!
//! Field numbers are those of the `.proto` files that ship with Nsight Compute. A field that is
//! kept keeps its bytes; what is dropped takes its field with it, so that lengths and sizes are
//! written anew.

use std::collections::BTreeMap;

use super::{KNOWN_FORMAT_VERSION, MAGIC, StringTable};
use crate::error::{ReadError, describe};
use crate::wire::Slice;

/// Attributes of the device that tell one machine's GPU from another's.
const IDENTIFYING: [&str; 3] = [
    "device__attribute_pci_bus_id",
    "device__attribute_pci_device_id",
    "device__attribute_pci_domain_id",
];

/// Whether a metric says which GPU it was, and not what was measured.
pub fn identifies_the_gpu(metric: &str) -> bool {
    IDENTIFYING.contains(&metric) || metric.contains("uuid") || metric.contains("serial_number")
}

/// What is left of the host's name in a report.
const NO_HOST: &str = "localhost";

/// The choices, and the words that the caller knows.
pub struct Stripping<'a> {
    /// Whether the cubins stay, without their debug sections.
    pub keep_machine_code: bool,
    /// A text without paths, names and numbers of machines; `None` where it has none.
    pub text: &'a mut dyn FnMut(&str) -> Option<String>,
    /// Whether bytes hold such a thing: opaque fields that do are dropped.
    pub suspect: &'a dyn Fn(&[u8]) -> bool,
    /// The command line of ncu without what names anything.
    pub command: &'a mut dyn FnMut(&str) -> String,
    /// Hears every host's name that is taken out.
    pub host: &'a mut dyn FnMut(&str),
    /// How many things of each kind were taken out.
    pub removed: &'a mut BTreeMap<&'static str, u64>,
}

/// Rewrites a report.
///
/// # Errors
/// [`ReadError`] where the file is no report, is damaged, or is of a version of the format whose
/// fields are not known.
pub fn strip(bytes: &[u8], stripping: &mut Stripping<'_>) -> Result<Vec<u8>, ReadError> {
    let mut file = Slice { bytes, offset: 0 };
    if !bytes.starts_with(MAGIC) {
        return Err(ReadError::NotAReport {
            found: describe(bytes),
        });
    }
    file.take(4, "the magic number")?;
    let header = file.take_sized("the file header")?;
    let mut fields = header;
    let mut version = None;
    while let Some(field) = fields.field()? {
        if field.number == 1 {
            version = Some(field.integer()?);
        }
    }
    if version != Some(KNOWN_FORMAT_VERSION) {
        return Err(ReadError::report(
            header.offset,
            format!(
                "the report is of format {version:?}, and only the fields of {KNOWN_FORMAT_VERSION} are known: what it would leak cannot be told"
            ),
        ));
    }
    let strings = names(file)?;
    let mut stripped = MAGIC.to_vec();
    sized(&mut stripped, header.bytes);
    while !file.bytes.is_empty() {
        stripping.block(&mut file, &strings, &mut stripped)?;
    }
    Ok(stripped)
}

/// The names of the metrics, from the tables of all blocks.
fn names(mut file: Slice<'_>) -> Result<Vec<String>, ReadError> {
    let mut strings = StringTable::new(file.bytes.len());
    while let Some(block) = super::Block::next(&mut file)? {
        let mut fields = block.header;
        while let Some(field) = fields.field()? {
            if field.number == 4 {
                strings.merge(field.bytes()?)?;
            }
        }
    }
    let text = |name: &&[u8]| String::from_utf8_lossy(name).into_owned();
    Ok(strings.strings.iter().map(text).collect())
}

/// A field as it lies in the file.
struct Raw<'a> {
    number: u64,
    whole: &'a [u8],
    /// What a string or a message holds; `None` for numbers.
    content: Option<Slice<'a>>,
}

fn raw<'a>(message: &mut Slice<'a>) -> Result<Option<Raw<'a>>, ReadError> {
    let before = message.bytes;
    let Some(field) = message.field()? else {
        return Ok(None);
    };
    Ok(Some(Raw {
        number: field.number,
        whole: &before[..before.len() - message.bytes.len()],
        content: field.bytes().ok(),
    }))
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A string or a message of this number.
fn field(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn sized(out: &mut Vec<u8>, content: &[u8]) {
    // Nothing grows, and what was read had a length of four bytes.
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    out.extend_from_slice(content);
}

impl Stripping<'_> {
    fn count(&mut self, kind: &'static str) {
        *self.removed.entry(kind).or_default() += 1;
    }

    fn block(
        &mut self,
        file: &mut Slice<'_>,
        names: &[String],
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let Some(block) = super::Block::next(file)? else {
            return Ok(());
        };
        let mut payload = Vec::with_capacity(block.payload.bytes.len());
        let mut left = block.payload;
        for _ in 0..block.sources {
            let source = left.take_sized("a source")?;
            sized(&mut payload, &self.source(source)?);
        }
        let mut kinds = Vec::new();
        for (count, metrics) in [
            (block.kernels, 13),
            (block.ranges, 4),
            (block.command_lists, 4),
            (block.graphs, 4),
        ] {
            kinds.push((count, metrics));
        }
        for (count, metrics) in kinds {
            for _ in 0..count {
                let result = left.take_sized("a result")?;
                sized(&mut payload, &self.result(result, metrics, names)?);
            }
        }
        if !left.bytes.is_empty() {
            self.count("unknown data");
        }

        let mut header = Vec::new();
        let mut fields = block.header;
        while let Some(field_of) = raw(&mut fields)? {
            match (field_of.number, field_of.content) {
                (3, Some(session)) => {
                    let session = self.session(session)?;
                    field(&mut header, 3, &session);
                }
                (5, None) => {
                    varint(&mut header, 5 << 3);
                    varint(&mut header, payload.len() as u64);
                }
                (6, Some(process)) => {
                    let process = self.process(process)?;
                    field(&mut header, 6, &process);
                }
                // Counts, and the names of metrics.
                (1 | 2 | 4 | 7 | 8 | 9, _) => header.extend_from_slice(field_of.whole),
                _ => self.count("unknown data"),
            }
        }
        sized(out, &header);
        out.extend_from_slice(&payload);
        Ok(())
    }

    /// `ReportSessionDetails`: when, which systems, which GPU, which versions, which command.
    fn session(&mut self, mut session: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(of) = raw(&mut session)? {
            match (of.number, of.content) {
                (1 | 2, None) | (8, Some(_)) => out.extend_from_slice(of.whole),
                (3 | 4, Some(system)) => field(&mut out, of.number, &self.system(system)?),
                (5, Some(text)) if text.bytes.is_empty() => out.extend_from_slice(of.whole),
                (6, Some(device)) => field(&mut out, 6, &self.device(device)?),
                (11, Some(line)) => {
                    self.count("command line");
                    let line = (self.command)(&line.text());
                    field(&mut out, 11, line.as_bytes());
                }
                _ => self.count("session detail"),
            }
        }
        Ok(out)
    }

    /// `{ 1 OS, 2 its version, 3 CPU, 4 architecture, 5 host, 6 cores, 7 addresses }`.
    fn system(&mut self, mut system: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(of) = raw(&mut system)? {
            match (of.number, of.content) {
                (1 | 3 | 4, Some(_)) | (6, None) => out.extend_from_slice(of.whole),
                (2, Some(_)) => {
                    self.count("kernel of the operating system");
                    field(&mut out, 2, b"");
                }
                (5, Some(name)) => {
                    self.host_name(&name.text());
                    field(&mut out, 5, NO_HOST.as_bytes());
                }
                (7, _) => self.count("network address"),
                _ => self.count("session detail"),
            }
        }
        Ok(out)
    }

    fn host_name(&mut self, name: &str) {
        if !matches!(name, "" | NO_HOST | "127.0.0.1") {
            self.count("host name");
            (self.host)(name);
        }
    }

    /// `ProcessInfo { 1 number, 2 host, 3 program }`.
    fn process(&mut self, mut process: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(of) = raw(&mut process)? {
            match (of.number, of.content) {
                (1, None) => out.extend_from_slice(of.whole),
                (2, Some(host)) => {
                    self.host_name(&host.text());
                    field(&mut out, 2, NO_HOST.as_bytes());
                }
                (3, Some(program)) => {
                    let program = program.text();
                    let name = (self.text)(&program).unwrap_or(program);
                    field(&mut out, 3, name.as_bytes());
                }
                _ => self.count("session detail"),
            }
        }
        Ok(out)
    }

    /// `DeviceAttributes { 1 number, 2 model, 3 repeated { 1 name, 2 value } }`.
    fn device(&mut self, mut device: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(of) = raw(&mut device)? {
            if let (3, Some(mut attribute)) = (of.number, of.content) {
                let name = match raw(&mut attribute)? {
                    Some(Raw {
                        content: Some(name),
                        ..
                    }) => name.text(),
                    _ => String::new(),
                };
                if identifies_the_gpu(&name) {
                    self.count("identity of the GPU");
                    continue;
                }
            }
            self.any(&of, &mut out, 0);
        }
        Ok(out)
    }

    /// `SourceData`: of it stay the reference, the level, the architecture and the functions.
    fn source(&mut self, mut source: Slice<'_>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        while let Some(of) = raw(&mut source)? {
            match (of.number, of.content) {
                (1 | 5 | 6 | 7, None) | (9, Some(_)) => out.extend_from_slice(of.whole),
                (4, Some(cubin)) if self.keep_machine_code => {
                    let kept = without_debug(cubin.bytes);
                    if kept.is_none() {
                        self.count("machine code");
                    }
                    self.count("debug information");
                    field(&mut out, 4, &kept.unwrap_or_default());
                }
                (4, Some(_)) => {
                    self.count("machine code");
                    field(&mut out, 4, b"");
                }
                (2, Some(_)) => self.count("listing of machine code"),
                (3, Some(_)) => self.count("intermediate code"),
                (8, Some(mut files)) => {
                    while let Some(file) = raw(&mut files)? {
                        if file.content.is_some() {
                            self.count("source file");
                        }
                    }
                }
                _ => self.count("unknown data"),
            }
        }
        Ok(out)
    }

    fn result(
        &mut self,
        mut result: Slice<'_>,
        metrics: u64,
        names: &[String],
    ) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::with_capacity(result.bytes.len());
        while let Some(of) = raw(&mut result)? {
            if of.number == metrics
                && let Some(mut metric) = of.content
                && let Some(id) = metric.field()?
                && id.number == 1
                && let Ok(id) = id.integer_32()
                && names
                    .get(id as usize)
                    .is_some_and(|name| identifies_the_gpu(name))
            {
                self.count("identity of the GPU");
                continue;
            }
            // What a kernel is called is what was measured.
            let is_name = metrics == 13 && matches!(of.number, 5..=7);
            if is_name {
                out.extend_from_slice(of.whole);
            } else {
                self.any(&of, &mut out, 0);
            }
        }
        Ok(out)
    }

    /// A field of which nothing is known: whatever in it holds a path or a name is a text, a
    /// message around one, or dropped.
    fn any(&mut self, of: &Raw<'_>, out: &mut Vec<u8>, depth: usize) {
        const DEEPEST: usize = 32;
        let suspect = |content: &Slice<'_>| (self.suspect)(content.bytes);
        let Some(content) = of.content.filter(suspect) else {
            out.extend_from_slice(of.whole);
            return;
        };
        if depth < DEEPEST && is_message(content) {
            let mut inner = Vec::with_capacity(content.bytes.len());
            let mut fields = content;
            while let Ok(Some(of)) = raw(&mut fields) {
                self.any(&of, &mut inner, depth + 1);
            }
            field(out, of.number, &inner);
        } else if let Ok(text) = std::str::from_utf8(content.bytes) {
            let clean = (self.text)(text).unwrap_or_else(|| text.to_owned());
            field(out, of.number, clean.as_bytes());
        } else {
            self.count("unknown data");
        }
    }
}

/// Whether bytes are a message to their end. A path is none: a slash is no field's key.
fn is_message(mut content: Slice<'_>) -> bool {
    loop {
        match content.field() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// A cubin whose debug sections are zeros: they hold paths and lines of the sources. `None` where
/// it cannot be read, so that nothing is published unseen.
fn without_debug(cubin: &[u8]) -> Option<Vec<u8>> {
    use object::{Object as _, ObjectSection as _};
    let file = object::File::parse(cubin).ok()?;
    let mut kept = cubin.to_vec();
    for section in file.sections() {
        let name = section.name().ok()?;
        let tells = name.contains("debug") || name == ".note.nv.tkinfo" || name == ".comment";
        if let (true, Some((start, size))) = (tells, section.file_range()) {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            kept.get_mut(start..end)?.fill(0);
        }
    }
    Some(kept)
}
