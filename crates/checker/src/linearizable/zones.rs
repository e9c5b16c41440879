//! The order of chains: which values a register had one after another.
//!
//! **Definition** [Gibbons97]. All operations of a chain come before all of another,
//! or after. One has to come before another if one of its operations completed before
//! an operation of the other was invoked: if its earliest completion lies before the
//! other's latest invocation. Earliest completion and latest invocation are the ends
//! of its *zone*.
//!
//! **Method.** Some order exists if and only if no two chains each have to come before
//! the other: forward zones do not overlap, and no backward zone lies within a forward
//! one. The order is made chain by chain. Of those left, only the one with the
//! earliest completion, and of the others the one whose latest invocation is earliest,
//! can come next: if any can, one of these two can. If neither can, the first of them
//! and whoever hinders it hinder each other. O(n log n).
//!
//! The chain of the initial state comes first, because nothing precedes that.

use super::chains::Chain;
use super::operations::Operation;
use isolde_history::{ALWAYS, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A chain's ends in time, and the operations they are from.
#[derive(Clone, Copy)]
struct Zone {
    earliest_completion: Time,
    completes: usize,
    latest_invocation: Time,
    invokes: usize,
}

/// Two chains that hinder each other. Of each: an operation that completed before the
/// other chain's last one was invoked, and its own that was invoked last.
pub(super) struct Conflict {
    /// Completed, of the first chain, before `later.1` was invoked; absent if the
    /// first chain is that of the initial state, which precedes everything anyway.
    pub(super) first: (Option<usize>, usize),
    /// Completed, of the second chain, before `first.1` was invoked.
    pub(super) second: (usize, usize),
}

/// Operations in an order that keeps chains together and real time.
pub(super) fn order(operations: &[Operation], chains: &[Chain]) -> Result<Vec<usize>, Conflict> {
    let zones: Vec<Option<Zone>> = chains.iter().map(|chain| zone(operations, chain)).collect();
    let (mut by_completion, mut by_invocation) = (Queue::default(), Queue::default());
    for (chain, zone) in zones.iter().enumerate() {
        if let Some(zone) = zone {
            // The initial state was there before anything completed.
            let completion = if chain == 0 { ALWAYS } else { zone.earliest_completion };
            by_completion.0.push(Reverse((completion, chain)));
            by_invocation.0.push(Reverse((zone.latest_invocation, chain)));
        }
    }
    let zone = |chain: usize| zones[chain].expect("only chains with operations are ordered");
    let mut order = Vec::with_capacity(operations.len());
    let mut is_taken = vec![false; chains.len()];
    let mut is_initial_open = zones[0].is_some();
    while let Some((completion, first)) = by_completion.pop(&is_taken) {
        let hindering = by_completion.peek(&is_taken);
        let hindered = hindering.filter(|hindering| hindering.0 < zone(first).latest_invocation);
        let next = if let Some((_, hindering)) = hindered {
            is_taken[first] = true;
            let other = by_invocation.peek(&is_taken);
            is_taken[first] = false;
            by_invocation.0.push(Reverse((zone(first).latest_invocation, first)));
            by_completion.0.push(Reverse((completion, first)));
            match other {
                Some((invocation, other)) if !is_initial_open && completion >= invocation => other,
                _ => {
                    let (own, others) = (zone(first), zone(hindering));
                    return Err(Conflict {
                        first: ((!is_initial_open).then_some(own.completes), own.invokes),
                        second: (others.completes, others.invokes),
                    });
                }
            }
        } else {
            first
        };
        is_initial_open = false;
        is_taken[next] = true;
        order.extend(&chains[next].order);
    }
    Ok(order)
}

/// Chains by a time. Those that were taken are dropped when they come up; a chain may
/// be in it twice.
#[derive(Default)]
struct Queue(BinaryHeap<Reverse<(Time, usize)>>);

impl Queue {
    fn peek(&mut self, is_taken: &[bool]) -> Option<(Time, usize)> {
        while let Some(&Reverse((time, chain))) = self.0.peek() {
            if !is_taken[chain] {
                return Some((time, chain));
            }
            self.0.pop();
        }
        None
    }

    fn pop(&mut self, is_taken: &[bool]) -> Option<(Time, usize)> {
        let first = self.peek(is_taken);
        self.0.pop();
        first
    }
}

fn zone(operations: &[Operation], chain: &Chain) -> Option<Zone> {
    let completes = *chain.order.iter().min_by_key(|&&place| operations[place].completed)?;
    let invokes = *chain.order.iter().max_by_key(|&&place| operations[place].invoked)?;
    Some(Zone {
        earliest_completion: operations[completes].completed,
        completes,
        latest_invocation: operations[invokes].invoked,
        invokes,
    })
}
