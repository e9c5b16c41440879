//! What to call a read that no candidate explains, and what to tell about it.

use super::finding::{Candidate, Finding, Name, Role, Step};
use super::reads::{Reading, Scan, Shared};
use super::tables::{Fate, NONE, State, Txn, Version};
use super::trace::{Cell, Interval};
use super::verifier::Verifier;

impl Verifier {
    /// A read that no version explains: reported, unless versions may be missing.
    pub(super) fn reject(&mut self, reading: Reading, cell: Cell, snapshot: Interval, scan: &Scan) {
        if self.is_blind(&cell) {
            self.counters.unchecked.events_missing += 1;
            return;
        }
        if cell.content.condition().is_some() {
            let finding = self.misread(reading, cell, snapshot, scan, Name::MissedRow);
            self.report(finding);
            return;
        }
        if self.is_contradiction(reading, cell) {
            return;
        }
        let Some((version, name)) = self.likeliest(reading, &cell, snapshot, scan) else {
            // Whoever is gone may have written a row for the first time after that.
            if self.touched.is_any_gone() {
                self.counters.unchecked.events_missing += 1;
                return;
            }
            let finding = self.misread(reading, cell, snapshot, scan, Name::UnexplainedRead);
            self.suspect(finding);
            return;
        };
        let mut finding = self.misread(reading, cell, snapshot, scan, name);
        finding.others.extend(version.step(cell.row, Role::WroteWhatWasRead));
        if version.txn != NONE && self.tables.txns[version.txn].state != State::Open {
            finding.others.push(self.tables.txns[version.txn].end_step(Role::EndOfWriter));
        }
        if matches!(name, Name::StaleRead | Name::ReadSkew) {
            self.tell_replacer(&version, &cell, snapshot, &mut finding);
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
        &mut self,
        reading: Reading,
        cell: &Cell,
        snapshot: Interval,
        scan: &Scan,
    ) -> Option<(Version, Name)> {
        // As the snapshot was before other reads told about it.
        let whole = match self.tables.txns[reading.txn].snapshot {
            Some(_) => self.tables.txns[reading.txn].snapshot_event.2,
            None => reading.interval,
        };
        let alone = self.scan(reading, cell, whole, Shared::Nothing);
        if alone.matches > 0 && snapshot != reading.interval {
            return Some((self.tables.versions[alone.matching], Name::ReadSkew));
        }
        let mut best: Option<(u32, Version, Name)> = None;
        let mut consider = |version: &Version| {
            if version.content == cell.content {
                let (rank, name) = name_of(reading, version, scan);
                if best.is_none_or(|best| rank < best.0) {
                    best = Some((rank, *version, name));
                }
            }
        };
        let mut place = self.tables.items[cell.item as usize].newest;
        while place != NONE {
            consider(&self.tables.versions[place]);
            place = self.tables.versions[place].older;
        }
        if best.is_none() {
            let mut buried = self.graveyard.iter().rev();
            let is_it =
                |version: &&Version| version.item == cell.item && version.content == cell.content;
            let found = buried.find(is_it);
            return found.map(|version| (Version { txn: NONE, ..*version }, buried_name(version)));
        }
        best.map(|(_, version, name)| (version, name))
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
    fn tell_replacer(
        &self,
        read: &Version,
        cell: &Cell,
        snapshot: Interval,
        finding: &mut Finding,
    ) {
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
        step_of(&self.tables.txns[reading.txn], reading, cell)
    }
}

/// What a transaction read, as a step.
pub(super) fn step_of(txn: &Txn, reading: Reading, cell: Cell) -> Step {
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

fn candidate(version: &Version) -> Candidate {
    Candidate {
        content: version.content,
        writer: (!version.is_initial()).then_some((version.client, version.number)),
        committed: version.commit,
    }
}

/// What reading this version would be; the lower the number the likelier.
fn name_of(reading: Reading, version: &Version, scan: &Scan) -> (u32, Name) {
    if version.txn == reading.txn {
        return (2, Name::FutureRead);
    }
    match version.fate {
        Fate::Aborted => (6, Name::AbortedRead),
        Fate::Pending => (5, Name::DirtyRead),
        Fate::Intermediate => (4, Name::IntermediateRead),
        Fate::Committed | Fate::Lost => {
            if version.commit.completed < scan.pivot || version.successor != NONE {
                (1, Name::StaleRead)
            } else if version.commit.invoked > reading.interval.completed {
                (5, Name::DirtyRead)
            } else {
                (3, Name::FutureRead)
            }
        }
    }
}

/// What reading a version is that was given up.
fn buried_name(version: &Version) -> Name {
    match version.fate {
        Fate::Aborted | Fate::Pending => Name::AbortedRead,
        Fate::Intermediate => Name::IntermediateRead,
        Fate::Committed | Fate::Lost => Name::StaleRead,
    }
}
