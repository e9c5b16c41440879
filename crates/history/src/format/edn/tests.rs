//! Tests of the scanner: what it reads, where it stops, and that a generic reader
//! agrees with it about random texts.

use super::token::continues_token;
use super::*;
use crate::format::form::Form;
use clojure_reader::edn::read;
use clojure_reader::error::Code;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The next form in EDN, or why there is none.
fn check(text: &str, expected: &str) {
    let mut nodes = Vec::new();
    let mut scanner = Scanner::new(text.as_bytes(), true);
    let read = scanner.form(&mut nodes);
    let found = match read {
        Ok(()) => Form::new(&nodes, text.as_bytes()).notation(),
        Err(Stop::Incomplete) => "incomplete".into(),
        Err(Stop::Malformed { at, expected }) => format!("{at}: expected {expected}"),
    };
    assert_eq!(found, expected, "{text}");
    let mut skipping = Scanner::new(text.as_bytes(), true);
    assert_eq!(skipping.skip(), read, "{text}");
    assert_eq!(skipping.at(), scanner.at(), "{text}");
}

#[test]
fn forms_of_every_kind_are_read() {
    for text in [
        "nil",
        "17",
        "-17",
        "[:append 9 [1 2 3] nil]",
        "(1 [2] {:a #{b \\c}})",
        "\"a \\\"quoted\\\" \\u0041\"",
        "#jepsen.history.Op{:index 1, :f :txn}",
        "#object[java.lang.Object 0x1f \"x\"]",
        "#error {:cause \"x\"}",
        "#:ns{:a 1}",
        "##NaN",
        "[1.5 1e-3 2/3 1.0M 0x1F :a/b ns/name / + - -x \\newline \\u00e9 \\( \\é]",
        "[true false 123456789012345678901234567890 [[[[[[[[]]]]]]]]]",
    ] {
        check(text, text);
    }
    check(" , ; note\n #_ [1 {] 7", "18: expected a form or `}`");
    check(" , ; note\n #_ [1 {}] [1,2 #_3 ; x\n]", "[1 2]");
    check("[5N +6 -0 18446744073709551615]", "[5 6 0 18446744073709551615]");
}

#[test]
fn numbers_of_every_length_are_read_wherever_they_stand() {
    let number = |digits: usize| "9876543210123456789"[..digits].to_owned();
    for (first, second) in (1..=19).flat_map(|first| (1..=19).map(move |second| (first, second))) {
        let text = format!("[{} 0 {} {}]", number(first), number(second), number(first));
        check(&text, &text);
    }
    check("[1 12345678 01 2]", "12: expected a number");
    check("[1  2 ,3,4 5\n6]", "[1 2 3 4 5 6]");
}

#[test]
fn what_is_not_edn_is_told_with_its_place() {
    check("", "incomplete");
    check("[1 2", "incomplete");
    check("\"abc", "incomplete");
    check("[1 #_]", "5: expected a form");
    check("[1)", "2: expected a form or `]`");
    check("{:a 1 :b}", "8: expected a value for the last key");
    check("]", "0: expected a form");
    check("[007]", "1: expected a number");
    check("[1x]", "1: expected a number");
    check("[::a]", "1: expected a keyword");
    check("\"\\q\"", "1: expected an escape that EDN knows");
    check("\\spam", "0: expected a character");
    check("#(a)", "0: expected a tag, a set or a discarded form");
    check("@x", "0: expected a form");
}

#[test]
fn forms_nested_too_deep_are_refused_without_recursion() {
    let fits = ["[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)].concat();
    check(&fits, &fits);
    for opening in ["[", "{", "#{", "#_", "#a ", "[#_ "] {
        let deep = opening.repeat(1_000_000);
        let mut scanner = Scanner::new(deep.as_bytes(), true);
        let stop = scanner.skip().expect_err("too deep");
        assert!(
            matches!(stop, Stop::Malformed { expected, .. } if expected.starts_with("at most")),
            "{opening}: {stop:?}"
        );
    }
}

#[test]
fn a_form_that_the_window_cuts_off_is_incomplete_wherever_it_is_cut() {
    let text = "#op{:a [1 22 :b nil] :c \"x\\\"y\\u0041\" #_ z \\newline #{1.5} ; c\n ##Inf 2} ";
    for end in 0..text.len() - 1 {
        let mut scanner = Scanner::new(&text.as_bytes()[..end], false);
        assert_eq!(scanner.form(&mut Vec::new()), Err(Stop::Incomplete), "{}", &text[..end]);
    }
    let mut scanner = Scanner::new(text.as_bytes(), false);
    assert_eq!(scanner.form(&mut Vec::new()), Ok(()));
}

const PIECES: &[&str] = &[
    "1",
    "-2",
    "+3",
    "0",
    "1.5",
    "1e9",
    "2/3",
    "nil",
    "true",
    "foo",
    "a/b",
    ":k",
    ":a/b",
    "\"s\"",
    "\"a\\nb\"",
    "\\a",
    "\\newline",
    "#inst \"x\"",
    "#o[a 1]",
    "#_ 3",
    "; c\n",
    ",",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "#{",
    "[1 2]",
    "{:a 1}",
    "(x)",
    "\n",
    "##Inf",
    "\\u0041",
    "é",
    "\"é\"",
];

const RECORDS: &[&str] = &[
    "{:type :ok, :f :txn, :value [[:append 9 2] [:r 9 [1 2]]], :process 3, :time 17, :index 4}",
    "#jepsen.history.Op{:index 1, :error [:conflict \"a \\\"b\\\" c\"], :value [[:w :x 1.5]]}",
    "({:process :nemesis, :value #{:n1 \"n2\"}} #object[a.b 0x1f \"x\"] ; note\n {:a \\c})",
];

fn random_text(random: &mut Xoshiro256PlusPlus) -> String {
    if random.random_range(0..2) == 0 {
        let count = 1 + random.random_range(0..12);
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(PIECES.choose(random).expect("some"));
            text.push_str(["", " ", " ", " "].choose(random).expect("some"));
        }
        return text;
    }
    let mut bytes = RECORDS.choose(random).expect("some").as_bytes().to_vec();
    for _ in 0..=random.random_range(0..3) {
        let at = random.random_range(0..bytes.len());
        let byte = b"[](){}\"\\;#_:,/ 0a+-.\n"[random.random_range(0..21)];
        match random.random_range(0..3) {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => {
                bytes.remove(at);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Why the generic reader and the scanner may differ about a text. In each case the
/// scanner follows the description of EDN, or Clojure's own reader where that is
/// silent.
fn known_difference(
    text: &str,
    ours: Result<usize, Stop>,
    theirs: Result<usize, &Code>,
) -> Option<&'static str> {
    let adjacent = |test: fn(u8, u8) -> bool| {
        let bytes = text.as_bytes();
        bytes.windows(2).any(|pair| test(pair[0], pair[1]))
    };
    match ours {
        _ if text.contains("##") => Some("it takes `##Inf` for a tag"),
        _ if adjacent(|before, byte| byte == b'\\' && continues_token(before)) => {
            Some("to it a backslash is part of a symbol")
        }
        Ok(_) if text.contains("\\u0041") => Some("it has no characters by number"),
        Ok(_) if text.contains("\\newline") || text.contains("\\a") || text.contains("\\c") => {
            Some("it wants a blank after a character")
        }
        Ok(_) if text.contains("#:") => Some("it has no maps with a namespace"),
        Ok(_) if matches!(theirs, Err(Code::HashMapDuplicateKey | Code::SetDuplicateKey)) => {
            Some("it refuses keys and members that repeat")
        }
        Err(Stop::Malformed { at, .. }) => {
            let rest = &text.as_bytes()[at..];
            let end = rest.iter().position(|&byte| !continues_token(byte));
            let token = &rest[..end.unwrap_or(rest.len())];
            if token.is_empty() {
                (rest.first() == Some(&b'\\')).then_some("it takes `\\ ` for a character")
            } else if token[0].is_ascii_digit() {
                Some("it takes a sign among the digits of a number")
            } else {
                let is_badly_named = token.contains(&b'/') || token.contains(&b':');
                is_badly_named.then_some("it allows any colons and slashes in names")
            }
        }
        _ => None,
    }
}

#[test]
fn a_generic_reader_agrees_about_random_texts() {
    let mut agreed = [0u32; 2];
    let mut differences = Vec::new();
    for seed in 1..=40_000u64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let text = random_text(&mut random);
        let generic = read(&text);
        let mut scanner = Scanner::new(text.as_bytes(), true);
        let ours = scanner.form(&mut Vec::new()).map(|()| scanner.at());
        let theirs = generic.as_ref().map(|(_, rest)| text.len() - rest.len());
        let same = match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            (Err(_), Err(_)) => true,
            _ => false,
        };
        if same {
            agreed[usize::from(ours.is_ok())] += 1;
            continue;
        }
        if known_difference(&text, ours, theirs.map_err(|error| &error.code)).is_none() {
            differences.push(format!("seed {seed}: {text:?}: {ours:?}, generic reader {theirs:?}"));
        }
    }
    assert!(agreed.iter().all(|&count| count > 5_000), "{agreed:?}");
    assert_eq!(differences.first(), None, "of {}", differences.len());
}

#[test]
fn numbers_of_every_length_are_read_exactly() {
    for length in 1..=25 {
        for first in ["1", "9", "-9"] {
            let number = format!("{first}{}", &"8070605040302010998877665"[..length - 1]);
            for text in [format!("[{number} {number}]"), format!("({number})")] {
                check(&text, &text);
            }
            let wide = Node::Int(number.parse().unwrap_or_default());
            let mut nodes = Vec::new();
            let mut scanner = Scanner::new(number.as_bytes(), true);
            assert_eq!(scanner.form(&mut nodes), Ok(()));
            let is_exact = nodes == [wide];
            assert_eq!(is_exact, number.parse::<i64>().is_ok(), "{number}");
        }
    }
}
