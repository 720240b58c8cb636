//! A machine with GPUs of which some are sick, by stand-ins of the driver and of ncu.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use super::stand_in::Machine;
use super::{Ran, Report, handed_over};

/// The UUID of the second GPU.
pub const SECOND: &str = "GPU-00112233-4455-6677-8899-aabbccddeefe";

/// A control, and two variants of the change.
const SUITE: &str = r#"
[suite.bsr_gemm]
kernels = "regex:^bsr_gemm_"
args = ["--m", "8192", "--n", "8192", "--k", "8192", "--blocks-per-row", "16"]
work = { flop = 68719476736, bytes_written = 268435456 }

[suite.bsr_gemm.variant.control]
run = ["sh", "control.sh"]
inputs = ["control.sh"]
expect = ["bsr_gemm_cp_async"]
immutable = true

[suite.bsr_gemm.variant.v]
matrix = { n = [1, 2] }
env = { N = "{n}" }
run = ["sh", "change.sh"]
inputs = ["change.sh"]
expect = ["bsr_gemm_cp_async"]
"#;

/// A machine with GPUs, and this suite locked and committed.
pub fn machine(gpus: u32) -> Machine {
    static LOCKED: OnceLock<Vec<u8>> = OnceLock::new();
    let machine = Machine::once(&LOCKED, locked).with("CUDA_GPUS", &gpus.to_string());
    ncu(&machine, "");
    machine.commit();
    machine
}

fn locked() -> Machine {
    let machine = Machine::new();
    let project = &machine.project;
    let config = project.read("config.toml");
    let (settings, _) = config.split_once("\n[suite.bsr_gemm]").unwrap();
    let settings = settings.replacen("\nprocesses = 4 ", "\nprocesses = 2 ", 1);
    project.write("config.toml", format!("{settings}{SUITE}"));
    let program = "echo 'variant: cp_async'\necho 'recorded: h200'\n";
    for name in ["control.sh", "change.sh"] {
        project.write(name, program);
    }
    project.write(
        ".gitignore",
        "/.sparsek-gate/\n/journal*\n/reports\n/argv\n/calls\n/tmp/\n/home/\n/slow/\n/steady/\n",
    );
    // A GPU that reads 3 % more is not one that was locked.
    project.configure("stored = \"4 %\"", "stored = \"1 %\"");
    for (folder, percent) in [("steady", 0.0), ("slow", 3.0)] {
        let folder = project.path(folder);
        let own = folder.join("h200/bsr_gemm/cp_async");
        fs::create_dir_all(&own).unwrap();
        for (name, content) in recorded(percent) {
            fs::write(own.join(name), content).unwrap();
        }
        for other in ["h200/bsr_gemm/baseline", "h200-worse"] {
            let from = handed_over().join(other);
            std::os::unix::fs::symlink(from, folder.join(other)).unwrap();
        }
    }
    ncu(&machine, "");
    machine.lock_measured();
    fs::remove_dir_all(project.path(".sparsek-gate")).unwrap();
    for file in ["journal", "reports"] {
        project.write(file, "");
    }
    machine
}

pub fn path(machine: &Machine, name: &str) -> String {
    machine.path(name).display().to_string()
}

/// In the hook of ncu: from the process of this number on, a file is there.
pub fn from_process(number: u32, file: &str) -> String {
    format!(
        "case \" $* \" in *' --export '*) echo x >>tmp/count;\n\
         [ \"$(wc -l <tmp/count)\" -lt {number} ] || : >tmp/{file} ;; esac"
    )
}

/// Its ncu, with a hook. Every GPU reads the same for a program, and nearly the same in each process.
pub fn ncu(machine: &Machine, hook: &str) {
    let steady = path(machine, "steady");
    machine.ncu(&format!("export BY_STEM=1 RECORDINGS='{steady}'\n{hook}"));
}

/// The files of a recording of two processes on a GPU that reads so many percent more for every launch:
/// reports and CSV alike.
fn recorded(percent: f64) -> Vec<(String, Vec<u8>)> {
    let from = handed_over().join("h200/bsr_gemm/cp_async");
    let captures = [
        ("counting", "counting", 1.0),
        ("capture-1", "capture-1", 1.0),
        ("capture-1", "capture-2", 1.00001),
    ];
    let captures = captures.into_iter().flat_map(|(stem, name, process)| {
        let csv = fs::read_to_string(from.join(format!("{stem}.csv"))).unwrap();
        let report = fs::read(from.join(format!("{stem}.ncu-rep"))).unwrap();
        let (csv, scaled) = scaled_durations(&csv, process * (1.0 + percent / 100.0));
        let report = with_scaled(report, &scaled);
        [
            (format!("{name}.csv"), csv.into_bytes()),
            (format!("{name}.ncu-rep"), report),
        ]
    });
    captures.collect()
}

/// The CSV of ncu with durations that are so many times as long, and each duration with what it is then.
fn scaled_durations(csv: &str, times: f64) -> (String, BTreeMap<[u8; 8], [u8; 8]>) {
    let mut scaled = BTreeMap::new();
    let mut columns = Vec::new();
    let lines = csv.lines().map(|line| {
        let mut fields: Vec<String> = line.split("\",\"").map(str::to_owned).collect();
        if columns.is_empty() {
            let names = fields.iter().enumerate();
            let durations = names.filter(|(_, name)| name.starts_with("gpu__time_duration."));
            columns = durations.map(|(column, _)| column).collect();
            return line.to_owned();
        }
        for column in &columns {
            let text = fields[*column].replace(',', "");
            if let Ok(was) = text.parse::<f64>() {
                let is = (was * times).round();
                scaled.insert(was.to_le_bytes(), is.to_le_bytes());
                fields[*column] = is.to_string();
            }
        }
        fields.join("\",\"")
    });
    let text: Vec<String> = lines.collect();
    (text.join("\n") + "\n", scaled)
}

/// A report in which these numbers stand for others, of which each is written in 8 bytes.
fn with_scaled(mut report: Vec<u8>, scaled: &BTreeMap<[u8; 8], [u8; 8]>) -> Vec<u8> {
    let mut at = 0;
    while let Some(bytes) = report.get(at..at + 8) {
        let other = <[u8; 8]>::try_from(bytes).ok();
        at += match other.and_then(|bytes| scaled.get(&bytes)) {
            Some(other) => {
                report[at..at + 8].copy_from_slice(other);
                8
            }
            None => 1,
        };
    }
    report
}

/// In the hook of ncu: the GPUs whose UUID ends so are slow.
pub fn slow_on(ending: &str, machine: &Machine) -> String {
    format!(
        "case \"$CUDA_VISIBLE_DEVICES\" in *{ending}) export RECORDINGS='{}' ;; esac",
        path(machine, "slow")
    )
}

#[track_caller]
pub fn check(machine: &Machine, arguments: &[&str], code: i32) -> (Report, Ran) {
    check_with(machine, &[], arguments, code)
}

#[track_caller]
pub fn check_with(
    machine: &Machine,
    variables: &[(&str, &str)],
    arguments: &[&str],
    code: i32,
) -> (Report, Ran) {
    let report = machine.path("tmp/outcome.json");
    let _ = fs::remove_file(&report);
    let text = format!("json:{}", report.display());
    let arguments = [&["check"], arguments, &["--report", &text]].concat();
    let mut command = machine.gate(&arguments);
    command.envs(variables.iter().copied());
    let ran = Ran::of(&command.output().unwrap()).exits(code);
    let outcome = fs::read_to_string(&report).unwrap();
    (Report(serde_json::from_str(&outcome).unwrap()), ran)
}

/// Nothing was judged, and each of the three variants is said not to be measured.
#[track_caller]
pub fn nothing_counts(report: &Report) {
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 0);
    let unmeasured = report.fields("not-measured", "message");
    assert_eq!(unmeasured.len(), 3, "{:#}", report.0);
    assert_eq!(
        report.denied_besides(&["not-measured", "gpu-sick", "gpu-lost"]),
        [""; 0]
    );
}
