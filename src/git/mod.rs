//! Revisions: the one of the working tree, for provenance; others, checked out beside it; files of
//! others; and trial merges. Nothing here runs code of a revision: hooks and monitors are off, and a
//! folder that only looks like a bare repository is not taken for one.

mod attributes;
mod call;
mod changed;
mod links;
mod merge;
mod name;
#[doc(hidden)]
pub mod printed;
mod revision;
mod settings;
mod tree;
mod worktree;

pub use attributes::{attributes, converted};
pub use call::error;
pub use changed::changed_since;
#[cfg(test)]
pub(crate) use changed::tests::git as git_of_tests;
pub use links::{behind_own_links, is_input_file, is_input_folder, real_input, sha256_of_input};
pub use merge::{Merged, conflict, trial_merge};
pub use name::{
    Named, former_commits, full_name, is_whole_hash, named, of_reference, remote_branch_at,
};
pub use revision::{
    Repository, commit_of, contains, how_to_fetch, is_shallow, merge_base, one_before_last, origin,
    person, repository, revision, short, was, why_unknown,
};
pub use settings::settings_from_tree;
pub use tree::{Object, TreeEntry, files_at, is_left_out, objects_at, shown, tracked, untracked};
pub use worktree::Worktree;
