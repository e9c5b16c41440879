//! `isolde check`: options that change what is asked, and whether the answer says so.

use crate::support::{Folder, refused};

/// A transaction whose client's clock was set back.
const SET_BACK: &str = "A @10..5: w(x,1)\nB @11..12: r(x,1)\n";

#[test]
fn an_end_before_the_beginning_is_noted_and_violates_nothing() {
    let folder = Folder::with(&[("back.hist", SET_BACK)]);
    let run = folder.isolde("check back.hist -l sser -l strong-si -l gsi -l pcsi -l lin");
    let note = "\nnote: a transaction or operation ended before it began; levels of real time take \
                its beginning for its end (completed-before-invoked)\n  such as: A was invoked at \
                10 and ended at 5\n";
    assert!(run.status == 0 && run.stdout.contains(note), "{}", run.stdout);
    assert_eq!(folder.isolde("explain back.hist -l sser").status, 0);
}

#[test]
fn a_clock_drift_can_be_a_few_nanoseconds() {
    let folder = Folder::with(&[("stale.hist", "A @1..2: w(x,1)\nB @5..6: r(x,nil)\n")]);
    for engine in ["fast", "reference"] {
        let status = |drift: &str| {
            let options = format!("-q -l sser --engine {engine} --clock-drift {drift}");
            folder.isolde(&format!("check stale.hist {options}")).status
        };
        assert_eq!([status("0"), status("2ns"), status("3ns"), status("1us")], [1, 1, 0, 0]);
    }
}

#[test]
fn the_definitions_refuse_to_do_without_a_source() {
    let message = "isolde: the definitions use all there is: expected --engine reference without \
                   --without, or with --without given alone\n";
    let folder = Folder::with(&[("back.hist", SET_BACK)]);
    for source in ["lists", "read-modify-write", "session", "real-time"] {
        let run = folder.isolde(&format!("check back.hist --engine reference --without {source}"));
        assert_eq!(run, refused(message), "{source}");
    }
}

/// Two lists of which one shows the appends in one order and one in the other.
const OPPOSITE: &str = "A: a(x,1) a(y,1)\nB: a(x,2) a(y,2)\nC: r(x,[1 2])\nD: r(y,[2 1])\n";

#[test]
fn what_was_left_out_is_told_with_the_answer() {
    let folder = Folder::with(&[("lists.hist", OPPOSITE)]);
    let run = folder.isolde("check lists.hist --without lists");
    let note = "\nnote: the order in which lists show their elements was left out: a level that is \
                satisfied is only not refuted by what remains (without-lists)\n";
    assert!(run.status == 0 && run.stdout.contains(note), "{}", run.stdout);
    let gate = "gate: isolde check lists.hist --level session-serializable --without lists\n";
    assert!(run.stdout.ends_with(gate), "{}", run.stdout);
    let json = folder.isolde("check lists.hist --format json --without lists --without given");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let notes = json["notes"].as_array().expect("a list of notes");
    let names: Vec<&str> = notes.iter().filter_map(|note| note["name"].as_str()).collect();
    assert_eq!(names, ["without-lists", "without-given"]);
    assert!(!folder.isolde("check lists.hist").stdout.contains("note:"));
}

#[test]
fn the_reason_of_a_violation_is_asked_with_the_same_options() {
    let skew = "A @1..2: w(x,1)\nB @900000..900001: r(x,nil)\nC: r(z,[1])\n";
    let folder = Folder::with(&[("stale.hist", skew)]);
    let run = folder.isolde("check stale.hist --level rc --without given --clock-drift 5us");
    let why = "why: isolde explain stale.hist --level read-committed --clock-drift 5us --without \
               given\n";
    assert!(run.status == 1 && run.stdout.ends_with(why), "{}", run.stdout);
    let explain = why.strip_prefix("why: isolde ").expect("a command").trim_end();
    assert_eq!(folder.isolde(explain).status, 1);
}

/// A session that missed what it wrote, long after.
const MISSED: &str = "A @1..2: w(x,1)\nA @5..6: r(x,nil)\n";

#[test]
fn without_session_order_its_levels_are_refuted_or_unknown() {
    let files = [
        ("missed.hist", MISSED),
        ("seen.hist", "A @1..2: w(x,1)\nA @5..6: r(x,1)\n"),
        ("fork.hist", "A: w(x,1) w(y,1)\nB: r(x,1) r(y,nil)\n"),
    ];
    let folder = Folder::with(&files);
    let asked = "-q -l ser -l session-serializable -l ryw -l ra --without session";
    let run = folder.isolde(&format!("check missed.hist {asked}"));
    let told = "missed.hist\tread-atomic\tunknown\nmissed.hist\tread-your-writes\tunknown\n\
                missed.hist\tserializable\tsatisfied\n\
                missed.hist\tsession-serializable\tunknown\n";
    assert_eq!((run.status, &*run.stdout), (2, told));
    // Real time tells the same here, and what needs neither is found.
    let status = |options: &str| folder.isolde(&format!("check {options}")).status;
    assert_eq!(status("missed.hist -l sser --without session"), 1);
    assert_eq!(status("missed.hist -l sser --without session --without real-time"), 2);
    assert_eq!(status("seen.hist -l ryw --without session"), 2);
    assert_eq!(status("fork.hist -l ra --without session"), 1);
    assert_eq!(status("fork.hist -l session-serializable --without session"), 1);
    let run = folder.isolde("check missed.hist -l session-si --without session");
    let reason = "session order, which is part of this level, was switched off";
    assert!(run.stdout.contains(reason), "{}", run.stdout);
    let note = "\nnote: the order of each session was left out: levels that it is part of are \
                violated or unknown (without-session)\n";
    assert!(run.stdout.contains(note), "{}", run.stdout);
}

#[test]
fn without_real_time_its_levels_are_refuted_or_unknown() {
    let stale = "A @1..2: w(x,1)\nB @5..6: r(x,nil)\n";
    let folder = Folder::with(&[("stale.hist", stale), ("missed.hist", MISSED)]);
    let asked = "-q -l ser -l session-serializable -l sser -l strong-si -l lin --without real-time";
    let run = folder.isolde(&format!("check stale.hist {asked}"));
    let told = "stale.hist\tstrong-snapshot-isolation\tunknown\n\
                stale.hist\tserializable\tsatisfied\n\
                stale.hist\tsession-serializable\tsatisfied\n\
                stale.hist\tstrict-serializable\tunknown\nstale.hist\tlinearizable\tunknown\n";
    assert_eq!((run.status, &*run.stdout), (2, told));
    // Its session tells the same.
    for level in ["sser", "strong-si", "lin"] {
        let run = folder.isolde(&format!("check missed.hist -l {level} --without real-time"));
        assert_eq!(run.status, 1, "{level}");
    }
    let json = folder.isolde("check stale.hist -l sser --format json --without real-time");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["notes"][0]["name"], "without-real-time");
    let reason = "real time, which is part of this level, was switched off";
    assert!(json.to_string().contains(reason), "{json}");
}

#[test]
fn without_lists_the_lattice_still_holds() {
    let folder = Folder::with(&[("lists.hist", OPPOSITE)]);
    let run = folder.isolde("check lists.hist -q -l ser -l rc -l ru --without lists");
    let told = "lists.hist\tread-uncommitted\tsatisfied\nlists.hist\tread-committed\tsatisfied\n\
                lists.hist\tserializable\tsatisfied\n";
    assert_eq!((run.status, &*run.stdout), (0, told));
    assert_eq!(folder.isolde("check lists.hist -q -l rc --without lists").status, 0);
    assert_eq!(folder.isolde("check lists.hist -q -l rc").status, 1);
}

#[test]
fn a_level_of_real_time_that_holds_for_want_of_times_is_noted() {
    let folder = Folder::with(&[
        ("some.hist", "A @1..2: w(x,1)\nB: r(x,nil)\nC: r(x,1)\n"),
        ("all.hist", "A @1..2: w(x,1)\nB @1..3: r(x,nil)\nC @1..4: r(x,1)\n"),
    ]);
    let note = "\nnote: committed transactions lack the time of their invocation or completion, so \
                real time says less of them than it could, and levels of real time hold more \
                easily (missing-times)\n  such as: 1 of 3 committed transactions have both times, B \
                has not\n";
    for level in ["strict-serializable", "linearizable"] {
        let run = folder.isolde(&format!("check some.hist --level {level}"));
        assert!(run.status == 0 && run.stdout.contains(note), "{}", run.stdout);
    }
    for command in ["check some.hist --level serializable", "check all.hist --level sser"] {
        let run = folder.isolde(command);
        assert!(run.status == 0 && !run.stdout.contains("missing-times"), "{}", run.stdout);
    }
}
