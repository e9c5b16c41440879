//! The strong levels: one order of begins and commits that explains every read.
//!
//! A history with times is tried along them first: `serial` replays a serial order, `timed` an
//! order of begins and commits, and both put right what a read contradicts. Where values repeat,
//! `interleaving` looks for an order session by session. Else `versions`
//! joins reads to versions and finds the orders of versions that are known; `sources` turn what
//! is known into edges of one `graph` of events; a topological order of it is the guess. A
//! history whose version orders are all known ends here. What the guess gets wrong is decided
//! by the solver (`search`), which looks only at pairs of versions that an order gets wrong. If
//! that is hard, `saturate` derives what follows from the known edges and the solver starts
//! again. Why a level does not hold, `cycle` finds and `proof` derives.
//!
//! | file | what it does |
//! |---|---|
//! | `decision.rs` | the pipeline of one level |
//! | `model.rs` | the table of levels: events, what each dependency means, session order, real time |
//! | `options.rs` | what beside the history decides: sources, clock drift, when to saturate, which engine searches |
//! | `serial.rs`, `timed.rs` | orders along the clients' times, without a graph or a solver |
//! | `interleaving.rs` | where values repeat and a transaction is one event: an order of all, session by session |
//! | `versions.rs`, `reads_by_slot.rs` | who wrote and read which version, and which follow which |
//! | `repeated.rs` | reads of repeated values, and everything each of them may have seen |
//! | `conditions/` | what reads by condition and aggregates mean |
//! | `sources/` | what is known before anything is derived, a file for each source of order |
//! | `graph.rs` | known edges in columns, derived ones beside them, and their evidence |
//! | `witness.rs` | guesses an order, and finds the pairs of versions that an order gets wrong |
//! | `search.rs`, `solving.rs` | what the solver is asked; one search for all, or one for each group of parts |
//! | `components.rs`, `connected.rs` | parts that are decided by themselves after saturation |
//! | `saturate.rs`, `cover.rs`, `clocks.rs`, `runs.rs` | what follows from known edges, and reachability for it |
//! | `update_atomic.rs`, `parallel.rs` | the two levels whose orders of commits take a search |
//! | `commits.rs`, `questions.rs`, `likely.rs`, `nearly.rs`, `forced_orders.rs` | what these two have in common: their graph, what the solver is asked, first guesses, orders that cycles force |
//! | `constraints.rs` | how many choices a history leaves, for measurements |
//! | `cycle.rs`, `proof.rs` | short cycles, and refutations as derivations, of which everything else that is said of them is read |
//! | `argument.rs` | the plainest argument against a small history |

mod argument;
mod clocks;
mod commits;
mod components;
mod conditions;
mod connected;
mod constraints;
mod cover;
mod cycle;
mod decision;
mod forced_orders;
mod graph;
mod interleaving;
mod likely;
mod model;
mod nearly;
mod options;
mod parallel;
mod proof;
mod questions;
mod reads_by_slot;
mod repeated;
mod runs;
mod saturate;
mod search;
mod serial;
mod seriation;
mod solving;
mod sources;
mod timed;
mod update_atomic;
mod versions;
mod witness;

pub(crate) use argument::argue;
pub(crate) use conditions::unnamed_writers;
pub use constraints::{Constraints, Pruned, constraints};
pub use options::{Engine, Options, Saturate};
pub use sources::Sources;

use crate::level::Level;
use crate::limits::{Limits, Stage};
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Satisfied, Verdict, Violated};
use commits::Depth;
use decision::{Decision, limit, open_pairs};
use interleaving::Interleaved;
use isolde_certificate::ChosenOrigin;
use isolde_history::{History, Index};
use model::{Events, Model, Protected};
use parallel::Parallel;
use repeated::{Refused, has_refused, refused_fit, repeated_reads};
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

/// Whether session order is part of a level.
pub(crate) fn keeps_sessions(level: Level) -> bool {
    Model::of(level).is_some_and(|model| model.session)
}

/// Decides one of [`COMMIT_LEVELS`], with what reads of repeated values are taken to
/// have seen if it holds.
pub(crate) fn decide_with_origins(
    level: Level,
    facts: (&History, &Index),
    options: Options,
    limits: &Limits<'_>,
) -> (Verdict, Vec<ChosenOrigin>) {
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
    match commits::decide::<Parallel>(facts, options, (limits, Depth::Forced)).0 {
        Verdict::Violated(violated) => Some(violated),
        _ => None,
    }
}

/// What levels of one history have in common, found for the first and kept for the
/// next.
#[derive(Default)]
pub(crate) struct Shared<'a> {
    versions: Option<(Asked, Arc<Versions<'a>>)>,
    /// Whether a serial order along the clients' times was looked for and not found.
    is_not_serial: bool,
    /// What came of putting sessions in one order, with real time and without.
    interleaved: [Option<Interleaved>; 2],
}

/// What [`Versions`] depend on beside the history.
type Asked = (Protected, bool, Sources);

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
    fn interleaved(
        &mut self,
        model: &Model,
        facts: (&History, &Index),
        options: Options,
        limits: &Limits<'_>,
    ) -> Option<Interleaved> {
        if options.sources != Sources::ALL || facts.1.several().is_empty() {
            return None;
        }
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
}

/// Whether one order of all sessions was found that explains every read.
pub(crate) fn is_interleaved(
    facts: (&History, &Index),
    shared: &mut Shared<'_>,
    options: Options,
    limits: &Limits<'_>,
) -> bool {
    let model = Model::of(Level::SessionSerializable).expect("a level of this family");
    let found = shared.interleaved(model, facts, options, limits);
    matches!(found, Some(Interleaved::Order(_)))
}

/// Of more possible origins it is not looked for why a level does not hold, once that is known.
const EXPLAINED_ORIGINS_MAX: usize = 1 << 16;

/// Decides a level, given that no read is wrong by itself at it.
pub(crate) fn decide<'a>(
    level: Level,
    (history, index): (&'a History, &'a Index),
    shared: &mut Shared<'a>,
    options: Options,
    limits: &Limits<'_>,
) -> Verdict {
    if COMMIT_LEVELS.contains(&level) {
        return decide_with_origins(level, (history, index), options, limits).0;
    }
    let model = Model::of(level).expect("a level of this family");
    if !model.real_time.is_empty() && !history.has_times() {
        return Verdict::Unknown(Unknown::Unsupported(Obstacle::NoTimes));
    }
    if model.events == Events::One && !shared.is_not_serial {
        if let Some(order) = serial::order((history, index), options, limits) {
            return Verdict::Satisfied(Satisfied::Order(order));
        }
        // With more time there may be one.
        shared.is_not_serial = !limits.is_over();
    }
    let mut is_nowhere = false;
    if model.events == Events::One {
        match shared.interleaved(model, (history, index), options, limits) {
            Some(Interleaved::Order(order)) => return Verdict::Satisfied(Satisfied::Order(order)),
            Some(Interleaved::Nowhere) => is_nowhere = true,
            Some(Interleaved::Open) | None => {}
        }
    }
    let origins: usize = index.several().iter().map(|several| several.candidates.len()).sum();
    if is_nowhere && origins > EXPLAINED_ORIGINS_MAX {
        return Verdict::Violated(Violated::by(Vec::new()));
    }
    (limits.observe)(Stage::Infer);
    let found = shared.versions((history, index), model, options.sources, limits);
    let Some(versions) = found else {
        return limit(acyclic::Stop::Asked, limits);
    };
    let (pairs, open_keys) = open_pairs(&versions);
    (limits.observe)(Stage::Versions { pairs, open_keys });
    let decided = |refused| match repeated_reads(model, &versions, refused) {
        Ok(repeated) => {
            let mut decision = Decision::new(model, &versions, &repeated, options, limits);
            if is_nowhere {
                decision = decision.briefly();
            }
            decision.run()
        }
        Err(reason) => Verdict::Unknown(Unknown::Unsupported(reason)),
    };
    if has_refused(history, index) {
        let verdict = decided(Refused::LeftOut);
        let is_settled = match &verdict {
            Verdict::Satisfied(order) => refused_fit(history, index, order),
            Verdict::Violated(_) => true,
            Verdict::Unknown(_) => false,
        };
        if is_settled {
            return verdict;
        }
    }
    match decided(Refused::Tried) {
        Verdict::Unknown(_) if is_nowhere => Verdict::Violated(Violated::by(Vec::new())),
        verdict => verdict,
    }
}
