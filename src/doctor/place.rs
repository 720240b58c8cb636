//! What lies on the disks: what earlier runs left, the room there is, what is built.

use std::fs::OpenOptions;
use std::path::Path;

use super::tools::Tools;
use super::{Check, Patient};
use crate::baseline::Store;
use crate::build::built_program;
use crate::device::Gpu;
use crate::profiler::{NCU_LOCK, Trouble};

/// Less room than this in a folder is told, in bytes.
const LITTLE: u64 = 1 << 30;
/// With less than this nothing can be built and recorded, in bytes.
const TOO_LITTLE: u64 = 64 << 20;

pub(super) fn checks(
    patient: &Patient<'_>,
    gpu: Option<&Gpu>,
    tools: &Tools,
    checks: &mut Vec<Check>,
) {
    let config = patient.config;
    checks.extend(gpu.map(lock));
    checks.push(ncu_lock());
    if patient.configured {
        checks.push(baselines(&config.baselines));
        checks.push(room("work folder", &config.work));
    }
    checks.push(room("temporary folder", &std::env::temp_dir()));
    if patient.configured {
        checks.push(built(patient, tools));
    }
}

fn lock(gpu: &Gpu) -> Check {
    let path = gpu.lock_path();
    match gpu.try_lock() {
        Ok(Some(_)) => Check::ok("GPU lock", format!("free ({})", path.display())),
        // A lock ends with its process, so whoever holds it lives.
        Ok(None) => {
            let (who, next) = match gpu.lock_holder() {
                Some(holder) if holder.pid != 0 => (
                    format!(
                        "process {} ({})",
                        holder.pid,
                        holder
                            .name
                            .as_deref()
                            .unwrap_or("of a name that cannot be told")
                    ),
                    format!("wait for it, or end it: kill {}", holder.pid),
                ),
                _ => (
                    "a process that this machine does not show, perhaps of another container"
                        .to_owned(),
                    format!("see who holds it, outside: fuser -v {}", path.display()),
                ),
            };
            Check::warn(
                "GPU lock",
                format!(
                    "{} is held by {who}, which lives; this tool waits for it",
                    path.display()
                ),
                next,
            )
        }
        Err(error) => Check::fail(
            "GPU lock",
            error.to_string(),
            format!("let every user write it: sudo chmod 666 {}", path.display()),
        ),
    }
}

/// Several ncu take turns by a file that the first user leaves, and that no other may then open.
fn ncu_lock() -> Check {
    const WHAT: &str = "ncu lock";
    let path = std::env::temp_dir().join(NCU_LOCK);
    if !path.exists() {
        return Check::ok(WHAT, format!("none ({})", path.display()));
    }
    // As ncu does: systems refuse to "create" another user's file in a folder of everybody's.
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    match opened {
        Ok(_) => Check::ok(WHAT, format!("can be taken ({})", path.display())),
        Err(error) => Check::fail(
            WHAT,
            format!("ncu cannot open {}: {error}", path.display()),
            Trouble::Locked.next(),
        ),
    }
}

fn baselines(root: &Path) -> Check {
    let left = Store::leftovers(root);
    let named: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    if left.is_empty() {
        let state = if root.exists() {
            "nothing is left over beside them"
        } else {
            "none yet"
        };
        Check::ok("baselines", state)
    } else if Store::is_changing(root) {
        Check::ok("baselines", "another process is storing some now")
    } else {
        Check::warn(
            "baselines",
            format!(
                "a process was killed while it stored: {} is left",
                named.join(", ")
            ),
            "any command that reads baselines puts that right: sparsek-gate baseline --verify",
        )
    }
}

fn room(what: &'static str, folder: &Path) -> Check {
    // What does not exist yet will be made in the nearest folder that does.
    let there = folder
        .ancestors()
        .find(|folder| folder.exists())
        .unwrap_or(folder);
    let free = match rustix::fs::statvfs(there) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(error) => {
            return Check::fail(
                what,
                format!("{}: {error}", folder.display()),
                "make it, or name another",
            );
        }
    };
    let detail = format!(
        "{:.1} GiB free in {}",
        free as f64 / f64::from(1 << 30),
        folder.display()
    );
    let next = "make room, or name another: `paths.work`, or TMPDIR for the temporary folder";
    if free < TOO_LITTLE {
        Check::fail(what, detail, next)
    } else if free < LITTLE {
        Check::warn(what, detail, next)
    } else {
        Check::ok(what, detail)
    }
}

fn built(patient: &Patient<'_>, tools: &Tools) -> Check {
    const WHAT: &str = "built programs";
    let config = patient.config;
    let arch = &config.toolchain.arch;
    let Some(nvcc) = &tools.nvcc else {
        return Check::skipped(
            WHAT,
            "without nvcc it is not known which are of these sources",
        );
    };
    let programs: Vec<_> = config
        .variants()
        .filter_map(|variant| Some((variant, built_program(config, nvcc, variant)?)))
        .collect();
    if programs.is_empty() {
        return Check::skipped(
            WHAT,
            "nothing is built yet of the sources as they are (`sparsek-gate build`)",
        );
    }
    let Some(cuobjdump) = &tools.cuobjdump else {
        return Check::skipped(WHAT, "without cuobjdump nothing tells what is in them");
    };
    let mut wrong = Vec::new();
    for (variant, program) in &programs {
        match cuobjdump.targets(program) {
            Ok(targets) if targets.contains(arch) => {}
            Ok(targets) if targets.is_empty() => {
                wrong.push(format!("{} holds no machine code", variant.id))
            }
            Ok(targets) => wrong.push(format!("{} holds {}", variant.id, targets.join(", "))),
            Err(error) => wrong.push(format!("{}: {error}", variant.id)),
        }
    }
    if wrong.is_empty() {
        return Check::ok(
            WHAT,
            format!("{} of these sources, with code for {arch}", programs.len()),
        );
    }
    Check::fail(
        WHAT,
        format!("not for {arch}: {}", wrong.join("; ")),
        format!(
            "see `toolchain.flags` and the variants' flags for another target, then: rm -r {}",
            config.work.join("builds").display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn room_is_told_of_a_folder_that_is_still_to_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let check = room("work folder", &folder.path().join("not/yet/there"));
        assert_ne!(check.detail.find("GiB free in "), None, "{check:?}");
        // The filesystem of the kernel's own files has no room at all.
        assert_eq!(
            room("work folder", Path::new("/proc/self")).state,
            State::Fail
        );
    }
}
