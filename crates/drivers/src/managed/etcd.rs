//! A private etcd: one server on loopback, or a cluster of three.

use super::server::{Home, Server, free_ports, program};
use super::{Managed, Servers};
use crate::{Stop, Target};
use isolde_harness::{Address, Database, Failure};
use std::process::Command;
use std::time::Duration;

/// How a cluster is asked for.
pub(crate) const CLUSTER: Target = Target {
    schemes: &["etcd+cluster"],
    title: "three private servers of etcd, each with its own sessions",
    example: "etcd+cluster",
    open: open_cluster,
};

/// How long starting may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// Starts a server and opens it.
pub(crate) fn open(stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    serve(1, stop)
}

fn open_cluster(address: &Address, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    if !address.is_bare {
        return Err(Failure::Refused(
            "expected etcd+cluster alone; servers that exist are etcd://host:2379,host:2379"
                .to_owned(),
        ));
    }
    serve(3, stop)
}

fn serve(count: usize, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    let home = Home::new("etcd", &["etcd"], stop)?;
    let ports = free_ports(2 * count)?;
    let (clients, peers) = ports.split_at(count);
    let name = |place: usize| format!("etcd{}", place + 1);
    let cluster: Vec<String> = (peers.iter().enumerate())
        .map(|(place, peer)| format!("{}=http://127.0.0.1:{peer}", name(place)))
        .collect();
    let mut servers: Vec<Server> = Vec::new();
    for (place, (client, peer)) in clients.iter().zip(peers).enumerate() {
        let mut serve = Command::new(program("etcd", &["/usr/local/bin"], "etcd-server")?);
        let (client, peer) =
            (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        serve.args(["--name", &name(place)]);
        serve.arg("--data-dir").arg(home.path().join(format!("{}.data", name(place))));
        serve.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        serve.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        serve.args(["--initial-cluster", &cluster.join(",")]);
        // Elections because of a busy machine would be most of a run.
        serve.args(["--heartbeat-interval", "200", "--election-timeout", "2000"]);
        servers.push(home.start(&name(place), serve)?);
    }
    let hosts: Vec<String> = clients.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let address = format!("etcd://{}", hosts.join(","));
    let address = Address::parse(&address).expect("an address");
    let database = servers[0].wait_until(LIMIT, || crate::etcd::open_at(&address))?;
    Ok(Box::new(Managed { database, servers: Servers(servers), home }))
}
