//! `isolde formats`: what is read and written.

use crate::exit::{Failure, Status};
use crate::out;
use isolde_history::format::FORMATS;
use std::fmt::Write;

/// No options.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Result<Status, Failure> {
    let width = FORMATS.iter().map(|format| format.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for format in FORMATS {
        let ways = if format.write.is_some() { "read, write" } else { "read       " };
        writeln!(text, "{:width$}  {ways}  {}", format.name, format.title)
            .expect("writing to a string cannot fail");
    }
    out(&text)?;
    Ok(Status::Satisfied)
}
