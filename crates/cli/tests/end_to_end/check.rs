//! `isolde check`: output and exit status.

use crate::support::{FRACTURED, Folder, GOOD, lines, printed, refused};

const GOOD_REPORT: &str = "\
good.hist: 2 transactions (2 committed) in 2 sessions, 2 operations on 1 keys (text)

  causal                 satisfied
  writes-follow-reads    satisfied  (implied by causal)
  monotonic-writes       satisfied  (implied by causal)
  monotonic-reads        satisfied  (implied by causal)
  read-your-writes       satisfied  (implied by causal)
  read-atomic            satisfied  (implied by causal)
  read-committed         satisfied  (implied by causal)
  monotonic-atomic-view  satisfied  (implied by causal)
  adya-read-committed    satisfied  (implied by causal)
  read-uncommitted       satisfied  (implied by causal)

holds: causal
gate: isolde check good.hist --level causal
";

const FRACTURED_REPORT: &str = "\
fractured.hist: 2 transactions (2 committed) in 2 sessions, 4 operations on 2 keys (text)

  read-atomic  violated

not read-atomic:
  fractured-read
    B read x = 1 from A (fractured.hist:2)
    B had to see A, which writes y, yet read y = nil, its initial value from before A (fractured.hist:2, 1)
    no order explains that

broken: read-atomic
";

fn folder() -> Folder {
    Folder::with(&[("good.hist", GOOD), ("fractured.hist", FRACTURED)])
}

#[test]
fn without_a_level_it_reports_the_lattice_and_passes() {
    assert_eq!(folder().isolde("check good.hist"), printed(0, GOOD_REPORT));
}

#[test]
fn a_report_of_violations_passes_and_a_gate_does_not() {
    assert_eq!(folder().isolde("check fractured.hist -q").status, 0);
    assert_eq!(
        folder().isolde("check fractured.hist --level read-atomic"),
        printed(1, FRACTURED_REPORT)
    );
}

#[test]
fn several_levels_pass_only_together() {
    let levels = "-l read-atomic -l adya-read-committed";
    assert_eq!(
        folder().isolde(&format!("check fractured.hist -q {levels}")),
        printed(
            1,
            "fractured.hist\tadya-read-committed\tsatisfied\n\
             fractured.hist\tread-atomic\tviolated\n"
        )
    );
    assert_eq!(folder().isolde(&format!("check good.hist -q {levels}")).status, 0);
}

#[test]
fn several_files_are_reported_in_turn_and_the_worst_decides() {
    let folder = folder();
    assert_eq!(
        folder.isolde("check good.hist fractured.hist -q --level RA"),
        printed(1, "good.hist\tread-atomic\tsatisfied\nfractured.hist\tread-atomic\tviolated\n")
    );
    let good = "\
good.hist: 2 transactions (2 committed) in 2 sessions, 2 operations on 1 keys (text)

  read-atomic  satisfied

holds: read-atomic
";
    assert_eq!(
        folder.isolde("check good.hist fractured.hist --level read-atomic"),
        printed(1, &format!("{good}\n{FRACTURED_REPORT}"))
    );
}

#[test]
fn standard_input_is_a_file_called_dash() {
    let report = GOOD_REPORT
        .replace("good.hist: ", "standard input: ")
        .replace("check good.hist", "check -");
    assert_eq!(Folder::with(&[]).isolde_reading(GOOD, "check -"), printed(0, &report));
}

#[test]
fn the_gate_is_a_command_that_a_shell_accepts() {
    let folder = Folder::with(&[("it's a history", GOOD)]);
    let mut command = folder.command("check");
    let output = command.arg("it's a history").output().expect("the program runs");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let last = stdout.lines().last();
    assert_eq!(last, Some("gate: isolde check 'it'\\''s a history' --level causal"));
}

#[test]
fn a_time_limit_leaves_levels_unknown_and_unknown_can_pass_or_fail() {
    let run = |more: &str| {
        let run = folder().isolde(&format!("check good.hist -q -l causal --timeout 0ms{more}"));
        (run.status, run.stdout)
    };
    let unknown = "good.hist\tcausal\tunknown\n";
    assert_eq!(run(""), (2, unknown.into()));
    assert_eq!(run(" --unknown pass"), (0, unknown.into()));
    assert_eq!(run(" --unknown fail"), (1, unknown.into()));
    assert_eq!(
        folder().isolde("check good.hist -q -l causal --timeout 1h"),
        printed(0, "good.hist\tcausal\tsatisfied\n")
    );
}

#[test]
fn a_strong_level_of_a_long_history_is_unknown() {
    let many = lines(0..9, |number| format!("A: w(x,{number})"));
    let folder = Folder::with(&[("long.hist", &many)]);
    assert_eq!(
        folder.isolde("check long.hist -l serializable -q"),
        printed(2, "long.hist\tserializable\tunknown\n")
    );
}

#[test]
fn a_history_larger_than_the_memory_limit_is_refused() {
    assert_eq!(
        folder().isolde("check good.hist --memory 1"),
        refused(
            "isolde: good.hist: expected a history that fits in 0 MiB, found one that does not \
             after 0 transactions (give more with --memory, or check a part of the history)\n"
        )
    );
}

#[test]
fn the_definitions_can_be_asked_instead_of_the_engine() {
    assert_eq!(
        folder().isolde("check fractured.hist --engine reference -l serializable -l pl-2 -q"),
        printed(
            1,
            "fractured.hist\tadya-read-committed\tsatisfied\n\
             fractured.hist\tserializable\tviolated\n"
        )
    );
}

#[test]
fn the_result_goes_to_a_file_if_one_is_named() {
    let folder = folder();
    assert_eq!(folder.isolde("check good.hist -q -l causal -o result"), printed(0, ""));
    assert_eq!(folder.read("result"), "good.hist\tcausal\tsatisfied\n");
    assert_eq!(
        folder.isolde("check good.hist -o no/such/folder"),
        refused(
            "isolde: no/such/folder: cannot be written: No such file or directory (os error 2)\n"
        )
    );
}

#[test]
fn an_initial_value_can_be_given() {
    let folder = Folder::with(&[("zero.hist", "A: r(x,0) w(x,1)\n")]);
    assert_eq!(folder.isolde("check zero.hist -q -l rc").status, 1);
    assert_eq!(folder.isolde("check zero.hist -q -l rc --initial 0").status, 0);
}

#[test]
fn an_unknown_level_is_bad_usage_and_the_levels_are_listed() {
    let run = folder().isolde("check good.hist --level perfect");
    assert_eq!((run.status, &*run.stdout), (3, ""));
    let message = "error: invalid value 'perfect' for '--level <LEVEL>': expected a level, found \
                   `perfect`; levels are read-uncommitted, ";
    assert!(run.stderr.starts_with(message), "{}", run.stderr);
}

#[test]
fn verbose_tells_stages_on_standard_error() {
    let run = folder().isolde("check good.hist -v -q -l causal");
    assert_eq!((run.status, &*run.stdout), (0, "good.hist\tcausal\tsatisfied\n"));
    assert!(run.stderr.starts_with("isolde: good.hist: read "), "{}", run.stderr);
}

#[test]
fn the_guide_shows_what_is_printed() {
    let guide = include_str!("../../../../docs/guide.md");
    let run = Folder::with(&[("orders.hist", FRACTURED)]).isolde("check orders.hist");
    let (shown, gate) = run.stdout.rsplit_once("gate: ").expect("a last line");
    for paragraph in shown.trim_end().split("\n\n") {
        assert!(guide.contains(paragraph), "not in the guide:\n{paragraph}");
    }
    let levels = " --level adya-read-committed --level read-your-writes ";
    assert!(gate.starts_with(&format!("isolde check orders.hist{levels}")), "{gate}");
}

#[test]
fn levels_that_hold_because_nothing_was_read_are_noted() {
    let folder = Folder::with(&[("unread", "A: w(x,1)\nB: w(x,2)\n"), ("good", GOOD)]);
    let note = "\nnote: no transaction read what another one wrote, or a key before another one \
                wrote it, so every history like this one passes (no-dependency)\n";
    let run = folder.isolde("check unread --level causal");
    assert!(run.status == 0 && run.stdout.contains(note), "{}", run.stdout);
    let run = folder.isolde("check good --level causal");
    assert!(run.status == 0 && !run.stdout.contains("note:"), "{}", run.stdout);
}
