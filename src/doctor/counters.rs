//! Whether kernels run, and whether ncu may read their counters: tried, with a kernel of the tool's
//! own, in processes of their own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{Check, Patient};
use crate::capture;
use crate::config::ClockControl;
use crate::device::Gpu;
use crate::finding::Error;
use crate::measure::gpu_env;
use crate::metric::Role;
use crate::process::{self, Ending, Invocation};
use crate::profiler::{Ncu, Trouble, home};

/// How long a probe may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Programs that read the counters of a GPU, as the system names their processes.
const PROFILERS: [&str; 5] = [
    "nv-hostengine",
    "dcgm-exporter",
    "ncu",
    "nsys",
    "nv-nsight-cu-cli",
];

pub(super) fn checks(
    patient: &Patient<'_>,
    gpu: Option<&Gpu>,
    ncu: Option<&Ncu>,
    checks: &mut Vec<Check>,
) -> Result<(), Error> {
    let Some(gpu) = gpu else {
        for what in ["kernel launch", "counters", "clock control"] {
            checks.push(Check::skipped(what, "there is no GPU to try it on"));
        }
        return Ok(());
    };
    // ncu fails where another one measures.
    let lock = match gpu.try_lock() {
        Ok(Some(lock)) => lock,
        Ok(None) => {
            for what in ["kernel launch", "counters", "clock control"] {
                checks.push(Check::skipped(
                    what,
                    "another sparsek-gate measures on the GPU",
                ));
            }
            return Ok(());
        }
        Err(error) => {
            checks.push(Check::of_error("GPU lock", &error));
            return Ok(());
        }
    };
    let folder = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    let program = std::env::current_exe().map_err(Error::io("find", "this program"))?;
    let probe = Probe {
        gpu,
        folder: folder.path(),
        program: [&program.display().to_string(), "probe", "--device", "0"]
            .map(str::to_owned)
            .to_vec(),
    };
    let launched = probe.launch()?;
    let runs = launched.state == super::State::Ok;
    checks.push(launched);
    match ncu {
        Some(ncu) if runs => counted(patient, &probe, ncu, checks)?,
        _ => {
            let why = if runs {
                "without ncu"
            } else {
                "no kernel runs"
            };
            for what in ["counters", "clock control"] {
                checks.push(Check::skipped(what, why));
            }
        }
    }
    drop(lock);
    Ok(())
}

fn counted(
    patient: &Patient<'_>,
    probe: &Probe<'_>,
    ncu: &Ncu,
    checks: &mut Vec<Check>,
) -> Result<(), Error> {
    let free = probe.profile(ncu, ClockControl::None)?;
    let held = matches!(
        &free,
        Err(Failure {
            trouble: Some(Trouble::Busy),
            ..
        })
    );
    checks.push(match &free {
        Ok(read) => Check::ok(
            "counters",
            format!(
                "{} of a launch was read: {:.0} ns",
                Role::Duration,
                read.duration_ns
            ),
        ),
        Err(failure) => failure.check("counters"),
    });
    let others = running(&PROFILERS);
    checks.push(match (held, others.is_empty()) {
        (false, true) => Check::ok("other profilers", "none holds the counters"),
        (false, false) => Check::ok(
            "other profilers",
            format!("{} runs, and held no counters now", others.join(", ")),
        ),
        (true, _) => Check::fail(
            "other profilers",
            format!(
                "one holds the counters; of those that are known, {}",
                if others.is_empty() {
                    "none is in sight: it may be outside of this container".to_owned()
                } else {
                    format!("{} runs here", others.join(", "))
                }
            ),
            "DCGM: `dcgmi profile --pause` on the host, and `dcgmi profile --resume` afterwards; any other: end it",
        ),
    });
    let asked: Vec<String> = patient
        .config
        .variants()
        .filter(|variant| variant.profile.clock_control == ClockControl::Base)
        .map(|variant| variant.id.to_string())
        .collect();
    checks.push(match (asked.first(), &free) {
        (None, _) => Check::ok(
            "clock control",
            "not needed: nothing asks for `clock_control = \"base\"`, so it was not tried",
        ),
        (Some(_), Err(_)) => Check::skipped("clock control", "without counters"),
        (Some(variant), Ok(_)) => match probe.profile(ncu, ClockControl::Base)? {
            Err(failure) => failure.check("clock control"),
            Ok(Read { locked: Some(false), .. }) => Check::fail(
                "clock control",
                format!("ncu could not lock the clocks, as {variant} asks for"),
                "run as root on a GPU of your own, or set `clock_control = \"none\"`, and lock the baselines anew",
            ),
            Ok(Read { locked: None, .. }) => Check::warn(
                "clock control",
                "ncu does not say whether it locked the clocks",
                "compare the `clock` of two profiles",
            ),
            Ok(Read { locked: Some(true), .. }) => {
                Check::ok("clock control", format!("ncu locks the clocks, as {variant} asks for"))
            }
        },
    });
    Ok(())
}

/// The probe kernel, and where what it leaves may lie.
struct Probe<'a> {
    gpu: &'a Gpu,
    folder: &'a Path,
    program: Vec<String>,
}

/// What ncu read of the probe kernel.
struct Read {
    duration_ns: f64,
    /// Whether the clocks were locked to base; `None` where the report does not say.
    locked: Option<bool>,
}

/// Why ncu read nothing.
struct Failure {
    trouble: Option<Trouble>,
    said: String,
    by_hand: String,
}

impl Failure {
    fn check(&self, what: &'static str) -> Check {
        match self.trouble {
            Some(Trouble::NoPermission) => {
                let mut detail = Trouble::NoPermission.words().to_owned();
                if admin_only() == Some(true) {
                    detail.push_str(
                        "; the driver lets only administrators (RmProfilingAdminOnly is 1)",
                    );
                }
                Check::fail(what, detail, Trouble::NoPermission.next())
            }
            Some(trouble @ (Trouble::Busy | Trouble::Locked | Trouble::NotSupported)) => {
                Check::fail(what, trouble.words(), trouble.next())
            }
            Some(Trouble::NoKernels) | None => Check::fail(
                what,
                format!("ncu read no counter of a launch: {}", self.said),
                format!("run it by hand: {}", self.by_hand),
            ),
        }
    }
}

impl Probe<'_> {
    /// Without a profiler, so that what is wrong with the driver is not laid to ncu.
    fn launch(&self) -> Result<Check, Error> {
        let log = self.folder.join("launch.log");
        let run = self.invocation(self.program.clone(), &log);
        let ended = run.run().map(|finished| finished.ending);
        Ok(match ended {
            Ok(Ending::Interrupted) => return Err(Error::Interrupted),
            Ok(Ending::Exited(0)) => Check::ok(
                "kernel launch",
                "a kernel was compiled by the driver, and ran",
            ),
            Ok(ending) => {
                let said = process::tail(&log, 2);
                let said = if said.is_empty() {
                    ending.to_string()
                } else {
                    said
                };
                let said = said
                    .trim_start_matches("error: ")
                    .replace("\n  next: ", "; ");
                Check::fail(
                    "kernel launch",
                    said,
                    format!(
                        "see whether `nvidia-smi` works, and run it by hand: {}",
                        process::shell_line(&run.argv)
                    ),
                )
            }
            Err(error) => {
                Check::of_error("kernel launch", &Error::io("run", &self.program[0])(error))
            }
        })
    }

    fn profile(&self, ncu: &Ncu, clocks: ClockControl) -> Result<Result<Read, Failure>, Error> {
        let stem = self.folder.join(clocks.as_str());
        let path = |ending: &str| self.folder.join(format!("{clocks}.{ending}"));
        let (log, output) = (path("ncu.log"), path("program.log"));
        let run = self.invocation(ncu.probe_argv(clocks, &stem, &log, &self.program), &output);
        let ended = run.run().map(|finished| finished.ending);
        let text =
            |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        // ncu reports before its log file is open, or writes to standard output: both places count.
        let said = format!("{}{}", text(&output), text(&log));
        let failure = |cause: String| Failure {
            trouble: Trouble::in_log(&said),
            said: cause,
            by_hand: process::shell_line(&run.argv),
        };
        match ended {
            Ok(Ending::Interrupted) => return Err(Error::Interrupted),
            Ok(Ending::Exited(0)) if Trouble::in_log(&said).is_none() => {}
            Ok(ending) => {
                let lines: Vec<&str> = said
                    .lines()
                    .filter(|line| line.starts_with("==ERROR=="))
                    .collect();
                let cause = lines
                    .first()
                    .map_or_else(|| ending.to_string(), |line| (*line).to_owned());
                return Ok(Err(failure(cause)));
            }
            Err(error) => return Ok(Err(failure(format!("it could not be started: {error}")))),
        }
        // Its exit status is 0 for a counter that it did not read.
        Ok(read(&path("ncu-rep")).map_err(failure))
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
        .ok_or("its report holds no launch")?;
    let duration_ns = Role::Duration
        .number(launch)
        .filter(|ns| *ns > 0.0)
        .ok_or_else(|| format!("its report has no {}", Role::Duration))?;
    Ok(Read {
        duration_ns,
        locked: launch.clock_locked,
    })
}

/// Whether the driver lets only administrators read counters; `None` where it does not tell.
fn admin_only() -> Option<bool> {
    let parameters = fs::read_to_string("/proc/driver/nvidia/params").ok()?;
    let value = parameters
        .lines()
        .find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))?;
    Some(value.trim() == "1")
}

/// Processes of these names, as `name (number)`.
fn running(names: &[&str]) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            let name = name.trim_end();
            // The system keeps 15 characters of it.
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
