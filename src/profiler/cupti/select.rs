//! Selects the launches of a program that are measured, as ncu does by `--kernel-name`,
//! `--launch-skip` and `--launch-count`.

use std::collections::BTreeSet;

use crate::capture::kernel_records::KernelCapture;
use crate::config::{GraphProfiling, KernelFilter, Variant};
use crate::profile::LaunchList;
use ncu_report::base_name;

/// What a command line launches, and which of its kernels a variant selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// All launches, by kernel.
    pub launches: LaunchList,
    /// The linker's names of the selected kernels, each once.
    pub selected: Vec<String>,
    /// Those of all other kernels.
    pub others: Vec<String>,
    /// A kernel that a CUDA graph launches, if any does.
    pub in_graph: Option<String>,
}

/// The setting that selects launches in a way that only ncu supports, where there is one.
pub fn only_ncu_selects(variant: &Variant) -> Option<String> {
    const SELECTING: [&str; 8] = [
        "--kernel-name-base",
        "--kernel-id",
        "--filter-mode",
        "--nvtx",
        "--nvtx-include",
        "--nvtx-exclude",
        "--range-filter",
        "--devices",
    ];
    let settings = &variant.profile;
    let argument = settings.ncu_args.iter().find(|argument| {
        let name = argument.split('=').next().unwrap_or_default();
        SELECTING.contains(&name)
    });
    match () {
        () if !settings.nvtx.is_empty() => Some("`nvtx` selects by NVTX ranges".to_owned()),
        () if settings.profiler_range => Some(
            "`profiler_range` selects between cudaProfilerStart and cudaProfilerStop".to_owned(),
        ),
        () if settings.graph_profiling == GraphProfiling::Graph => {
            Some("`graph_profiling = \"graph\"` takes a whole CUDA graph for a launch".to_owned())
        }
        () => argument.map(|argument| format!("`ncu_args` selects by `{argument}`")),
    }
}

impl KernelCapture {
    /// All launches, of which those that [`select`](KernelCapture::select) keeps are measured.
    pub fn launch_list(&self, filter: &KernelFilter, skip: u32, count: u32) -> LaunchList {
        let measured = u64::from(skip)..u64::from(skip) + u64::from(count);
        let mut matching = 0;
        let launches = self.launches.iter().map(|(_, kernel)| {
            let name = base_name(&kernel.name);
            let matches = filter.matches(&name);
            let selected = matches && measured.contains(&matching);
            matching += u64::from(matches);
            (name, selected)
        });
        LaunchList::of(&launches.collect::<Vec<_>>())
    }

    /// All launches, with the names by which the selected ones are known in the program.
    pub fn listing(&self, filter: &KernelFilter, skip: u32, count: u32) -> Launched {
        let kernels = self.launches.iter().map(|(_, kernel)| kernel);
        let names: BTreeSet<&str> = kernels.clone().map(|kernel| kernel.name.as_str()).collect();
        let names = names.into_iter().map(str::to_owned);
        let (selected, others) = names.partition(|name| filter.matches(&base_name(name)));
        let mut in_graphs = kernels.filter(|kernel| kernel.graph_node != 0);
        Launched {
            launches: self.launch_list(filter, skip, count),
            selected,
            others,
            in_graph: in_graphs.next().map(|kernel| base_name(&kernel.name)),
        }
    }

    /// Keeps the selected launches: of those that match, `count` after the first `skip`.
    pub fn select(&mut self, filter: &KernelFilter, skip: u32, count: u32) {
        let launches = std::mem::take(&mut self.launches);
        self.launches = launches
            .into_iter()
            .filter(|(_, kernel)| filter.matches(&base_name(&kernel.name)))
            .skip(skip as usize)
            .take(count as usize)
            .collect();
    }

    /// Function names of all launches, each once, in order.
    pub fn functions(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, kernel) in &self.launches {
            let name = base_name(&kernel.name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
