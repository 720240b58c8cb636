//! `sparsek-gate completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::answer::print;
use crate::cli::{Cli, CompletionsArgs};
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

pub(super) fn run(arguments: &CompletionsArgs) -> Result<ExitCode, Error> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match arguments.shell {
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
    print(&script)?;
    Ok(ExitCode::Pass)
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
