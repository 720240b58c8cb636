//! `sparsek-gate inspect`.

use std::collections::BTreeSet;
use std::io;

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::overview;
use crate::capture::{self, Format as FileFormat};
use crate::cli::{Format, InspectArgs};
use crate::finding::{Error, ExitCode};
use crate::metric::{self, Role, display_value};
use crate::report::{Part, columns, cut, one_line, print_json, print_parts};
use crate::terms::nearest;
use ncu_report::{Launch, Measurement, Recording, Value};

/// Fields of the JSON form; `launches` is the part that scripts rely on.
#[derive(Serialize)]
struct Content<'a> {
    schema: u32,
    format: FileFormat,
    profiler_version: Option<&'a str>,
    command_line: Option<&'a str>,
    created_unix_s: Option<u64>,
    /// Errors and warnings of ncu on a page.
    messages: &'a [String],
    /// The launch that is missing on a page.
    gap: Option<&'a str>,
    launches: Vec<OfLaunch<'a>>,
}

pub(super) fn run(arguments: &InspectArgs) -> Result<ExitCode, Error> {
    let (format, recording) = capture::read_file(&arguments.file)
        .map_err(|error| super::unreadable(&arguments.file, error))?;
    let wanted = |name: &str| {
        let contains = |text: &String| {
            let role = metric::alias(text).map(|alias| alias.role);
            name.contains(text.as_str()) || role.is_some() && Role::of(name) == role
        };
        arguments.metric.as_ref().is_none_or(contains)
    };
    let any = |launch: &Launch| {
        let labels = launch.labels.iter().map(|label| &*label.name);
        launch
            .metrics
            .keys()
            .map(|name| &**name)
            .chain(labels)
            .any(wanted)
    };
    if let Some(text) = &arguments.metric
        && !recording.launches.iter().any(any)
    {
        let names = recording.launches.iter().flat_map(|one| one.metrics.keys());
        let stems = names.filter_map(|name| name.split('.').next());
        let stems: Vec<&str> = stems.collect::<BTreeSet<_>>().into_iter().collect();
        let meant = nearest(text, &stems).map(|name| format!(" (did you mean `{name}`?)"));
        return Err(Error::Usage(format!(
            "no metric of {} has `{text}` in its name{}; --all lists all",
            arguments.file.display(),
            meant.unwrap_or_default()
        )));
    }
    let printed = match arguments.format {
        Format::Json => print_json(&Content {
            schema: 1,
            format,
            launches: recording
                .launches
                .iter()
                .map(|launch| OfLaunch {
                    launch,
                    wanted: &wanted,
                })
                .collect(),
            profiler_version: recording.profiler_version.as_deref(),
            command_line: recording.command_line.as_deref(),
            created_unix_s: recording.created_unix_s,
            messages: &recording.messages,
            gap: recording.gap.as_deref(),
        }),
        Format::Text => print_parts(|part| {
            if arguments.all || arguments.metric.is_some() {
                about(format, &recording, part)?;
                return listing(&recording, &wanted, part);
            }
            let columns = columns();
            let part = &mut |text: &str| part(&(cut(text.trim_end(), columns) + "\n"));
            about(format, &recording, part)?;
            overview::print(&recording, columns, part)
        }),
    };
    printed.map_err(Error::io("write", "standard output"))?;
    Ok(ExitCode::Pass)
}

/// A launch with those of its metrics that are wanted.
struct OfLaunch<'a> {
    launch: &'a Launch,
    wanted: &'a dyn Fn(&str) -> bool,
}

impl Serialize for OfLaunch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let launch = self.launch;
        let metrics = launch.metrics.iter();
        let metrics = metrics.filter(|(name, _)| (self.wanted)(name));
        let metrics = metrics.map(|(name, measured)| (name.to_string(), of_measurement(measured)));
        let labels = launch.labels.iter().map(|label| {
            let mut of_label = of_measurement(&label.measurement);
            of_label["label"] = json!(label.name);
            of_label["section"] = json!(label.section);
            of_label
        });
        let of_launch = json!({
            "block": launch.block,
            "clock_locked": launch.clock_locked,
            "context": launch.context,
            "demangled": launch.kernel.demangled,
            "device": launch.device,
            "grid": launch.grid,
            "kernel": launch.kernel.function,
            "kind": format!("{:?}", launch.kind).to_lowercase(),
            "labels": labels.collect::<Vec<_>>(),
            "mangled": launch.kernel.mangled,
            "metrics": metrics.collect::<serde_json::Map<_, _>>(),
            "process": launch.process_id,
            "stream": launch.stream,
        });
        of_launch.serialize(serializer)
    }
}

/// A value with its unit.
fn of_measurement(measurement: &Measurement) -> Json {
    let value = match &measurement.value {
        Value::Integer(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(&**text),
        Value::Missing => Json::Null,
    };
    json!({ "unit": measurement.unit.symbol(), "value": value })
}

/// Prints where a recording comes from.
fn about(format: FileFormat, recording: &Recording, print: &mut Part<'_>) -> io::Result<()> {
    let launches = recording.launches.len();
    print(&format!("{format}, {launches} launches\n"))?;
    for line in recording.messages.iter().chain(&recording.gap) {
        print(&format!("{}\n", one_line(line)))?;
    }
    for (name, value) in [
        ("profiler", &recording.profiler_version),
        ("command", &recording.command_line),
    ] {
        if let Some(value) = value {
            print(&format!("{name}: {}\n", one_line(value)))?;
        }
    }
    if let Some(time) = recording
        .created_unix_s
        .and_then(|seconds| jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok())
    {
        print(&format!("recorded: {time}\n"))?;
    }
    let first = recording.launches.first();
    if let Some(gpu) = first.and_then(|launch| Role::DeviceName.text(launch)) {
        print(&format!("GPU: {}\n", one_line(gpu)))?;
    }
    Ok(())
}

/// Prints launch by launch, line by line.
fn listing(
    recording: &Recording,
    wanted: &dyn Fn(&str) -> bool,
    print: &mut Part<'_>,
) -> io::Result<()> {
    for (index, launch) in recording.launches.iter().enumerate() {
        let kernel = &launch.kernel;
        let name = kernel.demangled.as_deref().unwrap_or(&kernel.function);
        print(&format!("\n[{index}] {}\n", one_line(name)))?;
        let (grid, block) = (launch.grid, launch.block);
        print(&format!("    grid {grid:?} block {block:?}\n"))?;
        for (name, measurement) in launch.metrics.iter().filter(|(name, _)| wanted(name)) {
            let value = shown(measurement);
            print(&format!("    {:<72} {value}\n", one_line(name)))?;
        }
        for label in launch.labels.iter().filter(|label| wanted(&label.name)) {
            print(&format!(
                "    {} / {}: {} (label only)\n",
                one_line(&label.section),
                one_line(&label.name),
                shown(&label.measurement)
            ))?;
        }
    }
    Ok(())
}

fn shown(measurement: &Measurement) -> String {
    let unit = measurement.unit.symbol();
    let suffix = match unit.is_none() {
        true => " (unit unknown)",
        false => "",
    };
    match &measurement.value {
        Value::Missing => "no value".to_owned(),
        Value::Text(text) => one_line(text),
        Value::Integer(number) => format!("{number} {}{suffix}", unit.unwrap_or(""))
            .trim_end()
            .to_owned(),
        Value::Float(number) => format!("{}{suffix}", display_value(*number, unit)),
    }
}
