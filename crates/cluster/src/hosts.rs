//! Connections between processes, made and tried before anything is verified.
//!
//! Processes greet each other with what they are and what they were asked. Where two differ,
//! both say so. Nobody waits for ever for one that does not come.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Where workers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// So many threads of this process.
    Threads(usize),
    /// One thread in each of several processes.
    Processes {
        /// The address of each, `host:port`.
        addresses: Vec<String>,
        /// Which of them this is, from 0.
        process: usize,
        /// How long to wait for the others.
        patience: Duration,
    },
}

const MAGIC: &[u8; 8] = b"ISOLDEW1";
/// More bytes are no greeting.
const GREETING_MAX: usize = 1 << 16;
const RETRY: Duration = Duration::from_millis(50);

/// What a process says of itself: all must be equal but the number of the process.
struct Greeting {
    process: usize,
    /// What it is and what it was asked, a line each.
    asked: String,
}

/// Connects to all other processes; `None` stands for this one.
pub(crate) fn connect(
    addresses: &[String],
    process: usize,
    patience: Duration,
    asked: &str,
) -> Result<Vec<Option<TcpStream>>, String> {
    let own = addresses.get(process).ok_or_else(|| {
        format!("expected a process from 0 to {}, found {process}", addresses.len().max(1) - 1)
    })?;
    let deadline = Instant::now() + patience;
    let listener = TcpListener::bind(own.as_str())
        .map_err(|error| format!("process {process} cannot listen at {own}: {error}"))?;
    let mut sockets: Vec<Option<TcpStream>> = addresses.iter().map(|_| None).collect();
    for (other, address) in addresses.iter().enumerate().take(process) {
        let mut stream = reach(address, other, deadline)?;
        greet(&mut stream, process, asked).map_err(|it| unheard(other, address, &it))?;
        let greeting = hear(&mut stream, deadline).map_err(|it| unheard(other, address, &it))?;
        agree(&greeting, asked, address)?;
        if greeting.process != other {
            let found = greeting.process;
            return Err(format!("{address}: expected process {other}, found process {found}"));
        }
        sockets[other] = Some(stream);
    }
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    while let Some(missing) = (process + 1..addresses.len()).find(|&it| sockets[it].is_none()) {
        let address = &addresses[missing];
        match listener.accept() {
            Ok((mut stream, from)) => {
                stream.set_nonblocking(false).map_err(|error| error.to_string())?;
                // Whoever is none of us is left alone.
                let Ok(greeting) = hear(&mut stream, deadline) else { continue };
                greet(&mut stream, process, asked).map_err(|it| unheard(missing, address, &it))?;
                agree(&greeting, asked, &from.to_string())?;
                let known = sockets.get(greeting.process).map(Option::is_some);
                if greeting.process <= process || known != Some(false) {
                    let found = greeting.process;
                    return Err(format!("{from}: expected each process once, found {found} again"));
                }
                sockets[greeting.process] = Some(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() >= deadline {
                    return Err(format!("process {missing} at {address} did not come in time"));
                }
                std::thread::sleep(RETRY);
            }
            Err(error) => return Err(format!("process {process} at {own}: {error}")),
        }
    }
    for socket in sockets.iter().flatten() {
        socket.set_read_timeout(None).map_err(|error| error.to_string())?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
    }
    Ok(sockets)
}

fn unheard(process: usize, address: &str, error: &io::Error) -> String {
    format!("process {process} at {address} did not answer as one: {error}")
}

fn reach(address: &str, process: usize, deadline: Instant) -> Result<TcpStream, String> {
    loop {
        let tried = address.to_socket_addrs().and_then(|mut all| {
            let first = all.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
            TcpStream::connect_timeout(&first, Duration::from_secs(1))
        });
        match tried {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= deadline => {
                return Err(format!(
                    "process {process} at {address} did not come in time: {error}"
                ));
            }
            Err(_) => std::thread::sleep(RETRY),
        }
    }
}

fn greet(stream: &mut TcpStream, process: usize, asked: &str) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((process as u32).to_le_bytes());
    bytes.extend((asked.len() as u32).to_le_bytes());
    bytes.extend(asked.as_bytes());
    stream.write_all(&bytes)
}

fn hear(stream: &mut TcpStream, deadline: Instant) -> io::Result<Greeting> {
    let left = deadline.saturating_duration_since(Instant::now()).max(RETRY);
    stream.set_read_timeout(Some(left.min(Duration::from_secs(5))))?;
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = word(12) as usize;
    if !head.starts_with(MAGIC) || length > GREETING_MAX {
        return Err(io::Error::other("it is another program, or another version of this one"));
    }
    let mut asked = vec![0; length];
    stream.read_exact(&mut asked)?;
    Ok(Greeting { process: word(8) as usize, asked: String::from_utf8_lossy(&asked).into_owned() })
}

fn agree(greeting: &Greeting, asked: &str, from: &str) -> Result<(), String> {
    let Greeting { process, asked: other } = greeting;
    let mut pairs = asked.lines().zip(other.lines());
    if let Some((here, there)) = pairs.find(|(here, there)| here != there) {
        return Err(format!(
            "{from}: process {process} was started otherwise: expected `{here}`, found `{there}`"
        ));
    }
    if asked != other {
        return Err(format!("{from}: process {process} was started otherwise"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: usize) -> Vec<String> {
        let free: Vec<TcpListener> =
            (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        free.iter().map(|it| it.local_addr().unwrap().to_string()).collect()
    }

    /// What each of two processes says that were asked these.
    fn meet(asked: [&'static str; 2]) -> [Option<String>; 2] {
        let all = addresses(2);
        let there = all.clone();
        let patience = Duration::from_secs(5);
        let other = std::thread::spawn(move || connect(&there, 1, patience, asked[1]).err());
        [connect(&all, 0, patience, asked[0]).err(), other.join().unwrap()]
    }

    #[test]
    fn processes_that_were_asked_the_same_meet() {
        assert_eq!(meet(["isolde 1\nlevels a", "isolde 1\nlevels a"]), [None, None]);
    }

    #[test]
    fn both_processes_hear_of_what_differs() {
        let [here, there] = meet(["isolde 1\nlevels a", "isolde 2\nlevels a"]);
        assert!(here.unwrap().ends_with("expected `isolde 1`, found `isolde 2`"));
        assert!(there.unwrap().ends_with("expected `isolde 2`, found `isolde 1`"));
    }

    #[test]
    fn nobody_waits_for_ever_for_who_does_not_come() {
        let all = addresses(2);
        for process in [0, 1] {
            let error = connect(&all, process, Duration::from_millis(100), "").err().unwrap();
            assert!(error.contains(&format!("process {}", 1 - process)), "{error}");
            assert!(error.contains("did not come in time"), "{error}");
        }
    }

    #[test]
    fn a_process_that_is_in_no_list_is_refused() {
        let error = connect(&addresses(2), 2, Duration::from_millis(100), "").err().unwrap();
        assert_eq!(error, "expected a process from 0 to 1, found 2");
    }
}
