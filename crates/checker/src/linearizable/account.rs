//! What is known about an operation that nothing explains, the plainest account of it first.

use super::locks::{Lock, lock_at};
use super::possible::left_while_open;
use super::window::{Window, window};
use crate::limits::Limits;
use isolde_history::{History, OpId};

/// Why an operation has no explanation.
#[derive(Clone, Debug)]
pub enum Account {
    /// Its lock was held, or nobody held it.
    Lock(Lock),
    /// Whatever the order, one of these had left what it should have found; `None` is the
    /// initial state.
    Left(Vec<Option<OpId>>),
    /// Some calls of its register have no order.
    Window(Window),
}

/// The plainest account of an operation that nothing explains, if there is a short one.
pub fn account(history: &History, unexplained: OpId, limits: &Limits<'_>) -> Option<Account> {
    if let Some(lock) = lock_at(history, unexplained) {
        return Some(Account::Lock(lock));
    }
    let left = left_while_open(history, unexplained);
    if left.as_ref().is_some_and(|left| left.len() == 1) {
        return left.map(Account::Left);
    }
    window(history, unexplained, limits).map(Account::Window).or(left.map(Account::Left))
}

impl Account {
    /// The operations that it tells of, beside the one in question.
    pub fn ops(&self) -> Vec<OpId> {
        match self {
            Account::Lock(lock) => lock.held_by.clone(),
            Account::Left(left) => left.iter().copied().flatten().collect(),
            Account::Window(window) => window.all().collect(),
        }
    }
}
