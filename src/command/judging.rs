//! What every command does that judges: whose rules count, and what the outcome lacks at the end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::select::{select, variable};
use super::stored;
use crate::baseline::{FILES, Store};
use crate::cli::TrustArgs;
use crate::config::{Config, Selected, Selection, Variant};
use crate::disk::{self, Linked, leads_to};
use crate::evidence::doubtful;
use crate::files::PROFILE_FILE;
use crate::finding::{Code, Error, Finding};
use crate::git;
use crate::judge::{Judge, Outcome, Rules, judge, unchecked};
use crate::measure::{BaseProject, Captures};
use crate::process;
use crate::report::{Target, places};
use crate::trust::{self, Asked, Authority, Grounds};

/// The rules of a run, and what it judges by them.
pub(super) struct Judging {
    pub plan: Selected,
    pub grounds: Grounds,
    /// The commit to compare with.
    pub against: Option<String>,
    /// Locked variants that are not judged.
    unchecked: Vec<Finding>,
}

impl Judging {
    /// By the rules of a checkout, or of the revision that counts there. From then on programs get the
    /// variables that these name.
    pub fn in_checkout(
        current: Config,
        trusted: &TrustArgs,
        against: Option<&str>,
        selection: &Selection,
    ) -> Result<Judging, Error> {
        let asked = Asked {
            baseline_ref: trusted.baseline_ref.as_deref(),
            against,
        };
        let bases = trust::bases(&current.root, asked, variable)?;
        let is_itself = bases.against.is_some() && bases.against == git::revision(&current.root);
        let consent = trust::consent(&trusted.accept, trusted.pull_request, variable)?;
        let mut grounds = trust::establish(current, bases.root, consent)?;
        if grounds.authority == Authority::WorkingTree {
            grounds.findings.extend(trust::judged_by_itself(variable));
        }
        if is_itself {
            let message = "`--against` is HEAD, and no tracked file is changed: the code is compared with itself";
            let next = "name the revision before the change, such as `--against HEAD~1`; in a pull request check out its commit";
            let finding = Finding::of_project(Code::RuleDoubtful, message, next);
            grounds.findings.push(finding);
        }
        let plan = select(grounds.config.clone(), selection, &[])?;
        let root = grounds.config.root.clone();
        if variable("CI").is_none() && git::commit_of(&root, "HEAD").is_some() {
            let own = plan.variants.iter();
            let own = own.filter_map(|it| plan.config.own_files(it).ok());
            grounds
                .findings
                .extend(not_in_git(&root, own.flatten().collect()));
        }
        if grounds.authority != Authority::WorkingTree {
            grounds.findings.extend(not_in_git(&root, own_locks(&plan)));
        }
        Judging::of(grounds, plan, bases.against)
    }

    /// By these rules.
    pub fn of(grounds: Grounds, plan: Selected, against: Option<String>) -> Result<Judging, Error> {
        process::pass(&plan.config.env_pass);
        Ok(Judging {
            // Before a program could write to the copy of the base's locks.
            unchecked: unchecked(&plan, &grounds.store)?,
            plan,
            grounds,
            against,
        })
    }

    /// The commit to compare with, checked out, where programs may be built and run.
    pub fn check_out_base(&self) -> Result<Option<BaseProject>, Error> {
        trust::refuse_in_target(variable)?;
        self.grounds.refuse_tools(variable)?;
        let base = self.against.as_deref();
        let base = base.map(|commit| BaseProject::check_out(&self.plan.config, commit));
        let base = base.transpose()?;
        trust::refuse_untracked(&self.plan.config)?;
        Ok(base)
    }

    /// The rules, with what is locked.
    pub fn rules(&self) -> Result<Rules<'_>, Error> {
        let (mut judge, mut of_locks) = Judge::new(&self.plan, &self.grounds.store)?;
        // What is locked is not what the change has.
        let is_of_base = self.grounds.authority != Authority::WorkingTree;
        let is_tampered = |one: &&mut Finding| is_of_base && one.code == Code::Tampered;
        for finding in of_locks.iter_mut().filter(is_tampered) {
            *finding = finding.clone().in_base();
        }
        judge.accepted.clone_from(&self.grounds.accepted);
        let found = self.grounds.findings.iter().cloned();
        Ok(Rules {
            judge,
            authority: self.grounds.authority.clone(),
            findings: found
                .chain(trust::credentials(&self.plan.config))
                .chain(doubtful(&self.plan.config))
                .collect(),
            of_locks,
            unchecked: self.unchecked.clone(),
        })
    }

    /// What captures are worth, by the rules.
    pub fn judged(&self, captures: Captures, rules: &Rules<'_>) -> Outcome {
        let mut outcome = judge(captures, rules);
        outcome.findings.extend(self.grounds.consent.unused());
        outcome.places = places(&self.plan, &outcome);
        outcome
    }
}

/// The files of the locks of the working tree, as seen from the configuration's folder; none where they cannot be read,
/// which is reported by itself.
fn own_locks(plan: &Selected) -> Vec<String> {
    let root = &plan.config.root;
    let Ok(store) = Store::open(&plan.config.baselines) else {
        return Vec::new();
    };
    let of_variant = |variant: &Arc<Variant>| {
        let folders = store.gpus_of(&variant.id).unwrap_or_default().into_iter();
        let files =
            folders.flat_map(|gpu| FILES.map(|ending| store.path(&gpu, &variant.id, ending)));
        let below =
            files.filter_map(|file| Some(file.strip_prefix(root).ok()?.to_str()?.to_owned()));
        below.collect::<Vec<String>>()
    };
    plan.variants.iter().flat_map(of_variant).collect()
}

/// The warning that a pull request would lack files which its author has.
fn not_in_git(root: &Path, files: Vec<String>) -> Option<Finding> {
    let named: Vec<String> = files
        .into_iter()
        .filter(|file| disk::is_file(root.join(file)))
        .map(|file| format!(":(literal){file}"))
        .collect();
    let files = match named.is_empty() {
        true => Vec::new(),
        false => git::untracked(root, &named),
    };
    // The files of a lock belong together.
    let of_lock = |file: &String| {
        let stem = FILES.iter().find_map(|ending| file.strip_suffix(ending));
        stem.map_or_else(|| file.clone(), |stem| format!("'{stem}*'"))
    };
    let shown: BTreeSet<String> = files.iter().map(of_lock).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let message = format!(
        "git does not track {}: no other clone has it",
        shown.join(", ")
    );
    let next = format!(
        "git add {} (`-f` where a `.gitignore` names it)",
        shown.join(" ")
    );
    (!files.is_empty()).then(|| Finding::of_project(Code::RuleDoubtful, message, next))
}

/// A report must have a folder to lie in, and must not replace what the command reads.
pub(super) fn refuse_targets(
    targets: &[Target],
    project: Option<&Config>,
    read: &[&Path],
) -> Result<(), Error> {
    for (count, target) in targets.iter().enumerate() {
        refuse_target("--report", &target.path, project, read)?;
        if targets[..count]
            .iter()
            .any(|other| other.path == target.path)
        {
            return Err(Error::Usage(format!(
                "`--report {}` is there twice: one report would replace the other",
                target.path.display()
            )));
        }
    }
    Ok(())
}

/// The same of one file, which an option names.
pub(super) fn refuse_target(
    option: &str,
    path: &Path,
    project: Option<&Config>,
    read: &[&Path],
) -> Result<(), Error> {
    let whole = std::path::absolute(path).map_err(Error::io("find", path))?;
    let folder = whole.parent().unwrap_or(&whole);
    refuse_link(folder, "write")?;
    let why = match (disk::is_dir(folder), disk::is_dir(&whole)) {
        (true, false) => None,
        (true, true) => Some("it is a folder: name a file in it"),
        (false, _) => Some("its folder does not exist: make it before (mkdir -p)"),
    };
    if let Some(why) = why {
        let message = format!("`{option} {}`: {why}", path.display());
        return Err(Error::Usage(message));
    }
    // Links and `..` lead to what they lead to.
    let target = match disk::is_there(&whole) {
        true => leads_to(&whole),
        false => leads_to(folder),
    };
    if target.components().any(|part| part.as_os_str() == ".git") {
        return Err(Error::Usage(format!(
            "`{option} {}` is in the folder of git",
            path.display()
        )));
    }
    let output = project.map(|project| project.work.join("profiles"));
    let own = project.map(|project| [project.path.as_path(), project.baselines.as_path()]);
    let own = own.into_iter().flatten().chain(output.as_deref());
    let mut kept = own.chain(read.iter().copied());
    let is_source = |project: &Config| {
        let files = |variant| project.own_files(variant).unwrap_or_default();
        let mut files = project.variants().flat_map(files);
        files.any(|file| leads_to(&project.root.join(file)) == target)
    };
    let is_kept = kept.any(|folder| target.starts_with(leads_to(folder)));
    if disk::is_there(&whole) && (is_kept || project.is_some_and(is_source)) {
        return Err(Error::Usage(format!(
            "`{option} {}` would replace a file that is read",
            path.display()
        )));
    }
    Ok(())
}

/// A folder may be missing, and is no link in a checkout.
fn refuse_link(folder: &Path, action: &'static str) -> Result<(), Error> {
    match disk::real(folder) {
        Err(error) if Linked::is_cause(&error) => Err(Error::io(action, folder)(error)),
        _ => Ok(()),
    }
}

/// The command that judges what is in a folder of profiles.
pub(super) fn check_from(folder: &Path, variant: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = folder.strip_prefix(here).ok();
    let below = below.filter(|it| !it.as_os_str().is_empty());
    let folder = below.unwrap_or(folder).display();
    format!("sparsek-gate check --from {folder} {variant}")
}

/// The folder of a recording, which must exist, and be none of locks.
pub(super) fn refuse_without_recording(
    option: &str,
    folder: &Path,
    plan: &Selected,
) -> Result<(), Error> {
    refuse_link(folder, "read")?;
    let shown = folder.display();
    let real = |path: &Path| disk::real(path).ok();
    let locks = real(&plan.config.baselines);
    let is_of_locks = locks.is_some_and(|all| real(folder).is_some_and(|it| it.starts_with(all)));
    let why = match is_of_locks {
        true => "has the locked baselines, which a check compares with by itself",
        false => "is not a folder",
    };
    let next = match stored::file_of(&folder.to_string_lossy()) {
        _ if disk::is_dir(folder) && !is_of_locks => return Ok(()),
        _ if shown.to_string().contains(".tar") || shown.to_string().ends_with(".zip") => "unpack the archive, and name its folder that has SUITE/VARIANT/profile.json".to_owned(),
        _ if disk::is_file(folder.with_file_name(PROFILE_FILE)) => {
            "name the folder above SUITE/VARIANT: --from DIR".to_owned()
        }
        Some(file) if file.extension().is_some_and(|it| it != "json") => format!(
            "sparsek-gate import {shown} --variant SUITE/VARIANT, then {}",
            check_from(&plan.profiles(None)?, "SUITE/VARIANT")
        ),
        _ => "name the folder that has SUITE/VARIANT/profile.json; `profile --output DIR` makes one, on a machine with a GPU".to_owned(),
    };
    Err(Error::Usage(format!(
        "`{option} {shown}` {why}\n  next: {next}"
    )))
}
