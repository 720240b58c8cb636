//! The reader of CSV pages, on recorded and on damaged pages.

use ncu_report::{Launch, ReadError, Recording, Value, csv};

use crate::common::text;

fn read(text: &str) -> Recording {
    csv::read(text.as_bytes()).unwrap()
}

fn page(name: &str) -> Recording {
    read(&text(name))
}

fn kernels(recording: &Recording) -> Vec<&str> {
    let launches = recording.launches.iter();
    launches.map(|launch| &*launch.kernel.function).collect()
}

fn symbol<'a>(launch: &'a Launch, counter: &str) -> Option<&'a str> {
    launch.metrics[counter].unit.symbol()
}

fn error(text: &str) -> String {
    csv::read(text.as_bytes()).unwrap_err().to_string()
}

const DURATION: &str = "gpu__time_duration.sum";

fn quoted(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| format!("\"{cell}\""));
    cells.collect::<Vec<_>>().join(",")
}

/// The header of a page with these columns after the leading ones.
fn header(columns: &[&str]) -> String {
    const LEADING: &str = "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\
                           \"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",";
    LEADING.to_owned() + &quoted(columns)
}

/// The units of the leading columns and of these.
fn units(units: &[&str]) -> String {
    quoted(&[&[""; 11][..], units].concat())
}

/// The row of a launch of `k(int)`.
fn row(id: &str, process: &str, cells: &[&str]) -> String {
    let (block, grid) = ("(256, 1, 1)", "(8192, 1, 1)");
    let leading = [
        id, process, "app", "node", "k(int)", "1", "7", block, grid, "0", "9.0",
    ];
    quoted(&[&leading[..], cells].concat())
}

/// A raw page of one launch with these metrics and values, in base units.
fn raw_of(metrics: &[(&str, &str)]) -> String {
    let (names, values): (Vec<&str>, Vec<&str>) = metrics.iter().copied().unzip();
    let units = units(&vec![""; names.len()]);
    [header(&names), units, row("0", "14", &values)].join("\n") + "\n"
}

/// A raw page of durations: a header, units, and a row each.
fn durations(process: &str, values: &[&str]) -> Vec<String> {
    let rows = values.iter().enumerate();
    let rows = rows.map(|(id, value)| row(&id.to_string(), process, &[value]));
    let head = [header(&[DURATION]), units(&["nsecond"])];
    head.into_iter().chain(rows).collect()
}

fn read_durations(text: &str) -> Vec<Option<f64>> {
    let launches = read(text).launches;
    let launches = launches.iter();
    launches.map(|launch| launch.number(DURATION)).collect()
}

#[test]
fn a_column_out_of_order_keeps_its_numbers() {
    let (moved, steady) = (DURATION, "device__attribute_clock_rate");
    let sorted = text("twenty_launches.raw.csv");
    // Only the names are exchanged: one number that changes is now among constant ones.
    let other = sorted
        .replacen(&format!("\"{steady}\""), "\"zzz\"", 1)
        .replacen(&format!("\"{moved}\""), &format!("\"{steady}\""), 1);
    let (sorted, other) = (read(&sorted), read(&other));
    for (one, same) in sorted.launches.iter().zip(&other.launches) {
        let value = |launch: &Launch, name: &str| launch.metrics.get(name).unwrap().value.number();
        assert_eq!(value(one, moved), value(same, steady));
    }
}

#[test]
fn the_programs_own_lines_do_not_disturb_a_page() {
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
    for name in [
        "raw_with_program_output.csv", "details_with_program_output.csv",
    ] {
        let original = text(name);
        let expected = read(&original);
        let noise = "\"ID\",\"x\"\n\"1\",\"2\",\"3\"\nan \"open quote\n\"5\",\"6\",\"an open one\n\
                     \"\",\"\",\"\"\n0,1,2\n\n==PROF== noise\n";
        // Before, between and after all lines of the page.
        let lines: Vec<&str> = original.split_inclusive('\n').collect();
        for at in 0..=lines.len() {
            let disturbed = lines[..at].concat() + noise + &lines[at..].concat();
            assert!(read(&disturbed) == expected, "{name} line {at}");
        }
    }
}

#[test]
fn line_ends_a_mark_and_unended_output_of_the_program_change_nothing() {
    for name in [
        "four_metrics.raw.csv", "raw_with_program_output.csv", "details_sections_and_rules.csv",
    ] {
        let original = text(name);
        let expected = read(&original);
        for changed in [
            original.replace('\n', "\r\n"),
            original.trim_end().to_owned(),
            format!("\u{feff}{original}"),
            format!("progress: 100 %{original}"),
        ] {
            assert_eq!(read(&changed), expected, "{name}");
        }
    }
}

#[test]
fn scaled_units_become_base_units() {
    let recording = page("raw_scaled_units.csv");
    let launch = &recording.launches[0];
    let (l2, shared) = (
        "launch__persisting_l2_cache_size", "launch__shared_mem_per_block",
    );
    let [frequency, cycles] =
        ["avg.per_second", "sum"].map(|of| format!("dram__cycles_elapsed.{of}"));
    for (counter, value, unit, half_step) in [
        (DURATION, 12_224.0, Some("ns"), 0.5e-3),
        (l2, 11_796_480.0, Some("byte"), 0.5),
        (shared, 1024.0, Some("byte/block"), 0.5e-3),
        (&frequency, 3_186_955_000.0, Some("hz"), 500.0),
        (&cycles, 1_869_952.0, Some("cycle"), 0.5e-6),
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
    let recording = page("raw_two_processes.csv");
    let launches = recording.launches.iter();
    let processes: Vec<_> = launches.map(|launch| launch.process_id).collect();
    assert_eq!(processes, [[Some(1500); 6], [Some(1501); 6]].concat());
    assert_eq!(kernels(&recording)[..4], ["k1", "k2", "k1", "k2"]);
    let demangled = recording.launches[1].kernel.demangled.as_deref();
    assert_eq!(demangled, Some("void k2<float, 8>(T1 *, int)"));
}

#[test]
fn a_metric_that_does_not_exist_is_absent_or_missing_and_never_zero() {
    let counter = "no__such_metric.sum";
    let raw = page("raw_unknown_metric.csv");
    assert_eq!(raw.launches.len(), 6);
    let has_it = |launch: &Launch| launch.metrics.get(counter).is_some();
    assert!(!raw.launches.iter().any(has_it));
    let details = page("details_unknown_metric.csv");
    assert_eq!(details.launches.len(), 6);
    for launch in &details.launches {
        assert_eq!(launch.metrics[counter].value, Value::Missing);
        assert_eq!(launch.metrics[counter].unit.symbol(), None);
    }
}

#[test]
fn sections_give_labels_and_rules_give_nothing() {
    let recording = page("details_sections_and_rules.csv");
    assert_eq!(kernels(&recording), ["k1", "k2", "k1", "k2", "k1", "k2"]);
    let launches = recording.launches.iter();
    assert_eq!(
        launches.clone().map(|it| it.labels.len()).sum::<usize>(),
        300
    );
    assert!(launches.clone().all(|launch| launch.metrics.is_empty()));
    let first = &recording.launches[0].labels[0];
    assert_eq!(first.section, "GPU Speed Of Light Throughput");
    assert_eq!(first.name, "DRAM Frequency");
    assert_eq!(first.measurement.value, Value::Float(3_191_035_683.2));
    assert_eq!(first.measurement.unit.symbol(), Some("hz"));
}

#[test]
fn the_rows_of_a_launch_are_grouped_wherever_they_are() {
    let original = text("details_with_program_output.csv");
    let expected = read(&original).launches;
    let header = original.find("\"ID\"").unwrap();
    // The rows of the second launch are moved to the end, after those of the third.
    let lines = original[header..].lines();
    let (second, others): (Vec<&str>, Vec<&str>) = lines.partition(|it| it.starts_with("\"1\""));
    assert!(!second.is_empty());
    let moved = read(&[others, second].concat().join("\n")).launches;
    assert_eq!([&moved[0], &moved[2]], [&expected[0], &expected[1]]);
}

#[test]
fn no_kernels_profiled_is_an_error_of_its_own() {
    let error = csv::read(text("no_kernels_profiled.txt").as_bytes()).unwrap_err();
    assert!(matches!(error, ReadError::NoPage(_)), "{error:?}");
    let error = error.to_string();
    assert!(error.starts_with("no kernels were profiled; "), "{error}");
    assert!(error.ends_with("; the program launched: k1; k2"), "{error}");
}

#[test]
fn the_errors_of_ncu_are_reported_where_there_is_no_page() {
    let denied = "ERR_NVGPUCTRPERM - The user does not have permission";
    let output = format!("==PROF== Connected to process 1\n==ERROR== {denied}\n==ERROR== second\n");
    let error = csv::read(output.as_bytes()).unwrap_err();
    let reported = format!("; ncu reported: {denied}; second");
    assert!(error.to_string().ends_with(&reported), "{error}");
    let original = text("four_metrics.raw.csv");
    let header = original.lines().next().unwrap();
    let code = "The application returned an error code (7).";
    let error = csv::read(format!("{header}\n==ERROR== {code}\n").as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("line 1: no launch follows the CSV header; ncu reported: {code}")
    );
}

#[test]
fn a_damaged_row_is_an_error_with_its_line() {
    for name in ["raw_two_processes.csv", "details_sections_and_rules.csv"] {
        let whole: Vec<String> = text(name).lines().map(str::to_owned).collect();
        let row = whole.iter().position(|line| line.starts_with("\"3\","));
        let row = row.unwrap();
        let fails = |problem: &str, damage: &dyn Fn(&mut Vec<String>)| {
            let mut lines = whole.clone();
            damage(&mut lines);
            let error = error(&lines.join("\n"));
            let expected = format!("line {}: {problem}", row + 1);
            assert!(error.starts_with(&expected), "{name}: {error}");
        };
        let cut = whole[row].rsplit_once(",\"").unwrap().0;
        fails("the row has ", &|lines| lines[row] = cut.to_owned());
        let open = |line: &mut String| {
            let length = line.trim_end_matches(',').len();
            line.truncate(length - 1);
        };
        fails("a quoted cell", &|lines| open(&mut lines[row]));
        // In the last line of a truncated file.
        fails("a quoted cell", &|lines| {
            lines.truncate(row + 1);
            open(&mut lines[row]);
        });
        // Two do not pair up over the rows between.
        fails("a quoted cell", &|lines| {
            open(&mut lines[row]);
            open(&mut lines[row + 2]);
        });
    }
}

#[test]
fn rows_with_the_same_letters_in_other_cells_are_different() {
    // Sorted and unsorted columns are compared in different ways.
    for names in [["a__.sum", "b__.sum"], ["b__.sum", "a__.sum"]] {
        let rows = [["1", "23"], ["12", "3"], ["12", "3"], ["", "no data"]];
        let rows = rows.iter().zip(["0", "1", "2", "3"]);
        let rows: Vec<String> = rows.map(|(cells, id)| row(id, "7", cells)).collect();
        let rows = rows.join("\n");
        let page = [header(&names), units(&["", "us"]), rows].join("\n");
        let launches = read(&page).launches;
        let values = |column: usize| -> Vec<Value> {
            let value = |launch: &Launch| launch.metrics[names[column]].value.clone();
            launches.iter().map(value).collect()
        };
        let first = [1, 12, 12].map(Value::Integer);
        assert_eq!(values(0), [&first[..], &[Value::Missing]].concat());
        let second = [23e3, 3e3, 3e3].map(Value::Float);
        assert_eq!(values(1), [&second[..], &[Value::Missing]].concat());
    }
}

#[test]
fn a_cell_may_contain_a_line_end() {
    let original = text("details_sections_and_rules.csv");
    let expected = read(&original);
    let broken = original
        .replace("at performance", "at\nperformance")
        .replace(". ", ".\n");
    assert_ne!(broken.lines().count(), original.lines().count());
    assert!(read(&broken).launches == expected.launches);
}

#[test]
fn a_page_cut_in_a_row_is_an_error() {
    for name in ["raw_two_processes.csv", "details_with_program_output.csv"] {
        let original = text(name);
        let whole = read(&original);
        let rows = original.find("\n\"1\",").unwrap();
        let mut complete = 0;
        // All of the first row, then samples.
        for end in (rows..original.len()).filter(|end| end - rows < 3000 || end % 23 == 0) {
            if let Ok(recording) = csv::read(&original.as_bytes()[..end]) {
                let rest = &original[end..];
                let at_line_end = original[..end].ends_with('\n') || rest.starts_with('\n');
                assert!(at_line_end, "{name} cut at {end}");
                let count = recording.launches.len() - 1;
                assert!(
                    recording.launches[..count] == whole.launches[..count],
                    "{name}"
                );
                complete += 1;
            }
        }
        assert!(complete > 0);
    }
}

#[test]
fn every_number_of_a_page_is_the_same_under_each_locale() {
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
    // The columns of values begin there.
    for (name, value) in [
        ("two_kernels_three_times.raw.csv", 11),
        ("full_set.raw.csv", 11),
        ("raw_scaled_units.csv", 11),
        ("details_sections_and_rules.csv", 14),
    ] {
        let original = text(name);
        let expected = read(&original);
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
            assert!(
                read(&page.join("\n")) == expected,
                "{name} {group:?} {point:?}"
            );
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
        let name = ["a__.sum", "numa__cpus"][usize::from(other == "0,1")];
        let read = value(&[(name, other), (DURATION, duration)]);
        assert_eq!(read, Ok(expected), "{duration} {other}");
    }
    // A whole number with a point has groups, and decides.
    for name in ["launch__grid_size", "device__attribute_clock_rate"] {
        let read = value(&[(DURATION, "27.584"), (name, "8.192")]);
        assert_eq!(read, Ok(27_584.0));
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
        assert!(error.contains("different locales"), "{error}");
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
        ("all (1; 2)", Value::Text("all (1; 2)".to_owned().into())),
        (
            "PolicySpread (x)",
            Value::Text("PolicySpread (x)".to_owned().into()),
        ),
    ] {
        let launch = &read(&raw_of(&[(DURATION, cell)])).launches[0];
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
    let columns = ["Section Name", "Metric Name", "Metric Unit", "Metric Value"];
    let details = |id| {
        row(
            id,
            "14",
            &["Command line profiler metrics", DURATION, "ns", "9"],
        )
    };
    let details = [header(&columns), details("0"), details("1"), details("2")];
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
    let part = read(&without(3));
    assert_eq!(part.launches.len(), 2);
    let gap = part.gap.unwrap();
    assert_eq!(gap, "line 4: launch 1 is missing before launch 2");
    assert_eq!(read(&without(2)).gap, None);
    let twice = error(&[&page[..], &page[2..]].concat().join("\n"));
    assert!(
        twice.starts_with("line 6: launch 0 is there twice"),
        "{twice}"
    );
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
    let all = run(profiling.to_owned() + &page.join("\n"));
    assert_eq!(read_durations(&all).len(), 3);
    // Two runs in one log, and two that share a console.
    let second = durations("15", &["1", "2", "3"]);
    let both = run([page.join("\n"), second.join("\n")].join("\n"));
    assert_eq!(read_durations(&both).len(), 6);
    let mixed = page.iter().zip(&second);
    let mixed: Vec<_> = mixed.flat_map(|(a, b)| [a.as_str(), b]).collect();
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
        let mut lost: Vec<&str> = text.lines().collect();
        lost.remove(7);
        let gap = read(&lost.join("\n")).gap.unwrap();
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
    let expected = read(&page);
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
    let warning = "==WARNING== The application returned an error code (9).";
    assert_eq!(read(&text).messages, ["==ERROR== LaunchFailed", warning]);
    let nothing = "==ERROR== LaunchFailed\n==WARNING== No kernels were profiled.\n1. no list\n";
    assert!(error(nothing).contains("LaunchFailed"));
}

#[test]
fn a_file_of_another_kind_is_named_with_a_next_step() {
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    let summary = "\"Process ID\",\"Device\",\"Invocations\",\"Metric Name\",\"Metric Unit\"\n";
    let source = "\"Kernel Name\",\"k\"\n\"Address\",\"Source\"\n";
    let session = "\"Launch Attribute\",\"Value\"\n";
    let for_people = "    Metric Name    Metric Unit Metric Value\n";
    let console = "==PROF== Connected to process 1\ndone\n";
    let systems = "Time (%),Total Time (ns),Instances\n";
    let nvprof = "==7== NVPROF is profiling process 7\n";
    let page = raw_of(&[(DURATION, "100")]);
    let (unquoted, with_semicolons) = (page.replace('"', ""), page.replace("\",\"", "\";\""));
    for (text, what, next) in [
        (lfs, "Git LFS", "git lfs pull"),
        ("", "an empty file", "command"),
        (" \n", "an empty file", "command"),
        ("hello\n", "a text of 6 bytes", ""),
        ("\u{7f}ELF\u{2}", "an ELF file", ""),
        ("\"ID\",\"x\"\n\"0\",\"1\"\n", "no CSV header", ""),
        ("<!DOCTYPE html>\n", "an HTML page", "download"),
        ("{\"launches\": []}", "JSON", "ncu-rep"),
        (summary, "a summary page", "--page raw"),
        (source, "a source page", "--page raw"),
        (session, "a session page", "--page raw"),
        (for_people, "for people", "--csv"),
        (console, "console output", "--csv"),
        (systems, "Nsight Systems", "ncu-rep"),
        (nvprof, "nvprof", "ncu-rep"),
        (&unquoted, "wrote again", "as ncu printed it"),
        (&with_semicolons, "wrote again", "as ncu printed it"),
        (page.lines().last().unwrap(), "without the header", "\"ID\""),
    ] {
        let error = error(text);
        let is_named = error.contains(what) && error.contains(next);
        assert!(is_named, "{text}: {error}");
    }
    let archive = csv::read(b"\x1f\x8b\x08").unwrap_err().to_string();
    assert!(archive.contains("gzip") && archive.contains("unpack"));
}
