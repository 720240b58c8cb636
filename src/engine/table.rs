//! The table of the engines.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::task::Engine;
use super::{buildkite, github, gitlab, kubernetes, slurm};

/// All engines, in the order of the help.
pub static ENGINES: [&Engine; 5] = [
    &github::ENGINE,
    &gitlab::ENGINE,
    &buildkite::ENGINE,
    &kubernetes::ENGINE,
    &slurm::ENGINE,
];

/// The engine of this name.
pub fn engine(name: &str) -> Option<&'static Engine> {
    ENGINES.into_iter().find(|engine| engine.name == name)
}

/// Reads the name of a form of a plan from the command line: `text`, `json` or that of an engine,
/// which is given.
pub fn engine_parser() -> impl TypedValueParser<Value = String> {
    let own = [
        PossibleValue::new("text").help("The slices, for people"),
        PossibleValue::new("json").help("The slices, for scripts"),
    ];
    let engines = ENGINES.map(|engine| PossibleValue::new(engine.name).help(engine.help));
    PossibleValuesParser::new(own.into_iter().chain(engines))
}
