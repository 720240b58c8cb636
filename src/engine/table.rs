//! The table of the engines.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::task::Engine;

/// All engines, in the order of the help.
pub static ENGINES: [Engine; 5] = [
    Engine {
        name: "github",
        help: "A workflow of GitHub Actions, with a matrix of slices",
        most: Some(256),
        target: Some("\"$TARGET\""),
        dollar: "$",
        template: include_str!("templates/github.yml"),
    },
    Engine {
        name: "gitlab",
        help: "Jobs of GitLab CI, with parallel slices",
        most: Some(200),
        target: Some("\"${CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-$TARGET}\""),
        dollar: "$",
        template: include_str!("templates/gitlab.yml"),
    },
    Engine {
        name: "buildkite",
        help: "A pipeline of Buildkite, with parallel slices",
        most: None,
        target: Some("\"$TARGET\""),
        // `$$` is a dollar sign once the pipeline is uploaded.
        dollar: "$$",
        template: include_str!("templates/buildkite.yml"),
    },
    // An Indexed Job.
    Engine {
        name: "kubernetes",
        help: "A manifest of Kubernetes, with an Indexed Job of slices",
        most: None,
        target: None,
        dollar: "$",
        template: include_str!("templates/kubernetes.yml"),
    },
    // An array of jobs. MaxArraySize of Slurm is 1001 unless the cluster says otherwise; sbatch
    // refuses more.
    Engine {
        name: "slurm",
        help: "A script that submits an array of slices to Slurm, waits, and judges them",
        most: None,
        target: None,
        dollar: "$",
        template: include_str!("templates/slurm.sh"),
    },
];

/// The engine of this name.
pub fn engine(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.name == name)
}

/// Reads the name of a form of a plan from the command line: `text`, `json` or that of an engine,
/// which is given.
pub fn engine_parser() -> impl TypedValueParser<Value = String> {
    let own = [
        PossibleValue::new("text").help("The slices, for people"),
        PossibleValue::new("json").help("The slices, for scripts"),
    ];
    let engines = ENGINES
        .iter()
        .map(|engine| PossibleValue::new(engine.name).help(engine.help));
    PossibleValuesParser::new(own.into_iter().chain(engines))
}
