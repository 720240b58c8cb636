//! Kubernetes: an Indexed Job.

use super::task::{Engine, Task, filled};

pub(super) static ENGINE: Engine = Engine {
    name: "kubernetes",
    help: "A manifest of Kubernetes, with an Indexed Job of slices",
    most: None,
    has_target: false,
    render,
};

fn render(task: &Task<'_>) -> String {
    filled(
        include_str!("templates/kubernetes.yml"),
        &[
            ("N", &task.slices.to_string()),
            ("MADE", &task.made("kubernetes")),
            ("SECONDS", &(task.minutes() * 60).to_string()),
            ("ARCHIVE", &task.archive(None)),
        ],
    )
}
