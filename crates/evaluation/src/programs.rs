//! Comparisons of whole programs, drawn from recorded processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sparsek_gate::config::{
    ClockControl, Config, Program, ProgramSettings, Purpose, Variant, Verification,
};
use sparsek_gate::files::PROFILE_FILE;
use sparsek_gate::finding::{Code, Error, Finding};
use sparsek_gate::judge::{Case, Mode, compare};
use sparsek_gate::profile::{CaptureRecord, KernelProfile, Profile, Series};
use sparsek_gate::terms::Phase;
use sparsek_gate::verdict::Verdict;

use super::data::{A_ROUND, DURATION, each_below, short, wrong};
use super::random::Random;
use super::side_by_side::{Answer, Change, Draw, Recorded, last_look};

/// The tolerance of `sparsek-gate compare`, in percent.
const TOLERANCE: f64 = 0.5;
/// A kernel with less of the time is not changed alone, in percent.
pub const LARGE: f64 = 20.0;

/// A program that was compared with itself on one GPU. Its kernels have the samples of all processes: round
/// `r` is `2r` and `2r + 1` of the base, and the same of the current side, which follows the base.
pub struct ProgramPair {
    name: String,
    gpu: String,
    variant: Variant,
    processes: Profile,
    /// Processes of one side.
    side: usize,
    /// The kernel with the largest share, if that is large; a change is put into it, or else into all.
    largest: Option<usize>,
}

impl ProgramPair {
    /// Reads `programs/<gpu>/aa`.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Input`] of what is no comparison of a program with itself.
    pub fn read(folder: &Path) -> Result<Vec<ProgramPair>, Error> {
        let mut pairs = Vec::new();
        for gpu in each_below(folder, "aa")? {
            for program in each_below(&gpu, "")? {
                pairs.push(ProgramPair::of(&program)?);
            }
        }
        Ok(pairs)
    }

    fn of(folder: &Path) -> Result<ProgramPair, Error> {
        let missing = |why| wrong(folder, why);
        let at = |path: PathBuf| Profile::at(&path)?.ok_or_else(|| missing("it has no profile"));
        let current = at(folder.join(PROFILE_FILE))?;
        let base = at(folder.join("base").join(PROFILE_FILE))?;
        let [gpu] = current.gpu_uuids()[..] else {
            return Err(missing("it was not measured on one GPU"));
        };
        let side = timed(&base).len().min(timed(&current).len());
        if side < A_ROUND {
            return Err(missing("it has no complete round"));
        }
        let settings = ProgramSettings {
            root: folder.to_owned(),
            work: folder.to_owned(),
            device: 0,
            compute_capability: current.identity.compute_capability.clone(),
            kernels: None,
            skip: 0,
            launches: current.provenance.launches,
            purpose: Purpose::Comparison,
            timeout: Duration::ZERO,
            clock_control: ClockControl::None,
            tolerance_percent: TOLERANCE,
            verified: false,
        };
        let program = Program {
            argv: vec!["program".to_owned()],
            verification: Verification::None,
        };
        let config = Config::of_program(&settings, &current.variant, &program)?;
        let variant = config.variants().next().cloned();
        let processes = together(&base, &current, side);
        let shares = processes.shares_of_total(DURATION);
        let large = (0..shares.len()).filter(|at| shares[*at] >= LARGE);
        Ok(ProgramPair {
            name: folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            gpu: short(gpu),
            variant: variant.ok_or_else(|| missing("it is no program"))?,
            largest: large.max_by(|one, other| shares[*one].total_cmp(&shares[*other])),
            processes,
            side,
        })
    }
}

impl Recorded for ProgramPair {
    fn name(&self) -> &str {
        &self.name
    }

    fn gpu(&self) -> &str {
        &self.gpu
    }

    fn check(&self, draw: Draw, change: Change, random: &mut Random) -> Answer {
        self.judged(&draw.processes(self.side, self.side, random), change)
    }
}

impl ProgramPair {
    /// The comparison that was recorded.
    pub fn as_recorded(&self) -> Answer {
        let sides = [0, self.side].map(|first| (first..first + self.side).collect());
        self.judged(&sides, Change::Unchanged)
    }

    /// Judges the program and its kernels as `compare` does, look by look.
    fn judged(&self, [base, current]: &[Vec<usize>; 2], change: Change) -> Answer {
        last_look(base.len(), |processes| {
            let base = self.side("base", &base[..processes], Change::Unchanged);
            let current = self.side("current", &current[..processes], change);
            let case = Case::new(&self.variant, Mode::Programs, &base, &current);
            let (report, findings) = compare(&case);
            let threshold = report.sum().and_then(|sum| sum.threshold);
            let answer = Answer {
                verdict: verdict(&findings),
                rounds: processes / A_ROUND,
                would_have_caught: threshold.unwrap_or(f64::NAN),
            };
            (answer, report.open(|_| false))
        })
    }

    /// The most launches, in a process, of a kernel that changes are put into.
    pub fn launches(&self) -> usize {
        let changed = |at: &usize| self.largest.is_none_or(|largest| largest == *at);
        let kernels = (0..self.processes.kernels.len()).filter(changed);
        let series = kernels.filter_map(|at| self.processes.kernels[at].metrics.get(DURATION));
        let processes = series.flat_map(|series| &series.samples);
        processes.map(Vec::len).max().unwrap_or(0)
    }

    /// A side that is these processes, with a change.
    fn side(&self, name: &str, processes: &[usize], change: Change) -> Profile {
        let all = &self.processes;
        let timed = timed(all);
        let mut captures: Vec<CaptureRecord> =
            processes.iter().map(|at| timed[*at].clone()).collect();
        for capture in &mut captures {
            // What was drawn for both sides stands for two measurements.
            capture.report.sha256.push_str(name);
        }
        let machines: Vec<Option<&str>> =
            captures.iter().map(|one| one.gpu_uuid.as_deref()).collect();
        let everywhere = matches!(change, Change::Longer(_));
        let kernels = all.kernels.iter().enumerate().filter_map(|(at, kernel)| {
            let is_changed = everywhere || self.largest.is_none_or(|largest| largest == at);
            let series = kernel.metrics.get(DURATION)?;
            let samples = processes.iter().map(|at| series.samples[*at].clone());
            let mut launches: Vec<Vec<f64>> = samples
                .map(|of| of.into_iter().flatten().collect())
                .collect();
            if is_changed {
                change.put_into(&mut launches);
            }
            let samples = launches
                .into_iter()
                .map(|of| of.into_iter().map(Some).collect());
            let series = Series::new(samples.collect(), &machines);
            (series.launch_count() > 0).then(|| KernelProfile {
                metrics: BTreeMap::from([(DURATION.to_owned(), series)]),
                ..named(kernel)
            })
        });
        let mut side = Profile {
            kernels: kernels.collect(),
            ..without_kernels(all)
        };
        side.provenance.captures = captures;
        side
    }
}

/// What failed, as far as it is a verdict.
fn verdict(findings: &[Finding]) -> Verdict {
    let denying: Vec<Code> = findings
        .iter()
        .filter(|one| one.denies())
        .map(|one| one.code)
        .collect();
    match &denying[..] {
        [] => Verdict::Pass,
        codes if codes.contains(&Code::Regressed) => Verdict::Regressed,
        _ => Verdict::Inconclusive,
    }
}

/// The captures that timed, in the order of the samples.
fn timed(profile: &Profile) -> Vec<&CaptureRecord> {
    let captures = profile.provenance.captures.iter();
    captures
        .filter(|one| one.phase == Some(Phase::Timing))
        .collect()
}

/// A kernel without samples.
fn named(kernel: &KernelProfile) -> KernelProfile {
    KernelProfile {
        metrics: BTreeMap::new(),
        ..kernel.clone()
    }
}

fn without_kernels(profile: &Profile) -> Profile {
    Profile {
        schema: profile.schema,
        variant: profile.variant.clone(),
        identity: profile.identity.clone(),
        kernels: Vec::new(),
        provenance: profile.provenance.clone(),
    }
}

/// One profile of the processes of both sides. What a process did not launch has no samples of it.
fn together(base: &Profile, current: &Profile, side: usize) -> Profile {
    let mut all = without_kernels(current);
    all.provenance.captures = Vec::new();
    for (number, profile) in [base, current].into_iter().enumerate() {
        let captures = timed(profile).into_iter().take(side).cloned();
        all.provenance.captures.extend(captures);
        for kernel in &profile.kernels {
            let Some(series) = kernel.metrics.get(DURATION) else {
                continue;
            };
            let is_it = |one: &KernelProfile| {
                (one.identity(), one.grid, one.block)
                    == (kernel.identity(), kernel.grid, kernel.block)
            };
            let at = all.kernels.iter().position(is_it).unwrap_or_else(|| {
                let empty = Series::new(vec![Vec::new(); 2 * side], &[]);
                all.kernels.push(KernelProfile {
                    metrics: BTreeMap::from([(DURATION.to_owned(), empty)]),
                    ..named(kernel)
                });
                all.kernels.len() - 1
            });
            if let Some(into) = all.kernels[at].metrics.get_mut(DURATION) {
                into.samples[number * side..(number + 1) * side]
                    .clone_from_slice(&series.samples[..side]);
            }
        }
    }
    all
}
