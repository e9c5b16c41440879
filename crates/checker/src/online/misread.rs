//! What to call a read that no candidate explains, and what to tell about it.

use super::finding::{Candidate, Finding, Name, Role, Step};
use super::reads::{Reading, Scan};
use super::tables::{Fate, NONE, State, Version};
use super::trace::{Cell, Interval};
use super::verifier::Verifier;

impl Verifier {
    /// A read that no version explains: reported, unless versions may be missing.
    pub(super) fn reject(&mut self, reading: Reading, cell: Cell, snapshot: Interval, scan: &Scan) {
        if self.is_blind() {
            self.counters.unchecked += 1;
            return;
        }
        let Some((slot, name)) = self.likeliest(reading, &cell, snapshot, scan) else {
            let finding = self.misread(reading, cell, snapshot, scan, Name::UnexplainedRead);
            self.report(finding);
            return;
        };
        let mut finding = self.misread(reading, cell, snapshot, scan, name);
        let version = &self.tables.versions[slot];
        finding.others.extend(version.step(cell.row, Role::WroteWhatWasRead));
        if version.txn != NONE && self.tables.txns[version.txn].state != State::Open {
            finding.others.push(self.tables.txns[version.txn].end_step(Role::EndOfWriter));
        }
        if matches!(name, Name::StaleRead | Name::ReadSkew) {
            self.tell_replacer(slot, &cell, snapshot, &mut finding);
        }
        self.report(finding);
    }

    /// A transaction that does not see what it wrote.
    pub(super) fn report_own_write_missed(&mut self, reading: Reading, cell: Cell, own: u32) {
        let version = &self.tables.versions[own];
        let others = version.step(cell.row, Role::Replaced).into_iter().collect();
        let candidates = vec![candidate(version)];
        let finding = Finding {
            name: Name::OwnWriteMissed,
            offender: self.read_step(reading, cell),
            others,
            candidates,
            snapshot: None,
            dependencies: Vec::new(),
        };
        self.report(finding);
    }

    /// The version that was most likely read, and what that makes the read.
    fn likeliest(
        &self,
        reading: Reading,
        cell: &Cell,
        snapshot: Interval,
        scan: &Scan,
    ) -> Option<(u32, Name)> {
        let mut best: Option<(u32, u32, Name)> = None;
        let mut place = self.tables.items[cell.item as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            if version.content == cell.content {
                let (rank, name) = self.name_of(reading, version, snapshot, scan);
                if best.is_none_or(|best| rank < best.0) {
                    best = Some((rank, place, name));
                }
            }
            place = version.older;
        }
        best.map(|(_, slot, name)| (slot, name))
    }

    /// What reading this version would be; the lower the number the likelier.
    fn name_of(
        &self,
        reading: Reading,
        version: &Version,
        snapshot: Interval,
        scan: &Scan,
    ) -> (u32, Name) {
        let reader = &self.tables.txns[reading.txn];
        if version.txn == reading.txn {
            return (2, Name::FutureRead);
        }
        match version.fate {
            Fate::Aborted => (6, Name::AbortedRead),
            Fate::Pending => (5, Name::DirtyRead),
            Fate::Intermediate => (4, Name::IntermediateRead),
            Fate::Committed | Fate::Lost => {
                // As it was before other reads narrowed it.
                let whole = match reader.snapshot {
                    Some(_) => reader.snapshot_event.2,
                    None => reading.interval,
                };
                let is_narrowed = snapshot != whole;
                let in_whole = version.commit.invoked <= whole.completed
                    && version.commit.completed >= whole.invoked;
                if is_narrowed && in_whole {
                    (0, Name::ReadSkew)
                } else if version.commit.completed < scan.pivot || version.successor != NONE {
                    (1, Name::StaleRead)
                } else if version.commit.invoked > reading.interval.completed {
                    (5, Name::DirtyRead)
                } else {
                    (3, Name::FutureRead)
                }
            }
        }
    }

    fn misread(
        &self,
        reading: Reading,
        cell: Cell,
        snapshot: Interval,
        scan: &Scan,
        name: Name,
    ) -> Finding {
        let mut candidates = Vec::new();
        let mut place = self.tables.items[cell.item as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            if version.may_be_seen()
                && version.commit.invoked <= snapshot.completed
                && version.commit.completed >= scan.pivot
            {
                candidates.push(candidate(version));
            }
            place = version.older;
        }
        let reader = &self.tables.txns[reading.txn];
        let mut others = Vec::new();
        if reader.snapshot.is_some() {
            let (kind, operation, interval) = reader.snapshot_event;
            let (client, txn, role) = (reader.client, reader.number, Role::Snapshot);
            others.push(Step { client, txn, operation, kind, interval, cell: None, role });
        }
        Finding {
            name,
            offender: self.read_step(reading, cell),
            others,
            candidates,
            snapshot: Some(snapshot),
            dependencies: Vec::new(),
        }
    }

    /// What certainly replaced a version before the snapshot.
    fn tell_replacer(&self, slot: u32, cell: &Cell, snapshot: Interval, finding: &mut Finding) {
        let read = &self.tables.versions[slot];
        let mut place = self.tables.items[cell.item as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            let replaces = version.fate == Fate::Committed
                && version.commit.completed < snapshot.invoked
                && (version.commit.invoked > read.commit.completed || read.successor == place);
            if replaces {
                finding.others.extend(version.step(cell.row, Role::Replaced));
                if version.txn != NONE {
                    let end = self.tables.txns[version.txn].end_step(Role::EndOfReplacer);
                    finding.others.push(end);
                }
                return;
            }
            place = version.older;
        }
    }

    fn read_step(&self, reading: Reading, cell: Cell) -> Step {
        let txn = &self.tables.txns[reading.txn];
        Step {
            client: txn.client,
            txn: txn.number,
            operation: reading.operation,
            kind: reading.kind,
            interval: reading.interval,
            cell: Some(cell),
            role: Role::Offender,
        }
    }
}

fn candidate(version: &Version) -> Candidate {
    Candidate {
        content: version.content,
        writer: (!version.is_initial()).then_some((version.client, version.number)),
        committed: version.commit,
    }
}
