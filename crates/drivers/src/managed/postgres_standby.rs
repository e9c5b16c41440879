//! A private PostgreSQL with a standby: two servers, of which the second follows the first
//! and is read.

use super::postgres::{Commits, address, serve, start, tool};
use super::server::{Home, free_ports};
use super::{Managed, Servers};
use crate::{Stop, Target};
use isolde_harness::{Address, Database, Failure};
use std::process::Command;
use std::time::Duration;

/// How it is asked for.
pub(crate) const TARGET: Target = Target {
    schemes: &["postgres+standby"],
    title: "a private PostgreSQL with a standby that is read",
    example: "postgres+standby",
    open,
};

/// How long copying and starting may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// Commits are replayed that much later than they were made, one by one as they were made:
/// what came in one piece would be seen all at once.
const DELAY: &str = "recovery_min_apply_delay=50ms";

fn open(address_of_user: &Address, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    if !address_of_user.is_bare {
        return Err(Failure::Refused(
            "expected postgres+standby alone; servers that exist are \
             postgres://user@primary:5432,standby:5432/database"
                .to_owned(),
        ));
    }
    let home = Home::new("postgres", &["postgres"], stop)?;
    let ports = free_ports(2)?;
    // Commits that wait for the standby are overtaken by those that do not: they become
    // visible in another order than they have in the log, which the standby follows.
    let (primary, alone) = start(&home, ports[0], Commits::Replicated)?;
    drop(alone);
    let data = home.path().join("standby");
    let mut copy = Command::new(tool("pg_basebackup")?);
    copy.arg("-D").arg(&data).arg("-p").arg(ports[0].to_string());
    copy.args([
        "-h",
        "127.0.0.1",
        "-U",
        "postgres",
        "-R",
        "-X",
        "stream",
        "-c",
        "fast",
        "--no-sync",
    ]);
    home.run("pg_basebackup", copy, LIMIT)?;
    let mut standby = serve(&home, "standby", &data, ports[1], Some(DELAY))?;
    let mut address = address(&ports);
    address.options.push(("synchronous_commit".to_owned(), "alternating".to_owned()));
    let database = standby.wait_until(LIMIT, || crate::postgres::open_at(&address))?;
    Ok(Box::new(Managed { database, servers: Servers(vec![primary, standby]), home }))
}
