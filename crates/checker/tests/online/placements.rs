//! The verifier against the definition, on random small traces.
//!
//! It reports only what no placement explains, for every combination of mechanisms. Of
//! one mechanism alone, on traces where pairs decide, it reports all of that.

use crate::judge::is_explained;
use crate::notation::{OPTIONS, show, told, verify, verify_stepwise};
use isolde_checker::online::{
    Batch, Cell, CellSpan, Certifier, ClientId, Content, Dml, Event, EventKind, Finding,
    Granularity, Interval, Locks, NEVER, Pipeline, PipelineOptions, Profile, Reads, Time, Verifier,
    Writers,
};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    fn time(&mut self, bound: Time) -> Time {
        self.below(bound.cast_unsigned()).cast_signed()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What traces are made of.
#[derive(Clone, Copy)]
struct Shape {
    clients: u64,
    txns: u64,
    operations: u64,
    items: u64,
    items_per_row: u32,
    read_percent: u64,
    locking_percent: u64,
    lost_percent: u64,
    wrong_percent: u64,
}

const SHAPE: Shape = Shape {
    clients: 3,
    txns: 1,
    operations: 2,
    items: 2,
    items_per_row: 1,
    read_percent: 50,
    locking_percent: 10,
    lost_percent: 8,
    wrong_percent: 10,
};

/// An event in the making, with the instant at which it truly takes effect.
struct Draft {
    event: Event,
    instant: (Time, u64),
    cells: Vec<Cell>,
}

/// A trace of a store that keeps versions and mostly does as the profile says.
fn trace(shape: Shape, profile: Profile, random: &mut Random) -> Batch {
    let mut drafts = Vec::new();
    for client in 0..shape.clients {
        let mut now = random.time(4);
        for txn in 0..=random.below(shape.txns) {
            let operations = 1 + random.below(shape.operations);
            for place in 0..operations + 2 {
                let kind = match place {
                    0 => EventKind::Begin,
                    _ if place > operations => end_kind(shape, random),
                    _ if random.chance(shape.locking_percent) => EventKind::LockingRead,
                    _ if random.chance(shape.read_percent) => EventKind::Read,
                    _ => EventKind::Write,
                };
                let invoked = now + random.time(3);
                let completed = invoked + random.time(5);
                let instant = invoked + random.time(completed - invoked + 1);
                now = completed;
                let event = Event {
                    client: ClientId(client as u32),
                    txn,
                    interval: Interval { invoked, completed },
                    kind,
                    cells: CellSpan::NONE,
                };
                let cells = cells(shape, kind, random);
                drafts.push(Draft { event, instant: (instant, random.bits()), cells });
            }
        }
    }
    execute(&mut drafts, shape, profile, random);
    let mut batch = Batch::default();
    drafts.sort_by_key(|draft| (draft.event.interval.invoked, draft.event.client));
    for draft in drafts {
        batch.push(draft.event, &draft.cells);
    }
    batch
}

fn end_kind(shape: Shape, random: &mut Random) -> EventKind {
    match random.below(100) {
        chance if chance < shape.lost_percent => EventKind::Lost,
        chance if chance < shape.lost_percent + 10 => EventKind::Abort,
        _ => EventKind::Commit,
    }
}

fn cells(shape: Shape, kind: EventKind, random: &mut Random) -> Vec<Cell> {
    if !kind.is_operation() {
        return Vec::new();
    }
    let first = random.below(shape.items) as u32;
    let second = random.below(shape.items) as u32;
    let cell = |item: u32| Cell { item, row: item / shape.items_per_row, content: Content::ABSENT };
    let mut cells = vec![cell(first)];
    if second != first && kind == EventKind::Read && random.chance(30) {
        cells.push(cell(second));
    }
    cells
}

/// One version: item, content, writer.
type Version = (u32, Content, (ClientId, u64));

/// Runs the drafts in the order of their instants.
fn execute(drafts: &mut [Draft], shape: Shape, profile: Profile, random: &mut Random) {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|&place| {
        // A client's events are in order even where their instants are equal.
        (drafts[place].instant.0, drafts[place].event.client, place)
    });
    let mut committed: Vec<Version> = Vec::new();
    let mut pending: Vec<Version> = Vec::new();
    let mut snapshots: Vec<((ClientId, u64), usize)> = Vec::new();
    let mut last_value = 10;
    for place in order {
        let event = drafts[place].event;
        let id = (event.client, event.txn);
        let takes = match profile.reads {
            Reads::Begin => true,
            Reads::FirstRequest => event.kind.is_operation(),
            Reads::FirstRead => event.kind == EventKind::Read,
            _ => false,
        };
        if takes && !snapshots.iter().any(|known| known.0 == id) {
            snapshots.push((id, committed.len()));
        }
        let snapshot = snapshots.iter().find(|known| known.0 == id).map(|known| known.1);
        for cell in &mut drafts[place].cells {
            if event.kind == EventKind::Write {
                last_value += 1;
                let number = if random.chance(75) { last_value } else { 1 };
                cell.content = Content::integer(number);
                pending.push((cell.item, cell.content, id));
                continue;
            }
            let own = pending.iter().rfind(|known| known.2 == id && known.0 == cell.item);
            let visible = &committed[..snapshot.unwrap_or(committed.len())];
            let seen = own.or_else(|| visible.iter().rfind(|known| known.0 == cell.item));
            cell.content = seen.map_or(Content::ABSENT, |known| known.1);
            if random.chance(shape.wrong_percent) {
                cell.content = match random.below(3) {
                    0 => Content::ABSENT,
                    1 => Content::integer(11 + random.time(last_value)),
                    _ => committed.last().map_or(Content::integer(1), |known| known.1),
                };
            }
        }
        end(drafts, place, &mut committed, &mut pending, snapshot, random);
    }
}

fn end(
    drafts: &mut [Draft],
    place: usize,
    committed: &mut Vec<Version>,
    pending: &mut Vec<Version>,
    snapshot: Option<usize>,
    random: &mut Random,
) {
    let event = &mut drafts[place].event;
    let id = (event.client, event.txn);
    if event.kind.is_end() {
        let own: Vec<Version> = pending.iter().filter(|known| known.2 == id).copied().collect();
        pending.retain(|known| known.2 != id);
        let changed = snapshot.is_some_and(|snapshot| {
            committed[snapshot..].iter().any(|known| own.iter().any(|mine| mine.0 == known.0))
        });
        if changed && event.kind == EventKind::Commit && random.chance(60) {
            event.kind = EventKind::Abort;
        }
        let takes_effect =
            event.kind == EventKind::Commit || (event.kind == EventKind::Lost && random.chance(50));
        if takes_effect {
            committed.extend(own);
        }
        if event.kind == EventKind::Lost {
            event.interval.completed = NEVER;
        }
    }
}

const SNAPSHOTS: Profile = Profile {
    reads: Reads::FirstRequest,
    dml: Dml::Snapshot,
    writers: Writers::FirstUpdater,
    locks: Locks::Writes,
    granularity: Granularity::Row,
    certifier: Certifier::None,
    staleness: 0,
    skew: 0,
};

/// Combinations that databases have, and each mechanism by itself.
fn profiles() -> Vec<Profile> {
    let reads = |reads| Profile { reads, ..Profile::NONE };
    vec![
        reads(Reads::Item),
        reads(Reads::Window),
        Profile { writers: Writers::AsRead, ..reads(Reads::Window) },
        reads(Reads::Statement),
        reads(Reads::Begin),
        reads(Reads::FirstRequest),
        Profile { locks: Locks::Writes, ..Profile::NONE },
        Profile { locks: Locks::ReadsAndWrites, ..Profile::NONE },
        Profile { writers: Writers::FirstCommitter, ..reads(Reads::Begin) },
        Profile { locks: Locks::Writes, dml: Dml::Current, ..reads(Reads::Statement) },
        Profile { locks: Locks::Writes, dml: Dml::Current, ..reads(Reads::FirstRead) },
        SNAPSHOTS,
        Profile { certifier: Certifier::Cycles, ..SNAPSHOTS },
        Profile { certifier: Certifier::DangerousStructure, ..SNAPSHOTS },
        Profile {
            certifier: Certifier::Validation,
            writers: Writers::FirstCommitter,
            ..reads(Reads::Begin)
        },
        Profile { certifier: Certifier::TimestampOrder, ..reads(Reads::Window) },
        Profile {
            locks: Locks::ReadsAndWrites,
            dml: Dml::Current,
            certifier: Certifier::Cycles,
            ..reads(Reads::Statement)
        },
    ]
}

fn traces(few: u64) -> u64 {
    std::env::var("ISOLDE_TRACES").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

/// How many traces were explained, and how many of the others were found.
#[derive(Default, Debug)]
struct Tally {
    explained: u64,
    violated: u64,
    found: u64,
}

fn compare(shape: Shape, profile: Profile, seed: u64, tally: &mut Tally) {
    let batch = trace(shape, profile, &mut Random(seed));
    let Some(explained) = is_explained(&batch, profile) else { return };
    let findings = verify(&batch, profile);
    for findings in [&findings, &verify_stepwise(&batch, profile)] {
        assert!(
            !explained || findings.is_empty(),
            "seed {seed}, {profile:?}:\n{}{}",
            show(&batch),
            told(findings)
        );
    }
    if explained {
        tally.explained += 1;
    } else {
        tally.violated += 1;
        tally.found += u64::from(!findings.is_empty());
    }
}

#[test]
fn what_some_placement_explains_is_not_reported() {
    for (number, profile) in profiles().into_iter().enumerate() {
        let mut tally = Tally::default();
        for seed in 0..traces(600) {
            let mut shape = SHAPE;
            if seed % 2 == 1 {
                (shape.clients, shape.txns, shape.items) = (2, 2, 3);
            }
            if seed % 3 == 1 {
                (shape.items, shape.items_per_row) = (3, 2);
            }
            compare(shape, profile, seed, &mut tally);
        }
        assert!(tally.explained > 10, "profile {number}: {tally:?}");
        // Intervals of this trace overlap far more than those of databases do.
        assert!(tally.found * 2 > tally.violated, "profile {number}: {tally:?}");
    }
}

fn assert_exact(shape: Shape, profile: Profile) {
    let mut violated = 0;
    for seed in 0..traces(1500) {
        let batch = trace(shape, profile, &mut Random(seed));
        let Some(explained) = is_explained(&batch, profile) else { continue };
        let findings = verify(&batch, profile);
        let text = || format!("seed {seed}:\n{}{}", show(&batch), told(&findings));
        assert_eq!(findings.is_empty(), explained, "{}", text());
        violated += u64::from(!explained);
    }
    assert!(violated > 10, "{violated}");
}

/// Lost commits make a third transaction of a pair.
const WRITERS: Shape =
    Shape { read_percent: 0, locking_percent: 0, lost_percent: 0, items: 1, clients: 2, ..SHAPE };

#[test]
fn of_two_writers_every_lock_violation_is_found() {
    assert_exact(WRITERS, Profile { locks: Locks::Writes, ..Profile::NONE });
}

#[test]
fn of_two_writers_every_lost_update_is_found() {
    let profile = Profile { reads: Reads::Begin, writers: Writers::FirstUpdater, ..Profile::NONE };
    assert_exact(WRITERS, profile);
}

/// The candidates are minimal: of reads that have an instant of their own each misread is
/// found, if values are told apart and one writer's commit says nothing about another's.
#[test]
fn every_read_of_one_item_without_an_explanation_is_found() {
    for seed in 0..traces(3000) {
        let mut random = Random(seed);
        let shape = Shape { items: 1, clients: 4, operations: 1, lost_percent: 0, ..WRITERS };
        let profile = Profile { reads: Reads::Statement, ..Profile::NONE };
        let mut batch = trace(shape, profile, &mut random);
        let reader = batch.events.iter().position(|event| event.kind == EventKind::Write);
        let Some(reader) = reader else { continue };
        let read = &mut batch.events[reader];
        read.kind = EventKind::Read;
        let contents: Vec<Content> = batch.cells.iter().map(|cell| cell.content).collect();
        let place = batch.events[reader].cells.start as usize;
        batch.cells[place].content = if random.chance(20) {
            Content::ABSENT
        } else {
            contents[random.below(contents.len() as u64) as usize]
        };
        let Some(explained) = is_explained(&batch, profile) else { continue };
        let mut verifier = Verifier::new(profile, OPTIONS);
        verifier.take(&batch, NEVER);
        verifier.finish();
        // What was not even sent when it was read tells of clocks.
        let is_clean =
            verifier.take_findings().is_empty() && verifier.take_contradictions().is_empty();
        assert_eq!(is_clean, explained, "seed {seed}:\n{}", show(&batch));
    }
}

/// The trace through the pipeline, where the clock of one client is set back after some of its
/// events. Another, who does nothing, says what time it is. Nothing if the step does not show.
fn through_steps(batch: &Batch, profile: Profile, random: &mut Random) -> Option<Vec<Finding>> {
    let stepping = ClientId(random.below(3) as u32);
    let after = 1 + random.below(5);
    let step = 1 + random.time(12);
    let mut order: Vec<usize> = (0..batch.events.len()).collect();
    let told = |place: usize| {
        let Event { interval, .. } = batch.events[place];
        let end = if interval.completed == NEVER { interval.invoked } else { interval.completed };
        (end, place)
    };
    order.sort_by_key(|&place| told(place));
    let keeper = ClientId(9);
    let options = PipelineOptions { stall_after: 1000, ..PipelineOptions::default() };
    let mut pipeline = Pipeline::new(options);
    let mut verifier = Verifier::new(profile, OPTIONS);
    for client in batch.events.iter().map(|event| event.client).chain([keeper]) {
        pipeline.open(client, 0);
    }
    let (mut merged, mut one, mut count) = (Batch::default(), Batch::default(), 0);
    for place in order {
        let mut event = batch.events[place];
        let now = told(place).0;
        if event.client == stepping {
            count += 1;
            if count > after {
                event.interval.invoked -= step;
                if event.interval.completed != NEVER {
                    event.interval.completed -= step;
                }
            }
        }
        one.clear();
        one.push(event, batch.cells_of(&batch.events[place]));
        pipeline.advance(keeper, now);
        let _ = pipeline.push(event.client, &one);
        merged.clear();
        let watermark = pipeline.drain(&mut merged);
        verifier.take(&merged, watermark);
    }
    for client in 0..10 {
        pipeline.close(ClientId(client));
    }
    merged.clear();
    let watermark = pipeline.drain(&mut merged);
    verifier.take(&merged, watermark);
    verifier.finish();
    (pipeline.disorder().backwards > 0).then(|| verifier.take_findings())
}

#[test]
fn a_clock_that_is_set_back_accuses_nobody() {
    for (number, profile) in profiles().into_iter().enumerate() {
        let mut shown = 0;
        for seed in 0..traces(600) {
            let shape = Shape { txns: 3, operations: 1, ..SHAPE };
            let mut random = Random(seed);
            let batch = trace(shape, profile, &mut random);
            if !verify(&batch, profile).is_empty() {
                continue;
            }
            let Some(findings) = through_steps(&batch, profile, &mut random) else { continue };
            shown += 1;
            assert_eq!(
                told(&findings),
                "",
                "profile {number}, seed {seed}, {profile:?}:\n{}",
                show(&batch)
            );
        }
        assert!(shown > 10, "profile {number}: {shown}");
    }
}
