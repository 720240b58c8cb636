//! `sparsek-gate compare` of machine code: two files, or the same sources under two compilers. It needs no
//! GPU.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::answer;
use super::judging::refuse_targets;
use super::program::{Folders, file_name};
use super::select::{select, variable};
use super::stored;
use crate::binary;
use crate::cli::CompareArgs;
use crate::config::{Config, Pins, Selection, Toolchain, Variant};
use crate::disk;
use crate::files::{most, read_regular_up_to};
use crate::finding::{Code, Error, ExitCode, Finding};
use crate::judge::{Case, Mode, Origin, Outcome, VariantReport, compare_compiled};
use crate::measure::{Batch, Silent, Watch};
use crate::process;
use crate::profile::Profile;
use crate::report::{self, Progress};
use crate::terms::VariantId;
use crate::toolchain::{can_start, find_program, path_folders};
use crate::trust;

/// The endings of files with machine code that nothing runs.
const ENDINGS: [&str; 5] = ["so", "o", "obj", "cubin", "fatbin"];

/// The endings of files that are neither programs nor compared by themselves.
const OTHERS: [&str; 5] = ["a", "ptx", "cu", "cpp", "cc"];

/// Compares machine code, where the arguments ask for that.
pub(super) fn run(config: &Path, arguments: &CompareArgs) -> Result<Option<ExitCode>, Error> {
    let names = &arguments.programs;
    let is_code = |name: &&String| {
        let file = Path::new(name).file_name().unwrap_or_default();
        let file = file.to_string_lossy();
        let mut endings = file.split('.').skip(1);
        let is_other = OTHERS
            .iter()
            .any(|other| file.ends_with(&format!(".{other}")));
        (is_other || endings.any(|ending| ENDINGS.contains(&ending))) && disk::is_file(name)
    };
    let code = names.iter().find(is_code);
    let mut all = names.iter();
    let stored = all.find(|name| stored::file_of(name).is_some());
    if let (Some(code), Some(stored)) = (code, stored) {
        let message = format!(
            "{code} is no report of ncu, no CSV and no profile, and {stored} is compared with one of these\n  next: compare what is measured with what is measured, or machine code with machine code"
        );
        return Err(Error::Usage(message));
    }
    let outcome = match &arguments.nvcc[..] {
        [] if !arguments.only_code && code.is_none() => return Ok(None),
        _ if !arguments.of_measuring().is_empty() => {
            let message =
                arguments.of_measuring() + ": for programs that run, and not for machine code";
            return Err(Error::Usage(message));
        }
        [] => of_files(arguments)?,
        [old, new] => of_compilers(config, arguments, [old, new])?,
        _ => {
            let message = "state `--nvcc` twice: the compiler of before, and the one of now";
            return Err(Error::Usage(message.to_owned()));
        }
    };
    let targets = report::targets(&arguments.report)?;
    refuse_targets(&targets, None, &[])?;
    let detail = arguments.verbosity.detail();
    answer::report(&outcome, None, arguments.format, detail, &targets).map(Some)
}

/// Two files, for each target that both have code for.
fn of_files(arguments: &CompareArgs) -> Result<Outcome, Error> {
    let [before, now] = &arguments.programs[..] else {
        let message = "machine code is compared with other machine code: state two files";
        return Err(Error::Usage(message.to_owned()));
    };
    let [was, is] = [before, now].map(|file| targets(Path::new(file)));
    let (was, is) = (was?, is?);
    let number = |target: &String| {
        let number = target.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        number.to_owned()
    };
    let both: Vec<&String> = is
        .iter()
        .filter(|target| was.iter().any(|other| number(other) == number(target)))
        .collect();
    if both.is_empty() {
        let list = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>().join(", ");
        let (was, is) = (list(&was), list(&is));
        let message = format!("no target is in both: `{before}` has {was}, `{now}` has {is}");
        return Err(Error::Usage(message));
    }
    let place = Folders::of(".".as_ref(), arguments.work.as_deref(), None)?;
    let files = [before, now].map(|file| place.root.join(file).display().to_string());
    let mut outcome = Outcome::new(Origin::Compiled);
    outcome
        .findings
        .extend(itself(before.as_ref(), now.as_ref()));
    for target in both {
        let id = VariantId {
            suite: target.clone(),
            variant: file_name(now),
        };
        let of = |file: &String| Config::of_code(&place.work, target, &id, file);
        let (old, new) = (of(&files[0])?, of(&files[1])?);
        let sides = [&old, &new].map(|config| {
            let variants: Vec<&Variant> = config.variants().collect();
            built(config, &variants, &Silent)
        });
        let [was, is] = sides;
        let variants: Vec<&Variant> = new.variants().collect();
        compared(&mut outcome, &variants, [was?, is?]);
    }
    Ok(outcome)
}

/// That both sides are one file.
fn itself(before: &Path, now: &Path) -> Option<Finding> {
    let is_one = disk::real(before).ok()? == disk::real(now).ok()?;
    is_one.then(|| {
        let message = format!(
            "both sides are {}: it is compared with itself",
            now.display()
        );
        let next = "name the one of before, and the one of now";
        Finding::of_project(Code::RuleDoubtful, message, next)
    })
}

/// The targets of a file's machine code.
fn targets(file: &Path) -> Result<BTreeSet<String>, Error> {
    let name = file.display();
    if !disk::is_there(file) && file.to_string_lossy().contains(' ') {
        let message = format!("`{name}` is no file: machine code is compared without arguments");
        return Err(Error::Usage(message));
    }
    let bytes = read_regular_up_to(file, most::BINARY).map_err(Error::named(file))?;
    let refused = |why: String| {
        let next = "compare objects, shared libraries, cubins, fatbins or programs with machine code of a GPU (`nvcc -arch=sm_90a`), or variants with `--nvcc`";
        Error::Usage(format!("{name}: {why}\n  next: {next}"))
    };
    let targets = binary::targets(&bytes).map_err(|error| refused(error.to_string()))?;
    match targets.is_empty() {
        true => Err(refused(
            "it has no machine code of a GPU: PTX is not compared".to_owned(),
        )),
        false => Ok(targets),
    }
}

/// Variants of the configuration under two compilers.
fn of_compilers(
    path: &Path,
    arguments: &CompareArgs,
    compilers: [&PathBuf; 2],
) -> Result<Outcome, Error> {
    trust::refuse_in_target(variable)?;
    let selection = Selection {
        names: arguments.programs.clone(),
        experimental: false,
    };
    let selected = select(Config::load(path)?, &selection, &[])?;
    process::pass(&selected.config.env_pass);
    let variants = selected.variants();
    let variants: Vec<&Variant> = variants
        .into_iter()
        .filter(|variant| variant.needs_nvcc())
        .collect();
    let [first, second] = compilers.map(|nvcc| {
        let named = find_program(&nvcc.to_string_lossy(), None, &path_folders());
        let nvcc = &named.unwrap_or_else(|_| nvcc.clone());
        let nvcc = std::path::absolute(nvcc).map_err(Error::io("find", nvcc))?;
        let shown = nvcc.display().to_string();
        if !can_start(&shown, &nvcc) {
            return Err(Error::Usage(format!(
                "`--nvcc {shown}` is no program\n  next: name the file of a toolkit: `--nvcc /usr/local/cuda-13.0/bin/nvcc`"
            )));
        }
        let toolchain = Toolchain {
            nvcc: Some(nvcc),
            pins: Pins::default(),
            ..selected.config.toolchain.clone()
        };
        Ok(Config {
            toolchain,
            ..selected.config.clone()
        })
    });
    let (first, second) = (first?, second?);
    let built = |config| built(config, &variants, &Progress::default());
    let mut outcome = Outcome::new(Origin::Compiled);
    let nvcc = [&first, &second].map(|config| config.toolchain.nvcc.as_deref());
    if let [Some(old), Some(new)] = nvcc {
        outcome.findings.extend(itself(old, new));
    }
    compared(&mut outcome, &variants, [built(&first)?, built(&second)?]);
    Ok(outcome)
}

/// The static profiles of variants, and why there is none of some.
type Side = (Vec<Profile>, Vec<Finding>);

fn built(config: &Config, variants: &[&Variant], watch: &dyn Watch) -> Result<Side, Error> {
    let batch = Batch {
        config,
        variants,
        watch,
    };
    let (artifacts, findings) = batch.build()?;
    Ok((batch.compiled(&artifacts, &[], None), findings))
}

/// Adds the comparison of each variant to an outcome.
fn compared(outcome: &mut Outcome, variants: &[&Variant], sides: [Side; 2]) {
    let [(before, of_before), (now, of_now)] = sides;
    let in_base = of_before.into_iter().map(Finding::in_base);
    outcome.findings.extend(in_base.chain(of_now));
    let of = |profiles: &[Profile], variant: &Variant| {
        let mut profiles = profiles.iter();
        profiles.find(|one| one.variant == variant.id).cloned()
    };
    for variant in variants {
        if let (Some(was), Some(is)) = (of(&before, variant), of(&now, variant)) {
            let (report, findings): (VariantReport, _) =
                compare_compiled(&Case::new(variant, Mode::Programs, &was, &is), false);
            outcome.variants.push(report);
            outcome
                .findings
                .extend(findings.into_iter().map(Finding::compiled));
        }
    }
}
