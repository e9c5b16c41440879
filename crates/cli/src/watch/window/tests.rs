//! A part says no more than the whole: on random streams, whatever is kept and chosen of them.
//!
//! `ISOLDE_RANDOM_HISTORIES=100000` tries more than the usual few.

use super::{Known, Window, item_name};
use crate::watch::hub::Hub;
use crate::watch::opinion::levels;
use isolde::online::{
    Batch, Cell, CellSpan, ClientId, Content, Event, EventKind, Finding, Interval, Key, NEVER,
    Name, Reads, Role, Step,
};
use isolde::{Check, Level, Limits};
use isolde_history::{History, Index, format};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt::Write;

const ITEMS: u64 = 2;
const VALUES: u64 = 3;
const CLIENTS: usize = 4;

fn content(random: &mut Xoshiro256PlusPlus) -> Content {
    match random.random_range(0..=VALUES) {
        0 => Content::ABSENT,
        value => Content::integer(value.cast_signed()),
    }
}

struct Txn {
    client: u32,
    number: u64,
    /// What it did, when, and to which item.
    operations: Vec<(EventKind, Interval, u32, Content)>,
    end: (EventKind, Interval),
}

/// A stream, and what its items held before it.
struct Stream {
    txns: Vec<Txn>,
    initial: Vec<Content>,
}

/// Transactions that each see and change everything at one instant, in an interval around it; in
/// every second stream one read is wrong.
fn stream(random: &mut Xoshiro256PlusPlus) -> Stream {
    let initial: Vec<Content> = (0..ITEMS).map(|_| content(random)).collect();
    let mut state = initial.clone();
    let mut ended = [0; CLIENTS];
    let mut numbers = [0; CLIENTS];
    let mut txns = Vec::new();
    for place in 0..4 + random.random_range(0..7) {
        let instant = 1000 + place * 100;
        let client = random.random_range(0..CLIENTS as u64) as usize;
        if ended[client] + 20 >= instant {
            continue;
        }
        let begun = (instant - 20 - random.random_range(0..250)).max(ended[client] + 1);
        let count = 1 + random.random_range(0..3);
        let step = (instant - 1 - begun) / (count + 1);
        let mut own = state.clone();
        let operations = (1..=count)
            .map(|operation| {
                let item = random.random_range(0..ITEMS) as usize;
                let kind = if random.random_bool(0.5) { EventKind::Read } else { EventKind::Write };
                if kind == EventKind::Write {
                    own[item] = content(random);
                }
                let at = begun + operation * step;
                (kind, Interval { invoked: at, completed: at + 1 }, item as u32, own[item])
            })
            .collect();
        let completed = instant + 1 + random.random_range(0..250);
        let (kind, completed) = match random.random_range(0..8) {
            0 => (EventKind::Abort, completed),
            1 => (EventKind::Lost, NEVER),
            _ => (EventKind::Commit, completed),
        };
        if kind == EventKind::Commit || (kind == EventKind::Lost && random.random_bool(0.5)) {
            state = own;
        }
        numbers[client] += 1;
        ended[client] = if completed == NEVER { instant + 1 } else { completed };
        let end = (kind, Interval { invoked: instant - 1, completed });
        txns.push(Txn { client: client as u32 + 1, number: numbers[client], operations, end });
    }
    if random.random_bool(0.5) {
        let mut reads: Vec<&mut Content> = (txns.iter_mut())
            .flat_map(|txn| &mut txn.operations)
            .filter(|operation| operation.0 == EventKind::Read)
            .map(|operation| &mut operation.3)
            .collect();
        let count = reads.len().max(1) as u64;
        if let Some(read) = reads.get_mut(random.random_range(0..count) as usize) {
            **read = content(random);
        }
    }
    Stream { txns, initial }
}

fn value(content: Content) -> String {
    content.as_integer().map_or_else(|| "nil".to_owned(), |number| number.to_string())
}

impl Stream {
    /// The same, if nobody knows what items held before: then the first read of each tells,
    /// if nobody can have written before it was answered.
    fn without_initial(mut self) -> Stream {
        let events = self.events();
        for (item, initial) in self.initial.iter_mut().enumerate() {
            let mut of_item = (events.iter())
                .filter_map(|(event, cells)| Some((event, cells.first()?)))
                .filter(|(_, cell)| cell.item as usize == item);
            let Some((first, cell)) = of_item.next() else { continue };
            let is_before = |later: &Event| {
                later.kind == EventKind::Write && later.interval.invoked <= first.interval.completed
            };
            if first.kind == EventKind::Read && !of_item.any(|(later, _)| is_before(later)) {
                *initial = cell.content;
            }
        }
        self
    }

    /// All of it, written down without anything of a window.
    fn whole(&self) -> History {
        let mut text = String::from("init");
        for (item, content) in self.initial.iter().enumerate() {
            write!(text, " {item}={}", value(*content)).expect("a string grows");
        }
        text.push('\n');
        for Txn { client, operations, end: (kind, end), .. } in &self.txns {
            let first = operations.first().expect("an operation").1;
            let completed =
                if end.completed == NEVER { "?".to_owned() } else { end.completed.to_string() };
            write!(
                text,
                "c{client} @{}..{}..{}..{completed}:",
                first.invoked, first.completed, end.invoked
            )
            .expect("a string grows");
            for (kind, _, item, content) in operations {
                let letter = if *kind == EventKind::Write { 'w' } else { 'r' };
                write!(text, " {letter}({item},{})", value(*content)).expect("a string grows");
            }
            text.push_str(match kind {
                EventKind::Commit => "\n",
                EventKind::Abort => " aborted\n",
                _ => " unknown\n",
            });
        }
        format::parse_text(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
    }

    fn events(&self) -> Vec<(Event, Vec<Cell>)> {
        let mut events = Vec::new();
        for Txn { client, number, operations, end } in &self.txns {
            let event = |kind, interval| Event {
                client: ClientId(*client),
                txn: *number,
                interval,
                kind,
                cells: CellSpan::NONE,
            };
            for &(kind, interval, item, content) in operations {
                events.push((event(kind, interval), vec![Cell { item, row: item, content }]));
            }
            events.push((event(end.0, end.1), Vec::new()));
        }
        events.sort_by_key(|(event, _)| event.interval.invoked);
        events
    }
}

/// The part of a stream around two of its transactions, of a window that keeps little, and whether
/// it was known what items held before.
fn part(stream: &Stream, random: &mut Xoshiro256PlusPlus) -> (History, bool) {
    let hub = std::sync::Arc::new(Hub::new(None));
    for client in 1..=CLIENTS {
        hub.open(&format!("c{client}"), 0);
    }
    for item in 0..ITEMS {
        hub.catalogue().place("registers", Key::Number(item.cast_signed()), None);
        assert_eq!(item_name(&hub, item as u32), item.to_string());
    }
    let is_known = random.random_bool(0.5);
    let unwritten = is_known.then_some(Content::ABSENT);
    let known = Known { reads: Reads::Item, unwritten, is_unique: false, drift: 0 };
    let mut window = Window::new(known);
    if is_known {
        let cells = stream.initial.iter().enumerate();
        let cells = cells.map(|(item, &content)| Cell { item: item as u32, row: 0, content });
        window.initial(&cells.collect::<Vec<_>>());
    }
    window.events_max = 1 + random.random_range(0..60);
    window.txns_max = 1 + random.random_range(0..8);
    let mut batch = Batch::default();
    for (event, cells) in stream.events() {
        batch.push(event, &cells);
        if random.random_ratio(1, 3) {
            window.keep(&batch);
            batch.clear();
        }
    }
    window.keep(&batch);
    let mut step = |role| {
        let txn = &stream.txns[random.random_range(0..stream.txns.len() as u64) as usize];
        let (kind, interval) = txn.end;
        let (client, txn) = (ClientId(txn.client), txn.number);
        Step { client, txn, operation: 1, kind, interval, cell: None, role }
    };
    let finding = Finding {
        name: Name::UnexplainedRead,
        offender: step(Role::Offender),
        others: vec![step(Role::Earlier)],
        candidates: Vec::new(),
        snapshot: None,
        dependencies: Vec::new(),
    };
    (window.around(&finding, &hub, false).expect("a history").history, is_known)
}

/// Levels with this verdict.
fn decided(history: &History, verdict: &str) -> Vec<Level> {
    let index = Index::new(history);
    let mut check = Check::new(history, &index, &Limits::NONE);
    levels(history).into_iter().filter(|level| check.decide(*level).name() == verdict).collect()
}

#[test]
fn no_part_of_a_stream_violates_what_the_whole_satisfies() {
    let wanted = std::env::var("ISOLDE_RANDOM_HISTORIES").ok().and_then(|text| text.parse().ok());
    let (mut shown, mut clean) = (0, 0);
    for seed in 0..wanted.unwrap_or(1500) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let stream = stream(&mut random);
        if stream.txns.is_empty() {
            continue;
        }
        let (part, is_known) = part(&stream, &mut random);
        let of_part = decided(&part, "violated");
        if of_part.is_empty() {
            clean += 1;
            continue;
        }
        let stream = if is_known { stream } else { stream.without_initial() };
        let whole = stream.whole();
        let of_whole = decided(&whole, "satisfied");
        for level in of_part {
            assert!(
                !of_whole.contains(&level),
                "seed {seed}: {} is violated by the part\n{}and satisfied by the whole\n{}",
                level.name(),
                format::to_text(&part),
                format::to_text(&whole)
            );
        }
        shown += 1;
    }
    // A window that says nothing would be right, too.
    assert!(shown > clean / 20, "{shown} parts say something, {clean} do not");
}
