//! What the pages of the repository consist of: blocks, links, anchors, sentences.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::common::repository;

/// A block of code.
#[derive(Clone, Debug)]
pub struct Block {
    /// The page, from the top of the repository.
    pub page: String,
    /// The line of its fence.
    pub line: usize,
    /// The first word behind the fence; empty if there is none.
    pub language: String,
    /// The other words behind the fence.
    pub mark: String,
    /// What is in it.
    pub text: String,
}

impl Block {
    /// For messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

pub fn read(page: &str) -> String {
    fs::read_to_string(repository().join(page)).unwrap()
}

/// The pages of `docs/`, sorted.
pub fn docs() -> Vec<String> {
    let entries = fs::read_dir(repository().join("docs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    pages.sort();
    pages
}

/// All pages for readers: README, those of `docs/`, and those beside what they describe.
pub fn pages() -> Vec<String> {
    let others = [
        "README.md", "CONTRIBUTING.md", "kernels/README.md", "ci/recordings/README.md",
        "ci/recordings/rounds.md", "crates/ncu-report/README.md", "examples/benchmark/README.md",
        "examples/cmake/README.md", "examples/pytorch/README.md", "examples/triton/README.md",
    ];
    others
        .map(str::to_owned)
        .into_iter()
        .chain(docs())
        .collect()
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
}

/// The blocks of code of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let text = read(page);
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    for (event, range) in parser(&text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                inside = true;
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                let (language, mark) = info.split_once([' ', ',']).unwrap_or((&info, ""));
                found.push(Block {
                    page: page.to_owned(),
                    line: text[..range.start].lines().count() + 1,
                    language: language.to_owned(),
                    mark: mark.trim().to_owned(),
                    text: String::new(),
                });
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(part) if inside => found.last_mut().unwrap().text.push_str(&part),
            _ => {}
        }
    }
    found
}

/// Where the links and pictures of a text lead.
pub fn links(text: &str) -> Vec<String> {
    parser(text)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.to_string())
            }
            _ => None,
        })
        .collect()
}

/// The names that a link to a page may end in: of its headings, as GitHub makes them, and its own.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let own = regex::Regex::new("<a id=\"([^\"]+)\"").unwrap();
    let mut found: BTreeSet<String> = own.captures_iter(text).map(|id| id[1].to_owned()).collect();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let words = heading.take().unwrap_or_default().to_lowercase();
                let kept = words.chars().filter_map(|c| match c {
                    ' ' => Some('-'),
                    c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                    _ => None,
                });
                found.insert(kept.collect());
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            _ => {}
        }
    }
    found
}

/// The texts of a page, each of which ends a sentence: paragraphs, items, cells, headings, and the
/// descriptions of pictures. A piece of code in a sentence is one word, however long it is.
pub fn texts(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut block = false;
    for event in parser(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => block = true,
            Event::End(TagEnd::CodeBlock) => block = false,
            Event::Text(part) if !block => found.last_mut().unwrap().push_str(&part),
            Event::Code(part) => {
                let word: String = part.chars().filter(|c| !c.is_whitespace()).collect();
                found.last_mut().unwrap().push_str(&word);
            }
            Event::SoftBreak | Event::HardBreak => found.last_mut().unwrap().push(' '),
            Event::Start(
                Tag::Paragraph
                | Tag::Item
                | Tag::TableCell
                | Tag::Heading { .. }
                | Tag::Image { .. },
            )
            | Event::End(TagEnd::Image) => found.push(String::new()),
            _ => {}
        }
    }
    found.retain(|text| !text.trim().is_empty());
    found
}

/// The sentences of a text.
pub fn sentences(text: &str) -> Vec<String> {
    let end = regex::Regex::new(r#"[.!?]["”)]?(?:\s+|$)"#).unwrap();
    end.split(text)
        .map(|sentence| sentence.trim().to_owned())
        .filter(|sentence| !sentence.is_empty())
        .collect()
}

/// A file that a link of a page leads to, from the top of the repository, and the anchor in it.
pub fn target(page: &str, link: &str) -> Option<(String, String)> {
    let elsewhere = regex::Regex::new(r"^[a-z]+:").unwrap();
    if elsewhere.is_match(link) {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.is_empty() {
        return Some((page.to_owned(), anchor.to_owned()));
    }
    let folder = Path::new(page).parent().unwrap();
    let mut parts: Vec<&str> = folder.iter().map(|part| part.to_str().unwrap()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    Some((parts.join("/"), anchor.to_owned()))
}
