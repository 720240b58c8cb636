//! A plan as a dry run prints it: every job with its argv, and what would be built.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Job, Side, Task, VariantPlan};
use crate::build::{Artifact, BuildState, PlannedBuild, UNBUILT, planned_build};
use crate::config::{Config, SanitizerTool, Variant};
use crate::device::Gpu;
use crate::files::{base_folder, variant_folder};
use crate::process::{passed, shell_line};
use crate::profiler::{Ncu, Profiler, Session};
use crate::sanitize::sanitized_argv;
use crate::terms::{Phase, VariantId};
use crate::toolchain::Sanitizer;
use crate::verify::{verify_argv, verify_given};

/// What a plan is made of: one variant, and its version at the base where there is one.
pub struct PlanOf<'a> {
    /// The project.
    pub config: &'a Config,
    /// The variant.
    pub variant: &'a Variant,
    /// The base's project and version of the variant, or why it cannot be measured beside it.
    pub base: Option<Result<(&'a Config, Variant), String>>,
    /// Whether anything is measured; otherwise it is only built.
    pub measured: bool,
}

/// What a run would do.
#[derive(Debug, Serialize)]
pub struct Planned {
    /// The names of the variables that programs get of this environment, besides those that the
    /// configuration sets.
    environment: Vec<String>,
    /// What would be built, in this order.
    builds: Vec<BuildRow>,
    /// The jobs of each variant, in this order.
    variants: Vec<VariantRow>,
}

#[derive(Debug, Serialize)]
struct BuildRow {
    variant: VariantId,
    side: Side,
    state: BuildState,
    argv: Vec<String>,
}

#[derive(Debug, Serialize)]
struct VariantRow {
    variant: VariantId,
    /// The fewest rounds that are measured.
    least_rounds: u32,
    /// The most of them, where the answer is open until then.
    most_rounds: u32,
    /// Why the variant has no base to be measured beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_base: Option<String>,
    jobs: Vec<JobRow>,
}

#[derive(Debug, Serialize)]
struct JobRow {
    side: Side,
    task: &'static str,
    /// From 1; `None` for what is done once.
    round: Option<u32>,
    argv: Vec<String>,
}

/// What a run would do. Profiles would go to `output`. Starts no program, as long as
/// [`crate::process::start_nothing`] was called.
pub fn planned(variants: &[PlanOf<'_>], output: &Path) -> Planned {
    let mut planned = Planned {
        environment: passed(),
        builds: Vec::new(),
        variants: Vec::new(),
    };
    for one in variants {
        planned.add(one, output);
    }
    planned
}

impl Planned {
    fn add(&mut self, one: &PlanOf<'_>, output: &Path) {
        let current = self.build(one.config, one.variant, Side::Current, one.measured);
        let base = match &one.base {
            Some(Ok((config, variant))) => {
                let built = self.build(config, variant, Side::Base, true);
                Some((*config, variant, built))
            }
            Some(Err(_)) | None => None,
        };
        if !one.measured {
            return;
        }
        let plan = match base {
            Some(_) => VariantPlan::side_by_side(one.variant),
            None => VariantPlan::alone(one.variant),
        };
        let (least_rounds, most_rounds) = plan.bounds();
        let jobs = plan.once.iter().chain(plan.rounds.iter().flatten());
        let row = |job: &Job| {
            let (config, variant, artifact) = match (job.side, &base) {
                (Side::Base, Some((config, variant, artifact))) => (*config, *variant, artifact),
                _ => (one.config, one.variant, &current),
            };
            let runner = Runner {
                config,
                variant,
                artifact,
                folder: match job.side {
                    Side::Base => base_folder(output, &variant.id),
                    Side::Current => variant_folder(output, &variant.id),
                },
            };
            JobRow {
                side: job.side,
                task: job.task.as_str(),
                round: job.round,
                argv: runner.argv(job),
            }
        };
        self.variants.push(VariantRow {
            variant: one.variant.id.clone(),
            least_rounds,
            most_rounds,
            without_base: one
                .base
                .as_ref()
                .and_then(|base| base.as_ref().err().cloned()),
            jobs: jobs.map(row).collect(),
        });
    }

    /// Plans the build of a variant, and returns what would run. Where nothing is measured, no
    /// `build` command of the change is run.
    fn build(
        &mut self,
        config: &Config,
        variant: &Variant,
        side: Side,
        runs_commands: bool,
    ) -> Artifact {
        let PlannedBuild {
            mut state,
            mut argv,
            artifact,
        } = planned_build(config, variant);
        if !runs_commands && variant.from_machine_code() {
            state = BuildState::Nothing;
            argv.clear();
        }
        self.builds.push(BuildRow {
            variant: variant.id.clone(),
            side,
            state,
            argv,
        });
        artifact
    }

    /// The plan for people.
    pub fn text(&self) -> String {
        let mut text = String::from("dry run: nothing is built and no program is started\n");
        let (mut unbuilt, mut seeded) = (false, false);
        for build in &self.builds {
            let state = match build.state {
                BuildState::Nothing => "needs no build",
                BuildState::Reused => "build reused",
                BuildState::Built => "is built",
                BuildState::Unknown => "is built, unless an earlier build is reused",
            };
            let side = side_of(build.side);
            let _ = write!(text, "\n{} {side}: {state}", build.variant);
            if !build.argv.is_empty() && build.state != BuildState::Reused {
                let _ = write!(text, "\n    {}", shell_line(&build.argv));
            }
            unbuilt |= build.argv.iter().any(|word| word == UNBUILT);
            text.push('\n');
        }
        for variant in &self.variants {
            let (least, most) = (variant.least_rounds, variant.most_rounds);
            let rounds = match least == most {
                true => format!("{most} rounds"),
                false => format!(
                    "{least} to {most} rounds, more than {least} only while the answer is open"
                ),
            };
            let _ = writeln!(text, "\n{}: {rounds}", variant.variant);
            if let Some(why) = &variant.without_base {
                let _ = writeln!(text, "  measured alone, because the base cannot be: {why}");
            }
            for job in &variant.jobs {
                let round = job
                    .round
                    .map_or_else(String::new, |round| format!(", round {round}"));
                let _ = writeln!(text, "  {} {}{round}", job.task, side_of(job.side));
                let _ = writeln!(text, "    {}", shell_line(&job.argv));
                seeded |= job.argv.iter().any(|word| word.contains("{seed}"));
            }
        }
        let names = self.environment.join(", ");
        let _ = writeln!(text, "\nprograms get these variables: {names}");
        if seeded {
            let _ = writeln!(
                text,
                "\n{{seed}} is chosen afresh for each process; base and current of a pair share it"
            );
        }
        if unbuilt {
            let _ = writeln!(
                text,
                "\n{UNBUILT} is a program that is not built yet: its path contains the hash of what goes into it"
            );
        }
        text
    }
}

fn side_of(side: Side) -> &'static str {
    match side {
        Side::Base => "base",
        Side::Current => "current",
    }
}

/// What the argv of a job is made of.
struct Runner<'a> {
    config: &'a Config,
    variant: &'a Variant,
    artifact: &'a Artifact,
    folder: PathBuf,
}

impl Runner<'_> {
    fn argv(&self, job: &Job) -> Vec<String> {
        match job.task {
            Task::Verify => {
                let result = self.verify_folder().join("result.json");
                let given = verify_given(self.variant, &result, None);
                verify_argv(self.variant, self.artifact, &given)
            }
            Task::Sanitize(tool) => self.sanitizer_argv(tool),
            Task::Measure(phase) => self.profiler_argv(phase, &job.stem),
            Task::List => {
                let (gpu, env) = (Gpu::default(), BTreeMap::new());
                self.session(&gpu, &env, Phase::Timing, &job.stem)
                    .program_argv()
            }
        }
    }

    /// The folder of the verifying runs, which base and current share.
    fn verify_folder(&self) -> PathBuf {
        variant_folder(&self.config.work.join("verify"), &self.variant.id)
    }

    fn sanitizer_argv(&self, tool: SanitizerTool) -> Vec<String> {
        let file = |ending: &str| {
            self.verify_folder()
                .join(format!("sanitizer-{tool}.{ending}"))
        };
        let result = file("result.json");
        let given = verify_given(self.variant, &result, None);
        let program = sanitized_argv(self.variant, self.artifact, &given);
        let sanitizer = Sanitizer {
            path: Sanitizer::path(&self.config.toolchain)
                .unwrap_or_else(|_| "compute-sanitizer".into()),
            version: String::new(),
        };
        sanitizer.argv(tool, &file("log"), &program)
    }

    /// On the tier of the counters, which is tried first.
    fn profiler_argv(&self, phase: Phase, stem: &str) -> Vec<String> {
        let (gpu, env) = (Gpu::default(), BTreeMap::new());
        let session = self.session(&gpu, &env, phase, stem);
        let ncu = Ncu {
            path: Ncu::path(&self.config.toolchain).unwrap_or_else(|_| "ncu".into()),
            version: String::new(),
        };
        ncu.invocation(&session)
            .map_or_else(|_| Vec::new(), |invocation| invocation.argv)
    }

    fn session<'s>(
        &'s self,
        gpu: &'s Gpu,
        env: &'s BTreeMap<String, String>,
        phase: Phase,
        stem: &'s str,
    ) -> Session<'s> {
        Session {
            config: self.config,
            variant: self.variant,
            artifact: self.artifact,
            phase,
            gpu,
            faults: None,
            env,
            folder: &self.folder,
            stem,
            seed: None,
            in_turn: None,
        }
    }
}
