//! The revision of the working tree, for provenance.

use std::path::Path;

/// The commit, with `+dirty` where tracked files differ from it; `None` outside a repository.
pub fn revision(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = duct::cmd("git", arguments)
            .dir(root)
            .stdin_null()
            .stderr_null()
            .stdout_capture()
            .unchecked()
            .run()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit}+dirty")
    })
}

/// Who works here, as git knows them, or the login name.
pub fn person(root: &Path) -> String {
    let output = duct::cmd!("git", "config", "user.name")
        .dir(root)
        .stdin_null()
        .stderr_null()
        .stdout_capture()
        .unchecked()
        .run();
    let name = output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    if name.is_empty() {
        std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned())
    } else {
        name
    }
}
