//! Runs the program in a folder of its own.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Two transactions, one of which reads from the other.
pub(crate) const GOOD: &str = "A: w(x,1)\nB: r(x,1)\n";
/// A reader that saw one of two writes.
pub(crate) const FRACTURED: &str = "A: w(x,1) w(y,1)\nB: r(x,1) r(y,nil)\n";

/// What a run of the program left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A folder that is gone when the test ends.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A folder with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("end-to-end-{}-{number}", std::process::id());
        let folder = Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        std::fs::create_dir_all(&folder.0).expect("a writable folder");
        for (name, content) in files {
            folder.write(name, content.as_bytes());
        }
        folder
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path(name), content).expect("a writable folder");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file that was written")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs `isolde` with arguments that contain no spaces.
    pub(crate) fn isolde(&self, arguments: &str) -> Run {
        self.isolde_reading("", arguments)
    }

    /// The same, with this on standard input.
    pub(crate) fn isolde_reading(&self, stdin: &str, arguments: &str) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut pipe = child.stdin.take().expect("piped");
        // A program that does not read its input may have ended already.
        let _ = pipe.write_all(stdin.as_bytes());
        drop(pipe);
        let output = child.wait_with_output().expect("the program ends");
        Run {
            status: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
        command.current_dir(&self.0).args(arguments.split_whitespace());
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file with one line for each number.
pub(crate) fn lines(numbers: Range<u32>, line: impl Fn(u32) -> String) -> String {
    let mut lines: Vec<String> = numbers.map(line).collect();
    lines.push(String::new());
    lines.join("\n")
}

/// A run with nothing on standard error.
pub(crate) fn printed(status: i32, stdout: &str) -> Run {
    Run { status, stdout: stdout.into(), stderr: String::new() }
}

/// A run with nothing on standard output: bad usage or input.
pub(crate) fn refused(stderr: &str) -> Run {
    Run { status: 3, stdout: String::new(), stderr: stderr.into() }
}
