//! `redrive completions`: what the shell needs to complete our commands.

use clap_complete::{Shell, generate};

use crate::cli;
use crate::exit::Exit;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  redrive completions bash > ~/.local/share/bash-completion/completions/redrive
  redrive completions zsh > ~/.zfunc/_redrive
  redrive completions fish > ~/.config/fish/completions/redrive.fish";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    generate(args.shell, &mut cli::command(), "redrive", &mut script);
    Output::standard().text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
