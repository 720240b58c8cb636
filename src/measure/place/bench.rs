//! The measuring machine of a run: profilers, GPU, and the tier of measurement that it reaches.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::batch::Batch;
use super::order::Packed;
use crate::config::Variant;
use crate::device::{FaultWatch, Faults, Gpu, Health};
use crate::disk;
use crate::evidence::{SickGpu, Symptom, gpu_pins, symptoms_of};
use crate::files::{PROFILE_FILE, VARIANT_FILE};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::measure::folder::SickFile;
use crate::measure::watch::Watch;
use crate::profiler::{LibraryFile, Profilers};
use crate::terms::{Phase, Tier};
use crate::toolchain::{Nvcc, Sanitizer};

/// The machine that measures, as one run uses it: its profilers, its GPU, the environment of the
/// programs, and which tiers turned out to be out of reach.
pub struct Bench<'a> {
    pub(in crate::measure) profilers: Profilers,
    /// The version of ncu; empty where it is looked for only once it is needed.
    pub(in crate::measure) ncu_version: String,
    /// The libcupti of this machine.
    pub(in crate::measure) libcupti: Option<LibraryFile>,
    pub(in crate::measure) sanitizer: Option<Sanitizer>,
    pub(in crate::measure) gpu: Gpu,
    /// Whether NVML showed the GPU at the start. If it does not later, the GPU is lost.
    pub(in crate::measure) shown: bool,
    pub(in crate::measure) env: BTreeMap<String, String>,
    pub(in crate::measure) overrides: &'a [String],
    watch: &'a dyn Watch,
    /// What this run measured, until a defect of the GPU shows that it does not count.
    pub(in crate::measure) counted: Counted,
    /// Watches the GPU for faults from the moment that it is this run's; `None` where NVML does not
    /// show it.
    faults: OnceCell<Option<FaultWatch>>,
    /// Why ncu has no access to the counters. This is found out once a run.
    denied: OnceCell<Finding>,
}

/// The folders of what this run measured. On a GPU that turns out to have a defect nothing of it counts, now
/// or later: no baseline is locked from it, and no run goes on with it.
#[derive(Clone, Debug, Default)]
pub(in crate::measure) struct Counted(Arc<Mutex<Vec<PathBuf>>>);

impl Counted {
    /// Adds folders of a variant that is about to be measured.
    pub fn add(&self, folders: impl IntoIterator<Item = PathBuf>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(folders);
    }

    /// Removes the profiles, and what a run could be resumed by, and returns their paths. The captures stay.
    pub fn discard(&self) -> Vec<PathBuf> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files = all.iter();
        let files =
            files.flat_map(|folder| [PROFILE_FILE, VARIANT_FILE].map(|name| folder.join(name)));
        files
            .inspect(|path| drop(disk::remove_file(path)))
            .collect()
    }
}

impl<'a> Bench<'a> {
    /// Finds profiler, GPU and compiler. Rejects versions that differ from the pinned ones.
    ///
    /// # Errors
    /// [`Error`] where the machine lacks something.
    pub fn new(
        batch: Batch<'a>,
        overrides: &'a [String],
        packed: Option<&Packed>,
    ) -> Result<Bench<'a>, Error> {
        let (config, variants) = (batch.config, batch.variants);
        let toolchain = &config.toolchain;
        let profilers = Profilers::new(toolchain, &config.work);
        let as_they_run = variants.iter().all(|variant| variant.profile.as_it_runs);
        let ncu_version = match as_they_run && toolchain.pins.ncu.is_none() {
            // It is looked for where counters are read.
            true => String::new(),
            false => profilers.ncu()?.0.version.clone(),
        };
        let gpu = Gpu::query(config.device)?;
        let sanitizer = batch.locate_sanitizer()?;
        let mut pins = gpu_pins(toolchain, &gpu);
        pins.extend(toolchain.pins.ncu(&ncu_version));
        if let Some(packed) = packed {
            let compilers = packed.programs.current.compilers().into_iter();
            pins.extend(compilers.filter_map(|version| toolchain.pins.cuda(version)));
        } else if variants.iter().any(|variant| variant.needs_nvcc()) {
            let nvcc = Nvcc::locate(toolchain, &config.work)?;
            pins.extend(toolchain.pins.cuda(&nvcc.version));
        }
        toolchain.enforce(&config.path, &pins)?;
        let env = gpu_env(&gpu);
        let shown = Health::of(&gpu.uuid).is_ok();
        Ok(Bench {
            ncu_version,
            libcupti: profilers.libcupti(toolchain, &gpu.cuda),
            profilers,
            sanitizer,
            gpu,
            shown,
            env,
            overrides,
            watch: batch.watch,
            counted: Counted::default(),
            faults: OnceCell::new(),
            denied: OnceCell::new(),
        })
    }

    /// The highest tier for a variant that is not known to be out of reach; the finding about the
    /// counters where no other tier can measure it.
    pub(in crate::measure) fn tier(&self, variant: &Variant) -> Result<Tier, Finding> {
        if variant.profile.as_it_runs {
            return Ok(Tier::KernelTimes);
        }
        match (self.denied(variant), lower_tier(variant)) {
            (None, _) => Ok(Tier::Counters),
            (Some(_), Some(lower)) => Ok(lower),
            (Some(denied), None) => Err(denied),
        }
    }

    /// Why no counter of a variant can be read, where a variant before it showed that.
    pub(in crate::measure) fn denied(&self, variant: &Variant) -> Option<Finding> {
        self.denied.get().map(|denied| Finding {
            variant: Some(variant.id.clone()),
            ..denied.clone()
        })
    }

    /// The tier to try after one that cannot measure a variant, by the finding there; `None` where
    /// the finding is not about the tier, or where no tier is left.
    pub(in crate::measure) fn below(
        &self,
        variant: &Variant,
        tier: Tier,
        found: &Finding,
    ) -> Option<Tier> {
        if tier != Tier::Counters || !is_about_tier(found) {
            return None;
        }
        self.denied.get_or_init(|| found.clone());
        let next = lower_tier(variant)?;
        self.watch.ended(
            variant,
            tier.as_str(),
            &format!("{}; {next} instead", found.message),
        );
        self.watch.begins(variant, "profile");
        Some(next)
    }

    /// Why a variant was not measured, with the finding about the counters where that was the cause.
    pub(in crate::measure) fn unmeasured(
        &self,
        variant: &Variant,
        tier: Tier,
        found: Finding,
    ) -> Vec<Finding> {
        // Where no other tier is left, the configuration may accept the static tier alone.
        let code_alone = is_about_tier(&found)
            && variant.accepts(Tier::Static)
            && variant.why_nothing_without_gpu().is_none();
        let found = found.warn_for(code_alone.then_some(WarnReason::TierAccepted));
        let Some(denied) = self.denied(variant).filter(|_| tier != Tier::Counters) else {
            return vec![found];
        };
        let accepted = variant.accepts(tier) || code_alone;
        let reason = accepted.then_some(WarnReason::TierAccepted);
        vec![denied.warn_for(reason), found]
    }

    /// Shows a note on a stage of a variant.
    pub(in crate::measure) fn note(&self, variant: &Variant, stage: &str, text: &str) {
        self.watch.ended(variant, stage, text);
        self.watch.begins(variant, "profile");
    }

    /// Takes the GPU's lock, reports what disturbs the GPU, and watches it for faults from then on.
    /// Dropping the lock releases it. An Xid error of the hardware removes the profiles of this run at
    /// once, and leaves the file `keep`: the program that is measured may hang then, and this process be
    /// killed.
    ///
    /// # Errors
    /// As [`Gpu::lock`].
    pub fn lock(&self, keep: Option<SickFile>) -> Result<File, Error> {
        let other = "another sparsek-gate measures on this GPU; waiting for it to end";
        let lock = self.gpu.lock(|| self.watch.waits(other))?;
        self.faults.get_or_init(|| {
            let counted = self.counted.clone();
            let gpu = self.gpu.clone();
            let at_once = move |faults: &Faults| {
                if let Some(sick) = sick_of(&gpu, symptoms_of(faults)) {
                    // First: without it, what is left after a kill would be measured again.
                    keep.iter().for_each(|file| file.keep(&sick));
                    counted.discard();
                }
            };
            FaultWatch::start(&self.gpu.uuid, at_once)
        });
        // Reported now, and not only when all is measured. Without NVML each profile says so.
        for obstacle in Health::of(&self.gpu.uuid)
            .iter()
            .flat_map(Health::obstacles)
        {
            self.watch.warns(&obstacle);
        }
        Ok(lock)
    }

    /// What watches the GPU for faults.
    pub(in crate::measure) fn faults(&self) -> Option<&FaultWatch> {
        self.faults.get()?.as_ref()
    }

    /// The GPU, where the driver reported a defect of its hardware since the lock was taken, or lost it.
    pub(in crate::measure) fn sick(&self) -> Option<SickGpu> {
        let faults = self.faults().map(FaultWatch::faults).unwrap_or_default();
        let mut symptoms = symptoms_of(&faults);
        symptoms.extend(self.lost().map(|cause| Symptom::Lost { cause }));
        sick_of(&self.gpu, symptoms)
    }

    /// What the driver says of the GPU where it showed it before, and does not now.
    fn lost(&self) -> Option<String> {
        let answer = self.shown.then(|| Health::is_shown(&self.gpu.uuid))?;
        // A question that the driver does not answer for another reason says nothing: programs can
        // make it fail.
        answer.err()?.gone
    }

    /// The same finding; or that the GPU is lost: the finding is then a consequence.
    pub(in crate::measure) fn unless_lost(&self, found: Finding) -> Finding {
        let Some(why) = self.lost() else {
            return found;
        };
        Finding {
            code: Code::GpuLost,
            message: format!(
                "the driver lost the GPU {} ({why}); first seen as: {}",
                self.gpu.uuid, found.message
            ),
            next:
                "look for `Xid` in the kernel's log (dmesg); reset the GPU, or restart the machine"
                    .to_owned(),
            ..found
        }
    }
}

/// Whether a finding says that a tier is out of reach.
fn is_about_tier(found: &Finding) -> bool {
    matches!(found.code, Code::NoPermission | Code::ProfilerUnsupported)
}

fn sick_of(gpu: &Gpu, symptoms: Vec<Symptom>) -> Option<SickGpu> {
    (!symptoms.is_empty()).then(|| SickGpu {
        uuid: gpu.uuid.clone(),
        name: gpu.name.clone(),
        symptoms,
    })
}

/// The tier below the counters, if it measures anything of a variant.
fn lower_tier(variant: &Variant) -> Option<Tier> {
    let tier = Tier::KernelTimes;
    variant.has_phase_on(tier, Phase::Timing).then_some(tier)
}

/// Variables that make a program use this GPU only.
pub fn gpu_env(gpu: &Gpu) -> BTreeMap<String, String> {
    BTreeMap::from([("CUDA_VISIBLE_DEVICES".to_owned(), gpu.uuid.clone())])
}
