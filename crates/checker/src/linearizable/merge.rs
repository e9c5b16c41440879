//! One order of all operations from the orders of the objects.
//!
//! Linearizability is local [Herlihy90]: orders of single objects that keep real time
//! can be merged into one that does. That rests on real time being all there is. An
//! order in sessions that the times do not show (clocks that tick together for several
//! operations, a bound on drift) may fit each object and not all of them; then there is
//! no merged order, and that one has to be searched for.
//!
//! **Method.** Operations are taken one after another: those of an object in its
//! order, those of a session in its order, and none while another one is left that
//! completed before it was invoked. Of those that can be next, the one invoked first is
//! taken; if it cannot be, none can. O(n log n).

use super::operations::Operation;
use isolde_history::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The merged order of the operations that stand in one of `orders` or in none
/// because they belong to no object; `None` if there is none. `before` is the
/// operation before each in its session.
pub(super) fn merge(
    operations: &[Operation],
    orders: &[Vec<usize>],
    before: &[Option<usize>],
) -> Option<Vec<usize>> {
    let mut is_taking_part = vec![false; operations.len()];
    // In the object and in the session.
    let mut next: Vec<[Option<usize>; 2]> = vec![[None; 2]; operations.len()];
    let mut waits_for = vec![0_u8; operations.len()];
    for order in orders {
        for &place in order {
            is_taking_part[place] = true;
        }
        for pair in order.windows(2) {
            next[pair[0]][0] = Some(pair[1]);
            waits_for[pair[1]] += 1;
        }
    }
    for (place, operation) in operations.iter().enumerate() {
        is_taking_part[place] |= operation.object == usize::MAX;
    }
    for place in (0..operations.len()).filter(|&place| is_taking_part[place]) {
        let mut at = before[place];
        while let Some(earlier) = at {
            if is_taking_part[earlier] {
                next[earlier][1] = Some(place);
                waits_for[place] += 1;
                break;
            }
            at = before[earlier];
        }
    }
    let parts: Vec<usize> = (0..operations.len()).filter(|&place| is_taking_part[place]).collect();
    let mut by_completion = parts.clone();
    by_completion.sort_unstable_by_key(|&place| operations[place].completed);
    let mut ready: BinaryHeap<Reverse<(Time, usize)>> = (parts.iter())
        .filter(|&&place| waits_for[place] == 0)
        .map(|&place| Reverse((operations[place].invoked, place)))
        .collect();
    let mut is_taken = vec![false; operations.len()];
    let mut merged = Vec::with_capacity(parts.len());
    let mut first_left = 0;
    while let Some(Reverse((invoked, place))) = ready.pop() {
        while by_completion.get(first_left).is_some_and(|&left| is_taken[left]) {
            first_left += 1;
        }
        let others = by_completion[first_left..].iter();
        let hindering = others.copied().find(|&left| left != place && !is_taken[left]);
        if hindering.is_some_and(|other| operations[other].completed < invoked) {
            return None;
        }
        is_taken[place] = true;
        merged.push(place);
        for next in next[place].into_iter().flatten() {
            waits_for[next] -= 1;
            if waits_for[next] == 0 {
                ready.push(Reverse((operations[next].invoked, next)));
            }
        }
    }
    (merged.len() == parts.len()).then_some(merged)
}
