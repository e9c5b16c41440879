//! `isolde explain` and `isolde shrink`.

use crate::support::{FRACTURED, Folder, GOOD};
use serde_json::Value;

#[test]
fn an_explanation_says_what_happened_why_it_cannot_be_and_what_it_means() {
    let folder = Folder::with(&[("h.txt", FRACTURED)]);
    let run = folder.isolde("explain h.txt --level read-atomic");
    let expected = "\
not read-atomic: fractured, non-monotonic read (an observed transaction vanishes) (Adya's G-single, Elle's G-single-item)

  B saw x = 1 of A, but missed its y = 1: it read y = nil.

  Who did what:
    B  session B
       read x = 1, read y = nil (h.txt:2)
    A  session A
       wrote x = 1, wrote y = 1 (h.txt:1)

  Why that cannot be:
    1. B comes before A: B read y = nil, which A replaced with y = 1 (h.txt:2, 1). [rw on y]
    2. A comes before B: B read x = 1, which A wrote (h.txt:1, 2). [wr on x]
    So B would have to come before A and A before B.

  What it means: A transaction sees another's effect and then an older state without it: half of a change is used as if it were all of it.

";
    assert_eq!((run.status, run.stderr.as_str()), (1, ""));
    let (argument, rules_out) = run.stdout.split_once("  This alone").expect("the last part");
    assert_eq!(argument, expected);
    assert!(rules_out.starts_with(" rules out: monotonic-atomic-view, "), "{rules_out}");
}

/// What a search by condition saw was no assumption that was told: `suppose that .`
#[test]
fn each_case_of_what_a_condition_saw_has_its_own_assumption() {
    let history = "\
I: w(a,1) w(b,20)
B: w(b,5)
A: p(value 0..10; a=1) p(value 0..10; a=1 b=5)
";
    let folder = Folder::with(&[("h.txt", history)]);
    assert_eq!(folder.isolde("check h.txt -l prefix --report json=h.json -q").status, 1);
    let report: Value = serde_json::from_str(&folder.read("h.json")).expect("a report");
    let scenario = &report["levels"]["prefix"]["anomalies"][0]["scenario"];
    let cases = scenario["cases"].as_array().expect("cases");
    let assumptions: Vec<&str> =
        cases.iter().map(|case| case["assumption"].as_str().expect("a text")).collect();
    let looked = "A selected rows with value 0..10 when b was as";
    assert_eq!(
        assumptions,
        [
            format!("{looked} it was at first"),
            format!("{looked} I left it, and the b of B comes before the b of I"),
            format!("{looked} I left it, and the b of I comes before the b of B"),
        ]
    );
    let summary = scenario["summary"].as_str().expect("a text");
    assert!(summary.contains("whichever version of b was there"), "{summary}");
}

/// All edges of a scenario, with those that they follow from.
fn edges(scenario: &Value) -> Vec<&Value> {
    let list = |of: &'static str| scenario[of].as_array().into_iter().flatten();
    let mut all: Vec<&Value> = list("edges").chain(list("facts")).collect();
    let mut next = 0;
    while next < all.len() {
        all.extend(all[next]["because"].as_array().expect("a list"));
        next += 1;
    }
    all
}

/// Steps had no reasons below the third derivation, and what they rest on was not shown.
#[test]
fn a_long_derivation_is_told_down_to_operations_and_each_order_once() {
    let folder = Folder::with(&[]);
    let history = "--transactions 3000 --keys 1500 --read-share 0.3 --isolation snapshot-isolation";
    assert_eq!(folder.isolde(&format!("gen {history} -o h.txt")).status, 0);
    assert_eq!(folder.isolde("check h.txt -l serializable --report json=h.json -q").status, 1);
    let report: Value = serde_json::from_str(&folder.read("h.json")).expect("a report");
    let scenario = &report["levels"]["serializable"]["anomalies"][0]["scenario"];
    let edges = edges(scenario);
    let is_told = |edge: &Value| !edge["because"].as_array().expect("a list").is_empty();
    let mut facts: Vec<u64> = edges.iter().filter_map(|edge| edge["fact"].as_u64()).collect();
    facts.sort_unstable();
    facts.dedup();
    assert!(facts.len() > 2 && facts.last() == Some(&(facts.len() as u64)), "{facts:?}");
    for fact in &facts {
        let of = edges.iter().filter(|edge| edge["fact"] == *fact);
        let told = of.clone().filter(|edge| is_told(edge)).count();
        assert!(told == 1 && of.count() > 1, "F{fact} is told {told} times");
    }
    for edge in &edges {
        // Nobody tells a client that one write replaced another: that is always inferred.
        let is_grounded = is_told(edge) || edge["fact"].is_u64() || edge["left_out"].is_u64();
        assert!(edge["kind"] != "ww" || is_grounded, "{edge}");
        for op in edge["operations"].as_array().expect("a list") {
            let txn =
                &scenario["transactions"][op["transaction"].as_u64().expect("a place") as usize];
            let op = &txn["operations"][op["operation"].as_u64().expect("a place") as usize];
            assert_eq!(op["involved"], true, "{edge}");
        }
    }
    let text = folder.isolde("explain h.txt --level serializable").stdout;
    let told =
        |fact: &u64| text.contains(&format!(" F{fact}. ")) || text.contains(&format!(" F{fact}: "));
    assert!(facts.iter().all(told), "{text}");
    let markdown = folder.isolde("check h.txt -l serializable --format markdown").stdout;
    assert!(markdown.contains(" F1. "), "{markdown}");
    let short = folder.isolde("check h.txt -l serializable").stdout;
    assert!(short.lines().count() < 40 && !short.contains(" F1"), "{short}");
}

#[test]
fn nothing_violated_is_nothing_to_explain_or_shrink() {
    let folder = Folder::with(&[("h.txt", GOOD)]);
    let explained = folder.isolde("explain h.txt");
    assert_eq!((explained.status, explained.stdout.as_str()), (0, "h.txt: nothing is violated\n"));
    let shrunk = folder.isolde("shrink h.txt");
    let message = "isolde: h.txt: nothing is violated, so there is nothing to shrink\n";
    assert_eq!((shrunk.status, shrunk.stdout.as_str(), shrunk.stderr.as_str()), (0, "", message));
}

#[test]
fn what_is_documented_of_a_database_is_said_beside_its_log() {
    let folder = Folder::with(&[
        ("history.txt", FRACTURED),
        (
            "run.json",
            r#"{"history": "there/history.txt", "gate": [{"level": "read-atomic", "verdict": "violated", "documented": "readers do not wait"}]}"#,
        ),
        ("other.txt", FRACTURED),
    ]);
    let documented = "Documented: readers do not wait";
    let of = |file: &str| folder.isolde(&format!("explain {file} --level read-atomic")).stdout;
    assert!(of("history.txt").contains(documented));
    assert!(!of("other.txt").contains(documented));
}

/// Both knew nothing of the run beside the history, and cited lines of the folder or the archive.
#[test]
fn the_folder_and_the_bundle_of_a_run_say_what_is_documented_and_cite_its_log() {
    let folder = Folder::with(&[("history.log", FRACTURED)]);
    let report = folder.isolde("check history.log --format json").stdout;
    let gate = "{\"level\": \"read-atomic\", \"documented\": \"readers\\u001b do not wait\"}";
    std::fs::create_dir(folder.path("run")).expect("a writable folder");
    folder.write("run/history.log", FRACTURED.as_bytes());
    let run =
        format!("{{\"history\": \"there/history.log\", \"gate\": [{gate}], \"report\": {report}}}");
    folder.write("run/run.json", run.as_bytes());
    assert_eq!(folder.isolde("bundle run -o all.tar.gz").status, 0);
    for file in ["run", "all.tar.gz", "run/history.log"] {
        for (command, label) in [
            ("explain FILE", "Documented: "),
            ("check FILE", "documented: "),
            ("check FILE --format markdown", "**Documented:** "),
        ] {
            let told = folder.isolde(&command.replace("FILE", file)).stdout;
            let documented = format!("{label}readers\\u{{1b}} do not wait").replace('\\', "");
            assert!(told.replace('\\', "").contains(&documented), "{command} {file}: {told}");
            assert!(!told.contains('\u{1b}'), "{command} {file}");
            assert!(told.contains("history.log:2"), "{command} {file}: {told}");
            assert!(!told.contains("run:2") && !told.contains("gz:2"), "{command} {file}: {told}");
        }
    }
    let annotation = folder.isolde("check run --format github --level read-atomic").stdout;
    assert!(annotation.starts_with("::error file=run/history.log,line="), "{annotation}");
}

#[test]
fn a_shrunk_history_is_the_smallest_with_its_expectations() {
    let noisy = "\
A: w(x,1) w(y,1) w(z,1)
C: r(z,1) w(v,1)
B: r(x,1) r(y,nil) r(v,1)
D: w(u,1) r(v,1)
";
    let folder = Folder::with(&[("h.txt", noisy)]);
    let run = folder.isolde("shrink h.txt --level read-atomic -o small.txt");
    assert_eq!((run.status, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.starts_with("isolde: h.txt: 2 of 4 transactions, 4 of 10 operations"));
    let small = folder.read("small.txt");
    let lines: Vec<&str> = small.lines().filter(|line| !line.starts_with("# expect")).collect();
    assert_eq!(
        lines,
        [
            "# isolde-history 1",
            "# The part of h.txt that is not read-atomic.",
            "#",
            "A/A: w(x,1) w(y,1)",
            "B/B: r(x,1) r(y,nil)",
        ]
    );
    assert!(small.contains("\n# expect read-atomic violated\n"), "{small}");
    assert_eq!(folder.isolde("check small.txt -q --level read-atomic").status, 1);
    assert_eq!(folder.isolde("check small.txt -q --level adya-read-committed").status, 0);
}

#[test]
fn a_history_that_cannot_be_read_is_bad_input() {
    let folder = Folder::with(&[("bad.txt", "A: w(\n")]);
    for command in ["explain", "shrink"] {
        let run = folder.isolde(&format!("{command} bad.txt"));
        assert_eq!((run.status, run.stdout.as_str()), (3, ""));
        assert!(run.stderr.starts_with("isolde: bad.txt: line 1"), "{}", run.stderr);
    }
}
