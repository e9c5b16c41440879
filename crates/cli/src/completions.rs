//! `isolde completions`: what a shell completes after `isolde`.

use crate::exit::{Failure, Status};
use crate::out;
use clap::CommandFactory;
use clap_complete::Shell;

/// Options of `isolde completions`.
#[derive(clap::Args)]
#[command(after_help = WHERE)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

const WHERE: &str = "\
Where shells look for it:
  isolde completions bash > ~/.local/share/bash-completion/completions/isolde
  isolde completions zsh  > a folder of $fpath, as _isolde
  isolde completions fish > ~/.config/fish/completions/isolde.fish";

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut crate::Arguments::command(),
        "isolde",
        &mut script,
    );
    out(&String::from_utf8(script).expect("names and texts of ours"))?;
    Ok(Status::Satisfied)
}
