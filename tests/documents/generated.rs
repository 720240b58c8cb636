//! Pages that are made from the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use clap::{Arg, CommandFactory as _};
use ncu_report::Chip;
use serde_json::{Map, Value as Json};
use sparsek_gate::binary::{STATIC_METRICS, StaticRule};
use sparsek_gate::cli::Cli;
use sparsek_gate::config::schema;
use sparsek_gate::finding::{Code, ExitCode, Reported};
use sparsek_gate::metric::{ALIASES, Direction, Level, tensor_flop};
use sparsek_gate::report::FORMS;

use crate::common::{is_generated, repository};

/// A cell of a table: one line without bars.
fn cell(text: &str) -> String {
    spaced(text).replace('|', "\\|")
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Longer texts belong into the pages.
#[test]
fn the_help_of_a_command_has_at_most_350_words() {
    let mut cli = Cli::command();
    cli.build();
    for command in cli.get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        let words = help.split_whitespace().count();
        assert!(words <= 350, "{}: {words} words", command.get_name());
    }
}

/// Whether most commands have this option. The page shows these once.
fn is_common(arg: &Arg) -> bool {
    match arg.get_id().as_str() {
        "names" | "experimental" | "config" | "color" | "no_wait" => true,
        "verbose" | "quiet" | "help" | "version" => true,
        "format" => arg.get_possible_values().len() == 2,
        _ => false,
    }
}

/// The row of an option in the table of those that most commands have.
fn common_row(arg: &Arg) -> Option<String> {
    let about = cell(&arg.get_help()?.to_string());
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("`-{short}`, `--{long}`"),
        (_, Some(long)) => format!("`--{long}`"),
        _ => "`VARIANT`".to_owned(),
    };
    let values = arg.get_possible_values();
    let values = match arg.get_id().as_str() {
        "format" => values
            .iter()
            .map(|it| format!(" `{}`", it.get_name()))
            .collect(),
        _ => String::new(),
    };
    Some(format!("| {name} | {about}{values} |\n"))
}

#[test]
fn the_page_of_commands_is_what_help_prints() {
    let mut cli = Cli::command().term_width(100).disable_help_subcommand(true);
    cli.build();
    let mut page = "# Commands\n\nThis page is generated from the text of every `--help`.\n\n\
         | command | what it does |\n|---|---|\n"
        .to_owned();
    let mut texts = String::new();
    let mut common: Vec<String> = Vec::new();
    for command in cli.get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string).unwrap();
        writeln!(page, "| [`{name}`](#{name}) | {} |", cell(&about)).unwrap();
        let mut shown = command.clone().mut_args(|arg| {
            if !is_common(&arg) {
                return arg;
            }
            let row = common_row(&arg).filter(|row| !common.contains(row));
            common.extend(row);
            if arg.is_positional() {
                arg.help("As above")
            } else {
                arg.hide(true)
            }
        });
        let help = shown.render_long_help().to_string();
        let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        let help = help.join("\n");
        write!(texts, "\n## {name}\n\n```text help\n{help}\n```\n").unwrap();
    }
    page.push_str(
        "\nAll commands exit with one of the [exit codes](exit-codes.md). Options of most commands:\n\n\
         | option | meaning |\n|---|---|\n",
    );
    page.push_str(&common.concat());
    page.push_str(&texts);
    is_generated("docs/commands.md", &page);
}

/// The type of a key in words.
fn kind(schema: &Json, definitions: &Map<String, Json>) -> String {
    if let Some(of) = schema["$ref"].as_str() {
        let name = of.rsplit('/').next().unwrap();
        return kind(&definitions[name], definitions);
    }
    if let Some([only]) = schema["allOf"].as_array().map(Vec::as_slice) {
        return kind(only, definitions);
    }
    for choices in ["oneOf", "anyOf"] {
        if let Some(all) = schema[choices].as_array() {
            let mut kinds = Vec::new();
            for one in all {
                let one = kind(one, definitions);
                if !kinds.contains(&one) {
                    kinds.push(one);
                }
            }
            return kinds.join(" or ");
        }
    }
    if let Some(text) = schema["const"].as_str() {
        return format!("`\"{text}\"`");
    }
    match schema["type"].as_str() {
        Some("array") => match kind(&schema["items"], definitions).as_str() {
            "text" => "texts".to_owned(),
            item => format!("list of: {item}"),
        },
        Some("object") => "table".to_owned(),
        Some("string") if schema["format"] == "date" => "date".to_owned(),
        Some("string") => "text".to_owned(),
        Some("integer") => "integer".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// The table of keys that a schema describes, or that it holds by name or in a list: its name in the
/// schema, and what stands behind the key's path.
fn table_of(schema: &Json, definitions: &Map<String, Json>) -> Option<(String, &'static str)> {
    let (of, more) = match (
        &schema["allOf"][0], &schema["additionalProperties"], &schema["items"],
    ) {
        (one, _, _) if one.is_object() => (one, ""),
        (_, by_name, _) if by_name.is_object() => (by_name, ".NAME"),
        (_, _, item) if item.is_object() => (item, "[]"),
        _ => return None,
    };
    let name = of["$ref"].as_str()?.rsplit('/').next()?.to_owned();
    definitions[&name]["properties"]
        .is_object()
        .then_some((name, more))
}

#[test]
fn the_page_of_keys_is_what_the_schema_says() {
    let schema: Json = serde_json::from_str(&schema()).unwrap();
    let definitions = schema["definitions"].as_object().unwrap();
    let mut page =
        "# Configuration keys\n\nThis page is generated from the schema of `config.toml`. \
         [Configuration by example](configuration.md) shows how the keys are used. A table that \
         several keys have is shown once.\n"
            .to_owned();
    // Tables in the order in which they are met; a table that several have stands once.
    let mut waiting = vec![(String::new(), schema.clone())];
    let mut seen = BTreeSet::new();
    while !waiting.is_empty() {
        let (path, table) = waiting.remove(0);
        let heading = match path.strip_suffix("[]") {
            _ if path.is_empty() => "Top level".to_owned(),
            Some(list) => format!("`[[{list}]]`"),
            None => format!("`[{path}]`"),
        };
        write!(page, "\n## {heading}\n\n").unwrap();
        if let (false, Some(about)) = (path.is_empty(), table["description"].as_str()) {
            write!(page, "{}\n\n", spaced(about)).unwrap();
        }
        page.push_str("| key | type | meaning |\n|---|---|---|\n");
        let mut below = Vec::new();
        for (key, value) in table["properties"].as_object().unwrap() {
            if value["deprecated"] == true {
                continue;
            }
            let is_table = table_of(value, definitions);
            let of = match is_table {
                Some((_, "[]")) => "list of tables".to_owned(),
                Some((_, ".NAME")) => "tables by name".to_owned(),
                Some(_) => "table".to_owned(),
                None => kind(value, definitions),
            };
            let about = value["description"].as_str().unwrap_or_default();
            assert!(!about.is_empty(), "{path}.{key} has no description");
            writeln!(page, "| `{key}` | {} | {} |", cell(&of), cell(about)).unwrap();
            if let Some((name, more)) = is_table
                && seen.insert(name.clone())
            {
                let dot = if path.is_empty() { "" } else { "." };
                let mut table = definitions[&name].clone();
                table["description"] = Json::from(about);
                below.push((format!("{path}{dot}{key}{more}"), table));
            }
        }
        waiting.splice(0..0, below);
    }
    is_generated("docs/configuration-keys.md", &page);
}

#[test]
fn the_page_of_exit_codes_is_what_the_program_exits_with() {
    let mut page =
        "# Exit codes\n\nThis page is generated from the code. One code has one meaning.\n\n\
         | code | meaning | findings that fail with it |\n|--:|---|---|\n"
            .to_owned();
    let mut codes = ExitCode::ALL;
    codes.sort_by_key(|code| *code as u8);
    for code in codes {
        let fails = |it: &&Code| it.reported() != Reported::Warns && it.exit_code() == code;
        let findings = Code::ALL.iter().filter(fails).map(|it| it.as_str());
        let findings: BTreeSet<&str> = findings.collect();
        let named = findings.iter();
        let named: Vec<String> = named
            .map(|it| format!("[`{it}`](findings.md#{it})"))
            .collect();
        let (meaning, named) = (cell(code.meaning()), named.join(", "));
        writeln!(page, "| {} | {meaning} | {named} |", code as u8).unwrap();
    }
    page.push_str(
        "\nWith several findings, the exit code is the first of 5, 3, 4, 1, 6 that applies. So a broken \
         build is never reported as \"slower\".\n\nA signal that ends the tool itself has the shell's \
         own code, such as 137.\n",
    );
    is_generated("docs/exit-codes.md", &page);
}

/// One chip of each compute capability, with its number and name.
const CHIPS: [(&str, &str); 14] = [
    ("gv100", "7.0 V100"),
    ("gv11b", "7.2 Xavier"),
    ("tu102", "7.5 Turing"),
    ("ga100", "8.0 A100"),
    ("ga102", "8.6 Ampere"),
    ("ga10b", "8.7 Orin"),
    ("ad102", "8.9 Ada"),
    ("gh100", "9.0 Hopper"),
    ("gb100", "10.0 B200"),
    ("gb110", "10.3 B300"),
    ("gb10b", "11.0 Thor"),
    ("gb202", "12.0 Blackwell"),
    ("gb20b", "12.1 GB10"),
    ("gr100", "Rubin"),
];

#[test]
fn the_page_of_counters_is_what_the_code_measures() {
    let better = |better: Direction| match better {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
        Direction::Equal => "–",
    };
    let mut page = "# Counters by chip\n\nThis page is generated from the code.\n\n\
         A metric of the configuration is measured by a counter of ncu. `counter` names it. A metric with one of the names below needs no `counter`: it \
         has that of the chip that `toolchain.arch` names. A name that the chip does not have is an \
         error when the configuration is read. `ncu --query-metrics` lists all counters of a chip.\n\n\
         Every name that Hopper (9.0) has was measured with this tool on an H100 or H200. For other chips \
         the page says what NVIDIA lists; whether a card and its driver collect it shows there alone.\n\n"
        .to_owned();
    let chips = CHIPS.map(|(chip, head)| {
        let short = head.split(' ').next().unwrap();
        (short, Chip::named(chip).unwrap())
    });
    let heads: Vec<&str> = CHIPS.iter().map(|(_, head)| *head).collect();
    write!(
        page,
        "Chips: {}.\n\n| name | counter | better | chips | note |\n|---|---|---|---|---|\n",
        heads.join(", ")
    )
    .unwrap();
    let names = |of: Vec<(&str, Chip)>| {
        let names: Vec<&str> = of.into_iter().map(|(name, _)| name).collect();
        names.join(", ")
    };
    // tests/gpu/run.sh reads this cell.
    let cell_of_chips = |has: &dyn Fn(Chip) -> bool| {
        let of = |wanted: bool| -> Vec<(&str, Chip)> {
            let all = chips.iter().copied();
            all.filter(|(_, chip)| has(*chip) == wanted).collect()
        };
        let (there, lacking) = (of(true), of(false));
        match (there.len(), lacking.len()) {
            (_, 0) => "all".to_owned(),
            (there, lacks) if lacks < there => format!("all but {}", names(lacking)),
            _ => names(there),
        }
    };
    for alias in ALIASES {
        let counters = chips
            .iter()
            .filter_map(|(_, chip)| alias.role.on(Some(*chip)));
        let mut counters = Vec::from_iter(BTreeSet::from_iter(counters));
        let name_of_role = alias.role.counter();
        counters.sort_by_key(|counter| *counter != name_of_role);
        let notes = [alias.note, alias.lacking].into_iter();
        let notes: Vec<String> = notes.filter(|it| !it.is_empty()).map(cell).collect();
        writeln!(
            page,
            "| `{}` | `{}` | {} | {} | {} |",
            alias.name,
            counters.join("`, `"),
            better(alias.better),
            cell_of_chips(&|chip| alias.role.on(Some(chip)).is_some()),
            notes.join("; where it is lacking: ")
        )
        .unwrap();
    }
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, counter) in chips.iter().flat_map(|(_, chip)| tensor_flop(*chip)) {
        types.entry(name).or_default().insert(counter);
    }
    for (name, counters) in types {
        let has = |chip| tensor_flop(chip).iter().any(|(other, _)| *other == name);
        let counter = Vec::from_iter(counters).join("`, `");
        let chips = cell_of_chips(&has);
        writeln!(page, "| `{name}` | `{counter}` | – | {chips} | |").unwrap();
    }
    page.push_str(
        "\n`tensor_flop` without a `counter` stands for all `tensor_flop_…` of the chip: the operations \
         on the tensor cores by the type of their operands. Where one type took the place of another, \
         such as `fp8` that of `bf16`, a finding names both: lower precision is other work.\n\n\
         ## What the compiler makes\n\n`check --static` reads these from the compiled code. \
         [Some](static.md#by-generation) exist on some chips only. `[static.NAME]` changes how one is judged.\n\n\
         | name | unit | better | by default |\n|---|---|---|---|\n",
    );
    for metric in STATIC_METRICS {
        let better = match metric.direction {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
            Direction::Equal => "–",
        };
        let judged = match (metric.level, metric.rule) {
            (Level::Record, _) => "shown",
            (Level::Warn, _) => "warns if it is worse",
            (Level::Deny, StaticRule::Worse) => "fails if it is worse",
            (Level::Deny, StaticRule::NeverZero) => "fails if none is left",
            (Level::Deny, StaticRule::WhereKnown) => {
                "fails if it is worse, where the launch is known"
            }
            (Level::Deny, StaticRule::ThroughOccupancy) => {
                "fails if it is worse, and warns where the occupancy does not fall"
            }
        };
        let (name, unit) = (metric.name, metric.unit);
        writeln!(page, "| `{name}` | {unit} | {better} | {judged} |").unwrap();
    }
    page.push_str(
        "\n[Permission to read counters](permission.md) lists what is measured without counters.\n",
    );
    is_generated("docs/counters.md", &page);
}

#[test]
fn every_format_of_a_report_is_on_the_page_of_reports() {
    let page = fs::read_to_string(repository().join("docs/reports.md")).unwrap();
    let table = page.split("\n## Formats\n").nth(1).unwrap();
    let rows: String = table.lines().filter(|line| line.starts_with('|')).collect();
    for form in FORMS.iter().filter(|form| form.name != "text") {
        let has_row = rows.contains(&format!("`{}`", form.name));
        assert!(has_row, "docs/reports.md has no row for {}", form.name);
    }
}
