//! The command line of sbatch, and the script of one slice.

use std::collections::BTreeSet;

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
    let all = format!("1-{}", task.slices);
    let mut sbatch = options(settings, NAME, &all, limit_minutes(task));
    sbatch.extend(["--wait", "--output=logs/slice-%a.log"].map(str::to_owned));
    let slice = slice(&Script {
        settings,
        slices: task.slices,
        program: "sparsek-gate",
        of_run: None,
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

/// sbatch with the options of a configuration. `slices` is what `--array` takes. What the configuration
/// adds comes last, so it takes precedence.
pub(super) fn options(
    settings: &SlurmSettings,
    name: &str,
    slices: &str,
    minutes: u64,
) -> Vec<String> {
    let mut argv = vec![
        "sbatch".to_owned(),
        format!("--job-name={name}"),
        format!("--array={slices}"),
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

/// The option that keeps a job from nodes, among them those that the configuration excludes: the last
/// option of that name is the only one that counts. `None` where there are none.
pub(super) fn exclude(settings: &SlurmSettings, nodes: &BTreeSet<String>) -> Option<String> {
    let mut args = settings.args.iter();
    let mut all = Vec::new();
    while let Some(arg) = args.next() {
        let value = match arg.as_str() {
            "--exclude" | "-x" => args.next().map(String::as_str),
            arg => arg
                .strip_prefix("--exclude=")
                .or_else(|| arg.strip_prefix("-x")),
        };
        all.extend(value);
    }
    all.extend(nodes.iter().map(String::as_str));
    (!nodes.is_empty()).then(|| format!("--exclude={}", all.join(",")))
}

/// What the script of a slice is made of.
pub(super) struct Script<'a> {
    pub settings: &'a SlurmSettings,
    pub slices: u32,
    /// The program: a name on the PATH, or a path.
    pub program: &'a str,
    /// The run that waits for its end; `None`: sbatch was called in the folder of archive, slices and
    /// logs.
    pub of_run: Option<OfRun<'a>>,
}

/// The run that waits for the end of a slice.
#[derive(Clone, Copy)]
pub(super) struct OfRun<'a> {
    /// The folder of archive, slices and logs.
    pub folder: &'a str,
    /// Where the script writes how it ended, below that folder.
    pub ended: &'a str,
    /// What comes after the number of the slice in the name of its folder.
    pub suffix: &'a str,
    /// Whether the slice goes on with an interrupted one.
    pub resume: bool,
}

/// The script of one slice, for sh. Where a run waits for it, it writes how it ended and on which node,
/// so that nobody has to ask Slurm all the time.
pub(super) fn slice(script: &Script<'_>) -> String {
    let Script {
        settings,
        slices,
        program,
        of_run,
    } = script;
    let mut lines = vec!["#!/bin/sh".to_owned(), "set -eu".to_owned()];
    let word = |text: &str| shell_line(&[text.to_owned()]);
    if let Some(OfRun { folder, ended, .. }) = of_run {
        lines.push(format!("cd {}", word(folder)));
        lines.push(format!("ended=\"{ended}/$SLURM_ARRAY_TASK_ID\""));
        lines.push("rm -f \"$ended\"".to_owned());
        lines.push("trap 'echo \"$? ${SLURMD_NODENAME-}\" >\"$ended\"' EXIT".to_owned());
    }
    lines.extend(settings.prolog.iter().cloned());
    let here = of_run.map_or_else(|| "\"$PWD\"".to_owned(), |run| word(run.folder));
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
    let suffix = of_run.map_or("", |run| run.suffix);
    let mut line = format!(
        "{}{} check --archive gate.tar.zst --slice auto/{slices} --slice-output \"slices/$SLURM_ARRAY_TASK_ID{suffix}\"",
        container.unwrap_or_default(),
        word(program)
    );
    if let Some(run) = of_run {
        line.push_str(" --of-run");
        line.push_str(if run.resume { " --resume" } else { "" });
    }
    lines.push(line);
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_gets_the_folder_and_the_gpu() {
        let of = |runtime, of_run| {
            let settings = SlurmSettings {
                container: Some(("a.sqsh".to_owned(), runtime)),
                prolog: vec!["module load cuda".to_owned()],
                ..SlurmSettings::default()
            };
            slice(&Script {
                settings: &settings,
                slices: 8,
                program: "./sparsek-gate",
                of_run,
            })
        };
        let of_run = OfRun {
            folder: "/a b",
            ended: "jobs/2/ended",
            suffix: "-repeat",
            resume: true,
        };
        let script = of(ContainerRuntime::Apptainer, Some(of_run));
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(lines[2], "cd '/a b'");
        assert_eq!(lines[6], "module load cuda");
        assert_eq!(
            lines[7],
            "apptainer exec --nv --bind '/a b':'/a b' --pwd '/a b' a.sqsh ./sparsek-gate check \
             --archive gate.tar.zst --slice auto/8 \
             --slice-output \"slices/$SLURM_ARRAY_TASK_ID-repeat\" --of-run --resume"
        );
        let script = of(ContainerRuntime::Pyxis, None);
        assert!(script.contains(
            "srun --container-image=a.sqsh --container-mounts=\"$PWD\":\"$PWD\" --container-workdir=\"$PWD\" ./sparsek-gate check"
        ), "{script}");
    }

    #[test]
    fn nodes_are_excluded_beside_those_of_the_configuration() {
        let excluded = |args: &[&str], nodes: &[&str]| {
            let settings = SlurmSettings {
                args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                ..SlurmSettings::default()
            };
            let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
            exclude(&settings, &nodes)
        };
        assert_eq!(excluded(&["--exclude=a"], &[]), None);
        for args in [
            &["--exclude=a,b[1-2]"][..],
            &["--exclude", "a,b[1-2]"],
            &["-xa,b[1-2]"],
            &["--qos=x", "-x", "a,b[1-2]", "--mem=1G"],
        ] {
            let option = excluded(args, &["c", "d"]);
            assert_eq!(option.as_deref(), Some("--exclude=a,b[1-2],c,d"));
        }
        assert_eq!(excluded(&[], &["c"]).as_deref(), Some("--exclude=c"));
    }
}
