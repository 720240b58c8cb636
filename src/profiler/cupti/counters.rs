//! Hardware counters without ncu: the injected library has CUPTI's range profiler measure the selected
//! launches inside of the program.
//!
//! Which launches are selected is known before, from the process that listed all of them: the library
//! gets their names, and reports a kernel that was not listed. What it measures are ncu's counters,
//! each launch alone and with flushed caches as `cache_control` says; ncu stays the reference.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use ncu_report::base_name;

use super::left::{left, none_selected, on_one_device, remove, unreadable};
use super::library::{Libraries, write_injection};
use crate::capture::counter_records::{CounterCapture, ProcessCounters, Uncounted, read};
use crate::config::{CacheControl, KernelFilter, Variant};
use crate::files::write_atomically;
use crate::finding::{Code, Error, Finding, Stop};
use crate::metric::{Role, display_value, is_chip_counter};
use crate::process::Invocation;
use crate::profiler::capture::Pending;
use crate::profiler::ncu::Trouble;
use crate::profiler::session::{Profiler, Ran, Session};
use crate::terms::Tier;

/// Reads counters inside of the program.
#[derive(Debug)]
pub struct CuptiCounters {
    libraries: Rc<Libraries>,
}

impl CuptiCounters {
    /// With these libraries.
    pub fn new(libraries: Rc<Libraries>) -> CuptiCounters {
        CuptiCounters { libraries }
    }
}

impl Profiler for CuptiCounters {
    fn tier(&self) -> Tier {
        Tier::InProcessCounters
    }

    fn process_name(&self) -> &'static str {
        "the program"
    }

    fn invocation(&self, session: &Session<'_>) -> Result<Invocation, Stop> {
        let variant = session.variant;
        let libraries = self.libraries.env(session.config, &session.gpu.cuda);
        let libraries = libraries.map_err(|why| unsupported(variant, why))?;
        selectable(session)?;
        let mut invocation = session.invocation(session.measured_argv());
        let own = [
            ("SPARSEK_GATE_COUNTERS", session.path("process")),
            ("SPARSEK_GATE_COUNTERS_REQUEST", session.path("request")),
        ];
        for (name, path) in libraries.into_iter().chain(own) {
            let value = path.display().to_string();
            invocation.env.insert(name.to_owned(), value);
        }
        Ok(invocation)
    }

    fn prepare(&self, session: &Session<'_>) -> Result<(), Error> {
        write_injection(&session.config.work)?;
        let path = session.path("request");
        write_atomically(&path, request(session).as_bytes()).map_err(Error::io("write", &path))?;
        remove(&session.path("process"))
    }

    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop> {
        let (variant, gpu) = (session.variant, session.gpu);
        ran.succeeded(variant, "while its counters were read")?;
        let prefix = session.path("process");
        let process = measured(session, processes(variant, &prefix)?)?;
        let devices = process.launches.iter().map(|launch| launch.device);
        on_one_device(session, devices)?;
        long_enough(variant, &process)?;
        let capture = CounterCapture {
            gpu: gpu.name.clone(),
            compute_capability: gpu.compute_capability.clone(),
            cache_control: variant.profile.cache_control.to_string(),
            process,
        };
        let (path, text) = (session.path("counters"), capture.text());
        let report = read(text.as_bytes()).map_err(|error| Error::Input {
            path: path.clone(),
            cause: error.to_string(),
        })?;
        let times = ran.times;
        let capture = ran.keep(session, path, text.as_bytes(), report)?;
        remove(&prefix)?;
        Ok(Pending::of(capture, times))
    }
}

/// How ncu reads the counters instead of CUPTI.
const NCU_INSTEAD: &str = "measure with ncu: `profile = { collector = \"ncu\" }` of the variant or its suite (`compare --collector ncu`)";

/// That the listed launches can be measured inside of the program.
fn selectable(session: &Session<'_>) -> Result<(), Finding> {
    let variant = session.variant;
    if let Err(why) = KernelFilter::of(variant.kernels.as_deref()) {
        return Err(not_measured(variant, why, NCU_INSTEAD));
    }
    let Some(listing) = session.listing else {
        let why = "its launches were not listed before".to_owned();
        return Err(not_measured(variant, why, NCU_INSTEAD));
    };
    if let Some(kernel) = &listing.in_graph {
        let why = format!(
            "a CUDA graph launches {kernel}, which CUPTI's range profiler cannot measure in the program"
        );
        return Err(not_measured(variant, why, NCU_INSTEAD));
    }
    match listing.selected.is_empty() {
        true => {
            let seen: Vec<String> = listing.others.iter().map(|name| base_name(name)).collect();
            Err(none_selected(variant, &seen))
        }
        false => Ok(()),
    }
}

/// What the library is to measure, as `injection/request.rs` reads it.
fn request(session: &Session<'_>) -> String {
    let (variant, phase) = (session.variant, session.phase);
    let mut counters: Vec<&str> = variant
        .metrics
        .iter()
        .filter(|metric| metric.phase == phase && is_chip_counter(&metric.counter))
        .map(|metric| metric.counter.as_str())
        .collect();
    counters.sort_unstable();
    counters.dedup();
    if counters.is_empty() {
        // What is known of a launch itself is reported with what is measured.
        counters.push(Role::Duration.counter());
    }
    let mut text = String::from("sparsek-gate counter request 1\n");
    let flush = match variant.profile.cache_control {
        CacheControl::All => 1,
        CacheControl::None => 0,
    };
    let selection = variant.selection(phase);
    let count = wanted(session);
    let _ = writeln!(
        text,
        "skip {}\ncount {count}\nflush {flush}",
        selection.skip
    );
    if selection.per_kernel {
        let _ = writeln!(text, "each {}", selection.count);
    }
    for counter in counters {
        let _ = writeln!(text, "counter {counter}");
    }
    for name in session.listing.iter().flat_map(|listing| &listing.selected) {
        let _ = writeln!(text, "kernel {name}");
    }
    for name in session.listing.iter().flat_map(|listing| &listing.others) {
        let _ = writeln!(text, "other {name}");
    }
    text.push_str("end\n");
    text
}

/// How many launches are measured: those of the configuration, or as many of each listed kernel.
fn wanted(session: &Session<'_>) -> u64 {
    let selection = session.variant.selection(session.phase);
    let count = u64::from(selection.count);
    if !selection.per_kernel {
        return count;
    }
    let listed = session.listing.iter();
    let kernels = listed.flat_map(|listing| &listing.launches.kernels);
    let after = |launches: u32| u64::from(launches.saturating_sub(selection.skip));
    kernels
        .map(|kernel| after(kernel.launches).min(count))
        .sum()
}

/// What every process of a program left.
fn processes(variant: &Variant, prefix: &Path) -> Result<Vec<ProcessCounters>, Stop> {
    let mut processes = Vec::new();
    for (file, text) in left(prefix)? {
        let process = ProcessCounters::parse(&text);
        processes.push(process.map_err(|why| uncounted(variant, &file, why))?);
    }
    if processes.is_empty() {
        let why = "no process of the program loaded the library that reads them: none initialized CUDA, or the driver does not support CUDA_INJECTION64_PATH";
        return Err(unsupported(variant, why.to_owned()).into());
    }
    Ok(processes)
}

/// The one process that launched selected kernels, with as many launches as are measured.
fn measured(
    session: &Session<'_>,
    processes: Vec<ProcessCounters>,
) -> Result<ProcessCounters, Finding> {
    let variant = session.variant;
    let filter = variant.kernel_filter();
    let unlisted = processes.iter().flat_map(|process| &process.unlisted);
    let names: Vec<String> = unlisted.map(|name| base_name(name)).collect();
    if let Some(name) = names.iter().find(|name| filter.matches(name)) {
        let why = format!(
            "it launched {name}, which the process that listed its launches did not: it is not known which launches are selected"
        );
        return Err(not_measured(variant, why, NCU_INSTEAD));
    }
    let mut launching = processes.into_iter().filter(|process| process.selected > 0);
    let (first, second) = (launching.next(), launching.next());
    let Some(process) = first else {
        return Err(none_selected(variant, &names));
    };
    if let Some(second) = second {
        let why = format!(
            "the processes {} and {} both launched selected kernels; counters are read in one process",
            process.pid, second.pid
        );
        return Err(not_measured(variant, why, NCU_INSTEAD));
    }
    let (found, wanted) = (process.launches.len() as u64, wanted(session));
    if found != wanted {
        let of_each = match variant.profile.per_kernel {
            true => " of each, as the process that listed its launches made them",
            false => "",
        };
        let why = format!(
            "{} launches of selected kernels; {wanted} are measured after the first {}{of_each}",
            process.selected, variant.profile.skip
        );
        let next = "make the program launch more often, or lower `launches` or `skip` in the configuration";
        return Err(not_measured(variant, why, next));
    }
    Ok(process)
}

/// The shortest kernel whose counters are offered, in ns. On an H200 every gated value of the 15
/// variants from 13.6 us on agreed with ncu's, and some of each of the three near 6.4 us did not
/// (docs/verdict.md, "Counters without ncu").
const SHORTEST_NS: f64 = 10_000.0;

/// That no kernel is so short that CUPTI's counters differ from ncu's.
fn long_enough(variant: &Variant, process: &ProcessCounters) -> Result<(), Finding> {
    let mut counters = process.counters.iter();
    let Some(duration) = counters.position(|name| name == Role::Duration.counter()) else {
        return Ok(());
    };
    let mut of_kernel: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for launch in &process.launches {
        if let Some(time) = launch.values.get(duration) {
            let kernel = (&launch.name, launch.grid, launch.block);
            of_kernel.entry(kernel).or_default().push(*time);
        }
    }
    for ((name, ..), mut times) in of_kernel {
        times.sort_unstable_by(f64::total_cmp);
        let median = times[times.len() / 2];
        if median < SHORTEST_NS {
            let why = format!(
                "{} takes {}. CUPTI's counters are not used for kernels shorter than {}, because they can differ from ncu's",
                base_name(name),
                display_value(median, Some("ns")),
                display_value(SHORTEST_NS, Some("ns")),
            );
            return Err(not_measured(variant, why, NCU_INSTEAD));
        }
    }
    Ok(())
}

/// `CUptiResult` of `cupti_result.h`: the right to the counters is missing, also in a virtual machine.
const DENIED: [u32; 2] = [35, 40];
/// The counters are in use.
const BUSY: u32 = 26;
/// Not supported: in general, on virtual devices, with confidential computing, on mining, MIG, SLI
/// and WSL devices, and on an unknown chip.
const UNSUPPORTED: [u32; 8] = [27, 33, 41, 42, 43, 44, 45, 46];

fn uncounted(variant: &Variant, file: &Path, why: Uncounted) -> Finding {
    let text = why.to_string();
    match why {
        Uncounted::Failed { status, .. } if DENIED.contains(&status) => {
            let message = format!("CUPTI may not read the GPU's counters: {text}");
            Finding::of(Code::NoPermission, &variant.id, message)
        }
        Uncounted::Failed { status: BUSY, .. } => {
            let message = format!("{}: {text}", Trouble::Busy.words());
            Finding::of(Code::ProfilerBusy, &variant.id, message)
        }
        Uncounted::Failed { status, .. } if UNSUPPORTED.contains(&status) => {
            unsupported(variant, text)
        }
        Uncounted::Failed { .. } => {
            let why = format!("its counters were not read in the program: {text}");
            not_measured(variant, why, NCU_INSTEAD)
        }
        Uncounted::Unfinished { .. } => {
            let next = "let the program end through `exit` or its `main`";
            not_measured(variant, text, next)
        }
        Uncounted::Damaged { .. } => unreadable(variant, file, &why),
    }
}

fn unsupported(variant: &Variant, why: String) -> Finding {
    let message = format!("its counters cannot be read in the program: {why}");
    Finding::of(Code::ProfilerUnsupported, &variant.id, message)
}

fn not_measured(variant: &Variant, why: String, next: &str) -> Finding {
    Finding::deny(Code::NotMeasured, &variant.id, why, next)
}
