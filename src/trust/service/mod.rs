//! The CI services that are known, and what the environment says of a run: whether it is one of a
//! pull request, of a push or of a merge queue, and which commits and branches it names.

mod entry;
mod environment;
mod run;
mod table;

pub(super) use entry::Owning;
pub(super) use environment::{Stated, unread_event};
pub(super) use run::{Kind, Run, is_unknown, number, repository_path};
