//! All orders of everything that was done in a small history.
//!
//! The walk does not look at given orders of versions, at snapshots, at which version of a row
//! was looked at, or at reads after own writes. Here each order is replayed, event after event,
//! as one that shows the level would be, and none may explain all of it. An order that cannot go
//! on is left at once. Two begins that follow each other are tried one way round, since nothing
//! happens between them, unless real time is about both. And a transaction that writes nothing
//! commits as soon as it has begun: where it commits later, nothing changes if it is earlier,
//! unless real time is about what has to come before a commit.

use super::{EXPLAINS, TOO_MANY};
use crate::level::{EventKind, Events};
use crate::proof::Node;
use crate::verify::facts::Facts;
use crate::verify::replay::Replay;
use isolde_history::TxnId;

/// Histories of more transactions are refused.
const TXNS_MAX: usize = 8;
/// And so are those of more events, in all orders together.
const STEPS_MAX: usize = 1 << 17;

/// Refuses unless no order explains everything; how many events that took.
pub(super) fn check(facts: &Facts<'_>, level: Events) -> Result<usize, String> {
    match search(facts, level)? {
        (Some(_), _) => Err(EXPLAINS.into()),
        (None, steps) => Ok(steps),
    }
}

/// The first order that explains everything, and how many events were looked at.
pub(super) fn search(
    facts: &Facts<'_>,
    level: Events,
) -> Result<(Option<Vec<Node>>, usize), String> {
    let txns = facts.history.txns().filter(|&txn| facts.may_count(txn));
    let commits: Vec<Node> = txns.map(Node::commit).take(TXNS_MAX + 1).collect();
    if commits.len() > TXNS_MAX {
        return Err(TOO_MANY.into());
    }
    let begins = commits.iter().map(|commit| Node::begin(commit.txn())).filter(|_| !level.one);
    let events = begins.chain(commits.iter().copied()).collect();
    let is_free = !level.real_time.contains(&(EventKind::Begin, EventKind::Begin));
    let may_hurry = level.real_time.iter().all(|rule| rule.1 != EventKind::Commit);
    let writes_nothing =
        |txn: TxnId| !facts.history.ops_of(txn).any(|op| facts.history.op(op).kind.is_write());
    let hurried = commits.iter().map(|commit| commit.txn());
    let hurried = hurried.filter(|&txn| may_hurry && writes_nothing(txn)).collect();
    let happened = Vec::new();
    let mut orders = Orders { events, are_begins_free: is_free, hurried, happened, steps: 0 };
    let is_found = orders.go_on(&Replay::new(facts, level))?;
    Ok((is_found.then_some(orders.happened), orders.steps))
}

/// The order that is tried.
struct Orders {
    events: Vec<Node>,
    /// Whether begins that follow each other can change places.
    are_begins_free: bool,
    /// Transactions that commit as soon as they have begun.
    hurried: Vec<TxnId>,
    happened: Vec<Node>,
    steps: usize,
}

impl Orders {
    /// Whether an order that begins like this explains everything. As deep as there are events,
    /// which are few.
    fn go_on(&mut self, at: &Replay<'_, '_>) -> Result<bool, String> {
        if at.end().is_ok() {
            return Ok(true);
        }
        for number in 0..self.events.len() {
            let event = self.events[number];
            if !self.may_follow(event) {
                continue;
            }
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(TOO_MANY.into());
            }
            let mut after = at.clone();
            if after.event(event, self.happened.len() as u32).is_ok() {
                self.happened.push(event);
                if self.go_on(&after)? {
                    return Ok(true);
                }
                self.happened.pop();
            }
        }
        Ok(false)
    }

    fn may_follow(&self, event: Node) -> bool {
        if let Some(last) = self.happened.last()
            && last.is_begin()
            && self.hurried.contains(&last.txn())
        {
            return event == Node::commit(last.txn());
        }
        let is_other_way_round = |last: &Node| last.is_begin() && last.txn() > event.txn();
        let is_left = self.are_begins_free
            && event.is_begin()
            && self.happened.last().is_some_and(is_other_way_round);
        !is_left && !self.happened.contains(&event)
    }
}
