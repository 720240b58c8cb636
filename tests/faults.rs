//! Kernels that are slow on purpose, or do less, measured on an H200 in the place of
//! `bsr_gemm/cp_async`: each is caught, with a finding that names its cause.

use crate::common::{self, Project, Report};

/// A recorded fault, the exit code of its check, the findings that deny, and the causes that must
/// be named.
struct Case {
    fault: &'static str,
    code: i32,
    denied: &'static [&'static str],
    causes: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        fault: "uncoalesced",
        code: 1,
        denied: &["regressed"],
        causes: &["uncoalesced"],
    },
    Case {
        fault: "spills",
        code: 1,
        denied: &["regressed"],
        causes: &["register-spills"],
    },
    Case {
        fault: "extra_sync",
        code: 1,
        denied: &["regressed"],
        causes: &["barrier-waits"],
    },
    Case {
        fault: "combined",
        code: 1,
        denied: &["regressed"],
        causes: &["bank-conflicts", "barrier-waits"],
    },
    Case {
        fault: "renamed",
        code: 4,
        denied: &["kernels-changed", "regressed"],
        causes: &["bank-conflicts"],
    },
    Case {
        fault: "no_tensor_cores",
        code: 4,
        denied: &["kernels-changed", "regressed", "work-changed"],
        causes: &["lost-tensor-cores"],
    },
    Case {
        fault: "less_work",
        code: 5,
        denied: &["work-changed", "numbers-unchecked"],
        causes: &["less-work"],
    },
    Case {
        fault: "skipped_tail",
        code: 5,
        denied: &["kernels-changed", "work-changed", "numbers-unchecked"],
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
fn every_fault_is_caught_with_its_causes() {
    let project = Project::shipped();
    // The faults that have another name are named so; an unexpected kernel would hide the rest.
    let config = project.read("config.toml");
    project.write(
        "config.toml",
        config.replace("expect = [\"bsr_gemm_cp_async\"]\n", ""),
    );
    let target = Project::profile_path("cp_async");
    let good = project.json(&target);
    for case in CASES {
        let fault = case.fault;
        let recorded = format!("ci/recordings/faults/{fault}/bsr_gemm/cp_async/profile.json");
        let recorded = std::fs::read_to_string(common::repository().join(recorded)).unwrap();
        // As a change of the kernel itself reads: its sources are those that are here.
        let mut recorded: serde_json::Value = serde_json::from_str(&recorded).unwrap();
        for key in ["sources", "build_argv"] {
            recorded["provenance"][key] = good["provenance"][key].clone();
        }
        project.write(&target, recorded.to_string());
        let report = project.check(&["bsr_gemm/cp_async"], case.code);
        let denied = report.denied();
        for code in case.denied {
            assert!(
                denied.iter().any(|denied| denied == code),
                "{fault}: {code} is not among {denied:?}"
            );
        }
        let named = causes(&report);
        for cause in case.causes {
            assert!(
                named.iter().any(|named| named == cause),
                "{fault}: {cause} is not among {named:?}"
            );
        }
        // Where the kernel is slower, one sentence says so with what moved.
        let regressed = report.0["variants"][0]["comparisons"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["metric"] == "duration" && one["verdict"] == "regressed");
        let sentence = &report.0["variants"][0]["causes"][0]["duration"];
        assert_eq!(sentence.is_string(), regressed, "{fault}");
        // A person reads it in the finding itself.
        // Less work makes no kernel slower.
        let is_named = regressed && case.causes[0] != "less-work";
        let words = match is_named {
            true => "; with it: ",
            false => "; also changed: ",
        };
        let findings = report.findings("deny");
        let mut messages = findings.iter().map(|one| one["message"].as_str().unwrap());
        assert!(messages.any(|message| message.contains(words)), "{fault}");
        if is_named {
            assert_eq!(named[0], case.causes[0], "{fault}");
        }
    }
}
