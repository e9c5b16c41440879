//! Orders that came with a history: a wrong claim is told from a violated level.

use crate::support::Folder;

/// The lines of a report that speak of given orders, and the status.
fn told(history: &str, arguments: &str) -> (i32, Vec<String>) {
    let folder = Folder::with(&[("h.txt", history)]);
    let run = folder.isolde(&format!("check h.txt {arguments}"));
    let about = |line: &&str| line.contains("order") || line.contains("serializ");
    (run.status, run.stdout.lines().filter(about).map(str::to_owned).collect())
}

const WRITERS: &str = "A: w(x,1)\nB: w(x,2)\nC: r(x,1)\n";

#[test]
fn a_serialization_order_that_explains_the_history_is_said_to() {
    assert_eq!(
        told(&format!("{WRITERS}serial: B A C\n"), "--level serializable"),
        (
            0,
            vec![
                "h.txt: serializable holds".to_owned(),
                "  serializable  satisfied".into(),
                "the serialization order that came with it explains every read".into(),
                "holds: serializable".into(),
            ]
        )
    );
}

#[test]
fn a_wrong_serialization_order_of_a_serializable_history_is_a_wrong_claim() {
    assert_eq!(
        told(&format!("{WRITERS}serial: A B C\n"), "--level serializable"),
        (
            0,
            vec![
                "h.txt: serializable holds".to_owned(),
                "  serializable  satisfied".into(),
                "the serialization order that came with it does not explain it:".into(),
                "  the last before it in the order is that of B with x = 2 (h.txt:2)".into(),
                "  another order does: the claim is wrong, not the level".into(),
                "holds: serializable".into(),
                "refuted: serialization-order".into(),
            ]
        )
    );
}

#[test]
fn a_history_that_no_order_explains_is_violated_outright() {
    let skew = "A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\nserial: A B\n";
    let (status, lines) = told(skew, "--level serializable");
    assert_eq!(status, 1);
    assert!(lines.contains(&"  no other order does either".to_owned()), "{lines:?}");
}

#[test]
fn the_report_names_the_transactions_of_a_wrong_claim() {
    let folder = Folder::with(&[("h.txt", &format!("{WRITERS}serial: A B C\n"))]);
    let run = folder.isolde("check h.txt --level serializable --format json");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let expected = serde_json::json!({
        "explains": false,
        "transactions": ["C", "A", "B"],
        "explanation": "C read x = 1 from A (h.txt:3)\n\
                        the last before it in the order is that of B with x = 2 (h.txt:2)",
    });
    assert_eq!(report["serialization_order"], expected);
}

#[test]
fn a_level_violated_only_under_given_version_orders_says_so() {
    // By the given order C saw x overwritten by B, and y as it was before B.
    let history = "A: w(x,1)\nB: w(x,2) w(y,2)\nC: r(y,2) r(x,1)\norder x: 1 2\n";
    let (status, lines) = told(history, "--level serializable");
    let told_so = "(only by what the database told: satisfied without it)";
    let headline = "h.txt: not serializable by the order that was told: ";
    assert!(lines[0].starts_with(headline), "{lines:?}");
    assert_eq!(lines[1], "judged with partial version orders of 1 key");
    assert_eq!((status, lines[2].as_str()), (1, &*format!("  serializable  violated  {told_so}")));
    let run = Folder::with(&[("h.txt", history)]).isolde("check h.txt --without given -q -l ser");
    assert_eq!(run.status, 0);
}

#[test]
fn a_level_violated_outright_says_so_beside_given_version_orders() {
    let history = "A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\nC: w(z,1)\nD: w(z,2)\norder z: 1 2\n";
    let (status, lines) = told(history, "--level serializable");
    let told_so = "(without what the database told too)";
    assert_eq!(lines[0], "h.txt: not serializable: write skew between A and B");
    assert_eq!(lines[1], "judged with partial version orders of 1 key");
    assert_eq!((status, lines[2].as_str()), (1, &*format!("  serializable  violated  {told_so}")));
}

/// Two things that the database told and that cannot both be so, while every level holds.
const PARTED: &str = "A ts=3..4: w(x,1)\nB ts=1..2: w(x,2)\norder x: 1 2\n";

#[test]
fn sources_that_contradict_each_other_are_a_finding_though_the_level_holds() {
    let folder = Folder::with(&[("h.txt", PARTED)]);
    let run = folder.isolde("check h.txt --level serializable");
    assert_eq!(run.status, 0);
    let expected = "\nthe timestamps and the order of versions contradict each other:\n  \
         the database installed x of A before that of B\n  \
         by their timestamps B committed at 2, before A did at 4\n  \
         no level is violated by what was seen: one of them is wrong\n\n\
         holds: serializable\nrefuted: timestamps against version-order\n";
    assert!(run.stdout.ends_with(expected), "{}", run.stdout);
    let run = folder.isolde("check h.txt --level serializable --quiet");
    let expected = "h.txt\tserializable\tsatisfied\n\
                    h.txt\ttimestamps against version-order\trefuted\n";
    assert_eq!((run.status, run.stdout.as_str()), (0, expected));
}

#[test]
fn a_refuted_claim_fails_the_gate_of_those_who_ask_for_it() {
    for (history, expected) in [
        (PARTED, 1),
        ("A ts=1..2: w(x,1)\nB ts=3..4: w(x,2)\norder x: 1 2\n", 0),
        (&format!("{WRITERS}serial: A B C\n"), 1),
        (&format!("{WRITERS}serial: B A C\n"), 0),
        ("A ts=1..3: w(x,1)\nB ts=2..4: r(x,1)\n", 1),
        ("A id=1: w(x,1)\nB sees=1: r(x,1)\n", 1),
        ("A id=1: w(x,1)\nB sees=2: r(x,1)\n", 0),
        (WRITERS, 0),
    ] {
        let folder = Folder::with(&[("h.txt", history)]);
        assert_eq!(
            folder.isolde("check h.txt -l serializable --claims").status,
            expected,
            "{history}"
        );
        assert_eq!(folder.isolde("check h.txt -l serializable").status, 0, "{history}");
    }
}

#[test]
fn the_report_names_the_sources_and_transactions_of_a_conflict() {
    let history = "A id=1: w(x,1)\nB id=2: w(x,2)\nC sees=3: r(x,1)\norder x complete: 1 2\n";
    let folder = Folder::with(&[("h.txt", history)]);
    let run = folder.isolde("check h.txt --level serializable --format json");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let expected = serde_json::json!([{
        "between": ["snapshot", "read"],
        "transactions": ["C", "A", "B"],
        "explanation": "C read x = 1 from A (h.txt:3)\n\
                        the snapshot that the database told of it sees B with x = 2 (h.txt:2), \
                        which was installed later",
    }]);
    assert_eq!(report["conflicts"], expected);
    assert_eq!(report["refuted"], serde_json::json!(["snapshot against read"]));
}

#[test]
fn a_conflict_says_whether_a_level_is_violated_whichever_source_is_right() {
    let skew = "C: r(u,nil) w(v,1)\nD: r(v,nil) w(u,1)\n";
    let last = |history: &str| {
        let folder = Folder::with(&[("h.txt", history)]);
        let run = folder.isolde("check h.txt --level serializable");
        let told = run.stdout.lines().rfind(|line| line.contains("is violated"));
        (run.status, told.unwrap_or_default().trim().to_owned())
    };
    let outright = "serializable is violated whichever of them is right".to_owned();
    assert_eq!(last(&format!("{PARTED}{skew}")), (1, outright));
    let only = "C: w(z,1)\nD: w(z,2) w(y,2)\nE: r(y,2) r(z,1)\norder z: 1 2\n";
    let by_told =
        "serializable is violated only by what the database told: it or one of them is wrong";
    assert_eq!(last(&format!("{PARTED}{only}")), (1, by_told.to_owned()));
}
