//! The strong levels: one order of begins and commits that explains every read.
//!
//! `versions` joins reads to versions and finds the orders of versions that are known, and
//! `sources` turn what is known into edges of one `graph` of events. `strategies` is the table of
//! ways to find an order that agrees with it, or to refute that there is one; `orders` proposes
//! and replays without a solver, `search` asks the solver about what a proposal gets wrong, and
//! `saturate` derives what follows where that is hard. Why a level does not hold, `cycle`
//! finds and `proof` derives.
//!
//! | file | what it does |
//! |---|---|
//! | `strategies/` | the table of ways to decide a level, a file for each |
//! | `decision.rs` | what these have in common: the graph, the proposal, what was given up, the answer |
//! | `model.rs` | the table of levels: events, what each dependency means, session order, real time |
//! | `options.rs` | what beside the history decides: sources, strategies, clock drift, which engine searches |
//! | `orders/` | orders that are proposed, replayed and put right |
//! | `versions.rs`, `reads_by_slot.rs` | who wrote and read which version, and which follow which |
//! | `repeated.rs` | reads of repeated values, and everything each of them may have seen |
//! | `conditions/` | what reads by condition and aggregates mean |
//! | `sources/` | what is known before anything is derived, a file for each source of order |
//! | `graph.rs` | known edges in columns, derived ones beside them, and their evidence |
//! | `search.rs`, `solving.rs` | what the solver is asked; and the search |
//! | `saturate.rs`, `cover.rs`, `clocks.rs`, `runs.rs` | what follows from known edges, and reachability for it |
//! | `update_atomic.rs`, `parallel.rs` | the two levels whose orders of commits take a search |
//! | `commits.rs`, `questions.rs`, `forced_orders.rs` | what these two have in common: their graph, what the solver is asked, orders that cycles force |
//! | `constraints.rs` | how many choices a history leaves, for measurements |
//! | `connected.rs` | strongly connected parts |
//! | `cycle.rs`, `proof.rs` | short cycles, and refutations as derivations, of which everything else that is said of them is read |
//! | `argument.rs` | the plainest argument against a small history |

mod argument;
mod clocks;
mod commits;
mod conditions;
mod connected;
mod constraints;
mod cover;
mod cycle;
mod decision;
mod forced_orders;
mod graph;
mod model;
mod options;
mod orders;
mod parallel;
mod proof;
mod questions;
mod reads_by_slot;
mod repeated;
mod runs;
mod saturate;
mod search;
mod solving;
mod sources;
mod strategies;
mod update_atomic;
mod versions;

pub(crate) use argument::argue;
pub(crate) use conditions::unnamed_writers;
pub use constraints::{Constraints, Pruned, constraints};
pub use options::{Engine, Options};
pub(crate) use orders::interleaving::Interleaved;
pub(crate) use repeated::{Refused, has_refused, refused_fit};
pub use sources::Sources;

use crate::level::Level;
use crate::limits::{Limits, Stage};
use crate::strategy::StrategyName;
use crate::unknown::Unknown;
use crate::verdict::{Attempt, Verdict, Violated};
use commits::{Depth, Found};
use decision::{Decision, open_pairs};
use isolde_history::{History, Index, TxnId};
use model::{Events, Model, Protected};
use orders::{interleaving, replay};
use parallel::Parallel;
use repeated::repeated_reads;
use std::sync::Arc;
use update_atomic::UpdateAtomic;
use versions::Versions;

/// Levels that are decided here.
pub(crate) fn levels() -> impl Iterator<Item = Level> {
    model::MODELS.iter().map(|model| model.level).chain(COMMIT_LEVELS)
}

/// Levels decided here whose witness is an order of commits.
pub(crate) const COMMIT_LEVELS: [Level; 2] =
    [Level::UpdateAtomic, Level::ParallelSnapshotIsolation];

/// Whether a level can only be decided with times.
pub(crate) fn needs_times(level: Level) -> bool {
    Model::of(level).is_some_and(|model| !model.real_time.is_empty())
}

/// Whether a level does not tell begins and commits of a transaction apart.
pub(crate) fn is_of_one_event(level: Level) -> bool {
    Model::of(level).is_some_and(|model| model.events == Events::One)
}

/// Whether session order is part of a level.
pub(crate) fn keeps_sessions(level: Level) -> bool {
    Model::of(level).is_some_and(|model| model.session)
}

/// Decides one of [`COMMIT_LEVELS`].
pub(crate) fn decide_commits(
    level: Level,
    facts: (&History, &Index),
    options: Options,
    limits: &Limits<'_>,
) -> Found {
    let searching = (limits, Depth::Search);
    match level {
        Level::UpdateAtomic => commits::decide::<UpdateAtomic>(facts, options, searching),
        _ => commits::decide::<Parallel>(facts, options, searching),
    }
}

/// Why parallel snapshot isolation does not hold, if that follows without a search and soon.
pub(crate) fn parallel_refuted(
    facts: (&History, &Index),
    options: Options,
    limits: &Limits<'_>,
) -> Option<Violated> {
    if facts.0.txn_count() > forced_orders::TXNS_MAX {
        return None;
    }
    match commits::decide::<Parallel>(facts, options, (limits, Depth::Forced)).verdict {
        Verdict::Violated(violated) => Some(violated),
        _ => None,
    }
}

/// What levels of one history have in common, found for the first and kept for the
/// next.
#[derive(Default)]
pub(crate) struct Shared<'a> {
    versions: Option<(VersionsOf, Arc<Versions<'a>>)>,
    /// Whether a serial order along the clients' times was looked for and not found.
    is_not_serial: bool,
    /// What came of putting sessions in one order, with real time and without.
    interleaved: [Option<Interleaved>; 2],
}

/// What [`Versions`] depend on beside the history.
type VersionsOf = (Protected, bool, Sources);

impl<'a> Shared<'a> {
    fn versions(
        &mut self,
        (history, index): (&'a History, &'a Index),
        model: &Model,
        sources: Sources,
        limits: &Limits<'_>,
    ) -> Option<Arc<Versions<'a>>> {
        let asked = (model.protected, model.forbids_divergence(), sources);
        match &self.versions {
            Some((known, versions)) if *known == asked => Some(Arc::clone(versions)),
            _ => {
                self.versions = None;
                let mut versions = Versions::new(history, index, model, sources);
                if !versions.find_conditions(model, limits.stop) {
                    return None;
                }
                let versions = Arc::new(versions);
                self.versions = Some((asked, Arc::clone(&versions)));
                Some(versions)
            }
        }
    }
}

impl Shared<'_> {
    /// What putting the sessions in one order says of a level of one event: an order, or that
    /// there is none. One that keeps real time is one for all of them, so that is looked for first.
    pub(crate) fn interleaved(
        &mut self,
        level: Level,
        facts: (&History, &Index),
        options: Options,
        limits: &Limits<'_>,
    ) -> Option<Interleaved> {
        if options.sources != Sources::ALL || facts.1.several().is_empty() {
            return None;
        }
        let model = Model::of(level)?;
        let asked = [true, false].into_iter().filter(|timed| !timed || facts.0.has_times());
        for timed in asked {
            let known = &mut self.interleaved[usize::from(timed)];
            if known.is_none() && !(limits.stop)() {
                let real_time = timed.then_some(options.clock_drift);
                *known = interleaving::order(facts, real_time, limits);
            }
            let is_about_times = !model.real_time.is_empty();
            match known {
                Some(Interleaved::Order(_)) if timed || !is_about_times => return known.clone(),
                Some(Interleaved::Nowhere) if timed == is_about_times && model.session => {
                    return known.clone();
                }
                _ => {}
            }
            if (limits.stop)() {
                // With more time there may be one.
                self.interleaved = [None, None];
                return None;
            }
            if is_about_times {
                return None;
            }
        }
        None
    }

    /// A serial order along the clients' times, for all levels of one event.
    pub(crate) fn replayed(
        &mut self,
        facts: (&History, &Index),
        options: Options,
        limits: &Limits<'_>,
    ) -> Option<Vec<TxnId>> {
        if self.is_not_serial {
            return None;
        }
        let order = replay::order(facts, options, limits);
        // With more time there may be one.
        self.is_not_serial = order.is_none() && !limits.is_over();
        order
    }
}

/// What is asked about a level.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) level: Level,
    pub(crate) refused: Refused,
    /// Whether it is known that there is no order, so that a long search is not worth it.
    pub(crate) is_brief: bool,
}

/// Decides a level of orders of events, given that no read is wrong by itself at it, and says
/// which strategy did.
pub(crate) fn decide<'a>(
    asked: Asked,
    (history, index): (&'a History, &'a Index),
    shared: &mut Shared<'a>,
    options: Options,
    limits: &Limits<'_>,
) -> (Attempt, Option<StrategyName>) {
    let model = Model::of(asked.level).expect("a level of this family");
    (limits.observe)(Stage::Infer);
    let found = shared.versions((history, index), model, options.sources, limits);
    let Some(versions) = found else {
        return (Attempt::OutOfBudget(limits.reached()), None);
    };
    let (pairs, open_keys) = open_pairs(&versions);
    (limits.observe)(Stage::Versions { pairs, open_keys });
    match repeated_reads(model, &versions, asked.refused) {
        Ok(repeated) => {
            let mut decision = Decision::new(model, &versions, &repeated, options, limits);
            if asked.is_brief {
                decision = decision.briefly();
            }
            let (verdict, by) = strategies::decide(&mut decision);
            (Attempt::from(verdict), by)
        }
        Err(obstacle) => (Attempt::Open(Unknown::Unsupported(obstacle)), None),
    }
}
