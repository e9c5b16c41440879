//! Sources of order: what is known about the graph of events before anything is
//! derived. Each file is one source and gives its edges with their evidence.
//!
//! `read_modify_write`, `lists` and `database_order` are sources of version order. What they show
//! is noted as links in [`Versions`](super::versions::Versions), where several may show the
//! same; `version_order` turns the links into edges.

mod conditions;
mod database_order;
mod initial;
mod lists;
mod read_modify_write;
mod reads_from;
mod real_time;
mod session;
mod version_order;

pub(super) use conditions::ByCondition;
pub(super) use initial::Initial;
pub(super) use read_modify_write::ReadModifyWrites;
pub(super) use reads_from::ReadsFrom;
pub(super) use real_time::RealTimeOrder;
pub(super) use session::SessionOrder;
pub(super) use version_order::VersionOrder;

use super::graph::{Edges, Why};
use super::model::{Model, Node};
use super::versions::Versions;
use hashbrown::HashSet;
use isolde_history::{Time, VersionStep};

/// Everything that is known about the events of one level.
pub(super) struct Known<'a> {
    session: SessionOrder<'a>,
    reads: ReadsFrom<'a>,
    version_order: VersionOrder<'a>,
    initial: Initial<'a>,
    conditions: ByCondition<'a>,
    times: Vec<RealTimeOrder>,
    nodes: usize,
}

impl<'a> Known<'a> {
    /// All sources but real time, and without the edges of session order that were
    /// given up.
    pub(super) fn without_times(
        model: &'static Model,
        versions: &'a Versions<'a>,
        given_up: &'a HashSet<Node>,
    ) -> Self {
        let (history, index) = (versions.history, versions.index);
        let events = model.events_of(history.txn_count());
        let initial = Initial::new(model, versions, events as Node);
        Known {
            session: SessionOrder { model, history, index, given_up },
            reads: ReadsFrom { model, history, index },
            version_order: VersionOrder { model, versions },
            nodes: events + initial.node_count(),
            initial,
            conditions: ByCondition { model, versions },
            times: Vec::new(),
        }
    }

    /// Leaves out who read the initial version of a key and who wrote it, but where a
    /// transaction did both: about as many edges as there are writes. An order without them
    /// has to be looked at.
    #[must_use]
    pub(super) fn without_initial_reads(mut self) -> Self {
        self.nodes -= self.initial.node_count();
        self.initial = self.initial.of_rewritten();
        self
    }

    /// Adds the real time that the level asks for.
    #[must_use]
    pub(super) fn with_times(mut self, clock_drift: Time) -> Self {
        let SessionOrder { model, history, index, .. } = self.session;
        for rule in model.real_time {
            let first_node = self.nodes as Node;
            let order = RealTimeOrder::new(model, rule, (history, index), clock_drift, first_node);
            self.nodes += order.node_count();
            self.times.push(order);
        }
        self
    }

    /// How many nodes the edges lie between.
    pub(super) fn node_count(&self) -> usize {
        self.nodes
    }
}

impl Edges for Known<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        self.session.each(emit);
        self.reads.each(emit);
        self.version_order.each(emit);
        self.initial.each(emit);
        self.conditions.each(emit);
        self.times.each(emit);
    }
}

/// Which sources of order are used.
///
/// Without read-modify-writes the same is found, later and at greater cost. Lists and
/// given orders are part of what a level means: without them another question is
/// answered, as if registers had been written blindly. Session order and real time are part
/// of what some levels mean, which can then be refuted and not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Sources {
    /// A transaction that reads a version and writes the key installs the next one.
    pub read_modify_write: bool,
    /// List reads show the order of appends.
    pub lists: bool,
    /// Version orders that came with the history.
    pub database_order: bool,
    /// A session's transactions run one after another; a guess where a level does not say so.
    pub session: bool,
    /// What completed before something else was invoked precedes it; likewise a guess.
    pub real_time: bool,
}

impl Sources {
    /// All of them.
    pub const ALL: Sources = Sources {
        read_modify_write: true,
        lists: true,
        database_order: true,
        session: true,
        real_time: true,
    };

    /// Whether a source that is used shows a step of a version order.
    #[inline]
    pub(super) fn show(self, step: &VersionStep) -> bool {
        (self.lists && lists::show(step)) || (self.database_order && database_order::show(step))
    }
}
