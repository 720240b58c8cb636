//! What each GPU of a run did, where several measured it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terms::VariantId;

/// What one GPU measured of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuPart {
    /// Its UUID.
    pub uuid: String,
    /// The name of its model.
    pub name: String,
    /// What it measured, the controls of its suites among them.
    pub variants: Vec<VariantId>,
    /// Processes that were profiled.
    pub processes: u32,
    /// Seconds in these processes.
    pub profile_s: f64,
    /// Seconds from the first variant to the last; of several slices together.
    pub wall_s: f64,
    /// How much longer processes took beside those on the other GPUs of the host; `None` where
    /// nothing is known of a run on one GPU alone, and where the GPUs are of different hosts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<DriverTurns>,
}

/// The time of processes beside others, and alone. The driver takes turns between the GPUs of a host
/// for each profiled launch. One process of the timing phase counts for each variant of which a run on
/// one GPU is known with as many launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverTurns {
    /// How many variants count.
    pub variants: u32,
    /// Seconds that their processes took in this run.
    pub beside_s: f64,
    /// Seconds that they took in an earlier run, on one GPU alone.
    pub alone_s: f64,
}

impl GpuPart {
    /// Adds a part to others: to that of the same GPU, which measured one after the other.
    pub fn add_to(self, parts: &mut Vec<GpuPart>) {
        let Some(part) = parts.iter_mut().find(|part| part.uuid == self.uuid) else {
            parts.push(self);
            return;
        };
        for variant in self.variants {
            if !part.variants.contains(&variant) {
                part.variants.push(variant);
            }
        }
        part.processes = part.processes.saturating_add(self.processes);
        part.profile_s += self.profile_s;
        part.wall_s += self.wall_s;
        part.turns = match (part.turns, self.turns) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
    }
}

impl DriverTurns {
    /// Those of two GPUs, or of two parts of one.
    fn and(self, other: DriverTurns) -> DriverTurns {
        DriverTurns {
            variants: self.variants.saturating_add(other.variants),
            beside_s: self.beside_s + other.beside_s,
            alone_s: self.alone_s + other.alone_s,
        }
    }

    /// The share of the time that is beyond that of a process alone, in percent; 0 where there is none.
    pub fn share_percent(&self) -> Option<f64> {
        let share = 100.0 * (self.beside_s - self.alone_s) / self.beside_s;
        share.is_finite().then(|| share.max(0.0))
    }

    /// Those of several GPUs together; `None` where none of them has any.
    pub fn of_all(parts: &[GpuPart]) -> Option<DriverTurns> {
        let turns = parts.iter().filter_map(|part| part.turns);
        turns.reduce(DriverTurns::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_driver_is_the_time_beyond_that_of_a_process_alone() {
        let turns = |beside_s, alone_s| DriverTurns {
            variants: 1,
            beside_s,
            alone_s,
        };
        assert_eq!(turns(4.0, 3.0).share_percent(), Some(25.0));
        // Noise, and no time at all.
        assert_eq!(turns(3.0, 4.0).share_percent(), Some(0.0));
        assert_eq!(turns(0.0, 0.0).share_percent(), None);
        let part = |turns| GpuPart {
            uuid: "GPU-1".to_owned(),
            name: "H200".to_owned(),
            variants: Vec::new(),
            processes: 1,
            profile_s: 1.0,
            wall_s: 1.0,
            turns,
        };
        let parts = [
            part(None),
            part(Some(turns(4.0, 3.0))),
            part(Some(turns(6.0, 3.0))),
        ];
        let all = DriverTurns::of_all(&parts).unwrap();
        assert_eq!((all.variants, all.share_percent()), (2, Some(40.0)));
        assert_eq!(DriverTurns::of_all(&parts[..1]), None);
        // Several slices of one GPU are one part.
        let mut joined = Vec::new();
        for part in parts {
            part.add_to(&mut joined);
        }
        assert_eq!(joined.len(), 1);
        assert_eq!((joined[0].processes, joined[0].wall_s), (3, 3.0));
        assert_eq!(DriverTurns::of_all(&joined), Some(all));
    }
}
