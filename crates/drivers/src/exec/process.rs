//! One process and its lines: one goes in, one comes out.

use isolde_harness::Failure;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How long a program may take to answer. It should give up earlier by itself.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of one answer, at most.
const LINE_MAX: u64 = 1 << 26;
/// Waits until our end of its input is closed, however we ended, and then ends the
/// program and all that it started.
const WATCHER: &str = r#"read -r _; kill -9 "-$1""#;

pub(super) struct Process {
    command: String,
    group: Arc<Group>,
    input: ChildStdin,
    /// Lines of its output; a thread reads them, so that waiting can end.
    lines: Receiver<Vec<u8>>,
}

/// Why a program gave no answer.
pub(super) enum Silence {
    /// It is gone, or takes too long.
    Gone(String),
    /// What it said is no answer.
    Wrong(String),
}

impl Process {
    /// Starts the program of a command line, which is split at spaces.
    pub(super) fn start(command: &str) -> Result<Process, Failure> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or_else(|| {
            Failure::Refused("expected a program, as in exec:python3 database.py file".to_owned())
        })?;
        // In a group of its own: Ctrl-C is meant for us, who still have to end sessions.
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::Refused(format!("cannot start {program}: {error}")))?;
        let input = child.stdin.take().expect("its input is a pipe");
        let output = child.stdout.take().expect("its output is a pipe");
        let (sender, lines) = channel();
        let group = Arc::new(Group::new(child)?);
        let read = move || {
            let mut output = BufReader::new(output);
            while let Some(line) = line(&mut output) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .spawn(read)
            .map_err(|error| Failure::Refused(format!("cannot listen to {program}: {error}")))?;
        Ok(Process { command: command.to_owned(), group, input, lines })
    }

    /// What is needed to end it from elsewhere while it is asked.
    pub(super) fn group(&self) -> Weak<Group> {
        Arc::downgrade(&self.group)
    }

    /// Sends a message and waits for the answer.
    pub(super) fn ask(&mut self, message: &Value) -> Result<Value, Silence> {
        let mut text = message.to_string();
        text.push('\n');
        // What it said before it ended tells more than that it takes no messages.
        let _ = self.input.write_all(text.as_bytes()).and_then(|()| self.input.flush());
        let line = self.lines.recv_timeout(ANSWER_LIMIT).map_err(|error| {
            let command = &self.command;
            let happened = match error {
                RecvTimeoutError::Timeout => format!("did not answer in {ANSWER_LIMIT:?}"),
                RecvTimeoutError::Disconnected => match self.group.status() {
                    Some(status) => format!("ended ({status})"),
                    None => "closed its output".to_owned(),
                },
            };
            Silence::Gone(format!("the program `{command}` {happened}"))
        })?;
        serde_json::from_slice(&line).map_err(|_| {
            let found: String = String::from_utf8_lossy(&line).chars().take(80).collect();
            let found = found.escape_debug();
            Silence::Wrong(format!("expected a line of JSON from the program, found {found}"))
        })
    }
}

fn line(output: &mut BufReader<ChildStdout>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    output.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).ok()?;
    line.ends_with(b"\n").then(|| {
        line.pop();
        line
    })
}

/// A program and what it started, which end together with us.
pub(super) struct Group {
    child: Mutex<Child>,
    watcher: Mutex<Child>,
}

impl Group {
    fn new(mut child: Child) -> Result<Group, Failure> {
        let watcher = Command::new("/bin/sh")
            .args(["-c", WATCHER, "isolde-watcher", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match watcher {
            Ok(watcher) => Ok(Group { child: Mutex::new(child), watcher: Mutex::new(watcher) }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Failure::Refused(format!("cannot watch over the program: {error}")))
            }
        }
    }

    /// How the program ended. Its output is closed a moment before that, or it lives on.
    fn status(&self) -> Option<ExitStatus> {
        const MOMENT: Duration = Duration::from_secs(3);
        let deadline = Instant::now() + MOMENT;
        loop {
            let ended = self.child.lock().expect("nobody panics while ending it").try_wait();
            match ended {
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                ended => return ended.ok().flatten(),
            }
        }
    }

    /// Ends all of it at once; who waits for an answer learns that there will be none.
    pub(super) fn end(&self) {
        let mut child = self.child.lock().expect("nobody panics while ending it");
        let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        // Not yet waited for, so the number still means this group.
        if let (Some(group), Ok(None)) = (group, child.try_wait()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
        let watcher = self.watcher.get_mut().expect("nobody panics while ending it");
        let _ = watcher.kill();
        let _ = watcher.wait();
    }
}
