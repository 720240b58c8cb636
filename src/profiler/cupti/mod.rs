//! What NVIDIA's CUPTI measures inside of a program, which runs with an injected library: here the
//! times of kernels, in `counters` the hardware counters.
//!
//! Kernel times need neither ncu nor a right to the counters: CUPTI records when each kernel began
//! and ended. This measures the program as it runs: launches follow each other as it makes them, with caches as
//! the launch before left them. ncu runs each launch alone, and flushes the caches first unless
//! `cache_control` is `none`, so the two differ where that matters.

mod counters;
mod left;
mod library;
pub(super) mod select;

use std::path::Path;
use std::rc::Rc;

use super::capture::Pending;
use super::session::{Profiler, Ran, Session, execute};
use crate::capture::kernel_records::{Incomplete, KernelCapture, ProcessRecords, read};
use crate::config::{GraphProfiling, KernelFilter, Variant};
use crate::files::write_atomically;
use crate::finding::{Code, Error, Finding, Stop};
use crate::process::Invocation;
use crate::terms::{Phase, Tier};
pub use counters::CuptiCounters;
use left::{left, none_selected, on_one_device, remove, unreadable};
pub use library::Libraries;
use library::write_injection;
pub use select::Launched;

/// Times kernels.
#[derive(Debug)]
pub struct Cupti {
    libraries: Rc<Libraries>,
}

impl Cupti {
    /// With these libraries.
    pub fn new(libraries: Rc<Libraries>) -> Cupti {
        Cupti { libraries }
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
        let libraries = self.libraries.env(session.config, &session.gpu.cuda);
        let libraries = libraries.map_err(unavailable)?;
        if variant.profile.graph_profiling == GraphProfiling::Graph {
            let why = "`graph_profiling = \"graph\"` takes a whole CUDA graph for a launch, which only ncu supports";
            return Err(by_ncu_alone(variant, why.to_owned()).into());
        }
        filter(variant)?;
        let mut invocation = session.invocation(session.listed_argv());
        let records = ("SPARSEK_GATE_KERNEL_RECORDS", session.path("process"));
        for (name, path) in libraries.into_iter().chain([records]) {
            let value = path.display().to_string();
            invocation.env.insert(name.to_owned(), value);
        }
        if variant.profile.profiler_range {
            let name = "SPARSEK_GATE_PROFILER_RANGE".to_owned();
            invocation.env.insert(name, "1".to_owned());
        }
        Ok(invocation)
    }

    fn prepare(&self, session: &Session<'_>) -> Result<(), Error> {
        write_injection(&session.config.work)?;
        remove(&session.path("process"))
    }

    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop> {
        let (variant, gpu) = (session.variant, session.gpu);
        ran.succeeded(variant, "while its kernels were recorded")?;
        let prefix = session.path("process");
        let processes = processes(variant, &prefix)?;
        let mut capture = KernelCapture::of(&gpu.name, &gpu.compute_capability, processes);
        let devices = capture.launches.iter().map(|(_, kernel)| kernel.device);
        on_one_device(session, devices)?;
        let seen = capture.functions();
        let filter = filter(variant)?;
        let selection = variant.selection(Phase::Timing);
        let launch_list = capture.launch_list(&filter, selection);
        capture.select(&filter, selection);
        if capture.launches.is_empty() {
            return Err(none_selected(variant, &seen).into());
        }
        let (path, text) = (session.path("records"), capture.text());
        let report = read(text.as_bytes()).map_err(|error| Error::Input {
            path: path.clone(),
            cause: error.to_string(),
        })?;
        let times = ran.times;
        let mut capture = ran.keep(session, path, text.as_bytes(), report)?;
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
    pub fn list(&self, session: &Session<'_>) -> Result<Launched, Stop> {
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
            None => {
                let selection = variant.selection(Phase::Timing);
                Ok(capture.listing(&variant.kernel_filter(), selection))
            }
        }
    }
}

fn unavailable(variant: &Variant, why: String) -> Finding {
    let message = format!("its kernels cannot be timed without ncu: {why}");
    Finding::of(Code::ProfilerUnsupported, &variant.id, message)
}

/// Of what no CUPTI helps.
fn by_ncu_alone(variant: &Variant, why: String) -> Finding {
    let next = "give ncu the permission to read the counters (docs/permission.md), or change what only ncu supports";
    Finding {
        next: next.to_owned(),
        ..unavailable(variant, why)
    }
}

fn filter(variant: &Variant) -> Result<KernelFilter, Finding> {
    KernelFilter::of(variant.kernels.as_deref()).map_err(|why| by_ncu_alone(variant, why))
}

/// What every process of a program left.
fn processes(variant: &Variant, prefix: &Path) -> Result<Vec<ProcessRecords>, Stop> {
    let mut processes = Vec::new();
    for (file, text) in left(prefix)? {
        let process = ProcessRecords::parse(&text);
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
        Incomplete::Unfinished { .. } | Incomplete::Dropped { .. } => {
            let next = "let the program end through `exit` or its `main`, and launch no more than is measured";
            Finding::deny(Code::NotMeasured, &variant.id, why.to_string(), next)
        }
        Incomplete::Damaged { .. } => unreadable(variant, file, &why),
    }
}
