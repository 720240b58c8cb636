//! Every command of a page is typed by a test, or its block says what it needs.
//!
//! The words behind the fence decide: `console` is typed by a test of its page, `sh run` by the test
//! here, in a copy of the repository, and `sh needs: a GPU` is not typed. `text shown` behind a block
//! has lines of what it prints. What is not a command has the language that it is written in.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use serde_json::Value as Json;

use crate::common::git::git;
use crate::common::{Project, copy, published_as, repository};
use crate::markdown::{Block, blocks, pages, read};
use crate::{shown_behind, typed, typed_in};

/// The pages that a test of their own types, block for block.
const TYPED: [&str; 3] = [
    "docs/first-gate.md", "docs/any-program.md", "docs/outputs.md",
];
/// Languages of commands.
const SHELLS: [&str; 4] = ["sh", "bash", "shell", "console"];
/// Languages in which nobody types a command.
const OTHERS: [&str; 8] = [
    "text", "toml", "yaml", "json", "python", "cuda", "cpp", "rust",
];

/// Why nothing types the commands of a block, although nothing says what they need.
fn untyped(block: &Block) -> Option<String> {
    let place = block.place();
    let how = "write `sh run`, `sh needs: …` or the language of the text behind its fence";
    if block.language.is_empty() {
        return Some(format!("{place}: the block has no language: {how}"));
    }
    if SHELLS.contains(&block.language.as_str()) {
        let own_test = TYPED.contains(&block.page.as_str()) && block.language == "console";
        let needs = block.mark.strip_prefix("needs: ");
        let says = needs.is_some_and(|what| !what.trim().is_empty()) || block.mark == "run";
        return (!own_test && !says).then(|| format!("{place}: nothing types the commands: {how}"));
    }
    if !OTHERS.contains(&block.language.as_str()) {
        return Some(format!(
            "{place}: `{}` is no language of a page: {how}",
            block.language
        ));
    }
    let command = |line: &str| line.starts_with("$ ") || line.starts_with("sparsek-gate ");
    // The text of a `--help` has examples; their arguments are those that the program knows.
    (block.language == "text" && block.mark != "help" && block.text.lines().any(command))
        .then(|| format!("{place}: there is a command in the text: {how}"))
}

#[test]
fn every_command_of_a_page_is_typed_or_says_what_it_needs() {
    let all: Vec<Block> = pages().iter().flat_map(|page| blocks(page)).collect();
    let wrong: Vec<String> = all.iter().filter_map(untyped).collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert!(all.len() > 60, "{} blocks", all.len());
}

#[test]
fn a_block_of_commands_without_a_mark_is_found() {
    let block = |language: &str, mark: &str, text: &str| Block {
        page: "docs/a.md".to_owned(),
        line: 1,
        language: language.to_owned(),
        mark: mark.to_owned(),
        text: text.to_owned(),
    };
    for (language, mark, text) in [
        ("", "", "sparsek-gate check\n"),
        ("sh", "", "sparsek-gate check\n"),
        ("sh", "needs: ", "sparsek-gate check\n"),
        ("console", "", "$ sparsek-gate check\n"),
        ("text", "", "a\nsparsek-gate check\n"),
        ("zsh", "needs: a GPU", "sparsek-gate check\n"),
    ] {
        assert!(
            untyped(&block(language, mark, text)).is_some(),
            "{language} {mark}"
        );
    }
    assert!(untyped(&block("sh", "needs: a GPU", "sparsek-gate check\n")).is_none());
}

/// A copy of the repository, with as much of it as the commands read.
fn checkout() -> Project {
    let project = Project::empty();
    let root = repository();
    for folder in ["kernels", "baselines", "ci/recordings"] {
        copy(&root.join(folder), &project.path(&format!("work/{folder}")));
    }
    let config = std::fs::read(root.join("config.toml")).unwrap();
    project.write("work/config.toml", config);
    let work = project.path("work");
    git(&work, "init --quiet");
    git(&work, "add config.toml kernels baselines");
    git(&work, &["commit", "--quiet", "--message", "A clone"]);
    std::fs::create_dir(project.path("bin")).unwrap();
    symlink(
        env!("CARGO_BIN_EXE_sparsek-gate"),
        project.path("bin/sparsek-gate"),
    )
    .unwrap();
    // What cargo would build and run: the program under test, and the tests, which run now.
    let cargo = "#!/bin/sh\ncase \"$*\" in\n\
        'run -- '*) shift 2; exec sparsek-gate \"$@\" ;;\n\
        test) ;;\n*) echo \"cargo $*\" >&2; exit 1 ;;\nesac\n";
    project.program("bin/cargo", cargo);
    project
}

#[test]
fn commands_that_are_marked_to_run_do_what_their_page_shows() {
    let project = checkout();
    let mut typed_before = BTreeSet::new();
    for page in pages() {
        let found = blocks(&page);
        let marked = found.iter().enumerate();
        let marked = marked.filter(|(_, block)| block.mark == "run");
        for (at, block) in marked.filter(|_| !TYPED.contains(&page.as_str())) {
            if block.language == "console" {
                for (command, shown) in typed_in(&block.text) {
                    typed(&project, command, shown, &[]);
                }
                continue;
            }
            let shown = shown_behind(&found, at);
            if !shown.is_empty() {
                typed(&project, &block.text, shown, &[]);
                continue;
            }
            for command in block.text.replace("\\\n", " ").lines() {
                if typed_before.insert(command.to_owned()) {
                    typed(&project, command, "", &[]);
                }
            }
        }
    }
    assert!(typed_before.len() > 12, "{typed_before:?}");
}

#[test]
fn every_configuration_and_every_workflow_of_a_page_can_be_read() {
    let schema: Json =
        serde_json::from_str(&read("tests/data/schemas/github-workflows.json")).unwrap();
    let workflow = jsonschema::draft7::new(&schema).unwrap();
    let action: Json = serde_yaml_ng::from_str(&read("action.yml")).unwrap();
    let (mut configurations, mut workflows) = (0, 0);
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let place = block.place();
        if block.language == "toml" {
            let read = toml::from_str::<toml::Table>(&block.text);
            assert!(read.is_ok(), "{place}: {}", read.unwrap_err());
            configurations += 1;
        }
        if block.language != "yaml" {
            continue;
        }
        let document = serde_yaml_ng::from_str::<Json>(&block.text);
        assert!(document.is_ok(), "{place}: {}", document.unwrap_err());
        let document = document.unwrap();
        let Some(jobs) = document["jobs"].as_object() else {
            continue;
        };
        workflows += 1;
        let complaints: Vec<String> = workflow
            .iter_errors(&document)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(complaints, Vec::<String>::new(), "{place}");
        let steps = jobs.values().filter_map(|job| job["steps"].as_array());
        for step in steps.flatten() {
            let uses = step["uses"].as_str().unwrap_or_default();
            let named = step["with"].as_object().into_iter().flatten();
            if uses.starts_with(&format!("{}@", published_as())) {
                for (name, _) in named {
                    assert!(
                        !action["inputs"][name].is_null(),
                        "{place}: no input {name}"
                    );
                }
            } else if !uses.is_empty() {
                let commit = uses.rsplit('@').next().unwrap();
                assert!(
                    commit.len() == 40,
                    "{place}: {uses} is not pinned by commit"
                );
            }
        }
    }
    assert!(
        configurations >= 5 && workflows >= 2,
        "{configurations} {workflows}"
    );
}

#[test]
fn every_example_of_a_configuration_can_be_pasted_beside_the_files_that_it_names() {
    let found = blocks("docs/configuration.md");
    let examples: Vec<&Block> = found.iter().filter(|it| it.language == "toml").collect();
    let shown = [
        ("softmax.cu", &["softmax/cuda"][..]),
        ("softmax.cu", &["softmax/cuda"]),
        (
            "kernels/gemm.cu kernel.py bench.py build/bench",
            &["gemm/cuda", "gemm/triton-dtype_bf16-n_8192"],
        ),
    ];
    assert_eq!(examples.len(), shown.len());
    for (example, (files, variants)) in examples.iter().zip(shown) {
        let project = Project::empty();
        project.write("config.toml", &example.text);
        for file in files.split(' ') {
            project.write(file, "");
        }
        let listed = project.run("list").exits(0).out;
        for variant in variants {
            assert!(listed.contains(variant), "{variant}\n{listed}");
        }
    }
}
