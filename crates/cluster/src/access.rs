//! What workers tell each other of a transaction: when it ran, and what it did to each key.

use crate::event::{Dependency, Event, Kind, TxnNumber};
use hashbrown::HashMap;
use isolde_history::{
    ALWAYS, Datum, History, KeyId, NEVER, OpId, OpKind, Outcome, Time, TxnId, Value,
};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A key or value, the same in every part of a history and in every process. Numbers are
/// themselves; of all else it is 127 bits of its hash, so that two that differ never meet in
/// practice, and if they did, the ordinary checker would find nothing wrong with the part.
pub(crate) type Name = u128;

/// The value that each key starts with.
pub(crate) const INITIAL: Name = 1 << 127;

/// The name of a datum.
pub(crate) fn name(datum: Datum<'_>) -> Name {
    if let Datum::Int(number) = datum
        && (-(1 << 100)..1 << 100).contains(&number)
    {
        return number.cast_unsigned() & ((1 << 102) - 1);
    }
    let half = |seed: u64| {
        let mut hasher = DefaultHasher::new();
        (seed, datum).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    ((half(1) << 64 | half(2)) & !INITIAL) | 1 << 126
}

/// A transaction that counts, and the times of its events, completions widened by the drift of
/// clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) txn: TxnNumber,
    pub(crate) begin: (Time, Time),
    pub(crate) commit: (Time, Time),
}

impl Stamp {
    /// The times of a transaction; `None` if it lacks one.
    pub(crate) fn new(
        history: &History,
        txn: TxnId,
        number: TxnNumber,
        drift: Time,
    ) -> Option<Stamp> {
        let times = history.txn_times(txn);
        let wide = |it: isolde_history::Interval| (it.invoked, it.completed.saturating_add(drift));
        let (begin, commit) = (wide(times.begin), wide(times.commit));
        let is_known =
            begin.0 != ALWAYS && commit.0 != ALWAYS && begin.1 != NEVER && commit.1 != NEVER;
        let is_unknown = history.outcome(txn) == Outcome::Unknown && begin.0 != ALWAYS;
        (is_known || is_unknown).then_some(Stamp { txn: number, begin, commit })
    }

    /// The same, taken to complete at this time.
    pub(crate) fn completing(self, time: Time) -> Stamp {
        let time = time.max(self.begin.0).max(self.commit.0);
        Stamp { begin: (self.begin.0, time), commit: (self.commit.0, time), ..self }
    }

    pub(crate) fn invoked(&self) -> Time {
        self.begin.0.min(self.commit.0)
    }

    pub(crate) fn completed(&self) -> Time {
        self.begin.1.max(self.commit.1)
    }
}

/// Which events transactions have at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// One each: strict serializability.
    Whole,
    /// Begins and commits: strong snapshot isolation.
    Apart,
}

impl Model {
    pub(crate) fn begin(self, of: &Stamp) -> Event {
        match self {
            Model::Whole => whole(of),
            Model::Apart => event(of.txn, Kind::Begin, of.begin),
        }
    }

    pub(crate) fn commit(self, of: &Stamp) -> Event {
        match self {
            Model::Whole => whole(of),
            Model::Apart => event(of.txn, Kind::Commit, of.commit),
        }
    }

    /// A reader after who wrote what it saw, a writer after whose version it replaced, a
    /// transaction after an earlier one of its session.
    pub(crate) fn follows(self, earlier: &Stamp, later: &Stamp) -> Dependency {
        Dependency { from: self.commit(earlier), to: self.begin(later) }
    }

    /// A reader before who replaced what it saw.
    pub(crate) fn misses(self, reader: &Stamp, writer: &Stamp) -> Dependency {
        Dependency { from: self.begin(reader), to: self.commit(writer) }
    }

    /// The first completion and the last invocation among the events with which a version
    /// exists.
    pub(crate) fn zone_of_writer(self, of: &Stamp) -> (Time, Time) {
        let (begin, commit) = (self.begin(of), self.commit(of));
        (begin.completed.min(commit.completed), begin.invoked.max(commit.invoked))
    }

    pub(crate) fn zone_of_reader(self, of: &Stamp) -> (Time, Time) {
        let begin = self.begin(of);
        (begin.completed, begin.invoked)
    }
}

fn whole(of: &Stamp) -> Event {
    event(of.txn, Kind::Whole, (of.invoked(), of.completed()))
}

fn event(txn: TxnNumber, kind: Kind, (invoked, completed): (Time, Time)) -> Event {
    Event { invoked, completed, txn, kind }
}

/// What a transaction did to a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    pub(crate) key: Name,
    pub(crate) stamp: Stamp,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// Saw this value of others.
    Read(Name),
    /// Saw this list of others, which is not empty.
    List(Vec<Name>),
    /// Left this value, having seen that one, if it saw any.
    Wrote { seen: Option<Name>, value: Name },
    /// Appended these elements, the last one last, having seen a list that ends with that one.
    Appended { seen: Option<Name>, elements: Vec<Name> },
}

/// Why the accesses of a transaction were not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// It did not see its own writes, or saw them before it made them.
    Contradicts,
    /// It wrote what the key starts with, so that nobody knows which of the two was read.
    WritesInitial,
}

/// What a transaction did to a key, as it is collected.
struct KeyUse {
    key: KeyId,
    /// Values seen of others, each once.
    seen: Vec<Value>,
    /// Lists seen of others, each once.
    lists: Vec<Vec<Value>>,
    /// The last write, of a register.
    wrote: Option<Value>,
    appended: Vec<Value>,
}

/// Tells all accesses of a transaction, key by key in the order of first use.
pub(crate) fn accesses(
    history: &History,
    txn: TxnId,
    stamp: Stamp,
    mut tell: impl FnMut(Access),
) -> Result<(), Odd> {
    let mut places: HashMap<KeyId, usize> = HashMap::new();
    let mut uses: Vec<KeyUse> = Vec::new();
    for op in history.ops_of(txn) {
        let key = history.op(op).key;
        let place = *places.entry(key).or_insert(uses.len());
        if place == uses.len() {
            let (seen, lists, appended) = (Vec::new(), Vec::new(), Vec::new());
            uses.push(KeyUse { key, seen, lists, wrote: None, appended });
        }
        uses[place].add(history, op)?;
    }
    for of_key in &uses {
        of_key.tell(history, stamp, &mut tell)?;
    }
    Ok(())
}

impl KeyUse {
    fn add(&mut self, history: &History, op: OpId) -> Result<(), Odd> {
        let it = history.op(op);
        match it.kind {
            OpKind::Append => self.appended.push(it.value),
            OpKind::Write | OpKind::Insert | OpKind::Delete => self.wrote = Some(it.value),
            OpKind::Read if it.value == Value::UNKNOWN => {}
            OpKind::Read => match self.wrote {
                Some(own) if own == it.value => {}
                Some(_) => return Err(Odd::Contradicts),
                None if self.seen.contains(&it.value) => {}
                None => self.seen.push(it.value),
            },
            OpKind::ReadList => {
                // What it appended itself ends the list.
                let list = history.list(op);
                let Some(others) = list.strip_suffix(&self.appended[..]) else {
                    return Err(Odd::Contradicts);
                };
                if self.lists.last().is_none_or(|last| last != others) {
                    self.lists.push(others.to_vec());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn tell(
        &self,
        history: &History,
        stamp: Stamp,
        tell: &mut impl FnMut(Access),
    ) -> Result<(), Odd> {
        let initial = history.initial(self.key);
        let name_of = |value: Value| match value {
            value if value == initial => INITIAL,
            value => name(history.datum(value)),
        };
        if self.wrote == Some(initial) {
            return Err(Odd::WritesInitial);
        }
        let is_own = |it: &Value| self.wrote == Some(*it) || self.appended.contains(it);
        if self.seen.iter().chain(self.lists.iter().flatten()).any(is_own) {
            return Err(Odd::Contradicts);
        }
        let key = name(history.datum(history.key_name(self.key)));
        let mut of_key = |what| tell(Access { key, stamp, what });
        let mut seen = None;
        for list in &self.lists {
            seen = Some(list.last().map_or(INITIAL, |&last| name(history.datum(last))));
            of_key(match &list[..] {
                [] => What::Read(INITIAL),
                _ => What::List(list.iter().map(|&it| name(history.datum(it))).collect()),
            });
        }
        for &value in &self.seen {
            seen = Some(name_of(value));
            of_key(What::Read(name_of(value)));
        }
        if let Some(value) = self.wrote {
            of_key(What::Wrote { seen, value: name_of(value) });
        }
        if !self.appended.is_empty() {
            let elements = self.appended.iter().map(|&it| name(history.datum(it))).collect();
            of_key(What::Appended { seen, elements });
        }
        Ok(())
    }
}
