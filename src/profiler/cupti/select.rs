//! Selects the launches of a program that are measured, as ncu does by `--kernel-name`,
//! `--launch-skip` and `--launch-count`, or by `--kernel-id`.

use std::collections::{BTreeMap, HashMap};

use crate::capture::kernel_records::{KernelCapture, KernelRecord};
use crate::config::{KernelFilter, LaunchSelection};
use crate::profile::{KernelLaunches, LaunchList};
use ncu_report::base_name;

/// Counts the launches that match, and says which of them are measured.
struct Counting<'a> {
    filter: &'a KernelFilter,
    selection: LaunchSelection,
    /// By kernel where each is counted by itself, otherwise under one key.
    seen: HashMap<Option<KernelKey<'a>>, u64>,
}

/// Name, grid and block.
type KernelKey<'a> = (&'a str, [u64; 3], [u64; 3]);

fn key(kernel: &KernelRecord) -> KernelKey<'_> {
    (&kernel.name, kernel.grid, kernel.block)
}

impl<'a> Counting<'a> {
    fn new(filter: &'a KernelFilter, selection: LaunchSelection) -> Counting<'a> {
        Counting {
            filter,
            selection,
            seen: HashMap::new(),
        }
    }

    /// Whether the next launch in their order is measured; `None` where it does not match.
    fn next(&mut self, kernel: &'a KernelRecord) -> Option<bool> {
        if !self.filter.matches(&base_name(&kernel.name)) {
            return None;
        }
        let key = self.selection.per_kernel.then(|| key(kernel));
        let seen = self.seen.entry(key).or_default();
        let ordinal = *seen;
        *seen += 1;
        Some(self.selection.contains(ordinal))
    }
}

impl KernelCapture {
    /// All launches, of which those that [`select`](KernelCapture::select) keeps are measured. Where
    /// each kernel is counted by itself, further launches of a measured one are part of its number.
    pub fn launch_list(&self, filter: &KernelFilter, selection: LaunchSelection) -> LaunchList {
        let mut counting = Counting::new(filter, selection);
        let kernels = self.launches.iter().map(|(_, kernel)| kernel);
        let measured: Vec<bool> = kernels
            .clone()
            .map(|kernel| counting.next(kernel).unwrap_or(false))
            .collect();
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
        let mut counting = Counting::new(filter, selection);
        let kernels = self.launches.iter().map(|(_, kernel)| kernel);
        let kept: Vec<bool> = kernels
            .map(|kernel| counting.next(kernel).unwrap_or(false))
            .collect();
        let mut kept = kept.into_iter();
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
