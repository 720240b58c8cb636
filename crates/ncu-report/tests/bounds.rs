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

use common::wire::{Message, metric, number, report_of, result};
use ncu_report::{ReadError, Scrubber, base_name, csv, function_name, report};
use rustix::time::{ClockId, clock_gettime};

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
        let (memory, _) = most_memory(|| report::strip(bytes, &mut Scrubber::default(), true));
        let used = bytes.len() + memory;
        assert!(used <= bound, "{what}: its copy took {used}");
    }
    read.map(|recording| recording.launches.len())
}

/// The time that this thread has run on a processor; the other programs of the machine do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

/// The shortest of a few measurements. Each repeats what is short.
fn shortest(mut run: impl FnMut()) -> Duration {
    const LEAST: Duration = Duration::from_millis(2);
    let timed = |()| {
        let before = processor_time();
        let mut runs = 0;
        loop {
            run();
            runs += 1;
            let taken = processor_time().saturating_sub(before);
            if taken >= LEAST {
                return taken / runs;
            }
        }
    };
    [(); 5].map(timed).into_iter().min().unwrap()
}

/// Asserts that an input of eight times the size takes far less than 64 times as long. Linear time
/// is 8 times, quadratic 64.
fn assert_linear(what: &str, input: impl Fn(usize) -> Vec<u8>, run: impl Fn(&[u8])) {
    let (small, large) = (input(1), input(8));
    let factor = large.len() as f64 / small.len() as f64;
    assert!((4.0..12.0).contains(&factor), "{what}: {factor}");
    let time = |bytes: &[u8]| shortest(|| run(black_box(bytes))).as_secs_f64();
    let (short, long) = (time(&small), time(&large));
    assert!(
        long < 3.5 * factor * short,
        "{what}: {} bytes take {short} s, {} take {long} s",
        small.len(),
        large.len()
    );
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

/// An ELF file for 64 bits with empty sections, whose names begin at these places of a text.
fn elf(names: &[u8], starts: impl Iterator<Item = u32>) -> Vec<u8> {
    let section = |name: u32, kind: u32, size: usize| {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&64_u64.to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        header
    };
    let mut headers = vec![[0; 64]];
    headers.extend(starts.map(|start| section(start, 1, 0)));
    headers.push(section(0, 3, names.len()));
    let (count, start) = (headers.len() as u16, 64 + names.len() as u64);
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    file[16..20].copy_from_slice(&[2, 0, 190, 0]);
    file[20..24].copy_from_slice(&1_u32.to_le_bytes());
    file[40..48].copy_from_slice(&start.to_le_bytes());
    file[52..60].copy_from_slice(&[64, 0, 56, 0, 0, 0, 64, 0]);
    file[60..62].copy_from_slice(&count.to_le_bytes());
    file[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    [file, names.to_vec(), headers.concat()].concat()
}

/// A report with a cubin.
fn report_with(cubin: &[u8]) -> Vec<u8> {
    report_of(&[], &[source(cubin, &[(0x1000, b"f")])], &[])
}

/// Reports that take much memory for their size, unless the reader bounds it.
fn hostile_reports() -> Vec<(&'static str, Vec<u8>)> {
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
    let references = |reference| Message::default().integer(1, reference);
    let functions: Vec<(u64, &[u8])> = (0..100_000).map(|address| (address, &b""[..])).collect();
    let plain = |results: &[Message]| report_of(&[], &[], results);
    let named = |name: &[u8], results: &[Message]| report_of(&[name], &[], results);
    let of_sources = |sources: &[Message]| report_of(&[], sources, &[]);
    let sources: Vec<Message> = (0..300_000).map(references).collect();
    let metrics = vec![metric(0, number(1)); 400_000];
    vec![
        ("empty results", plain(&vec![result([]); 500_000])),
        ("one text", named(b"a", &[result([text.clone()])])),
        ("texts", named(b"a", &vec![result([text]); 200_000])),
        ("many metrics", named(b"a", &[result(metrics)])),
        (
            "lists",
            named(b"inst_executed", &vec![result([empty_lists]); 10]),
        ),
        ("names that are not UTF-8", plain(&vec![invalid; 40])),
        ("short names", report_of(&vec![&b"a"[..]; 60_000], &[], &[])),
        ("references of sources", of_sources(&sources)),
        ("functions", of_sources(&[source(b"", &functions)])),
        ("a message in 64 messages", plain(&[Message(nested)])),
        ("many sections", report_with(&sections(&long, 3000))),
    ]
}

/// A cubin with many sections, whose names begin one after the other in a long name.
fn sections(name: &[u8], count: u32) -> Vec<u8> {
    let parts = b".text.".repeat(count as usize);
    let names = [b"\0", &parts[..], name, b"\0"].concat();
    elf(&names, (0..count).map(|index| 1 + 6 * index))
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
fn the_time_for_a_report_grows_with_its_size_and_no_faster() {
    let linear = |what: &str, input: &dyn Fn(usize) -> Vec<u8>| {
        assert_linear(what, input, |bytes| {
            drop(black_box(ncu_report::read(bytes)))
        });
    };
    let capability = |major| {
        let values = [(0, major), (1, 0), (2, 1)];
        result(values.map(|(id, value)| metric(id, number(value))))
    };
    let capability_names: [&[u8]; 2] = [
        b"device__attribute_compute_capability_major",
        b"device__attribute_compute_capability_minor",
    ];
    let alternating = |names: &[Vec<u8>], count: usize| {
        let names = names.iter().map(Vec::as_slice);
        let names: Vec<&[u8]> = capability_names.into_iter().chain(names).collect();
        let results: Vec<Message> = (0..count)
            .map(|index| capability(8 + index as u64 % 2))
            .collect();
        report_of(&names, &[], &results)
    };
    linear("results of two chips × names", &|size| {
        let names = (0..size * 1000).map(|index| format!("{index:060}").into_bytes());
        alternating(&names.collect::<Vec<_>>(), size * 2000)
    });
    linear("results of two chips × a long name", &|size| {
        alternating(&[vec![b'w'; size * 20_000]], size * 500)
    });
    let name = |size: usize| vec![b'n'; size * 20_000];
    let cubin = |size: usize| sections(&name(size), size as u32 * 500);
    let report = |size| report_with(&cubin(size));
    // One that cannot be read would be left out at once.
    let mut scrubber = Scrubber::default();
    let one = report_with(&elf(b"\0.text.f\0", [1].into_iter()));
    report::strip(&one, &mut scrubber, true).unwrap();
    assert_eq!(scrubber.removed.get("machine code"), None);
    assert_linear("sections × their name", report, |bytes| {
        drop(black_box(report::strip(
            bytes,
            &mut Scrubber::default(),
            true,
        )));
    });
}

/// Leading cells of a raw page, and the row of a launch without the ends of both lines.
const HEAD: &str = "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"CC\"";

fn row(launch: usize, kernel: &str) -> String {
    format!("\"{launch}\",\"7\",\"p\",\"h\",\"{kernel}\",\"9.0\"")
}

/// A raw page with these columns, units and rows, each without the leading cells.
fn page(columns: &str, units: &str, rows: impl Iterator<Item = String>) -> Vec<u8> {
    let rows: String = rows.map(|row| row + "\n").collect();
    format!("{HEAD}{columns}\n\"\",\"\",\"\",\"\",\"\",\"\"{units}\n{rows}").into_bytes()
}

const DETAILS: &str = ",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"";

/// A details page with these sections, metrics, units and values of launches.
fn details<'a>(rows: impl Iterator<Item = (usize, &'a str)>) -> Vec<u8> {
    let rows: String = rows
        .map(|(launch, cells)| row(launch, "k") + cells + "\n")
        .collect();
    format!("{HEAD}{DETAILS}\n{rows}").into_bytes()
}

/// Pages that take much memory for their size, unless the reader bounds it.
fn hostile_pages() -> Vec<(&'static str, Vec<u8>)> {
    let empty = |count: usize| ",".repeat(count);
    let columns = |count: usize| (0..count).map(|at| format!(",{at}")).collect::<String>();
    let one = |kernel: &str| page(",\"m\"", ",", [row(0, kernel) + ",1"].into_iter());
    let wide = page(
        &empty(60_000),
        &empty(60_000),
        [row(0, "k") + &empty(60_000)].into_iter(),
    );
    // The text is in another column of each row.
    let sparse = (0..2000).map(|launch| {
        let (before, after) = (empty(launch % 999 + 1), empty(999 - launch % 999));
        format!("{}{before}\"\"{after}", row(launch, "k"))
    });
    let texts = (0..800).map(|id| row(id, "k") + &format!(",\"{id}x\"").repeat(500));
    let short = (0..300_000).map(|id| format!("\"{id}\",\"7\",,,,,"));
    let not_utf8 = [
        &page(",\"m\"", ",", [].into_iter())[..],
        b"\"0\",\"7\",\"p\",\"h\",\"",
        &[0xff; 2_000_000],
        b"\",\"9.0\",1\n",
    ];
    let of_each = (0..50_000).map(|launch| (launch, ",\"\",\"a__b\",,1"));
    let no_kernels = "==WARNING== No kernels were profiled.\n";
    let labels = (0..100_000).map(|_| (0, ",,\"l\",,\"t\""));
    let commas = empty(2_000_000);
    let pages: [(_, Vec<u8>); 10] = [
        ("one row of commas", page(&commas, "", [].into_iter())),
        ("columns without a name", wide),
        ("empty cells", page(&columns(1000), &empty(1000), sparse)),
        ("short texts", page(&columns(500), &empty(500), texts)),
        ("short rows", page(",\"m\"", ",", short)),
        ("a name of quotes", one(&"\"\"".repeat(500_000))),
        ("a name of 30 MB", one(&"k".repeat(30_000_000))),
        ("a name that is not UTF-8", not_utf8.concat()),
        ("a metric of each launch", details(of_each)),
        ("labels", details(labels)),
    ];
    let in_turn = "\"0\",\"1\",\nx\n".repeat(200_000);
    let kernels = "1. k\n".repeat(1_000_000);
    let texts = [
        ("quotes", format!("{HEAD},\"m\"\n\"\",\"\"\"{commas}")),
        ("headers", format!("{HEAD}{}\n", empty(1000)).repeat(1000)),
        ("rows and others", format!("{HEAD}\n{in_turn}")),
        ("messages", "==ERROR== \n".repeat(1_000_000)),
        ("kernels", no_kernels.to_owned() + &kernels),
    ];
    let texts = texts.map(|(what, text)| (what, text.into_bytes()));
    pages.into_iter().chain(texts).collect()
}

#[test]
fn no_page_takes_more_memory_than_eight_times_its_size_and_64_mib() {
    for (what, bytes) in hostile_pages() {
        let start = Instant::now();
        let _ = assert_bounded(what, &bytes);
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
    }
}

#[test]
fn a_page_of_many_short_launches_is_still_read() {
    // 16 MB of the shortest rows that ncu prints for one metric.
    let columns = ",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"m\"";
    let cells = ",\"1\",\"7\",\"(256, 1, 1)\",\"(16384, 1, 1)\",\"0\",";
    let rows = (0..120_000).map(|id| format!("{}{cells}\"{id}\"", row(id, "k1(float *, int)")));
    let page = page(columns, ",\"\",\"\",\"\",\"\",\"\",\"ns\"", rows);
    assert_eq!(assert_bounded("many launches", &page).unwrap(), 120_000);
}

#[test]
fn the_time_for_a_page_grows_with_its_size_and_no_faster() {
    let linear = |what: &str, input: &dyn Fn(usize) -> Vec<u8>| {
        assert_linear(what, input, |bytes| drop(black_box(csv::read(bytes))));
    };
    for (part, often, end) in [
        ("k", 200_000, ""),
        (" ", 100_000, ""),
        ("<(", 100_000, ")"),
        ("a<b>::", 30_000, "k"),
        ("operator ", 20_000, ""),
        ("\"\"", 100_000, ""),
    ] {
        linear(&format!("a name of {part:?}"), &|size| {
            let kernel = part.repeat(size * often) + end;
            page(",\"m\"", ",", [row(0, &kernel) + ",1"].into_iter())
        });
    }
    linear("long names × rows", &|size| {
        let name = format!(",\"{}\"", "n".repeat(size * 10_000));
        let rows = (0..size * 300).map(|id| row(id, "k") + ",\"1\"");
        page(&name, ",\"us\"", rows)
    });
    linear("long names × metrics of launches", &|size| {
        let name = format!(",,\"a__{}\",us,1", "n".repeat(size * 10_000));
        details((0..20).map(|launch| (launch, name.as_str())))
    });
    linear("rows of the program", &|size| {
        let lines = "\"0\",\"1\",\nx\n".repeat(size * 1500);
        format!("{HEAD},\"m\"\n{lines}").into_bytes()
    });
}

#[test]
fn the_time_for_a_signature_grows_with_its_length_and_no_faster() {
    let names = ["a<b>::", " ", "operator ", "operator>", "::"];
    let brackets = ["<", ">", "(", ")", "<(", ")>", "()", "[]"];
    for part in names.into_iter().chain(brackets) {
        for end in ["", "k", "()", "<>()", " const", ")"] {
            let text = |size: usize| [&part.repeat(size * 10_000), end].concat().into_bytes();
            assert_linear(&format!("{part:?} and {end:?}"), text, |bytes| {
                let text = std::str::from_utf8(bytes).unwrap();
                black_box(function_name(text));
                black_box(ncu_report::placeless(text));
            });
        }
    }
}

#[test]
fn every_recorded_report_is_read_within_the_bounds() {
    let folders = [common::folder(), common::folder().join("source")];
    let files = folders.iter().flat_map(|it| std::fs::read_dir(it).unwrap());
    let files = files.map(|file| file.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|it| it == "ncu-rep")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(assert_bounded(&file.display().to_string(), &bytes).unwrap() > 0);
    }
}

#[test]
fn a_crafted_name_takes_no_more_memory_than_it_has() {
    let parts: String = (0..20).map(|_| "S_IS_S_E").collect();
    for name in [
        format!("_Z1f1AIiiE{parts}"),
        "_Z1f".to_owned() + &"i".repeat(60_000),
        "_ZN".to_owned() + &"1a".repeat(30_000),
        "_Z".repeat(1_000_000),
    ] {
        let (memory, base) = most_memory(|| base_name(&name));
        assert!(memory <= name.len() && name.contains(&base), "{memory}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_not_a_regular_file_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [&pipe, folder.path(), std::path::Path::new("/dev/zero")] {
        let error = ncu_report::read_file(path).unwrap_err().to_string();
        assert!(error.ends_with(": not a regular file"), "{error}");
    }
}
