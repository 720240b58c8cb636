//! Reports of every form that `ci/record-forms.sh` records, beside ncu's own pages of them.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::collections::BTreeSet;
use std::fs;

use ncu_report::{Launch, Recording, ResultKind, agree, read_file};

fn form(name: &str) -> Recording {
    read_file(common::folder().join("forms").join(name)).unwrap()
}

#[test]
fn a_report_of_each_form_agrees_with_ncus_page_of_it_on_every_metric() {
    if common::recordings_are_absent() {
        return;
    }
    let (mut compared, mut files) = (0, 0);
    for entry in fs::read_dir(common::folder().join("forms")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".raw.csv") else {
            continue;
        };
        let (report, page) = (
            form(&format!("{name}.ncu-rep")),
            form(&format!("{name}.raw.csv")),
        );
        let counters = report
            .launches
            .iter()
            .flat_map(|launch| launch.metrics.keys());
        let counters: BTreeSet<&str> = counters
            .map(|counter| &**counter)
            // The page has other breakdowns, and names the units of what ncu derived.
            .filter(|counter| !counter.starts_with("breakdown:") && !counter.starts_with("group:"))
            .collect();
        let counters: Vec<&str> = counters.into_iter().collect();
        assert_eq!(agree(&report, &page, &counters), Ok(()), "{name}");
        compared += counters.len() * report.launches.len();
        files += 1;
    }
    assert!(
        compared > 15_000 && files > 10,
        "{compared} values of {files} files"
    );
}

#[test]
fn what_a_launch_was_and_where_it_ran_is_told_apart() {
    if common::recordings_are_absent() {
        return;
    }
    let seen = |name: &str, what: fn(&Launch) -> Option<u32>| -> Vec<u32> {
        let launches = form(&format!("{name}.ncu-rep")).launches;
        launches
            .iter()
            .map(|launch| what(launch).unwrap())
            .collect()
    };
    assert_eq!(seen("contexts", |one| one.context), [1, 2, 2, 2, 2]);
    assert_eq!(seen("contexts", |one| one.stream), [7, 22, 22, 23, 23]);
    assert_eq!(seen("devices", |one| one.device), [0, 0, 1, 1]);
    let processes = seen("processes", |one| one.process_id);
    assert!(processes[..3].iter().all(|id| *id == processes[0]) && processes[3] != processes[0]);
    for (name, kinds) in [
        (
            "graph_whole",
            vec![ResultKind::Kernel, ResultKind::Graph, ResultKind::Graph],
        ),
        ("graph_nodes", vec![ResultKind::Kernel; 5]),
        ("range_replay", vec![ResultKind::Range; 2]),
        ("app_range", vec![ResultKind::Range; 2]),
    ] {
        let launches = form(&format!("{name}.ncu-rep")).launches;
        let mut found: Vec<ResultKind> = launches.iter().map(|launch| launch.kind).collect();
        found.sort_by_key(|kind| *kind != ResultKind::Kernel);
        assert_eq!(found, kinds, "{name}");
    }
}
