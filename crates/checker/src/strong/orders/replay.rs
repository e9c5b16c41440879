//! A serial order along the clients' times, put right where a read contradicts it.
//!
//! At levels where a transaction is one event, an order of transactions in which each read saw
//! the last write of its key is all that is wanted. Most databases have one close to the times
//! at which clients knew of their commits. Sorted by these, transactions agree with real time,
//! however far clocks may be apart, and with sessions. They are replayed with nothing at hand
//! but who wrote each key last, so that neither versions nor a graph are made. Where a read saw
//! another write, the transactions between the two places in question are sorted anew with what
//! the read says, and the replay goes back to the first of them and on from there.
//!
//! What is found is an order for all levels of this kind, also for those that ask for less than
//! real time and sessions. Where none is found nothing is said: the pipeline knows more.

use crate::limits::{Limits, Stage};
use crate::strong::Options;
use crate::strong::model::Event;
use crate::strong::sources::Sources;
use hashbrown::{HashMap, HashSet};
use isolde_history::{ALWAYS, History, Index, KeyId, NEVER, Origin, Time, TxnId, prefetch};
use std::ops::Range;

/// At most so many transactions are sorted anew at a time.
const PART_MAX: usize = 512;
/// Putting right may take so many steps for each transaction; what takes more is no slip.
const STEPS_PER_TXN: usize = 16;
/// Steps beside these, for short histories.
const STEPS_FREE: usize = 1 << 12;
/// How often to ask whether to stop, in transactions.
const PERIOD: usize = 1 << 16;
/// So many transactions ahead, what one needs is asked for.
const AHEAD: usize = 4;

/// The last writer of a key that nobody wrote.
const NOBODY: TxnId = TxnId(u32::MAX);

/// An order of all counted transactions that explains every read and agrees with sessions and
/// real time, if one is near at hand.
pub(in crate::strong) fn order(
    (history, index): (&History, &Index),
    options: Options,
    limits: &Limits<'_>,
) -> Option<Vec<TxnId>> {
    let Sources { session, real_time, .. } = options.sources;
    if !session || !real_time || !is_plain(history, index) {
        return None;
    }
    let bytes = history.txn_count() * size_of::<(Time, TxnId)>() * 3 / 2 + 4 * history.key_count();
    if limits.working_bytes_max.is_some_and(|most| bytes > most) {
        return None;
    }
    (limits.observe)(Stage::Witness);
    let order = along_times(history, index)?;
    let mut replay = Replay {
        history,
        index,
        clock_drift: options.clock_drift,
        steps: order.len() * STEPS_PER_TXN + STEPS_FREE,
        order,
        last: vec![NOBODY; history.key_count()],
        log: Vec::new(),
        log_start: 0,
        earlier: HashMap::new(),
    };
    let repairs = replay.run(limits)?;
    (limits.observe)(Stage::Replayed { repairs });
    Some(replay.order)
}

/// Whether times are known, and each read saw one write, and nothing is known about the order of
/// writes but what reads and times say. A list tells more than who wrote its last element, also
/// where elements repeat and the index takes no steps from it.
fn is_plain(history: &History, index: &Index) -> bool {
    history.has_times()
        && !history.has_predicates()
        && !history.has_snapshots()
        && !history.has_lists()
        && history.orders().total.is_none()
        && index.steps().is_empty()
        && index.conflicts().is_empty()
        && index.several().is_empty()
        && index.misreads().is_empty()
}

/// The counted transactions by the times at which their clients knew of the commit; `None` if
/// a session's own times contradict its order.
///
/// Nobody knows when a transaction of unknown outcome took effect; most did soon after the
/// client had asked for it.
fn along_times(history: &History, index: &Index) -> Option<Vec<TxnId>> {
    let mut ranked: Vec<(Time, TxnId)> = Vec::with_capacity(history.txn_count());
    for session in history.sessions() {
        let mut last = ALWAYS;
        for txn in history.txns_of(session).filter(|&txn| index.is_counted(txn)) {
            let times = history.txn_times(txn);
            let rank = match Event::Commit.completed(history, txn, 0) {
                NEVER => times.commit.invoked.max(times.begin.invoked),
                completed => completed,
            };
            if rank < last {
                return None;
            }
            last = rank;
            ranked.push((rank, txn));
        }
    }
    // Each session ascends, so that this merges; and it keeps the order of equal ones.
    ranked.sort_by_key(|&(rank, _)| rank);
    Some(ranked.into_iter().map(|(_, txn)| txn).collect())
}

/// Who wrote what a read saw. Where reads are plain, [`NOBODY`] is the initial state.
fn writer(origin: Origin) -> TxnId {
    match origin {
        Origin::Txn(writer) => writer,
        Origin::Initial | Origin::Several | Origin::Nobody => NOBODY,
    }
}

struct Replay<'a> {
    history: &'a History,
    index: &'a Index,
    clock_drift: Time,
    order: Vec<TxnId>,
    /// Per key, who wrote it last.
    last: Vec<TxnId>,
    /// What was replaced by the last transactions, so that the replay can go back.
    log: Vec<Replaced>,
    /// The first place that it can go back to.
    log_start: usize,
    /// What reads said beside whom they read from: per transaction, who comes before it.
    earlier: HashMap<TxnId, Vec<TxnId>>,
    /// How many more steps putting right may take.
    steps: usize,
}

/// The last writer of a key before the transaction at a place.
struct Replaced {
    place: u32,
    key: KeyId,
    before: TxnId,
}

/// A read that did not see the last write.
struct Contradiction {
    key: KeyId,
    /// Whose write it saw; [`NOBODY`] if the initial value.
    seen: TxnId,
}

impl Replay<'_> {
    /// Replays the whole order, put right where it has to be; how often that was.
    fn run(&mut self, limits: &Limits<'_>) -> Option<u64> {
        let mut repairs = 0;
        let mut place = 0;
        while place < self.order.len() {
            if place.is_multiple_of(PERIOD) && (limits.stop)() {
                return None;
            }
            if let Some(contradiction) = self.read(place) {
                repairs += 1;
                place = self.put_right(place, &contradiction)?;
            } else {
                self.install(place);
                place += 1;
            }
        }
        Some(repairs)
    }

    /// Compares what the transaction at a place saw with what there is.
    #[inline]
    fn read(&self, place: usize) -> Option<Contradiction> {
        if let Some(&soon) = self.order.get(place + AHEAD) {
            let read = self.index.read_keys(self.index.read_range(soon));
            for key in read.iter().chain(self.index.written_by(soon)) {
                prefetch(&self.last, key.index());
            }
        }
        let reads = self.index.reads_of(self.order[place]);
        let mut seen = reads.map(|read| Contradiction { key: read.key, seen: writer(read.origin) });
        seen.find(|it| self.last[it.key.index()] != it.seen)
    }

    fn install(&mut self, place: usize) {
        /// What is behind this many transactions is forgotten once the log has this many entries.
        const PLACES_KEPT: usize = 4 * PART_MAX;
        const LOG_MAX: usize = 1 << 16;
        let txn = self.order[place];
        for &key in self.index.written_by(txn) {
            let last = &mut self.last[key.index()];
            self.log.push(Replaced { place: place as u32, key, before: *last });
            *last = txn;
        }
        if self.log.len() > LOG_MAX {
            self.log_start = self.log_start.max(place.saturating_sub(PLACES_KEPT));
            let given_up = self.log.partition_point(|it| (it.place as usize) < self.log_start);
            self.log.drain(..given_up);
        }
    }

    /// Undoes what the transactions from a place on wrote.
    fn go_back(&mut self, place: usize) {
        while let Some(replaced) = self.log.pop_if(|it| it.place as usize >= place) {
            self.last[replaced.key.index()] = replaced.before;
        }
    }

    /// Sorts a part of the order anew with what a read says; where to go on.
    fn put_right(&mut self, place: usize, contradiction: &Contradiction) -> Option<usize> {
        let reader = self.order[place];
        let &Contradiction { key, seen } = contradiction;
        let newest = self.last[key.index()];
        let part = if let Some(steps) =
            self.order[place..].iter().take(PART_MAX).position(|&it| it == seen)
        {
            // Its write comes only later.
            place..place + steps + 1
        } else if !self.is_over_before(newest, reader) {
            self.note(reader, newest)?;
            self.place_before(place, newest)?..place + 1
        } else {
            self.note(newest, seen)?;
            self.place_before(place, seen)?..place + 1
        };
        if part.start < self.log_start {
            return None;
        }
        self.sort(part.clone())?;
        self.go_back(part.start);
        Some(part.start)
    }

    /// When a transaction was over for all clocks.
    fn completed(&self, txn: TxnId) -> Time {
        Event::Commit.completed(self.history, txn, self.clock_drift)
    }

    fn invoked(&self, txn: TxnId) -> Time {
        Event::Begin.interval(self.history, txn).invoked
    }

    /// Whether real time orders two transactions.
    fn is_over_before(&self, one: TxnId, other: TxnId) -> bool {
        one != NOBODY && self.completed(one) < self.invoked(other)
    }

    /// Notes that one transaction comes before another; `None` if that was known and did not
    /// help.
    fn note(&mut self, one: TxnId, other: TxnId) -> Option<()> {
        let earlier = self.earlier.entry(other).or_default();
        if earlier.contains(&one) {
            return None;
        }
        earlier.push(one);
        Some(())
    }

    /// Where a transaction stands, not far before a place.
    fn place_before(&self, place: usize, txn: TxnId) -> Option<usize> {
        let start = place.saturating_sub(PART_MAX - 1);
        let found = self.order[start..place].iter().rposition(|&it| it == txn)?;
        Some(start + found)
    }

    /// Sorts a part of the order from the last transaction to the first, each as late as what
    /// is known allows; `None` if nothing does.
    fn sort(&mut self, part: Range<usize>) -> Option<()> {
        let txns = &self.order[part.clone()];
        let known = self.known(txns);
        let mut followers = vec![0u32; txns.len()];
        for &(_, before) in &known {
            followers[before as usize] += 1;
        }
        let mut invoked: Vec<(Time, usize)> =
            txns.iter().enumerate().map(|(place, &txn)| (self.invoked(txn), place)).collect();
        invoked.sort_unstable();
        let mut is_left = vec![true; txns.len()];
        let mut sorted = Vec::with_capacity(txns.len());
        let mut steps = self.steps;
        while sorted.len() < txns.len() {
            while invoked.pop_if(|it| !is_left[it.1]).is_some() {}
            let latest = invoked.last().expect("those that are left were invoked").0;
            let mut places = (0..txns.len()).rev().inspect(|_| steps = steps.saturating_sub(1));
            let place = places.find(|&place| {
                is_left[place] && followers[place] == 0 && self.completed(txns[place]) >= latest
            })?;
            is_left[place] = false;
            sorted.push(txns[place]);
            let start = known.partition_point(|it| (it.0 as usize) < place);
            for &(_, before) in known[start..].iter().take_while(|it| it.0 as usize == place) {
                followers[before as usize] -= 1;
            }
        }
        self.steps = steps.checked_sub(txns.len())?;
        sorted.reverse();
        self.order[part].copy_from_slice(&sorted);
        Some(())
    }

    /// Who comes before whom among transactions in the order of now, as places: the later one
    /// first, ascending, each once.
    fn known(&self, txns: &[TxnId]) -> Vec<(u32, u32)> {
        let places: HashMap<TxnId, u32> = txns.iter().copied().zip(0..).collect();
        let mut of_session = HashMap::new();
        let mut known = HashSet::new();
        for (&txn, place) in txns.iter().zip(0..) {
            if let Some(before) = of_session.insert(self.history.session_of(txn), place) {
                known.insert((place, before));
            }
            let read = self.index.reads_of(txn).map(|read| writer(read.origin));
            let noted = self.earlier.get(&txn).into_iter().flatten().copied();
            let before = read.chain(noted).filter_map(|txn| places.get(&txn));
            known.extend(before.map(|&before| (place, before)));
        }
        let mut known: Vec<(u32, u32)> = known.into_iter().collect();
        known.sort_unstable();
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;
    use std::fmt::Write;

    /// The order that is found, by the names of its sessions.
    fn found(text: &str, clock_drift: Time) -> Option<String> {
        let history = parse_text(text).expect("a history");
        let index = Index::new(&history);
        let options = Options { clock_drift, ..Options::default() };
        let order = order((&history, &index), options, &Limits::NONE)?;
        let label = |txn: TxnId| history.session_label(history.session_of(txn));
        let name = |&txn: &TxnId| history.datum(label(txn)).to_string();
        Some(order.iter().map(name).collect())
    }

    fn check(text: &str, order: &str) {
        assert_eq!(found(text, 0).as_deref(), Some(order));
    }

    #[test]
    fn transactions_follow_the_times_of_their_commits() {
        check(
            "A @1..9: w(x,1)
             B @2..8: w(x,2)
             C @10..11: r(x,1)",
            "BAC",
        );
    }

    #[test]
    fn a_reader_comes_before_who_replaced_what_it_saw() {
        check(
            "init *=0
             A @1..5: w(x,1)
             B @2..9: r(x,0)
             C @10..11: r(x,1)",
            "BAC",
        );
    }

    #[test]
    fn nothing_is_found_if_that_was_over_before_it() {
        let late = "init *=0\nA @1..5: w(x,1)\nB @6..9: r(x,0)";
        assert_eq!(found(late, 0), None);
        assert_eq!(found(late, 1).as_deref(), Some("BA"));
    }

    #[test]
    fn a_reader_comes_after_whom_it_read_from() {
        check(
            "A @1..9: w(x,1)
             B @2..8: r(x,1)",
            "AB",
        );
        let future = "A @5..9: w(x,1)\nB @2..4: r(x,1)";
        assert_eq!(found(future, 0), None);
    }

    #[test]
    fn writers_change_places_if_a_later_reader_saw_the_first() {
        check(
            "A @1..5: w(x,1)
             B @2..6: w(x,2)
             C @7..9: r(x,1)",
            "BAC",
        );
    }

    #[test]
    fn what_takes_several_repairs_is_put_right() {
        check(
            "init *=0
             A @1..5: w(x,1) w(y,1)
             B @2..6: r(x,0) w(y,2)
             C @3..7: r(y,0) r(x,0)
             D @8..9: r(y,1) r(x,1)",
            "CBAD",
        );
    }

    #[test]
    fn sessions_and_real_time_hold_where_a_part_is_sorted_anew() {
        // B would have to come before A, and its session's first transaction before it.
        check(
            "init *=0
             A @1..6: w(x,1)
             B @2..4: w(y,1)
             B @4..9: r(x,0)
             C @7..9: r(x,1) r(y,1)",
            "BBAC",
        );
        let late = "init *=0\nA @1..3: w(x,1)\nB @2..4: w(y,1)\nB @4..9: r(x,0)";
        assert_eq!(found(late, 0), None);
    }

    #[test]
    fn an_unknown_outcome_is_placed_where_it_was_asked_for() {
        check(
            "A @1..20: w(x,1) unknown
             B @2..5: w(x,2)
             C @6..9: r(x,2)
             D @10..11: r(x,1)",
            "BCAD",
        );
    }

    #[test]
    fn write_skew_is_left_to_the_pipeline() {
        let skew = "init *=0\nA @1..5: r(x,0) w(y,1)\nB @2..6: r(y,0) w(x,1)";
        assert_eq!(found(skew, 0), None);
    }

    #[test]
    fn what_more_is_known_about_than_reads_and_times_is_left_to_the_pipeline() {
        for text in [
            "A: w(x,1)",
            "A @1..2: a(x,1)\nB @3..4: r(x,[1])\nA @5..6: a(x,2)\nB @7..8: r(x,[1 2])",
            "A @1..9: a(x,1) unknown\nB @1..9: a(x,1) unknown\nC @2..3: a(x,2) r(x,[2])\n\
             D @4..5: r(x,[1 2])",
            "order x: 1 2\nA @1..2: w(x,1)\nB @3..4: w(x,2)",
            "A @1..2: w(x,1)\nB @3..4: w(x,1)\nC @5..6: r(x,1)",
            "A @1..2: w(x,1)\nB @3..4: r(x,2)",
        ] {
            assert_eq!(found(text, 0), None, "{text}");
        }
    }

    /// Without the rule about who reads a version and writes the key, the replay was left out too.
    #[test]
    fn only_without_sessions_or_times_there_is_no_replay() {
        let history = parse_text("A @1..2: w(x,1)\nB @3..4: r(x,1) w(x,2)").expect("a history");
        let index = Index::new(&history);
        let found = |sources: Sources| {
            let options = Options { sources, ..Options::default() };
            order((&history, &index), options, &Limits::NONE).is_some()
        };
        let all = Sources::ALL;
        assert!(found(Sources {
            read_modify_write: false,
            lists: false,
            database_order: false,
            ..all
        }));
        assert!(!found(Sources { session: false, ..all }));
        assert!(!found(Sources { real_time: false, ..all }));
    }

    #[test]
    fn the_replay_goes_back_over_thousands_of_transactions_in_short_steps() {
        // Two readers of each round saw what was replaced before they knew of their commit.
        let mut text = String::from("init *=0\n");
        for round in 0..5_000 {
            let at = 10 * round;
            writeln!(
                text,
                "A @{at}..{}: w(x,{})\nB @{at}..{}: r(x,{round})\nC @{at}..{}: r(x,{round})",
                at + 4,
                round + 1,
                at + 6,
                at + 8
            )
            .expect("memory takes all");
        }
        check(&text, &"BCA".repeat(5_000));
    }
}
