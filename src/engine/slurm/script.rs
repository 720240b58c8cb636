//! The command line of sbatch, and the script of one slice.

use crate::config::{ContainerRuntime, SlurmSettings};
use crate::engine::task::{Engine, Task, filled};
use crate::process::shell_line;

pub(in crate::engine) static ENGINE: Engine = Engine {
    name: "slurm",
    help: "A script that submits an array of slices to Slurm",
    // MaxArraySize of Slurm is 1001 unless the cluster says otherwise; sbatch refuses more.
    most: None,
    has_target: false,
    render,
};

/// The name of the jobs of a script that a person submits.
const NAME: &str = "sparsek-gate";

fn render(task: &Task<'_>) -> String {
    let settings = &task.settings.slurm;
    let mut sbatch = options(settings, NAME, task.slices, limit_minutes(task));
    sbatch.extend(["--wait", "--output=logs/slice-%a.log"].map(str::to_owned));
    let slice = slice(&Script {
        settings,
        slices: task.slices,
        program: "sparsek-gate",
        folder: None,
    });
    filled(
        include_str!("../templates/slurm.sh"),
        &[
            ("N", &task.slices.to_string()),
            ("MADE", &task.made("slurm")),
            ("ARCHIVE", &task.archive(None)),
            ("SBATCH", &shell_line(&sbatch)),
            ("SLICE", slice.trim_end()),
            ("MERGE", &task.merge(|slice| format!("slices/{slice}"))),
        ],
    )
}

/// The time limit of one slice, in minutes: what the plan says, or what the configuration allows.
pub(super) fn limit_minutes(task: &Task<'_>) -> u64 {
    let most = task.settings.slurm.time_limit_min.map(u64::from);
    most.unwrap_or(u64::MAX).min(task.minutes())
}

/// sbatch with the options of a configuration. What the configuration adds comes last, so it
/// takes precedence.
pub(super) fn options(
    settings: &SlurmSettings,
    name: &str,
    slices: u32,
    minutes: u64,
) -> Vec<String> {
    let mut argv = vec![
        "sbatch".to_owned(),
        format!("--job-name={name}"),
        format!("--array=1-{slices}"),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        format!("--gres={}", settings.gres),
        format!("--time={minutes}"),
        "--requeue".to_owned(),
        // What a slice printed before its node failed stays.
        "--open-mode=append".to_owned(),
    ];
    for (option, value) in [
        ("partition", &settings.partition),
        ("account", &settings.account),
        ("constraint", &settings.constraint),
    ] {
        argv.extend(value.iter().map(|value| format!("--{option}={value}")));
    }
    argv.extend(settings.args.iter().cloned());
    argv
}

/// What the script of a slice is made of.
pub(super) struct Script<'a> {
    pub settings: &'a SlurmSettings,
    pub slices: u32,
    /// The program: a name on the PATH, or a path.
    pub program: &'a str,
    /// The folder of archive, slices and logs; `None`: the one that sbatch was called in.
    pub folder: Option<&'a str>,
}

/// The script of one slice, for sh. Where the folder is known it says how it ended, so that nobody
/// has to ask Slurm all the time.
pub(super) fn slice(script: &Script<'_>) -> String {
    let Script {
        settings,
        slices,
        program,
        folder,
    } = script;
    let mut lines = vec!["#!/bin/sh".to_owned(), "set -eu".to_owned()];
    let word = |text: &str| shell_line(&[text.to_owned()]);
    if let Some(folder) = folder {
        lines.push(format!("cd {}", word(folder)));
        lines.push("rm -f \"ended/$SLURM_ARRAY_TASK_ID\"".to_owned());
        lines.push("trap 'echo $? >\"ended/$SLURM_ARRAY_TASK_ID\"' EXIT".to_owned());
    }
    lines.extend(settings.prolog.iter().cloned());
    let here = folder.map_or_else(|| "\"$PWD\"".to_owned(), word);
    let container = settings.container.as_ref().map(|(image, runtime)| {
        let image = word(image);
        match runtime {
            ContainerRuntime::Pyxis => format!(
                "srun --container-image={image} --container-mounts={here}:{here} --container-workdir={here} "
            ),
            ContainerRuntime::Apptainer => {
                format!("apptainer exec --nv --bind {here}:{here} --pwd {here} {image} ")
            }
        }
    });
    lines.push(format!(
        "{}{} check --archive gate.tar.zst --slice auto/{slices} --slice-output \"slices/$SLURM_ARRAY_TASK_ID\"",
        container.unwrap_or_default(),
        word(program)
    ));
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_gets_the_folder_and_the_gpu() {
        let of = |runtime, folder| {
            let settings = SlurmSettings {
                container: Some(("a.sqsh".to_owned(), runtime)),
                prolog: vec!["module load cuda".to_owned()],
                ..SlurmSettings::default()
            };
            slice(&Script {
                settings: &settings,
                slices: 8,
                program: "./sparsek-gate",
                folder,
            })
        };
        let script = of(ContainerRuntime::Apptainer, Some("/a b"));
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(lines[2], "cd '/a b'");
        assert_eq!(lines[5], "module load cuda");
        assert_eq!(
            lines[6],
            "apptainer exec --nv --bind '/a b':'/a b' --pwd '/a b' a.sqsh ./sparsek-gate check \
             --archive gate.tar.zst --slice auto/8 --slice-output \"slices/$SLURM_ARRAY_TASK_ID\""
        );
        let script = of(ContainerRuntime::Pyxis, None);
        assert!(script.contains(
            "srun --container-image=a.sqsh --container-mounts=\"$PWD\":\"$PWD\" --container-workdir=\"$PWD\" ./sparsek-gate check"
        ), "{script}");
    }
}
