//! Event times: the times that a program takes itself with CUDA events around its launches.

use ncu_report::{Kernel, ReadError, Recording, Value};
use serde::Deserialize;

use super::times::{TimedLaunch, TimedLaunches, fits};
use crate::files::{bounded_json, most};

/// How a capture file begins; the number is its version. After it stand `gpu NAME` and
/// `compute-capability MAJOR.MINOR`, a line each, and the program's result file as it is.
pub const MAGIC: &[u8] = b"sparsek-gate event times 1\n";

/// The times in a result file. `correct` was checked when the variant was verified.
#[derive(Deserialize)]
struct Times {
    /// Name of the kernel.
    kernel: String,
    /// One entry a launch, in microseconds.
    times_us: Vec<Option<f64>>,
}

/// The content of a capture file: the times that a program wrote, and the GPU it ran on.
pub(crate) fn content(gpu: &str, compute_capability: &str, result_file: &[u8]) -> Vec<u8> {
    let mut content = MAGIC.to_vec();
    let header = format!("gpu {gpu}\ncompute-capability {compute_capability}\n");
    content.extend_from_slice(header.as_bytes());
    content.extend_from_slice(result_file);
    content
}

/// Reads a capture file of event times. A program states neither grid nor block of its launches:
/// they are zeros, which no launch has.
///
/// # Errors
/// [`ReadError::Records`], with the line.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    let error = |line: u64, problem: &str| ReadError::Records {
        line,
        problem: problem.to_owned(),
    };
    let text = bytes
        .strip_prefix(MAGIC)
        .and_then(|rest| std::str::from_utf8(rest).ok())
        .ok_or_else(|| error(1, "not a file of event times"))?;
    if bytes.len() as u64 > most::EVENT_TIMES {
        let problem = format!("larger than {} MiB", most::EVENT_TIMES >> 20);
        return Err(error(4, &problem));
    }
    let mut parts = text.splitn(3, '\n');
    let mut value = |key: &str| parts.next()?.strip_prefix(key)?.strip_prefix(' ');
    let gpu = value("gpu").ok_or_else(|| error(2, "`gpu` was expected"))?;
    let (major, minor) = value("compute-capability")
        .and_then(|text| text.split_once('.'))
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| error(3, "`compute-capability` was expected"))?;
    let document = parts.next().unwrap_or_default();
    bounded_json(document.as_bytes()).map_err(|cause| error(4, &cause))?;
    let times: Times =
        serde_json::from_str(document).map_err(|cause| error(4, &cause.to_string()))?;
    fits(times.times_us.len(), times.kernel.len()).map_err(|cause| error(4, &cause))?;
    // A time that no launch takes is no measurement, and in nanoseconds it may not be a number.
    let endless = |time_us: &&f64| !((*time_us * 1e3).is_finite());
    if let Some(time_us) = times.times_us.iter().flatten().find(endless) {
        return Err(error(4, &format!("{time_us:e} us is no time of a launch")));
    }
    let launch = |time_us: &Option<f64>| TimedLaunch {
        kernel: Kernel {
            function: times.kernel.clone(),
            mangled: None,
            demangled: None,
        },
        duration_ns: time_us
            .filter(|time_us| time_us.is_finite() && *time_us > 0.0)
            .map(|time_us| Value::Float(time_us * 1e3)),
        ..TimedLaunch::default()
    };
    let timed = TimedLaunches {
        gpu: gpu.to_owned(),
        compute_capability: (major, minor),
        measured_by: "CUDA events of the program".to_owned(),
        launches: times.times_us.iter().map(launch).collect(),
    };
    Ok(timed.into())
}
