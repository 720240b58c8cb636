//! README can be read in five minutes: it is short, its sentences are, and its words are explained.

use std::process::Command;

use crate::common::{Project, outside_pull_request, repository};
use crate::markdown::{blocks, read, sentences, texts};
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::plan::VariantPlan;

/// The most words, as `wc -w` counts them.
const WORDS: usize = 900;
/// The most words of a sentence.
const SENTENCE: usize = 25;
/// The words of this tool that a reader may not know. Where each comes first, it is explained, and
/// therefore set in italics.
const TERMS: [&str; 5] = [
    "baseline", "hardware counter", "launch", "tolerance", "variant",
];
/// Words that a reader need not learn here.
const LATER: [&str; 7] = [
    "suite", "gated metric", "lock", "ledger", "tier", "waiver", "norm file",
];

fn all_sentences(text: &str) -> Vec<String> {
    let texts = texts(text).into_iter();
    texts.flat_map(|text| sentences(&text)).collect()
}

#[test]
fn the_readme_is_short_and_so_is_every_sentence() {
    let readme = read("README.md");
    let words = readme.split_whitespace().count();
    assert!(words <= WORDS, "{words} words, more than {WORDS}");
    let all = all_sentences(&readme);
    assert!(all.len() > 40, "{} sentences", all.len());
    for sentence in all {
        let words = sentence.split_whitespace().count();
        assert!(words <= SENTENCE, "{words} words: {sentence}");
    }
}

#[test]
fn a_long_sentence_is_counted_across_lines_and_code() {
    let text = "One `--two three` four\nfive. Six (seven!) Eight\n\n* nine";
    let expected = ["One --twothree four five", "Six (seven", "Eight", "nine"];
    assert_eq!(all_sentences(text), expected);
}

#[test]
fn no_word_of_the_tool_stands_in_the_readme_before_it_is_explained() {
    let readme = read("README.md");
    let code = regex::Regex::new(r"(?s)```.*?```|`[^`]*`|!\[.*?\]\(.*?\)").unwrap();
    let prose = code.replace_all(&readme, "").to_lowercase();
    for term in TERMS {
        let first = prose.find(term);
        let first = first.unwrap_or_else(|| panic!("README.md does not explain `{term}`"));
        let line = prose[first..].lines().next().unwrap();
        let is_explained = prose[..first].ends_with('*');
        assert!(
            is_explained,
            "`{term}` comes before its explanation: {line}"
        );
    }
    for term in LATER {
        let found = regex::Regex::new(&format!(r"\b{term}")).unwrap();
        assert!(!found.is_match(&prose), "{term}");
    }
}

/// The cells of each row of the tables in a text.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("| "));
    lines
        .map(|line| line.trim_end_matches(" |").split(" | ").collect())
        .collect()
}

#[test]
fn every_figure_of_how_far_to_trust_is_the_one_of_its_page() {
    let readme = read("README.md");
    let (_, section) = readme.split_once("\n## How far the numbers").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let page = read("docs/check.md");
    let (_, page) = page.split_once("\n## How often it is wrong\n").unwrap();
    let there = rows(page);
    let [_, alarms, open, slower @ ..] = &rows(section)[..] else {
        panic!("README.md has no table of how far to trust");
    };
    for (column, name) in [
        (1, "side by side"),
        (2, "against a baseline locked on two other GPUs"),
    ] {
        let row = vec![name, alarms[column], open[column]];
        assert!(there.contains(&row), "docs/check.md has no row {row:?}");
    }
    assert!(slower.len() >= 2, "{slower:?}");
    for row in slower {
        let name = format!("by {}", row[0].trim_end_matches(" slower"));
        let found = there.iter().find(|there| there[0] == name);
        let found = found.unwrap_or_else(|| panic!("docs/check.md has no row {name}"));
        assert_eq!(found[1], row[1], "{name}");
        // One of them says in more words why not.
        let first = |cell: &str| cell.split([' ', ':']).next().unwrap().to_owned();
        assert_eq!(first(found[2]), first(row[2]), "{name}");
    }
    for both in [
        "20,000 checks", "26 %", "20 launches", "two other GPUs", "ten GPUs",
    ] {
        assert!(section.contains(both) && page.contains(both), "{both}");
    }
    let day = regex::Regex::new(r"\d{4}-\d\d-\d\d").unwrap();
    assert_eq!(
        day.find(section).unwrap().as_str(),
        day.find(page).unwrap().as_str()
    );
}

#[test]
fn what_a_check_costs_is_what_its_pages_say() {
    let readme = read("README.md");
    let (_, section) = readme.split_once("\n## What a check costs").unwrap();
    let section = section.split("\n## ").next().unwrap();
    for (page, figures) in [
        ("docs/check.md", ["ten", "91 s", "16 s", "2026-11-28"]),
        (
            "docs/static.md",
            ["18 variants", "49 s", "nothing", "2026-11-22"],
        ),
    ] {
        let there = read(page);
        for figure in figures {
            let both = section.contains(figure) && there.contains(figure);
            assert!(both, "{figure} is not in README.md and {page}");
        }
    }
}

#[test]
fn the_five_lines_of_configuration_are_enough() {
    let found = blocks("README.md");
    let first = found.iter().find(|block| block.language == "toml");
    let lines = &first.unwrap().text;
    assert!(lines.lines().count() <= 5, "{lines}");
    let project = Project::empty();
    project.write("config.toml", lines);
    project.write("kernels/softmax.cu", "");
    project.run("list").ends(0, "softmax/cuda");
    let config = Config::load(&project.path("config.toml")).unwrap();
    let timed = |variant: &Variant| !VariantPlan::alone(variant).rounds.is_empty();
    assert!(config.variants().all(timed));
}

#[test]
fn the_configuration_of_this_repository_is_short_enough_to_be_a_model() {
    let config = read("config.toml");
    let stated = config.lines().map(str::trim_start);
    let stated = stated.filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert!(stated.count() <= 150);
}

/// The file with the picture of a failing report.
const PICTURE: &str = "docs/failing-report.svg";
/// The size of the picture in pixels: `tests/documents/site.rs` measures whether all of it is seen.
const WIDTH: u32 = 860;
pub const HEIGHT: u32 = 462;

/// The head and the findings of the HTML report on the kernel that was made worse, as a picture.
fn picture() -> String {
    let mut gate = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"));
    outside_pull_request(&mut gate);
    let output = gate
        .current_dir(repository())
        .args(["check", "bsr_gemm/cp_async"])
        .args(["--from", "ci/recordings/h200-worse"])
        .args(["--baseline-ref", "none", "--format", "html"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    // XML has no elements without an end.
    let page = String::from_utf8(output.stdout)
        .unwrap()
        .replace("<wbr>", "");
    let part = |from: &str, to: &str| {
        let start = page.find(from).unwrap();
        let length = page[start..].find(to).unwrap() + to.len();
        &page[start..start + length]
    };
    let style = part("<style>", "</style>").trim_start_matches("<style>");
    let style = style.trim_end_matches("</style>");
    // The body of the page is an element of the picture.
    let style = style.replace("\nbody {", "\n.body {");
    assert!(style.contains("\n.body {"));
    let head = part("<header", "</header>");
    let fails = part("<section id=\"fails\"", "</section>");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>The report of a failed check</title>\n\
         <style><![CDATA[\n{style}\n.body {{ height: 100%; border: 1px solid var(--line); \
         border-radius: 8px; box-sizing: border-box; }}\n]]></style>\n\
         <foreignObject width=\"{WIDTH}\" height=\"{HEIGHT}\">\n\
         <div xmlns=\"http://www.w3.org/1999/xhtml\" class=\"body\">{head}<main>{fails}</main></div>\n\
         </foreignObject>\n</svg>\n"
    )
}

#[test]
fn the_picture_of_a_failing_report_is_what_the_program_makes() {
    let picture = picture();
    assert!(uppsala::parse(&picture).is_ok(), "{picture}");
    for part in ["slower: ", "544.77 us", "bank conflicts ×141", "-23.49 pt"] {
        assert!(picture.contains(part), "{part}");
    }
    crate::common::is_generated(PICTURE, &picture);
}
