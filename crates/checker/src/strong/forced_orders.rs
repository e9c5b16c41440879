//! Orders of versions that parallel snapshot isolation forces, before anything is searched.
//!
//! No cycle has a single anti-dependency. So where all but one of the orders that such a
//! cycle takes are known, that one does not hold: the versions come the other way round,
//! and the next cycle may lack only one now. With `reader` an anti-dependency to `next`,
//! whose version follows the one that was read:
//!
//! - if `next` leads to the reader, its version does not follow, but precedes the one read;
//! - what leads to the reader precedes what `next` leads to, if both write a common key.
//!
//! Whole rows of bits say who leads to whom, and who must not come after whom; both are
//! passed on along the known orders, so that a round is as many steps as there are orders
//! and words in a row. Every order found is kept with its cycle, which is a clause for the
//! solver: refutations are proved from these as from any other.

use super::commits::Commits;
use super::model::Node;
use super::orders::witness::Pair;
use super::versions::{INITIAL_SLOT, NO_SLOT, Slot};
use hashbrown::HashSet;
use isolde_history::{ReadId, TxnId};

/// More transactions have rows that take too long for something that is tried first.
pub(super) const TXNS_MAX: usize = 1 << 13;

/// A cycle with one anti-dependency.
pub(super) struct OneMissed {
    /// The read of the anti-dependency, and the version that it missed.
    pub(super) read: ReadId,
    pub(super) seen: Slot,
    pub(super) next: Slot,
    /// From the writer of that version to the reader.
    pub(super) path: Vec<Leg>,
}

/// A step of a path.
#[derive(Clone, Copy)]
pub(super) struct Leg {
    pub(super) from: Node,
    pub(super) to: Node,
    /// If the step is no known edge: the versions that come in this order.
    pub(super) versions: Option<Pair>,
}

/// Cycles that cannot all be avoided, if those that leave one order each come to that.
pub(super) fn contradiction(commits: &Commits<'_>) -> Option<Vec<OneMissed>> {
    let nodes = commits.graph.node_count();
    let bytes = 3 * nodes * nodes.div_ceil(64) * size_of::<u64>();
    if nodes > TXNS_MAX || commits.limits.working_bytes_max.is_some_and(|most| bytes > most) {
        return None;
    }
    let mut forcing = Forcing {
        commits,
        found: Vec::new(),
        forced: vec![Vec::new(); nodes],
        lead: Rows::new(nodes),
        barred: Rows::new(nodes),
        own: Rows::new(nodes),
    };
    loop {
        match forcing.round() {
            Round::Contradiction => return Some(forcing.found),
            Round::Found if !commits.limits.is_over() => {}
            Round::Found | Round::Nothing => return None,
        }
    }
}

/// What a round comes to.
enum Round {
    Nothing,
    Found,
    Contradiction,
}

struct Forcing<'a> {
    commits: &'a Commits<'a>,
    found: Vec<OneMissed>,
    /// Per node, those that were found to precede it, and by which versions.
    forced: Vec<Vec<(Node, Pair)>>,
    /// Per node, itself and those that lead to it.
    lead: Rows,
    /// Per node, those that must not come after it because something that leads to it was
    /// missed.
    barred: Rows,
    /// The same because of what itself was missed.
    own: Rows,
}

impl Forcing<'_> {
    fn round(&mut self) -> Round {
        let Some(order) = self.sorted() else { return Round::Contradiction };
        self.lead.clear();
        for &node in &order {
            self.lead.set(node, node);
            for from in before(self.commits, &self.forced, node) {
                self.lead.join(node, from);
            }
        }
        let mut new = Vec::new();
        if !self.missed(&mut new) {
            return Round::Contradiction;
        }
        self.barred.copy(&self.own);
        for &node in &order {
            for from in before(self.commits, &self.forced, node) {
                self.barred.join(node, from);
            }
        }
        self.common(&mut new);
        if new.is_empty() {
            return Round::Nothing;
        }
        let versions = self.commits.versions;
        let mut pairs: HashSet<Pair> = HashSet::new();
        for (pair, cycle) in new.into_iter().filter(|(pair, _)| pairs.insert(*pair)) {
            let (first, second) = (versions.writer(pair.first), versions.writer(pair.second));
            self.forced[second.index()].push((first.0, pair));
            self.found.push(cycle);
        }
        Round::Found
    }

    /// All nodes after those that precede them; none if there is a cycle.
    fn sorted(&self) -> Option<Vec<Node>> {
        let nodes = self.commits.graph.node_count();
        let mut followers = vec![0u32; nodes];
        for node in 0..nodes as Node {
            for from in before(self.commits, &self.forced, node) {
                followers[from as usize] += 1;
            }
        }
        let mut order: Vec<Node> =
            (0..nodes as Node).filter(|&node| followers[node as usize] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for from in before(self.commits, &self.forced, order[next]) {
                followers[from as usize] -= 1;
                if followers[from as usize] == 0 {
                    order.push(from);
                }
            }
            next += 1;
        }
        order.reverse();
        (order.len() == nodes).then_some(order)
    }

    /// Notes anti-dependencies, and orders versions that lead to a reader. False if one of
    /// them cannot be.
    fn missed(&mut self, new: &mut Vec<(Pair, OneMissed)>) -> bool {
        let versions = self.commits.versions;
        self.own.clear();
        for read in (0..versions.seen.len() as u32).map(ReadId) {
            let seen = versions.seen[read.0 as usize];
            if seen == NO_SLOT {
                continue;
            }
            let reader = versions.reader(read);
            let key = versions.index.read(read).key;
            for next in versions.slots_of(key) {
                let writer = versions.writer(next);
                if next == seen || writer == reader {
                    continue;
                }
                let follows =
                    seen == INITIAL_SLOT || self.lead.has(writer.0, versions.writer(seen).0);
                let leads = self.lead.has(reader.0, writer.0);
                if follows && !self.own.has(writer.0, reader.0) {
                    self.own.join_other(writer.0, &self.lead, reader.0);
                }
                if !leads {
                    continue;
                }
                if !follows && self.lead.has(versions.writer(seen).0, writer.0) {
                    continue;
                }
                let path = self.path(writer.0, reader.0);
                let it = OneMissed { read, seen, next, path };
                if follows {
                    self.found.push(it);
                    return false;
                }
                new.push((Pair { first: next, second: seen }, it));
            }
        }
        true
    }

    /// Orders the versions of common keys.
    fn common(&self, new: &mut Vec<(Pair, OneMissed)>) {
        let versions = self.commits.versions;
        for key in versions.open_keys() {
            for one in versions.slots_of(key) {
                for other in versions.slots_of(key) {
                    let (a, b) = (versions.writer(one).0, versions.writer(other).0);
                    if a == b || !self.barred.has(a, b) {
                        continue;
                    }
                    if self.lead.has(a, b) || self.lead.has(b, a) {
                        continue;
                    }
                    let back = Pair { first: one, second: other };
                    let forced = Pair { first: other, second: one };
                    new.push((forced, self.through(back)));
                }
            }
        }
    }

    /// The cycle that the first version before the second would close.
    fn through(&self, back: Pair) -> OneMissed {
        let versions = self.commits.versions;
        let (a, b) = (versions.writer(back.first).0, versions.writer(back.second).0);
        let mut node = a;
        let mut path = Vec::new();
        while !self.own.has(node, b) {
            let leg = self.leg(node, |from| self.barred.has(from, b));
            path.push(leg);
            node = leg.from;
        }
        path.reverse();
        path.push(Leg { from: a, to: b, versions: Some(back) });
        let (read, seen, next) = self.missing(TxnId(node), b);
        path.extend(self.path(b, versions.reader(read).0));
        OneMissed { read, seen, next, path }
    }

    /// An anti-dependency to this transaction from one that the node leads to.
    fn missing(&self, writer: TxnId, node: Node) -> (ReadId, Slot, Slot) {
        let versions = self.commits.versions;
        for (key, next) in versions.written_by(writer) {
            for seen in versions.slots_of(key).filter(|&seen| seen != next) {
                if !self.lead.has(writer.0, versions.writer(seen).0) {
                    continue;
                }
                for &read in versions.reads_of(seen) {
                    let reader = versions.reader(read);
                    if reader != writer && self.lead.has(reader.0, node) {
                        return (read, seen, next);
                    }
                }
            }
            for &(of, read) in versions.initial_reads() {
                let reader = versions.reader(read);
                if of == key && reader != writer && self.lead.has(reader.0, node) {
                    return (read, INITIAL_SLOT, next);
                }
            }
        }
        unreachable!("a row has it for such a read")
    }

    /// A path between two nodes of which the first leads to the second.
    fn path(&self, start: Node, end: Node) -> Vec<Leg> {
        let mut path = Vec::new();
        let mut node = end;
        while node != start {
            let leg = self.leg(node, |from| self.lead.has(from, start));
            path.push(leg);
            node = leg.from;
        }
        path.reverse();
        path
    }

    /// A step to a node, from one that is good; known ones first.
    fn leg(&self, to: Node, good: impl Fn(Node) -> bool) -> Leg {
        let known = self.commits.graph.before(to).find(|&from| good(from));
        if let Some(from) = known {
            return Leg { from, to, versions: None };
        }
        let forced = self.forced[to as usize].iter().find(|it| good(it.0));
        let &(from, pair) = forced.expect("rows are passed on along steps");
        Leg { from, to, versions: Some(pair) }
    }
}

/// Those that precede a node, as far as is known by now.
fn before<'a>(
    commits: &'a Commits<'_>,
    forced: &'a [Vec<(Node, Pair)>],
    node: Node,
) -> impl Iterator<Item = Node> + 'a {
    let forced = forced[node as usize].iter().map(|&(from, _)| from);
    commits.graph.before(node).chain(forced)
}

/// A row of bits for each node.
struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
    fn new(nodes: usize) -> Rows {
        let words = nodes.div_ceil(64);
        Rows { words, bits: vec![0; words * nodes] }
    }

    fn clear(&mut self) {
        self.bits.fill(0);
    }

    fn copy(&mut self, other: &Rows) {
        self.bits.copy_from_slice(&other.bits);
    }

    fn set(&mut self, row: Node, node: Node) {
        self.bits[row as usize * self.words + node as usize / 64] |= 1 << (node % 64);
    }

    fn has(&self, row: Node, node: Node) -> bool {
        self.bits[row as usize * self.words + node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// Adds one row to another.
    fn join(&mut self, row: Node, from: Node) {
        let (row, from) = (row as usize * self.words, from as usize * self.words);
        for word in 0..self.words {
            self.bits[row + word] |= self.bits[from + word];
        }
    }

    /// Adds a row of others to one of these.
    fn join_other(&mut self, row: Node, others: &Rows, from: Node) {
        let (row, from) = (row as usize * self.words, from as usize * self.words);
        for word in 0..self.words {
            self.bits[row + word] |= others.bits[from + word];
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::Limits;
    use crate::strong::{Options, parallel_refuted};
    use isolde_history::Index;
    use isolde_history::format::parse_text;

    fn is_refuted(history: &str) -> bool {
        let history = parse_text(history).expect("it is well formed");
        let index = Index::new(&history);
        parallel_refuted((&history, &index), Options::default(), &Limits::NONE).is_some()
    }

    /// Whichever write of y comes first, somebody saw the other and missed what came with it.
    #[test]
    fn neither_order_of_two_versions_is_left() {
        assert!(is_refuted(
            "A: w(x,1) w(y,1)
             B: w(y,2) w(z,2)
             C: r(x,nil) r(y,2)
             D: r(z,nil) r(y,1)",
        ));
        assert!(!is_refuted(
            "A: w(x,1) w(y,1)
             B: w(y,2) w(z,2)
             C: r(x,nil) r(y,2)
             D: r(y,1)",
        ));
    }

    /// D shows that A comes before B on y, hence E misses B, and comes before F, who saw it, on
    /// u. G saw F, and of u what E wrote.
    #[test]
    fn an_order_that_follows_makes_another_follow() {
        let history = |seen: u32| {
            format!(
                "A: w(y,1)
                 B: w(y,2) w(z,2)
                 D: r(z,nil) r(y,1)
                 E: r(y,1) w(u,1)
                 F: r(y,2) w(u,2) w(v,2)
                 G: r(v,2) r(u,{seen})"
            )
        };
        assert!(is_refuted(&history(1)));
        assert!(!is_refuted(&history(2)));
    }

    /// Two writers of which neither saw the other, and readers that saw one each: a long fork.
    #[test]
    fn two_anti_dependencies_are_allowed() {
        assert!(!is_refuted(
            "A: w(x,1)
             B: w(y,1)
             C: r(x,1) r(y,nil)
             D: r(x,nil) r(y,1)",
        ));
    }
}
