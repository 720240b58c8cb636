//! Time to decode every metric of a report, with this library and with NVIDIA's own, in turns.
//!
//! NVIDIA's library is `ncu_report`, the Python module of Nsight Compute, which is on PyPI too. It
//! needs no GPU. Its time contains the opening of the file and the value of each metric, and no
//! values by instruction; ours contains these, their source lines and the machine code as well.
//! The two take turns on every file, so that a busy machine disturbs both.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The recordings, which are part of the repository and not of the package.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ncu");

const FILES: [&str; 3] = ["full_set", "four_metrics", "twenty_launches"];

/// How often each file is decoded by both.
const ROUNDS: usize = 40;

/// The variable with the Python interpreter that has the module; `python3` without it.
const PYTHON: &str = "NCU_REPORT_PYTHON";

/// Decodes the file that each line of its input names, and prints the number of values and the
/// nanoseconds.
const DECODER: &str = "
import sys, time
import ncu_report
print('ready', flush=True)
for line in sys.stdin:
    start = time.perf_counter_ns()
    values = 0
    for group in ncu_report.load_report(line.rstrip('\\n')):
        for result in group:
            for name in result.metric_names():
                result[name].value()
                values += 1
    print(values, time.perf_counter_ns() - start, flush=True)
";

fn main() -> Result<(), Box<dyn Error>> {
    let skipped = |why: String| Ok(writeln!(stderr(), "SKIPPED: {why}")?);
    if !Path::new(FOLDER).is_dir() {
        return skipped(format!(
            "every comparison. {FOLDER} does not exist: the recordings are in the repository, not \
             in the package."
        ));
    }
    let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
    let python = PathBuf::from(python);
    let Some(mut nvidia) = Nvidia::start(&python) else {
        return skipped(format!(
            "the comparison with NVIDIA's library. {} cannot import ncu_report. In a virtual \
             environment: pip install ncu-report==2025.3.1; then {PYTHON}=PATH/bin/python \
             cargo bench -p ncu-report --bench nvidia",
            python.display()
        ));
    };
    writeln!(
        stdout(),
        "{:16} {:>7} {:>22} {:>22} {:>16}",
        "ms: file",
        "values",
        "NVIDIA min / median",
        "ours min / median",
        "ratio"
    )?;
    for name in FILES {
        compare(name, &mut nvidia)?;
    }
    Ok(())
}

/// Decodes a file in turns, and prints a line.
fn compare(name: &str, nvidia: &mut Nvidia) -> Result<(), Box<dyn Error>> {
    let path = format!("{FOLDER}/{name}.ncu-rep");
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    let mut values = 0;
    for _ in 0..ROUNDS {
        let (found, time) = nvidia.decode(&path)?;
        theirs.push(time);
        let (found_by_us, time) = decode(&path)?;
        ours.push(time);
        if found != found_by_us {
            return Err(format!("{name}: {found} values, {found_by_us} with ours").into());
        }
        values = found;
    }
    theirs.sort();
    ours.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let of = |times: &[Duration]| (ms(times[0]), ms(times[times.len() / 2]));
    let ((least, median), (our_least, our_median)) = (of(&theirs), of(&ours));
    Ok(writeln!(
        stdout(),
        "{name:16} {values:7} {least:11.2} / {median:8.2} {our_least:11.3} / {our_median:8.3} \
         {:7.1} / {:6.1}",
        least / our_least,
        median / our_median
    )?)
}

/// The number of values that this library reads of a file, and its time.
fn decode(path: &str) -> Result<(usize, Duration), ncu_report::ReadError> {
    let start = Instant::now();
    let recording = ncu_report::read_file(path)?;
    let metrics = recording.launches.iter().map(|launch| &launch.metrics);
    let values = metrics.flat_map(|metrics| metrics.values());
    let values = values.map(std::hint::black_box).count();
    drop(recording);
    Ok((values, start.elapsed()))
}

/// A Python process that decodes files with NVIDIA's library.
struct Nvidia {
    child: Child,
    /// `None` once the process was asked to end.
    paths: Option<ChildStdin>,
    times: BufReader<ChildStdout>,
}

impl Nvidia {
    /// `None` where there is no interpreter, or no such module.
    fn start(python: &Path) -> Option<Nvidia> {
        let mut child = Command::new(python)
            .args(["-c", DECODER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (paths, times) = (child.stdin.take(), BufReader::new(child.stdout.take()?));
        let mut nvidia = Nvidia {
            child,
            paths,
            times,
        };
        (nvidia.line().ok()?.trim() == "ready").then_some(nvidia)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.times.read_line(&mut line)?;
        Ok(line)
    }

    /// The number of values in a file, and the time to decode them.
    fn decode(&mut self, path: &str) -> Result<(usize, Duration), Box<dyn Error>> {
        let paths = self.paths.as_mut().ok_or("the process ended")?;
        writeln!(paths, "{path}")?;
        let line = self.line()?;
        let (values, nanoseconds) = line
            .trim()
            .split_once(' ')
            .ok_or_else(|| format!("NVIDIA's library did not decode {path}"))?;
        Ok((values.parse()?, Duration::from_nanos(nanoseconds.parse()?)))
    }
}

impl Drop for Nvidia {
    /// The process ends with its input.
    fn drop(&mut self) {
        self.paths = None;
        let _ = self.child.wait();
    }
}
