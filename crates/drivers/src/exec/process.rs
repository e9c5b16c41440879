//! One process and its lines: one goes in, one comes out.

use isolde_harness::Failure;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a program may take to answer. It should give up earlier by itself.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of one answer, at most.
const LINE_MAX: u64 = 1 << 26;

pub(super) struct Process {
    child: Child,
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
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::Refused(format!("cannot start {program}: {error}")))?;
        let input = child.stdin.take().expect("its input is a pipe");
        let output = child.stdout.take().expect("its output is a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(line) = line(&mut output) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Process { child, input, lines })
    }

    /// Sends a message and waits for the answer.
    pub(super) fn ask(&mut self, message: &Value) -> Result<Value, Silence> {
        let mut text = message.to_string();
        text.push('\n');
        let sent = self.input.write_all(text.as_bytes()).and_then(|()| self.input.flush());
        sent.map_err(|error| Silence::Gone(format!("the program ended: {error}")))?;
        let line = self.lines.recv_timeout(ANSWER_LIMIT).map_err(|error| {
            Silence::Gone(match error {
                RecvTimeoutError::Timeout => {
                    format!("the program did not answer in {ANSWER_LIMIT:?}")
                }
                RecvTimeoutError::Disconnected => "the program ended".to_owned(),
            })
        })?;
        serde_json::from_slice(&line).map_err(|_| {
            let found = String::from_utf8_lossy(&line);
            Silence::Wrong(format!("expected a line of JSON from the program, found {found:.80}"))
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

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
