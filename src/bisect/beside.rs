//! Measures one commit of a history beside the good one, under the rules of the good one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::answer::is_open;
use super::search::Answer;
use super::step::Step;
use crate::config::{Config, Selected, Toolchain, Variant};
use crate::finding::{Error, ExitCode, Finding};
use crate::git::Commit;
use crate::judge::{Judge, Origin, Outcome, Profiles};
use crate::measure::{
    BaseProject, Batch, Bench, Built, Order, RecordUse, Watch, build, program_key,
};
use crate::trust::Authority;

/// What every commit is measured beside, and the rules that all are judged by.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The good commit, checked out.
    pub good: &'a BaseProject,
    /// Its configuration.
    pub config: &'a Config,
    /// The variant, as it is there.
    pub variant: &'a Variant,
    /// The alias of the metric that answers.
    pub metric: &'a str,
    /// The folder of profiles and captures: one of each commit is made there.
    pub output: &'a Path,
    /// What is done with records of verifications.
    pub records: RecordUse,
    /// Shows the stages.
    pub watch: &'a dyn Watch,
}

/// Measures commits. A program that already has an answer is not measured again.
pub struct Beside<'a> {
    rules: Rules<'a>,
    /// The commit that was measured of each program, with its answer.
    known: BTreeMap<String, (String, Answer)>,
}

impl<'a> Beside<'a> {
    /// By these rules.
    pub fn new(rules: Rules<'a>) -> Beside<'a> {
        Beside {
            rules,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn notes(&self, text: &str) {
        self.rules.watch.notes(text);
    }

    /// Builds a commit, verifies it and measures it beside the good one; `further` in more rounds.
    pub(super) fn step(&mut self, commit: &Commit, further: bool) -> Result<Step, Error> {
        let Rules { config, .. } = self.rules;
        let project = BaseProject::of_commit(config, &commit.id, &config.work.join("bisect"))?;
        let mut step = Step::new(commit, further);
        let own = match project.config() {
            Ok(own) => own,
            Err(why) => {
                step.why = format!("its configuration cannot be read: {why}");
                return Ok(step);
            }
        };
        step.other_config = own.text.0 != config.text.0;
        let Some(own_variant) = own.variant(&self.rules.variant.id) else {
            step.why = format!("it has no variant {}", self.rules.variant.id);
            return Ok(step);
        };
        let mut selected = Selected::new(
            self.under_rules(own),
            &[own_variant.id.to_string()],
            true,
            &[],
        )?;
        selected.variants = vec![self.variant(own_variant, further)];
        self.measure(&selected, &mut step)?;
        Ok(step)
    }

    /// The code of a commit under the rules of the good one.
    fn under_rules(&self, own: &Config) -> Config {
        let good = self.rules.config;
        Config {
            unread: good.unread.clone(),
            toolchain: Toolchain {
                flags: own.toolchain.flags.clone(),
                ..good.toolchain.clone()
            },
            waivers: Vec::new(),
            env_pass: good.env_pass.clone(),
            ..own.clone()
        }
    }

    fn variant(&self, own: &Variant, further: bool) -> Variant {
        let good = self.rules.variant;
        let mut variant = Variant {
            description: own.description.clone(),
            recipe: own.recipe.clone(),
            launch: own.launch,
            // What a sanitizer finds is no answer to what became slower.
            sanitizer: Vec::new(),
            ..good.clone()
        };
        for metric in &mut variant.metrics {
            // A limit that GOOD breaks too, or a kernel that became much faster, is no answer.
            (metric.min, metric.max) = (None, None);
            metric.plausible.gain_percent = Some(100.0);
        }
        if further {
            let rounds = good.profile.max_rounds.saturating_mul(2);
            variant.profile.rounds = rounds;
            variant.profile.max_rounds = rounds;
        }
        variant
    }

    fn measure(&mut self, selected: &Selected, step: &mut Step) -> Result<(), Error> {
        let Rules {
            good,
            metric,
            output,
            records,
            watch,
            ..
        } = self.rules;
        let folder: PathBuf = output.join(step.commit.short());
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let variants = selected.variants();
        let order = Order {
            batch: Batch {
                config: &selected.config,
                variants: &variants,
                watch,
            },
            base: Some(good),
            output: &folder,
            overrides: &[],
            records,
            prebuilt: None,
            packed_files: None,
            journal: None,
        };
        let mut outcome = self.outcome();
        let built = build(order)?;
        if built.pairs().next().is_none() {
            outcome.findings.extend(unbuilt(&built));
            step.take(outcome, metric);
            return Ok(());
        }
        let key = self.key(&built);
        if let Some((commit, answer)) = key.as_ref().and_then(|key| self.known.get(key)) {
            step.answer = *answer;
            step.why = format!(
                "its program is that of {}",
                commit.get(..10).unwrap_or(commit)
            );
            step.same_as = Some(commit.clone());
            return Ok(());
        }
        let judge = Judge::of_programs(selected);
        let bench = Bench::new(order.batch, order.overrides, None)?;
        let measured = built.measure(bench, &|_, _, _| None, &mut |variant, profile, base| {
            // Rounds in place of others are no use here: without a lock none is set aside.
            profile.provenance.processes < 2 * variant.profile.max_rounds
                && base
                    .is_some_and(|base| is_open(&judge.against(variant, base, profile).0, metric))
        })?;
        outcome.spent = Some(measured.spent);
        outcome.reused_verifications = measured.reused;
        outcome.findings.extend(measured.findings);
        let profiles = Profiles {
            current: measured.profiles,
            bases: measured.bases,
            controls: Vec::new(),
            compiled: measured.compiled,
            compiled_bases: measured.compiled_bases,
        };
        judge.all(&profiles, &mut outcome);
        refuse_machine(&outcome)?;
        step.take(outcome, metric);
        // What disturbed this commit need not disturb another one with the same program. A program that
        // stays open in the second measurement is skipped.
        let answer = match step.answer {
            Answer::Good | Answer::Bad => Some(step.answer),
            Answer::Open if step.further => Some(Answer::Skip),
            Answer::Open | Answer::Skip => None,
        };
        let known = key.zip(answer);
        self.known
            .extend(known.map(|(key, answer)| (key, (step.commit.id.clone(), answer))));
        Ok(())
    }

    /// The key of the commit's program. The good commit's program is known to be good.
    fn key(&mut self, built: &Built<'_>) -> Option<String> {
        let pair = built.pairs().next()?;
        let unread = &self.rules.config.unread;
        let good = program_key(pair.base_variant, pair.base_root, unread, pair.base)?;
        let commit = self.rules.good.commit()?.to_owned();
        self.known.entry(good).or_insert((commit, Answer::Good));
        program_key(pair.variant, pair.root, unread, pair.artifact)
    }

    fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::new(Origin::Measured);
        outcome.authority = Authority::Revision {
            commit: self.rules.good.commit().unwrap_or_default().to_owned(),
            found_by: "the good commit".to_owned(),
        };
        outcome
    }
}

/// What the machine lacks, it lacks for every commit: that ends the search.
fn refuse_machine(outcome: &Outcome) -> Result<(), Error> {
    let of_machine =
        |finding: &&Finding| finding.denies() && finding.code.exit_code() == ExitCode::Environment;
    match outcome.findings.iter().find(of_machine) {
        Some(finding) => Err(Error::Environment {
            what: finding.message.clone(),
            next: finding.next.clone(),
        }),
        None => Ok(()),
    }
}

/// Why a commit, or the good one, was not built.
fn unbuilt(built: &Built<'_>) -> Vec<Finding> {
    let programs = built.programs();
    [programs.current.findings, programs.base.findings].concat()
}
