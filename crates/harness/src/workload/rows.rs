//! Workloads of rows: ranges, inserts and deletes, updates by range, compare-and-sets.

use super::Values;
use super::balances::Balances;
use crate::keys::KeyChoice;
use crate::parameters::{Parameters, Rows};
use crate::random::Random;
use crate::request::{Answer, BLOCK, Filter, Function, Request};
use std::collections::HashMap;

/// Keys of a range read of BlindW-RW+.
const RANGE_KEYS: u32 = 10;
/// Keys of any other range, at most. Longer ones would make every transaction depend on
/// every other, and every history equally hard.
const RANGE_KEYS_MAX: u32 = 15;

/// One row in so many leaves a given remainder. Odd, because values are multiples of a
/// power of two.
const MODULUS: u64 = 15;

/// Rows that clients who insert the same ones look at.
const NEWEST: u64 = 4;

/// Plans transactions on rows.
pub(super) struct RowPlanner {
    rows: Rows,
    choice: KeyChoice,
    operations: u32,
    read_share: f64,
    /// What the client last saw of each key, for compare-and-sets.
    seen: HashMap<u64, Option<u64>>,
    balances: Balances,
}

impl RowPlanner {
    pub(super) fn new(rows: Rows, parameters: &Parameters) -> RowPlanner {
        RowPlanner {
            rows,
            choice: KeyChoice::new(parameters.keys, parameters.distribution),
            operations: parameters.operations,
            read_share: parameters.read_share,
            seen: HashMap::new(),
            balances: Balances::default(),
        }
    }

    pub(super) fn plan(
        &mut self,
        random: &mut Random,
        values: &mut Values,
        requests: &mut Vec<Request>,
    ) {
        match self.rows {
            Rows::BlindWriteRange => {
                let is_reading = random.chance(self.read_share);
                for _ in 0..self.operations {
                    let key = self.key(random);
                    requests.push(if !is_reading {
                        Request::Write { key, value: values.one() }
                    } else if random.chance(0.5) {
                        self.range(random, RANGE_KEYS)
                    } else {
                        Request::Read { key }
                    });
                }
            }
            Rows::Mix { items, changes } => {
                let drawn = random.below(100);
                let (items, changes) = (u32::from(items), u32::from(changes));
                let bounds = [items, 2 * items, 2 * items + changes, 2 * items + 2 * changes];
                let kind = bounds.iter().filter(|&&bound| drawn >= bound).count();
                for _ in 0..self.operations {
                    let key = self.key(random);
                    requests.push(match kind {
                        0 => Request::Read { key },
                        1 => Request::Write { key, value: values.one() },
                        2 => Request::Insert { key, value: values.one() },
                        3 => Request::Delete { key },
                        _ => {
                            let length = 1 + random.below(RANGE_KEYS_MAX);
                            self.range(random, length)
                        }
                    });
                }
            }
            Rows::Predicates { share, .. } => self.predicates(share, random, values, requests),
            Rows::Phantoms => phantoms(random, values, requests),
            Rows::Inserts => inserts(random, values, requests),
            Rows::Balances(application) => {
                self.balances.plan(application, &self.choice, random, requests);
            }
            Rows::FewValues { values } => self.few_values(values, random, requests),
            Rows::CompareAndSet => {
                let key = self.key(random);
                let expected = self.seen.get(&key).copied();
                requests.push(match expected {
                    Some(expected) if !random.chance(self.read_share) => {
                        Request::CompareAndSet { key, expected, value: values.one() }
                    }
                    _ => Request::Read { key },
                });
            }
        }
    }

    /// Each key is read or written once, so that a read is of what others wrote.
    fn few_values(&self, values: u8, random: &mut Random, requests: &mut Vec<Request>) {
        let operations = self.operations.min(self.choice.keys()) as usize;
        while requests.len() < operations {
            let key = self.key(random);
            let is_of_key = |request: &Request| match *request {
                Request::Read { key: used } | Request::Write { key: used, .. } => used == key,
                _ => false,
            };
            if requests.iter().any(is_of_key) {
                continue;
            }
            requests.push(if random.chance(self.read_share) {
                Request::Read { key }
            } else {
                Request::Write { key, value: 1 + u64::from(random.below(u32::from(values))) }
            });
        }
    }

    /// Emme's mix: a tenth of the operations writes rows that may be new; of the others a
    /// share is by condition, and of both kinds some read and the others update.
    fn predicates(
        &mut self,
        share: u8,
        random: &mut Random,
        values: &mut Values,
        requests: &mut Vec<Request>,
    ) {
        for _ in 0..self.operations {
            let is_new = random.below(10) == 0;
            let is_by_condition = !is_new && random.below(100) < u32::from(share);
            let is_reading = !is_new && random.chance(self.read_share);
            requests.push(match (is_by_condition, is_reading) {
                (false, true) => Request::Read { key: self.key(random) },
                (false, false) => Request::Write { key: self.key(random), value: values.block() },
                (true, true) => self.read_by_condition(random, values),
                (true, false) => self.change_by_condition(random, values),
            });
        }
    }

    fn read_by_condition(&self, random: &mut Random, values: &Values) -> Request {
        let length = 1 + random.below(RANGE_KEYS_MAX);
        let range = self.range(random, length);
        let Request::Range { low, high } = range else { return range };
        match random.below(4) {
            0 => range,
            1 => Request::Select { filter: filter_by_value(random, values) },
            _ => {
                let functions = [Function::Min, Function::Max, Function::Count];
                let function = functions[random.below(3) as usize];
                let filter = match random.below(2) {
                    0 => Filter::Keys { low, high },
                    _ => filter_by_value(random, values),
                };
                Request::Aggregate { function, filter }
            }
        }
    }

    fn change_by_condition(&self, random: &mut Random, values: &mut Values) -> Request {
        let length = 1 + random.below(RANGE_KEYS_MAX);
        let filter = filter_by_value(random, values);
        if let Rows::Predicates { deletes, .. } = self.rows
            && random.below(100) < u32::from(deletes)
        {
            return Request::DeleteWhere { filter };
        }
        match (random.below(3), self.range(random, length)) {
            (0, Request::Range { low, high }) => {
                Request::UpdateRange { low, high, first: values.block() }
            }
            _ => Request::UpdateWhere { filter, first: values.block() },
        }
    }

    fn key(&self, random: &mut Random) -> u64 {
        u64::from(self.choice.draw(random))
    }

    fn range(&self, random: &mut Random, length: u32) -> Request {
        let length = length.min(self.choice.keys());
        let low = self.choice.draw(random).min(self.choice.keys() - length);
        Request::Range { low: u64::from(low), high: u64::from(low + length - 1) }
    }

    /// Whether its values are blocks of values.
    pub(super) fn takes_blocks(&self) -> bool {
        matches!(self.rows, Rows::Predicates { .. } | Rows::Phantoms | Rows::Inserts)
    }

    /// What the write of this place of the plan writes, if that follows from answers.
    pub(super) fn value(&self, place: usize, key: u64) -> Option<u64> {
        matches!(self.rows, Rows::Balances(_)).then(|| self.balances.value(place, key))?
    }

    pub(super) fn saw(&mut self, request: &Request, answer: &Answer) {
        match self.rows {
            Rows::Balances(_) => return self.balances.saw(request, answer),
            Rows::CompareAndSet => {}
            _ => return,
        }
        match (request, answer) {
            (Request::Read { key }, Answer::Value(value))
            | (Request::CompareAndSet { key, .. }, Answer::Found(value)) => {
                self.seen.insert(*key, *value);
            }
            (Request::CompareAndSet { key, value, .. }, Answer::Applied(true)) => {
                self.seen.insert(*key, Some(*value));
            }
            (Request::CompareAndSet { key, .. }, Answer::Applied(false)) => {
                self.seen.remove(key);
            }
            _ => {}
        }
    }
}

/// Every row is inserted once and never changed, so only conditions can miss something.
fn phantoms(random: &mut Random, values: &mut Values, requests: &mut Vec<Request>) {
    let filter = values.recent(2);
    requests.push(Request::Select { filter });
    requests.push(match random.below(4) {
        0 => Request::Select { filter },
        1 => Request::Aggregate { function: Function::Count, filter: values.recent(3) },
        _ => {
            let value = values.block();
            Request::Insert { key: value / BLOCK, value }
        }
    });
}

/// The newest rows have about the same keys for all clients, because all have written about
/// equally often, so that several find the same one missing and insert it.
fn inserts(random: &mut Random, values: &mut Values, requests: &mut Vec<Request>) {
    let value = values.block();
    let newest = value / BLOCK / values.clients;
    requests.push(Request::Range { low: newest, high: newest + NEWEST - 1 });
    requests.push(Request::Insert { key: newest + u64::from(random.below(NEWEST as u32)), value });
}

/// A condition that few rows meet, and that any write may change for its row.
fn filter_by_value(random: &mut Random, values: &Values) -> Filter {
    match random.below(2) {
        0 => Filter::Remainder {
            modulus: MODULUS,
            remainder: u64::from(random.below(MODULUS as u32)),
        },
        _ => values.recent(1 + u64::from(random.below(2))),
    }
}

const _: () = assert!(RANGE_KEYS_MAX as u64 <= BLOCK, "a range update has values for its keys");
