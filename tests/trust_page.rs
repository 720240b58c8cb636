//! tests/data/promises.md names, for each promise of docs/trust.md, its tests: all of them must exist.
//! And the page is one that is read in ten minutes.

use std::fs;
use std::path::Path;

/// `FILE::TEST` of a text in backquotes, such as `tests/attacks.rs::every_line_of_the_table`.
fn named(text: &str) -> Option<(&str, &str)> {
    let (file, test) = text.split_once("::")?;
    (file.ends_with(".rs") && !test.contains(' ')).then_some((file, test))
}

/// Whether a file has a test function of this name.
fn has_test(source: &str, test: &str) -> bool {
    let head = format!("fn {test}(");
    source.match_indices(&head).any(|(place, _)| {
        let line = source[..place].rfind('\n').map_or(0, |end| end + 1);
        let above = source[..line].lines().rev();
        above
            .take_while(|line| line.trim_start().starts_with(['#', '/']))
            .any(|line| line.trim() == "#[test]")
    })
}

/// The rows of the table.
fn promises(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    // The first row is the head of the table.
    rows.skip(1).collect()
}

#[test]
fn the_page_has_at_most_2500_words() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/trust.md");
    let words = fs::read_to_string(page).unwrap();
    let words = words.split_whitespace().count();
    assert!(words <= 2500, "{words}");
}

#[test]
fn every_promise_of_the_page_names_a_test_that_exists() {
    let source = "#[test]\nfn a_test() {}\n\nfn helper() {}\n";
    assert!(has_test(source, "a_test"));
    assert!(!has_test(source, "helper") && !has_test(source, "a_tes"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("tests/data/promises.md")).unwrap();
    let rows = promises(&page);
    assert!(rows.len() > 20, "{} promises", rows.len());
    let mut missing = Vec::new();
    for row in rows {
        let tests: Vec<_> = row.split('`').filter_map(named).collect();
        if tests.is_empty() {
            missing.push(format!("no test in: {row}"));
        }
        for (file, test) in tests {
            let source = fs::read_to_string(root.join(file)).unwrap_or_default();
            if !has_test(&source, test) {
                missing.push(format!("{file} has no test {test}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
