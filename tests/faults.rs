//! Kernels that are wrong or slow on purpose, recorded in the place of `bsr_gemm/cp_async`, are
//! caught, each with the finding that names its cause.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::{Project, Report};

/// A folder of recordings, what a check of it exits with, its findings that deny, and the causes
/// that are named.
struct Case {
    folder: &'static str,
    code: i32,
    denied: &'static [&'static str],
    causes: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        folder: "h200-worse",
        code: 1,
        denied: &["regressed"],
        causes: &["bank-conflicts"],
    },
    Case {
        folder: "faults/uncoalesced",
        code: 1,
        denied: &["regressed"],
        causes: &["uncoalesced"],
    },
    Case {
        folder: "faults/spills",
        code: 1,
        denied: &["regressed"],
        causes: &["register-spills"],
    },
    Case {
        folder: "faults/extra_sync",
        code: 1,
        denied: &["regressed"],
        causes: &["barrier-waits"],
    },
    Case {
        folder: "faults/combined",
        code: 1,
        denied: &["regressed"],
        causes: &["bank-conflicts", "barrier-waits"],
    },
    Case {
        folder: "faults/renamed",
        code: 4,
        denied: &["kernel-renamed", "regressed"],
        causes: &["bank-conflicts"],
    },
    Case {
        folder: "faults/no_tensor_cores",
        code: 4,
        denied: &["kernel-renamed", "regressed", "work-changed"],
        causes: &["lost-tensor-cores"],
    },
    Case {
        folder: "faults/less_work",
        code: 4,
        denied: &["work-changed"],
        causes: &["less-work"],
    },
    Case {
        folder: "faults/skipped_tail",
        code: 4,
        denied: &["kernel-renamed", "work-changed"],
        causes: &["less-work"],
    },
];

fn causes(report: &Report) -> Vec<String> {
    report.0["variants"][0]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|of_kernel| of_kernel["causes"].as_array().unwrap())
        .map(|cause| cause["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_recorded_fault_is_caught_with_the_finding_that_names_its_cause() {
    let project = Project::shipped();
    let recordings = common::repository().join("ci/recordings");
    for case in CASES {
        let folder = recordings.join(case.folder).display().to_string();
        let report = project
            .run(&[
                "check",
                "bsr_gemm/cp_async",
                "--from",
                &folder,
                "--format",
                "json",
            ])
            .exits(case.code)
            .json();
        let denied = report.denied();
        for code in case.denied {
            assert!(
                denied.iter().any(|denied| denied == code),
                "{}: {code} is not among {denied:?}",
                case.folder
            );
        }
        let named = causes(&report);
        for cause in case.causes {
            assert!(
                named.iter().any(|named| named == cause),
                "{}: {cause} is not among {named:?}",
                case.folder
            );
        }
        // A person reads it in the finding itself.
        let texts: Vec<&str> = report
            .findings("deny")
            .iter()
            .filter_map(|finding| finding["message"].as_str())
            .collect();
        assert!(
            texts.iter().any(|text| text.contains("with it: ")),
            "{}: {texts:?}",
            case.folder
        );
    }
}

#[test]
fn a_kernel_that_does_less_is_faster_and_no_improvement() {
    let project = Project::shipped();
    let folder = common::repository().join("ci/recordings/faults/less_work");
    let report = project
        .run(&[
            "check",
            "bsr_gemm/cp_async",
            "--from",
            &folder.display().to_string(),
            "--format",
            "json",
        ])
        .exits(4)
        .json();
    let duration = report.comparison("cp_async", "duration");
    let (before, now) = (
        duration["reference"]["value"].as_f64().unwrap(),
        duration["current"]["value"].as_f64().unwrap(),
    );
    assert!(now < before, "{before} to {now}");
    assert_eq!(report.verdict("cp_async", "duration"), "inconclusive");
}
