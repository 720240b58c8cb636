//! Kernels that are slow on purpose, measured on an H200, are caught in the place of
//! `bsr_gemm/cp_async`, each with the finding that names its cause.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::{Project, Report};
use serde_json::json;

/// A recorded fault, its findings that deny, and the causes that must be named.
struct Case {
    fault: &'static str,
    denied: &'static [&'static str],
    causes: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        fault: "bank_conflict",
        denied: &["regressed"],
        causes: &["bank-conflicts"],
    },
    Case {
        fault: "uncoalesced",
        denied: &["regressed"],
        causes: &["uncoalesced"],
    },
    Case {
        fault: "spills",
        denied: &["regressed"],
        causes: &["register-spills"],
    },
    Case {
        fault: "extra_sync",
        denied: &["regressed"],
        causes: &["barrier-waits"],
    },
    Case {
        fault: "combined",
        denied: &["regressed"],
        causes: &["bank-conflicts", "barrier-waits"],
    },
    Case {
        fault: "no_tensor_cores",
        denied: &["regressed", "work-changed"],
        causes: &["lost-tensor-cores"],
    },
];

/// A check of what was recorded of a fault as if the source of `cp_async` had become it. `name` is
/// the kernel's.
fn check(fault: &str, name: Option<&str>, code: i32) -> Report {
    let project = Project::shipped();
    let config = project.read("config.toml");
    // They were recorded in one process each.
    let config = config.replace("\nprocesses = 4", "\nprocesses = 1");
    let config = config.replace("expect = [\"bsr_gemm_cp_async\"]\n", "");
    project.write("config.toml", config);
    let recorded = format!("ci/recordings/faults/faults/{fault}/profile.json");
    let text = std::fs::read_to_string(common::repository().join(recorded)).unwrap();
    project.write(&Project::profile_path("cp_async"), text);
    project.edit_profile("cp_async", |profile| {
        profile["variant"] = json!("bsr_gemm/cp_async");
        if let Some(name) = name {
            profile["kernels"][0]["name"] = json!(name);
            profile["kernels"][0]["mangled"] = json!(name);
        }
    });
    project.check(&["bsr_gemm/cp_async"], code)
}

fn causes(report: &Report) -> Vec<String> {
    report.0["variants"][0]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|of_kernel| of_kernel["causes"].as_array().unwrap())
        .map(|cause| cause["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn holds(case: &Case, report: &Report) {
    let denied = report.denied();
    for code in case.denied {
        assert!(
            denied.iter().any(|denied| denied == code),
            "{}: {code} is not among {denied:?}",
            case.fault
        );
    }
    let named = causes(report);
    for cause in case.causes {
        assert!(
            named.iter().any(|named| named == cause),
            "{}: {cause} is not among {named:?}",
            case.fault
        );
    }
    // A person reads it in the finding itself.
    let told = report
        .findings("deny")
        .iter()
        .any(|finding| finding["message"].as_str().unwrap().contains("with it: "));
    assert!(told, "{}", case.fault);
}

#[test]
fn every_slow_kernel_is_caught_with_its_causes_under_the_name_of_the_kernel_it_replaces() {
    for case in CASES {
        let other_work = case.denied.contains(&"work-changed");
        let report = check(
            case.fault,
            Some("bsr_gemm_cp_async"),
            if other_work { 4 } else { 1 },
        );
        holds(case, &report);
    }
}

#[test]
fn every_slow_kernel_is_caught_with_its_causes_under_a_name_of_its_own() {
    for case in CASES {
        let report = check(case.fault, None, 4);
        holds(case, &report);
        assert!(report.denied().contains(&"kernel-renamed".to_owned()));
    }
}
