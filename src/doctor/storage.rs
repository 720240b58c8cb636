//! What is on the disks: locks and free space.

use rustix::fs::OFlags;
use std::path::Path;

use super::check::{Check, Setup};
use crate::device::Gpu;
use crate::disk;
use crate::finding::of_another_user;
use crate::profiler::{NCU_LOCK, Trouble};

/// Less free space than this in a folder is a warning, in bytes.
const LITTLE: u64 = 1 << 30;
/// With less than this, builds and recordings fail, in bytes.
const TOO_LITTLE: u64 = 64 << 20;

pub(super) fn checks(setup: &Setup<'_>, gpu: Option<&Gpu>, checks: &mut Vec<Check>) {
    let config = setup.config;
    checks.extend(gpu.map(lock));
    checks.push(ncu_lock());
    if setup.configured {
        checks.push(free_space("work folder", &config.work));
    }
    checks.push(free_space("temporary folder", &std::env::temp_dir()));
}

fn lock(gpu: &Gpu) -> Check {
    let path = gpu.lock_path();
    match gpu.try_lock() {
        Ok(Some(_)) => Check::ok("GPU lock", format!("free ({})", path.display())),
        // A lock ends with its process, so its holder is alive.
        Ok(None) => {
            let (who, next) = match gpu.lock_holder() {
                Some((pid @ 1.., name)) => (
                    format!(
                        "process {pid} ({})",
                        name.as_deref().unwrap_or("with an unknown name")
                    ),
                    format!("wait for it, or end it: kill {pid}"),
                ),
                _ => (
                    "a process that is not visible here, perhaps of another container".to_owned(),
                    format!("find its holder on the host: fuser -v {}", path.display()),
                ),
            };
            Check::warn(
                "GPU lock",
                format!(
                    "{} is locked by {who}, which is running; this tool waits for it",
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

/// Several ncu take turns by a file. The first user's file stays, and no other user can open it.
fn ncu_lock() -> Check {
    const WHAT: &str = "ncu lock";
    let path = std::env::temp_dir().join(NCU_LOCK);
    if !disk::is_there(&path) {
        return Check::ok(WHAT, format!("none ({})", path.display()));
    }
    // As ncu does: systems reject "create" for another user's file in a folder that everybody may
    // write.
    let opened = disk::open_as(&path, OFlags::WRONLY | OFlags::CREATE, 0o666);
    match opened {
        Ok(_) => Check::ok(WHAT, format!("can be taken ({})", path.display())),
        Err(error) => Check::fail(
            WHAT,
            format!("ncu cannot open {}: {error}", path.display()),
            Trouble::Locked.code().next_step_of(None),
        ),
    }
}

fn free_space(what: &'static str, folder: &Path) -> Check {
    // A folder that does not exist yet will be made in the nearest one that does.
    let there = folder
        .ancestors()
        .find(|folder| disk::is_there(folder))
        .unwrap_or(folder);
    if !disk::is_dir(there) {
        let detail = format!("{} is not a folder", there.display());
        return Check::fail(what, detail, "remove it, or set another folder");
    }
    if let Err(error) = disk::may_change(there) {
        let next = of_another_user(there);
        let next = next.unwrap_or_else(|| "let this user write it, or set another".to_owned());
        let detail = format!("{} cannot be written: {error}", there.display());
        return Check::fail(what, detail, next);
    }
    let free = match rustix::fs::statvfs(there) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(error) => {
            return Check::fail(
                what,
                format!("{}: {error}", folder.display()),
                "create it, or set another",
            );
        }
    };
    let detail = format!(
        "{:.1} GiB free in {}",
        free as f64 / f64::from(1 << 30),
        folder.display()
    );
    let next =
        "free some space, or set another folder: `paths.work`, or TMPDIR for the temporary folder";
    if free < TOO_LITTLE {
        Check::fail(what, detail, next)
    } else if free < LITTLE {
        Check::warn(what, detail, next)
    } else {
        Check::ok(what, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::State;

    #[test]
    fn free_space_is_reported_for_a_folder_that_does_not_exist_yet() {
        let folder = tempfile::tempdir().unwrap();
        let check = free_space("work folder", &folder.path().join("not/yet/there"));
        assert_ne!(check.detail.find("GiB free in "), None, "{check:?}");
        // The filesystem of the kernel's own files has no free space at all.
        assert_eq!(
            free_space("work folder", Path::new("/proc/self")).state,
            State::Fail
        );
    }
}
