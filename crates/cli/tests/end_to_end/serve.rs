//! `isolde serve`, under attack by who may connect to it or write into its folder.

use crate::page::answer_to;
use crate::support::Folder;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A server that ends with the test.
struct Server {
    child: Child,
    /// Its address and port.
    host: String,
}

impl Server {
    fn start(folder: &Folder, arguments: &str) -> Server {
        let mut child = folder
            .command(&format!("serve runs {arguments}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut address = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut address).expect("its address");
        let host = address.trim_end().trim_start_matches("http://").trim_end_matches('/');
        Server { host: host.to_owned(), child }
    }

    /// The answer to a request for this path under this name.
    fn get(&self, path: &str, host: &str) -> String {
        answer_to(&self.host, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    }

    fn index(&self) -> String {
        self.get("/", &self.host)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> Folder {
    let folder = Folder::with(&[]);
    let made = folder.isolde("run sim --transactions 50 -o runs/one --quiet");
    assert_eq!(made.status, 0, "{made:?}");
    folder
}

fn first_line(answer: &str) -> &str {
    answer.lines().next().unwrap_or("")
}

/// All addresses of the machine were listened on, and each was answered with 403.
#[test]
fn a_server_on_all_addresses_is_known_by_each_of_them() {
    let server = Server::start(&folder(), "--listen 0.0.0.0:0");
    let port = server.host.rsplit(':').next().expect("a port");
    // The loopback has more addresses than the one that has a name.
    for address in ["127.0.0.1", "127.0.0.2"] {
        let host = format!("{address}:{port}");
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(first_line(&answer_to(&host, &request)), "HTTP/1.1 200 OK", "{host}");
    }
    let host = format!("127.0.0.2:{port}");
    let foreign = format!("GET / HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n");
    let answer = answer_to(&host, &foreign);
    assert_eq!(first_line(&answer), "HTTP/1.1 403 Forbidden");
    assert!(answer.ends_with(&format!("http://{host}/")), "{answer}");
}

#[test]
fn a_request_with_two_hosts_is_refused() {
    let server = Server::start(&folder(), "--listen 127.0.0.1:0");
    let two = format!("GET / HTTP/1.1\r\nHost: evil.example\r\nHost: {}\r\n\r\n", server.host);
    assert_eq!(first_line(&answer_to(&server.host, &two)), "HTTP/1.1 400 Bad Request");
}

#[test]
fn the_index_lets_a_browser_run_nothing() {
    let server = Server::start(&folder(), "--listen 127.0.0.1:0");
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                  style-src 'sha256-";
    assert!(server.index().contains(policy));
}

/// It was waited for, with the thread that had been asked.
#[test]
#[cfg(unix)]
fn a_pipe_in_place_of_a_run_is_no_run() {
    let folder = folder();
    std::fs::create_dir(folder.path("runs/pipe")).expect("a new folder");
    let pipe = folder.path("runs/pipe/run.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let server = Server::start(&folder, "--listen 127.0.0.1:0");
    let index = server.index();
    assert!(index.contains("/run/one") && !index.contains("/run/pipe"), "{index}");
    assert_eq!(first_line(&server.get("/run/pipe", &server.host)), "HTTP/1.1 404 Not Found");
}

/// 516 MB were taken of 200.
#[test]
#[cfg(target_os = "linux")]
fn runs_of_any_size_are_listed_within_the_limit_of_memory() {
    let folder = folder();
    for (name, start) in [("zeros", ""), ("spaces", "{"), ("list", "[0")] {
        std::fs::create_dir(folder.path(&format!("runs/{name}"))).expect("a new folder");
        let path = folder.path(&format!("runs/{name}/run.json"));
        let text = match name {
            "list" => "[0".to_owned() + &",0".repeat(20 << 20),
            _ => start.to_owned(),
        };
        std::fs::write(&path, text).expect("a file");
        if name != "list" {
            let file = std::fs::File::options().write(true).open(&path).expect("the file");
            file.set_len(3 << 30).expect("a sparse file");
        }
    }
    let server = Server::start(&folder, "--listen 127.0.0.1:0 --memory 100M");
    let index = server.index();
    assert!(index.contains("it needs more memory than allowed"), "{index}");
    assert_eq!(index.matches("not readable").count(), 3, "{index}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id()));
    let status = status.expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    let kibibytes: usize = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kibibytes < 160 << 10, "{kibibytes} KiB");
}

/// 11 MB of them took 860 MB of an allowed 300, and 20 seconds.
#[test]
#[cfg(unix)]
fn a_bundle_of_empty_files_is_refused_at_once() {
    let folder = Folder::with(&[("isolde-bundle.json", "{\"bundle\": 1}")]);
    for number in 0..200 {
        folder.write(&format!("empty-{number:03}"), b"");
    }
    let packed = Command::new("sh")
        .args(["-c", "tar --format=ustar -czf many.tar.gz isolde-bundle.json empty-*"])
        .current_dir(folder.path("."))
        .status();
    assert!(packed.is_ok_and(|status| status.success()));
    let message = "isolde: many.tar.gz: expected a bundle of few files, found many\n";
    let refused = folder.isolde("report many.tar.gz -o -");
    assert_eq!((refused.status, refused.stderr.as_str()), (3, message));
}
