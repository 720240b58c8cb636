//! Where a project is in its repository.

use std::path::Path;

use crate::files::resolved;
use crate::finding::Error;
use crate::git;

/// The folder of a project in its repository, `a/b/`; empty at the top.
///
/// # Errors
/// [`Error::Environment`] where there is no repository; [`Error::Baseline`] where a link or a
/// submodule on the way leads to another place with another policy.
pub(super) fn place_in_repository(root: &Path) -> Result<String, Error> {
    let repository = git::repository(root).map_err(unreadable)?;
    // The change decides which commit a submodule is at.
    if repository.is_submodule {
        return Err(Error::Baseline(format!(
            "{} is a submodule, and its baselines are not those of the repository around it; run the check in a clone of the submodule",
            repository.top.display()
        )));
    }
    let real = |path: &Path| path.canonicalize().map_err(Error::io("find", path));
    let (top, real_root) = (&repository.top, real(root)?);
    // git refuses this itself since 2.38.
    if let Ok(below) = real(&repository.history)?.strip_prefix(top)
        && !below.components().any(|part| part.as_os_str() == ".git")
    {
        return Err(Error::Baseline(format!(
            "{} is a repository among the files of another one, so the change decides its history; remove it",
            repository.history.display()
        )));
    }
    // As the path is spelled: a link above the repository belongs to the machine.
    let above = root
        .ancestors()
        .find(|folder| folder.canonicalize().is_ok_and(|folder| folder == *top));
    let below = above.and_then(|above| root.strip_prefix(above).ok());
    match below {
        Some(below) if top.join(below) == real_root => {
            let parts = below.components();
            Ok(parts
                .map(|part| format!("{}/", part.as_os_str().to_string_lossy()))
                .collect())
        }
        _ => Err(Error::Baseline(format!(
            "{} leads through a link to {}, so it is unclear whose baselines count; name the real path",
            root.display(),
            real_root.display()
        ))),
    }
}

/// The path of something below a folder, without `.` and `..`. Only the text is used.
pub(super) fn inside(root: &Path, path: &Path) -> String {
    let inside = resolved(path.strip_prefix(root).unwrap_or(path));
    let inside = inside.strip_prefix("/").unwrap_or(&inside);
    inside.to_string_lossy().into_owned()
}

/// The error that git cannot read the base.
pub(super) fn unreadable(why: String) -> Error {
    git::error(
        format!("git cannot read the base revision: {why}"),
        "run the check in a clone with its history (`fetch-depth: 0`), as a user that git trusts with it (`safe.directory` in ~/.gitconfig); `--baseline-ref none` uses the rules of the working tree",
    )
}
