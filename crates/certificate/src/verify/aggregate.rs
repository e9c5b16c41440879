//! What the result of an aggregate allows keys to add to it.
//!
//! Each other key adds one of some shares, whichever. A count or sum lies between the least and
//! the most that all of them can make together; a least or largest value is one that some key
//! has, and no key has one beyond it.

use isolde_history::{Aggregate, Computed, Datum, Function, History, Share, Value};
use std::collections::{BTreeSet, HashSet};

/// Of more different sums nothing is said, and of sums that take more additions.
const SUMS_MAX: usize = 1 << 12;
const ADDITIONS_MAX: usize = 1 << 22;

/// Whether no choice of one share of each key gives the result. Where that is not known, no.
pub(super) fn is_impossible(
    history: &History,
    aggregate: Aggregate,
    choices: &[Vec<Share>],
) -> bool {
    if choices.iter().flatten().any(|&share| amount(history, share).is_none()) {
        return false;
    }
    if choices.iter().any(Vec::is_empty) {
        return true;
    }
    let result = match (aggregate.computed(history.values()), aggregate.function) {
        (Computed::Untold, _) => return false,
        (Computed::Number(result), _) => result,
        (Computed::Nothing, Function::Min | Function::Max | Function::Sum) => {
            return choices.iter().any(|shares| !shares.contains(&Share::Nothing));
        }
        // No number of rows, and no value of one.
        (Computed::Nothing | Computed::NoNumber, _) => return true,
    };
    let is_outside = is_sum(history, result, Share::Nothing, choices) == Some(false);
    match aggregate.function {
        Function::Count => is_outside,
        Function::Sum => is_outside || is_no_sum(history, result, choices) == Some(true),
        Function::Min => is_no_extreme(history, result, choices, |it| it >= result),
        Function::Max => is_no_extreme(history, result, choices, |it| it <= result),
    }
}

/// Whether a result is none of the sums that there can be; `None` if these are too many.
fn is_no_sum(history: &History, result: i128, choices: &[Vec<Share>]) -> Option<bool> {
    let mut left = ADDITIONS_MAX;
    // Of no rows there is no sum, not even zero.
    let mut sums: BTreeSet<Option<i128>> = BTreeSet::from([None]);
    for shares in choices {
        let distinct: HashSet<Share> = shares.iter().copied().collect();
        left = left.checked_sub(distinct.len() * sums.len())?;
        let mut longer = BTreeSet::new();
        for share in distinct {
            let number = amount(history, share)?;
            for &sum in &sums {
                let is_row = share != Share::Nothing;
                longer.insert(if is_row {
                    Some(sum.unwrap_or(0).checked_add(number)?)
                } else {
                    sum
                });
            }
        }
        sums = longer;
        if sums.len() > SUMS_MAX {
            return None;
        }
    }
    Some(!sums.contains(&Some(result)))
}

/// Whether no key can have a value, or one has to have a value beyond it.
fn is_no_extreme(
    history: &History,
    result: i128,
    choices: &[Vec<Share>],
    is_within: impl Fn(i128) -> bool,
) -> bool {
    let value = |share: &Share| amount(history, *share).filter(|_| *share != Share::Nothing);
    let has_it = |share: &Share| value(share) == Some(result);
    let stays_within = |share: &Share| value(share).is_none_or(&is_within);
    !choices.iter().flatten().any(has_it)
        || !choices.iter().all(|shares| shares.iter().any(stays_within))
}

/// Whether the result is possible if one key adds `share` and each other one of its own.
pub(super) fn allows(
    history: &History,
    aggregate: Aggregate,
    share: Share,
    others: &[Vec<Share>],
) -> bool {
    let result = match aggregate.computed(history.values()) {
        Computed::Number(result) => result,
        Computed::Nothing => return share == Share::Nothing,
        Computed::Untold | Computed::NoNumber => return true,
    };
    let possible = match aggregate.function {
        Function::Count | Function::Sum => is_sum(history, result, share, others),
        Function::Min => is_extreme(history, result, share, others, |it| it >= result),
        Function::Max => is_extreme(history, result, share, others, |it| it <= result),
    };
    // What is no number rules nothing out.
    possible.unwrap_or(true)
}

fn number(history: &History, value: Value) -> Option<i128> {
    match history.datum(value) {
        Datum::Int(number) => Some(number),
        _ => None,
    }
}

fn amount(history: &History, share: Share) -> Option<i128> {
    match share {
        Share::Nothing => Some(0),
        Share::Row => Some(1),
        Share::Value(value) => number(history, value),
    }
}

fn is_sum(history: &History, result: i128, share: Share, others: &[Vec<Share>]) -> Option<bool> {
    let (mut least, mut most) = (amount(history, share)?, amount(history, share)?);
    for shares in others {
        let amounts: Option<Vec<i128>> = shares.iter().map(|&it| amount(history, it)).collect();
        let amounts = amounts?;
        least = least.checked_add(*amounts.iter().min()?)?;
        most = most.checked_add(*amounts.iter().max()?)?;
    }
    Some(least <= result && result <= most)
}

fn is_extreme(
    history: &History,
    result: i128,
    share: Share,
    others: &[Vec<Share>],
    is_within: impl Fn(i128) -> bool,
) -> Option<bool> {
    let value = |share: Share| match share {
        Share::Value(value) => number(history, value).map(Some),
        Share::Nothing | Share::Row => Some(None),
    };
    let mut is_had = value(share)? == Some(result);
    for &other in others.iter().flatten() {
        is_had |= value(other)? == Some(result);
    }
    Some(is_had && value(share)?.is_none_or(is_within))
}
