//! Certificates: what was decided, in a form that the verifier can check on its own.
//!
//! A commit order is a witness as it stands. A cycle becomes a derivation with a step for
//! each edge, those that made another transaction visible before the edge that follows from
//! them; an anomaly found by reading names its operations. Levels that share a proof share
//! a claim.

use crate::anomaly::{Anomaly, AnomalyKind, Evidence};
use crate::check::Check;
use crate::check::by_cases;
use crate::check::interpretations::Interpretations;
use crate::choices;
use crate::evidence::{Cycle, Edge, INITIAL};
use crate::level::Level;
use crate::limits::Stage;
use crate::strong::{self, COMMIT_LEVELS, Sources};
use crate::verdict::{Satisfied, Verdict, Violated};
use crate::weak::{Facts, RULES};
use hashbrown::HashSet;
use isolde_certificate::{
    Certificate, ChosenOrigin, Claim, Derivation, End, Fingerprint, Node, Proof, Reading,
    ReadingKind, Refutation, Step, StepId, Verifier, Witness,
};
use isolde_history::{
    Candidates, Choice, ExternalRead, History, Index, KeyId, OpId, OpKind, Origin, Outcome, TxnId,
};

/// In larger histories not all keys are tried at once.
const ALL_ORDERS_TXNS_MAX: usize = 32;
/// Of more keys not each is tried.
const KEYS_TRIED_MAX: usize = 8;

/// A certificate, and the levels that are not in it.
pub struct Certified {
    /// What can be shown.
    pub certificate: Certificate,
    /// Decided levels without a proof, each with the reason.
    pub left_out: Vec<(Level, String)>,
}

impl Check<'_> {
    /// A certificate for these levels; those that are unknown are not mentioned.
    pub fn certify(&mut self, levels: &[Level]) -> Certified {
        let mut claims: Vec<Claim> = Vec::new();
        let mut left_out = Vec::new();
        let verifier = Verifier::new(self.history).with_clock_drift(self.options.clock_drift);
        let values_repeat = !self.index.several().is_empty()
            || self.index.has_lesser_candidates()
            || appends_repeat(self.history);
        let has_open_outcomes = self.has_open_outcomes();
        let has_calls = verifier.outside(Level::Serializable.name()).is_some();
        for &level in levels {
            let verdict = self.decide(level);
            let holds = matches!(verdict, Verdict::Satisfied(_));
            let shown = match verdict {
                Verdict::Unknown(_) => continue,
                Verdict::Satisfied(satisfied) => self.witness(level, &satisfied),
                // Calls are no reads and writes that an anomaly could be shown by.
                Verdict::Violated(violated) if has_calls => (self
                    .all_orders(&verifier, level, &violated))
                .ok_or("it was decided by trying all orders".into()),
                Verdict::Violated(violated) => (self.refutation(level, &violated))
                    .or_else(|why| self.all_orders(&verifier, level, &violated).ok_or(why))
                    .or_else(|why| self.all_cases(level, &violated).ok_or(why))
                    .or_else(|why| mismatch(&verifier, level, &violated).ok_or(why)),
            };
            let shown = match verifier.outside(level.name()) {
                Some(outside) => Err(outside.into()),
                None if values_repeat => shown
                    .and_then(|shown| accepted(&verifier, shown))
                    .or_else(|why| {
                        holds
                            .then(|| self.way(level, &|shown| accepted(&verifier, shown).ok()))
                            .flatten()
                            .ok_or(why)
                    })
                    .map_err(|why| format!("values repeat: {why}")),
                None if has_calls || has_open_outcomes => {
                    shown.and_then(|shown| accepted(&verifier, shown))
                }
                None => shown,
            };
            match shown {
                Ok((at, proof)) => add(&mut claims, level, at, proof),
                Err(reason) => left_out.push((level, reason)),
            }
        }
        left_out.retain(|(level, _)| !self.settle_by_weaker(*level, &mut claims));
        let history = Fingerprint::of(self.history);
        let clock_drift = self.options.clock_drift;
        Certified { certificate: Certificate { history, clock_drift, claims }, left_out }
    }

    /// Objects are checked one by one; what the verifier reads is an order of all.
    pub(crate) fn refutation(
        &mut self,
        level: Level,
        violated: &Violated,
    ) -> Result<Shown, String> {
        if level == Level::Linearizable
            && violated.proof.is_none()
            && let Verdict::Violated(strict) = self.decide(Level::StrictSerializable)
        {
            let at = strict.settled_by.unwrap_or(Level::StrictSerializable);
            return refutation(self.history, at, &strict);
        }
        refutation(self.history, level, violated)
    }

    /// Whether the verifier finds no order of what was done to some keys, in whatever way the
    /// history is understood.
    pub(crate) fn is_without_orders(&self, level: Level) -> bool {
        if self.options.sources != Sources::ALL {
            return false;
        }
        (self.limits().observe)(Stage::Enumerate);
        let verifier = Verifier::new(self.history).with_clock_drift(self.options.clock_drift);
        self.all_orders(&verifier, level, &Violated::by(Vec::new())).is_some()
    }

    /// All orders of what was done to one key, or in a small history to all of them, if
    /// these are few enough for the verifier.
    fn all_orders(
        &self,
        verifier: &Verifier<'_>,
        level: Level,
        violated: &Violated,
    ) -> Option<Shown> {
        let mut keys: Vec<Vec<KeyId>> = Vec::new();
        for anomaly in &violated.anomalies {
            if let Evidence::Operations { key, .. } = anomaly.evidence {
                keys.push(vec![key]);
            }
        }
        // All orders were tried, so there are few.
        if violated.anomalies.is_empty() && has_events(level) {
            keys.push(self.history.keys().collect());
        }
        let is_small = self.history.txn_count() <= ALL_ORDERS_TXNS_MAX;
        // Real time leaves few orders of one key.
        let is_timed = strong::needs_times(level) && self.history.key_count() <= KEYS_TRIED_MAX;
        if is_small || is_timed {
            keys.extend(self.history.keys().map(|key| vec![key]));
        }
        if is_small {
            keys.push(self.history.keys().collect());
        }
        let levels = violated.settled_by.into_iter().chain([level, Level::StrictSerializable]);
        let weaker = level.weaker_than();
        let levels = levels.filter(|&at| at == level || weaker.contains(&at));
        for at in levels.filter(|&at| has_events(at)) {
            for keys in &keys {
                let proof = Proof::Refutation(Refutation::Orders(keys.clone()));
                if let Ok(shown) = accepted(verifier, (at, proof)) {
                    return Some(shown);
                }
            }
        }
        None
    }

    /// Adds a violated level to the refutation of a weaker one; whether there is any. It may
    /// have been decided in another way, such as by trying all orders.
    fn settle_by_weaker(&mut self, level: Level, claims: &mut [Claim]) -> bool {
        let weaker = level.weaker_than();
        let refutes = |claim: &&mut Claim| {
            matches!(claim.proof, Proof::Refutation(_))
                && weaker.iter().any(|weaker| weaker.name() == claim.shown_at)
        };
        let is_violated = matches!(self.decide(level), Verdict::Violated(_));
        let Some(claim) = claims.iter_mut().find(refutes).filter(|_| is_violated) else {
            return false;
        };
        claim.levels.push(level.name().into());
        true
    }

    /// Every way to take what the history leaves open, each refuted by itself.
    fn all_cases(&self, level: Level, violated: &Violated) -> Option<Shown> {
        let at = violated.settled_by.unwrap_or(level);
        let facts = (self.history, self.index);
        let (at, refutation) = by_cases::refute(at, facts, self.options, &self.limits())?;
        Some((at, Proof::Refutation(refutation)))
    }

    /// A way to take what the history leaves open in which the level holds, and is seen to.
    fn way(&self, level: Level, accept: &dyn Fn(Shown) -> Option<Shown>) -> Option<Shown> {
        let interpretations = Interpretations::of_everybody(self.history, self.index)?;
        let limits = self.limits();
        interpretations.first_shown(|history, added| {
            let index = Index::new(history);
            let mut check = Check::new(history, &index, &limits).with_options(self.options);
            let check = check.in_one_way();
            let Verdict::Satisfied(satisfied) = check.decide(level) else { return None };
            let (at, mut proof) = check.witness(level, &satisfied).ok()?;
            if let Proof::Witness(Witness::Commits { order, origins, appends }) = &mut proof {
                *appends = added;
                self.name_origins(&index, order, origins);
            }
            accept((at, proof))
        })
    }

    /// Reads that have several origins in this history and one by `taken` saw that one; so do
    /// all reads of those who count only as it is taken.
    fn name_origins(&self, taken: &Index, order: &[TxnId], origins: &mut Vec<ChosenOrigin>) {
        let in_order: HashSet<TxnId> = order.iter().copied().collect();
        let several = self.index.several().iter().map(|several| self.index.read(several.read));
        let mut reads: Vec<ExternalRead> = several.collect();
        for &txn in order.iter().filter(|&&txn| !self.index.is_counted(txn)) {
            reads.extend(taken.reads_of(txn));
        }
        for ExternalRead { op, key, .. } in reads {
            let reader = self.history.txn_of(op);
            let is_named = origins.iter().any(|it| (it.read, it.key) == (op, key));
            if is_named || !in_order.contains(&reader) {
                continue;
            }
            let read = taken.reads_of(reader).find(|read| (read.op, read.key) == (op, key));
            let writer = match read.map(|read| read.origin) {
                Some(Origin::Initial) => None,
                Some(Origin::Txn(writer)) => Some(writer),
                _ => continue,
            };
            origins.push(ChosenOrigin { read: op, key, writer });
        }
    }

    fn witness(&mut self, level: Level, satisfied: &Satisfied) -> Result<Shown, String> {
        match satisfied {
            Satisfied::Order(order) if has_events(level) => {
                let events = order.iter().map(|&txn| Node::commit(txn)).collect();
                Ok((level, Proof::Witness(Witness::Events(events))))
            }
            Satisfied::Order(order) => Ok((level, self.commit_order(level, order))),
            Satisfied::Events(events) => {
                Ok((level, Proof::Witness(Witness::Events(events.clone()))))
            }
            Satisfied::Implied(stronger) => match self.decide(*stronger) {
                // A level is implied by one that was decided before, so this ends.
                Verdict::Satisfied(satisfied) => self.witness(*stronger, &satisfied),
                _ => Err("the level that implies it was not decided".into()),
            },
            Satisfied::Definition => (self.way(level, &Some))
                .or_else(|| self.tried(level))
                .ok_or_else(|| "it was decided by trying all orders".into()),
            Satisfied::Interpretation => (self.way(level, &Some))
                .or_else(|| self.tried(level))
                .ok_or_else(|| "it holds in one of the ways to take what is open".into()),
        }
    }

    /// An order that the verifier finds by trying all of a small history.
    fn tried(&self, level: Level) -> Option<Shown> {
        let verifier = Verifier::new(self.history).with_clock_drift(self.options.clock_drift);
        let events = verifier.order(level.name())?;
        Some((level, Proof::Witness(Witness::Events(events))))
    }

    fn commit_order(&self, level: Level, order: &[TxnId]) -> Proof {
        // An order that was searched for is for choices of its own.
        if COMMIT_LEVELS.contains(&level) && !self.index.several().is_empty() {
            let facts = (self.history, self.index);
            let found = strong::decide_commits(level, facts, self.options, &self.limits());
            if let Verdict::Satisfied(Satisfied::Order(order)) = found.verdict {
                let origins = found.origins;
                return Proof::Witness(Witness::Commits { order, origins, appends: Vec::new() });
            }
        }
        let rule = RULES.iter().find(|rule| rule.level == level);
        let searched = rule.and_then(|rule| {
            let any;
            let index = match rule.candidates {
                Candidates::Any if self.index.has_lesser_candidates() => {
                    any = Index::choosing(self.history, Candidates::Any, &[]);
                    &any
                }
                _ => self.index,
            };
            let open = !index.several().is_empty();
            open.then(|| choices::chosen(rule, &Facts::new(self.history, index, &self.limits())))?
        });
        let (order, chosen) = searched.unwrap_or_else(|| {
            let chosen = if rule.is_none() { self.nearest_before(order) } else { Vec::new() };
            (order.to_vec(), chosen)
        });
        let origins = chosen.into_iter().filter_map(|choice| {
            let writer = match choice.origin {
                Origin::Initial => None,
                Origin::Txn(writer) => Some(writer),
                Origin::Nobody => Some(aborted_writer(self.history, choice)?),
                Origin::Several => return None,
            };
            Some(ChosenOrigin { read: choice.op, key: choice.key, writer })
        });
        let (origins, appends) = (origins.collect(), Vec::new());
        Proof::Witness(Witness::Commits { order, origins, appends })
    }
}

impl Check<'_> {
    /// What reads of repeated values are taken to have seen in an order that shows cursor
    /// stability: the last of the possible writers before the reader.
    fn nearest_before(&self, order: &[TxnId]) -> Vec<Choice> {
        let mut places = vec![usize::MAX; self.history.txn_count()];
        for (place, txn) in order.iter().enumerate() {
            places[txn.index()] = place;
        }
        let mut chosen = Vec::new();
        for several in self.index.several() {
            let read = self.index.read(several.read);
            let own = places[self.history.txn_of(read.op).index()];
            let place = |origin: &Origin| match origin {
                Origin::Txn(writer) if places[writer.index()] < own => {
                    Some(places[writer.index()] + 1)
                }
                Origin::Initial => Some(0),
                _ => None,
            };
            let before = several.candidates.iter().filter(|it| place(it).is_some());
            let nearest = before.max_by_key(|it| place(it)).copied();
            chosen.extend(nearest.map(|origin| Choice { op: read.op, key: read.key, origin }));
        }
        chosen
    }
}

/// An aborted transaction that may have written what was read.
fn aborted_writer(history: &History, choice: Choice) -> Option<TxnId> {
    let read = history.op(choice.op);
    let value = match read.kind {
        OpKind::PredicateRead | OpKind::PredicateUpdate => {
            let rows = &history.predicate(choice.op).rows;
            rows.iter().find(|row| row.key == choice.key)?.value
        }
        _ => read.value,
    };
    let is_origin = |op: OpId| {
        let op = history.op(op);
        let admits = (op.value == value) != (read.kind == OpKind::ReadOther);
        op.kind.is_write() && op.key == choice.key && admits
    };
    let mut aborted = history.txns().filter(|&txn| history.outcome(txn) == Outcome::Aborted);
    aborted.find(|&txn| history.ops_of(txn).any(is_origin))
}

/// A proof and the level it is about.
type Shown = (Level, Proof);

/// Where values repeat, a proof may rest on what a read is taken to have seen. Such
/// histories are few, so there all proofs are held against the verifier.
pub(crate) fn accepted(verifier: &Verifier<'_>, (at, proof): Shown) -> Result<Shown, String> {
    let claim = Claim { shown_at: at.name().into(), levels: vec![at.name().into()], proof };
    match verifier.check(&claim) {
        Ok(_) => Ok((at, claim.proof)),
        Err(refused) => Err(refused.to_string()),
    }
}

/// Whether an element was appended twice to a list.
fn appends_repeat(history: &History) -> bool {
    let mut appended = HashSet::new();
    let mut appends = (0..history.op_count() as u32)
        .map(|op| history.op(OpId(op)))
        .filter(|op| op.kind == OpKind::Append);
    appends.any(|append| !appended.insert((append.key, append.value)))
}

/// Adds a level to the claim with its proof, or a claim for it.
fn add(claims: &mut Vec<Claim>, level: Level, shown_at: Level, proof: Proof) {
    let same = |claim: &&mut Claim| claim.shown_at == shown_at.name() && claim.proof == proof;
    match claims.iter_mut().find(same) {
        Some(claim) => claim.levels.push(level.name().into()),
        None => claims.push(Claim {
            shown_at: shown_at.name().into(),
            levels: vec![level.name().into()],
            proof,
        }),
    }
}

/// Whether orders that show a level are orders of events, which certificates replay.
pub(crate) fn has_events(level: Level) -> bool {
    Check::is_strong(level) && level != Level::CursorStability && !COMMIT_LEVELS.contains(&level)
}

pub(crate) fn refutation(
    history: &History,
    level: Level,
    violated: &Violated,
) -> Result<Shown, String> {
    let at = violated.settled_by.unwrap_or(level);
    if let Some(proof) = &violated.proof {
        let derivation = Derivation::clone(proof);
        return Ok((at, Proof::Refutation(Refutation::Derivation(derivation))));
    }
    // Whether one of unknown outcome counts may take more than the operations to tell.
    let is_open = |anomaly: &&Anomaly| match &anomaly.evidence {
        Evidence::Operations { ops, .. } => {
            ops.first().is_some_and(|&op| history.outcome(history.txn_of(op)) == Outcome::Unknown)
        }
        _ => false,
    };
    let (open, known): (Vec<&Anomaly>, Vec<&Anomaly>) =
        violated.anomalies.iter().partition(is_open);
    let shown = known.into_iter().chain(open).find_map(|anomaly| match &anomaly.evidence {
        Evidence::Operations { .. } => reading(level, anomaly),
        Evidence::Cycle(cycle) => Some((at, Refutation::Derivation(derivation(history, cycle)))),
        Evidence::Cases(_) => None,
    });
    let by_cases = |anomaly: &Anomaly| matches!(anomaly.evidence, Evidence::Cases(_));
    match shown {
        Some((at, refutation)) => Ok((at, Proof::Refutation(refutation))),
        None if violated.anomalies.iter().any(by_cases) => {
            Err("certificates cannot say what it takes reads to have seen".into())
        }
        None => Err("it was decided by trying all orders".into()),
    }
}

/// A result that no version set gives. It also refutes levels at which a row may contradict
/// its condition. Where a row of an aggregate does, its result may do so too.
fn mismatch(verifier: &Verifier<'_>, level: Level, violated: &Violated) -> Option<Shown> {
    let at = violated.settled_by.unwrap_or(level);
    violated.anomalies.iter().find_map(|anomaly| match &anomaly.evidence {
        Evidence::Operations { key, ops } if anomaly.kind == AnomalyKind::ResultSetMismatch => {
            let shown = |key: KeyId, ops: Vec<OpId>| {
                let reading = Reading { kind: ReadingKind::ResultSetMismatch, key, ops };
                accepted(verifier, (at, Proof::Refutation(Refutation::Reading(reading)))).ok()
            };
            shown(*key, ops.clone()).or_else(|| shown(KeyId(0), vec![*ops.first()?]))
        }
        _ => None,
    })
}

/// An anomaly found by reading, at the weakest level that it refutes.
pub(crate) fn reading(level: Level, anomaly: &Anomaly) -> Option<(Level, Refutation)> {
    let Evidence::Operations { key, ops } = &anomaly.evidence else { return None };
    let weaker = level.weaker_than();
    let refuted = anomaly.kind.refutes().iter();
    let at = *refuted.clone().find(|&&weakest| weakest == level || weaker.contains(&weakest))?;
    let kind = match anomaly.kind {
        AnomalyKind::ThinAirRead => ReadingKind::ThinAir,
        AnomalyKind::AbortedRead => ReadingKind::Aborted,
        AnomalyKind::IntermediateRead => ReadingKind::Intermediate,
        AnomalyKind::FutureRead => ReadingKind::Future,
        AnomalyKind::NotMyOwnWrite => ReadingKind::NotMyOwnWrite,
        AnomalyKind::NotMyLastWrite => ReadingKind::NotMyLastWrite,
        AnomalyKind::NonRepeatableRead => ReadingKind::NonRepeatable,
        AnomalyKind::DuplicateElements => ReadingKind::DuplicateElements,
        AnomalyKind::IncompatibleOrder => ReadingKind::IncompatibleOrder,
        AnomalyKind::ResultSetMismatch => ReadingKind::ResultSetMismatch,
        _ => return None,
    };
    Some((at, Refutation::Reading(Reading { kind, key: *key, ops: ops.clone() })))
}

fn derivation(history: &History, cycle: &Cycle) -> Derivation {
    let mut steps = Vec::new();
    // A reader that was visible to itself is a cycle already, and no other's version.
    let is_own = |edge: &&Edge| {
        edge.is_overwriting() && edge.read().map(|read| history.txn_of(read)) == Some(edge.before)
    };
    let own = cycle.edges.iter().find(is_own).map(Edge::premises);
    let path = derive(own.unwrap_or(&cycle.edges), &mut steps);
    Derivation { steps, end: End::Cycle(path) }
}

/// Adds the steps of a path, each after what it follows from. Why a transaction was visible is
/// told by edges of session order and reads-from, so this goes one level deep.
fn derive(path: &[Edge], steps: &mut Vec<Step>) -> Vec<StepId> {
    let node = |txn: TxnId| if txn == INITIAL { Node::INITIAL } else { Node::commit(txn) };
    let step = |edge: &Edge| {
        let rule = edge.reason.rule().expect("strong levels bring their proof");
        let rule = rule.with_path(|path| derive(path, steps));
        steps.push(Step { from: node(edge.before), to: node(edge.after), rule });
        StepId(steps.len() as u32 - 1)
    };
    path.iter().map(step).collect()
}
