//! `bank`: money is moved, not made.
//!
//! **Definition** [Jepsen's `bank`, as elle-cli has it]. Every successful read shows
//! the accounts of the first one, each with a balance, and their sum is always the
//! same: the given total, or that of the first read. Unless it is allowed, no balance
//! is negative.
//!
//! **Method.** One pass over the reads in order of completion. Linear.

use super::{Finding, Misfit, Problem, Recorded};
use isolde_history::{OpId, Tree};
use std::collections::BTreeSet;

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let mut reads = Vec::new();
    for read in recorded.done("read") {
        let Tree::Map(balances) = &read.value else {
            return Err(Misfit { op: read.op, expected: "a map of accounts and balances".into() });
        };
        reads.push((read.op, balances.as_slice()));
    }
    let Some(&(first, balances)) = reads.first() else {
        return Ok(Finding::vacuous("no account was ever read"));
    };
    let accounts: BTreeSet<&Tree> = balances.iter().map(|(account, _)| account).collect();
    let total = match recorded.expectations.total {
        Some(total) => total,
        None => sum(first, balances)?,
    };
    let mut problems = Vec::new();
    for &(op, balances) in &reads {
        let name = recorded.history.readable_name(recorded.history.txn_of(op));
        let problem =
            |kind, what| Problem { name: kind, ops: vec![op], text: format!("{name} read {what}") };
        let unexpected = balances.iter().find(|(account, _)| !accounts.contains(account));
        let absent = balances.iter().find(|(_, balance)| *balance == Tree::Nil);
        if let Some((account, _)) = unexpected {
            let what = format!("account {account}, which the first read does not have");
            problems.push(problem("unexpected-key", what));
        } else if let Some((account, _)) = absent {
            problems.push(problem("nil-balance", format!("no balance of account {account}")));
        } else if sum(op, balances)? != total {
            let what = format!("a total of {}, not {total}", sum(op, balances)?);
            problems.push(problem("wrong-total", what));
        } else if !recorded.expectations.negative_balances
            && let Some((account, balance)) =
                balances.iter().find(|it| matches!(it.1, Tree::Int(..0)))
        {
            problems.push(problem("negative-value", format!("{balance} in account {account}")));
        }
    }
    Ok(Finding::of(problems, vec![("reads", reads.len())]))
}

/// The sum of balances; absent ones count as nothing.
fn sum(op: OpId, balances: &[(Tree, Tree)]) -> Result<i128, Misfit> {
    let mut sum = 0;
    for (_, balance) in balances {
        match balance {
            Tree::Int(number) => sum += number,
            Tree::Nil => {}
            _ => return Err(Misfit { op, expected: "balances that are integers".into() }),
        }
    }
    Ok(sum)
}
