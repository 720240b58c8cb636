//! Compiles the library that the CUDA driver loads into measured programs, and that is embedded into
//! the tool, which stays one binary. States which commit the tool is built from.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "src/profiler/cupti/injection";
const SOURCE: &str = "src/profiler/cupti/injection/mod.rs";
/// The variable that states the commit or tag of sources that were copied out of git.
const REVISION: &str = "SPARSEK_GATE_REVISION";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={FOLDER}");
    state_origin(Path::new("."))?;
    let library = Path::new(&env::var("OUT_DIR")?).join("libinjection.so");
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" || env::var("CARGO_CFG_TARGET_ENV")? != "gnu" {
        // The driver is a glibc library, so it can load the library only into a program with glibc.
        fs::write(&library, [])?;
        return Ok(());
    }
    let mut compiler = Command::new(env::var("RUSTC")?);
    compiler
        .args([
            "--edition", "2024", "--crate-name", "injection", "--crate-type", "cdylib",
        ])
        .args([
            "-C", "panic=abort", "-C", "opt-level=s", "-C", "strip=symbols",
        ])
        .args(["--target", &env::var("TARGET")?, "-o"])
        .arg(&library)
        .arg(SOURCE);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.args(["-C", &format!("linker={linker}")]);
    }
    let status = compiler.status()?;
    if !status.success() {
        return Err(format!("{SOURCE} does not compile: {status}").into());
    }
    Ok(())
}

/// Sets SPARSEK_GATE_ORIGIN, which `--version` prints after the version.
fn state_origin(sources: &Path) -> Result<(), Box<dyn Error>> {
    // A debug build names no commit: otherwise each commit would compile the tool again.
    let origin = if env::var("PROFILE")? == "debug" {
        None
    } else {
        // What `--dirty` says depends on all of them.
        for path in ["src", "crates", "Cargo.toml", "Cargo.lock"] {
            println!("cargo::rerun-if-changed={path}");
        }
        for name in ["HEAD", "logs/HEAD"] {
            if let Some(path) = git(sources, &["rev-parse", "--git-path", name])
                && Path::new(&path).exists()
            {
                println!("cargo::rerun-if-changed={path}");
            }
        }
        println!("cargo::rerun-if-env-changed={REVISION}");
        let stated = env::var(REVISION).ok();
        origin(sources, &env::var("CARGO_PKG_VERSION")?).or_else(|| revision(stated.as_deref()?))
    };
    let text = origin.map_or(String::new(), |origin| format!(" ({origin})"));
    println!("cargo::rustc-env=SPARSEK_GATE_ORIGIN={text}");
    Ok(())
}

/// The commit of the sources and its date, such as `5f6b1aac41 2026-11-23`. Of a package that cargo
/// made, without git, the date is that of its version in the changelog. Nothing of it depends on when
/// or where the tool is built.
pub(crate) fn origin(sources: &Path, version: &str) -> Option<String> {
    if let Ok(packed) = fs::read_to_string(sources.join(".cargo_vcs_info.json")) {
        let (_, rest) = packed.split_once("\"sha1\"")?;
        let commit: String = rest.split('"').nth(1)?.chars().take(10).collect();
        return Some(match released(sources, version) {
            Some(date) => format!("{commit} {date}"),
            None => commit,
        });
    }
    // Sources that lie in somebody else's repository are not of its commit.
    let top = git(sources, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top).ok()? != fs::canonicalize(sources).ok()? {
        return None;
    }
    let commit = git(
        sources,
        &[
            "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+changes",
        ],
    )?;
    let date = git(sources, &["log", "-1", "--format=%cs"])?;
    Some(format!("{commit} {date}"))
}

/// What `--version` shows of a stated revision: ten digits of a commit, and all of a tag. `None` where it is
/// empty, or no revision.
pub(crate) fn revision(stated: &str) -> Option<String> {
    let stated = stated.trim();
    let is_commit = stated.len() == 40 && stated.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shown = if is_commit { &stated[..10] } else { stated };
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+- ".contains(&byte);
    let is_revision = (1..=64).contains(&shown.len()) && shown.bytes().all(known);
    is_revision.then(|| shown.to_owned())
}

/// The day that the changelog gives for a version.
fn released(sources: &Path, version: &str) -> Option<String> {
    let changelog = fs::read_to_string(sources.join("CHANGELOG.md")).ok()?;
    let start = format!("## [{version}] - ");
    let date = changelog
        .lines()
        .find_map(|line| line.strip_prefix(&start))?;
    let is_date = date.starts_with(|first: char| first.is_ascii_digit());
    is_date.then(|| date.trim().to_owned())
}

/// What git prints, without the line's end. `None` where it fails, or is not there.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let output = git.arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim_end();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
