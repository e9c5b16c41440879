//! Invocations and completions of operations, in order of time.

use super::operations::{Action, Operation};
use isolde_history::Time;

#[derive(Clone, Copy)]
pub(super) enum Event {
    Invoked(usize),
    Completed(usize),
}

/// Invocations and completions in order of time. What completes when another is
/// invoked overlaps it.
pub(super) fn events(operations: &[Operation]) -> Vec<Event> {
    let mut events: Vec<(Time, bool, usize)> = Vec::new();
    for (place, operation) in operations.iter().enumerate() {
        events.push((operation.invoked, false, place));
        if operation.is_certain {
            events.push((operation.completed, true, place));
        }
    }
    events.sort_unstable();
    let event = |(_, is_end, place)| {
        if is_end { Event::Completed(place) } else { Event::Invoked(place) }
    };
    events.into_iter().map(event).collect()
}

/// So many events matter: all up to the last completion of an operation that saw something.
pub(super) fn seen(operations: &[Operation], events: &[Event]) -> usize {
    let saw = |place: usize| {
        let action = operations[place].action;
        action.seen().is_some() || matches!(action, Action::ReadOther(_))
    };
    let is_last = |event: &Event| matches!(event, Event::Completed(place) if saw(*place));
    events.iter().rposition(is_last).map_or(0, |last| last + 1)
}

/// Operations that certainly took effect and are not in an order, as they completed.
pub(super) fn left_by(operations: &[Operation], order: &[usize]) -> Vec<usize> {
    let mut is_left: Vec<bool> = operations.iter().map(|operation| operation.is_certain).collect();
    for &place in order {
        is_left[place] = false;
    }
    let mut left: Vec<usize> = (0..is_left.len()).filter(|&place| is_left[place]).collect();
    left.sort_by_key(|&place| operations[place].completed);
    left
}

/// How many certain operations are open at once, at most.
pub(super) fn open_max(operations: &[Operation]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for event in events(operations) {
        match event {
            Event::Invoked(place) if operations[place].is_certain => open += 1,
            Event::Invoked(_) => {}
            Event::Completed(_) => open -= 1,
        }
        most = most.max(open);
    }
    most
}
