//! `sparsek-gate generate`: what is made from the arguments and the configuration of this program.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::answer::print;
use crate::cli::{Cli, GenerateArgs, Generated};
use crate::finding::{Error, ExitCode};

/// Variants of the configuration, where an argument may name one.
const BASH: &str = r#"
_sparsek_gate_with_variants() {
    _sparsek__gate "$@"
    case ${COMP_WORDS[COMP_CWORD]} in
        -*) ;;
        *) COMPREPLY+=($(compgen -W "$(sparsek-gate list --names 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}")) ;;
    esac
}
complete -F _sparsek_gate_with_variants -o bashdefault -o default sparsek-gate
"#;
const FISH: &str = "\ncomplete -c sparsek-gate -n '__fish_seen_subcommand_from list build verify profile baseline check history' -f -a '(sparsek-gate list --names 2>/dev/null)'\n";
const ZSH: &str = "\n_sparsek_gate_variants() {\n    compadd -- ${(f)\"$(sparsek-gate list --names 2>/dev/null)\"}\n}\n";

/// How the generated script of zsh completes the arguments that name variants.
const ZSH_ARGUMENTS: ([&str; 2], &str) =
    (["::names -- ", "':variant -- "], "_sparsek_gate_variants");

pub(super) fn run(arguments: &GenerateArgs) -> Result<ExitCode, Error> {
    match &arguments.what {
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
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .map_err(Error::io("write man pages to", folder))
}

fn completions(shell: Shell) -> Result<(), Error> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match shell {
        // clap_complete spells a program's name with a hyphen in two ways, and so finds no option.
        Shell::Bash => {
            let spelled = |parts: &[&str]| parts.join("__");
            let (wrong, right) = (["sparsek", "subcmd", "gate"], ["sparsek", "gate"]);
            script.replace(&spelled(&wrong), &spelled(&right)) + BASH
        }
        Shell::Fish => format!("{script}{FISH}"),
        Shell::Zsh => zsh(&script),
        _ => script.into_owned(),
    };
    print(&script)
}

/// The script of zsh, with the variants in the place of any word.
fn zsh(script: &str) -> String {
    let (marks, variants) = ZSH_ARGUMENTS;
    let line = |line: &str| match marks.iter().any(|mark| line.contains(mark)) {
        true => line.replace(":_default'", &format!(":{variants}'")),
        false => line.to_owned(),
    };
    // The function must be there before the last line of the script calls the completion.
    let lines: Vec<String> = script.lines().map(line).collect();
    match lines.split_first() {
        Some((first, rest)) => format!("{first}\n{ZSH}\n{}\n", rest.join("\n")),
        None => String::new(),
    }
}
