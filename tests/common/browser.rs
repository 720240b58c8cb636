//! Chromium without a window, told what to do over the two pipes of its DevTools protocol.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

/// How long an answer may take: longer than a script in the page waits at most.
const PATIENCE: Duration = Duration::from_secs(600);
const NAMES: [&str; 4] = [
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
];

/// The program, from `CHROMIUM` or the PATH.
pub fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// One browser with one page.
pub struct Browser {
    child: Child,
    commands: Option<File>,
    answers: Receiver<Json>,
    next: u64,
    session: String,
    /// What happened since [`Browser::open`].
    pub events: Vec<Json>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts the program.
    pub fn start(program: &Path) -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = folder.path().join(name);
            let made = Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        // It reads commands from descriptor 3 and writes answers to descriptor 4.
        let child = Command::new("sh")
            .args([
                "-c",
                "to=$1 from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"",
                "sh",
            ])
            .args([&to, &from])
            .arg(program)
            .args([
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--disable-extensions", "--remote-debugging-pipe",
            ])
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = OpenOptions::new().write(true).open(&to).unwrap();
        let answers = File::open(&from).unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else {
                    return;
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            commands: Some(commands),
            answers: receiver,
            next: 0,
            session: String::new(),
            events: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let session = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// A command of the protocol, and its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Json) -> Json {
        self.next += 1;
        let id = self.next;
        let mut command = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        let commands = self.commands.as_mut().unwrap();
        commands.write_all(command.to_string().as_bytes()).unwrap();
        commands.write_all(&[0]).unwrap();
        commands.flush().unwrap();
        loop {
            let message = self.answers.recv_timeout(PATIENCE).unwrap();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Waits for an event after those that were seen before.
    #[track_caller]
    fn wait(&mut self, event: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.events.iter().any(|seen| seen["method"] == event) {
            assert!(Instant::now() < end, "no {event}");
            let message = self.answers.recv_timeout(PATIENCE).unwrap();
            self.events.push(message);
        }
    }

    /// The size of the window, and light or dark.
    pub fn look(&mut self, width: u32, height: u32, scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 }),
        );
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        );
    }

    /// Opens a file and waits until it is loaded.
    #[track_caller]
    pub fn open(&mut self, file: &Path) {
        self.open_url(&format!("file://{}", file.display()));
    }

    /// The same for an address.
    #[track_caller]
    pub fn open_url(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }));
        self.wait("Page.loadEventFired");
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Json {
        let answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(answer.get("exceptionDetails").is_none(), "{answer:#}");
        answer["result"]["value"].clone()
    }

    /// What the page complained of: exceptions, the console, and refusals of its policy.
    pub fn complaints(&self) -> Vec<String> {
        let complaint = |event: &&Json| {
            let method = event["method"].as_str().unwrap_or_default();
            method == "Runtime.exceptionThrown"
                || method == "Runtime.consoleAPICalled"
                || method == "Log.entryAdded"
        };
        self.events
            .iter()
            .filter(complaint)
            .map(Json::to_string)
            .collect()
    }

    /// What the page asked for.
    pub fn requests(&self) -> Vec<String> {
        self.events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent")
            .map(|event| {
                event["params"]["request"]["url"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends with the pipe of its commands.
        self.commands.take();
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
