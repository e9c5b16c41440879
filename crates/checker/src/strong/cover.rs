//! Chains that cover the transactions, so that reachability is a few numbers.
//!
//! Along a chain every transaction precedes the next one in the graph, so "which
//! transactions of the chain precede this event" is one number. Sessions are chains
//! where session order is part of the level. Where it is not, or where sessions are
//! too many, chains are greedy paths through reads-from: read-modify-writes make long
//! ones. Transactions beyond the widest cover allowed stay without a chain; what
//! reaches an event from them is then not known, which derives less and nothing wrong.

use super::graph::{Graph, Why};
use super::model::Node;
use isolde_history::{History, Index, TxnId};

/// The chain of a transaction without one.
pub(super) const NO_CHAIN: u32 = u32::MAX;

/// See the module's documentation.
pub(super) struct Cover {
    /// How many chains there are.
    pub(super) chains: usize,
    /// Per transaction, its chain.
    pub(super) chain: Vec<u32>,
    /// Per transaction, its number: along a chain, numbers ascend without others between.
    pub(super) rank: Vec<u32>,
}

impl Cover {
    /// The sessions themselves.
    pub(super) fn sessions(history: &History) -> Cover {
        let mut chain = Vec::with_capacity(history.txn_count());
        for session in history.sessions() {
            chain.extend(history.txns_of(session).map(|_| session.0));
        }
        let rank = (0..history.txn_count() as u32).collect();
        Cover { chains: history.session_count(), chain, rank }
    }

    /// Each of these transactions by itself, in ascending order, and no others.
    pub(super) fn alone(history: &History, txns: &[TxnId]) -> Cover {
        let mut chain = vec![NO_CHAIN; history.txn_count()];
        let mut rank = vec![u32::MAX - 1; history.txn_count()];
        for (place, txn) in txns.iter().enumerate() {
            chain[txn.index()] = place as u32;
            rank[txn.index()] = place as u32;
        }
        Cover { chains: txns.len(), chain, rank }
    }

    /// Greedy paths through session order and reads-from, at most `chains_max` of them,
    /// the longest.
    pub(super) fn greedy(
        (history, index): (&History, &Index),
        graph: &Graph,
        order: &[Node],
        chains_max: usize,
    ) -> Cover {
        let model = graph.model;
        let txns = history.txn_count();
        let mut path: Vec<u32> = vec![NO_CHAIN; txns];
        let mut tails: Vec<TxnId> = Vec::new();
        let events = model.events_of(txns);
        let begins = order.iter().copied().filter(|&node| (node as usize) < events);
        for node in begins.filter(|&node| model.begin(model.txn(node)) == node) {
            let txn = model.txn(node);
            if !index.is_counted(txn) {
                continue;
            }
            let is_step = |why: &Why| matches!(why, Why::Session | Why::ReadsFrom(_));
            let continued = graph
                .before_why(node)
                .filter(|(_, why)| is_step(why))
                .map(|(from, _)| model.txn(from))
                .find(|from| tails[path[from.index()] as usize] == *from);
            if let Some(from) = continued {
                path[txn.index()] = path[from.index()];
                tails[path[txn.index()] as usize] = txn;
            } else {
                path[txn.index()] = tails.len() as u32;
                tails.push(txn);
            }
        }
        Cover::of_longest(path, tails.len(), chains_max, order, graph)
    }

    fn of_longest(
        path: Vec<u32>,
        paths: usize,
        chains_max: usize,
        order: &[Node],
        graph: &Graph,
    ) -> Cover {
        let mut lengths: Vec<(u32, u32)> = (0..paths as u32).map(|path| (0, path)).collect();
        for &path in path.iter().filter(|&&path| path != NO_CHAIN) {
            lengths[path as usize].0 += 1;
        }
        lengths.sort_unstable_by_key(|&(length, path)| (std::cmp::Reverse(length), path));
        lengths.truncate(chains_max);
        let mut chain_of_path = vec![NO_CHAIN; paths];
        let mut next_rank: Vec<u32> = Vec::with_capacity(lengths.len());
        let mut ranks = 0;
        for (chain, &(length, path)) in lengths.iter().enumerate() {
            chain_of_path[path as usize] = chain as u32;
            next_rank.push(ranks);
            ranks += length;
        }
        let mut chain = path;
        for chain in chain.iter_mut().filter(|chain| **chain != NO_CHAIN) {
            *chain = chain_of_path[*chain as usize];
        }
        let mut rank = vec![u32::MAX - 1; chain.len()];
        let model = graph.model;
        for &node in order.iter().filter(|&&node| (node as usize) < model.events_of(chain.len())) {
            let txn = model.txn(node);
            if model.begin(txn) == node && chain[txn.index()] != NO_CHAIN {
                let next = &mut next_rank[chain[txn.index()] as usize];
                rank[txn.index()] = *next;
                *next += 1;
            }
        }
        Cover { chains: lengths.len(), chain, rank }
    }

    /// Whether a transaction is on a chain.
    #[inline]
    pub(super) fn covers(&self, txn: TxnId) -> bool {
        self.chain[txn.index()] != NO_CHAIN
    }
}
