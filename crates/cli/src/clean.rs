//! `isolde clean`: what killed runs have left in a database.
//!
//! A run removes what it created when it ends. One that was killed cannot, and nobody else
//! knows its names. Whether a run still goes on is nothing that its tables tell, so nothing is
//! removed before the user has said so.

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::{address, out, say};
use isolde_harness::Database;

/// Options of `isolde clean`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The database that was driven: its URL
    target: String,
    /// Remove what is found; no run on this database may still go on
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let usage = |message: String| Failure::Usage(format!("clean: {message}"));
    let address = address::of(&arguments.target).map_err(usage)?;
    if address.is_bare {
        let message = "expected the address of the database that was driven: of one that is \
                       started here, nothing is left";
        return Err(usage(message.to_owned()));
    }
    let mut database = Interruption::of("clean")?.opened(&address)?;
    let refused = |failure: isolde_harness::Failure| usage(failure.to_string());
    let found = database.leftovers().map_err(refused)?;
    for prefix in &found {
        out(&format!("{prefix}*\n"))?;
    }
    if found.is_empty() {
        say("isolde: clean: no run has left anything here");
    } else if arguments.yes {
        for prefix in &found {
            database.discard(prefix).map_err(refused)?;
        }
        say(&format!("isolde: clean: removed what {} left", runs(found.len())));
    } else {
        say(&format!(
            "isolde: clean: {} left this, and may still use it; `isolde clean URL --yes` removes it",
            runs(found.len())
        ));
    }
    Ok(Status::Satisfied)
}

/// Says, before a run, that others have left something in the same database.
pub(crate) fn tell_of_leftovers(database: &dyn Database) {
    // A database that cannot be asked is no reason not to drive it.
    if let Ok(found) = database.leftovers()
        && !found.is_empty()
    {
        say(&format!(
            "isolde: run: {} left something in this database, and may still use it; `isolde clean \
             URL` lists and removes it",
            runs(found.len())
        ));
    }
}

fn runs(count: usize) -> String {
    if count == 1 { "one run".to_owned() } else { format!("{count} runs") }
}
