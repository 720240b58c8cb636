//! Files that somebody made to stop the program or to eat the machine, and texts that hide something.
//!
//! Each file is given to the real program with a bound on its memory, 8 times the file and 64 MiB
//! besides the program itself, and on its time. The time is generous: it separates what ends from
//! what does not.

use std::fmt::Write as _;
use std::fs;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{self, Ran, outcomes};
use serde_json::{Value as Json, json};
use sparsek_gate::baseline::Lock;
use sparsek_gate::judge::{Origin, Outcome, Stored};
use sparsek_gate::profile::Profile;
use sparsek_gate::report::{FORMS, form};
use sparsek_gate::verdict::Verdict;

/// KiB of addresses that the program takes with nothing to read: itself, its libraries, its stacks.
const PROGRAM: u64 = 64 << 10;
const MEBIBYTES_64: u64 = 64 << 10;

/// Runs the program on files, in bounded memory and time.
fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let sizes = arguments
        .iter()
        .map(|argument| fs::metadata(folder.join(argument)).map_or(0, |meta| meta.len()));
    run_in(
        folder,
        PROGRAM + MEBIBYTES_64 + 8 * sizes.sum::<u64>() / 1024,
        arguments,
    )
}

/// With so much address space.
fn run_in(folder: &Path, kibibytes: u64, arguments: &[&str]) -> Ran {
    let bounded = r#"ulimit -v "$1"; shift; exec timeout -s KILL 600 "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", bounded, "sh", &kibibytes.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_sparsek-gate"));
    // Each of several would reserve 64 MiB of addresses, whatever it needs.
    command.args(arguments).env("MALLOC_ARENA_MAX", "1");
    Ran::by(command.env_remove("CI").current_dir(folder))
}

fn written(folder: &Path, name: &str, content: &str) -> String {
    fs::write(folder.join(name), content).unwrap();
    name.to_owned()
}

const HEADER: &str = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value""#;

/// A CSV page of one launch a line.
fn page(lines: impl Iterator<Item = (String, String)>) -> String {
    let mut page = format!("{HEADER}\n");
    for (id, (host, kernel)) in lines.enumerate() {
        let _ = writeln!(
            page,
            r#""{id}","1","p","{host}","{kernel}","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","s","gpu__time_duration.sum","ns","1""#
        );
    }
    page
}

#[test]
fn what_is_not_a_regular_file_ends_every_command_that_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = Command::new("mkfifo").arg(path("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("endless")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    for file in ["pipe", "socket", "endless", "folder"] {
        for (arguments, code) in [
            (vec!["inspect", file], 2),
            (vec!["report", file], 2),
            (vec!["strip", file, "copy"], 2),
            (vec!["--config", file, "check"], 2),
            (vec!["--config", file, "build"], 2),
        ] {
            // A folder is stripped file by file.
            if (file, arguments[0]) != ("folder", "strip") {
                run(folder.path(), &arguments).ends(code, "not a regular file");
            }
        }
    }
}

#[test]
fn numbers_that_nothing_has_draw_no_picture_that_has_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let text = include_str!("data/hostile/numbers.json");
    let files = FORMS.map(|form| format!("{}:out.{}", form.name, form.name));
    let values = regex::Regex::new(r#""value": [0-9.e+-]+"#).unwrap();
    for number in ["5e-324", "-1e300", "0.0", "1.7976931348623157e308"] {
        for (at, text) in [
            text.replace("1e-300", number),
            // All that was measured, in place of the durations alone.
            values
                .replace_all(text, format!(r#""value": {number}"#))
                .into_owned(),
        ]
        .iter()
        .enumerate()
        {
            let file = written(folder.path(), "outcome.json", text);
            let mut arguments = vec!["report", file.as_str()];
            for target in &files {
                arguments.extend(["--report", target]);
            }
            run(folder.path(), &arguments).exits(0);
            let drawn = fs::read_to_string(folder.path().join("out.html")).unwrap();
            for none in ["NaN", "\"inf", " inf ", "-inf"] {
                assert!(!drawn.contains(none), "{number} {at}: {none}");
            }
        }
    }
}

#[test]
fn launches_are_bounded_whatever_their_file_states() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let records = |count: usize| {
        let line = "k 1 1 2 0 1 1 1 1 1 1 1 1 1 1 1 1 n\n".repeat(count);
        format!(
            "sparsek-gate kernel records 1\ngpu X\ncompute-capability 9.0\ncupti 1\nprocess 1\n{line}end {count}\n"
        )
    };
    let file = written(folder, "hostile", &records(300_000));
    let inspected = run(folder, &["inspect", &file]).exits(2);
    inspected.says("launches of kernels");
    let file = written(folder, "fine", &records(250_000));
    run(folder, &["inspect", &file, "--format", "json"]).exits(0);
}

#[test]
fn documents_of_many_small_values_take_no_more_memory_than_their_bound() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let outcome = |dense: &str| {
        format!(
            r#"{{"schema":5,"meaning":"m","origin":{{"kind":"measured"}},"authority":{{"kind":"working-tree"}},"variants":[],"findings":[{dense}]}}"#
        )
    };
    let profile = |workload: &str, odd: &str| {
        format!(
            r#"{{"schema":3,"variant":"s/v","identity":{{"workload":[{workload}],"odd":[{odd}],"gpu":"g"}},"kernels":[]}}"#
        )
    };
    for dense in ["1", "\"a\"", "{\"a\":1}", "[[1]]"] {
        let dense = vec![dense; 1_000_000].join(",");
        let file = written(folder, "outcome.json", &outcome(&dense));
        let refused = run(folder, &["report", &file]);
        assert!(matches!(refused.code, 2 | 5), "{}", refused.err);
        for profile in [profile(&dense, ""), profile("", &dense)] {
            let file = written(folder, "profile.json", &profile);
            run(folder, &["compare", &file, &file]).exits(2);
        }
    }
    let deep = "[".repeat(2_000_000);
    let file = written(folder, "deep.json", &outcome(&deep));
    run(folder, &["report", &file]).ends(2, "nested deeper than 100");
    let file = written(folder, "deep.json", &profile("", &deep));
    run(folder, &["compare", &file, &file]).ends(2, "nested deeper than 100");
    run(folder, &["strip", &file, "copy"]).exits(2);
}

#[test]
fn an_outcome_of_many_samples_is_rendered_in_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut outcome: Json =
        serde_json::from_str(include_str!("data/outcomes/every_verdict.json")).unwrap();
    let launches = vec![json!(1.5); 300_000];
    let all = outcome["variants"].as_array_mut().unwrap();
    let with = all
        .iter_mut()
        .flat_map(|report| report["comparisons"].as_array_mut().unwrap())
        .find(|one| one["samples"].is_object());
    with.unwrap()["samples"]["current"] = json!([launches]);
    let file = written(folder, "outcome.json", &outcome.to_string());
    for form in ["json", "html", "markdown"] {
        let code = run(folder, &["report", &file, "--format", form]).exits(0);
        assert!(code.out.len() > 1_000, "{form}");
    }
}

#[test]
fn the_outcome_of_five_hundred_variants_is_read_and_written_in_130_megabytes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut outcome = outcomes::large([500, 1, 20]);
    let all = outcome.variants.iter_mut();
    for comparison in all.flat_map(|report| &mut report.comparisons) {
        comparison.samples = None;
        comparison.verdict = Some(Verdict::Pass);
    }
    let mut file = fs::File::create(folder.join("outcome.json")).unwrap();
    form("json")
        .unwrap()
        .write(&outcome, &mut BufWriter::new(&mut file))
        .unwrap();
    drop(outcome);
    let read = file.metadata().unwrap().len();
    assert!(read > 10_000_000, "{read} bytes");
    let targets = [
        "a.json", "a.md", "a.xml", "a.sarif", "a.html", "a.txt", "a.codequality.json",
    ];
    let mut arguments = vec!["report", "outcome.json", "--format", "github"];
    arguments.extend(targets.iter().flat_map(|target| ["--report", target]));
    let kibibytes = 130_000_000 / 1024;
    run_in(folder, kibibytes, &arguments).exits(0);
    let again = fs::read(folder.join("a.json")).unwrap();
    assert!(again == fs::read(folder.join("outcome.json")).unwrap());
}

#[test]
fn a_configuration_is_bounded_in_size_and_nesting() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mebibyte = 1 << 20;
    for (content, says) in [
        ("# ".repeat(mebibyte), "larger than 1 MiB"),
        (format!("a = {}", "[".repeat(mebibyte - 8)), "config"),
        (format!("{} = 1", vec!["a"; 400_000].join(".")), "config"),
        (vec!["[[a]]"; 150_000].join("\n"), "config"),
        (
            (0..60_000).map(|at| format!("k{at} = 1\n")).collect(),
            "config",
        ),
    ] {
        let file = written(folder, "config.toml", &content);
        run(folder, &["--config", &file, "build"]).ends(2, says);
    }
    assert!(Lock::parse(&"# ".repeat(mebibyte)).is_err());
    assert!(Lock::parse(&format!("a = {}", "[".repeat(mebibyte - 8))).is_err());
}

#[test]
fn stripping_takes_time_in_proportion_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let hosts = (0..5_000).map(|at| (format!("host-{at}-gpu"), format!("of_host {at}")));
    let named = page(hosts.clone());
    let path = |at| format!("/home/ada/run_{at}/of/file_{at}.cu\n");
    let paths: String = (0..20_000).map(path).collect();
    let blanks = format!("{}{}x", "\"\",".repeat(40_000), " ".repeat(40_000));
    for (name, content, kept) in [
        ("hosts.csv", named.as_str(), "of_host 4999"),
        ("blanks.csv", blanks.as_str(), "\"\""),
        ("paths.log", paths.as_str(), "file_19999.cu"),
        ("slashes.log", &"/a".repeat(100_000), "a"),
        ("quotes.csv", &"\"".repeat(200_001), "\""),
        ("ats.log", &"a@a.".repeat(50_000), ""),
        ("colons.log", &"C:\\a\\".repeat(50_000), ""),
        ("tokens.log", &"token".repeat(50_000), "token"),
    ] {
        let file = written(folder, name, content);
        let _ = fs::remove_file(folder.join("copy"));
        run(folder, &["strip", &file, "copy"]).exits(0);
        let copy = fs::read_to_string(folder.join("copy")).unwrap();
        assert!(copy.contains(kept), "{name}");
        for left in ["host-", "/home", "ada"] {
            assert!(!copy.contains(left), "{name}: {left}");
        }
    }
}

#[test]
fn many_kernels_are_paired_in_time_in_proportion_to_their_number() {
    let recorded = common::repository().join("ci/recordings/h200/bsr_gemm/cp_async/profile.json");
    let recorded = Profile::read(&recorded).unwrap();
    let of = |side: &str| {
        let mut profile = recorded.clone();
        let mut kernel = profile.kernels.remove(0);
        kernel.metrics.retain(|alias, _| alias == "duration");
        // The launches of one process are enough: what counts is the number of kernels.
        let all = kernel.metrics.values_mut();
        all.for_each(|series| series.samples.truncate(1));
        profile.kernels.extend((0..10_000).map(|at| {
            let mut kernel = kernel.clone();
            kernel.mangled = Some(format!("{side}_{at}"));
            kernel
        }));
        profile
    };
    let (a, b) = (of("a"), of("b"));
    let start = Instant::now();
    let before = processor_time(start);
    assert_eq!(Stored::of(&a, &b).kernels.len(), 10_000);
    let taken = processor_time(start).saturating_sub(before);
    assert!(taken < Duration::from_secs(20), "{taken:?}");
}

/// The time that this thread has run on a processor; the other programs of the machine do not count. The
/// time of day where the system does not state it.
fn processor_time(start: Instant) -> Duration {
    let stated = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stated.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// Characters that nobody sees, or that control a reader, by their numbers, from one to another.
fn unseen() -> Vec<char> {
    let ranges = "1-8 b-1f 7f-9f ad-ad 34f-34f 61c-61c 115f-1160 180b-180f 200b-200f 2028-202e \
         2060-206f 3164-3164 fe00-fe0f feff-feff ffa0-ffa0 fff9-fffb fffe-ffff e0000-e007f e0100-e0103";
    let number = |text| u32::from_str_radix(text, 16).unwrap();
    let numbers = ranges.split_whitespace().flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap();
        number(first)..=number(last)
    });
    numbers.filter_map(char::from_u32).collect()
}

/// Every text of a document with something before it.
fn texts(document: &mut Json, path: &str, each: &mut dyn FnMut(&str, &mut String)) {
    match document {
        Json::String(text) => each(path, text),
        Json::Array(items) => items.iter_mut().for_each(|item| texts(item, path, each)),
        Json::Object(members) => {
            for (key, value) in members {
                texts(value, &format!("{path}/{key}"), each);
            }
        }
        _ => {}
    }
}

/// A small outcome of every kind of text, and the places of those that may be anything.
fn small_outcome() -> (Json, Vec<String>) {
    let mut outcome: Json =
        serde_json::from_str(include_str!("data/outcomes/every_verdict.json")).unwrap();
    for report in outcome["variants"].as_array_mut().unwrap() {
        report["comparisons"].as_array_mut().unwrap().truncate(4);
    }
    for (list, most) in [("variants", 4), ("findings", 12), ("places", 4)] {
        outcome[list].as_array_mut().unwrap().truncate(most);
    }
    outcome["programs"] = json!({
        "base": { "argv": ["a"], "verified_by": ["b"] }, "current": { "argv": ["c"] },
    });
    outcome["findings"][0]["detail"] = json!("the last lines\nof a program");
    let mut places = Vec::new();
    texts(&mut outcome, "", &mut |path, _| {
        places.push(path.to_owned())
    });
    places.sort();
    places.dedup();
    // Some texts are names of this program's own, and refused.
    let hidden: String = unseen().into_iter().collect();
    places.retain(|place| {
        let mut changed = outcome.clone();
        texts(&mut changed, "", &mut |path, text| {
            if path == place {
                text.insert_str(0, &hidden);
            }
        });
        serde_json::from_value::<Outcome>(changed).is_ok()
    });
    (outcome, places)
}

#[test]
fn no_form_of_a_report_shows_a_character_that_nobody_sees() {
    let (outcome, places) = small_outcome();
    for needed in [
        "/variants/comparisons/kernel", "/findings/message", "/findings/detail",
    ] {
        assert!(
            places.iter().any(|place| place == needed),
            "{needed}: {places:?}"
        );
    }
    let with = |hidden: &str| -> Outcome {
        let mut changed = outcome.clone();
        texts(&mut changed, "", &mut |path, text| {
            if places.iter().any(|place| place == path) {
                text.insert_str(0, hidden);
            }
        });
        serde_json::from_value(changed).unwrap()
    };
    // Where the numbers come from: a folder, or programs that ran.
    let measured = |outcome: &Outcome| Outcome {
        origin: Origin::Measured,
        ..outcome.clone()
    };
    for some in unseen().chunks(100) {
        let hidden: String = some.iter().collect();
        let (hostile, harmless) = (with(&hidden), with(&"x".repeat(some.len())));
        let of_programs = (measured(&hostile), measured(&harmless));
        for (form, (hostile, harmless)) in FORMS.iter().flat_map(|form| {
            [
                (form, (&hostile, &harmless)),
                (form, (&of_programs.0, &of_programs.1)),
            ]
        }) {
            let [shown, harmless] = [hostile, harmless].map(|one| outcomes::render(form, one));
            for c in some {
                // This program's own are styles of a terminal, and what breaks a command in a log.
                let own = harmless.matches(*c).count();
                assert_eq!(shown.matches(*c).count(), own, "{}: {c:?}", form.name);
            }
            if form.name == "json" {
                let read: Outcome = serde_json::from_str(&shown).unwrap();
                let read = serde_json::to_value(&read).unwrap();
                assert_eq!(read, serde_json::to_value(hostile).unwrap());
            }
        }
    }
}

#[test]
fn no_message_and_no_listing_shows_a_character_that_nobody_sees() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let hidden = |c: &char| *c == '\u{1b}' || *c > '\u{9f}';
    let hidden: String = unseen().into_iter().filter(hidden).collect();
    let csv = page([("localhost".to_owned(), format!("k{hidden}"))].into_iter());
    let file = written(folder, "a.csv", &csv);
    // TOML forbids the escape character, and the key would not be read.
    let key = hidden.replace('\u{1b}', "");
    let config = written(folder, "config.toml", &format!("\"a{key}\" = 1\n"));
    let foreign = written(folder, "b\u{1b}[2J\u{200b}.csv", "no csv\u{1b}[2J\u{200b}");
    let recorded = common::repository().join("ci/recordings/h200/bsr_gemm/cp_async/profile.json");
    let mut recorded: Json = serde_json::from_slice(&fs::read(recorded).unwrap()).unwrap();
    recorded["kernels"][0]["demangled"] = json!(format!("k{hidden}"));
    let profile = written(folder, "profile.json", &recorded.to_string());
    let absent = "absent\u{200b}\u{ad}\u{e0041}";
    for (arguments, code) in [
        (vec!["inspect", file.as_str()], 0),
        (vec!["inspect", &file, "--format", "json"], 0),
        (vec!["compare", &profile, &profile], 0),
        (vec!["compare", &profile, &profile, "--format", "json"], 0),
        (vec!["inspect", absent], 2),
        (vec!["inspect", &foreign], 2),
        (vec!["--config", &config, "build"], 2),
    ] {
        let ran = run(folder, &arguments).exits(code);
        let seen = ran.out.contains("200b") || ran.err.contains("200b");
        assert!(seen, "{arguments:?}: {}{}", ran.out, ran.err);
        for c in hidden.chars() {
            assert!(
                !ran.out.contains(c) && !ran.err.contains(c),
                "{arguments:?}: {c:?}"
            );
        }
    }
}
