//! How soon a page of 1,000 kernels of 30 metrics paints: `cargo bench --bench page`. Needs Chromium.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails the bench")]
#![allow(dead_code, reason = "the helpers serve tests too")]

use std::io::Write as _;
use std::time::Instant;

#[path = "../tests/common/browser.rs"]
mod browser;
#[path = "../tests/common/outcomes.rs"]
mod outcomes;

use sparsek_gate::report::form;

const LOADS: usize = 5;

fn main() {
    let mut out = std::io::stdout();
    let outcome = outcomes::large(1000, 1, 30);
    let started = Instant::now();
    let page = form("html").unwrap().render(&outcome);
    let rendered = started.elapsed();
    writeln!(out, "{} bytes, rendered in {rendered:.0?}", page.len()).unwrap();
    let Some(program) = browser::program() else {
        writeln!(out, "no Chromium: nothing was painted").unwrap();
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    for _ in 0..LOADS {
        let mut browser = browser::Browser::start(&program);
        browser.look(1280, 900, "light");
        browser.open(&file);
        let painted = browser.value(
            "new Promise(done => new PerformanceObserver(list => list.getEntries().forEach(entry => entry.name === 'first-contentful-paint' && done(entry.startTime))).observe({ type: 'paint', buffered: true }))",
        );
        let loaded =
            browser.value("performance.timing.loadEventEnd - performance.timing.navigationStart");
        let elements = browser.value("document.querySelectorAll('*').length");
        writeln!(
            out,
            "first contentful paint {:.0} ms, loaded {loaded} ms, {elements} elements then",
            painted.as_f64().unwrap()
        )
        .unwrap();
    }
}
