//! What the result of an aggregate allows one key to add to it.
//!
//! Each other key adds one of some shares, whichever. A count or sum lies between the least and
//! the most that all of them can make together; a least or largest value is one that some key
//! has, and no key has one beyond it.

use isolde_history::{Aggregate, Datum, Function, History, Share, Value};

/// Whether the result is possible if one key adds `share` and each other one of its own.
pub(super) fn allows(
    history: &History,
    aggregate: Aggregate,
    share: Share,
    others: &[Vec<Share>],
) -> bool {
    let result = match history.datum(aggregate.result) {
        Datum::Int(result) => result,
        Datum::Nil => return share == Share::Nothing,
        _ => return true,
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
