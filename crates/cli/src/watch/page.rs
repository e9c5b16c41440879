//! The live page and the metrics: `--http`.

use super::status::Status;
use super::threads;
use crate::exit::Failure;
use crate::http::{self, Answer};
use isolde_report::live_page::{PAGE, SCRIPT, STYLE};
use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Requests that are answered at the same time; more are turned away.
const AT_ONCE_MAX: usize = 8;

/// A page for browsers.
pub(super) struct LivePage {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

impl LivePage {
    pub(super) fn open(address: SocketAddr) -> Result<LivePage, Failure> {
        let failed = |error: std::io::Error| {
            Failure::Usage(format!("watch: cannot listen on {address}: {error}"))
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(LivePage { listener, address })
    }

    /// Answers until the watch is over.
    pub(super) fn run(&self, status: &Arc<Mutex<Status>>, is_over: &AtomicBool) {
        let hosts = http::hosts(self.address);
        let busy = AtomicUsize::new(0);
        // Of browsers that are connected and may not ask for anything.
        let open: Mutex<HashMap<u64, TcpStream>> = Mutex::default();
        let mut number = 0;
        std::thread::scope(|scope| {
            while !is_over.load(Ordering::Relaxed) {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(Duration::from_millis(30));
                    continue;
                };
                if busy.fetch_add(1, Ordering::Relaxed) >= AT_ONCE_MAX {
                    busy.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                number += 1;
                if let Ok(other_end) = stream.try_clone() {
                    open.lock().expect("nobody panics here").insert(number, other_end);
                }
                let (busy, hosts, open) = (&busy, &hosts, &open);
                let is_done = move || {
                    open.lock().expect("nobody panics here").remove(&number);
                    busy.fetch_sub(1, Ordering::Relaxed);
                };
                let started = threads::start(scope, "page", move || {
                    // A browser that went away wants no answer.
                    let _ = serve(&stream, hosts, status);
                    is_done();
                });
                // The next request may find a thread.
                if started.is_err() {
                    is_done();
                }
            }
            // Whoever has not asked by now is not waited for; what was asked is answered.
            for stream in open.lock().expect("nobody panics here").values() {
                let _ = stream.shutdown(Shutdown::Read);
            }
        });
    }
}

fn serve(stream: &TcpStream, hosts: &[String], status: &Arc<Mutex<Status>>) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    http::serve_one(stream, hosts, |path| {
        let now = || status.lock().expect("nobody panics while counting").clone();
        match path {
            "/" => Answer::html(PAGE.to_owned()),
            "/watch.js" => Answer::of("text/javascript; charset=utf-8", SCRIPT.to_owned()),
            "/watch.css" => Answer::of("text/css; charset=utf-8", STYLE.to_owned()),
            "/status.json" => Answer::of("application/json", now().to_json().to_string()),
            "/metrics" => {
                Answer::of("text/plain; version=0.0.4; charset=utf-8", now().to_metrics())
            }
            "/favicon.ico" => Answer::refusal("204 No Content", ""),
            _ => Answer::refusal("404 Not Found", "there is /, /status.json and /metrics"),
        }
    })
}
