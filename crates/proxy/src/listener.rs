//! Taking connections, and what a connection says first.

use crate::connection::Connection;
use crate::recording::Recording;
use crate::wire::{self, Parts, STARTUP_MAX};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Where connections go.
#[derive(Clone, Debug)]
pub struct Route {
    /// The server, as `host:port`.
    pub server: String,
    /// Only connections to this database are recorded, if one is named.
    pub database: Option<String>,
    /// Everything is passed on without a look at it.
    pub is_plain: bool,
}

/// More connections at once than this are refused: each takes two of the system's.
const CONNECTIONS_MAX: usize = 4000;
/// How long a client may take to say who it is.
const STARTUP_TIME: Duration = Duration::from_mins(1);
/// How long connections may take to end when the proxy does.
const END_TIME: Duration = Duration::from_secs(2);
/// Between two looks whether the proxy is to end.
const LOOK: Duration = Duration::from_millis(50);

const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const CANCEL: u32 = 80_877_102;

/// A proxy that listens.
pub struct Listener {
    runtime: Runtime,
    listener: TcpListener,
}

/// What all connections share.
struct Shared {
    route: Route,
    recording: Arc<Recording>,
    open: AtomicUsize,
    /// True once the proxy ends.
    over: watch::Receiver<bool>,
}

impl Listener {
    /// Listens at this address.
    pub fn bind(address: &str) -> io::Result<Listener> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        Ok(Listener { runtime, listener })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// Passes connections on until `stop` is set; what they have recorded by then is written.
    pub fn serve(self, route: Route, recording: &Arc<Recording>, stop: &AtomicBool) {
        let (end, over) = watch::channel(false);
        let shared = Arc::new(Shared {
            route,
            recording: Arc::clone(recording),
            open: AtomicUsize::new(0),
            over,
        });
        self.runtime.block_on(async {
            while !stop.load(Ordering::Relaxed) {
                let Ok(accepted) = tokio::time::timeout(LOOK, self.listener.accept()).await else {
                    continue;
                };
                match accepted {
                    Ok((client, _)) => take(client, &shared),
                    // Too many files are open, or the client is gone already.
                    Err(_) => tokio::time::sleep(LOOK).await,
                }
            }
            let _ = end.send(true);
            let limit = tokio::time::Instant::now() + END_TIME;
            while shared.open.load(Ordering::Acquire) > 0 && tokio::time::Instant::now() < limit {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        self.runtime.shutdown_timeout(Duration::from_millis(100));
    }
}

/// Gives a connection a task of its own.
fn take(client: TcpStream, shared: &Arc<Shared>) {
    let number = shared.recording.counts.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let is_full = shared.open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX;
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        if is_full {
            refuse(client, "53300", "the proxy has too many connections").await;
        } else {
            // An end in the middle is the client's or the server's, who know it themselves.
            let _ = pass(client, number, &shared).await;
        }
        shared.open.fetch_sub(1, Ordering::AcqRel);
    });
}

async fn refuse(mut client: TcpStream, code: &str, message: &str) {
    let mut out = Vec::new();
    wire::put_error(&mut out, code, message);
    let _ = client.write_all(&out).await;
}

/// The first message of a client.
struct Startup {
    raw: Vec<u8>,
    version: u32,
}

impl Startup {
    async fn read(client: &mut TcpStream) -> io::Result<Option<Startup>> {
        let mut raw = vec![0; 8];
        client.read_exact(&mut raw).await?;
        let number =
            |at: usize| u32::from_be_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let (length, version) = (number(0) as usize, number(4));
        if !(8..=STARTUP_MAX).contains(&length) {
            return Ok(None);
        }
        raw.resize(length, 0);
        client.read_exact(&mut raw[8..]).await?;
        Ok(Some(Startup { raw, version }))
    }

    /// What the client says of itself under this name.
    fn parameter(&self, wanted: &str) -> Option<String> {
        let mut parts = Parts::new(&self.raw[8..]);
        loop {
            let (name, value) = (parts.text()?, parts.text()?);
            if name == wanted.as_bytes() {
                return Some(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
}

async fn pass(mut client: TcpStream, number: u64, shared: &Arc<Shared>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let startup = loop {
        let read = tokio::time::timeout(STARTUP_TIME, Startup::read(&mut client)).await;
        let Some(startup) = read.map_err(|_| io::ErrorKind::TimedOut)?? else {
            refuse(client, "08P01", "invalid length of startup packet").await;
            return Ok(());
        };
        match startup.version {
            // No encryption here; who insists on it ends the connection.
            SSL | GSS => client.write_all(b"N").await?,
            _ => break startup,
        }
    };
    let mut server = match TcpStream::connect(&shared.route.server).await {
        Ok(server) => server,
        Err(error) => {
            let message = format!("the proxy cannot reach {}: {error}", shared.route.server);
            refuse(client, "08006", &message).await;
            return Ok(());
        }
    };
    server.set_nodelay(true)?;
    server.write_all(&startup.raw).await?;
    if startup.version == CANCEL {
        // The server closes without an answer when it has taken it.
        let _ = server.read(&mut [0; 1]).await;
        return Ok(());
    }
    let user = startup.parameter("user");
    let database = startup.parameter("database").or(user);
    let is_wanted = shared.route.database.is_none() || shared.route.database == database;
    let is_recorded = startup.version >> 16 == 3
        && startup.parameter("replication").is_none()
        && is_wanted
        && !shared.route.is_plain;
    if !is_recorded && !shared.route.is_plain {
        shared.recording.gap("connections to another database, or of another kind", 0);
    }
    let application = startup.parameter("application_name").unwrap_or_default();
    let name = match application.as_str() {
        "" => format!("connection {number}"),
        application => format!("{application} {number}"),
    };
    let connection = Connection::new(Arc::clone(&shared.recording), name, is_recorded);
    connection.run(client, server, shared.over.clone()).await
}
