//! `sparsek-gate compare`.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::answer::{self, answer};
use super::command_line::words;
use super::compare_code;
use super::judging::refuse_targets;
use super::program::{Folders, name};
use super::select::variable;
use super::stored::{self, recording_of};
use crate::cli::{CompareArgs, Format};
use crate::config::{
    ClockControl, Config, KernelFilter, Program, ProgramSettings, Purpose, Selected, Selection,
    Verification,
};
use crate::device::Gpu;
use crate::disk::{self, folder_of};
use crate::files::{PROFILE_FILE, ends_in};
use crate::finding::{Error, ExitCode};
use crate::git;
use crate::judge::{
    ComparedProgram, ComparedPrograms, KernelOverview, Origin, Outcome, Rules, judge,
};
use crate::measure::{BaseProject, Place, Plan, measure};
use crate::metric::display_value;
use crate::process;
use crate::report::{self, Form, Progress, one_line, plain_table, table_lines};
use crate::terms::dimensions;
use crate::tips::quoted_programs;
use crate::trust;
use crate::verify::why_not_startable;

/// The endings of what is compared and is no program.
const FILES: [&str; 8] = [
    "csv", "cubin", "fatbin", "json", "ncu-rep", "ncu-repz", "o", "so",
];

pub(super) fn run(config: &Path, arguments: &CompareArgs) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let ends_in = |name: &String, endings| ends_in(Path::new(name), endings);
    let is_missing = |name: &&String| {
        ends_in(name, &FILES) && !name.contains(char::is_whitespace) && !disk::is_there(name)
    };
    let mut names = arguments.programs.iter();
    if let Some(missing) = names.clone().find(is_missing) {
        return Err(Error::Usage(format!("there is no file {missing}")));
    }
    if let Some(records) = names.find(|name| ends_in(name, &["records"]) && disk::is_file(name)) {
        let folder = folder_of(Path::new(records)).display();
        let message = format!(
            "{records}: it is kernel records of this tool, and no program\n  next: name the folder that has it and profile.json: {folder}"
        );
        return Err(Error::Usage(message));
    }
    refuse_names(config, arguments)?;
    if let Some(code) = compare_code::run(config, arguments)? {
        return Ok(code);
    }
    if let Some(code) = of_stored(arguments)? {
        return Ok(code);
    }
    if arguments.programs.len() > 2 {
        let quoted = quoted_programs(&arguments.programs);
        let given = shell_words::join(&arguments.programs);
        let message = match quoted.ends_with(&format!("compare {given}")) {
            true => format!(
                "{} programs are named, and at most two are compared; what a program takes stands in its quotes: compare './a --n 4' ./b",
                arguments.programs.len()
            ),
            false => format!("one or two programs are compared, each as one argument: {quoted}"),
        };
        return Err(Error::Usage(message));
    }
    trust::refuse_in_target(variable)?;
    let programs = programs(arguments)?;
    let targets = report::targets(&arguments.report)?;
    refuse_targets(&targets, None, &[])?;
    if let Some(filter) = &arguments.kernels {
        let refused = |why: String| Error::Usage(format!("--kernels `{filter}`: {why}"));
        if matches!(filter.trim(), "" | "regex:") {
            return Err(refused(
                "it names no kernel; without it all are measured".to_owned(),
            ));
        }
        KernelFilter::of(Some(filter)).map_err(refused)?;
        let name = filter.strip_prefix("regex:").unwrap_or(filter);
        if arguments.programs.len() > 1 && name.contains(':') {
            let why = "a `:` in it does not work: ncu separates its `--kernel-id` by it";
            return Err(refused(why.to_owned()));
        }
    }
    process::pass(&arguments.env_pass);
    let place = Folders::of(
        ".".as_ref(),
        arguments.work.as_deref(),
        arguments.output.as_deref(),
    )?;
    let mut starts = programs.iter().filter_map(|one| one.argv.first());
    if let Some((what, next)) = starts.find_map(|one| why_not_startable(&place.root, one)) {
        return Err(Error::Usage(format!("{what}\n  next: {next}")));
    }
    // There is one at least: clap requires it.
    let base = &programs[0];
    let Some(current) = programs.get(1) else {
        return alone(arguments, &place, base);
    };
    let judged = compared(arguments, &place, [base, current]);
    let (mut outcome, ended) = answer::or_ended(judged, Origin::Measured)?;
    outcome.programs = Some(ComparedPrograms {
        base: ComparedProgram::from(base),
        current: ComparedProgram::from(current),
    });
    if outcome.spent.is_some() {
        outcome.wall_s = Some(started.elapsed().as_secs_f64());
    }
    let detail = arguments.verbosity.detail();
    answer::report(&outcome, ended, arguments.format, detail, &targets)
}

/// Refuses names of variants and revisions in the place of files and programs. With `--nvcc` variants are
/// what is compared.
fn refuse_names(config: &Path, arguments: &CompareArgs) -> Result<(), Error> {
    let names = arguments.programs.iter();
    let unknown: Vec<&String> = names.filter(|name| !disk::is_there(name)).collect();
    if unknown.is_empty() || !arguments.nvcc.is_empty() {
        return Ok(());
    }
    let config = Config::load(config).ok();
    let mut variants = config.iter().flat_map(Config::variants);
    let variant = variants.find(|one| unknown.iter().any(|name| **name == one.id.to_string()));
    let are_revisions = || {
        let is_one = |name: &&String| git::commit_of(Path::new("."), name).is_some();
        unknown.len() == arguments.programs.len() && unknown.iter().all(is_one)
    };
    match variant.map(|one| &one.id) {
        Some(id) => Err(Error::Usage(format!(
            "`{id}` is a variant, and `compare` takes files and programs\n  next: compare two revisions of it by `check --against REV {id}`, of its compiled code alone with `--static`; `build {id} --format json` has the path of its program"
        ))),
        None if are_revisions() => Err(Error::Usage(format!(
            "`{0}` is a git revision, and `compare` takes files and programs\n  next: compare what is checked out with it by `check --against {0}`, compiled code alone with `--static`",
            unknown[0]
        ))),
        None => Ok(()),
    }
}

/// Compares two stored measurements, where the arguments name these.
fn of_stored(arguments: &CompareArgs) -> Result<Option<ExitCode>, Error> {
    let names: Vec<&str> = arguments.programs.iter().map(String::as_str).collect();
    let files = names.iter().filter_map(|name| stored::file_of(name));
    match (&names[..], &files.collect::<Vec<_>>()[..]) {
        (_, []) => Ok(None),
        (&[before, after], [first, second]) => {
            let stated = arguments.of_measuring();
            if !stated.is_empty() {
                let [old, new] = [first, second].map(|it| recording_of(folder_of(it)));
                let [old, new] = [old.display(), new.display()];
                let next = match first.ends_with(PROFILE_FILE) && second.ends_with(PROFILE_FILE) {
                    true => format!(
                        "sparsek-gate baseline --lock --reason '...' --from {old} SUITE/VARIANT; sparsek-gate check --from {new} SUITE/VARIANT"
                    ),
                    false => format!(
                        "sparsek-gate import {before} MORE --variant SUITE/VARIANT; sparsek-gate baseline --lock --accept-imported --reason '...'; sparsek-gate import {after} MORE --variant SUITE/VARIANT; sparsek-gate check --from .sparsek-gate/profiles; each import needs files of two processes at least, and of CSVs the options of ncu (--clock-control, --cache-control, --replay-mode, --graph-profiling)"
                    ),
                };
                return Err(Error::Usage(format!(
                    "{stated}: no effect on stored measurements, which are only shown side by side\n  next: for a verdict, lock the first and check the second, beside a config.toml: {next}"
                )));
            }
            let format = format_without_report(arguments)?;
            stored::run(format, [before, after], [first, second]).map(Some)
        }
        _ => {
            let gone = names.iter().find(|name| !disk::is_there(name));
            let gone = gone.map(|name| format!("there is no file or folder {name}: "));
            let folder = names.iter().find(|name| disk::is_dir(name));
            let gone = gone.or(folder.map(|name| format!("{name} is a folder: ")));
            Err(Error::Usage(format!(
                "{}a stored measurement is compared with another one: state two files or folders that are there (a packed file is unpacked before), or two programs",
                gone.unwrap_or_default()
            )))
        }
    }
}

/// The programs that the arguments state, each with what checks its numbers.
fn programs(arguments: &CompareArgs) -> Result<Vec<Program>, Error> {
    let checks = arguments.verify.iter();
    let mut checks = checks
        .map(|text| words("--verify", text))
        .collect::<Result<Vec<_>, _>>()?;
    let count = arguments.programs.len();
    if checks.len() > count {
        return Err(Error::Usage(format!(
            "there are {} --verify for {count} programs: state one for all of them, or one for each",
            checks.len()
        )));
    }
    // The current program is verified first, so one check for all comes before everything.
    checks.reverse();
    let mut checks = checks.into_iter().map(Verification::Command);
    let programs = arguments.programs.iter().rev().map(|text| {
        Ok(Program {
            argv: words("COMMAND", text)?,
            verification: checks.next().unwrap_or(Verification::None),
        })
    });
    let mut programs = programs.collect::<Result<Vec<_>, Error>>()?;
    programs.reverse();
    Ok(programs)
}

/// How the programs are measured.
fn settings(place: &Folders, arguments: &CompareArgs) -> Result<ProgramSettings, Error> {
    let device = arguments.gpu.unwrap_or_default();
    Ok(ProgramSettings {
        root: place.root.clone(),
        work: place.work.clone(),
        device,
        compute_capability: Gpu::query(device)?.compute_capability,
        kernels: arguments.kernels.clone(),
        skip: arguments.skip.unwrap_or_default(),
        launches: arguments.launches.unwrap_or(20),
        purpose: match arguments.programs.len() {
            1 => Purpose::Overview,
            _ => Purpose::Comparison,
        },
        timeout: Duration::from_secs(arguments.timeout.unwrap_or(300).into()),
        clock_control: arguments.clock_control.unwrap_or(ClockControl::None),
        tolerance_percent: arguments.tolerance.unwrap_or(0.5),
        verified: !arguments.verify.is_empty(),
    })
}

/// Measures two programs side by side, and judges the second by the first.
fn compared(
    arguments: &CompareArgs,
    place: &Folders,
    [base, current]: [&Program; 2],
) -> Result<Outcome, Error> {
    let settings = settings(place, arguments)?;
    let id = name(current);
    let config = |program| Config::of_program(&settings, &id, program);
    let base = BaseProject::of_program(config(base)?);
    let selected =
        Selected::new(config(current)?, &Selection::default(), &[])?.strict(arguments.strict);
    let rules = Rules::of_programs(&selected, arguments.counters);
    let plan = Plan {
        base: Some(&base),
        // What is the same program may be measured with other arguments.
        ..Plan::of(&selected)
    };
    let watch = Progress::default();
    let here = Place::new(&place.output, &watch);
    let captures = measure(&plan, &here, &rules.judge)?;
    Ok(judge(captures, &rules))
}

/// What one program launched.
#[derive(Serialize)]
struct Content {
    argv: Vec<String>,
    gpu: Option<String>,
    kernels: Vec<KernelOverview>,
}

/// Measures one program, and shows its kernels.
fn alone(arguments: &CompareArgs, place: &Folders, program: &Program) -> Result<ExitCode, Error> {
    let format = format_without_report(arguments)?;
    let settings = settings(place, arguments)?;
    let measured = place.measure(&settings, program)?;
    let profile = measured.profiles.first();
    let content = Content {
        argv: program.argv.clone(),
        gpu: profile.map(|profile| profile.identity.gpu.clone()),
        kernels: profile.map_or_else(Vec::new, KernelOverview::all_of),
    };
    let findings = [measured.findings, measured.gaps].concat();
    answer(format, &content, &findings, || text(&content))
}

/// What is measured side by side has reports; one program, and what is stored, have none.
fn format_without_report(arguments: &CompareArgs) -> Result<Format, Error> {
    let refused = |what: &str| {
        Err(Error::Usage(format!(
            "{what} is of two programs that are measured: state these, or use `--format text` or `json`"
        )))
    };
    if !arguments.report.is_empty() {
        return refused("--report");
    }
    match arguments.format {
        Form { name: "text", .. } => Ok(Format::Text),
        Form { name: "json", .. } => Ok(Format::Json),
        Form { name, .. } => refused(&format!("`--format {name}`")),
    }
}

/// The table of kernels, and below it how near each is to a peak.
fn text(content: &Content) -> String {
    let kernels = &content.kernels;
    let mut text = format!(
        "{} on {}, measured in this run, compared with nothing\n\n",
        process::shell_line(&content.argv),
        content.gpu.as_deref().unwrap_or("a GPU")
    );
    if kernels.is_empty() {
        return text;
    }
    let mut table = plain_table(&[
        "kernel", "grid", "block", "launches", "time", "duration", "SM active", "tensor core",
        "DRAM", "registers",
    ]);
    for kernel in kernels {
        table.add_row(row(kernel));
    }
    text.push_str(&table_lines(&table));
    text.push('\n');
    for kernel in kernels {
        if let Some(bound) = &kernel.bound {
            text.push_str(&format!(" {}: {}\n", one_line(&kernel.kernel), bound.words));
        }
    }
    text
}

fn row(kernel: &KernelOverview) -> Vec<String> {
    let value = |value: Option<f64>, unit| match value {
        Some(value) => display_value(value, unit),
        None => "–".to_owned(),
    };
    let percent = |share| value(share, Some("%"));
    vec![
        one_line(&kernel.kernel).to_string(),
        dimensions(kernel.grid),
        dimensions(kernel.block),
        kernel.launches.to_string(),
        percent(kernel.time_percent),
        value(kernel.duration_ns, Some("ns")),
        percent(kernel.sm_active_percent),
        percent(kernel.tensor_percent),
        percent(kernel.dram_percent),
        value(kernel.registers, None),
    ]
}
