//! Writes follow reads: who sees a write sees what its session had read before it.
//!
//! **Definition.** `other` is visible to a reader that reads from a transaction
//! before which, in the same session, a transaction read from `other` [Terry94], in
//! the form of this family.
//!
//! **Method.** Session by session. Readers ask a session "what had you seen before
//! `source` that writes this key"; the questions are sorted by `source` and answered
//! in one walk over the session that keeps, per key that is asked for and session, the
//! last writer seen: earlier ones precede it by session order.
//!
//! A session sees something of every other, so each question has as many answers as there
//! are sessions. Nearly all of them happen before the writer that was read, which orders
//! them already: where there are many, only the others are kept (`reach.rs`).

use super::asked_keys::AskedKeys;
use super::happens_before::HappensBefore;
use super::monotonic_writes::latest_sources;
use super::reach::Reach;
use super::{Facts, Forced, Halt, Rule};
use crate::anomaly::AnomalyKind;
use crate::evidence::{Edge, INITIAL};
use crate::level::Level;
use hashbrown::{HashMap, HashSet};
use isolde_history::{Candidates, KeyId, Origin, ReadId, SessionId, TxnId};
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const RULE: Rule = Rule {
    level: Level::WritesFollowReads,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Any,
    broken: AnomalyKind::WriteWithoutItsReads,
    forced,
    visible,
};

/// So many orders for each read are few enough to be kept, those that are known anyway included.
const ALL_PER_READ: usize = 4;

/// Short histories keep all: their explanations take the straightest way.
const ALL_IN_SHORT: usize = 1 << 16;

/// Sessions whose transactions are looked at together, for the orders that are known anyway.
const SESSIONS_TOGETHER: u32 = 64;

/// What had the session of `source` seen before it, for this read?
struct Question {
    source: TxnId,
    read: ReadId,
}

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    // Each look at some of the sessions takes about as long as it takes to keep one order more
    // for each read.
    let looks = facts.history.session_count().div_ceil(SESSIONS_TOGETHER as usize);
    let all_max = ALL_IN_SHORT.max(ALL_PER_READ.max(looks) * facts.index.read_count());
    forced_within(facts, all_max, SESSIONS_TOGETHER)
}

/// All orders, if there are at most so many; else those that are not known anyway, looking at
/// so many sessions at a time.
fn forced_within(
    facts: &Facts<'_>,
    all_max: usize,
    sessions_together: u32,
) -> Result<Vec<Forced>, Halt> {
    let questions = questions(facts);
    if let Some(all) = all(facts, &questions, all_max)? {
        return Ok(all);
    }
    facts.found.store(0, Ordering::Relaxed);
    let mut happens_before = HappensBefore::new(facts);
    let mut order = Vec::with_capacity(facts.index.counted_txns());
    let walked = happens_before.walk(|_, txn| {
        order.push(txn);
        Ok(())
    });
    match walked {
        // What is known is part of the commit order, where a short cycle is looked for.
        Err(Halt::Cycle(_)) => return Ok(Vec::new()),
        Err(halt) => return Err(halt),
        Ok(()) => {}
    }
    let sessions = facts.history.session_count() as u32;
    let mut forced = Vec::new();
    for start in (0..sessions).step_by(sessions_together as usize) {
        let together = start..sessions.min(start + sessions_together);
        facts.stop_if_asked(Reach::bytes(facts.history.txn_count(), together.len() as u32))?;
        let reach = Reach::new(&happens_before, &order, together);
        let answers = Answers { facts, news: Some(&reach), most: usize::MAX };
        forced.extend(facts.by_session(
            || (),
            |(), session, forced| {
                answers.of_session(session, &questions[session.index()], forced);
            },
        )?);
    }
    Ok(forced)
}

/// All orders, unless there are more than so many.
fn all(
    facts: &Facts<'_>,
    questions: &[Vec<Question>],
    all_max: usize,
) -> Result<Option<Vec<Forced>>, Halt> {
    let are_too_many = AtomicBool::new(false);
    let answers = Answers { facts, news: None, most: all_max };
    let all = facts.by_session(
        || (),
        |(), session, forced| {
            if are_too_many.load(Ordering::Relaxed) {
                return;
            }
            answers.of_session(session, &questions[session.index()], forced);
            if facts.found.load(Ordering::Relaxed) + forced.len() > all_max {
                are_too_many.store(true, Ordering::Relaxed);
                *forced = Vec::new();
            }
        },
    )?;
    let is_all = !are_too_many.into_inner() && all.len() <= all_max;
    Ok(is_all.then_some(all))
}

/// What readers ask each session, in the order of the sources.
fn questions(facts: &Facts<'_>) -> Vec<Vec<Question>> {
    let mut questions: Vec<Vec<Question>> = Vec::new();
    questions.resize_with(facts.history.session_count(), Vec::new);
    for reader in facts.history.txns() {
        for (session, source) in latest_sources(facts, reader) {
            for read in facts.index.read_range(reader).map(ReadId) {
                if Facts::writer(facts.index.read(read).origin).is_some() {
                    questions[session.index()].push(Question { source, read });
                }
            }
        }
    }
    for questions in &mut questions {
        questions.sort_by_key(|question| question.source);
    }
    questions
}

struct Answers<'a> {
    facts: &'a Facts<'a>,
    /// If given, only transactions of these sessions are of interest, and only if they do not
    /// happen before the one that was read from anyway.
    news: Option<&'a Reach>,
    /// After so many orders of one session there is no point in more.
    most: usize,
}

impl Answers<'_> {
    fn of_session(&self, session: SessionId, questions: &[Question], forced: &mut Vec<Forced>) {
        let facts = self.facts;
        let asked = AskedKeys::new(questions.iter().map(|asked| facts.index.read(asked.read).key));
        let mut seen: HashSet<TxnId> = HashSet::new();
        // Per key, at most one writer a session.
        let mut visible: HashMap<KeyId, Vec<(SessionId, TxnId)>> = HashMap::new();
        let mut open = questions;
        for txn in facts.history.txns_of(session) {
            let count = open.partition_point(|question| question.source <= txn);
            for question in &open[..count] {
                self.answer(question, &visible, forced);
            }
            open = &open[count..];
            if open.is_empty() || forced.len() > self.most {
                return;
            }
            for external in facts.index.reads_of(txn) {
                let Origin::Txn(writer) = external.origin else { continue };
                let of = facts.history.session_of(writer);
                if self.news.is_none_or(|reach| reach.has(of)) && seen.insert(writer) {
                    asked.written_by(facts, writer, |key| {
                        let at_key = visible.entry(key).or_default();
                        match at_key.iter_mut().find(|entry| entry.0 == of) {
                            Some(entry) => entry.1 = entry.1.max(writer),
                            None => at_key.push((of, writer)),
                        }
                    });
                }
            }
        }
    }

    fn answer(
        &self,
        question: &Question,
        visible: &HashMap<KeyId, Vec<(SessionId, TxnId)>>,
        forced: &mut Vec<Forced>,
    ) {
        let external = self.facts.index.read(question.read);
        let after = Facts::writer(external.origin).expect("only such reads ask");
        let reader = self.facts.history.txn_of(external.op);
        let reach = self.news.filter(|_| after != INITIAL);
        for &(of, before) in visible.get(&external.key).into_iter().flatten() {
            let is_known = || reach.is_some_and(|reach| reach.happens_before((of, before), after));
            if before != after && before != reader && !is_known() {
                forced.push(Forced { before, after, read: question.read });
            }
        }
    }
}

fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    latest_sources(facts, reader)
        .into_iter()
        .find_map(|(_, source)| {
            facts.earlier_in_session(source).find_map(|earlier| {
                let first = facts.reads_from(earlier, forced.before)?;
                let last = facts.reads_from(reader, source)?;
                Some(vec![first, Edge::session(earlier, source), last])
            })
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{RULE, forced_within};
    use crate::limits::Limits;
    use crate::weak::samples::{Random, stale_reads};
    use crate::weak::{Decision, Facts, Forced, Halt, Rule, decide};
    use isolde_history::format::parse_text;
    use isolde_history::{History, Index};
    use std::fmt::Write;

    type Method = fn(&Facts<'_>) -> Result<Vec<Forced>, Halt>;

    /// All orders, and those that are not known anyway by one session, three, or all at a time.
    const METHODS: [Method; 4] = [
        |facts| forced_within(facts, usize::MAX, 1),
        |facts| forced_within(facts, 0, 1),
        |facts| forced_within(facts, 0, 3),
        |facts| forced_within(facts, 0, u32::MAX),
    ];

    /// Whether the level holds by a method. If so, its order has to contain all orders.
    fn holds(history: &History, forced: Method) -> bool {
        let index = Index::new(history);
        let facts = Facts::new(history, &index, &Limits::NONE);
        match decide(&Rule { forced, ..RULE }, &facts) {
            Decision::Satisfied(order) => {
                let mut places = vec![0; history.txn_count()];
                for (place, txn) in order.iter().enumerate() {
                    places[txn.index()] = place;
                }
                let all = METHODS[0](&facts).ok().expect("there are no limits");
                assert!(all.iter().all(|it| places[it.before.index()] < places[it.after.index()]));
                true
            }
            Decision::Violated(_) => false,
            Decision::Limit(limit) => panic!("{limit}"),
        }
    }

    #[test]
    fn what_is_known_anyway_changes_no_verdict() {
        let mut satisfied = 0;
        for seed in 0..400 {
            let history = stale_reads(seed, 16);
            let verdicts = METHODS.map(|forced| holds(&history, forced));
            assert!(verdicts == [true; 4] || verdicts == [false; 4], "seed {seed}: {verdicts:?}");
            satisfied += u32::from(verdicts[0]);
        }
        assert!((50..350).contains(&satisfied), "{satisfied} of 400 hold: too much of one kind");
    }

    /// Everyone sees everyone: each read has as many answers as there are sessions.
    #[test]
    fn sessions_that_see_each_other_need_little_memory() {
        const KEYS: usize = 20;
        let mut random = Random(1);
        let mut text = String::from("# isolde-history 1\n");
        let mut last = [(); KEYS].map(|()| "nil".to_owned());
        for txn in 1..=6_000 {
            write!(text, "{}:", random.below(40)).expect("a string takes all");
            let first = random.below(KEYS);
            for key in (first..first + 4).map(|key| key % KEYS) {
                write!(text, " r({key},{})", last[key]).expect("a string takes all");
            }
            let key = random.below(KEYS);
            writeln!(text, " w({key},{txn})").expect("a string takes all");
            last[key] = txn.to_string();
        }
        let history = parse_text(&text).expect("it is well formed");
        let index = Index::new(&history);
        let limits = Limits { working_bytes_max: Some(4 << 20), ..Limits::NONE };
        let facts = Facts::new(&history, &index, &limits);
        assert!(matches!(decide(&RULE, &facts), Decision::Satisfied(_)));
        assert!(matches!(decide(&Rule { forced: METHODS[0], ..RULE }, &facts), Decision::Limit(_)));
    }
}
