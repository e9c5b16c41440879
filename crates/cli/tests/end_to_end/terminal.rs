//! What a person sees who waits at a terminal of 80 columns.

use crate::support::Folder;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const COLUMNS: usize = 80;
/// Most levels of it are decided at once, and the rest not in minutes.
const LONG: &str = "gen --preset BlindW-RW --transactions 10000 --isolation causal --sessions 24 \
                    --to binary -o hard.isolde";

/// A program at a terminal.
struct Terminal {
    child: Child,
    shown: JoinHandle<String>,
    begun: Instant,
}

impl Terminal {
    /// Runs a command; nothing if there is no `script` to make a terminal with.
    #[allow(clippy::print_stdout, reason = "a skipped test must be seen")]
    fn with(folder: &Folder, arguments: &str) -> Option<Terminal> {
        if !Path::new("/usr/bin/script").exists() {
            println!("skipped: no script(1)");
            return None;
        }
        let program = env!("CARGO_BIN_EXE_isolde");
        let typed = format!("stty cols {COLUMNS} rows 40; exec {program} {arguments}");
        let mut child = Command::new("/usr/bin/script")
            .args(["-qec", &typed, "/dev/null"])
            .env("TERM", "xterm")
            .current_dir(folder.path("."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script starts");
        let mut output = child.stdout.take().expect("piped");
        let shown = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = output.read_to_end(&mut bytes);
            String::from_utf8(bytes).expect("UTF-8")
        });
        Some(Terminal { child, shown, begun: Instant::now() })
    }

    /// What was shown until the program ended, its status, and how long it took.
    fn end(mut self) -> (String, Option<i32>, Duration) {
        let status = self.child.wait().expect("an end").code();
        (self.shown.join().expect("text"), status, self.begun.elapsed())
    }
}

/// The lines that are left on the screen, as a terminal keeps them.
fn screen(shown: &str) -> Vec<String> {
    let mut lines = vec![Vec::new()];
    let mut column = 0;
    let mut characters = shown.chars().peekable();
    while let Some(character) = characters.next() {
        let line = lines.last_mut().expect("a line");
        match character {
            '\r' => column = 0,
            '\n' => lines.push(Vec::new()),
            '\x1b' => {
                let sequence: String =
                    std::iter::from_fn(|| characters.next_if(|it| !it.is_ascii_alphabetic()))
                        .collect();
                match (characters.next(), sequence.as_str()) {
                    (Some('K'), "[") => line.truncate(column),
                    (Some('m'), _) => {}
                    other => panic!("{other:?}"),
                }
            }
            other => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = other;
                column += 1;
            }
        }
    }
    lines
        .into_iter()
        .map(|line| line.into_iter().collect::<String>().trim_end().to_owned())
        .collect()
}

/// The texts that stood in the line of progress, one after another.
fn progress(shown: &str) -> Vec<&str> {
    let parts = shown.split(['\r', '\n']).map(|part| part.trim_end_matches("\x1b[K"));
    parts.filter(|part| part.contains(" s of ")).collect()
}

/// A folder with a history that takes long to decide.
fn folder() -> Folder {
    let folder = Folder::with(&[]);
    assert_eq!(folder.isolde(LONG).status, 0);
    folder
}

/// Ten minutes went by without a line.
#[test]
fn verdicts_appear_as_they_are_decided_above_one_line_of_progress() {
    let folder = folder();
    let Some(terminal) = Terminal::with(&folder, "check hard.isolde --timeout 12s") else {
        return;
    };
    let (shown, status, took) = terminal.end();
    assert!(took < Duration::from_secs(32), "{took:?}");
    assert_eq!(status, Some(2), "{shown}");
    let lines = progress(&shown);
    assert!(lines.len() > 2, "{shown}");
    for line in &lines {
        assert!(line.chars().count() < COLUMNS, "{line}");
        assert!(line.contains(" s of 12s: "), "{line}");
    }
    assert!(lines.iter().any(|line| line.ends_with(" decided")), "{lines:?}");
    let screen = screen(&shown);
    assert!(progress(&screen.join("\n")).is_empty(), "{screen:?}");
    let first = screen.iter().position(|line| line.contains(": satisfied, after "));
    let report = screen.iter().position(|line| line.contains("transactions ("));
    assert!(first.zip(report).is_some_and(|(first, report)| first < report), "{screen:?}");
    assert!(screen.iter().any(|line| line.contains("(the time limit was reached")), "{screen:?}");
}

/// What a command shows at a terminal that is told to end by Ctrl-C after some seconds.
fn interrupted(folder: &Folder, arguments: &str, after: Duration) -> Option<(String, Option<i32>)> {
    let mut terminal = Terminal::with(folder, arguments)?;
    std::thread::sleep(after);
    let pipe = terminal.child.stdin.as_mut().expect("piped");
    pipe.write_all(b"\x03").and_then(|()| pipe.flush()).expect("it runs");
    let (shown, status, took) = terminal.end();
    assert!(took < Duration::from_secs(36), "{arguments}: {took:?}");
    let screen = screen(&shown).join("\n");
    assert!(progress(&screen).is_empty(), "{screen}");
    Some((screen, status))
}

/// Ctrl-C ended it without a word.
#[test]
fn an_interrupt_tells_what_is_known() {
    const AFTER: Duration = Duration::from_secs(6);
    let folder = folder();
    let Some((shown, status)) = interrupted(&folder, "check hard.isolde --timeout 10m", AFTER)
    else {
        return;
    };
    assert_eq!(status, Some(2), "{shown}");
    assert!(shown.contains("(interrupted") && shown.contains("satisfied"), "{shown}");
    let explained = interrupted(
        &folder,
        "explain hard.isolde --timeout 10m --level parallel-snapshot-isolation",
        AFTER,
    );
    let (shown, status) = explained.expect("a terminal");
    assert_eq!(status, Some(2), "{shown}");
    assert!(shown.contains("interrupted"), "{shown}");
}
