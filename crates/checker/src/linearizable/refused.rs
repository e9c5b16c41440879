//! Refused compare-and-sets: reads that saw any content but one.
//!
//! **Method.** They saw no version in particular, so the order of versions is found
//! without them. In that order every operation gets the earliest instant it can have;
//! between two neighbours the object holds one content from the instant of the first
//! to that of the second. A refused one fits wherever that overlaps the time it was
//! open and the content is another. Instants lie in the intervals of their
//! operations, so all that fit, fit together. If one fits nowhere, another order of
//! versions may still have a place for it, and the object has to be searched.

use super::operations::{Action, Content, Operation};
use isolde_history::{ALWAYS, NEVER, Time};

/// The order with the refused operations in it; `None` if one of them has no place.
pub(super) fn place(
    operations: &[Operation],
    initial: Content,
    order: Vec<usize>,
) -> Option<Vec<usize>> {
    let refused: Vec<usize> = (0..operations.len())
        .filter(|&place| matches!(operations[place].action, Action::ReadOther(_)))
        .collect();
    if refused.is_empty() {
        return Some(order);
    }
    let gaps = gaps(operations, initial, &order);
    // Reads leave the content as it is; to go through them for each operation would cost the
    // square of the history.
    let mut other_content = vec![gaps.len(); gaps.len()];
    for at in (1..gaps.len()).rev() {
        let is_other = gaps[at].content != gaps[at - 1].content;
        other_content[at - 1] = if is_other { at } else { other_content[at] };
    }
    let mut placed: Vec<(usize, Time, usize)> = Vec::new();
    for place in refused {
        let Operation { action, invoked, completed, .. } = operations[place];
        let Action::ReadOther(other) = action else { unreachable!("filtered above") };
        let first = gaps.partition_point(|gap| gap.end < invoked);
        let fitting = if gaps[first].content == other { other_content[first] } else { first };
        let gap = gaps.get(fitting).filter(|gap| gap.start <= completed)?;
        placed.push((gap.after, gap.start.max(invoked), place));
    }
    placed.sort_unstable();
    let mut whole = Vec::with_capacity(order.len() + placed.len());
    let mut placed = placed.into_iter().peekable();
    for after in 0..=order.len() {
        while let Some((_, _, place)) = placed.next_if(|entry| entry.0 == after) {
            whole.push(place);
        }
        whole.extend(order.get(after));
    }
    Some(whole)
}

/// What the object holds between two neighbours of the order.
struct Gap {
    /// How many operations are before it.
    after: usize,
    start: Time,
    end: Time,
    content: Content,
}

fn gaps(operations: &[Operation], initial: Content, order: &[usize]) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::with_capacity(order.len() + 1);
    let (mut instant, mut content) = (ALWAYS, initial);
    for (after, &place) in order.iter().enumerate() {
        let next = instant.max(operations[place].invoked);
        gaps.push(Gap { after, start: instant, end: next, content });
        instant = next;
        content = operations[place].action.left().unwrap_or(content);
    }
    gaps.push(Gap { after: order.len(), start: instant, end: NEVER, content });
    gaps
}
