//! What the recipes, the printed pipelines and the pages run before a verdict: the tool, programs of the
//! machine or the image, files of the action, files of the base, and nothing that a change can edit. No
//! recipe has a step behind the verdict that needs more.

use std::fs;
use std::iter::Peekable;
use std::str::Chars;

use crate::common::{Project, published_as, repository};
use regex::Regex;
use serde::Deserialize as _;
use serde_json::Value as Json;
use sparsek_gate::engine::ENGINES;

/// Whose files a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Tool,
    Base,
    Change,
    /// Nobody said it here.
    Unknown,
}

/// Programs of the machine or the image that run no file of the folder where they start.
const TOOLS: &str = "sparsek-gate sparsek-gate-check sparsek-gate-note $gate $SPARSEK_GATE git gh curl jq \
    buildkite-agent kubectl sbatch scancel tar gzip base64 iconv sha256sum mkdir mktemp rm mv cp ln chmod cat \
    cut head tr sed grep find wc sort echo printf read exit set trap wait sleep : true cd unset shift local \
    export return uname realpath rustup dirname tail unzip word_of $kept break continue pwd umask";
/// Folders of the action, of what its steps made, and of their own temporary files.
const OWN: [&str; 8] = [
    "$GITHUB_ACTION_PATH/", "$here/", "$sources/ci/", "$folder/", "$home/", "$work/",
    "$RUNNER_TEMP/", "/",
];
/// Programs that run what their arguments name.
const WRAPPERS: [&str; 4] = ["exec", "command", "env", "isolated"];
const SHELLS: [&str; 6] = ["bash", "sh", "source", ".", "python3", "python"];

fn is_assignment(word: &str) -> bool {
    let (name, _) = word.split_once('=').unwrap_or_default();
    let name = name.trim_end_matches('+');
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// One command of a script: what stands before it, its words, and which assignments it begins with.
#[derive(Debug, Default)]
struct Simple {
    operator: String,
    assigned: Vec<String>,
    words: Vec<String>,
}

/// The commands of a script in their order, those of substitutions too.
struct Script<'a> {
    text: Peekable<Chars<'a>>,
    found: Vec<Simple>,
    functions: Vec<String>,
}

fn read(script: &str) -> Script<'_> {
    let mut read = Script {
        text: script.chars().peekable(),
        found: Vec::new(),
        functions: Vec::new(),
    };
    read.until(None);
    read
}

impl Script<'_> {
    /// Reads up to what ends a list of commands.
    fn until(&mut self, end: Option<char>) {
        let (mut now, mut word, mut quoted) = (Simple::default(), String::new(), false);
        // Between `in` or `;;` and `)` stand patterns, and behind `<` or `>` a file.
        let (mut pattern, mut file) = (false, false);
        loop {
            let next = self.text.next();
            let is_end = next.is_none() || next == end;
            let next = next.unwrap_or('\n');
            let ends_word = is_end || " \t\n;&|()<>".contains(next);
            if ends_word && (!word.is_empty() || quoted) {
                let word = std::mem::take(&mut word);
                let begins = now.words.is_empty();
                let keyword = begins && !quoted;
                let number = "<>".contains(next) && word.chars().all(|c| c.is_ascii_digit());
                match word.as_str() {
                    _ if std::mem::take(&mut file) || number => {}
                    "esac" if pattern || keyword => pattern = false,
                    _ if pattern => {}
                    "in" if now.words.first().is_some_and(|first| first == "case") => {
                        now.words.clear();
                        pattern = true;
                    }
                    "if" | "while" | "until" | "!" | "elif" if keyword => now.operator = word,
                    "[[" if keyword => self.up_to(" ]]"),
                    "then" | "else" | "fi" | "do" | "done" | "{" | "}" if keyword => {}
                    _ if begins && is_assignment(&word) => now.assigned.push(word),
                    _ => now.words.push(word),
                }
                quoted = false;
            }
            match next {
                _ if is_end => break,
                '\\' => word.extend(self.text.next().filter(|c| *c != '\n')),
                '\'' => {
                    quoted = true;
                    word.extend(self.text.by_ref().take_while(|c| *c != '\''));
                }
                '"' => {
                    quoted = true;
                    while let Some(c) = self.text.next().filter(|c| *c != '"') {
                        self.inside(c, &mut word);
                    }
                }
                '#' if word.is_empty() => while self.text.next_if(|c| *c != '\n').is_some() {},
                '(' if now
                    .words
                    .last()
                    .or(now.assigned.last())
                    .is_some_and(|word| word.ends_with('=')) =>
                {
                    self.up_to(")")
                }
                '(' if self.text.next_if_eq(&')').is_some() => {
                    self.functions.extend(now.words.pop())
                }
                '<' | '>' if self.text.next_if_eq(&'(').is_some() => self.until(Some(')')),
                '<' | '>' => {
                    file = true;
                    while self.text.next_if(|c| "<>&|".contains(*c)).is_some() {}
                }
                ' ' | '\t' => {}
                ')' if pattern => pattern = false,
                '\n' | ';' | '&' | '|' | '(' | ')' => {
                    file = false;
                    let doubled = self.text.next_if_eq(&next).is_some();
                    pattern |= next == ';' && doubled;
                    let operator = if doubled {
                        format!("{next}{next}")
                    } else {
                        next.to_string()
                    };
                    let empty = now.words.is_empty() && now.assigned.is_empty();
                    let before = std::mem::replace(
                        &mut now,
                        Simple {
                            operator,
                            ..Simple::default()
                        },
                    );
                    match empty {
                        // A new line behind `||` or `if` ends nothing.
                        true if next == '\n' => now.operator = before.operator,
                        true => {}
                        false => self.found.push(before),
                    }
                }
                c => self.inside(c, &mut word),
            }
        }
        if !now.words.is_empty() || !now.assigned.is_empty() {
            self.found.push(now);
        }
    }

    /// Reads a condition or a list: substitutions are the only commands there.
    fn up_to(&mut self, end: &str) {
        let mut text = String::new();
        while !text.ends_with(end) {
            let Some(c) = self.text.next() else { break };
            match c == '$' && self.text.next_if_eq(&'(').is_some() {
                true => self.until(Some(')')),
                false => text.push(c),
            }
        }
    }

    /// A character of a word, and what it begins.
    fn inside(&mut self, c: char, word: &mut String) {
        if c == '\\' {
            word.extend(self.text.next());
        } else if c == '`' {
            self.until(Some('`'));
        } else if c == '$' && self.text.next_if_eq(&'(').is_some() {
            word.push_str("$()");
            if self.text.next_if_eq(&'(').is_some() {
                // A sum.
                while self.text.next().is_some_and(|c| c != ')') {}
                self.text.next();
            } else {
                self.until(Some(')'));
            }
        } else if c == '$' && self.text.next_if_eq(&'{').is_some() {
            let name: String = self.text.by_ref().take_while(|c| *c != '}').collect();
            word.push('$');
            word.push_str(
                name.split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next()
                    .unwrap(),
            );
        } else {
            word.push(c);
        }
    }
}

/// Whose files a command runs, which a script has.
fn whose(words: &[String], functions: &[String]) -> Whose {
    let Some(first) = words.first().map(String::as_str) else {
        return Whose::Tool;
    };
    let rest = &words[1..];
    let path = |path: &str| match path {
        _ if OWN.iter().any(|own| path.starts_with(own)) => Whose::Tool,
        _ if path.starts_with("base/") || path.starts_with("./base/") => Whose::Base,
        _ => Whose::Change,
    };
    let options = rest.iter().take_while(|word| word.starts_with('-'));
    let (count, isolated) = (
        options.clone().count(),
        options.clone().any(|word| word == "-I"),
    );
    match first {
        "for" | "case" | "[" => Whose::Tool,
        _ if functions.iter().any(|own| own == first) && first != "isolated" => Whose::Tool,
        // It runs in a copy of the action's sources, with an environment of its own.
        "isolated"
            if rest
                .first()
                .is_some_and(|word| word == "cargo" || word == "rustup") =>
        {
            Whose::Tool
        }
        "command" if rest.first().is_some_and(|word| word == "-v") => Whose::Tool,
        _ if WRAPPERS.contains(&first) => {
            let named = rest
                .iter()
                .position(|word| !word.starts_with('-') && !word.contains('='));
            named.map_or(Whose::Tool, |at| whose(&rest[at..], functions))
        }
        "python3" if isolated => Whose::Tool,
        _ if SHELLS.contains(&first) => rest.get(count).map_or(Whose::Change, |file| path(file)),
        _ if TOOLS.split_whitespace().any(|tool| tool == first) => Whose::Tool,
        _ if first.contains('/')
            || ["make", "cmake", "cargo", "npm", "just", "eval"].contains(&first) =>
        {
            path(first)
        }
        _ => Whose::Unknown,
    }
}

/// The text of a script in a document: a text, its lines, or an argv.
fn script_of(value: &Json, is_argv: bool) -> Option<String> {
    let list = value.as_array().into_iter().flatten();
    let list: Vec<&str> = list.filter_map(Json::as_str).collect();
    match (value.as_str(), &list[..]) {
        (Some(text), _) | (None, &[_, "-c", text]) => Some(text.to_owned()),
        (None, []) => None,
        (None, words) => Some(words.join(if is_argv { " " } else { "\n" })),
    }
}

/// The scripts of a document, those of one job together, and what it uses of others.
fn scripts(document: &Json, found: &mut Vec<String>, uses: &mut Vec<String>) {
    let parts = document.as_array().into_iter().flatten();
    parts.for_each(|part| scripts(part, found, uses));
    let Some(map) = document.as_object() else {
        return;
    };
    const OF_JOB: [&str; 6] = [
        "before_script", "script", "after_script", "run", "command", "commands",
    ];
    let is_argv = map.contains_key("image");
    let own = OF_JOB
        .iter()
        .filter_map(|key| script_of(map.get(*key)?, is_argv));
    let own: Vec<String> = own.collect();
    found.extend((!own.is_empty()).then(|| own.join("\n")));
    uses.extend(map.get("uses").and_then(Json::as_str).map(str::to_owned));
    // Those of an input or an output are values.
    let values = ["with", "outputs"];
    let others = map
        .iter()
        .filter(|(key, _)| !OF_JOB.contains(&key.as_str()) && !values.contains(&key.as_str()));
    others.for_each(|(_, value)| scripts(value, found, uses));
}

/// What a run is allowed to take from elsewhere: the action, an action of a pinned commit, the base.
fn may_use(uses: &str, text: &str) -> bool {
    let pinned = Regex::new(r"^[\w./-]+@[0-9a-f]{40}$").unwrap();
    let (name, _) = uses.split_once('@').unwrap_or((uses, ""));
    match name {
        // What other runs left there is run or read as if this one had made it.
        _ if name.starts_with("actions/cache") => false,
        "./base" => text.contains("pull_request.base.sha"),
        // The workflow files of the base.
        _ if name.starts_with("./.github/workflows/") => text.contains("pull_request_target:"),
        _ => pinned.is_match(uses) || name.split('/').take(2).eq(published_as().split('/')),
    }
}

/// What is wrong in a script: whose files it runs, and what it takes for a step's success.
fn wrong(script: &str, is_fresh: bool) -> Vec<String> {
    let read = read(script);
    let mut wrong = Vec::new();
    let mut removed: Vec<&str> = Vec::new();
    let mut before: Option<&Simple> = None;
    for simple in &read.found {
        let whose = whose(&simple.words, &read.functions);
        if ![Whose::Tool, Whose::Base].contains(&whose) {
            wrong.push(format!("{whose:?}: {:?}", simple.words));
        }
        let is_gate = |one: &Simple| {
            let words = one
                .words
                .iter()
                .map(String::as_str)
                .filter(|word| *word != "exec");
            let words: Vec<&str> = words.collect();
            let measures = ["archive", "profile", "check"];
            words
                .first()
                .is_some_and(|word| word.starts_with("sparsek-gate") || *word == "$gate")
                && (words[0] == "sparsek-gate-check"
                    || words.iter().any(|word| measures.contains(word)))
        };
        let alone =
            |one: &Simple| !["if", "while", "until", "!", "elif"].contains(&one.operator.as_str());
        if is_gate(simple) && !alone(simple) {
            wrong.push(format!("its exit code is a condition: {:?}", simple.words));
        }
        let keeps = simple.assigned == ["code=$?"] && script.contains("exit \"$code\"");
        let of_action = script.contains("verdict=$(word_of \"$code\")");
        let kept = simple.assigned == ["code=$?"] && (keeps || of_action);
        if before.is_some_and(is_gate)
            && ["|", "||", "&"].contains(&simple.operator.as_str())
            && !kept
        {
            wrong.push(format!("the exit code is lost before: {simple:?}"));
        }
        if simple.words.first().is_some_and(|word| word == "rm") {
            removed.extend(simple.words.iter().map(String::as_str));
        }
        let values = simple.words.windows(2);
        let files =
            values.filter(|pair| ["--output", "--from", "--archive"].contains(&pair[0].as_str()));
        for file in files.filter(|_| is_gate(simple) && !is_fresh) {
            let top = file[1].split('/').next().unwrap();
            if !top.is_empty() && !top.starts_with('$') && !removed.contains(&top) {
                wrong.push(format!("{top} may be the checkout's: {:?}", simple.words));
            }
        }
        before = Some(simple);
    }
    wrong
}

/// Files below these folders that end so.
fn files(folders: &[&str], endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(repository().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                found.extend(files(&[&path], endings));
            } else if endings.iter().any(|ending| path.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found
}

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// The complaints about a document, with its place.
fn of_yaml(place: &str, text: &str, complaints: &mut Vec<String>) -> usize {
    let mut count = 0;
    for document in serde_yaml_ng::Deserializer::from_str(text) {
        let document = Json::deserialize(document).unwrap();
        let (mut found, mut uses) = (Vec::new(), Vec::new());
        scripts(&document, &mut found, &mut uses);
        // The folder of these jobs has nothing but artifacts.
        let empty = document.as_object().into_iter().flatten();
        let empty = empty.filter(|(_, job)| job["variables"]["GIT_STRATEGY"] == "empty");
        let empty: String = empty.map(|(_, job)| job["script"].to_string()).collect();
        for script in &found {
            let script = script.replace("$$", "$");
            let lines: Vec<String> = script
                .lines()
                .map(|line| Json::from(line).to_string())
                .collect();
            let is_fresh = !lines.is_empty()
                && lines
                    .iter()
                    .all(|line| empty.contains(line.trim_matches('"')));
            let wrong = wrong(&script, is_fresh || place.contains("kubernetes"));
            complaints.extend(wrong.iter().map(|wrong| format!("{place}: {wrong}")));
        }
        let foreign = uses.iter().filter(|uses| !may_use(uses, text));
        complaints.extend(foreign.map(|uses| format!("{place}: uses {uses}")));
        count += found.len() + uses.len();
    }
    count
}

#[test]
fn no_recipe_and_no_page_runs_what_a_change_can_edit_or_takes_it_for_a_steps_success() {
    let mut complaints = Vec::new();
    let mut count = 0;
    let mut recipes = files(&["ci/github", "ci/gitlab"], &[".yml"]);
    // The workflows here that run for a change.
    let own = files(&[".github/workflows"], &[".yml"]).into_iter();
    recipes.extend(own.filter(|path| {
        ["pull_request", "merge_group"]
            .iter()
            .any(|on| text(path).contains(on))
    }));
    recipes.push("action.yml".to_owned());
    for recipe in &recipes {
        count += of_yaml(recipe, &text(recipe), &mut complaints);
    }
    // What these run of the action and of the image, or what is installed on a machine.
    let mut own = files(&["ci/github", "ci/gitlab"], &[".sh"]);
    own.extend(["ci/check.sh", "ci/install.sh", "ci/install-cuda.sh"].map(str::to_owned));
    for script in own {
        // The files that they write are where their arguments say.
        let wrong = wrong(&text(&script), true);
        complaints.extend(wrong.iter().map(|wrong| format!("{script}: {wrong}")));
        count += 1;
    }
    let project = Project::empty();
    project.write(
        "config.toml",
        "[metric.duration]\ndirection = \"lower\"\ntolerance = '3 %'\n[suite.s.variant.v]\nrun = [\"true\"]\n",
    );
    for engine in &ENGINES {
        let plan = project.run(&["plan", "--format", engine.name]).exits(0).out;
        let comments = plan.lines().filter_map(|line| line.strip_prefix("#   "));
        let comments: Vec<&str> = comments.filter(|line| !line.contains(" plan ")).collect();
        let script = match plan.starts_with("#!") {
            // A script of its own, which refuses to begin where its outputs are.
            true => format!(
                "rm slices logs gate.tar.zst\n{}",
                plan.replace("<<'SLICE'", "").replace("\nSLICE\n", "\n")
            ),
            false => {
                count += of_yaml(engine.name, &plan, &mut complaints);
                comments.join("\n")
            }
        };
        let wrong = wrong(&script, false);
        complaints.extend(
            wrong
                .iter()
                .map(|wrong| format!("{}: {wrong}", engine.name)),
        );
    }
    let mut pages = files(&["docs"], &[".md"]);
    pages.push("README.md".to_owned());
    let block = Regex::new(r"(?ms)^```(\w+) ?([^\n]*)\n(.*?)^```$").unwrap();
    let inline = Regex::new(r"`((?:sh '|[\d* ]+cd )?[^`]*check(?:\.sh)? [^`]*)`").unwrap();
    for page in &pages {
        let text = text(page);
        for found in block.captures_iter(&text) {
            let judges = ["change", "pipeline", "pull request"]
                .iter()
                .any(|of| found[2].contains(of));
            if &found[1] == "yaml" {
                count += of_yaml(page, &found[3], &mut complaints);
            } else if judges {
                let wrong = wrong(&found[3], true);
                complaints.extend(wrong.iter().map(|wrong| format!("{page}: {wrong}")));
                count += 1;
            }
        }
        for found in inline.captures_iter(&block.replace_all(&text, "")) {
            // Jenkins's `sh '…'`, and the times of cron.
            let line = found[1].trim_start_matches("sh '").trim_end_matches('\'');
            let line =
                line.trim_start_matches(|c: char| c.is_ascii_digit() || c == '*' || c == ' ');
            let read = read(line);
            let ran = read
                .found
                .iter()
                .filter(|one| one.words.iter().any(|word| word.ends_with("check.sh")));
            let foreign =
                ran.filter(|one| one.words.len() > 1 && whose(&one.words, &[]) == Whose::Change);
            complaints.extend(foreign.map(|one| format!("{page}: {:?}", one.words)));
        }
    }
    assert_eq!(complaints, Vec::<String>::new());
    assert!(count > 60, "only {count} scripts and actions were read");
}

#[test]
fn a_command_is_classed_by_whose_file_it_runs() {
    let rows = r#"
sparsek-gate check || code=$? |
bash "$RUNNER_TEMP/check.sh" && "$GITHUB_ACTION_PATH/ci/x.sh" |
git show origin/main:ci/check.sh >"$RUNNER_TEMP/check.sh" |
x=$(sha256sum a) # make |
case $code in 0 | 1) ;; *) exit "$code" ;; esac |
base/ci/check.sh reports |
ci/check.sh reports | Change: ["ci/check.sh", "reports"]
echo "$(./x)" | Change: ["./x"]
if ! bash x.sh; then exit 1; fi | Change: ["bash", "x.sh"]
python3 -m venv x | Change: ["python3", "-m", "venv", "x"]
cd x && make all | Change: ["make", "all"]
exec env A=1 tools/x | Change: ["exec", "env", "A=1", "tools/x"]
something new | Unknown: ["something", "new"]
sparsek-gate check --from /x |& tee log | Unknown: ["tee", "log"]
"#;
    for line in rows.trim().lines() {
        let (script, expected) = line.rsplit_once(" |").unwrap();
        let found = read(script);
        let mut classed = found
            .found
            .iter()
            .map(|one| (whose(&one.words, &found.functions), &one.words));
        let first = classed.find(|(whose, _)| ![Whose::Tool, Whose::Base].contains(whose));
        let said = first
            .map(|(whose, words)| format!("{whose:?}: {words:?}"))
            .unwrap_or_default();
        assert_eq!(said, expected.trim(), "{script}\n{:#?}", found.found);
    }
    let lost = [
        "archive || [ -f gate.tar.zst ]", "check --from \"$x\" || true", "check | cat",
        "profile || echo",
    ];
    for line in lost {
        assert_eq!(
            wrong(&format!("sparsek-gate {line}"), true).len(),
            1,
            "{line}"
        );
    }
    assert_eq!(wrong("if sparsek-gate check; then true; fi", true).len(), 1);
    assert_eq!(wrong("sparsek-gate check --from profiles", false).len(), 1);
    let own = "rm -rf profiles\nsparsek-gate profile --output profiles";
    assert_eq!(wrong(own, false), Vec::<String>::new());
}
