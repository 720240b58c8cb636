//! One run of a program that records its kernels, and the judgement whether it measured what was
//! asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::library::Recorder;
use super::records::{Incomplete, KernelCapture, ProcessRecords, read};
use super::select::only_ncu_selects;
use crate::build::Artifact;
use crate::capture::{Capture, Pending, Watched, failure_of_program, watched};
use crate::config::{Config, KernelFilter, Variant};
use crate::device::Gpu;
use crate::files::write_atomically;
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_hex;
use crate::process::{self, Invocation};
use crate::terms::Phase;
use crate::verify::program_argv;

/// Runs one artifact once with its kernels recorded, into files `<stem>.*` of a folder, and
/// watches the GPU meanwhile.
///
/// # Errors
/// [`Error`] where the machine failed; whatever keeps the variant from being measured is a finding,
/// with [`Code::KernelTimesUnavailable`] where another tier may serve.
#[expect(
    clippy::too_many_arguments,
    reason = "each is one thing that the run needs"
)]
pub fn record(
    config: &Config,
    recorder: &Result<Recorder, String>,
    variant: &Variant,
    artifact: &Artifact,
    gpu: &Gpu,
    env: &BTreeMap<String, String>,
    folder: &Path,
    stem: &str,
) -> Result<Result<Pending, Finding>, Error> {
    let unavailable = |why: String| {
        Finding::deny(
            Code::KernelTimesUnavailable,
            &variant.id,
            format!("its kernels cannot be timed without ncu: {why}"),
            "install the CUDA toolkit or its CUPTI, set `toolchain.cupti`, or give ncu the right to the counters"
                .to_owned(),
        )
    };
    let recorder = match recorder {
        Ok(recorder) => recorder,
        Err(why) => return Ok(Err(unavailable(why.clone()))),
    };
    if let Some(why) = only_ncu_selects(variant) {
        return Ok(Err(unavailable(format!("{why}, which only ncu knows"))));
    }
    let filter = match KernelFilter::of(variant.kernels.as_deref()) {
        Ok(filter) => filter,
        Err(why) => return Ok(Err(unavailable(why))),
    };
    let path = |ending: &str| folder.join(format!("{stem}.{ending}"));
    let log = path("program.log");
    let prefix = path("process");
    remove(&prefix)?;
    let mut env = env.clone();
    env.extend(variant.env.clone());
    for (name, path) in [
        ("CUDA_INJECTION64_PATH", &recorder.injection),
        ("SPARSEK_GATE_CUPTI", &recorder.cupti),
        ("SPARSEK_GATE_KERNEL_RECORDS", &prefix),
    ] {
        env.insert(name.to_owned(), path.display().to_string());
    }
    let run = Invocation {
        argv: program_argv(
            variant,
            artifact,
            &variant.profile_args,
            &path("result.json"),
            variant.launches_needed(Phase::Timing),
        ),
        dir: config.root.clone(),
        env,
        timeout: variant.profile.timeout,
        stdout: log.clone(),
        stderr: log.clone(),
    };
    let ran = watched(variant, &run, Some(&gpu.uuid), &path("argv"), "the program")?;
    let Watched {
        finished,
        device,
        line,
    } = match ran {
        Ok(ran) => ran,
        Err(finding) => return Ok(Err(finding)),
    };
    if let Some(finding) = failure_of_program(
        variant,
        finished.ending,
        "while its kernels were recorded",
        &line,
    ) {
        return Ok(Err(finding.detail(process::tail(&log, 12))));
    }
    let mut processes = Vec::new();
    for file in left(&prefix)? {
        let bytes = fs::read(&file).map_err(Error::io("read", &file))?;
        match ProcessRecords::parse(&String::from_utf8_lossy(&bytes)) {
            Ok(process) => processes.push(process),
            Err(Incomplete::Unavailable(why)) => return Ok(Err(unavailable(why))),
            Err(why @ (Incomplete::Unfinished { .. } | Incomplete::Dropped { .. })) => {
                return Ok(Err(Finding::deny(
                    Code::NotMeasured,
                    &variant.id,
                    why.to_string(),
                    "let the program end through `exit` or its `main`, and launch no more than is measured".to_owned(),
                )));
            }
            Err(why @ Incomplete::Damaged { .. }) => {
                return Ok(Err(Finding::deny(
                    Code::CaptureUnreadable,
                    &variant.id,
                    format!("{}: {why}", file.display()),
                    "keep the file and report it".to_owned(),
                )));
            }
        }
    }
    if processes.is_empty() {
        return Ok(Err(unavailable(
            "no process of the program loaded the library that records them: none initialized CUDA, or its driver knows no CUDA_INJECTION64_PATH".to_owned(),
        )));
    }
    let mut capture = KernelCapture::of(&gpu.name, &gpu.compute_capability, processes);
    let seen: Vec<String> = capture.functions();
    if let Some((_, kernel)) = capture
        .launches
        .iter()
        .find(|(_, kernel)| kernel.device != 0)
    {
        return Ok(Err(Finding::deny(
            Code::NotMeasured,
            &variant.id,
            format!(
                "the program launched on its device {}, and it was to see {} alone",
                kernel.device, gpu.uuid
            ),
            "let the program keep the CUDA_VISIBLE_DEVICES that it is given".to_owned(),
        )));
    }
    capture.select(&filter, variant.profile.skip, variant.profile.launches);
    if capture.launches.is_empty() {
        let seen = if seen.is_empty() {
            "no kernel at all".to_owned()
        } else {
            seen.join(", ")
        };
        return Ok(Err(Finding::deny(
            Code::NoKernelsProfiled,
            &variant.id,
            format!(
                "no kernel was recorded that is meant: the filter is {}, the program launched {seen}",
                variant.kernels.as_deref().unwrap_or("(none)")
            ),
            "mend `kernels` or `skip` of the variant".to_owned(),
        )));
    }
    let report_path = path("records");
    let text = capture.text();
    write_atomically(&report_path, text.as_bytes()).map_err(Error::io("write", &report_path))?;
    remove(&prefix)?;
    let report = read(text.as_bytes()).map_err(|error| Error::Input {
        path: report_path.clone(),
        cause: error.to_string(),
    })?;
    Ok(Ok(Pending::of(
        Capture {
            report_sha256: sha256_hex(text.as_bytes()),
            report_path,
            page: None,
            phase: Phase::Timing,
            device,
            argv: run.argv,
            report,
        },
        finished.wall,
    )))
}

/// The files that processes wrote: `<prefix>.<pid>`, sorted.
fn left(prefix: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = prefix.parent().unwrap_or(Path::new("."));
    let name = prefix
        .file_name()
        .map(|name| format!("{}.", name.to_string_lossy()))
        .unwrap_or_default();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let is_one = path
            .file_name()
            .is_some_and(|file| file.to_string_lossy().starts_with(&name));
        if is_one {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn remove(prefix: &Path) -> Result<(), Error> {
    for path in left(prefix)? {
        fs::remove_file(&path).map_err(Error::io("clear", &path))?;
    }
    Ok(())
}
