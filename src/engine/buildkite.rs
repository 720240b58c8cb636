//! Buildkite.

use super::task::{Engine, Task, filled};

pub(super) static ENGINE: Engine = Engine {
    name: "buildkite",
    help: "A pipeline of Buildkite, with parallel slices",
    most: None,
    has_target: true,
    render,
};

fn render(task: &Task<'_>) -> String {
    // `$$` is a dollar sign once the pipeline is uploaded.
    let uploaded = |text: String| text.replace('$', "$$");
    filled(
        include_str!("templates/buildkite.yml"),
        &[
            ("N", &task.slices.to_string()),
            ("MADE", &uploaded(task.made("buildkite"))),
            ("MINUTES", &task.minutes().to_string()),
            ("ARCHIVE", &uploaded(task.archive(Some("\"$TARGET\"")))),
        ],
    )
}
