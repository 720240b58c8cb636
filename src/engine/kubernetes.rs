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
    let settings = &task.settings.kubernetes;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    // Kueue starts a job that names its queue.
    let queue = settings.queue.as_ref().map_or_else(String::new, |queue| {
        format!("\n    kueue.x-k8s.io/queue-name: {}", quoted(queue))
    });
    filled(
        include_str!("templates/kubernetes.yml"),
        &[
            ("N", &task.slices.to_string()),
            ("MADE", &task.made("kubernetes")),
            ("SECONDS", &(task.minutes() * 60).to_string()),
            ("ARCHIVE", &task.archive(None)),
            ("MERGE", &task.merge(|slice| format!("slices/{slice}"))),
            ("IMAGE", &quoted(&settings.image)),
            ("CLAIM", &quoted(&settings.claim)),
            ("QUEUE", &queue),
        ],
    )
}
