//! Sends traces of database clients to `isolde watch --listen`.
//!
//! A [`Trace`] is a connection to the listener, a [`Session`] is one connection of the
//! application to its database. The application notes the time before each request and
//! says what the request saw or wrote after it; nothing of the database is touched here.
//!
//! ```no_run
//! use isolde_client::{Row, Trace};
//!
//! let trace = Trace::connect("127.0.0.1:7416", None)?;
//! let mut session = trace.session("worker 1")?;
//!
//! let start = session.start();
//! // BEGIN
//! session.begun(start)?;
//! let start = session.start();
//! // UPDATE accounts SET balance = 90 WHERE id = 5
//! session.wrote(start, &[Row::new("accounts", 5).column("balance").is(90)])?;
//! session.before_commit()?;
//! let start = session.start();
//! // COMMIT
//! session.committed(start)?;
//! drop(session);
//! trace.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Nothing commits that was not sent.** [`Session::before_commit`] hands everything to the
//! operating system, so that a process that dies right after its commit leaves no value
//! behind that the listener has never heard of.
//!
//! **Nothing is lost or told twice when the connection is cut.** What the listener has not
//! acknowledged is kept, and sent again by the next connection under the same identity.
//!
//! Times are nanoseconds since 1970, of a clock that never steps back within this process.
//! Processes of one machine agree on it as far as the machine's clock was not set between
//! their starts; for several machines, tell `isolde watch --clock-drift`.

mod frame;
mod row;
mod wire;

pub use row::{Row, Scalar};
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::{Connect, Ends, Wire};

/// A connection to the listener, for any number of sessions.
pub struct Trace {
    shared: Arc<Shared>,
    /// Sends heartbeats.
    beating: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

struct Shared {
    clock: Clock,
    wire: Mutex<Wire>,
    /// For each session, no request of which will be told for a time before this.
    bounds: Mutex<Vec<(u64, Arc<AtomicI64>)>>,
}

/// Nothing is being asked for. What comes will be asked for later than now.
const IDLE: i64 = i64::MAX;
/// The session is over.
const ENDED: i64 = i64::MIN;
/// How often what was not acknowledged is sent again at the end.
const CONNECTIONS_MAX: u32 = 3;
/// Between two heartbeats.
const BEAT: Duration = Duration::from_millis(100);

struct Clock {
    start: Instant,
    /// Nanoseconds since 1970 when it was started.
    origin: i64,
}

impl Clock {
    fn new() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = i64::try_from(since.as_nanos()).unwrap_or(0);
        Clock { start: Instant::now(), origin }
    }

    fn now(&self) -> i64 {
        let elapsed = i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX / 2);
        self.origin.saturating_add(elapsed)
    }
}

/// When a request was made.
#[derive(Clone, Copy, Debug)]
pub struct Start(i64);

impl Trace {
    /// Connects to a listener on an address and port, with its token if it asks for one. A
    /// connection that is cut is made again, and what was not acknowledged sent again.
    pub fn connect(address: impl ToSocketAddrs, token: Option<&str>) -> io::Result<Trace> {
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        Trace::over_connections(
            Box::new(move || {
                let stream = TcpStream::connect(&*addresses)?;
                stream.set_nodelay(true)?;
                let (reader, closer) = (stream.try_clone()?, stream.try_clone()?);
                let hang_up = move || {
                    let _ = closer.shutdown(Shutdown::Write);
                };
                let (out, reader) = (Box::new(stream), Box::new(reader));
                Ok(Ends { out, reader, hang_up: Box::new(hang_up) })
            }),
            token,
        )
    }

    /// Connects to a listener on a socket in the file system, in the same way.
    #[cfg(unix)]
    pub fn connect_unix(path: &std::path::Path, token: Option<&str>) -> io::Result<Trace> {
        let path = path.to_owned();
        Trace::over_connections(
            Box::new(move || {
                let stream = std::os::unix::net::UnixStream::connect(&path)?;
                let (reader, closer) = (stream.try_clone()?, stream.try_clone()?);
                let hang_up = move || {
                    let _ = closer.shutdown(Shutdown::Write);
                };
                let (out, reader) = (Box::new(stream), Box::new(reader));
                Ok(Ends { out, reader, hang_up: Box::new(hang_up) })
            }),
            token,
        )
    }

    /// Writes the trace to a file, or whatever takes bytes, for `isolde watch --from`.
    pub fn write_to(out: impl io::Write + Send + 'static) -> io::Result<Trace> {
        let hang_up = Box::new(|| {});
        let ends = Ends { out: Box::new(out), reader: Box::new(io::empty()), hang_up };
        Trace::over(Wire::new(ends, None, "")?)
    }

    fn over_connections(connect: Connect, token: Option<&str>) -> io::Result<Trace> {
        let ends = connect()?;
        Trace::over(Wire::new(ends, Some(connect), token.unwrap_or(""))?)
    }

    fn over(wire: Wire) -> io::Result<Trace> {
        let shared = Arc::new(Shared {
            clock: Clock::new(),
            wire: Mutex::new(wire),
            bounds: Mutex::default(),
        });
        let is_over = Arc::new(AtomicBool::new(false));
        let beating = {
            let (shared, is_over) = (Arc::clone(&shared), Arc::clone(&is_over));
            std::thread::Builder::new().name("isolde heartbeat".into()).spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::park_timeout(BEAT);
                    // A listener that is gone is told by the sessions.
                    let _ = shared.beat();
                }
            })?
        };
        Ok(Trace { shared, beating: Some(beating), is_over })
    }

    /// A connection of the application to its database. Its name is what reports call it;
    /// every session has one of its own.
    pub fn session(&self, name: &str) -> io::Result<Session> {
        let client = self.shared.wire()?.open(name)?;
        let bound = Arc::new(AtomicI64::new(IDLE));
        let mut bounds = self.shared.bounds.lock().map_err(|_| broken())?;
        bounds.push((client, Arc::clone(&bound)));
        drop(bounds);
        let shared = Arc::clone(&self.shared);
        let answered = shared.clock.now();
        Ok(Session { shared, client, txn: 0, is_open: false, answered, bound, pending: Vec::new() })
    }

    /// Ends the trace, and waits until all of it is acknowledged: then it is with the
    /// listener, whatever happens here.
    pub fn finish(mut self) -> io::Result<()> {
        self.stop();
        let mut attempts = 0..CONNECTIONS_MAX;
        loop {
            let (answers, sent) = {
                let mut wire = self.shared.wire()?;
                wire.flush()?;
                wire.finish()
            };
            match answers.wait_for(sent) {
                Err(cause) if attempts.next().is_some() => self.shared.wire()?.again(cause)?,
                waited => return waited,
            }
        }
    }

    fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.beating.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Sessions end before their trace does.
impl Drop for Trace {
    fn drop(&mut self) {
        self.stop();
        if let Ok(wire) = self.shared.wire() {
            wire.hang_up();
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("another thread failed while it sent its trace")
}

impl Shared {
    fn wire(&self) -> io::Result<std::sync::MutexGuard<'_, Wire>> {
        self.wire.lock().map_err(|_| broken())
    }

    /// Tells how far each session is.
    fn beat(&self) -> io::Result<()> {
        // Before any bound is looked at: a session that was idle then asks later than this.
        let now = self.clock.now();
        let mut bounds = self.bounds.lock().map_err(|_| broken())?;
        bounds.retain(|(_, bound)| bound.load(Ordering::SeqCst) != ENDED);
        let mut wire = self.wire()?;
        for (client, bound) in bounds.iter() {
            match bound.load(Ordering::SeqCst) {
                ENDED => {}
                IDLE => wire.heartbeat(*client, now),
                bound => wire.heartbeat(*client, bound),
            }
        }
        wire.flush()
    }
}

/// One connection of the application to its database: one transaction at a time.
pub struct Session {
    shared: Arc<Shared>,
    client: u64,
    /// The number of its transaction.
    txn: u64,
    is_open: bool,
    /// When its last request was answered.
    answered: i64,
    bound: Arc<AtomicI64>,
    /// Frames that were not handed over yet.
    pending: Vec<u8>,
}

impl Session {
    /// A request is about to be made.
    pub fn start(&self) -> Start {
        // The bound first: a heartbeat that sees the session idle tells a time before this one.
        let _ =
            self.bound.compare_exchange(IDLE, self.answered, Ordering::SeqCst, Ordering::SeqCst);
        Start(self.shared.clock.now())
    }

    /// A transaction began. Without this, it begins with its first request.
    pub fn begun(&mut self, start: Start) -> io::Result<()> {
        self.event(frame::BEGIN, start, &[])
    }

    /// Rows were read; rows that were looked for and not there are told by
    /// [`Row::is_absent`].
    pub fn read(&mut self, start: Start, rows: &[Row<'_>]) -> io::Result<()> {
        self.event(frame::READ, start, rows)
    }

    /// Rows were read and locked, as by `SELECT … FOR UPDATE`.
    pub fn locked(&mut self, start: Start, rows: &[Row<'_>]) -> io::Result<()> {
        self.event(frame::LOCK, start, rows)
    }

    /// Rows were inserted, updated or, with [`Row::is_absent`], deleted.
    pub fn wrote(&mut self, start: Start, rows: &[Row<'_>]) -> io::Result<()> {
        self.event(frame::WRITE, start, rows)
    }

    /// Hands over everything that was told so far. Called before the commit is sent, so that
    /// no value is there that the listener has not heard of.
    pub fn before_commit(&mut self) -> io::Result<()> {
        self.hand_over()
    }

    /// The transaction was committed.
    pub fn committed(&mut self, start: Start) -> io::Result<()> {
        self.end(frame::COMMIT, start)
    }

    /// The transaction has no effect.
    pub fn aborted(&mut self, start: Start) -> io::Result<()> {
        self.end(frame::ABORT, start)
    }

    /// Nobody knows: the commit was not answered.
    pub fn lost(&mut self, start: Start) -> io::Result<()> {
        self.end(frame::LOST, start)
    }

    fn end(&mut self, kind: u8, start: Start) -> io::Result<()> {
        self.event(kind, start, &[])?;
        self.is_open = false;
        self.hand_over()?;
        self.bound.store(IDLE, Ordering::SeqCst);
        Ok(())
    }

    fn event(&mut self, kind: u8, start: Start, rows: &[Row<'_>]) -> io::Result<()> {
        const PENDING_BYTES_MAX: usize = 1 << 13;
        let now = self.shared.clock.now();
        if !std::mem::replace(&mut self.is_open, true) {
            self.txn += 1;
        }
        let completed = if kind == frame::LOST { i64::MAX } else { now };
        let event =
            frame::Event { kind, client: self.client, txn: self.txn, start: start.0, completed };
        let named = if rows.is_empty() { Vec::new() } else { self.shared.wire()?.named(rows)? };
        event.write(&mut self.pending, &named);
        self.answered = now;
        if self.pending.len() > PENDING_BYTES_MAX {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let mut wire = self.shared.wire()?;
        wire.answers().refusal()?;
        if !self.pending.is_empty() {
            wire.send(&self.pending);
            wire.flush()?;
            self.pending.clear();
        }
        drop(wire);
        self.bound.store(self.answered, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.hand_over();
        if let Ok(mut wire) = self.shared.wire() {
            wire.bye(self.client);
            let _ = wire.flush();
        }
        self.bound.store(ENDED, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
