//! What the GPU reported while something ran on it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terms::spelled;

/// Shortest time below the requested clock that is reported, in ns. The launches of one kernel take
/// longer than this, so a shorter time does not change their median.
const SHORTEST_SLOWDOWN_NS: u64 = 1_000_000;

spelled! {
    /// Why a GPU ran below the clock it was asked for. An idle GPU, or a clock that a user set, is not
    /// such a reason.
    Slowdown {
        /// The driver keeps the GPU within its power limit.
        SwPowerCap = "sw-power-cap",
        /// The hardware halved the clock at least, for heat, for power, or for the power supply.
        HwSlowdown = "hw-slowdown",
        /// The hardware halved the clock at least, for heat.
        HwThermal = "hw-thermal",
        /// The driver lowered the clock, for heat of the chip or of its memory.
        SwThermal = "sw-thermal",
        /// The power supply made the hardware halve the clock at least.
        PowerBrake = "power-brake",
        /// Another GPU of the same group limits the clock.
        SyncBoost = "sync-boost",
    }
}

impl Slowdown {
    /// Whether it is a fault of the machine: heat, or the power supply. The others follow from the
    /// GPU's settings, and occur again on the next run.
    pub fn is_fault(self) -> bool {
        !matches!(self, Slowdown::SwPowerCap | Slowdown::SyncBoost)
    }
}

/// What the GPU reported at one moment. Values that it does not report are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature of the chip in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn, in mW.
    pub power_mw: Option<u32>,
    /// Whether nothing runs on it and its clock may drop for that.
    pub rests: Option<bool>,
    /// Why it runs below the clock it was asked for.
    pub slowdown: BTreeSet<Slowdown>,
    /// Processes with a compute context on it.
    pub processes: Vec<(ComputeProcess, Owner)>,
}

/// A process with a compute context on the GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComputeProcess {
    /// Process number, as the driver gives it: it may be of another PID namespace.
    pub pid: u32,
    /// Name of the program, where this machine knows the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Device memory that it uses, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// What the driver reported of a GPU since a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Faults {
    /// The numbers of the Xid errors that the driver reported, where it reports them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub xids: BTreeSet<u32>,
    /// Memory errors that could not be corrected.
    #[serde(skip_serializing_if = "is_none")]
    pub uncorrected_errors: u64,
}

impl Faults {
    /// Both together.
    pub fn and(mut self, other: Faults) -> Faults {
        self.xids.extend(other.xids);
        self.uncorrected_errors += other.uncorrected_errors;
        self
    }

    /// What is new since an earlier moment. An Xid that came before and again is not new.
    pub fn since(&self, earlier: &Faults) -> Faults {
        Faults {
            xids: self.xids.difference(&earlier.xids).copied().collect(),
            uncorrected_errors: self
                .uncorrected_errors
                .saturating_sub(earlier.uncorrected_errors),
        }
    }
}

/// Whose a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This run started it.
    Ours,
    /// Another user or run started it.
    Other,
    /// This machine does not know the process number.
    Unknown,
}

/// The least and the most that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The least.
    pub min: u32,
    /// The most.
    pub max: u32,
}

impl Span {
    fn grown(span: Option<Span>, value: Option<u32>) -> Option<Span> {
        let Some(value) = value else { return span };
        Some(Span {
            min: span.map_or(value, |span| span.min.min(value)),
            max: span.map_or(value, |span| span.max.max(value)),
        })
    }
}

/// What the GPU reported while a capture ran. This includes the preparations of the program and of
/// the profiler, not the kernels alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct State {
    /// How often it was asked.
    pub readings: u32,
    /// Those of the readings at which it did not rest.
    pub working_readings: u32,
    /// Clock of the multiprocessors in MHz, while it did not rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<Span>,
    /// Clock of the memory in MHz, while it did not rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<Span>,
    /// Temperature of the chip in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<Span>,
    /// Power drawn, in mW.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_mw: Option<Span>,
    /// Reasons to run below the requested clock, and the number of working readings that saw them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub slowdown_readings: BTreeMap<Slowdown, u32>,
    /// Time in ns that the driver counted for each reason it has a counter for; 0 is no time, absent
    /// means that it was not counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub slowdown_ns: BTreeMap<Slowdown, u64>,
    /// Processes on the GPU that this run did not start, by process number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_processes: Vec<ComputeProcess>,
    /// Most processes at once that appeared after the start and that this machine does not know:
    /// in a container the profiled program is one of them.
    #[serde(skip_serializing_if = "is_none")]
    pub unknown_processes: u32,
    /// What the driver reported meanwhile.
    #[serde(flatten)]
    pub faults: Faults,
}

/// Whether a count is 0, and need not be written.
fn is_none<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

impl State {
    /// A state without readings, with the processes that were on the GPU before anything was started
    /// on it. A process of unknown owner cannot be ours then.
    pub(super) fn new(before: &Reading) -> State {
        let mut state = State::default();
        for (process, owner) in &before.processes {
            if *owner != Owner::Ours {
                state.meet(process);
            }
        }
        state
    }

    /// Adds a reading.
    pub(super) fn add(&mut self, reading: &Reading) {
        self.readings += 1;
        self.temperature_c = Span::grown(self.temperature_c, reading.temperature_c);
        self.power_mw = Span::grown(self.power_mw, reading.power_mw);
        // An idle GPU lowers its clock, which has nothing to do with the kernels.
        if reading.rests != Some(true) {
            self.working_readings += 1;
            self.sm_clock_mhz = Span::grown(self.sm_clock_mhz, reading.sm_clock_mhz);
            self.memory_clock_mhz = Span::grown(self.memory_clock_mhz, reading.memory_clock_mhz);
            for reason in &reading.slowdown {
                *self.slowdown_readings.entry(*reason).or_default() += 1;
            }
        }
        let known: HashSet<u32> = self.other_processes.iter().map(|p| p.pid).collect();
        let mut unknown = 0;
        for (process, owner) in &reading.processes {
            match owner {
                Owner::Ours => {}
                Owner::Other => self.meet(process),
                Owner::Unknown if known.contains(&process.pid) => self.meet(process),
                Owner::Unknown => unknown += 1,
            }
        }
        self.unknown_processes = self.unknown_processes.max(unknown);
    }

    /// Adds what the driver's counters, in ns, counted between two moments.
    pub(super) fn count(
        &mut self,
        before: &BTreeMap<Slowdown, u64>,
        after: &BTreeMap<Slowdown, u64>,
    ) {
        for (reason, start) in before {
            // A counter that went back was reset, and is ignored.
            let counted = after.get(reason).and_then(|end| end.checked_sub(*start));
            if let Some(ns) = counted {
                self.slowdown_ns.insert(*reason, ns);
            }
        }
    }

    /// Both together, of one program at two times.
    pub fn and(mut self, later: State) -> State {
        let grown = |span, other: Option<Span>| {
            let least = Span::grown(span, other.map(|other| other.min));
            Span::grown(least, other.map(|other| other.max))
        };
        self.readings += later.readings;
        self.working_readings += later.working_readings;
        self.sm_clock_mhz = grown(self.sm_clock_mhz, later.sm_clock_mhz);
        self.memory_clock_mhz = grown(self.memory_clock_mhz, later.memory_clock_mhz);
        self.temperature_c = grown(self.temperature_c, later.temperature_c);
        self.power_mw = grown(self.power_mw, later.power_mw);
        for (reason, readings) in &later.slowdown_readings {
            *self.slowdown_readings.entry(*reason).or_default() += readings;
        }
        for (reason, ns) in &later.slowdown_ns {
            *self.slowdown_ns.entry(*reason).or_default() += ns;
        }
        self.faults = self.faults.and(later.faults);
        later.other_processes.iter().for_each(|it| self.meet(it));
        self.unknown_processes = self.unknown_processes.max(later.unknown_processes);
        self
    }

    /// The reasons for which it ran below the requested clock for longer than can be neglected.
    pub fn slowdowns(&self) -> BTreeSet<Slowdown> {
        let counted = self
            .slowdown_ns
            .iter()
            .filter(|(_, ns)| **ns >= SHORTEST_SLOWDOWN_NS);
        let seen = self.slowdown_readings.iter().filter(|(reason, readings)| {
            // A counted reason is reported above, so one reading of it alone is ignored; and the
            // driver reports `hw-slowdown` for a moment whenever it changes clocks.
            let once_is_nothing =
                **reason == Slowdown::HwSlowdown || self.slowdown_ns.contains_key(reason);
            **readings >= if once_is_nothing { 2 } else { 1 }
        });
        counted
            .map(|(reason, _)| *reason)
            .chain(seen.map(|(reason, _)| *reason))
            .collect()
    }

    fn meet(&mut self, process: &ComputeProcess) {
        match self
            .other_processes
            .binary_search_by_key(&process.pid, |known| known.pid)
        {
            Err(place) => self.other_processes.insert(place, process.clone()),
            Ok(place) => {
                let known = &mut self.other_processes[place];
                known.memory_bytes = known.memory_bytes.max(process.memory_bytes);
                if known.name.is_none() {
                    known.name.clone_from(&process.name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, memory_bytes: u64) -> ComputeProcess {
        ComputeProcess {
            pid,
            name: None,
            memory_bytes: Some(memory_bytes),
        }
    }

    fn with(processes: Vec<(ComputeProcess, Owner)>) -> Reading {
        Reading {
            processes,
            ..Reading::default()
        }
    }

    fn clock(sm_clock_mhz: u32, rests: Option<bool>) -> Reading {
        Reading {
            sm_clock_mhz: Some(sm_clock_mhz),
            temperature_c: Some(30),
            rests,
            ..Reading::default()
        }
    }

    #[test]
    fn the_clock_of_a_resting_gpu_is_not_in_the_span() {
        let mut state = State::default();
        for (mhz, rests) in [(345, Some(true)), (1755, Some(false)), (1980, None)] {
            state.add(&clock(mhz, rests));
        }
        let (min, max) = (1755, 1980);
        assert_eq!(state.sm_clock_mhz, Some(Span { min, max }));
        assert_eq!((state.readings, state.working_readings), (3, 2));
        assert_eq!(state.temperature_c, Some(Span { min: 30, max: 30 }));
        assert_eq!(state.power_mw, None);
    }

    #[test]
    fn a_slowdown_of_an_idle_gpu_slowed_no_kernel() {
        let mut state = State::default();
        let reading = |rests| Reading {
            rests: Some(rests),
            slowdown: [Slowdown::SwPowerCap].into(),
            ..Reading::default()
        };
        state.add(&reading(true));
        assert_eq!(state.slowdowns(), BTreeSet::new());
        state.add(&reading(false));
        assert_eq!(state.slowdowns(), [Slowdown::SwPowerCap].into());
    }

    #[test]
    fn a_moment_below_the_clock_is_neglected_where_the_time_is_counted() {
        use Slowdown::{HwSlowdown, HwThermal, SwPowerCap};
        for (readings, ns, slowed) in [
            (vec![(SwPowerCap, 1)], vec![(SwPowerCap, 999_999)], None),
            (
                vec![(SwPowerCap, 2)],
                vec![(SwPowerCap, 0)],
                Some(SwPowerCap),
            ),
            (vec![], vec![(SwPowerCap, 1_000_000)], Some(SwPowerCap)),
            (vec![(HwThermal, 1)], vec![], Some(HwThermal)),
            (vec![(HwSlowdown, 1)], vec![], None),
            (vec![(HwSlowdown, 2)], vec![], Some(HwSlowdown)),
        ] {
            let state = State {
                slowdown_readings: readings.into_iter().collect(),
                slowdown_ns: ns.into_iter().collect(),
                ..State::default()
            };
            assert_eq!(state.slowdowns(), slowed.into_iter().collect(), "{state:?}");
        }
    }

    #[test]
    fn counters_count_by_difference_and_not_at_all_after_a_reset() {
        use Slowdown::{PowerBrake, SwPowerCap, SwThermal, SyncBoost};
        let mut state = State::default();
        let before = [(SwPowerCap, 5), (SwThermal, 7), (SyncBoost, 9)];
        let after = [
            (SwPowerCap, 8),
            (SwThermal, 7),
            (SyncBoost, 1),
            (PowerBrake, 4),
        ];
        state.count(&before.into(), &after.into());
        assert_eq!(state.slowdown_ns, [(SwPowerCap, 3), (SwThermal, 0)].into());
    }

    #[test]
    fn of_unknown_processes_only_those_from_before_the_start_are_others() {
        let mut state = State::new(&with(vec![(process(900, 5), Owner::Unknown)]));
        state.add(&with(vec![
            (process(900, 8), Owner::Unknown),
            (process(901, 1), Owner::Unknown),
            (process(17, 2), Owner::Other),
            (process(18, 2), Owner::Ours),
        ]));
        state.add(&Reading::default());
        assert_eq!(state.other_processes, [process(17, 2), process(900, 8)]);
        assert_eq!(state.unknown_processes, 1);
    }

    #[test]
    fn a_state_survives_json_and_what_is_missing_there_is_absent() {
        let mut state = State::new(&with(vec![(process(3, 4), Owner::Other)]));
        state.add(&Reading {
            slowdown: [Slowdown::HwThermal].into(),
            ..clock(1980, Some(false))
        });
        let boosted = [(Slowdown::SyncBoost, 1)].into();
        state.count(&boosted, &boosted);
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
        let readings = r#""slowdown_readings":{"hw-thermal":1}"#;
        assert!(
            text.contains(readings) && !text.contains("power_mw"),
            "{text}"
        );
        let empty: State = serde_json::from_str("{}").unwrap();
        assert_eq!(empty, State::default());
    }

    #[test]
    fn the_state_at_two_times_is_that_of_all_readings() {
        let readings = [
            clock(1755, Some(false)),
            with(vec![
                (process(17, 2), Owner::Other),
                (process(9, 1), Owner::Unknown),
            ]),
            Reading {
                slowdown: [Slowdown::HwThermal].into(),
                ..clock(1980, Some(false))
            },
            clock(345, Some(true)),
        ];
        let of = |readings: &[Reading]| {
            let mut state = State::default();
            readings.iter().for_each(|reading| state.add(reading));
            state.count(
                &[(Slowdown::SyncBoost, 1)].into(),
                &[(Slowdown::SyncBoost, 3)].into(),
            );
            state.faults = Faults {
                xids: [31, 30 + readings.len() as u32].into(),
                uncorrected_errors: readings.len() as u64,
            };
            state
        };
        let mut all = of(&readings);
        all.slowdown_ns = [(Slowdown::SyncBoost, 4)].into();
        all.faults.xids = [31, 33].into();
        assert_eq!(of(&readings[..1]).and(of(&readings[1..])), all);
    }

    #[test]
    fn what_is_new_since_a_moment_is_the_difference() {
        let faults = |xids: &[u32], uncorrected_errors| Faults {
            xids: xids.iter().copied().collect(),
            uncorrected_errors,
        };
        let before = faults(&[31], 2);
        assert_eq!(faults(&[31, 48], 5).since(&before), faults(&[48], 3));
        assert_eq!(faults(&[31], 0).since(&before), Faults::default());
    }
}
