//! Ranges of versions.

use std::cmp::Ordering;

/// A range of versions: `13.0` contains every version that begins with it, `>=2025.3, <2027` every
/// version within all of its bounds. A bound compares as many numbers as it has, so `<=13.0`
/// contains `13.0.88`.
///
/// Versions of drivers and of ncu have four numbers or a leading zero, which semantic versions
/// must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRange {
    text: String,
    bounds: Vec<(Bound, Vec<u64>)>,
}

/// How a version may compare with a number.
type Bound = &'static [Ordering];

const EXACTLY: Bound = &[Ordering::Equal];

impl VersionRange {
    /// Reads a range.
    ///
    /// # Errors
    /// Says which part is not a version or a bound.
    pub fn parse(text: &str) -> Result<VersionRange, String> {
        const SIGNS: [(&str, Bound); 5] = [
            (">=", &[Ordering::Greater, Ordering::Equal]),
            ("<=", &[Ordering::Less, Ordering::Equal]),
            (">", &[Ordering::Greater]),
            ("<", &[Ordering::Less]),
            ("=", EXACTLY),
        ];
        let bound = |part: &str| {
            let part = part.trim();
            let (bound, version) = SIGNS
                .iter()
                .find_map(|(sign, bound)| Some((*bound, part.strip_prefix(sign)?)))
                .unwrap_or((EXACTLY, part));
            let numbers = numbers(version.trim())
                .ok_or_else(|| format!("`{part}` is not a version, and not a bound on one"))?;
            Ok((bound, numbers))
        };
        let range = VersionRange {
            text: text.trim().to_owned(),
            bounds: text.split(',').map(bound).collect::<Result<_, String>>()?,
        };
        // Versions at each bound, directly above it and directly below it.
        let mut near = range.bounds.iter().flat_map(|(_, wanted)| {
            let (last, before) = wanted.split_last().unwrap_or((&0, &[]));
            let below = [before, &[last.saturating_sub(1), u64::MAX]].concat();
            [
                wanted.clone(),
                [before, &[last.saturating_add(1)]].concat(),
                below,
            ]
        });
        match near.any(|version| range.has(&version)) {
            true => Ok(range),
            false => Err(format!("no version is within `{}`", range.text)),
        }
    }

    /// Whether a version is in the range. A text that is not a version is in none.
    pub fn contains(&self, version: &str) -> bool {
        let Some(numbers) = numbers(version.trim_start_matches(['V', 'v'])) else {
            return false;
        };
        self.has(&numbers)
    }

    fn has(&self, numbers: &[u64]) -> bool {
        self.bounds.iter().all(|(bound, wanted)| {
            let order = (0..wanted.len())
                .map(|at| numbers.get(at).unwrap_or(&0).cmp(&wanted[at]))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal);
            bound.contains(&order)
        })
    }
}

impl std::fmt::Display for VersionRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.text)
    }
}

/// The numbers of a dotted version.
pub(crate) fn numbers(version: &str) -> Option<Vec<u64>> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    version
        .split('.')
        .map(|part| digits(part).then(|| part.parse().ok())?)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn contains(range: &str, version: &str) -> bool {
        VersionRange::parse(range).unwrap().contains(version)
    }

    #[test]
    fn a_version_alone_contains_what_begins_with_it() {
        assert!(contains("13.0", "V13.0.88"));
        assert!(contains("13.0.88", "V13.0.88"));
        assert!(contains("=2025.3.1.0", "2025.3.1.0"));
        assert!(!contains("13.0", "V13.1.5"));
        assert!(!contains("1", "V13.0.88"));
        assert!(!contains("13.0.88", "V13.0"));
    }

    #[test]
    fn every_bound_counts_and_compares_the_numbers_that_it_has() {
        for (version, inside) in [
            ("2025.2.9", false),
            ("2025.3", true),
            ("2025.3.1.0", true),
            ("2026.4", true),
            ("2027.1.0", false),
            ("2027", false),
        ] {
            assert_eq!(contains(">=2025.3, <2027", version), inside, "{version}");
        }
        assert!(contains("<=13.0", "V13.0.88"));
        assert!(!contains(">13.0", "V13.0.88"));
        assert!(contains(">=580.65.06", "580.159.04"));
        assert!(!contains(">=580.159.05", "580.159.04"));
    }

    #[test]
    fn a_text_that_is_not_a_version_is_in_no_range() {
        for text in ["", "V", "unknown", "13.x", "13..0", "-1"] {
            assert!(!contains(">=0", text), "{text:?}");
        }
        for text in ["", ">=", "latest", "13.0,", "^13", ">= 13 0", "~>13"] {
            assert!(VersionRange::parse(text).is_err(), "{text:?}");
        }
    }
}
