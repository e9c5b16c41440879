//! Encrypted connections to real servers: who is trusted, and who has to say who he is.
//!
//! The certificates are made here, by the program `openssl`: one that vouches for the
//! others, one for the server under the name `localhost`, one for the client, and one that
//! nobody vouches for.

mod install;

use install::Needed;
use isolde_harness::{Address, Database, Failure, conformance};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const OPENSSL: Needed = Needed { file: "/usr/bin/openssl", packages: &["openssl"] };
const REDIS: Needed = Needed { file: "/usr/bin/redis-server", packages: &["redis-server"] };
const ETCD: Needed = Needed { file: "/usr/bin/etcd", packages: &["etcd-server"] };

/// The name in the server's certificate.
const HOST: &str = "localhost";

fn open(address: &str) -> Result<Box<dyn Database>, Failure> {
    isolde_drivers::open(&Address::parse(address).expect("an address"))
}

/// A folder with certificates, gone in the end.
struct Certificates(PathBuf);

impl Certificates {
    fn new(name: &str) -> Certificates {
        let name = format!("isolde-tls-{name}-{}", std::process::id());
        let certificates = Certificates(std::env::temp_dir().join(name));
        std::fs::create_dir(&certificates.0).expect("a new folder");
        certificates.vouching("ca");
        certificates.vouching("stranger");
        certificates.vouched("server", &format!("subjectAltName=DNS:{HOST}"));
        certificates.vouched("client", "subjectAltName=DNS:client");
        certificates
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().expect("a path of ours").to_owned()
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(&self.0)
            .output()
            .expect("openssl is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A certificate that vouches for itself, and may for others.
    fn vouching(&self, name: &str) {
        self.openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={name} \
             -keyout {name}.key -out {name}.crt"
        ));
    }

    /// One that `ca` vouches for.
    fn vouched(&self, name: &str, extension: &str) {
        std::fs::write(self.path("extension"), extension).expect("a folder of ours");
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout \
             {name}.key -out {name}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -days 2 -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile \
             extension -out {name}.crt"
        ));
    }

    /// Options that make a client trust `ca`, and say who it is.
    fn options(&self) -> String {
        format!("?sslrootcert={}&{}", self.path("ca.crt"), self.identity())
    }

    fn identity(&self) -> String {
        format!("sslcert={}&sslkey={}", self.path("client.crt"), self.path("client.key"))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command, folder: &Path) -> Running {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(quiet.current_dir(folder).spawn().expect("the server is installed"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn wait_for(address: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while let Err(failure) = open(address) {
        assert!(Instant::now() < deadline, "{failure}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What holds for any server at this port that has the certificate of the folder and asks
/// its clients for theirs.
fn trusts_whom_it_should(scheme: &str, port: u16, certificates: &Certificates) {
    let full = format!("{scheme}://{HOST}:{port}{}", certificates.options());
    wait_for(&full);
    conformance::conform(scheme, &|| open(&full).expect("the server runs"));
    let refused = |address: &str| conformance::refuses(open(address), "");
    // The certificate has another name for the same server.
    let number = full.replace(HOST, "127.0.0.1");
    let message = refused(&number);
    let expected = format!("127.0.0.1:{port} cannot be trusted: invalid peer certificate: ");
    assert!(message.starts_with(&expected), "{message}");
    drop(open(&(number + "&sslmode=verify-ca")).expect("the name does not matter"));
    // Whoever the server is.
    let root = format!("sslrootcert={}", certificates.path("ca.crt"));
    drop(open(&full.replace(&root, "sslmode=require")).expect("anybody is trusted"));
    let message = refused(&full.replace("ca.crt", "stranger.crt"));
    assert!(message.contains("cannot be trusted: invalid peer certificate"), "{message}");
    // Without a certificate, the server does not trust the client.
    let message = refused(&full.replace(&certificates.identity(), "sslmode=verify-full"));
    assert!(message.contains("ertificate"), "{message}");
}

#[test]
fn redis_is_driven_over_tls() {
    if !install::is_there(&OPENSSL) || !install::is_there(&REDIS) {
        return;
    }
    let certificates = Certificates::new("redis");
    let port = free_port();
    let mut serve = Command::new("redis-server");
    serve.args(["--bind", "127.0.0.1", "--port", "0", "--save", ""]);
    serve.args(["--tls-port", &port.to_string(), "--tls-auth-clients", "yes"]);
    serve.args(["--tls-cert-file", "server.crt", "--tls-key-file", "server.key"]);
    serve.args(["--tls-ca-cert-file", "ca.crt"]);
    let _server = Running::start(&mut serve, &certificates.0);
    trusts_whom_it_should("rediss", port, &certificates);
}

#[test]
fn etcd_is_driven_over_tls() {
    if !install::is_there(&OPENSSL) || !install::is_there(&ETCD) {
        return;
    }
    let certificates = Certificates::new("etcd");
    let port = free_port();
    let mut serve = Command::new("etcd");
    let clients = format!("https://127.0.0.1:{port}");
    let peers = format!("http://127.0.0.1:{}", free_port());
    serve.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    serve.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    serve.args(["--initial-cluster", &format!("default={peers}"), "--data-dir", "data"]);
    serve.args(["--cert-file", "server.crt", "--key-file", "server.key"]);
    serve.args(["--trusted-ca-file", "ca.crt", "--client-cert-auth"]);
    let _server = Running::start(&mut serve, &certificates.0);
    trusts_whom_it_should("etcds", port, &certificates);
    let same = format!("https://{HOST}:{port}{}", certificates.options());
    drop(open(&same).expect("it is called like that too"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let refused = |address: &str| conformance::refuses(open(address), "");
    assert_eq!(
        refused("redis://h?sslmode=require"),
        "expected sslmode beside an encrypted address, found redis://, which is not"
    );
    assert_eq!(
        refused("rediss://h?sslmode=prefer"),
        "expected sslmode require, verify-ca or verify-full in an address of rediss, found `prefer`"
    );
    assert_eq!(
        refused("etcds://h?sslcert=/no/such/file"),
        "expected sslcert and sslkey together, found one of them"
    );
    let message = refused("etcds://h?sslcert=/no/such/file&sslkey=/no/such/file");
    assert!(message.starts_with("cannot read certificates from sslcert /no/such/file: "));
    assert_eq!(
        refused("rediss://h?password=x"),
        "expected one of the options style, sslmode, sslrootcert, sslcert, sslkey in the address, \
         found `password`"
    );
}
