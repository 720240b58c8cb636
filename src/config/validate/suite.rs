//! `[suite.NAME]` and its variants.

use std::collections::BTreeMap;

use super::File;
use crate::binary::LaunchShape;
use crate::config::error::{ConfigError, suggest};
use crate::config::raw::{Define, RawProfile, RawSuite, RawVariant, RawVerify, RawWork};
use crate::config::{Metric, Recipe, Suite, Variant, Work};
use crate::metric::{Level, Role};
use crate::terms::VariantId;

const DEFAULT_VERIFY_TIMEOUT_S: f64 = 120.0;

impl File<'_> {
    pub(super) fn suite(
        &self,
        name: &str,
        raw: &RawSuite,
        profile: &RawProfile,
        verify: &RawVerify,
        metrics: &[Metric],
        static_metrics: &[Metric],
    ) -> Result<Suite, ConfigError> {
        let at = ["suite", name];
        self.name(&at, name)?;
        let metrics = match &raw.metrics {
            None => metrics.to_vec(),
            Some(aliases) => aliases
                .iter()
                .map(|alias| {
                    metrics
                        .iter()
                        .find(|metric| metric.alias == *alias)
                        .cloned()
                        .ok_or_else(|| {
                            let known: Vec<&str> =
                                metrics.iter().map(|metric| metric.alias.as_str()).collect();
                            self.error(
                                &["suite", name, "metrics"],
                                format!("no metric is called `{alias}`"),
                            )
                            .help(Some(suggest(alias, &known)))
                        })
                })
                .collect::<Result<_, _>>()?,
        };
        if metrics.is_empty() {
            return Err(self.error(
                &["suite", name, "metrics"],
                "a suite without metrics gates nothing",
            ));
        }
        let work = self.work(&["suite", name, "work"], &raw.work, &metrics)?;
        if metrics.iter().all(|metric| metric.level == Level::Record) {
            return Err(self
                .error(
                    &at,
                    format!(
                        "every metric of the suite `{name}` is only recorded, so it gates nothing"
                    ),
                )
                .help(Some("give one of them the level `deny` or `warn`".into())));
        }
        if let Some(metric) = metrics.iter().find(|metric| metric.unless_faster)
            && !metrics
                .iter()
                .any(|metric| metric.role() == Some(Role::Duration))
        {
            return Err(self.error(
                &["suite", name, "metrics"],
                format!(
                    "`unless_faster` of `{}` needs a metric of the counter {} in the suite",
                    metric.alias,
                    Role::Duration
                ),
            ));
        }
        if raw.variant.is_empty() {
            return Err(self
                .error(&at, format!("the suite `{name}` has no variants"))
                .help(Some(format!("add `[suite.{name}.variant.NAME]`"))));
        }
        // What every variant sets otherwise is wrong all the same.
        self.profile(&["suite", name, "profile"], &[&raw.profile])?;
        if let Some(seconds) = raw.verify.timeout_s {
            self.timeout(&["suite", name, "verify", "timeout_s"], seconds)?;
        }
        let inherited = Inherited {
            suite: raw,
            profile,
            verify,
            metrics: &metrics,
            static_metrics,
            work,
        };
        let mut variants = Vec::new();
        for (variant_name, raw_variant) in &raw.variant {
            variants.push(self.variant(name, variant_name, raw_variant, &inherited)?);
        }
        Ok(Suite {
            name: name.to_owned(),
            description: raw.description.clone().unwrap_or_default(),
            variants,
        })
    }

    fn variant(
        &self,
        suite: &str,
        name: &str,
        raw: &RawVariant,
        inherited: &Inherited<'_>,
    ) -> Result<Variant, ConfigError> {
        let at = ["suite", suite, "variant", name];
        let key = |key| ["suite", suite, "variant", name, key];
        self.name(&at, name)?;
        let recipe = match (&raw.source, &raw.run) {
            (Some(source), None) => {
                for (unwanted, present) in [
                    ("build", raw.build.is_some()),
                    ("inputs", raw.inputs.is_some()),
                ] {
                    if present {
                        return Err(self
                            .error(&key(unwanted), format!("`{unwanted}` belongs to a variant with `run`, not to one with `source`")));
                    }
                }
                self.path_below(&key("source"), source)?;
                Recipe::Nvcc {
                    source: source.clone(),
                    flags: raw.flags.clone(),
                    defines: self.defines(&key("defines"), &raw.defines)?,
                }
            }
            (None, Some(run)) => {
                for (unwanted, present) in [
                    ("flags", !raw.flags.is_empty()),
                    ("defines", !raw.defines.is_empty()),
                ] {
                    if present {
                        return Err(self
                            .error(&key(unwanted), format!("`{unwanted}` belongs to a variant with `source`, not to one with `run`")));
                    }
                }
                for (argv_key, argv) in [("run", Some(run)), ("build", raw.build.as_ref())] {
                    if argv.is_some_and(|argv| argv.first().is_none_or(String::is_empty)) {
                        return Err(self.error(&key(argv_key), format!("`{argv_key}` is a program and its arguments, such as [\"python3\", \"kernel.py\"]")));
                    }
                }
                let inputs = raw.inputs.clone().unwrap_or_default();
                for input in &inputs {
                    self.path_below(&key("inputs"), input)?;
                }
                if raw.immutable && inputs.is_empty() {
                    return Err(self.error(&key("immutable"), "an immutable variant with `run` needs `inputs`: the files that must not change"));
                }
                Recipe::Command {
                    build: raw.build.clone(),
                    run: run.clone(),
                    inputs,
                }
            }
            (Some(_), Some(_)) => {
                return Err(
                    self.error(&key("run"), "a variant has a `source` or a `run`, not both")
                );
            }
            (None, None) => {
                return Err(self
                    .error(&at, format!("the variant `{suite}/{name}` needs a `source` (a .cu file) or a `run` (a command)")));
            }
        };
        let profile_at = key("profile");
        let profile = self.profile(
            &profile_at,
            &[&raw.profile, &inherited.suite.profile, inherited.profile],
        )?;
        let kernels = raw
            .kernels
            .clone()
            .or_else(|| inherited.suite.kernels.clone());
        if let Some(pattern) = kernels
            .as_deref()
            .and_then(|filter| filter.strip_prefix("regex:"))
            && let Err(error) = regex::Regex::new(pattern)
        {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default().to_owned();
            // ncu knows look-around and back-references, this library says that it does not.
            if !last.contains("not supported") {
                let at: &[&str] = if raw.kernels.is_some() {
                    &key("kernels")
                } else {
                    &["suite", suite, "kernels"]
                };
                return Err(self.error(at, format!("not a regular expression: {last}")));
            }
        }
        let mut args = inherited.suite.args.clone();
        args.extend(raw.args.iter().cloned());
        let verify_timeout = raw
            .verify
            .timeout_s
            .or(inherited.suite.verify.timeout_s)
            .or(inherited.verify.timeout_s)
            .unwrap_or(DEFAULT_VERIFY_TIMEOUT_S);
        let sanitizer = [
            &raw.verify.sanitizer,
            &inherited.suite.verify.sanitizer,
            &inherited.verify.sanitizer,
        ]
        .into_iter()
        .find_map(Clone::clone)
        .unwrap_or_default();
        Ok(Variant {
            id: VariantId {
                suite: suite.to_owned(),
                variant: name.to_owned(),
            },
            description: raw.description.clone().unwrap_or_default(),
            recipe,
            args,
            verify_args: raw
                .verify_args
                .clone()
                .or_else(|| inherited.suite.verify_args.clone())
                .unwrap_or_default(),
            profile_args: raw
                .profile_args
                .clone()
                .or_else(|| inherited.suite.profile_args.clone())
                .unwrap_or_default(),
            time_args: raw
                .time_args
                .clone()
                .or_else(|| inherited.suite.time_args.clone())
                .unwrap_or_default(),
            env: raw.env.clone(),
            kernels,
            expect: raw
                .expect
                .clone()
                .or_else(|| inherited.suite.expect.clone())
                .unwrap_or_default(),
            metrics: inherited.metrics.to_vec(),
            static_metrics: inherited.static_metrics.to_vec(),
            launch: LaunchShape {
                dynamic_shared_bytes: raw.dynamic_shared_bytes,
                threads: raw.threads_per_block,
            },
            work: match &raw.work {
                None => inherited.work,
                Some(own) => self.work(
                    &["suite", suite, "variant", name, "work"],
                    own,
                    inherited.metrics,
                )?,
            },
            immutable: raw.immutable,
            experimental: raw.experimental,
            profile,
            verify_timeout: self.timeout(
                &["suite", suite, "variant", name, "verify", "timeout_s"],
                verify_timeout,
            )?,
            sanitizer,
            sanitizer_args: raw
                .sanitizer_args
                .clone()
                .or_else(|| inherited.suite.sanitizer_args.clone()),
        })
    }

    /// What is declared, and counted by these metrics.
    fn work(&self, at: &[&str], raw: &RawWork, metrics: &[Metric]) -> Result<Work, ConfigError> {
        let work = Work {
            flop: raw.flop,
            bytes_written: raw.bytes_written,
        };
        let Some(key) = work.uncounted(metrics) else {
            return Ok(work);
        };
        Err(self
            .error(
                &[at, &[key]].concat(),
                format!("nothing counts the declared `{key}`"),
            )
            .help(Some(format!(
                "give an exact metric of the suite `counts = {{ {key} = ... }}`"
            ))))
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
            if !is_macro_name(name) {
                return Err(self.error(
                    at,
                    format!("`{name}` cannot be the name of a preprocessor constant"),
                ));
            }
            defines.insert(name.clone(), text);
        }
        Ok(defines)
    }
}

/// Whether `-D` can define it.
pub(crate) fn is_macro_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct Inherited<'a> {
    suite: &'a RawSuite,
    profile: &'a RawProfile,
    verify: &'a RawVerify,
    metrics: &'a [Metric],
    static_metrics: &'a [Metric],
    work: Work,
}
