//! GitHub Actions.

use super::task::{Engine, Task, filled};

pub(super) static ENGINE: Engine = Engine {
    name: "github",
    help: "A workflow of GitHub Actions, with a matrix of slices",
    most: Some(256),
    has_target: true,
    render,
};

fn render(task: &Task<'_>) -> String {
    let list: Vec<String> = (1..=task.slices).map(|slice| slice.to_string()).collect();
    filled(
        include_str!("templates/github.yml"),
        &[
            ("N", &task.slices.to_string()),
            ("LIST", &list.join(", ")),
            ("MADE", &task.made("github")),
            ("MINUTES", &task.minutes().to_string()),
            ("ARCHIVE", &task.archive(Some("\"$TARGET\""))),
        ],
    )
}
