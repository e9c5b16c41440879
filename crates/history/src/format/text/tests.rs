//! What the text format accepts, what it refuses, and that it loses nothing.

use super::*;
use crate::error::ReadError;
use crate::format::{self, parse_text, to_text};
use crate::history::{History, TxnId};
use crate::testing::{random_history, same};

/// Something of everything the format can say.
const EVERYTHING: &str = r#"# isolde-history 1
# expect serializable violated
init *=0 x=5
init "a key"=nil
session A endpoint db1:5432 origin logs/T1.log
session idle
session "serial" endpoint "two words"
A/first @10..20 ts=1.2..3: r(x,5) w(y,1) # a comment
A @?..12..15..?: r(x,nil) r(y,?) r(z,[1 2 "three"]) r(z,[]) r(x,!7) unknown error "lost connection"
A: a(z,4) i(row,1){age=30 name=Ann}@1..2 d(row) d(row,-9)@?..5 aborted
7/8: c(:transfer,~"{:a 1.5}") aborted error :timeout
"serial": p(all) u(value = 3; x=5 y=1; z=0) u(all; ?) w(x,8) d(y) u(all; ?; z=0) u(all; none) w(z,3) u(all) p(value mod 2 = 1; ; x=4)
:k: p(key nil..9) p(key "a.b".."z") p(column age 3..5; x=5) p(where "any \"text\"\n\u{1f}")
"a/b"/"c d" ts=5..6.7: w(18446744073709551615,-9223372036854775808) committed
order x: 5 6
order y complete: 1 2
order empty complete:
serial: first A.2 serial T8 :k
serial: "c d"
event 17 :nemesis kill n1 # with all of the line
event ? "two\nlines"
"#;

fn read(text: &str) -> History {
    parse_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refusal(text: &str) -> String {
    match parse_text(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let history = read(EVERYTHING);
    let text = to_text(&history);
    let again = read(&text);
    same(&history, &again);
    assert_eq!(to_text(&again), text);
}

/// Conditions count a key that nothing else names.
#[test]
fn a_key_that_starts_as_all_others_do_is_written() {
    let history = read("init *=3 x=3\nA: p(count all -> 1) r(y,3)\n");
    let text = to_text(&history);
    assert_eq!(text, "# isolde-history 1\ninit *=3\ninit x=3\nA: p(count all -> 1) r(y,3)\n");
    assert_eq!(read(&text).key_count(), 2);
}

#[test]
fn any_history_reads_back_the_same() {
    for seed in 0..5_000 {
        let history = random_history(seed);
        let text = to_text(&history);
        let again =
            parse_text(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        same(&history, &again);
        assert_eq!(to_text(&again), text, "seed {seed}");
    }
}

#[test]
fn a_history_is_written_as_a_person_would() {
    let text = "# isolde-history 1\n\
                init *=0\n\
                A: r(x,0) w(y,1)\n\
                A: r(y,1)@3..4 aborted\n\
                B/last @1..2: r(y,0) w(x,1){age=3}\n\
                C: p(all; x=1; y=0) p(all; x=1) p(all;; y=0) p(all)\n\
                serial: A.1 last\n";
    assert_eq!(to_text(&read(text)), text);
}

#[test]
fn transactions_are_called_after_label_or_session_and_place() {
    let history = read(EVERYTHING);
    let names: Vec<String> = history.txns().map(|txn| history.txn_name(txn)).collect();
    let expected = ["first", "A.2", "A.3", "serial", "T8", ":k", "\"c d\""];
    assert_eq!(names, expected);
}

#[test]
fn transactions_that_share_a_name_are_ordered_by_number() {
    let text = "A/x: w(k,1)\nB/x: w(k,2)\nserial: @2 @1";
    let history = read(text);
    let total = history.orders().total.as_deref();
    assert_eq!(total, Some(&[TxnId(1), TxnId(0)][..]));
    same(&history, &read(&to_text(&history)));
    assert_eq!(
        refusal("A/x: w(k,1)\nB/x: w(k,2)\nserial: x"),
        "text: line 3: expected a name that only one transaction has, found `x` \
         (`@3` is the third transaction of the file, whatever its name)"
    );
}

#[test]
fn an_update_that_changed_nothing_has_only_read() {
    let history = read("A: u(all; none) w(x,1)");
    assert_eq!(to_text(&history), "# isolde-history 1\nA: p(all) w(x,1)\n");
}

#[test]
fn sessions_with_one_label_stay_apart() {
    let mut builder = crate::HistoryBuilder::new();
    let label = builder.values().text("A");
    let mut txns = Vec::new();
    for _ in 0..3 {
        let session = builder.new_session(label);
        txns.push(builder.begin(session));
    }
    builder.total_order(txns);
    let history = builder.finish("test").expect("small");
    assert_eq!(
        to_text(&history),
        "# isolde-history 1\nA:\n\"A#2\":\n\"A#3\":\nserial: A \"A#2\" \"A#3\"\n"
    );
    read(&to_text(&history));
}

/// Texts and what is said about them.
const REFUSED: &[(&str, &str)] = &[
    (
        "A: w(x,1)\nA: read(x,1)",
        "text: line 2: expected `r(key,value)`, `w(key,value)`, another operation or an \
             outcome, found `read(x,1)`",
    ),
    ("A: r(x)", "text: line 1: expected `,` and a value after the key, found `)`"),
    ("A: r(x,1", "text: line 1: expected `)`, found the end of the line"),
    ("A: r(x,1)w(x,2)", "text: line 1: expected a space after the operation, found `w(x,2)`"),
    (
        "A: r(x,5y)",
        "text: line 1: expected a value, found `5y)` (text of other characters than \
             letters, digits and `_-./` is quoted)",
    ),
    (
        "A: r(x,[1.5])",
        "text: line 1: expected a value or `]`, found `1.5])` (text of other characters \
             than letters, digits and `_-./` is quoted)",
    ),
    (
        "A: w(x,18446744073709551616)",
        "text: line 1: expected an integer from -2^63 to 2^64-1, found \
             `18446744073709551616)` (write a larger one as ~\"NUMBER\")",
    ),
    ("A: w(x,\"y)", "text: line 1: expected a closing quote, found `\"y)`"),
    (
        "A: w(x,\"\\q\")",
        "text: line 1: expected `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t` or `\\u{1f}`, found `\\q\")`",
    ),
    (
        "A: w(x,1) aborted w(x,2)",
        "text: line 1: expected `error TEXT` or the end of the line after the outcome, \
             found `w(x,2)`",
    ),
    ("A w(x,1)", "text: line 1: expected `:` and operations after the session, found `w(x,1)`"),
    ("A @1: w(x,1)", "text: line 1: expected `..`, found `:`"),
    (
        "A: u(all) w(x,1)",
        "text: line 1: expected the rows of an update that is followed by a write, found \
             `u(all)` (list them, as in `u(all; x=?)`; `u(all; ?)` if it changed those that the \
             next writes write, `u(all; none)` if it changed none)",
    ),
    (
        "A id=9 sees=5!7: r(x,1)",
        "text: line 1: expected an exception below the bound 5, found `7:`",
    ),
    ("A ts=..3: w(x,1)", "text: line 1: expected a number, found `..3:`"),
    ("A: p(value mod 0 = 0)", "text: line 1: expected a divisor of at least 1, found `0`"),
    (
        "A: p(key > 3)",
        "text: line 1: expected a value, found `>` (text of other characters than \
             letters, digits and `_-./` is quoted)",
    ),
    ("init x", "text: line 1: expected `=` and an initial value, found the end of the line"),
    ("event kill", "text: line 1: expected a number, found `kill`"),
    (
        "order x 1 2",
        "text: line 1: expected `:` and values in the order they were installed, found `1`",
    ),
    (
        "A: w(x,1)\nserial: B",
        "text: line 2: expected the name of a transaction, found `B` (`A` or `A.2` by \
             session and place, or its own label)",
    ),
    ("A: w(x,1)\nserial: A A", "text: line 2: expected each transaction once, found `A`"),
    ("A: w(x,1)\nserial: A @1", "text: line 2: expected each transaction once, found `@1`"),
    (
        "# isolde-history 2\nA: w(x,1)",
        "text: line 1: expected version 1 of the format, found `2` (a newer isolde may have \
             written it)",
    ),
];

#[test]
fn a_mistake_is_shown_with_its_line_and_what_was_expected() {
    for (text, message) in REFUSED {
        assert_eq!(refusal(text), *message, "{text}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let source = crate::Source::from_bytes("bad.txt", b"A: w(x,1)\nA: w(\"\xff\",1)");
    let read = format::read(&FORMAT, format::Input::File(source), format::ReadOptions::default());
    let error: ReadError = read.expect_err("no UTF-8");
    assert_eq!(error.to_string(), "bad.txt: line 2: expected UTF-8 text, found `\u{fffd}\",1)`");
}

#[test]
fn no_prefix_and_no_changed_byte_makes_the_reader_panic() {
    let text = EVERYTHING.as_bytes();
    let attempt = |bytes: &[u8]| {
        let source = crate::Source::from_bytes("mutant", bytes);
        let input = format::Input::File(source);
        let _ = format::read_detected(input, format::ReadOptions::default());
    };
    for length in 0..text.len() {
        attempt(&text[..length]);
    }
    for at in 0..text.len() {
        for byte in *b"\0\"\\(){}[]@:;=.#-9x \n\xc3" {
            let mut mutant = text.to_vec();
            mutant[at] = byte;
            attempt(&mutant);
        }
    }
}

#[test]
fn expectations_are_read_from_comments_and_never_skipped() {
    let text = "# isolde-history 1\n# expect serializable violated\n#expect causal  satisfied\n\
                # expected nothing here\n# expect oops\nA: w(x,1)\n";
    let demand = |level: &str, verdict: &str| (level.to_owned(), verdict.to_owned());
    assert_eq!(
        expectations(text),
        [demand("serializable", "violated"), demand("causal", "satisfied"), demand("oops", "")]
    );
}

#[test]
fn only_what_begins_like_this_format_is_detected() {
    let detected = |text: &str| detect(&Sample { names: None, head: text.as_bytes() });
    for text in [
        "# isolde-history 1",
        "# a comment\n\nA: r(x,0)",
        "\u{feff}A:",
        "A/1 @1..2: read(x)",
        "1: w(x,1)",
        "init *=0\n",
        "session A endpoint b",
        "serial: A B",
        "event 5 kill",
    ] {
        assert!(detected(text), "{text}");
    }
    for text in [
        "",
        "# only a comment",
        "r(1,2,3,4)\nw(1,2,3,4)",
        "{:type :invoke, :f :txn}",
        "[{:type :ok}]",
        "{\"index\": 1}",
        "0\t:invoke\t:read\tnil",
        "w 1 2\n---\nr 1 2",
        "[x:=1 y==2]",
        "INFO  jepsen.util - 0  :invoke  :read  nil",
        "order of things",
        "; comment\n{:a 1}",
        ":key value",
    ] {
        assert!(!detected(text), "{text}");
    }
}

/// Levels of real time would hold for want of times.
#[test]
fn times_of_which_none_is_known_are_none() {
    for (times, has) in [("@?..?", false), ("@1..?", true), ("@?..1", true), ("@?..?..?..1", true)]
    {
        let history = parse_text(&format!("A {times}: w(x,1)\n")).expect("a history");
        assert_eq!(history.has_times(), has, "{times}");
    }
}
