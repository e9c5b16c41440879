//! Real time: what completed before something else was invoked precedes it.
//!
//! All pairs would be quadratic. Instead a chain of points in time carries the order:
//! an event leads to the first point after its completion, and the last point before
//! an event's invocation leads to it. A clock drift bound moves completions later.
//! Transactions of unknown outcome never complete.

use crate::strong::graph::{Edges, Why};
use crate::strong::model::{Model, Node, RealTime};
use isolde_history::{ALWAYS, History, Index, NEVER, Time};

/// The edges of one row of [`Model::real_time`].
pub(in crate::strong) struct RealTimeOrder {
    first_node: Node,
    /// How many points there are.
    points: u32,
    /// Event and point it leads to.
    completions: Vec<(Node, u32)>,
    /// Point and event it leads to.
    invocations: Vec<(u32, Node)>,
}

impl RealTimeOrder {
    /// Its nodes are numbered from `first_node`.
    pub(in crate::strong) fn new(
        model: &Model,
        rule: &RealTime,
        (history, index): (&History, &Index),
        drift: Time,
        first_node: Node,
    ) -> Self {
        let mut completed: Vec<(Time, Node)> = Vec::new();
        let mut invoked: Vec<(Time, Node)> = Vec::new();
        for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
            for &event in rule.from {
                let time = event.completed(history, txn, drift);
                if time != NEVER {
                    completed.push((time, model.event(txn, event)));
                }
            }
            for &event in rule.to {
                let time = event.interval(history, txn).invoked;
                if time != ALWAYS {
                    invoked.push((time, model.event(txn, event)));
                }
            }
        }
        completed.sort_unstable();
        invoked.sort_unstable();
        let mut order = RealTimeOrder {
            first_node,
            points: 0,
            completions: Vec::with_capacity(completed.len()),
            invocations: Vec::with_capacity(invoked.len()),
        };
        // A point stands where completions are followed by invocations.
        let mut next = 0;
        let mut since_point = 0;
        for &(time, event) in &invoked {
            while next < completed.len() && completed[next].0 < time {
                order.completions.push((completed[next].1, order.points));
                since_point += 1;
                next += 1;
            }
            if since_point > 0 {
                order.points += 1;
                since_point = 0;
            }
            if order.points > 0 {
                order.invocations.push((order.points - 1, event));
            }
        }
        order
    }

    /// How many nodes it needs.
    pub(in crate::strong) fn node_count(&self) -> usize {
        self.points as usize
    }
}

impl Edges for RealTimeOrder {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        for point in 1..self.points {
            emit(self.first_node + point - 1, self.first_node + point, Why::RealTime);
        }
        for &(event, point) in &self.completions {
            emit(event, self.first_node + point, Why::RealTime);
        }
        for &(point, event) in &self.invocations {
            emit(self.first_node + point, event, Why::RealTime);
        }
    }
}
