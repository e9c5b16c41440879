//! All objects, each by itself, on all threads.
//!
//! The answer is that of the first object without an order, whatever thread finished
//! first. Each thread may use its share of the memory for a search, and each object its share
//! of the work; an object for which that was not enough is searched again alone, so that no
//! verdict depends on the number of threads.

use super::operations::{Action, Operation, Operations, Texts};
use super::{Decided, one_object};
use crate::limits::{Limits, Work};
use crate::linearizable::search::BYTES_MAX;
use rayon::prelude::*;
use std::sync::OnceLock;

/// An object that has no order, or none was found within the limits.
pub(super) struct Without {
    pub(super) object: usize,
    /// Its operations.
    pub(super) operations: Vec<Operation>,
    pub(super) decided: Decided,
}

/// For each object the places of its operations in order, or the first without.
pub(super) fn orders(
    operations: &mut Operations,
    limits: &Limits<'_>,
) -> Result<Vec<Vec<usize>>, Without> {
    let mut by_object: Vec<Vec<usize>> = vec![Vec::new(); operations.objects.len()];
    for (place, operation) in operations.all.iter().enumerate() {
        if let Some(places) = by_object.get_mut(operation.object) {
            places.push(place);
        }
    }
    let of_object = |operations: &Operations, object: usize| -> Vec<Operation> {
        let places = by_object[object].iter();
        places.map(|&place| Operation { object: 0, ..operations.all[place] }).collect()
    };
    let found: Vec<OnceLock<Vec<usize>>> = vec![OnceLock::new(); by_object.len()];
    let threads = rayon::current_num_threads().max(1);
    let bytes_max = Some(limits.working_bytes_max.unwrap_or(BYTES_MAX) / threads);
    let shared = &*operations;
    let violated = (0..by_object.len()).into_par_iter().find_map_first(|object| {
        let own = of_object(shared, object);
        // Texts that grow are numbered as they are met, by one thread.
        if own.iter().any(|operation| matches!(operation.action, Action::Append(_))) {
            return None;
        }
        let work = Some(&Work::part(limits, by_object.len()));
        let share = Limits { working_bytes_max: bytes_max, work, ..*limits };
        match one_object(&own, shared.objects[object], &mut Texts::default(), &share) {
            Decided::Order(order) => {
                let _ = found[object].set(order);
                None
            }
            Decided::Limit(_) => None,
            decided @ Decided::Violated(..) => Some(Without { object, operations: own, decided }),
        }
    });
    let end = violated.as_ref().map_or(by_object.len(), |without| without.object);
    for (object, found) in found.iter().enumerate().take(end) {
        if found.get().is_some() {
            continue;
        }
        let own = of_object(operations, object);
        match one_object(&own, operations.objects[object], &mut operations.texts, limits) {
            Decided::Order(order) => drop(found.set(order)),
            decided => return Err(Without { object, operations: own, decided }),
        }
    }
    if let Some(violated) = violated {
        return Err(violated);
    }
    let order = |(places, order): (&Vec<usize>, OnceLock<Vec<usize>>)| {
        let order = order.into_inner().expect("every object has one");
        order.into_iter().map(|place| places[place]).collect()
    };
    Ok(by_object.iter().zip(found).map(order).collect())
}
