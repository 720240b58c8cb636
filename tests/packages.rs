//! What people install: the wheel, the crates, the archive, and what they say of themselves.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

#[path = "../build.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "of what only a build does")]
mod build_script;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::git::git;
use crate::common::{
    Project, Ran, aloud, copy, outside_pull_request, published_as, repository, rows, write_program,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAM: &str = env!("CARGO_BIN_EXE_sparsek-gate");

/// A maturin that packs a program instead of building one: its cargo builds nothing, and `more` are its
/// further arguments. Its cargo reads the dependencies of this platform only: a build downloads no others,
/// and a test depends on no network.
fn maturin_that_has_built(folder: &Path, program: &str, more: &str) -> String {
    let target = serde_json::json!({
        "kind": ["bin"], "crate_types": ["bin"], "name": "sparsek-gate", "edition": "2024",
        "src_path": "@SOURCES@/src/main.rs", "doc": true, "doctest": false, "test": true,
    });
    let profile = serde_json::json!({
        "opt_level": "0", "debuginfo": 0, "debug_assertions": true, "overflow_checks": true, "test": false,
    });
    // maturin moves what was built, and other tests run the program meanwhile.
    let built = folder.join("built/sparsek-gate");
    fs::create_dir_all(built.parent().unwrap()).unwrap();
    fs::copy(program, &built).unwrap();
    let message = serde_json::json!({
        "reason": "compiler-artifact", "target": target, "profile": profile, "features": [],
        "package_id": format!("path+file://@SOURCES@#sparsek-gate@{VERSION}"),
        "manifest_path": "@SOURCES@/Cargo.toml", "filenames": [built], "executable": built, "fresh": true,
    });
    fs::write(folder.join("message"), format!("{message}\n")).unwrap();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = rustc ]; then echo \"$SPARSEK_GATE_REVISION\" >'{0}/revision'\n\
         exec sed \"s|@SOURCES@|$(pwd -P)|g\" '{0}/message'; fi\n\
         if [ \"$1\" = metadata ]; then set -- \"$@\" --filter-platform {2}-unknown-linux-gnu; fi\n\
         exec '{1}' \"$@\"\n",
        folder.display(),
        env!("CARGO"),
        std::env::consts::ARCH,
    );
    // maturin asks the cargo of the PATH for the dependencies, and builds with the one of CARGO.
    write_program(&folder.join("bin/cargo"), &script);
    let real = folder_of_maturin().unwrap().join("maturin");
    let script = format!(
        "#!/bin/sh\nfor out; do :; done\nCARGO='{}' exec '{}' build --offline --profile dev {more} --out \"$out\"\n",
        folder.join("bin/cargo").display(),
        real.display()
    );
    write_program(&folder.join("bin/maturin"), &script);
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", folder.join("bin").display())
}

/// Where maturin is; says aloud what is not tried without it.
fn folder_of_maturin() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).find(|folder| folder.join("maturin").exists());
    if found.is_none() {
        aloud("SKIPPED: the wheel: there is no maturin on the PATH (pip install maturin)");
    }
    found
}

/// What a release's script makes of a program, in a folder of a project.
fn packed(project: &Project, into: &str, program: &str, more: &str) -> Ran {
    let folder = project.path("wheel");
    fs::create_dir_all(&folder).unwrap();
    let mut pack = Command::new("bash");
    pack.arg(repository().join("ci/release/build.sh"))
        .arg(project.path(into))
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("PATH", maturin_that_has_built(&folder, program, more));
    Ran::by(&mut pack)
}

#[test]
fn the_wheel_gives_the_first_gate_in_an_environment_without_rust() {
    let Some(tools) = folder_of_maturin() else {
        return;
    };
    let project = Project::shipped();
    let folder = project.path("wheel");
    // Linked here, the program needs the glibc of here, which the real call of maturin would refuse.
    let promised = "--auditwheel skip --compatibility manylinux_2_28";
    packed(&project, "wheel/index", PROGRAM, promised).exits(0);
    let machine = std::env::consts::ARCH;
    let wheel = format!("wheel/index/sparsek_gate-{VERSION}-py3-none-manylinux_2_28_{machine}.whl");
    assert!(project.path(&wheel).is_file(), "{wheel}");
    let head = git(&repository(), "rev-parse --short=10 HEAD");
    let revision = project.read("wheel/revision");
    assert!(revision.starts_with(&head), "{revision}, and not {head}");

    let run = |program: &Path, arguments: &str| {
        let mut command = Command::new(program);
        command
            .args(arguments.split(' '))
            .current_dir(project.path(""))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("HOME", &folder);
        Ran::by(&mut command).exits(0).out
    };
    // The Python that installed maturin has pip; to install pip itself takes longer than the wheel.
    let of_maturin = tools.join("python3");
    run(&of_maturin, "-m venv --without-pip wheel/env");
    let pip = |arguments: &str| {
        let pip = format!("-m pip --python wheel/env/bin/python {arguments}");
        run(&of_maturin, &pip)
    };
    pip("install --no-index --find-links wheel/index sparsek-gate");
    let files = pip("show --files sparsek-gate");
    let (_, files) = files.split_once("Files:\n").unwrap();
    let own = format!("sparsek_gate-{VERSION}.dist-info/");
    let files = files.lines().map(str::trim);
    let strange: Vec<&str> = files.filter(|file| !file.starts_with(&own)).collect();
    let program = ["../../../bin/sparsek-gate"];
    assert_eq!(strange, program, "more than the program");

    let program = project.path("wheel/env/bin/sparsek-gate");
    let checked = run(&program, "check --from recorded --baseline-ref none");
    assert!(checked.starts_with("same: "), "{checked}");

    let installed = pip("show sparsek-gate");
    let mut lines = installed.lines();
    let place = lines.find_map(|line| line.strip_prefix("Location: "));
    let metadata = Path::new(place.unwrap()).join(own).join("METADATA");
    leads_outside(&fs::read_to_string(metadata).unwrap());
    let mut archive = Command::new("tar");
    let name = format!("sparsek-gate-{VERSION}-{machine}-unknown-linux-gnu");
    archive.args(["-tzf", &format!("{name}.tar.gz")]);
    archive.current_dir(folder.join("index"));
    let archived = Ran::by(&mut archive).exits(0).out;
    for file in ["sparsek-gate", "README.md", "LICENSE", "CHANGELOG.md"] {
        assert!(archived.contains(&format!("{name}/{file}\n")), "{archived}");
    }
}

/// The readme on a page without the repository beside it: each link is absolute, and leads to a file.
fn leads_outside(readme: &str) {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let page = format!("https://github.com/{}/blob/v{VERSION}/", published_as());
    let picture = page.replace("/blob/", "/raw/");
    let mut seen = (0, 0);
    for found in link.captures_iter(readme) {
        let to = &found[1];
        let (file, count) = match (to.strip_prefix(&page), to.strip_prefix(&picture)) {
            (Some(file), _) => (file, &mut seen.0),
            (_, Some(file)) => (file, &mut seen.1),
            _ => panic!("{to} is no page of the repository"),
        };
        *count += 1;
        let file = file.split('#').next().unwrap();
        assert!(repository().join(file).is_file(), "{to}");
    }
    assert!(seen.0 > 10 && seen.1 == 1, "{seen:?}");
}

#[test]
fn a_wheel_for_another_glibc_than_promised_is_no_release() {
    if folder_of_maturin().is_none() {
        return;
    }
    let project = Project::empty();
    let ran = packed(&project, "out", "/bin/true", "--compatibility linux");
    ran.ends(1, "is not for manylinux_2_28");
    let left = fs::read_dir(project.path("out")).unwrap().count();
    assert_eq!(left, 0, "files of what is no release");
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
        if !of_library || !path.with_file_name(format!("lib{stem}.rlib")).is_file() {
            return None;
        }
        let text = fs::read_to_string(&path).ok()?;
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
        let list = format!("package --list --allow-dirty --offline --package {name}");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(list.split(' ')).current_dir(repository());
        let listed = Ran::by(&mut cargo).exits(0).out;
        let folder = repository().join(folder);
        listed.lines().map(|file| folder.join(file)).collect()
    };
    let mut all = packed("sparsek-gate", "");
    all.extend(packed("ncu-report", "crates/ncu-report"));
    // The day of a release is read in the changelog.
    for file in ["CHANGELOG.md", "LICENSE", "crates/ncu-report/LICENSE"] {
        assert!(all.contains(&repository().join(file)), "{file}");
    }

    let read = ["sparsek_gate", "ncu_report"]
        .map(read_by_compiler)
        .concat();
    assert!(read.len() > 300, "{read:?}");
    let missing: Vec<&PathBuf> = read.iter().filter(|file| !all.contains(*file)).collect();
    assert_eq!(missing, Vec::<&PathBuf>::new());

    // crates.io takes 10 MB, packed.
    let sizes = all
        .iter()
        .filter_map(|file| Some(fs::metadata(file).ok()?.len()));
    let bytes: u64 = sizes.sum();
    assert!(bytes < 8_000_000, "{bytes} bytes");
}

#[test]
fn the_version_names_the_commit_and_its_day_and_nothing_of_another_repository() {
    let project = Project::empty();
    let folder = project.path("sources");
    fs::create_dir_all(folder.join("packed")).unwrap();
    project.write("sources/file", "");
    git(&folder, "init --quiet");
    git(&folder, "add file");
    git(&folder, "commit --quiet --message one");
    let head = git(&folder, "rev-parse --short=10 HEAD");
    let day = git(&folder, "log -1 --format=%cs");
    let origin = |folder: &str| build_script::origin(&project.path(folder), "0.2.0");
    assert_eq!(origin("sources"), Some(format!("{head} {day}")));
    project.write("sources/file", "changed");
    assert_eq!(origin("sources"), Some(format!("{head}+changes {day}")));

    // Sources in somebody else's repository.
    assert_eq!(origin("sources/packed"), None);
    let packed = r#"{ "git": { "sha1": "5f6b1aac41d0c1e7a9b8" }, "path_in_vcs": "" }"#;
    project.write("sources/packed/.cargo_vcs_info.json", packed);
    assert_eq!(origin("sources/packed"), Some("5f6b1aac41".to_owned()));
    // Sources that somebody copied out of git, and said which.
    let stated = |revision: &str| build_script::revision(revision);
    assert_eq!(stated(&head.repeat(4)), Some(head.clone()));
    assert_eq!(stated("v1"), Some("v1".to_owned()));
    let changed = "5f6b1aac41+changes 2026-11-23".to_owned();
    assert_eq!(stated(&format!("{changed}\n")), Some(changed));
    for none in ["", " ", "a\nb", "$(x)", &"a".repeat(65)] {
        assert_eq!(stated(none), None, "{none}");
    }
    for (line, day) in [
        ("## [0.2.0] - unreleased", "5f6b1aac41"),
        ("## [0.2.01] - 2026-11-30", "5f6b1aac41"),
        ("## [0.2.0] - 2026-11-30", "5f6b1aac41 2026-11-30"),
    ] {
        let changelog = format!("# Changelog\n{line}\n");
        project.write("sources/packed/CHANGELOG.md", changelog);
        assert_eq!(origin("sources/packed"), Some(day.to_owned()), "{line}");
    }
}

/// The installer with one released archive in a folder, and the checksum of it.
fn released() -> (Project, String) {
    let project = Project::empty();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let name = format!("sparsek-gate-{VERSION}-{target}");
    let program = format!("{name}/sparsek-gate");
    project.program(&program, "#!/bin/sh\necho released\n");
    fs::create_dir(project.path("releases")).unwrap();
    let archive = format!("releases/{name}.tar.gz");
    let mut pack = Command::new("tar");
    pack.args(["-czf", &archive, &name]);
    Ran::by(pack.current_dir(project.path(""))).exits(0);
    let bytes = fs::read(project.path(&archive)).unwrap();
    let sum = sparsek_gate::hash::sha256_hex(&bytes);
    let sums = format!("# sums\n{sum}  {name}.tar.gz\n");
    project.write("ci/release.sha256", sums);
    let installer = fs::read(repository().join("ci/install.sh")).unwrap();
    project.write("ci/install.sh", installer);
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
    Ran::by(&mut command)
}

#[test]
fn the_installer_takes_only_the_archive_whose_checksum_it_has() {
    let (project, archive) = released();
    let mirror = project.path("releases");
    let mirror = mirror.to_str().unwrap();
    install(&project, mirror).ends(0, "its checksum is verified");
    assert!(project.read("to/sparsek-gate").contains("released"));

    fs::remove_file(project.path("to/sparsek-gate")).unwrap();
    let mut other = fs::read(project.path(&archive)).unwrap();
    other.push(0);
    fs::write(project.path(&archive), other).unwrap();
    install(&project, mirror).ends(3, "is not what was released");
    assert!(!project.path("to/sparsek-gate").exists());

    install(&project, "http://example.org").ends(3, "SPARSEK_GATE_MIRROR is neither");
    install(&project, "/nonexistent").ends(3, "has no sparsek-gate");
    fs::remove_file(project.path("ci/release.sha256")).unwrap();
    install(&project, mirror).ends(3, "without the checksum nothing is installed");
}

#[test]
fn where_no_release_is_pinned_the_installer_says_how_to_build() {
    let (project, _) = released();
    project.write("ci/release.sha256", "# none\n");
    let mirror = project.path("releases");
    install(&project, mirror.to_str().unwrap())
        .ends(3, "is published")
        .says("cargo install --locked --path .");
    assert!(!project.path("to").exists());
}

/// A version that this repository never had.
const NEXT: &str = "9.8.7";

/// What a release changes, in a folder of its own, with a changelog that announces the next version.
fn releasing() -> Project {
    let project = Project::empty();
    let root = repository();
    for folder in ".github ci/github ci/gitlab ci/release crates docs src/engine".split(' ') {
        copy(&root.join(folder), &project.path(folder));
    }
    for file in [
        "Cargo.toml", "Cargo.lock", "fuzz/Cargo.lock", "CHANGELOG.md", "README.md", "action.yml",
        "ci/Containerfile", "ci/install.sh", "ci/release.sha256", "src/cli.rs",
    ] {
        project.write(file, fs::read(root.join(file)).unwrap());
    }
    let announced = format!("## [{NEXT}] - unreleased\n\n## [");
    let changelog = project.read("CHANGELOG.md").replacen("## [", &announced, 1);
    project.write("CHANGELOG.md", changelog);
    project
}

/// Runs a script of a release in its folder, in the place of the repository of somebody.
fn release(project: &Project, program: &str, arguments: &str) -> Ran {
    let mut command = Command::new(program);
    command
        .args(arguments.split(' '))
        .current_dir(project.path(""))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GITHUB_REPOSITORY", "them/sparsek-gate");
    Ran::by(&mut command)
}

fn prepare(project: &Project, more: &str) -> Ran {
    release(project, "python3", &format!("ci/release/prepare.py {more}"))
}

fn ready(project: &Project, tag: &str) -> Ran {
    release(project, "bash", &format!("ci/release/ready.sh {tag}"))
}

/// Who publishes becomes `them`.
fn is_theirs(project: &Project, publisher: &str) {
    for file in ["Cargo.toml", "ci/install.sh"] {
        let text = project.read(file).replace(publisher, "them/sparsek-gate");
        project.write(file, text);
    }
}

#[test]
fn one_command_makes_a_commit_ready_for_its_release() {
    let project = releasing();
    let owner = published_as().split('/').next().unwrap();
    let ready = || ready(&project, &format!("v{NEXT}"));
    let prepare = |more: &str| prepare(&project, more);
    ready().ends(1, "has the version").says("has no line");
    let slips = "
9.9.9 --owner them | has no heading '## [9.9.9] - unreleased'
v9.8.7 --owner them | is not a version
9.8.7 --owner a/b | is not the name of an account";
    for [slip, words] in &rows(slips) {
        prepare(slip).ends(1, words);
    }
    ready().exits(1);

    let of = |owner: &str| format!("{NEXT} --owner {owner} --day 2026-12-01");
    prepare(&of(owner)).exits(0);
    if owner == "OWNER" {
        let ran = ready().ends(1, "README.md:");
        ran.says("of the time before the first release");
        prepare(&of("them")).exits(0);
    } else {
        is_theirs(&project, published_as());
    }
    ready().exits(0);
    let changelog = project.read("CHANGELOG.md");
    assert!(changelog.contains(&format!("## [{NEXT}] - 2026-12-01\n")));
    // A second time changes nothing.
    assert_eq!(prepare(&of("them")).exits(0).out, "");
}

#[test]
fn a_release_does_not_begin_while_a_version_or_a_sentence_is_of_before() {
    let project = releasing();
    prepare(&project, &format!("{NEXT} --owner them")).exits(0);
    let ready = |tag: &str| ready(&project, tag);
    is_theirs(&project, &published_as().replace("OWNER", "them"));
    let tag = format!("v{NEXT}");
    ready(&tag).exits(0);
    ready("v9.0.0")
        .ends(1, "has the version")
        .says("does not depend on ncu-report 9.0.0")
        .says("fuzz/Cargo.lock has another version of ncu-report than 9.0.0")
        .says("has no line '## [9.0.0]");
    ready(NEXT).ends(1, "is not v and a version");
    for (file, sentence) in [
        ("README.md", "Nothing is published yet."),
        ("CHANGELOG.md", "Nothing is published yet."),
        ("docs/install.md", "Until the first release, build it."),
        ("docs/ci.md", "nothing is published"),
        ("docs/ci.md", "uses: OWNER/sparsek-gate@v1"),
        ("ci/Containerfile", "# Until one is published"),
        ("src/engine/templates/github.yml", "# Replace OWNER"),
    ] {
        let before = project.read(file);
        project.write(file, format!("{before}{sentence}\n"));
        let line = before.lines().count() + 1;
        ready(&tag).ends(1, &format!("{file}:{line} is of the time before"));
        project.write(file, before);
    }
    project.replace("Cargo.toml", "them/sparsek-gate", "others/sparsek-gate");
    let words = "names the repository others/sparsek-gate, and this is them/sparsek-gate";
    ready(&tag).ends(1, words);
}

#[test]
fn after_a_release_its_two_archives_are_pinned() {
    let project = releasing();
    let sum = "0a".repeat(32);
    let line = |machine: &str, ending: &str| {
        format!("{sum}  sparsek-gate-{NEXT}-{machine}-unknown-linux-gnu{ending}\n")
    };
    let archives = line("aarch64", ".tar.gz") + &line("x86_64", ".tar.gz");
    let pin = |sums: &str| {
        project.write("SHA256SUMS", sums);
        release(&project, "bash", "ci/release/pin.sh SHA256SUMS")
    };
    let before = project.read("ci/release.sha256");
    pin(&line("x86_64", ".tar.gz")).ends(1, "has 0 archives for aarch64 instead of one");
    assert_eq!(project.read("ci/release.sha256"), before);
    for _ in 0..2 {
        pin(&format!("{archives}{}", line("x86_64", ".cyclonedx.json"))).exits(0);
        let pinned = project.read("ci/release.sha256");
        assert!(pinned.starts_with("# "), "{pinned}");
        assert!(pinned.ends_with(&format!("\n{archives}")), "{pinned}");
        assert_eq!(pinned.matches("sparsek-gate-").count(), 2, "{pinned}");
    }
    // The installer knows the archive of this machine by it.
    install(&project, "/nonexistent").ends(3, &format!("has no sparsek-gate-{NEXT}-"));
}

#[test]
fn every_page_and_every_recipe_names_the_same_publisher() {
    let named = r"(?:github\.com/|uses: |--repo |repository=|[`(])([\w-]+)/sparsek-gate\b";
    let named = regex::Regex::new(named).unwrap();
    let owner = published_as().split('/').next().unwrap();
    let root = repository();
    let mut seen = 0;
    let below = |paths: &str| paths.split(' ').map(|path| root.join(path)).collect();
    let mut folders: Vec<PathBuf> = below("docs ci src/engine .github");
    let files = "README.md CONTRIBUTING.md Cargo.toml action.yml src/cli.rs";
    let mut files: Vec<PathBuf> = below(files);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                // Recorded, or about any publisher.
                true if path.ends_with("recordings") || path.ends_with("ci/release") => {}
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        for found in named.captures_iter(&text) {
            assert_eq!(&found[1], owner, "{}: {}", file.display(), &found[0]);
            seen += 1;
        }
    }
    assert!(seen > 12, "{seen}");
}

/// The action and the container build without the rest of the repository.
#[test]
fn the_sources_that_recipes_copy_are_all_that_a_build_reads() {
    let project = Project::empty();
    let list = fs::read_to_string(repository().join("ci/sources.txt")).unwrap();
    let container = fs::read_to_string(repository().join("ci/Containerfile")).unwrap();
    for path in list.lines() {
        let mut copies = container.lines().filter(|line| line.starts_with("COPY "));
        let named = copies.any(|line| line.split(' ').any(|word| word == path));
        assert!(named, "ci/Containerfile does not copy {path}");
        let from = repository().join(path);
        if from.is_dir() {
            copy(&from, &project.path(&format!("sources/{path}")));
        } else {
            project.write(&format!("sources/{path}"), fs::read(from).unwrap());
        }
    }
    let copied: Vec<&str> = list.lines().collect();
    let mut outside = ["sparsek_gate", "ncu_report"]
        .map(read_by_compiler)
        .concat();
    outside.retain(|file| {
        let file = file.strip_prefix(repository()).unwrap();
        !copied.iter().any(|path| file.starts_with(path))
    });
    assert_eq!(outside, Vec::<PathBuf>::new());
    // cargo reads the whole manifest, and what it names must be there: one small crate is enough to see it.
    let mut cargo = Command::new(env!("CARGO"));
    let check = "check --quiet --offline --locked --package memchr";
    cargo
        .args(check.split(' '))
        .current_dir(project.path("sources"))
        .env("CARGO_TARGET_DIR", project.path("target"));
    Ran::by(&mut cargo).exits(0);
}
