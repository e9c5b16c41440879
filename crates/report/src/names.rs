//! What anomalies are called, and what each means for an application: one row for each kind.

use crate::scenario::Names;
use isolde::{Anomaly, AnomalyKind, Evidence};
use isolde_history::{History, OpId};

/// One kind of anomaly in words.
pub struct NameRow {
    /// The kind.
    pub kind: AnomalyKind,
    /// What people call it.
    pub everyday: &'static str,
    /// Adya's name, if there is one.
    pub adya: Option<&'static str>,
    /// Elle's name, if there is one.
    pub elle: Option<&'static str>,
    /// What goes wrong in an application, one or two sentences.
    pub meaning: &'static str,
}

const fn row(
    kind: AnomalyKind,
    everyday: &'static str,
    (adya, elle): (Option<&'static str>, Option<&'static str>),
    meaning: &'static str,
) -> NameRow {
    NameRow { kind, everyday, adya, elle, meaning }
}

const BOTH_NONE: (Option<&str>, Option<&str>) = (None, None);

const fn both(name: &'static str) -> (Option<&'static str>, Option<&'static str>) {
    (Some(name), Some(name))
}

const fn elle(name: &'static str) -> (Option<&'static str>, Option<&'static str>) {
    (None, Some(name))
}

const fn names(
    adya: &'static str,
    elle: &'static str,
) -> (Option<&'static str>, Option<&'static str>) {
    (Some(adya), Some(elle))
}

const STALE: &str = "A client that was told of a write, or told somebody else of it, can look and not \
     find it: confirmations shown to users, caches and messages to other services run ahead of the data.";
const SESSION: &str = "What a client just did or saw is gone at its next step: a page that was saved shows \
     its old content, or a decision is taken twice.";
const RESULTS: &str = "A query by condition does not protect its result: rows that match appear between the check and the write that relies on it.";
const CHECKS: &str = "A check that reads some rows and then writes others can pass in two places at once: \
     two doctors go off call, an account is overdrawn, a name is taken twice.";
const SKEW: &str = "A total, a comparison or a copy made from several rows mixes old and new ones: sums are \
     wrong, and rows that belong together contradict each other.";
const FORK: &str = "Two clients see two events in opposite orders and cannot agree on what happened first, \
     so whatever each decides from that may contradict the other.";
const DIRTY: &str = "Decisions are taken on data that officially never existed, and cannot be taken back \
     when it disappears.";

/// A row for every kind of anomaly.
#[rustfmt::skip]
pub static NAMES: &[NameRow] = &[
    row(AnomalyKind::ThinAirRead, "thin-air read", BOTH_NONE,
        "The database returned data that nobody stored: corruption, or a write that the recording missed."),
    row(AnomalyKind::AbortedRead, "aborted read (dirty read)", both("G1a"), DIRTY),
    row(AnomalyKind::IntermediateRead, "intermediate read (dirty read)", both("G1b"), DIRTY),
    row(AnomalyKind::FutureRead, "future read", elle("future-read"),
        "A transaction saw the effect of a statement that it had not made yet."),
    row(AnomalyKind::NotMyOwnWrite, "lost own write", elle("internal"),
        "A transaction does not see what it has just written itself, so its later statements work on wrong data."),
    row(AnomalyKind::NotMyLastWrite, "lost own last write", elle("internal"),
        "A transaction sees an older state of its own than the one it has just written."),
    row(AnomalyKind::NonRepeatableRead, "non-repeatable read (fuzzy read)", elle("internal"),
        "A row changes while a transaction works with it: what was checked is no longer true when it is used."),
    row(AnomalyKind::DuplicateWrite, "duplicate write", BOTH_NONE,
        "The workload wrote a value twice, so a reader cannot tell which write it saw."),
    row(AnomalyKind::DuplicateElements, "duplicate elements", elle("duplicate-elements"),
        "One write took effect twice, as by a retry of something that had succeeded: a payment is booked twice."),
    row(AnomalyKind::IncompatibleOrder, "incompatible order", elle("incompatible-order"),
        "Readers see one list in two different orders, as after a split in which both halves took writes: one of them will be lost."),
    row(AnomalyKind::ResultSetMismatch, "wrong result set", elle("predicate-read-miss"),
        "A query returns rows that do not match, or leaves out rows that do."),
    row(AnomalyKind::DirtyWrite, "dirty write (write cycle)", both("G0"),
        "Two transactions each overwrote a part of the other: what remains is a mixture that neither of them wrote."),
    row(AnomalyKind::SessionDirtyWrite, "writes against the session's order", names("G0", "G0-process"),
        "What a client wrote later was installed earlier: its last word is overwritten by its first."),
    row(AnomalyKind::RealTimeDirtyWrite, "writes against real time", names("G0", "G0-realtime"),
        "A write that was confirmed later was installed earlier: the newer value is overwritten by the older one."),
    row(AnomalyKind::CircularInformationFlow, "circular information flow", both("G1c"),
        "Each of these transactions saw the others' effects, so each ran before the others had finished: none of them can be rolled back alone."),
    row(AnomalyKind::SessionCircularInformationFlow, "circular information flow in a session", names("G1c", "G1c-process"),
        "A client saw what followed from something that it did only later: an effect came before its cause."),
    row(AnomalyKind::ObservedTransactionVanishes, "fractured, non-monotonic read (an observed transaction vanishes)", names("G-single", "G-single-item"),
        "A transaction sees another's effect and then an older state without it: half of a change is used as if it were all of it."),
    row(AnomalyKind::FracturedRead, "fractured read", names("G-single", "G-single-item"),
        "A reader sees one part of a transaction and misses another: an order without its items, a transfer that left one account and reached none."),
    row(AnomalyKind::MissedOwnWrite, "missed own write (read your writes)", elle("G-single-item-process"), SESSION),
    row(AnomalyKind::NonMonotonicRead, "non-monotonic read", elle("G-single-item-process"),
        "A client sees something and, when it looks again, sees that it has not happened yet: a comment appears and disappears."),
    row(AnomalyKind::NonMonotonicWrite, "non-monotonic write", elle("G-single-item-process"),
        "Others see a client's later write without its earlier one: a reference arrives before what it refers to."),
    row(AnomalyKind::WriteWithoutItsReads, "write without its reads", elle("G-single-item-process"),
        "An answer is seen without the question that it answers."),
    row(AnomalyKind::CausalityViolation, "causality violation", names("G-single", "G-single-item"),
        "An effect is seen without its cause: an answer without its question, or a photo in an album whose access had been withdrawn before."),
    row(AnomalyKind::RealTimeCircularInformationFlow, "circular information flow in real time", names("G1c", "G1c-realtime"),
        "Somebody saw a value before it was committed, or even written: an effect came before its cause, or the clocks that told the times differ."),
    row(AnomalyKind::LostUpdate, "lost update", names("G-cursor", "lost-update"),
        "Two clients read a value, both computed a new one from it, and one of the results was thrown away: a deposit or a counted vote is gone without an error."),
    row(AnomalyKind::ReadSkew, "read skew", names("G-single", "G-single-item"), SKEW),
    row(AnomalyKind::SessionReadSkew, "read skew in a session", names("G-single", "G-single-item-process"), SESSION),
    row(AnomalyKind::RealTimeReadSkew, "stale read", names("G-single", "G-single-item-realtime"), STALE),
    row(AnomalyKind::LongFork, "long fork", names("G-nonadjacent", "G-nonadjacent-item"), FORK),
    row(AnomalyKind::SessionLongFork, "long fork in a session", names("G-nonadjacent", "G-nonadjacent-item-process"), FORK),
    row(AnomalyKind::RealTimeLongFork, "long fork in real time", names("G-nonadjacent", "G-nonadjacent-item-realtime"), FORK),
    row(AnomalyKind::WriteSkew, "write skew", both("G2-item"), CHECKS),
    row(AnomalyKind::ReadOnlyTransactionAnomaly, "read-only transaction anomaly", both("G2-item"),
        "A report shows a state that never was: two writers fit together, but not with what the report saw between them."),
    row(AnomalyKind::AntiDependencyCycle, "anti-dependency cycle", both("G2-item"), CHECKS),
    row(AnomalyKind::SessionAntiDependencyCycle, "anti-dependency cycle in a session", names("G2-item", "G2-item-process"), CHECKS),
    row(AnomalyKind::RealTimeAntiDependencyCycle, "anti-dependency cycle in real time", names("G2-item", "G2-item-realtime"), CHECKS),
    row(AnomalyKind::PredicateAntiDependencyCycle, "predicate anti-dependency cycle", both("G2"), RESULTS),
    row(AnomalyKind::Phantom, "phantom", both("G-single"),
        "The same query gives another answer within one transaction: totals and lists that are shown together do not fit together."),
    row(AnomalyKind::PredicateManyPreceders, "predicate-many-preceders", names("PMP", "G-single"),
        "Two queries of one transaction look at different states: a row is in the one answer and missing from the other."),
    row(AnomalyKind::PredicateWriteSkew, "write skew by predicate", both("G2"), RESULTS),
    row(AnomalyKind::LostInsert, "lost insert", names("P4", "lost-update"),
        "Two clients found a row missing and both made it: one of the two rows is gone, though both were told that theirs is there."),
    row(AnomalyKind::NoVersionOrder, "no version order", BOTH_NONE,
        "However the writes are ordered, some reader saw what it cannot have seen. Which of them was wrong depends on the order, so it has no name of its own."),
    row(AnomalyKind::ReadBeforeWrite, "read before write", elle("G1c-realtime"),
        "A value was seen before anybody had sent it: clocks are off, or the recording is."),
    row(AnomalyKind::StaleRead, "stale read", elle("G-single-item-realtime"), STALE),
    row(AnomalyKind::CompareAndSetTwice, "compare-and-set succeeded twice", elle("lost-update"),
        "Two clients both took the same lock, number or turn, and both were told that they had it."),
    row(AnomalyKind::UnexplainedOperation, "operation that nothing explains", BOTH_NONE,
        "The object answered as no single copy of it could have: whoever relies on one truth is misled."),
];

/// The row of a kind.
pub(crate) fn row_of(kind: AnomalyKind) -> &'static NameRow {
    NAMES.iter().find(|row| row.kind == kind).expect("a row for every kind")
}

impl Names {
    /// The names of an anomaly. Elle names cycles by their edges.
    pub(crate) fn of(anomaly: &Anomaly, history: &History) -> Names {
        let kind = anomaly.kind;
        let row = row_of(kind);
        let by_edges = || anomaly.elle_name(history);
        let elle = match kind {
            AnomalyKind::LostUpdate => row.elle.map(str::to_owned),
            _ => by_edges().or(row.elle.map(str::to_owned)),
        };
        // Two readings of one condition that differ are what everybody calls a phantom.
        let by_one_condition = match &anomaly.evidence {
            Evidence::Operations { ops, .. } => {
                let has_key = |op: OpId| history.op(op).kind.has_key();
                let condition = |op: OpId| &history.predicate(op).condition;
                ops.iter().all(|&op| !has_key(op))
                    && ops.windows(2).all(|pair| condition(pair[0]) == condition(pair[1]))
            }
            _ => false,
        };
        let everyday = match kind {
            AnomalyKind::NonRepeatableRead if by_one_condition => "phantom",
            _ => row.everyday,
        };
        Names {
            name: kind.name().to_owned(),
            everyday: everyday.to_owned(),
            adya: row.adya.map(str::to_owned),
            elle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prose, explain};
    use isolde::found_by_reading;
    use isolde_history::Index;
    use isolde_history::format::parse_text;

    #[test]
    fn every_kind_has_one_row() {
        for kind in AnomalyKind::ALL {
            assert_eq!(NAMES.iter().filter(|row| row.kind == kind).count(), 1, "{kind:?}");
        }
    }

    #[test]
    fn a_phantom_is_what_one_condition_shows_twice() {
        let told = |text: &str| {
            let history = parse_text(text).expect("a well-formed history");
            let index = Index::new(&history);
            let found = found_by_reading(&history, &index);
            let [anomaly] = &found[..] else { panic!("one anomaly, not {found:?}") };
            let told = explain(&Prose::new(&history, &index, "a.txt"), anomaly);
            (Names::of(anomaly, &history).everyday, told)
        };
        let (name, text) = told("init *=0\nA: w(x,1)\nB: p(all; x=0) p(all; x=1)");
        let twice = "B selected all rows and read x = 0 (a.txt:3)\n\
                     and later selected all rows and read x = 1 (a.txt:3)";
        assert_eq!((&*name, &*text), ("phantom", twice));
        let (name, text) = told("init *=0\nA: w(x,1)\nB: p(value 0..5; x=0) p(value 0..10; x=1)");
        let of_two = "B selected rows with value 0..5 and read x = 0 (a.txt:3)\n\
                      and later selected rows with value 0..10 and read x = 1 (a.txt:3)";
        assert_eq!((&*name, &*text), ("non-repeatable read (fuzzy read)", of_two));
        let (name, _) = told("init *=0\nA: w(x,1)\nB: p(value 0..5; x=0) r(x,1)");
        assert_eq!(name, "non-repeatable read (fuzzy read)");
    }
}
