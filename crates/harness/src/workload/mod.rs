//! What clients ask a database for, as a function of a seed.
//!
//! A [`Workload`] has a [`Client`] for each session. A client plans one transaction
//! after another; its plans depend on the parameters, the seed and its number alone, and
//! for compare-and-sets and conditions on what it last saw. Values are unique, but for amounts: no two writes of a run
//! write the same one. Keys may be short-lived: then a client moves on to new keys after
//! a number of transactions, and all clients do so at about the same time.
//!
//! | file | what it plans |
//! |---|---|
//! | `../plan.rs` | general transactions, blind writes, read-modify-writes, lists |
//! | `mini.rs` | mini-transactions |
//! | `applications.rs` | banks, orders, auctions, messages |
//! | `rows.rs` | rows that come and go, ranges, compare-and-sets |
//! | `balances.rs` | applications with the amounts that they compute |

pub(crate) mod applications;
mod balances;
pub(crate) mod mini;
mod rows;

use crate::database::Access;
use crate::parameters::{ParameterError, Parameters, Rows, TxnKind};
use crate::plan::{Action, Intent, Planner};
use crate::random::Random;
use crate::request::{Answer, BLOCK, Filter, Request, RequestKind};
use rows::RowPlanner;
use std::borrow::Cow;

/// What a run asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    parameters: Parameters,
    /// Transactions of a client on the same keys.
    rotate: Option<u64>,
    /// Whether deletes leave a marked row.
    tombstones: bool,
}

/// Values from here on are tombstones: a delete wrote them, so that who reads the row sees
/// which delete it was. No other value of a run is as large.
pub const TOMBSTONES: u64 = 1 << 62;

/// A list is at most this long before clients move on, about.
const LIST_LENGTH: u64 = 128;

/// Transactions of each client that fill the lists, if all of their operations append.
fn lists_last(parameters: &Parameters) -> u64 {
    let all = u64::from(parameters.operations) * u64::from(parameters.sessions);
    (LIST_LENGTH * u64::from(parameters.keys) / all).max(1)
}

impl Workload {
    /// The workload of these parameters, of which those of the simulated database do not
    /// matter. Keys are used by so many transactions of each client; lists always retire.
    pub fn new(parameters: Parameters, rotate: Option<u64>) -> Result<Workload, ParameterError> {
        parameters.validate_clients()?;
        if parameters.transactions == 0 {
            let message = "expected a number of transactions from 1 on, found 0: leave it out for \
                           as many as the preset has";
            return Err(ParameterError::new(message));
        }
        if rotate == Some(0) {
            let message = "expected at least 1 transaction before keys change, found 0";
            return Err(ParameterError::new(message));
        }
        let rotate = rotate.or_else(|| parameters.kind.is_list().then(|| lists_last(&parameters)));
        Ok(Workload { parameters, rotate, tombstones: false })
    }

    /// The same with deletes that mark their row and leave it there \[Viper\]. A range then shows
    /// every key that ever had a row, so that each key is read in one version, and inserts
    /// write over the marks.
    pub fn with_tombstones(self) -> Result<Workload, ParameterError> {
        if !self.requests().contains(&RequestKind::Delete) {
            let message = "expected a workload that deletes rows by key for tombstones: Range-B, \
                           Range-RQH or Range-IDH";
            return Err(ParameterError::new(message));
        }
        Ok(Workload { tombstones: true, ..self })
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The requests that its clients may make.
    pub fn requests(&self) -> Vec<RequestKind> {
        use RequestKind::{
            Aggregate, Append, CompareAndSet, Delete, DeleteWhere, Insert, Range, Read, ReadList,
            Select, UpdateRange, UpdateWhere, Write,
        };
        match self.parameters.kind {
            TxnKind::ListAppend => vec![ReadList, Append],
            TxnKind::Rows(Rows::BlindWriteRange) => vec![Read, Write, Range],
            TxnKind::Rows(Rows::Mix { .. }) if self.tombstones => vec![Read, Write, Range],
            TxnKind::Rows(Rows::Mix { .. }) => vec![Read, Write, Insert, Delete, Range],
            TxnKind::Rows(Rows::Predicates { deletes: 0, .. }) => {
                vec![Read, Write, Range, UpdateRange, Select, Aggregate, UpdateWhere]
            }
            TxnKind::Rows(Rows::Predicates { .. }) => {
                vec![Read, Write, Range, UpdateRange, Select, Aggregate, UpdateWhere, DeleteWhere]
            }
            TxnKind::Rows(Rows::Phantoms) => vec![Select, Aggregate, Insert],
            TxnKind::Rows(Rows::Inserts) => vec![Range, Insert],
            TxnKind::Rows(Rows::CompareAndSet) => vec![Read, CompareAndSet],
            _ => vec![Read, Write],
        }
    }

    /// The client of this number, from 0. One that may only read asks for what it would
    /// have written.
    pub fn client(&self, number: u32, access: Access) -> Client {
        let parameters = &self.parameters;
        // The constant keeps neighbours apart; drawing once more keeps them from sharing
        // parts of their state.
        let mixed = parameters.seed ^ u64::from(number + 1).wrapping_mul(0xd134_2543_de82_ef95);
        let seed = Random::new(mixed).bits();
        let plans = match parameters.kind {
            TxnKind::Rows(rows) => Plans::Rows(RowPlanner::new(rows, parameters)),
            _ => Plans::Registers(Planner::of_session(parameters), Vec::new()),
        };
        Client {
            random: Random::new(seed),
            plans,
            access,
            values: Values { next: u64::from(number), clients: u64::from(parameters.sessions) },
            lists: parameters.kind.is_list(),
            planned: 0,
            tombstones: self.tombstones,
            rotate: self.rotate,
            keys: u64::from(parameters.keys),
        }
    }
}

/// The client of one session.
pub struct Client {
    random: Random,
    plans: Plans,
    access: Access,
    values: Values,
    lists: bool,
    planned: u64,
    tombstones: bool,
    rotate: Option<u64>,
    keys: u64,
}

enum Plans {
    Registers(Planner, Vec<Intent>),
    Rows(RowPlanner),
}

/// Values that no other client writes.
struct Values {
    next: u64,
    clients: u64,
}

impl Values {
    fn one(&mut self) -> u64 {
        let value = self.next + 1;
        self.next += self.clients;
        value
    }

    /// The first of [`BLOCK`] values in a row. A workload that takes blocks takes
    /// nothing else.
    fn block(&mut self) -> u64 {
        self.one() * BLOCK
    }

    /// Goes on from a block that another client has reached, so that what is recent is the
    /// same for all.
    fn catch_up(&mut self, block: u64) {
        let behind = block.saturating_sub(self.next + 1);
        self.next += behind.div_ceil(self.clients) * self.clients;
    }

    /// Values that were written not long ago, or are going to be soon, about this many by
    /// each client.
    fn recent(&self, count: u64) -> Filter {
        let width = count * self.clients;
        let low = (self.next + 1).saturating_sub(width) * BLOCK;
        Filter::Values { low, high: (self.next + width) * BLOCK }
    }
}

impl Client {
    /// Replaces `requests` by the next transaction's.
    pub fn plan(&mut self, requests: &mut Vec<Request>) {
        requests.clear();
        match &mut self.plans {
            Plans::Registers(planner, intents) => {
                planner.plan(&mut self.random, intents);
                let lists = self.lists;
                requests.extend(intents.iter().map(|intent| {
                    let key = u64::from(intent.key);
                    match (intent.action, lists) {
                        (Action::Read, false) => Request::Read { key },
                        (Action::Write, false) => Request::Write { key, value: self.values.one() },
                        (Action::Read, true) => Request::ReadList { key },
                        (Action::Write, true) => Request::Append { key, value: self.values.one() },
                    }
                }));
            }
            Plans::Rows(planner) => planner.plan(&mut self.random, &mut self.values, requests),
        }
        let generation = self.rotate.map_or(0, |rotate| self.planned / rotate);
        self.planned += 1;
        for request in requests {
            if self.tombstones {
                self.mark(request);
            }
            if self.access == Access::ReadOnly {
                *request = reading(request);
            }
            shift(request, generation * self.keys);
        }
    }

    /// Lets a delete mark its row, and an insert write over the mark.
    fn mark(&mut self, request: &mut Request) {
        *request = match *request {
            Request::Delete { key } => {
                Request::Write { key, value: TOMBSTONES + self.values.one() }
            }
            Request::Insert { key, value } => Request::Write { key, value },
            ref other => other.clone(),
        };
    }

    /// The request of this place of the plan as it is to be sent: some write what follows from
    /// the answers before it.
    pub fn settled<'a>(&self, place: usize, planned: &'a Request) -> Cow<'a, Request> {
        if let (Plans::Rows(planner), &Request::Write { key, .. }) = (&self.plans, planned)
            && let Some(value) = planner.value(place, key)
        {
            return Cow::Owned(Request::Write { key, value });
        }
        Cow::Borrowed(planned)
    }

    /// Takes note of an answer.
    pub fn saw(&mut self, request: &Request, answer: &Answer) {
        if let Plans::Rows(planner) = &mut self.plans {
            planner.saw(request, answer);
            if planner.takes_blocks()
                && let Answer::Rows(rows) = answer
                && let Some(last) = rows.iter().map(|row| row.1).max()
            {
                self.values.catch_up(last / BLOCK);
            }
        }
    }
}

/// The request that looks where this one would write.
fn reading(request: &Request) -> Request {
    match *request {
        Request::Append { key, .. } => Request::ReadList { key },
        Request::Write { key, .. }
        | Request::Insert { key, .. }
        | Request::Delete { key }
        | Request::CompareAndSet { key, .. } => Request::Read { key },
        Request::UpdateRange { low, high, .. } => Request::Range { low, high },
        Request::UpdateWhere { filter, .. } | Request::DeleteWhere { filter } => {
            Request::Select { filter }
        }
        ref read => read.clone(),
    }
}

/// Moves a request to keys that come so much later.
fn shift(request: &mut Request, by: u64) {
    match request {
        Request::Read { key }
        | Request::Write { key, .. }
        | Request::ReadList { key }
        | Request::Append { key, .. }
        | Request::Insert { key, .. }
        | Request::Delete { key }
        | Request::CompareAndSet { key, .. } => *key += by,
        Request::Range { low, high } | Request::UpdateRange { low, high, .. } => {
            *low += by;
            *high += by;
        }
        Request::Select { filter }
        | Request::Aggregate { filter, .. }
        | Request::UpdateWhere { filter, .. }
        | Request::DeleteWhere { filter } => {
            if let Filter::Keys { low, high } = filter {
                *low += by;
                *high += by;
            }
        }
    }
}

#[cfg(test)]
mod tests;
