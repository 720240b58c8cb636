//! What selects variants on the command line.

use globset::{GlobBuilder, GlobMatcher};

use crate::terms::VariantId;

/// A name or a pattern that selects variants.
#[derive(Clone, Debug)]
pub struct Selector {
    /// As it was written.
    pub(super) text: String,
    /// `None` for a name.
    pattern: Option<GlobMatcher>,
}

/// Whether a text has a character of patterns, which a backslash may precede.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// What matches a pattern of names or paths, or why it is none. A backslash before a character of patterns
/// takes its meaning away.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let mut glob = GlobBuilder::new(pattern);
    let glob = glob.literal_separator(true).backslash_escape(true).build();
    let glob = glob.map_err(|error| error.kind().to_string())?;
    Ok(glob.compile_matcher())
}

impl Selector {
    /// Reads an argument. It is a pattern if it contains one of `*?[{`, which no name contains: `*`
    /// stands for any text without a slash, `**` also with slashes.
    ///
    /// # Errors
    /// Why it is no pattern.
    pub fn of(text: &str) -> Result<Selector, String> {
        let pattern = is_pattern(text).then(|| glob(text)).transpose();
        Ok(Selector {
            text: text.to_owned(),
            pattern: pattern.map_err(|why| format!("`{text}` is no pattern: {why}"))?,
        })
    }

    /// Whether it is the name of this one variant: `suite/variant`, or the variant's name alone.
    pub fn names(&self, id: &VariantId) -> bool {
        self.pattern.is_none() && (id.variant == self.text || id.to_string() == self.text)
    }

    /// Whether it selects this variant among others: it is the name of its suite, or a pattern of
    /// its name, of the name of its suite, or of `suite/variant`.
    pub fn covers(&self, id: &VariantId) -> bool {
        match &self.pattern {
            None => id.suite == self.text,
            Some(pattern) => {
                let whole = id.to_string();
                let mut parts = [&whole, &id.suite, &id.variant].into_iter();
                parts.any(|part| pattern.is_match(part))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> VariantId {
        VariantId::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn names_select_exactly_and_patterns_cover() {
        let one = id("bsr_gemm/tma_wgmma");
        for name in ["bsr_gemm/tma_wgmma", "tma_wgmma"] {
            let selector = Selector::of(name).unwrap();
            assert!(selector.names(&one) && !selector.covers(&one), "{name}");
        }
        for cover in [
            "bsr_gemm", "bsr_*", "tma*", "*/tma_?gmma", "{a,bsr_gemm}/*", "**",
        ] {
            let selector = Selector::of(cover).unwrap();
            assert!(selector.covers(&one) && !selector.names(&one), "{cover}");
        }
        for other in ["bsr", "wgmma", "tma", "tma?", "*/wgmma", "[a-z]"] {
            let selector = Selector::of(other).unwrap();
            assert!(!selector.covers(&one) && !selector.names(&one), "{other}");
        }
        assert!(
            Selector::of("tma[")
                .unwrap_err()
                .contains("`tma[` is no pattern")
        );
    }
}
