//! What a change does to the policy that it is judged by, in words.

use toml::{Table, Value};

use super::policy::{STATED, is_code, variant_of};
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
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
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
        if let (Some(key), true) = (path.last(), before.is_some())
            && *key == STATED
        {
            note(Way::States, set(path, before, after));
        }
        return;
    }
    match (path, before, after) {
        (["waiver"], ..) => waivers(before, after, found),
        (["metric", alias], None, Some(_)) => {
            note(Way::Tightens, format!("adds the metric `{alias}`"));
        }
        (["metric", alias], Some(was), None) => {
            let recorded = was.get("level").and_then(Value::as_str) == Some("record");
            let word = if recorded { "recorded" } else { "judged" };
            note(Way::Loosens, format!("`{alias}` is no longer {word}"));
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
            for key in ["profile", "verify", "control"] {
                if new.contains_key(key) {
                    note(
                        Way::Loosens,
                        format!("gives the new variant {suite}/{variant} a `{key}` of its own"),
                    );
                }
            }
        }
        (["metric" | "static", alias, what @ ("tolerance" | "against")], ..) => {
            let (way, text) = tolerance(alias, what, before, after);
            note(way, text);
        }
        (["metric", alias, "tail_against"], ..) => {
            let (way, text) = tolerance(alias, "tail_against", before, after);
            note(way, text);
        }
        (["metric", alias, "tail"], ..) => {
            let (way, text) = tolerance(alias, "tail", before, after);
            // Without the key no tail is judged.
            let way = if before.is_none() { Way::Tightens } else { way };
            note(way, text);
        }
        (
            [
                "metric",
                alias,
                "on",
                of,
                what @ ("tolerance" | "against" | "tail" | "tail_against"),
            ],
            ..,
        ) => {
            let (way, text) = tolerance(alias, what, before, after);
            note(way, format!("on {of} {text}"));
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
            let (way, text) = leaf(path, before, after);
            note(way, text);
        }
    }
}

/// A change of a key that is not a table.
fn leaf(path: &[&str], before: Option<&Value>, after: Option<&Value>) -> (Way, String) {
    let is_true = after.and_then(Value::as_bool) == Some(true);
    match path {
        ["metric" | "static", alias, "level"] => {
            let by_default = path.first() == Some(&"metric");
            level(alias, by_default, before, after)
        }
        ["metric" | "static", alias, bound @ ("min" | "max")] => {
            let tightens = match (before.and_then(number), after.and_then(number)) {
                (None, Some(_)) => true,
                (Some(was), Some(is)) if *bound == "min" => is > was,
                (Some(was), Some(is)) => is < was,
                _ => false,
            };
            let way = loosens_if(!tightens);
            (way, format!("{} (`{alias}`)", set(path, before, after)))
        }
        ["static", alias, "unless_as_fast"] => {
            let strict = after.and_then(Value::as_bool) == Some(false);
            let word = match strict {
                true => "counts also where the duration is not worse",
                false => "may only warn where the duration is not worse",
            };
            (
                loosens_if(!strict),
                format!("a regression of the static metric `{alias}` {word}"),
            )
        }
        // Either way: a wider band keeps an unchanged kernel open, and a narrower one lets it pass.
        ["suite", suite, "variant", variant, "control"] => {
            let without = after.and_then(Value::as_bool) == Some(false);
            let word = if without {
                "no longer widens"
            } else {
                "widens"
            };
            let text =
                format!("the displacement of the control {word} the bands of {suite}/{variant}");
            (Way::Loosens, text)
        }
        ["metric", ..] | ["suite", _, "variant", ..] | ["trust", "resume"] => {
            match flag(path, is_true) {
                Some((loosens, text)) => (loosens_if(loosens), text),
                None => settings(path, before, after),
            }
        }
        _ => settings(path, before, after),
    }
}

fn loosens_if(loosens: bool) -> Way {
    if loosens { Way::Loosens } else { Way::Tightens }
}

/// A change of a level, from none to `record`, `warn` and `deny`.
fn level(
    alias: &str,
    by_default: bool,
    before: Option<&Value>,
    after: Option<&Value>,
) -> (Way, String) {
    let rank = |value: Option<&Value>| match value.and_then(Value::as_str) {
        Some("deny") => Some(2),
        Some("warn") => Some(1),
        Some("record") => Some(0),
        None if by_default => Some(2),
        _ => None,
    };
    let tightens = matches!((rank(before), rank(after)), (Some(was), Some(is)) if is > was)
        || rank(before).is_none() && rank(after) == Some(2);
    let word = |value: Option<&Value>| {
        let word = value.and_then(Value::as_str).unwrap_or("the default");
        format!("`{word}`")
    };
    let (is, was) = (word(after), word(before));
    (
        loosens_if(!tightens),
        format!("the level of `{alias}` is {is}, not {was}"),
    )
}

/// A change of a key that is true or false: whether it loosens, and what it means.
fn flag(path: &[&str], is_true: bool) -> Option<(bool, String)> {
    Some(match path {
        ["metric", alias, "unless_faster"] if is_true => (
            true,
            format!("a regression of `{alias}` only warns where the kernel became faster"),
        ),
        ["metric", alias, "unless_faster"] => (
            false,
            format!("a regression of `{alias}` counts also where the kernel became faster"),
        ),
        ["suite", suite, "variant", variant, "immutable"] => {
            let word = if is_true { "is now" } else { "is no longer" };
            (!is_true, format!("{suite}/{variant} {word} immutable"))
        }
        ["suite", suite, "variant", variant, "loaded_code"] => {
            let word = if is_true { "is now" } else { "is no longer" };
            (
                !is_true,
                format!("the machine code that {suite}/{variant} loads {word} judged"),
            )
        }
        ["suite", suite, "variant", variant, "experimental"] if is_true => (
            true,
            format!("{suite}/{variant} is left out of checks, as experimental"),
        ),
        ["suite", suite, "variant", variant, "experimental"] => (
            false,
            format!("{suite}/{variant} is no longer experimental"),
        ),
        ["trust", "resume"] => {
            let word = if is_true { "may" } else { "may no longer" };
            let text = format!("runs of a change {word} go on with what an interrupted one left");
            (is_true, text)
        }
        _ => return None,
    })
}

/// A change of any other key.
fn settings(path: &[&str], before: Option<&Value>, after: Option<&Value>) -> (Way, String) {
    let change = || set(path, before, after);
    match path {
        ["trust", "public_keys"] => (
            Way::Loosens,
            format!(
                "the keys that may sign locks are {}, not {}",
                written(after),
                written(before)
            ),
        ),
        [
            "toolchain",
            tool @ ("nvcc" | "ncu" | "compute_sanitizer" | "cupti"),
        ] => (
            Way::Loosens,
            format!(
                "{tool} is taken from {}, not from {}",
                place(after),
                place(before)
            ),
        ),
        ["paths", "baselines"] => {
            let folder = |value: Option<&Value>| {
                let folder = value.and_then(Value::as_str);
                folder.unwrap_or("baselines").to_owned()
            };
            let (is, was) = (folder(after), folder(before));
            (
                Way::Loosens,
                format!("the folder of baselines is `{is}`, not `{was}`"),
            )
        }
        ["env_pass"] | ["paths", "unread"] => {
            let no_new = list(after).iter().all(|name| list(before).contains(name));
            (loosens_if(!no_new), change())
        }
        [.., "profile", "launches" | "processes"] => {
            let (was, is) = (before.and_then(number), after.and_then(number));
            let more = was.zip(is).is_some_and(|(was, is)| is > was);
            (loosens_if(!more), change())
        }
        [.., "verify", "sanitizer"] => {
            let has_all = list(before).iter().all(|tool| list(after).contains(tool));
            // Without the key those of the outer table count.
            let inherits = path.first() == Some(&"suite") && (before.is_none() || after.is_none());
            (loosens_if(!has_all || inherits), change())
        }
        [.., "verify", "always"] => {
            let is_on = after.and_then(Value::as_bool) == Some(true);
            (loosens_if(!is_on), change())
        }
        [.., "profile", "accept_tiers"] => {
            let no_new = list(after).iter().all(|tier| list(before).contains(tier));
            // Without the key those of the outer table count.
            (loosens_if(!no_new || after.is_none()), change())
        }
        _ => (Way::Loosens, change()),
    }
}

/// `3 %`, or `1.5` in the counter's unit.
fn tolerance(
    alias: &str,
    what: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) -> (Way, String) {
    let parts = |value: Option<&Value>| {
        let value = value?;
        let of = |kind: &str| value.get(kind).and_then(number);
        of("relative_percent")
            .map(|size| (true, size))
            .or_else(|| of("absolute").map(|size| (false, size)))
    };
    let word = |value: Option<&Value>| match parts(value) {
        Some((true, size)) => format!("{size} %"),
        Some((false, size)) => format!("{size}"),
        None if what == "tail" => "none".to_owned(),
        None => "the default".to_owned(),
    };
    let name = match what {
        "against" => format!("`{alias}` side by side"),
        "tail" => format!("the tail of `{alias}`"),
        "tail_against" => format!("the tail of `{alias}` side by side"),
        _ => format!("`{alias}`"),
    };
    let (way, verb) = match (parts(before), parts(after)) {
        (Some((of_was, was)), Some((of_is, is))) if of_was == of_is && is < was => {
            (Way::Tightens, "tightens")
        }
        (Some((of_was, was)), Some((of_is, is))) if of_was == of_is && is > was => {
            (Way::Loosens, "loosens")
        }
        _ if what == "tail" => (Way::Loosens, "changes"),
        _ => (Way::Loosens, "changes the tolerance of"),
    };
    (
        way,
        format!("{verb} {name} from {} to {}", word(before), word(after)),
    )
}

fn waivers(before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    let all = |value: Option<&Value>| -> Vec<Waived> {
        let list = value.and_then(Value::as_array);
        list.into_iter().flatten().map(Waived::of).collect()
    };
    let (before, after) = (all(before), all(after));
    let mut note = |waiver: &Waived, way: Way, text: String| {
        found.push(Change {
            text,
            way,
            variant: VariantId::try_from(waiver.variant.clone()).ok(),
        });
    };
    for waiver in after.iter().filter(|waiver| !before.contains(waiver)) {
        let what = &waiver.metric;
        let until = &waiver.expires;
        let by = format!("by {}: {}", waiver.who, waiver.reason);
        let alike: Vec<&Waived> = before.iter().filter(|was| was.covers_as(waiver)).collect();
        let last = alike.iter().map(|was| &was.expires).max();
        match last {
            None => note(
                waiver,
                Way::Loosens,
                format!("adds a waiver of `{what}` until {until} {by}"),
            ),
            // Dates are compared as they are written, year first.
            Some(last) if until < last => note(
                waiver,
                Way::Tightens,
                format!("shortens the waiver of `{what}` from {last} to {until} {by}"),
            ),
            Some(last) if until > last => note(
                waiver,
                Way::Loosens,
                format!("extends the waiver of `{what}` from {last} to {until} {by}"),
            ),
            Some(_) => note(
                waiver,
                Way::Loosens,
                format!("replaces the waiver of `{what}` until {until} {by}"),
            ),
        }
    }
    for waiver in before {
        if !after.iter().any(|is| is.covers_as(&waiver)) {
            let text = format!("removes the waiver of `{}`", waiver.metric);
            note(&waiver, Way::Tightens, text);
        }
    }
}

/// A waiver, as written.
#[derive(PartialEq)]
struct Waived {
    variant: String,
    metric: String,
    who: String,
    reason: String,
    expires: String,
}

impl Waived {
    fn of(value: &Value) -> Waived {
        let text = |key: &str| match value.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        Waived {
            variant: text("variant"),
            metric: text("metric"),
            who: text("who"),
            reason: text("reason"),
            expires: text("expires"),
        }
    }

    fn covers_as(&self, other: &Waived) -> bool {
        self.variant == other.variant && self.metric == other.metric
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

fn place(value: Option<&Value>) -> String {
    value
        .and_then(Value::as_str)
        .map_or_else(|| "the usual places".to_owned(), |path| format!("`{path}`"))
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
        use Way::{Loosens, States, Tightens};
        let waiver = |expires: &str| {
            format!(
                "[[waiver]]\nvariant = \"s/v\"\nmetric = \"duration\"\nreason = \"r\"\nwho = \"w\"\nexpires = {expires}"
            )
        };
        let (soon, late) = (waiver("2026-12-01"), waiver("\"2026-12-31\""));
        for (base, head, way, text) in [
            (
                "metric.m.tolerance.relative_percent = 3",
                "metric.m.tolerance.relative_percent = 5.0",
                Loosens,
                "loosens `m` from 3 % to 5 %",
            ),
            (
                "suite.s.variant.v.immutable = true",
                "suite.s.variant.v.immutable = true\nsuite.s.variant.v.work = {}",
                Loosens,
                "sets `suite.s.variant.v.work` to {}",
            ),
            (
                "suite.s.immutable = true",
                "suite.s.immutable = true\nsuite.s.verify.sanitizer = []",
                Loosens,
                "sets `suite.s.verify.sanitizer` to []",
            ),
            (
                "verify.always = false",
                "verify.always = true",
                Tightens,
                "changes `verify.always` from false to true",
            ),
            (
                "verify.always = true",
                "",
                Loosens,
                "no longer sets `verify.always`, which was true",
            ),
            (
                "verify.sanitizer = []",
                "verify.sanitizer = [\"memcheck\"]",
                Tightens,
                "changes `verify.sanitizer` from [] to [\"memcheck\"]",
            ),
            (
                "metric.m.against.absolute = 1.5",
                "metric.m.against.absolute = 1.0",
                Tightens,
                "tightens `m` side by side from 1.5 to 1",
            ),
            (
                "metric.m.tolerance.absolute = 1.5",
                "metric.m.tolerance.relative_percent = 1.0",
                Loosens,
                "changes the tolerance of `m` from 1.5 to 1 %",
            ),
            (
                "metric.m.on.s.against.absolute = 1.0",
                "metric.m.on.s.against.absolute = 1.5",
                Loosens,
                "on s loosens `m` side by side from 1 to 1.5",
            ),
            (
                "metric.m = { min = 1 }",
                "metric.m = { min = 1, on.s.tolerance.absolute = 1.0 }",
                Loosens,
                "on s changes the tolerance of `m` from the default to 1",
            ),
            (
                "metric.m = { min = 1 }",
                "metric.m = { min = 1, tail.absolute = 5.0 }",
                Tightens,
                "changes the tail of `m` from none to 5",
            ),
            (
                "metric.m = { min = 1, tail.relative_percent = 5.0 }",
                "metric.m = { min = 1 }",
                Loosens,
                "changes the tail of `m` from 5 % to none",
            ),
            (
                "metric.m = { min = 1, tail.absolute = 5.0 }",
                "metric.m = { min = 1, tail.absolute = 5.0, tail_against.absolute = 2.0 }",
                Loosens,
                "changes the tolerance of the tail of `m` side by side from the default to 2",
            ),
            (
                "metric.m.on.s.tail_against.absolute = 1.0",
                "metric.m.on.s.tail_against.absolute = 1.5",
                Loosens,
                "on s loosens the tail of `m` side by side from 1 to 1.5",
            ),
            ("metric.m.min = 1", "", Loosens, "`m` is no longer judged"),
            ("", "metric.m.min = 1", Tightens, "adds the metric `m`"),
            (
                "metric.m.counter = 'c'",
                "metric.m = { counter = 'c', level = 'record' }",
                Loosens,
                "the level of `m` is `record`, not `the default`",
            ),
            (
                "metric.m.level = 'warn'",
                "metric.m.level = 'deny'",
                Tightens,
                "the level of `m` is `deny`, not `warn`",
            ),
            (
                "static.registers.level = 'deny'",
                "",
                Loosens,
                "the level of `registers` is `the default`, not `deny`",
            ),
            (
                "metric.m.max = 4",
                "metric.m.max = 5",
                Loosens,
                "changes `metric.m.max` from 4 to 5 (`m`)",
            ),
            (
                "",
                &soon,
                Loosens,
                "adds a waiver of `duration` until 2026-12-01 by w: r",
            ),
            (
                &soon,
                &late,
                Loosens,
                "extends the waiver of `duration` from 2026-12-01 to 2026-12-31 by w: r",
            ),
            (
                &late,
                &soon,
                Tightens,
                "shortens the waiver of `duration` from 2026-12-31 to 2026-12-01 by w: r",
            ),
            (&soon, "", Tightens, "removes the waiver of `duration`"),
            (
                "suite.s.variant.v.immutable = true",
                "suite.s.variant.v.source = 'v.cu'",
                Loosens,
                "s/v is no longer immutable",
            ),
            (
                "suite.s.variant.v.control = false",
                "suite.s.variant.v.source = 'v.cu'",
                Loosens,
                "the displacement of the control widens the bands of s/v",
            ),
            (
                "suite.s.variant.v.source = 'v.cu'",
                "suite.s.variant.v.control = false",
                Loosens,
                "the displacement of the control no longer widens the bands of s/v",
            ),
            (
                "suite.s.variant.v.dynamic_shared_bytes = 128",
                "suite.s.variant.v.dynamic_shared_bytes = 256",
                States,
                "changes `suite.s.variant.v.dynamic_shared_bytes` from 128 to 256",
            ),
            (
                "",
                "toolchain.ncu = './ncu'",
                Loosens,
                "ncu is taken from `./ncu`, not from the usual places",
            ),
            (
                "",
                "trust.resume = true",
                Loosens,
                "runs of a change may go on with what an interrupted one left",
            ),
            (
                "verify.sanitizer = ['memcheck']",
                "verify.sanitizer = ['memcheck', 'racecheck']",
                Tightens,
                "changes `verify.sanitizer` from [\"memcheck\"] to [\"memcheck\", \"racecheck\"]",
            ),
            (
                "env_pass = ['A']",
                "env_pass = ['A', 'B']",
                Loosens,
                "changes `env_pass` from [\"A\"] to [\"A\", \"B\"]",
            ),
            (
                "env_pass = ['A', 'B']",
                "env_pass = ['B']",
                Tightens,
                "changes `env_pass` from [\"A\", \"B\"] to [\"B\"]",
            ),
            (
                "paths.unread = ['*.md']",
                "paths.unread = ['*.md', '**']",
                Loosens,
                "changes `paths.unread` from [\"*.md\"] to [\"*.md\", \"**\"]",
            ),
            (
                "paths.unread = ['*.md']",
                "",
                Tightens,
                "no longer sets `paths.unread`, which was [\"*.md\"]",
            ),
            (
                "a.key.of_the_future = 1",
                "a.key.of_the_future = 2",
                Loosens,
                "changes `a.key.of_the_future` from 1 to 2",
            ),
        ] {
            assert_eq!(of(base, head), [(way, text.to_owned())], "{base} -> {head}");
        }
    }

    #[test]
    fn the_code_may_change() {
        let base = "toolchain.flags = ['-O3']\n[suite.s.variant.v]\nsource = 'a.cu'\nflags = []";
        let head = "toolchain.flags = ['-O2']\n[suite.s.variant.v]\nsource = 'b.cu'\ndefines.A = 1";
        assert_eq!(of(base, head), []);
    }
}
