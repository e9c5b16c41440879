//! A private PostgreSQL: one server on loopback, whose data survives nothing.

use super::server::{Home, Server, free_ports, program};
use super::{Managed, Servers};
use crate::Stop;
use isolde_harness::{Address, Database, Failure};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Where Debian and others keep its programs.
const FOLDERS: &[&str] = &["/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin"];

/// How long creating the files, and starting, may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// A standby needs a log that it can follow. What survives a crash of the machine is not
/// what is tested; a server that is killed loses nothing by it, because a commit is answered
/// after it was written, and what was written is the system's to keep. Waiting for a second to look for a deadlock would be most of a run.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 64MB
dynamic_shared_memory_type = mmap
wal_level = logical
max_wal_senders = 8
max_replication_slots = 8
track_commit_timestamp = on
full_page_writes = off
deadlock_timeout = 50ms
hot_standby = on
max_standby_streaming_delay = 10s
";

/// What a commit waits for before others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commits {
    /// Nothing.
    Alone,
    /// Until it is on the disks of the server and of a standby.
    Replicated,
}

/// Starts a server and opens it.
pub(crate) fn open(stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    let home = Home::new("postgres", &["postgres"], stop)?;
    let port = free_ports(1)?[0];
    let (server, database) = start(&home, port, Commits::Alone)?;
    Ok(Box::new(Managed { database, servers: Servers(vec![server]), home }))
}

/// Starts a primary.
pub(super) fn start(
    home: &Home,
    port: u16,
    commits: Commits,
) -> Result<(Server, Box<dyn Database>), Failure> {
    let data = home.path().join("data");
    let mut create = Command::new(tool("initdb")?);
    create.arg("-D").arg(&data);
    create.args(["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]);
    home.run("initdb", create, LIMIT)?;
    let waits = match commits {
        Commits::Alone => "fsync = off",
        Commits::Replicated => "synchronous_standby_names = '*'",
    };
    home.write("data/postgresql.auto.conf", &format!("{SETTINGS}{waits}\n"))?;
    let mut server = serve(home, "postgres", &data, port, None)?;
    let database = server.wait_until(LIMIT, || crate::postgres::open_at(&address(&[port])))?;
    Ok((server, database))
}

/// Starts a server of these files, with one more setting if there is one.
pub(super) fn serve(
    home: &Home,
    name: &str,
    data: &PathBuf,
    port: u16,
    setting: Option<&str>,
) -> Result<Server, Failure> {
    let mut serve = Command::new(tool("postgres")?);
    serve.arg("-D").arg(data).arg("-p").arg(port.to_string());
    if let Some(setting) = setting {
        serve.args(["-c", setting]);
    }
    home.start(name, serve)
}

pub(super) fn tool(name: &str) -> Result<PathBuf, Failure> {
    program(name, FOLDERS, "postgresql")
}

/// The address of servers at these ports.
pub(super) fn address(ports: &[u16]) -> Address {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let text = format!("postgres://postgres@{}/postgres?sslmode=disable", hosts.join(","));
    Address::parse(&text).expect("an address")
}
