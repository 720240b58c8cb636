//! Errors in `config.toml`, shown with their line.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::git::conflict;
use crate::terms::{joined, nearest};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use toml::de::{DeTable, DeValue};

/// What is known of a key.
type Meaning = fn(&[&str]) -> Option<String>;
type Home = fn(&str, bool) -> Option<String>;

/// What is wrong with the configuration, and where.
#[derive(Debug)]
pub struct ConfigError {
    path: PathBuf,
    source: String,
    span: Option<Range<usize>>,
    message: String,
    help: Option<String>,
    /// The file is a link in a checkout, whose rules nobody reviews.
    is_link: bool,
}

impl ConfigError {
    pub(super) fn new(
        path: &Path,
        source: &str,
        span: Option<Range<usize>>,
        message: String,
    ) -> Self {
        ConfigError {
            path: path.to_path_buf(),
            source: source.to_owned(),
            span,
            message,
            help: None,
            is_link: false,
        }
    }

    /// Of a place in a text, whose file is named later.
    pub(super) fn at(
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        ConfigError::new("".as_ref(), "", Some(span), message.into()).help(help)
    }

    pub(super) fn in_file(mut self, path: &Path, source: &str) -> Self {
        (self.path, self.source) = (path.to_path_buf(), source.to_owned());
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What is wrong, without the file's name.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn link(mut self, is_link: bool) -> Self {
        self.is_link = is_link;
        self
    }

    /// What is wrong, in one line, without the snippet.
    pub fn summary(&self) -> String {
        format!("{}: {}", self.path.display(), self.message)
    }

    /// Names the key whose value is out of its range, says what one of another type means, and where a
    /// misplaced one belongs.
    pub(super) fn of_key(mut self, tree: &DeTable<'_>, home: Home, meaning: Meaning) -> Self {
        let key = self.span.clone().and_then(|span| key_at(tree, &span));
        let before = self.span.clone().and_then(|it| self.source.get(..it.start));
        let line = before.and_then(|text| text.rsplit('\n').next());
        let in_header = line.is_some_and(|line| line.starts_with('['));
        let unknown = self.message.strip_prefix("unknown key `");
        let unknown = unknown.and_then(|rest| rest.strip_suffix('`'));
        // A slip within the table itself is the likelier one.
        let near = self.help.as_deref().and_then(|help| help.split('`').nth(1));
        let slips = |(near, name)| !in_header && strsim::damerau_levenshtein(near, name) == 1;
        let is_slip = near.zip(unknown).is_some_and(slips);
        let in_tolerances = self
            .help
            .as_deref()
            .is_some_and(|it| it.contains("is quoted"));
        let value = self.span.clone().and_then(|it| self.source.get(it));
        let in_braces = value.is_some_and(|it| it.contains('{'));
        match (key, unknown) {
            _ if is_slip || in_tolerances => {}
            (_, Some(_)) if in_header && line.is_some_and(|line| line.contains("__")) => {
                let help = "the name of a metric is your own, and its `counter` is ncu's name";
                self.help = Some(help.to_owned());
            }
            (_, Some(name)) if in_header && name.starts_with(|c: char| c.is_ascii_digit()) => {
                let help = "a dot begins a table, and no name has one: write `_` in its place";
                self.help = Some(help.to_owned());
            }
            (_, Some("nvcc")) if before.is_some_and(|it| it.rfind("pins") > it.rfind("\n[")) => {
                self.help = Some("the release of nvcc is `cuda`".to_owned());
            }
            (_, Some("version")) if before.is_some_and(|it| !it.contains('[')) => {
                self.help = Some("remove it: `[toolchain.pins]` has versions of tools".to_owned());
            }
            (_, Some("gpu" | "gpus" | "device")) => {
                self.help = Some("`--gpus` of `check` and `profile` selects GPUs; `gpus` of `[toolchain.pins]` names the models that count".to_owned());
            }
            (_, Some(name)) => {
                let of_suite = ["profile", "verify"].iter().find(|table| {
                    let header = format!("[{table}.");
                    in_header && line.is_some_and(|line| line.starts_with(&header))
                });
                let of_suite = of_suite.map(|table| format!("write `[suite.{name}.{table}]`"));
                // A table may be written in one line.
                let place = home(name, in_header).or_else(|| home(name, true));
                let list = self.help.map(|help| match help.split_once("]`; ") {
                    Some((_, list)) if !in_header => list.to_owned(),
                    _ => help,
                });
                self.help = place.or(of_suite).or(list);
            }
            (Some(path), _) if self.message.starts_with("must be ") => {
                let key = path.last().unwrap_or(&"");
                self.message = format!("`{key}` {}", self.message);
            }
            (Some(path), _) if path == ["waiver"] && self.message.contains("a list") => {
                self.help = Some("write `[[waiver]]`, each a table of its own".to_owned());
            }
            (Some(path), _)
                if matches!(path[..], ["metric" | "static", _] | [_, _, "variant", _]) =>
            {
                let (keys, key) = match path[0] {
                    "suite" => ("`source`", ""),
                    _ => ("`level` and `tolerance`", path[1]),
                };
                let is_level =
                    |it: &&str| matches!(it.trim_matches(['"', '\'']), "deny" | "warn" | "record");
                let below = match value.filter(is_level) {
                    Some(level) => format!("write `{key} = {{ level = {level} }}`"),
                    None => format!(
                        "write `[{}]`, and below it keys such as {keys}",
                        path.join(".")
                    ),
                };
                let home = path.last().and_then(|key| home(key, false));
                let home = home.filter(|home| home.contains(&format!("`[{}.", path[0])));
                self.help = home.or(Some(below));
            }
            (Some(_), _) if self.message.contains("type: string") && in_braces => {
                self.message = "an axis is a text, and no text stands here".to_owned();
                self.help = Some("write a variant for each value".to_owned());
            }
            (Some(path), _) if path.ends_with(&["arch"]) && self.message.contains("sequence") => {
                self.help = Some(ONE_TARGET.to_owned());
            }
            (Some(path), _) if self.message.contains("expected ") => {
                self.help = match self.message.ends_with("expected a table") && path.len() == 1 {
                    true => Some(format!("write `[{}]`, and its keys below it", path[0])),
                    false => meaning(&path).or(self.help),
                };
                let value = self.span.clone().and_then(|it| self.source.get(it));
                if let Some(value) = value.filter(|it| !it.contains(['[', '{']))
                    && self.message.ends_with("expected a string")
                {
                    let value = match path.last() {
                        Some(&"arch") => "sm_90a",
                        _ => value,
                    };
                    self.message = format!("{}, in quotes: `\"{value}\"`", self.message);
                }
                if let Some(value) = value.filter(|it| it.starts_with('"'))
                    && self.message.ends_with("expected a list")
                {
                    let key = path.last().unwrap_or(&"");
                    let is_argv = ["run", "build", "flags", "args"].contains(key);
                    let of_shell = value.contains(['&', '|', ';', '<', '>', '=']);
                    let list = match is_argv || key.ends_with("_args") {
                        true if of_shell && ["run", "build"].contains(key) => {
                            format!("\"sh\", \"-c\", {value}")
                        }
                        true => value.split(' ').collect::<Vec<_>>().join("\", \""),
                        false => value.to_owned(),
                    };
                    self.message = format!("{}, such as `[{list}]`", self.message);
                }
            }
            _ => {}
        }
        if let Some(name) = self.message.strip_prefix("missing field `") {
            let name = name.trim_end_matches('`');
            self.help = match value.is_some_and(|it| it.starts_with("[[waiver")) {
                true => meaning(&["waiver", name]),
                false => meaning(&[name]),
            };
            self.message = format!("`{name}` is missing");
        }
        self
    }

    /// That the text is no TOML. It may be no configuration at all, so no line of it is quoted.
    pub(super) fn no_toml(path: &Path, source: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| source.get(..span.start));
        let before = before.unwrap_or_default();
        let (line, last) = (before.matches('\n').count() + 1, before.rsplit('\n').next());
        let column = last.map_or(0, |last| last.chars().count()) + 1;
        let place = format!("{}:{line}:{column}", path.display());
        let refused = ConfigError::from_toml(place.as_ref(), "", error);
        if let Some(line) = conflict(source.as_bytes()) {
            let place = format!("{}:{line}", path.display());
            let message = "git left a conflict of a merge here".to_owned();
            let refused = ConfigError::new(place.as_ref(), "", None, message);
            return refused
                .help("keep one side, or both, and remove the lines of `<`, `=` and `>`");
        }
        // In a table of one line the parser misses a comma, perhaps only in the line behind it.
        let is_open = |line: &usize| {
            let text = source.lines().nth(line.wrapping_sub(1)).unwrap_or_default();
            let is_plain = !text.contains(['\\', '\'', '#']) && !text.contains("\"\"\"");
            is_plain && text.matches('"').count() % 2 == 1
        };
        if ["missing comma", "unclosed inline table", "unclosed array"]
            .iter()
            .any(|what| error.message().contains(what))
            && let Some(line) = [line, line - 1].into_iter().find(is_open)
        {
            let place = format!("{}:{line}", path.display());
            let message = "a text in this line has no closing `\"`".to_owned();
            return ConfigError::new(place.as_ref(), "", None, message).help("close each text");
        }
        let rest = error.span().and_then(|span| source.get(span.start..));
        let rest = rest.unwrap_or_default();
        match error.message() {
            "duplicate key" => {
                let first = twin(source, line).map_or_else(String::new, |line| {
                    format!(": this is in line {line} already")
                });
                refused.help(format!("write each table and each key once{first}"))
            }
            _ if source.trim_start().starts_with('{') => refused.help("write TOML, and not JSON"),
            _ if error
                .span()
                .and_then(|at| source.get(at))
                .is_some_and(|it| it.contains(['“', '”', '‘', '’'])) =>
            {
                refused.help("write plain quotation marks: `\"`")
            }
            _ if last.is_some_and(|line| line.trim_start().starts_with("expires")) => {
                refused.help("write a day: `expires = 2026-12-31`")
            }
            it if it.contains("unclosed table") && rest.starts_with(' ') => {
                refused.help("a name has no blank: write `_` or `-` in its place")
            }
            _ if rest.starts_with(',') => {
                refused.help("several values are a list: `[\"a\", \"b\"]`; no line ends in a comma")
            }
            it if it.contains("expected `nan`") || it.contains("expected `inf`") => {
                let is_end = |c: char| !(c.is_alphanumeric() || "_-.".contains(c));
                let word = rest.split(is_end).next().unwrap_or_default();
                let message = "a text needs quotes".to_owned();
                let refused = ConfigError { message, ..refused };
                refused.help(format!("write `\"{word}\"`"))
            }
            it if it.contains("escaped") => refused.help("write `/` in paths, '…' around patterns"),
            _ => refused,
        }
    }

    /// An error of serde's, with the nearest right name where it names an unknown one.
    pub(super) fn from_toml(path: &Path, source: &str, error: &toml::de::Error) -> Self {
        let (message, help) = explain(error.message());
        let refused = ConfigError::new(path, source, error.span(), message);
        ConfigError { help, ..refused }
    }
}

impl std::error::Error for ConfigError {}

/// The step of who names several values of `toolchain.arch`.
pub(super) const ONE_TARGET: &str =
    "state one: each target has a configuration of its own (`-C FILE`)";

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.to_string_lossy();
        let mut group = match self
            .span
            .clone()
            .filter(|span| span.end <= self.source.len() && !self.source.is_empty())
        {
            Some(span) => Group::with_title(Level::ERROR.primary_title(&self.message)).element(
                Snippet::source(&self.source)
                    .path(path)
                    .annotation(AnnotationKind::Primary.span(span)),
            ),
            None => {
                let title = format!("{path}: {}", self.message);
                Group::with_title(Level::ERROR.primary_title(title))
            }
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let text = Renderer::plain().render(&[group]).to_string();
        // The program's own printer says "error:" before every error.
        f.write_str(text.strip_prefix("error: ").unwrap_or(&text))
    }
}

/// The line that names the same key or table as a later line; both count from 1.
fn twin(source: &str, later: usize) -> Option<usize> {
    let lines: Vec<&str> = source.lines().take(later).map(str::trim_start).collect();
    let (this, before) = lines.split_last()?;
    let name = |line: &str| line.split(['=', '#']).next().map(|it| it.trim().to_owned());
    let is_header = this.starts_with('[');
    let same_table = before
        .iter()
        .rposition(|line| line.starts_with('[') && !is_header);
    let start = same_table.map_or(0, |header| header + 1);
    let at = before[start..]
        .iter()
        .position(|line| name(line) == name(this))?;
    Some(start + at + 1)
}

/// serde reports ``unknown field `x`, expected one of `a`, `b` ``; `a` alone is shown if it is similar.
fn explain(message: &str) -> (String, Option<String>) {
    let Some((kind, rest)) = ["unknown field", "unknown variant"]
        .iter()
        .find_map(|kind| Some((*kind, message.strip_prefix(kind)?.trim_start())))
    else {
        return (in_words(message), None);
    };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(wrong) = names.next() else {
        return (message.to_owned(), None);
    };
    let is_field = kind == "unknown field";
    let known: Vec<&str> = names.collect();
    let what = if is_field { "key" } else { "value" };
    let help = match suggest(wrong, &known) {
        // Of a suite.
        list if known.contains(&"sanitizer_args") && list.ends_with("`variant`") => {
            format!("a variant is `[suite.NAME.variant.{wrong}]`; {list}")
        }
        list if known == ["stored", "against"] && !list.ends_with('?') => {
            format!("{list}; in `on`, a variant is quoted: `\"SUITE/{wrong}\"`")
        }
        help => help,
    };
    (format!("unknown {what} `{wrong}`"), Some(help))
}

/// serde names Rust's types. A configuration has the types of TOML.
fn in_words(message: &str) -> String {
    const TYPES: [(&str, &str); 8] = [
        ("f64", "a number"),
        ("u32", "a whole number, 0 or more"),
        ("u64", "a whole number, 0 or more"),
        ("usize", "a whole number, 0 or more"),
        ("i64", "a whole number"),
        ("a sequence", "a list"),
        ("a map", "a table"),
        ("a boolean", "`true` or `false`"),
    ];
    let message = message.replace("wanted string or table", "expected a text");
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return message;
    };
    let known = TYPES.iter().find(|(name, _)| *name == expected);
    match known {
        Some((_, words)) => format!("{before}expected {words}"),
        None if expected.starts_with("struct ") => format!("{before}expected a table"),
        None => message,
    }
}

/// The key whose value stands at a position, below the names of its tables.
fn key_at<'t>(table: &'t DeTable<'_>, span: &Range<usize>) -> Option<Vec<&'t str>> {
    table.iter().find_map(|(key, value)| {
        let key = &**key.get_ref();
        let below = match value.get_ref() {
            _ if value.span() == *span => Vec::new(),
            DeValue::Table(inner) => key_at(inner, span)?,
            _ => return None,
        };
        Some([vec![key], below].concat())
    })
}

/// `did you mean ...?` if a known name is similar, else the list of all.
pub(crate) fn suggest(wrong: &str, known: &[impl AsRef<str>]) -> String {
    // Those that have more words before it.
    let end = format!("_{wrong}");
    let ends = known.iter().map(AsRef::as_ref);
    // Or a short form, such as `regs`.
    let stem = wrong.strip_suffix('s').filter(|stem| stem.len() > 2);
    let stem = stem.filter(|_| nearest(wrong, known).is_none());
    let is_longer = |name: &&str| stem.is_some_and(|stem| name.starts_with(stem));
    let whole: Vec<String> = ends
        .filter(|name| name.ends_with(&end) || is_longer(name))
        .map(|name| format!("`{name}`"))
        .collect();
    if !whole.is_empty() {
        return format!("did you mean {}?", joined(&whole, " or "));
    }
    match nearest(wrong, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there are no names to choose from".to_owned(),
        None => {
            let list: Vec<String> = known
                .iter()
                .map(|name| format!("`{}`", name.as_ref()))
                .collect();
            format!("known are {}", list.join(", "))
        }
    }
}

/// What to say of a variant that is not known: of its suite alone, since all names of one are alike.
pub(crate) fn suggest_variant(wrong: &str, known: &[String]) -> String {
    // A variant with a matrix is several.
    let made = format!("{wrong}-");
    if known.iter().any(|name| name.starts_with(&made)) {
        return format!("'{made}*' selects all variants that begin with it: name each");
    }
    let (suite, variant) = wrong.split_once('/').unwrap_or((wrong, wrong));
    let own = known
        .iter()
        .filter_map(|name| name.strip_prefix(suite)?.strip_prefix('/'));
    let own: Vec<&str> = own.collect();
    match nearest(variant, &own) {
        _ if suite == wrong => suggest(wrong, known),
        _ if own.is_empty() => {
            let is_alike = |name: &&String| name.contains('/') || nearest(wrong, &[name]).is_none();
            suggest(wrong, &known.iter().filter(is_alike).collect::<Vec<_>>())
        }
        Some(name) => format!("did you mean `{suite}/{name}`?"),
        None => format!("`{suite}` has {}", own.join(", ")),
    }
}

impl From<ConfigError> for crate::finding::Error {
    fn from(error: ConfigError) -> Self {
        match error.is_link {
            true => crate::finding::Error::Baseline(error.to_string()),
            false => crate::finding::Error::Config(error.to_string()),
        }
    }
}
