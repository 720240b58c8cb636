//! Reports with a CUDA graph and with NVTX ranges, against ncu's own CSV of the same report.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use ncu_report::{Recording, ResultKind, agree, csv, report};

const COUNTERS: [&str; 2] = [
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__time_duration.sum",
];

fn pair(name: &str) -> (Recording, Recording) {
    let bytes = |ending: &str| common::bytes(&format!("{name}.{ending}"));
    (
        report::read(&bytes("ncu-rep")).unwrap(),
        csv::read(&bytes("raw.csv")).unwrap(),
    )
}

#[test]
fn the_names_of_a_graph_after_kernels_continue_those_of_the_kernels() {
    if common::recordings_are_absent() {
        return;
    }
    let (report, page) = pair("graph_after_kernels");
    let kinds: Vec<ResultKind> = report.launches.iter().map(|launch| launch.kind).collect();
    assert_eq!(kinds[..3], [ResultKind::Kernel; 3]);
    assert_eq!(kinds[3..], [ResultKind::Graph]);
    let names: Vec<&str> = report.launches[3]
        .metrics
        .keys()
        .map(|name| &**name)
        .collect();
    assert!(names.contains(&"launch__graph_is_device_launchable"));
    let asked: Vec<&str> = names
        .into_iter()
        .filter(|name| !name.contains(':'))
        .collect();
    agree(&report, &page, &asked).unwrap();
}

#[test]
fn a_page_with_columns_of_nvtx_ranges_is_read() {
    if common::recordings_are_absent() {
        return;
    }
    let (report, page) = pair("nvtx_range");
    assert_eq!(page.launches.len(), 4);
    assert!(
        report
            .launches
            .iter()
            .all(|launch| COUNTERS.iter().all(|name| launch.number(name).is_some()))
    );
    agree(&report, &page, &COUNTERS).unwrap();
}
