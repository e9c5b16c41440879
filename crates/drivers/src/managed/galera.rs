//! A private Galera cluster: three MariaDB servers on loopback that certify each other's
//! writes.
//!
//! The first node begins the cluster; the others join it one after the other, and copy its
//! files by rsync. So does a node that was killed and comes back.

use super::mariadb::{LIMIT, address, create, serve};
use super::server::{Home, Server, free_ports};
use super::{Managed, Servers};
use crate::Stop;
use isolde_harness::{Database, Failure};
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// How many servers a cluster has: two could not tell which of them is cut off.
const NODES: usize = 3;

/// Where packages put the library that connects the nodes.
const PROVIDERS: &[&str] =
    &["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"];

/// The ports of one node.
#[derive(Clone, Copy)]
struct Ports {
    clients: u16,
    group: u16,
    increments: u16,
    copies: u16,
}

/// Starts three servers and opens them.
pub(crate) fn open(stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    let provider =
        PROVIDERS.iter().map(Path::new).find(|path| path.is_file()).ok_or_else(|| {
            Failure::Refused(
                "no server: expected the library of Galera, which Debian's package galera-4 has"
                    .to_owned(),
            )
        })?;
    for tool in ["rsync", "ss"] {
        let package = if tool == "ss" { "iproute2" } else { tool };
        super::server::program(tool, &[], package)?;
    }
    let home = Home::new("galera", &["mysql"], stop)?;
    let ports: Vec<Ports> = free_ports(4 * NODES)?
        .chunks_exact(4)
        .map(|chunk| Ports {
            clients: chunk[0],
            group: chunk[1],
            increments: chunk[2],
            copies: chunk[3],
        })
        .collect();
    let mut servers: Vec<Server> = Vec::new();
    for number in 0..NODES {
        let name = format!("node{}", number + 1);
        let data = home.path().join(&name);
        if number == 0 {
            create(&home, &data)?;
        } else {
            home.folder(&name)?;
        }
        let command = node(&home, &data, provider, &ports, (number, 0..number))?;
        let mut server = home.start(&name, command)?;
        let joined = address("galera", &[ports[number].clients]);
        server.wait_until(LIMIT, || crate::mysql::is_synced(&joined, number + 1))?;
        servers.push(server);
    }
    // The first one must not begin another cluster, if it comes back.
    for (number, server) in servers.iter().enumerate() {
        let data = home.path().join(format!("node{}", number + 1));
        home.start_later(server, node(&home, &data, provider, &ports, (number, 0..NODES))?);
    }
    let clients: Vec<u16> = ports.iter().map(|ports| ports.clients).collect();
    let database = crate::mysql::open_at(&address("galera", &clients))?;
    Ok(Box::new(Managed { database, servers: Servers(servers), home }))
}

/// The command that starts the node of this number, which looks for these others.
fn node(
    home: &Home,
    data: &Path,
    provider: &Path,
    all: &[Ports],
    (number, others): (usize, Range<usize>),
) -> Result<Command, Failure> {
    let Ports { clients, group, increments, copies } = all[number];
    let mut command = serve(home, &format!("node{}", number + 1), data, clients)?;
    let members: Vec<String> =
        all[others].iter().map(|ports| format!("127.0.0.1:{}", ports.group)).collect();
    command
        .args(["--wsrep-on=ON", "--wsrep-cluster-name=isolde", "--wsrep-sst-method=rsync"])
        .args(["--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-slave-threads=2"])
        .arg(format!("--wsrep-provider={}", provider.display()))
        // Nobody to join begins a cluster.
        .arg(format!("--wsrep-cluster-address=gcomm://{}", members.join(",")))
        .arg(format!("--wsrep-node-address=127.0.0.1:{group}"))
        .arg(format!("--wsrep-node-incoming-address=127.0.0.1:{clients}"))
        .arg(format!("--wsrep-sst-receive-address=127.0.0.1:{copies}"))
        .arg(format!(
            "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};\
             ist.recv_addr=127.0.0.1:{increments};gcache.size=64M"
        ));
    Ok(command)
}
