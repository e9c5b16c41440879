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
    case("advise FILE"),
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

/// `bundle` held the file that it packed: 347 MB of 200.
#[test]
fn what_is_packed_need_not_fit_in_memory() {
    let folder = Folder::with(&[]);
    let mut history = crate::support::GOOD.to_owned();
    history.push_str(&"# as long as it likes\n".repeat(2 << 20));
    folder.write("long.txt", history.as_bytes());
    let run = within(&folder, "bundle long.txt -o it.tar.gz", 20);
    assert_eq!(run.status, 0, "{run:?}");
    assert_eq!(folder.isolde("stats it.tar.gz").status, 0);
}

/// Commands with limits that other tests hold to them, and where.
const ELSEWHERE: [(&str, &str); 4] = [
    ("proxy", "tests/proxy/troubles.rs"),
    ("run", "run_troubles.rs, interruption.rs"),
    ("watch", "watch.rs, watch_attacked.rs"),
    ("serve", "serve.rs"),
];
/// Commands that read no history of others: what they do is as large as they are asked for.
const WITHOUT: [&str; 8] =
    ["clean", "completions", "demo", "formats", "gen", "help", "man", "matrix"];

#[test]
fn every_command_with_a_limit_is_in_the_table() {
    let folder = Folder::with(&[]);
    let help = folder.isolde("--help").stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // What is said of a command may go on in the next line, further in.
    let named = listed.filter_map(|line| line.strip_prefix("  ").filter(|it| !it.starts_with(' ')));
    let commands: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"check"), "{help}");
    for command in commands {
        let help = folder.isolde(&format!("{command} --help")).stdout;
        let takes = |limit: &str| help.lines().any(|line| line.trim_start().starts_with(limit));
        let (time, memory) = (takes("--timeout"), takes("--memory"));
        let rows = || CASES.iter().filter(|case| case.command.split(' ').next() == Some(command));
        if WITHOUT.contains(&command) {
            assert!(!time && !memory, "{command}");
        } else if ELSEWHERE.iter().all(|(other, _)| *other != command) {
            assert!(memory && rows().count() > 0, "{command} is not in the table");
            assert!(rows().all(|case| case.takes_timeout == time), "{command}");
        }
    }
}
