//! Logs that are whole, cut off or damaged.

use super::{FORMAT, HEAD};
use crate::ReadError;
use crate::format::{Input, ReadOptions, read, to_text};
use crate::history::History;
use crate::source::Source;

const WHOLE: &str = "\
isolde-log 1
session 1 node-a
session 2
txn 1 1 10-12 r5=@13-14 w5=7@15-18
commit 1 1 20-25
txn 2 1 11-12 l9=1,2@13-14 a9=3@15-16 o5=8
event 17 killed node-a
abort 2 1 17-18 40001
intent 2 2 30-40 i6=9 d5 q5..7=
txn 2 2 30-40 i6=9 d5 q5..7=5:,6:9,7:
commit 2 2 30-40
txn 1 2 41-42 u5..6=5:,6:20@43-44
unknown 1 2 45- end of file
end
";

fn parsed(log: &str) -> Result<History, ReadError> {
    let source = Source::from_bytes("log", log.as_bytes());
    read(&FORMAT, Input::File(source), ReadOptions::default())
}

#[test]
fn everything_in_a_log_is_in_the_history() {
    let history = parsed(WHOLE).expect("a log");
    assert_eq!(
        to_text(&history),
        "# isolde-history 1\n\
         session 1 endpoint node-a\n\
         1 @10..12..20..25: r(5,nil)@13..14 w(5,7)@15..18\n\
         1 @41..42..45..?: u(key 5..6; 6=?; 5=nil)@43..44 w(6,20)@43..44 unknown error \"end of file\"\n\
         2 @11..12..17..18: r(9,[1 2])@13..14 a(9,3)@15..16 r(5,!8) aborted error \"40001\"\n\
         2 @30..40..30..40: i(6,9) d(5) p(key 5..7; 6=9; 5=nil 7=nil)\n\
         event 17 killed node-a\n"
    );
    assert!(history.remarks().is_empty());
}

#[test]
fn a_refused_compare_and_set_is_a_read_of_what_it_found() {
    let check = |refused: &str, expected: &str| {
        let log = format!("isolde-log 1\nsession 1\ntxn 1 1 1-2 {refused}\ncommit 1 1 5-6\nend\n");
        let history = to_text(&parsed(&log).expect("a log"));
        assert_eq!(history, format!("# isolde-history 1\n1 @1..2..5..6: {expected}\n"));
    };
    check("o5=8@3-4", "r(5,!8)@3..4");
    check("o5=8:9@3-4", "r(5,9)@3..4");
    check("o5=8:@3-4", "r(5,nil)@3..4");
    check("o5=:9@3-4", "r(5,9)@3..4");
    // No state of the database explains this.
    check("o5=8:8@3-4", "r(5,!8)@3..4 r(5,8)@3..4");
    let wrong = parsed("isolde-log 1\nsession 1\ntxn 1 1 1-2 o5=8:x\n");
    assert!(wrong.expect_err("not a number").to_string().contains("line 3"));
}

#[test]
fn a_log_that_was_cut_off_is_read_up_to_its_last_whole_line() {
    for length in HEAD.len() + 1..WHOLE.len() {
        let history = parsed(&WHOLE[..length]).expect("a part of a log");
        assert_eq!(history.remarks().len(), 1, "{length}");
    }
    let history = parsed(&WHOLE[..WHOLE.len() - 30]).expect("a part of a log");
    assert_eq!(
        history.remarks()[0].text,
        "the log has no end: 2 bytes of a last line are lost, what came after is not known, and 1 \
         transactions without an outcome count as unknown"
    );
    assert!(parsed("isolde-log").is_err());
}

#[test]
fn what_a_whole_transaction_intended_is_unknown_without_an_answer() {
    let log = "isolde-log 1\nsession 1\nintent 1 1 5- w1=2\n";
    let expected = "# isolde-history 1\n1 @5..?: w(1,2) unknown\n";
    assert_eq!(to_text(&parsed(log).expect("a log")), expected);
    let log = format!("{log}unknown 1 1 5- reset\nend\n");
    let expected = "# isolde-history 1\n1 @5..?..5..?: w(1,2) unknown error reset\n";
    assert_eq!(to_text(&parsed(&log).expect("a log")), expected);
}

#[test]
fn versions_that_the_database_told_are_the_order_of_their_key() {
    let log = "isolde-log 1\nsession 1\ntxn 1 1 1-2 w5=7 w5=9\ncommit 1 1 3-4\n\
               txn 1 2 5-6 d5\ncommit 1 2 7-8\nversions 5 7,9,\nend\n";
    let expected = "# isolde-history 1\n\
                    1 @1..2..3..4: w(5,7) w(5,9)\n1 @5..6..7..8: d(5)\norder 5 complete: 7 9 nil\n";
    assert_eq!(to_text(&parsed(log).expect("a log")), expected);
}

#[test]
fn a_removal_may_have_the_number_of_a_version_of_its_transaction() {
    let log = "isolde-log 1\nsession 1\ntxn 1 1 1-2 w5=7 d5 w6=1 #3 ~1\ncommit 1 1 3-4\n\
               txn 1 2 5-6 d5 #4\ncommit 1 2 7-8\nversions 5 7,#2,#4\nend\n";
    let expected = "# isolde-history 1\n\
                    1 @1..2..3..4 id=3 sees=1: w(5,7) d(5) w(6,1)\n1 @5..6..7..8 id=4: d(5)\n\
                    order 5 complete: 7 nil@3 nil@4\n";
    assert_eq!(to_text(&parsed(log).expect("a log")), expected);
}

#[test]
fn versions_that_their_own_transaction_replaced_come_before_the_final_one() {
    let log = "isolde-log 1\nsession 1\ntxn 1 1 1-2 w5=7 w6=1 w5=9\ncommit 1 1 3-4\n\
               txn 1 2 5-6 w5=8\ncommit 1 2 7-8\nfinals 5 9,8\nend\n";
    let expected = "# isolde-history 1\n1 @1..2..3..4: w(5,7) w(6,1) w(5,9)\n\
                    1 @5..6..7..8: w(5,8)\norder 5 complete: 7 9 8\n";
    assert_eq!(to_text(&parsed(log).expect("a log")), expected);
}

#[test]
fn conditions_and_snapshots_are_those_of_the_model() {
    let log = "isolde-log 1\nsession 1\n\
               txn 1 1 1-2 pv3..9=5:7@3-4~20!17,19 gmin:k1..9=7 gcount:m7:3=0 gmax:v1..2= \
               cm7:0=5:21@5-6 xv20..30=5:21 #18 ~20!17\ncommit 1 1 7-8\nend\n";
    let expected = "# isolde-history 1\n\
                    1 @1..2..7..8 id=18 sees=20!17: p(value 3..9; 5=7)@3..4sees=20!17,19 \
                    p(min key 1..9 -> 7) p(count value mod 7 = 3 -> 0) \
                    p(max value 1..2 -> nil) u(value mod 7 = 0; 5=?)@5..6 w(5,21)@5..6 \
                    u(value 20..30; 5=21) d(5)\n";
    assert_eq!(to_text(&parsed(log).expect("a log")), expected);
}

#[test]
fn damage_is_told_with_its_line() {
    const DECLARED: &str = "the number of a session that a line above declares";
    const NUMBER: &str = "a number below 2^63";
    for (line, expected) in [
        ("txn 3 1 1-2", DECLARED),
        ("txn 1 1 w5=1", "two times with a hyphen between them, such as 10-20"),
        ("txn 1 1", "the times of the begin, as in 10-20"),
        ("txn 1 1 1-2 z5=1", "an operation, such as r5=12, w5=13 or q1..9=5:13"),
        ("txn 1 1 1-2 w5=1,2", "one value"),
        ("txn 1 1 1-2 q5=1", "a range of keys, such as q1..9"),
        ("txn 1 1 1-2 q1..5=1", "a row, such as 5:13"),
        ("txn 1 1 1-2 p1..5=1:2", "a condition, such as k1..9, v1..9 or m7:3"),
        ("txn 1 1 1-2 pm0:5=1:2", "a condition, such as k1..9, v1..9 or m7:3"),
        ("txn 1 1 1-2 gk1..5=1", "a function, such as gmin:k1..9=3"),
        ("txn 1 1 1-2 gavg:k1..5=1", "a function, such as gmin:k1..9=3"),
        ("txn 1 1 1-2 #x", NUMBER),
        ("txn 1 1 1-2 ~20!1,", NUMBER),
        ("txn 1 1 1-2 r5=1~20!a", NUMBER),
        ("txn 1 1 1-2 w9999999999999999999=1", NUMBER),
        ("txn 1 1 1-2 w=1", NUMBER),
        ("commit 1 1 1-2", "the session and number of a transaction without an outcome"),
        ("versions 5 1,x", NUMBER),
        ("versions", NUMBER),
        (
            "hello",
            "`session`, `txn`, `intent`, `commit`, `abort`, `unknown`, `versions`, `finals`, `numbers`, \
             `event` or `end`",
        ),
    ] {
        let log = format!("isolde-log 1\nsession 1 a\n{line}\n");
        let error = parsed(&log).expect_err(line);
        assert_eq!(error.to_string(), format!("log: line 3: expected {expected}, found `{line}`"));
    }
}
