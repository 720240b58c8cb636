//! Reports beside ncu's own pages of them: of every form that `ci/record-forms.sh` records, of graphs
//! and of ranges.

use std::collections::BTreeSet;
use std::fs;

use ncu_report::{Launch, Recording, ResultKind, Unit, Value, agree, read_file};

use crate::common;

const DURATION: &str = "gpu__time_duration.sum";

fn recording(file: &str) -> Recording {
    read_file(common::folder().join(file)).unwrap()
}

/// The report of a recording, and its page.
fn pair(name: &str) -> [Recording; 2] {
    ["ncu-rep", "raw.csv"].map(|ending| recording(&format!("{name}.{ending}")))
}

#[test]
fn a_report_of_each_form_agrees_with_ncus_page_of_it_on_every_metric() {
    let (mut compared, mut files) = (0, 0);
    for folder in ["", "forms/"] {
        for entry in fs::read_dir(common::folder().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(name) = name.strip_suffix(".raw.csv") else {
                continue;
            };
            let [report, page] = pair(&format!("{folder}{name}"));
            let launches = report.launches.iter();
            let counters: BTreeSet<&str> = launches
                .flat_map(|launch| launch.metrics.keys())
                .map(|counter| &**counter)
                // The page has other breakdowns, and names the units of what ncu derived.
                .filter(|it| !it.starts_with("breakdown:") && !it.starts_with("group:"))
                .collect();
            let counters: Vec<&str> = counters.into_iter().collect();
            assert_eq!(agree(&report, &page, &counters), Ok(()), "{name}");
            compared += counters.len() * report.launches.len();
            files += 1;
        }
    }
    assert!(
        compared > 28_000 && files > 16,
        "{compared} values of {files} files"
    );
}

#[test]
fn a_page_describes_its_launches_as_the_report_does() {
    let described = |launch: &Launch| {
        let place = (
            launch.process_id, launch.device, launch.context, launch.stream,
        );
        let function = launch.kernel.function.clone();
        (launch.kind, function, place, launch.compute_capability)
    };
    for name in common::IN_EVERY_FORM {
        let [report, page] = pair(name);
        for (ours, theirs) in report.launches.iter().zip(&page.launches) {
            assert_eq!(described(ours), described(theirs), "{name}");
            assert_eq!(ours.compute_capability, Some((9, 0)), "{name}");
        }
    }
}

#[test]
fn a_step_beyond_the_rounding_is_a_disagreement_and_a_step_within_is_none() {
    let counter = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
    let [report, page] = pair("four_metrics");
    let with = |value: f64| {
        let mut report = report.clone();
        report.launches[0].metrics.get_mut(counter).unwrap().value = Value::Float(value);
        agree(&report, &page, &[counter])
    };
    let printed = page.launches[0].number(counter).unwrap();
    assert_eq!(page.rounding.half_step(counter), 0.005);
    assert_eq!(with(printed + 0.0049), Ok(()));
    assert_eq!(with(printed - 0.0049), Ok(()));
    assert!(with(printed + 0.0051).is_err());
    assert!(with(f64::NAN).is_err());
    let (below, tolerance) = (printed - 0.0051, 0.005 + 4.0 * f64::EPSILON * printed);
    assert_eq!(
        with(below).unwrap_err(),
        format!(
            "launch 0: {counter} is {below} in the report and {printed} on the CSV page, which \
             rounds by {tolerance:e} at most"
        )
    );
}

#[test]
fn launches_that_differ_in_count_shape_unit_or_metrics_disagree() {
    let [report, page] = pair("two_kernels_three_times");
    let after = |change: fn(&mut Vec<Launch>)| {
        let mut page = page.clone();
        change(&mut page.launches);
        agree(&report, &page, &[DURATION, "no__such_metric.sum"])
    };
    assert_eq!(after(|_| ()), Ok(()));
    assert_eq!(
        after(|launches| launches.truncate(5)),
        Err("the report has 6 launches, the CSV page 5".to_owned())
    );
    let error = after(|launches| launches[4].grid[1] = 2).unwrap_err();
    assert!(
        error.starts_with("launch 4: grid and block are [1"),
        "{error}"
    );
    let of_cycles = |launches: &mut Vec<Launch>| {
        launches[1].metrics.get_mut(DURATION).unwrap().unit = Unit::Known(&"cycle");
    };
    let error = after(of_cycles).unwrap_err();
    let of_unit = "launch 1: the unit of gpu__time_duration.sum is \"ns\" in the report, \"cycle\"";
    assert!(error.starts_with(of_unit), "{error}");
    let without = |launches: &mut Vec<Launch>| {
        let metrics = launches[0].metrics.iter();
        let others = metrics.filter(|(name, _)| &***name != DURATION);
        launches[0].metrics = others
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
    };
    let error = after(without).unwrap_err();
    assert!(error.contains("missing on the CSV page"), "{error}");
}

#[test]
fn what_a_launch_was_and_where_it_ran_is_told_apart() {
    let launches = |name: &str| recording(&format!("{name}.ncu-rep")).launches;
    let seen = |name: &str, what: fn(&Launch) -> Option<u32>| -> Vec<u32> {
        let launches = launches(&format!("forms/{name}"));
        launches.iter().filter_map(what).collect()
    };
    assert_eq!(seen("contexts", |one| one.context), [1, 2, 2, 2, 2]);
    assert_eq!(seen("contexts", |one| one.stream), [7, 22, 22, 23, 23]);
    assert_eq!(seen("devices", |one| one.device), [0, 0, 1, 1]);
    let processes = seen("processes", |one| one.process_id);
    assert!(processes[..3].iter().all(|id| *id == processes[0]) && processes[3] != processes[0]);
    use ResultKind::{Graph, Kernel, Range};
    for (name, kinds) in [
        ("graph_after_kernels", vec![Kernel, Kernel, Kernel, Graph]),
        ("forms/graph_whole", vec![Kernel, Graph, Graph]),
        ("forms/graph_nodes", vec![Kernel; 5]),
        ("forms/range_replay", vec![Range; 2]),
        ("forms/app_range", vec![Range; 2]),
    ] {
        let launches = launches(name);
        let mut found: Vec<ResultKind> = launches.iter().map(|launch| launch.kind).collect();
        found.sort_by_key(|kind| *kind != Kernel);
        assert_eq!(found, kinds, "{name}");
    }
}
