//! A private PostgreSQL, and proxies in front of it.

use super::install::{Needed, is_there};
use isolde_harness::Database;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Mutex;

const POSTGRES: Needed =
    Needed { file: "/usr/lib/postgresql/*/bin/postgres", packages: &["postgresql"] };

/// A folder for one test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("isolde-proxy-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a new folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Folder(path)
    }

    pub(crate) fn isolde(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
        command.args(arguments.split_whitespace()).current_dir(&self.0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that ends with its test.
pub(crate) struct Server {
    /// Held to the end, and used by nobody.
    _database: Mutex<Box<dyn Database>>,
    pub(crate) port: u16,
}

impl Server {
    /// Starts one; nothing, and a line that says so, if there is none on this machine.
    pub(crate) fn start() -> Option<Server> {
        if !is_there(&POSTGRES) {
            return None;
        }
        let address = isolde_drivers::address("postgres").expect("a name");
        let database = isolde_drivers::open(&address).expect("a private server");
        let name = database.endpoints()[0].name.clone();
        let port = name.rsplit(':').next().and_then(|port| port.parse().ok()).expect("host:port");
        Some(Server { _database: Mutex::new(database), port })
    }

    /// Runs a script by `psql`; what it printed.
    pub(crate) fn psql(&self, arguments: &[&str]) -> String {
        let mut all = vec!["-X", "-q", "-v", "ON_ERROR_STOP=1"];
        all.extend(arguments);
        let (text, is_fine) = run("psql", self.port, &all, &[]);
        assert!(is_fine, "psql {arguments:?}: {text}");
        text
    }
}

/// Runs one of PostgreSQL's programs as its user, from the root of the tree.
pub(crate) fn run(
    program: &str,
    port: u16,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (String, bool) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.env("PGHOST", "127.0.0.1").env("PGPORT", port.to_string());
    command.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    for (name, value) in environment {
        command.env(name, value);
    }
    let output = command.output().expect("the program is installed with the server");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}

/// A proxy that listens.
pub(crate) struct Proxy {
    child: Child,
    said: BufReader<ChildStderr>,
    pub(crate) port: u16,
}

impl Proxy {
    pub(crate) fn start(folder: &Folder, server: u16, options: &str) -> Proxy {
        let arguments =
            format!("proxy postgres://127.0.0.1:{server} --listen 127.0.0.1:0 {options}");
        Proxy::of(folder.isolde(&arguments))
    }

    /// The same by a script for a shell.
    pub(crate) fn start_by(folder: &Folder, script: &str) -> Proxy {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(&folder.0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Proxy::of(command)
    }

    fn of(mut command: Command) -> Proxy {
        let mut child = command.spawn().expect("the program runs");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it says where it listens");
        let port = line.split("127.0.0.1:").nth(1).and_then(|it| it.split(',').next());
        let port = port.and_then(|port| port.parse().ok());
        Proxy { child, said, port: port.unwrap_or_else(|| panic!("no port in {line}")) }
    }

    /// Ends it as Ctrl-C does; its exit status, what it printed, and what it said beside.
    pub(crate) fn end(mut self) -> (i32, String, String) {
        let id = self.child.id().to_string();
        let ended = Command::new("kill").args(["-INT", &id]).status().expect("kill is there");
        assert!(ended.success());
        let (mut text, mut said) = (String::new(), String::new());
        let mut out = self.child.stdout.take().expect("it is piped");
        out.read_to_string(&mut text).expect("text");
        self.said.read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code().unwrap_or(-1), text, said)
    }

    /// Ends it as the system does that has no memory left.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }
}

/// Exit status and output of a command.
pub(crate) fn output(mut command: Command) -> (i32, String) {
    let output = command.output().expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}
