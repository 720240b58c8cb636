//! git, as the author of a repository calls it.

use std::path::Path;
use std::process::Command;

use super::{Arguments, Project, Ran};

/// What git prints in a folder, without the settings of this machine.
#[track_caller]
pub fn git(folder: &Path, arguments: impl Arguments) -> String {
    const SETTINGS: [&str; 8] = [
        "user.name=a tester", "user.email=tester@localhost", "init.defaultBranch=main",
        "gc.auto=0", "maintenance.auto=false", "core.logAllRefUpdates=true",
        "advice.graftFileDeprecated=false", "protocol.file.allow=always",
    ];
    let output = Command::new("git")
        .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
        .args(arguments.list())
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    Ran::of(&output).exits(0).out.trim().to_owned()
}

impl Project {
    /// What git prints in this folder.
    #[track_caller]
    pub fn git(&self, arguments: impl Arguments) -> String {
        git(&self.path(""), arguments)
    }

    /// Commits everything that is not ignored; a folder becomes a repository by it.
    #[track_caller]
    pub fn commit(&self) {
        let commit = ["commit", "--quiet", "--allow-empty", "--message", "a step"];
        for arguments in [&["init", "--quiet"][..], &["add", "--all"], &commit] {
            self.git(arguments);
        }
    }
}
