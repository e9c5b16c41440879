//! Random histories from a seed, valid in parts.
//!
//! A single store runs the transactions one after another; some read from an
//! earlier copy of it, some reads show another value, and some transactions
//! abort or are never heard of again. So every level is satisfied by some and
//! violated by others. Each seed switches features on and off: repeated values,
//! lists, intervals, clocks that are set back, inserts and deletes, refused compare-and-sets, reads by
//! condition, given version orders.

use super::Size;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A small generator of numbers (`SplitMix64`); the same seed gives the same numbers.
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits % bound as u64) as usize
    }

    /// Whether something with this chance in a hundred happens.
    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// What a seed switched on.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct Features {
    keys: usize,
    sessions: usize,
    ops: usize,
    /// The largest value written, where values repeat.
    values: Option<usize>,
    outcomes: bool,
    lists: bool,
    rows: bool,
    noise: usize,
    times: Times,
    /// Whether clocks are set back now and then.
    steps: bool,
    given: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    None,
    Whole,
    BeginAndCommit,
}

#[derive(Clone, Default)]
struct Store {
    registers: BTreeMap<usize, String>,
    lists: BTreeMap<usize, Vec<usize>>,
}

struct Run {
    random: Random,
    features: Features,
    store: Store,
    /// The store before each transaction.
    past: Vec<Store>,
    /// Every value ever written to a register, in order, nil for its initial state.
    written: BTreeMap<usize, Vec<String>>,
    written_last: usize,
    /// The session of each transaction.
    sessions: Vec<usize>,
    /// When each session's last transaction completed.
    free: [usize; 4],
}

/// The text of the history of this seed.
pub(crate) fn random_history(seed: u64, size: Size) -> String {
    let mut random = Random::new(seed);
    let features = Features {
        keys: 1 + random.below(size.keys_max),
        sessions: 1 + random.below(4),
        ops: random.pick(&[1, size.ops_max, size.ops_max, size.ops_max]),
        values: random.percent(25).then_some(2),
        outcomes: random.percent(40),
        lists: random.percent(40),
        rows: random.percent(25),
        noise: random.pick(&[0, 5, 20]),
        times: random.pick(&[Times::None, Times::Whole, Times::BeginAndCommit]),
        steps: seed.is_multiple_of(5),
        given: random.percent(15),
    };
    let txns = 1 + random.below(size.txns_max);
    let sessions = (0..txns).map(|_| random.below(features.sessions)).collect();
    let mut run = Run {
        random,
        features,
        store: Store::default(),
        past: Vec::new(),
        written: BTreeMap::new(),
        written_last: 0,
        sessions,
        free: [0; 4],
    };
    let mut text = format!("# seed {seed}\n");
    for number in 0..txns {
        let line = run.txn(number);
        text.push_str(&line);
    }
    if run.features.given && run.features.values.is_none() {
        text.push_str(&run.given_order());
    }
    text
}

impl Run {
    fn txn(&mut self, number: usize) -> String {
        let session = ["A", "B", "C", "D"][self.sessions[number]];
        self.past.push(self.store.clone());
        let mut view =
            if self.random.percent(30) { self.random.pick(&self.past) } else { self.store.clone() };
        let mut effects = self.store.clone();
        let mut ops = String::new();
        for _ in 0..=self.random.below(self.features.ops) {
            self.op(&mut view, &mut effects, &mut ops);
        }
        let outcome = match self.random.below(5) {
            0 if self.features.outcomes => " aborted",
            1 if self.features.outcomes => " unknown",
            _ => "",
        };
        if outcome.is_empty() || (outcome == " unknown" && self.random.percent(50)) {
            self.store = effects;
        }
        let times = self.times(number);
        format!("{session}{times}:{ops}{outcome}\n")
    }

    /// Intervals around the true order that overlap others, but none of the session.
    fn times(&mut self, number: usize) -> String {
        let serial = 100 * (number + 1);
        let session = self.sessions[number];
        let next = (self.sessions[number + 1..].iter()).position(|&other| other == session);
        let space = next.map_or(300, |distance| 100 * (distance + 1) - 50);
        let early = (serial - 1 - self.random.below(serial.min(200))).max(self.free[session] + 1);
        let late = serial + 1 + self.random.below(space);
        self.free[session] = late;
        let times = self.features.times;
        match times {
            Times::None => String::new(),
            Times::Whole if self.is_set_back() => format!(" @{late}..{early}"),
            Times::Whole => format!(" @{early}..{late}"),
            Times::BeginAndCommit => {
                let begun = early + self.random.below(serial - early);
                let committing = serial + self.random.below(late - serial);
                let mut times = [early, begun, committing, late];
                if self.is_set_back() {
                    let place = self.random.below(3);
                    times.swap(place, place + 1 + self.random.below(3 - place));
                }
                format!(" @{}", times.map(|time| time.to_string()).join(".."))
            }
        }
    }

    /// Whether a client's clock is set back while a transaction runs.
    fn is_set_back(&mut self) -> bool {
        self.features.steps && self.random.percent(25)
    }

    fn op(&mut self, view: &mut Store, effects: &mut Store, ops: &mut String) {
        let key = self.random.below(self.features.keys);
        let name = ["x", "y", "z"][key];
        let is_write = self.random.percent(50);
        let op = if self.features.lists && self.random.percent(60) {
            let list = ["l", "m", "n"][key];
            if is_write {
                let element = self.fresh_value();
                for store in [view, effects] {
                    store.lists.entry(key).or_default().push(element);
                }
                format!("a({list},{element})")
            } else {
                format!("r({list},[{}])", self.list_seen(view, key))
            }
        } else if is_write {
            let (letter, value) = match self.random.below(12) {
                0 => ("d", "nil".to_owned()),
                1 => ("i", self.fresh_value().to_string()),
                _ => ("w", self.fresh_value().to_string()),
            };
            for store in [view, effects] {
                store.registers.insert(key, value.clone());
            }
            self.written.entry(key).or_default().push(value.clone());
            format!("{letter}({name},{value})")
        } else if self.features.rows && self.random.percent(50) {
            self.rows_seen(view)
        } else {
            match self.random.below(20) {
                0 => format!("r({name},?)"),
                1 => format!("r({name},!{})", 1 + self.random.below(3)),
                _ => format!("r({name},{})", self.register_seen(view, key)),
            }
        };
        write!(ops, " {op}").expect("a string grows");
    }

    fn fresh_value(&mut self) -> usize {
        if let Some(largest) = self.features.values {
            return 1 + self.random.below(largest);
        }
        self.written_last += 1;
        self.written_last
    }

    fn register_seen(&mut self, view: &Store, key: usize) -> String {
        let nil = "nil".to_owned();
        if !self.random.percent(self.features.noise) {
            return view.registers.get(&key).cloned().unwrap_or(nil);
        }
        let mut values = self.written.get(&key).cloned().unwrap_or_default();
        values.extend([nil, (self.written_last + 1).to_string()]);
        self.random.pick(&values)
    }

    fn list_seen(&mut self, view: &Store, key: usize) -> String {
        let mut list = view.lists.get(&key).cloned().unwrap_or_default();
        if self.random.percent(self.features.noise) {
            match self.random.below(4) {
                0 | 1 => {
                    list.pop();
                }
                2 => list.reverse(),
                _ => list.push(self.written_last),
            }
        }
        let words: Vec<String> = list.iter().map(ToString::to_string).collect();
        words.join(" ")
    }

    /// A read by condition that looks at every register.
    fn rows_seen(&mut self, view: &Store) -> String {
        let (mut returned, mut others) = (String::new(), String::new());
        for key in 0..self.features.keys {
            let value = self.register_seen(view, key);
            let row = format!(" {}={value}", ["x", "y", "z"][key]);
            // Now and then a dead row is returned or a live one is not.
            if (value == "nil") == self.random.percent(self.features.noise / 5) {
                returned.push_str(&row);
            } else {
                others.push_str(&row);
            }
        }
        format!("p(all;{returned};{others})")
    }

    /// The version order of the first register, now and then with two neighbours swapped.
    fn given_order(&mut self) -> String {
        let mut values = self.written.get(&0).cloned().unwrap_or_default();
        values.retain(|value| value != "nil");
        if values.len() < 2 {
            return String::new();
        }
        if self.random.percent(40) {
            let place = self.random.below(values.len() - 1);
            values.swap(place, place + 1);
        }
        format!("order x: {}\n", values.join(" "))
    }
}
