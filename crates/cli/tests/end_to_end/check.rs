//! `isolde check`: output and exit status.

use crate::support::{FRACTURED, Folder, GOOD, Run, lines, printed, refused};

const GOOD_REPORT: &str = "\
good.hist: session serializable holds
2 transactions (2 committed) in 2 sessions, 2 operations on 1 key (text)

  session-serializable  satisfied
  so satisfied: serializable, session-snapshot-isolation, snapshot-isolation, repeatable-read, parallel-snapshot-isolation, prefix, update-atomic, cursor-stability, causal, writes-follow-reads, monotonic-writes, monotonic-reads, read-your-writes, read-atomic, read-committed, monotonic-atomic-view, adya-read-committed, read-uncommitted

holds: session-serializable
gate: isolde check good.hist --level session-serializable
";

const FRACTURED_REPORT: &str = "\
fractured.hist: not read atomic: fractured, non-monotonic read (an observed transaction vanishes) between B and A
2 transactions (2 committed) in 2 sessions, 4 operations on 2 keys (text)

  read-atomic  violated

not read-atomic:
  fractured, non-monotonic read (an observed transaction vanishes) (Adya's G-single, Elle's G-single-item)
    B saw x = 1 of A, but missed its y = 1: it read y = nil.
    B read y = nil, which A replaced with y = 1 (fractured.hist:2, 1)
    B read x = 1, which A wrote (fractured.hist:1, 2)
    so B would have to come before A and A before B

broken: read-atomic
why: isolde explain fractured.hist --level read-atomic
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
fn colour_is_for_those_who_ask() {
    let run = folder().isolde("check fractured.hist --level read-atomic --color always");
    assert!(run.stdout.contains("  read-atomic  \x1b[31mviolated\x1b[0m\n"), "{}", run.stdout);
    assert_eq!(without_colour(&run.stdout), FRACTURED_REPORT);
}

/// A terminal of 60 columns, as `script` makes one.
#[cfg(target_os = "linux")]
#[test]
#[allow(clippy::print_stdout, reason = "a skipped test must be seen")]
fn a_terminal_gets_colour_and_lines_no_longer_than_it_is_wide() {
    let folder = folder();
    let command = |more: &str| {
        let isolde = env!("CARGO_BIN_EXE_isolde");
        format!("stty cols 60; {isolde} check fractured.hist --level read-atomic {more}")
    };
    let shown = |more: &str| {
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &command(more), "/dev/null"]).current_dir(folder.path("."));
        script.env("TERM", "xterm").env_remove("NO_COLOR").stdin(std::process::Stdio::null());
        script.output().ok().map(|it| String::from_utf8_lossy(&it.stdout).replace('\r', ""))
    };
    let Some(coloured) = shown("") else {
        println!("skipped: no `script`");
        return;
    };
    assert!(coloured.contains("\x1b[31mviolated\x1b[0m"), "{coloured}");
    let plain = without_colour(&coloured);
    assert_eq!(plain.lines().find(|line| line.chars().count() > 60), None, "{plain}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(&plain), words(FRACTURED_REPORT));
    assert_eq!(shown("--color never").as_deref(), Some(plain.as_str()));
}

fn without_colour(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').expect("the end of a colour").1)
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
good.hist: read atomic holds
2 transactions (2 committed) in 2 sessions, 2 operations on 1 key (text)

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
    assert_eq!(last, Some("gate: isolde check 'it'\\''s a history' --level session-serializable"));
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
fn a_strong_level_of_a_long_history_is_decided() {
    let many = lines(0..99, |number| format!("A: r(x,{number}) w(x,{})", number + 1));
    let gap = many.replace("r(x,50)", "r(x,49)");
    let folder = Folder::with(&[("long.hist", &many), ("gap.hist", &gap)]);
    assert_eq!(
        folder.isolde("check long.hist gap.hist -l serializable -q --initial 0"),
        printed(1, "long.hist\tserializable\tsatisfied\ngap.hist\tserializable\tviolated\n")
    );
}

#[test]
fn a_level_of_real_time_is_unknown_without_times_and_left_out_of_the_report() {
    let folder = folder();
    assert_eq!(
        folder.isolde("check good.hist -l strict-serializable -q"),
        printed(2, "good.hist\tstrict-serializable\tunknown\n")
    );
    let report = folder.isolde("check good.hist -q");
    assert!(!report.stdout.contains("strict-serializable"), "{}", report.stdout);
    folder.write("timed.hist", b"A @1..2: w(x,1)\nB @3..4: r(x,1)\n");
    let report = folder.isolde("check timed.hist -q");
    assert!(report.stdout.contains("\tstrict-serializable\tsatisfied\n"), "{}", report.stdout);
    assert!(report.stdout.contains("\tlinearizable\tsatisfied\n"), "{}", report.stdout);
}

#[test]
fn a_stale_read_within_the_drift_of_clocks_is_none() {
    // Ten milliseconds apart.
    let stale = "A @1..20000000: w(x,1)\nB @30000000..40000000: r(x,nil)\n";
    let folder = Folder::with(&[("stale.hist", stale)]);
    let status = |drift: &str| folder.isolde(&format!("check stale.hist -q -l sser{drift}")).status;
    assert_eq!((status(""), status(" --clock-drift 9ms")), (1, 1));
    assert_eq!(status(" --clock-drift 11ms"), 0);
}

#[test]
fn sources_of_order_can_be_left_out() {
    let lists = "A: a(x,1)\nB: a(x,2) a(y,1)\nC: r(x,[2 1])\nA: r(y,[])\n";
    let folder = Folder::with(&[("lists.hist", lists)]);
    let status = |without: &str| {
        folder.isolde(&format!("check lists.hist -q -l session-serializable{without}")).status
    };
    assert_eq!((status(""), status(" --without read-modify-write")), (1, 1));
    assert_eq!(status(" --without lists"), 0);
}

/// It was replayed with all sources of order only, although it needs no order of versions.
#[test]
fn a_timed_history_is_replayed_without_read_modify_writes_too() {
    let timed = "A @1..2: w(x,1)\nB @3..4: r(x,1) w(x,2)\n";
    let folder = Folder::with(&[("timed.hist", timed)]);
    let run = folder.isolde("check timed.hist -v -l sser --without read-modify-write");
    let replayed = "repairs of the order of times: 0)\n";
    assert!(run.status == 0 && run.stderr.ends_with(replayed), "{}", run.stderr);
}

#[test]
fn a_certificate_is_verified_and_one_of_another_history_is_not() {
    let folder = folder();
    let checked = folder.isolde("check fractured.hist -q -l ser -l rc --certificate proof");
    assert_eq!(checked.status, 1);
    let verified = folder.isolde("verify proof fractured.hist");
    assert_eq!(
        (verified.status, &*verified.stderr, verified.stdout.lines().count()),
        (0, "", 2),
        "{}",
        verified.stdout
    );
    let other = folder.isolde("verify proof good.hist");
    assert_eq!((other.status, &*other.stdout), (3, ""));
    let damaged = folder.read("proof").replace("violated", "satisfied");
    folder.write("damaged", damaged.as_bytes());
    assert_ne!(folder.isolde("verify damaged fractured.hist").status, 0);
}

#[test]
fn threads_change_no_byte_of_a_passing_result() {
    let folder = Folder::with(&[]);
    let size = "--transactions 700 --sessions 9 --keys 60 --operations 6 --times transactions";
    for isolation in ["snapshot-isolation", "serializable"] {
        let generated =
            folder.isolde(&format!("gen {size} --isolation {isolation} -o medium.hist"));
        assert_eq!(generated.status, 0, "{}", generated.stderr);
        let results = ["1", "2"].map(|threads| {
            let run = folder.isolde(&format!(
                "check medium.hist --threads {threads} --certificate proof{threads}"
            ));
            (run, folder.read(&format!("proof{threads}")))
        });
        assert!(results[0] == results[1], "{isolation} depends on the number of threads");
        assert_eq!(results[0].0.status, 0, "{}", results[0].0.stderr);
    }
}

#[test]
fn a_history_larger_than_the_memory_limit_is_refused() {
    for (limit, told) in [("1", "1 B"), ("1K", "1 KiB")] {
        let message = format!(
            "isolde: good.hist: expected a history that fits in {told}, found one that does not \
             after 0 transactions (give more with --memory, or check a part of the history)\n"
        );
        assert_eq!(
            folder().isolde(&format!("check good.hist --memory {limit}")),
            refused(&message)
        );
    }
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
    // They are asked about the same levels, and these say the same.
    assert_eq!(
        folder().isolde("check fractured.hist --engine reference -q"),
        folder().isolde("check fractured.hist -q")
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
    let message = "error: invalid value 'perfect' for '--level <LEVEL>': expected a level \
                   (read-uncommitted, ";
    assert!(run.stderr.starts_with(message), "{}", run.stderr);
    assert!(run.stderr.contains("), found `perfect`\n"), "{}", run.stderr);
}

#[test]
fn verbose_tells_stages_on_standard_error() {
    let run = folder().isolde("check good.hist -v -q -l causal");
    assert_eq!((run.status, &*run.stdout), (0, "good.hist\tcausal\tsatisfied\n"));
    assert!(run.stderr.starts_with("isolde: good.hist: parse "), "{}", run.stderr);
}

#[test]
fn the_guide_shows_what_is_printed() {
    let guide = include_str!("../../../../docs/guide.md");
    let run = Folder::with(&[("orders.hist", FRACTURED)]).isolde("check orders.hist");
    let (shown, gate) = run.stdout.rsplit_once("gate: ").expect("a last line");
    for paragraph in shown.trim_end().split("\n\n") {
        assert!(guide.contains(paragraph), "not in the guide:\n{paragraph}");
    }
    let levels = " --level read-your-writes --level monotonic-reads ";
    assert!(gate.starts_with(&format!("isolde check orders.hist{levels}")), "{gate}");
}

#[test]
fn anomalies_of_linearizability_are_told_by_their_operations() {
    let told = |history: &str| {
        let folder = Folder::with(&[("it.hist", history)]);
        let run = folder.isolde("check it.hist --level linearizable");
        assert_eq!(run.status, 1, "{}", run.stdout);
        let lines = run.stdout.lines().skip_while(|line| !line.starts_with("not ")).skip(1);
        lines.take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        told("A @1..2: w(x,1)\nB @3..4: r(x,nil)\n"),
        "stale read (Elle's G-single-item-realtime)\nA wrote x = 1 (it.hist:1)\n\
         B began only after that and saw what was there before anybody wrote: B read x = nil \
         (it.hist:2)"
    );
    assert_eq!(
        told("A @1..2: r(x,1)\nB @3..4: w(x,1)\n"),
        "read before write (Elle's G1c-realtime)\nA read x = 1 (it.hist:1)\n\
         B wrote x = 1 (it.hist:2), and began only after that"
    );
    assert_eq!(
        told("A @1..2: w(x,1)\nB @1..2: w(x,2)\nC @3..4: r(x,1)\nD @5..6: r(x,2)\n"),
        "stale read (Elle's G-single-item-realtime)\nA wrote x = 1 (it.hist:1), before D began\nD read x = 2 (it.hist:4)\n\
         B wrote x = 2 (it.hist:2), before C began\nC read x = 1 (it.hist:3)\n\
         so each of the two values would have to come before the other"
    );
    assert_eq!(
        told("A @1..2: w(x,1)\nB @3..4: r(x,1) w(x,2)\nC @5..6: r(x,1)\n"),
        "stale read (Elle's G-single-item-realtime)\nB replaced x = 1 by 2 (it.hist:2)\n\
         C read x = 1 (it.hist:3), which comes before that, and began only after it"
    );
    assert_eq!(
        told("A @1..3: r(x,nil) w(x,1)\nB @2..4: r(x,nil) w(x,2)\n"),
        "compare-and-set succeeded twice (Elle's lost-update)\nA replaced x = nil by 1 (it.hist:1)\n\
         B replaced x = nil by 2 (it.hist:2)\nwhat both found was there only once"
    );
    assert_eq!(
        told(
            "A @1..2: c(:acquire,nil)\nB @3..6: c(:acquire,nil)\nC @5..9: c(:acquire,nil) unknown\nD @7..8: c(:release,nil)\n"
        ),
        "operation that nothing explains\nB acquired the lock (it.hist:2)\nA had acquired it (it.hist:1), and \
         session A had not begun to release it\nthat is the acquire number 2 to succeed, and only 0 releases \
         were begun before it ended: so two held the lock at once"
    );
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

/// An aggregate failed, and the note beside it said that nothing could.
#[test]
fn levels_are_not_said_to_hold_for_nothing_beside_one_that_is_violated() {
    let sum = "init *=0\nA: w(x,1) unknown\nB: p(sum all -> 2)\n";
    let folder = Folder::with(&[("sum", sum)]);
    for levels in ["", "--level causal", "--level causal --level serializable"] {
        let run = folder.isolde(&format!("check sum {levels}"));
        assert!(run.stdout.contains("satisfied") && !run.stdout.contains("note:"), "{run:?}");
    }
}

/// A recording that failed before its first commit opened every gate.
#[test]
fn a_gate_does_not_open_for_nothing() {
    for history in ["# isolde-history 1\n", "A: w(x,1) aborted\nB: w(x,2) unknown\n"] {
        let folder = Folder::with(&[("it.hist", history)]);
        let report = folder.isolde("check it.hist");
        assert_eq!((report.status, report.stderr.as_str()), (0, ""), "{history}");
        assert!(report.stdout.contains("nothing was tested (nothing-committed)"), "{report:?}");
        assert!(!report.stdout.contains("gate: "), "{report:?}");
        for (option, status) in [("", 2), (" --unknown pass", 0), (" --unknown fail", 1)] {
            let run = folder.isolde(&format!("check it.hist --level serializable --quiet{option}"));
            let expected = Run {
                status,
                stdout: "it.hist\tserializable\tsatisfied\n".to_owned(),
                stderr: "isolde: it.hist: no transaction committed, so nothing was tested\n"
                    .to_owned(),
            };
            assert_eq!(run, expected, "{history}");
        }
    }
    let folder = Folder::with(&[("it.hist", "A: w(x,1) aborted\nB: w(x,2)\n")]);
    assert_eq!(folder.isolde("check it.hist --level serializable --quiet").status, 0);
}

#[test]
fn every_broken_level_is_shown_or_says_where() {
    let folder = Folder::with(&[("h.txt", "A: w(x,1) w(y,1)\nB: r(x,1) r(y,nil)\nB: r(x,nil)\n")]);
    let run = folder.isolde("check h.txt");
    let broken = run.stdout.lines().find_map(|line| line.strip_prefix("broken: "));
    let broken: Vec<&str> = broken.expect("something is broken").split(", ").collect();
    assert!(broken.len() > 1, "{broken:?}");
    for level in broken {
        assert!(run.stdout.contains(&format!("\nnot {level}:")), "{level}:\n{}", run.stdout);
    }
}

#[test]
fn a_long_fork_among_many_blind_writes_leaves_parallel_snapshot_isolation_decided() {
    let folder = Folder::with(&[]);
    let gen_options = "--preset BlindW-RW --transactions 2000 --anomaly long-fork --to text";
    assert_eq!(folder.isolde(&format!("gen {gen_options} -o fork.txt")).status, 0);
    let levels = "--level parallel-snapshot-isolation --level snapshot-isolation";
    let run = folder.isolde(&format!("check fork.txt {levels}"));
    let told = |level: &str, verdict: &str| {
        let mut lines = run.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert!(lines.any(|words| words.starts_with(&[level, verdict])), "{}", run.stdout);
    };
    told("parallel-snapshot-isolation", "satisfied");
    told("snapshot-isolation", "violated");
}

#[cfg(not(feature = "cadical"))]
#[test]
fn an_engine_that_was_not_built_in_is_refused_with_the_way_to_have_it() {
    let message = "isolde: this isolde was built without CaDiCaL; with it: cargo build --release \
                   -p isolde-cli --features cadical\n";
    assert_eq!(folder().isolde("check good.hist --engine cadical"), refused(message));
}

#[cfg(feature = "cadical")]
#[test]
fn cadical_gives_the_same_verdicts_and_no_certificate() {
    let quiet = folder().isolde("check fractured.hist -q");
    assert_eq!(folder().isolde("check fractured.hist -q --engine cadical"), quiet);
    let message = "isolde: --certificate needs the fast engine: CaDiCaL proves nothing\n";
    let run = folder().isolde("check good.hist --engine cadical --certificate c");
    assert_eq!(run, refused(message));
}
