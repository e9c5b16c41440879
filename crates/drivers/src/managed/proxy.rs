//! A way to a server that can be cut: connections to it go through here.
//!
//! Everything is passed on, both ways, by two threads for each connection. Cut, all
//! connections end, and new ones end as soon as they are made. What a client had sent by
//! then still reaches the server, and what the server answers reaches nobody: a commit may
//! have its effect although its client never hears of it.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

/// How much memory a thread that copies may use for its calls.
const STACK: usize = 128 << 10;

/// A listener on loopback that passes connections on. Dropped, it ends.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    is_over: bool,
    /// How many links there were, which is the number of the next one.
    count: u64,
    links: HashMap<u64, Link>,
}

/// The two connections that are one.
struct Link {
    client: TcpStream,
    server: TcpStream,
}

impl Link {
    fn end(&self) {
        // One that is not connected any more has ended.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn copies(&self) -> io::Result<[TcpStream; 4]> {
        let Link { client, server } = self;
        Ok([client.try_clone()?, server.try_clone()?, server.try_clone()?, client.try_clone()?])
    }
}

impl Proxy {
    /// A way to the server at this address.
    pub(crate) fn to(server: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { server, state: Mutex::default() });
        let accepting = Arc::clone(&shared);
        let acceptor = Builder::new()
            .name("proxy".to_owned())
            .stack_size(STACK)
            .spawn(move || accept(&accepting, &listener))?;
        Ok(Proxy { address, shared, acceptor: Some(acceptor) })
    }

    /// Where clients connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and new ones until [`Proxy::mend`].
    pub(crate) fn cut(&self) {
        let mut state = self.shared.state();
        state.is_cut = true;
        for (_, link) in state.links.drain() {
            link.end();
        }
    }

    /// Lets new connections through.
    pub(crate) fn mend(&self) {
        self.shared.state().is_cut = false;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.shared.state().is_over = true;
        // Wakes the thread, which looks whether it is over.
        let is_awake = TcpStream::connect(self.address).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| is_awake) {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while changing it")
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    for client in listener.incoming() {
        if shared.state().is_over {
            return;
        }
        // A client that cannot be passed on finds its connection closed.
        if let Ok(client) = client {
            let _ = pass_on(shared, client);
        }
    }
}

fn pass_on(shared: &Arc<Shared>, client: TcpStream) -> io::Result<()> {
    if shared.state().is_cut {
        return Ok(());
    }
    let server = TcpStream::connect(shared.server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let link = Link { client, server };
    let [from_client, to_server, from_server, to_client] = link.copies()?;
    let number = {
        let mut state = shared.state();
        // It may have been cut meanwhile.
        if state.is_cut {
            return Ok(());
        }
        let number = state.count;
        state.count += 1;
        state.links.insert(number, link);
        number
    };
    for (from, to) in [(from_client, to_server), (from_server, to_client)] {
        let copying = Arc::clone(shared);
        let spawned = Builder::new().name("proxy".to_owned()).stack_size(STACK).spawn(move || {
            // However it ends, the link does.
            let _ = io::copy(&mut &from, &mut &to);
            end(&copying, number);
        });
        if let Err(error) = spawned {
            end(shared, number);
            return Err(error);
        }
    }
    Ok(())
}

fn end(shared: &Shared, number: u64) {
    if let Some(link) = shared.state().links.remove(&number) {
        link.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// A server that sends back what it gets.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                std::thread::spawn(move || io::copy(&mut &client, &mut &client));
            }
        });
        address
    }

    fn ask(stream: &mut TcpStream, text: &str) -> io::Result<String> {
        stream.write_all(text.as_bytes())?;
        let mut answer = vec![0; text.len()];
        stream.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    #[test]
    fn everything_is_passed_on_until_it_is_cut_and_after_it_is_mended() {
        let proxy = Proxy::to(echo()).expect("a proxy");
        let connect = || TcpStream::connect(proxy.address()).expect("a connection");
        let mut first = connect();
        let mut second = connect();
        assert_eq!(ask(&mut first, "one").expect("an answer"), "one");
        assert_eq!(ask(&mut second, "two").expect("an answer"), "two");
        proxy.cut();
        for stream in [&mut first, &mut second, &mut connect()] {
            assert!(ask(stream, "three").is_err());
        }
        proxy.mend();
        assert!(ask(&mut first, "four").is_err());
        assert_eq!(ask(&mut connect(), "five").expect("an answer"), "five");
    }

    #[test]
    fn ended_connections_are_forgotten() {
        let proxy = Proxy::to(echo()).expect("a proxy");
        for _ in 0..20 {
            let mut stream = TcpStream::connect(proxy.address()).expect("a connection");
            ask(&mut stream, "hello").expect("an answer");
        }
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !proxy.shared.state().links.is_empty() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_server_that_is_gone_ends_its_connections() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let proxy = Proxy::to(listener.local_addr().expect("an address")).expect("a proxy");
        drop(listener);
        let mut stream = TcpStream::connect(proxy.address()).expect("a connection");
        assert!(ask(&mut stream, "hello").is_err());
    }
}
