//! The argv of a program that was built.

use std::path::Path;

use super::artifact::Artifact;
use crate::config::Variant;

/// The program's argv: fixed arguments, workload, then those of this kind of run, with `{result}`,
/// `{launches}` and `{skip}` filled in.
pub(crate) fn program_argv(
    variant: &Variant,
    artifact: &Artifact,
    further: &[String],
    result: &Path,
    launches: u32,
) -> Vec<String> {
    let arguments = variant.args.iter().chain(further);
    filled_argv(variant, artifact, arguments, result, launches)
}

/// The program's argv with these arguments only.
pub(crate) fn filled_argv<'a>(
    variant: &Variant,
    artifact: &Artifact,
    arguments: impl Iterator<Item = &'a String>,
    result: &Path,
    launches: u32,
) -> Vec<String> {
    let result = result.display().to_string();
    let filled = arguments.map(|argument| {
        argument
            .replace("{result}", &result)
            .replace("{launches}", &launches.to_string())
            .replace("{skip}", &variant.profile.skip.to_string())
    });
    artifact.run.iter().cloned().chain(filled).collect()
}
