//! Checks what a machine can do for this tool, one thing after the other, as data. Nothing is
//! changed: no setting of the GPU, and no file except what a probe leaves in a temporary folder.

mod check;
mod counters;
mod gpu;
mod storage;
mod tools;

pub use check::{Check, Setup, State};

use crate::config::{Accept, Config, Recipe, Variant};
use crate::device::Gpu;
use crate::finding::{Error, ExitCode};
use crate::process;
use crate::terms::{counted, joined};
use crate::trust::unowned;

/// Examines the machine.
///
/// # Errors
/// [`Error::Interrupted`], or where the system gives no temporary folder. A fault of the machine is
/// a check.
pub fn examine(setup: &Setup<'_>) -> Result<Vec<Check>, Error> {
    let config = setup.config;
    let mut checks = vec![configuration(setup)];
    let ncu = tools::checks(setup, &mut checks);
    let gpu = match Gpu::query(config.device) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            checks.push(Check::of_error("driver", &error));
            None
        }
    };
    match &gpu {
        Some(gpu) => {
            gpu::checks(setup, gpu, &mut checks);
        }
        None => checks.push(Check::skipped("GPU", "without a driver it cannot be found")),
    }
    let probed = counters::checks(setup, gpu.as_ref(), ncu.as_ref());
    checks.extend(probed?);
    storage::checks(setup, gpu.as_ref(), &mut checks);
    checks.push(environment(config));
    checks.extend(config.trust.accept.map(|Accept::CodeOwners| {
        let detail = "code owners accept new locks and looser rules, if the target branch requires their review \
                      and drops approvals of earlier commits, which cannot be seen from here";
        match unowned(config) {
            None => Check::ok("acceptance", detail),
            Some(why) => Check::warn("acceptance", format!("nobody can accept: {why}"), "commit a CODEOWNERS that names owners of itself, of the configuration and of the baselines"),
        }
    }));
    if process::interrupted() {
        return Err(Error::Interrupted);
    }
    Ok(checks)
}

/// The exit code of a run with these checks.
pub fn exit_code(checks: &[Check]) -> ExitCode {
    if checks.iter().any(|check| check.state == State::Fail) {
        ExitCode::Environment
    } else {
        ExitCode::Pass
    }
}

/// The variables that programs get.
fn environment(config: &Config) -> Check {
    const WHAT: &str = "environment";
    let names = format!("programs get {}", process::passed().join(", "));
    let named = config.env_pass.iter();
    let credentials = named.filter(|name| process::is_credential(name));
    match joined(credentials, ", ").as_str() {
        "" => Check::ok(WHAT, names),
        credentials => Check::warn(
            WHAT,
            format!("{names}; by their names, these hold credentials: {credentials}"),
            "remove them from `env_pass`: programs under test are code of the change",
        ),
    }
}

fn configuration(setup: &Setup<'_>) -> Check {
    let config = setup.config;
    if !setup.configured {
        return Check::skipped(
            "configuration",
            format!(
                "there is no {} here: the machine is checked against the defaults (`sparsek-gate init` writes one)",
                config.path.display()
            ),
        );
    }
    // As `list` reads it. A command may still make files that are missing.
    let is_ready =
        |variant: &&Variant| !matches!(variant.recipe, Recipe::Command { build: Some(_), .. });
    let mut files = config
        .variants()
        .filter(is_ready)
        .map(|variant| config.own_files(variant));
    if let Some(error) = files.find_map(Result::err) {
        return Check::of_error("configuration", &error);
    }
    Check::ok(
        "configuration",
        format!(
            "{}: {} in {}",
            config.path.display(),
            counted(config.variants().count(), "variant", "variants"),
            counted(config.suites.len(), "suite", "suites")
        ),
    )
}
