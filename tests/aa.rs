//! Unchanged kernels on several GPUs of one model raise no alarm.

mod common;

use common::Project;

#[test]
fn no_recorded_run_of_unchanged_kernels_on_any_h200_is_an_alarm_or_a_shrug() {
    let project = Project::shipped();
    common::copy(
        &common::repository().join("ci/recordings/aa"),
        &project.path("aa"),
    );
    let mut runs = 0;
    for gpu in std::fs::read_dir(project.path("aa")).unwrap() {
        for run in std::fs::read_dir(gpu.unwrap().path()).unwrap() {
            let folder = run.unwrap().path();
            project
                .run(&["check", "--from", &folder.display().to_string()])
                .exits(0)
                .says("PASS: every gate passed (12 pass)");
            runs += 1;
        }
    }
    assert!(runs >= 12, "{runs} runs");
}
