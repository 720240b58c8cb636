//! How often the gate is wrong, asked of rounds that were measured on several GPUs of one model.
//!
//! A check is simulated by drawing whole rounds, with replacement, from what was measured within
//! one start of a machine, and judged with the library exactly as `sparsek-gate check` does. Such
//! checks tell what the rule makes of these machines; how many other machines would behave alike
//! is bounded by the number of machines, however many checks are drawn.
//!
//! A round that is drawn twice repeats its noise: the mean then varies as that of fewer rounds, and
//! the spread looks no larger. Such checks raise a false alarm sooner than real ones.

mod check;
mod data;
mod interval;
mod measured;
mod page;
mod parts;
mod random;
mod table;
mod tally;
mod targets;

use std::error::Error;
use std::path::PathBuf;

use sparsek_gate::config::Config;

use data::Data;
use page::Page;
use parts::Trial;

/// What is asked.
pub struct Settings {
    /// Folder of the starts.
    pub data: PathBuf,
    /// The configuration whose tolerances are judged.
    pub config: PathBuf,
    /// Checks drawn for each question.
    pub checks: usize,
    /// Of the random numbers.
    pub seed: u64,
    /// Other tolerances too.
    pub sweep: bool,
}

/// What came of it.
pub struct Evaluation {
    /// For people.
    pub text: String,
    /// Targets that were missed; none is success.
    pub missed: Vec<String>,
}

/// Draws the checks and counts.
pub fn evaluate(settings: &Settings) -> Result<Evaluation, Box<dyn Error>> {
    let config = Config::load(&settings.config)?;
    let data = Data::read(&settings.data, &config)?;
    let trial = Trial::new(&data, settings);
    let mut page = Page::new(settings, &data);
    page.data();
    page.against_unchanged(&trial)?;
    page.stored_unchanged(&trial)?;
    page.against_planted(&trial)?;
    page.stored_planted(&trial)?;
    if settings.sweep {
        page.sweep(&trial)?;
    }
    let (text, targets) = page.finish();
    Ok(Evaluation {
        text,
        missed: targets.missed(),
    })
}
