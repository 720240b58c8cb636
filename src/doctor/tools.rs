//! The programs that this tool runs.

use super::check::{Check, Setup, State};
use crate::config::{Config, numbers};
use crate::disk;
use crate::profiler::Ncu;
use crate::toolchain::{Nvcc, Nvdisasm, Sanitizer, Tool, dropped_target, without_nvcc};

/// Returns ncu, where it was found.
pub(super) fn checks(setup: &Setup<'_>, checks: &mut Vec<Check>) -> Option<Ncu> {
    let nvcc = compilers(setup, checks);
    let ncu = profiler(setup.config, checks);
    checks.push(nvdisasm(nvcc, setup.config));
    checks.push(sanitizer(setup.config));
    let cupti = setup.config.toolchain.cupti.as_ref();
    checks.extend(cupti.filter(|path| !disk::is_file(path)).map(|path| {
        let detail = format!("`toolchain.cupti` does not exist: {}", path.display());
        Check::fail(
            "libcupti",
            detail,
            "correct the key, or leave it out: then it is looked for",
        )
    }));
    ncu
}

/// nvcc and its host compiler. Returns nvcc, where it was found.
fn compilers(setup: &Setup<'_>, checks: &mut Vec<Check>) -> Option<Tool> {
    let config = setup.config;
    let (toolchain, work) = (&config.toolchain, &config.work);
    let needed = !setup.configured || config.variants().any(|variant| variant.needs_nvcc());
    let why = "not needed, no variant has a `source`";
    let compiler = Nvcc::compiler(toolchain, work);
    let check = match &compiler {
        Ok(nvcc) => match (
            dropped_target(&nvcc.version, &toolchain.arch),
            without_nvcc(),
        ) {
            (Some((why, next)), _) => Check::fail("nvcc", why, next),
            (None, Some(root)) if toolchain.nvcc.is_none() => Check::warn(
                "nvcc",
                format!(
                    "{} at {}; CUDA_HOME or CUDA_PATH is {}, which has no bin/nvcc",
                    nvcc.version,
                    nvcc.path.display(),
                    root.display()
                ),
                "correct the variable, or unset it",
            ),
            (None, _) => Check::pinned(
                "nvcc",
                format!("{} at {}", nvcc.version, nvcc.path.display()),
                toolchain.pins.cuda(&nvcc.version).as_ref(),
                config,
            ),
        },
        Err(error) => Check::of_error("nvcc", error),
    };
    checks.push(check.unless_needed(needed, why));
    let check = match Nvcc::host_compiler(work) {
        Ok(host) => {
            let text = format!("{} at {}", host.version, host.path.display());
            Check::ok("host compiler", text)
        }
        Err(error) => Check::of_error("host compiler", &error),
    };
    checks.push(check.unless_needed(needed, why));
    compiler.ok()
}

fn profiler(config: &Config, checks: &mut Vec<Check>) -> Option<Ncu> {
    let ncu = Ncu::locate(&config.toolchain, &config.work);
    checks.push(match &ncu {
        Ok(Ncu(ncu)) => Check::pinned(
            "ncu",
            format!("{} at {}", ncu.version, ncu.path.display()),
            config.toolchain.pins.ncu(&ncu.version).as_ref(),
            config,
        ),
        Err(error) => Check::of_error("ncu", error),
    });
    ncu.ok()
}

/// Of nvcc's toolkit. Without it no instructions are counted.
fn nvdisasm(nvcc: Option<Tool>, config: &Config) -> Check {
    const WHAT: &str = "nvdisasm";
    match Nvdisasm::locate(&config.toolchain, &config.work) {
        Ok(Nvdisasm(tool)) => {
            let detail = format!("{} at {}", tool.version, tool.path.display());
            match nvcc.filter(|nvcc| older(&tool.version, &nvcc.version)) {
                Some(nvcc) => Check::warn(
                    WHAT,
                    format!(
                        "{detail}, older than nvcc {}, whose programs it may not be able to read",
                        nvcc.version
                    ),
                    "install the nvdisasm of the same toolkit, or a later one",
                ),
                None => Check::ok(WHAT, detail),
            }
        }
        Err(error) => {
            let fail = Check::of_error(WHAT, &error);
            let detail = format!("{} (instructions are not counted)", fail.detail);
            Check::warn(WHAT, detail, fail.next.unwrap_or_default())
        }
    }
}

/// Needed where a variant is verified under one of its tools.
fn sanitizer(config: &Config) -> Check {
    const WHAT: &str = "compute-sanitizer";
    let needed = config
        .variants()
        .any(|variant| !variant.sanitizer.is_empty());
    match Sanitizer::locate(&config.toolchain, &config.work) {
        Ok(Sanitizer(tool)) => {
            Check::ok(WHAT, format!("{} at {}", tool.version, tool.path.display()))
        }
        Err(error) => {
            let fail = Check::of_error(WHAT, &error);
            let state = if needed { State::Fail } else { State::Warn };
            Check { state, ..fail }
        }
    }
}

/// Whether a tool of the toolkit is of an earlier release, such as `13.0`, than another; `false` for
/// tools with other version numbers.
fn older(tool: &str, than: &str) -> bool {
    let release = |version: &str| {
        let numbers = numbers(version.strip_prefix('V')?)?;
        Some((*numbers.first()?, *numbers.get(1)?))
    };
    matches!((release(tool), release(than)), (Some(tool), Some(than)) if tool < than)
}

#[cfg(test)]
mod tests {
    use super::older;

    #[test]
    fn a_tool_of_an_earlier_release_is_older_and_one_of_an_earlier_patch_is_not() {
        assert!(older("V12.8.90", "V13.0.88"));
        assert!(!older("V13.0.85", "V13.0.88"));
        assert!(!older("V13.2.86", "V13.0.88"));
        assert!(!older("2025.3.1.0", "V13.0.88"));
        assert!(!older("", "V13.0.88"));
    }
}
