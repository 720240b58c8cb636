//! GitLab CI.

use super::task::{Engine, Task, filled};

pub(super) static ENGINE: Engine = Engine {
    name: "gitlab",
    help: "Jobs of GitLab CI, with parallel slices",
    most: Some(200),
    has_target: true,
    render,
};

fn render(task: &Task<'_>) -> String {
    filled(
        include_str!("templates/gitlab.yml"),
        &[
            ("N", &task.slices.to_string()),
            ("MADE", &task.made("gitlab")),
            ("MINUTES", &task.minutes().to_string()),
            (
                "ARCHIVE",
                &task.archive(Some("\"${CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-$TARGET}\"")),
            ),
        ],
    )
}
