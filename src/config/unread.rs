//! Files that no program reads (`paths.unread`).

use std::path::Path;

use globset::GlobMatcher;

use super::selector::glob;

/// Patterns of files that no program reads: a change of these alone measures nothing.
#[derive(Clone, Debug, Default)]
pub struct Unread(Vec<GlobMatcher>);

impl PartialEq for Unread {
    fn eq(&self, other: &Unread) -> bool {
        let patterns = self.0.iter().map(GlobMatcher::glob);
        patterns.eq(other.0.iter().map(GlobMatcher::glob))
    }
}

impl Unread {
    /// From patterns of paths from the top of the repository. `*` stands for any text without a
    /// slash, `**` for any folders; the name of a folder for all below it.
    ///
    /// # Errors
    /// The first pattern that cannot be read, and why.
    pub fn of(patterns: &[String]) -> Result<Unread, String> {
        let read = patterns.iter().map(|pattern| {
            let matcher = match pattern.is_empty() || pattern.starts_with(['/', '!']) {
                true => Err("a pattern is a path from the top of the repository, without a slash at its beginning; `!` excepts nothing".to_owned()),
                false => glob(pattern),
            };
            matcher.map_err(|why| format!("`{pattern}` cannot be read: {why}"))
        });
        Ok(Unread(read.collect::<Result<_, _>>()?))
    }

    /// Whether no program reads this file; `path` is from the top of the repository.
    pub fn contains(&self, path: &str) -> bool {
        let path = Path::new(path);
        let mut patterns = self.0.iter();
        patterns.any(|one| one.is_match(path) || path.starts_with(one.glob().glob()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_paths_from_the_top() {
        let unread = [
            "*.md", "docs/**", "**/LICENSE", "a?/[bc].txt", "web", "img/",
        ]
        .map(str::to_owned);
        let unread = Unread::of(&unread).unwrap();
        for path in [
            "README.md", "docs/a.cu", "docs/a/b", "LICENSE", "x/y/LICENSE", "a1/b.txt", "web",
            "web/a/b", "img/a",
        ] {
            assert!(unread.contains(path), "{path}");
        }
        for path in [
            "kernels/README.md", "adocs/a", "docs", "LICENSES", "a1/d.txt", "a/1/b.txt",
            "website/a", "x.md/a",
        ] {
            assert!(!unread.contains(path), "{path}");
        }
        assert!(!Unread::default().contains("README.md"));
    }

    #[test]
    fn a_pattern_that_cannot_be_read_is_named() {
        for (pattern, why) in [
            ("a[", "unclosed"),
            ("", "top of the"),
            ("/docs/**", "top of the"),
        ] {
            let error = Unread::of(&["a".to_owned(), pattern.to_owned()]).unwrap_err();
            assert!(error.contains(why), "{pattern}: {error}");
            assert!(error.starts_with(&format!("`{pattern}` ")), "{error}");
        }
    }
}
