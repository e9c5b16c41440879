//! The mechanisms by their definition: try every order of the instants.
//!
//! This is the specification the verifier is tested against. It is kept short enough to
//! be checked by eye, and is never made faster.
//!
//! **Definition.** Every committed transaction has an instant of commit, every snapshot
//! one of its own, every lock one at which it is taken and one at which it is released;
//! each lies in the interval of its event. Instants have an order that agrees with the
//! intervals: one comes before another only if its interval does not begin after the
//! other's end. A trace is explained if there is such an order, and a choice of which
//! commits without an answer took effect, for which all mechanisms did as they should.

use isolde_checker::online::{
    Batch, Cell, Certifier, Content, Dml, Event, EventKind, Interval, Locks, Profile, Reads,
    Writers,
};

/// Whether there is a placement; nothing if there are too many to try.
pub(crate) fn is_explained(batch: &Batch, profile: Profile) -> Option<bool> {
    let txns = txns_of(batch);
    let lost: Vec<usize> = (0..txns.len()).filter(|&txn| txns[txn].is_lost()).collect();
    for choice in 0..1u32 << lost.len() {
        let committed = |txn: usize| {
            let chosen = lost.iter().position(|&other| other == txn);
            txns[txn].ends_with(EventKind::Commit)
                || chosen.is_some_and(|place| choice >> place & 1 == 1)
        };
        let committed: Vec<bool> = (0..txns.len()).map(committed).collect();
        let mut search =
            Search { txns: &txns, committed, profile, instants: Vec::new(), budget: 0 };
        search.place_instants();
        if search.is_any_order_right(&mut Vec::new()) {
            return Some(true);
        }
        if search.budget > BUDGET_MAX {
            return None;
        }
    }
    Some(false)
}

/// Orders that are looked at.
const BUDGET_MAX: u32 = 200_000;

struct Txn<'a> {
    events: Vec<(Event, &'a [Cell])>,
}

impl Txn<'_> {
    fn ends_with(&self, kind: EventKind) -> bool {
        self.events.last().is_some_and(|last| last.0.kind == kind)
    }

    fn is_lost(&self) -> bool {
        self.ends_with(EventKind::Lost)
    }

    fn end(&self) -> Interval {
        self.events.last().expect("an event").0.interval
    }

    fn writes(&self, before: usize, item: u32) -> Option<Content> {
        let writes = self.events[..before].iter().filter(|event| event.0.kind == EventKind::Write);
        let mut cells = writes.flat_map(|event| event.1).filter(|cell| cell.item == item);
        cells.next_back().map(|cell| cell.content)
    }

    fn has_written(&self) -> bool {
        self.events.iter().any(|event| event.0.kind == EventKind::Write && !event.1.is_empty())
    }

    /// The first event that writes a row.
    fn first_write(&self, row: u32) -> Option<usize> {
        let writes = |event: &(Event, &[Cell])| {
            event.0.kind == EventKind::Write && event.1.iter().any(|cell| cell.row == row)
        };
        self.events.iter().position(writes)
    }
}

fn txns_of(batch: &Batch) -> Vec<Txn<'_>> {
    let mut ids = Vec::new();
    let mut txns: Vec<Txn<'_>> = Vec::new();
    for event in &batch.events {
        let id = (event.client, event.txn);
        let place = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
            ids.push(id);
            txns.push(Txn { events: Vec::new() });
            ids.len() - 1
        });
        txns[place].events.push((*event, batch.cells_of(event)));
    }
    txns
}

/// What happens at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Happening {
    Commit(usize),
    /// The snapshot of the transaction, of one of its events, or of one of its cells.
    Snapshot(usize, Option<usize>, Option<usize>),
    /// Locks of a row, from an event on: shared, or exclusive.
    Take {
        txn: usize,
        row: u32,
        exclusive: bool,
    },
    Release(usize),
}

struct Instant {
    happening: Happening,
    interval: Interval,
}

struct Search<'a> {
    txns: &'a [Txn<'a>],
    committed: Vec<bool>,
    profile: Profile,
    instants: Vec<Instant>,
    budget: u32,
}

impl Search<'_> {
    fn place_instants(&mut self) {
        for (number, txn) in self.txns.iter().enumerate() {
            let mut add = |happening, interval| self.instants.push(Instant { happening, interval });
            if self.committed[number] {
                add(Happening::Commit(number), txn.end());
            }
            let snapshot = txn.events.iter().find(|(event, _)| match self.profile.reads {
                Reads::Begin => true,
                Reads::FirstRequest => event.kind.is_operation(),
                Reads::FirstRead => event.kind == EventKind::Read,
                _ => false,
            });
            if let Some(snapshot) = snapshot {
                add(Happening::Snapshot(number, None, None), snapshot.0.interval);
            }
            for (place, (event, cells)) in txn.events.iter().enumerate() {
                let own = event.interval;
                let current =
                    event.kind == EventKind::LockingRead && self.profile.dml == Dml::Current;
                let is_read = matches!(event.kind, EventKind::Read | EventKind::LockingRead);
                match self.profile.reads {
                    _ if !is_read => {}
                    _ if current => {
                        for cell in 0..cells.len() {
                            add(Happening::Snapshot(number, Some(place), Some(cell)), own);
                        }
                    }
                    Reads::Item | Reads::Window => {
                        let invoked = match self.profile.reads {
                            Reads::Window => txn.events[0].0.interval.invoked,
                            _ => own.invoked,
                        };
                        for cell in 0..cells.len() {
                            let interval = Interval { invoked, ..own };
                            add(Happening::Snapshot(number, Some(place), Some(cell)), interval);
                        }
                    }
                    Reads::Statement => add(Happening::Snapshot(number, Some(place), None), own),
                    _ => {}
                }
            }
        }
        if self.profile.locks != Locks::None {
            self.place_locks();
        }
    }

    fn place_locks(&mut self) {
        for (number, txn) in self.txns.iter().enumerate() {
            let mut taken: Vec<(u32, bool)> = Vec::new();
            let mut answered = txn.events[0].0.interval.invoked;
            for (event, cells) in &txn.events {
                if event.kind.is_operation() {
                    answered = event.interval.completed;
                }
                let exclusive = event.kind != EventKind::Read;
                let locks = exclusive || self.profile.locks == Locks::ReadsAndWrites;
                for cell in cells.iter().filter(|_| locks) {
                    let is_absent =
                        cell.content == Content::ABSENT && event.kind != EventKind::Write;
                    let is_held =
                        taken.contains(&(cell.row, true)) || taken.contains(&(cell.row, exclusive));
                    if !is_absent && !is_held {
                        taken.push((cell.row, exclusive));
                        let happening = Happening::Take { txn: number, row: cell.row, exclusive };
                        self.instants.push(Instant { happening, interval: event.interval });
                    }
                }
            }
            let end = txn.end();
            let interval = if txn.ends_with(EventKind::Commit) {
                end
            } else {
                Interval { invoked: answered, completed: end.completed.max(answered) }
            };
            self.instants.push(Instant { happening: Happening::Release(number), interval });
        }
    }

    /// Whether some order that begins with these instants is right.
    fn is_any_order_right(&mut self, order: &mut Vec<usize>) -> bool {
        if order.len() == self.instants.len() {
            self.budget += 1;
            return self.is_right(order);
        }
        for next in 0..self.instants.len() {
            let begins = self.instants[next].interval.invoked;
            let left = (0..self.instants.len()).filter(|other| !order.contains(other));
            let fits = |other: usize| {
                other == next
                    || (begins <= self.instants[other].interval.completed
                        && !self.must_precede(other, next))
            };
            if order.contains(&next) || !left.clone().all(fits) {
                continue;
            }
            order.push(next);
            let found = self.is_any_order_right(order);
            order.pop();
            if found || self.budget > BUDGET_MAX {
                return found;
            }
        }
        false
    }

    /// What a transaction does comes before its commit, and that before its locks are
    /// released.
    fn must_precede(&self, first: usize, second: usize) -> bool {
        let txn_of = |happening| match happening {
            Happening::Commit(txn)
            | Happening::Snapshot(txn, ..)
            | Happening::Take { txn, .. }
            | Happening::Release(txn) => txn,
        };
        let (one, two) = (self.instants[first].happening, self.instants[second].happening);
        let ends = match two {
            Happening::Commit(_) => !matches!(one, Happening::Release(_)),
            Happening::Release(_) => true,
            _ => false,
        };
        ends && txn_of(one) == txn_of(two)
    }

    fn is_right(&self, order: &[usize]) -> bool {
        let placed = Placed { search: self, order };
        placed.reads_are_consistent()
            && placed.locks_exclude()
            && placed.first_writer_wins()
            && placed.rows_are_written_as_read()
            && placed.certifier_refused_nothing()
    }
}

/// An order of the instants.
struct Placed<'a> {
    search: &'a Search<'a>,
    order: &'a [usize],
}

/// What one transaction does to another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Depends {
    from: usize,
    to: usize,
    anti: bool,
}

impl Placed<'_> {
    fn at(&self, happening: Happening) -> Option<usize> {
        let is_it = |&&place: &&usize| self.search.instants[place].happening == happening;
        self.order.iter().position(|place| is_it(&place))
    }

    /// Transactions that committed a version of an item, in order.
    fn writers(&self, item: u32) -> Vec<(usize, usize, Content)> {
        let txns = self.search.txns.iter().enumerate();
        let mut writers: Vec<_> = txns
            .filter_map(|(number, txn)| {
                let content = txn.writes(txn.events.len(), item)?;
                Some((self.at(Happening::Commit(number))?, number, content))
            })
            .collect();
        writers.sort_unstable_by_key(|writer| writer.0);
        writers
    }

    /// The last version before an instant.
    fn visible(&self, item: u32, instant: usize) -> (Option<usize>, Content) {
        let writers = self.writers(item);
        let last = writers.iter().rfind(|writer| writer.0 < instant);
        last.map_or((None, Content::ABSENT), |&(_, txn, content)| (Some(txn), content))
    }

    fn snapshot(&self, txn: usize, event: usize, cell: usize) -> Option<usize> {
        self.at(Happening::Snapshot(txn, Some(event), Some(cell)))
            .or_else(|| self.at(Happening::Snapshot(txn, Some(event), None)))
            .or_else(|| self.at(Happening::Snapshot(txn, None, None)))
    }

    /// Reads of others' versions: reader, item, what is visible, what was read.
    fn reads(&self) -> Vec<(usize, Cell, Option<usize>, bool)> {
        let mut reads = Vec::new();
        for (number, txn) in self.search.txns.iter().enumerate() {
            for (place, (event, cells)) in txn.events.iter().enumerate() {
                if !matches!(event.kind, EventKind::Read | EventKind::LockingRead) {
                    continue;
                }
                for (column, cell) in cells.iter().enumerate() {
                    if let Some(own) = txn.writes(place, cell.item)
                        && !self.has_changed_nothing((number, place), *cell, own)
                    {
                        if own != cell.content {
                            reads.push((number, *cell, None, false));
                        }
                        continue;
                    }
                    let Some(instant) = self.snapshot(number, place, column) else { continue };
                    let (writer, content) = self.visible(cell.item, instant);
                    let mut is_right = content == cell.content;
                    // A row that the transaction wrote as it was is read as of that write.
                    if self.search.profile.dml == Dml::Current
                        && txn.first_write(cell.row).is_some_and(|first| first < place)
                        && let Some(taken) = self.taken(number, cell.row, true)
                    {
                        is_right |= self.visible(cell.item, taken).1 == cell.content;
                    }
                    reads.push((number, *cell, writer, is_right));
                }
            }
        }
        reads
    }

    /// Whether what a transaction wrote to an item was there already, where that makes no
    /// version, and a later read of the snapshot does not see it.
    fn has_changed_nothing(&self, (txn, event): (usize, usize), cell: Cell, own: Content) -> bool {
        let Profile { dml, reads, .. } = self.search.profile;
        let events = &self.search.txns[txn].events[..event];
        let all_are_own = (events.iter())
            .filter(|event| event.0.kind == EventKind::Write)
            .flat_map(|event| event.1)
            .all(|other| other.item != cell.item || other.content == own);
        let is_plain = self.search.txns[txn].events[event].0.kind == EventKind::Read;
        dml == Dml::Current
            && reads.is_transactional()
            && is_plain
            && all_are_own
            && self
                .taken(txn, cell.row, true)
                .is_some_and(|taken| self.visible(cell.item, taken).1 == own)
    }

    fn reads_are_consistent(&self) -> bool {
        self.search.profile.reads == Reads::Unchecked || self.reads().iter().all(|read| read.3)
    }

    fn taken(&self, txn: usize, row: u32, exclusive: bool) -> Option<usize> {
        self.at(Happening::Take { txn, row, exclusive })
    }

    fn locks_exclude(&self) -> bool {
        let takes: Vec<(usize, u32, bool, usize)> = (self.order.iter().enumerate())
            .filter_map(|(at, &place)| match self.search.instants[place].happening {
                Happening::Take { txn, row, exclusive } => Some((txn, row, exclusive, at)),
                _ => None,
            })
            .collect();
        let released = |txn| self.at(Happening::Release(txn)).expect("a release");
        takes.iter().all(|one| {
            takes.iter().all(|two| {
                let conflict = one.0 != two.0 && one.1 == two.1 && (one.2 || two.2);
                !conflict || released(one.0) < two.3 || released(two.0) < one.3
            })
        })
    }

    fn first_writer_wins(&self) -> bool {
        if matches!(self.search.profile.writers, Writers::Any | Writers::AsRead) {
            return true;
        }
        let txns = self.search.txns;
        let rows: Vec<u32> = (txns.iter())
            .flat_map(|txn| txn.events.iter().flat_map(|event| event.1))
            .map(|cell| cell.row)
            .collect();
        let commit = |txn| self.at(Happening::Commit(txn));
        let snapshot = |txn| self.at(Happening::Snapshot(txn, None, None));
        let sees = |reader, writer| {
            snapshot(reader).is_none_or(|snapshot| commit(writer).expect("a commit") < snapshot)
        };
        rows.iter().all(|&row| {
            let writers: Vec<usize> = (0..txns.len())
                .filter(|&txn| commit(txn).is_some() && txns[txn].first_write(row).is_some())
                .collect();
            writers.iter().all(|&one| {
                writers.iter().all(|&two| one == two || sees(one, two) || sees(two, one))
            })
        })
    }

    /// Nobody replaces what a transaction has read before it does so itself.
    fn rows_are_written_as_read(&self) -> bool {
        if self.search.profile.writers != Writers::AsRead {
            return true;
        }
        let is_replaced = |txn: usize, read: (usize, usize), cell: &Cell| {
            let events = &self.search.txns[txn].events;
            let commit = self.at(Happening::Commit(txn))?;
            let instant = self.snapshot(txn, read.0, read.1)?;
            let own = self.search.txns[txn].writes(events.len(), cell.item)?;
            let is_first = self.search.txns[txn].writes(read.0, cell.item).is_none();
            let mut others = self.writers(cell.item).into_iter();
            let replaced = others.any(|(at, other, content)| {
                other != txn && content != cell.content && instant < at && at < commit
            });
            Some(is_first && own != cell.content && replaced)
        };
        self.search.txns.iter().enumerate().all(|(number, txn)| {
            txn.events.iter().enumerate().all(|(place, (event, cells))| {
                let is_read = matches!(event.kind, EventKind::Read | EventKind::LockingRead);
                let mut cells = cells.iter().enumerate();
                !is_read
                    || !cells.any(|(column, cell)| {
                        is_replaced(number, (place, column), cell) == Some(true)
                    })
            })
        })
    }

    fn dependencies(&self) -> Vec<Depends> {
        let mut found = Vec::new();
        let is_committed = |txn: usize| self.search.committed[txn];
        for (reader, cell, writer, _) in self.reads() {
            if !is_committed(reader) {
                continue;
            }
            if let Some(writer) = writer {
                found.push(Depends { from: writer, to: reader, anti: false });
            }
            let writers = self.writers(cell.item);
            let place = writer.map_or(0, |writer| {
                1 + writers.iter().position(|known| known.1 == writer).expect("a writer")
            });
            if let Some(&(_, next, _)) = writers.get(place) {
                found.push(Depends { from: reader, to: next, anti: true });
            }
        }
        for item in 0..ITEMS_MAX {
            for pair in self.writers(item).windows(2) {
                found.push(Depends { from: pair[0].1, to: pair[1].1, anti: false });
            }
        }
        found.retain(|edge| edge.from != edge.to);
        found
    }

    /// Whether each transaction can have a timestamp of its own time, such that dependencies
    /// ascend.
    fn timestamps_fit(&self, edges: &[Depends]) -> bool {
        let txns = self.search.txns;
        let mut least: Vec<_> = txns.iter().map(|txn| txn.events[0].0.interval.invoked).collect();
        for _ in txns {
            for edge in edges {
                least[edge.to] = least[edge.to].max(least[edge.from]);
            }
        }
        txns.iter().zip(&least).all(|(txn, least)| *least <= txn.end().completed)
    }

    fn certifier_refused_nothing(&self) -> bool {
        let certifier = self.search.profile.certifier;
        if certifier == Certifier::None {
            return true;
        }
        let edges = self.dependencies();
        if has_cycle(&edges, self.search.txns.len()) {
            return false;
        }
        let anti: Vec<Depends> = edges.iter().copied().filter(|edge| edge.anti).collect();
        let commit = |txn| self.at(Happening::Commit(txn)).expect("a commit");
        match certifier {
            Certifier::Validation => anti.iter().all(|edge| {
                !self.search.txns[edge.from].has_written() || commit(edge.from) < commit(edge.to)
            }),
            Certifier::DangerousStructure => !anti.iter().any(|one| {
                anti.iter().any(|two| one.to == two.from && self.is_dangerous(*one, *two))
            }),
            Certifier::TimestampOrder => self.timestamps_fit(&edges),
            Certifier::None | Certifier::Cycles => true,
        }
    }

    fn is_dangerous(&self, one: Depends, two: Depends) -> bool {
        let (first, pivot, last) = (one.from, one.to, two.to);
        let commit = |txn| self.at(Happening::Commit(txn)).expect("a commit");
        let Some(snapshots) = [first, pivot, last]
            .map(|txn| self.at(Happening::Snapshot(txn, None, None)))
            .into_iter()
            .collect::<Option<Vec<usize>>>()
        else {
            return false;
        };
        let concurrent = snapshots[0] < commit(pivot)
            && snapshots[1] < commit(first)
            && snapshots[1] < commit(last)
            && snapshots[2] < commit(pivot);
        let last_is_first =
            commit(last) < commit(pivot) && (first == last || commit(last) < commit(first));
        let excepted = !self.search.txns[first].has_written() && snapshots[0] < commit(last);
        concurrent && last_is_first && !excepted
    }
}

const ITEMS_MAX: u32 = 8;

fn has_cycle(edges: &[Depends], txns: usize) -> bool {
    let mut left: Vec<usize> = (0..txns).collect();
    loop {
        let is_first = |txn: usize, left: &[usize]| {
            !edges.iter().any(|edge| edge.to == txn && left.contains(&edge.from))
        };
        let Some(place) = left.iter().position(|&txn| is_first(txn, &left)) else {
            return !left.is_empty();
        };
        left.swap_remove(place);
    }
}
