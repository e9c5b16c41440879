//! What all workers must know of the whole history before it is verified.

use crate::access::{Access, Name, Stamp, What, accesses};
use crate::event::TxnNumber;
use crate::parts::{Loaded, Pieces, completion, own_places};
use crate::share::share;
use hashbrown::{HashMap, HashSet};
use isolde_history::{ALWAYS, History, NEVER, OpKind, Outcome, Time, TxnId};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

/// What a worker found in its pieces, and together what all found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Survey {
    pub(crate) txns: u64,
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) ops: u64,
    /// The first invocation and the last completion.
    pub(crate) times: Option<(Time, Time)>,
    /// The longest transaction.
    pub(crate) longest: (u64, TxnNumber),
    /// The longest begin or commit.
    pub(crate) longest_event: u64,
    /// Whether begins and commits have times of their own.
    pub(crate) is_apart: bool,
    /// Whether each transaction is at most one operation.
    pub(crate) is_single: bool,
    /// Why no level is decided.
    pub(crate) unfit: Vec<String>,
    /// What a part could not be read for.
    pub(crate) error: Option<String>,
    /// Values that transactions of unknown outcome wrote to keys.
    unsure: Vec<(Name, Name, TxnNumber)>,
}

/// A transaction of unknown outcome that somebody read from.
#[derive(Clone)]
pub(crate) struct Counted {
    pub(crate) session: u64,
    pub(crate) stamp: Stamp,
    pub(crate) accesses: Vec<Access>,
}

/// Looks at a worker's pieces, and at what the others found.
pub(crate) fn survey(worker: &mut Worker, pieces: &Pieces, drift: Time) -> (Survey, Vec<Counted>) {
    let mut own = Survey { is_single: true, ..Survey::default() };
    let mut unsure = Vec::new();
    for place in own_places(worker, pieces) {
        match pieces.load(place) {
            Ok(loaded) => own.look(&loaded, drift, &mut unsure),
            Err(error) => own.error = Some(error),
        }
    }
    let mut all = Survey::default();
    let mut others = share(worker, vec![(worker.index() as u64, own)]);
    others.sort_by_key(|it| it.0);
    for (place, (_, other)) in others.into_iter().enumerate() {
        all.add(other, place == 0);
    }
    all.unfit.sort();
    all.unfit.dedup();
    let counted = counted(worker, pieces, drift, &mut all, unsure);
    (all, counted)
}

impl Survey {
    fn look(&mut self, loaded: &Loaded, drift: Time, unsure: &mut Vec<Counted>) {
        let history = &*loaded.history;
        if !history.orders().versions.is_empty() {
            self.unfit.push("orders of versions that the database gave are not used yet".into());
        }
        for &txn in &loaded.txns {
            self.txns += 1;
            self.ops += history.op_range(txn).len() as u64;
            self.is_single &= history.op_range(txn).len() <= 1;
            if history.outcome(txn) == Outcome::Aborted {
                self.aborted += 1;
                continue;
            }
            self.committed += u64::from(history.outcome(txn) == Outcome::Committed);
            self.look_at_kinds(history, txn);
            let Some(stamp) = Stamp::new(history, txn, loaded.number(txn), drift) else {
                self.unfit.push("a transaction has no times".into());
                continue;
            };
            if history.outcome(txn) == Outcome::Unknown {
                let mut told = Vec::new();
                // Who contradicts itself and is not known to have committed says nothing.
                let is_sound = accesses(history, txn, stamp, |it| told.push(it)).is_ok();
                if is_sound {
                    let session = u64::from(history.session_of(txn).0);
                    let writes = told
                        .iter()
                        .flat_map(|it| written(&it.what).iter().map(move |&value| (it.key, value)));
                    self.unsure.extend(writes.map(|(key, value)| (key, value, stamp.txn)));
                    unsure.push(Counted { session, stamp, accesses: told });
                }
                self.see(stamp.invoked(), stamp.invoked());
            } else {
                self.see(stamp.invoked(), stamp.completed());
                self.measure(&stamp);
            }
        }
    }

    fn look_at_kinds(&mut self, history: &History, txn: TxnId) {
        for op in history.ops_of(txn) {
            let reason = match history.op_kinds()[op.index()] {
                OpKind::PredicateRead | OpKind::PredicateUpdate => {
                    "reads by condition are not decided by workers yet"
                }
                OpKind::ReadOther => "refused compare-and-sets are not decided by workers yet",
                OpKind::Call => "an operation is neither read nor write",
                _ => continue,
            };
            if self.unfit.iter().all(|it| it != reason) {
                self.unfit.push(reason.to_owned());
            }
        }
    }

    fn see(&mut self, first: Time, last: Time) {
        let times = self.times.get_or_insert((first, last));
        *times = (times.0.min(first), times.1.max(last));
    }

    /// Takes the length of a transaction into account.
    fn measure(&mut self, stamp: &Stamp) {
        let length = |(from, to): (Time, Time)| to.saturating_sub(from).max(0).cast_unsigned();
        let whole = (length((stamp.invoked(), stamp.completed())), stamp.txn);
        self.longest = self.longest.max(whole);
        self.longest_event = self.longest_event.max(length(stamp.begin)).max(length(stamp.commit));
        self.is_apart |= stamp.begin != stamp.commit;
    }

    fn add(&mut self, other: Survey, is_first: bool) {
        self.txns += other.txns;
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.ops += other.ops;
        if let Some((first, last)) = other.times {
            self.see(first, last);
        }
        self.longest = self.longest.max(other.longest);
        self.longest_event = self.longest_event.max(other.longest_event);
        self.is_apart |= other.is_apart;
        self.is_single = other.is_single && (is_first || self.is_single);
        self.unfit.extend(other.unfit);
        self.error = self.error.take().or(other.error);
        self.unsure.extend(other.unsure);
    }
}

fn written(what: &What) -> &[Name] {
    match what {
        What::Wrote { value, .. } => std::slice::from_ref(value),
        What::Appended { elements, .. } => elements,
        What::Read(_) | What::List(_) => &[],
    }
}

fn seen(what: &What) -> &[Name] {
    match what {
        What::Read(value) => std::slice::from_ref(value),
        What::List(elements) => elements,
        What::Wrote { .. } | What::Appended { .. } => &[],
    }
}

/// Who read from a transaction of unknown outcome.
#[derive(Clone, Serialize, Deserialize)]
struct Observed {
    writer: TxnNumber,
    reader: TxnNumber,
    /// When the reader completed, if that is known.
    completed: Option<Time>,
}

/// A worker's transactions of unknown outcome that count: somebody who counts read from them.
/// Each is taken to complete with the first of its readers.
fn counted(
    worker: &mut Worker,
    pieces: &Pieces,
    drift: Time,
    all: &mut Survey,
    unsure: Vec<Counted>,
) -> Vec<Counted> {
    if all.unsure.is_empty() || all.error.is_some() {
        return Vec::new();
    }
    let writers: HashMap<(Name, Name), TxnNumber> =
        all.unsure.iter().map(|&(key, value, txn)| ((key, value), txn)).collect();
    let mut own = Vec::new();
    for place in own_places(worker, pieces) {
        let Ok(loaded) = pieces.load(place) else { continue };
        let history = &*loaded.history;
        for &txn in loaded.txns.iter().filter(|&&txn| history.outcome(txn) != Outcome::Aborted) {
            let Some(stamp) = Stamp::new(history, txn, loaded.number(txn), drift) else { continue };
            let completed = (history.outcome(txn) == Outcome::Committed)
                .then(|| completion(history, txn).saturating_add(drift));
            // Who contradicts itself is found out later.
            let _ = accesses(history, txn, stamp, |it| {
                for value in seen(&it.what) {
                    if let Some(&writer) = writers.get(&(it.key, *value)) {
                        own.push(Observed { writer, reader: stamp.txn, completed });
                    }
                }
            });
        }
    }
    let completions = completions(&share(worker, own));
    let mut counted = Vec::new();
    for it in unsure {
        if let Some(&time) = completions.get(&it.stamp.txn) {
            let stamp = it.stamp.completing(time);
            let told = it.accesses.into_iter().map(|it| Access { stamp, ..it }).collect();
            counted.push(Counted { stamp, accesses: told, ..it });
        }
    }
    counted.sort_by_key(|it| std::cmp::Reverse((it.stamp.completed(), it.stamp.txn)));
    let stamps = counted.iter().map(|it| it.stamp).collect();
    for stamp in share(worker, stamps) {
        all.see(stamp.invoked(), stamp.completed());
        all.measure(&stamp);
    }
    counted
}

/// When each observed transaction may be taken to have completed.
fn completions(observed: &[Observed]) -> HashMap<TxnNumber, Time> {
    let mut known: HashMap<TxnNumber, Time> = HashMap::new();
    loop {
        let mut changed: HashSet<TxnNumber> = HashSet::new();
        for it in observed {
            let Some(time) = it.completed.or_else(|| known.get(&it.reader).copied()) else {
                continue;
            };
            let earliest = known.entry(it.writer).or_insert(NEVER);
            if it.writer != it.reader && time < *earliest {
                *earliest = time;
                changed.insert(it.writer);
            }
        }
        if changed.is_empty() {
            known.retain(|_, time| *time != NEVER && *time != ALWAYS);
            return known;
        }
    }
}
