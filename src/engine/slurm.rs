//! Slurm: an array of jobs, one slice each.

use super::task::{Engine, Task, filled};

pub(super) static ENGINE: Engine = Engine {
    name: "slurm",
    help: "A script that submits an array of slices to Slurm, waits, and judges them",
    // MaxArraySize of Slurm is 1001 unless the cluster says otherwise; sbatch refuses more.
    most: None,
    has_target: false,
    render,
};

fn render(task: &Task<'_>) -> String {
    filled(
        include_str!("templates/slurm.sh"),
        &[
            ("N", &task.slices.to_string()),
            ("MADE", &task.made("slurm")),
            ("ARCHIVE", &task.archive(None)),
        ],
    )
}
