//! Files that no program reads (`paths.unread`).

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns of files that no program reads: a change of these alone measures nothing.
#[derive(Clone, Debug, Default)]
pub struct Unread {
    patterns: Vec<String>,
    files: GlobSet,
}

impl PartialEq for Unread {
    fn eq(&self, other: &Unread) -> bool {
        self.patterns == other.patterns
    }
}

impl Unread {
    /// From patterns of paths from the top of the repository. `*` stands for any text without a
    /// slash, `**` for any folders.
    ///
    /// # Errors
    /// The number of the first pattern that cannot be read, from 0, and why.
    pub fn of(patterns: &[String]) -> Result<Unread, (usize, String)> {
        let mut builder = GlobSetBuilder::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let is_path = !pattern.is_empty() && !pattern.starts_with('/');
            if !is_path {
                let why = "a pattern is a path from the top of the repository, without a slash at its beginning";
                return Err((index, why.to_owned()));
            }
            let glob = GlobBuilder::new(pattern)
                .literal_separator(true)
                .backslash_escape(true)
                .build()
                .map_err(|error| (index, error.kind().to_string()))?;
            builder.add(glob);
        }
        let files = builder
            .build()
            .map_err(|error| (0, error.kind().to_string()))?;
        Ok(Unread {
            patterns: patterns.to_vec(),
            files,
        })
    }

    /// Whether no program reads this file; `path` is from the top of the repository.
    pub fn contains(&self, path: &str) -> bool {
        self.files.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_paths_from_the_top() {
        let unread = ["*.md", "docs/**", "**/LICENSE", "a?/[bc].txt"].map(str::to_owned);
        let unread = Unread::of(&unread).unwrap();
        for path in [
            "README.md", "docs/a.cu", "docs/a/b", "LICENSE", "x/y/LICENSE", "a1/b.txt",
        ] {
            assert!(unread.contains(path), "{path}");
        }
        for path in [
            "kernels/README.md", "adocs/a", "docs", "LICENSES", "a1/d.txt", "a/1/b.txt",
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
            let (index, error) = Unread::of(&["a".to_owned(), pattern.to_owned()]).unwrap_err();
            assert_eq!(index, 1);
            assert!(error.contains(why), "{pattern}: {error}");
        }
    }
}
