//! Whether a process on the GPU belongs to this run, as far as `/proc` shows.

use super::state::Owner;
use crate::disk;
use crate::process::{self, is_mark_of, running};

/// Deeper than any real process tree: a walk through a tree that changes meanwhile ends here.
const DEEPEST: usize = 64;

/// The owner of a process on a GPU: one that descends from this process, or carries its mark, is ours,
/// unless it is of a program that got another GPU.
pub(super) fn owner(pid: u32, gpu: &str) -> Owner {
    let pid = i32::try_from(pid).unwrap_or(i32::MAX);
    let Some(stat) = process::stat(pid) else {
        return Owner::Unknown;
    };
    if is_ours(pid, gpu) {
        Owner::Ours
    } else if stat.ended {
        // It lost its environment, and perhaps its parent, so it may have been ours.
        Owner::Unknown
    } else {
        Owner::Other
    }
}

/// Name of a process's program, at most 15 characters of it.
pub(super) fn name(pid: u32) -> Option<String> {
    let name = disk::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

fn is_ours(pid: i32, gpu: &str) -> bool {
    let (lineage, running) = (lineage(pid), running());
    let mark = lineage.iter().find_map(|pid| running.get(pid)).cloned();
    match mark.or_else(|| process::marks(pid).into_iter().next()) {
        Some(mark) => is_mark_of(&mark, gpu),
        // It lost its parent and its mark: it may be of any program that runs.
        None => descends(&lineage) && running.values().all(|mark| is_mark_of(mark, gpu)),
    }
}

/// A process and those above it.
fn lineage(pid: i32) -> Vec<i32> {
    let ancestors = std::iter::successors(Some(pid), |pid| {
        let parent = process::stat(*pid)?.parent;
        (parent != 0).then_some(parent)
    });
    ancestors.take(DEEPEST).collect()
}

fn descends(lineage: &[i32]) -> bool {
    lineage.contains(&std::process::id().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Invocation;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    const GPU: &str = "GPU-1";

    fn program(dir: &Path, gpu: &str, script: &str) -> Invocation {
        Invocation {
            argv: ["sh", "-c", script].map(String::from).to_vec(),
            dir: dir.to_path_buf(),
            env: [("CUDA_VISIBLE_DEVICES".to_owned(), gpu.to_owned())].into(),
            timeout: Duration::from_secs(30),
            stdout: dir.join("out"),
            stderr: dir.join("out"),
        }
    }

    #[test]
    fn a_grandchild_is_ours_unless_it_may_be_of_a_program_on_another_gpu_and_ancestors_are_not() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        assert_eq!(owner(child.id(), GPU), Owner::Ours);
        assert_eq!(owner(grandchild, GPU), Owner::Ours);
        assert_eq!(name(child.id()).as_deref(), Some("sh"));
        // It has no mark. While a program runs that got another GPU, it may be of that.
        let dir = tempfile::tempdir().unwrap();
        let other = program(dir.path(), "GPU-2", "until [ -e seen ]; do sleep 0.1; done");
        std::thread::scope(|scope| {
            scope.spawn(|| other.run().unwrap());
            while !running().values().any(|mark| mark.ends_with("@GPU-2")) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let owner = owner(grandchild, GPU);
            fs::write(dir.path().join("seen"), "").unwrap();
            assert_eq!(owner, Owner::Other);
        });
        let _ = Command::new("kill").arg(grandchild.to_string()).status();
        child.wait().unwrap();
        assert_eq!(
            owner(std::os::unix::process::parent_id(), GPU),
            Owner::Other
        );
        assert_eq!(owner(u32::MAX, GPU), Owner::Unknown);
    }

    #[test]
    fn what_this_tool_ran_on_a_gpu_is_ours_there_alone_after_it_left_the_process_tree() {
        let dir = tempfile::tempdir().unwrap();
        // The shell stays: while a process becomes another program it shows no environment.
        let script = "(setsid sh -c 'echo $$ >new; mv new escaped; sleep 60; :' &); \
                      until [ -e seen ]; do sleep 0.1; done";
        let run = program(dir.path(), GPU, script);
        let escaped = || {
            let text = fs::read_to_string(dir.path().join("escaped")).ok()?;
            let pid: u32 = text.trim().parse().ok()?;
            (!descends(&lineage(pid.cast_signed()))).then_some(pid)
        };
        std::thread::scope(|scope| {
            let running = scope.spawn(|| run.run().unwrap());
            let pid = loop {
                assert!(!running.is_finished(), "nothing left the process tree");
                if let Some(pid) = escaped() {
                    break pid;
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            let owners = [GPU, "GPU-2"].map(|gpu| owner(pid, gpu));
            fs::write(dir.path().join("seen"), "").unwrap();
            assert_eq!(owners, [Owner::Ours, Owner::Other]);
        });
    }
}
