//! Rounds of any size have the verdict of the whole history, for levels of real time.

use crate::support::Random;
use isolde_checker::online::{
    Batch, Cell, CellSpan, ClientId, Content, EXACT_LEVELS, Event, EventKind, IMPLIED_LEVELS,
    Interval, NEVER, Reads, Rounds, RoundsOptions, Time,
};
use isolde_checker::{Check, Level, Limits, Verdict};
use isolde_history::{History, HistoryBuilder, Index, OpKind, Outcome, TxnTimes, Value};
use std::fmt::Write;

const CLIENTS: u32 = 3;

const OPTIONS: RoundsOptions = RoundsOptions {
    txns_min: 1,
    txns_max: 1000,
    drift: 0,
    unwritten: Some(Content::ABSENT),
    reads: Reads::Begin,
};

/// A transaction: the client, begin and end as intervals, how it ended, and what it did.
struct Txn {
    client: u32,
    number: u64,
    begin: Interval,
    end: Interval,
    kind: EventKind,
    /// Whether it is a write, the item, the value; 0 is absent.
    ops: Vec<(bool, u32, i64)>,
}

/// Clients of a store that does everything of a transaction at one instant, now and then with
/// a read of something older. They pause often enough that sometimes nothing is open.
fn random_txns(random: &mut Random, count: usize, wrong: usize) -> Vec<Txn> {
    let mut free = [0; CLIENTS as usize];
    let mut numbers = [0; CLIENTS as usize];
    let mut versions: Vec<Vec<(Time, i64)>> = vec![vec![(0, 0)]; 4];
    let mut planned: Vec<(Time, Txn)> = Vec::new();
    let mut time = |from: Time, reach: usize| {
        from + 1 + Time::try_from(random.below(reach)).expect("a small number")
    };
    for _ in 0..count {
        let client = (0..CLIENTS).min_by_key(|&client| free[client as usize]).expect("clients");
        let start = time(free[client as usize], 30);
        let begun = time(start, 6);
        let ending = time(begun, 6);
        let acts = time(ending, 4);
        let ended = time(acts, 4);
        free[client as usize] = ended;
        numbers[client as usize] += 1;
        let begin = Interval { invoked: start, completed: begun };
        let end = Interval { invoked: ending, completed: ended };
        let number = numbers[client as usize];
        let kind = EventKind::Commit;
        planned.push((acts, Txn { client, number, begin, end, kind, ops: Vec::new() }));
    }
    // The store acts in the order of instants.
    planned.sort_by_key(|(acts, _)| *acts);
    let mut value = 0;
    for (acts, txn) in &mut planned {
        match random.below(12) {
            0 => txn.kind = EventKind::Abort,
            1 => {
                txn.kind = EventKind::Lost;
                txn.end.completed = NEVER;
            }
            _ => {}
        }
        let has_effect =
            txn.kind == EventKind::Commit || (txn.kind == EventKind::Lost && random.below(2) == 0);
        let mut written: Vec<(u32, i64)> = Vec::new();
        for _ in 0..=random.below(3) {
            let item = random.below(4) as u32;
            let known = &versions[item as usize];
            if random.below(2) == 0 {
                let own = written.iter().rev().find(|own| own.0 == item).map(|own| own.1);
                let back = if random.below(wrong) == 0 { 1 + random.below(3) } else { 0 };
                let seen = known[known.len().saturating_sub(1 + back)].1;
                txn.ops.push((false, item, own.unwrap_or(seen)));
            } else {
                value += 1;
                txn.ops.push((true, item, value));
                written.push((item, value));
            }
        }
        if has_effect {
            for (item, value) in written {
                versions[item as usize].push((*acts, value));
            }
        }
    }
    planned.into_iter().map(|(_, txn)| txn).collect()
}

fn whole(txns: &[Txn]) -> History {
    let mut builder = HistoryBuilder::new();
    let mut order: Vec<&Txn> = txns.iter().collect();
    order.sort_by_key(|txn| txn.begin.invoked);
    for txn in order {
        // A client whose commit was not answered goes on with a new connection.
        let session = if txn.kind == EventKind::Lost {
            builder.new_session(Value::NIL)
        } else {
            let label = builder.values().unsigned(u64::from(txn.client));
            builder.session(label)
        };
        let draft = builder.begin(session);
        builder.outcome(
            draft,
            match txn.kind {
                EventKind::Commit => Outcome::Committed,
                EventKind::Abort => Outcome::Aborted,
                _ => Outcome::Unknown,
            },
        );
        builder.times(draft, TxnTimes { begin: txn.begin, commit: txn.end });
        for &(is_write, item, value) in &txn.ops {
            let name = builder.values().unsigned(u64::from(item));
            let key = builder.key(name);
            let value = if value == 0 { Value::NIL } else { builder.values().int(value) };
            builder.op(if is_write { OpKind::Write } else { OpKind::Read }, key, value);
        }
    }
    builder.finish("random").expect("a small history")
}

fn events(txns: &[Txn]) -> Batch {
    let mut all: Vec<(Event, Vec<Cell>)> = Vec::new();
    for txn in txns {
        let mut event = |kind, interval, cells: Vec<Cell>| {
            let client = ClientId(txn.client);
            let event = Event { client, txn: txn.number, interval, kind, cells: CellSpan::NONE };
            all.push((event, cells));
        };
        event(EventKind::Begin, txn.begin, Vec::new());
        let inside = Interval { invoked: txn.begin.completed, completed: txn.end.invoked };
        for &(is_write, item, value) in &txn.ops {
            let content = if value == 0 { Content::ABSENT } else { Content::integer(value) };
            let kind = if is_write { EventKind::Write } else { EventKind::Read };
            event(kind, inside, vec![Cell { item, row: item, content }]);
        }
        event(txn.kind, txn.end, Vec::new());
    }
    all.sort_by_key(|(event, _)| event.interval.invoked);
    let mut batch = Batch::default();
    for (event, cells) in all {
        batch.push(event, &cells);
    }
    batch
}

fn verdict_of_the_whole(history: &History, level: Level) -> &'static str {
    let index = Index::new(history);
    Check::new(history, &index, &Limits::NONE).decide(level).name()
}

/// The verdict of all rounds, and whether they are exact.
fn verdict_of_rounds(batch: &Batch, level: Level, txns_min: usize) -> (&'static str, bool, usize) {
    let options = RoundsOptions { txns_min, txns_max: 1000, ..OPTIONS };
    let mut rounds = Rounds::new(level, options);
    let mut one = Batch::default();
    let mut carried = 0;
    for event in &batch.events {
        one.clear();
        one.push(*event, batch.cells_of(event));
        rounds.take(&one);
        if rounds.is_due() {
            let round = rounds.decide(&Limits::NONE).expect("small rounds");
            carried = carried.max(rounds.counts().carried);
            if let Verdict::Violated(_) = round.verdict {
                assert!(round.history.is_some());
                return ("violated", true, carried);
            }
        }
    }
    let round = rounds.finish(&Limits::NONE).expect("small rounds");
    (round.verdict.name(), rounds.counts().is_exact(), carried)
}

#[test]
fn rounds_of_any_size_have_the_verdict_of_the_whole_history() {
    let mut random = Random::new(7);
    let (mut agreed, mut violated, mut inexact) = (0, 0, 0);
    for number in 0..600 {
        let wrong = [usize::MAX, 40, 12][number % 3];
        let txns = random_txns(&mut random, 4 + number % 40, wrong);
        let (history, batch) = (whole(&txns), events(&txns));
        for level in EXACT_LEVELS {
            let expected = verdict_of_the_whole(&history, level);
            for txns_min in [1, 3, 10] {
                let (found, is_exact, _) = verdict_of_rounds(&batch, level, txns_min);
                let text = || isolde_history::format::to_text(&history);
                if found == "violated" || is_exact {
                    assert_eq!(found, expected, "{number} {level} {txns_min}\n{}", text());
                    agreed += 1;
                } else {
                    inexact += 1;
                }
            }
            violated += usize::from(expected == "violated");
        }
    }
    assert!(violated > 100, "{violated}");
    assert!(agreed > 10 * inexact, "{agreed} {inexact}");
}

/// Clean by the level of real time, violated only if the level itself is.
#[test]
fn rounds_accuse_no_history_of_a_level_that_it_satisfies() {
    let mut random = Random::new(11);
    let (mut violated, mut found) = (0, 0);
    for number in 0..400 {
        let txns = random_txns(&mut random, 4 + number % 40, [40, 12, 5][number % 3]);
        let (history, batch) = (whole(&txns), events(&txns));
        for level in IMPLIED_LEVELS {
            let expected = verdict_of_the_whole(&history, level);
            violated += usize::from(expected == "violated");
            for txns_min in [1, 10] {
                let (rounds, ..) = verdict_of_rounds(&batch, level, txns_min);
                let text = || isolde_history::format::to_text(&history);
                assert!(
                    rounds != "violated" || expected == "violated",
                    "{number} {level} {txns_min}\n{}",
                    text()
                );
                found += usize::from(rounds == "violated");
            }
        }
    }
    assert!(violated > 50, "{violated}");
    assert!(found > violated / 2, "{found} {violated}");
}

#[test]
fn what_is_carried_over_does_not_grow_with_the_history() {
    let carried = |count| {
        let txns = random_txns(&mut Random::new(3), count, usize::MAX);
        verdict_of_rounds(&events(&txns), Level::StrictSerializable, 20).2
    };
    // Those of unknown outcome that nobody reads from are carried for ever.
    let lost = |count: usize| count / 12;
    assert!(carried(4000) < carried(400) + lost(4000) + 50, "{} {}", carried(4000), carried(400));
}

/// What a forced cut keeps was in a round, and is no reason for another one without anything new.
#[test]
fn after_a_forced_cut_no_round_is_due_before_there_is_something_to_decide() {
    let mut text = String::new();
    let options = RoundsOptions { txns_min: 4, txns_max: 8, ..OPTIONS };
    let mut rounds = Rounds::new(Level::StrictSerializable, options);
    let mut batch = Batch::default();
    for number in 0..40 {
        // Each overlaps the one before it, so that there is never a cut.
        let at = i64::from(number) * 10;
        let client = ClientId(number % 2);
        let mut event = |kind, invoked, cells: &[Cell]| {
            let interval = Interval { invoked, completed: invoked + 1 };
            let txn = u64::from(number);
            batch.clear();
            batch.push(Event { client, txn, interval, kind, cells: CellSpan::NONE }, cells);
            rounds.take(&batch);
        };
        let content = Content::integer(i64::from(number) + 1);
        let written = [Cell { item: number, row: number, content }];
        event(EventKind::Begin, at, &[]);
        event(EventKind::Write, at + 2, &written);
        event(EventKind::Commit, at + 15, &[]);
        if rounds.is_due() {
            let round = rounds.decide(&Limits::NONE).expect("small rounds");
            let (verdict, txns) = (round.verdict.name(), rounds.counts().txns);
            writeln!(text, "{number} {verdict} {txns}").expect("a string grows");
        }
    }
    assert_eq!(
        text,
        "7 satisfied 8\n13 satisfied 14\n19 satisfied 20\n25 satisfied 26\n31 satisfied 32\n\
         37 satisfied 38\n"
    );
}

/// A snapshot that is taken by the first request may miss what was committed before the begin was
/// answered, or show what was committed after it.
#[test]
fn a_transaction_may_begin_as_late_as_the_request_that_takes_its_snapshot() {
    let event = |client, kind, invoked, value: Option<i64>| {
        let interval = Interval { invoked, completed: invoked + 1 };
        let client = ClientId(client);
        let event = Event { client, txn: 1, interval, kind, cells: CellSpan::NONE };
        (event, value.map(|value| Cell { item: 0, row: 0, content: Content::integer(value) }))
    };
    let events = [
        event(0, EventKind::Begin, 0, None),
        event(1, EventKind::Begin, 10, None),
        event(1, EventKind::Write, 20, Some(7)),
        event(1, EventKind::Commit, 30, None),
        event(0, EventKind::Read, 40, Some(7)),
        event(0, EventKind::Write, 50, Some(8)),
        event(0, EventKind::Commit, 60, None),
    ];
    let mut batch = Batch::default();
    for (event, cell) in events {
        batch.push(event, cell.as_slice());
    }
    let verdict = |reads| {
        let mut rounds =
            Rounds::new(Level::StrongSnapshotIsolation, RoundsOptions { reads, ..OPTIONS });
        rounds.take(&batch);
        rounds.finish(&Limits::NONE).expect("a small round").verdict.name()
    };
    assert_eq!(verdict(Reads::Begin), "violated");
    assert_eq!(verdict(Reads::FirstRequest), "satisfied");
    assert_eq!(verdict(Reads::FirstRead), "satisfied");
}
