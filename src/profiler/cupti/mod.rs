//! Kernel times without ncu and without a right to the counters: the program runs with an injected
//! library, which makes NVIDIA's CUPTI record when each kernel began and ended.
//!
//! This measures the program as it runs: launches follow each other as it makes them, with caches as
//! the launch before left them. ncu runs each launch alone, and flushes the caches first unless
//! `cache_control` is `none`, so the two differ where that matters.

mod library;
mod select;

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use super::capture::Pending;
use super::session::{Profiler, Ran, Session, execute};
use crate::capture::kernel_records::{Incomplete, KernelCapture, ProcessRecords, read};
use crate::config::{KernelFilter, Variant};
use crate::files::{most, read_regular_up_to, write_atomically};
use crate::finding::{Code, Error, Finding, Stop};
use crate::process::Invocation;
use crate::profile::LaunchList;
use crate::terms::Tier;
use library::{injection_path, libcupti, write_injection};
pub(crate) use select::only_ncu_selects;

/// Times kernels.
#[derive(Debug)]
pub struct Cupti {
    /// The program `ncu`, whose installation may have a libcupti.
    ncu: PathBuf,
    /// NVIDIA's library, or why there is none. It is looked for once, when it is needed first.
    libcupti: OnceCell<Result<PathBuf, String>>,
}

impl Cupti {
    /// Nothing is looked for yet.
    pub fn beside(ncu: &Path) -> Cupti {
        Cupti {
            ncu: ncu.to_path_buf(),
            libcupti: OnceCell::new(),
        }
    }

    fn libcupti(&self, session: &Session<'_>) -> Result<&PathBuf, String> {
        let find = || libcupti(&session.config.toolchain, &self.ncu, &session.gpu.cuda);
        self.libcupti
            .get_or_init(find)
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl Profiler for Cupti {
    fn tier(&self) -> Tier {
        Tier::KernelTimes
    }

    fn process_name(&self) -> &'static str {
        "the program"
    }

    fn invocation(&self, session: &Session<'_>) -> Result<Invocation, Stop> {
        let variant = session.variant;
        let unavailable = |why| unavailable(variant, why);
        let injection = injection_path(&session.config.work).map_err(unavailable)?;
        let libcupti = self.libcupti(session).map_err(unavailable)?;
        if let Some(why) = only_ncu_selects(variant) {
            return Err(unavailable(format!("{why}, which only ncu supports")).into());
        }
        KernelFilter::of(variant.kernels.as_deref()).map_err(unavailable)?;
        let mut invocation = session.invocation(session.listed_argv());
        for (name, path) in [
            ("CUDA_INJECTION64_PATH", &injection),
            ("SPARSEK_GATE_CUPTI", libcupti),
            ("SPARSEK_GATE_KERNEL_RECORDS", &session.path("process")),
        ] {
            let value = path.display().to_string();
            invocation.env.insert(name.to_owned(), value);
        }
        Ok(invocation)
    }

    fn prepare(&self, session: &Session<'_>) -> Result<(), Error> {
        if let Ok(path) = injection_path(&session.config.work) {
            write_injection(&path)?;
        }
        remove(&session.path("process"))
    }

    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop> {
        let (variant, gpu) = (session.variant, session.gpu);
        ran.succeeded(variant, "while its kernels were recorded")?;
        let prefix = session.path("process");
        let processes = processes(variant, &prefix)?;
        let mut capture = KernelCapture::of(&gpu.name, &gpu.compute_capability, processes);
        on_one_device(session, &capture)?;
        let seen = capture.functions();
        let filter = KernelFilter::of(variant.kernels.as_deref());
        let filter = filter.map_err(|why| unavailable(variant, why))?;
        let (skip, count) = (variant.profile.skip, variant.profile.launches);
        let launch_list = capture.launch_list(&filter, skip, count);
        capture.select(&filter, skip, count);
        if capture.launches.is_empty() {
            return Err(none_selected(variant, &seen).into());
        }
        let (path, text) = (session.path("records"), capture.text());
        let report = read(text.as_bytes()).map_err(|error| Error::Input {
            path: path.clone(),
            cause: error.to_string(),
        })?;
        let times = ran.times;
        let mut capture = ran.keep_times(path, text.as_bytes(), report, session.seed)?;
        capture.launch_list = Some(launch_list);
        remove(&prefix)?;
        Ok(Pending::of(capture, times))
    }
}

impl Cupti {
    /// Runs the measured command line once more and lists all that it launches, also what the
    /// variant does not measure: ncu does not say what its filter leaves out, and nothing can
    /// record launches in a process that ncu profiles.
    ///
    /// # Errors
    /// A finding that says why they cannot be listed, or that the numbers of that process are
    /// wrong; an error where the machine failed.
    pub fn list(&self, session: &Session<'_>) -> Result<LaunchList, Stop> {
        let (ran, unproven) = execute(self, session)?;
        let variant = session.variant;
        ran.succeeded(variant, "while its launches were listed")?;
        let prefix = session.path("process");
        let processes = processes(variant, &prefix)?;
        let gpu = session.gpu;
        let capture = KernelCapture::of(&gpu.name, &gpu.compute_capability, processes);
        let path = session.path("records");
        write_atomically(&path, capture.text().as_bytes()).map_err(Error::io("write", &path))?;
        remove(&prefix)?;
        match unproven {
            Some(finding) => Err(finding.into()),
            None => Ok(capture.launch_list(
                &variant.kernel_filter(),
                variant.profile.skip,
                variant.profile.launches,
            )),
        }
    }
}

fn unavailable(variant: &Variant, why: String) -> Finding {
    Finding::deny(
        Code::KernelTimesUnavailable,
        &variant.id,
        format!("its kernels cannot be timed without ncu: {why}"),
        "install the CUDA toolkit or its CUPTI, set `toolchain.cupti`, or give ncu the right to the counters",
    )
}

/// What every process of a program left.
fn processes(variant: &Variant, prefix: &Path) -> Result<Vec<ProcessRecords>, Stop> {
    let mut processes = Vec::new();
    for file in left(prefix)? {
        let bytes = read_regular_up_to(&file, most::RECORDS).map_err(Error::io("read", &file))?;
        let process = ProcessRecords::parse(&String::from_utf8_lossy(&bytes));
        processes.push(process.map_err(|why| incomplete(variant, &file, why))?);
    }
    if processes.is_empty() {
        return Err(unavailable(
            variant,
            "no process of the program loaded the library that records them: none initialized CUDA, or the driver does not support CUDA_INJECTION64_PATH".to_owned(),
        )
        .into());
    }
    Ok(processes)
}

fn incomplete(variant: &Variant, file: &Path, why: Incomplete) -> Finding {
    match why {
        Incomplete::Unavailable(why) => unavailable(variant, why),
        Incomplete::Unfinished { .. } | Incomplete::Dropped { .. } => Finding::deny(
            Code::NotMeasured,
            &variant.id,
            why.to_string(),
            "let the program end through `exit` or its `main`, and launch no more than is measured",
        ),
        Incomplete::Damaged { .. } => Finding::deny(
            Code::CaptureUnreadable,
            &variant.id,
            format!("{}: {why}", file.display()),
            "keep the file and report it",
        ),
    }
}

/// That every launch ran on the one GPU that the program was given.
fn on_one_device(session: &Session<'_>, capture: &KernelCapture) -> Result<(), Finding> {
    let mut launches = capture.launches.iter();
    let other = launches.find(|(_, kernel)| kernel.device != 0);
    other.map_or(Ok(()), |(_, kernel)| {
        Err(Finding::deny(
            Code::NotMeasured,
            &session.variant.id,
            format!(
                "the program launched on its device {}, but it may only use {}",
                kernel.device, session.gpu.uuid
            ),
            "do not change CUDA_VISIBLE_DEVICES in the program",
        ))
    })
}

fn none_selected(variant: &Variant, seen: &[String]) -> Finding {
    let seen = if seen.is_empty() {
        "no kernel at all".to_owned()
    } else {
        seen.join(", ")
    };
    Finding::deny(
        Code::NoKernelsProfiled,
        &variant.id,
        format!(
            "no recorded kernel was selected: the filter is {}, the program launched {seen}",
            variant.kernels.as_deref().unwrap_or("(none)")
        ),
        "correct `kernels` or `skip` of the variant",
    )
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
