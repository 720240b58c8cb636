//! Tips for errors of the command line, where they fit better than the most similar word.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::cli::Cli;
use crate::config::home;
use crate::report::form_of_file;
use crate::terms::nearest;

/// Words of other tools, and how the same is done here.
const ELSEWHERE: &str = "\
--json -f | `--format json`
--markdown --html --junit --sarif | `check` and `report` write a file with `--report FILE`; its ending is the form
--update --update-baseline --update-baselines --accept lock update accept | `baseline --lock --reason TEXT` locks what was measured
--unlock --remove --delete remove delete | `git rm 'baselines/*/SUITE/VARIANT.*'` removes a baseline
-o --output | a report is a file: `--report FILE` of `check` and `report`; the rest is printed: `>FILE`
--kernel-name --kernel-id | `kernels` in the configuration, or `--kernels` of `compare`, selects kernels
--list | `list` shows what is configured, `baseline --show` what is locked
-m --message | `--reason TEXT`
-c | `-C FILE` or `--config FILE`
--base --ref --baseline | `--against REV`: a git revision
--variant --variants --suite --filter | names of variants and suites are arguments: `check SUITE/VARIANT`
run measure test bench | `check` measures and judges, `profile` only measures
show | `baseline --show` shows what is locked, `list` what is configured
diff | `compare A B`
clean | remove the work folder `.sparsek-gate`
static | `check --static`
completion completions | `generate completions SHELL`
schema man | `generate schema` and `generate man`
version | `--version`";

/// The error with a tip.
pub fn with_tip(mut error: clap::Error, words: &[String]) -> clap::Error {
    if let ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand = error.kind() {
        let rendered = error.render().to_string();
        let wrong = rendered.split('\'').nth(1).unwrap_or_default();
        let tip = tip(wrong, words);
        for old in [
            ContextKind::Suggested,
            ContextKind::SuggestedArg,
            ContextKind::SuggestedSubcommand,
        ] {
            error.remove(old);
        }
        if let Some(tip) = tip {
            let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
            error.insert(ContextKind::Suggested, tips);
            // It is another one where the word is like an option.
            error.remove(ContextKind::Usage);
        }
    }
    if error.kind() == ErrorKind::MissingSubcommand {
        let cli = Cli::command();
        let shown = cli.get_subcommands().filter(|one| !one.is_hide_set());
        let shown = shown.map(|one| one.get_name().to_owned()).collect();
        error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(shown));
        let taken = words
            .iter()
            .find(|word| cli.find_subcommand(word).is_some());
        if let Some(word) = taken {
            let tip = StyledStr::from(format!("`{word}` was taken for the value of an option"));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
    }
    let action = words.iter().skip_while(|word| *word != "baseline").nth(1);
    let action = action.map(String::as_str);
    let meant = match action {
        Some("lock" | "show" | "verify") => action,
        Some("--reason" | "--static") => Some("lock"),
        _ => None,
    };
    if let (ErrorKind::MissingRequiredArgument, Some(action)) = (error.kind(), meant) {
        let tip = StyledStr::from(format!("did you mean `--{action}`?"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue)
    {
        let form = form_of_file(&format!(".{value}")).map(|form| form.name);
        let form = form.filter(|name| valid.iter().any(|valid| valid == name));
        let name = form.or_else(|| nearest(value, valid)).map(str::to_owned);
        error.remove(ContextKind::SuggestedValue);
        if let Some(name) = name {
            error.insert(ContextKind::SuggestedValue, ContextValue::String(name));
        }
    }
    error
}

/// What to write in the place of a word that no command, or not this one, has.
fn tip(wrong: &str, words: &[String]) -> Option<String> {
    let cli = Cli::command();
    let words = words.get(1..).unwrap_or_default();
    let is_command = |word: &String| cli.find_subcommand(word).is_some();
    let Some(at) = words.iter().position(is_command) else {
        let commands: Vec<&str> = cli.get_subcommands().map(Command::get_name).collect();
        return match words.first().is_some_and(|first| first == wrong) && wrong.starts_with('-') {
            true if wrong == "-v" || strsim::damerau_levenshtein(wrong, "--version") < 3 => {
                similar("--version")
            }
            true => Some("options of a command follow it: `check --static`".to_owned()),
            false => elsewhere(wrong).or_else(|| similar(nearest(wrong, &commands)?)),
        };
    };
    let (name, after) = (words[at].as_str(), &words[at + 1..]);
    if words[..at].iter().any(|word| word == wrong) {
        return Some("options of a command follow it: `check --static`".to_owned());
    }
    let own = options(cli.find_subcommand(name)?);
    let number = wrong.strip_prefix('-').unwrap_or_default();
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        return Some("no number is negative here".to_owned());
    }
    let Some(option) = wrong.strip_prefix('-') else {
        return match name {
            "compare" => Some(each_is_one(after)),
            "init" if wrong.ends_with(".cu") => Some(format!(
                "run `sparsek-gate init`, and write `source = \"{wrong}\"` in its config.toml"
            )),
            "init" if wrong.starts_with(['.', '/']) || after.len() > 1 => {
                let at = after.iter().position(|word| word == wrong).unwrap_or(0);
                let program = after[at..].join(" ");
                let options: String = after[..at].iter().map(|word| format!("{word} ")).collect();
                Some(format!(
                    "a program follows `--`: `sparsek-gate init {options}-- {program}`"
                ))
            }
            "init" => Some("`init` writes config.toml here, or the FILE of `--config`".to_owned()),
            "generate" if after.first().is_some_and(|what| what == "schema") => {
                Some(format!("the schema is printed: `generate schema >{wrong}`"))
            }
            "generate" if after.first().is_some_and(|what| what == "man") => {
                Some(match cli.find_subcommand(wrong) {
                    Some(_) => format!("`--output man1`, and `man man1/sparsek-gate-{wrong}.1`"),
                    None => format!("`--output {wrong}`"),
                })
            }
            _ => elsewhere(wrong),
        };
    };
    // `-static` is read as `-s -t -a ...`.
    let in_one = after.iter().find_map(|word| {
        let word = word
            .strip_prefix(wrong)
            .map(|rest| format!("-{wrong}{rest}"))?;
        (own.contains(&word) && !wrong.starts_with("--")).then_some(word)
    });
    if let Some(word) = in_one {
        return similar(&word);
    }
    let mut before = after.iter().take_while(|word| *word != wrong);
    if name == "compare" && before.any(|word| !word.starts_with('-')) {
        return Some(each_is_one(after));
    }
    let others = cli.get_subcommands();
    let others = others.filter(|other| options(other).iter().any(|one| one == wrong));
    let others: Vec<String> = others.map(|it| format!("`{}`", it.get_name())).collect();
    let of_others = || format!("`{wrong}` is an option of {}", others.join(", "));
    let key = option.strip_prefix('-').unwrap_or_default();
    let key = home(&key.replace('-', "_"), false);
    let key = key.map(|place| format!("in the configuration, {place}"));
    let meant = (!others.is_empty()).then(of_others).into_iter().chain(key);
    let meant: Vec<String> = meant.collect();
    let long: Vec<&str> = own.iter().filter_map(|it| it.strip_prefix("--")).collect();
    let near = nearest(wrong.trim_start_matches('-'), &long);
    let near = near.map(|name| format!("--{name}"));
    let slip = near.as_deref();
    let slip = slip.filter(|own| strsim::damerau_levenshtein(own, wrong) == 1);
    elsewhere(wrong)
        .or_else(|| similar(slip?))
        .or_else(|| (!meant.is_empty()).then(|| meant.join("; ")))
        .or_else(|| similar(near.as_deref()?))
        .or_else(|| {
            let quoted =
                format!("one of a program stands in its quotes: compare './a {wrong}' ./b");
            (name == "compare").then_some(quoted)
        })
}

fn similar(name: &str) -> Option<String> {
    Some(format!("did you mean `{name}`?"))
}

fn elsewhere(wrong: &str) -> Option<String> {
    let mut lines = ELSEWHERE.lines().filter_map(|line| line.split_once(" | "));
    let found = lines.find(|(names, _)| names.split(' ').any(|name| name == wrong));
    found.map(|(_, tip)| tip.to_owned())
}

/// The options of a command, with their dashes.
fn options(command: &Command) -> Vec<String> {
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let names = shown.flat_map(|one| {
        let long = one.get_long().map(|name| format!("--{name}"));
        long.into_iter()
            .chain(one.get_short().map(|c| format!("-{c}")))
    });
    names.collect()
}

fn each_is_one(words: &[String]) -> String {
    let first = words.iter().position(|word| word.starts_with(['.', '/']));
    let programs = &words[first.unwrap_or_default()..];
    let quoted = quoted_programs(programs);
    format!("each program is one argument, with its options: {quoted}")
}

/// A call of `compare` in which each program is one argument with its own arguments.
pub fn quoted_programs(words: &[String]) -> String {
    let mut programs: Vec<String> = Vec::new();
    for word in words {
        match programs.last_mut() {
            // Another path is another program.
            Some(program) if !word.starts_with(['.', '/']) => program.extend([" ", word]),
            _ => programs.push(word.clone()),
        }
    }
    format!("compare {}", shell_words::join(programs))
}
