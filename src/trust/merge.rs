//! The code that is judged: what is checked out where it contains the base already, else its trial
//! merge with the base, in a worktree of its own.

use std::path::{Path, PathBuf};

use super::change::config_name;
use super::root::Root;
use super::tools::stated;
use crate::config::{Config, Recipe};
use crate::disk;
use crate::files::create_work_folder;
use crate::finding::Error;
use crate::git::{self, Merged, Worktree, short};
use crate::terms::first;

/// The project of the code that is judged, and the worktree that it is in, if it is not the
/// checkout itself. `checkout` is the project as it is checked out; outputs stay there.
///
/// # Errors
/// [`Error::Baseline`] where the merge has conflicts; [`Error::Environment`] where git cannot merge,
/// or where its configuration is in the hands of the change.
pub(super) fn judged(checkout: Config, root: &Root) -> Result<(Config, Option<Worktree>), Error> {
    let folder = checkout.root.as_path();
    let unreadable = |why: String| {
        git::error(
            format!("git cannot read the repository: {why}"),
            "run the check in a clone with its history, as a user that git trusts with it (`safe.directory` in ~/.gitconfig)",
        )
    };
    if let Some(what) = git::settings_from_tree(folder).map_err(unreadable)? {
        return Err(Error::environment(
            format!("{what}, so the change would decide what git does"),
            "remove the setting (`git config --list --show-origin` shows where it is), or point it to a file outside of the repository",
        ));
    }
    let head = git::commit_of(folder, "HEAD").unwrap_or_default();
    if git::contains(folder, &head, &root.commit) {
        return Ok((checkout, None));
    }
    let commit = match git::trial_merge(folder, &root.commit)? {
        Merged::Commit(commit) => commit,
        Merged::Conflict(files) => {
            return Err(Error::Baseline(format!(
                "this change conflicts with its base {} ({}) in {}: there is no merged code to check\n  next: merge or rebase onto the base, and resolve the conflicts; of a lock keep the base's files, and lock again: no ledger can be merged",
                short(&root.commit),
                root.found_by,
                first(files.iter().map(|file| format!("`{file}`")), 5)
            )));
        }
    };
    refuse_submodules(folder, root)?;
    let worktree = Worktree::of_commit(folder, &commit, &place(&checkout)?)?;
    let path = worktree.project.join(config_name(&checkout));
    let merged = in_checkout(Config::load(&path)?, &checkout);
    Ok((merged, Some(worktree)))
}

/// A project whose outputs stay in the checkout, and which is measured on the GPU of that.
pub(super) fn in_checkout(project: Config, checkout: &Config) -> Config {
    Config {
        work: below(&project, &project.work, checkout),
        checkout: checkout.checkout.clone(),
        device: checkout.device,
        ..project
    }
}

/// The path in the checkout of one in the project.
pub(super) fn below(project: &Config, path: &Path, checkout: &Config) -> PathBuf {
    match path.strip_prefix(&project.root) {
        Ok(below) => checkout.checkout.join(below),
        Err(_) => path.to_owned(),
    }
}

/// Refuses to run variants of a merged project that need untracked files of the checkout, such as
/// programs that an earlier step of the pipeline built: the merged project does not have them.
///
/// # Errors
/// [`Error::Environment`], which names the first file.
pub fn refuse_untracked(config: &Config) -> Result<(), Error> {
    if config.root == config.checkout {
        return Ok(());
    }
    for (_, tool) in stated(&config.toolchain) {
        if let Ok(below) = tool.strip_prefix(&config.root)
            && !disk::is_there(tool)
            && disk::is_there(config.checkout.join(below))
        {
            return Err(untracked("the toolchain", &below.to_string_lossy()));
        }
    }
    let checkout = Config {
        root: config.checkout.clone(),
        ..config.clone()
    };
    for variant in config.variants() {
        // A folder or a pattern of `inputs` that has files in the checkout alone.
        if config.own_files(variant).is_err()
            && let Ok(files) = checkout.own_files(variant)
            && let Some(file) = files
                .iter()
                .find(|file| !disk::is_there(config.root.join(file)))
        {
            return Err(untracked(&variant.id.to_string(), file));
        }
        let Recipe::Command {
            build,
            run,
            inputs,
            code,
        } = &variant.recipe
        else {
            continue;
        };
        let words = run
            .iter()
            .chain(inputs)
            .chain(code)
            .chain(build.iter().flatten());
        let mut before = "";
        for word in words {
            let here = config.checkout.join(word);
            // Other folders may be made by the command itself.
            let needed = git::is_input_file(&here)
                || git::is_input_folder(&here) && matches!(before, "--build" | "-C");
            before = word;
            let only_in_checkout =
                Path::new(word).is_relative() && needed && !disk::is_there(config.root.join(word));
            let tracked = || git::tracked(&config.checkout, word);
            if only_in_checkout && tracked().is_ok_and(|found| found.is_empty()) {
                return Err(untracked(&variant.id.to_string(), word));
            }
        }
    }
    Ok(())
}

fn untracked(who: &str, file: &str) -> Error {
    Error::environment(
        format!(
            "{who} needs `{file}`, which git does not track: the target branch moved on, so its merge with this change is checked, and that does not contain the file"
        ),
        "merge the target before the step that makes the file (git merge refs/remotes/origin/TARGET), or let `build` of the variant make it",
    )
}

/// Submodules that are checked out here would be empty folders in the merged project.
fn refuse_submodules(folder: &Path, root: &Root) -> Result<(), Error> {
    let Ok(repository) = git::repository(folder) else {
        return Ok(());
    };
    let tracked = git::tracked(&repository.top, ".").unwrap_or_default();
    let filled = tracked.iter().find(|(path, submodule)| {
        submodule.is_some() && disk::is_there(repository.top.join(path).join(".git"))
    });
    match filled {
        None => Ok(()),
        Some((path, _)) => Err(Error::environment(
            format!(
                "the target branch moved on, and its merge with this change cannot be checked here, because the submodule `{path}` would be missing in it"
            ),
            format!(
                "merge the target before the check: git merge {} && git submodule update --init",
                root.commit
            ),
        )),
    }
}

/// The folder for the worktree: in the work folder. A work folder that the change puts elsewhere is
/// not used, since its rules do not count yet.
fn place(checkout: &Config) -> Result<PathBuf, Error> {
    let inside = |path: &Path| {
        let existing = path.ancestors().find_map(|path| path.canonicalize().ok());
        let root = checkout.root.canonicalize().ok();
        existing
            .zip(root)
            .is_some_and(|(path, root)| path.starts_with(root))
    };
    let up = |path: &Path| path.components().any(|part| part.as_os_str() == "..");
    let work = &checkout.work;
    let work = if inside(work) && !up(work) && !disk::is_link(work.join("merges")) {
        create_work_folder(work)?;
        work.clone()
    } else {
        std::env::temp_dir().join("sparsek-gate")
    };
    Ok(work.join("merges"))
}
