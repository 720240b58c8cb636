//! Selects the launches of a program that are measured, as ncu does by `--kernel-name`,
//! `--launch-skip` and `--launch-count`.

use crate::capture::kernel_records::KernelCapture;
use crate::config::{GraphProfiling, KernelFilter, Variant};
use crate::profile::LaunchList;
use ncu_report::base_name;

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
