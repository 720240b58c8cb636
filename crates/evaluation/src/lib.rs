//! How often the gate is wrong, by rounds that were measured on several GPUs of one model.
//!
//! A simulated check draws whole rounds, with replacement, from those of one start of a machine. It
//! is judged with the library exactly as `sparsek-gate check` does. Such checks show how the rule
//! behaves on these machines. What they say about other machines is limited by the number of
//! machines, however many checks are drawn.
//!
//! A round that is drawn twice repeats its noise: the mean then varies like that of fewer rounds,
//! but the spread does not look larger. So simulated checks raise more false alarms than real ones.

mod check;
mod data;
mod gpus;
mod interval;
mod measured;
mod models;
mod page;
mod parts;
mod random;
mod shapes;
mod table;
mod tally;
mod targets;
mod unpack;

use std::error::Error;
use std::path::PathBuf;

use sparsek_gate::config::Config;

use data::Data;
use models::Locked;
use page::Page;
use parts::Trial;

pub use unpack::unpacked;

/// The settings of an evaluation.
pub struct Settings {
    /// Folder of all recordings, unpacked.
    pub recordings: PathBuf,
    /// The configuration whose tolerances are judged.
    pub config: PathBuf,
    /// Checks drawn for each question.
    pub checks: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Also try other tolerances.
    pub sweep: bool,
    /// Lock the first launches of each process only: what is learned from fewer launches than are
    /// judged.
    pub locked_launches: Option<usize>,
}

/// The result of an evaluation.
pub struct Evaluation {
    /// The report for people.
    pub text: String,
    /// Targets that were missed; an empty list is success.
    pub missed: Vec<String>,
}

/// Draws the checks and counts their verdicts.
pub fn evaluate(settings: &Settings) -> Result<Evaluation, Box<dyn Error>> {
    let config = Config::load(&settings.config)?;
    let data = Data::read(&settings.recordings.join("rounds"), &config)?;
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
    page.other_noise(&Locked::read(&config)?);
    page.gpus(&gpus::read(&settings.recordings, &config)?);
    let unchanged = shapes::read(&settings.recordings, &config)?;
    page.shapes(&unchanged);
    let (text, targets) = page.finish();
    Ok(Evaluation {
        text,
        missed: targets.missed(),
    })
}
