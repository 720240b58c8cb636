//! The reader of counters that were read inside of a program.

use sparsek_gate::capture::counter_records::{self, CounterCapture, ProcessCounters};

const COUNTED: &str = "counters 5 cupti 130001\nu _Z5otherv\ng GH100 3\n\
    n gpu__time_duration.sum\nn sm__cycles_active.avg.pct_of_peak_sustained_elapsed\n\
    k 0 1 7 64 2 1 128 1 1 40 1024 2048 271232.0 97.83999999999999 _Z2k1Pfi\n\
    k 0 1 7 64 2 1 128 1 1 ? ? 2048 1e-7 0.1 _Z2k1Pfi\nend 2 3\n";

/// The capture file of what a process left.
fn counted(left: &str) -> String {
    let magic = String::from_utf8_lossy(counter_records::MAGIC);
    format!("{magic}gpu NVIDIA H200\ncompute-capability 9.0\ncache-control all\n{left}")
}

#[test]
fn counters_are_read_as_they_were_written_each_with_its_unit() {
    let process = ProcessCounters::parse(COUNTED).unwrap();
    assert_eq!((process.selected, process.unlisted.len()), (3, 1));
    let capture = CounterCapture {
        gpu: "NVIDIA H200".to_owned(),
        compute_capability: "9.0".to_owned(),
        cache_control: "all".to_owned(),
        process,
    };
    let text = capture.text();
    let (_, left) = text.split_once("cache-control all\n").unwrap();
    assert_eq!(ProcessCounters::parse(left).as_ref(), Ok(&capture.process));
    let recording = counter_records::read(text.as_bytes()).unwrap();
    let [first, second] = recording.launches.as_slice() else {
        panic!("{recording:?}");
    };
    let of = |launch: &ncu_report::Launch, counter: &str| {
        let measured = launch.metrics.get(counter)?;
        Some((measured.value.number()?, measured.unit.symbol()?))
    };
    let active = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
    assert_eq!(of(first, active), Some((97.839_999_999_999_99, "%")));
    assert_eq!(of(first, "gpu__time_duration.sum"), Some((271_232.0, "ns")));
    assert_eq!(
        of(first, "launch__registers_per_thread"),
        Some((40.0, "register/thread"))
    );
    assert_eq!(
        of(first, "launch__block_size").map(|(value, _)| value),
        Some(128.0)
    );
    // What the driver did not say is absent, and not zero.
    assert_eq!(of(second, "launch__registers_per_thread"), None);
    assert_eq!(first.kernel.function, "k1");
    assert_eq!(recording.profiler_version.as_deref(), Some("CUPTI 130001"));
}

#[test]
fn counters_that_are_cut_or_no_numbers_are_no_measurement() {
    for (from, to, why) in [
        ("end 2 3\n", "", "have no end"),
        ("end 2 3\n", "end 2 3", "have no end"),
        ("end 2 3\n", "end 2 3\nk", "something follows the end"),
        (
            "end 2 3\n",
            "end 3 3\n",
            "2 launches where the end counts 3",
        ),
        (" 0.1 ", " NaN ", "a value is no number"),
        (" 0.1 ", " 1e999 ", "a value is no number"),
        (" 0.1 ", " ", "a value is no number"),
        ("64 2 1", "64 0 1", "the grid has no extent"),
        ("g GH100 3", "g GH100", "line 3"),
        ("u _Z5otherv", "x _Z5otherv", "line 2"),
        (
            "end 2 3\n",
            "error 35 cuptiRangeProfilerStart answered 35\n",
            "cuptiRangeProfilerStart answered 35",
        ),
    ] {
        assert!(COUNTED.contains(from), "{from}");
        let left = COUNTED.replacen(from, to, 1);
        let found = ProcessCounters::parse(&left).unwrap_err().to_string();
        assert!(found.contains(why), "{to}: {found}");
        counter_records::read(counted(&left).as_bytes()).unwrap_err();
    }
}

#[test]
fn a_file_of_counters_takes_a_bounded_memory() {
    let names: String = (0..4096)
        .map(|number| format!("n a__b{number}.sum\n"))
        .collect();
    let launch = format!("k 0 1 7 1 1 1 1 1 1 0 0 0{} f\n", " 0".repeat(4096));
    let left = |names: &str, launches: usize| {
        format!(
            "counters 5 cupti 130001\n{names}{}end {launches} 1\n",
            launch.repeat(launches)
        )
    };
    let found = ProcessCounters::parse(&left(&names, 200)).unwrap_err();
    assert!(found.to_string().contains("at most"), "{found}");
    let more = format!("{names}n a__b.sum\n");
    ProcessCounters::parse(&left(&more, 1)).unwrap_err();
}
