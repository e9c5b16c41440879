//! What answers a connection waits for, in the order in which they will come.

use super::Connection;
use super::injected::Injected;
use crate::plan::Plan;
use crate::sql::Verb;
use crate::transaction::Version;
use isolde_history::Time;
use std::sync::Arc;

/// A statement that the client prepared; without a plan if it is none that is recorded.
pub(super) type Prepared = Option<Arc<Plan>>;

/// A statement with its parameters.
#[derive(Clone)]
pub(super) struct Portal {
    pub(super) plan: Prepared,
    /// All columns come in binary.
    pub(super) is_binary: bool,
    pub(super) bound: Time,
}

/// A request that will be answered.
pub(super) enum Pending {
    Query(Query),
    Parse(Preparation),
    Bind,
    Describe(Prepared),
    Execute(Execution),
    /// A statement of this name, or a portal.
    Close(Option<Vec<u8>>),
    Sync(Time),
    Function(Time),
    Injected(Box<Injected>),
}

/// A statement that is prepared.
pub(super) struct Preparation {
    pub(super) name: Vec<u8>,
    pub(super) plan: Prepared,
    /// What had its name before, and has it again if the server refuses this.
    pub(super) previous: Option<Prepared>,
    /// Characters of its text and how many were added there.
    pub(super) added: Option<(usize, usize)>,
}

/// A text of statements.
pub(super) struct Query {
    pub(super) plans: Vec<Arc<Plan>>,
    /// Which of them is answered.
    pub(super) at: usize,
    pub(super) sent: Time,
    /// Characters of the text and how many were added there, in order.
    pub(super) added: Vec<(usize, usize)>,
    pub(super) versions: Vec<Version>,
}

/// A run of a portal, or a part of it.
pub(super) struct Execution {
    pub(super) portal: Portal,
    pub(super) sent: Time,
    pub(super) versions: Vec<Version>,
}

impl Pending {
    /// The statement that is answered.
    pub(super) fn plan(&self) -> Option<&Plan> {
        match self {
            Pending::Query(query) => query.plans.get(query.at).map(Arc::as_ref),
            Pending::Describe(plan) => plan.as_deref(),
            Pending::Parse(preparation) => preparation.plan.as_deref(),
            Pending::Execute(execution) => execution.portal.plan.as_deref(),
            _ => None,
        }
    }

    fn sent(&self) -> Option<Time> {
        match self {
            Pending::Query(query) => Some(query.sent),
            Pending::Execute(execution) => Some(execution.sent),
            Pending::Sync(sent) | Pending::Function(sent) => Some(*sent),
            _ => None,
        }
    }

    /// When a commit was sent, if this is one: said, or the end of a request outside of a block.
    fn commit(&self, is_block: bool) -> Option<Time> {
        let is_said = match self {
            Pending::Query(query) => query.plans.iter().any(|plan| plan.verb == Verb::Commit),
            _ => self.plan().is_some_and(|plan| plan.verb == Verb::Commit),
        };
        if is_said || !is_block { self.sent() } else { None }
    }
}

impl Connection {
    /// When the first commit was sent that has no answer.
    pub(super) fn commit_sent(&self) -> Option<Time> {
        let is_block = self.status != b'I';
        self.pending.iter().find_map(|pending| pending.commit(is_block))
    }
}
