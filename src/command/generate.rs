//! `sparsek-gate generate`: what is made from the arguments and the configuration of this program.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::answer::print;
use crate::cli::{Cli, Generated};
use crate::disk;
use crate::files::write_atomically;
use crate::finding::{Error, ExitCode};
use crate::process;

pub(super) fn run(what: &Generated) -> Result<ExitCode, Error> {
    match what {
        Generated::Schema { outcome: true } => print(&crate::report::outcome_schema())?,
        Generated::Schema { outcome: false } => print(&crate::config::schema())?,
        Generated::Completions { shell } => completions(*shell)?,
        Generated::Man { output: None } => {
            let mut page = Vec::new();
            // As in the folder of pages, where `help` has none.
            Man::new(Cli::command().disable_help_subcommand(true))
                .render(&mut page)
                .map_err(Error::io("render", "the man page"))?;
            print(&String::from_utf8_lossy(&page))?;
        }
        Generated::Man {
            output: Some(folder),
        } => man_pages(folder)?,
    }
    Ok(ExitCode::Pass)
}

fn man_pages(folder: &Path) -> Result<(), Error> {
    disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let failed = |error| Error::io("write man pages to", folder)(error);
    let made = process::scratch()?;
    clap_mangen::generate_to(Cli::command(), &made).map_err(failed)?;
    for page in disk::read_dir(made.path()).map_err(failed)? {
        let path = folder.join(page.name());
        let text = disk::read(&page.path).map_err(failed)?;
        write_atomically(&path, &text).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

fn completions(shell: Shell) -> Result<(), Error> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    // clap_complete spells a program's name with a hyphen in two ways, and so finds no option in bash.
    let script = match shell {
        Shell::Bash => script.replace(
            &["sparsek", "subcmd", "gate"].join("__"),
            &["sparsek", "gate"].join("__"),
        ),
        _ => script.into_owned(),
    };
    print(&script)
}
