//! A private MariaDB: one server on loopback, whose data survives nothing.

use super::server::{Home, free_ports, program};
use super::{Managed, Servers};
use crate::Stop;
use isolde_harness::{Address, Database, Failure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const FOLDERS: &[&str] = &["/usr/sbin", "/usr/local/mysql/bin", "/usr/local/mysql/scripts"];

/// How long creating the files, and starting, may take on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(90);

/// Starts a server and opens it.
pub(crate) fn open(stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    let home = Home::new("mariadb", &["mysql"], stop)?;
    let port = free_ports(1)?[0];
    let data = home.path().join("data");
    create(&home, &data)?;
    let mut command = serve(&home, "mariadbd", &data, port)?;
    // So that it can tell the order of its versions.
    command.args(["--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL"]);
    let mut server = home.start("mariadbd", command)?;
    let database =
        server.wait_until(LIMIT, || crate::mysql::open_at(&address("mariadb", &[port])))?;
    Ok(Box::new(Managed { database, servers: Servers(vec![server]), home }))
}

/// Creates the files of a server.
pub(super) fn create(home: &Home, data: &Path) -> Result<(), Failure> {
    let mut create = Command::new(program("mariadb-install-db", FOLDERS, "mariadb-server")?);
    create.args([
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-name-resolve",
    ]);
    create.arg(format!("--datadir={}", data.display()));
    create.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]);
    home.run("mariadb-install-db", create, LIMIT)
}

/// The command that serves these files.
pub(super) fn serve(home: &Home, name: &str, data: &Path, port: u16) -> Result<Command, Failure> {
    let mut serve = Command::new(program("mariadbd", FOLDERS, "mariadb-server")?);
    let folder = home.path().display();
    serve
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--port={port}"))
        .arg(format!("--socket={folder}/{name}.sock"))
        .arg(format!("--pid-file={folder}/{name}.pid"))
        .arg(format!("--tmpdir={folder}"))
        .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=200"])
        // What survives a crash of the machine is not what is tested. A server that is killed
        // loses nothing: both logs are written at every commit, if not synchronized.
        .args(["--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"])
        .args(["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M"])
        .args(["--performance-schema=OFF", "--innodb-fast-shutdown=2"]);
    Ok(serve)
}

/// The address of servers at these ports. The database `test` is created with the files.
pub(super) fn address(scheme: &str, ports: &[u16]) -> Address {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let text = format!("{scheme}://root@{}/test", hosts.join(","));
    Address::parse(&text).expect("an address")
}
