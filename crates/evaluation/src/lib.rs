//! How often the gate is wrong, on recorded measurements of several GPUs of one model.
//!
//! A simulated check side by side draws whole rounds, with replacement, from those of one recording. It is
//! judged by the library, look by look, exactly as `sparsek-gate check` does. Such checks show how the
//! rule behaves on these GPUs. What they say about others is limited by the number of GPUs, however many
//! checks are drawn.
//!
//! Of whole programs too few rounds were recorded: their checks draw single processes.
//!
//! A round that is drawn twice repeats its noise, which then looks smaller than it is. So simulated
//! checks raise more false alarms than real ones.

mod checks;
mod data;
mod page;
mod programs;
mod random;
mod share;
mod side_by_side;
mod stored;
mod table;
mod targets;
mod unpack;

use page::Page;

pub use data::Recordings;
pub use unpack::unpacked;

/// The result of an evaluation.
pub struct Evaluation {
    /// The report for people.
    pub text: String,
    /// Targets that were missed; an empty list is success.
    pub missed: Vec<String>,
}

/// Draws so many checks of kernels, and so many of programs, for each question, and counts their verdicts.
/// The same seed draws the same checks.
pub fn evaluate(
    recordings: &Recordings,
    checks: usize,
    of_programs: usize,
    seed: u64,
) -> Evaluation {
    let mut page = Page::new(recordings, [checks, of_programs], seed);
    page.unchanged();
    page.planted();
    page.put_in();
    page.stored();
    page.programs();
    page.finish()
}
