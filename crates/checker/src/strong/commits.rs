//! Levels of one order of commits that take a search: what the two have in common.
//!
//! A transaction is one node. The graph has what every order contains: reads-from and
//! known version order. The first order is a guess that follows session order and
//! anti-dependencies where it can, although the levels have neither. What such an order
//! gets wrong although the graph decides it becomes an edge of the graph; what is left
//! is decided by the solver, asked only about what its order gets wrong.

use super::Options;
use super::cycle::{Core, Premises, Step, short_cycle};
use super::decision::{limit, open_pairs, violated};
use super::graph::{Derived, Edges, Graph, Why};
use super::model::{Model, Node};
use super::orders::commit_guess::Guess;
use super::orders::stronger_level;
use super::proof::ProofBuilder;
use super::questions::{Asking, Inquiry, Questions, Sorted};
use super::repeated::{Refused, Repeated, repeated_reads};
use super::search::known_edges;
use super::solving::{Effort, Solved, in_order, solved};
use super::sources::{Initial, ReadsFrom, SessionOrder, VersionOrder};
use super::strategies;
use super::versions::{INITIAL_SLOT, NO_SLOT, Versions};
use crate::anomaly::Anomaly;
use crate::derivation;
use crate::evidence::Cycle;
use crate::limits::{Limits, Stage};
use crate::naming;
use crate::strategy::StrategyName;
use crate::unknown::Unknown;
use crate::verdict::{Attempt, Satisfied, Verdict, Violated};
use hashbrown::HashSet;
use isolde_certificate::{ChosenOrigin, Rule};
use isolde_history::{History, Index, ReadId, TxnId};

/// Smaller histories are searched from a guess.
const SMALL: usize = 200;

/// Orders of a stronger level that are asked for before a search from a guess is tried, and the
/// conflicts of that. A history that lacks little of such a level has its order by then; one that
/// is far from it takes long to tell, and is often refuted at once.
const ORDERS_FIRST: usize = 4;
const CONFLICTS_FIRST: u64 = 2_000;

/// How far a level is looked into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// As far as things follow from each other.
    Forced,
    /// Until it is decided.
    Search,
}

/// What such a level means.
pub(super) trait CommitLevel: Asking + Sized {
    /// Its row; only what its reads are protected from differs.
    fn model() -> &'static Model;

    /// Whether most of what it allows a stronger level allows too, so that an order of that
    /// is worth a search.
    const ASKS_STRONGER: bool;

    /// Adds what follows from single transactions; a verdict if they contradict it.
    fn begin(commits: &mut Commits<'_>) -> Option<Verdict>;

    /// Whether a writer that every order puts before a reader must be seen by it, so
    /// that it also precedes the writer whose version was read.
    fn must_see(commits: &Commits<'_>, other: TxnId, reader: TxnId) -> bool;

    /// The proof that the reader of an initial version had to see a later one, given a
    /// path from its writer to the reader.
    fn missed_first(commits: &Commits<'_>, read: ReadId, path: &[Step]) -> Verdict;

    /// What a cycle of the graph is called.
    fn anomaly(history: &History, cycle: Cycle) -> Anomaly;

    /// Asks the solver what it must refuse, if what follows from few choices shows that.
    fn contradicting(commits: &Commits<'_>) -> Option<Self>;

    /// Asks the solver about the orders of these commits.
    fn asking(commits: &Commits<'_>) -> Self;
}

/// A history at such a level.
pub(super) struct Commits<'a> {
    pub(super) model: &'static Model,
    pub(super) versions: &'a Versions<'a>,
    pub(super) repeated: &'a [Repeated],
    pub(super) limits: &'a Limits<'a>,
    options: Options,
    /// What every order contains.
    pub(super) graph: Graph,
    /// What orders contain if they can.
    likely: Graph,
    derived: HashSet<(Node, Node)>,
    /// What reads of repeated values are taken to have seen by the order that was found.
    origins: Vec<ChosenOrigin>,
    /// An order that every edge agrees with, once there is one.
    order: Vec<Node>,
    pub(super) depth: Depth,
}

/// What came of a level.
pub(crate) struct Found {
    pub(crate) verdict: Verdict,
    /// The strategy that decided it.
    pub(crate) by: Option<StrategyName>,
    /// Where values repeat, what the reads are taken to have seen if it holds.
    pub(crate) origins: Vec<ChosenOrigin>,
}

impl Found {
    fn open(reason: Unknown) -> Found {
        Found { verdict: Verdict::Unknown(reason), by: None, origins: Vec::new() }
    }
}

/// Decides a level, given that no read is wrong by itself at it.
pub(super) fn decide<L: CommitLevel>(
    (history, index): (&History, &Index),
    options: Options,
    (limits, depth): (&Limits<'_>, Depth),
) -> Found {
    let model = L::model();
    (limits.observe)(Stage::Infer);
    let mut versions = Versions::new(history, index, model, options.sources);
    if !versions.find_conditions(model, limits.stop) {
        return Found::open(Unknown::Limit(limits.reached()));
    }
    let (pairs, open_keys) = open_pairs(&versions);
    (limits.observe)(Stage::Versions { pairs, open_keys });
    let repeated = match repeated_reads(model, &versions, Refused::Tried) {
        Ok(repeated) => repeated,
        Err(obstacle) => return Found::open(Unknown::Unsupported(obstacle)),
    };
    let mut commits = Commits::new(model, (&versions, &repeated), options, limits);
    commits.depth = depth;
    let (verdict, by) = strategies::commits::decide::<L>(&mut commits);
    Found { verdict, by, origins: commits.origins }
}

/// Known steps of version orders, without what they mean for readers.
struct VersionSteps<'a>(&'a Versions<'a>);

impl Edges for VersionSteps<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        let versions = self.0;
        if versions.index.steps().is_empty() {
            return;
        }
        for slot in 0..versions.index.writers().len() as u32 {
            for (step, after) in versions.steps_from(slot) {
                emit(versions.writer(slot).0, versions.writer(after).0, Why::Step(step));
            }
        }
    }
}

/// What came of looking for edges that follow.
enum Forced {
    Nothing,
    Edges,
    Verdict(Verdict),
}

impl<'a> Commits<'a> {
    fn new(
        model: &'static Model,
        (versions, repeated): (&'a Versions<'a>, &'a [Repeated]),
        options: Options,
        limits: &'a Limits<'a>,
    ) -> Self {
        let (history, index) = (versions.history, versions.index);
        let txns = history.txn_count();
        let reads = ReadsFrom { model, history, index };
        let steps = VersionSteps(versions);
        let mut graph = Graph::new(model, txns, txns, &(&reads, &steps));
        graph.note_evidence(&(&reads, &steps));
        let mut given_up = HashSet::new();
        if !options.sources.session {
            given_up.extend(history.txns().map(|txn| model.begin(txn)));
        }
        let session = SessionOrder { model, history, index, given_up: &given_up };
        let version_order = VersionOrder { model, versions };
        let initial = Initial::new(model, versions, txns as Node);
        let nodes = txns + initial.node_count();
        let likely = Graph::new(model, txns, nodes, &(&session, &(&version_order, &initial)));
        Commits {
            model,
            versions,
            repeated,
            limits,
            options,
            graph,
            likely,
            derived: HashSet::new(),
            origins: Vec::new(),
            order: Vec::new(),
            depth: Depth::Search,
        }
    }

    pub(super) fn is_off(&self, name: StrategyName) -> bool {
        self.options.without.contains(name)
    }

    /// Whether a history is searched from a guess.
    pub(super) fn is_small(&self) -> bool {
        self.versions.history.txn_count() < SMALL
    }

    /// Finds an order to begin with, or what contradicts all of them.
    pub(super) fn settle<L: CommitLevel>(&mut self) -> Attempt {
        match self.settled::<L>() {
            Ok(order) => {
                self.order = order;
                Attempt::Passed
            }
            Err(verdict) => Attempt::from(verdict),
        }
    }

    /// Asks the solver what it must refuse, if what follows from few choices shows that. A history
    /// near a stronger level is not refuted so.
    pub(super) fn force_orders<L: CommitLevel>(&mut self) -> Attempt {
        if !self.is_small() && self.of_stronger_level(1).is_some() {
            return Attempt::Passed;
        }
        let Some(asking) = L::contradicting(self) else { return Attempt::Passed };
        let order = std::mem::take(&mut self.order);
        let effort = Effort::of(self.options.conflicts_max);
        let solved = self.solve_asking(&order, effort, asking);
        Attempt::from(solved.unwrap_or_else(|stop| self.stopped(stop)))
    }

    /// Finds an order near one of a stronger level, if there is one; or a verdict, if a short
    /// search from the other one comes to it before.
    pub(super) fn improve<L: CommitLevel>(&mut self) -> Attempt {
        let order = std::mem::take(&mut self.order);
        match self.better::<L>(&order) {
            Ok(better) => {
                self.order = better.unwrap_or(order);
                Attempt::Passed
            }
            Err(verdict) => Attempt::from(verdict),
        }
    }

    /// Searches from the order that was found.
    pub(super) fn search<L: CommitLevel>(&mut self) -> Attempt {
        let order = std::mem::take(&mut self.order);
        let solved = self.solve::<L>(&order, Effort::of(self.options.conflicts_max));
        Attempt::from(solved.unwrap_or_else(|stop| self.stopped(stop)))
    }

    /// An order that every edge agrees with, once nothing more follows from it.
    fn settled<L: CommitLevel>(&mut self) -> Result<Vec<Node>, Verdict> {
        loop {
            (self.limits.observe)(Stage::Witness);
            self.limits.spend((self.graph.node_count() + self.graph.edge_count()) as u64 / 8);
            let (certain, history) = (&self.graph, self.versions.history);
            let sources = self.options.sources;
            let guess = Guess { certain, likely: &self.likely, history, sources };
            let order = guess.sorted().map_err(|stuck| self.cyclic::<L>(&stuck))?;
            if let Some(halt) = self.halt() {
                return Err(halt);
            }
            match self.force::<L>(&order) {
                Forced::Nothing => return Ok(order),
                Forced::Edges => {}
                Forced::Verdict(verdict) => return Err(verdict),
            }
        }
    }

    /// An order near one of a stronger level, if there is one; or a verdict, if a short search
    /// from the other one comes to it before.
    fn better<L: CommitLevel>(&mut self, order: &[Node]) -> Result<Option<Vec<Node>>, Verdict> {
        if let Some(better) = self.of_stronger_level(ORDERS_FIRST) {
            return Ok(Some(better));
        }
        let most = self.options.conflicts_max.unwrap_or(CONFLICTS_FIRST);
        match self.solve::<L>(order, Effort::of(Some(most.min(CONFLICTS_FIRST)))) {
            Ok(verdict) => return Err(verdict),
            Err(acyclic::Stop::Conflicts | acyclic::Stop::Work) => {}
            Err(stop) => return Err(self.stopped(stop)),
        }
        (self.limits.observe)(Stage::Witness);
        Ok(self.of_stronger_level(usize::MAX))
    }

    fn of_stronger_level(&self, orders_max: usize) -> Option<Vec<Node>> {
        let within = (self.options, self.limits);
        let order = stronger_level::order(self.versions, self.repeated, within, orders_max)?;
        let mut ranks = vec![i64::MAX; self.versions.history.txn_count()];
        for (rank, txn) in (0..).zip(order) {
            ranks[txn.index()] = rank;
        }
        self.graph.sorted_by(|node| ranks[node as usize]).ok()
    }

    /// Adds an edge that follows from others, once.
    pub(super) fn derive(&mut self, derived: Derived) -> bool {
        let is_new = self.derived.insert((derived.from, derived.to));
        if is_new {
            self.graph.derive(derived);
        }
        is_new
    }

    /// Edges that the graph decides and an order gets wrong: a reader read one version,
    /// and in every order a writer of a later one precedes it that it must see.
    fn force<L: CommitLevel>(&mut self, order: &[Node]) -> Forced {
        let versions = self.versions;
        let mut positions = vec![0; order.len()];
        for (position, &node) in order.iter().enumerate() {
            positions[node as usize] = position as u32;
        }
        let sorted = Sorted::new(versions, &positions);
        let mut behind = Behind::new(order.len());
        let mut found: Vec<Derived> = Vec::new();
        for reader in versions.history.txns() {
            let reads = versions.index.read_range(reader).map(ReadId);
            let at = positions[reader.index()];
            let missed = |read: ReadId| {
                let seen = versions.seen[read.0 as usize];
                let later = match seen {
                    NO_SLOT => &[],
                    _ => sorted.after(versions.index.read(read).key, seen),
                };
                let earlier = later.iter().map(|&slot| versions.writer(slot));
                let positions = &positions;
                earlier.take_while(move |writer| positions[writer.index()] < at)
            };
            let firsts = reads.clone().filter_map(|read| missed(read).next());
            let Some(low) = firsts.map(|writer| positions[writer.index()]).min() else {
                continue;
            };
            behind.find(&self.graph, reader.0, (low, &positions));
            for read in reads {
                let seen = versions.seen[read.0 as usize];
                for writer in missed(read) {
                    if !behind.has(writer.0) || !L::must_see(self, writer, reader) {
                        continue;
                    }
                    if seen == INITIAL_SLOT {
                        return Forced::Verdict(self.missed_first::<L>(read, writer));
                    }
                    let (from, to) = (writer.0, versions.writer(seen).0);
                    let it = versions.index.read(read);
                    let rule = Rule::Visible { read: it.op, key: it.key, path: (from, reader.0) };
                    found.push(Derived { from, to, rule });
                }
            }
        }
        let mut added = false;
        for derived in found {
            added |= self.derive(derived);
        }
        if added { Forced::Edges } else { Forced::Nothing }
    }

    fn missed_first<L: CommitLevel>(&self, read: ReadId, writer: TxnId) -> Verdict {
        (self.limits.observe)(Stage::Explain);
        let reader = self.versions.reader(read);
        let path = self.premises().path(writer.0, reader.0, u32::MAX);
        L::missed_first(self, read, &path)
    }

    /// A verdict, unless the search is given up.
    fn solve<L: CommitLevel>(
        &mut self,
        order: &[Node],
        effort: Effort,
    ) -> Result<Verdict, acyclic::Stop> {
        let asking = L::asking(self);
        self.solve_asking(order, effort, asking)
    }

    fn solve_asking<L: CommitLevel>(
        &mut self,
        order: &[Node],
        effort: Effort,
        level: L,
    ) -> Result<Verdict, acyclic::Stop> {
        (self.limits.observe)(Stage::Solve);
        let mut solver = acyclic::Solver::new(order, known_edges(&self.graph))
            .expect("an order that every edge agrees with");
        let questions = Questions::new(self, &mut solver);
        let mut inquiry = Inquiry { questions, level };
        let used = self.graph.memory() + self.likely.memory() + self.versions.memory();
        let within = (self.limits, self.options.engine);
        Ok(match solved(&mut solver, &mut inquiry, within, (used, effort)) {
            Solved::Satisfied => {
                let nodes = in_order(solver.positions()).into_iter().map(TxnId);
                let counted = nodes.filter(|&txn| self.versions.index.is_counted(txn));
                let satisfied = Satisfied::Order(counted.collect());
                self.origins = inquiry.questions.origins_taken();
                Verdict::Satisfied(satisfied)
            }
            Solved::Violated(None) => Verdict::Violated(Violated::by(Vec::new())),
            Solved::Violated(Some(refutation)) => {
                (self.limits.observe)(Stage::Explain);
                let asked = inquiry.questions.asked;
                let proof = self.prover().of_search(&refutation, &asked);
                let history = self.versions.history;
                let anomaly = naming::of_derivation(history, self.model.level, &proof);
                Verdict::Violated(violated(anomaly, Some(proof)))
            }
            Solved::Stopped(stop) => return Err(stop),
        })
    }

    fn cyclic<L: CommitLevel>(&self, stuck: &[Node]) -> Verdict {
        (self.limits.observe)(Stage::Explain);
        let steps = short_cycle(&self.graph, &Core::new(&self.graph, stuck));
        let proof = self.prover().of_cycle(&steps);
        let cycle = derivation::cycle(&proof).expect("the proof of a cycle");
        let anomaly = L::anomaly(self.versions.history, cycle);
        Verdict::Violated(violated(anomaly, Some(proof)))
    }

    pub(super) fn premises(&self) -> Premises<'_> {
        Premises { graph: &self.graph, clocks: None }
    }

    pub(super) fn prover(&self) -> ProofBuilder<'_> {
        ProofBuilder::new(self.model, self.versions, self.premises())
    }

    fn stopped(&self, stop: acyclic::Stop) -> Verdict {
        Verdict::Unknown(Unknown::Limit(limit(stop, self.limits)))
    }

    /// A verdict if a limit is reached.
    fn halt(&self) -> Option<Verdict> {
        if self.limits.is_over() {
            return Some(self.stopped(acyclic::Stop::Asked));
        }
        let used = self.graph.memory() + self.likely.memory() + self.versions.memory();
        let most = self.limits.working_bytes_max?;
        (used > most).then(|| self.stopped(acyclic::Stop::Memory))
    }
}

/// Nodes that lead to one node, as far as a position.
struct Behind {
    /// Per node, the last search that met it.
    met_in: Vec<u32>,
    searches: u32,
    open: Vec<Node>,
}

impl Behind {
    fn new(nodes: usize) -> Self {
        Behind { met_in: vec![0; nodes], searches: 0, open: Vec::new() }
    }

    fn find(&mut self, graph: &Graph, end: Node, (low, positions): (u32, &[u32])) {
        self.searches += 1;
        self.open.push(end);
        while let Some(node) = self.open.pop() {
            for from in graph.before(node) {
                let met_in = &mut self.met_in[from as usize];
                if *met_in != self.searches && positions[from as usize] >= low {
                    *met_in = self.searches;
                    self.open.push(from);
                }
            }
        }
    }

    fn has(&self, node: Node) -> bool {
        self.met_in[node as usize] == self.searches
    }
}
