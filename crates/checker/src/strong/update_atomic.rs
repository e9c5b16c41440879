//! Update atomic: transactions are seen entirely, and writers of a common key see each
//! other.
//!
//! **Definition** [in the form of Biswas19]. Some order of commits contains reads-from and known
//! version order. Whenever a reader reads a key from a writer, another transaction
//! writes the key and the reader reads from that other, or both write some key and the
//! other precedes the reader, then the other precedes the writer.
//!
//! **Method.** What the reader reads from gives edges at once. Of the rest, each order
//! of the solver shows what it gets wrong: the other precedes the writer, or the reader
//! precedes the other.

use super::commits::{CommitLevel, Commits};
use super::cycle::Step;
use super::decision::violated;
use super::graph::{Derived, Why};
use super::model::{Events, Model, Node, Protected, Writers};
use super::questions::{Asking, Questions};
use super::search::{Because, CycleEdge, Input};
use super::versions::{INITIAL_SLOT, NO_SLOT, Slot};
use crate::anomaly::{self, Anomaly, AnomalyKind};
use crate::derivation;
use crate::evidence::{Cycle, Edge, EdgeKind};
use crate::level::Level;
use crate::verdict::Verdict;
use acyclic::{Refined, Solver};
use isolde_certificate::{ChosenOrigin, Clause, Rule};
use isolde_history::{History, KeyId, Origin, ReadId, TxnId};

static MODEL: Model = Model {
    level: Level::UpdateAtomic,
    events: Events::One,
    writers: Writers::Apart,
    protected: Protected::Everything,
    session: false,
    real_time: &[],
};

/// At most so many versions between a read and what it saw are asked about at once.
const BETWEEN_MAX: usize = 8;

/// Looks for versions that a reader should have seen.
pub(super) struct UpdateAtomic {
    /// Reads by key.
    reads: Vec<(KeyId, ReadId)>,
    /// Per key, the last order in which it was looked at.
    looked_at: Vec<u32>,
    orders: u32,
}

impl CommitLevel for UpdateAtomic {
    const ASKS_STRONGER: bool = false;

    fn model() -> &'static Model {
        &MODEL
    }

    /// A transaction that was read from precedes whatever else was read of its keys.
    fn begin(commits: &mut Commits<'_>) -> Option<Verdict> {
        let versions = commits.versions;
        let index = versions.index;
        for reader in versions.history.txns() {
            for read in index.read_range(reader).map(ReadId) {
                let (it, seen) = (index.read(read), versions.seen[read.0 as usize]);
                for source in index.read_range(reader).map(ReadId) {
                    let Origin::Txn(other) = index.read(source).origin else { continue };
                    if it.origin == Origin::Txn(other) || !index.writes(other, it.key) {
                        continue;
                    }
                    if seen == INITIAL_SLOT {
                        let (from, to) = (other.0, reader.0);
                        let path = [Step { from, to, why: Why::ReadsFrom(source) }];
                        return Some(Self::missed_first(commits, read, &path));
                    }
                    if seen != NO_SLOT {
                        let (from, to) = (other.0, versions.writer(seen).0);
                        let path = (from, reader.0);
                        let rule = Rule::Visible { read: it.op, key: it.key, path };
                        commits.derive(Derived { from, to, rule });
                    }
                }
            }
        }
        None
    }

    fn must_see(commits: &Commits<'_>, other: TxnId, reader: TxnId) -> bool {
        let index = commits.versions.index;
        index.written_by(reader).iter().any(|&key| index.writes(other, key))
    }

    fn missed_first(commits: &Commits<'_>, read: ReadId, path: &[Step]) -> Verdict {
        let proof = commits.prover().of_missed_first(read, path);
        let mut cycle = derivation::cycle(&proof).expect("the proof of a cycle");
        // It is told from the initial state on.
        cycle.edges.rotate_left(1);
        let anomaly = Self::anomaly(commits.versions.history, cycle);
        Verdict::Violated(violated(anomaly, Some(proof)))
    }

    fn anomaly(history: &History, cycle: Cycle) -> Anomaly {
        let overwriting = cycle.edges.iter().filter(|edge| edge.is_overwriting());
        let kinds = overwriting.map(|edge| kind(edge.premises()));
        let kind = kinds.max().unwrap_or(AnomalyKind::FracturedRead);
        anomaly::of_cycle(history, cycle, kind)
    }

    fn contradicting(_: &Commits<'_>) -> Option<Self> {
        None
    }

    fn asking(commits: &Commits<'_>) -> Self {
        let versions = commits.versions;
        let reads = (0..versions.seen.len() as u32).map(ReadId);
        let mut reads: Vec<_> = reads.map(|read| (versions.index.read(read).key, read)).collect();
        reads.sort_unstable();
        UpdateAtomic { reads, looked_at: vec![0; versions.history.key_count()], orders: 0 }
    }
}

/// What it is to miss a transaction that was visible this way.
fn kind(visible: &[Edge]) -> AnomalyKind {
    match visible {
        [only] if only.kind() == EdgeKind::Wr => AnomalyKind::FracturedRead,
        _ => AnomalyKind::ReadSkew,
    }
}

impl Asking for UpdateAtomic {
    fn ask(
        &mut self,
        questions: &mut Questions<'_>,
        solver: &mut Solver,
        moved: &[Node],
    ) -> Refined {
        self.orders += 1;
        let versions = questions.commits.versions;
        let mut refined = Refined::Complete;
        // What reads of repeated values saw may change although nothing moves.
        if questions.is_first() || !questions.commits.repeated.is_empty() {
            for key in versions.history.keys() {
                self.look_at(questions, solver, key, &mut refined);
            }
            return refined;
        }
        for txn in moved.iter().map(|&node| TxnId(node)) {
            if !versions.index.is_counted(txn) {
                continue;
            }
            for &key in versions.index.written_by(txn) {
                self.look_at(questions, solver, key, &mut refined);
            }
            for read in versions.index.reads_of(txn) {
                self.look_at(questions, solver, read.key, &mut refined);
            }
        }
        refined
    }
}

impl UpdateAtomic {
    fn look_at(
        &mut self,
        questions: &mut Questions<'_>,
        solver: &mut Solver,
        key: KeyId,
        refined: &mut Refined,
    ) {
        if std::mem::replace(&mut self.looked_at[key.index()], self.orders) == self.orders {
            return;
        }
        let versions = questions.commits.versions;
        let mut missed: Vec<Slot> = Vec::new();
        let first = self.reads.partition_point(|read| read.0 < key);
        for &(_, read) in self.reads[first..].iter().take_while(|read| read.0 == key) {
            let seen = questions.seen[read.0 as usize];
            let reader = versions.reader(read);
            if seen == NO_SLOT {
                continue;
            }
            let positions = solver.positions();
            let precedes = |slot: &&Slot| {
                positions[versions.writer(**slot).index()] < positions[reader.index()]
            };
            missed.clear();
            let later = questions.sorted.after(key, seen).iter();
            missed.extend(later.take_while(precedes).take(BETWEEN_MAX));
            for &slot in &missed {
                if ask_about(questions, solver, read, (seen, slot)) {
                    *refined = Refined::Added;
                }
            }
        }
    }
}

/// Adds the clause that a reader who saw one version should have seen another, which
/// precedes it; whether it should.
fn ask_about(
    questions: &mut Questions<'_>,
    solver: &mut Solver,
    read: ReadId,
    (seen, other): (Slot, Slot),
) -> bool {
    let commits = questions.commits;
    let versions = commits.versions;
    let it = versions.index.read(read);
    let (reader, other) = (versions.reader(read), versions.writer(other));
    let writer = (seen != INITIAL_SLOT).then(|| versions.writer(seen));
    let mut literals: Vec<_> = questions.taken(read).map(|taken| !taken).into_iter().collect();
    if UpdateAtomic::must_see(commits, other, reader) {
        let first = questions.before(solver, reader, other);
        literals.push(first);
        let input = if let Some(seen) = writer {
            literals.push(questions.before(solver, other, seen));
            Input::Clause(Clause::SeenOrAfter { read: it.op, key: it.key, writer: seen, other })
        } else {
            let taken = questions.taken(read);
            let initial = taken.map_or(Because::Known(Why::InitialRead(read)), Because::Literal);
            let edge =
                |from: TxnId, to: TxnId, because| CycleEdge { from: from.0, to: to.0, because };
            Input::Cycle(vec![
                edge(reader, other, initial),
                edge(other, reader, Because::Literal(!first)),
            ])
        };
        questions.clause(solver, &literals, input);
        return true;
    }
    let is_source = |source: &ReadId| {
        let seen = questions.seen[source.0 as usize];
        seen < INITIAL_SLOT && versions.writer(seen) == other
    };
    let Some(source) = versions.index.read_range(reader).map(ReadId).find(is_source) else {
        return false;
    };
    literals.extend(questions.taken(source).map(|taken| !taken));
    if let Some(writer) = writer {
        literals.push(questions.before(solver, other, writer));
    }
    let source = versions.index.read(source);
    let clause = Clause::SeenTogether {
        one: ChosenOrigin { read: it.op, key: it.key, writer },
        other: ChosenOrigin { read: source.op, key: source.key, writer: Some(other) },
    };
    questions.clause(solver, &literals, Input::Clause(clause));
    true
}
