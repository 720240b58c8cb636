//! The targets. Each takes the bytes of one input.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use ncu_report::{csv, report};
use sparsek_gate::baseline::{Lock, norm_lines};
use sparsek_gate::binary::{census, compiler_warnings, has_kernels, kernels_of, spills};
use sparsek_gate::capture::kernel_records::{self, KernelCapture, ProcessRecords};
use sparsek_gate::capture::tuned;
use sparsek_gate::config::{Config, KernelFilter, Selected, Selection, VersionRange};
use sparsek_gate::git::printed;
use sparsek_gate::hash::sha256_hex;
use sparsek_gate::judge::Outcome;
use sparsek_gate::judge::Stored as StoredMeasurement;
use sparsek_gate::measure::{RunRecord, VariantRecord, sealed, unsealed};
use sparsek_gate::profile::{Profile, import, norm_text};
use sparsek_gate::profiler::Trouble;
use sparsek_gate::report::{FORMS, form};
use sparsek_gate::share::{indexed_paths, unpack};
use sparsek_gate::strip::strip_bytes;
use sparsek_gate::terms::{Phase, Tier};
use sparsek_gate::toolchain::SanitizerLog;
use sparsek_gate::verify::ResultFile;

use crate::checks::{self, Numbers};
use crate::random::Random;
use crate::{edits, json, wire};

/// How inputs are changed, besides by bytes.
#[derive(Clone, Copy)]
pub enum Mutation {
    Bytes,
    Json,
    Report,
}

impl Mutation {
    /// The input with changes of its structure; `None` for a change of bytes, which is every second one.
    pub fn changed(self, input: &[u8], random: &mut Random) -> Option<Vec<u8>> {
        match self {
            _ if random.below(2) == 0 => None,
            Mutation::Bytes => None,
            Mutation::Json => json::mutated(input, random),
            Mutation::Report => wire::mutated(input, random),
        }
    }
}

/// A target.
pub struct Target {
    pub name: &'static str,
    /// Largest input, in bytes.
    pub most: usize,
    pub mutation: Mutation,
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, most: usize, mutation: Mutation, run: fn(&[u8])) -> Target {
    Target {
        name,
        most,
        mutation,
        run,
    }
}

/// All targets. A reader whose target takes long inputs makes fewer executions a second.
pub static TARGETS: [Target; 31] = [
    target("report", 16384, Mutation::Report, read_report),
    target("report_edits", 97, Mutation::Bytes, edits::check),
    target("machine_code", 16384, Mutation::Report, machine_code),
    target("csv_raw", 4096, Mutation::Bytes, read_csv),
    target("csv_details", 4096, Mutation::Bytes, read_csv),
    target("csv_cells", 256, Mutation::Bytes, csv_cells),
    target("config", 2048, Mutation::Bytes, config),
    target("lock", 2048, Mutation::Bytes, lock),
    target("norm", 1024, Mutation::Bytes, norm),
    target("profile", 4096, Mutation::Json, profile),
    target("outcome", 8192, Mutation::Json, outcome),
    target("archive", 8192, Mutation::Bytes, archive),
    target("archive_index", 8192, Mutation::Json, archive_index),
    target("run_record", 2048, Mutation::Json, run_record),
    target("variant_record", 4096, Mutation::Json, variant_record),
    target("ptxas", 2048, Mutation::Bytes, ptxas),
    target("nvdisasm", 2048, Mutation::Json, nvdisasm),
    target("cubin", 6144, Mutation::Bytes, cubin),
    target("fatbin", 4096, Mutation::Bytes, fatbin),
    target("kernel_names", 256, Mutation::Bytes, kernel_names),
    target("sources", 2048, Mutation::Bytes, sources),
    target("sanitizer", 2048, Mutation::Bytes, sanitizer),
    target("ncu_log", 1024, Mutation::Bytes, ncu_log),
    target("git", 1024, Mutation::Bytes, git),
    target("process_records", 1024, Mutation::Bytes, process_records),
    target("kernel_records", 1024, Mutation::Bytes, read_kernel_records),
    target("tuning", 1024, Mutation::Bytes, tuning),
    target("strip_report", 16384, Mutation::Report, strip_report),
    target("strip_page", 4096, Mutation::Bytes, strip_page),
    target("strip_json", 4096, Mutation::Json, strip_json),
    target("strip_text", 2048, Mutation::Bytes, strip_text),
];

impl Target {
    /// The target that the environment names; without one, ends after a list of all.
    pub fn chosen() -> &'static Target {
        static CHOSEN: OnceLock<&'static Target> = OnceLock::new();
        CHOSEN.get_or_init(|| {
            let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
            TARGETS
                .iter()
                .find(|one| one.name == name)
                .unwrap_or_else(|| {
                    for one in &TARGETS {
                        println!("{} {}", one.name, one.most);
                    }
                    std::process::exit(i32::from(!name.is_empty()))
                })
        })
    }
}

fn text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// The parts of an input, between zeros.
fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut parts = input.splitn(N, |byte| *byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Everything that is made of a recording after it was read.
fn used(recording: &ncu_report::Recording) {
    let _ = import::conditions_of(recording);
    let names: BTreeSet<&str> = recording
        .launches
        .iter()
        .flat_map(|launch| launch.metrics.keys().map(|name| &**name))
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    ncu_report::agree(recording, recording, &names).expect("a recording agrees with itself");
    if let Ok(profile) = import::whole_profile(recording) {
        same(&profile);
    }
}

/// A profile compared with itself.
fn same(profile: &Profile) {
    let stored = StoredMeasurement::of(profile, profile);
    assert_eq!((stored.only_before.len(), stored.only_after.len()), (0, 0));
    assert_eq!(stored.kernels.len(), profile.kernels.len());
    for row in stored.kernels.iter().flat_map(|pair| &pair.metrics) {
        assert!(row.before == row.after, "{row:?}");
    }
}

fn read_report(input: &[u8]) {
    let read = report::read(input);
    checks::recording(input, &read);
    if let Ok(recording) = read {
        used(&recording);
    }
}

fn machine_code(input: &[u8]) {
    for code in report::machine_code(input).unwrap_or_default() {
        cubin(&code.cubin);
    }
}

fn read_csv(input: &[u8]) {
    let read = csv::read(input);
    checks::recording(input, &read);
    if let Ok(recording) = read {
        used(&recording);
    }
}

fn csv_cells(input: &[u8]) {
    // The csv crate removes this mark at the beginning of a text, and no row of ncu begins with it.
    if input.windows(3).any(|part| part == b"\xef\xbb\xbf") {
        return;
    }
    let mut reader = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(input);
    let rows = reader.byte_records();
    let theirs: Vec<Vec<Vec<u8>>> = rows
        .map(|row| row.expect("bytes").iter().map(<[u8]>::to_vec).collect())
        .collect();
    assert_eq!(csv::cells(input).expect("any bytes have cells"), theirs);
}

fn config(input: &[u8]) {
    let input = text(input);
    let config = match Config::parse(Path::new("/project/config.toml"), &input) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!error.summary().is_empty());
            return;
        }
    };
    for variant in config.variants() {
        assert_eq!(
            config.variant(&variant.id).map(|own| &own.id),
            Some(&variant.id)
        );
        let _ = config.describe(variant);
        let _ = variant.counters_on(Tier::Counters);
        let _ = variant.kernel_filter().matches("gemm");
        let _ = variant.why_no_static_gate();
        for phase in [Phase::Timing, Phase::Counting] {
            let _ = (variant.has_phase(phase), variant.launches_needed(phase));
        }
        assert!(variant.profile.most_processes() <= 20_000);
    }
    let selection = Selection {
        names: vec!["a".to_owned(), "*".to_owned()],
        experimental: true,
    };
    let _ = Selected::new(config.clone(), &selection, &[]);
    // The same text gives the same configuration.
    assert!(Config::parse(Path::new("/project/config.toml"), &input).is_ok());
    for part in input.split('"') {
        let _ = VersionRange::parse(part).map(|range| range.contains("13.0.88"));
        let _ = KernelFilter::of(Some(part)).map(|filter| filter.matches("gemm<float>"));
    }
}

fn lock(input: &[u8]) {
    let Ok(lock) = Lock::parse(&text(input)) else {
        return;
    };
    let _ = (lock.contradictions(), lock.code_sha256());
    assert_eq!(Lock::parse(&lock.to_toml()).as_ref(), Ok(&lock));
}

fn norm(input: &[u8]) {
    let [old, new] = parts(input);
    let (old, new) = (text(old), text(new));
    for line in norm_lines(&old, &new) {
        assert!(line.old.is_some() || line.new.is_some());
    }
    for line in norm_lines(&old, &old) {
        assert_eq!(line.old, line.new);
    }
}

fn profile(input: &[u8]) {
    let Ok(profile) = Profile::parse(input) else {
        return;
    };
    let written = profile.to_json();
    let again = Profile::parse(written.as_bytes()).expect("what was written can be read");
    assert_eq!(again.to_json(), written);
    if let Some(norm) = norm_text(&profile) {
        assert_eq!(
            norm_lines(&norm, &norm)
                .iter()
                .filter(|line| line.old != line.new)
                .count(),
            0
        );
        assert!(!norm.contains("NaN") || written.contains("NaN"));
    }
    for kernel in &profile.kernels {
        let _ = (profile.label(kernel), kernel.identity());
        for alias in kernel.metrics.keys() {
            if let Some(samples) = profile.samples(kernel, alias) {
                let _ = (samples.value(), samples.noise());
            }
        }
    }
    let _ = (profile.gpu_uuids(), profile.launch_count(Phase::Timing));
    same(&profile);
}

fn outcome(input: &[u8]) {
    let read = |text: &[u8]| sparsek_gate::report::parse(Path::new("outcome.json"), text);
    let _ = read(input);
    // Most changes of an outcome contradict its exit code, so the right one is put in.
    let (Ok(outcome), Ok(mut document)) = (
        serde_json::from_slice::<Outcome>(input),
        serde_json::from_slice::<serde_json::Value>(input),
    ) else {
        return;
    };
    let code = outcome.exit_code();
    document["exit_code"] = (code as u8).into();
    document["meaning"] = code.meaning().into();
    let Ok(outcome) = read(document.to_string().as_bytes()) else {
        return;
    };
    for form in FORMS {
        let mut text = Vec::new();
        let _ = form.write(&outcome, &mut text);
        let text = String::from_utf8_lossy(&text);
        let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
        assert!(text.chars().all(plain), "{}: {text:?}", form.name);
    }
    let json = |outcome: &Outcome| {
        let mut text = Vec::new();
        let form = form("json").expect("a form");
        form.write(outcome, &mut text).expect("a place in memory");
        text
    };
    let written = json(&outcome);
    let again = read(&written).expect("what was written can be read");
    assert_eq!(json(&again), written);
}

fn ptxas(input: &[u8]) {
    let log = text(input);
    for arch in ["sm_90a", "sm_80"] {
        for (name, _) in spills(&log, arch) {
            assert!(log.contains(&name));
        }
    }
    for warning in compiler_warnings(&log) {
        assert!(log.contains(&warning.message) && log.contains(&warning.code));
    }
}

/// What the static gate calculates of resources.
fn resources_on_chips(resources: &sparsek_gate::binary::KernelResources) {
    use sparsek_gate::binary::{Limits, ResourceUse};
    for arch in [
        "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120",
    ] {
        let Some(limits) = Limits::of_arch(arch) else {
            continue;
        };
        for threads in [1, 32, 33, 1024] {
            let block = ResourceUse {
                threads,
                registers: resources.registers,
                shared_bytes: resources.shared_bytes,
                barriers: resources.barriers,
            };
            if let Some(occupancy) = limits.occupancy(block) {
                assert!((0.0..=100.0).contains(&occupancy.percent));
            }
        }
    }
}

fn nvdisasm(input: &[u8]) {
    if let Ok(census) = census(input) {
        let _: Vec<u64> = census
            .values()
            .map(|counts| counts.values().map(|count| u64::from(*count)).sum())
            .collect();
    }
}

fn cubin(input: &[u8]) {
    let _ = has_kernels(input);
    for kernel in kernels_of(input, "sm_90a").unwrap_or_default().values() {
        resources_on_chips(&kernel.resources);
    }
}

fn fatbin(input: &[u8]) {
    for arch in ["sm_90a", "sm_80"] {
        for code in sparsek_gate::binary::machine_code(input, arch).unwrap_or_default() {
            let Ok(cubin) = code.cubin() else { continue };
            for (name, kernel) in kernels_of(&cubin, arch).unwrap_or_default() {
                assert!(!name.is_empty() || kernel.text_sha256.len() == 64);
            }
        }
    }
}

fn kernel_names(input: &[u8]) {
    let name = text(input);
    assert!(name.contains(&ncu_report::base_name(&name)));
    assert!(name.contains(ncu_report::function_name(&name)));
    let placeless = ncu_report::placeless(&name).into_owned();
    assert!(placeless.len() <= name.len());
}

fn sources(input: &[u8]) {
    let text = text(input);
    let assembled = sparsek_gate::build::assembled(input, Path::new("/kept"));
    let listed = sparsek_gate::build::prerequisites(&text);
    let linked = sparsek_gate::build::linked(&text);
    for file in listed.into_iter().chain(assembled.unwrap_or_default()) {
        assert!(!file.is_empty());
    }
    drop(linked);
}

fn sanitizer(input: &[u8]) {
    let log = text(input);
    if let Ok(read) = SanitizerLog::parse(&log)
        && let Some(first) = read.first
    {
        assert!(first.text.lines().all(|line| log.contains(line)));
    }
}

fn ncu_log(input: &[u8]) {
    let log = text(input);
    if let Some(trouble) = Trouble::in_log(&log) {
        assert!(!trouble.words().is_empty());
    }
}

fn git(input: &[u8]) {
    let text = text(input);
    for entry in printed::tree(&text).unwrap_or_default() {
        assert!(text.contains(entry.path) && text.contains(entry.object));
    }
    for (path, commit) in printed::index(&text).unwrap_or_default() {
        assert!(text.contains(&path) && commit.is_none_or(|commit| text.contains(&commit)));
    }
    for (path, attribute, value) in printed::attributes(&text) {
        assert!(
            [path, attribute, value]
                .iter()
                .all(|word| text.contains(word))
        );
    }
    for count in [1, 3] {
        let contents = printed::contents(input, count).unwrap_or_default();
        let length: usize = contents.iter().flatten().map(Vec::len).sum();
        assert!(length <= input.len());
    }
}

fn run_record(input: &[u8]) {
    record(input, |file| Ok(sealed(&unsealed::<RunRecord>(file)?)));
}

fn variant_record(input: &[u8]) {
    record(input, |file| Ok(sealed(&unsealed::<VariantRecord>(file)?)));
}

/// A file that says its hash: the input, or with the input as its content.
fn record(input: &[u8], again: fn(&[u8]) -> Result<Vec<u8>, String>) {
    let sha256 = sha256_hex(input);
    let begin = format!("{{\"sha256\":\"{sha256}\",\"content\":");
    let file = [begin.as_bytes(), input, b"}\n"].concat();
    for file in [input, &file] {
        if let Ok(written) = again(file) {
            assert_eq!(again(&written).as_ref(), Ok(&written));
        }
    }
}

/// Files of an archive stay in its folder.
fn below(paths: &[PathBuf]) {
    for path in paths {
        let mut parts = path.components();
        assert!(
            parts.all(|part| matches!(part, Component::Normal(_))),
            "{path:?}"
        );
    }
}

fn archive(input: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("archive");
    std::fs::write(&file, input).expect("a file in it");
    let _ = unpack(&file, None);
}

/// Under the version of this tool: an index of another one is refused before its paths are read.
fn archive_index(input: &[u8]) {
    let manifest = include_str!("../../Cargo.toml");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    let version = version.unwrap_or_default().trim_matches('"');
    let Ok(mut index) = serde_json::from_slice::<serde_json::Value>(input) else {
        below(&indexed_paths(input).unwrap_or_default());
        return;
    };
    if let Some(tool) = index.get_mut("tool") {
        *tool = version.into();
    }
    below(&indexed_paths(index.to_string().as_bytes()).unwrap_or_default());
}

fn process_records(input: &[u8]) {
    let [one, other] = parts(input);
    let read: Vec<ProcessRecords> = [one, other]
        .iter()
        .filter_map(|part| ProcessRecords::parse(&text(part)).ok())
        .collect();
    for process in &read {
        let _: Vec<_> = process
            .kernels
            .iter()
            .map(|kernel| kernel.duration_ns())
            .collect();
    }
    if read.is_empty() {
        return;
    }
    let launches: usize = read.iter().map(|process| process.kernels.len()).sum();
    let capture = KernelCapture::of("GPU", "9.0", read);
    let written =
        kernel_records::read(capture.text().as_bytes()).expect("what was written can be read");
    assert_eq!(written.launches.len(), launches);
}

fn read_kernel_records(input: &[u8]) {
    let input = [kernel_records::MAGIC, input].concat();
    let read = kernel_records::read(&input);
    checks::recording(&input, &read);
    if let Ok(recording) = read {
        used(&recording);
    }
}

/// What a program prints, and its result file.
fn tuning(input: &[u8]) {
    let _ = serde_json::from_slice::<ResultFile>(input);
    for one in tuned(&String::from_utf8_lossy(input), input) {
        assert!(!one.kernel.is_empty() && !one.chosen.is_empty());
        assert!(one.chosen.is_sorted() && one.chosen.len() <= 16);
        for text in &one.chosen {
            assert!(text.chars().count() <= 400, "{text}");
            assert!(!text.contains(char::is_control), "{text}");
        }
    }
}

fn strip_report(input: &[u8]) {
    let Ok(before) = report::read(input) else {
        // What cannot be read may be refused or not, within the bounds.
        let _ = strip_bytes(Path::new("x.ncu-rep"), input, true);
        return;
    };
    for keep_machine_code in [false, true] {
        let Ok(Some(copy)) = strip_bytes(Path::new("x.ncu-rep"), input, keep_machine_code) else {
            continue;
        };
        let after = report::read(&copy).expect("the copy of a report is a report");
        assert_eq!(Numbers::of_all(&after), Numbers::of_all(&before));
    }
}

/// The copy of a file of this name; `None` where there is none.
fn stripped(name: &str, input: &[u8]) -> Option<Vec<u8>> {
    let copy = strip_bytes(Path::new(name), input, false).ok()??;
    let left = checks::gpu_uuid(&copy).map(text);
    assert_eq!(left, None, "the copy has the number of a GPU");
    Some(copy)
}

fn strip_page(input: &[u8]) {
    // By its beginning such a file is a text, whatever its name is.
    if input.starts_with(kernel_records::MAGIC) {
        return;
    }
    let Some(copy) = stripped("x.csv", input) else {
        return;
    };
    if let Ok(before) = csv::read(input) {
        let after = csv::read(&copy).expect("the copy of a page is a page");
        let values = |recording| -> Vec<_> {
            let numbers: Vec<Numbers> = Numbers::of_all(recording);
            numbers.iter().map(Numbers::values).collect()
        };
        assert_eq!(values(&after), values(&before));
    }
}

fn strip_json(input: &[u8]) {
    let Some(copy) = stripped("x.json", input) else {
        return;
    };
    let Ok(before) = Profile::parse(input) else {
        if serde_json::from_slice::<serde_json::Value>(input).is_ok() {
            assert_eq!(checks::outside_texts(&copy), checks::outside_texts(input));
        }
        return;
    };
    let after = Profile::parse(&copy).expect("the copy of a profile is a profile");
    let samples = |profile: &Profile| -> Vec<_> {
        let kernels = profile.kernels.iter();
        kernels
            .flat_map(|kernel| kernel.metrics.values().cloned())
            .collect()
    };
    assert_eq!(samples(&after), samples(&before));
}

fn strip_text(input: &[u8]) {
    let Some(copy) = stripped("x.log", input) else {
        return;
    };
    if let Ok(before) = kernel_records::read(input) {
        let after = kernel_records::read(&copy).expect("the copy has the launches");
        assert_eq!(Numbers::of_all(&after), Numbers::of_all(&before));
    }
}
