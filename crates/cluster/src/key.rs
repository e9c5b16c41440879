//! One key: who read which version, and which version came after which.
//!
//! Transactions come from the last to the first, by their completion. So when the writer of a
//! version comes, its readers and what replaced it are known: what was read long after it was
//! written needs no memory of the time between. A *watermark* says that whatever is still to come
//! completed before it.
//!
//! Versions whose neighbours are known form runs: a writer that had read what it replaced, and
//! elements that a list shows one after the other. The ends of runs are put in order here: a
//! version is the last of those not yet placed if no other one is forced behind it. A version
//! is forced behind another if it was read or written only after the other, or one of its
//! readers, was over. What this leaves open is decided by the middle of these two times. It is
//! a proposal: whatever is wrong with it shows as a cycle.

use crate::access::{INITIAL, Model, Name, Stamp, What};
use crate::event::{Dependency, TxnNumber};
use hashbrown::HashMap;
use isolde_history::Time;

/// What a key tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// An edge between events that overlap, or against real time.
    Edge(Dependency),
    /// These transactions saw or did something that no order of versions explains.
    Suspect(Vec<TxnNumber>),
    /// Two of them wrote the same value.
    Repeated([TxnNumber; 2]),
    /// The key is a list for one and a register for another.
    Mixed(TxnNumber),
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Key {
    versions: HashMap<Name, Version>,
    /// The earliest version placed so far.
    bottom: Option<Name>,
    /// Versions that nothing is known to replace and whose writer came, not placed yet.
    ends: Vec<Name>,
    is_list: Option<bool>,
    /// Who replaced what the key starts with, once all that may come completed before that.
    closed: Option<Stamp>,
}

#[derive(Default)]
struct Version {
    writer: Option<Stamp>,
    /// Whether its writer appended another element after it.
    is_inner: bool,
    before: Option<Name>,
    after: Option<Name>,
    /// Who wrote the next version.
    follower: Option<Stamp>,
    /// Readers that an edge may still lead from or to.
    readers: Vec<Stamp>,
    /// The reader that began last.
    latest: Option<Stamp>,
    /// The first completion and the last invocation of writer and readers.
    zone: Option<(Time, Time)>,
    is_placed: bool,
}

impl Version {
    fn widen(&mut self, (first, last): (Time, Time)) {
        let zone = self.zone.get_or_insert((first, last));
        *zone = (zone.0.min(first), zone.1.max(last));
    }

    /// Whether nothing that is still to come may have read it.
    fn is_complete(&self, watermark: Time) -> bool {
        self.writer.is_some_and(|writer| watermark <= writer.invoked())
    }
}

/// A run of versions whose end was not placed yet.
struct Run {
    end: Name,
    zone: (Time, Time),
    /// Whether its first version is known.
    is_whole: bool,
    writer: TxnNumber,
}

impl Run {
    /// Whether the other one must come after this one.
    fn is_before(&self, other: &Run) -> bool {
        self.zone.0 < other.zone.1
    }

    fn middle(&self) -> i128 {
        i128::from(self.zone.0) + i128::from(self.zone.1)
    }
}

/// What is told, and to which model.
pub(crate) struct Teller<'a> {
    pub(crate) model: Model,
    pub(crate) told: &'a mut Vec<Told>,
}

impl Teller<'_> {
    fn follows(&mut self, earlier: &Stamp, later: &Stamp) {
        self.edge(self.model.follows(earlier, later));
    }

    fn misses(&mut self, reader: &Stamp, writer: &Stamp) {
        self.edge(self.model.misses(reader, writer));
    }

    fn edge(&mut self, edge: Dependency) {
        if edge.from.txn != edge.to.txn && !edge.is_implied() {
            self.told.push(Told::Edge(edge));
        }
    }

    fn suspect(&mut self, txns: impl IntoIterator<Item = Stamp>) {
        self.told.push(Told::Suspect(txns.into_iter().map(|it| it.txn).collect()));
    }
}

impl Key {
    /// Takes what a transaction did.
    pub(crate) fn take(&mut self, stamp: Stamp, what: &What, teller: &mut Teller<'_>) {
        let is_list = match what {
            What::Read(INITIAL) => self.is_list,
            What::Read(_) | What::Wrote { .. } => Some(false),
            What::List(_) | What::Appended { .. } => Some(true),
        };
        if self.is_list.is_some() && is_list != self.is_list {
            teller.told.push(Told::Mixed(stamp.txn));
        }
        self.is_list = is_list;
        match what {
            What::Read(seen) => self.read(*seen, stamp, teller),
            What::List(elements) => {
                self.link(INITIAL, elements[0], stamp, teller);
                for pair in elements.windows(2) {
                    self.link(pair[0], pair[1], stamp, teller);
                }
                self.read(elements[elements.len() - 1], stamp, teller);
            }
            What::Wrote { seen, value } => {
                self.write(*value, stamp, false, teller);
                if let Some(seen) = seen {
                    self.link(*seen, *value, stamp, teller);
                }
            }
            What::Appended { seen, elements } => {
                for (place, &element) in elements.iter().enumerate() {
                    self.write(element, stamp, place + 1 < elements.len(), teller);
                }
                let before = seen.iter().chain(elements);
                for (from, to) in before.zip(elements.iter().skip(usize::from(seen.is_none()))) {
                    self.link(*from, *to, stamp, teller);
                }
            }
        }
    }

    fn read(&mut self, seen: Name, reader: Stamp, teller: &mut Teller<'_>) {
        let bottom = self.bottom_writer();
        let version = self.versions.entry(seen).or_default();
        version.widen(teller.model.zone_of_reader(&reader));
        if version.is_inner {
            teller.suspect(version.writer.into_iter().chain([reader]));
        }
        if let Some(writer) = &version.writer {
            teller.follows(writer, &reader);
        } else if version.after.is_none()
            && let Some(bottom) = bottom
        {
            teller.misses(&reader, &bottom);
        }
        if let Some(follower) = &version.follower {
            teller.misses(&reader, follower);
        }
        if version.latest.is_none_or(|it| it.begin.0 < reader.begin.0) {
            version.latest = Some(reader);
        }
        if version.writer.is_none() || version.follower.is_none() {
            version.readers.push(reader);
        }
    }

    fn write(&mut self, value: Name, writer: Stamp, is_inner: bool, teller: &mut Teller<'_>) {
        if let Some(first) = self.closed {
            // Who replaced the first value had not seen this one.
            teller.suspect([writer, first]);
        }
        let version = self.versions.entry(value).or_default();
        if let Some(other) = version.writer {
            teller.told.push(Told::Repeated([other.txn, writer.txn]));
            return;
        }
        version.writer = Some(writer);
        version.is_inner = is_inner;
        version.widen(teller.model.zone_of_writer(&writer));
        for reader in &version.readers {
            teller.follows(&writer, reader);
        }
        if is_inner && let Some(reader) = version.latest {
            teller.suspect([writer, reader]);
        }
        if let Some(follower) = &version.follower {
            teller.follows(&writer, follower);
        }
        let (before, has_after) = (version.before, version.after.is_some());
        if !has_after {
            self.ends.push(value);
        }
        if let Some(before) = before {
            self.follow(before, writer, teller);
        }
    }

    /// One version comes right after another, as this transaction shows.
    fn link(&mut self, from: Name, to: Name, shown_by: Stamp, teller: &mut Teller<'_>) {
        let earlier = self.versions.entry(from).or_default();
        match earlier.after {
            Some(known) if known == to => return,
            Some(known) => {
                let earlier = earlier.writer.into_iter().chain(earlier.follower);
                let earlier: Vec<Stamp> = earlier.collect();
                let other = self.versions.get(&known).and_then(|it| it.writer);
                let this = self.versions.get(&to).and_then(|it| it.writer);
                let all = earlier.into_iter().chain(other).chain(this).chain([shown_by]);
                teller.suspect(all);
                return;
            }
            None => earlier.after = Some(to),
        }
        if earlier.is_placed {
            // Something was put between the two.
            let follower = earlier.follower;
            teller.suspect(earlier.writer.into_iter().chain(follower).chain([shown_by]));
        }
        let later = self.versions.entry(to).or_default();
        if later.before.is_some_and(|known| known != from) {
            teller.suspect(later.writer.into_iter().chain([shown_by]));
            return;
        }
        later.before = Some(from);
        if let Some(writer) = later.writer {
            self.follow(from, writer, teller);
        }
    }

    /// The next version after this one has this writer.
    fn follow(&mut self, value: Name, follower: Stamp, teller: &mut Teller<'_>) {
        let version = self.versions.entry(value).or_default();
        version.follower = Some(follower);
        if let Some(writer) = &version.writer {
            teller.follows(writer, &follower);
        }
        for reader in version.readers.iter().chain(&version.latest) {
            teller.misses(reader, &follower);
        }
    }

    fn bottom_writer(&self) -> Option<Stamp> {
        self.bottom.and_then(|bottom| self.versions.get(&bottom)?.writer)
    }

    /// Whether it needs to be settled again, although nothing more may come.
    pub(crate) fn is_open(&self) -> bool {
        !self.ends.is_empty() || self.bottom.is_some()
    }

    /// Whether nothing is left that what is to come could have to do with.
    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Places what can be placed, and forgets what nobody can have to do with any more.
    pub(crate) fn settle(&mut self, watermark: Time, teller: &mut Teller<'_>) {
        loop {
            if !self.descend(watermark, teller) {
                break;
            }
            let Some(end) = self.next_end(watermark) else { break };
            if let Some(bottom) = self.bottom_writer() {
                self.follow(end, bottom, teller);
            }
            self.put(end, teller);
        }
        self.forget(watermark);
    }

    /// Goes on to the first version of the run that was placed last. Whether it is known.
    fn descend(&mut self, watermark: Time, teller: &mut Teller<'_>) -> bool {
        while let Some(version) = self.bottom.and_then(|bottom| self.versions.get(&bottom)) {
            match version.before {
                None => return version.is_complete(watermark),
                Some(INITIAL) => {
                    if version.is_complete(watermark) {
                        self.closed = version.writer;
                    }
                    return false;
                }
                Some(before) => {
                    let is_known = self.versions.get(&before).is_some_and(|it| it.writer.is_some());
                    let is_again = self.versions.get(&before).is_none_or(|it| it.is_placed);
                    if !is_known || is_again {
                        return false;
                    }
                    self.put(before, teller);
                }
            }
        }
        true
    }

    /// Places a version before all others that were. What was read of one that has not come
    /// yet was replaced by then.
    fn put(&mut self, value: Name, teller: &mut Teller<'_>) {
        let version = self.versions.get_mut(&value).expect("it was found there");
        version.is_placed = true;
        let writer = version.writer.expect("whose writer came");
        self.bottom = Some(value);
        self.ends.retain(|&end| end != value);
        let bare = |it: &&Version| it.writer.is_none() && it.after.is_none();
        for version in self.versions.values().filter(bare) {
            for reader in version.readers.iter().chain(&version.latest) {
                teller.misses(reader, &writer);
            }
        }
    }

    /// The end to place next, if one can be.
    fn next_end(&mut self, watermark: Time) -> Option<Name> {
        let versions = &self.versions;
        self.ends
            .retain(|end| versions.get(end).is_some_and(|it| it.after.is_none() && !it.is_placed));
        if let [only] = self.ends[..] {
            return versions[&only].is_complete(watermark).then_some(only);
        }
        let runs: Vec<Run> = self.ends.iter().map(|&end| self.run(end, watermark)).collect();
        let is_last =
            |run: &&Run| !runs.iter().any(|other| other.end != run.end && run.is_before(other));
        let mut candidates: Vec<&Run> = runs.iter().filter(is_last).collect();
        if candidates.is_empty() {
            candidates.extend(&runs);
        }
        let best = candidates.iter().max_by_key(|it| (it.is_whole, it.middle(), it.writer))?;
        let is_doubtful = !best.is_whole && candidates.len() > 1 && watermark != Time::MIN;
        let is_complete = versions[&best.end].is_complete(watermark);
        (is_complete && !is_doubtful).then_some(best.end)
    }

    fn run(&self, end: Name, watermark: Time) -> Run {
        let mut zone = (Time::MAX, Time::MIN);
        let (mut at, mut steps) = (end, 0);
        let is_whole = loop {
            let Some(version) = self.versions.get(&at) else { break false };
            if let Some((first, last)) = version.zone {
                zone = (zone.0.min(first), zone.1.max(last));
            }
            steps += 1;
            match version.before {
                None => break version.is_complete(watermark),
                // Versions that contradict each other may form a circle.
                Some(_) if steps > self.versions.len() => break false,
                Some(before) => at = before,
            }
        };
        let writer = self.versions[&end].writer.map_or(0, |it| it.txn);
        Run { end, zone, is_whole, writer }
    }

    fn forget(&mut self, watermark: Time) {
        let bottom = self.bottom;
        let is_open = !self.ends.is_empty();
        let is_first = |version: &Version| version.before.is_none_or(|it| it == INITIAL);
        let is_end = |version: &Version| is_first(version) && !is_open;
        self.versions.retain(|&value, version| {
            // Who began later than whatever comes now needs no edge from its writer.
            let may_overlap =
                |it: &Stamp| it.invoked() < watermark || (is_open && version.follower.is_none());
            version.readers.retain(may_overlap);
            let is_needed = bottom == Some(value) && !is_end(version);
            !version.is_placed || !version.is_complete(watermark) || is_needed
        });
        if bottom.is_some_and(|bottom| !self.versions.contains_key(&bottom)) {
            self.bottom = None;
        }
    }

    /// Everything has come. Who read what nobody wrote is a suspect.
    pub(crate) fn finish(&mut self, teller: &mut Teller<'_>) {
        self.settle(Time::MIN, teller);
        for (&value, version) in self.versions.iter().filter(|it| it.1.writer.is_none()) {
            if value != INITIAL {
                teller.suspect(version.latest.into_iter().chain(version.follower));
            }
        }
        let left = self.ends.iter().filter_map(|end| self.versions.get(end)?.writer);
        let left: Vec<Stamp> = left.collect();
        if !left.is_empty() {
            teller.suspect(left);
        }
    }
}
