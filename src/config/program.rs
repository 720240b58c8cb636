//! The configuration of one program that is measured without a configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ncu_report::Chip;

use super::choices::ClockControl;
use super::model::{Config, Metric, Recipe, Variant, Verification};
use super::stated_by::StatedBy;
use crate::finding::Error;
use crate::git;
use crate::metric::{Direction, Level, Role, Tolerance, Tolerances, tensor_flop};
use crate::terms::{Phase, Tier, VariantId};

/// Launches of each kernel whose work is counted: what differs from one to the next is no other work.
const COUNTED_OF_EACH: u32 = 2;

/// What a program is measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be compared with another one.
    Comparison,
    /// To show its kernels, and how near each unit is to its peak.
    Overview,
    /// To find out what it launches: times alone, in one process.
    Survey,
}

/// What is the same for every program of a run.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The folder that programs run in.
    pub root: PathBuf,
    /// The folder for logs and captures.
    pub work: PathBuf,
    /// CUDA ordinal of the GPU.
    pub device: u32,
    /// `major.minor` of the GPU.
    pub compute_capability: String,
    /// Which kernels are profiled, `NAME` or `regex:PATTERN`.
    pub kernels: Option<String>,
    /// Matching launches left out before the measured ones.
    pub skip: u32,
    /// Launches profiled in one process.
    pub launches: u32,
    /// What it is measured for.
    pub purpose: Purpose,
    /// When a process is killed.
    pub timeout: Duration,
    /// Clocks.
    pub clock_control: ClockControl,
    /// How much longer a kernel may take, in percent.
    pub tolerance_percent: f64,
    /// Whether another command shows that the numbers are right. Counters of work are judged only
    /// where nothing else shows it.
    pub verified: bool,
}

/// A program, and what shows that its numbers are right.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What checks its numbers.
    pub verification: Verification,
}

impl Config {
    /// A configuration with one variant, which is the program. No file is read, and none is locked.
    ///
    /// # Errors
    /// [`Error::Usage`] where the GPU has no target of the compiler.
    pub fn of_program(
        settings: &ProgramSettings,
        id: &VariantId,
        program: &Program,
    ) -> Result<Config, Error> {
        let digits = settings.compute_capability.replace('.', "");
        // No such file is read or written: its name only gives the folder.
        let mut config = blank(&settings.root.join("none"), &digits, id)?;
        let chip = config.toolchain.chip;
        variants_of(&mut config).for_each(|variant| settings.set(variant, chip, program));
        Ok(Config {
            path: settings.work.join("none"),
            baselines: settings.work.join("none"),
            work: settings.work.clone(),
            device: settings.device,
            ..config
        })
    }

    /// A configuration with one variant, which is machine code for this target: `sm_90a`.
    ///
    /// # Errors
    /// [`Error::Usage`] for a target that is none.
    pub fn of_code(work: &Path, arch: &str, id: &VariantId, file: &str) -> Result<Config, Error> {
        let digits = arch.trim_start_matches("sm_");
        let mut config = blank(&work.join("none"), digits, id)?;
        config.work = work.to_path_buf();
        for variant in variants_of(&mut config) {
            variant.recipe = Recipe::Command {
                build: None,
                run: Vec::new(),
                inputs: Vec::new(),
                code: vec![file.to_owned()],
            };
        }
        Ok(config)
    }
}

/// A configuration with this one variant, and a metric that must be there.
fn blank(path: &Path, digits: &str, id: &VariantId) -> Result<Config, Error> {
    let VariantId { suite, variant } = id;
    let text = format!(
        "[toolchain]\narch = \"sm_{digits}\"\n[metric.duration]\ncounter = \"{}\"\n\
         direction = \"lower\"\ntolerance = \"1 %\"\n\
         [suite.{suite}.variant.{variant}]\nrun = [\"x\"]\n",
        Role::Duration
    );
    Ok(Config::parse(path, &text)?)
}

fn variants_of(config: &mut Config) -> impl Iterator<Item = &mut Variant> {
    let variants = config.suites.iter_mut().flat_map(|it| &mut it.variants);
    variants.map(Arc::make_mut)
}

impl Variant {
    /// A variant that shows these counters of a recording. It is never built or run.
    ///
    /// # Errors
    /// [`Error::Usage`], where there is no such variant.
    pub fn of_counters(counters: impl IntoIterator<Item = String>) -> Result<Variant, Error> {
        let id = VariantId::try_from("recorded/recorded".to_owned()).map_err(Error::Usage)?;
        let config = blank(Path::new("none"), "90", &id)?;
        let variant = config.variant(&id).cloned();
        let variant = variant.ok_or_else(|| Error::Usage("there is no variant".to_owned()))?;
        let metrics = counters.into_iter().map(|name| Metric::shown(&name, &name));
        Ok(Variant {
            metrics: metrics.collect(),
            explained_on: None,
            ..variant
        })
    }
}

impl ProgramSettings {
    /// Makes the program of a variant.
    fn set(&self, variant: &mut Variant, chip: Option<Chip>, program: &Program) {
        let is_comparison = self.purpose == Purpose::Comparison;
        (variant.stated_by, variant.profile.processes) = match self.purpose {
            Purpose::Comparison | Purpose::Overview => (StatedBy::Compare, 2),
            Purpose::Survey => (StatedBy::Init, 1),
        };
        let profile = &mut variant.profile;
        profile.launches = self.launches;
        profile.counted_launches = COUNTED_OF_EACH;
        profile.skip = self.skip;
        (profile.per_kernel, profile.as_it_runs) = (is_comparison, is_comparison);
        profile.clock_control = self.clock_control;
        profile.timeout = self.timeout;
        profile.accept_tiers = vec![Tier::KernelTimes];
        let (words, further) = program.argv.split_at(self.words_of_program(&program.argv));
        if let Recipe::Command { run, .. } = &mut variant.recipe {
            *run = words.to_vec();
        }
        // They are what is compared, not conditions that must be the same.
        variant.profile_args = further.to_vec();
        variant.kernels.clone_from(&self.kernels);
        variant.metrics = self.metrics(chip);
        variant.explained_on = chip.filter(|_| is_comparison);
        variant.verification = program.verification.clone();
        variant.verify_timeout = self.timeout;
    }

    /// How many words of a command line are the program, whose files must not change while it is
    /// measured. Of what is not in the folder, such as `python3`, it is the first file that is named.
    fn words_of_program(&self, argv: &[String]) -> usize {
        let Some(first) = argv.first() else {
            return 0;
        };
        let is_ours = first.contains('/') && self.root.join(first).starts_with(&self.root);
        let is_file = |word: &String| git::is_input_file(self.root.join(word));
        match argv.iter().skip(1).position(is_file) {
            Some(script) if !is_ours => {
                let words = argv.iter().take(script + 2);
                // Only what follows the program is filled in.
                words.take_while(|word| !word.contains('{')).count().max(1)
            }
            _ => 1,
        }
    }

    /// What is measured. Only the time fails a comparison, and other work where nothing checks the
    /// numbers; the other counters explain.
    fn metrics(&self, chip: Option<Chip>) -> Vec<Metric> {
        let work = match self.verified {
            true => Level::Record,
            false => Level::Deny,
        };
        let counted = |alias: &str, counter: &str, level| Metric {
            exact: true,
            phase: Phase::Counting,
            level,
            ..Metric::shown(alias, counter)
        };
        let mut metrics = vec![
            Metric {
                direction: Direction::Lower,
                tolerance: Tolerances::both(Tolerance::RelativePercent(self.tolerance_percent)),
                level: Level::Deny,
                ..Metric::shown("duration", Role::Duration.counter())
            },
            Metric::shown("sm_active", Role::SmActive.counter()),
            Metric::shown("tensor_core", Role::TensorActive.counter()),
            Metric::shown("dram_bw", Role::DramThroughput.counter()),
            Metric::shown("registers", Role::RegistersPerThread.counter()),
            Metric::shown("clock", Role::Clock.counter()),
            Metric::shown("dram_read", Role::DramBytesRead.counter()),
            Metric::shown("dram_write", Role::DramBytesWritten.counter()),
            Metric::shown("bank_conflicts", Role::BankConflicts.counter()),
        ];
        if self.purpose == Purpose::Survey {
            metrics.truncate(1);
            return metrics;
        }
        if self.purpose == Purpose::Overview {
            metrics.push(Metric::shown("sm_throughput", Role::SmThroughput.counter()));
            metrics.push(Metric::shown("l2_throughput", Role::L2Throughput.counter()));
        }
        if self.purpose == Purpose::Comparison {
            for (alias, counter) in chip.map(tensor_flop).unwrap_or_default() {
                metrics.push(counted(&alias, &counter, work));
            }
            for (alias, role, level) in [
                ("flop_fma", Role::ThreadFfma, work),
                ("stored_sectors", Role::GlobalStoreSectors, work),
                ("load_sectors", Role::GlobalLoadSectors, Level::Record),
                ("instructions", Role::Instructions, Level::Record),
                ("local_loads", Role::LocalLoads, Level::Record),
                ("local_stores", Role::LocalStores, Level::Record),
            ] {
                metrics.push(counted(alias, role.counter(), level));
            }
            // The times are those of the program as it runs, and ncu reads the rest.
            let others = metrics.iter_mut().skip(1);
            others.for_each(|metric| metric.phase = Phase::Counting);
        }
        // What the chip cannot count is left out.
        metrics.retain_mut(|metric| {
            let Some(role) = metric.role() else {
                return true;
            };
            let counter = role.on(chip).map(str::to_owned);
            counter.map(|counter| metric.counter = counter).is_some()
        });
        metrics
    }
}
