//! Which of two measurements of the same jobs counts: the first one, or its repeat on another GPU.

use std::collections::BTreeSet;

use crate::evidence::{SickGpu, SymptomKind};

/// What a GPU measured of a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// UUIDs of its GPUs, as far as its profiles name them.
    pub gpus: BTreeSet<String>,
    /// Those with symptoms.
    pub sick: Vec<SickGpu>,
}

/// Which measurement counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// The first one: its GPU is not sick.
    First,
    /// The repeat: the first GPU is sick, and the other one is not.
    Repeat,
    /// Neither.
    Neither,
}

/// What follows from a measurement and its repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Which measurement counts.
    pub counts: Counts,
    /// The GPUs that go into quarantine.
    pub quarantined: Vec<SickGpu>,
    /// The kinds of symptoms that both GPUs have: the change or a lock may be their cause, and neither
    /// GPU goes into quarantine for them.
    pub common: BTreeSet<SymptomKind>,
}

impl Measurement {
    /// The kinds of its symptoms.
    pub fn kinds(&self) -> BTreeSet<SymptomKind> {
        self.sick.iter().flat_map(SickGpu::kinds).collect()
    }

    /// Whether it is known to be of other GPUs than another one. Symptoms name their GPU also where no
    /// profile is left.
    pub fn is_elsewhere(&self, other: &Measurement) -> bool {
        let uuids = |one: &Measurement| -> BTreeSet<String> {
            let sick = one.sick.iter().map(|gpu| gpu.uuid.clone());
            one.gpus.iter().cloned().chain(sick).collect()
        };
        let own = uuids(self);
        !own.is_empty() && own.is_disjoint(&uuids(other))
    }
}

/// Decides by what the measurements themselves show. A repeat that nothing in the first measurement asks
/// for never counts, so that no change gets a second try; nor does one on the same GPU.
pub fn decide(first: &Measurement, repeat: Option<&Measurement>) -> Decision {
    let alone = |one: &Measurement| -> Vec<SickGpu> {
        let certain = one.sick.iter().filter(|gpu| gpu.is_certain());
        certain.cloned().collect()
    };
    let neither = |quarantined, common| Decision {
        counts: Counts::Neither,
        quarantined,
        common,
    };
    if first.sick.is_empty() {
        return Decision {
            counts: Counts::First,
            quarantined: Vec::new(),
            common: BTreeSet::new(),
        };
    }
    let Some(repeat) = repeat.filter(|repeat| repeat.is_elsewhere(first)) else {
        return neither(alone(first), BTreeSet::new());
    };
    if repeat.sick.is_empty() {
        return Decision {
            counts: Counts::Repeat,
            quarantined: first.sick.clone(),
            common: BTreeSet::new(),
        };
    }
    let common: BTreeSet<SymptomKind> = first
        .kinds()
        .intersection(&repeat.kinds())
        .copied()
        .collect();
    // Of what both show, a change or a lock may be the cause, but not of a defect that one has.
    let quarantined = match common.contains(&SymptomKind::Hardware) {
        true => Vec::new(),
        false => [alone(first), alone(repeat)].concat(),
    };
    neither(quarantined, common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Slowdown;
    use crate::evidence::Symptom;
    use crate::terms::VariantId;
    use crate::verdict::Change;

    fn variant() -> VariantId {
        VariantId {
            suite: "s".into(),
            variant: "control".into(),
        }
    }

    fn xid() -> Symptom {
        Symptom::Xid { xid: 48 }
    }

    fn lost() -> Symptom {
        Symptom::Lost {
            cause: "GPU is lost".into(),
        }
    }

    fn hot() -> Symptom {
        Symptom::Throttling {
            variant: variant(),
            reasons: [Slowdown::HwThermal].into(),
        }
    }

    fn slow() -> Symptom {
        Symptom::Control {
            variant: variant(),
            kernel: "k".into(),
            change: Change::RelativePercent(3.0),
        }
    }

    fn measured(gpu: &str, symptoms: &[Symptom]) -> Measurement {
        let sick = SickGpu {
            uuid: gpu.to_owned(),
            name: "a model".to_owned(),
            symptoms: symptoms.to_vec(),
        };
        Measurement {
            gpus: [gpu.to_owned()].into(),
            sick: match symptoms {
                [] => Vec::new(),
                _ => vec![sick],
            },
        }
    }

    #[test]
    fn a_sick_gpu_is_out_after_one_repeat_and_what_all_gpus_show_quarantines_none() {
        use Counts::{First, Neither, Repeat};
        type Row = (
            &'static str,
            Vec<Symptom>,
            Option<(&'static str, Vec<Symptom>)>,
            Counts,
            &'static [&'static str],
        );
        let rows: Vec<Row> = vec![
            ("healthy", vec![], None, First, &[]),
            (
                "healthy, and repeated",
                vec![],
                Some(("B", vec![])),
                First,
                &[],
            ),
            (
                "healthy, and the repeat is sick",
                vec![],
                Some(("B", vec![slow()])),
                First,
                &[],
            ),
            (
                "3 % slow here alone",
                vec![slow()],
                Some(("B", vec![])),
                Repeat,
                &["A"],
            ),
            (
                "hot here alone",
                vec![hot()],
                Some(("B", vec![])),
                Repeat,
                &["A"],
            ),
            (
                "Xid here alone",
                vec![xid()],
                Some(("B", vec![])),
                Repeat,
                &["A"],
            ),
            (
                "lost here alone",
                vec![lost()],
                Some(("B", vec![])),
                Repeat,
                &["A"],
            ),
            ("slow, no other GPU", vec![slow()], None, Neither, &[]),
            ("hot, no other GPU", vec![hot()], None, Neither, &[]),
            ("Xid, no other GPU", vec![xid()], None, Neither, &["A"]),
            (
                "slow, repeated on the same GPU",
                vec![slow()],
                Some(("A", vec![])),
                Neither,
                &[],
            ),
            (
                "Xid, repeated on the same GPU",
                vec![xid()],
                Some(("A", vec![])),
                Neither,
                &["A"],
            ),
            (
                "slow everywhere",
                vec![slow()],
                Some(("B", vec![slow()])),
                Neither,
                &[],
            ),
            (
                "hot everywhere",
                vec![hot()],
                Some(("B", vec![hot()])),
                Neither,
                &[],
            ),
            (
                "Xid everywhere",
                vec![xid()],
                Some(("B", vec![lost()])),
                Neither,
                &[],
            ),
            (
                "slow here, hot there",
                vec![slow()],
                Some(("B", vec![hot()])),
                Neither,
                &[],
            ),
            (
                "slow here, Xid there",
                vec![slow()],
                Some(("B", vec![xid()])),
                Neither,
                &["B"],
            ),
            (
                "Xid here, hot there",
                vec![xid()],
                Some(("B", vec![hot()])),
                Neither,
                &["A"],
            ),
            (
                "Xid and slow here, slow there",
                vec![xid(), slow()],
                Some(("B", vec![slow()])),
                Neither,
                &["A"],
            ),
            (
                "Xid and slow here, Xid and slow there",
                vec![xid(), slow()],
                Some(("B", vec![slow(), lost()])),
                Neither,
                &[],
            ),
            (
                "slow and hot here, slow there",
                vec![slow(), hot()],
                Some(("B", vec![slow()])),
                Neither,
                &[],
            ),
        ];
        for (what, first, repeat, counts, quarantined) in rows {
            let repeat = repeat.map(|(gpu, symptoms)| measured(gpu, &symptoms));
            let decision = decide(&measured("A", &first), repeat.as_ref());
            assert_eq!(decision.counts, counts, "{what}");
            let uuids: Vec<&str> = decision
                .quarantined
                .iter()
                .map(|gpu| gpu.uuid.as_str())
                .collect();
            assert_eq!(uuids, quarantined, "{what}");
        }
    }

    #[test]
    fn a_repeat_of_which_no_gpu_is_known_does_not_count() {
        let nowhere = Measurement {
            gpus: BTreeSet::new(),
            sick: Vec::new(),
        };
        let decision = decide(&measured("A", &[slow()]), Some(&nowhere));
        assert_eq!(decision.counts, Counts::Neither);
        // A GPU that is lost may leave no profile, and its symptom names it.
        let lost = Measurement {
            gpus: BTreeSet::new(),
            ..measured("A", &[lost()])
        };
        assert!(!lost.is_elsewhere(&lost));
        assert!(!nowhere.is_elsewhere(&lost));
        let same = decide(&lost, Some(&measured("A", &[])));
        assert_eq!(same.counts, Counts::Neither);
        let other = decide(&lost, Some(&measured("B", &[])));
        assert_eq!(other.counts, Counts::Repeat);
    }
}
