//! The reader of CSV pages, on recorded and on damaged pages.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::text;
use ncu_report::{
    Chip, Disagreement, Launch, ReadError, Recording, ResultKind, Value, agree, csv, report,
};

const PAIRS: [&str; 5] = [
    "four_metrics",
    "full_set",
    "graph_as_one",
    "twenty_launches",
    "two_kernels_three_times",
];

fn page(name: &str) -> Recording {
    csv::read(text(name).as_bytes()).unwrap()
}

fn report(name: &str) -> Recording {
    report::read(&common::bytes(&format!("{name}.ncu-rep"))).unwrap()
}

fn kernels(recording: &Recording) -> Vec<&str> {
    recording
        .launches
        .iter()
        .map(|launch| launch.kernel.function.as_str())
        .collect()
}

fn symbol<'a>(launch: &'a Launch, counter: &str) -> Option<&'a str> {
    launch.metrics[counter].unit.symbol()
}

fn error(text: &str) -> String {
    csv::read(text.as_bytes()).unwrap_err().to_string()
}

/// Metrics that the raw page omits or computes anew when ncu prints it from a report.
fn is_printed_differently(counter: &str) -> bool {
    ["breakdown:", "group:"]
        .iter()
        .any(|family| counter.starts_with(family))
}

#[test]
fn every_report_agrees_with_its_raw_page_on_every_metric() {
    if common::recordings_are_absent() {
        return;
    }
    let mut compared = 0;
    for name in PAIRS {
        let (report, page) = (report(name), page(&format!("{name}.raw.csv")));
        let counters: Vec<&str> = report.launches[0]
            .metrics
            .keys()
            .map(|name| &**name)
            .filter(|name| !is_printed_differently(name))
            .collect();
        compared += counters.len() * report.launches.len();
        assert_eq!(agree(&report, &page, &counters), Ok(()), "{name}");
    }
    assert!(compared > 13_000, "{compared}");
}

#[test]
fn a_page_describes_its_launches_as_the_report_does() {
    if common::recordings_are_absent() {
        return;
    }
    for name in PAIRS {
        let (report, page) = (report(name), page(&format!("{name}.raw.csv")));
        for (ours, theirs) in report.launches.iter().zip(&page.launches) {
            assert_eq!(ours.kind, theirs.kind, "{name}");
            assert_eq!(ours.kernel.function, theirs.kernel.function, "{name}");
            assert_eq!(ours.process_id, theirs.process_id, "{name}");
            assert_eq!(ours.device, theirs.device, "{name}");
            assert_eq!(ours.context, theirs.context, "{name}");
            assert_eq!(ours.stream, theirs.stream, "{name}");
            assert_eq!(ours.compute_capability, Some((9, 0)), "{name}");
            assert_eq!(
                (ours.chip(), theirs.chip()),
                (Chip::named("gh100"), Chip::named("gh100")),
                "{name}"
            );
        }
    }
}

#[test]
fn one_digit_changed_on_a_page_is_a_disagreement() {
    if common::recordings_are_absent() {
        return;
    }
    let report = report("four_metrics");
    let text = text("four_metrics.raw.csv");
    let counter = "gpu__time_duration.sum";
    let Value::Integer(duration) = page("four_metrics.raw.csv").launches[0].metrics[counter].value
    else {
        panic!("the duration is a whole number")
    };
    let printed = format!(
        "\"{},{:03},{:03}\"",
        duration / 1_000_000,
        duration / 1000 % 1000,
        duration % 1000
    );
    assert_eq!(text.matches(&printed).count(), 1);
    let changed = text.replace(&printed, &format!("\"{}\"", duration + 1));
    let page = csv::read(changed.as_bytes()).unwrap();
    match agree(&report, &page, &[counter]).unwrap_err() {
        Disagreement::Value {
            launch: 0,
            csv,
            report,
            tolerance,
            ..
        } => {
            assert_eq!(csv, Value::Integer(duration + 1));
            assert_eq!(report.number(), Some(duration as f64));
            assert!(tolerance < 0.006);
        }
        other => panic!("{other}"),
    }
    assert_eq!(
        agree(
            &report,
            &page,
            &["dram__throughput.avg.pct_of_peak_sustained_elapsed"]
        ),
        Ok(())
    );
}

#[test]
fn a_step_beyond_the_rounding_is_a_disagreement_and_a_step_within_is_none() {
    if common::recordings_are_absent() {
        return;
    }
    let counter = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
    let page = page("four_metrics.raw.csv");
    let with = |value: f64| {
        let mut report = report("four_metrics");
        report.launches[0].metrics.get_mut(counter).unwrap().value = Value::Float(value);
        report
    };
    let printed = page.launches[0].number(counter).unwrap();
    assert_eq!(page.rounding.half_step(counter), 0.005);
    assert_eq!(agree(&with(printed + 0.0049), &page, &[counter]), Ok(()));
    assert_eq!(agree(&with(printed - 0.0049), &page, &[counter]), Ok(()));
    assert!(agree(&with(printed + 0.0051), &page, &[counter]).is_err());
    assert!(agree(&with(printed - 0.0051), &page, &[counter]).is_err());
    let mut nan = report("four_metrics");
    nan.launches[0].metrics.get_mut(counter).unwrap().value = Value::Float(f64::NAN);
    assert!(agree(&nan, &page, &[counter]).is_err());
}

#[test]
fn a_metric_that_is_absent_from_one_of_both_is_a_disagreement() {
    if common::recordings_are_absent() {
        return;
    }
    let report = report("four_metrics");
    let mut page = page("four_metrics.raw.csv");
    let counter = "gpu__time_duration.sum";
    assert_eq!(agree(&report, &page, &["no__such_metric.sum"]), Ok(()));
    page.launches[0].metrics.remove(counter);
    let error = agree(&report, &page, &[counter]).unwrap_err();
    assert!(
        error.to_string().contains("missing on the CSV page"),
        "{error}"
    );
}

#[test]
fn launches_that_differ_in_count_shape_or_unit_disagree() {
    if common::recordings_are_absent() {
        return;
    }
    let report = report("two_kernels_three_times");
    let original = page("two_kernels_three_times.raw.csv");
    let mut page = original.clone();
    page.launches.pop();
    assert_eq!(
        agree(&report, &page, &[]),
        Err(Disagreement::LaunchCount { report: 6, csv: 5 })
    );
    let mut page = original.clone();
    page.launches[4].grid[1] = 2;
    assert!(matches!(
        agree(&report, &page, &[]),
        Err(Disagreement::Shape { launch: 4, .. })
    ));
    let mut page = original;
    let duration = page.launches[1]
        .metrics
        .get_mut("gpu__time_duration.sum")
        .unwrap();
    duration.unit = ncu_report::Unit::Known(&"cycle");
    assert!(matches!(
        agree(&report, &page, &["gpu__time_duration.sum"]),
        Err(Disagreement::Unit { launch: 1, .. })
    ));
}

#[test]
fn a_column_out_of_order_keeps_its_numbers() {
    if common::recordings_are_absent() {
        return;
    }
    let (moved, steady) = ("gpu__time_duration.sum", "device__attribute_clock_rate");
    let sorted = text("twenty_launches.raw.csv");
    // Only the names are exchanged: one number that changes is now among constant ones.
    let other = sorted
        .replacen(&format!("\"{steady}\""), "\"zzz\"", 1)
        .replacen(&format!("\"{moved}\""), &format!("\"{steady}\""), 1);
    let (sorted, other) = (
        csv::read(sorted.as_bytes()).unwrap(),
        csv::read(other.as_bytes()).unwrap(),
    );
    for (one, same) in sorted.launches.iter().zip(&other.launches) {
        let value = |launch: &Launch, name: &str| launch.metrics.get(name).unwrap().value.number();
        assert_eq!(value(one, moved), value(same, steady));
    }
}

#[test]
fn the_programs_own_lines_do_not_disturb_a_page() {
    if common::recordings_are_absent() {
        return;
    }
    let recording = page("raw_with_program_output.csv");
    assert_eq!(
        kernels(&recording),
        ["bsr_gemm_wmma", "copy_f4", "copy_slow"]
    );
    let launch = &recording.launches[0];
    assert_eq!((launch.grid, launch.block), ([64, 64, 1], [128, 1, 1]));
    assert_eq!(launch.process_id, Some(983));
    assert_eq!(symbol(launch, "gpu__time_duration.sum"), Some("ns"));
    let details = page("details_with_program_output.csv");
    assert_eq!(kernels(&details), ["bsr_gemm_wmma", "copy_f4", "copy_slow"]);
    assert_eq!(
        details.launches[0].number("dram__bytes_read.sum"),
        Some(476_541_952.0)
    );
    assert_eq!(page("raw_log_file.csv").launches.len(), 3);
}

#[test]
fn program_lines_that_look_like_csv_are_ignored() {
    if common::recordings_are_absent() {
        return;
    }
    for name in [
        "raw_with_program_output.csv",
        "details_with_program_output.csv",
    ] {
        let original = text(name);
        let expected = csv::read(original.as_bytes()).unwrap();
        let noise = "\"ID\",\"x\"\n\"1\",\"2\",\"3\"\nan \"open quote\n\"5\",\"6\",\"an open one\n\
                     \"\",\"\",\"\"\n0,1,2\n\n==PROF== noise\n";
        // Before, between and after all lines of the page.
        let lines: Vec<&str> = original.split_inclusive('\n').collect();
        for at in 0..=lines.len() {
            let disturbed = lines[..at].concat() + noise + &lines[at..].concat();
            assert_eq!(
                csv::read(disturbed.as_bytes()).unwrap(),
                expected,
                "{name} line {at}"
            );
        }
    }
}

#[test]
fn a_program_that_ends_without_a_line_end_does_not_hide_the_header() {
    if common::recordings_are_absent() {
        return;
    }
    let original = text("four_metrics.raw.csv");
    let expected = csv::read(original.as_bytes()).unwrap();
    let glued = format!("progress: 100 %{original}");
    assert_eq!(csv::read(glued.as_bytes()).unwrap(), expected);
}

#[test]
fn carriage_returns_and_a_missing_last_line_end_change_nothing() {
    if common::recordings_are_absent() {
        return;
    }
    for name in [
        "raw_with_program_output.csv",
        "details_sections_and_rules.csv",
    ] {
        let original = text(name);
        let expected = csv::read(original.as_bytes()).unwrap();
        let windows = original.replace('\n', "\r\n");
        assert_eq!(csv::read(windows.as_bytes()).unwrap(), expected, "{name}");
        let cut = original.trim_end();
        assert_eq!(csv::read(cut.as_bytes()).unwrap(), expected, "{name}");
        let marked = format!("\u{feff}{original}");
        assert_eq!(csv::read(marked.as_bytes()).unwrap(), expected, "{name}");
    }
}

#[test]
fn scaled_units_become_base_units() {
    if common::recordings_are_absent() {
        return;
    }
    let recording = page("raw_scaled_units.csv");
    let launch = &recording.launches[0];
    for (counter, value, unit, half_step) in [
        ("gpu__time_duration.sum", 12_224.0, Some("ns"), 0.5e-3),
        (
            "launch__persisting_l2_cache_size",
            11_796_480.0,
            Some("byte"),
            0.5,
        ),
        (
            "launch__shared_mem_per_block",
            1024.0,
            Some("byte/block"),
            0.5e-3,
        ),
        (
            "dram__cycles_elapsed.avg.per_second",
            3_186_955_000.0,
            Some("hz"),
            500.0,
        ),
        (
            "dram__cycles_elapsed.sum",
            1_869_952.0,
            Some("cycle"),
            0.5e-6,
        ),
        // The page contradicts itself on this unit.
        (
            "derived__pct_occupancy_per_shared_mem_size",
            2.614,
            None,
            0.5e-6,
        ),
    ] {
        assert_eq!(launch.number(counter), Some(value), "{counter}");
        assert_eq!(symbol(launch, counter), unit, "{counter}");
        let rounding = recording.rounding.half_step(counter);
        assert!(
            (rounding / half_step - 1.0).abs() < 1e-9,
            "{counter}: {rounding}"
        );
    }
    // The attributes of the device and the launch are the same in any run and any unit.
    let base = page("two_kernels_three_times.raw.csv");
    for (counter, measurement) in &base.launches[0].metrics {
        if counter.starts_with("device__attribute_max") || counter.starts_with("launch__shared") {
            let number = measurement.value.number();
            assert_eq!(launch.number(counter), number, "{counter}");
            assert_eq!(launch.metrics[counter].unit, measurement.unit, "{counter}");
        }
    }
}

#[test]
fn launches_of_two_processes_are_distinguished() {
    if common::recordings_are_absent() {
        return;
    }
    let recording = page("raw_two_processes.csv");
    let processes: Vec<_> = recording
        .launches
        .iter()
        .map(|launch| launch.process_id)
        .collect();
    assert_eq!(processes, [[Some(1500); 6], [Some(1501); 6]].concat());
    assert_eq!(kernels(&recording)[..4], ["k1", "k2", "k1", "k2"]);
    let k2 = &recording.launches[1].kernel;
    assert_eq!(
        k2.demangled.as_deref(),
        Some("void k2<float, 8>(T1 *, int)")
    );
}

#[test]
fn a_metric_that_does_not_exist_is_absent_or_missing_and_never_zero() {
    if common::recordings_are_absent() {
        return;
    }
    let counter = "no__such_metric.sum";
    let raw = page("raw_unknown_metric.csv");
    assert_eq!(raw.launches.len(), 6);
    assert!(
        raw.launches
            .iter()
            .all(|launch| !launch.metrics.contains_key(counter))
    );
    let details = page("details_unknown_metric.csv");
    assert_eq!(details.launches.len(), 6);
    for launch in &details.launches {
        assert_eq!(launch.metrics[counter].value, Value::Missing);
        assert_eq!(launch.metrics[counter].unit.symbol(), None);
    }
}

#[test]
fn a_graph_that_was_profiled_as_one_is_a_graph() {
    if common::recordings_are_absent() {
        return;
    }
    let recording = page("graph_as_one.raw.csv");
    assert_eq!(recording.launches.len(), 3);
    for launch in &recording.launches {
        assert_eq!(launch.kind, ResultKind::Graph);
        let no_data = &launch.metrics["derived__pct_occupancy_per_block_size"];
        assert_eq!(no_data.value, Value::Missing);
    }
}

#[test]
fn sections_give_labels_and_rules_give_nothing() {
    if common::recordings_are_absent() {
        return;
    }
    let recording = page("details_sections_and_rules.csv");
    assert_eq!(kernels(&recording), ["k1", "k2", "k1", "k2", "k1", "k2"]);
    let labels: usize = recording
        .launches
        .iter()
        .map(|launch| launch.labels.len())
        .sum();
    assert_eq!(labels, 300);
    assert!(
        recording
            .launches
            .iter()
            .all(|launch| launch.metrics.is_empty())
    );
    let first = &recording.launches[0].labels[0];
    assert_eq!(first.section, "GPU Speed Of Light Throughput");
    assert_eq!(first.name, "DRAM Frequency");
    assert_eq!(first.measurement.value, Value::Float(3_191_035_683.2));
    assert_eq!(first.measurement.unit.symbol(), Some("hz"));
}

#[test]
fn the_rows_of_a_launch_are_grouped_wherever_they_are() {
    if common::recordings_are_absent() {
        return;
    }
    let original = text("details_with_program_output.csv");
    let expected = csv::read(original.as_bytes()).unwrap();
    let mut lines: Vec<&str> = original.lines().collect();
    let header = lines
        .iter()
        .position(|line| line.starts_with("\"ID\""))
        .unwrap();
    // The rows of the second launch are moved to the end, after those of the third.
    let (second, others): (Vec<&str>, Vec<&str>) = lines
        .split_off(header + 1)
        .into_iter()
        .partition(|line| line.starts_with("\"1\""));
    assert!(!second.is_empty());
    let moved = [lines, others, second].concat().join("\n");
    let recording = csv::read(moved.as_bytes()).unwrap();
    assert_eq!(recording.launches[0], expected.launches[0]);
    assert_eq!(recording.launches[2], expected.launches[1]);
}

#[test]
fn no_kernels_profiled_is_an_error_of_its_own() {
    if common::recordings_are_absent() {
        return;
    }
    match csv::read(text("no_kernels_profiled.txt").as_bytes()) {
        Err(ReadError::NoKernels { available, .. }) => assert_eq!(available, ["k1", "k2"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_errors_of_ncu_are_reported_where_there_is_no_page() {
    if common::recordings_are_absent() {
        return;
    }
    let denied = "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does \
                   not have permission\n==ERROR== second\n";
    let error = csv::read(denied.as_bytes()).unwrap_err();
    assert_eq!(
        error.profiler_messages(),
        [
            "ERR_NVGPUCTRPERM - The user does not have permission",
            "second"
        ]
    );
    assert!(error.to_string().contains("ERR_NVGPUCTRPERM"), "{error}");
    let original = text("four_metrics.raw.csv");
    let header = original.lines().next().unwrap();
    let aborted = format!("{header}\n==ERROR== The application returned an error code (7).\n");
    let error = csv::read(aborted.as_bytes()).unwrap_err();
    assert!(
        matches!(error, ReadError::NoRows { line: 1, .. }),
        "{error}"
    );
    assert_eq!(
        error.profiler_messages(),
        ["The application returned an error code (7)."]
    );
}

#[test]
fn a_text_without_a_page_is_described() {
    assert!(error("").contains("an empty file"));
    assert!(error("hello\n").contains("a text that begins with \"hello\""));
    assert!(error("\u{7f}ELF\u{2}").contains("an ELF file"));
    assert!(error("\"ID\",\"x\"\n\"0\",\"1\"\n").contains("no CSV header"));
}

#[test]
fn a_row_that_lost_cells_is_an_error_with_its_line() {
    if common::recordings_are_absent() {
        return;
    }
    let original = text("raw_two_processes.csv");
    let lines: Vec<&str> = original.lines().collect();
    let row = lines
        .iter()
        .position(|line| line.starts_with("\"3\","))
        .unwrap();
    let cut = lines[row].rsplit_once(",\"").unwrap().0;
    let damaged = [&lines[..row], &[cut], &lines[row + 1..]]
        .concat()
        .join("\n");
    let error = error(&damaged);
    assert!(
        error.starts_with(&format!("line {}: the row has ", row + 1)),
        "{error}"
    );
}

#[test]
fn a_quoted_cell_that_is_never_closed_is_an_error_with_its_line() {
    if common::recordings_are_absent() {
        return;
    }
    for name in ["raw_two_processes.csv", "details_sections_and_rules.csv"] {
        let original = text(name);
        let lines: Vec<&str> = original.lines().collect();
        let row = lines
            .iter()
            .position(|line| line.starts_with("\"3\","))
            .unwrap();
        let mut damaged = lines.clone();
        let open = lines[row].trim_end_matches(',').strip_suffix('"').unwrap();
        damaged[row] = open;
        let expected = format!("line {}: a quoted cell", row + 1);
        assert!(error(&damaged.join("\n")).starts_with(&expected), "{name}");
        // The same in the last line of a truncated file.
        damaged.truncate(row + 1);
        assert!(error(&damaged.join("\n")).starts_with(&expected), "{name}");
    }
}

#[test]
fn two_unclosed_cells_do_not_pair_up_over_the_rows_between() {
    if common::recordings_are_absent() {
        return;
    }
    let original = text("raw_two_processes.csv");
    let lines: Vec<String> = original
        .lines()
        .map(
            |line| match line.starts_with("\"3\",") || line.starts_with("\"5\",") {
                true => line.strip_suffix('"').unwrap().to_owned(),
                false => line.to_owned(),
            },
        )
        .collect();
    let row = lines
        .iter()
        .position(|line| line.starts_with("\"3\","))
        .unwrap();
    let expected = format!("line {}: a quoted cell", row + 1);
    assert!(error(&lines.join("\n")).starts_with(&expected));
}

/// A raw page with two metrics and these cells.
fn two_columns(names: [&str; 2], rows: &[[&str; 2]]) -> Recording {
    let row = |leading: [&str; 6], cells: [&str; 2]| {
        let cells = leading
            .into_iter()
            .chain(cells)
            .map(|cell| format!("\"{cell}\""));
        cells.collect::<Vec<_>>().join(",") + "\n"
    };
    let leading = [
        "ID",
        "Process ID",
        "Process Name",
        "Host Name",
        "Kernel Name",
        "Context",
    ];
    let mut page = row(leading, names) + &row([""; 6], ["", "us"]);
    for cells in rows {
        page += &row(["0", "7", "p", "h", "k(int)", "1"], *cells);
    }
    csv::read(page.as_bytes()).unwrap()
}

#[test]
fn rows_with_the_same_letters_in_other_cells_are_different() {
    // Sorted and unsorted columns are compared in different ways.
    for names in [["a__.sum", "b__.sum"], ["b__.sum", "a__.sum"]] {
        let rows = [["1", "23"], ["12", "3"], ["12", "3"], ["", "no data"]];
        let recording = two_columns(names, &rows);
        let values = |column: usize| -> Vec<Value> {
            let metrics = recording.launches.iter().map(|launch| &launch.metrics);
            metrics
                .map(|metrics| metrics[names[column]].value.clone())
                .collect()
        };
        let first = [1, 12, 12].map(Value::Integer);
        assert_eq!(values(0), [&first[..], &[Value::Missing]].concat());
        let second = [23e3, 3e3, 3e3].map(Value::Float);
        assert_eq!(values(1), [&second[..], &[Value::Missing]].concat());
    }
}

#[test]
fn a_cell_may_contain_a_line_end() {
    if common::recordings_are_absent() {
        return;
    }
    let original = text("details_sections_and_rules.csv");
    let expected = csv::read(original.as_bytes()).unwrap();
    let broken = original
        .replace("at performance", "at\nperformance")
        .replace(". ", ".\n");
    assert_ne!(broken.lines().count(), original.lines().count());
    let launches = csv::read(broken.as_bytes()).unwrap().launches;
    assert!(launches == expected.launches);
}

#[test]
fn a_page_cut_in_a_row_is_an_error() {
    if common::recordings_are_absent() {
        return;
    }
    for name in ["raw_two_processes.csv", "details_with_program_output.csv"] {
        let original = text(name);
        let whole = csv::read(original.as_bytes()).unwrap();
        let rows = original.find("\n\"1\",").unwrap();
        let mut complete = 0;
        // All of the first row, then samples.
        for end in (rows..original.len()).filter(|end| end - rows < 3000 || end % 23 == 0) {
            if let Ok(recording) = csv::read(&original.as_bytes()[..end]) {
                let rest = &original[end..];
                let at_line_end = original[..end].ends_with('\n') || rest.starts_with('\n');
                assert!(at_line_end, "{name} cut at {end}");
                let count = recording.launches.len() - 1;
                assert_eq!(
                    recording.launches[..count],
                    whole.launches[..count],
                    "{name}"
                );
                complete += 1;
            }
        }
        assert!(complete > 0);
    }
}

/// The leading cells of every page below.
const LEADING: [&str; 11] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
];
const DURATION: &str = "gpu__time_duration.sum";

fn quoted(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| format!("\"{cell}\""));
    cells.collect::<Vec<_>>().join(",")
}

/// The leading cells of a launch.
fn launch_of<'a>(id: &'a str, process: &'a str) -> [&'a str; 11] {
    let (block, grid) = ("(256, 1, 1)", "(8192, 1, 1)");
    [
        id, process, "app", "node", "k(int)", "1", "7", block, grid, "0", "9.0",
    ]
}

/// A raw page of one launch with these metrics and values, in base units.
fn raw_of(metrics: &[(&str, &str)]) -> String {
    let (names, values): (Vec<&str>, Vec<&str>) = metrics.iter().copied().unzip();
    let units = vec![""; LEADING.len() + names.len()];
    let lines = [
        quoted(&[&LEADING[..], &names].concat()),
        quoted(&units),
        quoted(&[&launch_of("0", "14")[..], &values].concat()),
    ];
    lines.join("\n") + "\n"
}

/// A raw page of durations: a header, units, and a row each.
fn durations(process: &str, values: &[&str]) -> Vec<String> {
    let mut lines = vec![
        quoted(&[&LEADING[..], &[DURATION]].concat()),
        quoted(&[&[""; 11][..], &["nsecond"]].concat()),
    ];
    for (id, value) in values.iter().enumerate() {
        let id = id.to_string();
        lines.push(quoted(&[&launch_of(&id, process)[..], &[value]].concat()));
    }
    lines
}

fn read_durations(text: &str) -> Vec<Option<f64>> {
    let recording = csv::read(text.as_bytes()).unwrap();
    let launches = recording.launches.iter();
    launches.map(|launch| launch.number(DURATION)).collect()
}

#[test]
fn every_number_of_a_page_is_the_same_under_each_locale() {
    if common::recordings_are_absent() {
        return;
    }
    // As ncu prints it: three digits a group, and no locale for the six decimals of a scaled unit.
    let localized = |cell: &str, group: &str, point: &str| {
        let plain = cell.replace(',', "");
        let (whole, decimals) = plain.split_once('.').unwrap_or((&plain, ""));
        let is_number = plain.parse::<f64>().is_ok() && whole.bytes().all(|b| b.is_ascii_digit());
        if !is_number || decimals.len() == 6 {
            return cell.to_owned();
        }
        let mut text = String::new();
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                text += group;
            }
            text.push(digit);
        }
        if !decimals.is_empty() {
            text += point;
        }
        text + decimals
    };
    for name in [
        "two_kernels_three_times.raw.csv",
        "full_set.raw.csv",
        "raw_scaled_units.csv",
        "details_sections_and_rules.csv",
    ] {
        let original = text(name);
        let expected = csv::read(original.as_bytes()).unwrap();
        let value = if name.starts_with("details") { 14 } else { 11 };
        for (group, point) in [
            (".", ","),
            (" ", ","),
            ("\u{a0}", ","),
            ("\u{202f}", ","),
            ("'", "."),
            ("\u{2019}", "."),
            ("", ","),
            (" ", "."),
            (",", "."),
            ("", "."),
        ] {
            let line = |line: &str| {
                let cells = line.split("\",\"").enumerate();
                let cells = cells.map(|(at, cell)| match cell.strip_suffix('"') {
                    _ if !line.starts_with('"') || at < value => cell.to_owned(),
                    Some(last) => localized(last, group, point) + "\"",
                    None => localized(cell, group, point),
                });
                cells.collect::<Vec<_>>().join("\",\"")
            };
            let page: Vec<String> = original.lines().map(line).collect();
            let read = csv::read(page.join("\n").as_bytes()).unwrap();
            assert!(
                read.launches == expected.launches,
                "{name} {group:?} {point:?}"
            );
            assert_eq!(read.rounding, expected.rounding, "{name} {group:?}");
        }
    }
}

#[test]
fn a_locale_is_read_where_the_page_decides_and_refused_where_it_does_not() {
    let value = |metrics: &[(&str, &str)]| match csv::read(raw_of(metrics).as_bytes()) {
        Ok(recording) => Ok(recording.launches[0].number(DURATION).unwrap()),
        Err(error) => Err(error.to_string()),
    };
    for (duration, other, expected) in [
        ("27,584", "", 27_584.0),
        ("27.584", "8.83", 27.584),
        ("0.584", "", 0.584),
        ("27.584000", "16.780.032", 27.584),
        ("27.584", "16.780.032", 27_584.0),
        ("27.584", "65,77", 27_584.0),
        ("27,584000", "16.780.032", 27.584),
        ("1.027.584,50", "", 1_027_584.5),
        ("-27.584,5", "", -27_584.5),
        ("27584,08", "1", 27_584.08),
        ("12,34,567", "", 1_234_567.0),
        ("12,34,567.50", "", 1_234_567.5),
        // More digits than fit into 64 bits.
        ("608.324.825.986.000.000.000", "8,83", 608_324_825_986e9),
        // A list of processors is no number of a locale.
        ("27,584.5", "0,1", 27_584.5),
    ] {
        let name = if other == "0,1" {
            "numa__cpus"
        } else {
            "a__.sum"
        };
        assert_eq!(
            value(&[(name, other), (DURATION, duration)]),
            Ok(expected),
            "{duration} {other}"
        );
    }
    // A whole number with a point has groups, and decides.
    for name in ["launch__grid_size", "device__attribute_clock_rate"] {
        assert_eq!(
            value(&[(DURATION, "27.584"), (name, "8.192")]),
            Ok(27_584.0)
        );
    }
    let ambiguous = value(&[(DURATION, "27.584")]).unwrap_err();
    for words in ["line 3: \"27.584\"", "27,584", "de_DE", "LC_ALL=C"] {
        assert!(ambiguous.contains(words), "{ambiguous}");
    }
    for (one, other) in [
        ("8,83", "8.83"),
        ("1.234.567", "8.83"),
        ("1 234", "1'234"),
        ("1 234", "27.584"),
        ("1'234", "27,584"),
        ("1,234,567", "8,83"),
    ] {
        let error = value(&[(DURATION, one), ("a__.sum", other)]).unwrap_err();
        assert!(
            error.contains("different locales"),
            "{one} {other}: {error}"
        );
    }
}

#[test]
fn values_of_instances_leave_the_value_of_the_metric() {
    for (cell, expected) in [
        ("3 (1; 2)", Value::Integer(3)),
        ("18,176 (140127: 32; 140128: 0)", Value::Integer(18_176)),
        ("15.52 (15.52)", Value::Float(15.52)),
        ("15,52 (15,52)", Value::Float(15.52)),
        ("(0.00; 0; 0)", Value::Missing),
        ("no data (1; 2)", Value::Missing),
        ("all (1; 2)", Value::Text("all (1; 2)".into())),
        ("PolicySpread (x)", Value::Text("PolicySpread (x)".into())),
    ] {
        let recording = csv::read(raw_of(&[(DURATION, cell)]).as_bytes()).unwrap();
        let launch = &recording.launches[0];
        assert_eq!(launch.metrics[DURATION].value, expected, "{cell}");
    }
}

#[test]
fn text_before_and_behind_a_row_does_not_hide_it() {
    let lines = durations("14", &["100", "300", "120"]);
    let expected = [Some(100.0), Some(300.0), Some(120.0)];
    assert_eq!(read_durations(&lines.join("\n")), expected);
    for at in 1..lines.len() {
        for (before, behind) in [
            ("step 1 ok ", ""),
            ("", "step 1 ok"),
            ("\u{1b}[0m", "\u{1b}[0m"),
            ("\"a\",\"b\" ", ""),
            ("saved \"1\",\"2\" ", " done"),
        ] {
            let mut lines = lines.clone();
            lines[at] = format!("{before}{}{behind}", lines[at]);
            let read = csv::read(lines.join("\n").as_bytes());
            // What looks like the beginning of a row before one is not lost without a word.
            match read {
                Ok(_) => assert_eq!(read_durations(&lines.join("\n")), expected, "{at} {before}"),
                Err(error) => assert!(before.contains("\"1\""), "{before}: {error}"),
            }
        }
    }
}

#[test]
fn a_row_that_is_cut_anywhere_is_an_error_with_its_line() {
    let raw = durations("14", &["100", "300", "120"]);
    let name = |value| ["Command line profiler metrics", DURATION, "ns", value];
    let columns = ["Section Name", "Metric Name", "Metric Unit", "Metric Value"];
    let details = [
        quoted(&[&LEADING[..], &columns].concat()),
        quoted(&[&launch_of("0", "14")[..], &name("100")].concat()),
        quoted(&[&launch_of("1", "14")[..], &name("300")].concat()),
        quoted(&[&launch_of("2", "14")[..], &name("120")].concat()),
    ];
    for (page, row) in [(&raw[..], 3), (&details[..], 2)] {
        for at in 1..page[row].len() {
            for noise in ["\n", "step 1 ok\n", "\nstep 1 ok\n"] {
                let mut lines = page.to_vec();
                lines[row].insert_str(at, noise);
                let error = error(&(lines.join("\n") + "\n"));
                let line = error.strip_prefix("line ").unwrap();
                let line: usize = line.split(':').next().unwrap().parse().unwrap();
                assert!((row + 1..row + 4).contains(&line), "{at}: {error}");
            }
        }
    }
}

#[test]
fn a_launch_that_is_missing_between_others_is_reported() {
    let page = durations("14", &["100", "300", "120"]);
    let without = |row: usize| [&page[..row], &page[row + 1..]].concat().join("\n");
    // ncu prints a part of a report on request.
    let part = csv::read(without(3).as_bytes()).unwrap();
    assert_eq!(part.launches.len(), 2);
    let gap = part.gap.unwrap();
    assert_eq!(gap, "line 4: launch 1 is missing before launch 2");
    assert_eq!(csv::read(without(2).as_bytes()).unwrap().gap, None);
    // The output of a run has all of them.
    let run = |rows: String| format!("==PROF== Connected to process 14 (app)\n{rows}\n");
    assert!(error(&run(without(3))).starts_with("line 5: launch 1 is missing"));
    assert!(error(&run(without(2))).starts_with("line 4: launch 0 is missing"));
    assert_eq!(read_durations(&run(page.join("\n"))).len(), 3);
    let profiling = "==PROF== Profiling \"k\" - 2 (3/3): 0%....50%....100% - 1 pass\n";
    let last = error(&run(profiling.to_owned() + &without(4)));
    assert!(
        last.contains("launch 2 was profiled and has no row"),
        "{last}"
    );
    assert_eq!(
        read_durations(&run(profiling.to_owned() + &page.join("\n"))).len(),
        3
    );
    // Two runs in one log, and two that share a console.
    let second = durations("15", &["1", "2", "3"]);
    let both = run([page.join("\n"), second.join("\n")].join("\n"));
    assert_eq!(read_durations(&both).len(), 6);
    let mixed: Vec<_> = page
        .iter()
        .zip(&second)
        .flat_map(|(a, b)| [a.as_str(), b])
        .collect();
    assert_eq!(read_durations(&run(mixed.join("\n"))).len(), 6);
}

#[test]
fn rows_keep_to_the_process_that_their_label_names() {
    // In containers all processes may have the same ID.
    let ranks = [
        durations("14", &["100", "300", "120"]),
        durations("14", &["1", "2", "3"]),
    ];
    let expected = [100.0, 300.0, 120.0, 1.0, 2.0, 3.0].map(Some);
    let labels: [fn(usize, usize) -> String; 6] = [
        |rank, _| format!("[1,{rank}]<stdout>:"),
        |rank, _| format!("{rank:2}: "),
        |rank, _| format!("[pod/app-{rank}/main] "),
        |rank, line| format!("2026-10-01T10:00:{line:02}.123Z [{rank}] "),
        |rank, line| format!("Thu Oct  1 10:00:{line:02} 2026[1,{rank}]<stdout>:"),
        |rank, line| format!("[10:00:{line:02}.5] rank{rank} | "),
    ];
    for label in labels {
        let mut text = String::new();
        for line in 0..5 {
            for (rank, lines) in ranks.iter().enumerate() {
                text += &format!("{}{}\n", label(rank, line), lines[line]);
            }
        }
        assert_eq!(read_durations(&text), expected, "{}", label(0, 0));
        // A row of one rank that is lost is not taken for that of the other.
        let lost: Vec<&str> = text
            .lines()
            .enumerate()
            .filter(|(at, _)| *at != 7)
            .map(|it| it.1)
            .collect();
        let gap = csv::read(lost.join("\n").as_bytes()).unwrap().gap.unwrap();
        assert!(gap.contains("launch 1 is missing"), "{gap}");
    }
    let times = |rank: usize| {
        let lines = ranks[rank].iter().zip(0..);
        let lines = lines.map(|(line, at)| format!("2026-10-01T10:00:0{at}Z {line}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(read_durations(&times(0)), expected[..3]);
}

#[test]
fn a_page_in_utf_16_is_read() {
    let page = durations("14", &["100", "300", "120"]).join("\r\n");
    let expected = csv::read(page.as_bytes()).unwrap();
    let units = |mark: &str| format!("{mark}{page}").encode_utf16().collect::<Vec<_>>();
    for mark in ["\u{feff}", ""] {
        let little: Vec<u8> = units(mark).iter().flat_map(|it| it.to_le_bytes()).collect();
        let big: Vec<u8> = units(mark).iter().flat_map(|it| it.to_be_bytes()).collect();
        assert_eq!(csv::read(&little).unwrap(), expected);
        assert_eq!(csv::read(&big).unwrap(), expected);
        // One byte is missing at the end.
        assert!(csv::read(&little[..little.len() - 1]).is_err());
    }
}

#[test]
fn the_messages_of_ncu_around_a_page_are_kept() {
    let page = durations("14", &["100"]).join("\n");
    let text = format!(
        "==PROF== Connected to process 14\n[0] ==ERROR== LaunchFailed\n{page}\n\
         step 1 ==WARNING== The application returned an error code (9).\n"
    );
    assert_eq!(
        csv::read(text.as_bytes()).unwrap().messages,
        [
            "==ERROR== LaunchFailed",
            "==WARNING== The application returned an error code (9)."
        ]
    );
    let nothing = "==ERROR== LaunchFailed\n==WARNING== No kernels were profiled.\n1. no list\n";
    assert!(
        error(nothing).contains("LaunchFailed"),
        "{}",
        error(nothing)
    );
}

#[test]
fn a_file_of_another_kind_is_named_with_a_next_step() {
    let summary = "\"Process ID\",\"Device\",\"Invocations\",\"Metric Name\",\"Metric Unit\"\n";
    let page = raw_of(&[(DURATION, "100")]);
    for (text, what, next) in [
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "Git LFS",
            "git lfs pull",
        ),
        (" \n", "an empty file", "command"),
        ("<!DOCTYPE html>\n", "an HTML page", "download"),
        ("{\"launches\": []}", "JSON", "ncu-rep"),
        (summary, "a summary page", "--page raw"),
        (
            "\"Kernel Name\",\"k\"\n\"Address\",\"Source\"\n",
            "a source page",
            "--page raw",
        ),
        (
            "\"Launch Attribute\",\"Value\"\n",
            "a session page",
            "--page raw",
        ),
        (
            "    Metric Name    Metric Unit Metric Value\n",
            "for people",
            "--csv",
        ),
        (
            "==PROF== Connected to process 1\ndone\n",
            "console output",
            "--csv",
        ),
        (
            "Time (%),Total Time (ns),Instances\n",
            "Nsight Systems",
            "ncu-rep",
        ),
        ("==7== NVPROF is profiling process 7\n", "nvprof", "ncu-rep"),
        (&page.replace('"', ""), "wrote again", "as ncu printed it"),
        (
            &page.replace("\",\"", "\";\""),
            "wrote again",
            "as ncu printed it",
        ),
        (page.lines().last().unwrap(), "without the header", "\"ID\""),
    ] {
        let error = error(text);
        assert!(
            error.contains(what) && error.contains(next),
            "{text}: {error}"
        );
    }
    let archive = csv::read(b"\x1f\x8b\x08").unwrap_err().to_string();
    assert!(
        archive.contains("gzip") && archive.contains("unpack"),
        "{archive}"
    );
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
        let _ = csv::read(&bytes);
    }

    #[test]
    fn no_cells_below_a_header_make_the_reader_panic(
        rows in "(\"[0-9]{1,3}\",\"[0-9]{1,3}\",([a-z\",0-9.() \n]{0,60})\n){0,4}",
        units in proptest::bool::ANY,
    ) {
        if common::recordings_are_absent() {
            return Ok(());
        }
        let original = text("details_unknown_metric.csv");
        let header = original.lines().find(|line| line.starts_with("\"ID\"")).unwrap();
        let unit_row = if units { "\"\",\"\"\n" } else { "" };
        let _ = csv::read(format!("{header}\n{unit_row}{rows}").as_bytes());
    }
}
