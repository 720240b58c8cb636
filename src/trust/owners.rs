//! `CODEOWNERS`: whose review a service demands before a file may change. It is read as the service reads it,
//! and what is not understood owns nothing.
//!
//! Sources: docs.github.com, "About code owners"; docs.gitlab.com, "Code Owners syntax and error handling",
//! and `Gitlab::CodeOwners::File`, which has the patterns.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::service::Owning;
use crate::config::Config;
use crate::git::{self, TreeEntry};

/// Largest file that is read, 3 MiB: GitHub ignores a larger one.
const LARGEST: usize = 3 << 20;

/// The code owners of a revision.
#[derive(Debug)]
pub(super) struct Owners {
    /// The path of the file from the top of the repository.
    pub path: String,
    sections: Vec<Section>,
}

/// The lines that are judged together: the last one that matches a file says who owns it.
#[derive(Debug)]
struct Section {
    name: String,
    /// Whether the service only asks for their review.
    optional: bool,
    /// Whether lines without owners have those of the section.
    owned: bool,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    /// What it matches, and what it may match, too, where the service's page is not clear.
    surely: GlobSet,
    perhaps: GlobSet,
    owned: bool,
}

/// Why nobody at HEAD owns a configuration, as any of the services reads it; `None` where somebody does.
pub fn unowned(config: &Config) -> Option<String> {
    let top = git::repository(&config.root).ok()?.top;
    let path = config.root.join(config.path.file_name()?);
    let path = path.strip_prefix(&top).ok()?.to_str()?;
    let lack = |service| match Owners::at(&top, "HEAD", service) {
        Ok(owners) => (!owners.own(path)).then(|| owners.lacks(path)),
        Err(why) => Some(why),
    };
    lack(Owning::GitHub).and(lack(Owning::GitLab))
}

impl Owners {
    /// Those of a revision, as the service of this run reads them.
    ///
    /// # Errors
    /// Why there are none, in words.
    pub(super) fn at(root: &Path, commit: &str, service: Owning) -> Result<Owners, String> {
        for path in service.places() {
            match git::files_at(root, commit, path)?.remove(*path) {
                None => {}
                Some(TreeEntry::File(bytes)) if bytes.len() <= LARGEST => {
                    let text = std::str::from_utf8(&bytes);
                    let text = text.map_err(|_| format!("`{path}` is not UTF-8"))?;
                    let sections = sections(text, service);
                    let sections =
                        sections.map_err(|why| format!("`{path}` is not understood: {why}"))?;
                    let owners = Owners {
                        path: (*path).to_owned(),
                        sections,
                    };
                    return match owners.own(path) {
                        true => Ok(owners),
                        false => Err(owners.lacks(path)),
                    };
                }
                Some(_) => return Err(format!("`{path}` is no file, or a large one")),
            }
        }
        Err(format!(
            "the base has no {}, and one of the change counts once it is merged",
            service.places().join(", ")
        ))
    }

    /// That nobody owns a file, in words.
    pub(super) fn lacks(&self, file: &str) -> String {
        let own = &self.path;
        format!(
            "`{own}` names no owner of `{file}`: it must name one of itself, of the configuration and of the baselines"
        )
    }

    /// Whether somebody must review a change of the file.
    pub(super) fn own(&self, path: &str) -> bool {
        let required = self.sections.iter().filter(|section| !section.optional);
        required.into_iter().any(|section| section.owns(path))
    }
}

impl Section {
    fn named(name: &str, optional: bool, owned: bool) -> Section {
        Section {
            name: name.to_lowercase(),
            optional,
            owned,
            lines: Vec::new(),
        }
    }

    fn owns(&self, path: &str) -> bool {
        let mut matching = self
            .lines
            .iter()
            .rev()
            .filter(|line| line.perhaps.is_match(path));
        // Where the last one may not be it, the one before counts, and must have owners, too.
        let last = matching.find(|line| !line.owned || line.surely.is_match(path));
        last.is_some_and(|line| line.owned)
    }
}

fn sections(text: &str, service: Owning) -> Result<Vec<Section>, String> {
    let mut sections = vec![Section::named("codeowners", false, false)];
    for (line, number) in text.lines().zip(1..) {
        let failed = |why: String| format!("line {number}: {why}");
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_header = line.starts_with('[') || line.starts_with("^[");
        if service == Owning::GitLab && is_header {
            let section = header(line).map_err(failed)?;
            if sections.iter().any(|other| other.name == section.name) {
                return Err(failed("a section of this name is there already".to_owned()));
            }
            sections.push(section);
            continue;
        }
        // The first one is there from the beginning.
        if let Some(section) = sections.last_mut() {
            let line = Line::read(line, service, section.owned).map_err(failed)?;
            section.lines.push(line);
        }
    }
    Ok(sections)
}

/// `^[NAME][2] @owner`: optional, of this name, with so many approvals, with these owners by default.
fn header(line: &str) -> Result<Section, String> {
    let (optional, rest) = match line.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let unknown = || format!("`{line}` is no section");
    let (name, rest) = rest
        .strip_prefix('[')
        .and_then(|it| it.split_once(']'))
        .ok_or_else(unknown)?;
    let rest = match rest.strip_prefix('[').map(|it| it.split_once(']')) {
        None => rest,
        Some(Some((count, rest))) if count.parse::<u32>().is_ok_and(|it| it > 0) => rest,
        Some(_) => return Err(unknown()),
    };
    let name = name.trim();
    if name.is_empty() || name.contains('[') || !(rest.is_empty() || rest.starts_with(' ')) {
        return Err(unknown());
    }
    Ok(Section::named(name, optional, owned(rest, Owning::GitLab)?))
}

/// Whether a text names an owner: all of its words must be one. That the service knows them cannot be seen.
fn owned(text: &str, service: Owning) -> Result<bool, String> {
    let mut names = 0;
    for word in text.split_whitespace() {
        if word.starts_with('#') && service == Owning::GitHub {
            break;
        }
        if word.starts_with("@@") {
            return Err(format!(
                "`{word}` is a role, which the author may have, too: name users or groups"
            ));
        }
        let (before, name) = word.split_once('@').unwrap_or((word, ""));
        let known = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
        if name.is_empty() || !name.chars().all(known) || !before.chars().all(known) {
            return Err(format!(
                "`{word}` is no owner: `@USER`, `@ORGANISATION/TEAM` or an address"
            ));
        }
        names += 1;
    }
    Ok(names > 0)
}

impl Line {
    fn read(line: &str, service: Owning, of_section: bool) -> Result<Line, String> {
        let (pattern, owners) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        // Escapes, exceptions, and what means something else in other patterns.
        let is_path = !pattern.trim_matches('/').is_empty() && !pattern.contains("//");
        if !is_path || pattern.starts_with('!') || pattern.contains(['\\', '[', ']', '{', '}', '#'])
        {
            return Err(format!("`{pattern}`"));
        }
        let owned = owned(owners, service)? || of_section;
        let (path, is_folder) = match pattern.strip_suffix('/') {
            Some(path) => (path, true),
            None => (pattern, false),
        };
        let anchored = match service {
            Owning::GitHub => path.contains('/'),
            Owning::GitLab => path.starts_with('/'),
        };
        let path = path.trim_start_matches('/');
        let path = match anchored {
            true => path.to_owned(),
            false => format!("**/{path}"),
        };
        let below = format!("{path}/**");
        // What has no pattern at its end may be a folder.
        let is_plain = !path
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains(['*', '?']));
        let all = pattern == "*" || pattern == "/**" || pattern == "**";
        let surely = match (is_folder, service) {
            _ if all => vec!["**".to_owned()],
            (true, _) => vec![below.clone()],
            (false, Owning::GitHub) if is_plain => vec![path.clone(), below.clone()],
            (false, _) => vec![path.clone()],
        };
        let perhaps = match is_folder {
            true => vec![below],
            false => vec![path, below],
        };
        let perhaps = perhaps.into_iter().chain(surely.clone());
        Ok(Line {
            surely: set(surely)?,
            perhaps: set(perhaps)?,
            owned,
        })
    }
}

fn set(patterns: impl IntoIterator<Item = String>) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
        set.add(glob.map_err(|error| error.to_string())?);
    }
    set.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of some files have owners, or why the file is not understood.
    fn of(text: &str, service: Owning) -> Result<String, String> {
        const FILES: [&str; 6] = [
            "config.toml", "a/config.toml", "baselines/g/s/v.lock.toml", "x/baselines/v",
            "docs/a/b", "docs/c",
        ];
        let sections = sections(&text.replace('|', "\n"), service)?;
        let owners = Owners {
            path: String::new(),
            sections,
        };
        let owned = FILES.into_iter().filter(|file| owners.own(file));
        Ok(owned.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_last_line_that_matches_says_whether_a_file_has_owners() {
        let all =
            "config.toml a/config.toml baselines/g/s/v.lock.toml x/baselines/v docs/a/b docs/c";
        let on_github = "
            * @a | ALL
            * @a|config.toml | baselines/g/s/v.lock.toml x/baselines/v docs/a/b docs/c
            * @a|/config.toml | a/config.toml baselines/g/s/v.lock.toml x/baselines/v docs/a/b docs/c
            config.toml @org/team | config.toml a/config.toml
            /config.toml a@b.org\\r | config.toml
            baselines/ @a | baselines/g/s/v.lock.toml x/baselines/v
            /baselines @a | baselines/g/s/v.lock.toml
            /baselines/ @a # why | baselines/g/s/v.lock.toml
            docs/* @a | docs/c
            * @a|docs/* | config.toml a/config.toml baselines/g/s/v.lock.toml x/baselines/v
            docs/** @a | docs/a/b docs/c
            *.toml @a | config.toml a/config.toml baselines/g/s/v.lock.toml
            Config.toml @a |
            # * @a |
            * |";
        // Each section by itself.
        let on_gitlab = "
            * @a | ALL
            /baselines @a |
            /baselines/ @a | baselines/g/s/v.lock.toml
            baselines/** @g/h | baselines/g/s/v.lock.toml x/baselines/v
            ^[Optional]|* @a |
            [Gate][2] @a|config.toml | config.toml a/config.toml
            [Gate] @a|config.toml|/config.toml @b | config.toml a/config.toml
            [One]|* @a|[Two]|* | ALL
            * @a|[Two]|config.toml | ALL
            [One]|* @a|config.toml | baselines/g/s/v.lock.toml x/baselines/v docs/a/b docs/c";
        for (table, service) in [(on_github, Owning::GitHub), (on_gitlab, Owning::GitLab)] {
            for [text, expected] in crate::files::tests::rows(table) {
                let expected = expected.replace("ALL", all);
                assert_eq!(
                    of(&text.replace("\\r", "\r"), service),
                    Ok(expected),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_understood_owns_nothing() {
        for text in [
            "* a", "* @a b", "* @", "* @@maintainers", "!config.toml @a", "a\\ b @a", "[a]b @a",
            "*.{a,b} @a", "[Section] @a", "* @a|/", "* @a|a//b", "* @a|/x# @b",
        ] {
            assert!(of(text, Owning::GitHub).is_err(), "{text}");
        }
        for text in [
            "* @a # why", "[A][0] @a", "[A][x] @a", "[A", "[] @a", "[A]@a", "[A]|* @a|[a]|*",
            "!config.toml", "* @@developers",
        ] {
            assert!(of(text, Owning::GitLab).is_err(), "{text}");
        }
    }
}
