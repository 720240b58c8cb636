//! Whose rules count: the configuration and the locks that a change is judged by are read from a
//! revision before the change. `docs/trust.md` states the rule.
//!
//! [`bases`] finds the revision, by what `service` knows of the run; [`establish`] makes the rules:
//! `merge` the code that is judged, `rules` and `policy` that code under the revision's policy.
//! `changes`, `locks`, `tools`, `hidden`, `recording` and `tampered` report what the change does to policy,
//! locks, tools and recordings; [`Consent`] is what was accepted from outside the change, and `owners` whose review accepts.

mod authority;
mod brought;
mod change;
mod changes;
mod checkout;
mod consent;
mod credentials;
mod grounds;
mod hidden;
mod locks;
mod merge;
mod owners;
mod place;
mod policy;
mod pull_request;
mod recording;
mod root;
mod rules;
mod service;
mod tampered;
mod tools;

pub use authority::Authority;
pub use brought::unlike_base;
pub use consent::Consent;
pub use credentials::credentials;
pub use grounds::{Grounds, establish};
pub use merge::refuse_untracked;
pub use owners::unowned;
pub use pull_request::{consent, pull_request};
pub use recording::recorded_in_change;
pub use root::{
    Asked, Bases, Root, bases, is_of_reviewed_code, judged_by_itself, refuse_in_target,
};

#[cfg(test)]
mod tests {
    /// The variables of a text of `NAME=VALUE`, which blanks part.
    pub(super) fn environment(text: &str) -> impl Fn(&str) -> Option<String> {
        move |name| {
            let mut words = text.split_whitespace();
            let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.map(str::to_owned)
        }
    }
}
