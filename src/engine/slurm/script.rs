//! The command line of sbatch, and the script of one slice.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{ContainerRuntime, SlurmSettings};
use crate::engine::task::{Engine, Task, filled};
use crate::files::read_text_up_to;
use crate::process::shell_line;

pub(in crate::engine) static ENGINE: Engine = Engine {
    name: "slurm",
    help: "A script that submits an array of slices to Slurm",
    // MaxArraySize of Slurm is 1001 unless the cluster says otherwise; sbatch refuses more.
    most: None,
    has_target: false,
    render,
};

/// The most of a file with names of nodes, in bytes.
const MOST_NAMES: u64 = 1 << 20;
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

/// The option that keeps a job from nodes, among them those that the configuration excludes: only the
/// last option of that name counts. `None` where there are none.
pub(super) fn exclude(settings: &SlurmSettings, nodes: &BTreeSet<String>) -> Option<String> {
    let args = settings.args.iter();
    let own = args.filter_map(|arg| arg.strip_prefix("--exclude="));
    let mut all: Vec<String> = own.map(names_in).collect();
    all.extend(nodes.iter().cloned());
    (!nodes.is_empty()).then(|| format!("--exclude={}", all.join(",")))
}

/// The nodes that a value of `--exclude` names: with a `/` it is a file of them.
fn names_in(value: &str) -> String {
    let text = value
        .contains('/')
        .then(|| read_text_up_to(Path::new(value), MOST_NAMES));
    let names = text.and_then(Result::ok).map(|text| {
        let names = text.split(|part: char| part == ',' || part.is_whitespace());
        let names = names.filter(|name| !name.is_empty());
        names.collect::<Vec<&str>>().join(",")
    });
    names.unwrap_or_else(|| value.to_owned())
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
    /// The folder below it of what is noted of the job.
    pub job: &'a str,
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
    if let Some(OfRun { folder, job, .. }) = of_run {
        lines.push(format!("cd {}", word(folder)));
        lines.push(format!("[ ! -e {job}/given-up ] || exit 0"));
        lines.push(format!("ended=\"{job}/ended/$SLURM_ARRAY_TASK_ID\""));
        lines.push("rm -f \"$ended\"".to_owned());
        lines.push("trap 'echo \"$? ${SLURMD_NODENAME-}\" >\"$ended\"' EXIT".to_owned());
        // bash runs the one above after a signal, too, with the code of what ended before.
        lines.push("trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM".to_owned());
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
            job: "jobs/2",
            suffix: "-repeat",
            resume: true,
        };
        let script = of(ContainerRuntime::Apptainer, Some(of_run));
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(lines[2], "cd '/a b'");
        assert_eq!(lines[8], "module load cuda");
        assert_eq!(
            lines[9],
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
        let option = excluded(&["--qos=x", "--exclude=a,b[1-2]", "--mem=1G"], &["c", "d"]);
        assert_eq!(option.as_deref(), Some("--exclude=a,b[1-2],c,d"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\nb[1-2]\n").unwrap();
        let of_file = format!("--exclude={}", file.path().display());
        let option = excluded(&[&of_file], &["c"]);
        assert_eq!(option.as_deref(), Some("--exclude=a,b[1-2],c"));
        assert_eq!(excluded(&[], &["c"]).as_deref(), Some("--exclude=c"));
    }
}
