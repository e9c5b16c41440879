//! Histories that can be understood in several ways, each of which is decided by itself.
//!
//! Most of what a history leaves open is a choice of the search. Two things are not,
//! because they decide which transactions and versions there are at all:
//!
//! - an element that was read and that several appends may have added. Lists show an
//!   element once, so one append added what was read and the others came later; and
//! - a transaction of unknown outcome that may have written a repeated value. It counts
//!   only if somebody did read its write. Where there are reads by condition, this is so of
//!   every writer of unknown outcome that no read names.
//!
//! A level holds if it holds in one of these ways. There are as many as the product of all
//! choices; where these are too many, two guesses are tried, and the level stays `unknown`
//! if both fail.

use crate::anomaly::{Anomaly, Cases, Evidence, Seen, Way};
use crate::check::Check;
use crate::check::certify;
use crate::level::Level;
use crate::limits::Limits;
use crate::naming;
use crate::strong::{Options, unnamed_writers};
use crate::unknown::Unknown;
use crate::verdict::{Satisfied, Verdict, Violated};
use hashbrown::HashSet;
use isolde_certificate::Open;
use isolde_history::{History, Index, KeyId, OpId, OpKind, Origin, Outcome, TxnId, Value, Version};

/// Operations that may be looked at, in all ways together.
const WORK_MAX: usize = 1 << 24;
/// Ways that are tried.
const WAYS_MAX: usize = 1 << 10;
/// Ways that cost less than trying all orders of all of them.
const WAYS_TRIED_FIRST: usize = 16;
/// Ways that somebody can be told of.
const WAYS_TOLD_MAX: usize = 8;

/// What the ways to understand a history differ in.
pub(crate) struct Interpretations<'a> {
    history: &'a History,
    /// Appends of one element that was read, one of which added it.
    appends: Vec<Vec<OpId>>,
    /// Transactions of unknown outcome that count only if chosen.
    optional: Vec<TxnId>,
    /// Others of them that count in every way that is tried.
    harmless: Vec<TxnId>,
}

impl<'a> Interpretations<'a> {
    /// `None` if there is but one way.
    pub(crate) fn of(history: &'a History, index: &Index) -> Option<Self> {
        let appends = if index.has_repeated_elements() { repeated(history, index) } else { vec![] };
        let optional = optional_writers(history, index);
        let is_one = appends.is_empty() && optional.is_empty();
        let interpretations = Interpretations { history, appends, optional, harmless: Vec::new() };
        (!is_one).then(|| interpretations.with_fewer_ways())
    }

    /// The same where there are too many ways, without those that differ in transactions alone
    /// which do no harm if they count.
    fn with_fewer_ways(mut self) -> Self {
        if self.count().is_none() {
            let history = self.history;
            (self.harmless, self.optional) =
                self.optional.iter().partition(|&&txn| is_harmless(history, txn));
        }
        self
    }

    /// The same, also by the lists that those saw who count only if chosen. The index does not
    /// look at these.
    pub(crate) fn of_everybody(history: &'a History, index: &Index) -> Option<Self> {
        let interpretations = Interpretations::of(history, index)?;
        let appends = repeated(history, index);
        Some(Interpretations { appends, ..interpretations }.with_fewer_ways())
    }

    /// Decides a level; `None` if there are too many ways and none was found. After the first
    /// ways it is asked whether all of them are refuted at once, which costs more than few.
    pub(crate) fn decide(
        &self,
        level: Level,
        options: Options,
        limits: &Limits<'_>,
        is_refuted: impl FnOnce() -> bool,
    ) -> Option<Verdict> {
        let (ways, are_all) = self.ways();
        let mut unknown = None;
        let mut is_refuted = Some(is_refuted);
        let violated = || Some(Verdict::Violated(Violated::by(Vec::new())));
        for (tried, way) in ways.enumerate() {
            if tried == WAYS_TRIED_FIRST
                && let Some(is_refuted) = is_refuted.take()
                && is_refuted()
            {
                return violated();
            }
            if (limits.stop)() {
                return Some(Verdict::Unknown(Unknown::Limit(limits.reached())));
            }
            let history = self.in_way(&way);
            let index = Index::new(&history);
            let mut check = Check::new(&history, &index, limits).with_options(options);
            match check.in_one_way().decide(level) {
                Verdict::Satisfied(satisfied) => {
                    return Some(Verdict::Satisfied(in_any_way(level, satisfied)));
                }
                Verdict::Violated(_) => {}
                Verdict::Unknown(reason @ Unknown::Limit(_)) => {
                    return Some(Verdict::Unknown(reason));
                }
                Verdict::Unknown(reason) => unknown = Some(reason),
            }
        }
        match unknown {
            _ if !are_all && is_refuted.is_some_and(|is_refuted| is_refuted()) => violated(),
            _ if !are_all => None,
            Some(reason) => Some(Verdict::Unknown(reason)),
            None => violated(),
        }
    }

    /// How each way fails, told of a small history, if all of them can be told as cycles.
    pub(crate) fn argue(&self, argue: impl Fn(&History) -> Option<Anomaly>) -> Option<Anomaly> {
        let ways = self.count().filter(|&ways| ways <= WAYS_TOLD_MAX)?;
        let (cycles, seen) = (Vec::new(), Vec::new());
        let mut cases = Cases { cycles, count: 0, ways: Vec::new(), seen };
        let mut kinds = Vec::new();
        for way in (0..ways).map(|way| self.way(way)).filter(|way| self.is_possible(way)) {
            let anomaly = argue(&self.in_way(&way))?;
            let cycles = match anomaly.evidence {
                Evidence::Cycle(cycle) => vec![cycle],
                Evidence::Cases(within) => {
                    let first = cases.cycles.len();
                    let seen = within.seen.iter();
                    cases.seen.extend(seen.map(|it| Seen { case: first + it.case, ..*it }));
                    within.cycles
                }
                Evidence::Operations { .. } => return None,
            };
            cases.ways.extend(cycles.iter().map(|_| way.clone()));
            cases.cycles.extend(cycles);
            kinds.push(anomaly.kind);
        }
        kinds.dedup();
        cases.count = cases.cycles.len();
        let mut anomaly = naming::of_cases(cases);
        if let [kind] = kinds[..] {
            anomaly.kind = kind;
        }
        Some(anomaly)
    }

    /// What is open, each of which has several ways to be taken.
    pub(crate) fn open(&self) -> Vec<Open> {
        let outcomes = self.harmless.iter().chain(&self.optional);
        let outcomes = outcomes.map(|&txn| Open::Outcome(txn));
        outcomes.chain(self.appends.iter().map(|appends| Open::Element(appends[0]))).collect()
    }

    /// The first way of which something can be shown: told as a history, with the appends that
    /// it takes to have added what was read.
    pub(crate) fn first_shown<T>(
        &self,
        mut show: impl FnMut(&History, Vec<OpId>) -> Option<T>,
    ) -> Option<T> {
        let (mut ways, _) = self.ways();
        ways.find_map(|way| show(&self.in_way(&way), way.added))
    }

    /// How many ways there are; `None` if they are too many to try.
    pub(crate) fn count(&self) -> Option<usize> {
        let choices = self.appends.iter().map(Vec::len).chain(self.optional.iter().map(|_| 2));
        let mut ways = 1_usize;
        for choice in choices {
            ways = ways.checked_mul(choice).filter(|&ways| ways <= WAYS_MAX)?;
        }
        Some(ways)
    }

    /// The ways to try, and whether these are all that there are. If those are too many, they
    /// are two: with the first of all appends and without what is optional, and the opposite.
    fn ways(&self) -> (impl Iterator<Item = Way>, bool) {
        let count = self.count().filter(|ways| ways * self.history.op_count() <= WORK_MAX);
        let ways = (0..count.unwrap_or(2)).map(move |way| match count {
            Some(_) => self.way(way),
            None => self.picking(|choices| if way == 0 { 0 } else { choices - 1 }),
        });
        (ways.filter(move |way| self.is_possible(way)), count.is_some())
    }

    /// What never happened added no element that was read.
    fn is_possible(&self, way: &Way) -> bool {
        let never_happened =
            |append: &OpId| way.never_happened.contains(&self.history.txn_of(*append));
        !way.added.iter().any(never_happened)
    }

    /// One way by its number.
    fn way(&self, mut way: usize) -> Way {
        self.picking(|choices| {
            let picked = way % choices;
            way /= choices;
            picked
        })
    }

    fn picking(&self, mut pick: impl FnMut(usize) -> usize) -> Way {
        let mut way = Way { happened: self.harmless.clone(), ..Way::default() };
        for &txn in &self.optional {
            [&mut way.never_happened, &mut way.happened][pick(2)].push(txn);
        }
        way.added = self.appends.iter().map(|appends| appends[pick(appends.len())]).collect();
        way
    }

    /// Some levels allow reads of aborted transactions, which then mean nothing. Who saw
    /// a write of what never happened would say that it did, so nobody can have seen it.
    fn in_way(&self, way: &Way) -> History {
        let committed = way.happened.iter().map(|&txn| (txn, Outcome::Committed));
        let outcomes: Vec<(TxnId, Outcome)> = committed.collect();
        let others = self.appends.iter().flatten().filter(|append| !way.added.contains(append));
        let alone: Vec<OpId> = others.copied().collect();
        self.history.taken_as(&outcomes, &alone).without_effects_of(&way.never_happened)
    }
}

/// What shows a level without saying which way was taken: an order of events does, since
/// every read finds in it what it saw; an order of commits does not.
fn in_any_way(level: Level, satisfied: Satisfied) -> Satisfied {
    match satisfied {
        shown @ (Satisfied::Order(_) | Satisfied::Events(_)) if certify::has_events(level) => shown,
        _ => Satisfied::Interpretation,
    }
}

/// Appends of elements that were read and appended more than once, by element.
fn repeated(history: &History, index: &Index) -> Vec<Vec<OpId>> {
    let mut read: HashSet<(KeyId, Value)> = HashSet::new();
    for txn in history.txns() {
        for op in history.ops_of(txn).filter(|&op| history.op(op).kind == OpKind::ReadList) {
            let key = history.op(op).key;
            // A list ends with the reader's own appends.
            let is_own = |it: &OpId| {
                *it < op && history.op(*it).kind == OpKind::Append && history.op(*it).key == key
            };
            let list = history.list(op);
            let external = list.len().saturating_sub(history.ops_of(txn).filter(is_own).count());
            read.extend(list[..external].iter().map(|&element| (key, element)));
        }
    }
    let mut repeated = Vec::new();
    for key in history.keys() {
        let versions =
            index.versions_of(history, key).chunk_by(|one, other| one.value == other.value);
        let is_append = |version: &Version| history.op(version.op()).kind == OpKind::Append;
        for same in versions.filter(|same| same.len() > 1 && read.contains(&(key, same[0].value))) {
            // A key that is a register too is nothing that levels speak of.
            if !same.iter().all(is_append) {
                continue;
            }
            repeated.push(same.iter().map(|version| version.op()).collect());
        }
    }
    repeated
}

/// Whether a transaction of unknown outcome may be taken to count. It read nothing, never
/// ended, and nothing follows it in its session, so in an order without it, it can stand at the
/// end, where nobody sees it; and if nobody saw it in an order, it can be left out there.
/// Nothing else may tell where it stands.
fn is_harmless(history: &History, txn: TxnId) -> bool {
    let is_plain = |op: OpId| matches!(history.op(op).kind, OpKind::Write | OpKind::Delete);
    let end = history.session_range(history.session_of(txn)).end;
    let mut later = (txn.0 + 1..end).map(TxnId);
    history.ops_of(txn).all(is_plain)
        && later.all(|txn| history.outcome(txn) == Outcome::Aborted)
        && !history.has_predicates()
        && !history.has_evidence()
}

/// Transactions that may have written what a read saw, or changed what was found by condition,
/// and do not count otherwise.
fn optional_writers(history: &History, index: &Index) -> Vec<TxnId> {
    let mut optional = Vec::new();
    for several in index.several() {
        let is_list = history.op(index.read(several.read).op).kind == OpKind::ReadList;
        if is_list {
            continue;
        }
        let writers: Vec<TxnId> = if several.complete {
            let txn = |origin: &Origin| match origin {
                Origin::Txn(txn) => Some(*txn),
                _ => None,
            };
            several.candidates.iter().filter_map(txn).collect()
        } else {
            let key = index.read(several.read).key;
            index.versions_of(history, key).iter().map(|version| version.txn).collect()
        };
        let is_optional =
            |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown && !index.is_counted(*txn);
        optional.extend(writers.into_iter().filter(is_optional));
    }
    optional.extend(unnamed_writers(history, index));
    optional.sort_unstable();
    optional.dedup();
    optional
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    /// More transactions than the definitions can be asked about.
    const OTHERS: &str = "O: w(o,1)\nO: w(o,2)\nO: w(o,3)\nO: w(o,4)\nP: r(o,4) w(p,1)\n\
        P: w(p,2)\nP: w(p,3)\nP: w(p,4)\n";

    fn decided(level: Level, lines: &str) -> Verdict {
        let history = parse_text(&format!("{OTHERS}{lines}")).expect("a history");
        let index = Index::new(&history);
        assert!(Interpretations::of(&history, &index).is_some(), "{lines}");
        Check::new(&history, &index, &Limits::NONE).decide(level)
    }

    fn holds(level: Level, lines: &str) -> bool {
        match decided(level, lines) {
            Verdict::Satisfied(_) => true,
            Verdict::Violated(_) => false,
            Verdict::Unknown(reason) => panic!("{lines}: {reason}"),
        }
    }

    #[test]
    fn one_of_several_appends_added_what_was_read() {
        let level = Level::SessionSerializable;
        // A's; B's came later.
        assert!(holds(level, "A: a(x,1) a(y,1)\nB: a(x,1)\nC: r(x,[1]) r(y,[1])"));
        assert!(holds(Level::Causal, "A: a(x,1) a(y,1)\nB: a(x,1)\nC: r(x,[1]) r(y,[1])"));
        // Neither: whoever saw A's or B's saw its other write as well.
        let neither = "A: a(x,1) w(y,1)\nB: a(x,1) w(z,1)\nC: r(x,[1]) r(y,nil) r(z,nil)";
        assert!(!holds(level, neither));
        assert!(!holds(Level::ReadAtomic, neither));
    }

    #[test]
    fn a_transaction_of_unknown_outcome_counts_if_it_must() {
        let level = Level::Serializable;
        // C cannot have seen A's, so B's write happened.
        assert!(holds(level, "A: w(x,1) w(y,1)\nB: w(x,1) unknown\nC: r(x,1) r(y,nil)"));
        // Nor B's: it read what D wrote, and C did not.
        let neither = "A: w(x,1) w(y,1)\nD: w(z,1)\nB: r(z,1) w(x,1) unknown\n\
            C: r(x,1) r(y,nil) r(z,nil)";
        assert!(!holds(level, neither));
        // B's read is wrong, which is nobody's concern if it never happened.
        assert!(holds(level, "A: w(x,1) w(y,1)\nB: r(q,7) w(x,1) unknown\nC: r(x,1) r(y,1)"));
    }

    /// Elements that repeat make every way be tried, and in one of them the transaction of
    /// unknown outcome never happened. That its value was read from it all the same was
    /// taken for an aborted read, which session guarantees allow.
    #[test]
    fn nobody_saw_a_transaction_that_never_happened() {
        let lists = "L: a(l,1)\nM: a(l,1)\nN: r(l,[1])\n";
        let stale = "A: w(x,1)\nA: w(x,1) unknown\nA: w(x,5)\nA: r(x,1)";
        assert!(!holds(Level::ReadYourWrites, &format!("{lists}{stale}")));
        let fresh = "A: w(x,1)\nA: w(x,5)\nA: w(x,1) unknown\nA: r(x,1)";
        assert!(holds(Level::ReadYourWrites, &format!("{lists}{fresh}")));
        // Nor by reading that it was not something else.
        let refused = "A: w(x,2) unknown\nA: w(x,1)\nA: r(x,!1)";
        assert!(!holds(Level::ReadYourWrites, &format!("{lists}{refused}")));
    }

    /// Sixteen writers of unknown outcome, all of the same value: too many ways.
    const LOST: &str = "L0: w(x,1) unknown\nL1: w(x,1) unknown\nL2: w(x,1) unknown\n\
        L3: w(x,1) unknown\nL4: w(x,1) unknown\nL5: w(x,1) unknown\nL6: w(x,1) unknown\n\
        L7: w(x,1) unknown\nL8: w(x,1) unknown\nL9: w(x,1) unknown\nM0: w(x,1) unknown\n\
        M1: w(x,1) unknown\nM2: w(x,1) unknown\nM3: w(x,1) unknown\nM4: w(x,1) unknown\n";

    /// They were too many to try whether each of them counts.
    #[test]
    fn writers_of_unknown_outcome_that_read_nothing_count_without_harm() {
        let level = Level::SessionSerializable;
        let seen = "A: w(y,1)\nA: r(x,1)\nA: w(x,2)\nA: r(x,1)\nA: r(y,1)";
        assert!(holds(level, &format!("{LOST}{seen}")));
        // Whoever wrote it, one of two readers missed what it had seen before.
        let stale = "A: r(x,1) r(y,nil)\nB: r(x,nil) r(z,1)\nC: w(y,1) w(z,1)\nB: r(y,1)\n";
        let fork = format!("{LOST}{stale}D: r(x,1) r(z,nil)\nE: r(x,nil) r(y,1)");
        assert!(!holds(level, &fork));
        assert!(!holds(Level::SnapshotIsolation, &fork));
    }

    /// A session that goes on after such a writer is behind it, if it counts.
    #[test]
    fn a_writer_of_unknown_outcome_whose_session_goes_on_may_do_harm() {
        let after = LOST.replace("L0: w(x,1) unknown\n", "L0: w(x,1) unknown\nL0: r(x,nil)\n");
        let history = parse_text(&format!("{after}A: r(x,1)")).expect("a history");
        let harmless = |session: &str| {
            let first = history.txns().find(|&txn| history.readable_name(txn) == session);
            is_harmless(&history, first.expect("a transaction of this name"))
        };
        assert_eq!((harmless("L0.1"), harmless("L1")), (false, true));
        assert!(holds(Level::SessionSerializable, &format!("{after}A: r(x,1)")));
    }

    #[test]
    fn a_key_that_is_a_register_too_is_left_alone() {
        let history = parse_text("A: a(x,1)\nB: w(x,1)\nC: r(x,[1])").expect("a history");
        let index = Index::new(&history);
        assert!(Interpretations::of(&history, &index).is_none());
        for level in crate::check::decided_levels() {
            let _ = Check::new(&history, &index, &Limits::NONE).decide(level);
        }
    }

    #[test]
    fn of_too_many_ways_some_are_guessed() {
        let appends: Vec<String> =
            (0..12).map(|it| format!("A: a(x,{it})\nB: a(x,{it})\n")).collect();
        let appends = appends.concat();
        let read = "C: r(x,[0 1 2 3 4 5 6 7 8 9 10 11])";
        assert!(holds(Level::SessionSerializable, &format!("{appends}{read}")));
        let mixed = appends.replace("A: a(x,3)", "A: a(x,3) a(y,1)");
        let mixed = mixed.replace("B: a(x,7)", "B: a(x,7) a(z,1)");
        let both = format!("{mixed}C: r(y,[]) r(z,[]) {}", &read[2..]);
        let verdict = decided(Level::Serializable, &both);
        assert!(matches!(verdict, Verdict::Unknown(Unknown::Unsupported(_))), "{verdict:?}");
    }
}
