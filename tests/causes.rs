//! Twelve known causes, planted in a recording of an H200: the first cause that is named is the planted
//! one. The configuration states no metric, so all counters are those that every configuration records.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use sparsek_gate::config::Config;
use sparsek_gate::metric::Role;
use sparsek_gate::terms::Tier;

use crate::common::{Project, Report, refresh};

/// What the recording lacks of the counters that are recorded now, as they were read of the same kernel
/// later.
const LACKING: &[(&str, f64)] = &[
    ("sm__cycles_elapsed.sum", 58_777_578.0),
    (TENSOR_FLOP, 68_719_476_736.0),
    ("lts__t_sectors.sum", 66_634_293.0),
    ("lts__throughput.avg.pct_of_peak_sustained_elapsed", 80.21),
    (
        "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
        17.59,
    ),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", 12.21),
    ("launch__registers_per_thread", 248.0),
];

/// Operations on the tensor cores.
const TENSOR_FLOP: &str = "sm__ops_path_tensor_src_fp16.sum";

/// How a counter changes.
#[derive(Clone, Copy)]
enum By {
    Times(f64),
    To(f64),
}
use By::{Times, To};

/// A cause, by how much longer the kernel takes with it, and what its counters read.
struct Planted {
    kind: &'static str,
    slowdown: f64,
    counters: &'static [(&'static str, By)],
}

#[rustfmt::skip]
const PLANTED: [Planted; 12] = [
    Planted { kind: "bank-conflicts", slowdown: 2.1, counters: &[(Role::BankConflicts.counter(), Times(141.0))] },
    Planted { kind: "uncoalesced", slowdown: 2.5, counters: &[(Role::GlobalLoadSectors.counter(), Times(4.0))] },
    // As measured with 128 registers a thread.
    Planted { kind: "register-spills", slowdown: 3.47, counters: &[
        (Role::LocalLoads.counter(), To(19_529_728.0)), (Role::LocalStores.counter(), To(13_434_880.0)),
        (Role::Instructions.counter(), Times(1.89)), (Role::BankConflicts.counter(), Times(7.6)),
        (Role::DramBytesRead.counter(), Times(1.59)), (Role::DramBytesWritten.counter(), Times(2.4)),
    ] },
    // As measured on FMA units.
    Planted { kind: "lost-tensor-cores", slowdown: 8.16, counters: &[
        (TENSOR_FLOP, To(0.0)), (Role::TensorInstructionsHmma.counter(), To(0.0)), (Role::TensorActive.counter(), To(0.0)),
        (Role::Instructions.counter(), Times(21.06)), (Role::FmaInstructions.counter(), Times(73.0)),
        (Role::GlobalStoreSectors.counter(), Times(2.0)), (Role::BankConflicts.counter(), Times(7.5)),
    ] },
    Planted { kind: "more-work", slowdown: 1.5, counters: &[
        (Role::ThreadFfma.counter(), To(40e9)), (Role::FmaInstructions.counter(), Times(1.3)), (Role::Instructions.counter(), Times(1.2)),
    ] },
    Planted { kind: "barrier-waits", slowdown: 1.4, counters: &[(Role::BarrierStall.counter(), To(30.0))] },
    Planted { kind: "stalls", slowdown: 1.8, counters: &[(Role::MemoryStall.counter(), To(55.0))] },
    Planted { kind: "lower-occupancy", slowdown: 1.8, counters: &[
        (Role::WarpsActive.counter(), To(6.1)), (Role::RegistersPerThread.counter(), To(255.0)),
    ] },
    // The data no longer stays in the second-level cache.
    Planted { kind: "more-dram-traffic", slowdown: 1.6, counters: &[
        (Role::DramBytesRead.counter(), Times(3.0)), (Role::DramThroughput.counter(), To(36.0)),
    ] },
    Planted { kind: "more-l2-traffic", slowdown: 1.7, counters: &[
        (Role::L2Sectors.counter(), Times(2.0)), (Role::L2Throughput.counter(), To(94.0)),
    ] },
    Planted { kind: "more-instructions", slowdown: 1.6, counters: &[(Role::Instructions.counter(), Times(1.7))] },
    Planted { kind: "lower-clock", slowdown: 1.3, counters: &[(Role::Clock.counter(), Times(0.76))] },
];

/// A project whose configuration states no metric, with a baseline of all that it records.
fn project() -> Project {
    let project = Project::locked();
    let mut config: toml::Table = project.read("config.toml").parse().unwrap();
    config.remove("metric");
    config.remove("static");
    let suites = config["suite"].as_table_mut().unwrap();
    suites.retain(|name, _| name == "bsr_gemm");
    let suite = suites["bsr_gemm"].as_table_mut().unwrap();
    suite.remove("work");
    let variants = suite["variant"].as_table_mut().unwrap();
    variants.retain(|name, _| name == "cp_async");
    project.write("config.toml", config.to_string());
    let counters = counters(&project, "config.toml");
    project.forge("cp_async", |profile| record(profile, &counters));
    project.edit_profile("cp_async", |profile| record(profile, &counters));
    project
}

/// The counters of the first variant of a configuration, by name.
fn counters(project: &Project, config: &str) -> Vec<(String, String)> {
    let config = Config::load(&project.path(config)).unwrap();
    let counters = config
        .variants()
        .next()
        .unwrap()
        .counters_on(Tier::Counters)
        .into_iter();
    counters
        .map(|(name, (counter, _))| (name, counter))
        .collect()
}

/// Gives a profile these counters alone: from its recording, else those that it lacks; else 0.
fn record(profile: &mut Json, counters: &[(String, String)]) {
    let recorded = profile["identity"]["metrics"].as_object().unwrap().clone();
    let values = profile["kernels"][0]["metrics"].take();
    let (mut metrics, mut series) = (json!({}), json!({}));
    for (name, counter) in counters {
        let mut known = recorded.iter();
        let known = known.find(|(_, metric)| metric["counter"] == counter.as_str());
        let lacking = LACKING.iter().find(|(one, _)| one == counter);
        (metrics[name], series[name]["samples"]) = match known {
            Some((alias, metric)) => (metric.clone(), values[alias.as_str()]["samples"].clone()),
            None => {
                let unit = if counter.contains("pct") { "%" } else { "" };
                let value = lacking.map_or(0.0, |one| one.1);
                let metric = json!({ "counter": counter, "unit": unit, "phase": "counting" });
                (metric, json!([vec![value; 9]]))
            }
        };
        series[name]["value"] = Json::Null;
    }
    profile["identity"]["metrics"] = metrics;
    profile["kernels"][0]["metrics"] = series;
    refresh(profile);
}

/// Changes every sample of a counter.
fn change(profile: &mut Json, counter: &str, by: By) {
    let metrics = profile["identity"]["metrics"].as_object().unwrap();
    let mut names = metrics.iter();
    let name = names.find(|(_, metric)| metric["counter"] == counter);
    let name = name.unwrap().0.clone();
    let samples = profile["kernels"][0]["metrics"][&name]["samples"]
        .as_array_mut()
        .unwrap();
    for sample in samples
        .iter_mut()
        .flat_map(|process| process.as_array_mut().unwrap())
    {
        *sample = match by {
            Times(factor) => json!(sample.as_f64().unwrap() * factor),
            To(value) => json!(value),
        };
    }
}

/// The report on a kernel that takes longer, with these changes and small ones beside them.
fn slower(project: &Project, slowdown: f64, counters: &[(&str, By)]) -> Report {
    let path = Project::profile_path("cp_async");
    let before = project.read(&path);
    project.edit_profile("cp_async", |profile| {
        let mut all = vec![
            (Role::Duration.counter(), Times(slowdown)),
            (Role::SmCycles.counter(), Times(slowdown)),
            // The units of the GPU are used less, as the same is done in a longer time.
            (Role::TensorActive.counter(), Times(1.0 / slowdown)),
            (Role::DramThroughput.counter(), Times(1.0 / slowdown)),
            (Role::L2Throughput.counter(), Times(1.0 / slowdown)),
            (Role::DramBytesRead.counter(), Times(1.065)),
            (Role::Instructions.counter(), Times(1.02)),
            (Role::BankConflicts.counter(), Times(1.1)),
            (Role::BarrierStall.counter(), Times(1.1)),
            (Role::Clock.counter(), Times(0.99)),
        ];
        all.retain(|(small, _)| !counters.iter().any(|(planted, _)| planted == small));
        all.extend(counters);
        for (counter, by) in all {
            change(profile, counter, by);
        }
        refresh(profile);
    });
    let report = project.run("check --from recorded --format json").json();
    project.write(&path, before);
    report
}

#[test]
fn the_first_cause_that_is_named_is_the_planted_one() {
    let project = project();
    for planted in &PLANTED {
        let report = slower(&project, planted.slowdown, planted.counters);
        let causes = report.variant("cp_async")["causes"][0]["causes"].clone();
        let first = &causes[0];
        assert_eq!(first["kind"], planted.kind, "{causes:#}");
        let share = first["share"].as_f64().unwrap_or(0.0);
        assert!(share > 0.6, "{causes:#}");
        // The finding names it first, with its share, and with it nothing that explains little.
        let findings = report.0["findings"].as_array().unwrap().iter();
        let mut of_time = findings.filter(|one| one["metric"] == "duration");
        let finding = of_time.next().unwrap();
        let named = finding["cause"].as_array().unwrap();
        let words = format!(
            "{}, up to {} % of the added time",
            first["text"].as_str().unwrap(),
            (share * 100.0).floor()
        );
        assert_eq!(named[0], words.as_str());
        let message = finding["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("; with it: {words}")),
            "{message}"
        );
        let causes = causes.as_array().unwrap().iter();
        let many = causes.filter(|cause| cause["share"].as_f64().unwrap_or(0.0) >= 1.0 / 3.0);
        assert_eq!(many.count(), named.len(), "{message}");
    }
    let kinds: BTreeSet<&str> = PLANTED.iter().map(|planted| planted.kind).collect();
    assert_eq!(kinds.len(), PLANTED.len());
}

#[test]
fn what_is_smaller_than_the_effect_is_no_cause() {
    let project = project();
    // Hardly anything is written: 6.5 % of what is read is 6 % of the traffic.
    let write_less = |profile: &mut Json| {
        change(profile, Role::DramBytesWritten.counter(), Times(0.05));
        refresh(profile);
    };
    project.forge("cp_async", write_less);
    project.edit_profile("cp_async", write_less);
    let report = slower(&project, 2.1, &[]);
    let findings = report.0["findings"].as_array().unwrap().iter();
    let mut of_time = findings.filter(|one| one["metric"] == "duration");
    let message = of_time.next().unwrap()["message"].as_str().unwrap();
    assert!(!message.contains("with it: "), "{message}");
    let also = message.split("; also changed: ").nth(1).unwrap();
    assert!(
        also.contains("more DRAM traffic: DRAM reads +6.5 %"),
        "{message}"
    );
}

#[test]
fn every_configuration_records_what_the_causes_need() {
    let project = project();
    project.run("init --config new.toml").exits(0);
    for config in ["config.toml", "new.toml"] {
        let counters = counters(&project, config);
        let planted = PLANTED.iter().flat_map(|planted| planted.counters);
        for (needed, _) in planted.filter(|(counter, _)| Role::of(counter).is_some()) {
            let is_recorded = counters.iter().any(|(_, counter)| counter == needed);
            assert!(is_recorded, "{config}: {needed} is not among {counters:?}");
        }
    }
}
