//! `check --certificate` and `verify`.

use crate::support::{FRACTURED, Folder, GOOD, Run, printed, refused};
use serde_json::{Value, json};

/// A folder with a history and the certificate of its levels.
fn certified(history: &str) -> Folder {
    let folder = Folder::with(&[("h.txt", history)]);
    let run = folder.isolde("check h.txt -q --certificate h.cert");
    assert_eq!((run.status, run.stderr), (0, String::new()));
    folder
}

#[test]
fn what_check_certifies_verify_accepts() {
    let expected = "\
read-uncommitted: satisfied, verified by session-serializable (2 events replayed)
adya-read-committed: satisfied, verified by session-serializable (2 events replayed)
monotonic-atomic-view: satisfied, verified by session-serializable (2 events replayed)
read-committed: satisfied, verified by session-serializable (2 events replayed)
read-atomic: satisfied, verified by session-serializable (2 events replayed)
read-your-writes: satisfied, verified by session-serializable (2 events replayed)
monotonic-reads: satisfied, verified by session-serializable (2 events replayed)
monotonic-writes: satisfied, verified by session-serializable (2 events replayed)
writes-follow-reads: satisfied, verified by session-serializable (2 events replayed)
causal: satisfied, verified by session-serializable (2 events replayed)
cursor-stability: satisfied, verified by session-serializable (2 events replayed)
update-atomic: satisfied, verified by session-serializable (2 events replayed)
prefix: satisfied, verified by session-serializable (2 events replayed)
parallel-snapshot-isolation: satisfied, verified by session-serializable (2 events replayed)
repeatable-read: satisfied, verified by session-serializable (2 events replayed)
snapshot-isolation: satisfied, verified by session-serializable (2 events replayed)
session-snapshot-isolation: satisfied, verified by session-serializable (2 events replayed)
serializable: satisfied, verified by session-serializable (2 events replayed)
session-serializable: satisfied, verified (2 events replayed)
";
    assert_eq!(certified(GOOD).isolde("verify h.cert h.txt"), printed(0, expected));
}

#[test]
fn calls_of_locks_have_certificates_of_linearizability() {
    let taken = "A @1..2: c(:acquire,nil)\nB @3..6: c(:acquire,nil)\n";
    let released = format!("{taken}C @4..5: c(:release,nil)\n");
    let told = "linearizable: satisfied, verified (3 events replayed)\n";
    let folder = Folder::with(&[("good.txt", &released), ("bad.txt", taken)]);
    let check = |name: &str| {
        folder.isolde(&format!("check {name}.txt -q -l linearizable --certificate {name}.cert"))
    };
    assert_eq!((check("good").status, check("bad").status), (0, 1));
    assert_eq!(folder.isolde("verify good.cert good.txt"), printed(0, told));
    let told = "linearizable: violated, verified (2 configurations of all orders)\n";
    assert_eq!(folder.isolde("verify bad.cert bad.txt"), printed(0, told));
}

#[test]
fn compressed_certificates_and_other_formats_of_the_history_are_accepted() {
    let folder = certified(FRACTURED);
    let expected = folder.isolde("verify h.cert h.txt");
    assert_eq!(expected.status, 0);
    let packed = zstd::encode_all(folder.read("h.cert").as_bytes(), 1).expect("memory");
    folder.write("h.cert.zst", &packed);
    assert_eq!(folder.isolde("verify h.cert.zst h.txt"), expected);
    assert_eq!(folder.isolde("convert h.txt --to binary -o h.isolde").status, 0);
    assert_eq!(folder.isolde("verify h.cert h.isolde"), expected);
}

#[test]
fn a_changed_proof_is_refused_and_says_where() {
    let folder = Folder::with(&[("h.txt", FRACTURED)]);
    let levels = "-l mav -l rc -l ra -l cc -l adya-rc";
    assert_eq!(folder.isolde(&format!("check h.txt -q {levels} --certificate h.cert")).status, 1);
    let text = folder.read("h.cert");
    let step = "step c0 c1 reads-from 2 0";
    assert!(text.contains(step), "{text}");
    folder.write("h.cert", text.replace(step, "step c0 c1 reads-from 3 0").as_bytes());
    let run = folder.isolde("verify h.cert h.txt");
    let told = run.stdout.find("monotonic-atomic-view").map(|start| &run.stdout[start..]);
    assert_eq!(
        (run.status, told),
        (
            1,
            Some(
                "monotonic-atomic-view: violated, refused: claim 1: step 0: operation 3 does not \
                 tell what it saw of key 0\n  and 3 more levels for the same reason: \
                 read-committed, read-atomic, causal\n"
            )
        )
    );
}

#[test]
fn json_tells_the_same() {
    let folder = Folder::with(&[("h.txt", FRACTURED)]);
    folder.isolde("check h.txt --level causal --certificate h.cert");
    let run = folder.isolde("verify h.cert h.txt --format json");
    let expected = json!({
        "schema": 1,
        "history": {"sessions": 2, "transactions": 2, "operations": 4},
        "clock_drift": 0,
        "verified": true,
        "levels": {"causal": {
            "verdict": "violated",
            "verified": true,
            "shown_at": "causal",
            "explanation": "3 steps",
        }},
    });
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).expect("JSON"), expected);
}

#[test]
fn a_certificate_of_another_history_is_bad_input() {
    let folder = certified(GOOD);
    folder.write("other.txt", FRACTURED.as_bytes());
    let Run { status, stdout, stderr } = folder.isolde("verify h.cert other.txt");
    assert_eq!((status, stdout.as_str()), (3, ""));
    let start = "isolde: h.cert: certificate of another history: expected 2 transactions and 2 \
                 operations in 2 sessions, fingerprint ";
    assert!(stderr.starts_with(start), "{stderr}");
}

#[test]
fn what_is_no_certificate_is_bad_input() {
    let folder = Folder::with(&[("h.txt", GOOD)]);
    assert_eq!(
        folder.isolde("verify h.txt h.txt"),
        refused("isolde: h.txt: line 1: expected `isolde-certificate 2`, found `A: w(x,1)`\n")
    );
}

#[test]
fn levels_without_a_proof_are_left_out_with_the_reason() {
    let history = "A: w(x,1)\nB: a(x,2)\nC: r(y,5)\n";
    let folder = Folder::with(&[("h.txt", history)]);
    let run = folder.isolde("check h.txt --level serializable -q --certificate h.cert");
    assert_eq!(
        run,
        Run {
            status: 1,
            stdout: "h.txt\tserializable\tviolated\n".into(),
            stderr:
                "isolde: serializable is not in the certificate: the history uses a key both as a \
                     register and as a list\n"
                    .into(),
        }
    );
    let nothing = "nothing is claimed, so nothing is verified";
    assert_eq!(folder.isolde("verify h.cert h.txt"), printed(2, &format!("{nothing}\n")));
}

/// A certificate whose claims were cut out opened every gate on the exit status.
#[test]
fn a_certificate_without_claims_verifies_nothing() {
    let folder = certified(GOOD);
    let certificate = folder.read("h.cert");
    let head = certificate.lines().take_while(|line| !line.starts_with("claims "));
    let gutted: String =
        head.map(|line| format!("{line}\n")).chain(["claims 0\n".into()]).collect();
    folder.write("gutted.cert", gutted.as_bytes());
    let run = folder.isolde("verify gutted.cert h.txt --format json");
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let said = (run.status, &json["verified"], &json["levels"], &json["reason"]);
    let reason = json!("nothing is claimed, so nothing is verified");
    assert_eq!(said, (2, &json!(false), &json!({}), &reason));
}

#[test]
fn a_certificate_is_for_one_history_and_the_engine() {
    let folder = Folder::with(&[("h.txt", GOOD)]);
    assert_eq!(
        folder.isolde("check h.txt h.txt --certificate c"),
        refused("isolde: --certificate is for one history at a time\n")
    );
    assert_eq!(
        folder.isolde("check h.txt --engine reference --certificate c"),
        refused("isolde: --certificate needs the fast engine: the reference proves nothing\n")
    );
    let otherwise = "isolde: --certificate proves what levels mean by themselves: expected it \
                     without --without lists or given\n";
    for option in ["--without lists", "--without given"] {
        let run = folder.isolde(&format!("check h.txt {option} --certificate c"));
        assert_eq!(run, refused(otherwise), "{option}");
    }
    for source in ["read-modify-write", "session", "real-time"] {
        folder.isolde(&format!("check h.txt -q --without {source} --certificate c"));
        assert_eq!(folder.isolde("verify c h.txt").status, 0, "{source}");
    }
}

#[test]
fn the_example_of_the_documentation_is_what_is_written() {
    let history = include_str!("../../../../corpus/anomalies/causality-violation.txt");
    let folder = Folder::with(&[("h.txt", history)]);
    folder.isolde("check h.txt --level causal --certificate h.cert");
    let page = include_str!("../../../../docs/certificate.md");
    assert!(page.contains(&format!("```\n{}```\n", folder.read("h.cert"))));
    assert_eq!(
        folder.isolde("verify h.cert h.txt"),
        printed(0, "causal: violated, verified (4 steps)\n")
    );
}

#[test]
fn a_certificate_says_how_far_clocks_may_be_apart() {
    let stale = "A @0..10: w(x,1)\nB @20000010..20000020: r(x,nil)\n";
    let folder = Folder::with(&[("h.txt", stale)]);
    let certify = |drift: &str| {
        folder.isolde(&format!("check h.txt -q -l sser --clock-drift {drift} --certificate c"))
    };
    assert_eq!(certify("19ms").status, 1);
    let verified = "strict-serializable: violated, verified (2 steps)\n\
                    with clocks up to 19000000 ns apart\n";
    assert_eq!(folder.isolde("verify c h.txt"), printed(0, verified));
    assert_eq!(certify("21ms").status, 0);
    let verified = "strict-serializable: satisfied, verified (2 events replayed)\n\
                    with clocks up to 21000000 ns apart\n";
    assert_eq!(folder.isolde("verify c h.txt"), printed(0, verified));
    // The order is none for clocks that are nearer.
    folder.write("nearer", folder.read("c").replace("21000000", "19000000").as_bytes());
    assert_eq!(
        folder.isolde("verify nearer h.txt"),
        printed(
            1,
            "strict-serializable: satisfied, refused: claim 0: event 1, c0: transaction 1 was \
             invoked after it completed\nwith clocks up to 19000000 ns apart\n"
        )
    );
}
