//! Runs the command of a build.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use crate::config::{Config, Recipe, Variant};
use crate::disk::{self, folder_of};
use crate::files::{has_room, readable_text};
use crate::finding::{Code, Error, Finding, Stop, machine_lacks};
use crate::git;
use crate::process::{self, Ending, Invocation};

/// Longest that a build may take.
pub(super) const BUILD_TIMEOUT: Duration = Duration::from_secs(3600);

/// Runs a build. `by_hand` is the command that people can run to see the same.
pub(super) fn run_build(
    config: &Config,
    variant: &Variant,
    run: &Invocation,
    by_hand: &[String],
) -> Result<(), Stop> {
    let line = process::shell_line(by_hand);
    let failed = |message: String, next: String| {
        Finding::deny(Code::BuildFailed, &variant.id, message, next)
    };
    let finished = run.run().map_err(|error| {
        let program = by_hand.first().map(String::as_str).unwrap_or_default();
        match error.kind() {
            ErrorKind::NotFound => failed(
                format!("the program `{program}` was not found"),
                "install it, or correct `build` of the variant: a name is looked for on the PATH, a path starts at the configuration's folder".to_owned(),
            ),
            _ => failed(
                format!("the build could not be started: {error}"),
                format!("run it by hand: {line}"),
            ),
        }
    })?;
    match finished.ending {
        Ending::Exited(0) => Ok(()),
        Ending::Interrupted => Err(Error::Interrupted.into()),
        ending => {
            let log = readable_text(&run.stdout);
            if let Some(lacks) =
                machine_lacks(&variant.id, "the build", &process::tail(&run.stdout, 12))
            {
                return Err(lacks.into());
            }
            // Where the log is on the same disk, nobody could write why.
            if !log.contains("error") {
                has_room(folder_of(&run.stdout))?;
            }
            if let Some(finding) = log.lines().find_map(|line| {
                let (before, _) = line.split_once(": No such file")?;
                left_out(config, variant, before.rsplit(' ').next()?)
            }) {
                return Err(finding.detail(log).into());
            }
            let by_nvcc = matches!(variant.recipe, Recipe::Nvcc { .. });
            let says = |words| by_nvcc && log.contains(words);
            let has_submodules = disk::is_there(config.root.join(".gitmodules"));
            let next = if says("identifier \"version\" is undefined") && log.contains("git-lfs") {
                "a source is a pointer of Git LFS: git lfs pull (actions/checkout: `lfs: true`)"
                    .to_owned()
            } else if says("Unsupported gpu architecture") {
                "correct `toolchain.arch`, or install an nvcc that knows it: `nvcc --list-gpu-code` lists what this one knows (sm_101 is sm_110 since CUDA 13)".to_owned()
            } else if says("__device_builtin_variable_") {
                "give the function that uses `blockIdx` or `threadIdx` its `__global__` or `__device__`".to_owned()
            } else if says("'__global__' does not name a type")
                || says("unknown type name '__global__'")
            {
                "rename the source to `.cu`: nvcc compiles kernels in files with this ending alone"
                    .to_owned()
            } else if says("not supported on .target") {
                "correct `toolchain.arch`: what one architecture alone has needs its `a`, as in `arch = \"sm_90a\"`".to_owned()
            } else if says("Don't know what to do with") && names_header(variant) {
                "`source` names a header: name the `.cu` that includes it".to_owned()
            } else if says("cannot find -lin") {
                "correct the flag: did you mean `-lineinfo`?".to_owned()
            } else if says("cannot find -l") {
                "name the folder of that library, such as `-L/usr/local/lib` in `flags`, or install it"
                    .to_owned()
            } else if says("multiple definition of `main'") {
                "each source with a `main` is a variant of its own: `source` lists the files of one program"
                    .to_owned()
            } else if says("Don't know what to do with") {
                "`source` is for nvcc; of another program write `run`, as in `run = [\"python3\", \"k.py\"]`".to_owned()
            } else if says("undefined reference to") && !says("reference to `main'") {
                format!(
                    "name each file that defines it: `source = [\"a.cu\", \"b.cu\"]`, a library `-lcublas` in `flags`; by hand: {line}"
                )
            } else if has_submodules && log.contains("No such file") {
                format!(
                    "correct the path; if the file is in a submodule: git submodule update --init --recursive (actions/checkout: `submodules: recursive`); by hand: {line}"
                )
            } else {
                format!(
                    "fix the source or the flags (a folder of headers: `-Iinclude`, a library: `-lcublas`), commit a header that git lacks, or run it by hand: {line}"
                )
            };
            // What ptxas reports of kernels that it compiled is not why the build failed.
            let is_why = |it: &&str| !it.starts_with("ptxas info") && !it.contains(" bytes stack ");
            let log: Vec<&str> = log.lines().filter(is_why).collect();
            Err(failed(format!("the build ended with {ending}"), next)
                .detail(log.join("\n"))
                .into())
        }
    }
}

/// Whether a source is a header, which nvcc does not compile.
fn names_header(variant: &Variant) -> bool {
    let Recipe::Nvcc { sources, .. } = &variant.recipe else {
        return false;
    };
    let mut endings = sources.iter().filter_map(|it| Path::new(it).extension());
    endings.any(|it| {
        ["cuh", "h", "hpp", "hh", "inl"]
            .iter()
            .any(|header| it == *header)
    })
}

/// That the merge or base which is built lacks a file of this name, where the checkout has one that git
/// does not track.
pub(super) fn left_out(config: &Config, variant: &Variant, file: &str) -> Option<Finding> {
    if config.root == config.checkout {
        return None;
    }
    let name = Path::new(file).file_name()?.to_str()?;
    let found = git::untracked(&config.checkout, &[format!(":(glob)**/{name}")]);
    let message = format!(
        "the merge or base that is built lacks `{}`, which git does not track",
        found.first()?
    );
    let next = "commit it, or merge the target before the step that makes it (git merge refs/remotes/origin/TARGET)";
    Some(Finding::deny(
        Code::MachineLacks,
        &variant.id,
        message,
        next,
    ))
}
