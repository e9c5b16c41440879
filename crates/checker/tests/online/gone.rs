//! Clients of which more will never come: what they did not use stays judged.

use crate::notation::{OPTIONS, parse, told};
use isolde_checker::online::{ALWAYS, Batch, ClientId, Counters, NEVER, Profile, Reads, Verifier};

const STATEMENT: Profile = Profile { reads: Reads::Statement, ..Profile::NONE };

/// What is found after client A is given up behind its own events.
fn without_a(before: &str, after: &str) -> (String, Counters) {
    let all = parse(&format!("{before}\n{after}"));
    let count = before.lines().filter(|line| !line.trim().is_empty()).count();
    let mut verifier = Verifier::new(STATEMENT, OPTIONS);
    verifier.take_some(&all, 0..count, 10);
    verifier.take(&Batch::default(), 10);
    verifier.give_up(ClientId(0), 10);
    verifier.take_some(&all, count..all.events.len(), NEVER);
    verifier.finish();
    assert!(verifier.is_anything_missing());
    let found = told(&verifier.take_findings());
    (found, verifier.counters())
}

const STALE: &str = "B1 w 10-11 x=2
                     B1 c 12-13
                     B2 w 14-15 x=3
                     B2 c 16-17
                     C1 r 18-19 x=2
                     C1 c 20-21";

#[test]
fn rows_that_it_never_used_stay_judged() {
    let stale = "stale-read C1.1 WroteWhatWasRead B1.1 EndOfWriter B1.2 Replaced B2.1 EndOfReplacer \
                 B2.2\n";
    let (found, counters) = without_a("A1 w 0-1 y=1", STALE);
    assert_eq!((found.as_str(), counters.unchecked.events_missing), (stale, 0));
    let (found, counters) = without_a("A1 b 0-1", STALE);
    assert_eq!((found.as_str(), counters.unchecked.events_missing), (stale, 0));
    let (found, counters) = without_a("", STALE);
    assert_eq!((found.as_str(), counters.unchecked.events_missing), (stale, 0));
}

#[test]
fn rows_that_it_used_may_hold_anything() {
    for used in ["A1 w 0-1 x=1", "A1 r 0-1 x=_"] {
        let (found, counters) = without_a(used, STALE);
        assert_eq!((found.as_str(), counters.unchecked.events_missing), ("", 1), "{used}");
    }
}

/// What was sent before the end may come after it is known.
#[test]
fn what_comes_of_it_afterwards_counts_too() {
    let (found, counters) = without_a("", &format!("A1 w 8-9 x=1\n{STALE}"));
    assert_eq!((found.as_str(), counters.unchecked.events_missing), ("", 1));
}

/// `B` reads 1, which nobody is known to have written. That waits for its writer. Then `A` comes,
/// whose name was read later than anybody waits, and breaks off before it says that it wrote 1.
/// World 211499 of the simulated watch told that as a violation of the database.
#[test]
fn a_value_that_is_waited_for_may_be_of_who_breaks_off() {
    let found = |since| {
        let (read, late) = (parse("B1 r 20-21 x=1\nB1 c 22-23"), parse("A1 w 2-3 x=2"));
        let mut verifier = Verifier::new(STATEMENT, OPTIONS);
        verifier.take(&read, 30);
        if since == 3 {
            verifier.take(&late, 30);
        }
        verifier.give_up(ClientId(0), since);
        verifier.finish();
        (told(&verifier.take_findings()), verifier.counters().unchecked.events_missing)
    };
    for since in [ALWAYS, 3, 21] {
        assert_eq!(found(since), (String::new(), 1), "{since}");
    }
    // Who has told all until after the read has not written it.
    for since in [22, 30, 40] {
        assert_eq!(found(since), ("unexplained-read B1.1\n".to_owned(), 0), "{since}");
    }
}
