//! Where the judged variants and kernels are in the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::build::definitions::Kernels;
use crate::config::{Recipe, Selected, Variant};
use crate::files::read_regular_up_to;
use crate::judge::{Outcome, Place};
use ncu_report::{base_name, function_name};

/// Largest source that is searched, 4 MiB: a larger one is generated.
const LARGEST_SOURCE: u64 = 4 << 20;

/// The source of each selected variant, and the definition of each of its kernels that was found in
/// it, or in the headers that its profile names.
pub fn places(plan: &Selected, outcome: &Outcome) -> Vec<Place> {
    let mut texts = Texts {
        root: plan.config.root.clone(),
        read: BTreeMap::new(),
    };
    let mut places = Vec::new();
    for variant in plan.variants() {
        let none = BTreeMap::new();
        let constants = match &variant.recipe {
            Recipe::Nvcc { defines, .. } => defines,
            Recipe::Command { .. } => &none,
        };
        let own = plan.config.own_files(variant).unwrap_or_default();
        let Some(source) = own.iter().find(|file| is_below(file)) else {
            continue;
        };
        places.push(Place {
            variant: variant.id.clone(),
            kernel: None,
            file: source.clone(),
            line: None,
        });
        let files = files(variant, &own, outcome);
        for kernel in kernels(variant, outcome) {
            let found = files
                .iter()
                .find_map(|file| Some((file, texts.line(file, &kernel, constants)?)));
            places.extend(found.map(|(file, line)| Place {
                variant: variant.id.clone(),
                kernel: Some(kernel.clone()),
                file: (*file).to_owned(),
                line: Some(line),
            }));
        }
    }
    places
}

/// The variant's own files first, then what its profile lists.
fn files<'a>(variant: &Variant, own: &'a [String], outcome: &'a Outcome) -> Vec<&'a str> {
    let reports = outcome.variants.iter();
    let listed = reports
        .filter(|report| report.variant == variant.id)
        .flat_map(|report| report.current.sources.keys());
    let mut files: Vec<&str> = Vec::new();
    for file in own.iter().chain(listed).filter(|file| is_below(file)) {
        if !files.contains(&file.as_str()) {
            files.push(file);
        }
    }
    files
}

fn kernels(variant: &Variant, outcome: &Outcome) -> BTreeSet<String> {
    let reports = outcome.variants.iter();
    let judged = reports
        .filter(|report| report.variant == variant.id)
        .flat_map(|report| &report.comparisons)
        .map(|comparison| comparison.kernel.clone());
    let of_findings = outcome
        .findings
        .iter()
        .filter(|finding| finding.concerns(&variant.id))
        .filter_map(|finding| finding.kernel.clone());
    judged.chain(of_findings).collect()
}

/// A path in a profile is data: it may not lead out of the project.
fn is_below(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    !file.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Sources, each read once.
struct Texts {
    root: PathBuf,
    read: BTreeMap<String, Option<Kernels>>,
}

impl Texts {
    fn line(
        &mut self,
        file: &str,
        kernel: &str,
        constants: &BTreeMap<String, String>,
    ) -> Option<u32> {
        let root = &self.root;
        let kernels = self.read.entry(file.to_owned()).or_insert_with(|| {
            let path = root.join(file).canonicalize().ok()?;
            // A link may lead out of the project too.
            if !path.starts_with(root.canonicalize().ok()?) {
                return None;
            }
            let bytes = read_regular_up_to(&path, LARGEST_SOURCE).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            Some(if file.ends_with(".py") {
                Kernels::in_python(&text)
            } else {
                Kernels::in_cuda(&text)
            })
        });
        let name = base_name(kernel);
        kernels.as_ref()?.line(function_name(&name), constants)
    }
}
