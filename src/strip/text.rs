//! Paths, names and numbers of machines in texts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex, bytes};

/// Where an absolute path may begin, and a path of at least two parts: a single `/name` reveals
/// nothing. A slash after a letter occurs in `byte/second`, one after another in a URL.
const PATH: &str = r#"(^|[\s"'`=:;,(\[{<>|]|-[A-Za-z]|file://)((?:~[A-Za-z0-9._-]*)?/[A-Za-z0-9._~@%+-][^\s"'`;,:|<>()\[\]{}/]*/[^\s"'`;,:|<>()\[\]{}]*|~[A-Za-z0-9._-]*/[^\s"'`;,:|<>()\[\]{}]+)"#;
const WINDOWS_PATH: &str = r#"\b[A-Za-z]:\\(?:[^\s"'\\]+\\)+"#;
const UUID: &str = r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b";
const ADDRESS: &str = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+";
const CREDENTIAL: &str =
    r"(?i)\b([a-z0-9_-]*(?:token|secret|password|passwd|api[_-]?key)=)([^\s&]+)";

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants that the tests compile"
)]
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

static PATHS: LazyLock<Regex> = LazyLock::new(|| compiled(PATH));
static WINDOWS_PATHS: LazyLock<Regex> = LazyLock::new(|| compiled(WINDOWS_PATH));
static UUIDS: LazyLock<Regex> = LazyLock::new(|| compiled(UUID));
static ADDRESSES: LazyLock<Regex> = LazyLock::new(|| compiled(ADDRESS));
static CREDENTIALS: LazyLock<Regex> = LazyLock::new(|| compiled(CREDENTIAL));
/// Names that identify nobody.
const COMMON: [&str; 8] = [
    "root",
    "user",
    "runner",
    "ubuntu",
    "nobody",
    "localhost",
    "host",
    "docker",
];

/// Removes the names of people and machines from texts. One GPU has one name in all of them.
#[derive(Debug, Default)]
pub struct Scrubber {
    gpus: BTreeMap<String, String>,
    /// Names of hosts and people, with their replacements.
    names: BTreeMap<String, &'static str>,
    /// Folders of the paths that were shortened.
    folders: BTreeSet<String>,
    /// How many of each kind were removed.
    pub removed: BTreeMap<&'static str, u64>,
}

impl Scrubber {
    /// Knows the names of this machine and its user.
    pub fn of_this_machine() -> Scrubber {
        let mut scrubber = Scrubber::default();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        scrubber.learn_host(host.trim());
        for variable in ["USER", "LOGNAME"] {
            let name = std::env::var(variable).unwrap_or_default();
            scrubber.learn(&name, "user");
        }
        scrubber
    }

    /// Removes a host's name from all texts that follow.
    pub fn learn_host(&mut self, name: &str) {
        self.learn(name, "host");
    }

    /// A name of three letters or fewer is ignored: it is part of too many words.
    fn learn(&mut self, name: &str, stands_for: &'static str) {
        if name.len() > 3 && !COMMON.contains(&name) {
            self.names.insert(name.to_owned(), stands_for);
        }
    }

    /// Counts something that was removed.
    pub fn count(&mut self, kind: &'static str) {
        *self.removed.entry(kind).or_default() += 1;
    }

    /// The replacement of a GPU's UUID: `GPU-1`, `GPU-2` in the order of appearance.
    pub fn gpu(&mut self, uuid: &str) -> String {
        self.count("GPU UUID");
        let next = self.gpus.len() + 1;
        let kind = uuid.get(..3).unwrap_or("GPU");
        let named = self.gpus.entry(uuid.to_owned());
        named.or_insert_with(|| format!("{kind}-{next}")).clone()
    }

    /// A text that is a path, or contains some; unchanged if there is nothing to remove.
    pub fn whole(&mut self, text: &str) -> String {
        let is_path = text.starts_with('/') && text[1..].contains('/') && !text.starts_with("//");
        // A folder's name may contain spaces; a command has options or paths after a space.
        let is_command = [" -", " /", "\n"].iter().any(|sign| text.contains(sign));
        if is_path && !is_command {
            return self.shortened(text);
        }
        self.text(text).unwrap_or_else(|| text.to_owned())
    }

    /// The last part of a path.
    fn shortened(&mut self, path: &str) -> String {
        self.count("path");
        let trimmed = path.trim_end_matches('/');
        let (folder, name) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
        if folder.matches('/').count() >= 2 || folder.starts_with('~') {
            self.folders.insert(folder.to_owned());
        }
        self.known_names(name).unwrap_or_else(|| name.to_owned())
    }

    /// The text without them; `None` if there are none.
    pub fn text(&mut self, text: &str) -> Option<String> {
        let mut clean = text.to_owned();
        clean = UUIDS
            .replace_all(&clean, |found: &Captures<'_>| self.gpu(&found[0]))
            .into_owned();
        clean = PATHS
            .replace_all(&clean, |found: &Captures<'_>| {
                format!("{}{}", &found[1], self.shortened(&found[2]))
            })
            .into_owned();
        clean = WINDOWS_PATHS
            .replace_all(&clean, |_: &Captures<'_>| {
                self.count("path");
                ""
            })
            .into_owned();
        clean = ADDRESSES
            .replace_all(&clean, |_: &Captures<'_>| {
                self.count("address");
                "address"
            })
            .into_owned();
        clean = CREDENTIALS
            .replace_all(&clean, |found: &Captures<'_>| {
                self.count("credential");
                found[1].to_owned()
            })
            .into_owned();
        for folder in self.folders.clone() {
            if clean.contains(&folder) {
                clean = clean
                    .replace(&format!("{folder}/"), "")
                    .replace(&folder, "");
                self.count("path");
            }
        }
        clean = self.known_names(&clean).unwrap_or(clean);
        (clean != text).then_some(clean)
    }

    fn known_names(&mut self, text: &str) -> Option<String> {
        let mut clean = text.to_owned();
        for (name, stands_for) in self.names.clone() {
            let alone = Regex::new(&format!(r"\b{}\b", regex::escape(&name))).ok()?;
            if alone.is_match(&clean) {
                clean = alone.replace_all(&clean, stands_for).into_owned();
                self.count(if stands_for == "host" {
                    "host name"
                } else {
                    "user name"
                });
            }
        }
        (clean != text).then_some(clean)
    }

    /// Every name that must not be published.
    pub fn forbidden(&self) -> Vec<String> {
        let names = self.names.keys();
        names
            .chain(&self.folders)
            .chain(self.gpus.keys())
            .cloned()
            .collect()
    }
}

/// Finds in bytes whatever may be a path, a UUID, an address, a credential, or one of these names.
/// In bytes anything may precede a path, so there are false matches.
pub fn suspects(names: &[String]) -> Option<bytes::Regex> {
    const LOOSE: &str = r"/[A-Za-z0-9._~@%+-]{3,}/[A-Za-z0-9._~@%+-]{2}|[A-Za-z]:\\|(?:GPU|MIG)-[0-9a-fA-F]{8}-|@[A-Za-z0-9-]+\.[A-Za-z0-9]|(?i:token|secret|password|passwd|api[_-]?key)=";
    let names = any_of(names).unwrap_or_default();
    let pattern = if names.is_empty() {
        LOOSE.to_owned()
    } else {
        format!("{LOOSE}|{names}")
    };
    bytes::Regex::new(&pattern).ok()
}

/// The first of these texts in the bytes.
pub fn first_of<'t>(content: &'t [u8], texts: &[String]) -> Option<&'t str> {
    let any = bytes::Regex::new(&any_of(texts)?).ok()?;
    std::str::from_utf8(any.find(content)?.as_bytes()).ok()
}

fn any_of(texts: &[String]) -> Option<String> {
    let texts: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
    (!texts.is_empty()).then(|| texts.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_their_last_part_wherever_they_stand() {
        let mut scrubber = Scrubber::default();
        for (text, clean) in [
            (
                "/opt/run/ncu --export /home/ada/out/capture-1",
                "ncu --export capture-1",
            ),
            (
                "nvcc -I/home/ada/include -Xptxas -v a.cu",
                "nvcc -Iinclude -Xptxas -v a.cu",
            ),
            (
                "==PROF== Report: '/tmp/x y/z.ncu-rep'",
                "==PROF== Report: 'x y/z.ncu-rep'",
            ),
            ("--log-file=~ada/log/x", "--log-file=x"),
            ("file:///home/ada/include/a", "file://a"),
            (r"C:\Users\ada\x.cu failed", "x.cu failed"),
        ] {
            assert_eq!(scrubber.whole(text), clean);
        }
    }

    #[test]
    fn a_text_that_only_looks_like_a_path_is_kept() {
        let mut scrubber = Scrubber::default();
        for text in [
            "byte/second",
            "` ( launch__a * 100 ) / device__b",
            "see https://docs.nvidia.com/cuda/index.html#x",
            "1 / 2",
            "n/a",
            "--blocks 1/2/3",
            "2025.3.1.0 (build 36398880)",
        ] {
            assert_eq!(scrubber.text(text), None);
        }
    }

    #[test]
    fn one_gpu_has_one_name_and_credentials_have_none() {
        let mut scrubber = Scrubber::default();
        let one = "GPU-cdbc441e-9a00-8f7b-9de3-51af352a5239";
        let other = "GPU-1ce7ca77-31a4-5d56-60e9-c0af18c1ca29";
        let text = format!("{one} {other} {one} API_TOKEN=abc --num-tokens=4096 ada@example.org");
        assert_eq!(
            scrubber.whole(&text),
            "GPU-1 GPU-2 GPU-1 API_TOKEN= --num-tokens=4096 address"
        );
    }

    #[test]
    fn names_of_hosts_and_people_are_replaced_as_whole_words() {
        let mut scrubber = Scrubber::default();
        scrubber.learn_host("gpu-box-7");
        scrubber.learn("adal", "user");
        scrubber.learn("vm", "host");
        assert_eq!(
            scrubber.whole("adal on gpu-box-7 in adaline, vm"),
            "user on host in adaline, vm"
        );
    }
}
