//! Small histories, each beside the nearest one of the other verdict.

use super::*;
use isolde_history::format::parse_text;
use std::fmt::Write;

/// The order that shows it, as names, or the anomaly and its transactions.
fn check(text: &str, expected: &str) {
    let reading = Reading::default();
    assert_eq!(with(text, reading), expected, "{text}");
}

fn with(text: &str, reading: Reading) -> String {
    let history = parse_text(text).expect("a well-formed history");
    let names = |txns: &[TxnId]| -> String {
        txns.iter().map(|&txn| history.txn_name(txn)).collect::<Vec<_>>().join(" ")
    };
    match decide(&history, &Limits::NONE, reading) {
        Some(Verdict::Satisfied(Satisfied::Order(order))) => names(&order),
        Some(Verdict::Violated(violated)) => {
            let anomaly = &violated.anomalies[0];
            format!("{}: {}", anomaly.kind.name(), names(&anomaly.txns))
        }
        Some(other) => format!("{other:?}"),
        None => "not single operations".into(),
    }
}

#[test]
fn a_read_sees_what_was_written_before_it_began() {
    check("A @1..2: w(x,1)\nB @3..4: r(x,1)", "A B");
    check("A @1..2: w(x,1)\nB @3..4: r(x,nil)", "stale-read: A B");
    check("A @1..3: w(x,1)\nB @3..4: r(x,nil)", "B A");
}

#[test]
fn a_value_is_not_seen_before_its_write_began() {
    check("A @1..3: r(x,1)\nB @3..4: w(x,1)", "B A");
    check("A @1..2: r(x,1)\nB @3..4: w(x,1)", "read-before-write: B A");
}

#[test]
fn a_value_that_was_replaced_does_not_come_back() {
    let order = "A @1..9: w(x,1)\nB @1..9: w(x,2)\nC @10..11: r(x,1)\nD @12..13: r(x,";
    check(&format!("{order}1)"), "B A C D");
    check(&format!("{order}2)"), "stale-read: A D B C");
}

#[test]
fn compare_and_sets_form_one_chain() {
    let chain = "A @1..2: w(x,1)\nB @3..6: r(x,1) w(x,2)\nC @4..5: r(x,2) w(x,3)\n";
    check(&format!("{chain}D @7..8: r(x,3)"), "A B C D");
    check(&format!("{chain}D @7..8: r(x,2)"), "stale-read: D C");
    check(&format!("{chain}D @7..8: r(x,1) w(x,4)"), "compare-and-set-twice: B D");
    check("A @1..9: r(x,1) w(x,2)\nB @1..9: r(x,2) w(x,1)", "unexplained-operation: A B");
}

#[test]
fn a_lost_update_is_two_compare_and_sets_of_one_value() {
    check("A @1..3: r(x,nil) w(x,1)\nB @2..4: r(x,1) w(x,2)", "A B");
    check("A @1..3: r(x,nil) w(x,1)\nB @2..4: r(x,nil) w(x,2)", "compare-and-set-twice: A B");
}

#[test]
fn what_may_have_happened_happens_if_somebody_saw_it_and_not_too_early() {
    check("A @1..2: w(x,1) unknown\nB @3..4: r(x,nil)", "B");
    check("A @1..2: w(x,1) unknown\nB @3..4: r(x,nil)\nC @5..6: r(x,1)", "B A C");
    check("A @1..2: w(x,1) unknown\nB @3..4: r(x,1)\nC @5..6: r(x,nil)", "stale-read: B C");
}

#[test]
fn a_refused_compare_and_set_saw_another_value() {
    check("A @1..2: w(x,1)\nB @3..4: w(x,2)\nC @5..6: r(x,!1)", "A B C");
    check("A @1..2: w(x,1)\nB @3..4: w(x,2)\nC @2..6: r(x,!2)", "A C B");
    check("A @1..2: w(x,1)\nB @3..4: w(x,2)\nC @5..6: r(x,!2)", "unexplained-operation: C");
}

#[test]
fn repeated_values_are_searched() {
    let repeated = "A @1..2: w(x,1)\nB @3..9: w(x,2)\nC @3..9: w(x,1)\nD @4..5: r(x,2)\n";
    check(&format!("{repeated}E @6..7: r(x,1)"), "A B D C E");
    check(&format!("{repeated}E @6..7: r(x,1)\nF @8..9: r(x,2)"), "unexplained-operation: F");
}

#[test]
fn locks_are_held_by_one() {
    let taken = "A @1..2: c(:acquire,nil)\nB @3..6: c(:acquire,nil)\n";
    check(&format!("{taken}C @4..5: c(:release,nil)"), "A C B");
    check(&format!("{taken}C @7..8: c(:release,nil)"), "unexplained-operation: B");
}

#[test]
fn stores_append_to_texts() {
    let text = |seen: &str| {
        format!(
            "A @1..9: c(:append,~\"[\\\"k\\\" \\\"x\\\"]\")\n\
             B @1..9: c(:append,~\"[\\\"k\\\" \\\"y\\\"]\")\n\
             C @10..11: c(:get,~\"[\\\"k\\\" \\\"{seen}\\\"]\")"
        )
    };
    check(&text("yx"), "B A C");
    check(&text("y"), "unexplained-operation: C");
}

/// Calls of one store: who, from when to when, what, the text, and how it ended.
fn calls(calls: &[(usize, u64, u64, &str, String, &str)]) -> String {
    let mut text = String::new();
    for (client, invoked, completed, function, content, outcome) in calls {
        let call = format!("c(:{function},~\"[\\\"k\\\" \\\"{content}\\\"]\")");
        writeln!(text, "C{client} @{invoked}..{completed}: {call} {outcome}").expect("it grows");
    }
    text
}

/// All orders of what was appended were tried, up to a limit of memory.
#[test]
fn appends_that_nobody_saw_are_not_searched() {
    let append =
        |client: usize| (client, client as u64, 100, "append", format!("{client};"), "committed");
    let mut all: Vec<_> = (0..24).map(append).collect();
    assert!(!with(&calls(&all), Reading::default()).contains(':'));
    // Somebody saw the first two before the others, and nobody anything later.
    all.push((30, 50, 60, "get", "1;0;".into(), "committed"));
    let order = with(&calls(&all), Reading::default());
    assert!(order.starts_with("C1 C0 C30 "), "{order}");
    // One that saw all of them leaves one order, and another one none.
    let appended: Vec<String> = (0..24).rev().map(|client| format!("{client};")).collect();
    let seen = appended.concat();
    all[24] = (30, 101, 102, "get", seen.clone(), "committed");
    let order = with(&calls(&all), Reading::default());
    assert!(order.starts_with("C23 C22 C21 ") && order.ends_with(" C0 C30"), "{order}");
    all.push((31, 103, 104, "get", format!("{seen}0;"), "committed"));
    assert_eq!(with(&calls(&all), Reading::default()), "unexplained-operation: C31");
}

/// What no certain call had left was taken for a value that nobody wrote.
#[test]
fn an_append_of_unknown_outcome_may_be_what_a_read_saw() {
    let seen = |content: &str| {
        calls(&[
            (0, 0, 8, "append", "b".into(), "unknown"),
            (1, 3, 8, "put", "a".into(), "committed"),
            (2, 9, 10, "get", content.into(), "committed"),
        ])
    };
    check(&seen("ab"), "C1 C0 C2");
    check(&seen("a"), "C1 C2");
    check(&seen("b"), "unexplained-operation: C2");
}

/// Whether some order of all certain and some other calls explains them: all are tried.
fn is_explained(all: &[(usize, u64, u64, &str, String, &str)], done: &[usize], held: &str) -> bool {
    let is_certain = |call: usize| all[call].5 == "committed";
    let is_open = |call: &usize| !done.contains(call);
    let mut left = (0..all.len()).filter(is_open);
    if !left.clone().any(is_certain) {
        return true;
    }
    left.any(|call| {
        let (_, invoked, _, function, content, _) = &all[call];
        let comes_before = |other: usize| is_certain(other) && all[other].2 < *invoked;
        if (0..all.len()).filter(is_open).any(comes_before) {
            return false;
        }
        let after = match *function {
            "get" if !is_certain(call) || content == held => held.to_owned(),
            "get" => return false,
            "put" => content.clone(),
            _ => format!("{held}{content}"),
        };
        is_explained(all, &[done, &[call]].concat(), &after)
    })
}

#[test]
fn stores_are_decided_as_all_orders_say() {
    let mut satisfied = 0;
    for seed in 0..3_000_u64 {
        let mut state = seed;
        let mut below = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let puts = below(2);
        let mut all = Vec::new();
        for client in 0..6 {
            let invoked = below(12);
            let outcome = if below(6) == 0 { "unknown" } else { "committed" };
            let letter = ["a", "b", "a", "c"][below(4) as usize];
            let (function, content) = match below(6) {
                0 | 1 => {
                    let read = ["", "a", "b", "ab", "ba", "aa", "c", "aba", "abc", "bac"];
                    ("get", read[below(10) as usize].to_owned())
                }
                2 if puts == 1 => ("put", letter.to_owned()),
                _ => ("append", letter.to_owned()),
            };
            all.push((client, invoked, invoked + 1 + below(8), function, content, outcome));
        }
        let text = calls(&all);
        let expected = if is_explained(&all, &[], "") { "satisfied" } else { "violated" };
        let history = parse_text(&text).expect("a well-formed history");
        let verdict = decide(&history, &Limits::NONE, Reading::default()).expect("a store");
        assert_eq!(verdict.name(), expected, "{text}");
        // The verifier replays the order, or tries all of them in its own way.
        let index = isolde_history::Index::new(&history);
        let mut check = crate::Check::new(&history, &index, &Limits::NONE);
        let certified = check.certify(&[crate::Level::Linearizable]);
        assert_eq!(certified.left_out, [], "{text}");
        let verified = isolde_certificate::verify(&certified.certificate, &history);
        assert!(verified.expect("the same history").iter().all(Result::is_ok), "{text}");
        satisfied += usize::from(expected == "satisfied");
    }
    assert!((600..2_700).contains(&satisfied), "{satisfied} are satisfied");
}

#[test]
fn objects_are_decided_apart_and_sessions_hold_across_them() {
    // Each register has an order, with both reads before both writes. The clock
    // ticks once for two operations of a client, so only sessions show the circle.
    let text = "A @1..2: w(x,1)\nA @2..3: r(y,nil)\nB @1..2: w(y,1)\nB @2..3: r(x,";
    check(&format!("{text}1)"), "A.1 A.2 B.1 B.2");
    assert!(with(&format!("{text}nil)"), Reading::default()).starts_with("unexplained-operation"));
}

#[test]
fn clocks_may_differ_by_the_drift() {
    let late = "A @1..2: w(x,1)\nB @5..6: r(x,nil)";
    let drift = |drift| Reading { drift, ..Reading::default() };
    assert_eq!(with(late, drift(3)), "B A");
    assert_eq!(with(late, drift(2)), "stale-read: A B");
}

#[test]
fn nil_is_absent_or_not_known() {
    let text = "A @1..2: w(x,1)\nB @3..4: r(x,nil)";
    let reading = Reading { nil_reads: NilReads::NotKnown, ..Reading::default() };
    assert_eq!(with(text, reading), "A B");
    check(text, "stale-read: A B");
}

#[test]
fn what_is_not_one_operation_on_one_object_is_not_judged_here() {
    check("A @1..2: w(x,1) w(y,1)", "not single operations");
    check("A @1..2: a(x,1)", "not single operations");
    check("A: w(x,1)", "Unknown(Unsupported(NoTimes))");
}

#[test]
fn many_clients_on_one_register_take_no_search() {
    // Thirty clients, always open, each with values of its own.
    let mut text = String::new();
    for number in 0..30_000 {
        let (client, turn) = (number % 30, number / 30);
        let (invoked, completed) = (turn * 10 + client % 10, turn * 10 + 9);
        let invoked = if turn > 0 { invoked.max(turn * 10) } else { invoked };
        writeln!(text, "C{client} @{invoked}..{completed}: w(x,{number})").expect("it grows");
    }
    let history = parse_text(&text).expect("a well-formed history");
    let verdict = decide(&history, &Limits::NONE, Reading::default());
    assert!(matches!(verdict, Some(Verdict::Satisfied(_))));
}

#[test]
fn many_clients_that_write_few_values_are_searched_in_time() {
    // Operations take effect in the order of their numbers, each in the middle of the
    // time it is open; about twenty are open at any time.
    let (mut text, mut held) = (String::new(), 0);
    for number in 0..2_000_u64 {
        let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let (client, early, late) = (number % 40, noise % 100, noise / 100 % 100);
        let (invoked, completed) = (number * 10 + 200 - early, number * 10 + 201 + late);
        let op = if noise % 7 < 3 { format!("r(x,{held})") } else { format!("w(x,{})", noise % 5) };
        held = if noise % 7 < 3 { held } else { noise % 5 };
        writeln!(text, "C{client} @{invoked}..{completed}: {op}").expect("it grows");
    }
    let text = format!("init *=0\n{text}");
    let history = parse_text(&text).expect("a well-formed history");
    let verdict = decide(&history, &Limits::NONE, Reading::default());
    assert!(matches!(verdict, Some(Verdict::Satisfied(_))), "{:?}", verdict.map(|it| it.name()));
}

/// A register whose values are all different, with compare-and-sets, refused ones and
/// outcomes that nobody learned; some answers are wrong.
fn random_register(seed: u64) -> String {
    let mut state = seed;
    let mut below = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let (mut text, mut held) = (String::from("init *=0\n"), 0);
    for number in 1..=25 {
        let (early, late) = (below(40), below(40));
        let (invoked, completed) = (number * 10 + 100 - early, number * 10 + 101 + late);
        let seen = if below(40) == 0 { below(number) } else { held };
        let unknown = if below(6) == 0 { " unknown" } else { "" };
        let (op, left) = match below(6) {
            0 => (format!("w(x,{number})"), number),
            1 | 2 => (format!("r(x,{seen}) w(x,{number})"), number),
            3 => (format!("r(x,!{})", held + 1), held),
            _ => (format!("r(x,{seen})"), held),
        };
        held = if unknown.is_empty() || below(2) == 0 { left } else { held };
        writeln!(text, "C{number} @{invoked}..{completed}: {op}{unknown}").expect("it grows");
    }
    text
}

#[test]
fn chains_and_zones_say_what_a_search_says() {
    let mut satisfied = 0;
    for seed in 0..4_000 {
        let text = random_register(seed);
        let history = parse_text(&text).expect("a well-formed history");
        let operations = Operations::of(&history, NilReads::Absent, 0);
        let mut operations = operations.expect("single operations");
        let problem =
            Problem { operations: &operations.all, objects: &operations.objects, before: &[] };
        let is_satisfied = match search::search(&problem, &mut operations.texts, &Limits::NONE) {
            Searched::Order(_) => "satisfied",
            Searched::Unexplained(_) => "violated",
            Searched::Limit(reason) => panic!("{reason}\n{text}"),
        };
        let verdict = decide(&history, &Limits::NONE, Reading::default());
        assert_eq!(verdict.map(|verdict| verdict.name()), Some(is_satisfied), "{text}");
        satisfied += usize::from(is_satisfied == "satisfied");
    }
    assert!((400..3_600).contains(&satisfied), "{satisfied} are satisfied");
}

#[test]
fn a_search_stops_when_told_and_when_memory_is_short() {
    let mut text = String::new();
    for client in 0..24 {
        let next = (client + 7) % 24;
        writeln!(text, "C{client} @1..9: r(x,{client}) w(x,{next})").expect("it grows");
        writeln!(text, "D{client} @1..9: w(x,{client})").expect("it grows");
    }
    let history = parse_text(&text).expect("a well-formed history");
    let told = Limits { stop: &|| true, ..Limits::NONE };
    let full = Limits { is_memory: &|| true, ..told };
    let short = Limits { working_bytes_max: Some(1 << 20), ..Limits::NONE };
    let reason = |limits: &Limits<'_>| match decide(&history, limits, Reading::default()) {
        Some(Verdict::Unknown(Unknown::Limit(reason))) => reason.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&told), "time is up while orders are searched");
    assert_eq!(reason(&full), "memory is up while orders are searched");
    assert!(reason(&short).ends_with("more memory than 1 MB"));
}
