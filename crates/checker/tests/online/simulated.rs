//! The simulated database, watched: its bugs are found, and nothing where there is none.
//!
//! `ISOLDE_SEEDS=100` tries more seeds than the usual few.

use crate::notation::told;
use isolde_checker::online::{Batch, ClientId};
use isolde_checker::online::{
    Certifier, Counters, Finding, Locks, Options, Pipeline, PipelineOptions, Profile, Reads, Room,
    Verifier, Writers, from_history,
};
use isolde_harness::{
    Aborts, BUGS, Bug, BugRow, Distribution, Isolation, Parameters, Times, TxnKind, generate,
};
use isolde_history::History;

pub(crate) const BASE: Parameters = Parameters {
    sessions: 8,
    transactions: 1000,
    operations: 4,
    read_share: 0.5,
    keys: 5,
    distribution: Distribution::Uniform,
    kind: TxnKind::MiniTransaction,
    isolation: Isolation::Serializable,
    times: Times::Operations,
    aborts: Aborts::Recorded,
    bug: None,
    anomaly: None,
    seed: 1,
};

pub(crate) fn seeds(few: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("ISOLDE_SEEDS").ok().and_then(|text| text.parse().ok());
    0..wanted.unwrap_or(few)
}

/// What the store of a level does.
pub(crate) fn profile_of(isolation: Isolation) -> Profile {
    match isolation {
        Isolation::ReadUncommitted => Profile { locks: Locks::Writes, ..Profile::NONE },
        Isolation::ReadCommitted => Profile { reads: Reads::Statement, ..Profile::NONE },
        // Replicas may be as old as they like.
        Isolation::ReadAtomic | Isolation::Causal => Profile::NONE,
        Isolation::SnapshotIsolation => {
            Profile { reads: Reads::Begin, writers: Writers::FirstCommitter, ..Profile::NONE }
        }
        Isolation::Serializable => Profile {
            reads: Reads::Begin,
            writers: Writers::FirstCommitter,
            certifier: Certifier::Validation,
            ..Profile::NONE
        },
    }
}

fn watch(parameters: &Parameters) -> (Vec<Finding>, Counters) {
    watch_history(parameters, &generate(parameters).expect("a history"))
}

pub(crate) fn watch_history(
    parameters: &Parameters,
    history: &History,
) -> (Vec<Finding>, Counters) {
    let traced = from_history(history).expect("times");
    // All of them, though a bug may spoil every read.
    let unwritten = Some(traced.unwritten);
    let options = Options { unwritten, findings_max: usize::MAX, ..Options::default() };
    let mut verifier = Verifier::new(profile_of(parameters.isolation), options);
    // Through the pipeline, in uneven pieces, as clients send it.
    let mut pipeline = Pipeline::new(PipelineOptions::default());
    let mut merged = Batch::default();
    for client in 0..parameters.sessions {
        pipeline.open(ClientId(client), 0);
    }
    for client in 0..parameters.sessions {
        let mut own = Batch::default();
        for event in traced.batch.events.iter().filter(|event| event.client.0 == client) {
            own.push(*event, traced.batch.cells_of(event));
        }
        assert_eq!(pipeline.push(ClientId(client), &own), Room::Enough);
        pipeline.close(ClientId(client));
        merged.clear();
        let watermark = pipeline.drain(&mut merged);
        verifier.take(&merged, watermark);
    }
    assert_eq!(pipeline.buffered(), 0);
    assert_eq!(pipeline.disorder().total(), 0);
    verifier.finish();
    let counters = verifier.counters();
    assert_eq!(counters.events as usize, traced.batch.events.len());
    assert_eq!(counters.disorder.total(), 0);
    (verifier.take_findings(), counters)
}

#[test]
fn without_a_bug_nothing_is_found() {
    for isolation in Isolation::ALL {
        for seed in seeds(4) {
            for kind in [TxnKind::MiniTransaction, TxnKind::Mixed, TxnKind::BlindWrite] {
                let parameters = Parameters { isolation, seed, kind, ..BASE };
                let (findings, _) = watch(&parameters);
                let place = format!("{} {kind:?} seed {seed}", isolation.name());
                assert_eq!(told(&findings), "", "{place}");
            }
        }
    }
}

/// What may follow once a database has gone wrong: its later answers are held to what it
/// said before.
const FOLLOWING: &[&str] = &["stale-read", "read-skew", "lost-update", "unexplained-read"];

/// Names under which a bug may show. What it spoils first decides.
fn expected(bug: Bug) -> &'static [&'static str] {
    match bug {
        Bug::ThinAirRead => &["unexplained-read"],
        Bug::AbortedRead => &["aborted-read"],
        // A transaction that is refused before it writes leaves what it foresaw to nobody.
        Bug::FutureRead => &["future-read", "unexplained-read"],
        Bug::NotMyLastWrite | Bug::NotMyOwnWrite => &["own-write-missed"],
        Bug::IntermediateRead => &["intermediate-read"],
        Bug::NonRepeatableRead | Bug::FracturedRead => &["future-read", "read-skew", "dirty-read"],
        Bug::NonMonotonicRead | Bug::LostCommit => FOLLOWING,
        Bug::SessionGuaranteeViolation
        | Bug::CausalityViolation
        | Bug::LongFork
        | Bug::StaleSnapshot => {
            &["stale-read", "read-skew", "unexplained-read", "lost-update", "failed-validation"]
        }
        // What one of the two wrote is then missing where it should be the last.
        Bug::LostUpdate => &["lost-update", "stale-read", "read-skew"],
        Bug::WriteSkew => &["failed-validation", "serialization-cycle"],
        Bug::DirtyRead => {
            &["dirty-read", "aborted-read", "intermediate-read", "future-read", "read-skew"]
        }
        Bug::Phantom | Bug::PredicateManyPreceders | Bug::PredicateWriteSkew | Bug::LostInsert => {
            &[]
        }
    }
}

/// A run in which a bug has the opportunity to show.
pub(crate) fn with_bug(row: &BugRow, seed: u64) -> Parameters {
    let isolation = if row.bug.fits(Isolation::SnapshotIsolation) {
        Isolation::SnapshotIsolation
    } else {
        Isolation::Serializable
    };
    let kind = match row.bug {
        Bug::NonMonotonicRead | Bug::FracturedRead | Bug::CausalityViolation => TxnKind::Mixed,
        _ => TxnKind::MiniTransaction,
    };
    let transactions = row.found_within;
    Parameters { bug: Some(row.bug), transactions, isolation, kind, seed, ..BASE }
}

#[test]
fn every_bug_is_found_under_its_name() {
    let mut wrong = Vec::new();
    // Others take conditions, which generated histories do not have.
    for row in BUGS.iter().filter(|row| !row.bug.is_of_rows()) {
        for seed in seeds(3) {
            let (findings, _) = watch(&with_bug(row, seed));
            let mut names: Vec<_> = findings.iter().map(|finding| finding.name.name()).collect();
            names.sort_unstable();
            names.dedup();
            let known = expected(row.bug);
            if names.is_empty() || !names.iter().any(|name| known.contains(name)) {
                wrong.push(format!("{} seed {seed}: {names:?}", row.name));
            }
            let is_known = |name: &&&str| known.contains(*name) || FOLLOWING.contains(*name);
            let strange: Vec<_> = names.iter().filter(|name| !is_known(name)).collect();
            if !strange.is_empty() {
                wrong.push(format!("{} seed {seed}: also {strange:?}", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
