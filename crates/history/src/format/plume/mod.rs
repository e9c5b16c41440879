//! One operation a line, as `PolySI`, Plume, `IsoVista` and MTC read and write it.
//!
//! `r(key,value,session,transaction)` and `w(…)`, all decimal. Described by the
//! loaders of those tools. How it is understood is in `docs/formats/others.md`; in
//! short: transactions are told apart by session and id and may interleave, every
//! key starts with 0, and transaction `-1` is an aborted one.
//!
//! Parsing and building run on two threads: the parser turns blocks of lines into
//! records without allocating, the builder consumes them in order.

mod lines;
mod writer;

use self::lines::{ABORTED, Block, Line, Owner, Record, parse_block};
use self::writer::write;
use super::{Format, Input, Sample, Writer};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::ReadError;
use crate::history::{KeyId, Outcome, SessionId};
use crate::source::Source;
use hashbrown::HashMap;
use std::sync::mpsc;

pub(super) const FORMAT: Format = Format {
    name: "plume",
    title: "one operation a line (PolySI, Plume, IsoVista, MTC)",
    detect,
    read,
    write: Some(Writer::File(write)),
};

fn detect(sample: &Sample<'_>) -> bool {
    sample.first_line().is_some_and(|line| {
        let mut block = Block::default();
        parse_block("", line.as_bytes(), &mut block).is_ok() && !block.runs.is_empty()
    })
}

/// Who may declare the initial values.
const INITIAL_OWNER: Owner = Owner { session: 0, txn: 0 };

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    const BLOCKS_AHEAD: usize = 4;
    let source = input.file()?;
    let file = source.name().to_owned();
    let zero = builder.values().unsigned(0);
    builder.initial_default(zero);
    let mut assembler = Assembler::new(builder);
    std::thread::scope(|scope| {
        let (filled, blocks) = mpsc::sync_channel::<Result<Block, ReadError>>(BLOCKS_AHEAD);
        let (spent, recycled) = mpsc::channel::<Block>();
        // Nothing comes from a thread that was not started, and that is no end of the file.
        std::thread::Builder::new()
            .spawn_scoped(scope, move || parse(source, &filled, &recycled))
            .map_err(|error| ReadError::no_thread(&file, &error))?;
        for block in blocks {
            let block = block?;
            assembler.block(&block);
            // The parser may have finished already; then nobody needs the block.
            let _ = spent.send(block);
        }
        Ok(())
    })?;
    assembler.finish();
    Ok(())
}

/// Sends the source's lines as blocks until it ends, fails, or nobody listens.
fn parse(
    mut source: Source<'_>,
    filled: &mpsc::SyncSender<Result<Block, ReadError>>,
    recycled: &mpsc::Receiver<Block>,
) {
    loop {
        let mut block = recycled.try_recv().unwrap_or_default();
        block.first_line = source.line();
        let parsed = match source.fill_lines() {
            Err(error) => Err(error),
            Ok(0) => return,
            Ok(length) => {
                let lines = &source.window()[..length];
                let parsed = parse_block(source.name(), lines, &mut block);
                source.consume(length);
                parsed.map(|()| block)
            }
        };
        let failed = parsed.is_err();
        if filled.send(parsed).is_err() || failed {
            return;
        }
    }
}

/// Turns records into sessions and transactions.
struct Assembler<'b> {
    builder: &'b mut HistoryBuilder,
    sessions: Sessions,
    txns: Txns,
    /// Whom operations go to now.
    current: Option<Owner>,
    initial: Initial,
    /// The keys of a block's records.
    keys: Vec<KeyId>,
}

#[derive(Default)]
struct Sessions {
    /// Place in `states` by session id, for small ids.
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    states: Vec<SessionState>,
}

struct SessionState {
    id: SessionId,
    /// The aborted transaction that a further `-1` continues.
    aborted: Option<DraftTxn>,
}

/// Transactions by their ids in the file.
#[derive(Default)]
struct Txns {
    /// By id, while ids are not much larger than their number: what is reserved
    /// stays in proportion to what was read.
    dense: Vec<Option<(u32, DraftTxn)>>,
    sparse: HashMap<u64, (u32, DraftTxn)>,
    /// Ids that a second session uses too.
    reused: HashMap<(u32, u64), DraftTxn>,
    count: usize,
}

/// What is known about a transaction that may declare the initial values.
enum Initial {
    /// Nothing was read yet.
    Unseen,
    /// The file began with writes of session 0, transaction 0.
    Declared(Declared),
    /// There is no such transaction.
    Absent,
}

#[derive(Default)]
struct Declared {
    /// Key, value and line.
    writes: Vec<(u64, u64, u32)>,
    /// By key id once other operations follow. The declared keys are then the
    /// first ones of the history, so that any later id is a key not declared.
    values: Vec<u64>,
    complete: bool,
    /// Some other operation is on a key that was not declared.
    uncovered: bool,
    /// Somebody read 0 where another value was declared.
    contradicted: bool,
}

impl<'b> Assembler<'b> {
    fn new(builder: &'b mut HistoryBuilder) -> Self {
        Assembler {
            builder,
            sessions: Sessions::default(),
            txns: Txns::default(),
            current: None,
            initial: Initial::Unseen,
            keys: Vec::new(),
        }
    }

    fn block(&mut self, block: &Block) {
        let line_of = |record| u32::try_from(block.first_line + record as u64).unwrap_or(u32::MAX);
        let ends = block.runs.iter().skip(1).map(|run| run.0).chain([block.records.len()]);
        let mut runs =
            block.runs.iter().zip(ends).map(|(&(start, owner), end)| (start..end, owner));
        for (run, owner) in &mut runs {
            for record in run.clone() {
                let (line, record) = (line_of(record), &block.records[record]);
                let is_absent = matches!(self.initial, Initial::Absent);
                if record.kind != Line::Blank
                    && (is_absent || !self.may_be_initial(record, owner, line))
                {
                    self.op(record, owner, line);
                }
            }
            if matches!(self.initial, Initial::Absent) {
                break;
            }
        }
        // The keys come first, so that memory answers for many of them at once.
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        let Some((first, _)) = runs.clone().next() else {
            self.keys = keys;
            return;
        };
        let first = first.start;
        keys.extend(block.records[first..].iter().map(|record| self.key(record)));
        let last_line = block.first_line + block.records.len() as u64;
        if !block.has_blanks && u32::try_from(last_line).is_ok() {
            for (run, owner) in runs {
                self.builder.position(line_of(run.start));
                self.enter(owner);
                self.builder.op_kinds(block.records[run].iter().map(|record| record.kind.op()));
            }
            let values = block.records[first..].iter().map(|record| record.value);
            self.builder.position(line_of(first));
            self.builder.op_columns(&keys, values);
            self.keys = keys;
            return;
        }
        for (run, owner) in runs {
            self.builder.position(line_of(run.start));
            self.enter(owner);
            for record in run {
                self.builder.position(line_of(record));
                self.known_op(&block.records[record], keys[record - first]);
            }
        }
        self.keys = keys;
    }

    fn key(&mut self, record: &Record) -> KeyId {
        if record.kind == Line::Blank {
            return KeyId(0);
        }
        let name = self.builder.values().unsigned(record.key);
        self.builder.key(name)
    }

    fn enter(&mut self, owner: Owner) {
        if self.current != Some(owner) {
            self.switch(owner);
        }
    }

    #[inline]
    fn known_op(&mut self, record: &Record, key: KeyId) {
        if record.kind != Line::Blank {
            let value = self.builder.values().unsigned(record.value);
            self.builder.op(record.kind.op(), key, value);
        }
    }

    fn op(&mut self, record: &Record, owner: Owner, line: u32) {
        self.builder.position(line);
        self.enter(owner);
        let key = self.key(record);
        self.known_op(record, key);
        if let Initial::Declared(declared) = &mut self.initial {
            declared.observe(key, record);
        }
    }

    fn switch(&mut self, owner: Owner) {
        self.current = Some(owner);
        let Owner { session, txn } = owner;
        let place = self.sessions.place(session, self.builder);
        let state = &mut self.sessions.states[place as usize];
        if txn == ABORTED {
            if let Some(aborted) = state.aborted {
                self.builder.resume(aborted);
            } else {
                let aborted = self.builder.begin(state.id);
                self.builder.outcome(aborted, Outcome::Aborted);
                state.aborted = Some(aborted);
            }
            return;
        }
        state.aborted = None;
        if let Some(known) = self.txns.find(place, txn) {
            self.builder.resume(known);
            return;
        }
        let draft = self.builder.begin(state.id);
        let label = self.builder.values().unsigned(txn);
        self.builder.label(draft, label);
        if self.txns.insert(place, txn, draft) == Id::Reused {
            let text = format!(
                "transaction {txn} of session {session} has the id of one in another session"
            );
            self.builder.remark("reused-transaction-id", text);
        }
    }

    /// Whether the record was set aside as part of the initial transaction.
    fn may_be_initial(&mut self, record: &Record, owner: Owner, line: u32) -> bool {
        let own = owner == INITIAL_OWNER;
        if matches!(self.initial, Initial::Unseen) {
            self.initial = if own && record.kind == Line::Write {
                Initial::Declared(Declared::default())
            } else {
                Initial::Absent
            };
        }
        let Initial::Declared(declared) = &mut self.initial else {
            return false;
        };
        if own && record.kind == Line::Write && !declared.complete {
            declared.writes.push((record.key, record.value, line));
            return true;
        }
        if owner.session == 0 {
            // The session has more than blind writes of one transaction.
            self.admit_as_ordinary();
        } else if !declared.complete {
            declared.complete = true;
            for &(key, value, _) in &declared.writes {
                let name = self.builder.values().unsigned(key);
                let index = self.builder.key(name).index();
                if declared.values.len() <= index {
                    declared.values.resize(index + 1, 0);
                }
                declared.values[index] = value;
            }
        }
        false
    }

    /// The writes set aside belong to a transaction like any other.
    fn admit_as_ordinary(&mut self) {
        let state = std::mem::replace(&mut self.initial, Initial::Absent);
        let Initial::Declared(declared) = state else {
            return;
        };
        for (key, value, line) in declared.writes {
            let record = Record { key, value, kind: Line::Write };
            self.op(&record, INITIAL_OWNER, line);
        }
    }

    fn finish(mut self) {
        let Initial::Declared(declared) = &self.initial else {
            return;
        };
        if !declared.are_initial() {
            self.admit_as_ordinary();
            return;
        }
        for &(key, value, _) in &declared.writes {
            let name = self.builder.values().unsigned(key);
            let key = self.builder.key(name);
            let value = self.builder.values().unsigned(value);
            self.builder.initial(key, value);
        }
        self.builder.position(1);
        let text = "session 0, transaction 0 was taken as the initial values".into();
        self.builder.remark("initial-transaction", text);
    }
}

impl Declared {
    fn observe(&mut self, key: KeyId, record: &Record) {
        match self.values.get(key.index()) {
            None => self.uncovered = true,
            Some(&declared) => {
                self.contradicted |=
                    record.kind == Line::Read && record.value == 0 && declared != 0;
            }
        }
    }

    /// Whether the writes are the initial values. Zeros are, whoever wrote them.
    /// Other values must be declared for every key, and nobody may have seen 0 in
    /// their place: 0 is what the keys of an ordinary transaction start with. A
    /// client's transaction that meets all of this would be misread, which is why
    /// the reading is remarked.
    fn are_initial(&self) -> bool {
        let zeros = self.writes.iter().all(|write| write.1 == 0);
        zeros || (self.complete && !self.uncovered && !self.contradicted)
    }
}

impl Sessions {
    fn place(&mut self, session: u64, builder: &mut HistoryBuilder) -> u32 {
        const DENSE_MAX: u64 = 1 << 16;
        const NONE: u32 = u32::MAX;
        let known = if session < DENSE_MAX {
            self.dense.get(session as usize).copied()
        } else {
            self.sparse.get(&session).copied()
        };
        if let Some(place) = known
            && place != NONE
        {
            return place;
        }
        let label = builder.values().unsigned(session);
        let place = self.states.len() as u32;
        self.states.push(SessionState { id: builder.session(label), aborted: None });
        if session < DENSE_MAX {
            if self.dense.len() <= session as usize {
                self.dense.resize(session as usize + 1, NONE);
            }
            self.dense[session as usize] = place;
        } else {
            self.sparse.insert(session, place);
        }
        place
    }
}

#[derive(PartialEq, Eq)]
enum Id {
    New,
    Reused,
}

impl Txns {
    fn first(&self, txn: u64) -> Option<(u32, DraftTxn)> {
        let dense = usize::try_from(txn).ok().and_then(|index| *self.dense.get(index)?);
        dense.or_else(|| self.sparse.get(&txn).copied())
    }

    fn find(&self, session: u32, txn: u64) -> Option<DraftTxn> {
        match self.first(txn) {
            None => None,
            Some((owner, draft)) if owner == session => Some(draft),
            Some(_) => self.reused.get(&(session, txn)).copied(),
        }
    }

    fn insert(&mut self, session: u32, txn: u64, draft: DraftTxn) -> Id {
        if self.first(txn).is_some() {
            self.reused.insert((session, txn), draft);
            return Id::Reused;
        }
        self.count += 1;
        if txn < (1 << 16) + 4 * self.count as u64 {
            let index = txn as usize;
            if self.dense.len() <= index {
                self.dense.resize(index + 1, None);
            }
            self.dense[index] = Some((session, draft));
        } else {
            self.sparse.insert(txn, (session, draft));
        }
        Id::New
    }
}
