//! The limit of memory is kept, whatever the program is at, and what it ended says so.

use crate::support::{Folder, GOOD, Run};
use std::fs::read_to_string;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const MEBIBYTE: usize = 1 << 20;
/// Buffers of readers, however small the history.
const BUFFERS: usize = 3 * MEBIBYTE;

/// Blind writes to few keys: small to read, and much to search.
pub(crate) const HARD: &str = "gen --preset BlindW-RW --transactions 40000 --keys 300 --sessions 100 \
                    --operations 8 --to binary -o hard.isolde";

/// A run, and the most memory it had that is no file's.
fn measured(folder: &Folder, arguments: &str) -> (Run, usize) {
    let mut command = folder.command(arguments);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut peak = 0;
    while child.try_wait().expect("a child").is_none() {
        peak = peak.max(anonymous_bytes(&child).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = child.wait().expect("a child").code().expect("no signal");
    let text = |pipe: &mut dyn Read| {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("UTF-8");
        text
    };
    let stdout = text(&mut child.stdout.take().expect("piped"));
    let stderr = text(&mut child.stderr.take().expect("piped"));
    (Run { status, stdout, stderr }, peak)
}

/// Nothing if the process ended.
fn anonymous_bytes(child: &Child) -> Option<usize> {
    let status = read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? << 10)
}

/// Runs a command within so many mebibytes, and sees that it keeps to them.
pub(crate) fn within(folder: &Folder, arguments: &str, mebibytes: usize) -> Run {
    let (_, program) = measured(folder, "check good.txt");
    let (run, peak) = measured(folder, &format!("{arguments} --memory {mebibytes}M"));
    let most = mebibytes * MEBIBYTE / 10 * 11 + program + BUFFERS;
    assert!(peak <= most, "{arguments}: {} KiB of {} KiB", peak >> 10, most >> 10);
    run
}

fn folder() -> Folder {
    let folder = Folder::with(&[("good.txt", GOOD)]);
    assert_eq!(folder.isolde(HARD).status, 0);
    folder
}

#[test]
fn a_level_that_needs_more_memory_than_allowed_is_unknown_for_that_reason() {
    let folder = folder();
    for level in ["serializable", "snapshot-isolation", "repeatable-read"] {
        for mebibytes in [30, 40] {
            let run = within(&folder, &format!("check hard.isolde -l {level}"), mebibytes);
            assert_eq!(run.status, 2, "{run:?}");
            assert!(run.stdout.contains("(the memory limit was reached"), "{run:?}");
        }
    }
    assert_eq!(within(&folder, "check hard.isolde -l causal", 40).status, 0);
}

#[test]
fn a_history_that_does_not_fit_is_refused_before_it_takes_more() {
    let folder = folder();
    assert_eq!(folder.isolde("convert hard.isolde --to text -o hard.txt").status, 0);
    assert_eq!(folder.isolde("check good.txt --certificate good.cert").status, 0);
    for file in ["hard.isolde", "hard.txt"] {
        for command in ["check", "explain", "shrink", "verify good.cert", "stats", "lint"] {
            let run = within(&folder, &format!("{command} {file}"), 2);
            assert_eq!(run.status, 3, "{command} {run:?}");
            assert!(run.stderr.contains("expected a history that fits in 2 MiB"), "{run:?}");
        }
    }
}

#[test]
fn explaining_and_shrinking_keep_to_the_limit_of_memory() {
    let folder = folder();
    for command in ["explain", "shrink"] {
        let run = within(&folder, &format!("{command} hard.isolde -l serializable"), 30);
        assert_eq!(run.status, 2, "{command} {run:?}");
    }
}

/// With `-q`, what showed the violation was forgotten and then looked for among all operations:
/// 858 MiB and 20 seconds for 405 operations that are decided at once.
#[test]
#[allow(clippy::print_stdout, reason = "a skipped test must be seen")]
fn a_verdict_alone_takes_no_more_memory_than_one_that_is_explained() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let file = format!("{data}/porcupine/kv/c10-bad.txt");
    if !Path::new(&file).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let folder = Folder::with(&[]);
    let (run, peak) = measured(&folder, &format!("check {file} -l linearizable -q"));
    assert_eq!((run.status, run.stdout), (1, format!("{file}\tlinearizable\tviolated\n")));
    assert!(peak < 200 * MEBIBYTE, "{} KiB", peak >> 10);
}
