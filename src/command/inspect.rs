//! `sparsek-gate inspect`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::print;
use crate::capture::{self, Format as FileFormat};
use crate::cli::{Format, InspectArgs};
use crate::finding::{Error, ExitCode};
use crate::metric::{Role, display_value};
use crate::report::{clean, one_line};
use ncu_report::{Launch, Measurement, Recording, Value};

/// Fields of the JSON form; `launches` is the part that scripts rely on.
#[derive(Serialize)]
struct Content {
    schema: u32,
    format: &'static str,
    profiler_version: Option<String>,
    command_line: Option<String>,
    created_unix_s: Option<u64>,
    launches: Vec<Json>,
}

pub(super) fn run(arguments: &InspectArgs) -> Result<ExitCode, Error> {
    let (format, recording) = capture::read_file(&arguments.file)
        .map_err(|error| super::unreadable(&arguments.file, error))?;
    let wanted = |name: &str| {
        arguments
            .metric
            .as_ref()
            .is_none_or(|text| name.contains(text.as_str()))
    };
    let text = match arguments.format {
        Format::Json => super::json(&Content {
            schema: 1,
            format: format_name(format),
            launches: recording
                .launches
                .iter()
                .map(|launch| launch_json(launch, &wanted))
                .collect(),
            profiler_version: recording.profiler_version,
            command_line: recording.command_line,
            created_unix_s: recording.created_unix_s,
        }),
        Format::Text => text(format, &recording, &wanted),
    };
    print(&text)?;
    Ok(ExitCode::Pass)
}

fn format_name(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Report => "ncu-rep",
        FileFormat::Csv => "csv",
        FileFormat::KernelRecords => "kernel-records",
        FileFormat::EventTimes => "event-times",
    }
}

fn launch_json(launch: &Launch, wanted: &dyn Fn(&str) -> bool) -> Json {
    let metrics: Map<String, Json> = launch
        .metrics
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, measurement)| (name.to_string(), measurement_json(measurement)))
        .collect();
    let labels: Vec<Json> = launch
        .labels
        .iter()
        .map(|label| {
            let mut fields = measurement_json(&label.measurement);
            if let Json::Object(fields) = &mut fields {
                fields.insert("section".to_owned(), label.section.clone().into());
                fields.insert("label".to_owned(), label.name.clone().into());
            }
            fields
        })
        .collect();
    json!({
        "kind": format!("{:?}", launch.kind).to_lowercase(),
        "kernel": launch.kernel.function,
        "mangled": launch.kernel.mangled,
        "demangled": launch.kernel.demangled,
        "grid": launch.grid,
        "block": launch.block,
        "process": launch.process_id,
        "device": launch.device,
        "context": launch.context,
        "stream": launch.stream,
        "clock_locked": launch.clock_locked,
        "metrics": metrics,
        "labels": labels,
    })
}

fn measurement_json(measurement: &Measurement) -> Json {
    let value = match &measurement.value {
        Value::Integer(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(&**text),
        Value::Missing => Json::Null,
    };
    json!({ "value": value, "unit": measurement.unit.symbol() })
}

fn text(format: FileFormat, recording: &Recording, wanted: &dyn Fn(&str) -> bool) -> String {
    let mut text = format!(
        "{}, {} launches\n",
        format_name(format),
        recording.launches.len()
    );
    for (name, value) in [
        ("profiler", &recording.profiler_version),
        ("command", &recording.command_line),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}: {}", one_line(value));
        }
    }
    if let Some(time) = recording
        .created_unix_s
        .and_then(|seconds| jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok())
    {
        let _ = writeln!(text, "recorded: {time}");
    }
    let first = recording.launches.first();
    if let Some(gpu) = first.and_then(|launch| Role::DeviceName.text(launch)) {
        let _ = writeln!(text, "GPU: {}", one_line(gpu));
    }
    for (index, launch) in recording.launches.iter().enumerate() {
        let name = launch
            .kernel
            .demangled
            .as_deref()
            .unwrap_or(&launch.kernel.function);
        let _ = writeln!(
            text,
            "\n[{index}] {}\n    grid {:?} block {:?}",
            one_line(name),
            launch.grid,
            launch.block
        );
        for (name, measurement) in launch.metrics.iter().filter(|(name, _)| wanted(name)) {
            let _ = writeln!(text, "    {:<72} {}", one_line(name), shown(measurement));
        }
        for label in launch.labels.iter().filter(|label| wanted(&label.name)) {
            let _ = writeln!(
                text,
                "    {} / {}: {} (label only)",
                one_line(&label.section),
                one_line(&label.name),
                shown(&label.measurement)
            );
        }
    }
    clean(&text)
}

fn shown(measurement: &Measurement) -> String {
    let unit = measurement.unit.symbol();
    let suffix = if unit.is_none() {
        " (unit unknown)"
    } else {
        ""
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
