//! Memory and time of the readers on inputs that were made to take much of both.
//!
//! The allocator of this test program counts the bytes that are allocated, so memory is measured
//! and not estimated. Time is compared between an input and one of twice the size: what takes
//! quadratic time takes four times as long.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ncu_report::{ReadError, csv, demangled, function_name, report};

/// Counts the bytes of each thread, because the tests run side by side.
struct Counting;

thread_local! {
    /// Bytes that are allocated now, and the most since the last reset.
    static LIVE: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
}

fn count(grown: usize, shrunk: usize) {
    let _ = LIVE.try_with(|live| {
        let [now, most] = live.get();
        let now = now.saturating_add(grown).saturating_sub(shrunk);
        live.set([now, most.max(now)]);
    });
}

// SAFETY: every call goes to the system's allocator with the arguments that the caller promised.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: see above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: see above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: see above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were allocated at once while `run` ran, beside those before.
fn most_memory<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let [before, _] = LIVE.get();
    LIVE.set([before; 2]);
    let result = run();
    let [_, most] = LIVE.get();
    (most.saturating_sub(before), result)
}

/// Reads an input with the reader of its kind and with the others for reports, and asserts the
/// bound on memory, of which the bytes of the input are a part.
fn assert_bounded(what: &str, bytes: &[u8]) -> Result<usize, ReadError> {
    let bound = 8 * bytes.len() + (64 << 20);
    let (memory, read) = most_memory(|| ncu_report::read(bytes));
    let used = bytes.len() + memory;
    assert!(used <= bound, "{what}: {} bytes took {used}", bytes.len());
    if bytes.starts_with(report::MAGIC) {
        let (memory, _) = most_memory(|| report::machine_code(bytes).map(|codes| codes.len()));
        let used = bytes.len() + memory;
        assert!(used <= bound, "{what}: its machine code took {used}");
        let (memory, _) = most_memory(|| strip(bytes));
        let used = bytes.len() + memory;
        assert!(used <= bound, "{what}: its copy took {used}");
    }
    read.map(|recording| recording.launches.len())
}

fn strip(bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
    let mut stripping = report::Stripping {
        keep_machine_code: true,
        text: &mut |text| Some(text.replace('/', "_")),
        suspect: &|bytes| bytes.contains(&b'/'),
        command: &mut |line| line.to_owned(),
        host: &mut |_| {},
        removed: &mut Default::default(),
    };
    report::strip(bytes, &mut stripping)
}

/// The shortest of a few runs.
fn shortest(mut run: impl FnMut()) -> Duration {
    let timed = |()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    [(); 5].map(timed).into_iter().min().unwrap()
}

/// Asserts that an input of eight times the size takes far less than 64 times as long. Linear time
/// is 8 times, quadratic 64; what is too short to be measured counts as a millisecond.
fn assert_linear(what: &str, input: impl Fn(usize) -> Vec<u8>, run: impl Fn(&[u8])) {
    let (small, large) = (input(1), input(8));
    let factor = large.len() as f64 / small.len() as f64;
    assert!((4.0..12.0).contains(&factor), "{what}: {factor}");
    let least = Duration::from_millis(1);
    let time = |bytes: &[u8]| shortest(|| run(black_box(bytes))).max(least).as_secs_f64();
    let (short, long) = (time(&small), time(&large));
    assert!(
        long < 3.5 * factor * short,
        "{what}: {} bytes take {short} s, {} take {long} s",
        small.len(),
        large.len()
    );
}

/// A message in the wire format.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Message {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    fn integer(self, number: u64, value: u64) -> Message {
        self.varint(number << 3).varint(value)
    }

    fn bytes(self, number: u64, value: &[u8]) -> Message {
        let mut message = self.varint(number << 3 | 2).varint(value.len() as u64);
        message.0.extend(value);
        message
    }

    fn repeated(number: u64, values: impl IntoIterator<Item = Message>) -> Message {
        let add = |all: Message, value: Message| all.bytes(number, &value.0);
        values.into_iter().fold(Message::default(), add)
    }

    fn sized(&self) -> Vec<u8> {
        [&(self.0.len() as u32).to_le_bytes(), &self.0[..]].concat()
    }
}

fn name(text: &[u8]) -> Message {
    Message(text.to_vec())
}

/// A report of one block with these names of metrics, sources and kernel results.
fn report_of(names: &[&[u8]], sources: &[Message], results: &[Message]) -> Vec<u8> {
    let table = names
        .iter()
        .fold(Message::default(), |table, name| table.bytes(1, name));
    let payload: Vec<u8> = sources
        .iter()
        .chain(results)
        .flat_map(Message::sized)
        .collect();
    let header = Message::default()
        .integer(1, sources.len() as u64)
        .integer(2, results.len() as u64)
        .bytes(4, &table.0)
        .integer(5, payload.len() as u64);
    let mut file = report::MAGIC.to_vec();
    file.extend(Message::default().integer(1, 7).sized());
    file.extend(header.sized());
    file.extend(payload);
    file
}

fn metric(id: u64, value: u64) -> Message {
    let value = Message::default().integer(5, value);
    Message::default().integer(1, id).bytes(2, &value.0)
}

/// A result with these metrics.
fn result(metrics: impl IntoIterator<Item = Message>) -> Message {
    Message::repeated(13, metrics)
}

/// A kernel result with samples at these addresses, which refers to source 1.
fn sampled(metric: u64, addresses: impl Iterator<Item = u64>) -> Message {
    let scalar = |value| Message::default().integer(5, value);
    let lists = addresses.map(|address| {
        Message::default()
            .bytes(1, &scalar(address).0)
            .bytes(2, &scalar(1).0)
    });
    let mut values = Message::default().integer(1, metric);
    values.0.extend(Message::repeated(3, lists).0);
    result([values]).bytes(15, &Message::default().integer(1, 1).0)
}

/// Source 1 with a cubin and functions.
fn source(cubin: &[u8], functions: &[(u64, &[u8])]) -> Message {
    let functions = functions
        .iter()
        .map(|(address, name)| Message::default().bytes(1, name).integer(2, *address));
    Message::default()
        .integer(1, 1)
        .bytes(4, cubin)
        .bytes(9, &Message::repeated(1, functions).0)
}

/// An ELF file for 64 bits. A section is the offset of its name, its type, its data, the symbols it
/// refers to and the section that it is about.
struct Elf {
    names: Vec<u8>,
    sections: Vec<Section>,
}

struct Section {
    name: u32,
    kind: u32,
    data: Vec<u8>,
    link: u32,
    info: u32,
    entry: u64,
}

impl Elf {
    fn new() -> Elf {
        Elf {
            names: b"\0.debug_line\0.text.f\0".to_vec(),
            sections: Vec::new(),
        }
    }

    fn section(mut self, name: u32, kind: u32, data: &[u8]) -> Elf {
        self.sections.push(Section {
            name,
            kind,
            data: data.to_vec(),
            link: 0,
            info: 0,
            entry: 0,
        });
        self
    }

    fn linked(mut self, link: u32, info: u32, entry: u64) -> Elf {
        let last = self.sections.last_mut().unwrap();
        (last.link, last.info, last.entry) = (link, info, entry);
        self
    }

    /// The file: header, data, headers of the sections. The last section has the names.
    fn file(mut self) -> Vec<u8> {
        let names = std::mem::take(&mut self.names);
        let this = self.section(0, 3, &names);
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        let mut headers = vec![0; 64];
        for section in &this.sections {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&section.name.to_le_bytes());
            header[4..8].copy_from_slice(&section.kind.to_le_bytes());
            header[24..32].copy_from_slice(&(file.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(section.data.len() as u64).to_le_bytes());
            header[40..44].copy_from_slice(&section.link.to_le_bytes());
            header[44..48].copy_from_slice(&section.info.to_le_bytes());
            header[56..].copy_from_slice(&section.entry.to_le_bytes());
            headers.extend(header);
            file.extend(&section.data);
        }
        let count = this.sections.len() as u16 + 1;
        let start = file.len() as u64;
        file[16..20].copy_from_slice(&[2, 0, 190, 0]);
        file[20..24].copy_from_slice(&1_u32.to_le_bytes());
        file[40..48].copy_from_slice(&start.to_le_bytes());
        file[52..64].copy_from_slice(&[64, 0, 56, 0, 0, 0, 64, 0, 0, 0, 0, 0]);
        file[60..62].copy_from_slice(&count.to_le_bytes());
        file[62..64].copy_from_slice(&(count - 1).to_le_bytes());
        file.extend(headers);
        file
    }
}

const DEBUG_LINE: u32 = 1;
const TEXT_F: u32 = 13;

/// A unit of DWARF 2 with this list of folders and files, and this program.
fn unit(folders: &[&[u8]], files: &[(&[u8], u8)], program: &[u8]) -> Vec<u8> {
    let mut header = vec![1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
    for folder in folders {
        header.extend(*folder);
        header.push(0);
    }
    header.push(0);
    for (file, folder) in files {
        header.extend(*file);
        header.extend([0, *folder, 0, 0]);
    }
    header.push(0);
    let body = [
        &2_u16.to_le_bytes()[..],
        &(header.len() as u32).to_le_bytes(),
        &header,
        program,
    ]
    .concat();
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// A program that begins at the section of this index (no relocation is needed for that), and has
/// these instructions.
fn program(section: u64, instructions: &[u8]) -> Vec<u8> {
    let address = (section << 40).to_le_bytes();
    [&[0, 9, 2][..], &address, instructions, &[0, 1, 1]].concat()
}

/// A cubin with these units, and the code of the function `f`, which is section 1.
fn cubin(units: &[Vec<u8>]) -> Vec<u8> {
    Elf::new()
        .section(TEXT_F, 1, &[0; 16])
        .section(DEBUG_LINE, 1, &units.concat())
        .file()
}

/// A report with a sample in the function `f` of a cubin.
fn report_with(cubin: &[u8]) -> Vec<u8> {
    report_of(
        &[b"smsp__pcsamp_sample_count"],
        &[source(cubin, &[(0x1000, b"f")])],
        &[sampled(0, [0x1000].into_iter())],
    )
}

/// The lines of the one instruction of a report.
fn lines(bytes: &[u8]) -> Vec<(String, u32)> {
    let recording = report::read(bytes).unwrap();
    let source = recording.launches[0].source.as_ref().unwrap();
    let lines = source.instructions[0].lines.iter();
    lines
        .map(|line| (line.file.to_string(), line.line))
        .collect()
}

/// Reports that take much memory for their size, unless the reader bounds it.
fn hostile_reports() -> Vec<(&'static str, Vec<u8>)> {
    let folder = vec![b'a'; 3000];
    let files = vec![(&b"f"[..], 1); 30_000];
    let long = vec![b'n'; 100_000];
    let text = Message::default().bytes(1, b"t");
    let text = Message::default().integer(1, 0).bytes(2, &text.0);
    let empty_lists = (0..100_000).fold(Message::default().integer(1, 0), |metric, _| {
        metric.bytes(3, &[])
    });
    let invalid = result([]).bytes(7, &[0xff; 400_000]);
    let nested = (0..64).fold(vec![b'/'; 2_000_000], |inner, _| {
        Message::default().bytes(60, &inner).0
    });
    let rows = program(1, &[0x20; 2_000_000]);
    let only_ends = [0, 1, 1].repeat(500_000);
    let definitions = [0, 6, 3, b'a', 0, 0, 0, 0].repeat(300_000);
    let references = |reference| Message::default().integer(1, reference);
    let functions: Vec<(u64, &[u8])> = (0..100_000).map(|address| (address, &b""[..])).collect();
    vec![
        (
            "empty results",
            report_of(&[], &[], &vec![result([]); 500_000]),
        ),
        (
            "one text",
            report_of(&[b"a"], &[], &[result([text.clone()])]),
        ),
        (
            "a text in each result",
            report_of(&[b"a"], &[], &vec![result([text]); 200_000]),
        ),
        (
            "many metrics in a result",
            report_of(&[b"a"], &[], &[result(vec![metric(0, 1); 400_000])]),
        ),
        (
            "empty lists",
            report_of(&[b"inst_executed"], &[], &vec![result([empty_lists]); 10]),
        ),
        (
            "an instruction for each value",
            report_of(&[b"inst_executed"], &[], &[sampled(0, 0..300_000)]),
        ),
        (
            "a reason for each value",
            report_of(
                &[b"smsp__pcsamp_warps_issue_stalled_x"],
                &[],
                &[sampled(0, 0..300_000)],
            ),
        ),
        (
            "names that are not UTF-8",
            report_of(&[], &[], &vec![invalid; 40]),
        ),
        ("short names", report_of(&vec![&b"a"[..]; 60_000], &[], &[])),
        (
            "references of sources",
            report_of(&[], &(0..300_000).map(references).collect::<Vec<_>>(), &[]),
        ),
        ("functions", report_of(&[], &[source(b"", &functions)], &[])),
        (
            "a message in 64 messages",
            report_of(&[], &[], &[Message(nested)]),
        ),
        (
            "a long folder of many files",
            report_with(&cubin(&[unit(&[&folder], &files, &[])])),
        ),
        (
            "a unit for each of many files",
            report_with(&cubin(&vec![unit(&[&folder], &files[..200], &[]); 500])),
        ),
        (
            "a row for each byte",
            report_with(&cubin(&[unit(&[], &[], &rows)])),
        ),
        (
            "ends of sequences",
            report_with(&cubin(&[unit(&[], &[], &program(1, &only_ends))])),
        ),
        (
            "defined files",
            report_with(&cubin(&[unit(&[], &[], &program(1, &definitions))])),
        ),
        (
            "one name of many sections",
            report_with(&sections(&long, 3000)),
        ),
    ]
}

/// A cubin with many sections `.text.`, whose names begin one after the other in a long name, and
/// a row in each.
fn sections(name: &[u8], count: u32) -> Vec<u8> {
    let mut elf = Elf::new();
    let start = elf.names.len() as u32;
    elf.names.extend(b".text.".repeat(count as usize));
    elf.names.extend(name);
    elf.names.push(0);
    let mut units = Vec::new();
    for index in 0..count {
        elf = elf.section(start + 6 * index, 1, &[]);
        units.extend(program(u64::from(index) + 1, &[0x20, 0x20]));
    }
    elf.section(DEBUG_LINE, 1, &unit(&[], &[], &units)).file()
}

#[test]
fn no_report_takes_more_memory_than_eight_times_its_size_and_64_mib() {
    for (what, bytes) in hostile_reports() {
        let start = Instant::now();
        let _ = assert_bounded(what, &bytes);
        // Each ends in less than a second without optimization; quadratic ones take minutes.
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
    }
}

#[test]
fn lists_that_a_line_table_states_to_be_endless_are_not_read() {
    // Version 5: a list of 2^60 folders, each of which takes no byte of the file.
    let endless = [&[1, 1, 0x19][..], &[0xff; 8], &[0x0f]].concat();
    let header = [&[1, 1, 1, 0xfb, 14, 1][..], &endless].concat();
    let body = [
        &[5, 0, 8, 0][..],
        &(header.len() as u32).to_le_bytes(),
        &header,
    ]
    .concat();
    let unit = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    let bytes = report_with(&cubin(&[unit]));
    assert_eq!(assert_bounded("endless folders", &bytes).unwrap(), 1);
    assert_eq!(lines(&bytes), []);
}

#[test]
fn a_file_that_a_unit_does_not_have_is_not_that_of_another_unit() {
    let ours = |file: u8| {
        // Set file and line (advance by 4), copy.
        let rows = program(1, &[4, file, 3, 4, 1]);
        let first = unit(&[], &[(b"first.cu", 0)], &[]);
        let second = unit(&[], &[(b"second.cu", 0)], &rows);
        let third = unit(&[], &[(b"third.cu", 0)], &[]);
        lines(&report_with(&cubin(&[first, second, third])))
    };
    assert_eq!(ours(1), [("second.cu".to_owned(), 5)]);
    assert_eq!(ours(0), []);
    assert_eq!(ours(2), []);
}

#[test]
fn an_address_that_leaves_its_section_belongs_to_no_other_function() {
    // The address advances from section 0, which has no code, by 2^40 to the code of `f`.
    let advance = [2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    let rows = |section| program(section, &[&advance[..], &[1]].concat());
    let report = |section| report_with(&cubin(&[unit(&[], &[(b"x.cu", 0)], &rows(section))]));
    assert_eq!(lines(&report(0)), []);
    let whole = report_with(&cubin(&[unit(&[], &[(b"x.cu", 0)], &program(1, &[1]))]));
    assert_eq!(lines(&whole), [("x.cu".to_owned(), 1)]);
}

#[test]
fn the_time_for_a_report_grows_with_its_size_and_no_faster() {
    let read = |bytes: &[u8]| drop(black_box(ncu_report::read(bytes)));
    let capability = |major, more: u64| {
        let chip = [metric(0, major), metric(1, 0)];
        result(chip.into_iter().chain([metric(2 + more, 1)]))
    };
    let capability_names: [&[u8]; 2] = [
        b"device__attribute_compute_capability_major",
        b"device__attribute_compute_capability_minor",
    ];
    let alternating = |names: &[Vec<u8>], count: usize| {
        let names: Vec<&[u8]> = capability_names
            .into_iter()
            .chain(names.iter().map(Vec::as_slice))
            .collect();
        let results: Vec<Message> = (0..count)
            .map(|index| capability(8 + index as u64 % 2, 0))
            .collect();
        report_of(&names, &[], &results)
    };
    let many_names = |size: usize| -> Vec<Vec<u8>> {
        (0..size * 1000)
            .map(|index| format!("{index:060}").into_bytes())
            .collect()
    };
    assert_linear(
        "results of two chips × names",
        |size| alternating(&many_names(size), size * 2000),
        read,
    );
    assert_linear(
        "results of two chips × a long name",
        |size| alternating(&[vec![b'w'; size * 20_000]], size * 500),
        read,
    );
    let named = |size: usize| vec![b'n'; size * 20_000];
    assert_linear(
        "results with samples × the long name of a function",
        |size| {
            let name = named(size);
            let mut elf = Elf::new();
            elf.names.extend([b".text.", &name[..], b"\0"].concat());
            let rows = program(1, &[1]);
            let cubin = elf
                .section(TEXT_F + 8, 1, &[])
                .section(DEBUG_LINE, 1, &unit(&[], &[(b"x.cu", 0)], &rows))
                .file();
            report_of(
                &[b"smsp__pcsamp_sample_count"],
                &[source(&cubin, &[(0x1000, &name)])],
                &vec![sampled(0, 0x1000..0x1010); size * 100],
            )
        },
        read,
    );
    assert_linear(
        "rows × the long name of a section",
        |size| {
            let mut elf = Elf::new();
            elf.names
                .extend([b".text.", &named(size)[..], b"\0"].concat());
            let rows = program(1, &vec![0x20; size * 20_000]);
            report_with(
                &elf.section(TEXT_F + 8, 1, &[])
                    .section(DEBUG_LINE, 1, &unit(&[], &[], &rows))
                    .file(),
            )
        },
        read,
    );
    assert_linear(
        "sections × their name",
        |size| report_with(&sections(&named(size), size as u32 * 500)),
        read,
    );
    assert_linear(
        "relocations × sections of them",
        |size| {
            let units = unit(&[], &[], &vec![1; size * 8000]);
            // Section 2 is the one that they are about, section 3 has the symbols.
            let mut elf = Elf::new()
                .section(TEXT_F, 1, &[])
                .section(DEBUG_LINE, 1, &units)
                .section(0, 2, &[0; 48])
                .linked(5, 1, 24)
                .section(0, 3, &[0])
                .section(0, 3, &[0]);
            for _ in 0..size * 50 {
                elf = elf
                    .section(0, 4, &[[0; 8], [1, 0, 0, 0, 1, 0, 0, 0], [0; 8]].concat())
                    .linked(3, 2, 24);
            }
            report_with(&elf.file())
        },
        read,
    );
}
