//! Orders of events that show a level of a small history, found by trying all of them.
//!
//! The definition says that there is one, and not which. So all are tried, beginning with those
//! in which one transaction runs after another, and the verifier says which one shows the
//! level.

use isolde_certificate::Node;
use isolde_history::TxnId;

/// More orders are not tried.
const ORDERS_MAX: usize = 1 << 14;

/// The first order of the events of these transactions that is accepted; of their commits alone
/// where the level does not tell begins and commits apart.
pub(crate) fn first_accepted(
    txns: &[TxnId],
    is_serial: bool,
    accept: impl Fn(&[Node]) -> bool,
) -> Option<Vec<Node>> {
    let mut orders = Orders { txns, is_serial, accept, left: ORDERS_MAX, events: Vec::new() };
    orders.extend(&mut vec![State::Waiting; txns.len()]).then_some(orders.events)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Begun,
    Committed,
}

struct Orders<'a, F> {
    txns: &'a [TxnId],
    is_serial: bool,
    accept: F,
    /// Orders that may still be tried.
    left: usize,
    events: Vec<Node>,
}

impl<F: Fn(&[Node]) -> bool> Orders<'_, F> {
    /// Tries all orders that begin with the events so far; whether one was accepted. As deep
    /// as there are events, of transactions that the definition could be asked about.
    fn extend(&mut self, states: &mut Vec<State>) -> bool {
        if states.iter().all(|&state| state == State::Committed) {
            self.left = self.left.saturating_sub(1);
            return (self.accept)(&self.events);
        }
        // What has begun goes on first.
        for wanted in [State::Begun, State::Waiting] {
            for place in 0..states.len() {
                if states[place] != wanted || self.left == 0 {
                    continue;
                }
                let txn = self.txns[place];
                let begins = wanted == State::Waiting && !self.is_serial;
                self.events.push(if begins { Node::begin(txn) } else { Node::commit(txn) });
                states[place] = if begins { State::Begun } else { State::Committed };
                if self.extend(states) {
                    return true;
                }
                states[place] = wanted;
                self.events.pop();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_tried_until_one_is_accepted() {
        let txns = [TxnId(0), TxnId(1)];
        let wanted = [Node::commit(TxnId(1)), Node::commit(TxnId(0))];
        let serial = first_accepted(&txns, true, |order| order == wanted);
        assert_eq!(serial.as_deref(), Some(&wanted[..]));
        let overlapping = [
            Node::begin(TxnId(0)),
            Node::begin(TxnId(1)),
            Node::commit(TxnId(1)),
            Node::commit(TxnId(0)),
        ];
        let found = first_accepted(&txns, false, |order| order == overlapping);
        assert_eq!(found.as_deref(), Some(&overlapping[..]));
        assert_eq!(first_accepted(&txns, false, |_| false), None);
    }

    #[test]
    fn there_is_an_end_of_trying() {
        let txns: Vec<TxnId> = (0..20).map(TxnId).collect();
        assert_eq!(first_accepted(&txns, false, |_| false), None);
    }
}
