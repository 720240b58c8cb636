//! Programs that are measured without a configuration: where their files go, and what they are
//! called.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::config::{Config, Program, ProgramSettings, Selected, Selection};
use crate::finding::Error;
use crate::measure::{Captures, Place, Plan, measure};
use crate::process;
use crate::report::Progress;
use crate::terms::VariantId;
use crate::verdict::Fewest;

/// The suite that a program is put into.
const SUITE: &str = "compare";

/// Where a run leaves its files.
pub(super) struct Folders {
    /// The folder that programs run in.
    pub root: PathBuf,
    /// Logs.
    pub work: PathBuf,
    /// Profiles and captures.
    pub output: PathBuf,
    /// Removed at the end.
    _temporary: Option<TempDir>,
}

impl Folders {
    /// Programs run in the folder `root`; files go to these folders, or to a temporary one.
    pub fn of(root: &Path, work: Option<&Path>, output: Option<&Path>) -> Result<Folders, Error> {
        let root = std::path::absolute(root).map_err(Error::io("find", root))?;
        let (work, temporary) = match work {
            Some(work) => (root.join(work), None),
            None => {
                let folder = process::scratch()?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let output = match output {
            Some(output) => root.join(output),
            None => work.join("profiles"),
        };
        Ok(Folders {
            root,
            work,
            output,
            _temporary: temporary,
        })
    }

    /// Measures a program alone.
    pub fn measure(
        &self,
        settings: &ProgramSettings,
        program: &Program,
    ) -> Result<Captures, Error> {
        let config = Config::of_program(settings, &name(program), program)?;
        let selected = Selected::new(config, &Selection::default(), &[])?;
        let plan = Plan::of(&selected);
        let watch = Progress::default();
        measure(&plan, &Place::new(&self.output, &watch), &Fewest)
    }
}

/// The name of a program in the report and in the folder of captures.
pub(super) fn name(program: &Program) -> VariantId {
    let path = program.argv.first().map_or("", String::as_str);
    VariantId {
        suite: SUITE.to_owned(),
        variant: file_name(path),
    }
}

/// The name of a file as that of a variant.
pub(super) fn file_name(path: &str) -> String {
    let file = Path::new(path).file_name().unwrap_or_default();
    let fits = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '-' => c,
        _ => '_',
    };
    let file: String = file.to_string_lossy().chars().map(fits).take(60).collect();
    let name = file.trim_start_matches(['_', '-']);
    match name {
        "" => "program".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Verification;

    #[test]
    fn a_program_gets_a_name_that_can_be_a_folder() {
        let name = |argv: &str| {
            let program = Program {
                argv: shell_words::split(argv).unwrap(),
                verification: Verification::None,
            };
            name(&program).variant
        };
        assert_eq!(name("./build/bench_new --n 4096"), "bench_new");
        assert_eq!(name("'./a b/../my bench.v2'"), "my_bench_v2");
        assert_eq!(name("../.."), "program");
        assert_eq!(name("./ü"), "program");
    }
}
