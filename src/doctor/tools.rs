//! The programs that this tool runs.

use super::{Check, Patient, State};
use crate::config::{Config, numbers};
use crate::profiler::Ncu;
use crate::toolchain::{Nvcc, Sanitizer, Tool};

/// The tools that further checks need, where they were found.
pub(super) struct Tools {
    pub nvcc: Option<Nvcc>,
    pub ncu: Option<Ncu>,
    pub cuobjdump: Option<Tool>,
}

pub(super) fn checks(patient: &Patient<'_>, checks: &mut Vec<Check>) -> Tools {
    let config = patient.config;
    let (toolchain, work) = (&config.toolchain, &config.work);
    let needed = !patient.configured || config.variants().any(|variant| variant.needs_nvcc());
    let why = "not needed, no variant has a `source`";

    let compiler = Nvcc::compiler(toolchain, work);
    checks.push(
        match &compiler {
            Ok(nvcc) => Check::pinned(
                "nvcc",
                format!("{} at {}", nvcc.version, nvcc.path.display()),
                toolchain.pins.cuda(&nvcc.version).as_ref(),
                config,
            ),
            Err(error) => Check::of_error("nvcc", error),
        }
        .unless_needed(needed, why),
    );
    let host = Nvcc::host_compiler(work);
    checks.push(
        match &host {
            Ok((path, line)) => Check::ok("host compiler", format!("{line} at {}", path.display())),
            Err(error) => Check::of_error("host compiler", error),
        }
        .unless_needed(needed, why),
    );
    let ncu = Ncu::locate(toolchain, work);
    checks.push(match &ncu {
        Ok(ncu) => Check::pinned(
            "ncu",
            format!("{} at {}", ncu.version, ncu.path.display()),
            toolchain.pins.ncu(&ncu.version).as_ref(),
            config,
        ),
        Err(error) => Check::of_error("ncu", error),
    });

    let nvcc = compiler.ok().map(|compiler| Nvcc {
        path: compiler.path,
        version: compiler.version,
        host_compiler: host.map(|(_, line)| line).unwrap_or_default(),
    });
    let mut further = |name: &'static str, without: &str| {
        let beside = nvcc.as_ref().map(|nvcc| nvcc.path.as_path());
        let tool = Tool::locate(name, beside, work);
        checks.push(match &tool {
            Ok(tool) => {
                let detail = format!("{} at {}", tool.version, tool.path.display());
                match nvcc
                    .as_ref()
                    .filter(|nvcc| older(&tool.version, &nvcc.version))
                {
                    Some(nvcc) => Check::warn(
                        name,
                        format!(
                            "{detail}, older than nvcc {}: what that makes may not be read",
                            nvcc.version
                        ),
                        format!("install the {name} of the same toolkit, or a later one"),
                    ),
                    None => Check::ok(name, detail),
                }
            }
            Err(error) => {
                let fail = Check::of_error(name, error);
                let detail = format!("{} ({without})", fail.detail);
                Check::warn(name, detail, fail.next.unwrap_or_default())
            }
        });
        tool.ok()
    };
    let cuobjdump = further("cuobjdump", "nothing reads what is in built programs");
    further("nvdisasm", "no instructions are counted");
    checks.push(sanitizer(config));
    Tools {
        nvcc,
        ncu: ncu.ok(),
        cuobjdump,
    }
}

/// Needed where a variant is verified under it.
fn sanitizer(config: &Config) -> Check {
    const WHAT: &str = "compute-sanitizer";
    let needed = config
        .variants()
        .any(|variant| !variant.sanitizer.is_empty());
    match Sanitizer::locate(&config.toolchain, &config.work) {
        Ok(tool) => Check::ok(WHAT, format!("{} at {}", tool.version, tool.path.display())),
        Err(error) => {
            let fail = Check::of_error(WHAT, &error);
            let state = if needed { State::Fail } else { State::Warn };
            Check { state, ..fail }
        }
    }
}

/// Whether a tool of the toolkit is of an earlier release, `13.0`, than another. Tools that count
/// otherwise are of none.
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
    fn a_tool_of_an_earlier_release_is_older_and_a_patch_is_none() {
        assert!(older("V12.8.90", "V13.0.88"));
        assert!(!older("V13.0.85", "V13.0.88"));
        assert!(!older("V13.2.86", "V13.0.88"));
        assert!(!older("2025.3.1.0", "V13.0.88"));
        assert!(!older("", "V13.0.88"));
    }
}
