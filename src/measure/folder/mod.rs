//! What a run leaves in the folder that it measures into, besides profiles and captures: the record of
//! the run, that of each variant, and that its GPU is sick. Another run resumes it by them.

mod file;
mod on_gpus;
mod record;
mod run;
mod slice;

pub use file::{sealed, unsealed};
pub use on_gpus::{folders_of, measured_on, measured_on_none};
pub use record::VariantRecord;
#[cfg(test)]
pub(super) use record::difference;
pub(super) use record::{
    BASE, Complete, Done, FILES, Kept, Key, failed_before, not_resumed, resumed,
};
pub(super) use run::{Recording, SickFile};
pub use run::{RunFile, RunRecord};
pub use slice::{Found, SliceOf};
