//! Where the judged variants and kernels are in the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::config::{Config, Recipe, Selected};
use crate::disk::leads_to;
use crate::files::{is_below, read_regular_up_to, resolved};
use crate::finding::by_variant;
use crate::git;
use crate::judge::{Outcome, Place, VariantReport};
use ncu_report::{base_name, function_name};
use regex::Regex;

/// Largest source that is searched, 4 MiB: a larger one is generated.
const LARGEST_SOURCE: u64 = 4 << 20;

/// The source of each selected variant, and the definition of each of its kernels that was found in
/// it, or in the headers that its profile names.
pub fn places(plan: &Selected, outcome: &Outcome) -> Vec<Place> {
    let mut texts = Texts {
        root: plan.config.root.clone(),
        read: BTreeMap::new(),
        searched: BTreeMap::new(),
    };
    let mut reports = BTreeMap::new();
    for report in &outcome.variants {
        let own = reports.entry(&report.variant);
        own.or_insert_with(Vec::new).push(report);
    }
    let found = by_variant(&outcome.findings);
    let below = below_top(&plan.config);
    let mut places = Vec::new();
    let none = Constants::new();
    for variant in plan.variants() {
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
            file: in_repository(&below, source),
            line: None,
        });
        let none = Vec::new();
        let reports = reports.get(&variant.id).unwrap_or(&none);
        let files = files(&own, reports);
        let mut kernels = kernels(reports);
        let about = found.get(&variant.id).into_iter().flatten();
        kernels.extend(about.filter_map(|finding| finding.kernel.clone()));
        for kernel in kernels {
            let found = files
                .iter()
                .find_map(|file| Some((file, texts.line(file, &kernel, constants)?)));
            places.extend(found.map(|(file, line)| Place {
                variant: variant.id.clone(),
                kernel: Some(kernel.clone()),
                file: in_repository(&below, file),
                line: Some(line),
            }));
        }
    }
    places
}

/// The folder of the configuration in its repository; empty at the top, or without one.
fn below_top(config: &Config) -> PathBuf {
    let top = git::repository(&config.checkout).map(|found| found.top);
    let folder = leads_to(&config.checkout);
    let below = top
        .ok()
        .and_then(|top| Some(folder.strip_prefix(top).ok()?.to_owned()));
    below.unwrap_or_default()
}

/// A file as the services name it, from the top of the repository.
fn in_repository(below: &Path, file: &str) -> String {
    resolved(&below.join(file)).display().to_string()
}

/// The variant's own files first, then what its profile lists. A path in a profile is data: it may not
/// lead out of the project.
fn files<'a>(own: &'a [String], reports: &[&'a VariantReport]) -> Vec<&'a str> {
    let listed = reports.iter().flat_map(|report| &report.current.sources);
    let mut files: Vec<&str> = Vec::new();
    for file in own.iter().chain(listed).filter(|file| is_below(file)) {
        if !files.contains(&file.as_str()) {
            files.push(file);
        }
    }
    files
}

fn kernels(reports: &[&VariantReport]) -> BTreeSet<String> {
    let judged = reports.iter().flat_map(|report| &report.comparisons);
    judged.map(|comparison| comparison.kernel.clone()).collect()
}

/// The constants that a variant gives on the compiler's command line, by name.
type Constants = BTreeMap<String, String>;

/// Sources, each read once, and searched once for a kernel under the same constants: variants share them.
struct Texts<'a> {
    root: PathBuf,
    read: BTreeMap<String, Option<String>>,
    searched: BTreeMap<(String, String, &'a Constants), Option<u32>>,
}

impl<'a> Texts<'a> {
    fn line(&mut self, file: &str, kernel: &str, constants: &'a Constants) -> Option<u32> {
        let name = base_name(kernel);
        let asked = (file.to_owned(), function_name(&name).to_owned(), constants);
        if let Some(known) = self.searched.get(&asked) {
            return *known;
        }
        let root = &self.root;
        let text = self.read.entry(file.to_owned()).or_insert_with(|| {
            let path = git::real_input(&root.join(file)).ok()?;
            // A link may lead out of the project too.
            if !path.starts_with(root.canonicalize().ok()?) {
                return None;
            }
            let bytes = read_regular_up_to(&path, LARGEST_SOURCE).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        });
        let found = text
            .as_ref()
            .and_then(|text| line(text, &asked.1, constants));
        self.searched.insert(asked, found);
        found
    }
}

/// The line, from 1, where a source in CUDA C++ or Python defines a kernel; where it only declares
/// it, that of the declaration. The name may be a macro: `constants` are those of the command line,
/// which replace what the text itself defines. Read without a compiler, so that a comment with the
/// same words can be taken for the kernel: no verdict reads it.
fn line(text: &str, kernel: &str, constants: &Constants) -> Option<u32> {
    let name = regex::escape(kernel);
    let define = Regex::new(&format!(
        r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+{name}\s*$"
    ));
    let in_text = define.ok()?;
    let in_text = in_text.captures_iter(text).map(|found| found[1].to_owned());
    let given = constants.iter().filter(|(_, value)| value.trim() == kernel);
    let mut names = vec![name];
    names.extend(in_text.filter(|name| !constants.contains_key(name)));
    names.extend(given.map(|(name, _)| regex::escape(name)));
    let names = names.join("|");
    let cuda = format!(
        r"^[^/\n#]*\b(?:__global__)\b[^;{{}}]*?\b(?:{names})\s*(?:<[^;{{}}()]*>\s*)?\([^;{{}}]*[;{{]"
    );
    let python = format!(r"^[ \t]*(?:async\s+)?def\s+(?:{names})\s*\(");
    let pattern = Regex::new(&format!("(?m){cuda}|{python}")).ok()?;
    let mut found: Vec<_> = pattern.find_iter(text).collect();
    found.sort_by_key(|found| found.as_str().ends_with(';'));
    let before = &text[..found.first()?.start()];
    u32::try_from(before.matches('\n').count() + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_found_before_a_declaration() {
        let none = BTreeMap::new();
        let text = "// __global__ void k() {}\n__global__ void other(int n) { k(); }\n\
            #define MAKE __global__ void k() {}\n__global__ void k();\n\
            template <int N>\n__global__ void\n__launch_bounds__(256, (N > 2) ? 2 : 1)\n\
            k<float>\n(const float* a) noexcept\n{ }\n";
        assert_eq!(line(text, "k", &none), Some(6));
        assert_eq!(line(text, "other", &none), Some(2));
        assert_eq!(line(text, "a", &none), None);
        assert_eq!(line("__global__ void k();\n", "k", &none), Some(1));
        assert_eq!(line("__global__ void k(", "k", &none), None);
        let python = "# def k(a):\n@triton.jit\ndef k_other(a): pass\ndef  k (a):\n  pass\n";
        assert_eq!(line(python, "k", &none), Some(4));
    }

    #[test]
    fn a_name_may_be_a_constant_of_the_text_or_of_the_command_line() {
        let text = "#ifndef NAME\n#define NAME slow\n#endif\n__global__ void\nNAME(int n) {}\n";
        assert_eq!(line(text, "slow", &BTreeMap::new()), Some(4));
        let constants = BTreeMap::from([("NAME".to_owned(), "fast".to_owned())]);
        assert_eq!(line(text, "fast", &constants), Some(4));
        assert_eq!(line(text, "slow", &constants), None);
    }
}
