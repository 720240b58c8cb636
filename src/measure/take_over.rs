//! What a run takes over from an interrupted one, variant by variant, and leaves to the next.

use super::bench::Bench;
use super::earlier::{Before, Failure, failed_before, not_resumed, with_failure};
use super::journal::{Journal, VariantEntry};
use super::measured::Measured;
use super::order::Order;
use super::readable::ReadableFiles;
use super::resume::{
    Key, KeyedMachine, KeyedSide, Readable, difference, difference_of_subject, key,
};
use super::rounds::Subjects;
use super::sides::Sides;
use crate::config::Variant;
use crate::files::clear_measured;
use crate::finding::{Code, Error, Finding, Severity};
use crate::plan::{Side, VariantPlan};
use crate::process::interrupted_soon;
use crate::verdict::Schedule;

/// What the key of every variant of a run is made from.
#[derive(Clone, Copy)]
pub(super) struct Keys<'r, 'a> {
    pub order: &'r Order<'a>,
    pub bench: &'r Bench<'a>,
    /// What programs of a side could read, or why that is not known.
    pub files: &'r [(Side, Result<ReadableFiles, String>)],
}

impl<'r> Keys<'r, '_> {
    fn readable(&self, side: Side) -> Result<Readable<'r>, &'r str> {
        if let Some(sha256) = self.order.packed_files {
            return Ok(Readable::Packed(sha256));
        }
        let files = self.files.iter().find(|(of, _)| *of == side);
        match files {
            Some((_, Ok(files))) => Ok(Readable::Checkout(files)),
            Some((_, Err(why))) => Err(why),
            None => Err("what it could read is not known"),
        }
    }

    /// The key of a variant that is about to be measured; an error says why it has none.
    fn key(&self, sides: &Sides<'_>, variant: &Variant) -> Result<Key, String> {
        let Some((artifact, _)) = &sides.current else {
            return Err("it was not built".to_owned());
        };
        let current = KeyedSide {
            config: self.order.batch.config,
            variant,
            artifact,
            files: self.readable(Side::Current),
        };
        let base = sides.base.as_ref().and_then(|base| base.as_ref().ok());
        let base = base.map(|base| KeyedSide::of_base(base, self.readable(Side::Base)));
        key(KeyedMachine::of(self.bench), current, base)
    }
}

/// How a variant is measured, and what an interrupted run noted of it, if that is the same
/// measurement.
pub(super) fn before(
    keys: Keys<'_, '_>,
    measured: &mut Measured,
    sides: &mut Sides<'_>,
    chosen: Option<(Variant, Schedule)>,
    earlier: Option<VariantEntry>,
) -> Result<(Option<(Variant, Schedule)>, Before), Error> {
    let id = &sides.variant.id;
    let (Some(journal), Some(_)) = (keys.order.journal, &sides.current) else {
        return Ok((chosen, Before::default()));
    };
    let had_any = earlier.is_some();
    if let Some(mut earlier) = earlier {
        let again = earlier.schedule.filter(|one| sides.may_choose(one));
        let again = again.filter(|_| chosen.is_some());
        let again = again.map(|schedule| (sides.with(schedule), schedule));
        let again = again.or_else(|| chosen.clone());
        let variant = again.as_ref().map_or(sides.variant, |(variant, _)| variant);
        let now = keys.key(sides, variant);
        let failed = std::mem::take(&mut earlier.failed);
        let other = now.as_ref().map(|now| match earlier.key.is_empty() {
            true => None,
            false => difference(&earlier.key, now),
        });
        match other {
            // Also where nobody can know whether it is the same: then it must not pass unseen.
            Ok(None) | Err(_) if !failed.is_empty() => {
                let (key, earlier) = (now.ok(), None);
                let before = Before {
                    key,
                    earlier,
                    failed,
                };
                return Ok((again, before));
            }
            Ok(None) => {
                let before = Before {
                    key: now.ok(),
                    earlier: Some(earlier),
                    failed,
                };
                return Ok((again, before));
            }
            // Another machine of the same run is no reason to try again what failed.
            Ok(Some(_))
                if !failed.is_empty()
                    && journal.is_part()
                    && now
                        .as_ref()
                        .is_ok_and(|now| difference_of_subject(&earlier.key, now).is_none()) =>
            {
                let before = Before {
                    key: now.ok(),
                    earlier: None,
                    failed,
                };
                return Ok((again, before));
            }
            Ok(Some(why)) => {
                let why = with_failure(&why, &failed);
                measured.findings.push(not_resumed(id, &why));
            }
            Err(why) => measured.findings.push(not_resumed(id, why)),
        }
        clear_measured(keys.order.output, id)?;
    }
    // Also where others were chosen for a moment.
    let chosen = chosen.map(|(_, schedule)| (sides.with(schedule), schedule));
    let variant = chosen
        .as_ref()
        .map_or(sides.variant, |(variant, _)| variant);
    let key = keys.key(sides, variant);
    if let (Err(why), false, Some(_)) = (&key, had_any, journal.interrupted()) {
        measured.findings.push(not_resumed(id, why));
    }
    let before = Before {
        key: key.ok(),
        ..Before::default()
    };
    Ok((chosen, before))
}

/// What is noted of a variant if it fails from now on.
pub(super) fn failure(
    order: &Order<'_>,
    measured: &Measured,
    variant: &Variant,
    before: &Before,
    schedule: Option<Schedule>,
) -> Option<Failure> {
    let key = before.key.clone().unwrap_or_default();
    let entry = order.journal?.entry(variant, key, schedule);
    let found = measured.findings.len();
    Some(Failure { entry, found })
}

/// Notes that a variant failed, so that a run that goes on with this one says so, too: what is only
/// measured again could pass then.
pub(super) fn note_failed(
    order: &Order<'_>,
    measured: &Measured,
    variant: &Variant,
    failure: Option<Failure>,
) -> Result<(), Error> {
    let (Some(journal), Some(Failure { mut entry, found })) = (order.journal, failure) else {
        return Ok(());
    };
    let mut profiles = measured.profiles.iter();
    let is_kept = profiles.any(|profile| profile.variant == variant.id);
    // What its captures show is found in them again.
    let is_failure = |one: &Finding| {
        let denies = one.concerns(&variant.id) && one.severity == Severity::Deny;
        denies && (!is_kept || one.code == Code::AlteredDuringRun)
    };
    let found = measured.findings.get(found..).unwrap_or_default();
    if found.iter().any(is_failure) {
        if interrupted_soon() {
            return Err(Error::Interrupted);
        }
        let of_it = found.iter().filter(|one| one.concerns(&variant.id));
        entry.failed = of_it.cloned().collect();
        journal.note_failed(&entry)?;
    }
    Ok(())
}

/// Lets a variant stay failed that failed in the interrupted run.
pub(super) fn keep_failed(
    order: &Order<'_>,
    measured: &mut Measured,
    variant: &Variant,
    failed: Vec<Finding>,
) {
    let denies = failed.iter().filter(|one| one.severity == Severity::Deny);
    for finding in denies {
        let text = format!("{} (in the interrupted run)", finding.message);
        order.batch.watch.ended(variant, "profile", &text);
    }
    measured
        .findings
        .extend(failed.into_iter().map(failed_before));
}

/// Takes over what an interrupted run measured of a variant, if all of it is there and is what that run
/// wrote.
pub(super) fn go_on(
    order: &Order<'_>,
    bench: &Bench<'_>,
    measured: &mut Measured,
    subjects: &mut Subjects<'_>,
    earlier: VariantEntry,
    plan: &VariantPlan,
) -> Result<(), Error> {
    let output = order.output;
    let began = order.journal.and_then(Journal::interrupted);
    let (id, retries) = (earlier.variant.clone(), earlier.retries.clone());
    let uuid = &bench.gpu.uuid;
    match subjects.go_on_with(earlier, plan, output, uuid, began.unwrap_or_default())? {
        Ok(resumed) => measured.resumed.push(resumed),
        Err(why) => {
            measured.findings.push(not_resumed(&id, &why));
            clear_measured(output, &id)?;
            // Otherwise damaged captures would give all retries again to the next run that goes on.
            if !retries.is_empty() {
                subjects.noted.repeats(&retries, subjects.base.is_some());
            }
        }
    }
    Ok(())
}
