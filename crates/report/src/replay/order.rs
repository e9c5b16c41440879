//! Who types what when: the terminals of a script, and the order of all its steps.
//!
//! A terminal has one transaction open at a time, and those of a session follow one another:
//! that holds whatever else gives way. Then the recorded times decide: what had an answer before
//! something else was sent comes before it. Where times leave it open, reads can see what they
//! saw: a writer commits before its readers read, and who missed a write reads before it is
//! committed. Where all of that cannot be, which is itself the violation, a read comes after the
//! commit that it missed rather than before the write that it saw.

use super::conditions::{self, Keys};
use crate::scenario::{EdgeKind, OpRef, Role, Scenario, ScenarioEdge, ScenarioOp, Span};

/// A terminal, and the transactions that are typed into it, one after another.
pub(super) struct Terminal {
    /// Whose it is.
    pub(super) name: String,
    /// Their places among [`Scenario::transactions`], in the order of the session.
    pub(super) txns: Vec<usize>,
}

/// One terminal for each session, and one for each transaction without a session.
pub(super) fn terminals(scenario: &Scenario) -> Vec<Terminal> {
    let txns = &scenario.transactions;
    let mut labels: Vec<&str> = Vec::new();
    for txn in txns.iter().filter(|txn| txn.role != Role::Initial) {
        if !labels.contains(&txn.session.as_str()) {
            labels.push(&txn.session);
        }
    }
    let mut found = Vec::new();
    for label in labels {
        let is_its = |&txn: &usize| txns[txn].role != Role::Initial && txns[txn].session == label;
        let mut its: Vec<usize> = (0..txns.len()).filter(is_its).collect();
        its.sort_by_key(|&txn| txns[txn].place_in_session);
        // Several sessions can have one label, as those of transactions without a process do.
        let is_shared =
            |pair: &[usize]| txns[pair[0]].place_in_session == txns[pair[1]].place_in_session;
        if its.windows(2).any(is_shared) {
            found.extend(its.into_iter().map(|txn| {
                let name = &txns[txn].name;
                let name = match label {
                    "nil" => format!("{name}, which has no session"),
                    label => format!("{name} of a session {label}"),
                };
                Terminal { name, txns: vec![txn] }
            }));
        } else {
            found.push(Terminal { name: format!("session {label}"), txns: its });
        }
    }
    found
}

/// What happens at one step of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Begin,
    Op(usize),
    End,
}

/// One statement of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) txn: usize,
    pub(super) act: Act,
}

/// All steps, each with the place of its terminal, in the order in which they are typed.
pub(super) fn ordered(
    scenario: &Scenario,
    terminals: &[Terminal],
    keys: Keys,
) -> Vec<(usize, Step)> {
    let queue = |terminal: &Terminal| -> Vec<Step> {
        terminal.txns.iter().flat_map(|&txn| steps_of(scenario, txn, keys)).collect()
    };
    let queues: Vec<Vec<Step>> = terminals.iter().map(queue).collect();
    let mut typing = Typing::new(scenario, &queues);
    let mut order = Vec::new();
    while let Some(next) = typing.next() {
        order.push((next, queues[next][typing.done[next]]));
        typing.done[next] += 1;
    }
    order
}

fn steps_of(scenario: &Scenario, txn: usize, keys: Keys) -> Vec<Step> {
    let it = &scenario.transactions[txn];
    let covered = conditions::covered(it, keys);
    let ops = (0..it.operations.len()).filter(|&op| !covered[op]);
    let acts = std::iter::once(Act::Begin).chain(ops.map(Act::Op)).chain([Act::End]);
    acts.map(|act| Step { txn, act }).collect()
}

/// Why a step waits for another, from what gives way first to what gives way last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It begins a transaction that saw the other, which a snapshot of its beginning must have.
    Snapshot,
    /// It commits a write that the other missed.
    Missed,
    /// It replaces what the other wrote.
    Replaced,
    /// It saw what the other wrote.
    Seen,
    /// The other had its answer before it was sent.
    Clock,
}

/// A step waits for another one; each is a terminal and a place in its queue.
struct Wait {
    step: (usize, usize),
    other: (usize, usize),
    reason: Reason,
}

/// The script while it is put in order.
struct Typing<'a> {
    scenario: &'a Scenario,
    queues: &'a [Vec<Step>],
    waits: Vec<Wait>,
    /// By terminal and place in its queue, the earliest answer from there on.
    answers: Vec<Vec<Option<i64>>>,
    is_timed: bool,
    /// By terminal, how many steps were typed.
    done: Vec<usize>,
}

impl<'a> Typing<'a> {
    fn new(scenario: &'a Scenario, queues: &'a [Vec<Step>]) -> Typing<'a> {
        let answers = queues.iter().map(|queue| {
            let mut earliest = None;
            let from_there: Vec<Option<i64>> = (queue.iter().rev())
                .map(|&step| {
                    let answer = span_of(scenario, step).completed;
                    earliest = earliest.into_iter().chain(answer).min();
                    earliest
                })
                .collect();
            from_there.into_iter().rev().collect()
        });
        let mut steps = queues.iter().flatten();
        Typing {
            scenario,
            queues,
            waits: waits(scenario, queues),
            answers: answers.collect(),
            is_timed: steps.all(|&step| instant_of(scenario, step).is_some()),
            done: vec![0; queues.len()],
        }
    }

    /// The terminal that is typed into next. Of the steps that wait for nothing, the earliest;
    /// without times that of the transaction with the fewest steps behind it, commits last, so
    /// that transactions overlap as they must have.
    fn next(&self) -> Option<usize> {
        let open = (0..self.queues.len()).filter(|&it| self.done[it] < self.queues[it].len());
        open.min_by_key(|&terminal| {
            let step = self.queues[terminal][self.done[terminal]];
            let rank = if self.is_timed {
                (false, instant_of(self.scenario, step), 0)
            } else {
                (step.act == Act::End, None, self.behind(terminal))
            };
            (self.waits_for(terminal), rank)
        })
    }

    /// How many steps of its transaction were typed before the next step of a terminal.
    fn behind(&self, terminal: usize) -> usize {
        let (queue, done) = (&self.queues[terminal], self.done[terminal]);
        let same = |step: &&Step| step.txn == queue[done].txn;
        queue[..done].iter().rev().take_while(same).count()
    }

    /// The strongest reason for which the next step of a terminal has to wait.
    fn waits_for(&self, terminal: usize) -> Option<Reason> {
        let place = (terminal, self.done[terminal]);
        let sent = span_of(self.scenario, self.queues[terminal][place.1]).invoked;
        let is_earlier = |other: usize| {
            let answer = self.answers[other].get(self.done[other]).copied().flatten();
            other != terminal && answer.zip(sent).is_some_and(|(answer, sent)| answer < sent)
        };
        if (0..self.queues.len()).any(is_earlier) {
            return Some(Reason::Clock);
        }
        let open = |wait: &&Wait| wait.step == place && wait.other.1 >= self.done[wait.other.0];
        self.waits.iter().filter(open).map(|wait| wait.reason).max()
    }
}

/// What the edges of a scenario and its values say about steps of different terminals.
fn waits(scenario: &Scenario, queues: &[Vec<Step>]) -> Vec<Wait> {
    let place = |txn: usize, act: Act| {
        let find = |queue: &Vec<Step>| queue.iter().position(|it| *it == Step { txn, act });
        queues.iter().enumerate().find_map(|(terminal, queue)| Some((terminal, find(queue)?)))
    };
    let op_place = |op: OpRef| place(op.transaction, Act::Op(op.operation));
    let mut pairs = Vec::new();
    for edge in scenario.all_edges() {
        let (from, to) = (place(edge.from, Act::End), place(edge.to, Act::End));
        let reads = reads_of(scenario, edge);
        match edge.kind {
            EdgeKind::Wr => {
                pairs.push((from, place(edge.to, Act::Begin), Reason::Snapshot));
                pairs.extend(reads.into_iter().map(|read| (from, op_place(read), Reason::Seen)));
            }
            EdgeKind::Rw => {
                pairs.extend(reads.into_iter().map(|read| (op_place(read), to, Reason::Missed)));
            }
            EdgeKind::Ww => pairs.push((from, to, Reason::Replaced)),
            EdgeKind::Session | EdgeKind::RealTime => {
                pairs.push((from, place(edge.to, Act::Begin), Reason::Clock));
            }
            EdgeKind::Initial | EdgeKind::Assumed => {}
        }
    }
    let seen = seen(scenario).into_iter();
    pairs.extend(seen.map(|(write, read)| (op_place(write), op_place(read), Reason::Seen)));
    let wait = |(other, step, reason): (Option<_>, Option<_>, Reason)| {
        Some(Wait { step: step?, other: other?, reason })
    };
    pairs.into_iter().filter_map(wait).filter(|wait| wait.step.0 != wait.other.0).collect()
}

/// The reads that an edge rests on.
fn reads_of(scenario: &Scenario, edge: &ScenarioEdge) -> Vec<OpRef> {
    let reader = if edge.kind == EdgeKind::Wr { edge.to } else { edge.from };
    let is_read = |it: &&OpRef| {
        let txn = scenario.transactions.get(it.transaction);
        it.transaction == reader
            && txn.and_then(|txn| txn.operations.get(it.operation)).is_some_and(reads)
    };
    edge.operations.iter().filter(is_read).copied().collect()
}

pub(super) fn reads(op: &ScenarioOp) -> bool {
    op.kind.starts_with("read") || op.kind.starts_with("predicate")
}

/// Writes and the reads of their values, where no other operation wrote the same: violations
/// that single operations show, such as reads of aborted writes, have no edges.
fn seen(scenario: &Scenario) -> Vec<(OpRef, OpRef)> {
    let of_kinds = |kinds: &'static [&'static str]| {
        let txns = scenario.transactions.iter().enumerate();
        let ops = txns.flat_map(|(transaction, txn)| {
            let ops = txn.operations.iter().enumerate();
            ops.map(move |(operation, op)| (OpRef { transaction, operation }, op))
        });
        ops.filter(|(_, op)| kinds.contains(&op.kind.as_str())).collect::<Vec<_>>()
    };
    let writes = of_kinds(&["write", "insert"]);
    let mut pairs = Vec::new();
    for (read, op) in of_kinds(&["read"]) {
        let mut same = writes.iter().filter(|(_, it)| it.key == op.key && it.value == op.value);
        if let (Some(&(write, _)), None) = (same.next(), same.next()) {
            pairs.push((write, read));
        }
    }
    pairs
}

fn span_of(scenario: &Scenario, step: Step) -> Span {
    let txn = &scenario.transactions[step.txn];
    let span = match step.act {
        Act::Begin => txn.begin,
        Act::End => txn.commit,
        Act::Op(op) => txn.operations[op].time,
    };
    span.unwrap_or_default()
}

/// Where a step stands among others that its times leave open.
fn instant_of(scenario: &Scenario, step: Step) -> Option<i64> {
    let span = span_of(scenario, step);
    if step.act == Act::End { span.completed } else { span.invoked }
}
