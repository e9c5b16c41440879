//! What a transaction is going to do.

use crate::keys::KeyChoice;
use crate::parameters::{Parameters, TxnKind};
use crate::random::Random;
use crate::workload::{applications, mini};

/// Reading or writing; of lists, reading or appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
}

/// One operation that is going to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intent {
    pub(crate) action: Action,
    pub(crate) key: u32,
}

/// Appends to one list before another takes its place.
const APPENDS_MAX: u32 = 128;

/// Plans transactions of one kind.
pub(crate) struct Planner {
    kind: TxnKind,
    operations: usize,
    read_share: f64,
    choice: KeyChoice,
    /// The list that each place stands for, and how many appends it has had.
    lists: Vec<(u32, u32)>,
    keys: u32,
}

impl Planner {
    pub(crate) fn new(parameters: &Parameters) -> Planner {
        let keys = parameters.keys;
        let lists = if parameters.kind == TxnKind::ListAppend { keys } else { 0 };
        Planner {
            kind: parameters.kind,
            operations: parameters.operations as usize,
            read_share: parameters.read_share,
            choice: KeyChoice::new(keys, parameters.distribution),
            lists: (0..lists).map(|key| (key, 0)).collect(),
            keys,
        }
    }

    /// The plans of one session among several, which do not know of each other: lists
    /// never retire here.
    pub(crate) fn of_session(parameters: &Parameters) -> Planner {
        let mut planner = Planner::new(parameters);
        planner.lists.clear();
        planner
    }

    /// How many keys have been used or may be; the next number is free.
    pub(crate) fn key_count(&self) -> u32 {
        self.keys
    }

    /// Replaces `plan` by the next transaction's.
    pub(crate) fn plan(&mut self, random: &mut Random, plan: &mut Vec<Intent>) {
        plan.clear();
        match self.kind {
            TxnKind::MiniTransaction => return mini::plan(&self.choice, random, plan),
            TxnKind::Application(application) => {
                return applications::plan(application, &self.choice, random, plan);
            }
            _ => {}
        }
        let read_only = self.kind == TxnKind::BlindWrite && random.chance(self.read_share);
        while plan.len() < self.operations {
            let place = self.unused(random, plan);
            let read = match self.kind {
                TxnKind::Mixed | TxnKind::ListAppend => random.chance(self.read_share),
                TxnKind::BlindWrite => read_only,
                TxnKind::MiniTransaction | TxnKind::Application(_) | TxnKind::Rows(_) => {
                    unreachable!("planned elsewhere")
                }
                TxnKind::ReadModifyWrite => {
                    plan.push(Intent { action: Action::Read, key: place });
                    // An odd number of operations ends in a read.
                    plan.len() == self.operations
                }
            };
            let action = if read { Action::Read } else { Action::Write };
            if plan.len() < self.operations {
                plan.push(Intent { action, key: place });
            }
        }
        if !self.lists.is_empty() {
            for intent in plan {
                intent.key = self.list(intent.key as usize, intent.action);
            }
        }
    }

    fn unused(&self, random: &mut Random, plan: &[Intent]) -> u32 {
        self.choice.draw_other(random, |place| plan.iter().any(|intent| intent.key == place))
    }

    fn list(&mut self, place: usize, action: Action) -> u32 {
        let (key, appends) = self.lists[place];
        if action == Action::Write {
            self.lists[place] = (key, appends + 1);
            if appends + 1 == APPENDS_MAX {
                self.lists[place] = (self.keys, 0);
                self.keys += 1;
            }
        }
        key
    }
}
