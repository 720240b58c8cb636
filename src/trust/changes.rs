//! What a change does to the policy that it is judged by, in words.

use std::collections::BTreeSet;

use jiff::civil::Date;
use toml::{Table, Value};

use super::policy::{is_code, of_base_always, variant_of};
use crate::config::{Key, KeyCounts, Waiver};
use crate::terms::VariantId;

/// Which way a change of the policy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Stricter than before.
    Tightens,
    /// Less strict than before, or unknown.
    Loosens,
    /// A stated number of the code, which takes effect at once: only a measurement verifies it.
    States,
}

/// One change of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// What it does, behind `this change`.
    pub text: String,
    pub way: Way,
    pub variant: Option<VariantId>,
}

/// Every key that differs and is not of the code, in the order of the keys.
pub(super) fn changes(base: &Table, head: &Table) -> Vec<Change> {
    let mut found = Vec::new();
    walk_tables(&[], base, head, &mut found);
    found
}

fn walk_tables(path: &[&str], before: &Table, after: &Table, found: &mut Vec<Change>) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let mut path = path.to_vec();
        path.push(key);
        walk(&path, before.get(key), after.get(key), found);
    }
}

fn walk(path: &[&str], before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    if before == after {
        return;
    }
    let mut note = |way: Way, text: String| {
        found.push(Change {
            text,
            way,
            variant: variant_of(path),
        });
    };
    if is_code(path) {
        if before.is_some() && Key::at(path).counts == KeyCounts::Stated {
            note(Way::States, set(path, before, after));
        }
        return;
    }
    match (path, before, after) {
        (["waiver"], ..) => waivers(before, after, found),
        (["metric"], None, Some(_)) => {
            let text = "states metrics of its own in the place of those by default";
            note(Way::Loosens, text.to_owned());
        }
        (["metric", alias], None, Some(new)) => {
            // What counts the work changes what must add up.
            let way = loosens_if(new.get("counts").is_some());
            note(way, format!("adds the metric `{alias}`"));
        }
        (["metric", alias], Some(was), None) => {
            let recorded = was.get("level").and_then(Value::as_str) == Some("record");
            let verb = if recorded { "records" } else { "judges" };
            note(Way::Loosens, format!("no longer {verb} `{alias}`"));
        }
        (["suite", suite], None, Some(_)) => {
            note(Way::Tightens, format!("adds the suite `{suite}`"));
        }
        (["suite", suite], Some(_), None) => {
            note(Way::Loosens, format!("removes the suite `{suite}`"));
        }
        (["suite", suite, "variant", variant], Some(_), None) => {
            note(
                Way::Loosens,
                format!("removes the variant {suite}/{variant}"),
            );
        }
        (["suite", suite, "variant", variant], None, Some(Value::Table(new))) => {
            for key in new.keys().filter(|key| of_base_always(path, key)) {
                note(
                    Way::Loosens,
                    format!("gives the new variant {suite}/{variant} a `{key}` of its own"),
                );
            }
        }
        ([_, alias, .., last], ..) if Key::at(path).stricter == Some("tolerance") => {
            let name = match path {
                [_, _, "on", _] => format!("`{alias}` on {last}"),
                _ => format!("`{alias}`"),
            };
            for (way, text) in tolerances(name, before, after) {
                note(way, text);
            }
        }
        (_, Some(Value::Table(before)), Some(Value::Table(after))) => {
            walk_tables(path, before, after, found);
        }
        // A table is reported key by key; an empty one may replace another.
        (_, Some(Value::Table(table)), None) | (_, None, Some(Value::Table(table)))
            if table.is_empty() =>
        {
            note(Way::Loosens, set(path, before, after));
        }
        (_, Some(Value::Table(before)), None) => {
            walk_tables(path, before, &Table::new(), found);
        }
        (_, None, Some(Value::Table(after))) => walk_tables(path, &Table::new(), after, found),
        _ => {
            let way = loosens_if(!tightens(&Key::at(path), before, after));
            note(way, set(path, before, after));
        }
    }
}

fn loosens_if(loosens: bool) -> Way {
    if loosens { Way::Loosens } else { Way::Tightens }
}

/// Whether a change of a key that is no table is known to make the gate stricter.
fn tightens(key: &Key, before: Option<&Value>, after: Option<&Value>) -> bool {
    let before = before.or(key.absent.as_ref());
    let after = after.or(key.absent.as_ref());
    let is = |flag: bool| after.and_then(Value::as_bool) == Some(flag);
    let within = |few: Option<&Value>, many: Option<&Value>| {
        list(few).iter().all(|item| list(many).contains(item))
    };
    match key.stricter {
        Some("true") => is(true),
        Some("false") => is(false),
        Some("fewer") => after.is_some() && within(after, before),
        Some("further") => before.is_some() && after.is_some() && within(before, after),
        Some(more @ ("more" | "less")) => {
            match (before.and_then(number), after.and_then(number)) {
                (Some(was), Some(is)) if more == "more" => is > was,
                (Some(was), Some(is)) => is < was,
                // Without the key there is no bound.
                (None, Some(_)) => before.is_some(),
                _ => false,
            }
        }
        Some("level") => match (rank(before), rank(after)) {
            (Some(was), Some(is)) => is > was,
            (None, Some(is)) => is == STRICTEST,
            _ => false,
        },
        _ => false,
    }
}

/// The rank of the level `deny`.
const STRICTEST: u8 = 2;

/// How strict a level is.
fn rank(level: Option<&Value>) -> Option<u8> {
    match level.and_then(Value::as_str)? {
        "deny" => Some(STRICTEST),
        "warn" => Some(1),
        "record" => Some(0),
        _ => None,
    }
}

/// How the tolerances of a metric change: as one where each side has one for both comparisons.
fn tolerances(name: String, before: Option<&Value>, after: Option<&Value>) -> Vec<(Way, String)> {
    let is_one = |value: Option<&Value>| value.is_none_or(Value::is_str);
    if is_one(before) && is_one(after) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        return tolerance(&name, text(before), text(after))
            .into_iter()
            .collect();
    }
    let beside = format!("{name} side by side");
    let kinds = [("stored", name), ("against", beside)];
    let each = kinds.iter().filter_map(|(kind, name)| {
        let of = |value: Option<&Value>| {
            let own = value.and_then(|value| value.get(kind)).or(value);
            own.and_then(Value::as_str).map(str::to_owned)
        };
        tolerance(name, of(before), of(after))
    });
    each.collect()
}

/// `3 %`, or `1.5` in the counter's unit; `None` where nothing changes.
fn tolerance(name: &str, before: Option<String>, after: Option<String>) -> Option<(Way, String)> {
    let parts = |text: &str| {
        let number = text.strip_suffix('%').map_or(text, str::trim_end);
        Some((number != text, number.parse::<f64>().ok()?))
    };
    let (was, is) = (
        before.as_deref().and_then(parts),
        after.as_deref().and_then(parts),
    );
    let (way, verb) = match (was, is) {
        _ if before == after => return None,
        (Some((of_was, was)), Some((of_is, is))) if of_was == of_is && is < was => {
            (Way::Tightens, "tightens")
        }
        (Some((of_was, was)), Some((of_is, is))) if of_was == of_is && is > was => {
            (Way::Loosens, "loosens")
        }
        _ => (Way::Loosens, "changes the tolerance of"),
    };
    let word = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    Some((
        way,
        format!("{verb} {name} from {} to {}", word(before), word(after)),
    ))
}

fn waivers(before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    let all = |value: Option<&Value>| -> Vec<Waiver> {
        let list = value.and_then(Value::as_array);
        let list = list.into_iter().flatten().cloned();
        list.filter_map(|waiver| waiver.try_into().ok()).collect()
    };
    let (before, after) = (all(before), all(after));
    let mut note = |waiver: &Waiver, way: Way, text: String| {
        found.push(Change {
            text,
            way,
            variant: Some(waiver.variant.clone()),
        });
    };
    let covers_as = |one: &Waiver, other: &Waiver| {
        (&one.variant, &one.metric) == (&other.variant, &other.metric)
    };
    for waiver in after.iter().filter(|waiver| !before.contains(waiver)) {
        let what = &waiver.metric;
        let day = |day: Option<Date>| day.map_or("the merge".to_owned(), |day| day.to_string());
        let until = day(waiver.expires);
        let by = format!("by {}: {}", waiver.who, waiver.reason);
        let alike = before.iter().filter(|was| covers_as(was, waiver));
        // Without a day it ends with the merge, before every day.
        let last = alike.clone().map(|was| was.expires).max();
        let (text, to) = match last {
            None => (format!("adds a waiver of `{what}`"), "until"),
            Some(last) if waiver.expires == last => {
                (format!("replaces the waiver of `{what}`"), "until")
            }
            Some(last) => {
                let shorter = waiver.expires < last;
                let verb = if shorter { "shortens" } else { "extends" };
                let from = day(last);
                (format!("{verb} the waiver of `{what}` from {from}"), "to")
            }
        };
        // One of the same size that ends sooner is no looser than that one.
        let within = |was: &Waiver| was.up_to == waiver.up_to && was.expires > waiver.expires;
        let size = match waiver.up_to {
            None => " up to twice its tolerance".to_owned(),
            Some(size) => format!(" up to {}", size.display(None)),
        };
        let way = loosens_if(!alike.clone().any(within));
        note(waiver, way, format!("{text} {to} {until}{size} {by}"));
    }
    for waiver in before {
        if !after.iter().any(|is| covers_as(is, &waiver)) {
            let text = format!("removes the waiver of `{}`", waiver.metric);
            note(&waiver, Way::Tightens, text);
        }
    }
}

fn set(path: &[&str], before: Option<&Value>, after: Option<&Value>) -> String {
    let key = path.join(".");
    match (before, after) {
        (Some(_), None) => format!("no longer sets `{key}`, which was {}", written(before)),
        (None, _) => format!("sets `{key}` to {}", written(after)),
        _ => format!(
            "changes `{key}` from {} to {}",
            written(before),
            written(after)
        ),
    }
}

fn written(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

fn number(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn list(value: Option<&Value>) -> Vec<&str> {
    let list = value.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(base: &str, head: &str) -> Vec<(Way, String)> {
        let table = |text: &str| -> Table { toml::from_str(text).unwrap() };
        changes(&table(base), &table(head))
            .into_iter()
            .map(|change| (change.way, change.text))
            .collect()
    }

    #[test]
    fn each_change_says_which_way_it_goes() {
        let waiver = |expires: &str| {
            format!(
                "[[waiver]]\nvariant = \"s/v\"\nmetric = \"duration\"\nreason = \"r\"\nwho = \"w\"\nexpires = {expires}"
            )
        };
        let merge = waiver("M").replace("expires = M", "");
        let (soon, late) = (waiver("2026-12-01"), waiver("\"2026-12-31\""));
        let sized = format!("{soon}\nup_to = \"5 %\"");
        let table = r#"
Loosens | metric.m.tolerance = '3 %' | metric.m.tolerance = '5 %' | loosens `m` from 3 % to 5 %
Loosens | suite.s.variant.v.immutable = true | suite.s.variant.v.immutable = true\nsuite.s.variant.v.work = {} | sets `suite.s.variant.v.work` to {}
Loosens | metric.m.tolerance = '1.5' | metric.m.tolerance = '1 %' | changes the tolerance of `m` from 1.5 to 1 %
Loosens | metric.m.on.s = { stored = '1', against = '1' } | metric.m.on.s = { stored = '1', against = '1.5' } | loosens `m` on s side by side from 1 to 1.5
Loosens | metric.m = { min = 1 } | metric.m = { min = 1, on.s = '1' } | changes the tolerance of `m` on s from none to 1
Loosens | metric.m.min = 1 | | no longer judges `m`
Loosens | | metric.m.min = 1 | states metrics of its own in the place of those by default
Loosens | | SOON | adds a waiver of `duration` until 2026-12-01 up to twice its tolerance by w: r
Loosens | SOON | SIZED | replaces the waiver of `duration` until 2026-12-01 up to 5 % by w: r
Loosens | | MERGE | adds a waiver of `duration` until the merge up to twice its tolerance by w: r
Loosens | MERGE | SOON | extends the waiver of `duration` from the merge to 2026-12-01 up to twice its tolerance by w: r
Loosens | SIZED | SOON | replaces the waiver of `duration` until 2026-12-01 up to twice its tolerance by w: r
Loosens | SOON | LATE | extends the waiver of `duration` from 2026-12-01 to 2026-12-31 up to twice its tolerance by w: r
Loosens | a.key.of_the_future = 1 | a.key.of_the_future = 2 | changes `a.key.of_the_future` from 1 to 2
Tightens | verify.sanitizer = [] | verify.sanitizer = ["memcheck"] | changes `verify.sanitizer` from [] to ["memcheck"]
Tightens | metric.m.tolerance = { against = '1.5' } | metric.m.tolerance = { against = '1' } | tightens `m` side by side from 1.5 to 1
Tightens | metric.l.min = 1 | metric.l.min = 1\nmetric.m.min = 1 | adds the metric `m`
Tightens | LATE | MERGE | shortens the waiver of `duration` from 2026-12-31 to the merge up to twice its tolerance by w: r
Tightens | LATE | SOON | shortens the waiver of `duration` from 2026-12-31 to 2026-12-01 up to twice its tolerance by w: r
Tightens | SOON | | removes the waiver of `duration`
Tightens | paths.unread = ['*.md'] | | no longer sets `paths.unread`, which was ["*.md"]
States | suite.s.variant.v.dynamic_shared_bytes = 128 | suite.s.variant.v.dynamic_shared_bytes = 256 | changes `suite.s.variant.v.dynamic_shared_bytes` from 128 to 256
States | suite.s.variant.v.threads_per_block = 128 | suite.s.variant.v.threads_per_block = 256 | changes `suite.s.variant.v.threads_per_block` from 128 to 256
"#;
        for [way, base, head, text] in crate::files::tests::rows(table) {
            let [base, head] = [base, head].map(|config| {
                let config = config
                    .replace("SOON", &soon)
                    .replace("SIZED", &sized)
                    .replace("LATE", &late)
                    .replace("MERGE", &merge);
                config.replace("\\n", "\n")
            });
            let found = of(&base, &head);
            let found: Vec<_> = found
                .iter()
                .map(|(way, text)| (format!("{way:?}"), &**text))
                .collect();
            assert_eq!(found, [(way.to_owned(), text)], "{base} -> {head}");
        }
    }

    /// Which way every change of every key goes. Each pair of values that a key with a direction can have is
    /// tried, and any pair on the others. Keys that go the same ways stand together.
    #[test]
    fn every_change_of_every_key_goes_the_way_that_its_entry_says() {
        const VALUES: [&str; 14] = [
            "", "1", "2", "true", "false", "[]", "['a']", "['a', 'b']", "'record'", "'warn'",
            "'deny'", "'1'", "'2'", "'1 %'",
        ];
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in crate::config::all_keys() {
            // What stands in a named table is tried in one of them.
            let is_tolerance = path.iter().any(|it| it == "on");
            if matches!(path.last().map(String::as_str), Some("*" | "waiver")) && !is_tolerance {
                continue;
            }
            let table = |value: &str| {
                let names: Vec<String> = path.iter().map(|it| it.replace('*', "x")).collect();
                let (key, tables) = names.split_last().unwrap();
                let prefix: String = tables.iter().map(|it| format!("{it}.")).collect();
                let set = match value {
                    "" => String::new(),
                    _ => format!("{prefix}{key} = {value}"),
                };
                toml::from_str::<Table>(&format!("{prefix}beside = 1\n{set}")).unwrap()
            };
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            let stricter = Key::at(&names).stricter;
            let fits = |value: &&str| {
                let is_one_of = |all: &[&str]| all.contains(value);
                value.is_empty()
                    || match stricter {
                        Some("true" | "false") => is_one_of(&["true", "false"]),
                        Some("more" | "less") => is_one_of(&["1", "2"]),
                        Some("fewer" | "further") => value.starts_with('['),
                        Some("level") => is_one_of(&["'record'", "'warn'", "'deny'"]),
                        Some("tolerance") => value.starts_with("'1") || value.starts_with("'2"),
                        _ => true,
                    }
            };
            let mut ways = Vec::new();
            for from in VALUES.into_iter().filter(fits) {
                for to in VALUES.into_iter().filter(|to| fits(to) && *to != from) {
                    let found = changes(&table(from), &table(to));
                    let all: Vec<Way> = found.iter().map(|one| one.way).collect();
                    let word =
                        |value: &'static str| if value.is_empty() { "absent" } else { value };
                    match &all[..] {
                        [] => ways.push("is code".to_owned()),
                        [Way::Loosens] => {}
                        all => ways.push(format!("{} -> {}: {all:?}", word(from), word(to))),
                    }
                }
            }
            ways.dedup();
            if ways.is_empty() {
                ways.push("every change loosens".to_owned());
            }
            let keys = groups.entry(ways.join("\n")).or_default();
            keys.push(path.join("."));
        }
        let mut text = String::new();
        for (ways, keys) in groups {
            text += &format!("{}\n    {}\n\n", ways, keys.join("\n    "));
        }
        insta::assert_snapshot!("ways_of_all_keys", text);
    }

    #[test]
    fn the_code_may_change() {
        let base = "toolchain.flags = ['-O3']\n[suite.s.variant.v]\nsource = 'a.cu'\nflags = []";
        let head = "toolchain.flags = ['-O2']\n[suite.s.variant.v]\nsource = 'b.cu'\ndefines.A = 1";
        assert_eq!(of(base, head), []);
    }
}
