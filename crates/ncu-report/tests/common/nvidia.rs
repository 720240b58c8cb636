//! NVIDIA's module `ncu_report` of PyPI, in a process of Python.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value as Json;

/// The variable with the Python interpreter that has the module; `python3` without it.
const PYTHON: &str = "NCU_REPORT_PYTHON";

/// The version that the continuous integration takes.
const PACKAGE: &str = "ncu-report==2025.3.1";

/// A process with a script that answers each line, the path of a file, with one of JSON. It ends with its input.
pub struct Nvidia {
    child: Child,
    paths: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Nvidia {
    /// What is missing, where there is no module.
    pub fn start(script: &str) -> Result<Nvidia, String> {
        let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        let spawned = Command::new(&python)
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let started = spawned.ok().and_then(|mut child| {
            let mut nvidia = Nvidia {
                paths: child.stdin.take(),
                answers: BufReader::new(child.stdout.take()?),
                child,
            };
            (nvidia.answer()? == "ready").then_some(nvidia)
        });
        started.ok_or_else(|| {
            format!(
                "SKIPPED: the comparison with NVIDIA's module. {} cannot import ncu_report: \
                 python3 -m venv V && V/bin/pip install {PACKAGE}, and set {PYTHON}=V/bin/python",
                python.display()
            )
        })
    }

    fn answer(&mut self) -> Option<Json> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// What it says of a file.
    pub fn read(&mut self, path: &Path) -> Option<Json> {
        writeln!(self.paths.as_mut()?, "{}", path.display()).ok()?;
        self.answer()
    }
}

impl Drop for Nvidia {
    fn drop(&mut self) {
        self.paths = None;
        let _ = self.child.wait();
    }
}
