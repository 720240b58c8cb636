//! Every rule on counters of real kernels.

use super::CauseKind::{self, *};
use super::{Cause, causes, slower};
use crate::judge::compare::metric::{Comparison, Summary};
use crate::metric::{Direction, Level, Role, Tolerance};
use crate::verdict::{Change, Verdict};

const WMMA: &str = "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum";
const WGMMA: &str = "sm__ops_path_tensor_op_hgmma_src_fp16.sum";
const HMMA: &str = Role::TensorInstructionsHmma.counter();
const FFMA: &str = Role::ThreadFfma.counter();
const FMA_PIPE: &str = Role::FmaInstructions.counter();
const LOCAL_LOADS: &str = Role::LocalLoads.counter();
const LOCAL_STORES: &str = Role::LocalStores.counter();
const DRAM_READ: &str = Role::DramBytesRead.counter();
const DRAM_WRITE: &str = Role::DramBytesWritten.counter();
const BANK_CONFLICTS: &str = Role::BankConflicts.counter();
const SHARED_WAVEFRONTS: &str = Role::SharedWavefronts.counter();
const INSTRUCTIONS: &str = Role::Instructions.counter();
const LOAD_REQUESTS: &str = Role::GlobalLoadRequests.counter();
const LOAD_SECTORS: &str = Role::GlobalLoadSectors.counter();
const STORED_SECTORS: &str = Role::GlobalStoreSectors.counter();
const BARRIER_STALL: &str = Role::BarrierStall.counter();
const CLOCK: &str = Role::Clock.counter();
const REGISTERS: &str = Role::RegistersPerThread.counter();
const DURATION: &str = Role::Duration.counter();

fn summary(value: f64) -> Summary {
    Summary {
        value,
        launches: 2,
        processes: 1,
        machines: 1,
        within: None,
        between: None,
        spread: None,
    }
}

/// As `judge` makes one of a counter that is only recorded.
pub(in crate::judge) fn comparison(counter: &str, was: f64, is: f64) -> Comparison {
    Comparison {
        kernel: "bsr_gemm_x".to_owned(),
        grid: [64, 64, 1],
        block: [128, 1, 1],
        metric: "m".to_owned(),
        counter: counter.to_owned(),
        unit: None,
        direction: Direction::Equal,
        level: Level::Record,
        exact: false,
        never_zero: false,
        tolerance: Tolerance::Absolute(0.0),
        reference: Some(summary(was)),
        current: Some(summary(is)),
        samples: None,
        change: Some(if was == 0.0 {
            Change::Absolute(is)
        } else {
            Change::RelativePercent((is / was - 1.0) * 100.0)
        }),
        band: None,
        threshold: None,
        verdict: None,
        open: false,
        why: String::new(),
    }
}

/// The unchanged kernel on one H200: the baseline's counters.
const BASELINE: [(&str, f64); 12] = [
    (WMMA, 68_719_476_736.0),
    (WGMMA, 0.0),
    (HMMA, 16_777_216.0),
    (FMA_PIPE, 14_811_136.0),
    (INSTRUCTIONS, 50_020_352.0),
    (LOAD_REQUESTS, 2_392_064.0),
    (LOAD_SECTORS, 33_849_344.0),
    (STORED_SECTORS, 8_388_608.0),
    (LOCAL_LOADS, 0.0),
    (LOCAL_STORES, 0.0),
    (BARRIER_STALL, 3.69),
    (CLOCK, 1.755e9),
];

/// All counters of the baseline kernel, exact ones marked, with these changed.
fn changed(changes: &[(&str, f64)]) -> Vec<Comparison> {
    let counters = BASELINE.iter().map(|(counter, was)| {
        let now = changes.iter().find(|(name, _)| name == counter);
        let mut comparison = comparison(counter, *was, now.map_or(*was, |(_, is)| *is));
        comparison.exact = ![BARRIER_STALL, CLOCK].contains(counter);
        comparison
    });
    counters.collect()
}

fn of(steps: &[(&str, f64, f64)]) -> Vec<Comparison> {
    let steps = steps.iter();
    let steps = steps.map(|(counter, was, is)| comparison(counter, *was, *is));
    steps.collect()
}

fn kinds(comparisons: &[Comparison]) -> Vec<CauseKind> {
    causes(comparisons).iter().map(|cause| cause.kind).collect()
}

/// The causes of these steps alone.
fn of_steps(steps: &[(&str, f64, f64)]) -> Vec<CauseKind> {
    kinds(&of(steps))
}

/// The causes where these counters of the baseline kernel changed.
fn of_changes(changes: &[(&str, f64)]) -> Vec<CauseKind> {
    kinds(&changed(changes))
}

fn only(comparisons: &[Comparison], kind: CauseKind) -> String {
    let causes = causes(comparisons);
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!(causes[0].kind, kind);
    causes[0].text.clone()
}

/// One of the counters of the baseline kernel changed.
#[track_caller]
fn one_gives(counter: &str, is: f64, kind: CauseKind, text: &str) {
    assert_eq!(only(&changed(&[(counter, is)]), kind), text);
}

#[track_caller]
fn steps_give(steps: &[(&str, f64, f64)], kind: CauseKind, text: &str) {
    assert_eq!(only(&of(steps), kind), text);
}

#[test]
fn an_unchanged_kernel_has_no_cause_and_neither_has_its_noise() {
    assert!(causes(&changed(&[])).is_empty());
    assert!(causes(&[]).is_empty());
    let noisy = of(&[
        (BANK_CONFLICTS, 655_668.0, 655_681.0),
        (DRAM_READ, 142.6e6, 142.7e6),
        (DRAM_WRITE, 262.0e6, 262.2e6),
        (CLOCK, 1.755e9, 1.750e9),
        (BARRIER_STALL, 3.69, 4.2),
        (INSTRUCTIONS, 66_568_192.0, 66_568_192.0),
    ]);
    assert!(causes(&noisy).is_empty(), "{:?}", causes(&noisy));
}

#[test]
fn few_bank_conflicts_are_no_cause_however_they_grow() {
    let many = 66_568_192.0;
    let unpadded = [
        (BANK_CONFLICTS, 655_668.0, 84_445_144.0),
        (INSTRUCTIONS, many, many),
    ];
    let text = "shared-memory bank conflicts ×129 (0.66 M → 84.45 M)";
    steps_give(&unpadded, BankConflicts, text);
    for (was, is, counter, executed, found) in [
        (12.0, 4_800.0, INSTRUCTIONS, many, false),
        (0.0, 655_668.0, INSTRUCTIONS, many, false),
        (0.0, 655_668.0, INSTRUCTIONS, 6e6, true),
        (0.0, 655_668.0, SHARED_WAVEFRONTS, many, false),
        // Many, and not twice as many.
        (60e6, 119e6, INSTRUCTIONS, many, false),
        (60e6, 120e6, INSTRUCTIONS, many, true),
    ] {
        let beside = (counter, executed, executed);
        let causes = of_steps(&[(BANK_CONFLICTS, was, is), beside]);
        assert_eq!(causes, [BankConflicts][..usize::from(found)], "{was} {is}");
    }
    // Without anything to measure them by.
    let alone = |is| of_steps(&[(BANK_CONFLICTS, 0.0, is)]);
    assert_eq!(alone(99_999.0), []);
    assert_eq!(alone(100_000.0), [BankConflicts]);
}

#[test]
fn register_spills_from_nothing_and_more_of_them() {
    let text = "register spills, or arrays in local memory: local loads 0 → 12.30 M";
    one_gives(LOCAL_LOADS, 12.3e6, RegisterSpills, text);
    steps_give(
        &[(LOCAL_LOADS, 1e6, 2e6), (LOCAL_STORES, 0.0, 512.0)],
        RegisterSpills,
        "register spills, or arrays in local memory: local loads 1.00 M → 2.00 M, local stores 0 → 512",
    );
    let fewer = [(LOCAL_LOADS, 2e6, 1e6), (LOCAL_STORES, 1e6, 1.009e6)];
    assert_eq!(of_steps(&fewer), []);
}

#[test]
fn tensor_cores_that_are_lost_altogether_or_in_part_where_others_do_their_work() {
    let first = |changes: &[(&str, f64)], expected: &str| {
        let causes = causes(&changed(changes));
        let kinds: Vec<CauseKind> = causes.iter().map(|cause| cause.kind).collect();
        assert_eq!(kinds, [LostTensorCores, LessWork]);
        assert_eq!(causes[0].text, expected);
    };
    let text =
        "tensor cores no longer used: 68.72 GFLOP → 0 FLOP, FMA instructions 14.81 M → 1.10 G";
    first(&[(WMMA, 0.0), (HMMA, 0.0), (FMA_PIPE, 1.1e9)], text);
    let part = [(WMMA, 51_539_607_552.0), (HMMA, 12_582_912.0)];
    let text =
        "tensor cores used less: 68.72 GFLOP → 51.54 GFLOP, FMA instructions 14.81 M → 280.00 M";
    first(&[part[0], part[1], (FMA_PIPE, 280e6)], text);
    assert_eq!(of_changes(&part), [LessWork]);
    let few = [(HMMA, 100.0, 91.0), (FMA_PIPE, 100.0, 200.0)];
    assert_eq!(of_steps(&few), []);
    // The same operations on the other units are no less work.
    let mut moved = changed(&[(WMMA, 0.0), (HMMA, 0.0)]);
    let mut ffma = comparison(FFMA, 0.0, 34_359_738_368.0);
    ffma.exact = true;
    moved.push(ffma);
    assert_eq!(kinds(&moved), [LostTensorCores]);
    // Whichever of the two was measured.
    assert_eq!(of_steps(&[(HMMA, 16_777_216.0, 0.0)]), [LostTensorCores]);
    let operations = of_steps(&[(WMMA, 6.9e10, 0.0)]);
    assert_eq!(operations, [LostTensorCores, LessWork]);
}

#[test]
fn other_tensor_instructions_are_no_loss() {
    // WMMA to WGMMA: the operations move to another counter, and each instruction does more.
    let moved = [(WMMA, 0.0), (WGMMA, 68_719_476_736.0)];
    let fewer = [(HMMA, 131_072.0), (FMA_PIPE, 20e6)];
    assert_eq!(of_changes(&[moved, fewer].concat()), []);
    // fp16 to bf16, whose counter is not measured: fewer operations are counted, and the
    // tensor cores are as busy.
    assert_eq!(of_changes(&[(WMMA, 0.0), (FMA_PIPE, 20e6)]), [LessWork]);
}

#[test]
fn a_total_and_its_parts_count_once() {
    let counters = [
        "sm__ops_path_tensor_op_hmma_src_fp16.sum",
        WMMA,
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
    ];
    let text = "less work: operations -50.0 %, 4.00 GFLOP → 2.00 GFLOP";
    steps_give(&counters.map(|it| (it, 4e9, 2e9)), LessWork, text);
}

#[test]
fn work_that_changed_either_way() {
    let (less, more) = ((WMMA, 51_539_607_552.0), (STORED_SECTORS, 16_777_216.0));
    let text = "less work: operations -25.0 %, 68.72 GFLOP → 51.54 GFLOP";
    one_gives(less.0, less.1, LessWork, text);
    let text = "more work: sectors stored +100.0 %, 8.39 M → 16.78 M";
    one_gives(more.0, more.1, MoreWork, text);
    assert_eq!(of_changes(&[less, more]), [LessWork, MoreWork]);
    let text = "less work: operations 68719476736 → 68719476735 FLOP";
    one_gives(WMMA, 68_719_476_735.0, LessWork, text);
    // Not exact: the data decide.
    assert_eq!(of_steps(&[(FFMA, 1e9, 1.005e9)]), []);
    assert_eq!(of_steps(&[(FFMA, 1e9, 1.02e9)]), [MoreWork]);
}

#[test]
fn loads_that_are_no_longer_coalesced() {
    let twice = (LOAD_SECTORS, 67_698_688.0);
    let text =
        "uncoalesced global loads: 14.15 → 28.30 sectors a request (sectors 33.85 M → 67.70 M)";
    one_gives(twice.0, twice.1, Uncoalesced, text);
    // Sectors alone, and sectors with as many more requests.
    let text = "global loads touch more sectors: ×2.0 (33.85 M → 67.70 M)";
    steps_give(&[(LOAD_SECTORS, 33_849_344.0, twice.1)], Uncoalesced, text);
    let both = changed(&[twice, (LOAD_REQUESTS, 4_784_128.0)]);
    assert_eq!(only(&both, Uncoalesced), text);
    assert_eq!(of_changes(&[(LOAD_SECTORS, 40_000_000.0)]), []);
}

#[test]
fn wider_loads_are_not_uncoalesced() {
    assert_eq!(of_changes(&[(LOAD_REQUESTS, 598_016.0)]), []);
    let half = [(WMMA, 34_359_738_368.0), (HMMA, 8_388_608.0)];
    // Half of the work with as many sectors is.
    let as_many = [&half[..], &[(LOAD_REQUESTS, 1_196_032.0)]].concat();
    assert_eq!(of_changes(&as_many), [LessWork, Uncoalesced]);
    // Half of the work with half of everything is not.
    let loads = [(LOAD_REQUESTS, 598_016.0), (LOAD_SECTORS, 16_924_672.0)];
    assert_eq!(of_changes(&[half, loads].concat()), [LessWork]);
}

#[test]
fn barrier_waits_by_points_and_by_half() {
    let text = "warps wait at barriers: 3.69 % → 12.10 % of the time they are active";
    one_gives(BARRIER_STALL, 12.1, BarrierWaits, text);
    // Doubled and few points; many points and not by half.
    assert_eq!(of_changes(&[(BARRIER_STALL, 8.6)]), []);
    assert_eq!(of_steps(&[(BARRIER_STALL, 40.0, 50.0)]), []);
    assert_eq!(of_steps(&[(BARRIER_STALL, 40.0, 61.0)]), [BarrierWaits]);
}

#[test]
fn instructions_and_clock_and_traffic() {
    let text = "more instructions: +33.1 %, 50.02 M → 66.57 M";
    one_gives(INSTRUCTIONS, 66_568_192.0, MoreInstructions, text);
    assert_eq!(of_changes(&[(INSTRUCTIONS, 50_500_000.0)]), []);
    let text = "lower clock: -7.7 %, 1755 MHz → 1620 MHz";
    one_gives(CLOCK, 1.620e9, LowerClock, text);
    assert_eq!(of_changes(&[(CLOCK, 1.747e9)]), []);
    assert_eq!(of_changes(&[(CLOCK, 1.746e9)]), [LowerClock]);
    steps_give(
        &[(DRAM_READ, 142.6e6, 285.2e6), (DRAM_WRITE, 262e6, 262e6)],
        MoreDramTraffic,
        "more DRAM traffic: DRAM reads +100.0 %, 142.60 MB → 285.20 MB",
    );
    // Few bytes beside many.
    let written = (DRAM_WRITE, 1e6, 2e6);
    assert_eq!(of_steps(&[(DRAM_READ, 142.6e6, 142.6e6), written]), []);
    assert_eq!(of_steps(&[written]), [MoreDramTraffic]);
}

#[test]
fn stalls_of_every_form_are_named_where_they_grew() {
    const MIO: &str = "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio";
    const LONG: &str = "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct";
    const SELECTED: &str = "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio";
    steps_give(
        &[(MIO, 0.5, 3.2), (LONG, 30.0, 31.0)],
        Stalls,
        "warps wait longer: waiting for the queue to shared memory and special functions (mio throttle) 0.50 → 3.20 cycles an instruction",
    );
    steps_give(
        &[(LONG, 10.0, 40.0), (MIO, 0.5, 0.9)],
        Stalls,
        "warps wait longer: waiting for global or local memory (long scoreboard) 10.00 % → 40.00 % of the time",
    );
    assert_eq!(of_steps(&[(SELECTED, 1.0, 9.0)]), []);
    let sampled = of(&[
        ("smsp__pcsamp_warps_issue_stalled_wait", 1000.0, 4000.0),
        ("smsp__pcsamp_warps_issue_stalled_barrier", 9000.0, 9100.0),
    ]);
    assert!(only(&sampled, Stalls).contains("1.00 k → 4.00 k samples"));
    // Warps, and no cycles.
    let warps = "smsp__warps_issue_stalled_long_scoreboard.avg";
    assert_eq!(of_steps(&[(warps, 1.0, 9.0)]), []);
}

#[test]
fn fewer_warps_are_a_cause_with_what_bounds_them() {
    let active = "sm__warps_active.avg.pct_of_peak_sustained_active";
    let by_registers = "launch__occupancy_limit_registers";
    let by_warps = "launch__occupancy_limit_warps";
    let limit = (by_registers, 4.0, 3.0);
    steps_give(
        &[
            (active, 62.5, 37.5),
            limit,
            (by_warps, 16.0, 16.0),
            (REGISTERS, 128.0, 168.0),
        ],
        LowerOccupancy,
        "fewer active warps: 62.50 % → 37.50 % of those possible, 4 → 3 blocks fit a multiprocessor, bounded by registers, registers 128 → 168 a thread",
    );
    // Fewer would fit, and as many were active.
    assert_eq!(of_steps(&[(active, 12.5, 12.5), limit]), []);
    let unknown = "room for fewer blocks: 4 → 3 blocks fit a multiprocessor, bounded by registers";
    steps_give(&[limit], LowerOccupancy, unknown);
    // A limit that does not bound, and registers that cost no block.
    let warps = (by_warps, 16.0, 8.0);
    let same = [(by_registers, 4.0, 4.0), warps, (REGISTERS, 120.0, 128.0)];
    assert_eq!(of_steps(&same), []);
}

#[test]
fn a_cause_says_how_much_of_the_added_time_it_explains_at_most() {
    let words = |steps: &[(&str, f64, f64)]| {
        let causes = causes(&of(steps));
        causes.iter().map(Cause::words).collect::<Vec<_>>()
    };
    let clock = (CLOCK, 1.80e9, 1.71e9);
    let lower = "lower clock: -5.0 %, 1800 MHz → 1710 MHz";
    let of_it = |percent: u32| format!("{lower}, up to {percent} % of the added time");
    assert_eq!(words(&[clock, (DURATION, 100e3, 108.1e3)]), [of_it(64)]);
    assert_eq!(words(&[clock, (DURATION, 100e3, 103.0e3)]), [of_it(100)]);
    assert_eq!(words(&[clock, (DURATION, 100e3, 99e3)]), [lower]);
    assert_eq!(words(&[clock]), [lower]);
    let text = "more L2 traffic: bytes +100.0 %, 1.00 GB → 2.00 GB";
    steps_give(&[("lts__t_bytes.sum", 1e9, 2e9)], MoreL2Traffic, text);
}

#[test]
fn a_share_is_bounded_by_what_was_added_and_by_the_use_of_the_unit() {
    const CYCLES: &str = Role::SmCycles.counter();
    const DRAM_USE: &str = Role::DramThroughput.counter();
    let share = |steps: &[(&str, f64, f64)]| {
        let twice = [(DURATION, 1e5, 2e5)];
        let causes = causes(&of(&[&twice, steps].concat()));
        assert_eq!(causes.len(), 1, "{causes:?}");
        causes[0]
            .share
            .map(|share| (share * 1000.0).round() / 1000.0)
    };
    let conflicts = |more: f64| (BANK_CONFLICTS, 1e6, 1e6 + more);
    let executed = (INSTRUCTIONS, 1e8, 1e8);
    // A cycle each; an instruction stands for one only where cycles are not measured.
    assert_eq!(share(&[conflicts(5e7), executed]), Some(0.5));
    let cycles = (CYCLES, 5e8, 1e9);
    assert_eq!(share(&[conflicts(5e7), executed, cycles]), Some(0.1));
    assert_eq!(share(&[conflicts(5e7)]), None);
    // No more than it grew.
    let sectors = (LOAD_SECTORS, 1e9, 1.3e9);
    assert_eq!(share(&[sectors, executed]), Some(0.3));
    let reads = (DRAM_READ, 1e8, 3e8);
    assert_eq!(share(&[reads, (DRAM_USE, 3.0, 4.5)]), Some(0.15));
    assert_eq!(share(&[reads, (DRAM_USE, 60.0, 90.0)]), Some(1.0));
    assert_eq!(share(&[reads]), None);
    // Of the time that warps waited 10 %, and now 30 % of twice the time.
    assert_eq!(share(&[(BARRIER_STALL, 10.0, 30.0)]), Some(0.5));
    // A busy unit leaves nothing to gain from more warps.
    let warps = (Role::WarpsActive.counter(), 50.0, 25.0);
    assert_eq!(share(&[warps]), Some(1.0));
    assert_eq!(share(&[warps, (DRAM_USE, 90.0, 90.0)]), Some(0.1));
    // What operations cost of which there were none is not known.
    assert_eq!(share(&[(FFMA, 0.0, 1e9)]), None);
}

#[test]
fn a_regression_of_duration_names_the_percentages_that_moved_most() {
    let percent = |name: &str, was: f64, points: f64, band: f64| Comparison {
        metric: name.to_owned(),
        unit: Some("%".to_owned()),
        change: Some(Change::Absolute(points)),
        band: Some(band),
        ..comparison(name, was, was + points)
    };
    let mut duration = comparison(DURATION, 100e3, 108.1e3);
    duration.metric = "duration".to_owned();
    let rest = [
        percent("tensor_core", 40.0, -9.0, 0.2),
        percent("dram_bw", 30.0, -2.5, 0.2),
        percent("sm_active", 97.0, -3.0, 5.0),
        percent("l1", 50.0, 0.5, 0.1),
    ];
    let all = |duration: &Comparison| [std::slice::from_ref(duration), &rest[..]].concat();
    assert_eq!(slower(&all(&duration)), None);
    duration.verdict = Some(Verdict::Regressed);
    let (duration, percentages) = slower(&all(&duration)).unwrap();
    assert_eq!(duration, "`duration` +8.10 %");
    assert_eq!(
        percentages,
        ["`tensor_core` -9.00 pt", "`dram_bw` -2.50 pt"]
    );
}

#[test]
fn combined_faults_are_all_named_the_most_specific_first() {
    let mut all = changed(&[
        (CLOCK, 1.6e9),
        (INSTRUCTIONS, 66_568_192.0),
        (BARRIER_STALL, 20.0),
        (LOAD_SECTORS, 67_698_688.0),
        (STORED_SECTORS, 16_777_216.0),
        (WMMA, 34_359_738_368.0),
        (HMMA, 8_388_608.0),
        (FMA_PIPE, 280e6),
        (LOCAL_LOADS, 1e6),
    ]);
    all.extend(of(&[
        (DRAM_READ, 142.6e6, 285.2e6),
        (BANK_CONFLICTS, 655_668.0, 84_445_144.0),
    ]));
    let expected = [
        RegisterSpills, LostTensorCores, LessWork, MoreWork, BankConflicts, Uncoalesced,
        BarrierWaits, MoreDramTraffic, MoreInstructions, LowerClock,
    ];
    assert_eq!(kinds(&all), expected);
    all.reverse();
    assert_eq!(kinds(&all), expected);
}

#[test]
fn what_cannot_be_compared_or_moved_within_its_noise_is_no_cause() {
    let spilled = comparison(LOCAL_LOADS, 0.0, 1e6);
    let without: [fn(&mut Comparison); 4] = [
        |comparison| comparison.change = None,
        |comparison| comparison.reference = None,
        |comparison| comparison.current = None,
        |comparison| comparison.band = Some(2e6),
    ];
    assert_eq!(kinds(std::slice::from_ref(&spilled)), [RegisterSpills]);
    for change in without {
        let mut comparison = spilled.clone();
        change(&mut comparison);
        assert_eq!(kinds(&[comparison]), []);
    }
    assert_eq!(of_steps(&[(LOCAL_LOADS, 0.0, f64::INFINITY)]), []);
    // Under two aliases, and under any.
    let mut twice = changed(&[(WMMA, 51_539_607_552.0)]);
    twice.push(Comparison {
        metric: "another".to_owned(),
        ..twice[0].clone()
    });
    assert!(only(&twice, LessWork).contains("68.72 GFLOP → 51.54 GFLOP"));
}
