//! What the journal says of one variant while it is measured: what is taken over of an interrupted
//! run, and what another run could go on with.

use std::collections::BTreeMap;

use super::journal::{Journal, SideEntry, TakenCapture, VariantEntry};
use crate::finding::{Error, Finding};
use crate::plan::{Job, Side, Task};
use crate::terms::Tier;

/// The journal of one variant.
pub(super) struct Noted<'a> {
    /// The journal, and what is noted next. `None` where nothing is noted: nobody could know whether a
    /// later measurement is the same.
    on: Option<(&'a Journal, VariantEntry)>,
    /// Captures to take over, by side and stem.
    taken: BTreeMap<(Side, String), TakenCapture>,
    /// The tier of these.
    tier: Option<Tier>,
    /// Rounds that are noted; `None` before the first note.
    rounds: Option<usize>,
    due: Option<Due>,
}

/// Rounds that are whole, and how many captures each side has of them and of what is before them.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub rounds: usize,
    pub current: usize,
    pub base: Option<usize>,
}

impl<'a> Noted<'a> {
    /// Of a variant of which nothing is noted yet.
    pub fn new(on: Option<(&'a Journal, VariantEntry)>) -> Noted<'a> {
        Noted {
            on,
            taken: BTreeMap::new(),
            tier: None,
            rounds: None,
            due: None,
        }
    }

    /// From here on what an interrupted run noted is taken over.
    pub fn go_on_with(
        &mut self,
        earlier: VariantEntry,
        taken: BTreeMap<(Side, String), TakenCapture>,
    ) {
        let is_any = !taken.is_empty();
        self.tier = is_any.then_some(earlier.tier);
        self.rounds = is_any.then_some(earlier.rounds as usize);
        self.taken = taken;
        if let Some((_, entry)) = &mut self.on {
            *entry = earlier;
        }
    }

    /// The tier that the captures to take over were measured on, where there are any.
    pub fn tier(&self) -> Option<Tier> {
        self.tier
    }

    /// The capture of a job, where an interrupted run left it.
    pub fn take(&mut self, job: &Job) -> Option<TakenCapture> {
        match job.task {
            Task::Measure(_) => self.taken.remove(&(job.side, job.stem.clone())),
            _ => None,
        }
    }

    /// So many rounds are whole, with so many captures.
    pub fn whole(&mut self, rounds: usize, current: usize, base: Option<usize>) {
        let is_new = self.rounds.is_none_or(|noted| rounds > noted);
        self.due = (self.on.is_some() && is_new).then_some(Due {
            rounds,
            current,
            base,
        });
    }

    /// What is to be noted.
    pub fn due(&self) -> Option<Due> {
        self.due
    }

    /// Notes it.
    pub fn write(&mut self, tier: Tier, current: SideEntry, base: Option<SideEntry>) {
        let (Some((journal, entry)), Some(due)) = (&mut self.on, self.due.take()) else {
            return;
        };
        self.rounds = Some(due.rounds);
        entry.tier = tier;
        entry.rounds = u32::try_from(due.rounds).unwrap_or(u32::MAX);
        (entry.current, entry.base) = (current, base);
        journal.note(entry);
    }

    /// It is measured anew: neither is anything taken over, nor does the journal name what is gone.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget(&mut self) -> Result<(), Error> {
        self.drop_taken();
        match &self.on {
            Some((journal, entry)) => journal.forget(&entry.variant),
            None => Ok(()),
        }
    }

    fn drop_taken(&mut self) {
        self.taken.clear();
        (self.tier, self.rounds, self.due) = (None, None, None);
    }

    /// It is measured anew because of the machine, and a run that goes on counts that, too. Nothing is
    /// taken over any more.
    pub fn repeats(&mut self, warnings: &[Finding], is_beside: bool) {
        self.drop_taken();
        if let Some((journal, entry)) = &mut self.on {
            entry.retries = warnings.to_vec();
            entry.rounds = 0;
            entry.current = SideEntry::default();
            entry.base = is_beside.then(SideEntry::default);
            journal.note(entry);
        }
    }

    /// From here on nothing of it is noted.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn close(&mut self) -> Result<(), Error> {
        self.forget()?;
        self.on = None;
        Ok(())
    }
}
