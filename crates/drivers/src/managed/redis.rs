//! A private Redis: one server on loopback, or one and a replica that is read.

use super::server::{Home, Server, free_ports, program};
use super::{Managed, Servers};
use crate::{Stop, Target};
use isolde_harness::{Address, Database, Failure};
use std::process::Command;
use std::time::Duration;

/// How one with a replica is asked for.
pub(crate) const REPLICA: Target = Target {
    schemes: &["redis+replica"],
    title: "a private Redis with a replica that is read",
    example: "redis+replica",
    open: open_with_replica,
};

/// How long starting may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts a server and opens it.
pub(crate) fn open(stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    let home = Home::new("redis", &["redis"], stop)?;
    let port = free_ports(1)?[0];
    let mut server = serve(&home, "redis", port, None)?;
    let database = server.wait_until(LIMIT, || crate::redis::open_at(&address(&[port])))?;
    Ok(Box::new(Managed { database, servers: Servers(vec![server]), home }))
}

fn open_with_replica(address_of_user: &Address, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    if !address_of_user.is_bare {
        return Err(Failure::Refused(
            "expected redis+replica alone; servers that exist are redis://primary:6379,replica:6379"
                .to_owned(),
        ));
    }
    let home = Home::new("redis", &["redis"], stop)?;
    let ports = free_ports(2)?;
    let mut primary = serve(&home, "primary", ports[0], None)?;
    primary.wait_until(LIMIT, || crate::redis::open_at(&address(&ports[..1])))?;
    let mut replica = serve(&home, "replica", ports[1], Some(ports[0]))?;
    replica.wait_until(LIMIT, || crate::redis::follows("127.0.0.1", ports[1]))?;
    let database = crate::redis::open_at(&address(&ports))?;
    Ok(Box::new(Managed { database, servers: Servers(vec![primary, replica]), home }))
}

/// Starts a server, which follows the one at another port if there is one. What survives a
/// crash of the machine is not what is tested; a server that is killed loses nothing, because
/// it answers after it has written, and what was written is the system's to keep.
fn serve(home: &Home, name: &str, port: u16, primary: Option<u16>) -> Result<Server, Failure> {
    let mut serve = Command::new(program("redis-server", &["/usr/local/bin"], "redis-server")?);
    serve.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
    serve.args(["--save", "", "--appendonly", "yes", "--appendfsync", "no", "--daemonize", "no"]);
    serve.arg("--dbfilename").arg(format!("{name}.rdb"));
    serve.arg("--appenddirname").arg(format!("{name}.append"));
    if let Some(primary) = primary {
        serve.args(["--replicaof", &format!("127.0.0.1 {primary}")]);
    } else {
        serve.args(["--repl-diskless-sync-delay", "0"]);
    }
    home.start(name, serve)
}

fn address(ports: &[u16]) -> Address {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    Address::parse(&format!("redis://{}", hosts.join(","))).expect("an address")
}
