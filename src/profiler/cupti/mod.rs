//! The times of kernels, which NVIDIA's CUPTI records inside of a program that runs with an injected
//! library.
//!
//! They need neither ncu nor a right to the counters: CUPTI records when each kernel began and ended.
//! This measures the program as it runs: launches follow each other as it makes them, with caches as
//! the launch before left them. ncu runs each launch alone, and flushes the caches first unless
//! `cache_control` is `none`, so the two differ where that matters.

mod library;
mod select;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::capture::Pending;
use super::session::{Profiler, Ran, Session, Written, none_of, not_held};
use crate::capture::kernel_records::{
    Incomplete, KernelCapture, MOST_LAUNCHES, ProcessRecords, read,
};
use crate::config::{GraphProfiling, KernelFilter, Toolchain, Variant};
use crate::disk;
use crate::files::{most, read_regular_up_to, write_atomically};
use crate::finding::{Code, Error, Finding, Stop};
use crate::process::Invocation;
use crate::process::Rest;
use crate::terms::Phase;
use library::{find_libcupti, injection_path, write_injection};

/// What begins the names of the files that the injected library leaves, one a process.
const PROCESSES: &str = "process.";

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

    /// NVIDIA's library, for a driver that supports CUDA up to this version.
    ///
    /// # Errors
    /// Why there is none.
    pub fn libcupti(&self, toolchain: &Toolchain, cuda: &str) -> Result<PathBuf, String> {
        let find = || find_libcupti(toolchain, &self.ncu, cuda);
        self.libcupti.get_or_init(find).clone()
    }
}

impl Profiler for Cupti {
    fn process_name(&self) -> &'static str {
        "the program"
    }

    fn invocation(&self, session: &Session<'_>) -> Result<Invocation, Stop> {
        let variant = session.variant;
        let unavailable = |why| unavailable(variant, why);
        let injection = injection_path(&session.config.work).map_err(unavailable)?;
        let libcupti = self.libcupti(&session.config.toolchain, &session.gpu.cuda);
        let libcupti = libcupti.map_err(unavailable)?;
        if variant.profile.graph_profiling == GraphProfiling::Graph {
            let why = "`graph_profiling = \"graph\"` takes a whole CUDA graph for a launch, which only ncu supports";
            return Err(by_ncu_alone(variant, why.to_owned()).into());
        }
        let filter = KernelFilter::of(variant.kernels.as_deref());
        filter.map_err(|why| by_ncu_alone(variant, why))?;
        let mut invocation = session.invocation(session.program_argv());
        let text = |path: PathBuf| path.display().to_string();
        let mut env = vec![
            ("CUDA_INJECTION64_PATH", text(injection)),
            ("SPARSEK_GATE_CUPTI", text(libcupti)),
            ("SPARSEK_GATE_KERNEL_RECORDS", text(session.path("process"))),
        ];
        if session.in_turn {
            let namespace = disk::read_link("/proc/self/ns/pid").unwrap_or_default();
            let tool = format!("{} {}", std::process::id(), namespace.display());
            env.push(("SPARSEK_GATE_PROCESS", tool));
            env.push(("SPARSEK_GATE_TURN", text(session.turn())));
        }
        if variant.profile.profiler_range {
            env.push(("SPARSEK_GATE_PROFILER_RANGE", "1".to_owned()));
        }
        let env = env.into_iter();
        let env = env.map(|(name, value)| (name.to_owned(), value));
        invocation.env.extend(env);
        Ok(invocation)
    }

    fn prepare(&self, session: &Session<'_>) -> Result<(), Error> {
        write_injection(&session.config.work)
    }

    fn rests(&self, session: &Session<'_>, pid: i32) -> Option<Rest> {
        let first = session.path(&format!("process.{pid}"));
        let files = session.files(PROCESSES).unwrap_or_default();
        // What another process of it launches counts too.
        let lasts: Vec<Vec<u8>> = files.iter().map(|path| last_line(path)).collect();
        let ends = |last: &Vec<u8>| last.starts_with(b"end ");
        if files.contains(&first) && lasts.iter().all(ends) {
            return Some(Rest::Over);
        }
        // What has initialized CUDA alone would wait at its first work.
        let works = |last: &&Vec<u8>| !ends(last) && !last.starts_with(b"process ");
        let mut working = lasts.iter().filter(works);
        let idle = working.next()?.starts_with(b"idle ");
        (idle && working.next().is_none()).then_some(Rest::Idle)
    }

    fn written(&self, session: &Session<'_>) -> Result<Written, Error> {
        let read = |path: PathBuf| {
            let bytes =
                read_regular_up_to(&path, most::RECORDS).map_err(Error::io("read", &path))?;
            Ok((path, bytes))
        };
        session.files(PROCESSES)?.into_iter().map(read).collect()
    }

    fn worked(&self, session: &Session<'_>, added: &[u8]) -> bool {
        // Where ranges count, it may launch kernels before them.
        let mut lines = added.split(|byte| *byte == b'\n');
        let others: [&[u8]; 3] = [b"process ", b"end ", b"error "];
        let works = |line: &[u8]| !line.is_empty() && !others.iter().any(|it| line.starts_with(it));
        !session.variant.profile.profiler_range && lines.any(works)
    }

    fn finish(&self, session: &Session<'_>, mut ran: Ran) -> Result<Pending, Stop> {
        let variant = session.variant;
        ran.succeeded(variant, "while its kernels were recorded")?;
        let of_turn = ran.written.take().map(Ok);
        let written = of_turn.unwrap_or_else(|| self.written(session))?;
        let mut capture = recorded(session, &written)?;
        let mut devices = capture.launches.iter().map(|(_, kernel)| kernel.device);
        if let Some(device) = devices.find(|device| *device != 0) {
            let uuid = &session.gpu.uuid;
            let message =
                format!("the program launched on its device {device}, but it may only use {uuid}");
            let next = "do not change CUDA_VISIBLE_DEVICES in the program";
            return Err(Finding::deny(Code::NotMeasured, &variant.id, message, next).into());
        }
        let seen = capture.functions();
        let filter = variant.kernel_filter();
        let selection = variant.selection(Phase::Timing);
        let launch_list = capture.launch_list(&filter, selection);
        // Kernels that are not selected keep the GPU, too.
        // What a later process of the program waits is no time of the GPU.
        let pid = capture.launches.first().map(|(pid, _)| *pid);
        let is_one = capture.launches.iter().all(|(of, _)| Some(*of) == pid);
        let span = capture.span().filter(|_| is_one || !session.in_turn);
        capture.select(&filter, selection);
        if capture.launches.is_empty() {
            return Err(none_selected(variant, &seen).into());
        }
        let launches = capture.launches.len();
        if launches > MOST_LAUNCHES {
            let message = format!(
                "in one run the program launched {launches} kernels that are measured, and {MOST_LAUNCHES} are the most"
            );
            let next =
                "let it make fewer steps, or select kernels (`kernels`, `compare --kernels`)";
            return Err(Finding::deny(Code::NotMeasured, &variant.id, message, next).into());
        }
        let (path, text) = (session.path("records"), capture.text());
        let report = read(text.as_bytes());
        let report = report.map_err(|error| Error::input(&path, error.to_string()))?;
        keep(session, &text)?;
        let times = ran.times;
        let mut capture = ran.capture(&path, text.as_bytes(), report);
        capture.record.span = span;
        capture.launch_list = Some(launch_list);
        Ok(Pending::reading(session.phase, times, || Ok(capture)))
    }
}

fn unavailable(variant: &Variant, why: String) -> Finding {
    let message = format!("its kernels cannot be timed without ncu: {why}");
    Finding::of(Code::ProfilerUnsupported, &variant.id, message)
}

/// That no process of a program loaded the library. Where programs are timed as they run, no other profiler
/// would see more.
fn none_initialized(variant: &Variant) -> Finding {
    let why = "no process of the program loaded the library that records them: none initialized CUDA, or the driver does not support CUDA_INJECTION64_PATH";
    let message = format!("no kernel was recorded: {why}");
    match variant.profile.as_it_runs {
        true => Finding::of(Code::KernelMissing, &variant.id, message),
        false => unavailable(variant, why.to_owned()),
    }
}

/// Of what no CUPTI helps.
fn by_ncu_alone(variant: &Variant, why: String) -> Finding {
    let next = "give ncu the permission to read the counters (docs/permission.md), or change what only ncu supports";
    Finding {
        next: next.to_owned(),
        ..unavailable(variant, why)
    }
}

/// The last line of a file that a process writes; empty where its end is missing.
fn last_line(path: &Path) -> Vec<u8> {
    let text = read_regular_up_to(path, most::RECORDS).unwrap_or_default();
    let mut lines = text.rsplit(|byte| *byte == b'\n');
    match lines.next() {
        Some([]) => lines.next().unwrap_or_default().to_vec(),
        _ => Vec::new(),
    }
}

/// All that every process of a program launched.
fn recorded(session: &Session<'_>, written: &Written) -> Result<KernelCapture, Stop> {
    let (variant, gpu) = (session.variant, session.gpu);
    let mut processes = Vec::new();
    for (file, bytes) in written {
        let process = ProcessRecords::parse(&String::from_utf8_lossy(bytes));
        processes.push(process.map_err(|why| incomplete(variant, file, why))?);
    }
    if session.in_turn && !processes.iter().all(ProcessRecords::kept_its_turns) {
        let why = "CUPTI does not report all of their calls";
        return Err(not_held(variant, why).into());
    }
    if processes.is_empty() {
        return Err(none_initialized(variant).into());
    }
    Ok(KernelCapture::of(
        &gpu.name, &gpu.compute_capability, processes,
    ))
}

/// Keeps a capture file in the place of what the processes left.
fn keep(session: &Session<'_>, text: &str) -> Result<(), Error> {
    let path = session.path("records");
    write_atomically(&path, text.as_bytes()).map_err(Error::io("write", &path))?;
    for file in session.files(PROCESSES)? {
        disk::remove_file(&file).map_err(Error::io("clear", &file))?;
    }
    Ok(())
}

fn incomplete(variant: &Variant, file: &Path, why: Incomplete) -> Finding {
    match why {
        Incomplete::Unavailable(why) => unavailable(variant, why),
        Incomplete::Unfinished { .. } | Incomplete::Dropped { .. } => {
            let next = "let the program end through `exit` or its `main`, and launch no more than is measured";
            Finding::deny(Code::NotMeasured, &variant.id, why.to_string(), next)
        }
        Incomplete::Damaged { .. } => {
            let message = format!("{}: {why}", file.display());
            Finding::of(Code::CaptureUnreadable, &variant.id, message)
        }
    }
}

/// The finding that no launch was selected of the kernels that were seen.
fn none_selected(variant: &Variant, seen: &[String]) -> Finding {
    let why = none_of(variant, seen);
    let message = format!("no recorded kernel was selected: {why}");
    Finding::of(Code::KernelMissing, &variant.id, message)
}
