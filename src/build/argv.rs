//! The argv and the environment of a program that was built.

use std::collections::BTreeMap;
use std::path::Path;

use super::artifact::Artifact;
use crate::config::Variant;
use crate::terms::Seed;

/// Name of the variable with the seed of the process. Documented: programs read it.
const SEED_VARIABLE: &str = "SPARSEK_GATE_SEED";
/// Name of the variable with the path of the result file. Documented: programs write there.
const RESULT_VARIABLE: &str = "SPARSEK_GATE_RESULT";

/// What one process of a program is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    /// Where it writes its result (`{result}`).
    pub result: &'a Path,
    /// How many launches it makes (`{launches}`).
    pub launches: u32,
    /// What the values of its inputs are made from (`{seed}`); `None` where no process
    /// gets one.
    pub seed: Option<Seed>,
}

impl Given<'_> {
    /// An argument with its placeholders filled in.
    pub fn argument(&self, variant: &Variant, argument: &str) -> String {
        let mut filled = argument
            .replace("{launches}", &self.launches.to_string())
            .replace("{skip}", &variant.profile.skip.to_string());
        if let Some(seed) = self.seed {
            filled = filled.replace("{seed}", &seed.to_string());
        }
        // The last: a path may contain anything.
        filled.replace("{result}", &self.result.display().to_string())
    }

    /// The variables of the process: those of the run, of the variant, and what it is given, which
    /// neither of them replaces.
    pub fn env(
        &self,
        run: &BTreeMap<String, String>,
        variant: &Variant,
    ) -> BTreeMap<String, String> {
        let mut env = run.clone();
        env.extend(variant.env.clone());
        // Nobody could say who wrote the copies that Python would load the next time.
        env.entry("PYTHONDONTWRITEBYTECODE".to_owned())
            .or_insert_with(|| "1".to_owned());
        env.insert(
            RESULT_VARIABLE.to_owned(),
            self.result.display().to_string(),
        );
        if let Some(seed) = self.seed {
            env.insert(SEED_VARIABLE.to_owned(), seed.to_string());
        }
        env
    }
}

/// The program's argv: fixed arguments, workload, then those of this kind of run, with `{result}`,
/// `{launches}`, `{skip}` and `{seed}` filled in.
pub(crate) fn program_argv(
    variant: &Variant,
    artifact: &Artifact,
    further: &[String],
    given: &Given<'_>,
) -> Vec<String> {
    let arguments = variant.args.iter().chain(further);
    filled_argv(variant, artifact, arguments, given)
}

/// The program's argv with these arguments only.
pub(crate) fn filled_argv<'a>(
    variant: &Variant,
    artifact: &Artifact,
    arguments: impl Iterator<Item = &'a String>,
    given: &Given<'_>,
) -> Vec<String> {
    let filled = arguments.map(|argument| given.argument(variant, argument));
    artifact.run.iter().cloned().chain(filled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::variant;

    #[test]
    fn a_process_is_told_its_launches_its_result_file_and_its_seed_and_nothing_replaces_these() {
        let variant = &variant(
            "[suite.s]\nargs = [\"--seed={seed}\"]\n[suite.s.variant.v]\nrun = [\"x\"]\n\
            env = { SPARSEK_GATE_SEED = \"1\", SPARSEK_GATE_RESULT = \"mine\", OWN = \"{seed}\" }\n",
        );
        let artifact = Artifact {
            run: vec!["x".to_owned()],
            compiler: None,
            sha256: None,
            programs: BTreeMap::new(),
            build_argv: Vec::new(),
            sources: BTreeMap::new(),
            compiled: None,
            cached: false,
        };
        let further = ["{launches}".to_owned(), "{result}".to_owned()];
        // A folder may be called anything.
        for (seed, first) in [(Some(Seed(7)), "--seed=7"), (None, "--seed={seed}")] {
            let given = Given {
                result: Path::new("/{seed}/{launches}"),
                launches: 20,
                seed,
            };
            let argv = program_argv(variant, &artifact, &further, &given);
            assert_eq!(argv, ["x", first, "20", "/{seed}/{launches}"]);
            let gpu = ("CUDA_VISIBLE_DEVICES", "GPU-1");
            let run = [("SPARSEK_GATE_SEED", "2"), gpu];
            let run = run.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let env = given.env(&BTreeMap::from(run), variant);
            assert_eq!(env["SPARSEK_GATE_RESULT"], "/{seed}/{launches}");
            assert_eq!(env["OWN"], "{seed}");
            assert_eq!(env["CUDA_VISIBLE_DEVICES"], "GPU-1");
            assert_eq!(env["SPARSEK_GATE_SEED"], seed.map_or("1", |_| "7"));
        }
    }
}
