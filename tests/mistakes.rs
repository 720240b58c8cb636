//! What a new user gets wrong: each mistake ends with the exit code of its kind, and says what to do.

use sparsek_gate::config::Config;

use crate::common::{Project, contains, rows};

const CONFIG: &str = "[toolchain]\narch = \"sm_90a\"\n[suite.s.variant.v]\nrun = [\"sh\", \"bench.sh\"]\nbuild = [\"sh\", \"build.sh\"]\n";

#[test]
fn a_build_that_the_machine_cannot_do_ends_with_3_and_what_is_missing() {
    let project = Project::empty();
    project.write("config.toml", CONFIG);
    let table = "
cc1plus: error: No space left on device | the disk is full
virtual memory exhausted: Cannot allocate memory | too little memory
ModuleNotFoundError: No module named 'torch' | a Python module is not installed
./tool: error while loading shared libraries: libx.so.1 | a shared library is missing";
    for [output, what] in rows(table) {
        project.write("build.sh", format!("echo \"{output}\" >&2\nexit 1\n"));
        let ran = project.run("build").ends(3, &what);
        ran.says("machine-lacks s/v");
    }
    project.write("build.sh", "echo 'error: expected a ;' >&2\nexit 1\n");
    project.run("build").ends(5, "build-failed");
}

#[test]
fn doctor_reads_the_configuration_as_list_does() {
    let project = Project::empty();
    let config = "[toolchain]\narch = \"sm_90a\"\n[suite.s.variant.v]\nrun = [\"sh\"]\ninputs = [\"ops/*.py\"]\n";
    project.write("config.toml", config);
    let listed = project.run("list").exits(2);
    let why = listed
        .err
        .lines()
        .next()
        .unwrap()
        .trim_start_matches("error: ")
        .to_owned();
    let examined = project.run("doctor");
    assert_ne!(examined.code, 0);
    assert!(examined.out.contains(&why), "{why}\n{}", examined.out);
}

#[test]
fn a_tolerance_that_cannot_be_meant_is_reported() {
    let project = Project::whole();
    let check = |config: String| {
        project.write("config.toml", config);
        let report = project.check(&["cp_async"], 0);
        let said = ["message", "next"].map(|key| report.fields("rule-doubtful", key).concat());
        said.concat()
    };
    let own = project.read("config.toml");
    assert_eq!(check(own.clone()), "");
    let both = "{ stored = \"4 %\", against = \"0.5 %\" }";
    let tolerance = |of: &str| format!("{{ stored = \"4 %\", against = \"{of}\" }}");
    let of_active = "[metric.sm_active]";
    let active = format!("{of_active}\nmin = 0.5");
    let (tick, limit) = (
        "0.5 ns of `duration` is less than a tick",
        "the limit 0.5 of `sm_active` is 0.5 %",
    );
    for (from, to, words) in [
        (
            both,
            tolerance("0.03 %"),
            &["0.03 % of `duration`", "write `3 %`"][..],
        ),
        (both, tolerance("0.5"), &[tick, "0.5 %"]),
        (both, tolerance("0.07"), &["7 %"]),
        (of_active, active, &[limit, "write 50 if a share is meant"]),
        (
            "[static.occupancy]",
            "[static.occupancy]\nmin = 0.25".to_owned(),
            &["the limit 0.25 of `occupancy`"],
        ),
    ] {
        contains(&check(own.replacen(from, &to, 1)), words);
    }
}

#[test]
fn metrics_without_a_duration_are_reported_unless_that_is_stated() {
    let own = "[metric.sm_active]\ndirection = \"higher\"\ntolerance = '9'\n";
    for (more, suite, is_reported) in [
        ("", "", true),
        ("", "metrics = [\"sm_active\"]", false),
        ("[metric.duration]\nlevel = \"record\"\n", "", false),
    ] {
        let text = format!("{own}{more}[suite.s]\n{suite}\n[suite.s.variant.v]\nrun = [\"x\"]\n");
        let config = Config::parse("config.toml".as_ref(), &text).unwrap();
        let found = sparsek_gate::evidence::doubtful(&config);
        let said = found.iter().map(|one| &*one.message);
        let is_said = said
            .clone()
            .any(|words| words.starts_with("`duration` is not judged"));
        assert_eq!(
            (is_said, said.count()),
            (is_reported, usize::from(is_reported)),
            "{text}"
        );
    }
}

#[test]
fn a_junit_report_has_a_test_for_each_gated_metric_alone() {
    let project = Project::whole();
    project.check(&["--report", "junit.xml", "cp_async"], 0);
    let report = project.read("junit.xml");
    assert!(
        report.contains("testcase") && !report.contains("<skipped"),
        "{report}"
    );
}
