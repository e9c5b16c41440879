//! `isolde man`: the manual pages, made from what `--help` says.

use crate::exit::{Failure, Status};
use crate::{out, output};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::PathBuf;

/// Options of `isolde man`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The command that the page is about [default: isolde itself]
    command: Option<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, short, value_name = "DIR", conflicts_with = "command")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let mut root = crate::Arguments::command();
    root.build();
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::Write(folder.display().to_string(), error.into()))?;
        for command in std::iter::once(&root).chain(documented(&root)) {
            let page = page(command);
            let path = folder.join(format!("{}.1", page_name(command)));
            output::write_whole(&path, |out| out.write_all(page.as_bytes()))?;
        }
        return Ok(Status::Satisfied);
    }
    let command = match &arguments.command {
        None => &root,
        Some(name) => documented(&root).find(|it| it.get_name() == name).ok_or_else(|| {
            let names: Vec<&str> = documented(&root).map(Command::get_name).collect();
            Failure::Usage(format!(
                "man: {}",
                crate::suggestion::expected("a command", name, &names)
            ))
        })?,
    };
    out(&page(command))?;
    Ok(Status::Satisfied)
}

/// Commands that have a page.
fn documented(root: &Command) -> impl Iterator<Item = &Command> {
    root.get_subcommands().filter(|it| it.get_name() != "help" && !it.is_hide_set())
}

/// What a page is called: `isolde-check` for `isolde check`.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &Command) -> String {
    let mut text = Vec::new();
    let man = Man::new(command.clone()).title(page_name(command)).section("1").manual("Isolde");
    man.render(&mut text).expect("writing to memory cannot fail");
    String::from_utf8(text).expect("texts of ours")
}
