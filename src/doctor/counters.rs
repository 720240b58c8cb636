//! Tries whether kernels run, and whether ncu may read their counters, with a kernel of the tool's own
//! in processes of their own.

use crate::disk;
use crate::terms::words;
use std::path::Path;
use std::time::Duration;

use super::check::{Check, Setup, State};
use crate::capture;
use crate::config::ClockControl;
use crate::device::Gpu;
use crate::files::readable_text;
use crate::finding::{Code, Error};
use crate::measure::gpu_env;
use crate::metric::Role;
use crate::process::{self, Ending, Invocation};
use crate::profiler::{Ncu, Trouble, home, reports};

/// How long a probe may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Programs that read the counters of a GPU, as the system names their processes.
const PROFILERS: [&str; 5] = words("nv-hostengine dcgm-exporter ncu nsys nv-nsight-cu-cli");

/// The checks of this file, in their order.
const KERNEL_LAUNCH: &str = "kernel launch";
const COUNTERS: &str = "counters";
const OTHER_PROFILERS: &str = "other profilers";
const CLOCK_CONTROL: &str = "clock control";

pub(super) fn checks(
    setup: &Setup<'_>,
    gpu: Option<&Gpu>,
    ncu: Option<&Ncu>,
) -> Result<Vec<Check>, Error> {
    let skipped =
        |why: &str| [KERNEL_LAUNCH, COUNTERS, CLOCK_CONTROL].map(|what| Check::skipped(what, why));
    let Some(gpu) = gpu else {
        return Ok(skipped("there is no GPU to try it on").into());
    };
    // ncu fails where another one measures.
    let _lock = match gpu.try_lock() {
        Ok(Some(lock)) => lock,
        Ok(None) => return Ok(skipped("another sparsek-gate measures on the GPU").into()),
        Err(error) => return Ok(vec![Check::of_error("GPU lock", &error)]),
    };
    let folder = process::scratch()?;
    let program = std::env::current_exe().map_err(Error::io("find", "this program"))?;
    let probe = Probe {
        gpu,
        folder: folder.path(),
        program: [&program.display().to_string(), "probe", "--device", "0"]
            .map(str::to_owned)
            .to_vec(),
    };
    let launched = probe.launch();
    let runs = launched.state == State::Ok;
    let mut checks = vec![launched];
    let without = |why: &str| skipped(why).into_iter().skip(1);
    match ncu {
        _ if !runs => checks.extend(without("no kernel runs")),
        Some(ncu) => checks.extend(counted(setup, &probe, ncu)),
        None => checks.extend(without("without ncu")),
    }
    Ok(checks)
}

/// Checks with ncu, on a GPU where kernels run.
fn counted(setup: &Setup<'_>, probe: &Probe<'_>, ncu: &Ncu) -> [Check; 3] {
    let read = probe.profile(ncu, ClockControl::None);
    let counters = match &read {
        Ok(read) => Check::ok(
            COUNTERS,
            format!(
                "{} of a launch was read: {:.0} ns",
                Role::Duration,
                read.duration_ns
            ),
        ),
        Err(failure) => failure.check(COUNTERS),
    };
    let trouble = read.as_ref().err().and_then(|failure| failure.trouble);
    [
        counters,
        other_profilers(trouble == Some(Trouble::Busy)),
        clock_control(setup, probe, ncu, read.is_ok()),
    ]
}

/// `busy` is whether ncu found the counters in use.
fn other_profilers(busy: bool) -> Check {
    let others = running(&PROFILERS);
    match (busy, others.is_empty()) {
        (false, true) => Check::ok(OTHER_PROFILERS, "none uses the counters"),
        (false, false) => Check::ok(
            OTHER_PROFILERS,
            format!(
                "{} runs, but does not use the counters now",
                others.join(", ")
            ),
        ),
        (true, _) => Check::fail(
            OTHER_PROFILERS,
            format!(
                "one uses the counters; of the known ones, {}",
                if others.is_empty() {
                    "none is visible: it may run outside of this container".to_owned()
                } else {
                    format!("{} runs here", others.join(", "))
                }
            ),
            "DCGM: `dcgmi profile --pause` on the host, and `dcgmi profile --resume` afterwards; any other: end it",
        ),
    }
}

/// Tried only where a variant asks for it.
fn clock_control(setup: &Setup<'_>, probe: &Probe<'_>, ncu: &Ncu, counters: bool) -> Check {
    let mut variants = setup.config.variants();
    let asks = variants.find(|variant| variant.profile.clock_control == ClockControl::Base);
    let Some(variant) = asks.map(|variant| &variant.id) else {
        return Check::ok(
            CLOCK_CONTROL,
            "not needed: no variant asks for `clock_control = \"base\"`, so it was not tried",
        );
    };
    if !counters {
        return Check::skipped(CLOCK_CONTROL, "without counters");
    }
    match probe.profile(ncu, ClockControl::Base) {
        Err(failure) => failure.check(CLOCK_CONTROL),
        Ok(Read {
            locked: Some(false),
            ..
        }) => Check::fail(
            CLOCK_CONTROL,
            format!("ncu could not lock the clocks, as {variant} asks for"),
            "run as root on a GPU of your own, or set `clock_control = \"none\"` and lock the baselines again",
        ),
        Ok(Read { locked: None, .. }) => Check::warn(
            CLOCK_CONTROL,
            "ncu does not report whether it locked the clocks",
            "compare the `clock` of two profiles",
        ),
        Ok(Read {
            locked: Some(true), ..
        }) => Check::ok(
            CLOCK_CONTROL,
            format!("ncu locks the clocks, as {variant} asks for"),
        ),
    }
}

/// The probe kernel, and the folder for its files.
struct Probe<'a> {
    gpu: &'a Gpu,
    folder: &'a Path,
    program: Vec<String>,
}

/// What ncu read of the probe kernel.
struct Read {
    duration_ns: f64,
    /// Whether the clocks were locked to base; `None` where the report does not state it.
    locked: Option<bool>,
}

/// Why ncu read nothing.
struct Failure {
    trouble: Option<Trouble>,
    cause: String,
    by_hand: String,
}

impl Failure {
    fn check(&self, what: &'static str) -> Check {
        match self.trouble {
            Some(Trouble::NoPermission) => {
                let mut detail = Trouble::NoPermission.words().to_owned();
                if admin_only() == Some(true) {
                    detail.push_str(
                        "; the driver allows it to administrators only (RmProfilingAdminOnly is 1)",
                    );
                }
                Check::fail(what, detail, Code::NoPermission.next_step_of(None))
            }
            Some(trouble @ (Trouble::Busy | Trouble::Locked | Trouble::NotSupported)) => {
                Check::fail(what, trouble.words(), trouble.code().next_step_of(None))
            }
            Some(Trouble::NoKernels) | None => Check::fail(
                what,
                format!("ncu read no counter of a launch: {}", self.cause),
                format!("run it by hand: {}", self.by_hand),
            ),
        }
    }
}

impl Probe<'_> {
    /// Without a profiler, so that a fault of the driver is not attributed to ncu.
    fn launch(&self) -> Check {
        let log = self.folder.join("launch.log");
        let run = self.invocation(self.program.clone(), &log);
        let ending = match run.run() {
            Ok(finished) => finished.ending,
            Err(error) => {
                return Check::of_error(KERNEL_LAUNCH, &Error::io("run", &self.program[0])(error));
            }
        };
        if ending == Ending::Exited(0) {
            return Check::ok(
                KERNEL_LAUNCH,
                "a kernel was compiled by the driver, and ran",
            );
        }
        let printed = process::tail(&log, 2);
        let printed = printed
            .trim_start_matches("error: ")
            .replace("\n  next: ", "; ");
        Check::fail(
            KERNEL_LAUNCH,
            match printed.is_empty() {
                true => ending.to_string(),
                false => printed,
            },
            format!(
                "check that `nvidia-smi` works, and run it by hand: {}",
                process::shell_line(&run.argv)
            ),
        )
    }

    fn profile(&self, ncu: &Ncu, clocks: ClockControl) -> Result<Read, Failure> {
        let stem = self.folder.join(clocks.as_str());
        let path = |ending: &str| self.folder.join(format!("{clocks}.{ending}"));
        let (log, output) = (path("ncu.log"), path("program.log"));
        let run = self.invocation(ncu.probe_argv(clocks, &stem, &log, &self.program), &output);
        let ended = run.run().map(|finished| finished.ending);
        // ncu reports before its log file is open, or writes to standard output: both places count.
        let printed = format!("{}{}", readable_text(&output), readable_text(&log));
        let trouble = Trouble::in_log(&printed);
        let failure = |cause: String| Failure {
            trouble,
            cause,
            by_hand: process::shell_line(&run.argv),
        };
        match ended {
            // Its exit status is 0 for a counter that it did not read.
            Ok(Ending::Exited(0)) if trouble.is_none() => {
                let report = reports(&stem).pop().unwrap_or(path("ncu-rep"));
                read(&report).map_err(failure)
            }
            Ok(ending) => {
                let mut lines = printed.lines();
                let error = lines.find(|line| line.starts_with("==ERROR=="));
                Err(failure(
                    error.map_or_else(|| ending.to_string(), str::to_owned),
                ))
            }
            Err(error) => Err(failure(format!("it could not be started: {error}"))),
        }
    }

    fn invocation(&self, argv: Vec<String>, output: &Path) -> Invocation {
        let mut env = gpu_env(self.gpu);
        env.extend(home(self.folder));
        Invocation {
            argv,
            dir: self.folder.to_path_buf(),
            env,
            timeout: TIMEOUT,
            stdout: output.to_path_buf(),
            stderr: output.to_path_buf(),
        }
    }
}

fn read(report: &Path) -> Result<Read, String> {
    let (_, recording) = capture::read_file(report).map_err(|error| error.to_string())?;
    let launch = recording
        .launches
        .first()
        .ok_or("its report contains no launch")?;
    let duration_ns = Role::Duration
        .number(launch)
        .filter(|ns| *ns > 0.0)
        .ok_or_else(|| format!("its report contains no {}", Role::Duration))?;
    Ok(Read {
        duration_ns,
        locked: launch.clock_locked,
    })
}

/// Whether the driver allows counters to administrators only; `None` where it does not report it.
fn admin_only() -> Option<bool> {
    let parameters = disk::read_to_string("/proc/driver/nvidia/params").ok()?;
    let value = parameters
        .lines()
        .find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))?;
    Some(value.trim() == "1")
}

/// Processes of these names, as `name (number)`.
fn running(names: &[&str]) -> Vec<String> {
    let entries = disk::read_dir("/proc").into_iter().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let pid: u32 = entry.name().to_str()?.parse().ok()?;
            let name = disk::read_to_string(entry.path.join("comm")).ok()?;
            let name = name.trim_end();
            // The system cuts names after 15 characters.
            let known = |it: &&str| it.chars().take(15).eq(name.chars());
            names.iter().any(known).then(|| format!("{name} ({pid})"))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_process_is_found_by_its_name_which_the_system_cuts() {
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        let whole = format!("{}-and-what-was-cut", own.trim_end());
        let name = if own.trim_end().len() == 15 {
            whole.as_str()
        } else {
            own.trim_end()
        };
        let found = running(&[name]);
        let pid = format!("({})", std::process::id());
        assert!(found.iter().any(|it| it.ends_with(&pid)), "{found:?}");
        assert_eq!(running(&["no-such-program"]), Vec::<String>::new());
    }
}
