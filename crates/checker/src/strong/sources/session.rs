//! Session order: a session's transactions run one after another.
//!
//! Levels without session order use it as a guess: what satisfies the level in an order
//! that keeps sessions satisfies it. Edges that a refutation rests on are given up.

use crate::strong::graph::{Edges, Why};
use crate::strong::model::{Model, Node};
use hashbrown::HashSet;
use isolde_history::{History, Index};

/// The edge from every counted transaction to the next one of its session.
pub(in crate::strong) struct SessionOrder<'a> {
    pub(in crate::strong) model: &'static Model,
    pub(in crate::strong) history: &'a History,
    pub(in crate::strong) index: &'a Index,
    /// Later ends of edges that were given up.
    pub(in crate::strong) given_up: &'a HashSet<Node>,
}

impl Edges for SessionOrder<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        for session in self.history.sessions() {
            let mut last = None;
            for txn in self.history.txns_of(session).filter(|&txn| self.index.is_counted(txn)) {
                let begin = self.model.begin(txn);
                if let Some(last) = last
                    && (self.given_up.is_empty() || !self.given_up.contains(&begin))
                {
                    emit(self.model.commit(last), begin, Why::Session);
                }
                last = Some(txn);
            }
        }
    }
}
