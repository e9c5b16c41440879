//! Every call of the system fails once: the n-th open, read, write, start of a thread and so on,
//! for all n, over the commands.
//!
//! A library that stands between the program and the system counts the calls of a kind and makes
//! one of them fail. Whatever fails, the program neither panics nor waits for ever, an output file
//! is whole or not there, and what is printed is what would be printed otherwise, or a message
//! says what went wrong and the exit status says that something did.
//!
//! The tests take some of the calls; `ISOLDE_FAULTS=all cargo test -p isolde-cli --test faults`
//! takes all of them and says how many there were.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "the sweep says what it tried")]

#[path = "../end_to_end/support.rs"]
#[allow(dead_code, reason = "of the other tests too")]
mod support;

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use support::{FRACTURED, Folder, GOOD};

/// A program that takes longer waits for ever.
const LIMIT: Duration = Duration::from_secs(30);
/// How many calls of each kind fail in the tests, of each command.
const SAMPLE: usize = 4;

/// A kind of call, how it fails, and whether it then goes on to fail.
struct Fault {
    kind: &'static str,
    error: i32,
    lasts: bool,
}

const fn once(kind: &'static str, error: i32) -> Fault {
    Fault { kind, error, lasts: false }
}

const fn lasting(kind: &'static str, error: i32) -> Fault {
    Fault { kind, error, lasts: true }
}

const FAULTS: &[Fault] = &[
    once("open", libc::EMFILE),
    lasting("open", libc::EACCES),
    once("read", libc::EIO),
    once("read", libc::EINTR),
    // Half of what was asked, which is no error.
    once("read", 0),
    once("write", libc::EIO),
    once("write", libc::EINTR),
    once("write", 0),
    lasting("write", libc::ENOSPC),
    once("rename", libc::EIO),
    once("mkdir", libc::ENOSPC),
    once("mmap", libc::ENOMEM),
    once("spawn", libc::EAGAIN),
    once("thread", libc::EAGAIN),
    lasting("thread", libc::EAGAIN),
];

/// A command, and what it writes beside standard output.
struct Tried {
    arguments: &'static str,
    outputs: &'static [&'static str],
}

const COMMANDS: &[Tried] = &[
    Tried { arguments: "check bad.txt", outputs: &[] },
    Tried { arguments: "check bad.isolde --format json -o out.json", outputs: &["out.json"] },
    Tried {
        arguments: "check good.txt --certificate out.cert --timeout 1m",
        outputs: &["out.cert"],
    },
    Tried { arguments: "check clients --level causal -q", outputs: &[] },
    Tried { arguments: "verify good.cert good.txt", outputs: &[] },
    Tried { arguments: "explain bad.txt", outputs: &[] },
    Tried { arguments: "shrink bad.txt -o out.txt", outputs: &["out.txt"] },
    Tried { arguments: "watch --from made/history.log --quiet", outputs: &[] },
    Tried { arguments: "report bad.txt -o out.html", outputs: &["out.html"] },
    Tried { arguments: "report bundle.tar.gz -o out.html", outputs: &["out.html"] },
    Tried { arguments: "bundle bad.txt -o out.tar.gz", outputs: &["out.tar.gz"] },
    Tried { arguments: "convert bad.txt --to binary -o out.isolde", outputs: &["out.isolde"] },
    Tried { arguments: "convert bad.isolde --to plume -o out", outputs: &["out"] },
    Tried { arguments: "elle -m rw-register jepsen.edn", outputs: &[] },
    Tried { arguments: "gen --transactions 40 --sessions 2 -o out.txt", outputs: &["out.txt"] },
    Tried { arguments: "matrix sim --only G0 --isolation serializable", outputs: &[] },
    Tried { arguments: "lint bad.txt", outputs: &[] },
    Tried { arguments: "stats bad.isolde", outputs: &[] },
];

/// What a program left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Left {
    status: i32,
    stdout: Vec<u8>,
    stderr: String,
    /// The output files, those that are there.
    files: Vec<Option<Vec<u8>>>,
    /// How many calls of the kind there were.
    calls: usize,
}

fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let name = format!("shim-{}.so", std::process::id());
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/shim.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&made)
            .args([source, "-ldl"])
            .status();
        assert!(compiled.is_ok_and(|status| status.success()), "a C compiler is needed");
        made
    })
}

fn folder() -> Folder {
    let folder = Folder::with(&[("good.txt", GOOD), ("bad.txt", FRACTURED)]);
    for arguments in [
        "convert bad.txt --to binary -o bad.isolde",
        "convert bad.txt --to cobra -o clients",
        "convert bad.txt --to jepsen-edn -o jepsen.edn",
        "check good.txt --certificate good.cert",
        "bundle bad.txt -o bundle.tar.gz",
        "run sim --transactions 40 --quiet -o made",
    ] {
        let made = folder.isolde(arguments);
        assert_eq!(made.status, 0, "{arguments}: {made:?}");
    }
    folder
}

/// Runs a command with the call of this number failing; none, if it is 0.
fn run(folder: &Folder, tried: &Tried, fault: &Fault, nth: usize) -> Result<Left, String> {
    for output in tried.outputs {
        let path = folder.path(output);
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
    }
    let printed = |name| File::create(folder.path(name)).expect("a writable folder");
    let lasts = u8::from(fault.lasts);
    let mut child = folder
        .command(tried.arguments)
        .env("LD_PRELOAD", shim())
        .env("ISOLDE_FAULT", format!("{} {nth} {} {lasts}", fault.kind, fault.error))
        .env("ISOLDE_FAULT_CALLS", folder.path("calls"))
        .stdin(Stdio::null())
        .stdout(printed("stdout"))
        .stderr(printed("stderr"))
        .spawn()
        .expect("the program starts");
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it waits for ever; {}", folder.read("stderr")));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let stderr = String::from_utf8_lossy(&read(folder, "stderr").unwrap_or_default()).into_owned();
    if let Some(signal) = status.signal() {
        return Err(format!("it ended with signal {signal}; {stderr}"));
    }
    if stderr.contains("panicked") {
        return Err(stderr);
    }
    Ok(Left {
        status: status.code().expect("no signal"),
        stdout: untimed(&read(folder, "stdout").unwrap_or_default()),
        stderr,
        files: tried.outputs.iter().map(|name| Some(settled(name, read(folder, name)?))).collect(),
        calls: folder.read("calls").parse().expect("a number"),
    })
}

/// What is printed, but for lines of a watch with its speed and its memory.
fn untimed(printed: &[u8]) -> Vec<u8> {
    let is_timed = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        line.starts_with("  operations ") || line.contains(" s   committed ")
    };
    let lines = printed.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| !is_timed(line)).flatten().copied().collect()
}

/// What is in an output file. Reports say how long everything took, so that they and what they
/// are packed in are compared without their numbers.
fn settled(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    let is_timed = [".html", ".json", ".tar.gz"].iter().any(|ending| name.ends_with(ending));
    let is_compressed = Path::new(name).extension().is_some_and(|it| it == "gz");
    let plain = if is_compressed {
        let mut plain = Vec::new();
        match flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain) {
            Ok(_) => plain,
            Err(error) => error.to_string().into_bytes(),
        }
    } else {
        bytes
    };
    let mut before = 0;
    let is_number = |byte: u8| {
        let is_exponent = byte == b'e' && u8::is_ascii_digit(&before);
        before = byte;
        is_exponent || b"0123456789.-\0".contains(&byte)
    };
    if is_timed { without(plain, is_number) } else { plain }
}

fn without(mut bytes: Vec<u8>, mut is_unwanted: impl FnMut(u8) -> bool) -> Vec<u8> {
    bytes.retain(|&byte| !is_unwanted(byte));
    bytes
}

/// A file, or the files of a folder one behind the other.
fn read(folder: &Folder, name: &str) -> Option<Vec<u8>> {
    let path = folder.path(name);
    let Ok(entries) = std::fs::read_dir(&path) else { return std::fs::read(path).ok() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    Some(paths.iter().flat_map(|path| std::fs::read(path).expect("a file")).collect())
}

/// What is wrong with what a command left when a call failed, beside what it leaves otherwise.
fn complaint(whole: &Left, left: &Left) -> Option<String> {
    let is_file_whole =
        |(left, whole): (&Option<Vec<u8>>, &Option<Vec<u8>>)| left.is_none() || left == whole;
    // That nothing could be decided is an answer, too, and so is a report of what is wrong.
    let mut answers = left.files.iter().flatten().chain([&left.stdout]);
    let word = if left.status == 2 { "unknown" } else { "\"error\":" };
    if left.status >= 2 && answers.any(|text| String::from_utf8_lossy(text).contains(word)) {
        return None;
    }
    if !left.files.iter().zip(&whole.files).all(is_file_whole) {
        return Some("an output file is damaged".to_owned());
    }
    let is_same =
        (left.status, &left.stdout, &left.files) == (whole.status, &whole.stdout, &whole.files);
    if is_same {
        return None;
    }
    if left.stderr == whole.stderr {
        return Some("no message says what went wrong".to_owned());
    }
    // A violation stays one, whatever could not be written of it.
    let is_told = left.status == 3 || left.status == 2 || left.status == 1 && whole.status == 1;
    (!is_told).then(|| format!("exit status {}, as if nothing had happened", left.status))
}

/// The calls that fail: all, or some from the first to the last.
fn chosen(calls: usize) -> Vec<usize> {
    if std::env::var("ISOLDE_FAULTS").is_ok_and(|it| it == "all") || calls <= SAMPLE {
        return (1..=calls).collect();
    }
    let mut chosen: Vec<usize> =
        (0..SAMPLE).map(|place| 1 + place * (calls - 1) / (SAMPLE - 1)).collect();
    chosen.dedup();
    chosen
}

#[test]
fn no_call_that_fails_is_passed_over() {
    let folder = folder();
    let (mut runs, mut wrong) = (0, Vec::new());
    for tried in COMMANDS {
        for fault in FAULTS {
            let whole = run(&folder, tried, fault, 0).expect("nothing fails");
            for nth in chosen(whole.calls) {
                runs += 1;
                let complaint = match run(&folder, tried, fault, nth) {
                    Ok(left) => {
                        complaint(&whole, &left).map(|text| format!("{text}: {}", left.stderr))
                    }
                    Err(text) => Some(text),
                };
                let Fault { kind, error, lasts } = fault;
                let when = if *lasts { "from" } else { "at" };
                wrong.extend(complaint.map(|text| {
                    format!(
                        "{}: {kind} fails with {error} {when} call {nth}: {text}",
                        tried.arguments
                    )
                }));
            }
        }
    }
    println!("{runs} runs with a call that failed, of {} commands", COMMANDS.len());
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
}

/// What a driven run leaves is read by `isolde check`, and is all that it says there is.
#[test]
fn a_run_keeps_what_it_says_it_has_recorded() {
    const RUN: Tried = Tried {
        arguments: "run sim --transactions 40 --sessions 2 -o run --quiet",
        outputs: &["run"],
    };
    let folder = Folder::with(&[]);
    let (mut runs, mut wrong) = (0, Vec::new());
    for fault in FAULTS {
        let whole = run(&folder, &RUN, fault, 0).expect("nothing fails");
        assert_eq!(whole.status, 0, "{}", whole.stderr);
        for nth in chosen(whole.calls) {
            runs += 1;
            let complaint = match run(&folder, &RUN, fault, nth) {
                Ok(left) => complaint_of_run(&folder, &left),
                Err(text) => Some(text),
            };
            let Fault { kind, error, .. } = fault;
            wrong.extend(
                complaint.map(|text| format!("{kind} fails with {error} at {nth}: {text}")),
            );
        }
    }
    println!("{runs} runs of the simulated database with a call that failed");
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
}

fn complaint_of_run(folder: &Folder, left: &Left) -> Option<String> {
    let json = folder.path("run/run.json");
    let noted = std::fs::read(&json).ok();
    let noted = noted.map(|text| serde_json::from_slice::<serde_json::Value>(&text));
    let noted = match noted {
        Some(Err(error)) => return Some(format!("run.json is damaged: {error}")),
        Some(Ok(noted)) => Some(noted),
        None => None,
    };
    if left.status != 0 {
        return left.stderr.is_empty().then(|| "no message says what went wrong".to_owned());
    }
    let Some(noted) = noted else { return Some("there is no run.json".to_owned()) };
    let checked = folder.isolde("stats run/history.log --format json");
    let stats: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap_or_default();
    let is_same = stats["history"]["committed"].is_u64()
        && stats["history"]["committed"] == noted["committed"];
    (!is_same).then(|| format!("{} noted, {checked:?} recorded", noted["committed"]))
}
