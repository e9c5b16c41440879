//! Every command keeps to every limit, whatever it is at.

use crate::memory::{HARD, within};
use crate::support::Folder;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A history whose violation is found at once, and explained for ever.
const ENDLESS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../corpus/recordings/knossos-registers/history.edn.gz"
);

/// How long after its time a command may end: the machine may have more to do.
const SLACK: Duration = Duration::from_secs(15);

/// A command that reads a history, and what it is asked for.
struct Case {
    /// With `FILE` in place of the history.
    command: &'static str,
    takes_timeout: bool,
    /// Its exit status and words where it gives up reading.
    given_up: (i32, &'static str),
}

const fn case(command: &'static str) -> Case {
    let given_up = (2, "isolde: standard input: the time limit was reached\n");
    Case { command, takes_timeout: true, given_up }
}

const CASES: &[Case] = &[
    Case { given_up: (2, ""), ..case("check FILE") },
    Case { given_up: (2, ""), ..case("check FILE -q") },
    case("report FILE -o page.html"),
    case("explain FILE"),
    case("shrink FILE"),
    case("bundle FILE -o it.tar.gz"),
    case("convert FILE --to text -o other.txt"),
    case("lint FILE"),
    case("stats FILE"),
    case("verify good.cert FILE"),
    Case {
        given_up: (2, "isolde: -: the time limit was reached\n"),
        ..case("elle -m rw-register FILE")
    },
    Case {
        takes_timeout: false,
        ..case("recover postgres://nobody@127.0.0.1:1/none FILE -o other.txt")
    },
];

impl Case {
    fn on(&self, file: &str) -> String {
        self.command.replace("FILE", file)
    }
}

/// A command on a pipe that nobody writes to: its status, what it says, and how long it took.
fn on_a_silent_pipe(folder: &Folder, arguments: &str) -> (Option<i32>, String, Duration) {
    let begun = Instant::now();
    let mut child = folder
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let held = child.stdin.take();
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
    let status = child.wait().expect("an end").code();
    drop(held);
    (status, said, begun.elapsed())
}

/// `report` and `bundle` waited for ever, `convert` and `verify` took no limit.
#[test]
fn every_command_ends_in_time_while_it_reads() {
    let folder = Folder::with(&[("good.txt", crate::support::GOOD)]);
    assert_eq!(folder.isolde("check good.txt --certificate good.cert").status, 0);
    for case in CASES.iter().filter(|case| case.takes_timeout) {
        let arguments = format!("{} --timeout 200ms", case.on("-"));
        let (status, said, took) = on_a_silent_pipe(&folder, &arguments);
        assert_eq!((status, &*said), (Some(case.given_up.0), case.given_up.1), "{arguments}");
        assert!(took < SLACK, "{arguments}: {took:?}");
    }
    for written in ["page.html", "it.tar.gz", "other.txt", "other.txt.partial"] {
        assert!(!folder.path(written).exists(), "{written}");
    }
}

/// `check`, `explain`, `report` and `bundle` went on explaining for minutes.
#[test]
fn what_explains_a_violation_keeps_to_the_time() {
    const TIME: Duration = Duration::from_secs(2);
    for (command, status) in [
        ("check FILE", 0),
        ("check FILE --level linearizable", 1),
        ("explain FILE", 0),
        ("explain FILE --level linearizable", 1),
        ("report FILE -o page.html", 0),
        ("shrink FILE -o small.txt", 1),
        ("bundle FILE -o it.tar.gz", 0),
    ] {
        let folder = Folder::with(&[]);
        let begun = Instant::now();
        let run = folder.isolde(&format!("{} --timeout 2s", command.replace("FILE", ENDLESS)));
        let took = begun.elapsed();
        assert!(took < TIME + SLACK, "{command}: {took:?}");
        assert_eq!(run.status, status, "{command}: {run:?}");
        let told = match command.split(' ').next() {
            Some("report") => folder.read("page.html"),
            Some("shrink") => folder.read("small.txt"),
            Some("bundle") => {
                assert!(folder.path("it.tar.gz").exists());
                continue;
            }
            _ => run.stdout,
        };
        assert!(told.contains("linearizable"), "{command}: {told}");
    }
}

/// `report` took 410 MB of 200.
#[test]
fn every_command_keeps_to_the_memory() {
    let folder = Folder::with(&[("good.txt", crate::support::GOOD)]);
    assert_eq!(folder.isolde(HARD).status, 0);
    assert_eq!(folder.isolde("check good.txt --certificate good.cert").status, 0);
    for case in CASES {
        // Too little to read it.
        let arguments = case.on("hard.isolde");
        let run = within(&folder, &arguments, 2);
        assert_eq!(run.status, 3, "{arguments}: {run:?}");
        assert!(run.stderr.contains("expected a history that fits in 2 MiB"), "{run:?}");
        // Enough to read it, and little more.
        if case.takes_timeout {
            let arguments = format!("{arguments} --timeout 10s");
            let run = within(&folder, &arguments, 30);
            assert!(run.status <= 3, "{arguments}: {run:?}");
        }
    }
}
