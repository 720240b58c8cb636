//! What autotuners chose in a process, as it printed or reported it.
//!
//! Triton prints a sentence when it has tuned a kernel, if `TRITON_PRINT_AUTOTUNING` is 1:
//!
//! ```text
//! Triton autotuning for function NAME finished after 0.48s; best config selected: BLOCK: 128, num_warps: 4;
//! ```
//!
//! Newer versions put line breaks and the key into it. A program may also state what it launched, as
//! `tuned` in its result file: `{"tuned": {"NAME": "BLOCK: 128, num_warps: 4"}}`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What autotuners chose for one kernel in one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tuned {
    /// Name of the kernel's function.
    pub kernel: String,
    /// The configurations, sorted: one for each shape that was tuned.
    pub chosen: Vec<String>,
    /// Whether the process tuned it itself, so that it also launched what was not chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
}

/// Most kernels, configurations of a kernel, and characters of a text. What is beyond is not kept.
const MOST_KERNELS: usize = 64;
const MOST_CHOSEN: usize = 16;
const MOST_CHARACTERS: usize = 400;

const BEGIN: &str = "Triton autotuning for function ";
const CHOSEN: &str = "best config selected: ";
/// Most characters from the name of the function to the end of the sentence: its key may be long.
const MOST_OF_SENTENCE: usize = 16 << 10;

/// By the name of a kernel: what was chosen, and whether the process tuned it itself.
#[derive(Default)]
struct Found(BTreeMap<String, (BTreeSet<String>, bool)>);

impl Found {
    fn add(&mut self, kernel: &str, chosen: &str, in_process: bool) {
        let is_name = |c: char| c.is_alphanumeric() || "_.<>:$".contains(c);
        let long = kernel.chars().count() > MOST_CHARACTERS;
        if kernel.is_empty() || long || !kernel.chars().all(is_name) {
            return;
        }
        let room = self.0.len() < MOST_KERNELS;
        if !room && !self.0.contains_key(kernel) {
            return;
        }
        let (known, tuned) = self.0.entry(kernel.to_owned()).or_default();
        *tuned |= in_process;
        let words = chosen.split_whitespace().collect::<Vec<_>>().join(" ");
        let plain = words.chars().filter(|c| !c.is_control());
        let text: String = plain.take(MOST_CHARACTERS).collect();
        if known.len() < MOST_CHOSEN && !text.is_empty() {
            known.insert(text);
        }
    }
}

/// What autotuners chose in a process. `log` is what it printed, `result` its result file.
pub fn tuned(log: &str, result: &[u8]) -> Vec<Tuned> {
    let mut found = Found::default();
    for sentence in log.split(BEGIN).skip(1) {
        let most = sentence.char_indices().nth(MOST_OF_SENTENCE);
        let sentence = &sentence[..most.map_or(sentence.len(), |(end, _)| end)];
        let name = sentence.split([' ', ',', '\n']).next().unwrap_or_default();
        let Some((_, rest)) = sentence.split_once(CHOSEN) else {
            continue;
        };
        let chosen = rest.split(';').next().unwrap_or_default();
        // Another version adds the time, which differs in every run.
        let chosen = chosen.split(" with benchmark time").next();
        found.add(name, chosen.unwrap_or_default(), true);
    }
    #[derive(Deserialize)]
    struct Stated {
        tuned: BTreeMap<String, Value>,
    }
    if let Ok(stated) = serde_json::from_slice::<Stated>(result) {
        for (kernel, chosen) in &stated.tuned {
            for text in stated_texts(chosen) {
                found.add(kernel, &text, false);
            }
        }
    }
    let found = found.0.into_iter();
    let tuned = found.map(|(kernel, (chosen, in_process))| Tuned {
        kernel,
        chosen: chosen.into_iter().collect(),
        in_process,
    });
    tuned.filter(|tuned| !tuned.chosen.is_empty()).collect()
}

/// A text, a table of settings, or a list of these.
fn stated_texts(stated: &Value) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match stated {
        Value::Array(several) => several.iter().flat_map(stated_texts).collect(),
        Value::Object(settings) => {
            let settings = settings
                .iter()
                .map(|(name, value)| format!("{name}: {}", one(value)));
            vec![settings.collect::<Vec<_>>().join(", ")]
        }
        other => vec![one(other)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(kernel: &str, chosen: &[&str], in_process: bool) -> Tuned {
        Tuned {
            kernel: kernel.to_owned(),
            chosen: chosen.iter().map(|text| (*text).to_owned()).collect(),
            in_process,
        }
    }

    #[test]
    fn a_choice_is_read_from_each_form_of_the_sentence() {
        let config = "BLOCK_SIZE: 128, num_warps: 4, num_ctas: 1, num_stages: 2, maxnreg: None";
        for sentence in [
            format!(
                "Triton autotuning for function add_kernel finished after 0.48s; best config selected: {config};\n"
            ),
            format!(
                "Triton autotuning for function add_kernel,\nwith key as (4096, 'torch.float16; x'),\nfinished after 0.48s,\nbest config selected: {config};\n"
            ),
            format!(
                "[2026-11-23] Triton autotuning for function add_kernel finished after 0.48s; best config selected: {config} with benchmark time [0.1, 0.2];  evaluated 8 configurations;"
            ),
        ] {
            let log = format!("tuning\n{sentence}0 of 4 values are wrong\n");
            assert_eq!(tuned(&log, b""), [one("add_kernel", &[config], true)]);
        }
    }

    #[test]
    fn several_shapes_are_several_choices_and_a_result_file_adds_its_own() {
        let log = "Triton autotuning for function a finished after 1s; best config selected: N: 2;\n\
            Triton autotuning for function b finished after 1s; best config selected: N: 1;\n\
            Triton autotuning for function a finished after 1s; best config selected: N: 1;\n";
        let result = br#"{"correct": true, "tuned": {"c": {"M": 64, "kind": "tma"}, "a": ["N: 3", "N: 1"], "bad name": "x", "none": ""}}"#;
        assert_eq!(
            tuned(log, result),
            [
                one("a", &["N: 1", "N: 2", "N: 3"], true),
                one("b", &["N: 1"], true),
                one("c", &["M: 64, kind: tma"], false),
            ]
        );
    }

    #[test]
    fn what_is_no_choice_is_none_and_a_flood_is_bounded() {
        for log in [
            "",
            "Triton autotuning for function ",
            "Triton autotuning for function a finished after 1s",
            "Triton autotuning for function ; best config selected: N: 1;",
            "Triton autotuning for function a finished; best config selected: ;",
        ] {
            assert_eq!(tuned(log, b"{\"tuned\": 3}"), [], "{log}");
        }
        let flood: String = (0..1000)
            .map(|at| format!("{BEGIN}k{} x; {CHOSEN}{}{at};\n", at % 100, "é".repeat(900)))
            .collect();
        let found = tuned(&flood, b"");
        assert_eq!(found.len(), MOST_KERNELS);
        let longest = found.iter().flat_map(|one| &one.chosen);
        assert_eq!(
            longest.map(|text| text.chars().count()).max(),
            Some(MOST_CHARACTERS)
        );
    }
}
