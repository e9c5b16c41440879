//! Everything but `check` and `elle`.

use crate::support::{Folder, GOOD, printed, refused};
use serde_json::{Value, json};

#[test]
fn no_arguments_tell_what_to_type() {
    let expected = "\
isolde tells which isolation levels a database really gave its clients.

  isolde demo                         a first look: a bug, found and explained, in a second
  isolde run                          drive a database (SQLite, if no other is named) and check it
  isolde watch                        drive it and verify it while it runs
  isolde proxy URL --record DIR       record an application as it is, and check it
  isolde advise DIR                   which of its statements go wrong together
  isolde matrix                       which anomalies each isolation setting of it prevents
  isolde recover URL FILE             ask a database for the order of a history's versions
  isolde clean URL                    remove what killed runs have left in a database
  isolde check FILE                   decide every level of a recorded history
  isolde check FILE --level causal    fail (exit 1) unless this level holds
  isolde explain FILE                 why levels are violated, step by step
  isolde shrink FILE -o SMALL         the smallest part that is violated still
  isolde report FILE                  the same as a page: graph, timeline, plots
  isolde serve                        browse finished runs
  isolde bundle RUN                   everything about a run in one archive
  isolde verify CERTIFICATE FILE      check the proofs that `check --certificate` wrote
  isolde lint FILE                    is it the database, or the recording?
  isolde stats FILE                   what is in it
  isolde elle -m list-append FILE     answer as elle-cli does
  isolde convert FILE --to plume      write it for another checker
  isolde gen -o FILE                  a history without a database
  isolde formats                      formats that are read and written

`isolde help` lists all commands, `isolde COMMAND --help` their options.
";
    assert_eq!(Folder::with(&[]).isolde(""), printed(0, expected));
}

#[test]
fn help_lists_commands_and_exit_statuses() {
    let expected = "\
Tells which isolation levels a database really gave its clients

Usage: isolde [OPTIONS] [COMMAND]

Commands:
  demo         Watch a simulated bank lose money, and see why: a first look, without a database
  run          Drive a database, record what its clients see, and check what it promises
  watch        Verify a database while it runs: one that is driven, or one of which others send
               traces
  proxy        Pass an application's connections on to its database, record them, and check them
  advise       Tell what is wrong with a recording, by the statements of its application
  matrix       Tell which anomalies each isolation setting of a database prevents
  recover      Ask a database for the order of versions of a history that was recorded before
  clean        List what killed runs have left in a database, and remove it
  check        Decide the isolation levels of recorded histories
  explain      Tell why levels are violated, as arguments with everything they follow from
  shrink       Write the smallest part of a history that still violates a level
  report       Show a run, a history, a report or a bundle as one HTML file
  serve        Browse finished runs
  bundle       Pack everything about a run or a history into one archive
  verify       Check the proofs of a certificate against its history
  lint         Look for mistakes of the recording, before the database is accused
  stats        Tell what is in a history
  elle         Answer as elle-cli does: `true`, `false` or `unknown` for each file
  convert      Write a history in another format
  gen          Generate a history without a database
  formats      List the formats that are read and written
  completions  Print what a shell completes after `isolde`
  man          Print a manual page, or write all of them
  help         Print this message or the help of the given subcommand(s)

Options:
      --color <WHEN>  When to use colour: auto (on a terminal, unless NO_COLOR is set), always or
                      never
  -h, --help          Print help
  -V, --version       Print version

Exit status: 0 satisfied, 1 violated, 2 unknown, 3 bad usage or input.
";
    assert_eq!(Folder::with(&[]).isolde("help"), printed(0, expected));
    assert_eq!(Folder::with(&[]).isolde("--help"), printed(0, expected));
}

#[test]
fn an_unknown_command_and_a_missing_file_are_bad_usage() {
    for arguments in ["divine", "check", "stats", "lint", "convert", "elle", "check --level"] {
        let run = Folder::with(&[]).isolde(arguments);
        assert_eq!((run.status, &*run.stdout), (3, ""), "{arguments}");
        assert!(run.stderr.starts_with("error: "), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn every_format_of_the_library_is_listed() {
    let run = Folder::with(&[]).isolde("formats");
    let listed: Vec<&str> =
        run.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let known: Vec<&str> =
        isolde_history::format::FORMATS.iter().map(|format| format.name).collect();
    assert_eq!((run.status, listed), (0, known));
}

#[cfg(unix)]
/// Text was written under the name of another format.
#[test]
fn the_ending_of_the_output_tells_the_binary_format() {
    let folder = Folder::with(&[]);
    let start = |name: &str| std::fs::read(folder.path(name)).expect("a file")[..8].to_vec();
    assert_eq!(folder.isolde("gen --transactions 10 -o it.txt").status, 0);
    assert_eq!(folder.isolde("gen --transactions 10 -o it.isolde").status, 0);
    assert_eq!(folder.isolde("gen --transactions 10 --to text -o told.isolde").status, 0);
    assert_eq!(folder.isolde("convert it.txt -o converted.isolde").status, 0);
    assert_eq!(folder.isolde("convert it.txt --to binary -o binary").status, 0);
    assert_eq!(start("told.isolde"), start("it.txt"));
    assert_eq!(start("it.isolde"), start("binary"));
    assert_eq!(start("converted.isolde"), start("binary"));
    assert_ne!(start("binary"), start("it.txt"));
    let message = "isolde: convert: expected --to FORMAT, or an --output that ends in .isolde; see \
                   `isolde formats`\n";
    assert_eq!(folder.isolde("convert it.txt -o other"), refused(message));
}

#[test]
fn converting_to_a_device_leaves_it_a_device() {
    let folder = Folder::with(&[("history", GOOD)]);
    // By way of a link, since who may replace a device would.
    std::os::unix::fs::symlink("/dev/null", folder.path("null")).expect("a link");
    assert_eq!(folder.isolde("convert history --to text --output null").status, 0);
    let there = std::fs::symlink_metadata(folder.path("null")).expect("it is there");
    assert!(there.is_symlink());
}

#[test]
fn a_conversion_there_and_back_changes_nothing() {
    let text = "# isolde-history 1\nA: w(x,1)\nA: r(x,1) w(x,2)\nB: w(y,3) aborted\n";
    let folder = Folder::with(&[("history", text)]);
    let there = folder.isolde("convert history --to binary --output history.bin");
    assert_eq!(there, printed(0, ""));
    assert_eq!(folder.isolde("convert history.bin --to text"), printed(0, text));
}

#[test]
fn a_conversion_says_what_it_loses() {
    let folder = Folder::with(&[("history", GOOD)]);
    let run = folder.isolde("convert history --to jepsen-edn");
    let records = "\
{:type :ok, :f :txn, :value [[:w \"x\" 1]], :process 0, :index 0}
{:type :ok, :f :txn, :value [[:r \"x\" 1]], :process 1, :index 1}
";
    assert_eq!((run.status, &*run.stdout), (0, records));
    assert!(run.stderr.starts_with("isolde: jepsen-edn: lost: "), "{}", run.stderr);
}

#[test]
fn a_conversion_that_cannot_be_is_refused() {
    let folder = Folder::with(&[("history", GOOD)]);
    assert_eq!(
        folder.isolde("convert history --to vbox"),
        refused("isolde: the format vbox is read but not written\n")
    );
    assert_eq!(
        folder.isolde("convert history --to cobra"),
        refused("isolde: the format cobra is a directory: name it with --output\n")
    );
    let failed = folder.isolde("convert history --to text --output no/folder/file");
    assert_eq!((failed.status, &*failed.stdout), (3, ""));
}

const TIMED: &str = "\
session A endpoint db1:5432
A @0..1000000: r(x,nil) w(x,1)
B @500000..2000000: r(x,1) w(x,2)
";

#[test]
fn stats_tell_what_is_in_a_history() {
    let folder = Folder::with(&[("history", TIMED)]);
    let run = folder.isolde("stats history");
    let (figures, memory) = run.stdout.rsplit_once("  memory ").expect("a last line");
    let expected = "\
history (text)

  sessions                    2
  transactions                2 (2 committed, 0 aborted, 0 unknown)
  operations                  4 (2 read, 2 write)
  keys                        1
  reads from                  other transactions 1, the initial state 1
  writes per key              2 to 2, median 2
  operations per transaction  2 to 2, median 2
  read-modify-write           2 of 2 writes of a key by a transaction (100 %)
  times                       0.002 s, 1000 transactions/s, latency median 1.000 ms, p99 1.500 ms
  endpoints (sessions)        db1:5432 (1)
";
    assert_eq!((run.status, figures, &*run.stderr), (0, expected, ""));
    assert!(memory.trim().ends_with(" KiB"), "{memory}");
}

#[test]
fn stats_are_one_json_object() {
    let folder = Folder::with(&[("history", TIMED)]);
    let run = folder.isolde("stats history --format json");
    let mut stats: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert!(stats["memory_bytes"].take().is_u64());
    let expected = json!({
        "schema": 1, "file": "history", "format": "text",
        "history": {
            "sessions": 2, "transactions": 2, "operations": 4, "keys": 1,
            "committed": 2, "aborted": 0, "unknown": 0
        },
        "operations": [{"kind": "read", "count": 2}, {"kind": "write", "count": 2}],
        "reads": {"initial": 1, "other": 1, "own": 0, "several": 0, "unresolved": 0},
        "writes_per_key": {"min": 2, "median": 2, "max": 2},
        "transaction_length": {"min": 2, "median": 2, "max": 2},
        "list_length": null,
        "read_modify_write": {"count": 2, "of": 2},
        "times": {
            "span_seconds": 0.002, "transactions_per_second": 1000.0,
            "latency_median_ms": 1.0, "latency_p99_ms": 1.5, "timed": 2
        },
        "endpoints": [{"endpoint": "db1:5432", "sessions": 1}],
        "events": 0, "remarks": [], "memory_bytes": null
    });
    assert_eq!((run.status, stats), (0, expected));
}

#[test]
fn lint_passes_a_sound_recording() {
    let folder = Folder::with(&[("history", TIMED)]);
    let nothing = "history: nothing wrong with the recording was found\n";
    assert_eq!(folder.isolde("lint history"), printed(0, nothing));
    let run = folder.isolde("lint history --format json");
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let expected = json!({"schema": 1, "file": "history", "format": "text", "findings": []});
    assert_eq!((run.status, report), (0, expected));
}

#[test]
fn lint_fails_with_findings() {
    let folder = Folder::with(&[("history", "A: w(x,1) aborted\nB: r(x,1)\nB: r(x,1)\n")]);
    let expected = "\
history: failed-but-seen (possible) × 2
  a transaction recorded as aborted was seen by others: it committed after all, or the database \
                    shows aborted writes
    B.1 read x = 1 from A, recorded as aborted (history:2)
    B.2 read x = 1 from A, recorded as aborted (history:3)
  to do: look at the error it was given; unless it says that the transaction was rolled back, the \
                    outcome is unknown
";
    assert_eq!(folder.isolde("lint history"), printed(1, expected));
    let run = folder.isolde("lint history --format json");
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let finding = &report["findings"][0];
    assert_eq!((run.status, &finding["rule"]), (1, &json!("failed-but-seen")));
    assert_eq!((&finding["certainty"], &finding["total"]), (&json!("possible"), &json!(2)));
}

#[test]
fn lint_lists_its_rules() {
    let run = Folder::with(&[]).isolde("lint --rules");
    let names: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known: Vec<&str> = isolde::lint::RULES.iter().map(|rule| rule.name).collect();
    assert_eq!((run.status, names), (0, known));
}

#[test]
fn stats_and_lint_refuse_what_check_refuses() {
    let folder = Folder::with(&[("empty", "")]);
    let message = "isolde: empty: expected a history, found an empty file\n";
    assert_eq!(folder.isolde("stats empty"), refused(message));
    assert_eq!(folder.isolde("lint empty"), refused(message));
}

#[test]
fn a_generated_history_satisfies_its_level_and_a_seed_gives_it_again() {
    let folder = Folder::with(&[]);
    let command = "gen --isolation causal --transactions 200 --sessions 5 --keys 20 --seed 7";
    let first = folder.isolde(&format!("{command} --to text -o one.txt"));
    assert_eq!(first.status, 0, "{}", first.stderr);
    let second = folder.isolde(&format!("{command} --to text -o two.txt"));
    assert_eq!(second.status, 0, "{}", second.stderr);
    let converted = |file: &str| folder.isolde(&format!("convert {file} --to plume")).stdout;
    assert_eq!(converted("one.txt"), converted("two.txt"));
    assert_eq!(
        folder.isolde("check one.txt --level causal -q"),
        printed(0, "one.txt\tcausal\tsatisfied\n")
    );
    let broken = folder.isolde(&format!("{command} --anomaly fractured-read --to text -o bad.txt"));
    assert_eq!(broken.status, 0, "{}", broken.stderr);
    assert_eq!(
        folder.isolde("check bad.txt --level read-atomic -q"),
        printed(1, "bad.txt\tread-atomic\tviolated\n")
    );
}

#[test]
fn a_time_limit_is_taken_by_lint_and_stats() {
    let folder = Folder::with(&[("good", GOOD)]);
    for command in ["lint", "stats"] {
        assert_eq!(folder.isolde(&format!("{command} good --timeout 60s")).status, 0, "{command}");
        // A pipe that nobody writes to.
        let mut child = folder
            .command(&format!("{command} - --timeout 0ms"))
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        let held = child.stdin.take();
        let output = child.wait_with_output().expect("the program ends");
        drop(held);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        let expected = "isolde: standard input: the time limit was reached\n";
        assert_eq!((output.status.code(), &*said), (Some(2), expected), "{command}");
    }
}

/// A history without the violation that was asked for would be taken for one with it.
#[test]
fn a_bug_that_does_not_show_is_not_passed_over() {
    let folder = Folder::with(&[]);
    let refusal = "expected a workload whose transactions write a key twice for intermediate-read, \
                   found none in 4096 of them: take `--workload mini --sessions 8 --keys 5 \
                   --distribution uniform`\n";
    let options = "--preset GeneralRW --keys 30 --sessions 6 --transactions 60";
    let general = format!("gen {options} --isolation serializable --times transactions -o it.txt");
    assert_eq!(
        folder.isolde(&format!("{general} --bug intermediate-read")),
        refused(&format!("isolde: gen: {refusal}"))
    );
    assert_eq!(
        folder.isolde(&format!("run sim://serializable?bug=intermediate-read {options}")),
        refused(&format!("isolde: run: {refusal}"))
    );
    let run = folder.isolde(&format!("{general} --bug causality-violation"));
    assert_eq!(
        (run.status, &*run.stderr),
        (
            0,
            "isolde: gen: causality-violation does not show in this history, where causal holds: \
             it is likely to with `--workload mixed --operations 4 --sessions 8 --keys 5 \
             --distribution uniform --transactions 5000` and a database of snapshot-isolation\n"
        )
    );
    let mini = "gen --workload mini --keys 5 --isolation snapshot-isolation -o it.txt --bug";
    assert_eq!(
        folder.isolde(&format!("{mini} stale-snapshot")).stderr,
        "isolde: gen: stale-snapshot does not show in this history, which has no times, and \
         strong-snapshot-isolation is about them: take `--times transactions`\n"
    );
    assert_eq!(folder.isolde(&format!("{mini} not-my-own-write")).stderr, "");
    let alone = "run sim://snapshot-isolation?bug=not-my-own-write --transactions 1 --sessions 1";
    let run = folder.isolde(alone);
    assert!(run.status == 1 || run.stderr.contains("does not show"), "{run:?}");
}
