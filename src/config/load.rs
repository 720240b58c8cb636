//! Reading a configuration from a file or a text.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::model::{Config, FILE_NAME};
use super::validate::validate;
use crate::disk::{self, Linked, folder_of};
use crate::files::{most, read_text_up_to};
use crate::git;

impl Config {
    /// Reads and validates a configuration.
    ///
    /// # Errors
    /// [`ConfigError`], which shows the line.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let source = read_text_up_to(path, most::CONFIG).map_err(|error| {
            let message = format!("cannot read the configuration: {error}");
            let unread = ConfigError::new(path, "", None, message);
            let absolute = std::path::absolute(path).unwrap_or_default();
            let mut above = absolute
                .ancestors()
                .skip(2)
                .map(|folder| folder.join(FILE_NAME));
            let folders = disk::read_dir(".").into_iter().flatten();
            let mut below = folders.map(|folder| Path::new(&folder.text()).join(FILE_NAME));
            let below = below.find(|file| path == Path::new(FILE_NAME) && disk::is_file(file));
            let below = below.or_else(|| in_git_below(path));
            let below = below.or_else(|| Some(path.with_file_name(FILE_NAME)).filter(|it| disk::is_file(it)));
            let help = match (error.kind(), above.find(|file| disk::is_file(file))) {
                _ if Linked::is_cause(&error) => {
                    "put the file itself in the place of the link".to_owned()
                }
                _ if disk::is_dir(path) => {
                    let file = path.join(FILE_NAME);
                    match disk::is_file(&file) {
                        true => format!("name the file: `-C {}`", shell_words::quote(&file.to_string_lossy())),
                        false if path.ends_with(FILE_NAME) => "a folder is in its place, as docker makes one where it mounts a file that is missing: restore the file".to_owned(),
                        false => "`-C` takes the file of the configuration: `-C config.toml`".to_owned(),
                    }
                }
                (ErrorKind::InvalidData, _) => {
                    "save it as UTF-8: `iconv -f LATIN1 -t UTF-8`, or `-f UTF-16`".to_owned()
                }
                (ErrorKind::NotFound, _) if is_in_git(path) => {
                    format!("it was deleted, and git has it: git restore {}", path.display())
                }
                (ErrorKind::NotFound, Some(file)) if path == Path::new(FILE_NAME) => {
                    format!("run it in {}, which has one", folder_of(&file).display())
                }
                (ErrorKind::PermissionDenied, _) => "let this user read it: `chmod`".to_owned(),
                _ => match below {
                    Some(file) => format!("name the one that is there: `-C {}`", shell_words::quote(&file.to_string_lossy())),
                    None => {
                        "`sparsek-gate init` writes one; `--config FILE` names another".to_owned()
                    }
                },
            };
            unread.link(Linked::is_cause(&error)).help(help)
        })?;
        validate(path, &source)
    }

    /// Validates a text as the configuration at a path, whatever that file contains.
    ///
    /// # Errors
    /// [`ConfigError`], which shows the line.
    pub fn parse(path: &Path, source: &str) -> Result<Config, ConfigError> {
        validate(path, source)
    }
}

/// A configuration that the index of git has below a path that has none, whatever the case of its name.
fn in_git_below(path: &Path) -> Option<PathBuf> {
    let folder = folder_of(path);
    let tracked = git::tracked(folder, ".").ok()?;
    let tracked = tracked.into_keys().map(PathBuf::from);
    let is_one = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default();
        name.eq_ignore_ascii_case(FILE_NAME) && disk::is_file(folder.join(file))
    };
    let mut found = tracked.filter(is_one);
    // Of several none is the one.
    let first = found.next()?;
    found.next().is_none().then(|| folder.join(first))
}

/// Whether the index of git has a file.
fn is_in_git(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let listed = name.and_then(|name| git::tracked(folder_of(path), name).ok());
    listed.is_some_and(|listed| !listed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Tolerance;

    #[test]
    fn the_narrowest_name_gives_a_variant_its_tolerances() {
        let path = Path::new("config.toml");
        let tolerances = |metric: &str, id: (&str, &str)| {
            let config = format!(
                "[metric.m]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n{metric}\n\
                 [suite.s.variant]\na.run = [\"x\"]\nb.run = [\"x\"]\n[suite.t.variant]\na.run = [\"x\"]\n"
            );
            let config = Config::parse(path, &config).unwrap();
            let variant = config
                .variants()
                .find(|v| (&*v.id.suite, &*v.id.variant) == id);
            let metric = &variant.unwrap().metrics[0];
            (
                metric.tolerance.stored.unwrap(),
                metric.tolerance.against.unwrap(),
            )
        };
        let (one, two) = (Tolerance::Absolute(1.0), Tolerance::Absolute(2.0));
        let (three, four) = (Tolerance::Absolute(3.0), Tolerance::Absolute(4.0));
        let both = "tolerance = { stored = '1', against = '2' }\n\
            on.s.against = '3'\non.\"s/b\".stored = '4'";
        assert_eq!(tolerances(both, ("t", "a")), (one, two));
        assert_eq!(tolerances(both, ("s", "a")), (one, three));
        assert_eq!(tolerances(both, ("s", "b")), (four, three));
        let alike = "tolerance = '1'\non.s = '2'";
        assert_eq!(tolerances(alike, ("s", "a")), (two, two));
        assert_eq!(tolerances(alike, ("t", "a")), (one, one));
    }
}
