//! Refutations by all orders: whatever the order of events, a read of some keys finds
//! something else than it saw.
//!
//! **Definition.** An order explains what was done to some keys if it replays: at its begin
//! a transaction finds in them what it saw, at its commit its final writes become what is
//! found, no other writer of a key commits between a writer's begin and commit (where
//! version order leads to begins), and session order and real time, as far as the level has
//! them, lead forward. Transactions of unknown outcome are in it or not.
//!
//! **Why that refutes.** An order that explains the history explains it without the other
//! keys too, and without those that touched only these. So if no order explains what was
//! done to some keys, none explains all. What operations by condition found has to fit as far as
//! these keys tell (`found`). What is not looked at here (given orders of versions, snapshots,
//! reads after own writes) could only rule out more orders; it is where these are all keys of
//! a small history (`whole`).
//!
//! **Method** [Wing93; Lowe17]. A *configuration* is which events have happened and what the
//! keys hold. All that can be reached are looked at, each once. An order that explains is a
//! path to one in which every committed transaction has committed. `problem` says what can
//! happen, `walk` where that leads, and what keeps configurations few.
//!
//! Exponential in what is open at once; beyond a fixed number of configurations the proof is
//! refused.

mod found;
mod problem;
mod walk;
mod whole;

use super::facts::Facts;
use super::replay::{is_single, refuse_without_times};
use crate::level::Events;
use crate::proof::Node;
use isolde_history::KeyId;
use problem::Problem;
use std::collections::HashSet;
use walk::Walk;

const EXPLAINS: &str = "an order explains what was done to these keys";
const TOO_MANY: &str = "there are more orders than this verifier tries";

/// Refuses unless no order explains what was done to these keys; how many configurations
/// that took.
pub(super) fn check(facts: &Facts<'_>, level: Events, keys: &[KeyId]) -> Result<usize, String> {
    let history = facts.history;
    refuse_outside(facts, level)?;
    let is_nothing = keys.is_empty() && history.key_count() > 0;
    if is_nothing || keys.iter().any(|key| key.index() >= history.key_count()) {
        return Err("expected keys of the history".into());
    }
    let distinct: HashSet<KeyId> = keys.iter().copied().collect();
    if distinct.len() < keys.len() {
        return Err("a key stands there twice".into());
    }
    let found = Walk::of(Problem::new(facts, level, keys)).all();
    if found.is_err() && keys.len() == history.key_count() {
        return whole::check(facts, level);
    }
    found
}

/// An order that explains the whole of a small history.
pub(super) fn first(facts: &Facts<'_>, level: Events) -> Option<Vec<Node>> {
    refuse_outside(facts, level).ok()?;
    whole::search(facts, level).ok()?.0
}

fn refuse_outside(facts: &Facts<'_>, level: Events) -> Result<(), String> {
    refuse_without_times(facts, &level)?;
    let history = facts.history;
    let mut may_count = history.txns().filter(|&txn| facts.may_count(txn));
    if level.single && !may_count.all(|txn| is_single(history, txn)) {
        return Err("the level is about single operations, and a transaction has several".into());
    }
    Ok(())
}
