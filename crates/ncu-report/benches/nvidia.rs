//! Time to decode every metric of a report, with this library and with NVIDIA's own, in turns.
//!
//! NVIDIA's library is `ncu_report`, the Python module of Nsight Compute, which is on PyPI too. It
//! needs no GPU. Its time contains the opening of the file and the value of each metric. The two take
//! turns on every file, so that a busy machine disturbs both.

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::time::{Duration, Instant};

#[path = "../tests/common/nvidia.rs"]
mod nvidia;

use nvidia::Nvidia;

/// The recordings.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ncu");

const FILES: [&str; 3] = ["full_set", "four_metrics", "twenty_launches"];

/// How often each file is decoded by both.
const ROUNDS: usize = 40;

/// Decodes the file that each line of its input names, and prints the number of values and the
/// nanoseconds.
const DECODER: &str = r#"
import sys, time
import ncu_report
print('"ready"', flush=True)
for line in sys.stdin:
    start = time.perf_counter_ns()
    values = 0
    for group in ncu_report.load_report(line.rstrip('\n')):
        for result in group:
            for name in result.metric_names():
                result[name].value()
                values += 1
    print([values, time.perf_counter_ns() - start], flush=True)
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut nvidia = match Nvidia::start(DECODER) {
        Ok(nvidia) => nvidia,
        Err(missing) => return Ok(writeln!(stderr(), "{missing}")?),
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
        let (found, time): (usize, u64) =
            serde_json::from_value(nvidia.read(path.as_ref()).unwrap_or_default())?;
        theirs.push(Duration::from_nanos(time));
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
