//! Runs a tool for what it prints.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::finding::Error;
use crate::process::{self, Ending, Printed, Query};

/// How long a tool may take to print its version, or what else it is asked for.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// What it prints on its standard output.
pub(super) fn query(argv: Vec<String>, without: &[&str]) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&printed(argv, without)?.stdout).into_owned())
}

/// What a tool prints, without some variables of the environment.
pub(super) fn printed(argv: Vec<String>, without: &[&str]) -> Result<Printed, Error> {
    // Some tools leave files in the folder where they run.
    let dir = process::scratch()?;
    let program = argv.first().cloned().unwrap_or_default();
    let query = Query {
        argv,
        dir: dir.path(),
        env: BTreeMap::new(),
        without,
        input: Vec::new(),
        timeout: QUERY_TIMEOUT,
        interruptible: true,
    };
    let printed = query.run().map_err(Error::io("run", &program))?;
    if printed.ending == Ending::Interrupted {
        return Err(Error::Interrupted);
    }
    if printed.ending != Ending::Exited(0) {
        let complaint = String::from_utf8_lossy(&printed.stderr);
        let line = process::shell_line(&query.argv);
        let (ended, cause) = match printed.ending {
            Ending::TimedOut => (
                format!("did not end in {} s", QUERY_TIMEOUT.as_secs()),
                "a busy machine",
            ),
            ending => (format!("ended with {ending}"), "a damaged file"),
        };
        let what = match process::last_lines(&complaint, 3) {
            none if none.is_empty() => format!("`{line}` {ended}"),
            said => format!("`{line}` {ended}: {said}"),
        };
        let next = format!(
            "run it by hand; {cause}, or a broken installation of {program}, is the usual cause"
        );
        return Err(Error::environment(what, next));
    }
    Ok(printed)
}
