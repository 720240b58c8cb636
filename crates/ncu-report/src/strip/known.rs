//! Known texts, all searched for in one pass, however many there are.

use std::collections::HashMap;

/// Longest text that is kept. A path has at most 4096 bytes, a host's name 255; what is longer is
/// known by its beginning.
const LONGEST: usize = 1024;

/// Texts with what stands for each, found in any case: a host's name has none, and tools write the
/// names of people in their own. A search takes time in proportion to what is searched through,
/// times the longest text that begins like it.
#[derive(Debug)]
pub(super) struct Known {
    /// Whether a text begins with a byte: most places of a file are left at once.
    first: [bool; 256],
    /// From a beginning and its next byte to a longer beginning; the empty one is 0.
    next: HashMap<(u32, u8), u32>,
    /// What stands for a text that ends here.
    ends: HashMap<u32, String>,
}

/// Where a known text is, and what stands for it.
pub(super) struct Found<'a> {
    /// First byte, and the byte after the last.
    pub place: (usize, usize),
    /// What stands for it.
    pub stands_for: &'a str,
}

impl Default for Known {
    fn default() -> Known {
        Known {
            first: [false; 256],
            next: HashMap::new(),
            ends: HashMap::new(),
        }
    }
}

impl Known {
    /// Adds a text, unless it is known.
    pub fn add(&mut self, text: &str, stands_for: &str) {
        let text = &text.as_bytes()[..text.len().min(LONGEST)];
        let Some(first) = text.first() else {
            return;
        };
        self.first[usize::from(first.to_ascii_lowercase())] = true;
        self.first[usize::from(first.to_ascii_uppercase())] = true;
        let mut node = 0;
        for byte in text {
            let following = u32::try_from(self.next.len() + 1).unwrap_or(u32::MAX);
            let step = (node, byte.to_ascii_lowercase());
            node = *self.next.entry(step).or_insert(following);
        }
        self.ends
            .entry(node)
            .or_insert_with(|| stands_for.to_owned());
    }

    /// What stands for a text.
    pub fn get(&self, text: &str) -> Option<&str> {
        let text = &text.as_bytes()[..text.len().min(LONGEST)];
        let node = text
            .iter()
            .try_fold(0, |node, byte| self.step(node, *byte))?;
        self.ends.get(&node).map(String::as_str)
    }

    /// The longer beginning after one more byte.
    fn step(&self, node: u32, byte: u8) -> Option<u32> {
        self.next.get(&(node, byte.to_ascii_lowercase())).copied()
    }

    /// The first known text from a byte on, the longest of those that begin there. As `words`, no
    /// letter, digit or underscore may continue it on either side.
    pub fn find(&self, content: &[u8], from: usize, words: bool) -> Option<Found<'_>> {
        if self.ends.is_empty() {
            return None;
        }
        (from..content.len()).find_map(|start| {
            if !self.first[usize::from(content[start])] || (words && !boundary(content, start)) {
                return None;
            }
            let mut node = 0;
            let mut longest = None;
            for (at, byte) in content.iter().enumerate().skip(start) {
                let Some(following) = self.step(node, *byte) else {
                    break;
                };
                node = following;
                if let Some(stands_for) = self.ends.get(&node)
                    && (!words || boundary(content, at + 1))
                {
                    longest = Some(Found {
                        place: (start, at + 1),
                        stands_for,
                    });
                }
            }
            longest
        })
    }

    /// Replaces each by what stands for it and counts them; `None` if there is none.
    pub fn replaced(&self, text: &str, words: bool, mut count: impl FnMut(&str)) -> Option<String> {
        let mut clean = String::new();
        let mut at = 0;
        while let Some(found) = self.find(text.as_bytes(), at, words) {
            let (start, end) = found.place;
            // A beginning that was kept may end within a letter of several bytes.
            let end = (end..=text.len()).find(|end| text.is_char_boundary(*end))?;
            clean.push_str(text.get(at..start)?);
            clean.push_str(found.stands_for);
            count(found.stands_for);
            at = end;
        }
        (at > 0).then(|| clean + &text[at..])
    }
}

/// Whether a word begins or ends before this byte. Bytes of letters beyond ASCII continue no word:
/// then more is found, not less.
fn boundary(content: &[u8], at: usize) -> bool {
    let word = |at: Option<usize>| {
        at.and_then(|at| content.get(at))
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    !(word(at.checked_sub(1)) && word(Some(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_many_known_texts_is_found_at_each_place() {
        let mut known = Known::default();
        for name in ["gpu-box", "gpu-box-7", "ada"] {
            known.add(name, "x");
        }
        let of = |text: &str, words: bool| known.replaced(text, words, |_| ());
        assert_eq!(
            of("ada on gpu-box-7, gpu-box-71", true).unwrap(),
            "x on x, x-71"
        );
        assert_eq!(of("Ada on GPU-Box-7", true).unwrap(), "x on x");
        assert_eq!(of("adaline", true), None);
        assert_eq!(of("adaline", false).unwrap(), "xline");
        assert_eq!(known.get("gpu-box"), Some("x"));
        assert_eq!(known.get("gpu-bo"), None);
    }

    #[test]
    fn a_text_longer_than_any_name_is_known_by_its_beginning() {
        let mut known = Known::default();
        let long = "ö".repeat(LONGEST);
        known.add(&long, "x");
        assert!(
            known
                .replaced(&long, false, |_| ())
                .unwrap()
                .starts_with('x')
        );
    }
}
