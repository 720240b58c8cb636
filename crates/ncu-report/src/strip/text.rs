//! Paths, names and numbers of machines in texts.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::LazyLock;

use regex::{Captures, Regex, bytes};

use super::known::Known;

/// Where an absolute path may begin, and a path of at least two parts: a single `/name` reveals
/// nothing. A slash after a letter occurs in `byte/second`, one after another in a URL. Not all
/// languages have a blank before it: letters beyond ASCII are no part of a word here.
const PATH: &str = r#"(^|[\s"'`=:;,(\[{<>|]|[^\x00-\x7F]|-[A-Za-z]|file://)((?:~[A-Za-z0-9._-]*)?/[A-Za-z0-9._~@%+-][^\s"'`;,:|<>()\[\]{}/]*/[^\s"'`;,:|<>()\[\]{}]*|~[A-Za-z0-9._-]*/[^\s"'`;,:|<>()\[\]{}]+)"#;
const WINDOWS_PATH: &str = r#"(?-u:\b)[A-Za-z]:\\(?:[^\s"'\\]+\\)+"#;
const UUID: &str =
    r"(?-u:\b)(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?-u:\b)";
const ADDRESS: &str = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+";
const CREDENTIAL: &str =
    r"(?i)(?-u:\b)([a-z0-9_-]*(?:token|secret|password|passwd|api[_-]?key)=)([^\s&]+)";
/// Credentials that are known by their beginnings, and a name with a password in a URL.
const TOKEN: &str = r"(?-u:\b)(?:(?:gh[pousr]_|hf_)[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}(?-u:\b)|github_pat_[A-Za-z0-9_]{22,}|(?:glpat|xox[abprs])-[A-Za-z0-9_-]{20,})";
const LOGIN: &str = r"(://)[A-Za-z0-9._%+-]+:[^\s:/@]+@";
/// The same where anything may stand around it.
const LOOSE: &str = r"/[A-Za-z0-9._~@%+-]{3,}/[A-Za-z0-9._~@%+-]{2}|[A-Za-z]:\\|(?:GPU|MIG)-[0-9a-fA-F]{8}-|@[A-Za-z0-9-]+\.[A-Za-z0-9]|(?i:token|secret|password|passwd|api[_-]?key)=|(?:gh[pousr]_|hf_)[A-Za-z0-9]{30}|AKIA[0-9A-Z]{16}|github_pat_[A-Za-z0-9_]{22}|(?:glpat|xox[abprs])-[A-Za-z0-9_-]{20}|://[A-Za-z0-9._%+-]+:[^\s:/@]+@";

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants that the tests compile"
)]
fn compiled<R: FromStr<Err = regex::Error>>(pattern: &str) -> R {
    pattern.parse().expect("a valid pattern")
}

static PATHS: LazyLock<Regex> = LazyLock::new(|| compiled(PATH));
static WINDOWS_PATHS: LazyLock<Regex> = LazyLock::new(|| compiled(WINDOWS_PATH));
static UUIDS: LazyLock<Regex> = LazyLock::new(|| compiled(UUID));
static ADDRESSES: LazyLock<Regex> = LazyLock::new(|| compiled(ADDRESS));
static CREDENTIALS: LazyLock<Regex> = LazyLock::new(|| compiled(CREDENTIAL));
static TOKENS: LazyLock<Regex> = LazyLock::new(|| compiled(TOKEN));
static LOGINS: LazyLock<Regex> = LazyLock::new(|| compiled(LOGIN));
static SUSPECTS: LazyLock<bytes::Regex> = LazyLock::new(|| compiled(LOOSE));

/// Names that identify nobody: accounts that every machine has, and words of the trade, which stand
/// in every capture.
const COMMON: &str = "\
    admin administrator agent azureuser bench block build builder buildkite cache clock compute \
    container core cuda default device devel docker dram driver ec2-user gitlab-runner gpus \
    graph grid guest host jenkins kernel launch local localhost localhost.localdomain login main \
    memory metric ncu nobody none nvcc nvidia process profile profiler ptxas report root runner \
    sample shared stream tensor test thread ubuntu user \
";

/// Removes the names of people and machines from texts. One GPU has one name in all of them.
#[derive(Debug, Default)]
pub struct Scrubber {
    /// Words that identify nobody, beside [`COMMON`].
    words: BTreeSet<String>,
    gpus: Known,
    gpu_count: usize,
    /// Names of hosts and people, with their replacements.
    names: Known,
    /// Folders of the paths that were shortened, with a slash at the end and without.
    folders: Known,
    /// How many of each kind were removed.
    pub removed: BTreeMap<&'static str, u64>,
}

impl Scrubber {
    /// Knows no names yet. `words`, also without an `s` at the end, are never taken for one.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Scrubber {
        let words = words.into_iter();
        let singular_too = words.flat_map(|word| [word, word.strip_suffix('s').unwrap_or(word)]);
        Scrubber {
            words: singular_too.map(str::to_owned).collect(),
            ..Scrubber::default()
        }
    }

    /// Removes a host's name from all texts that follow.
    pub fn learn_host(&mut self, name: &str) {
        self.learn(name, "host");
    }

    /// Removes a person's name from all texts that follow.
    pub fn learn_user(&mut self, name: &str) {
        self.learn(name, "user");
    }

    /// A name of three letters or fewer is ignored: it is part of too many words.
    fn learn(&mut self, name: &str, stands_for: &'static str) {
        let lower = name.to_ascii_lowercase();
        let is_common =
            COMMON.split_whitespace().any(|word| word == lower) || self.words.contains(&lower);
        if name.len() > 3 && !is_common {
            self.names.add(name, stands_for);
        }
    }

    /// Counts something that was removed.
    pub fn count(&mut self, kind: &'static str) {
        *self.removed.entry(kind).or_default() += 1;
    }

    /// The replacement of a GPU's UUID: `GPU-1`, `GPU-2` in the order of appearance.
    pub fn gpu(&mut self, uuid: &str) -> String {
        self.count("GPU UUID");
        if let Some(known) = self.gpus.get(uuid) {
            return known.to_owned();
        }
        self.gpu_count += 1;
        let kind = uuid.get(..3).unwrap_or("GPU");
        let name = format!("{kind}-{}", self.gpu_count);
        self.gpus.add(uuid, &name);
        name
    }

    /// A text that is a path, or contains some; unchanged if there is nothing to remove.
    pub fn whole(&mut self, text: &str) -> String {
        let is_path = text.starts_with('/') && text[1..].contains('/') && !text.starts_with("//");
        // A folder's name may contain spaces; a command has options or paths after a space.
        let is_command = [" -", " /", "\n"].iter().any(|sign| text.contains(sign));
        if is_path && !is_command {
            let name = self.shortened(text);
            return self.text(&name).unwrap_or(name);
        }
        self.text(text).unwrap_or_else(|| text.to_owned())
    }

    /// The last part of a path.
    fn shortened(&mut self, path: &str) -> String {
        self.count("path");
        let trimmed = path.trim_end_matches('/');
        let (folder, name) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
        if folder.matches('/').count() >= 2 || folder.starts_with('~') {
            self.folders.add(folder, "");
            self.folders.add(&format!("{folder}/"), "");
        }
        self.known_names(name).unwrap_or_else(|| name.to_owned())
    }

    /// The text without them; `None` if there are none.
    pub fn text(&mut self, text: &str) -> Option<String> {
        let mut clean = self.without_gpus(text);
        clean = PATHS
            .replace_all(&clean, |found: &Captures<'_>| {
                format!("{}{}", &found[1], self.shortened(&found[2]))
            })
            .into_owned();
        for (pattern, kind, stands_for) in [
            (&*WINDOWS_PATHS, "path", ""),
            (&*TOKENS, "credential", "credential"),
            (&*LOGINS, "credential", "$1"),
            (&*ADDRESSES, "address", "address"),
            (&*CREDENTIALS, "credential", "$1"),
        ] {
            pattern.find_iter(&clean).for_each(|_| self.count(kind));
            clean = pattern.replace_all(&clean, stands_for).into_owned();
        }
        let removed = &mut self.removed;
        let count = |_: &str| *removed.entry("path").or_default() += 1;
        clean = self.folders.replaced(&clean, false, count).unwrap_or(clean);
        clean = self.known_names(&clean).unwrap_or(clean);
        // What was around something that is gone may be one number now.
        clean = self.without_gpus(&clean);
        (clean != text).then_some(clean)
    }

    fn without_gpus(&mut self, text: &str) -> String {
        UUIDS
            .replace_all(text, |found: &Captures<'_>| self.gpu(&found[0]))
            .into_owned()
    }

    fn known_names(&mut self, text: &str) -> Option<String> {
        let removed = &mut self.removed;
        self.names.replaced(text, true, |stands_for| {
            let kind = match stands_for {
                "host" => "host name",
                _ => "user name",
            };
            *removed.entry(kind).or_default() += 1;
        })
    }

    /// The first text in a copy that must not be published: a name as a word of its own, anything
    /// else wherever it stands.
    pub fn forbidden_in(&self, content: &[u8]) -> Option<String> {
        let found = self
            .names
            .find(content, 0, true)
            .or_else(|| self.folders.find(content, 0, false))
            .or_else(|| self.gpus.find(content, 0, false))?;
        let (start, end) = found.place;
        Some(String::from_utf8_lossy(&content[start..end]).into_owned())
    }

    /// Whether bytes contain whatever may be a path, a UUID, an address, a credential, or a known
    /// name. In bytes anything may precede a path, so there are false matches.
    pub fn suspects(&self, content: &[u8]) -> bool {
        SUSPECTS.is_match(content) || self.forbidden_in(content).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_their_last_part_wherever_they_stand() {
        let mut scrubber = Scrubber::default();
        let table = r"
            /opt/run/ncu --export /home/ada/out/capture-1 | ncu --export capture-1
            nvcc -I/home/ada/include -Xptxas -v a.cu | nvcc -Iinclude -Xptxas -v a.cu
            ==PROF== Report: '/tmp/x y/z.ncu-rep' | ==PROF== Report: 'x y/z.ncu-rep'
            --log-file=~ada/log/x | --log-file=x
            file:///home/ada/include/a | file://a
            C:\Users\ada\x.cu failed | x.cu failed
            保存在/home/ada/out/capture-1 | 保存在capture-1
            /home/ada/a@example.org | address";
        for row in table.trim().lines() {
            let (text, clean) = row.trim().split_once(" | ").unwrap();
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
        // Without a blank before it, and as the name of a file.
        assert_eq!(scrubber.whole(&format!("显卡{one}")), "显卡GPU-1");
        assert_eq!(scrubber.whole(&format!("/home/ada/{one}")), "GPU-1");
        let parted = one.replacen("-8f7b", r"-C:\Users\ada\8f7b", 1);
        assert_eq!(scrubber.whole(&parted), "GPU-1");
    }

    #[test]
    fn credentials_without_a_name_are_known_by_their_form() {
        let mut scrubber = Scrubber::default();
        for (text, clean) in [
            ("ghp_0123456789abcdefABCDEF0123456789ABCD", "credential"),
            ("--t=glpat-0123456789abcdef-_xyz0", "--t=credential"),
            ("AKIA0123456789ABCDEF", "credential"),
            (
                "https://ada:hunter2@localhost:80/x", "https://localhost:80/x",
            ),
        ] {
            assert!(scrubber.suspects(text.as_bytes()), "{text}");
            assert_eq!(scrubber.whole(text), clean);
        }
        for text in [
            "hf_attention_forward_kernel_of_some_length",
            "gemm_ghp_tile",
            "std::pair<a:b@c>",
            "1:2@3",
        ] {
            assert_eq!(scrubber.text(text), None);
        }
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

    #[test]
    fn words_of_the_trade_are_no_names() {
        let mut scrubber = Scrubber::new(["warps"]);
        for name in ["cuda", "warp", "Tensor", "kernel", "runner", "dram"] {
            scrubber.learn(name, "user");
            let text = format!("{name} of {name}");
            assert_eq!(scrubber.whole(&text), text);
            assert_eq!(scrubber.forbidden_in(text.as_bytes()), None);
        }
        scrubber.learn("ada_lovelace", "user");
        assert_eq!(scrubber.whole("ada_lovelace"), "user");
    }

    #[test]
    fn the_search_for_what_is_left_has_no_most_of_names() {
        let mut scrubber = Scrubber::default();
        for at in 0..50_000 {
            scrubber.learn_host(&format!("host-{at}-{}", "x".repeat(40)));
        }
        let secret = format!("\u{1}host-49999-{}\u{2}", "x".repeat(40));
        let left = scrubber.forbidden_in(secret.as_bytes());
        assert_eq!(left.as_deref(), Some(&secret[1..secret.len() - 1]));
    }
}
