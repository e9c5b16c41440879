//! What the verifier remembers: transactions, versions of items, uses of rows.
//!
//! Everything is a slot of a flat table and refers to other slots by number. A version
//! stands in two lists, that of its item, newest first, and that of its transaction; a
//! use of a row likewise. Slots that were given back are used again, so that memory
//! follows what is kept and not what has passed.

use super::finding::{Role, Step};
use super::meeting::Meeting;
use super::slab::Slab;
use super::trace::{ALWAYS, Cell, ClientId, Content, EventKind, Interval, NEVER, Time};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Committed,
    Aborted,
    /// Its commit may have taken effect.
    Lost,
}

/// What is still to be done about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It waits to be judged.
    Waiting,
    /// Everything about it has been judged.
    Judged,
    /// Nothing that is still to come can be concurrent with it.
    Expired,
}

/// A transaction.
pub(super) struct Txn {
    pub(super) client: ClientId,
    pub(super) number: u64,
    pub(super) state: State,
    /// Reads and writes so far.
    pub(super) operations: u32,
    pub(super) has_written: bool,
    pub(super) stage: Stage,
    /// Whether it is among those that hold the horizon.
    pub(super) is_queued: bool,
    /// Earliest instant at which it can have done anything.
    pub(super) start: Time,
    /// When its last event was answered.
    pub(super) answered: Time,
    /// The earliest that it may have, where transactions have timestamps.
    pub(super) timestamp: Time,
    /// Where its snapshot lies, as far as that was narrowed down.
    pub(super) snapshot: Option<Interval>,
    /// The event that took the snapshot.
    pub(super) snapshot_event: (EventKind, u32, Interval),
    /// Its last event.
    pub(super) end: Interval,
    /// Where its commit lies, as far as that was narrowed down.
    pub(super) commit: Interval,
    pub(super) versions: u32,
    pub(super) uses: u32,
    /// Versions that it read and nobody else can have written; for the certifier.
    pub(super) notes: u32,
    /// What its reads told about its snapshot.
    pub(super) relations: u32,
    pub(super) node: super::graph::Node,
}

impl Txn {
    pub(super) fn new(client: ClientId, number: u64, interval: Interval) -> Txn {
        Txn {
            client,
            number,
            state: State::Open,
            operations: 0,
            has_written: false,
            stage: Stage::Waiting,
            is_queued: true,
            start: interval.invoked,
            answered: interval.invoked,
            timestamp: interval.invoked,
            snapshot: None,
            snapshot_event: (EventKind::Begin, 0, interval),
            end: Interval { invoked: NEVER, completed: NEVER },
            commit: Interval { invoked: NEVER, completed: NEVER },
            versions: NONE,
            uses: NONE,
            notes: NONE,
            relations: NONE,
            node: super::graph::Node::NONE,
        }
    }

    pub(super) fn is_judged(&self) -> bool {
        self.stage >= Stage::Judged
    }

    /// The event that ended it.
    pub(super) fn end_step(&self, role: Role) -> Step {
        Step {
            client: self.client,
            txn: self.number,
            operation: self.operations + 1,
            kind: match self.state {
                State::Committed => EventKind::Commit,
                State::Aborted => EventKind::Abort,
                State::Open | State::Lost => EventKind::Lost,
            },
            interval: self.end,
            cell: None,
            role,
        }
    }
}

/// What has become of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its transaction is open.
    Pending,
    /// It is visible from its commit on.
    Committed,
    /// It may be, from its commit on.
    Lost,
    /// It never was.
    Aborted,
    /// Its own transaction replaced it.
    Intermediate,
}

/// A version of an item.
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub(super) content: Content,
    /// Where its commit lies; [`NEVER`] on both sides until there is one.
    pub(super) commit: Interval,
    /// When it was written.
    pub(super) written: Interval,
    pub(super) number: u64,
    pub(super) client: ClientId,
    pub(super) item: u32,
    /// [`NONE`] if its transaction is forgotten, or there was none.
    pub(super) txn: u32,
    pub(super) older: u32,
    pub(super) next_of_txn: u32,
    /// A version that is known to follow although their commits overlap.
    pub(super) successor: u32,
    /// Notes of transactions that read it.
    pub(super) readers: u32,
    pub(super) operation: u32,
    pub(super) fate: Fate,
    /// No commit of this version and of all older ones of its item lies after this; [`NEVER`]
    /// while that is not known.
    ///
    /// Invariant: all of them are of judged transactions, so that nobody who has written one
    /// is still to read. Commits are narrowed and versions given up, which keeps it true.
    pub(super) settled: Time,
}

impl Version {
    /// What was there before everything.
    pub(super) fn initial(item: u32, content: Content) -> Version {
        let before = Interval { invoked: ALWAYS, completed: ALWAYS };
        Version {
            content,
            commit: before,
            written: before,
            number: 0,
            client: ClientId(NONE),
            item,
            txn: NONE,
            older: NONE,
            next_of_txn: NONE,
            successor: NONE,
            readers: NONE,
            operation: 0,
            fate: Fate::Committed,
            settled: ALWAYS,
        }
    }

    /// Whether it was there before everything.
    pub(super) fn is_initial(&self) -> bool {
        self.client.0 == NONE
    }

    /// Whether others may see it at some time.
    #[inline]
    pub(super) fn may_be_seen(&self) -> bool {
        matches!(self.fate, Fate::Committed | Fate::Lost)
    }

    /// Whether a read that saw `content` may have seen it.
    #[inline]
    pub(super) fn explains(&self, content: Content) -> bool {
        if self.content == content || self.content == Content::UNKNOWN {
            return true;
        }
        // What a read by condition does not list may be anything that does not meet it.
        content.condition().is_some_and(|condition| condition.holds(self.content) != Some(true))
    }

    /// The write.
    pub(super) fn step(&self, row: u32, role: Role) -> Option<Step> {
        if self.is_initial() {
            return None;
        }
        Some(Step {
            client: self.client,
            txn: self.number,
            operation: self.operation,
            kind: EventKind::Write,
            interval: self.written,
            cell: Some(Cell { item: self.item, row, content: self.content }),
            role,
        })
    }
}

/// How a transaction uses a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// Reads it, and nobody may write it.
    Shared,
    /// Reads it, and nobody else may lock it.
    Exclusive,
    /// Writes it.
    Written,
}

/// A transaction's use of a row.
pub(super) struct RowUse {
    pub(super) row: u32,
    pub(super) txn: u32,
    pub(super) mode: Mode,
    /// The operation that took the lock in its present mode.
    pub(super) operation: u32,
    pub(super) kind: EventKind,
    /// When the lock was taken in its present mode.
    pub(super) acquired: Interval,
    /// When it was taken in any.
    pub(super) first: Interval,
    /// From here on it matters to nobody who comes later. Until the transaction is
    /// judged, that is not known.
    pub(super) over: Time,
    /// Its neighbours in one of the two lists of its row.
    pub(super) newer: u32,
    pub(super) older: u32,
    pub(super) next_of_txn: u32,
}

/// The uses of a row, in two lists.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Those of transactions that are not judged, the newest first.
    pub(super) present: u32,
    /// Those of judged ones, the one that is over last first.
    pub(super) past: u32,
}

/// All of it.
pub(super) struct Tables {
    pub(super) txns: Slab<Txn>,
    pub(super) versions: Slab<Version>,
    pub(super) uses: Slab<RowUse>,
    /// The newest version of each item, and the item's row.
    pub(super) items: Vec<Item>,
    /// Who uses each row.
    pub(super) rows: Vec<Row>,
    pub(super) items_known: u64,
    pub(super) meeting: Meeting,
    unwritten: Content,
}

/// The newest version of an item, and its row.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) newest: u32,
    pub(super) row: u32,
    /// Versions in its list.
    pub(super) kept: u32,
    /// Those of transactions that were given back since it was last looked for what to give up.
    pub(super) released: u32,
}

impl Item {
    const UNKNOWN: Item = Item { newest: NONE, row: NONE, kept: 0, released: 0 };
}

impl Tables {
    /// Empty ones; items that nobody has written hold this.
    pub(super) fn new(unwritten: Content) -> Tables {
        Tables {
            txns: Slab::new(),
            versions: Slab::new(),
            uses: Slab::new(),
            items: Vec::new(),
            rows: Vec::new(),
            items_known: 0,
            meeting: Meeting::default(),
            unwritten,
        }
    }

    /// The newest version of an item, which is made known if it was not.
    #[inline]
    pub(super) fn newest(&mut self, cell: &Cell) -> u32 {
        let place = cell.item as usize;
        match self.items.get(place) {
            Some(item) if item.newest != NONE => item.newest,
            _ => self.make_known(cell, self.unwritten),
        }
    }

    /// Makes an item known that holds this content.
    pub(super) fn make_known(&mut self, cell: &Cell, content: Content) -> u32 {
        let place = cell.item as usize;
        if self.items.len() <= place {
            self.items.resize(place + 1, Item::UNKNOWN);
        }
        let newest = self.versions.insert(Version::initial(cell.item, content));
        self.meeting.note(content, cell.item);
        self.items[place] = Item { newest, row: cell.row, kept: 1, released: 0 };
        self.items_known += 1;
        newest
    }

    /// Adds a version that `txn` wrote with this operation.
    pub(super) fn write(&mut self, txn: u32, operation: u32, written: Interval, cell: &Cell) {
        let older = self.newest(cell);
        let own = &mut self.txns[txn];
        let mut place = if own.versions == NONE { NONE } else { older };
        // What is settled is none of its own, nor is anything older.
        while place != NONE && self.versions[place].settled == NEVER {
            let version = &mut self.versions[place];
            if version.txn == txn && version.fate == Fate::Pending {
                version.fate = Fate::Intermediate;
                break;
            }
            place = version.older;
        }
        let version = Version {
            content: cell.content,
            commit: Interval { invoked: NEVER, completed: NEVER },
            written,
            number: own.number,
            client: own.client,
            item: cell.item,
            txn,
            older,
            next_of_txn: own.versions,
            successor: NONE,
            readers: NONE,
            operation,
            fate: Fate::Pending,
            settled: NEVER,
        };
        self.txns[txn].versions = self.add(version);
    }

    /// Adds a version to its item's list, as the newest.
    pub(super) fn add(&mut self, version: Version) -> u32 {
        let slot = self.versions.insert(version);
        self.meeting.note(version.content, version.item);
        let item = &mut self.items[version.item as usize];
        item.newest = slot;
        item.kept += 1;
        slot
    }

    /// Notes that `txn` uses a row; one use holds the strongest mode and the first
    /// instant at which it was taken.
    pub(super) fn use_row(
        &mut self,
        txn: u32,
        row: u32,
        mode: Mode,
        by: (EventKind, u32, Interval),
    ) {
        if self.rows.len() <= row as usize {
            self.rows.resize(row as usize + 1, Row { present: NONE, past: NONE });
        }
        let (kind, operation, acquired) = by;
        if let Some(place) = self.place_of_use(txn, row) {
            let own = &mut self.uses[place];
            if mode > own.mode {
                // To others who share, an exclusive lock counts from its own request
                // on. One that is exclusive already was taken by then.
                if own.mode == Mode::Shared {
                    own.acquired = acquired;
                    (own.kind, own.operation) = (kind, operation);
                }
                own.mode = mode;
            }
            return;
        }
        let older = self.rows[row as usize].present;
        let slot = self.uses.insert(RowUse {
            row,
            txn,
            mode,
            operation,
            kind,
            acquired,
            first: acquired,
            over: NEVER,
            newer: NONE,
            older,
            next_of_txn: self.txns[txn].uses,
        });
        if older != NONE {
            self.uses[older].newer = slot;
        }
        self.txns[txn].uses = slot;
        self.rows[row as usize].present = slot;
    }

    /// The use of a row by a transaction that is not judged.
    pub(super) fn use_of(&self, txn: u32, row: u32) -> Option<&RowUse> {
        self.place_of_use(txn, row).map(|place| &self.uses[place])
    }

    /// A transaction may use many rows, and a row may have many users, as where there is
    /// one lock for everything: both lists are searched in step, and the shorter one
    /// decides.
    fn place_of_use(&self, txn: u32, row: u32) -> Option<u32> {
        let mut of_row = self.rows.get(row as usize)?.present;
        let mut of_txn = self.txns[txn].uses;
        while of_row != NONE && of_txn != NONE {
            let (one, two) = (&self.uses[of_row], &self.uses[of_txn]);
            if one.txn == txn {
                return Some(of_row);
            }
            if two.row == row {
                return Some(of_txn);
            }
            (of_row, of_txn) = (one.older, two.next_of_txn);
        }
        None
    }

    /// The transaction of a use is judged. Uses of the past stand in the order in which
    /// they are over, so that who compares can stop early.
    pub(super) fn end_use(&mut self, place: u32, over: Time) {
        self.unlink_use(place);
        let row = self.uses[place].row as usize;
        let (mut newer, mut older) = (NONE, self.rows[row].past);
        while older != NONE && self.uses[older].over > over {
            (newer, older) = (older, self.uses[older].older);
        }
        let own = &mut self.uses[place];
        (own.over, own.newer, own.older) = (over, newer, older);
        if older != NONE {
            self.uses[older].newer = place;
        }
        match newer {
            NONE => self.rows[row].past = place,
            newer => self.uses[newer].older = place,
        }
    }

    /// Takes a use out of the list of its row.
    pub(super) fn unlink_use(&mut self, place: u32) {
        let RowUse { row, newer, older, .. } = self.uses[place];
        if older != NONE {
            self.uses[older].newer = newer;
        }
        let row = &mut self.rows[row as usize];
        if newer != NONE {
            self.uses[newer].older = older;
        } else if row.present == place {
            row.present = older;
        } else {
            row.past = older;
        }
    }

    /// Ends a transaction: what becomes of its versions.
    pub(super) fn end(&mut self, txn: u32, state: State, end: Interval) {
        let own = &mut self.txns[txn];
        own.state = state;
        own.end = end;
        let fate = match state {
            State::Committed => Fate::Committed,
            State::Lost => Fate::Lost,
            State::Open | State::Aborted => Fate::Aborted,
        };
        if fate != Fate::Aborted {
            own.commit = end;
        }
        let (mut place, commit) = (own.versions, own.commit);
        while place != NONE {
            let version = &mut self.versions[place];
            if version.fate == Fate::Pending {
                version.fate = fate;
                version.commit = commit;
            }
            place = version.next_of_txn;
        }
    }

    /// Notes how late anything is that a judged transaction's versions stand on, so that who
    /// looks for what was there at some instant can stop there.
    pub(super) fn settle(&mut self, txn: u32) {
        let mut own = self.txns[txn].versions;
        while own != NONE {
            if let Some(settled) = self.latest_from(own) {
                self.versions[own].settled = settled;
            }
            own = self.versions[own].next_of_txn;
        }
    }

    /// The latest commit of a version and of all older ones; nothing if one is to be judged.
    fn latest_from(&self, mut place: u32) -> Option<Time> {
        let mut latest = ALWAYS;
        while place != NONE {
            let version = &self.versions[place];
            if version.settled != NEVER {
                return Some(latest.max(version.settled));
            }
            if version.txn != NONE && !self.txns[version.txn].is_judged() {
                return None;
            }
            if version.may_be_seen() {
                latest = latest.max(version.commit.completed);
            }
            place = version.older;
        }
        Some(latest)
    }

    /// Narrows the commit of a version's transaction, with all its versions.
    pub(super) fn narrow_commit(&mut self, txn: u32, to: Interval) {
        let own = &mut self.txns[txn];
        let commit = Interval {
            invoked: own.commit.invoked.max(to.invoked),
            completed: own.commit.completed.min(to.completed),
        };
        if commit == own.commit || commit.invoked > commit.completed {
            return;
        }
        own.commit = commit;
        let mut place = own.versions;
        while place != NONE {
            let version = &mut self.versions[place];
            if version.may_be_seen() {
                version.commit = commit;
            }
            place = version.next_of_txn;
        }
    }

    /// A read shows that a commit without an answer took effect.
    pub(super) fn show_committed(&mut self, txn: u32) {
        let own = &mut self.txns[txn];
        own.state = State::Committed;
        let mut place = own.versions;
        while place != NONE {
            let version = &mut self.versions[place];
            if version.fate == Fate::Lost {
                version.fate = Fate::Committed;
            }
            place = version.next_of_txn;
        }
    }
}
