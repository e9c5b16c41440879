//! One client and its connection to the server: what goes from one to the other.
//!
//! ```text
//! client ─► from_client ─► client.rs ─► to_server ─► server
//!                              │ pending: what answers are expected, in order
//! client ◄─ to_client ◄─ server.rs ◄─ from_server ◄─ server
//! ```
//!
//! Both directions are one task, which reads whenever what it has to write is little: a side that
//! does not read slows down the other, as without a proxy, and none waits for the other in a
//! circle.

mod client;
mod injected;
mod pending;
mod server;

use crate::catalog::Catalog;
use crate::recording::Recording;
use crate::transaction::Tracker;
use crate::wire::Buffer;
use injected::Trial;
use pending::{Pending, Portal, Prepared};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Nothing more is read while so much waits to be written.
const WAITING_MAX: usize = 1 << 18;
/// What is read at once.
const READ: usize = 1 << 16;

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Who it is.
    Login,
    Running,
    /// Everything is passed on as it comes.
    Opaque,
}

/// One connection.
#[expect(clippy::struct_excessive_bools, reason = "none of them follows from others")]
pub(crate) struct Connection {
    recording: Arc<Recording>,
    tracker: Tracker,
    catalog: Catalog,
    /// Of the recording, when the catalog was asked.
    generation: u64,
    phase: Phase,
    from_client: Buffer,
    from_server: Buffer,
    to_client: Buffer,
    to_server: Buffer,
    /// Bytes of a long message that are passed on as they come.
    client_passes: usize,
    server_passes: usize,
    pending: VecDeque<Pending>,
    statements: HashMap<Vec<u8>, Prepared>,
    portals: HashMap<Vec<u8>, Portal>,
    /// `I`, `T` or `E`, as the server said it last.
    status: u8,
    /// Requests were sent behind the last `Sync`.
    is_in_batch: bool,
    /// The server leaves out everything up to the next `Sync`.
    is_skipping: bool,
    /// A question of our own has to be answered first.
    is_waiting: bool,
    /// A name was given again in this batch, which may fail: what it stands for afterwards is
    /// known when all was answered.
    has_open_names: bool,
    /// Since the transaction began, names may have got other meanings.
    has_changed_names: bool,
    /// A message of the client waits for an answer of the server.
    is_held: bool,
    /// Statements whose first run was passed on as it was, to be tried when there is time.
    trials: Vec<Trial>,
    /// Backslashes in strings mean nothing, as in standard SQL.
    has_standard_strings: bool,
}

impl Connection {
    pub(crate) fn new(recording: Arc<Recording>, name: String, is_recorded: bool) -> Connection {
        let phase = if is_recorded { Phase::Login } else { Phase::Opaque };
        Connection {
            tracker: Tracker::new(Arc::clone(&recording), name),
            catalog: Catalog::default(),
            generation: recording.generation.load(Ordering::Relaxed),
            recording,
            phase,
            from_client: Buffer::default(),
            from_server: Buffer::default(),
            to_client: Buffer::default(),
            to_server: Buffer::default(),
            client_passes: 0,
            server_passes: 0,
            pending: VecDeque::new(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            status: b'I',
            is_in_batch: false,
            is_skipping: false,
            is_waiting: false,
            is_held: false,
            has_changed_names: false,
            has_open_names: false,
            trials: Vec::new(),
            has_standard_strings: true,
        }
    }

    /// Passes on everything until either side ends, or the proxy.
    pub(crate) async fn run(
        mut self,
        client: TcpStream,
        server: TcpStream,
        over: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let result = self.pass(client, server, over).await;
        if self.phase == Phase::Running {
            self.tracker.closed(self.commit_sent());
        }
        result
    }

    async fn pass(
        &mut self,
        mut client: TcpStream,
        mut server: TcpStream,
        mut over: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let (mut client_in, mut client_out) = client.split();
        let (mut server_in, mut server_out) = server.split();
        let mut client_ended = false;
        loop {
            let reads_client =
                !client_ended && self.to_server.rest().len() < WAITING_MAX && !self.has_much();
            let reads_server = self.to_client.rest().len() < WAITING_MAX;
            let (writes_client, writes_server) =
                (!self.to_client.is_empty(), !self.to_server.is_empty());
            self.from_client.bytes.reserve(if reads_client { READ } else { 0 });
            self.from_server.bytes.reserve(if reads_server { READ } else { 0 });
            tokio::select! {
                written = client_out.write(self.to_client.rest()), if writes_client => {
                    self.to_client.start += written?;
                    self.to_client.settle();
                }
                written = server_out.write(self.to_server.rest()), if writes_server => {
                    self.to_server.start += written?;
                    self.to_server.settle();
                }
                read = server_in.read_buf(&mut self.from_server.bytes), if reads_server => {
                    if read? == 0 {
                        // What the server said last is for the client.
                        client_out.write_all(self.to_client.rest()).await?;
                        return Ok(());
                    }
                    self.take_from_server()?;
                }
                read = client_in.read_buf(&mut self.from_client.bytes), if reads_client => {
                    if read? == 0 {
                        client_ended = true;
                        server_out.write_all(self.to_server.rest()).await?;
                        self.to_server = Buffer::default();
                        server_out.shutdown().await?;
                        continue;
                    }
                    if let Err(error) = self.take_from_client() {
                        // The client is told why.
                        client_out.write_all(self.to_client.rest()).await?;
                        return Err(error);
                    }
                }
                _ = over.changed() => return Ok(()),
            }
        }
    }

    /// Whether the client has sent a lot that waits for an answer of the server.
    fn has_much(&self) -> bool {
        self.is_held && self.from_client.rest().len() > WAITING_MAX
    }

    fn take_from_client(&mut self) -> io::Result<()> {
        let taken = if self.phase == Phase::Opaque {
            move_all(&mut self.from_client, &mut self.to_server);
            Ok(())
        } else {
            self.client_messages()
        };
        self.from_client.settle();
        taken.map_err(|message| io::Error::new(io::ErrorKind::InvalidData, message))
    }

    fn take_from_server(&mut self) -> io::Result<()> {
        let taken = if self.phase == Phase::Opaque {
            move_all(&mut self.from_server, &mut self.to_client);
            Ok(())
        } else {
            // What the client has sent may have waited for this.
            self.server_messages().and_then(|()| self.client_messages())
        };
        self.from_server.settle();
        self.from_client.settle();
        taken.map_err(|message| io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

/// Passes on what there is, without a copy if nothing waits.
fn move_all(from: &mut Buffer, to: &mut Buffer) {
    if to.is_empty() && from.start == 0 {
        to.bytes.clear();
        to.start = 0;
        std::mem::swap(&mut from.bytes, &mut to.bytes);
    } else {
        to.bytes.extend_from_slice(from.rest());
        from.start = from.bytes.len();
    }
}
