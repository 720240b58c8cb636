//! Reports whose form differs from the plain ones: NVIDIA's own CSV of the same report is the
//! oracle.

use ncu_report::{Recording, ResultKind, csv, report};

const COUNTERS: [&str; 2] = [
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__time_duration.sum",
];

fn pair(name: &str) -> (Recording, Recording) {
    let read = |ending: &str| std::fs::read(format!("tests/data/ncu/{name}.{ending}")).ok();
    let report = read("ncu-rep").and_then(|bytes| report::read(&bytes).ok());
    let page = read("raw.csv").and_then(|bytes| csv::read(&bytes).ok());
    (report.unwrap_or_default(), page.unwrap_or_default())
}

#[test]
fn a_graph_profiled_after_kernels_counts_its_names_on_from_theirs() {
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
    csv::agree(&report, &page, &asked).unwrap();
}

#[test]
fn a_page_with_columns_of_nvtx_ranges_is_read() {
    let (report, page) = pair("nvtx_range");
    assert_eq!(page.launches.len(), 4);
    assert!(
        report
            .launches
            .iter()
            .all(|launch| COUNTERS.iter().all(|name| launch.number(name).is_some()))
    );
    csv::agree(&report, &page, &COUNTERS).unwrap();
}
