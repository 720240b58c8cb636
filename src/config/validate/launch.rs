//! `[launch.slurm]` and `[launch.kubernetes]`.

use super::file::File;
use crate::config::error::ConfigError;
use crate::config::model::{KubernetesSettings, Launch, SlurmSettings};
use crate::config::raw::{RawKubernetes, RawLaunch, RawSlurm};

/// The most lines of a prolog, and the most further arguments.
const MOST_WORDS: usize = 100;
/// The longest of them, in bytes.
const MOST_BYTES: usize = 4096;
/// The most minutes of a slice: 30 days.
const MOST_MINUTES: u32 = 43_200;
/// Arguments of sbatch that are this tool's own: with others it would not find its slices again.
const OWN: [&str; 8] = [
    "--array",
    "--chdir",
    "--clusters",
    "--job-name",
    "--output",
    "--parsable",
    "--wait",
    "--wrap",
];

impl File<'_> {
    pub(super) fn launch(&self, raw: RawLaunch) -> Result<Launch, ConfigError> {
        Ok(Launch {
            slurm: self.slurm(raw.slurm)?,
            kubernetes: self.kubernetes(raw.kubernetes)?,
        })
    }

    fn slurm(&self, raw: RawSlurm) -> Result<SlurmSettings, ConfigError> {
        let text = |key: &str, value: &Option<String>| {
            self.text(&["launch", "slurm", key], value.as_deref())
        };
        let (partition, account) = (
            text("partition", &raw.partition)?,
            text("account", &raw.account)?,
        );
        let (constraint, image) = (
            text("constraint", &raw.constraint)?,
            text("image", &raw.image)?,
        );
        let gres = text("gres", &raw.gres)?;
        if let Some(minutes) = raw.time_limit_min
            && !(1..=MOST_MINUTES).contains(&minutes)
        {
            return Err(self.error(
                &["launch", "slurm", "time_limit_min"],
                format!("`time_limit_min` must be a number of minutes from 1 to {MOST_MINUTES}"),
            ));
        }
        if raw.container.is_some() && image.is_none() {
            return Err(self.error(
                &["launch", "slurm", "container"],
                "`container` needs `image`, the image to start",
            ));
        }
        self.words("prolog", &raw.prolog)?;
        self.words("args", &raw.args)?;
        for argument in &raw.args {
            self.further(argument)?;
        }
        let defaults = SlurmSettings::default();
        Ok(SlurmSettings {
            partition,
            account,
            constraint,
            gres: gres.unwrap_or(defaults.gres),
            time_limit_min: raw.time_limit_min,
            container: image.map(|image| (image, raw.container.unwrap_or_default())),
            prolog: raw.prolog,
            args: raw.args,
        })
    }

    fn kubernetes(&self, raw: RawKubernetes) -> Result<KubernetesSettings, ConfigError> {
        let text = |key: &str, value: &Option<String>| {
            self.text(&["launch", "kubernetes", key], value.as_deref())
        };
        let (image, claim) = (text("image", &raw.image)?, text("claim", &raw.claim)?);
        let defaults = KubernetesSettings::default();
        Ok(KubernetesSettings {
            image: image.unwrap_or(defaults.image),
            claim: claim.unwrap_or(defaults.claim),
            queue: text("queue", &raw.queue)?,
        })
    }

    /// A value that becomes one argument or one value of a manifest.
    fn text(&self, at: &[&str], value: Option<&str>) -> Result<Option<String>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        let key = at.last().copied().unwrap_or_default();
        let is_word = |c: char| !c.is_control() && !c.is_whitespace();
        if value.is_empty() || value.len() > MOST_BYTES || !value.chars().all(is_word) {
            return Err(self.error(
                at,
                format!("`{key}` must be one word, without spaces and control characters"),
            ));
        }
        Ok(Some(value.to_owned()))
    }

    /// Lines that stand in a script as they are.
    fn words(&self, key: &str, words: &[String]) -> Result<(), ConfigError> {
        let at = ["launch", "slurm", key];
        if words.len() > MOST_WORDS {
            return Err(self.error(
                &at,
                format!(
                    "`{key}` has {} entries, and {MOST_WORDS} is the most",
                    words.len()
                ),
            ));
        }
        let is_line = |word: &String| {
            !word.is_empty() && word.len() <= MOST_BYTES && !word.chars().any(char::is_control)
        };
        match words.iter().find(|word| !is_line(word)) {
            None => Ok(()),
            Some(word) => Err(self.error(
                &at,
                format!("{word:?} in `{key}` must be one line without control characters"),
            )),
        }
    }

    /// Refuses an argument that is no option, or one of this tool's own.
    fn further(&self, argument: &str) -> Result<(), ConfigError> {
        let at = ["launch", "slurm", "args"];
        let name = argument.split('=').next().unwrap_or_default();
        if !argument.starts_with("--") || name == "--" {
            return Err(self
                .error(&at, format!("`{argument}` is no option of sbatch"))
                .help(Some(
                    "write the long form with its value: `--qos=high`".into(),
                )));
        }
        // sbatch takes any beginning of a long option that is unambiguous. Nodes are excluded beside the
        // configuration's, which are found by the whole name.
        if name != "--exclude" && "--exclude".starts_with(name) && name.len() > "--exclu".len() {
            return Err(self.error(
                &at,
                format!("`{name}` is an abbreviation: write `--exclude`"),
            ));
        }
        if OWN.iter().any(|own| own.starts_with(name)) {
            return Err(self.error(
                &at,
                format!("`{name}` is set by sparsek-gate, which finds its slices by it"),
            ));
        }
        Ok(())
    }
}
