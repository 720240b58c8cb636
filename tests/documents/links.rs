//! The contents name every page, and every link of a page leads somewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::repository;
use crate::markdown::{anchors, blocks, docs, links, pages, read, target};

#[test]
fn the_contents_name_every_page_of_docs_once() {
    let contents = read("docs/README.md");
    let mut named: Vec<String> = links(&contents)
        .iter()
        .map(|link| format!("docs/{link}"))
        .collect();
    named.sort();
    let mut there = docs();
    there.retain(|page| page != "docs/README.md");
    assert_eq!(
        named, there,
        "docs/README.md, the contents, names other pages than there are"
    );
}

#[test]
fn every_link_and_every_anchor_leads_somewhere() {
    let mut known: BTreeMap<String, std::collections::BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages().into_iter().chain(["CHANGELOG.md".to_owned()]) {
        for link in links(&read(&page)) {
            let Some((file, anchor)) = target(&page, &link) else {
                continue;
            };
            seen += 1;
            let path: PathBuf = repository().join(&file);
            if !path.exists() {
                wrong.push(format!("{page}: {link}: there is no {file}"));
            } else if !anchor.is_empty() && file.ends_with(".md") {
                let there = known
                    .entry(file.clone())
                    .or_insert_with(|| anchors(&read(&file)));
                if !there.contains(&anchor) {
                    wrong.push(format!("{page}: {link}: {file} has no heading #{anchor}"));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen > 100, "{seen} links");
}

#[test]
fn what_a_page_takes_from_a_file_is_in_that_file() {
    let from = regex::Regex::new(r"(?m)^<!-- from: (\S+) -->$").unwrap();
    let mut seen = 0;
    for page in docs() {
        let text = read(&page);
        for found in from.captures_iter(&text) {
            let line = text[..found.get(0).unwrap().start()].lines().count() + 1;
            let all = blocks(&page);
            let block = all.iter().find(|block| block.line > line).unwrap();
            assert!(
                read(&found[1]).contains(&block.text),
                "{}: {} has other text",
                block.place(),
                &found[1]
            );
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen} blocks");
}
