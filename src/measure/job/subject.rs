//! One variant that is being measured, process by process.

use std::path::{Path, PathBuf};

use super::retry::discard;
use crate::binary::Compiled;
use crate::build::{Artifact, code_not_kept, compiled_profile, cubins_of, loaded_code};
use crate::config::{Config, Pin, Variant};
use crate::evidence::{gpu_pins, launch_mismatches};
use crate::files::{PROFILE_FILE, STATIC_PROFILE_FILE, most, read_regular_up_to};
use crate::finding::{Code, Error, Finding, Stop, WarnReason};
use crate::measure::cost::Spent;
use crate::measure::place::bench::Bench;
use crate::measure::seal::{Seal, listed};
use crate::plan::{Job, Task};
use crate::profile::{Conditions, FileHash, LaunchList, Profile, Provenance, Source, derive, now};
use crate::profiler::{Capture, Pending, Session, run};
use crate::terms::{Phase, Seed, Tier, VariantId};
use crate::toolchain::Nvdisasm;

/// A built and verified variant that is being measured, process by process.
pub struct Subject<'a> {
    config: &'a Config,
    pub(in crate::measure) variant: &'a Variant,
    artifact: Artifact,
    folder: PathBuf,
    git: Option<String>,
    /// When an earlier run verified it, if this one does not.
    pub(in crate::measure) verified_before: Option<String>,
    pub(in crate::measure) tier: Tier,
    captures: Vec<Capture>,
    pending: Option<Pending>,
    processes: u32,
    /// What profiling it took so far, of every attempt.
    pub(in crate::measure) cost: Spent,
    /// What its processes left.
    seal: Seal,
}

impl<'a> Subject<'a> {
    /// Nothing is measured yet. Captures and the profile will be left in `folder`.
    pub fn new(
        config: &'a Config,
        variant: &'a Variant,
        artifact: Artifact,
        folder: PathBuf,
        git: Option<String>,
    ) -> Subject<'a> {
        Subject {
            config,
            variant,
            artifact,
            folder,
            git,
            verified_before: None,
            tier: Tier::Counters,
            captures: Vec::new(),
            pending: None,
            processes: 0,
            cost: Spent::default(),
            seal: Seal::default(),
        }
    }

    /// Runs one more process, and takes over the capture of the one before, which was read meanwhile.
    ///
    /// # Errors
    /// A finding that says why the variant was not measured; an error where the machine failed.
    pub fn capture(&mut self, bench: &Bench<'_>, job: &Job, seed: Seed) -> Result<(), Stop> {
        let session = self.session(bench, job, seed);
        let tier = match session.phase {
            // Times of a program as it runs are those of its own launches.
            Phase::Timing if self.variant.profile.as_it_runs => Tier::KernelTimes,
            _ => self.tier,
        };
        let pending = run(bench.profilers.of(tier)?, &session)?;
        let left = session.left()?;
        self.take(pending, left)
    }

    /// Takes over what a process left in these files, before the next one works.
    ///
    /// # Errors
    /// As [`Subject::capture`], of the process before.
    pub fn take(&mut self, pending: Pending, left: Vec<PathBuf>) -> Result<(), Stop> {
        self.seal.add(left);
        let times = pending.times;
        self.cost.profile_s += times.wall.as_secs_f64();
        self.cost.start_s += times.until_launch.unwrap_or_default().as_secs_f64();
        self.cost.profiled += 1;
        if pending.phase == Phase::Timing {
            self.processes += 1;
        }
        let settled = self.settle();
        self.pending = Some(pending);
        settled
    }

    /// The session of a job.
    pub fn session<'s>(&'s self, bench: &'s Bench<'_>, job: &'s Job, seed: Seed) -> Session<'s> {
        let phase = match job.task {
            Task::Measure(phase) => phase,
            _ => Phase::Timing,
        };
        Session {
            config: self.config,
            variant: self.variant,
            artifact: &self.artifact,
            phase,
            gpu: &bench.gpu,
            faults: bench.faults(),
            env: &bench.env,
            folder: &self.folder,
            stem: &job.stem,
            seed,
            in_turn: false,
        }
    }

    /// Whether the program of a job can start beside others: it is timed as it runs.
    pub fn is_held(&self, job: &Job) -> bool {
        self.variant.profile.as_it_runs && job.task == Task::Measure(Phase::Timing)
    }

    /// Drops what was measured, to measure on a tier; the captures will be overwritten.
    pub fn restart(&mut self, tier: Tier) {
        self.tier = tier;
        self.captures.clear();
        self.seal = Seal::default();
        self.processes = 0;
        if let Some(pending) = self.pending.take() {
            let _ = pending.finish();
        }
    }

    /// Drops what was measured, and removes its captures.
    pub(in crate::measure) fn discard(&mut self) -> Result<(), Error> {
        self.restart(self.tier);
        discard(&self.folder)
    }

    /// Waits for the capture that is still being read.
    fn settle(&mut self) -> Result<(), Stop> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        let started = std::time::Instant::now();
        let answer = pending.finish();
        // It waits for ncu, which prints the CSV.
        self.cost.profile_s += started.elapsed().as_secs_f64();
        self.captures.push(answer?);
        Ok(())
    }

    /// Whether its tier measures anything in a phase.
    pub(in crate::measure) fn has_phase(&self, phase: Phase) -> bool {
        self.variant.has_phase_on(self.tier, phase)
    }

    /// The profile of what was captured so far.
    ///
    /// # Errors
    /// A finding where the captures cannot become a profile; an error where the machine failed.
    pub fn profile(&mut self, bench: &Bench<'_>) -> Result<Profile, Stop> {
        self.settle()?;
        let sources: Vec<Source<'_>> = self
            .captures
            .iter()
            .map(|capture| Source {
                report: &capture.report,
                csv: capture.page.as_ref(),
                phase: capture.record.phase,
                gpu_uuid: capture.record.gpu_uuid.as_deref(),
            })
            .collect();
        let counters = self.variant.counters_on(self.tier);
        let mut derived = derive(&counters, &sources).map_err(|error| {
            Finding::deny(
                Code::CaptureUnreadable,
                &self.variant.id,
                error.to_string(),
                "inspect the report: sparsek-gate inspect FILE".to_owned(),
            )
        })?;
        derived = derived.without_unmeasured(&self.variant.explaining());
        let conditions = match self.tier {
            Tier::Counters => Conditions::from(&self.variant.profile),
            Tier::KernelTimes | Tier::Static => Conditions::default(),
        };
        let provenance = self.provenance(bench);
        Ok(Profile::new(
            self.variant, derived, self.tier, conditions, provenance,
        ))
    }

    /// Where the launched kernels differ from the compiled ones. In a trial this is a warning, since
    /// its launches may differ from those that the configuration states.
    pub(in crate::measure) fn mismatches(&self, bench: &Bench<'_>) -> Vec<Finding> {
        let toolchain = &self.config.toolchain;
        let compiled = compiled_profile(toolchain, self.variant, &self.artifact, &[], None, None);
        let Some(compiled) = compiled else {
            return Vec::new();
        };
        let reports = self.captures.iter().map(|capture| &capture.report);
        let findings = launch_mismatches(self.variant, &compiled, reports).into_iter();
        let trial = (!bench.overrides.is_empty()).then_some(WarnReason::Trial);
        findings.map(|finding| finding.warn_for(trial)).collect()
    }

    /// The static profile of the machine code that its measured processes loaded, left beside their
    /// captures; `None` where the variant does not ask for it.
    ///
    /// # Errors
    /// A finding that says why that code is not known; an error where the machine failed.
    pub(in crate::measure) fn keep_loaded_code(
        &self,
        bench: &Bench<'_>,
        measured: &Profile,
    ) -> Result<Option<Profile>, Stop> {
        let (config, variant) = (self.config, self.variant);
        if !variant.loaded_code {
            return Ok(None);
        }
        let not_kept = |why: &str| code_not_kept(variant, why);
        if self.tier != Tier::Counters {
            let why = format!("only ncu keeps it, and {} measured it", self.tier);
            return Err(not_kept(&why).into());
        }
        let mut cubins = Vec::new();
        // What times a program as it runs keeps no code.
        let by_ncu = self.captures.iter().filter(|one| one.page.is_some());
        for capture in by_ncu {
            let path = &self.folder.join(&capture.record.report.file);
            let bytes = read_regular_up_to(path, most::BINARY).map_err(Error::io("read", path))?;
            // That it changed is reported by itself.
            if FileHash::of(path, &bytes) != capture.record.report {
                return Err(not_kept("a capture changed while programs ran").into());
            }
            cubins.extend(cubins_of(&bytes).map_err(|why| not_kept(&why))?);
        }
        let nvdisasm = Nvdisasm::locate(&config.toolchain, &config.work).ok();
        let compiled = loaded_code(config, variant, measured, &cubins, nvdisasm.as_ref())?;
        let has = |mangled: &String| compiled.kernels.contains_key(mangled);
        let mut kernels = measured.kernels.iter();
        if let Some(kernel) = kernels.find(|kernel| !kernel.mangled.as_ref().is_some_and(has)) {
            let why = format!("the reports have no machine code of `{}`", kernel.name);
            return Err(not_kept(&why).into());
        }
        Ok(self.keep_static(bench, Some(compiled), measured)?)
    }

    /// The static profile of this code or of what was built, with what its launches were seen to have, left
    /// beside the captures in place of the one from before any launch; `None` where its code is not known.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in crate::measure) fn keep_static(
        &self,
        bench: &Bench<'_>,
        loaded: Option<Compiled>,
        measured: &Profile,
    ) -> Result<Option<Profile>, Error> {
        let artifact = Artifact {
            compiled: loaded.or_else(|| self.artifact.compiled.clone()),
            ..self.artifact.clone()
        };
        let (toolchain, git) = (&self.config.toolchain, self.git.clone());
        let (overrides, measured) = (bench.overrides, Some(measured));
        let profile =
            compiled_profile(toolchain, self.variant, &artifact, overrides, git, measured);
        if let Some(profile) = &profile {
            profile.write(&self.folder.join(STATIC_PROFILE_FILE))?;
        }
        Ok(profile)
    }

    /// Whether a file that one of its processes left is another one now.
    pub(in crate::measure) fn altered(&mut self) -> Option<Finding> {
        for Capture { record, .. } in &self.captures {
            for file in record.csv.iter().chain([&record.report]) {
                let path = self.folder.join(&file.file);
                self.seal.add_known(path, file.sha256.clone());
            }
        }
        altered(Some(&self.variant.id), &self.seal, &self.folder)
    }

    /// Writes the profile beside its captures.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep(&self, profile: &Profile) -> Result<(), Error> {
        profile.write(&self.folder.join(PROFILE_FILE))
    }

    /// The versions that this variant is measured with, compared with the pinned ones. The compiler of
    /// the base may differ from that of the current variant.
    fn pins(&self, bench: &Bench<'_>) -> Vec<Pin> {
        let toolchain = &self.config.toolchain;
        let mut pins = gpu_pins(toolchain, &bench.gpu);
        pins.extend(toolchain.pins.ncu(&bench.ncu_version));
        let compiler = self.artifact.compiler.as_deref();
        pins.extend(compiler.and_then(|version| toolchain.pins.cuda(version)));
        pins
    }

    fn profiler(&self, bench: &Bench<'_>) -> Option<String> {
        match self.tier {
            Tier::Counters => Some(bench.profilers.located()?.0.version.clone()),
            Tier::KernelTimes | Tier::Static => self.first_timed()?.report.profiler_version.clone(),
        }
    }

    fn first_timed(&self) -> Option<&Capture> {
        let mut captures = self.captures.iter();
        captures.find(|capture| capture.record.phase == Some(Phase::Timing))
    }

    fn provenance(&self, bench: &Bench<'_>) -> Provenance {
        // Only what records the program as it runs knows all that it launches.
        let launch_list = self.first_timed();
        let launch_list = launch_list.and_then(|first| first.launch_list.clone());
        Provenance {
            verified_before: self.verified_before.clone(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            created: now(),
            launches: self.variant.profile.launches,
            as_it_runs: self.variant.profile.as_it_runs,
            processes: self.processes,
            profiler: self.profiler(bench),
            compiler: self.artifact.compiler.clone(),
            driver: bench.gpu.driver.clone(),
            gpu_uuid: Some(bench.gpu.uuid.clone()),
            pins: self.pins(bench),
            git: self.git.clone(),
            artifact_sha256: self.artifact.sha256.clone(),
            build_argv: self.artifact.build_argv.clone(),
            sources: self.artifact.sources.clone(),
            overrides: bench.overrides.to_vec(),
            captures: self
                .captures
                .iter()
                .map(|capture| capture.record.clone())
                .collect(),
            launch_list: launch_list.map(|list| LaunchList {
                steps: self.variant.steps().filter(|_| !list.kernels.is_empty()),
                ..list
            }),
            ..Provenance::default()
        }
    }
}

/// That nothing changed in what is sealed.
pub(in crate::measure) fn altered(
    variant: Option<&VariantId>,
    seal: &Seal,
    root: &Path,
) -> Option<Finding> {
    let broken = seal.broken();
    if broken.is_empty() {
        return None;
    }
    let message = format!("changed while programs ran: {}", listed(&broken, root));
    let next = "find out which program writes there, and run again";
    Some(match variant {
        Some(variant) => Finding::deny(Code::AlteredDuringRun, variant, message, next),
        None => Finding::of_project(Code::AlteredDuringRun, message, next),
    })
}
