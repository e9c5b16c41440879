//! One small proof for every rule, witness and kind of reading; and each of them with any word
//! changed is refused, unless what it says then is also true.

#[path = "../common/mod.rs"]
mod common;
mod searches;

use common::{verdict, verdict_for};
use isolde_certificate::Extent;

/// The proof with one word replaced by another that could stand there.
fn mutants(proof: &str) -> Vec<String> {
    let lines: Vec<&str> = proof.lines().collect();
    let mut mutants = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        for (number, word) in words.iter().enumerate() {
            let letters: Vec<&str> = match word.chars().next() {
                Some('0'..='9') => vec![""],
                Some('+') => {
                    let other = word.replacen('+', "-", 1);
                    mutants.push(proof.replacen(word, &other, 1));
                    continue;
                }
                Some('b' | 'c') if word[1..].parse::<u32>().is_ok() => vec!["b", "c"],
                _ => continue,
            };
            let others =
                letters.iter().flat_map(|letter| (0..7).map(move |it| format!("{letter}{it}")));
            for other in others.filter(|other| other != word) {
                let mut words: Vec<String> = words.iter().map(ToString::to_string).collect();
                words[number] = other;
                let mut lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                lines[place] = words.join(" ");
                mutants.push(lines.join("\n"));
            }
        }
        let without: Vec<&str> = [&lines[..place], &lines[place + 1..]].concat();
        mutants.push(without.join("\n"));
    }
    mutants
}

/// The proof is accepted, and of its mutants only those in `also`.
#[track_caller]
fn check(history: &str, claim: &str, proof: &str, also: &[&str]) {
    let proof: Vec<&str> = proof.lines().map(str::trim).collect();
    let proof = proof.join("\n");
    if let Err(why) = verdict(history, claim, &proof) {
        panic!("refused: {why}");
    }
    let mut accepted = mutants(&proof);
    accepted.retain(|mutant| verdict(history, claim, mutant).is_ok());
    accepted.dedup();
    let also: Vec<String> = also
        .iter()
        .map(|mutant| mutant.lines().map(str::trim).collect::<Vec<_>>().join("\n"))
        .collect();
    assert_eq!(accepted, also);
}

const WRITE_SKEW: &str = "A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\n";

#[test]
fn write_skew_is_a_cycle_of_initial_reads() {
    check(
        WRITE_SKEW,
        "violated serializable",
        "step c0 c1 initial-read 0 0
         step c1 c0 initial-read 2 1
         cycle 0 1",
        &[],
    );
}

#[test]
fn write_skew_is_a_snapshot() {
    check(WRITE_SKEW, "satisfied snapshot-isolation", "events b0 b1 c0 c1", &[]);
    assert!(verdict(WRITE_SKEW, "satisfied snapshot-isolation", "events b0 b1 c1 c0").is_ok());
    let serial = verdict(WRITE_SKEW, "satisfied snapshot-isolation", "events b0 c0 b1 c1");
    let why =
        "event 2, b1: operation 2 reads key 1: it saw another version than the one that is there";
    assert_eq!(serial, Err(why.into()));
}

#[test]
fn a_lost_update_has_no_order_of_its_writers() {
    let history = "A: r(x,nil) w(x,1)\nB: r(x,nil) w(x,2)\n";
    let proof = "step b0 c1 initial-read 0 0
         step b1 c0 initial-read 2 0
         step c0 b1 pair 0 0
         step c1 b0 pair 0 1
         cycle 2 3";
    // Either pair contradicts the other's premise, too.
    check(
        history,
        "violated snapshot-isolation",
        proof,
        &[
            "step b0 c1 initial-read 0 0
             step b1 c0 initial-read 2 0
             step c0 b1 pair 0 0
             step c1 b0 pair 0 1
             cycle 0 3",
            "step b0 c1 initial-read 0 0
             step b1 c0 initial-read 2 0
             step c0 b1 pair 0 0
             step c1 b0 pair 0 1
             cycle 2 1",
        ],
    );
    check(history, "satisfied prefix", "events b0 b1 c0 c1", &[]);
    assert_eq!(
        verdict(history, "satisfied snapshot-isolation", "events b0 b1 c0 c1"),
        Err("event 3, c1: transaction 0 committed key 0 after it began".into())
    );
}

#[test]
fn sessions_order_commits_and_begins() {
    let history = "A: w(x,1)\nA: r(x,nil)\n";
    check(
        history,
        "violated session-serializable",
        "step c0 c1 session
         step c1 c0 initial-read 1 0
         cycle 0 1",
        &[],
    );
    check(history, "satisfied serializable", "events c1 c0", &[]);
    assert_eq!(
        verdict(history, "satisfied session-serializable", "events c1 c0"),
        Err("event 1, c0: a later transaction of its session has begun before".into())
    );
}

#[test]
fn real_time_orders_what_does_not_overlap() {
    let history = "A @1..2: w(x,1)\nB @3..4: r(x,nil)\n";
    check(
        history,
        "violated strict-serializable",
        "step c0 c1 real-time
         step c1 c0 initial-read 1 0
         cycle 0 1",
        &[],
    );
    assert_eq!(
        verdict(history, "satisfied strict-serializable", "events c1 c0"),
        Err("event 1, c0: transaction 1 was invoked after it completed".into())
    );
}

#[test]
fn who_was_visible_was_overwritten_and_who_came_later_was_not_seen() {
    // A and B wrote x; C saw both ways round through y.
    let history = "A: w(x,1) w(y,1)\nB: r(y,1) w(x,2)\nC: r(x,2) w(z,1)\nD: r(z,1) r(x,1)\n";
    check(
        history,
        "violated serializable",
        "step c0 c1 reads-from 2 1
         step c1 c2 reads-from 4 0
         step c2 c3 reads-from 6 2
         step c1 c0 visible 7 0 1 2
         cycle 0 3",
        &[],
    );
    check(
        history,
        "violated serializable",
        "step c0 c1 reads-from 2 1
         step c1 c2 reads-from 4 0
         step c2 c3 reads-from 6 2
         step c3 c1 anti-dependency 7 0 0
         cycle 1 2 3",
        &[],
    );
}

#[test]
fn lists_and_given_orders_order_their_writers() {
    check(
        "A: a(l,1) r(m,[2])\nB: r(l,[1]) a(m,2)\n",
        "violated adya-read-committed",
        "step c0 c1 reads-from 2 0
         step c1 c0 reads-from 1 1
         cycle 0 1",
        &[],
    );
    check(
        "A: a(l,1) a(m,1)\nB: a(l,2) a(m,2)\nC: r(l,[1 2]) r(m,[2])\n",
        "violated read-uncommitted",
        "step c0 c1 list-order 4 0
         step c1 c0 list-order 5 1
         cycle 0 1",
        &[],
    );
    check(
        "A: w(x,1) w(y,1)\nB: w(x,2) w(y,2)\norder x: 1 2\norder y: 2 1\n",
        "violated read-uncommitted",
        "step c0 c1 given-order 0
         step c1 c0 given-order 1
         cycle 0 1",
        &[],
    );
}

#[test]
fn readings_name_their_operations() {
    let committed = "violated adya-read-committed";
    check("A: r(x,7)\n", committed, "reading thin-air-read 0 0", &[]);
    check("A: w(x,1) aborted\nB: r(x,1)\n", committed, "reading aborted-read 0 1 0", &[]);
    check("A: w(x,1) w(x,2)\nB: r(x,1)\n", committed, "reading intermediate-read 0 2 0 1", &[]);
    check("A: r(x,1) w(x,1)\n", committed, "reading future-read 0 0 1", &[]);
    check("A: w(x,1) r(x,nil)\n", committed, "reading not-my-own-write 0 1 0", &[]);
    check("A: w(x,1) w(x,2) r(x,1)\n", committed, "reading not-my-last-write 0 2 1", &[]);
    check(
        "A: w(x,1)\nB: r(x,nil) r(x,1)\n",
        "violated read-atomic",
        "reading non-repeatable-read 0 1 2",
        &[],
    );
    check(
        "A: a(l,1)\nB: r(l,[1 1])\n",
        "violated read-uncommitted",
        "reading duplicate-elements 0 1",
        &[],
    );
    check(
        "A: a(l,1)\nB: a(l,2)\nC: r(l,[1])\nD: r(l,[2])\n",
        "violated read-uncommitted",
        "reading incompatible-order 0 2 3",
        &[],
    );
    check(
        "A: a(l,1) a(l,2)\nB: r(l,[2 1])\n",
        "violated read-uncommitted",
        "reading incompatible-order 0 2 0 1",
        &[],
    );
    check(
        "A: w(x,1)\nB: p(all; ; x=1)\n",
        "violated snapshot-isolation",
        "reading result-set-mismatch 0 1 0",
        &[],
    );
    check(
        "A: w(x,1)\nB: w(x,2)\nC: p(sum all -> 3)\n",
        "violated prefix",
        "reading result-set-mismatch 0 2",
        &[],
    );
}

#[test]
fn commit_orders_need_an_origin_for_reads_of_repeated_values() {
    let history = "A: w(x,1)\nB: w(x,1)\nC: r(x,1)\n";
    check(
        history,
        "satisfied causal",
        "commits 0 1 2\norigin 2 0 1",
        &["commits 0 1 2\norigin 2 0 0"],
    );
    assert_eq!(
        verdict(history, "satisfied causal", "commits 0 1 2"),
        Err("operation 2 reads key 0: it has several possible origins".into())
    );
}

#[test]
fn parallel_snapshots_may_disagree_and_lose_no_update() {
    let fork = "A: w(x,1)\nB: w(y,1)\nC: r(x,1) r(y,nil)\nD: r(x,nil) r(y,1)\n";
    let claim = "satisfied parallel-snapshot-isolation";
    assert!(verdict(fork, claim, "commits 0 1 2 3").is_ok());
    let lost = "A: r(x,nil) w(x,1)\nB: r(x,nil) w(x,2)\n";
    assert_eq!(
        verdict(lost, claim, "commits 0 1"),
        Err("transaction 1 read key 0 and missed transaction 0, on which it depends".into())
    );
}

#[test]
fn a_proof_settles_only_what_follows_from_its_level() {
    let claim = "satisfied snapshot-isolation";
    let result = |levels| verdict_for(levels, WRITE_SKEW, claim, "events b0 b1 c0 c1");
    assert_eq!(result("update-atomic adya-read-committed"), Ok(Extent::Events(4)));
    let refused = |why: &str| Err(why.to_string());
    assert_eq!(
        result("serializable"),
        refused("a proof about snapshot-isolation does not settle serializable")
    );
    assert_eq!(
        result("causal"),
        refused("a proof about snapshot-isolation does not settle causal")
    );
    assert_eq!(result("perfection"), refused("there is no level perfection"));
    assert_eq!(
        result("prefix"),
        refused("a proof about snapshot-isolation does not settle prefix")
    );
    assert_eq!(
        result("snapshot-isolation snapshot-isolation"),
        refused("snapshot-isolation stands there twice")
    );
}

#[test]
fn update_atomic_orders_a_reader_before_an_overwriter_only_with_a_common_key() {
    let proof = "step c0 c1 initial-read 0 0
         step c1 c0 initial-read 3 1
         cycle 0 1";
    let common = "A: r(x,nil) w(y,1) w(z,1)\nB: r(y,nil) w(x,1) w(z,2)\n";
    check(common, "violated update-atomic", proof, &[]);
    let apart = "A: r(x,nil) w(y,1) w(z,1)\nB: r(y,nil) w(x,1) w(q,2)\n";
    let lines: Vec<&str> = proof.lines().map(str::trim).collect();
    assert_eq!(
        verdict(apart, "violated update-atomic", &lines.join("\n")),
        Err("step 0: the level has no such anti-dependencies".into())
    );
}

#[test]
fn no_order_of_all_explains_what_was_seen_of_a_key() {
    // The read of 1 is open while 2 is written, which completes before 1 is read again.
    let stale =
        "A @1..2: w(x,1)\nB @3..5: w(x,2)\nC @4..6: r(x,2)\nD @7..8: r(x,1)\nA @1..2: w(y,1)\n";
    check(stale, "violated linearizable", "orders 0", &[]);
    let overlapping = stale.replace("@7..8", "@5..8");
    assert_eq!(
        verdict(&overlapping, "violated linearizable", "orders 0"),
        Err("an order explains what was done to these keys".into())
    );
}

#[test]
fn all_orders_are_of_one_key_or_of_several() {
    check(WRITE_SKEW, "violated serializable", "orders 0 1", &[]);
    let why = verdict(WRITE_SKEW, "violated snapshot-isolation", "orders 0 1");
    assert_eq!(why, Err("an order explains what was done to these keys".into()));
    let refused = |level: &str, proof: &str| verdict(WRITE_SKEW, level, proof).unwrap_err();
    assert_eq!(refused("violated serializable", "orders"), "expected keys of the history");
    assert_eq!(refused("violated serializable", "orders 0 7"), "expected keys of the history");
    assert_eq!(refused("violated serializable", "orders 0 0 1"), "a key stands there twice");
    let untimed = refused("violated strict-serializable", "orders 0 1");
    assert_eq!(untimed, "the level asks for times, and the history has none");
    let commits = refused("violated causal", "orders 0 1");
    assert_eq!(commits, "the level asks for no order of events");
    let several = WRITE_SKEW.replace("A:", "A @1..2:").replace("B:", "B @1..2:");
    assert_eq!(
        verdict(&several, "violated linearizable", "orders 0 1"),
        Err("the level is about single operations, and a transaction has several".into())
    );
}

#[test]
fn orders_are_not_tried_without_end() {
    let pairs = (0..14).map(|it| format!("V{it}: w(x,{it})\nS{it}: r(x,{it}) w(y,{it})\n"));
    let writes = pairs.collect::<String>() + "U: r(y,a)\n";
    assert_eq!(
        verdict(&writes, "violated serializable", "orders 0 1"),
        Err("there are more orders than this verifier tries".into())
    );
}

#[test]
fn whichever_writer_a_read_saw_it_missed_the_other_write() {
    let history = "A: w(x,1) w(y,1)\nB: w(x,1) w(z,1)\nC: r(x,1) r(y,nil) r(z,nil)\n";
    let proof = "cases origin 4 0
         case read-atomic saw 0
         step c0 c2 reads-from 4 0
         step c0 initial visible 5 1 0
         step initial c0 initial-first
         cycle 1 2
         case read-atomic saw 1
         step c1 c2 reads-from 4 0
         step c1 initial visible 6 2 0
         step initial c1 initial-first
         cycle 1 2
         no-other-case";
    check(history, "violated read-atomic", proof, &[]);
    let other = history.replace("r(z,nil)", "r(z,1)");
    let lines: Vec<&str> = proof.lines().map(str::trim).collect();
    let why = verdict(&other, "violated read-atomic", &lines.join("\n"));
    assert!(why.is_err_and(|why| why.starts_with("case `saw 1`")));
}

#[test]
fn whichever_append_was_seen_the_list_missed_the_other_one() {
    let history = "A: a(x,1) a(y,1)\nB: a(x,1) a(z,1)\nC: r(x,[1]) r(y,[]) r(z,[])\n";
    let proof = "cases element 0
         case read-atomic append 0
         step c0 c2 reads-from 4 0
         step c0 initial visible 5 1 0
         step initial c0 initial-first
         cycle 1 2
         case read-atomic append 2
         step c1 c2 reads-from 4 0
         step c1 initial visible 6 2 0
         step initial c1 initial-first
         cycle 1 2
         no-other-case";
    let other = proof.replacen("cases element 0", "cases element 2", 1);
    check(history, "violated read-atomic", proof, &[&other]);
}

#[test]
fn a_transaction_of_unknown_outcome_counts_or_not() {
    let history =
        "A: w(y,1)\nB: r(y,1) w(x,1) unknown\nC: w(x,1) w(z,1)\nD: r(x,1) r(y,nil) r(z,nil)\n";
    let proof = "cases outcome 1
         case session-serializable counts
         orders 0 1 2
         case serializable counts-not
         step c2 c3 reads-from 5 1
         step c3 c2 initial-read 7 2
         cycle 0 1
         no-other-case";
    let weaker = verdict(history, "violated serializable", &lines(proof));
    assert_eq!(weaker, Err("a case at session-serializable is none at serializable".into()));
    let proof = proof.replacen("session-serializable", "serializable", 1);
    // All orders are those of both cases.
    assert!(verdict(history, "violated serializable", &lines(&proof)).is_ok());
    let without = lines(&proof).replace("case serializable counts\norders 0 1 2\n", "");
    assert_eq!(
        verdict(history, "violated serializable", &without),
        Err("the case `counts` of `outcome 1` is missing".into())
    );
    let committed = lines(&proof).replacen("outcome 1", "outcome 0", 1);
    assert_eq!(
        verdict(history, "violated serializable", &committed),
        Err("transaction 0 is none of unknown outcome".into())
    );
}

#[test]
fn reads_that_are_taken_to_have_seen_two_writers_are_not_repeatable() {
    let history = "A: w(x,1) w(y,1)\nB: w(x,1) w(z,1)\nC: r(x,1) r(y,nil) r(x,1) r(z,nil)\n";
    let proof = "cases origin 4 0
         case read-atomic saw 0
         step c0 c2 reads-from 4 0
         step c0 initial visible 5 1 0
         step initial c0 initial-first
         cycle 1 2
         case read-atomic saw 1
         cases origin 6 0
         case read-atomic saw 0
         reading non-repeatable-read 0 4 6
         case read-atomic saw 1
         step c1 c2 reads-from 4 0
         step c1 initial visible 7 2 0
         step initial c1 initial-first
         cycle 1 2
         no-other-case
         no-other-case";
    let proof = lines(proof);
    assert!(verdict(history, "violated read-atomic", &proof).is_ok());
    let (first, second) = proof.split_once("cases origin 6 0").expect("cases within a case");
    let second = second.replacen("saw 0", "saw it", 1).replacen("saw 1", "saw 0", 1);
    let same = format!("{first}cases origin 6 0{}", second.replacen("saw it", "saw 1", 1));
    let why = verdict(history, "violated read-atomic", &same).unwrap_err();
    assert!(why.ends_with("the level allows this, or the reads may have seen the same"), "{why}");
}

#[test]
fn nobody_who_counts_saw_a_transaction_that_does_not_count() {
    let history = "init x=1\nA: w(x,1) unknown\nA: w(x,2)\nA: r(x,1)\n";
    let missed = "step c1 c2 session
         step c1 initial visible 2 0 0
         step initial c1 initial-first
         cycle 1 2";
    let proof = format!(
        "cases outcome 0
         case read-your-writes counts
         cases origin 2 0
         case read-your-writes saw initial
         {missed}
         case read-your-writes saw 0
         step c1 c2 session
         step c1 c0 visible 2 0 0
         step c0 c1 session
         cycle 1 2
         no-other-case
         case read-your-writes counts-not
         {missed}
         no-other-case"
    );
    let level = "violated read-your-writes";
    assert!(verdict(history, level, &lines(&proof)).is_ok());
    // It may have been seen as long as it is open whether it counts, and if it was aborted.
    assert!(verdict(history, level, &lines(missed)).is_err());
    let aborted = history.replace("unknown", "aborted");
    assert!(verdict(&aborted, level, &lines(missed)).is_err());
}

#[test]
fn a_row_that_was_looked_at_and_left_out_met_the_condition() {
    let history = "A: w(x,1)\nB: p(value = 1; ; x=1)\n";
    let proof = "reading result-set-mismatch 0 1 0";
    check(history, "violated prefix", proof, &[]);
    let refused = |history: &str, level: &str| verdict(history, level, proof).unwrap_err();
    assert_eq!(refused(history, "violated causal"), "the level allows such results");
    let returned = history.replace("; ; x=1", "; x=1");
    assert_eq!(refused(&returned, "violated prefix"), "the level allows such results");
    assert_eq!(refused(&returned, "violated serializable"), "the row may fit the condition");
    let other = history.replace("= 1;", "= 2;");
    let fits = "the versions of the key may fit what was found";
    assert_eq!(refused(&other, "violated prefix"), fits);
    // A row that was returned has to meet the condition from snapshot isolation up.
    let extra = returned.replace("= 1;", "= 2;");
    assert!(verdict(&extra, "violated snapshot-isolation", proof).is_ok());
    assert_eq!(refused(&extra, "violated prefix"), "the level allows such results");
}

#[test]
fn an_order_says_which_append_was_seen() {
    let history = "A: a(x,1) a(y,1)\nB: a(x,1)\nC: r(x,[1]) r(y,[1])\n";
    let proof = "commits 0 2 1
         append 0";
    check(history, "satisfied read-atomic", proof, &[]);
    let missed = history.replace("r(y,[1])", "r(y,[])");
    assert!(verdict(&missed, "satisfied read-atomic", &lines(proof)).is_err());
    check(&missed, "satisfied read-atomic", "commits 1 2 0\nappend 2", &[]);
}

fn lines(proof: &str) -> String {
    proof.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}
