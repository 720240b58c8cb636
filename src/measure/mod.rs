//! Variants to fresh profiles: build, verify, capture, normalize.

mod against;
mod retry;

use crate::evidence::{disturbed, gpu_pins, incomplete, launch_mismatches, unpinned};
use crate::profile::{
    self, CaptureRecord, Conditions, Derived, FileHash, Profile, ProfileOrigin, Provenance, Source,
    derive, now,
};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::binary::Listing;
use crate::build::{Artifact, Builder, compiled_profile};
use crate::capture::{Capture, Pending, capture, event_times};
use crate::config::{Config, Pin, Variant};
use crate::cupti::{self, Recorder};
use crate::device::{Gpu, GpuLock, Health};
use crate::files::{empty_variant_folder, variant_folder, write_atomically};
use crate::finding::{Code, Error, Finding, Severity};
use crate::sanitize::{Sanitized, SanitizedVariant, sanitize};
use crate::terms::{Phase, Tier};
use crate::toolchain::{Ncu, Nvcc, Nvdisasm, Sanitizer};
use crate::verify::{Verified, verify};
use ncu_report::report::Cubin;

pub use against::{BaseProject, compile_against, measure_against};
use retry::{Retries, disturbance};

/// What happens while variants are measured, for whoever shows it.
pub trait Watch: Sync {
    /// A stage of a variant begins.
    fn begins(&self, variant: &Variant, stage: &str);
    /// A stage of a variant ended; `outcome` is a few words.
    fn ended(&self, variant: &Variant, stage: &str, outcome: &str);
    /// Another run of this tool measures on the GPU.
    fn waits(&self);
    /// Something about the machine speaks against measuring on it now.
    fn warns(&self, obstacle: &str);
}

/// What measuring gave.
#[derive(Debug, Default)]
pub struct Measured {
    /// Fresh profiles, of the variants that could be measured.
    pub profiles: Vec<Profile>,
    /// Fresh profiles of the base revision, of the variants that were measured side by side.
    pub bases: Vec<Profile>,
    /// Static profiles of the variants that were built by the compiler.
    pub compiled: Vec<Profile>,
    /// The same of the base revision.
    pub compiled_bases: Vec<Profile>,
    /// Why the others could not, and what is incomplete.
    pub findings: Vec<Finding>,
    /// Time inside nvcc, the verifying runs and ncu.
    pub tools_wall: Duration,
}

/// Builds variants, with a word for each.
///
/// # Errors
/// [`Error`] where the machine failed.
pub fn build_all(
    config: &Config,
    variants: &[&Variant],
    watch: &dyn Watch,
) -> Result<(Vec<Option<Artifact>>, Vec<Finding>), Error> {
    let builder = Builder::new(config, variants)?;
    let results = builder.build_all(variants, &|variant, result| {
        let outcome = match result {
            Ok(artifact) if artifact.cached => "unchanged".to_owned(),
            Ok(_) => "built".to_owned(),
            Err(finding) => finding.message.clone(),
        };
        watch.ended(variant, "build", &outcome);
    })?;
    let mut findings = Vec::new();
    let artifacts = results
        .into_iter()
        .map(|result| result.map_err(|finding| findings.push(finding)).ok())
        .collect();
    Ok((artifacts, findings))
}

/// Static profiles of what was built, each left in the variant's folder below `output`.
///
/// # Errors
/// [`Error::Io`].
pub fn keep_compiled(
    config: &Config,
    variants: &[&Variant],
    artifacts: &[Option<Artifact>],
    folder_of: impl Fn(&Variant) -> PathBuf,
    overrides: &[String],
    git: Option<&str>,
) -> Result<Vec<Profile>, Error> {
    let mut profiles = Vec::new();
    for (variant, artifact) in variants.iter().zip(artifacts) {
        let compiled = artifact.as_ref().and_then(|artifact| {
            let git = git.map(str::to_owned);
            compiled_profile(&config.toolchain, variant, artifact, overrides, git)
        });
        let Some(profile) = compiled else { continue };
        let folder = folder_of(variant);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let path = folder.join(profile::STATIC_FILE_NAME);
        write_atomically(&path, profile.to_json().as_bytes()).map_err(Error::io("write", &path))?;
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Runs the check of every built variant.
///
/// # Errors
/// [`Error`] where the machine failed.
pub fn verify_all(
    config: &Config,
    variants: &[&Variant],
    artifacts: &[Option<Artifact>],
    env: &BTreeMap<String, String>,
    watch: &dyn Watch,
) -> Result<(Vec<Option<Verified>>, Vec<Finding>), Error> {
    let mut findings = Vec::new();
    let mut verified = Vec::new();
    for (variant, artifact) in variants.iter().zip(artifacts) {
        let Some(artifact) = artifact else {
            verified.push(None);
            continue;
        };
        watch.begins(variant, "verify");
        match verify(config, variant, artifact, env)? {
            Ok(right) => {
                watch.ended(
                    variant,
                    "verify",
                    &format!("right, {:.1} s", right.wall.as_secs_f64()),
                );
                verified.push(Some(right));
            }
            Err(finding) => {
                watch.ended(variant, "verify", &finding.message);
                findings.push(finding);
                verified.push(None);
            }
        }
    }
    Ok((verified, findings))
}

/// The compute-sanitizer that any of the variants asks for.
///
/// # Errors
/// As [`Sanitizer::locate`].
pub fn locate_sanitizer(
    config: &Config,
    variants: &[&Variant],
) -> Result<Option<Sanitizer>, Error> {
    let asked = variants.iter().any(|variant| !variant.sanitizer.is_empty());
    asked
        .then(|| Sanitizer::locate(&config.toolchain, &config.work))
        .transpose()
}

/// Repeats the verifying run of every built variant under the tools of compute-sanitizer that it
/// asks for; `plain` are the findings of the runs without. What is wrong in numbers alone is not
/// told again.
///
/// # Errors
/// [`Error`] where the machine failed.
pub fn sanitize_all(
    config: &Config,
    variants: &[&Variant],
    artifacts: &[Option<Artifact>],
    plain: &[Finding],
    sanitizer: &Sanitizer,
    env: &BTreeMap<String, String>,
    watch: &dyn Watch,
) -> Result<(Vec<SanitizedVariant>, Vec<Finding>), Error> {
    let mut findings = Vec::new();
    let mut sanitized = Vec::new();
    for (variant, artifact) in variants.iter().zip(artifacts) {
        let Some(artifact) = artifact else { continue };
        let failed = plain
            .iter()
            .find(|finding| finding.concerns(&variant.id))
            .map(|finding| finding.code);
        let mut tools: Vec<Sanitized> = Vec::new();
        for &tool in &variant.sanitizer {
            if tools.iter().any(|done| done.tool == tool) {
                continue;
            }
            watch.begins(variant, tool.as_str());
            let (said, finding) =
                sanitize(config, variant, artifact, failed, sanitizer, tool, env)?;
            watch.ended(variant, tool.as_str(), &said.words(finding.as_ref()));
            findings.extend(finding);
            tools.push(said);
        }
        sanitized.push(SanitizedVariant {
            variant: variant.id.clone(),
            tools,
        });
    }
    Ok((sanitized, findings))
}

/// Where profiles are measured, and for whom.
pub struct Bench<'a> {
    ncu: Ncu,
    sanitizer: Option<Sanitizer>,
    gpu: Gpu,
    /// Whether NVML shows the GPU: what it showed once it can lose.
    shown: bool,
    env: BTreeMap<String, String>,
    overrides: &'a [String],
    watch: &'a dyn Watch,
    /// What ncu said when it was refused the counters: it is asked once a run.
    denied: OnceCell<Finding>,
    /// What kernels are timed with where the counters are denied, or why they cannot be.
    recorder: OnceCell<Result<Recorder, String>>,
}

impl<'a> Bench<'a> {
    /// Finds profiler, GPU and compiler, and refuses those that are not as pinned, and counters
    /// that the chip does not have.
    ///
    /// # Errors
    /// [`Error`] where the machine lacks something.
    pub fn new(
        config: &Config,
        variants: &[&Variant],
        overrides: &'a [String],
        watch: &'a dyn Watch,
    ) -> Result<Bench<'a>, Error> {
        let ncu = Ncu::locate(&config.toolchain, &config.work)?;
        let sanitizer = locate_sanitizer(config, variants)?;
        let gpu = Gpu::query(config.device)?;
        let toolchain = &config.toolchain;
        let mut pins = gpu_pins(toolchain, &gpu);
        pins.extend(toolchain.pins.ncu(&ncu.version));
        if variants.iter().any(|variant| variant.needs_nvcc()) {
            let nvcc = Nvcc::locate(toolchain, &config.work)?;
            pins.extend(toolchain.pins.cuda(&nvcc.version));
        }
        toolchain.enforce(&config.path, &pins)?;
        check_counters(config, variants, &ncu)?;
        let env = gpu_env(&gpu);
        let shown = Health::of(&gpu.uuid).is_ok();
        Ok(Bench {
            ncu,
            sanitizer,
            gpu,
            shown,
            env,
            overrides,
            watch,
            denied: OnceCell::new(),
            recorder: OnceCell::new(),
        })
    }

    /// The highest tier for a variant that is not known to be out of reach; the denial of the
    /// counters where no other serves it.
    fn tier(&self, variant: &Variant) -> Result<Tier, Finding> {
        let Some(denied) = self.denied.get() else {
            return Ok(Tier::Counters);
        };
        lower_tier(variant, Tier::Counters).ok_or_else(|| Finding {
            variant: Some(variant.id.clone()),
            ..denied.clone()
        })
    }

    /// The tier to try after one that cannot measure a variant, by what was found there; `None`
    /// where the finding is not about the tier, or no tier is left.
    fn below(&self, variant: &Variant, tier: Tier, found: &Finding) -> Option<Tier> {
        let out_of_reach = match tier {
            Tier::Counters => matches!(found.code, Code::NoPermission | Code::ProfilerUnsupported),
            Tier::KernelTimes => found.code == Code::KernelTimesUnavailable,
            Tier::EventTimes | Tier::Static => false,
        };
        if !out_of_reach {
            return None;
        }
        if tier == Tier::Counters {
            self.denied.get_or_init(|| found.clone());
        }
        let next = lower_tier(variant, tier)?;
        self.watch.ended(
            variant,
            tier.as_str(),
            &format!("{}; {next} instead", found.message),
        );
        self.watch.begins(variant, "profile");
        Some(next)
    }

    /// What keeps a variant from being measured, with the denial of the counters where that led
    /// there.
    fn told(&self, variant: &Variant, tier: Tier, found: Finding) -> Vec<Finding> {
        // Where no tier is left that runs anything, what the compiler made may be accepted alone.
        let out_of_reach = matches!(
            found.code,
            Code::NoPermission | Code::ProfilerUnsupported | Code::KernelTimesUnavailable
        );
        let code_alone = out_of_reach && variant.accepts(Tier::Static) && variant.has_static_gate();
        let found = if code_alone { found.warn() } else { found };
        let denied = self.denied.get().filter(|_| tier != Tier::Counters);
        let Some(denied) = denied else {
            return vec![found];
        };
        let denied = Finding {
            variant: Some(variant.id.clone()),
            ..denied.clone()
        };
        let accepted = variant.accepts(tier) || code_alone;
        vec![if accepted { denied.warn() } else { denied }, found]
    }

    /// What kernels are timed with without ncu.
    fn recorder(&self, config: &Config) -> Result<&Result<Recorder, String>, Error> {
        if let Some(known) = self.recorder.get() {
            return Ok(known);
        }
        let (toolchain, work) = (&config.toolchain, &config.work);
        let found = Recorder::prepare(toolchain, &self.ncu.path, work, &self.gpu.cuda)?;
        Ok(self.recorder.get_or_init(|| found))
    }

    /// Holds the GPU until the answer is dropped, and says what disturbs it.
    ///
    /// # Errors
    /// As [`Gpu::lock`].
    pub fn hold(&self) -> Result<GpuLock, Error> {
        let lock = self.gpu.lock(|| self.watch.waits())?;
        // Told now, and not only when all is measured. Without NVML each profile says so.
        for obstacle in Health::of(&self.gpu.uuid)
            .iter()
            .flat_map(Health::obstacles)
        {
            self.watch.warns(&obstacle);
        }
        Ok(lock)
    }
}

/// The next tier below one that measures anything of a variant.
fn lower_tier(variant: &Variant, above: Tier) -> Option<Tier> {
    let serves = |tier: &Tier| {
        let can = *tier != Tier::EventTimes || !variant.time_args.is_empty();
        can && variant.has_phase_on(*tier, Phase::Timing)
    };
    let below = Tier::LOWER.iter().position(|tier| *tier == above);
    let mut lower = Tier::LOWER
        .into_iter()
        .skip(below.map_or(0, |place| place + 1));
    lower.find(serves)
}

/// A built and verified variant that is being measured, process by process.
pub struct Subject<'a> {
    config: &'a Config,
    variant: &'a Variant,
    artifact: Artifact,
    folder: PathBuf,
    git: Option<String>,
    tier: Tier,
    captures: Vec<Capture>,
    pending: Option<Pending>,
    processes: u32,
    tools_wall: Duration,
    /// The instructions of the cubins that were measured, each disassembled once.
    listings: Vec<(Cubin, Option<Listing>)>,
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
            tier: Tier::Counters,
            captures: Vec::new(),
            pending: None,
            processes: 0,
            tools_wall: Duration::ZERO,
            listings: Vec::new(),
        }
    }

    /// One more process of a pass.
    ///
    /// # Errors
    /// [`Error`] where the machine failed; what keeps the variant from being measured is a finding.
    pub fn capture(
        &mut self,
        bench: &Bench<'_>,
        phase: Phase,
    ) -> Result<Result<(), Finding>, Error> {
        let stem = match phase {
            Phase::Timing => format!("capture-{}", self.processes + 1),
            Phase::Counting => "counting".to_owned(),
        };
        let (variant, artifact, gpu) = (self.variant, &self.artifact, &bench.gpu);
        let (config, env, folder) = (self.config, &bench.env, &self.folder);
        let ran = match self.tier {
            Tier::Counters => capture(
                config,
                &bench.ncu,
                variant,
                artifact,
                phase,
                Some(&gpu.uuid),
                env,
                folder,
                &stem,
            )?,
            Tier::KernelTimes => {
                let recorder = bench.recorder(config)?;
                cupti::record(config, recorder, variant, artifact, gpu, env, folder, &stem)?
            }
            Tier::EventTimes => {
                event_times::time(config, variant, artifact, gpu, env, folder, &stem)?
            }
            Tier::Static => {
                let what = format!("{} is to be measured where nothing runs", variant.id);
                return Err(Error::Usage(what));
            }
        };
        let pending = match ran {
            Ok(pending) => pending,
            Err(finding) => return Ok(Err(finding)),
        };
        self.tools_wall += pending.wall;
        self.processes += u32::from(phase == Phase::Timing);
        // The one before was read meanwhile.
        let answer = self.settle()?;
        self.pending = Some(pending);
        Ok(answer)
    }

    /// Forgets what was measured, to measure on a tier; the captures will be written over.
    pub fn restart(&mut self, tier: Tier) {
        self.tier = tier;
        self.captures.clear();
        self.processes = 0;
        if let Some(pending) = self.pending.take() {
            let _ = pending.finish();
        }
    }

    /// Forgets what was measured, and takes its captures away.
    fn discard(&mut self) -> Result<(), Error> {
        self.restart(self.tier);
        retry::discard(&self.folder)
    }

    /// Waits for the capture that is still being read.
    fn settle(&mut self) -> Result<Result<(), Finding>, Error> {
        let Some(pending) = self.pending.take() else {
            return Ok(Ok(()));
        };
        let started = std::time::Instant::now();
        let answer = pending.finish()?;
        // Waiting is for ncu, which prints the CSV.
        self.tools_wall += started.elapsed();
        Ok(answer.map(|capture| self.captures.push(capture)))
    }

    /// Whether its tier measures anything in a pass.
    fn has_phase(&self, phase: Phase) -> bool {
        let samples = self.variant.profile.hotspots
            && phase == Phase::Counting
            && self.tier == Tier::Counters;
        samples || self.variant.has_phase_on(self.tier, phase)
    }

    /// Processes of the timing phase so far.
    pub fn processes(&self) -> u32 {
        self.processes
    }

    /// Time inside ncu so far.
    pub fn tools_wall(&self) -> Duration {
        self.tools_wall
    }

    /// The profile of what was captured so far.
    ///
    /// # Errors
    /// [`Error`] where the machine failed; a finding where the captures make no profile.
    pub fn profile(&mut self, bench: &Bench<'_>) -> Result<Result<Profile, Finding>, Error> {
        Ok(match self.settle()? {
            Ok(()) => self.normalize(bench),
            Err(finding) => Err(finding),
        })
    }

    /// Where what was launched is not what the compiler made.
    /// That a trial's launches are not as the configuration states only warns.
    fn mismatches(&self, bench: &Bench<'_>) -> Vec<Finding> {
        let toolchain = &self.config.toolchain;
        let compiled = compiled_profile(toolchain, self.variant, &self.artifact, &[], None);
        let Some(compiled) = compiled else {
            return Vec::new();
        };
        let mut findings = Vec::new();
        for capture in &self.captures {
            for finding in launch_mismatches(self.variant, &compiled, &capture.report) {
                let finding = if bench.overrides.is_empty() {
                    finding
                } else {
                    finding.warn()
                };
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        findings
    }

    fn normalize(&mut self, bench: &Bench<'_>) -> Result<Profile, Finding> {
        let sources: Vec<Source<'_>> = self
            .captures
            .iter()
            .map(|capture| Source {
                report: &capture.report,
                csv: capture.page.as_ref().map(|page| &page.recording),
                phase: Some(capture.phase),
                gpu_uuid: Some(&bench.gpu.uuid),
            })
            .collect();
        let counters = self.variant.counters_on(self.tier);
        let files = self.artifact.sources.keys();
        let mut derived = derive(&counters, &sources, files).map_err(|error| {
            Finding::deny(
                Code::CaptureUnreadable,
                &self.variant.id,
                error.to_string(),
                "look into the report: sparsek-gate inspect FILE".to_owned(),
            )
        })?;
        self.name_instructions(&mut derived);
        let conditions = match self.tier {
            Tier::Counters => Conditions::from(&self.variant.profile),
            Tier::KernelTimes | Tier::EventTimes | Tier::Static => Conditions::default(),
        };
        let provenance = self.provenance(bench);
        Ok(Profile::new(
            self.variant,
            derived,
            self.tier,
            conditions,
            provenance,
        ))
    }

    /// Names the instructions of hotspots, where there is a disassembler.
    fn name_instructions(&mut self, derived: &mut Derived) {
        if derived
            .kernels
            .iter()
            .all(|kernel| kernel.hotspots.is_none())
        {
            return;
        }
        let toolkit = Nvcc::locate(&self.config.toolchain, &self.config.work)
            .map_or_else(|_| PathBuf::new(), |nvcc| nvcc.root());
        let Some(nvdisasm) = Nvdisasm::locate(&toolkit, &self.config.work) else {
            return;
        };
        let launches = self
            .captures
            .iter()
            .flat_map(|capture| &capture.report.launches);
        let seen = &mut self.listings;
        for launch in launches {
            let kernel = derived.kernels.iter_mut().find(|kernel| {
                kernel.mangled == launch.kernel.mangled
                    && kernel.grid == launch.grid
                    && kernel.block == launch.block
            });
            let cubin = launch
                .source
                .as_ref()
                .and_then(|source| source.cubin.clone());
            let (Some(kernel), Some(cubin)) = (kernel, cubin) else {
                continue;
            };
            let at = seen.iter().position(|(known, _)| *known == cubin);
            let at = at.unwrap_or_else(|| {
                let listing = nvdisasm.listing(&cubin.0).ok();
                seen.push((cubin, listing));
                seen.len() - 1
            });
            let text = seen[at].1.as_ref().zip(kernel.mangled.as_ref());
            let text = text.and_then(|(listing, name)| listing.get(name));
            if let (Some(hotspots), Some(text)) = (&mut kernel.hotspots, text) {
                hotspots.name_instructions(text);
            }
        }
    }

    /// Writes the profile beside its captures.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep(&self, profile: &Profile) -> Result<(), Error> {
        let path = self.folder.join(profile::FILE_NAME);
        write_atomically(&path, profile.to_json().as_bytes()).map_err(Error::io("write", &path))
    }

    /// What the project pins of what this variant is measured with. A base may be of another
    /// compiler than its head.
    fn pins(&self, bench: &Bench<'_>) -> Vec<Pin> {
        let toolchain = &self.config.toolchain;
        let mut pins = gpu_pins(toolchain, &bench.gpu);
        pins.extend(toolchain.pins.ncu(&bench.ncu.version));
        let compiler = self.artifact.compiler.as_deref();
        pins.extend(compiler.and_then(|version| toolchain.pins.cuda(version)));
        pins
    }

    fn profiler(&self, bench: &Bench<'_>) -> Option<String> {
        match self.tier {
            Tier::Counters => Some(bench.ncu.version.clone()),
            Tier::KernelTimes | Tier::EventTimes | Tier::Static => {
                self.captures.first()?.report.profiler_version.clone()
            }
        }
    }

    fn provenance(&self, bench: &Bench<'_>) -> Provenance {
        Provenance {
            stripped: false,
            origin: ProfileOrigin::Measured,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            created: now(),
            launches: self.variant.profile.launches,
            processes: self.processes(),
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
            warnings: Vec::new(),
            captures: self
                .captures
                .iter()
                .map(|capture| CaptureRecord {
                    phase: Some(capture.phase),
                    gpu_uuid: Some(bench.gpu.uuid.clone()),
                    device: capture.device.clone(),
                    report: file_hash(&capture.report_path, &capture.report_sha256),
                    csv: capture
                        .page
                        .as_ref()
                        .map(|page| file_hash(&page.path, &page.sha256)),
                    argv: capture.argv.clone(),
                })
                .collect(),
        }
    }
}

/// Whether the answer that a profile gives is still open, so that more processes could help.
pub type StillOpen<'a> = dyn FnMut(&Variant, &Profile) -> bool + 'a;

/// Measures variants one after the other on the configured GPU. Profiles and captures are left
/// under `output/<suite>/<variant>/`. While `open` says so, and within the configured bound, a
/// variant is measured in more processes.
///
/// # Errors
/// [`Error`] where the machine failed; whatever concerns one variant is a finding.
pub fn measure(
    config: &Config,
    variants: &[&Variant],
    output: &Path,
    overrides: &[String],
    watch: &dyn Watch,
    open: &mut StillOpen<'_>,
) -> Result<Measured, Error> {
    let bench = Bench::new(config, variants, overrides, watch)?;
    let git = crate::git::revision(&config.root);
    let mut measured = Measured::default();

    // A variant that fails now must not leave an earlier profile behind to be taken for this one.
    for variant in variants {
        empty_variant_folder(output, &variant.id)?;
    }
    let started = std::time::Instant::now();
    let (artifacts, findings) = build_all(config, variants, watch)?;
    measured.tools_wall += started.elapsed();
    measured.findings.extend(findings);
    measured.compiled = keep_compiled(
        config,
        variants,
        &artifacts,
        |variant| variant_folder(output, &variant.id),
        overrides,
        git.as_deref(),
    )?;

    let lock = bench.hold()?;
    for (variant, artifact) in variants.iter().zip(artifacts) {
        let Some(artifact) = artifact else { continue };
        if !verified(config, variant, &artifact, &bench, watch, &mut measured)? {
            continue;
        }
        watch.begins(variant, "profile");
        let folder = variant_folder(output, &variant.id);
        let mut subject = Subject::new(config, variant, artifact, folder, git.clone());
        let mut retries = Retries::of(variant, watch);
        let profile = profile_alone(&mut subject, &bench, &mut retries, open)?;
        measured.findings.extend(retries.told());
        measured.tools_wall += subject.tools_wall();
        match profile {
            Err(finding) => {
                watch.ended(variant, "profile", &finding.message);
                let told = bench.told(variant, subject.tier, finding);
                measured.findings.extend(told);
            }
            Ok(profile) => {
                subject.keep(&profile)?;
                let mut gaps = incomplete(variant, &profile);
                gaps.extend(disturbed(variant, &profile));
                gaps.extend(subject.mismatches(&bench));
                watch.ended(variant, "profile", &words(&profile, &gaps));
                gaps.extend(unpinned(&variant.id, "measured", &profile.provenance.pins));
                measured.findings.extend(gaps);
                measured.profiles.push(profile);
            }
        }
    }
    drop(lock);
    Ok(measured)
}

/// What a fresh profile is, in a few words.
fn words(profile: &Profile, gaps: &[Finding]) -> String {
    match gaps.first() {
        None => format!(
            "{} launches in {} processes",
            profile.launch_count(Phase::Timing),
            profile.provenance.processes
        ),
        Some(gap) => gap.message.clone(),
    }
}

/// Whether the numbers of a built variant are right, and compute-sanitizer finds nothing where it
/// is asked.
fn verified(
    config: &Config,
    variant: &Variant,
    artifact: &Artifact,
    bench: &Bench<'_>,
    watch: &dyn Watch,
    measured: &mut Measured,
) -> Result<bool, Error> {
    let artifacts = [Some(artifact.clone())];
    let (verified, mut findings) = verify_all(config, &[variant], &artifacts, &bench.env, watch)?;
    let right = verified.into_iter().flatten().next();
    measured.tools_wall += right.as_ref().map_or(Duration::ZERO, |right| right.wall);
    if let Some(sanitizer) = &bench.sanitizer {
        let (sanitized, found) = sanitize_all(
            config,
            &[variant],
            &artifacts,
            &findings,
            sanitizer,
            &bench.env,
            watch,
        )?;
        findings.extend(found);
        let tools = sanitized.iter().flat_map(|variant| &variant.tools);
        measured.tools_wall += tools.map(|tool| tool.wall).sum::<Duration>();
    }
    let denied = |finding: &Finding| finding.severity == Severity::Deny;
    let clean = !findings.iter().any(denied);
    measured.findings.extend(findings);
    Ok(right.is_some() && clean)
}

/// Measures a variant on the highest tier that can be reached, again where the machine failed.
fn profile_alone(
    subject: &mut Subject<'_>,
    bench: &Bench<'_>,
    retries: &mut Retries<'_>,
    open: &mut StillOpen<'_>,
) -> Result<Result<Profile, Finding>, Error> {
    let variant = subject.variant;
    loop {
        let answer = profile_once(subject, bench, open)?;
        let answer = answer.map_err(|found| bench.unless_lost(found));
        let failed = match &answer {
            Ok(profile) => disturbance(&variant.id, &[("current", profile)]),
            Err(found) => Some(found.clone()),
        };
        if let Some(found) = failed
            && retries.again(&found)?
        {
            subject.discard()?;
            continue;
        }
        return Ok(answer.map_err(|found| retries.given_up(found)));
    }
}

fn profile_once(
    subject: &mut Subject<'_>,
    bench: &Bench<'_>,
    open: &mut StillOpen<'_>,
) -> Result<Result<Profile, Finding>, Error> {
    let mut tier = match bench.tier(subject.variant) {
        Ok(tier) => tier,
        Err(denied) => return Ok(Err(denied)),
    };
    loop {
        subject.restart(tier);
        match profile_on_tier(subject, bench, open)? {
            Ok(profile) => return Ok(Ok(profile)),
            Err(found) => match bench.below(subject.variant, tier, &found) {
                Some(lower) => tier = lower,
                None => return Ok(Err(found)),
            },
        }
    }
}

fn profile_on_tier(
    subject: &mut Subject<'_>,
    bench: &Bench<'_>,
    open: &mut StillOpen<'_>,
) -> Result<Result<Profile, Finding>, Error> {
    let variant = subject.variant;
    if subject.has_phase(Phase::Counting)
        && let Err(finding) = subject.capture(bench, Phase::Counting)?
    {
        return Ok(Err(finding));
    }
    while subject.has_phase(Phase::Timing) && subject.processes() < variant.profile.max_processes {
        if variant
            .profile
            .process_looks()
            .contains(&subject.processes())
        {
            match subject.profile(bench)? {
                Ok(profile) if open(variant, &profile) => {}
                answer => return Ok(answer),
            }
        }
        if let Err(finding) = subject.capture(bench, Phase::Timing)? {
            return Ok(Err(finding));
        }
    }
    subject.profile(bench)
}

/// What makes a program see the GPU that was asked about, and no other.
pub fn gpu_env(gpu: &Gpu) -> BTreeMap<String, String> {
    BTreeMap::from([("CUDA_VISIBLE_DEVICES".to_owned(), gpu.uuid.clone())])
}

/// On chips without a table here, ncu itself says which counters there are; an unknown one ends
/// the run before any kernel does.
fn check_counters(config: &Config, variants: &[&Variant], ncu: &Ncu) -> Result<(), Error> {
    use ncu_report::{Existence, exists};
    let toolchain = &config.toolchain;
    let asked: Vec<&str> = variants
        .iter()
        .flat_map(|variant| &variant.metrics)
        .map(|metric| metric.counter.as_str())
        .filter(|counter| exists(toolchain.chip, counter) == Existence::NoTable)
        // Names of ncu's own are in no list.
        .filter(|counter| counter.contains("__") && !counter.contains(':'))
        .filter(|counter| {
            const OWN: [&str; 6] = ["launch__", "device__", "sass__", "derived__", "profiler__", "smsp__pcsamp"];
            !OWN.iter().any(|prefix| counter.starts_with(prefix))
        })
        .collect();
    if asked.is_empty() || toolchain.chip_name.is_empty() {
        return Ok(());
    }
    let known = ncu.counters(toolchain.chip_name)?;
    let base = |counter: &str| counter.split('.').next().unwrap_or_default().to_owned();
    for counter in asked {
        if !known.contains(&base(counter)) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let near = crate::config::nearest(&base(counter), &names)
                .map(|name| format!(" (did you mean `{name}`?)"));
            return Err(Error::Usage(format!(
                "the chip `{}` has no counter `{counter}`{}",
                toolchain.chip_name,
                near.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

fn file_hash(path: &Path, sha256: &str) -> FileHash {
    FileHash {
        file: path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        sha256: sha256.to_owned(),
    }
}
