//! The report as SARIF 2.1.0 (OASIS): one result a finding, at the line of its kernel.

use serde_json::{Value, json};

use super::concern::{Concern, worst_first};
use super::print::{clean, one_line};
use super::screen::first_line;
use crate::files::pretty_json;
use crate::finding::{Code, Severity};
use crate::judge::Outcome;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The base of relative paths: the folder of the configuration.
const ROOT: &str = "%SRCROOT%";

pub(super) fn render(outcome: &Outcome) -> String {
    let concerns = worst_first(outcome);
    let mut codes: Vec<Code> = Vec::new();
    let results = concerns.iter().map(|concern| {
        let code = concern.finding.code;
        let known = codes.iter().position(|known| *known == code);
        let index = known.unwrap_or_else(|| {
            codes.push(code);
            codes.len() - 1
        });
        result(concern, index)
    });
    let results: Vec<Value> = results.collect();
    let rules: Vec<Value> = codes.into_iter().map(rule).collect();
    let code = outcome.exit_code();
    let notifications: Vec<Value> = outcome
        .ended
        .iter()
        .map(|ended| {
            json!({
                "level": "error",
                "message": { "text": message(&format!("the run ended: {}", ended.message)) },
            })
        })
        .collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "sparsek-gate",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": outcome.ended.is_none(),
                "exitCode": code as u8,
                "exitCodeDescription": one_line(&first_line(outcome)),
                "toolExecutionNotifications": notifications,
            }],
            "originalUriBaseIds": { ROOT: {
                "description": { "text": "the folder of the configuration" },
            }},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    });
    pretty_json(&log)
}

fn rule(code: Code) -> Value {
    let exit = code.exit_code();
    json!({
        "id": code.as_str(),
        "shortDescription": { "text": message(code.meaning()) },
        "help": { "text": message(&format!(
            "{} Usual cause: {} Next step: {} Exit code if it fails the check: {} ({}).",
            code.meaning(), code.cause(), code.next_step(), exit as u8, exit.meaning()
        ))},
        "defaultConfiguration": { "level": "error" },
    })
}

fn result(concern: &Concern<'_>, rule_index: usize) -> Value {
    let finding = concern.finding;
    let level = match finding.severity {
        Severity::Deny => "error",
        Severity::Warn => "warning",
    };
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(concern.file), "uriBaseId": ROOT },
            "region": { "startLine": concern.line.unwrap_or(1) },
        },
    });
    if let Some(variant) = &finding.variant {
        location["logicalLocations"] = json!([match &finding.kernel {
            Some(kernel) => json!({
                "name": one_line(kernel),
                "fullyQualifiedName": one_line(&format!("{variant}/{kernel}")),
                "kind": "function",
            }),
            None => json!({
                "fullyQualifiedName": one_line(&variant.to_string()),
                "kind": "module",
            }),
        }]);
    }
    let mut properties = json!({});
    for (key, value) in [
        (
            "variant",
            finding.variant.as_ref().map(|id| one_line(&id.to_string())),
        ),
        ("kernel", finding.kernel.as_deref().map(one_line)),
        ("metric", finding.metric.as_deref().map(one_line)),
    ] {
        if let Some(value) = value {
            properties[key] = json!(value);
        }
    }
    json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": rule_index,
        "level": level,
        "message": { "text": message(&format!(
            "{}: {}\nnext: {}", finding.subject(), finding.message, finding.next
        ))},
        "locations": [location],
        "partialFingerprints": { "sparsekGateFinding/v1": concern.fingerprint },
        "properties": properties,
    })
}

/// A plain message may contain links, `[text](place)`, and placeholders, `{0}`; text from outside
/// must not. A doubled brace is a brace (section 3.11.5 of the standard); a word joiner breaks a
/// link.
fn message(text: &str) -> String {
    clean(text)
        .replace('{', "{{")
        .replace('}', "}}")
        .replace("](", "]\u{2060}(")
}

/// A relative reference as RFC 3986 spells it.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
