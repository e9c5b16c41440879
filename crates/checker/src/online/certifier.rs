//! Serialization certifier: what no serial order explains must have been refused.
//!
//! **Definition.** Committed transactions depend on one another: one reads what another
//! wrote, replaces it, or replaces what another read. Dependencies form no cycle. A
//! database that looks for *dangerous structures* also refuses two anti-dependencies in
//! a row between concurrent transactions if the last of the three commits first, unless
//! the first of them only reads and began before that commit [Ports and Grittner, VLDB
//! 2012, §3.3 and §4.1]. One that *validates* refuses a transaction that writes if
//! anything that it read was replaced before it committed. One that goes by *timestamps* gives
//! each transaction one of the time between its begin and its end, and what depends on a
//! transaction has a later one: so nothing depends, over however many others, on what began
//! after it was over.
//!
//! **Method.** Only certain dependencies count: what one version alone explains, and
//! versions whose order is known. They come from the other mechanisms as transactions
//! are judged [Li et al., ICDE 2024, §V-D].

use super::finding::{Dependency, DependencyKind, Finding, Name, Role};
use super::graph::{Added, Edge};
use super::profile::Certifier;
use super::tables::{Fate, NONE, State, Version};
use super::trace::{ALWAYS, Interval, NEVER};
use super::verifier::Verifier;

/// That a transaction read a version, and nobody else can have written what it read.
pub(super) struct Note {
    pub(super) version: u32,
    pub(super) reader: u32,
    /// Whether the intervals alone said so.
    pub(super) is_certain: bool,
    pub(super) next_of_txn: u32,
    pub(super) next_reader: u32,
    pub(super) previous_reader: u32,
}

impl Verifier {
    /// Notes what a transaction read.
    pub(super) fn note_read(&mut self, reader: u32, version: u32, is_certain: bool) {
        if !self.profile.notes_reads() {
            return;
        }
        let next_of_txn = self.tables.txns[reader].notes;
        let note = self.notes.insert(Note {
            version,
            reader,
            is_certain,
            next_of_txn,
            next_reader: NONE,
            previous_reader: NONE,
        });
        self.tables.txns[reader].notes = note;
        self.link_reader(note, version);
    }

    /// Adds what a committed transaction depends on, and what depends on it.
    pub(super) fn certify(&mut self, txn: u32) {
        if self.profile.certifier == Certifier::None {
            return;
        }
        let mut place = self.tables.txns[txn].notes;
        while place != NONE {
            let next = self.notes[place].next_of_txn;
            self.certify_read(txn, place);
            place = next;
        }
        let mut place = self.tables.txns[txn].versions;
        while place != NONE {
            let version = &self.tables.versions[place];
            let next = version.next_of_txn;
            if version.fate == Fate::Committed {
                self.certify_write(txn, place);
            }
            place = next;
        }
        self.certify_conditions(txn);
    }

    /// The reader comes after the writer, and before whoever replaced what it read.
    fn certify_read(&mut self, reader: u32, note: u32) {
        let seen = self.notes[note].version;
        let is_certain = self.notes[note].is_certain;
        if seen == NONE {
            return;
        }
        let (writer, item) = (self.tables.versions[seen].txn, self.tables.versions[seen].item);
        self.depend(writer, reader, DependencyKind::WriteRead, item);
        let newest = self.tables.items[item as usize].newest;
        // Nothing that was over before then replaced what was read.
        let since = match self.tables.versions[seen] {
            Version { successor: NONE, commit, .. } => commit.invoked,
            _ => ALWAYS,
        };
        // What follows all that follows what was read needs no dependency of its own.
        let mut earliest = NEVER;
        let mut place = newest;
        while place != NONE && self.tables.versions[place].settled >= since {
            self.counters.looked_at += 1;
            let version = &self.tables.versions[place];
            if self.replaces(seen, place) {
                earliest = earliest.min(version.commit.completed);
            }
            place = version.older;
        }
        place = newest;
        while place != NONE && self.tables.versions[place].settled >= since {
            let version = &self.tables.versions[place];
            let (replacer, older) = (version.txn, version.older);
            if replacer != reader
                && version.commit.invoked <= earliest
                && self.replaces(seen, place)
            {
                let is_shown = self.tables.versions[seen].successor == place;
                if self.depend(reader, replacer, DependencyKind::ReadWrite, item) {
                    self.count_read_write(is_certain, is_shown);
                }
            }
            place = older;
        }
    }

    /// The writer comes after those whose versions it replaced, and after their readers.
    fn certify_write(&mut self, writer: u32, own: u32) {
        let item = self.tables.versions[own].item;
        let newest = self.tables.items[item as usize].newest;
        let mut latest = ALWAYS;
        let mut place = newest;
        while place != NONE && self.tables.versions[place].settled >= latest {
            self.counters.looked_at += 1;
            if self.follows(place, own) {
                latest = latest.max(self.tables.versions[place].commit.invoked);
            }
            place = self.tables.versions[place].older;
        }
        // Neither replaced last nor committed at the same time.
        let since = latest.min(self.tables.versions[own].commit.invoked);
        place = newest;
        while place != NONE && self.tables.versions[place].settled >= since {
            let version = &self.tables.versions[place];
            let (replaced, older) = (version.txn, version.older);
            let (mut note, is_shown) = (version.readers, version.successor == own);
            if version.commit.completed >= latest && self.follows(place, own) {
                self.depend(replaced, writer, DependencyKind::WriteWrite, item);
                if !self.replaces(place, own) {
                    note = NONE;
                }
                while note != NONE {
                    let (reader, is_certain) =
                        (self.notes[note].reader, self.notes[note].is_certain);
                    let next = self.notes[note].next_reader;
                    if reader != writer
                        && self.depend(reader, writer, DependencyKind::ReadWrite, item)
                    {
                        self.count_read_write(is_certain, is_shown);
                    }
                    note = next;
                }
            } else if place != own && overlap(version, &self.tables.versions[own]) {
                while note != NONE {
                    self.counters.read_write.uncertain += 1;
                    note = self.notes[note].next_reader;
                }
            }
            place = older;
        }
    }

    /// Whether one committed version certainly follows another.
    fn follows(&self, first: u32, second: u32) -> bool {
        let (before, after) = (&self.tables.versions[first], &self.tables.versions[second]);
        first != second
            && after.fate == Fate::Committed
            && before.fate == Fate::Committed
            && (before.commit.completed < after.commit.invoked || before.successor == second)
    }

    /// Whether a version that certainly follows another differs from it. A reader of the one may
    /// as well have read the other if not: some databases do not even write what is there.
    fn replaces(&self, first: u32, second: u32) -> bool {
        let content = |place: u32| self.tables.versions[place].content;
        self.follows(first, second) && content(first) != content(second)
    }

    fn count_read_write(&mut self, is_certain: bool, is_shown: bool) {
        let count = &mut self.counters.read_write;
        match (is_certain, is_shown) {
            (_, true) => count.by_locks += 1,
            (true, false) => count.certain += 1,
            (false, false) => count.by_content += 1,
        }
    }

    /// Adds a dependency if both are in the graph; whether it is new.
    pub(super) fn depend(&mut self, from: u32, to: u32, kind: DependencyKind, item: u32) -> bool {
        let is_in_graph = |txn: u32| txn != NONE && self.tables.txns[txn].node.is_in_graph();
        if from == to || !is_in_graph(from) || !is_in_graph(to) {
            return false;
        }
        match self.graph.depend(&mut self.tables.txns, (from, to), kind, item) {
            Added::Known => false,
            Added::New => {
                if self.profile.certifier == Certifier::TimestampOrder {
                    self.raise_timestamps(from, to);
                }
                if kind == DependencyKind::ReadWrite {
                    self.judge_anti_dependency(from, to, item);
                }
                true
            }
            Added::Cycle(cycle) => {
                if self.last_cycle != (from, to) {
                    self.last_cycle = (from, to);
                    self.report_structure(Name::SerializationCycle, &cycle);
                }
                false
            }
        }
    }

    fn judge_anti_dependency(&mut self, from: u32, to: u32, item: u32) {
        match self.profile.certifier {
            Certifier::None | Certifier::Cycles | Certifier::TimestampOrder => {}
            Certifier::Validation => {
                let (reader, writer) = (&self.tables.txns[from], &self.tables.txns[to]);
                if reader.has_written && writer.commit.completed < reader.commit.invoked {
                    let newest = self.graph.outgoing(reader).next();
                    if let Some(edge) = newest {
                        self.report_structure(Name::FailedValidation, &[edge]);
                    }
                }
            }
            Certifier::DangerousStructure => self.judge_structures(from, to, item),
        }
    }

    /// What depends on a transaction has no earlier timestamp, and so on.
    fn raise_timestamps(&mut self, from: u32, to: u32) {
        let mut raised = vec![(from, to)];
        while let Some((from, to)) = raised.pop() {
            let least = self.tables.txns[from].timestamp;
            let own = &mut self.tables.txns[to];
            if own.timestamp >= least {
                continue;
            }
            own.timestamp = least;
            // One of the two may be early, the other late.
            let latest = own.end.completed.saturating_add(self.profile.skew.saturating_mul(2));
            if least > latest {
                let edge = self.graph.outgoing(&self.tables.txns[from]).find(|edge| edge.to == to);
                // What follows from it is no news.
                if let Some(edge) = edge {
                    self.report_structure(Name::TimestampInversion, &[edge]);
                }
                continue;
            }
            let next = self.graph.outgoing(&self.tables.txns[to]).map(|edge| (to, edge.to));
            raised.extend(next);
        }
    }

    /// Looks for structures that a new anti-dependency completes.
    fn judge_structures(&mut self, from: u32, to: u32, item: u32) {
        let is_anti = |edge: &Edge| edge.kind == DependencyKind::ReadWrite;
        let new = self.graph.outgoing(&self.tables.txns[from]).next();
        let Some(new) = new.filter(|edge| edge.to == to && edge.item == item) else { return };
        let after = self.graph.outgoing(&self.tables.txns[to]).filter(is_anti);
        let after = after.map(|edge| [new, edge]);
        let before = self.graph.incoming(&self.tables.txns[from]).filter(is_anti);
        let before = before.map(|edge| [edge, new]);
        let dangerous = after.chain(before).find(|pair| self.is_dangerous(pair));
        if let Some(pair) = dangerous {
            self.report_structure(Name::DangerousStructure, &pair);
        }
    }

    /// Whether two anti-dependencies had to be refused, wherever the instants lie.
    fn is_dangerous(&self, pair: &[Edge; 2]) -> bool {
        let txn = |txn: u32| &self.tables.txns[txn];
        let (first, pivot, last) = (txn(pair[0].from), txn(pair[0].to), txn(pair[1].to));
        let certainly_before = |one: Interval, two: Interval| one.completed < two.invoked;
        let (Some(first_snapshot), Some(pivot_snapshot), Some(last_snapshot)) =
            (first.snapshot, pivot.snapshot, last.snapshot)
        else {
            return false;
        };
        // An anti-dependency says that the reader's snapshot comes before the writer's
        // commit. They are concurrent if the converse holds too.
        let concurrent = certainly_before(pivot_snapshot, first.end)
            && certainly_before(last_snapshot, pivot.end);
        let last_is_first = certainly_before(last.end, pivot.end)
            && (pair[0].from == pair[1].to || certainly_before(last.end, first.end));
        let excepted = !first.has_written && !certainly_before(last.end, first_snapshot);
        concurrent && last_is_first && !excepted
    }

    fn report_structure(&mut self, name: Name, edges: &[Edge]) {
        let id = |txn: u32| (self.tables.txns[txn].client, self.tables.txns[txn].number);
        let dependencies = edges.iter().map(|edge| Dependency {
            from: id(edge.from),
            to: id(edge.to),
            kind: edge.kind,
            item: edge.item,
        });
        let mut members: Vec<u32> = edges.iter().flat_map(|edge| [edge.from, edge.to]).collect();
        members.sort_unstable();
        members.dedup();
        // The last that could have been refused.
        members.sort_by_key(|&txn| std::cmp::Reverse(self.tables.txns[txn].end.invoked));
        let mut ends = members.iter().map(|&txn| self.tables.txns[txn].end_step(Role::Next));
        let Some(offender) = ends.next() else { return };
        let finding = Finding {
            name,
            offender: super::finding::Step { role: Role::Offender, ..offender },
            others: ends.collect(),
            candidates: Vec::new(),
            snapshot: None,
            dependencies: dependencies.collect(),
        };
        self.report(finding);
    }

    fn link_reader(&mut self, note: u32, version: u32) {
        let next = self.tables.versions[version].readers;
        self.notes[note].next_reader = next;
        self.notes[note].previous_reader = NONE;
        if next != NONE {
            self.notes[next].previous_reader = note;
        }
        self.tables.versions[version].readers = note;
    }

    /// Counts how certain the places of a transaction's versions are.
    pub(super) fn count_write_write(&mut self, txn: u32) {
        let mut own = self.tables.txns[txn].versions;
        while own != NONE {
            let version = &self.tables.versions[own];
            if version.fate == Fate::Committed {
                let mut place = self.tables.items[version.item as usize].newest;
                let (mut uncertain, mut decided, mut preceded) = (0, false, false);
                while place != NONE {
                    let other = &self.tables.versions[place];
                    if preceded && other.settled < version.commit.invoked {
                        break;
                    }
                    self.counters.looked_at += 1;
                    if place != own && other.fate == Fate::Committed && !other.is_initial() {
                        if other.commit.completed < version.commit.invoked {
                            preceded = true;
                        } else if other.successor == own || version.successor == place {
                            decided = true;
                        } else if overlap(other, version) && self.is_judged(other.txn) {
                            uncertain += 1;
                        }
                    }
                    place = other.older;
                }
                let count = &mut self.counters.write_write;
                count.uncertain += uncertain;
                count.certain += u64::from(preceded && uncertain == 0 && !decided);
            }
            own = self.tables.versions[own].next_of_txn;
        }
    }

    fn is_judged(&self, txn: u32) -> bool {
        txn == NONE || self.tables.txns[txn].is_judged()
    }

    /// A commit without an answer took effect, as a read shows.
    pub(super) fn show_committed(&mut self, txn: u32) {
        if self.tables.txns[txn].state != State::Lost {
            return;
        }
        self.tables.show_committed(txn);
        self.enter_graph(txn);
    }

    /// A committed transaction takes part in dependencies.
    pub(super) fn enter_graph(&mut self, txn: u32) {
        if self.profile.certifier != Certifier::None {
            self.graph.add(&mut self.tables.txns, txn);
        }
    }
}

/// Whether commits overlap.
fn overlap(one: &Version, two: &Version) -> bool {
    one.may_be_seen()
        && two.may_be_seen()
        && one.commit.invoked <= two.commit.completed
        && two.commit.invoked <= one.commit.completed
}
