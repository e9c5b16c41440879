//! How long after a violation it is told: clients send to a listener, and one of them reads
//! what was replaced.

use super::{Bench, add};
use crate::workspace::line;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Violations of each kind of crowd.
const VIOLATIONS: u32 = 20;
/// Between two transactions of a client.
const PAUSE: Duration = Duration::from_millis(5);
/// Transactions of each client between two violations.
const BETWEEN: u32 = 20;
/// How far the slowest client may be behind, in milliseconds.
const DELAYS: [u64; 3] = [0, 200, 500];
/// A violation has to be told so many seconds after the slowest client has come so far.
const BAR: f64 = 1.0;

/// Measures and writes a row for each crowd.
pub(super) fn notice(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "\n## Time to notice\n");
    line(
        text,
        &format!(
            "Three clients send traces to `isolde watch --listen`, one of them as late as the row \
             says. Another reads a value that was replaced, {VIOLATIONS} times; from the instant at \
             which its answer is there to the line of `--events` that tells it. Nobody knows before \
             the slowest client has passed the read whether what it will send explains it; after \
             that it may take {BAR} s.\n"
        ),
    );
    line(
        text,
        "| slowest client behind, ms | median, ms | longest, ms | longest behind it, ms | bar |\n\
         |---:|---:|---:|---:|---|",
    );
    for delay in DELAYS {
        let failed = |error: io::Error| format!("watch --listen: {error}");
        let mut times = crowd(bench, Duration::from_millis(delay)).map_err(failed)?;
        times.sort_by(f64::total_cmp);
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        #[expect(clippy::cast_precision_loss, reason = "less than a second")]
        let behind = (longest - delay as f64 / 1e3).max(0.0);
        let bar = if behind < BAR { "kept" } else { "missed" };
        let [median, longest, behind] = [median, longest, behind].map(|seconds| seconds * 1e3);
        add(text, &format!("| {delay} | {median:.0} | {longest:.0} | {behind:.0} | {bar} |"));
    }
    Ok(())
}

/// A listener that is ended with this.
struct Listening {
    child: Child,
    address: String,
    /// When each violation was told.
    told: Receiver<Instant>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(bench: &Bench<'_>) -> io::Result<Listening> {
    let output = bench.folder.join("found").display().to_string();
    let mut child = Command::new(&bench.isolde)
        .args(["watch", "--listen", "0", "--profile", "snapshot-isolation", "--events", "-"])
        .args(["--quiet", "--explain", "100", "--output", &output])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut place = String::new();
    errors.read_line(&mut place)?;
    let address = place.split("listening on ").nth(1).unwrap_or_default().trim().to_owned();
    let (tell, told) = channel();
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if line.contains("\"event\":\"violation\"") && tell.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    // Nobody else reads what it says from now on.
    std::thread::spawn(move || io::copy(&mut errors, &mut io::sink()));
    Ok(Listening { child, address, told })
}

/// Seconds from each violation until it is told.
fn crowd(bench: &Bench<'_>, delay: Duration) -> io::Result<Vec<f64>> {
    let listening = listen(bench)?;
    let mut prompt = TcpStream::connect(&listening.address)?;
    let mut late = TcpStream::connect(&listening.address)?;
    for (stream, clients) in [(&mut prompt, &["writer", "reader"][..]), (&mut late, &["late"])] {
        stream.set_nodelay(true)?;
        let mut head = String::from("{\"isolde\":\"trace 1\"}\n");
        for client in clients {
            head.extend(["{\"client\":\"", client, "\"}\n"]);
        }
        stream.write_all(head.as_bytes())?;
    }
    let mut times = Vec::new();
    let mut txn = 0;
    for _ in 0..VIOLATIONS {
        let mut read = Instant::now();
        for round in 0..=BETWEEN {
            txn += 1;
            let is_stale = round == BETWEEN;
            // The second of two versions is there when the reader comes.
            prompt.write_all(wrote(txn, 2 * txn).as_bytes())?;
            txn += 1;
            prompt.write_all(wrote(txn, 2 * txn).as_bytes())?;
            let seen = if is_stale { 2 * (txn - 1) } else { 2 * txn };
            let message = saw(txn, seen);
            read = Instant::now();
            prompt.write_all(message.as_bytes())?;
            let behind = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
            late.write_all(format!("{{\"heartbeat\":{}}}\n", now() - behind).as_bytes())?;
            std::thread::sleep(PAUSE);
        }
        times.push(wait(&listening.told, read, delay, (&mut prompt, &mut late))?);
    }
    Ok(times)
}

/// Goes on until the violation is told.
fn wait(
    told: &Receiver<Instant>,
    read: Instant,
    delay: Duration,
    (prompt, late): (&mut TcpStream, &mut TcpStream),
) -> io::Result<f64> {
    let behind = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
    loop {
        if let Ok(at) = told.recv_timeout(PAUSE) {
            return Ok(at.saturating_duration_since(read).as_secs_f64());
        }
        if read.elapsed() > Duration::from_secs(30) {
            return Err(io::Error::other("expected a violation, found none for 30 s"));
        }
        prompt.write_all(format!("{{\"heartbeat\":{}}}\n", now()).as_bytes())?;
        late.write_all(format!("{{\"heartbeat\":{}}}\n", now() - behind).as_bytes())?;
    }
}

/// The writer's transaction, which took no time.
fn wrote(txn: u64, value: u64) -> String {
    let at = now();
    format!(
        "{{\"client\":\"writer\",\"txn\":{txn},\"write\":[{at},{at}],\"rows\":[[\"t\",1,{value}]]}}\n\
         {{\"client\":\"writer\",\"txn\":{txn},\"commit\":[{0},{0}]}}\n",
        now()
    )
}

/// The reader's.
fn saw(txn: u64, value: u64) -> String {
    let at = now();
    format!(
        "{{\"client\":\"reader\",\"txn\":{txn},\"read\":[{at},{at}],\"rows\":[[\"t\",1,{value}]]}}\n\
         {{\"client\":\"reader\",\"txn\":{txn},\"commit\":[{0},{0}]}}\n",
        now()
    )
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}
