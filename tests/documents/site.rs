//! The site: it is built, its links lead somewhere, and every page works in a browser at two widths,
//! without an error and without anything from another host.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::browser::{Browser, program};
use crate::common::{Project, Ran, aloud, repository};
use crate::readme::HEIGHT;

/// Says aloud what is skipped, and fails in CI.
fn skipped(what: &str, how: &str) {
    assert!(std::env::var_os("CI").is_none(), "{how}");
    aloud(&format!("SKIPPED: {what}, {how}"));
}

/// The site in a folder; `None` where its generator is missing.
fn built(project: &Project) -> Option<PathBuf> {
    let folder = project.path("site");
    let output = Command::new("bash")
        .arg(repository().join("ci/site.sh"))
        .arg(&folder)
        .output()
        .unwrap();
    let ran = Ran::of(&output);
    if ran.code == 3 {
        let how = "a package is missing: pip install -r ci/site/requirements.txt";
        skipped("the site was not built", how);
        return None;
    }
    ran.exits(0);
    Some(folder)
}

/// Serves a folder to one browser, and returns the address.
fn serve(folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, folder) = (stream.unwrap(), folder.clone());
            std::thread::spawn(move || {
                let mut line = String::new();
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                if lines.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                let path = line.split(' ').nth(1).unwrap_or("/");
                let path = path.split('?').next().unwrap().trim_start_matches('/');
                let file = folder.join(if path.is_empty() { "index.html" } else { path });
                let kind = match file.extension().and_then(|ending| ending.to_str()) {
                    Some("html") => "text/html; charset=utf-8",
                    Some("css") => "text/css",
                    Some("js") => "text/javascript",
                    Some("json") => "application/json",
                    Some("svg") => "image/svg+xml",
                    _ => "application/octet-stream",
                };
                let (status, body) = match fs::read(&file) {
                    Ok(body) => ("200 OK", body),
                    Err(_) => ("404 Not Found", Vec::new()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
                     Connection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&body);
            });
        }
    });
    address
}

/// The pages of a site, from its top.
fn pages_of(folder: &Path, below: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(pages_of(folder, &format!("{name}/")));
        } else if name.ends_with(".html") {
            found.push(name);
        }
    }
    found.sort();
    found
}

const OVERFLOW: &str = "document.documentElement.scrollWidth - innerWidth";
/// Types a word into the search, and waits until it shows results: their number. The search is an
/// element with a tree of its own.
const SEARCH: &str = "new Promise(async done => {
    const pause = () => new Promise(next => setTimeout(next, 50));
    document.querySelector('.md-search__button').click();
    for (let tries = 0; tries < 6000; tries++) {
        await pause();
        const hosts = [...document.querySelectorAll('*')].filter(one => one.shadowRoot);
        const root = hosts.map(one => one.shadowRoot).find(one => one.querySelector('input'));
        const input = root?.querySelector('input');
        if (input && input.value === '') {
            input.focus();
            input.value = 'inconclusive';
            input.dispatchEvent(new Event('input', { bubbles: true }));
        }
        const found = root ? root.querySelectorAll('mark').length : 0;
        if (found > 0) return done(found);
    }
    done(0);
})";

#[test]
fn the_site_is_built_and_every_page_works_in_a_browser_at_two_widths() {
    let project = Project::empty();
    let Some(folder) = built(&project) else {
        return;
    };
    let pages = pages_of(&folder, "");
    assert!(pages.len() > 25, "{pages:?}");
    let Some(program) = program() else {
        let how = "no Chromium: set CHROMIUM, or install one (apt-get install chromium)";
        skipped("the site was not looked at", how);
        return;
    };
    let address = serve(&folder);
    let mut browser = Browser::start(&program);
    for page in &pages {
        browser.open_url(&format!("{address}/{page}"));
        for (width, scheme) in [(1280, "light"), (390, "dark")] {
            browser.look(width, 900, scheme);
            let overflow = browser.value(OVERFLOW).as_i64().unwrap();
            assert!(
                overflow <= 0,
                "{page} is {overflow} pixels wider than {width}"
            );
        }
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{page}");
        for request in browser.requests() {
            let own = request.starts_with(&address) || request.starts_with("data:");
            assert!(own, "{page} asks for {request}");
        }
        let text = browser.value("document.querySelector('article').innerText.length");
        assert!(text.as_u64().unwrap() > 10, "{page} has no text");
    }
    browser.look(1280, 900, "light");
    browser.open_url(&format!("{address}/index.html"));
    assert!(
        browser.value(SEARCH).as_u64().unwrap() > 0,
        "the search finds nothing"
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn nothing_of_the_picture_in_the_readme_is_cut() {
    let Some(program) = program() else {
        let how = "no Chromium: set CHROMIUM, or install one (apt-get install chromium)";
        skipped("the picture was not looked at", how);
        return;
    };
    let mut browser = Browser::start(&program);
    browser.open(&repository().join("docs/failing-report.svg"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let end = "Math.ceil(document.querySelector('main').getBoundingClientRect().bottom)";
    let end = browser.value(end).as_u64().unwrap();
    let height = u64::from(HEIGHT);
    assert!(
        (height - 60..height).contains(&end),
        "the picture has {height} pixels, its text ends at {end}: set HEIGHT in readme.rs"
    );
    let wide = browser.value("document.querySelector('.body').scrollWidth <= 860");
    assert_eq!(wide, serde_json::json!(true));
}
