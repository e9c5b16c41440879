//! Applications with the amounts that they compute, so that values repeat.
//!
//! What is written follows from what the transaction read of the row: balances go up and
//! down, accounts are emptied, orders are counted, stock runs out and is filled up. So a
//! request has its value only when it is sent; the plan says by how much it changes.

use super::applications;
use crate::keys::KeyChoice;
use crate::parameters::Application;
use crate::plan::{Action, Intent};
use crate::random::Random;
use crate::request::{Answer, Request};
use std::collections::HashMap;

/// What a row begins with that nobody has written.
const BEGINNING: u64 = 100;

/// What a write makes of what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Add(u64),
    Take(u64),
    Set(u64),
    /// Everything that the transaction has taken from other rows is added.
    AddTaken,
    /// So many are taken, and where fewer than ten would be left, 91 are delivered.
    Sell(u64),
}

/// The change of each request of the transaction, and what it has seen.
#[derive(Default)]
pub(super) struct Balances {
    intents: Vec<Intent>,
    changes: Vec<Option<Change>>,
    seen: HashMap<u64, u64>,
    /// How much less is in the rows that it has written.
    taken: u64,
}

impl Balances {
    pub(super) fn plan(
        &mut self,
        application: Application,
        choice: &KeyChoice,
        random: &mut Random,
        requests: &mut Vec<Request>,
    ) {
        self.intents.clear();
        self.changes.clear();
        self.seen.clear();
        self.taken = 0;
        applications::plan(application, choice, random, &mut self.intents);
        for place in 0..self.intents.len() {
            let intent = self.intents[place];
            let key = u64::from(intent.key);
            let change = match (intent.action, application) {
                (Action::Read, _) => None,
                (Action::Write, Application::TpcC) => Some(of_orders(intent.key, random)),
                (Action::Write, _) => Some(of_accounts(&self.intents, place, random)),
            };
            self.changes.push(change);
            // Where a transaction is sent as a whole, there are no answers to wait for.
            requests.push(match self.value(place, key) {
                None => Request::Read { key },
                Some(value) => Request::Write { key, value },
            });
        }
    }

    pub(super) fn saw(&mut self, request: &Request, answer: &Answer) {
        match (request, answer) {
            (Request::Read { key }, Answer::Value(value)) => {
                self.seen.insert(*key, value.unwrap_or(BEGINNING));
            }
            (Request::Write { key, value }, _) => {
                let before = self.seen.insert(*key, *value).unwrap_or(BEGINNING);
                self.taken += before.saturating_sub(*value);
            }
            _ => {}
        }
    }

    /// What the request of this place writes.
    pub(super) fn value(&self, place: usize, key: u64) -> Option<u64> {
        let change = self.changes.get(place).copied().flatten()?;
        let own = self.seen.get(&key).copied().unwrap_or(BEGINNING);
        Some(match change {
            Change::Add(amount) => own.saturating_add(amount),
            Change::Take(amount) => own.saturating_sub(amount),
            Change::Set(value) => value,
            Change::AddTaken => own.saturating_add(self.taken),
            Change::Sell(amount) if own >= amount + 10 => own - amount,
            Change::Sell(amount) => own.saturating_add(91).saturating_sub(amount),
        })
    }
}

/// Amalgamate empties both accounts of a customer, which it has read, one after the other;
/// all else deposits or withdraws a little.
fn of_accounts(intents: &[Intent], place: usize, random: &mut Random) -> Change {
    let writes: Vec<usize> =
        (0..intents.len()).filter(|&at| intents[at].action == Action::Write).collect();
    let is_amalgamate = writes.starts_with(&[2, 3]);
    match (is_amalgamate, place) {
        (true, 2 | 3) => Change::Set(0),
        (true, _) => Change::AddTaken,
        (false, _) if random.chance(0.5) => Change::Add(u64::from(1 + random.below(5))),
        (false, _) => Change::Take(u64::from(1 + random.below(5))),
    }
}

/// Warehouses and customers have money, districts count orders, stock is sold, orders have
/// one of ten carriers.
fn of_orders(key: u32, random: &mut Random) -> Change {
    match key % 5 {
        0 => Change::Add(u64::from(1 + random.below(50))),
        1 => Change::Add(1),
        2 => Change::Take(u64::from(1 + random.below(50))),
        3 => Change::Sell(u64::from(1 + random.below(10))),
        _ => Change::Set(u64::from(1 + random.below(10))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Distribution;

    fn written(application: Application, transactions: u32) -> Vec<(u64, u64)> {
        let choice = KeyChoice::new(10, Distribution::Uniform);
        let (mut random, mut balances) = (Random::new(7), Balances::default());
        let mut rows: HashMap<u64, u64> = HashMap::new();
        let mut written = Vec::new();
        let mut requests = Vec::new();
        for _ in 0..transactions {
            requests.clear();
            balances.plan(application, &choice, &mut random, &mut requests);
            for (place, request) in requests.iter().enumerate() {
                match *request {
                    Request::Read { key } => {
                        balances.saw(request, &Answer::Value(rows.get(&key).copied()));
                    }
                    Request::Write { key, .. } => {
                        let value = balances.value(place, key).expect("it writes");
                        balances.saw(&Request::Write { key, value }, &Answer::Done);
                        rows.insert(key, value);
                        written.push((key, value));
                    }
                    ref other => panic!("{other:?}"),
                }
            }
        }
        written
    }

    #[test]
    fn amounts_repeat_and_accounts_are_emptied() {
        for application in [Application::SmallBank, Application::TpcC] {
            let mut all = written(application, 1000);
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert!(all.len() < count / 2, "{application:?}: {} of {count}", all.len());
        }
        let emptied = written(Application::SmallBank, 1000).iter().filter(|it| it.1 == 0).count();
        assert!(emptied > 200, "{emptied}");
    }

    /// Two accounts that were emptied had added nothing to the third.
    #[test]
    fn what_is_taken_from_two_accounts_is_added_to_the_third() {
        let mut balances = Balances {
            changes: vec![None, None, Some(Change::Set(0)), Some(Change::Set(0)), None],
            ..Balances::default()
        };
        balances.changes.push(Some(Change::AddTaken));
        balances.saw(&Request::Read { key: 1 }, &Answer::Value(Some(30)));
        balances.saw(&Request::Read { key: 2 }, &Answer::Value(None));
        for (place, key) in [(2, 1), (3, 2)] {
            let value = balances.value(place, key).expect("it writes");
            assert_eq!(value, 0);
            balances.saw(&Request::Write { key, value }, &Answer::Done);
        }
        balances.saw(&Request::Read { key: 3 }, &Answer::Value(Some(7)));
        assert_eq!(balances.value(5, 3), Some(7 + 30 + BEGINNING));
    }
}
