//! The profilers of one machine.

use std::rc::Rc;

use super::cupti::{Cupti, CuptiCounters, Libraries};
use super::ncu::Ncu;
use super::session::Profiler;
use crate::config::Toolchain;
use crate::finding::Error;
use crate::terms::Tier;

/// The profilers of one machine, one a tier.
pub struct Profilers {
    ncu: Ncu,
    cupti_counters: CuptiCounters,
    cupti: Cupti,
    libraries: Rc<Libraries>,
}

impl Profilers {
    /// The profilers beside an installation of ncu. Nothing else is looked for yet.
    pub fn new(ncu: Ncu) -> Profilers {
        let libraries = Rc::new(Libraries::beside(&ncu.path));
        Profilers {
            cupti_counters: CuptiCounters::new(Rc::clone(&libraries)),
            cupti: Cupti::new(Rc::clone(&libraries)),
            libraries,
            ncu,
        }
    }

    /// What lists all launches of a program.
    pub fn lister(&self) -> &Cupti {
        &self.cupti
    }

    /// What identifies the libcupti that measures below ncu's tier: its path, its size and when it was
    /// written; empty where there is none.
    pub fn libcupti(&self, toolchain: &Toolchain, cuda: &str) -> String {
        let path = self.libraries.libcupti(toolchain, cuda).ok();
        let path = path.and_then(|path| path.canonicalize().ok());
        let meta = path.as_ref().and_then(|path| path.metadata().ok());
        meta.map_or_else(String::new, |meta| {
            format!("{path:?} {} {:?}", meta.len(), meta.modified().ok())
        })
    }

    /// The profiler of a tier.
    ///
    /// # Errors
    /// [`Error::Usage`] for the static tier, where nothing runs.
    pub fn of(&self, tier: Tier) -> Result<&dyn Profiler, Error> {
        match tier {
            Tier::Counters => Ok(&self.ncu),
            Tier::InProcessCounters => Ok(&self.cupti_counters),
            Tier::KernelTimes => Ok(&self.cupti),
            Tier::Static => Err(Error::Usage(
                "nothing runs on the static tier, so there is nothing to measure".to_owned(),
            )),
        }
    }
}
