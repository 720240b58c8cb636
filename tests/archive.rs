//! Archives: packed on a machine with a compiler and git, measured on one that has neither, and
//! merged. Compiler, ncu and the driver are stand-ins; the reports that are handed over are those that
//! the real ncu recorded on an H200.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::common::crash::{kill_at_random, kills, wait_for_orphans};
use crate::common::sealed;
use crate::common::stand_in::{CP_ASYNC, Machine, source_of};
use crate::common::{self, Arguments, Ran, Report};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value as Json, json};

/// A variant with the same program as `cp_async`.
const COPY: &str = r#"
[suite.bsr_gemm.variant.copy]
source = "kernels/b.cu"
expect = ["bsr_gemm_cp_async"]
"#;

/// Measures of the archive what further words name.
const MEASURE: [&str; 3] = ["profile", "--archive", "../gate.tar.zst"];

/// A checkout of which everything is locked, and a machine without compiler and git.
struct Checkout(Machine);

impl Deref for Checkout {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.0
    }
}

impl Checkout {
    fn new() -> Checkout {
        static LOCKED: OnceLock<Vec<u8>> = OnceLock::new();
        Checkout(Machine::once(&LOCKED, || Checkout::make().0))
    }

    fn make() -> Checkout {
        let machine = Machine::new()
            .configured("ncu = \"bin/ncu\"\n", "")
            .with_programs(&format!("{CP_ASYNC}{COPY}"));
        machine.program("far/git", "#!/bin/sh\nexit 127\n");
        machine.program(
            "far/ncu",
            "#!/bin/sh\nexec \"$(dirname \"$0\")/../bin/ncu\" \"$@\"\n",
        );
        let checkout = Checkout(machine);
        checkout.without("/away/\n/bin/\n/far/\n/*.zst\n/slices/\n/whole/\n/local/\n");
        checkout.run("profile").exits(0);
        let lock = "baseline --lock --reason first --who tester";
        checkout.run(lock).exits(0);
        checkout.commit();
        checkout
    }

    /// On the machine with everything.
    fn run(&self, arguments: impl Arguments) -> Ran {
        Ran::by(&mut self.here(arguments))
    }

    fn here(&self, arguments: impl Arguments) -> Command {
        let mut command = self.0.gate(arguments);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command
    }

    /// On a machine with a GPU and ncu, and without a compiler, git or the checkout.
    fn away(&self, arguments: impl Arguments) -> Command {
        let mut command = self.0.gate(arguments);
        let place = self.path("away");
        fs::create_dir_all(&place).unwrap();
        let path = format!("{}:/usr/bin:/bin", self.path("far").display());
        command.current_dir(place).env("PATH", path);
        command
    }

    fn run_away(&self, arguments: impl Arguments) -> Ran {
        Ran::by(&mut self.away(arguments))
    }

    /// Packs it, and returns the archive's SHA-256.
    fn pack(&self, more: &[&str]) -> String {
        let arguments = ["archive", "--output", "gate.tar.zst", "--format", "json"];
        let packed = self.run(&[&arguments[..], more].concat()).exits(0);
        let packed: Json = serde_json::from_str(&packed.out).unwrap();
        packed["sha256"].as_str().unwrap().to_owned()
    }

    fn slice(&self, index: usize, count: usize) -> String {
        let (place, output) = (format!("{index}/{count}"), format!("../slices/{index}"));
        let slice = ["--slice", &place, "--output", &output];
        let measured = self.run_away(&[&MEASURE[..], &slice].concat());
        measured.ends(0, &format!("slice {place} is complete"));
        format!("slices/{index}")
    }

    /// Judges slices by the rules of an archive with this SHA-256.
    fn judge(&self, slices: &[String], file: &str, sha256: &str) -> Ran {
        let from = slices.iter().flat_map(|slice| ["--from", slice]);
        let from: Vec<&str> = from.collect();
        let archive = ["--archive", file, "--archive-sha256", sha256];
        let arguments = [&["check", "--format", "json"], from.as_slice(), &archive].concat();
        self.run(&arguments)
    }

    /// What the record of a slice says of it.
    fn record(&self, index: usize) -> Json {
        sealed::content(&self.0.project, &format!("slices/{index}/run.json"))
    }
}

/// Every verdict of a report, by variant, kernel and metric.
fn verdicts(report: &Report) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for variant in report.0["variants"].as_array().unwrap() {
        for comparison in variant["comparisons"].as_array().unwrap() {
            let name = ["kernel", "metric"].map(|key| comparison[key].to_string());
            let name = format!("{} {} {name:?}", variant["variant"], variant["mode"]);
            all.insert(name, comparison["verdict"].to_string());
        }
    }
    all
}

#[test]
fn a_machine_without_compiler_and_git_measures_what_was_packed() {
    let checkout = Checkout::new();
    let sha256 = checkout.pack(&[]);
    let first = fs::read(checkout.path("gate.tar.zst")).unwrap();
    // Equal content makes an equal file.
    assert_eq!(checkout.pack(&[]), sha256);
    assert_eq!(first, fs::read(checkout.path("gate.tar.zst")).unwrap());
    // Both variants of one source have one program, and it is there once.
    let parts = entries(&first);
    let index: Json = serde_json::from_slice(&parts["archive.json"]).unwrap();
    let blob = |variant: &str| {
        let sha256 = &index["current"]["artifacts"][variant]["programs"][0][1];
        format!("blobs/{}", sha256.as_str().unwrap())
    };
    let one = blob("bsr_gemm/cp_async");
    assert_eq!(one, blob("bsr_gemm/copy"));
    assert!(parts.contains_key(&one) && parts.contains_key(&blob("bsr_gemm/baseline")));

    let whole = [&MEASURE[..], &["--output", "../whole"]].concat();
    let whole = checkout.run_away(&whole).exits(0);
    whole.says("nothing is judged yet");
    let by_archive = |slices: &[String]| checkout.judge(slices, "gate.tar.zst", &sha256);
    let whole = by_archive(&["whole".to_owned()]).exits(0).json();
    let here = checkout.run("check --format json").exits(0).json();
    assert_eq!(verdicts(&whole), verdicts(&here));
    assert!(!verdicts(&here).is_empty());

    let slices = [checkout.slice(1, 2), checkout.slice(2, 2)];
    // Each variant is measured on one machine.
    let records = [1, 2].map(|index| checkout.record(index));
    let measured = records.iter().flat_map(|record| {
        let variants = record["found"]["variants"].as_object().unwrap();
        variants.keys().map(String::as_str)
    });
    let mut measured: Vec<&str> = measured.collect();
    measured.sort_unstable();
    let all = ["bsr_gemm/baseline", "bsr_gemm/copy", "bsr_gemm/cp_async"];
    assert_eq!(measured, all);
    let judged = by_archive(&slices).exits(0).json();
    assert_eq!(verdicts(&judged), verdicts(&here));
    assert_eq!(judged.0["origin"]["kind"], "measured");
    // So are all slices in a folder.
    let folder = by_archive(&["slices".to_owned()]).exits(0).json();
    assert_eq!(verdicts(&folder), verdicts(&here));
    // Without the archive nothing shows by whose rules they were measured.
    let unknown = checkout.run("check --from slices");
    unknown.ends(6, "it is of an archive: only");
    let refused = checkout.run("check --from slices --archive gate.tar.zst");
    refused.ends(2, "--archive-sha256 <HASH>");
    // What it took is known for the next plan.
    let costs = checkout.read(".sparsek-gate/costs.json");
    common::contains(&costs, &["bsr_gemm/copy"]);

    // Nothing of another file is unpacked.
    let zeros = "0".repeat(64);
    for (file, sha256) in [("gate.tar.zst", &zeros), ("config.toml", &sha256)] {
        let ran = checkout.judge(&slices, file, sha256);
        ran.ends(2, "was expected");
    }
    by_archive(&slices[..1]).ends(6, "slice 2/2 is missing");
    by_archive(&["nowhere".to_owned()]).ends(6, "there is no such folder");
    // An archive of other content.
    checkout.write("kernels/b.cu", source_of("cp_async") + "// more\n");
    let changed = checkout.pack(&[]);
    assert_ne!(changed, sha256);
    let mixed = [slices[0].clone(), checkout.slice(2, 2)];
    for slices in [slices, mixed] {
        let ran = checkout.judge(&slices, "gate.tar.zst", &changed);
        ran.ends(6, "it was made of the archive");
    }
}

#[test]
fn a_finding_that_is_waived_does_not_stand_in_for_a_measurement() {
    let checkout = Checkout::new();
    let project = &checkout;
    let waiver = "\n[[waiver]]\nvariant = \"bsr_gemm/cp_async\"\nmetric = \"duration\"\n\
        reason = \"known\"\nwho = \"Ada\"\nexpires = 2099-01-31\n";
    project.write("config.toml", project.read("config.toml") + waiver);
    let sha256 = checkout.pack(&[]);
    let slices = [checkout.slice(1, 1)];
    let gone = "bsr_gemm/cp_async";
    fs::remove_dir_all(project.path(&format!("slices/1/{gone}"))).unwrap();
    sealed::edit(project, "slices/1/run.json", |run| {
        let found = &mut run["found"];
        let removed = found["variants"].as_object_mut().unwrap().remove(gone);
        assert!(removed.is_some());
        // As if it had been found slower.
        found["captures"]["findings"] = json!([{
            "code": "regressed", "severity": "deny", "variant": gone,
            "metric": "duration", "message": "slower", "next": "wait",
        }]);
    });
    let ran = checkout.judge(&slices, "gate.tar.zst", &sha256);
    let report = ran.exits(6).json();
    assert_eq!(report.fields("not-measured", "variant"), [gone]);
}

#[test]
fn the_base_is_packed_and_measured_beside_the_change() {
    let checkout = Checkout::new();
    checkout.git("branch base");
    checkout.write("kernels/b.cu", source_of("cp_async") + "int more = 1;\n");
    checkout.commit();
    let sha256 = checkout.pack(&["--against", "base"]);
    let slices: Vec<String> = (1..=2).map(|index| checkout.slice(index, 2)).collect();
    let merged = checkout.judge(&slices, "gate.tar.zst", &sha256).json();
    let same = merged.0["same_programs"].as_array().unwrap().iter();
    assert!(same.map(|same| &same["variant"]).eq(["bsr_gemm/baseline"]));
    assert_eq!(merged.variant("cp_async")["mode"], "against");
    let here = checkout.run("check --against base --format json");
    let here = here.json();
    assert_eq!(verdicts(&merged), verdicts(&here));
    assert_eq!(merged.denied(), here.denied());

    // A slice that leaves its base out is not believed.
    let base = |slice: &&String| checkout.path(&format!("{slice}/bsr_gemm/cp_async/base"));
    let owner = slices.iter().find(|slice| base(slice).is_dir()).unwrap();
    fs::remove_dir_all(base(&owner)).unwrap();
    sealed::edit_variant(&checkout, owner, "bsr_gemm/cp_async", |record| {
        for files in ["profiles", "files"] {
            let files = record["done"][files].as_object_mut().unwrap();
            files.retain(|name, _| !name.starts_with("base/"));
        }
    });
    let ran = checkout.judge(&slices, "gate.tar.zst", &sha256);
    assert_ne!(ran.code, 0);
    ran.says("measured no base beside it");
}

#[test]
fn a_check_that_is_measured_first_and_judged_later_is_that_of_one_command() {
    let checkout = Checkout::new();
    checkout.git("branch base");
    checkout.write("kernels/b.cu", source_of("cp_async") + "int more = 1;\n");
    checkout.commit();
    // Without an archive nothing is left out for its program.
    let here = checkout.run("check --against base --measure-all --format json");
    let here = here.json();
    let profile = "profile --against base";
    checkout.run(profile).ends(2, "--output");
    let measured = checkout.run(&format!("{profile} --output local"));
    measured.ends(0, "slice 1/1 is complete");
    let judged = checkout.run("check --from local --format json").json();
    assert_eq!(verdicts(&judged), verdicts(&here));
    assert_eq!(judged.0["exit_code"], here.0["exit_code"]);
    assert_eq!(judged.denied(), here.denied());
    assert_eq!(judged.variant("cp_async")["mode"], "against");
    // Nobody but who measured it says so.
    assert_eq!(judged.0["origin"]["kind"], "recorded");
}

#[test]
fn slices_of_a_checkout_are_one_check_and_what_they_lack_is_not_measured() {
    let checkout = Checkout::new();
    let here = checkout.run("check --format json").exits(0).json();
    for index in 1..=2 {
        let profile = format!("profile --slice {index}/2 --output slices/{index}");
        let said = format!("slice {index}/2 is complete");
        checkout.run(&profile).ends(0, &said);
    }
    let judge = |from: &str| checkout.run(&format!("check --format json {from}"));
    let both = "--from slices/1 --from slices/2";
    for from in [both, "--from slices"] {
        let judged = judge(from).exits(0).json();
        assert_eq!(verdicts(&judged), verdicts(&here));
        assert_eq!(judged.0["origin"]["kind"], "recorded");
    }
    let archive = checkout.pack(&[]);
    let ran = checkout.judge(&["slices".to_owned()], "gate.tar.zst", &archive);
    ran.ends(6, "archive");
    let one = judge("--from slices/2").exits(6).json();
    one.tells_all("slice-unusable", &["slice 1/2 is missing"]);
    // Another way to measure is another plan.
    checkout.configure("processes = 4 ", "processes = 5 ");
    judge(both).ends(6, "it is of another plan");
}

#[test]
fn what_a_change_measures_for_a_check_has_the_rules_of_its_base() {
    let checkout = Checkout::new();
    let profile = |more: &str| {
        let profile = format!("profile --slice 1/1 --output local {more}");
        Ran::by(checkout.here(&profile).env("CI", "true"))
    };
    // Nothing says whose rules count.
    profile("").ends(4, "next: ");
    // A tool in the checkout counts if it is the base's.
    checkout.git("add --force bin");
    checkout.commit();
    checkout.git("update-ref refs/remotes/origin/main HEAD");
    // The change measures less than the base requires.
    checkout.configure("processes = 4 ", "processes = 3 ");
    checkout.commit();
    profile("--baseline-ref refs/remotes/origin/main").exits(0);
    let record = sealed::content(&checkout, "local/bsr_gemm/cp_async/variant.json");
    let mut files = record["done"]["files"].as_object().unwrap().keys();
    assert!(files.any(|name| name.starts_with("capture-4")), "{record}");
}

#[test]
fn what_a_program_writes_to_a_variant_that_is_complete_is_found() {
    let checkout = Checkout::new();
    let sha256 = checkout.pack(&[]);
    let slices = [checkout.slice(1, 1)];
    let ncu = checkout.read("bin/ncu");
    for file in [
        "capture-1.csv", "profile.json", "static.json", "variant.json",
    ] {
        let path = checkout.path(&format!("slices/1/bsr_gemm/baseline/{file}"));
        // That of a variant that is measured later.
        checkout.ncu(&format!(
            "case $* in *cp_async/capture-4*) echo ' ' >>'{}' ;; esac",
            path.display()
        ));
        checkout.slice(1, 1);
        let ran = checkout.judge(&slices, "gate.tar.zst", &sha256);
        assert!([5, 6].contains(&ran.code), "{file}: {}", ran.out);
        ran.says(&format!("bsr_gemm/baseline/{file}"));
    }
    checkout.program("bin/ncu", &ncu);
    checkout.slice(1, 1);
    checkout.judge(&slices, "gate.tar.zst", &sha256).exits(0);
}

#[test]
fn slices_that_are_killed_leave_no_process_and_never_pass() {
    let checkout = Checkout::new();
    let sha256 = checkout.pack(&[]);
    let slices = [checkout.slice(1, 2), checkout.slice(2, 2)];
    let judge = || checkout.judge(&slices, "gate.tar.zst", &sha256);
    let start = || {
        let slice = ["--slice", "2/2", "--output", "../slices/2"];
        checkout.away(&[&MEASURE[..], &slice].concat())
    };
    kill_at_random("profile --archive --slice", kills(3), start, |ended| {
        wait_for_orphans(&checkout.path(""));
        let whole = sealed::is_whole(&checkout, "slices/2");
        assert!(whole || !ended);
        let merged = judge();
        assert_eq!(merged.code, if whole { 0 } else { 6 }, "{}", merged.out);
    });
    checkout.slice(2, 2);
    judge().exits(0);
}

#[test]
fn an_archive_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let checkout = Checkout::new();
    let file = checkout.path("gate.tar.zst");
    checkout.pack(&[]);
    let whole = fs::read(&file).unwrap();
    // What a killed run may leave on NFS is not packed.
    checkout.write(".tmp-1-2", "half");
    let beside = || {
        let folder = fs::read_dir(checkout.path("")).unwrap();
        let mut names: Vec<_> = folder.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = beside();
    let start = || checkout.here(&["archive", "--output", "gate.tar.zst"]);
    kill_at_random("archive", kills(3), start, |_| {
        assert!(fs::read(&file).unwrap() == whole);
        assert_eq!(beside(), before);
    });
    checkout.pack(&[]);
    assert!(fs::read(&file).unwrap() == whole);
}

/// The entries of an archive.
fn entries(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut tar = Vec::new();
    let mut rest = archive;
    while !rest.is_empty() {
        let mut decoder = StreamingDecoder::new(&mut rest).unwrap();
        decoder.read_to_end(&mut tar).unwrap();
    }
    let mut archive = tar::Archive::new(tar.as_slice());
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (name, content)
    });
    entries.collect()
}

type Entry<'a> = (&'a str, tar::EntryType, &'a [u8]);

/// An archive of these entries, the first first.
fn made(entries: &[&[Entry<'_>]]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries.concat() {
        let mut header = tar::Header::new_ustar();
        // The builder would refuse a path that leads out.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if kind == tar::EntryType::Symlink {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, content).unwrap();
    }
    let archive = builder.into_inner().unwrap();
    compress_to_vec(archive.as_slice(), CompressionLevel::Fastest)
}

#[test]
fn an_archive_that_is_damaged_or_leads_out_is_refused() {
    let checkout = Checkout::new();
    checkout.pack(&[]);
    let project = &checkout.0.project;
    let whole = fs::read(project.path("gate.tar.zst")).unwrap();
    let parts = entries(&whole);
    let index: Json = serde_json::from_slice(&parts["archive.json"]).unwrap();
    let before = common::crash::contents(&project.path("away"));
    let absolute = project.path("absolute").display().to_string();
    let refused = |name: &str, bytes: &[u8], expected: &str| {
        fs::write(project.path("bad.zst"), bytes).unwrap();
        let ran = checkout.run_away("profile --archive ../bad.zst --output out");
        let said = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, 2, "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!said.contains("panicked"), "{name}: {said}");
        let left = fs::read_dir(project.path("tmp")).unwrap().flatten();
        let mut left = left.filter(|entry| entry.path().is_dir());
        let own = left.find(|it| {
            it.file_name()
                .to_string_lossy()
                .starts_with("sparsek-gate-")
        });
        assert!(own.is_none(), "{name}: {own:?}");
    };
    refused("empty", b"", "empty");
    refused("text", b"no archive at all", "cannot be unpacked");
    refused("cut", &whole[..whole.len() / 2], "cannot be unpacked");
    let mut flipped = whole.clone();
    let at = flipped.len() / 3;
    flipped[at] ^= 0x55;
    refused("flipped", &flipped, "cannot be unpacked");

    let regular = tar::EntryType::Regular;
    let blobs = parts.iter().filter(|(name, _)| name.starts_with("blobs/"));
    let blobs = blobs.map(|(name, content)| (name.as_str(), regular, content.as_slice()));
    let blobs: Vec<Entry<'_>> = blobs.collect();
    let with_index = |change: &dyn Fn(&mut Json)| {
        let mut index = index.clone();
        change(&mut index);
        let text = index.to_string();
        made(&[&[("archive.json", regular, text.as_bytes())], &blobs])
    };
    let file = index["current"]["files"]["config.toml"].to_string();
    // What is set in the index | to what | what the refusal says.
    let edits = r#"
tool | "9.9.9" | 9.9.9 packed it
more | 1 | unknown field
locks ../../out | "ZEROS" | leads out
current files ../out | FILE | leads out
current files ABSOLUTE | FILE | leads out
current files more | { "sha256": "ZEROS" } | does not list
current artifacts bsr_gemm/copy programs 0 0 program 1 | "../../out" | leads out
current artifacts bsr_gemm/copy run 0 | { "file": { "program": ["ZEROS", "out"] } } | does not list
current config | "nonsense" | key with no value
current config_file | "../c.toml" | leads out
"#;
    for row in edits.trim().lines() {
        let row = row.replace("FILE", &file).replace("ZEROS", &"0".repeat(64));
        let row = row.replace("ABSOLUTE", &absolute);
        let [path, value, expected] = row.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let change = |index: &mut Json| {
            let mut place = index;
            for key in path.split(' ') {
                place = match key.parse::<usize>() {
                    Ok(at) => &mut place[at],
                    Err(_) => &mut place[key],
                };
            }
            *place = serde_json::from_str(value).unwrap();
        };
        refused(path, &with_index(&change), expected);
    }
    for (size, expected) in [(1_u64, "another size"), (1 << 40, "too large")] {
        let change = |index: &mut Json| {
            let blobs = index["blobs"].as_object_mut().unwrap();
            blobs.values_mut().for_each(|each| *each = size.into());
        };
        refused(expected, &with_index(&change), expected);
    }
    let text = parts["archive.json"].clone();
    let first = ("archive.json", regular, text.as_slice());
    let mut other = blobs.clone();
    let changed: Vec<u8> = other[0].2.iter().map(|byte| byte ^ 1).collect();
    other[0].2 = &changed;
    let link: Entry<'_> = ("blobs/link", tar::EntryType::Symlink, b"");
    let long_name: Entry<'_> = ("././@LongLink", tar::EntryType::GNULongName, b"x");
    let more: Entry<'_> = ("more", regular, b"x");
    for (parts, expected) in [
        (&[&blobs[..]][..], "no archive of sparsek-gate"),
        (&[&[first]], "was cut off"),
        (&[&[first, more], &blobs], "not in its index"),
        (&[&[first, link], &blobs], "not a regular file"),
        (&[&[first, long_name], &blobs], "not a regular file"),
        (&[&[first], &blobs, &blobs[..1]], "or twice"),
        (&[&[first], &other], "another content"),
    ] {
        refused(expected, &made(parts), expected);
    }
    // A frame of zeros behind the end expands to more than any padding.
    let zeros = compress_to_vec(&*vec![0; 1 << 20], CompressionLevel::Fastest);
    let longer = [made(&[&[first], &blobs]), zeros].concat();
    refused("longer", &longer, "goes on behind its end");
    // Nothing was written beside it.
    assert_eq!(common::crash::contents(&project.path("away")), before);
    assert!(!Path::new(&absolute).exists());
    checkout
        .run_away("profile --archive ../none.zst --output out")
        .ends(2, "there is no file");
}
