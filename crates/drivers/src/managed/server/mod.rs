//! Servers of our own: a folder, programs that run in it, and their certain end.
//!
//! A [`Home`] is a new folder under the one for temporary files. Programs run in it by
//! [`Home::run`], servers by [`Home::start`]. Everything is over when the home is dropped,
//! and also if this process ends in any other way: a shell waits at the other end of a
//! pipe that only this process holds open, and once it is closed ends what still runs and
//! removes the folder. That needs no handler of signals, and works after SIGKILL.
//!
//! Servers listen on loopback only. Some refuse to run as root, so root runs them as
//! another user, who owns the folder.

use super::proxy::Proxy;
use crate::{PASSWORD_VARIABLE, Stop};
use isolde_harness::Failure;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a server may take to end by itself.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The same, if somebody waits for the end of everything.
const HURRIED_LIMIT: Duration = Duration::from_millis(200);

/// How long a server may wait for its clients before it is told not to.
const CLIENTS_LIMIT: Duration = Duration::from_millis(300);

/// How long is slept between two looks at something that will happen soon.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits for the end of this process, then cleans up. A server is first asked to end,
/// because a killed one may leave shared memory behind.
const WATCHER: &str = r#"
trap '' HUP INT TERM QUIT
while read -r line; do :; done
asked=
for group in "$1"/*.group; do
    [ -e "$group" ] || continue
    read -r leader <"$group"
    kill -s CONT -- "-$leader" 2>/dev/null
    kill -s QUIT "$leader" 2>/dev/null && asked=1
done
[ -n "$asked" ] && sleep 1
for group in "$1"/*.group; do
    [ -e "$group" ] || continue
    read -r leader <"$group"
    kill -s KILL -- "-$leader" 2>/dev/null
done
for attempt in 1 2 3 4 5; do
    rm -rf -- "$1" 2>/dev/null && break
    sleep 0.2
done
"#;

/// A folder for servers, and the user that they run as.
pub(crate) struct Home {
    path: PathBuf,
    account: Option<Account>,
    watcher: Child,
    /// Set once nothing more is waited for.
    stop: Stop,
}

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    user: u32,
    group: u32,
}

impl Home {
    /// A new folder for servers of this name. If we are root, they run as the first of
    /// these users that there is, else as nobody. Once it is to stop, nothing in it is waited
    /// for any more.
    pub(crate) fn new(name: &str, users: &[&str], stop: &Stop) -> Result<Home, Failure> {
        let unique = RandomState::new().hash_one(std::process::id());
        let path = std::env::temp_dir().join(format!("isolde-{name}-{unique:016x}"));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| refused("create the folder", &path, &error))?;
        let watcher = Command::new("/bin/sh")
            .args(["-c", WATCHER, "isolde-watcher"])
            .arg(&path)
            .current_dir("/")
            .env_remove(PASSWORD_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let _ = fs::remove_dir(&path);
                refused("watch over", &path, &error)
            })?;
        let account = rustix::process::geteuid().is_root().then(|| account(users));
        if let Some(Account { user, group }) = account {
            chown(&path, Some(user), Some(group))
                .map_err(|error| refused("give away", &path, &error))?;
        }
        Ok(Home { path, account, watcher, stop: Arc::clone(stop) })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A new file in the folder that the servers can read and write.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        fs::write(&path, content)
            .and_then(|()| self.give(&path))
            .map_err(|error| refused("write", &path, &error))?;
        Ok(path)
    }

    /// A new folder in the folder, which the servers own.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .and_then(|()| self.give(&path))
            .map_err(|error| refused("create the folder", &path, &error))?;
        Ok(path)
    }

    fn give(&self, path: &Path) -> std::io::Result<()> {
        match self.account {
            Some(Account { user, group }) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
    }

    /// Runs a program to its end, which must be a success. Its output is kept in a log of
    /// this name.
    pub(crate) fn run(&self, name: &str, command: Command, limit: Duration) -> Result<(), Failure> {
        let running = self.start(name, command)?;
        let deadline = Instant::now() + limit;
        loop {
            match running.process().child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(running.failed(&format!("ended with {status}"))),
                Ok(None) if running.is_hurried() => return Err(running.interrupted()),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Ok(None) => return Err(running.failed(&format!("took longer than {limit:?}"))),
                Err(error) => return Err(running.failed(&error.to_string())),
            }
        }
    }

    /// Starts a server, whose output goes to a log of this name.
    pub(crate) fn start(&self, name: &str, mut command: Command) -> Result<Server, Failure> {
        self.settle(&mut command);
        let server = Server {
            name: name.to_owned(),
            log: self.path.join(format!("{name}.log")),
            group_file: self.path.join(format!("{name}.group")),
            process: Mutex::new(Process { child: self.spawn(name, &mut command)?, command }),
            proxy: None,
            stop: Arc::clone(&self.stop),
        };
        server.note_group()?;
        Ok(server)
    }

    /// Makes a server start by another command, if it is started again.
    pub(crate) fn start_later(&self, server: &Server, mut command: Command) {
        self.settle(&mut command);
        server.process().command = command;
    }

    /// Where and as whom a server runs.
    fn settle(&self, command: &mut Command) {
        command
            .current_dir(&self.path)
            .env("HOME", &self.path)
            .env("TMPDIR", &self.path)
            // It is of another server, and would show in what a user may read of this one.
            .env_remove(PASSWORD_VARIABLE)
            .stdin(Stdio::null())
            .process_group(0);
        if let Some(Account { user, group }) = self.account {
            command.gid(group).uid(user);
        }
    }

    fn spawn(&self, name: &str, command: &mut Command) -> Result<Child, Failure> {
        let log = self.path.join(format!("{name}.log"));
        spawn(command, &log).map_err(|error| {
            let program = command.get_program().to_string_lossy();
            Failure::Refused(format!("cannot start {program}: {error}"))
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

fn refused(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Refused(format!("cannot {what} {}: {error}", path.display()))
}

fn spawn(command: &mut Command, log: &Path) -> std::io::Result<Child> {
    let output = File::options().create(true).append(true).open(log)?;
    command.stdout(output.try_clone()?).stderr(output).spawn()
}

/// A server that runs in a [`Home`]. Dropped, it ends.
pub(crate) struct Server {
    name: String,
    /// Behind a lock, because faults come while clients are served.
    process: Mutex<Process>,
    log: PathBuf,
    /// Tells the watcher whom to end.
    group_file: PathBuf,
    /// What its clients connect through, if connections are to be cut.
    proxy: Option<Proxy>,
    /// Set once it is not waited for.
    stop: Stop,
}

struct Process {
    child: Child,
    /// How it was started, to start it again.
    command: Command,
}

impl Server {
    /// Waits until the probe gives something. A server that ends before, or takes longer,
    /// is a refusal with what its log says; so is one that is no longer waited for.
    pub(crate) fn wait_until<T>(
        &mut self,
        limit: Duration,
        mut probe: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + limit;
        loop {
            if let Ok(Some(status)) = self.process().child.try_wait() {
                return Err(self.failed(&format!("ended with {status}")));
            }
            if self.is_hurried() {
                return Err(self.interrupted());
            }
            match probe() {
                Ok(found) => return Ok(found),
                Err(_) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(failure) => {
                    return Err(self.failed(&format!("does not answer: {}", failure.reason())));
                }
            }
        }
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
        let _ = self.process().child.wait();
        let _ = fs::remove_file(&self.group_file);
    }

    /// Starts it again after its end.
    pub(crate) fn start_again(&self) -> Result<(), Failure> {
        self.stop();
        let mut process = self.process();
        process.child = spawn(&mut process.command, &self.log)
            .map_err(|error| self.failed(&format!("cannot be started again: {error}")))?;
        drop(process);
        self.note_group()
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.process().child.try_wait(), Ok(None))
    }

    /// Holds all its processes until [`Server::resume`].
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it: asked, and if that takes long, forced.
    pub(crate) fn stop(&self) {
        self.resume();
        let limit = if self.is_hurried() { HURRIED_LIMIT } else { STOP_LIMIT };
        self.ask_to_end(&[(Signal::QUIT, limit)]);
        self.kill();
    }

    /// Ends it as its users do, in good order.
    pub(crate) fn shut_down(&self) {
        // The first makes some servers wait for their clients, and the second does not;
        // others know the first alone.
        self.ask_to_end(&[(Signal::TERM, CLIENTS_LIMIT), (Signal::INT, STOP_LIMIT)]);
        self.kill();
    }

    /// Sends signals until it ends, and waits so long after each.
    fn ask_to_end(&self, signals: &[(Signal, Duration)]) {
        for &(signal, limit) in signals {
            if !self.is_running() {
                return;
            }
            let _ = kill_process(self.leader(), signal);
            let deadline = Instant::now() + limit;
            while self.is_running() && Instant::now() < deadline {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Where clients shall connect to instead of this address, so that they can be cut off.
    pub(crate) fn proxied(&mut self, address: SocketAddr) -> Result<SocketAddr, Failure> {
        let proxy = Proxy::to(address)
            .map_err(|error| self.failed(&format!("cannot be given a proxy: {error}")))?;
        Ok(self.proxy.insert(proxy).address())
    }

    /// What its clients connect through.
    pub(crate) fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().expect("nobody panics while holding it")
    }

    /// Sends the signal to the process, its group, and all their children: some servers
    /// put a child into a session of its own.
    fn signal(&self, signal: Signal) {
        // The number of a process that has ended may belong to another.
        if !self.is_running() {
            return;
        }
        let family = descendants(self.leader());
        let _ = kill_process_group(self.leader(), signal);
        for process in family {
            let _ = kill_process(process, signal);
        }
    }

    fn is_hurried(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn interrupted(&self) -> Failure {
        Failure::Refused(format!("{} was interrupted", self.name))
    }

    fn leader(&self) -> Pid {
        Pid::from_child(&self.process().child)
    }

    fn note_group(&self) -> Result<(), Failure> {
        let leader = self.process().child.id();
        fs::write(&self.group_file, format!("{leader}\n"))
            .map_err(|error| self.failed(&format!("cannot be watched over: {error}")))
    }

    fn failed(&self, what: &str) -> Failure {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let mut lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        // Some programs end with a page of advice.
        let is_error = |line: &&str| ["ERROR", "FATAL"].iter().any(|word| line.contains(word));
        if lines.iter().any(is_error) {
            lines.retain(is_error);
        }
        let end = lines[lines.len().saturating_sub(5)..].join("\n  ");
        let separator = if end.is_empty() { "" } else { "; its log says:\n  " };
        Failure::Refused(format!("{} {what}{separator}{end}", self.name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The children of a process, their children, and so on.
fn descendants(ancestor: Pid) -> Vec<Pid> {
    let mut parents: Vec<(Pid, Pid)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // `number (name) state parent …`, and the name may have any character.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if let (Some(process), Some(parent)) = (
            Pid::from_raw(process),
            parent.and_then(|parent| parent.parse().ok()).and_then(Pid::from_raw),
        ) {
            parents.push((process, parent));
        }
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(parent) = open.pop() {
        let children = parents.iter().filter(|pair| pair.1 == parent).map(|pair| pair.0);
        let children: Vec<Pid> = children.collect();
        found.extend(&children);
        open.extend(children);
    }
    found
}

/// As many ports of the loopback interface that nobody uses now. They lie below those that
/// the system gives to clients, so that none of them is taken before its server starts.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    const FIRST: u64 = 20_000;
    const COUNT: u64 = 12_000;
    let mut held = Vec::new();
    let mut next = RandomState::new().hash_one(std::process::id()) % COUNT;
    for _ in 0..COUNT {
        if held.len() == count {
            break;
        }
        let port = u16::try_from(FIRST + next).expect("a port below 32,000");
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push((port, listener));
        }
        next = (next + 1) % COUNT;
    }
    if held.len() < count {
        return Err(Failure::Refused(format!("expected {count} free ports on loopback")));
    }
    Ok(held.into_iter().map(|(port, _)| port).collect())
}

/// Where a program is installed: in the search path or in one of these folders, whose last
/// but one part may be `*` for the highest version number. The package is named if not.
pub(crate) fn program(name: &str, folders: &[&str], package: &str) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for folder in folders {
        let Some((versions, rest)) = folder.split_once("/*/") else {
            places.push(PathBuf::from(folder));
            continue;
        };
        let number = |path: &PathBuf| -> u32 {
            path.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0)
        };
        let entries = fs::read_dir(versions).into_iter().flatten().flatten();
        let mut versions: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
        places.extend(versions.into_iter().map(|version| version.join(rest)));
    }
    let found = places.into_iter().map(|place| place.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| {
        Failure::Refused(format!(
            "no server: expected the program {name}, which Debian's package {package} has"
        ))
    })
}

fn account(users: &[&str]) -> Account {
    let passwords = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |user: &&str| {
        passwords.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_wanted = fields.next() == Some(*user);
            let user = fields.nth(1)?.parse().ok()?;
            let group = fields.next()?.parse().ok()?;
            is_wanted.then_some(Account { user, group })
        })
    };
    users.iter().find_map(find).unwrap_or(Account { user: 65534, group: 65534 })
}

#[cfg(test)]
mod tests;
