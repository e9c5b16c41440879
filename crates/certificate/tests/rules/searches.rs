//! One small proof by search for every variable, link and clause.

use super::check;
use crate::common::verdict;

#[test]
fn a_search_decides_what_is_open() {
    check(
        "A: w(x,1)\nB: w(x,1)\nC: r(x,nil) r(x,1)\n",
        "violated serializable",
        "step c2 c0 initial-read 2 0
         step c2 c1 initial-read 2 0
         variable origin 3 0 0
         variable origin 3 0 1
         clause one-origin 3 0
         clause cycle +0:c0:c2 0
         clause cycle +1:c1:c2 1
         clause lemma",
        &[],
    );
    check(
        "A: w(x,1) w(y,1)\nB: w(x,2) w(y,2)\nC: r(x,1) r(y,2)\nD: r(x,2) r(y,1)\n",
        "violated serializable",
        "step c0 c2 reads-from 4 0
         step c1 c2 reads-from 5 1
         variable order 0 0 1
         variable order 1 0 1
         clause cycle +0:c2:c1 1
         clause cycle -1:c2:c0 0
         clause cycle -0:c1:c0 +1:c0:c1
         clause lemma",
        &[],
    );
}

#[test]
fn update_atomic_has_a_search_over_the_order_of_commits() {
    let proof = "step c0 c1 reads-from 2 0
         step c1 c2 reads-from 6 2
         variable before c1 c0
         variable before c2 c1
         clause cycle 0 +0:c1:c0
         clause cycle 1 +1:c2:c1
         clause seen-or-after 7 1 0 1
         clause lemma";
    let common = "A: w(a,1) w(x,1)\nB: r(a,1) w(b,1) w(x,2) w(z,1)\nC: r(b,1) r(x,1) w(z,2)\n";
    check(common, "violated update-atomic", proof, &[]);
    let apart = common.replace("w(z,2)", "w(q,2)");
    let lines: Vec<&str> = proof.lines().map(str::trim).collect();
    assert_eq!(
        verdict(&apart, "violated update-atomic", &lines.join("\n")),
        Err("clause 2: the reader and the other writer write no common key".into())
    );
}

/// Whoever of A and B wrote the x that D read, C replaced it, and D read from C.
const SEEN_IN_PART: &str = "A: w(x,1) w(a,1)\nB: w(x,1) w(b,1)\nC: r(a,1) r(b,1) w(x,2) w(y,1)\n\
                            D: r(x,1) r(y,1)\n";

#[test]
fn who_saw_one_of_several_versions_precedes_the_writer_of_a_later_one() {
    let proof = "step c0 c2 reads-from 4 1
         step c1 c2 reads-from 5 2
         step c2 c3 reads-from 9 3
         variable origin 8 0 0
         variable origin 8 0 1
         variable order 0 0 2
         variable order 0 1 2
         clause one-origin 8 0
         clause cycle +2:+0:c3:c2 2
         clause cycle +3:+1:c3:c2 2
         clause cycle -2:c2:c0 0
         clause cycle -3:c2:c1 1
         clause lemma";
    check(SEEN_IN_PART, "violated parallel-snapshot-isolation", proof, &[]);
    check(SEEN_IN_PART, "violated serializable", proof, &[]);
    // What is seen of another key says nothing of these versions.
    let other_key = proof.replace("order 0 0 2", "order 1 0 2");
    let lines: Vec<&str> = other_key.lines().map(str::trim).collect();
    let refused = verdict(SEEN_IN_PART, "violated serializable", &lines.join("\n"));
    assert!(refused.is_err());
}

#[test]
fn update_atomic_has_no_reader_that_saw_another_in_part() {
    let proof = "step c0 c2 reads-from 4 1
         step c1 c2 reads-from 5 2
         variable origin 8 0 0
         variable origin 8 0 1
         variable before c2 c0
         variable before c2 c1
         clause one-origin 8 0
         clause cycle 0 +2:c2:c0
         clause cycle 1 +3:c2:c1
         clause seen-together 8 0 0 9 3 2
         clause seen-together 8 0 1 9 3 2
         clause lemma";
    check(SEEN_IN_PART, "violated update-atomic", proof, &[]);
    // At levels of events the cycle says so.
    let lines: Vec<&str> = proof.lines().map(str::trim).collect();
    assert_eq!(
        verdict(SEEN_IN_PART, "violated serializable", &lines.join("\n")),
        Err("clause 3: the level does not say this of what is seen together".into())
    );
}
