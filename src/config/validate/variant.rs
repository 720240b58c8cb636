//! `[suite.NAME.variant.NAME]`.

use std::collections::BTreeMap;

use super::file::{Common, File};
use crate::binary::LaunchShape;
use crate::config::error::{ConfigError, suggest};
use crate::config::input_files::pattern;
use crate::config::model::{COUNTED_LAUNCHES, Metric, Recipe, Variant, Verification};
use crate::config::raw::{Define, RawVariant, Source};
use crate::config::stated_by::StatedBy;
use crate::disk;
use crate::terms::{VariantId, is_identifier, nearest, words};

/// What the tool fills in.
pub(super) const PLACEHOLDERS: [&str; 4] = ["launches", "result", "seed", "skip"];

/// Words that only a shell reads.
const SHELL: [&str; 8] = words("&& || | & > >> < 2>&1");

/// Whether an argument is an option with its value behind a blank, which no program reads as two.
fn is_several(item: &str) -> bool {
    let first = item.split_once(' ').map(|(first, _)| first);
    first.is_some_and(|first| first.starts_with("--") && !first.contains('='))
}

impl File<'_> {
    /// Validates a variant, which has what its suite sets; `id` is the names of suite and variant.
    pub(super) fn variant(
        &self,
        id: [&str; 2],
        raw: &RawVariant,
        metrics: &[Metric],
        common: &Common<'_>,
    ) -> Result<Variant, ConfigError> {
        let [suite, name] = id;
        let at = ["suite", suite, "variant", name];
        let key = |key| ["suite", suite, "variant", name, key];
        self.name(&at, name)?;
        let lists = [
            ("args", &raw.args[..]),
            ("verify_args", &raw.verify_args),
            ("profile_args", &raw.profile_args),
            (
                "sanitizer_args",
                raw.sanitizer_args.as_deref().unwrap_or_default(),
            ),
        ];
        self.placeholders(&at, lists)?;
        let run = ("run", raw.run.as_deref().unwrap_or_default());
        for (key, list) in lists.into_iter().chain([run]) {
            if let Some(item) = list.iter().find(|item| is_several(item)) {
                return Err(self.several(&[&at[..], &[key]].concat(), item));
            }
        }
        if let Some(name) = raw.env.keys().find(|name| !is_identifier(name)) {
            let message = format!("`{name}` cannot be the name of an environment variable");
            let help = "a name has letters, digits and `_`: `env = { NAME = \"value\" }`";
            return Err(self.error(&key("env"), message).help(help));
        }
        if let Some(value) = raw.env.values().find(|value| is_expanded(value)) {
            let message = format!("no shell replaces `{value}`");
            let help = "write the value itself; `env_pass` at the top of the file passes a variable of the environment";
            return Err(self.error(&key("env"), message).help(help));
        }
        let threads = raw.threads_per_block;
        if threads.is_some_and(|count| !(1..=1024).contains(&count)) {
            return Err(self.error(&key("threads_per_block"), "a block has 1 to 1024 threads"));
        }
        if let Some(sm) = common.limits
            && let most = sm.shared_bytes - sm.driver_shared_bytes
            && raw.dynamic_shared_bytes > Some(most)
        {
            let message = format!("a block has at most {most} bytes of shared memory on this chip");
            return Err(self.error(&key("dynamic_shared_bytes"), message));
        }
        let recipe = self.recipe(id, raw)?;
        let mut profile = raw.profile.clone();
        profile.counted_launches = profile.launches.min(COUNTED_LAUNCHES);
        let by_id = profile.counts_each_kernel();
        self.kernels(&key("kernels"), raw, by_id)?;
        let static_metrics = match &recipe {
            Recipe::Command { .. } => common.code_metrics,
            Recipe::Nvcc { .. } => common.static_metrics,
        };
        Ok(Variant {
            id: VariantId {
                suite: suite.to_owned(),
                variant: name.to_owned(),
            },
            description: raw.description.clone().unwrap_or_default(),
            recipe,
            args: raw.args.clone(),
            verify_args: raw.verify_args.clone(),
            profile_args: raw.profile_args.clone(),
            env: raw.env.clone(),
            kernels: raw.kernels.clone(),
            expect: raw.expect.clone(),
            metrics: metrics.to_vec(),
            explained_on: common.chip,
            static_metrics: static_metrics.to_vec(),
            launch: LaunchShape {
                dynamic_shared_bytes: raw.dynamic_shared_bytes,
                threads: raw.threads_per_block,
            },
            loaded_code: raw.loaded_code,
            work: self.work(&key("work"), &raw.work, metrics)?,
            immutable: raw.immutable,
            experimental: raw.experimental,
            profile,
            stated_by: StatedBy::Configuration,
            strict: false,
            verification: Verification::OwnRun,
            verify_timeout: raw.verify.timeout,
            sanitizer: raw.verify.sanitizer.clone(),
            sanitizer_args: raw.sanitizer_args.clone(),
        })
    }

    /// That an item of a list has several words.
    fn several(&self, at: &[&str], item: &str) -> ConfigError {
        let several = self.error(at, format!("`{item}` is several arguments in one"));
        let words: Vec<&str> = item.split_whitespace().collect();
        several.help(format!("write an item for each: {words:?}"))
    }

    /// Refuses a placeholder that is like a known one: the program would get it as text. Other text
    /// in braces may be the program's own. `table` is a variant, and `lists` are its lists of arguments
    /// by their keys.
    fn placeholders(
        &self,
        table: &[&str],
        lists: [(&str, &[String]); 4],
    ) -> Result<(), ConfigError> {
        for (key, arguments) in lists {
            let place = [table, &[key]].concat();
            let known = format!(
                "`{key}` may contain `{{launches}}`, `{{result}}`, `{{seed}}` and `{{skip}}`"
            );
            if let Some(item) = arguments.iter().find(|item| is_expanded(item)) {
                let message = format!("no shell replaces `{item}`");
                let help = format!("write the value itself; {known}");
                return Err(self.error(&place, message).help(help));
            }
            if let Some(word) = arguments.iter().find(|it| SHELL.contains(&it.as_str())) {
                let message = format!("no shell reads `{word}`: the program would get it");
                let help = "remove it, and what a shell would do with it: the tool keeps what a program prints";
                return Err(self.error(&place, message).help(help));
            }
            let wrong = arguments.iter().flat_map(|argument| in_braces(argument));
            let wrong = wrong
                .filter(|name| !PLACEHOLDERS.contains(name))
                .find(|name| nearest(&name.trim().to_lowercase(), &PLACEHOLDERS).is_some());
            if let Some(name) = wrong {
                let message = format!("`{{{name}}}` is no placeholder");
                let name = name.trim().to_lowercase();
                let help = format!("{}; {known}", suggest(&name, &PLACEHOLDERS));
                return Err(self.error(&place, message).help(help));
            }
        }
        Ok(())
    }

    /// How the program is made: from a `source`, or by a command that is `run`.
    fn recipe(&self, id: [&str; 2], raw: &RawVariant) -> Result<Recipe, ConfigError> {
        let [suite, name] = id;
        match (&raw.source, &raw.run) {
            (Some(source), None) => self.nvcc_recipe(id, raw, source),
            (None, Some(run)) => self.command_recipe(id, raw, Some(run)),
            (Some(_), Some(_)) => Err(self
                .error(
                    &["suite", suite, "variant", name, "run"],
                    "a variant has either a `source` or a `run`, not both",
                )
                .help("a `source` is compiled and run here, with `args`: remove `run`; a program of your own build has `run`, `build` and `program`")),
            // Machine code that others launch.
            (None, None) if raw.program.is_some() || raw.libraries.is_some() => {
                self.command_recipe(id, raw, None)
            }
            (None, None) => Err(self.error(
                &["suite", suite, "variant", name],
                format!("the variant `{suite}/{name}` needs a `source` (a .cu file), a `run` (a command), or a `program` (machine code)"),
            )),
        }
    }

    /// Refuses the first of these keys that is there: it belongs to the other kind of variant.
    fn only_with(
        &self,
        [suite, name]: [&str; 2],
        [kind, other]: [&str; 2],
        keys: &[(&str, bool)],
    ) -> Result<(), ConfigError> {
        let Some((key, _)) = keys.iter().find(|(_, there)| *there) else {
            return Ok(());
        };
        let words =
            format!("`{key}` belongs to a variant with `{kind}`, not to one with `{other}`");
        let help = match kind {
            "run" => "remove it: what the compiler reads and makes of a `source` is known",
            _ => "remove it: the command in `build` decides it",
        };
        let error = self.error(&["suite", suite, "variant", name, key], words);
        Err(error.help(help))
    }

    fn nvcc_recipe(
        &self,
        [suite, name]: [&str; 2],
        raw: &RawVariant,
        source: &Source,
    ) -> Result<Recipe, ConfigError> {
        let key = |key| ["suite", suite, "variant", name, key];
        let of_run = [
            ("build", raw.build.is_some()),
            ("inputs", raw.inputs.is_some()),
            ("program", raw.program.is_some()),
            ("libraries", raw.libraries.is_some()),
            ("loaded_code", raw.loaded_code),
        ];
        self.only_with([suite, name], ["run", "source"], &of_run)?;
        self.no_target(&key("flags"), &raw.flags)?;
        let sources = source.files();
        for file in sources {
            self.path_in_repository(&key("source"), file)?;
        }
        if let Source::Several(files) = source
            && let Some((what, next)) = cannot_be_together(files)
        {
            let error = self.error(&key("source"), what);
            return Err(error.help(next));
        }
        Ok(Recipe::Nvcc {
            sources: sources.to_vec(),
            flags: raw.flags.clone(),
            defines: self.defines(&key("defines"), &raw.defines)?,
        })
    }

    fn command_recipe(
        &self,
        [suite, name]: [&str; 2],
        raw: &RawVariant,
        run: Option<&Vec<String>>,
    ) -> Result<Recipe, ConfigError> {
        let key = |key| ["suite", suite, "variant", name, key];
        let (flags, defines) = (!raw.flags.is_empty(), !raw.defines.is_empty());
        let of_source = [("flags", flags), ("defines", defines)];
        self.only_with([suite, name], ["source", "run"], &of_source)?;
        // Profilers and sanitizers take their own options, also from a file `@…`, up to the name of
        // the program.
        let program = run.and_then(|run| run.first());
        if program.is_some_and(|program| program.starts_with(['-', '@'])) {
            return Err(self.error(
                &key("run"),
                "`run` begins with a program, and not with an option: a profiler would take it for its own",
            ));
        }
        for (argv_key, argv) in [
            ("run", run.map(Vec::as_slice)),
            ("build", raw.build.as_deref()),
        ] {
            let Some(argv) = argv else { continue };
            let first = argv.first().map_or("", String::as_str);
            if needs_shell(first, argv) {
                let what = format!("`{argv_key}` is run without a shell");
                let mut line = argv.join(" ");
                if first == "cd" && !line.contains('&') {
                    line += " && ...";
                }
                let help = match first.split_once('=') {
                    Some((name, value)) if argv_key == "run" && !value.contains(' ') => {
                        format!("write `env = {{ {name} = {value:?} }}`, and `run` without it")
                    }
                    _ => format!("write `{argv_key} = [\"sh\", \"-c\", {line:?}]`"),
                };
                return Err(self.error(&key(argv_key), what).help(help));
            }
            let is_there = |name: &str| disk::is_there(self.path.with_file_name(name));
            if first.contains(' ') && !is_there(first) {
                return Err(self.several(&key(argv_key), first));
            }
            self.literal(&key(argv_key), first)?;
            if first.is_empty() {
                return Err(self.error(
                    &key(argv_key),
                    format!("`{argv_key}` is a program and its arguments, such as [\"python3\", \"kernel.py\"]"),
                ));
            }
        }
        let inputs = raw.inputs.clone().unwrap_or_default();
        for input in &inputs {
            self.path_below(&key("inputs"), input)?;
            if let Err(why) = pattern(input) {
                let error = self.error(&key("inputs"), format!("`{input}` {why}"));
                return Err(error.help("`*` stands for any text without a slash, `**` for any folders; a backslash before one of `*?[{` takes its meaning away"));
            }
        }
        let mut code = Vec::new();
        for (code_key, files) in [
            ("program", raw.program.as_slice()),
            ("libraries", raw.libraries.as_deref().unwrap_or_default()),
        ] {
            for file in files {
                self.path_in_repository(&key(code_key), file)?;
                if code.contains(file) {
                    return Err(self.error(&key(code_key), format!("`{file}` is named twice")));
                }
                code.push(file.clone());
            }
        }
        if raw.loaded_code && !code.is_empty() {
            let error = self.error(
                &key("loaded_code"),
                "`loaded_code` does not work with `program` and `libraries`: the static gate judges either what these files contain or what is loaded",
            );
            return Err(error.help("make two variants with the same `run`, one with each"));
        }
        if raw.immutable && inputs.is_empty() {
            return Err(self.error(
                &key("immutable"),
                "an immutable variant with `run` needs `inputs`: the files that must not change",
            ));
        }
        Ok(Recipe::Command {
            build: raw.build.clone(),
            run: run.cloned().unwrap_or_default(),
            inputs,
            code,
        })
    }

    /// A filter of kernels. A pattern must be a regular expression.
    fn kernels(&self, at: &[&str], raw: &RawVariant, by_id: bool) -> Result<(), ConfigError> {
        let kernels = raw.kernels.as_ref();
        if kernels.is_some_and(String::is_empty) {
            let message = "`kernels` selects nothing: it is empty";
            return Err(self
                .error(at, message)
                .help("leave it out for every kernel"));
        }
        let pattern = kernels.and_then(|filter| filter.strip_prefix("regex:"));
        let separated = pattern.or(kernels.map(String::as_str));
        if by_id && separated.is_some_and(|filter| filter.contains(':')) {
            let message = "a filter must have no `:`: ncu separates its `--kernel-id` by it";
            let is_scope = separated.is_some_and(|filter| filter.contains("::"));
            return Err(self.error(at, message).help(match is_scope {
                true => "write the function's own name, without its namespace or class",
                false => "a name has no prefix, and a pattern begins with `regex:`",
            }));
        }
        // Only read: a short pattern may take long to compile, and most runs need none.
        let error = pattern.and_then(|pattern| regex_syntax::parse(pattern).err());
        let message = error.map(|error| error.to_string()).unwrap_or_default();
        let last = message.lines().last().unwrap_or_default();
        // ncu accepts look-around and back-references; this library reports them as not supported.
        let only_ncu = last.contains("not supported");
        let by_ncu_alone = raw.source.is_none()
            && raw.program.is_none()
            && raw.libraries.is_none()
            && !raw.loaded_code;
        if last.is_empty() || only_ncu && by_ncu_alone {
            return Ok(());
        }
        let why = last.trim_start_matches("error: ");
        let (what, help) = match only_ncu {
            true => (
                "only ncu can read this pattern, and the static gate needs it too",
                "name what is measured: `regex:^(first|second)_`",
            ),
            false => (
                "not a regular expression",
                "without `regex:` it is the name of one kernel",
            ),
        };
        let error = self.error(at, format!("{what}: {why}"));
        Err(error.help(help))
    }

    fn defines(
        &self,
        at: &[&str],
        raw: &BTreeMap<String, Define>,
    ) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut defines = BTreeMap::new();
        for (name, value) in raw {
            let text = match value {
                Define::Flag(true) => String::new(),
                Define::Flag(false) => continue,
                Define::Number(number) => number.to_string(),
                Define::Text(text) => text.clone(),
            };
            if !is_identifier(name) {
                let message = format!("`{name}` cannot be the name of a preprocessor constant");
                let help = "write its name alone: `defines = { TILE = 64 }`";
                return Err(self.error(at, message).help(help));
            }
            if text.contains('$') {
                let message =
                    format!("no shell replaces the `$` in `{text}`, the value of `{name}`");
                let help = "write the value itself, or `{axis}` of a matrix";
                return Err(self.error(at, message).help(help));
            }
            defines.insert(name.clone(), text);
        }
        Ok(defines)
    }
}

/// Why nvcc cannot compile these files together, as far as their names show it, and the next step.
///
/// nvcc names what it makes of a source after the source, without its folder and ending. What the
/// kernels are is read from there, so no name may be taken twice, nor look like a linked one or like
/// one of several targets.
fn cannot_be_together(files: &[String]) -> Option<(String, &'static str)> {
    let mut stems: Vec<&str> = Vec::new();
    for file in files {
        let name = file.rsplit('/').next().unwrap_or(file);
        let Some(stem) = name.strip_suffix(".cu").filter(|stem| !stem.is_empty()) else {
            return Some((
                format!("`{file}` of a list of sources is no CUDA source"),
                "name `.cu` files; what else is linked is built with `build` and `run`",
            ));
        };
        if stem.contains('.') || stem.ends_with("_dlink") {
            return Some((
                format!(
                    "`{file}` cannot be in a list of sources: what nvcc makes of it would have the name of the linked code, or of another target"
                ),
                "rename the file: no further dot in the name, and no `_dlink` at its end",
            ));
        }
        if stems.contains(&stem) {
            return Some((
                format!(
                    "two sources are called `{name}`, and nvcc makes files of that name of each"
                ),
                "rename one of them; the folder does not count",
            ));
        }
        stems.push(stem);
    }
    files.is_empty().then(|| {
        (
            "`source` is an empty list".to_owned(),
            "name at least one `.cu` file",
        )
    })
}

/// Whether only a shell can run it: a word or a command of a shell alone, a variable that is set before the
/// program, or a whole line in its place.
fn needs_shell(first: &str, argv: &[String]) -> bool {
    let is_line = |text: &str| text.contains(' ') && text.contains(['&', '|', ';', '<', '>']);
    let name = first.split('=').next().unwrap_or_default();
    let is_set = name != first && is_identifier(name);
    let of_shell = is_set || is_line(first) || ["cd", "export", "source"].contains(&first);
    of_shell || argv.iter().any(|word| SHELL.contains(&word.as_str()))
}

/// Whether a shell would write something else in the place of a part of a text. `$ORIGIN` is the loader's.
fn is_expanded(text: &str) -> bool {
    let is_name = |name: &str| is_identifier(name.trim_matches(['{', '}'])) && name != "ORIGIN";
    let mut parts = text.split(['/', ':', '=']);
    parts.any(|part| part == "~" || part.strip_prefix('$').is_some_and(is_name))
}

/// The words in braces.
fn in_braces(argument: &str) -> impl Iterator<Item = &str> {
    let parts = argument.split('{').skip(1);
    let names = parts.filter_map(|part| Some(part.split_once('}')?.0));
    names.filter(|name| is_identifier(name.trim()) && !name.contains(|c: char| c.is_ascii_digit()))
}
