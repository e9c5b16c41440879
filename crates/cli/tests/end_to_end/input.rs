//! Files that are compressed, broken, or no files at all.

use crate::support::{FRACTURED, Folder, GOOD, Run, lines, printed, refused};
use std::io::Write;

const SATISFIED: &str = "history\tcausal\tsatisfied\n";

fn checked(content: &[u8]) -> Run {
    let folder = Folder::with(&[]);
    folder.write("history", content);
    folder.isolde("check history -q -l causal")
}

#[test]
fn gzip_is_read_whatever_the_name() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(GOOD.as_bytes()).expect("memory");
    let compressed = encoder.finish().expect("memory");
    assert_eq!(checked(&compressed), printed(0, SATISFIED));
    let cut = checked(&compressed[..compressed.len() - 9]);
    assert_eq!((cut.status, &*cut.stdout), (3, ""));
    assert!(cut.stderr.starts_with("isolde: history: byte "), "{}", cut.stderr);
}

#[test]
fn zstd_is_read_whatever_the_name() {
    let compressed = zstd::encode_all(GOOD.as_bytes(), 1).expect("memory");
    assert_eq!(checked(&compressed), printed(0, SATISFIED));
    let cut = checked(&compressed[..compressed.len() - 3]);
    assert_eq!((cut.status, &*cut.stdout), (3, ""));
    assert!(cut.stderr.starts_with("isolde: history: byte "), "{}", cut.stderr);
}

#[test]
fn a_malformed_line_is_named() {
    assert_eq!(
        checked(b"A: w(x,1)\nB: q(x,1)\n"),
        refused(
            "isolde: history: line 2: expected `r(key,value)`, `w(key,value)`, another operation \
             or an outcome, found `q(x,1)`\n"
        )
    );
}

#[test]
fn an_empty_file_is_no_history() {
    let message = "isolde: history: expected a history, found an empty file\n";
    assert_eq!(checked(b""), refused(message));
    assert_eq!(checked(b" \n\n"), refused(message));
}

#[test]
fn an_unknown_format_is_said_and_nothing_is_guessed() {
    let run = checked(b"\xff\xfe\x00\x01");
    assert_eq!((run.status, &*run.stdout), (3, ""));
    let message = "isolde: history: expected a history in a known format, found `";
    assert!(run.stderr.starts_with(message), "{}", run.stderr);
}

#[test]
fn a_damaged_first_line_is_said_with_the_format_of_the_others() {
    let run = checked(b"r(1,99999999999999999999999,3,4)\nr(1,2,3,4)\nw(1,3,3,5)\n");
    assert_eq!((run.status, &*run.stdout), (3, ""));
    let message = "isolde: history: line 1: expected a line of the format plume, as those after \
                   it are, found `r(1,99999999999999999999999,3,4)`";
    assert!(run.stderr.starts_with(message), "{}", run.stderr);
}

#[test]
fn a_missing_file_and_a_folder_without_logs_are_said() {
    let folder = Folder::with(&[]);
    assert_eq!(
        folder.isolde("check nothing.hist"),
        refused("isolde: nothing.hist: cannot be opened: No such file or directory (os error 2)\n")
    );
    std::fs::create_dir(folder.path("folder")).expect("a writable folder");
    let expected = "isolde: folder: expected a directory of client logs, found";
    let said = |rest: &str| refused(&format!("{expected} {rest}\n"));
    assert_eq!(folder.isolde("check folder"), said("an empty one"));
    std::fs::create_dir(folder.path("folder/run-1")).expect("a writable folder");
    let deeper = "a folder in it and no files (name that one: folder/run-1)";
    assert_eq!(folder.isolde("check folder"), said(deeper));
    std::fs::create_dir(folder.path("folder/run-2")).expect("a writable folder");
    let deeper = "folders in it and no files (name one of them, such as folder/run-1)";
    assert_eq!(folder.isolde("check folder"), said(deeper));
}

#[test]
fn a_folder_of_one_file_is_that_file() {
    let folder = Folder::with(&[]);
    std::fs::create_dir(folder.path("hist-00000")).expect("a writable folder");
    folder.write("hist-00000/history.txt", GOOD.as_bytes());
    let run = folder.isolde("check hist-00000 -q -l causal");
    assert_eq!(run, printed(0, "hist-00000\tcausal\tsatisfied\n"));
}

#[test]
fn a_bad_file_among_good_ones_spoils_the_status_and_not_the_rest() {
    let folder = Folder::with(&[("good", GOOD), ("bad", "A: w(x,1) w(\n"), ("other", FRACTURED)]);
    let run = folder.isolde("check good bad other -q -l causal");
    assert_eq!(
        (run.status, &*run.stdout),
        (3, "good\tcausal\tsatisfied\nother\tcausal\tviolated\n")
    );
    assert!(run.stderr.starts_with("isolde: bad: line 1: expected "), "{}", run.stderr);
}

#[test]
fn a_format_can_be_named_and_an_unknown_one_is_refused() {
    let folder = Folder::with(&[("good", GOOD)]);
    let named = folder.isolde("check good -q -l causal --from text");
    assert_eq!(named, printed(0, "good\tcausal\tsatisfied\n"));
    let run = folder.isolde("check good --from parchment");
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert!(run.stderr.starts_with("isolde: expected a format ("), "{}", run.stderr);
    assert!(run.stderr.ends_with("), found `parchment`\n"), "{}", run.stderr);
}

#[test]
fn a_reader_that_closes_the_pipe_changes_no_answer() {
    // Far more output than a pipe holds, so that writing fails for certain.
    let many = lines(0..20_000, |number| format!("A{number}: r(x,nil) w(x,{number})"));
    let folder = Folder::with(&[("many.hist", &many), ("bad.hist", FRACTURED)]);
    let closed = |arguments: &str| {
        let mut command = folder.command(arguments);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command.stdout(writer).output().expect("the program runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    assert_eq!(closed("check bad.hist --level causal"), (Some(1), String::new()));
    assert_eq!(closed("convert many.hist --to text"), (Some(0), String::new()));
    assert_eq!(closed("stats many.hist"), (Some(0), String::new()));
    assert_eq!(closed("formats"), (Some(0), String::new()));
    assert_eq!(closed("--help"), (Some(0), String::new()));
}

#[test]
fn an_initial_value_is_taken_unless_the_file_declares_another() {
    let read = "A: r(x,0)\nB: w(x,1)\n";
    let declared = format!("init *=0\n{read}");
    let folder = Folder::with(&[("silent", read), ("declared", &declared)]);
    let check = |options: &str| folder.isolde(&format!("check -q -l causal {options}"));
    assert_eq!(check("silent --initial 0"), printed(0, "silent\tcausal\tsatisfied\n"));
    assert_eq!(check("declared --initial 0"), printed(0, "declared\tcausal\tsatisfied\n"));
    assert_eq!(
        check("declared --initial 7"),
        refused(
            "isolde: declared: expected keys that start with 7, found `init *=0` (leave --initial \
             out: the history says what its keys start with)\n"
        )
    );
}

#[test]
fn a_mistake_in_the_first_line_of_the_text_format_is_named() {
    let run = checked(b"A w(x,1)\nB: r(x,1)\n");
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert!(run.stderr.starts_with("isolde: history: line 1: expected "), "{}", run.stderr);
}

#[test]
fn the_binary_file_of_a_jepsen_test_is_named_with_what_to_read_instead() {
    assert_eq!(
        checked(b"JEPSEN\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x12"),
        refused(
            "isolde: history: expected a history, found Jepsen's binary test file (the history of \
             the test is `history.edn` in the same directory)\n"
        )
    );
}

#[test]
fn json_nested_too_deep_is_said_in_our_words() {
    let deep = format!(
        r#"{{"type":"ok","f":"txn","process":0,"value":{}{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let folder = Folder::with(&[("history", &*deep)]);
    assert_eq!(
        folder.isolde("check history --from jepsen-json"),
        refused(
            "isolde: history: line 1: expected an operation like {\"type\":\"ok\",…}, found values \
             nested more than 127 deep\n"
        )
    );
}

#[test]
fn standard_input_is_given_once() {
    let message = "isolde: expected `-`, standard input, once, found it 2 times\n";
    for command in ["check - -", "elle -m rw-register - -"] {
        assert_eq!(Folder::with(&[]).isolde(command), refused(message), "{command}");
    }
}

/// A file of the binary format was mapped, and cutting it ended the program with SIGBUS.
#[test]
#[cfg(unix)]
fn a_file_that_is_cut_while_it_is_read_ends_in_a_message_or_a_verdict() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::with(&[]);
    let made = folder.isolde("gen --transactions 40000 --to binary-raw -o whole.isolde");
    assert_eq!(made.status, 0, "{made:?}");
    for milliseconds in (0..60).step_by(3) {
        std::fs::copy(folder.path("whole.isolde"), folder.path("cut.isolde")).expect("a copy");
        let mut command = folder.command("check cut.isolde -l read-uncommitted -q");
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let file = std::fs::File::options().write(true).open(folder.path("cut.isolde"));
        file.expect("the file").set_len(4096).expect("it can be cut");
        let status = child.wait().expect("an end");
        assert_eq!(status.signal(), None, "cut after {milliseconds} ms");
    }
}

/// The lines to be pasted named an option.
#[test]
fn a_file_that_is_called_like_an_option_is_named_by_its_folder() {
    let folder = Folder::with(&[("-rf.txt", FRACTURED)]);
    let run = folder.isolde("check -- -rf.txt");
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stdout.contains("\ngate: isolde check ./-rf.txt --level "), "{}", run.stdout);
    assert!(run.stdout.contains("\nwhy: isolde explain ./-rf.txt"), "{}", run.stdout);
}
