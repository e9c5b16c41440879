//! `comments`: who sees a comment sees all that were there before it.
//!
//! **Definition** [Jepsen's `comments`]. Comments are written one by one, each with a
//! number of its own. If a read has one, it has every other whose write ended before
//! the first one's was sent. Where values are pairs `[key number]`, each key has
//! comments of its own.
//!
//! **Method.** Of the comments a read has, the one sent last decides: every write that
//! ended before has to be in the read. They are counted, and named only if one is
//! missing. Linear in the size of all reads, after sorting the writes.

use super::calls::Call;
use super::{Finding, Misfit, Problem, Recorded};
use hashbrown::{HashMap, HashSet};
use isolde_history::{NEVER, OpId, Time, Tree};

/// Comments of one key.
#[derive(Default)]
struct Thread<'a> {
    written: HashMap<&'a Tree, Comment>,
    /// When writes ended, in order.
    ends: Vec<(Time, OpId, &'a Tree)>,
}

#[derive(Clone, Copy)]
struct Comment {
    sent: Time,
    ended: Time,
}

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let writes = || recorded.possible("write");
    let by_key = writes().next().is_some() && writes().all(|write| pair(&write.value).is_some());
    let mut threads: HashMap<Option<&Tree>, Thread<'_>> = HashMap::new();
    for write in writes() {
        let (key, number) = split(&write.value, by_key);
        let thread = threads.entry(key).or_default();
        let ended = if write.is_done() { write.completed } else { NEVER };
        thread.written.insert(number, Comment { sent: write.invoked, ended });
        if ended != NEVER {
            thread.ends.push((ended, write.op, number));
        }
    }
    for thread in threads.values_mut() {
        thread.ends.sort_unstable();
    }
    let mut problems = Vec::new();
    let mut reads = 0;
    for read in recorded.done("read") {
        let (key, value) = split(&read.value, by_key);
        reads += 1;
        let seen = match (value, value.members()) {
            (Tree::Nil, _) => continue,
            (_, Some(members)) => members,
            _ => {
                return Err(Misfit {
                    op: read.op,
                    expected: "a sequence or set of comments".into(),
                });
            }
        };
        if let Some(thread) = threads.get(&key) {
            problems.extend(missed(recorded, read, seen, thread));
        }
    }
    if reads == 0 {
        return Ok(Finding::vacuous("no comments were ever read"));
    }
    let counts = vec![("reads", reads), ("writes", writes().count())];
    Ok(Finding::of(problems, counts))
}

fn pair(value: &Tree) -> Option<(&Tree, &Tree)> {
    match value {
        Tree::Sequence(members) => match members.as_slice() {
            [key, value] => Some((key, value)),
            _ => None,
        },
        _ => None,
    }
}

fn split(value: &Tree, by_key: bool) -> (Option<&Tree>, &Tree) {
    match pair(value) {
        Some((key, value)) if by_key => (Some(key), value),
        _ => (None, value),
    }
}

fn missed(
    recorded: &Recorded<'_>,
    read: &Call<'_>,
    seen: &[Tree],
    thread: &Thread<'_>,
) -> Option<Problem> {
    let seen: HashSet<&Tree> = seen.iter().collect();
    let written = |number: &Tree| thread.written.get(number);
    let known = seen.iter().filter_map(|&number| Some((written(number)?.sent, number)));
    let (sent, last) = known.max()?;
    let before = thread.ends.partition_point(|&(ended, ..)| ended < sent);
    let has = |number: &Tree| written(number).is_some_and(|comment| comment.ended < sent);
    if seen.iter().filter(|number| has(number)).count() == before {
        return None;
    }
    let mut earlier = thread.ends[..before].iter();
    let &(_, op, number) = earlier.find(|(_, _, number)| !seen.contains(number))?;
    let name = recorded.history.readable_name(recorded.history.txn_of(read.op));
    let text = format!("{name} saw {last} and missed {number}, which was there before it was sent");
    Some(Problem { name: "missing", ops: vec![read.op, op], text })
}
