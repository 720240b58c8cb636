//! Selects the launches of a program that are measured, as ncu does by `--kernel-name`,
//! `--launch-skip` and `--launch-count`, or by `--kernel-id`.

use std::collections::{BTreeMap, HashMap};

use crate::capture::kernel_records::{KernelCapture, KernelRecord};
use crate::config::{KernelFilter, LaunchSelection};
use crate::profile::{KernelLaunches, LaunchList};
use ncu_report::base_name;

/// Name, grid and block.
type KernelKey<'a> = (&'a str, [u64; 3], [u64; 3]);

fn key(kernel: &KernelRecord) -> KernelKey<'_> {
    (&kernel.name, kernel.grid, kernel.block)
}

impl KernelCapture {
    /// Whether each launch is measured, in their order.
    fn measured(&self, filter: &KernelFilter, selection: LaunchSelection) -> Vec<bool> {
        // By kernel where each is counted by itself, otherwise under one key.
        let mut seen: HashMap<Option<KernelKey<'_>>, u64> = HashMap::new();
        let mut is_measured = |kernel| {
            let seen = seen.entry(selection.per_kernel.then(|| key(kernel)));
            let seen = seen.or_default();
            *seen += 1;
            selection.contains(*seen - 1)
        };
        let mut matches: HashMap<&str, bool> = HashMap::new();
        let kernels = self.launches.iter().map(|(_, kernel)| kernel);
        kernels
            .map(|kernel| {
                let matches = matches.entry(&kernel.name);
                *matches.or_insert_with_key(|name| filter.matches(&base_name(name)))
                    && is_measured(kernel)
            })
            .collect()
    }

    /// All launches, of which those that [`select`](KernelCapture::select) keeps are measured. Where
    /// each kernel is counted by itself, further launches of a measured one are part of its number.
    pub fn launch_list(&self, filter: &KernelFilter, selection: LaunchSelection) -> LaunchList {
        let measured = self.measured(filter, selection);
        let kernels = self.launches.iter().map(|(_, kernel)| kernel);
        let mut each: BTreeMap<KernelKey<'_>, u32> = BTreeMap::new();
        if selection.per_kernel {
            for (kernel, _) in kernels.clone().zip(&measured).filter(|(_, one)| **one) {
                each.insert(key(kernel), 0);
            }
        }
        let mut launches = Vec::new();
        for (kernel, measured) in kernels.zip(measured) {
            let of_measured = each.get_mut(&key(kernel));
            if measured || of_measured.is_none() {
                launches.push((base_name(&kernel.name), measured));
            }
            if let Some(count) = of_measured {
                *count = count.saturating_add(1);
            }
        }
        let each = each
            .into_iter()
            .map(|((name, grid, block), launches)| KernelLaunches {
                mangled: name.to_owned(),
                grid,
                block,
                launches,
            });
        LaunchList {
            kernels: each.collect(),
            ..LaunchList::of(&launches)
        }
    }

    /// Keeps the selected launches that match.
    pub fn select(&mut self, filter: &KernelFilter, selection: LaunchSelection) {
        let mut kept = self.measured(filter, selection).into_iter();
        self.launches.retain(|_| kept.next().unwrap_or(false));
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
