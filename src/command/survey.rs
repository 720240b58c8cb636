//! What a program launches, as the suite of a new configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::program::{Folders, name};
use crate::config::{ClockControl, Program, ProgramSettings, Purpose, Verification};
use crate::device::Gpu;
use crate::finding::{Code, Error, Finding};
use crate::git;
use crate::judge::{KernelOverview, Proposal};
use crate::metric::{ALIASES, arch_of_capability, chip_of_arch, display_value};
use crate::process::shell_line;
use crate::report::one_line;
use crate::terms::{dimensions, joined};

/// The configuration of a new project.
const TEMPLATE: &str = include_str!("init.toml");
/// The same with every key.
const REFERENCE: &str = include_str!("reference.toml");

/// The configuration of a new project for a GPU, with every key if all are asked for. Without a GPU it
/// is for the target of the text.
pub(super) fn template(gpu: Option<&Gpu>, all: bool) -> String {
    let arch = gpu.and_then(|gpu| arch_of_capability(&gpu.compute_capability));
    // Of a chip that is not known, no metric is gated by default: some are written.
    let is_unknown = |arch: &String| chip_of_arch(arch).is_none();
    let text = match all || arch.as_ref().is_some_and(is_unknown) {
        true => REFERENCE,
        false => TEMPLATE,
    };
    arch.map_or_else(|| text.to_owned(), |arch| for_target(text, &arch))
}

/// The configuration for a target. The metrics that its chip cannot measure become comments.
fn for_target(text: &str, arch: &str) -> String {
    let chip = chip_of_arch(arch);
    let stated = format!("arch = \"{arch}\"");
    let mut text = text.replacen("arch = \"sm_90a\"", &stated, 1);
    for alias in ALIASES.iter().filter(|alias| alias.role.on(chip).is_none()) {
        let Some(at) = text.find(&format!("[metric.{}]\n", alias.name)) else {
            continue;
        };
        let end = text[at..]
            .find("\n\n")
            .map_or(text.len(), |length| at + length);
        let commented = text[at..end].replace('\n', "\n# ");
        let why = format!("# Not on this chip: {}.\n# {commented}", alias.lacking);
        text.replace_range(at..end, &why);
    }
    text
}

/// Where its suite begins, and what follows it where every key is written.
const SUITE: &str = "# A suite is one problem;";
const AFTER_SUITE: &str = "# Makes warnings of the findings";
/// Most launches that are looked at.
const MOST_LAUNCHES: u32 = 500;
/// Most kernels that are listed.
const MOST_LISTED: usize = 20;
/// When the program is killed: ncu makes it much slower.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What a program launched.
pub(super) struct Survey {
    /// Where it ran.
    folder: PathBuf,
    argv: Vec<String>,
    name: String,
    gpu: Gpu,
    kernels: Vec<KernelOverview>,
    /// What was found of the run; where it launched nothing, why.
    pub findings: Vec<Finding>,
}

/// Runs a program once under ncu, in the folder of the configuration that it is for.
///
/// # Errors
/// [`Error`] where the machine lacks something; that the program failed is a finding.
pub(super) fn survey(folder: &Path, argv: &[String], device: u32) -> Result<Survey, Error> {
    let place = Folders::of(folder, None, None)?;
    let gpu = Gpu::query(device).map_err(|error| {
        let text = error.to_string();
        let (what, next) = text.split_once("\n  next: ").unwrap_or((&text, ""));
        let alone =
            "`sparsek-gate init` alone needs no GPU: state the program as `run` and `program`";
        Error::environment(what, format!("{next}; or {alone}"))
    })?;
    let program = Program {
        argv: argv.to_vec(),
        verification: Verification::None,
    };
    let settings = ProgramSettings {
        root: place.root.clone(),
        work: place.work.clone(),
        device,
        compute_capability: gpu.compute_capability.clone(),
        kernels: None,
        skip: 0,
        launches: MOST_LAUNCHES,
        purpose: Purpose::Survey,
        timeout: TIMEOUT,
        clock_control: ClockControl::None,
        tolerance_percent: 0.0,
        verified: false,
    };
    let measured = place.measure(&settings, &program)?;
    let profile = measured.profiles.first();
    // Most programs launch less often than is asked for here.
    let gaps = measured.gaps.into_iter();
    let gaps = gaps.filter(|gap| gap.code != Code::NotMeasured);
    Ok(Survey {
        name: name(&program).variant,
        folder: place.root.clone(),
        argv: program.argv,
        gpu,
        kernels: profile.map_or_else(Vec::new, KernelOverview::all_of),
        findings: measured.findings.into_iter().chain(gaps).collect(),
    })
}

impl Survey {
    /// The configuration with this program as its suite, see [`template`]; `None` where it launched
    /// nothing.
    pub fn configuration(&self, all: bool) -> Option<String> {
        let proposal = Proposal::of(&self.kernels)?;
        let template = template(Some(&self.gpu), all);
        let (before, rest) = template.split_once(SUITE)?;
        let after = rest.find(AFTER_SUITE).map_or("", |at| &rest[at..]);
        // The run did not lock the clocks, which many machines do not allow.
        let before = before.replacen("clock_control = \"base\"", "clock_control = \"none\"", 1);
        let suite = self.suite(&proposal);
        let between = if after.is_empty() { "" } else { "\n" };
        Some(format!("{before}{suite}{between}{after}"))
    }

    fn suite(&self, proposal: &Proposal) -> String {
        let line = shell_line(&self.argv);
        let mut text = format!(
            "# Made from one run of {} on {}, of its first {MOST_LAUNCHES} launches at most:\n",
            one_line(&line),
            one_line(&self.gpu.name)
        );
        for kernel in self.kernels.iter().take(MOST_LISTED) {
            text.push_str(&format!("#   {}\n", listed(kernel)));
        }
        let more = self.kernels.len().saturating_sub(MOST_LISTED);
        if more > 0 {
            text.push_str(&format!("#   and {more} more\n"));
        }
        text.push_str(&format!(
            "[suite.{name}]\ndescription = {}\n{}\
             profile = {{ launches = {}, skip = {} }}\n\
             # verify_args = [\"--check\"]         # of the run that checks the numbers: exit status 0\n\n\
             [suite.{name}.variant.main]\nrun = {}\nexpect = {}\n{}\
             # program = {}   # an executable with kernels: the static gate reads it\n",
            quoted(&line),
            self.filter(proposal),
            proposal.launches,
            proposal.skip,
            list(&self.argv),
            list(&proposal.names),
            self.inputs(),
            quoted(self.argv.first().map_or("", String::as_str)),
            name = self.name,
        ));
        text
    }

    fn filter(&self, proposal: &Proposal) -> String {
        match &proposal.kernels {
            Some(filter) => format!("kernels = {}\n", quoted(filter)),
            None => "# kernels = \"regex:^my_kernel\"  # all of them are measured\n".to_owned(),
        }
    }

    /// The files among the arguments: scripts are what the program is made of. An executable is made
    /// of sources that the command line does not name.
    fn inputs(&self) -> String {
        let is_file = |word: &&String| {
            let path = Path::new(word.as_str());
            path.is_relative() && git::is_input_file(self.folder.join(path))
        };
        let files: Vec<String> = self.argv.iter().skip(1).filter(is_file).cloned().collect();
        match files.is_empty() {
            true => "# inputs = [\"src/example.cu\"]   # the files that the program is made of\n"
                .to_owned(),
            false => format!("inputs = {}\n", list(&files)),
        }
    }
}

/// One kernel, in a comment.
fn listed(kernel: &KernelOverview) -> String {
    let share = kernel.time_percent.map(|share| format!("{share:5.1} % "));
    let duration = kernel.duration_ns;
    let duration = duration.map(|time| format!(", {} each", display_value(time, Some("ns"))));
    format!(
        "{}{} × {}, grid {}, block {}{}",
        share.unwrap_or_default(),
        kernel.launches,
        one_line(&kernel.kernel),
        dimensions(kernel.grid),
        dimensions(kernel.block),
        duration.unwrap_or_default()
    )
}

/// A text as TOML writes it in one line: it may be in a comment.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

fn list(texts: &[String]) -> String {
    format!("[{}]", joined(texts.iter().map(|text| quoted(text)), ", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn both_configurations_are_valid_for_every_chip() {
        let arches = [
            "sm_61", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90",
            "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a", "sm_103f",
        ];
        for (arch, (text, variants)) in arches
            .iter()
            .flat_map(|arch| [(TEMPLATE, 1), (REFERENCE, 2)].map(|text| (*arch, text)))
        {
            if variants == 1 && chip_of_arch(arch).is_none() {
                continue;
            }
            let config = Config::parse(Path::new("config.toml"), &for_target(text, arch));
            let config = config.map_err(|error| format!("{arch}: {error}")).unwrap();
            assert_eq!(config.toolchain.arch, arch);
            assert_eq!(config.variants().count(), variants);
            let duration = |variant: &crate::config::Variant| {
                let mut metrics = variant.metrics.iter();
                metrics.any(|metric| metric.alias == "duration")
            };
            assert!(config.variants().all(duration), "{arch}");
        }
        assert!(for_target(REFERENCE, "sm_121a").contains("# [metric.dram_bw]"));
        assert!(for_target(REFERENCE, "sm_80").contains("\n[metric.dram_bw]"));
    }

    #[test]
    fn a_new_configuration_has_at_most_twenty_lines_and_one_suite() {
        let lines = TEMPLATE.lines();
        let stated = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert!(stated.count() <= 20, "{TEMPLATE}");
        assert!(TEMPLATE.contains(SUITE) && REFERENCE.contains(AFTER_SUITE));
        // What a run of a program replaces.
        assert!(TEMPLATE.contains("clock_control = \"base\"") && !TEMPLATE.contains(AFTER_SUITE));
    }
}
