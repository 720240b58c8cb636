//! What people install: the wheel, the crates, the archive, and what they say of themselves.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

#[path = "../build.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "of what only a build does")]
mod build_script;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::git::git;
use crate::common::{Project, Ran, aloud, outside_pull_request, repository};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAM: &str = env!("CARGO_BIN_EXE_sparsek-gate");

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn cargo(arguments: &[&str]) -> Ran {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(repository());
    Ran::of(&cargo.output().unwrap()).exits(0)
}

/// A cargo that builds nothing: it answers maturin's `cargo rustc` with the program that is tested.
fn cargo_that_has_built(folder: &Path) -> PathBuf {
    let manifest = repository().join("Cargo.toml");
    let target = serde_json::json!({
        "kind": ["bin"], "crate_types": ["bin"], "name": "sparsek-gate", "edition": "2024",
        "src_path": repository().join("src/main.rs"), "doc": true, "doctest": false, "test": true,
    });
    let profile = serde_json::json!({
        "opt_level": "0", "debuginfo": 0, "debug_assertions": true, "overflow_checks": true, "test": false,
    });
    let package = cargo(&["pkgid", "--offline", "--package", "sparsek-gate"]);
    // maturin moves what was built, and other tests run the program meanwhile.
    let built = folder.join("built/sparsek-gate");
    fs::create_dir_all(built.parent().unwrap()).unwrap();
    fs::copy(PROGRAM, &built).unwrap();
    let message = serde_json::json!({
        "reason": "compiler-artifact", "package_id": package.out.trim(), "manifest_path": manifest,
        "target": target, "profile": profile, "features": [], "filenames": [built],
        "executable": built, "fresh": true,
    });
    fs::write(folder.join("message"), format!("{message}\n")).unwrap();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = rustc ]; then exec cat '{}'; fi\nexec '{}' \"$@\"\n",
        folder.join("message").display(),
        env!("CARGO")
    );
    executable(&folder.join("cargo"), &script);
    folder.join("cargo")
}

/// Whether maturin is there.
fn maturin() -> bool {
    let found = Command::new("maturin").arg("--version").output().is_ok();
    if !found {
        aloud("SKIPPED: the wheel: there is no maturin on the PATH (pip install maturin)");
    }
    found
}

/// The Python that installed maturin, which so has pip and makes environments with it.
fn python_of_maturin() -> String {
    let path = std::env::var_os("PATH").unwrap();
    let mut folders = std::env::split_paths(&path);
    let folder = folders.find(|folder| folder.join("maturin").exists());
    folder.unwrap().join("python3").display().to_string()
}

#[test]
fn the_wheel_gives_the_first_gate_in_an_environment_without_rust() {
    if !maturin() {
        return;
    }
    let project = Project::shipped();
    let folder = project.path("wheel");
    fs::create_dir(&folder).unwrap();
    let mut pack = Command::new("maturin");
    pack.args(["build", "--offline", "--profile", "dev"])
        .args(["--compatibility", "linux", "--out"])
        .arg(folder.join("index"))
        .current_dir(repository())
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CARGO", cargo_that_has_built(&folder));
    Ran::of(&pack.output().unwrap()).exits(0);

    let python = |program: &str, arguments: &[&str]| {
        let mut python = Command::new(program);
        python
            .args(arguments)
            .current_dir(project.path(""))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("HOME", &folder);
        Ran::of(&python.output().unwrap()).exits(0)
    };
    python(&python_of_maturin(), &["-m", "venv", "wheel/env"]);
    let install = ["install", "--no-index", "--find-links", "wheel/index"];
    let pip = project.path("wheel/env/bin/pip");
    python(
        pip.to_str().unwrap(),
        &[&install[..], &["sparsek-gate"]].concat(),
    );
    let files = python(pip.to_str().unwrap(), &["show", "--files", "sparsek-gate"]).out;
    let (_, files) = files.split_once("Files:\n").unwrap();
    let strange: Vec<&str> = files
        .lines()
        .map(str::trim)
        .filter(|file| !file.starts_with(&format!("sparsek_gate-{VERSION}.dist-info/")))
        .collect();
    assert_eq!(
        strange,
        ["../../../bin/sparsek-gate"],
        "more than the program"
    );

    let mut gate = Command::new(project.path("wheel/env/bin/sparsek-gate"));
    gate.args(["check", "--from", "recorded", "--baseline-ref", "none"])
        .current_dir(project.path(""))
        .env_clear()
        .env("PATH", "/usr/bin:/bin");
    Ran::of(&gate.output().unwrap())
        .exits(0)
        .says("PASS: every gate passed");
}

/// The files of this repository that the compiler read for a library, by the newest of the lists that
/// it writes. What the build script made is elsewhere.
fn read_by_compiler(library: &str) -> Vec<PathBuf> {
    let folder = Path::new(PROGRAM).parent().unwrap().join("deps");
    let lists = fs::read_dir(folder).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name()?.to_str()?;
        let of_library = name.starts_with(&format!("{library}-")) && name.ends_with(".d");
        // The library with its own tests has such a list too, and is no library: it reads more.
        let stem = path.file_stem()?.to_str()?;
        let made = path.with_file_name(format!("lib{stem}.rmeta"));
        let is_made = made.is_file() || made.with_extension("rlib").is_file();
        let text = fs::read_to_string(&path)
            .ok()
            .filter(|_| of_library && is_made)?;
        // A program and a test have names like that, and other sources.
        let read = text.lines().find_map(|line| line.split_once(".d: "))?.1;
        let read: Vec<PathBuf> = read.split_whitespace().map(PathBuf::from).collect();
        let is_library = read.iter().any(|file| file.ends_with("src/lib.rs"));
        let when = fs::metadata(&path).unwrap().modified().unwrap();
        is_library.then_some((when, read))
    });
    let (_, read) = lists.max().unwrap();
    let read = read.into_iter().map(|file| {
        let path = repository().join(file);
        path.canonicalize().unwrap_or(path)
    });
    let made = Path::new(PROGRAM).parent().unwrap();
    // The list may be that of clippy, which reads its own settings too.
    let read = read.filter(|file| !file.ends_with("clippy.toml"));
    read.filter(|file| file.starts_with(repository()) && !file.starts_with(made))
        .collect()
}

/// Each of them then builds from its packed sources: the compiler read nothing else here.
#[test]
fn what_the_compiler_reads_of_each_crate_is_in_its_package() {
    let packed = |name: &str, folder: &str| -> BTreeSet<PathBuf> {
        let listed = cargo(&[
            "package",
            "--list",
            "--allow-dirty",
            "--offline",
            "--package",
            name,
        ])
        .out;
        let folder = repository().join(folder);
        listed.lines().map(|file| folder.join(file)).collect()
    };
    let mut all = packed("sparsek-gate", "");
    assert!(
        all.contains(&repository().join("CHANGELOG.md")),
        "the day of a release is read there"
    );
    all.extend(packed("ncu-report", "crates/ncu-report"));
    for license in ["LICENSE", "crates/ncu-report/LICENSE"] {
        assert!(all.contains(&repository().join(license)), "{license}");
    }

    let read = [
        read_by_compiler("sparsek_gate"),
        read_by_compiler("ncu_report"),
    ]
    .concat();
    assert!(read.len() > 300, "{read:?}");
    let missing: Vec<&PathBuf> = read.iter().filter(|file| !all.contains(*file)).collect();
    assert_eq!(missing, Vec::<&PathBuf>::new());

    // crates.io takes 10 MB, packed.
    let bytes: u64 = all
        .iter()
        .filter_map(|file| Some(fs::metadata(file).ok()?.len()))
        .sum();
    assert!(bytes < 8_000_000, "{bytes} bytes");
}

#[test]
fn the_version_names_the_commit_and_its_day_and_nothing_of_another_repository() {
    let project = Project::empty();
    let folder = project.path("sources");
    fs::create_dir_all(folder.join("packed")).unwrap();
    project.write("sources/file", "");
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["add", "file"]);
    let commit = ["commit", "--quiet", "--message", "one"];
    git(&folder, &commit);
    let head = git(&folder, &["rev-parse", "--short=10", "HEAD"]);
    let day = git(&folder, &["log", "-1", "--format=%cs"]);
    let origin = |folder: &str| build_script::origin(&project.path(folder), "0.2.0");
    assert_eq!(origin("sources"), Some(format!("{head} {day}")));
    project.write("sources/file", "changed");
    assert_eq!(origin("sources"), Some(format!("{head}+changes {day}")));

    // Sources in somebody else's repository.
    assert_eq!(origin("sources/packed"), None);
    let packed = r#"{ "git": { "sha1": "5f6b1aac41d0c1e7a9b8" }, "path_in_vcs": "" }"#;
    project.write("sources/packed/.cargo_vcs_info.json", packed);
    assert_eq!(origin("sources/packed"), Some("5f6b1aac41".to_owned()));
    for (line, day) in [
        ("## [0.2.0] - unreleased", "5f6b1aac41"),
        ("## [0.2.01] - 2026-11-30", "5f6b1aac41"),
        ("## [0.2.0] - 2026-11-30", "5f6b1aac41 2026-11-30"),
    ] {
        project.write(
            "sources/packed/CHANGELOG.md",
            format!("# Changelog\n{line}\n"),
        );
        assert_eq!(origin("sources/packed"), Some(day.to_owned()), "{line}");
    }
}

/// The installer with one released archive in a folder, and the checksum of it.
fn released() -> (Project, String) {
    let project = Project::empty();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let name = format!("sparsek-gate-{VERSION}-{target}");
    executable(
        &project.path(&format!("{name}/sparsek-gate")),
        "#!/bin/sh\necho released\n",
    );
    fs::create_dir(project.path("releases")).unwrap();
    let archive = format!("releases/{name}.tar.gz");
    let mut pack = Command::new("tar");
    pack.args(["-czf", &archive, &name])
        .current_dir(project.path(""));
    Ran::of(&pack.output().unwrap()).exits(0);
    let bytes = fs::read(project.path(&archive)).unwrap();
    let sum = sparsek_gate::hash::sha256_hex(&bytes);
    project.write(
        "ci/release.sha256",
        format!("# sums\n{sum}  {name}.tar.gz\n"),
    );
    fs::copy(
        repository().join("ci/install.sh"),
        project.path("ci/install.sh"),
    )
    .unwrap();
    (project, archive)
}

fn install(project: &Project, mirror: &str) -> Ran {
    let mut command = Command::new("bash");
    command
        .args(["ci/install.sh", "to"])
        .current_dir(project.path(""))
        .env("SPARSEK_GATE_MIRROR", mirror)
        .env_remove("GH_TOKEN");
    outside_pull_request(&mut command);
    Ran::of(&command.output().unwrap())
}

#[test]
fn the_installer_takes_only_the_archive_whose_checksum_it_has() {
    let (project, archive) = released();
    let mirror = project.path("releases");
    let mirror = mirror.to_str().unwrap();
    install(&project, mirror)
        .exits(0)
        .says("its checksum is verified");
    assert!(project.read("to/sparsek-gate").contains("released"));

    fs::remove_file(project.path("to/sparsek-gate")).unwrap();
    let mut other = fs::read(project.path(&archive)).unwrap();
    other.push(0);
    fs::write(project.path(&archive), other).unwrap();
    install(&project, mirror)
        .exits(3)
        .says("is not what was released");
    assert!(!project.path("to/sparsek-gate").exists());

    install(&project, "http://example.org")
        .exits(3)
        .says("SPARSEK_GATE_MIRROR is neither");
    install(&project, "/nonexistent")
        .exits(3)
        .says("has no sparsek-gate");
    fs::remove_file(project.path("ci/release.sha256")).unwrap();
    install(&project, mirror)
        .exits(3)
        .says("without the checksum nothing is installed");
}

#[test]
fn until_something_is_published_the_installer_says_how_to_build() {
    let (project, _) = released();
    let shipped = repository().join("ci/release.sha256");
    fs::copy(shipped, project.path("ci/release.sha256")).unwrap();
    let mirror = project.path("releases");
    install(&project, mirror.to_str().unwrap())
        .exits(3)
        .says("is published")
        .says("cargo install --locked --path .");
    assert!(!project.path("to").exists());
}

#[test]
fn a_release_begins_only_when_tag_versions_changelog_and_owner_agree() {
    let project = Project::empty();
    for file in ["Cargo.toml", "CHANGELOG.md", "ci/install.sh"] {
        let text = fs::read_to_string(repository().join(file)).unwrap();
        project.write(
            file,
            text.replace("OWNER/sparsek-gate", "them/sparsek-gate"),
        );
    }
    let script = fs::read(repository().join("ci/release/ready.sh")).unwrap();
    project.write("ci/release/ready.sh", script);
    let ready = |tag: &str| {
        let mut command = Command::new("bash");
        command
            .args(["ci/release/ready.sh", tag])
            .current_dir(project.path(""))
            .env("GITHUB_REPOSITORY", "them/sparsek-gate");
        Ran::of(&command.output().unwrap())
    };
    let tag = format!("v{VERSION}");
    let changelog = project.read("CHANGELOG.md");
    let dated = format!("# Changelog\n## [{VERSION}] - 2026-11-30\n");
    project.write("CHANGELOG.md", &dated);
    ready(&tag).exits(0);
    ready("v9.0.0")
        .exits(1)
        .says("has the version")
        .says("does not depend on ncu-report 9.0.0");
    ready(VERSION).exits(1).says("is not v and a version");
    project.write("CHANGELOG.md", "# Changelog\n## [Unreleased]\n");
    ready(&tag).exits(1).says("has no line");
    assert!(changelog.contains(&format!("## [{VERSION}]")));
    project.write("CHANGELOG.md", &dated);
    project.replace("Cargo.toml", "them/sparsek-gate", "OWNER/sparsek-gate");
    ready(&tag).exits(1).says("name OWNER");
}
