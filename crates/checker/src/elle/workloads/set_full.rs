//! `set-full`: what was added stays there.
//!
//! **Definition** [Jepsen's `set-full`]. An element is *known* once its `add` succeeded
//! or some read had it, whichever ended first. It is *lost* if the read that began last
//! of those that miss it began after it was known, and after every read that has it. It
//! is *stable* if some read has it and none that began later misses it. Reads that ended
//! before the `add` was sent say nothing. A history is valid if no element is lost, no
//! read has an element twice, and at least one is stable. Asked for linearizability, no
//! read that began after an element was known may miss it, even if it is found later.
//!
//! **Method.** Reads in order of invocation, and for each element those that have it.
//! The last read that misses it is found by walking both from the end. Linear in the
//! size of all reads.

use super::calls::Call;
use super::{Finding, Misfit, Problem, Recorded};
use hashbrown::HashMap;
use isolde_history::{ALWAYS, NEVER, OpId, Time, Tree};

struct Element<'a> {
    value: &'a Tree,
    add: OpId,
    sent: Time,
    known: Time,
    /// Reads that have it, in order of invocation.
    present: Vec<usize>,
}

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let mut reads: Vec<&Call<'_>> = recorded.done("read").collect();
    reads.sort_by_key(|read| read.invoked);
    let mut elements = elements(recorded);
    let mut problems = Vec::new();
    for (number, read) in reads.iter().enumerate() {
        if read.value == Tree::Nil {
            continue;
        }
        let Some(members) = read.value.members() else {
            return Err(Misfit { op: read.op, expected: "a sequence or set of elements".into() });
        };
        for member in members {
            let Some(element) = elements.by_value.get(member).map(|&at| &mut elements.all[at])
            else {
                continue;
            };
            if element.present.last() == Some(&number) {
                problems.push(Problem {
                    name: "duplicated",
                    ops: vec![read.op],
                    text: format!("a read has {member} twice"),
                });
                continue;
            }
            element.known = element.known.min(read.completed);
            element.present.push(number);
        }
    }
    // Of the reads up to each, when the last one ended.
    let mut last_end = ALWAYS;
    let ends: Vec<Time> = (reads.iter())
        .map(|read| {
            last_end = last_end.max(read.completed);
            last_end
        })
        .collect();
    let mut stable = 0;
    for element in &elements.all {
        let absent = last_absent(element, &reads, &ends);
        let present = element.present.last().copied();
        stable += usize::from(present.is_some() && absent < present);
        let Some(absent) = absent else { continue };
        let is_late = element.known != NEVER && element.known < reads[absent].invoked;
        if is_late && present < Some(absent) {
            problems.push(missed(element, reads[absent], "lost"));
        } else if is_late && recorded.expectations.linearizable {
            problems.push(missed(element, reads[absent], "stale"));
        }
    }
    let counts = vec![("attempts", elements.all.len()), ("stable", stable), ("reads", reads.len())];
    if problems.is_empty() && stable == 0 {
        return Ok(Finding { counts, ..Finding::unknown("no element was read and stayed") });
    }
    Ok(Finding::of(problems, counts))
}

fn missed(element: &Element<'_>, read: &Call<'_>, name: &'static str) -> Problem {
    let value = element.value;
    let later = if name == "lost" { ", and no later one has it" } else { "" };
    let text = format!("{value} was there before a read began that does not have it{later}");
    Problem { name, ops: vec![element.add, read.op], text }
}

struct Elements<'a> {
    all: Vec<Element<'a>>,
    by_value: HashMap<&'a Tree, usize>,
}

fn elements<'a>(recorded: &'a Recorded<'_>) -> Elements<'a> {
    let mut elements = Elements { all: Vec::new(), by_value: HashMap::new() };
    for add in recorded.calls.iter().filter(|call| call.function == "add") {
        let Elements { all, by_value } = &mut elements;
        let at = *by_value.entry(&add.value).or_insert_with(|| {
            let (value, add) = (&add.value, add.op);
            all.push(Element { value, add, sent: NEVER, known: NEVER, present: Vec::new() });
            all.len() - 1
        });
        let element = &mut all[at];
        element.sent = element.sent.min(add.invoked);
        if add.is_done() {
            element.known = element.known.min(add.completed);
        }
    }
    elements
}

/// The read that began last of those that miss the element and did not end before it
/// was sent.
fn last_absent(element: &Element<'_>, reads: &[&Call<'_>], ends: &[Time]) -> Option<usize> {
    let mut present = element.present.iter().rev().peekable();
    for number in (0..reads.len()).rev() {
        if ends[number] < element.sent {
            return None;
        }
        if present.next_if(|&&present| present == number).is_none()
            && reads[number].completed >= element.sent
        {
            return Some(number);
        }
    }
    None
}
