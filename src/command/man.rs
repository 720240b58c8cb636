//! `sparsek-gate man`.

use clap::CommandFactory as _;
use clap_mangen::Man;

use super::answer::print;
use crate::cli::{Cli, ManArgs};
use crate::finding::{Error, ExitCode};

pub(super) fn run(arguments: &ManArgs) -> Result<ExitCode, Error> {
    match &arguments.output {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            clap_mangen::generate_to(Cli::command(), folder)
                .map_err(Error::io("write man pages to", folder))?;
        }
        None => {
            let mut page = Vec::new();
            // As in the folder of pages, where `help` has none.
            Man::new(Cli::command().disable_help_subcommand(true))
                .render(&mut page)
                .map_err(Error::io("render", "the man page"))?;
            print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::Pass)
}
