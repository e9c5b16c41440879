//! Encrypted connections to real servers: who is trusted, and who has to say who he is.
//!
//! The certificates are made here, by the program `openssl`: one that vouches for the
//! others, one for the server under the name `localhost`, one for the client, and one that
//! nobody vouches for.

mod install;

use install::Needed;
use isolde_harness::{Address, Database, Failure, conformance};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const OPENSSL: Needed = Needed { file: "/usr/bin/openssl", packages: &["openssl"] };
const POSTGRES: Needed =
    Needed { file: "/usr/lib/postgresql/*/bin/postgres", packages: &["postgresql"] };
const REDIS: Needed = Needed { file: "/usr/bin/redis-server", packages: &["redis-server"] };
const ETCD: Needed = Needed { file: "/usr/bin/etcd", packages: &["etcd-server"] };

#[cfg(feature = "mysql")]
const MARIADB: Needed = Needed { file: "/usr/sbin/mariadbd", packages: &["mariadb-server"] };

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

/// The programs of the newest PostgreSQL.
fn postgres_programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("it is installed").flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.filter(|folder| folder.join("postgres").exists()).max().expect("it is installed")
}

/// A command that does not run as root, which PostgreSQL refuses; all in the folder is its own.
fn as_postgres(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if is_root {
        let accounts = std::fs::read_to_string("/etc/passwd").expect("accounts");
        let line = accounts.lines().find(|line| line.starts_with("postgres:"));
        let mut fields = line.expect("its package makes an account").split(':').skip(2);
        let mut number = || fields.next().expect("a field").parse::<u32>().expect("a number");
        let (user, group) = (number(), number());
        let files = std::fs::read_dir(folder).expect("a folder of ours").flatten();
        for path in files.map(|file| file.path()).chain([folder.to_owned()]) {
            chown(path, Some(user), Some(group)).expect("root may");
        }
        command.uid(user).gid(group);
    }
    command
}

#[test]
#[cfg(feature = "postgres")]
fn postgres_is_driven_over_tls() {
    if !install::is_there(&OPENSSL) || !install::is_there(&POSTGRES) {
        return;
    }
    let certificates = Certificates::new("postgres");
    let (folder, programs) = (&certificates.0, postgres_programs());
    let mut create = as_postgres(&programs.join("initdb"), folder);
    create.args(["-D", "data", "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C"]);
    assert!(create.output().expect("initdb is there").status.success());
    // Who is encrypted and has a certificate comes in, nobody else does.
    std::fs::write(
        folder.join("data/pg_hba.conf"),
        "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n",
    )
    .expect("a folder of ours");
    let port = free_port();
    let mut serve = as_postgres(&programs.join("postgres"), folder);
    serve.args(["-D", "data", "-p", &port.to_string()]);
    for (name, value) in [
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("dynamic_shared_memory_type", "mmap"),
        ("ssl", "on"),
        ("ssl_cert_file", "../server.crt"),
        ("ssl_key_file", "../server.key"),
        ("ssl_ca_file", "../ca.crt"),
    ] {
        serve.args(["-c", &format!("{name}={value}")]);
    }
    let _server = Running::start(&mut serve, folder);
    let options = certificates.options();
    let full = format!("postgres://postgres@{HOST}:{port}/postgres{options}&sslmode=verify-full");
    wait_for(&full);
    conformance::conform("pg", &|| open(&full).expect("the server runs"));
    let refused = |address: &str| conformance::refuses(open(address), "");
    let hint = "(sslmode verify-ca and verify-full trust the certificates in sslrootcert)";
    // The certificate has another name for the same server.
    let number = full.replace(HOST, "127.0.0.1");
    let message = refused(&number);
    assert!(message.contains("invalid peer certificate") && message.ends_with(hint), "{message}");
    drop(open(&number.replace("verify-full", "verify-ca")).expect("the name does not matter"));
    drop(open(&number.replace("verify-full", "require")).expect("anybody is trusted"));
    let message = refused(&full.replace("ca.crt", "stranger.crt"));
    assert!(message.contains("invalid peer certificate: "), "{message}");
    assert!(message.ends_with(hint), "{message}");
    let message = refused(&full.replace("verify-full", "disable"));
    assert!(message.contains("no pg_hba.conf entry"), "{message}");
    let message = refused(&full.replace(&format!("&{}", certificates.identity()), ""));
    assert!(message.contains("ertificate"), "{message}");
}

/// Runs SQL in a server that listens nowhere, as the one who starts it may.
#[cfg(feature = "mysql")]
fn bootstrap(folder: &Path, sql: &str) {
    let mut command = Command::new("/usr/sbin/mariadbd");
    command.args(["--no-defaults", "--user=root", "--bootstrap"]);
    command.arg(format!("--datadir={}", folder.join("data").display()));
    let quiet = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = quiet.current_dir(folder).spawn().expect("the server is installed");
    let mut input = child.stdin.take().expect("it is a pipe");
    std::io::Write::write_all(&mut input, sql.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[cfg(feature = "mysql")]
fn mariadb_is_driven_over_tls() {
    if !install::is_there(&OPENSSL) || !install::is_there(&MARIADB) {
        return;
    }
    let certificates = Certificates::new("mariadb");
    let folder = &certificates.0;
    let mut create = Command::new("/usr/bin/mariadb-install-db");
    let data = format!("--datadir={}", certificates.path("data"));
    create.args(["--no-defaults", "--user=root", &data]);
    create.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    let created = create.current_dir(folder).output().expect("it is installed");
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    // Who is encrypted and has a certificate comes in, nobody else does.
    bootstrap(
        folder,
        "FLUSH PRIVILEGES;\nCREATE DATABASE test;\n\
         GRANT ALL ON *.* TO eve@'%' IDENTIFIED BY 'hunter2' REQUIRE X509;\n",
    );
    let port = free_port();
    let mut serve = Command::new("/usr/sbin/mariadbd");
    serve.args(["--no-defaults", "--user=root", &data, "--bind-address=127.0.0.1"]);
    serve.args([&format!("--port={port}"), "--socket=server.sock", "--skip-name-resolve"]);
    for (name, file) in [("cert", "server.crt"), ("key", "server.key"), ("ca", "ca.crt")] {
        serve.arg(format!("--ssl-{name}={}", certificates.path(file)));
    }
    let _server = Running::start(&mut serve, folder);
    let root = format!("ssl-ca={}", certificates.path("ca.crt"));
    let own = format!(
        "&ssl-cert={}&ssl-key={}",
        certificates.path("client.crt"),
        certificates.path("client.key")
    );
    let full =
        format!("mariadb://eve:hunter2@{HOST}:{port}/test?ssl-mode=verify-identity&{root}{own}");
    wait_for(&full);
    conformance::conform("tls", &|| open(&full).expect("the server runs"));
    let refused = |address: &str| conformance::refuses(open(address), "hunter2");
    // The certificate has another name for the same server.
    let number = full.replace(HOST, "127.0.0.1");
    let message = refused(&number);
    assert!(message.contains("invalid peer certificate"), "{message}");
    drop(open(&number.replace("verify-identity", "verify-ca")).expect("the name does not matter"));
    drop(open(&number.replace("verify-identity", "required")).expect("anybody is trusted"));
    let message = refused(&full.replace("ca.crt", "stranger.crt"));
    assert!(message.contains("invalid peer certificate"), "{message}");
    let message = refused(&full.replace(&own, ""));
    assert!(message.contains("Access denied"), "{message}");
    let plain = format!("mariadb://eve:hunter2@{HOST}:{port}/test");
    let message = refused(&plain);
    assert!(message.contains("Access denied"), "{message}");
    let message = refused(&format!("{plain}?{root}"));
    assert!(message.starts_with("expected ssl-mode required, verify-ca or"), "{message}");
    let half = format!("{plain}?ssl-mode=required&ssl-cert={}", certificates.path("client.crt"));
    assert_eq!(refused(&half), "expected ssl-cert and ssl-key together, found one of them");
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
