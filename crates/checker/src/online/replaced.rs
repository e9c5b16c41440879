//! As read: who writes what it has read replaces what it has read, and nothing else.
//!
//! **Definition.** Where rows are written as they were read, a committed transaction that read an
//! item and then wrote it left in it something else than it had read only if nobody else did so
//! between the instant of that read and its commit.
//!
//! That is first updater wins for databases whose snapshots lie where their own clocks say, or
//! may be moved: no instant is known that all reads of a transaction have in common, but what
//! was read and then replaced shows which version it was.
//!
//! **Choice.** Rows are told apart by their keys: of two transactions that both find no row and
//! insert it, one is refused. Items are columns if a trace tells columns, which some databases
//! lock by themselves: `A: r(x.a) w(x.b)` and `B: w(x.a)` are allowed.
//!
//! **Method.** Notes say which version each read saw, where one alone explains it. When a
//! transaction is judged, another one certainly came between what it read and what it wrote if
//! it certainly followed the former and certainly preceded the latter, as the intervals of the
//! commits say. Two that read the same version and replaced it need no times: whichever came
//! second, the other had come between.

use super::finding::{Dependency, DependencyKind, Finding, Name, Role, Step};
use super::tables::{Fate, NONE, State};
use super::verifier::Verifier;

impl Verifier {
    /// Compares what a committed transaction replaced with what it had read of it.
    pub(super) fn judge_as_read(&mut self, txn: u32) {
        let mut told: Vec<u32> = Vec::new();
        let mut note = self.tables.txns[txn].notes;
        while note != NONE {
            let read = self.notes[note].version;
            note = self.notes[note].next_of_txn;
            if read == NONE || told.contains(&self.tables.versions[read].item) {
                continue;
            }
            let Some(own) = self.replaced_by(txn, read) else { continue };
            if let Some((between, is_ordered)) = self.between(read, own) {
                told.push(self.tables.versions[read].item);
                self.report_between(own, between, is_ordered);
            }
        }
    }

    /// What a transaction left in the item of this version, if it is something else.
    fn replaced_by(&self, txn: u32, read: u32) -> Option<u32> {
        let read = &self.tables.versions[read];
        let mut place = self.tables.txns[txn].versions;
        while place != NONE {
            let version = &self.tables.versions[place];
            if version.item == read.item && version.fate == Fate::Committed {
                return (version.content != read.content).then_some(place);
            }
            place = version.next_of_txn;
        }
        None
    }

    /// A version that certainly lies between what a transaction read and its own, or would if
    /// the other did not: whether the former is known.
    fn between(&mut self, read: u32, own: u32) -> Option<(u32, bool)> {
        let mut place = self.tables.items[self.tables.versions[own].item as usize].newest;
        while place != NONE {
            self.counters.looked_at += 1;
            let [first, second, last] =
                [read, place, own].map(|place| &self.tables.versions[place]);
            let is_other = place != read
                && place != own
                && second.fate == Fate::Committed
                && second.content != first.content;
            if is_other {
                let has_read = self.has_read(second.txn, read);
                let is_judged = second.txn == NONE || self.tables.txns[second.txn].is_judged();
                let follows = has_read || first.commit.completed < second.commit.invoked;
                let precedes = second.commit.completed < last.commit.invoked;
                // One that has read it too and is not judged yet is told of then.
                if follows && (is_judged || !has_read) && (precedes || has_read) {
                    return Some((place, precedes));
                }
            }
            place = second.older;
        }
        None
    }

    /// Whether a transaction certainly read a version.
    fn has_read(&self, txn: u32, version: u32) -> bool {
        if txn == NONE {
            return false;
        }
        let mut note = self.tables.txns[txn].notes;
        while note != NONE {
            if self.notes[note].version == version {
                return true;
            }
            note = self.notes[note].next_of_txn;
        }
        false
    }

    fn report_between(&mut self, own: u32, between: u32, is_ordered: bool) {
        let ends = |place: u32| {
            let txn = self.tables.versions[place].txn;
            if txn == NONE { 0 } else { self.tables.txns[txn].end.invoked }
        };
        let (later, earlier) =
            if is_ordered || ends(own) >= ends(between) { (own, between) } else { (between, own) };
        let id = |place: u32| {
            let version = &self.tables.versions[place];
            (version.client, version.number)
        };
        let item = self.tables.versions[own].item;
        // If both have read it, each comes before the other.
        let back = if is_ordered { DependencyKind::WriteWrite } else { DependencyKind::ReadWrite };
        let dependencies = vec![
            Dependency { from: id(later), to: id(earlier), kind: DependencyKind::ReadWrite, item },
            Dependency { from: id(earlier), to: id(later), kind: back, item },
        ];
        let mut others: Vec<Step> =
            self.write_step(earlier, Role::OtherWrite).into_iter().collect();
        let txn = self.tables.versions[earlier].txn;
        if txn != NONE && self.tables.txns[txn].state != State::Open {
            others.push(self.tables.txns[txn].end_step(Role::EndOfOther));
        }
        let Some(offender) = self.write_step(later, Role::Offender) else { return };
        self.report(Finding {
            name: Name::LostUpdate,
            offender,
            others,
            candidates: Vec::new(),
            snapshot: None,
            dependencies,
        });
    }

    fn write_step(&self, place: u32, role: Role) -> Option<Step> {
        let version = &self.tables.versions[place];
        version.step(self.tables.items[version.item as usize].row, role)
    }
}
