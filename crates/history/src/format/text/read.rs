//! Reading the text format, line by line.

use super::VERSION;
use super::scan::{Fault, Line, Scope};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::{Place, ReadError, excerpt};
use crate::format::Input;
use crate::history::{
    ALWAYS, Interval, NEVER, OpKind, Outcome, PositionUnit, Timestamp, Timestamps, TxnTimes,
    VersionChain,
};
use crate::snapshot::Snapshot;
use crate::value::{Value, Values};
use hashbrown::{HashMap, HashSet};

pub(super) fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let file = source.name().to_owned();
    builder.position_unit(PositionUnit::Line);
    let mut reader = Reader { builder, elements: Vec::new(), unlisted: None, serial: None };
    let mut number = 0;
    while let Some(bytes) = source.next_line()? {
        number += 1;
        let place = Place::Line(number);
        let text = std::str::from_utf8(bytes).map_err(|error| {
            ReadError::expected(&file, place, "UTF-8 text", &bytes[error.valid_up_to()..])
        })?;
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        reader.builder.position(number.min(u64::from(u32::MAX)) as u32);
        let text = text.trim_ascii();
        reader.line(text, number).map_err(|fault| describe(&file, place, text, &fault))?;
    }
    reader.finish(&file)
}

fn describe(file: &str, place: Place, text: &str, fault: &Fault) -> ReadError {
    let mut rest = Line::new(&text[fault.at..]);
    let found = match rest.token() {
        "" if rest.rest().is_empty() => "the end of the line".into(),
        "" => "a space".into(),
        token => excerpt(token.as_bytes()),
    };
    let error =
        ReadError::new(file, format!("expected {}, found {found}", fault.expected)).at(place);
    match fault.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

pub(super) struct Reader<'a> {
    pub(super) builder: &'a mut HistoryBuilder,
    /// Scratch for the elements of one list.
    elements: Vec<Value>,
    /// Where an update began that was read last and does not tell its rows.
    pub(super) unlisted: Option<usize>,
    /// Names with their lines: most are of transactions that come later.
    serial: Option<Vec<(String, u64)>>,
}

/// What stands before a transaction's operations.
pub(super) struct Head {
    session: Value,
    name: Value,
    interval: Option<Interval>,
    times: Option<TxnTimes>,
    timestamps: Option<Timestamps>,
    number: Option<u64>,
    snapshot: Option<Snapshot>,
}

/// Reads up to the colon, included.
pub(super) fn head(line: &mut Line<'_>, values: &mut Values) -> Result<Head, Fault> {
    let start = line.at();
    let session = line.value(values, Scope::Session).map_err(|_| {
        Fault::new(start, "`SESSION: operations`, a declaration or a comment")
            .hint("a session's name of other characters than letters, digits and `_-.` is quoted")
    })?;
    let mut head = Head {
        session,
        name: Value::NIL,
        interval: None,
        times: None,
        timestamps: None,
        number: None,
        snapshot: None,
    };
    if line.take(b'/') {
        head.name = line.value(values, Scope::Plain)?;
    }
    line.spaces();
    if line.take(b'@') {
        let invoked = line.time(ALWAYS)?;
        line.dots()?;
        let second = line.time(NEVER)?;
        if line.take_text("..") {
            let committing = line.time(ALWAYS)?;
            line.dots()?;
            let completed = line.time(NEVER)?;
            head.times = Some(TxnTimes {
                begin: Interval { invoked, completed: second },
                commit: Interval { invoked: committing, completed },
            });
        } else {
            head.interval = Some(Interval { invoked, completed: second });
        }
        line.spaces();
    }
    if line.take_text("ts=") {
        let start = timestamp(line)?;
        line.dots()?;
        let commit = timestamp(line)?;
        head.timestamps = Some(Timestamps { start, commit });
        line.spaces();
    }
    if line.take_text("id=") {
        head.number = Some(line.natural()?);
        line.spaces();
    }
    head.snapshot = snapshot(line)?;
    line.spaces();
    let at = line.at();
    if !line.take(b':') {
        return Err(Fault::new(at, "`:` and operations after the session"));
    }
    Ok(head)
}

fn timestamp(line: &mut Line<'_>) -> Result<Timestamp, Fault> {
    let physical = line.natural()?;
    let mut logical = 0;
    if !line.rest().starts_with("..") && line.take(b'.') {
        logical = line.natural()?;
    }
    Ok(Timestamp { physical, logical })
}

/// `sees=BELOW` or `sees=BELOW!EXCEPT,EXCEPT`, if it is there.
fn snapshot(line: &mut Line<'_>) -> Result<Option<Snapshot>, Fault> {
    if !line.take_text("sees=") {
        return Ok(None);
    }
    let below = line.natural()?;
    let mut except = Vec::new();
    let mut separator = b'!';
    while line.take(separator) {
        separator = b',';
        let at = line.at();
        let number = line.natural()?;
        if number >= below {
            return Err(Fault::new(at, format!("an exception below the bound {below}")));
        }
        except.push(number);
    }
    Ok(Some(Snapshot { below, except }))
}

impl Reader<'_> {
    fn line(&mut self, text: &str, number: u64) -> Result<(), Fault> {
        let mut line = Line::new(text);
        if text.is_empty() {
            return Ok(());
        }
        if text.starts_with('#') {
            return version(&mut line);
        }
        match line.declaration() {
            None => self.transaction(&mut line),
            Some("init") => self.init(&mut line),
            Some("session") => self.session(&mut line),
            Some("order") => self.order(&mut line),
            Some("serial") => self.serial(&mut line, number),
            Some(_) => self.event(&mut line),
        }
    }

    pub(super) fn value(&mut self, line: &mut Line<'_>) -> Result<Value, Fault> {
        line.value(self.builder.values(), Scope::Plain)
    }

    fn init(&mut self, line: &mut Line<'_>) -> Result<(), Fault> {
        while !line.is_over() {
            let name = if line.take(b'*') { None } else { Some(self.value(line)?) };
            line.punctuation(b'=', "`=` and an initial value")?;
            let value = self.value(line)?;
            match name {
                None => self.builder.declare_initial_default(value),
                Some(name) => {
                    let key = self.builder.key(name);
                    self.builder.initial(key, value);
                }
            }
        }
        Ok(())
    }

    fn session(&mut self, line: &mut Line<'_>) -> Result<(), Fault> {
        let label = line.value(self.builder.values(), Scope::Session)?;
        let session = self.builder.session(label);
        while !line.is_over() {
            let at = line.at();
            let word = line.letters();
            if !matches!(word, "endpoint" | "origin") || !line.spaces() {
                return Err(Fault::new(at, "`endpoint SERVER` or `origin FILE`"));
            }
            let value = self.address(line)?;
            if word == "endpoint" {
                self.builder.endpoint(session, value);
            } else {
                self.builder.origin(session, value);
            }
        }
        Ok(())
    }

    /// A value, or a text like `db1:5432` up to the next space.
    fn address(&mut self, line: &mut Line<'_>) -> Result<Value, Fault> {
        let token = Line::new(line.rest()).token();
        if super::is_plain_address(token) {
            line.token();
            return Ok(self.builder.values().text(token));
        }
        self.value(line)
    }

    fn order(&mut self, line: &mut Line<'_>) -> Result<(), Fault> {
        let name = self.value(line)?;
        let key = self.builder.key(name);
        line.spaces();
        let complete = line.take_text("complete");
        line.punctuation(b':', "`:` and values in the order they were installed")?;
        let (mut values, mut numbers) = (Vec::new(), Vec::new());
        while !line.is_over() {
            values.push(self.value(line)?);
            if line.take(b'@') {
                numbers.push((values.len() as u32 - 1, line.natural()?));
            }
        }
        self.builder.version_chain(VersionChain { key, values, numbers, complete });
        Ok(())
    }

    fn serial(&mut self, line: &mut Line<'_>, number: u64) -> Result<(), Fault> {
        line.punctuation(b':', "`:` and names of transactions")?;
        let names = self.serial.get_or_insert_default();
        while !line.is_over() {
            names.push((line.token().to_owned(), number));
        }
        Ok(())
    }

    fn event(&mut self, line: &mut Line<'_>) -> Result<(), Fault> {
        let time = if line.take(b'?') { None } else { Some(line.integer()?) };
        let at = line.at();
        if !line.spaces() {
            return Err(Fault::new(at, "what happened after the time"));
        }
        if line.peek() == Some(b'"') {
            let text = line.quoted()?.into_owned();
            line.end()?;
            self.builder.event(time, text);
        } else {
            self.builder.event(time, line.rest().to_owned());
        }
        Ok(())
    }

    fn transaction(&mut self, line: &mut Line<'_>) -> Result<(), Fault> {
        let head = head(line, self.builder.values())?;
        let session = self.builder.session(head.session);
        let txn = self.builder.begin(session);
        if head.name != Value::NIL {
            self.builder.label(txn, head.name);
        }
        if let Some(interval) = head.interval.filter(|it| *it != Interval::UNKNOWN) {
            self.builder.interval(txn, interval);
        }
        if let Some(times) = head.times {
            self.builder.times(txn, times);
        }
        if let Some(timestamps) = head.timestamps {
            self.builder.timestamps(txn, timestamps);
        }
        if let Some(number) = head.number {
            self.builder.number(txn, number);
        }
        if let Some(snapshot) = head.snapshot {
            self.builder.txn_snapshot(txn, snapshot);
        }
        line.spaces();
        self.unlisted = None;
        loop {
            if line.is_over() {
                return Ok(());
            }
            let start = line.at();
            let word = line.letters();
            if !line.take(b'(') {
                return self.ending(line, txn, start);
            }
            if let Some(update) = self.unlisted.take()
                && matches!(word, "w" | "d")
            {
                return Err(unlisted_rows(update));
            }
            self.operation(line, start, word)?;
            self.suffixes(line)?;
            if !matches!(line.peek(), None | Some(b' ' | b'\t')) {
                return Err(Fault::new(line.at(), "a space after the operation"));
            }
        }
    }

    /// Outcome and error. The first word begins at `start` and has been read.
    fn ending(&mut self, line: &mut Line<'_>, txn: DraftTxn, start: usize) -> Result<(), Fault> {
        let mut word = line.since(start);
        let outcome = match word {
            "committed" => Some(Outcome::Committed),
            "aborted" => Some(Outcome::Aborted),
            "unknown" | "unlogged" => Some(Outcome::Unknown),
            _ => None,
        };
        let mut at = start;
        if let Some(outcome) = outcome {
            self.builder.outcome(txn, outcome);
            if word == "unlogged" {
                self.builder.unlogged(txn);
            }
            if line.is_over() {
                return Ok(());
            }
            at = line.at();
            word = line.letters();
        }
        if word == "error" && line.spaces() {
            let error = self.value(line)?;
            self.builder.error(txn, error);
            return line.end();
        }
        Err(match outcome {
            None => unknown_operation(at),
            Some(_) => Fault::new(at, "`error TEXT` or the end of the line after the outcome"),
        })
    }

    /// An operation whose name and opening parenthesis have been read.
    fn operation(&mut self, line: &mut Line<'_>, start: usize, name: &str) -> Result<(), Fault> {
        let kind = match name {
            "r" => OpKind::Read,
            "w" => OpKind::Write,
            "a" => OpKind::Append,
            "i" => OpKind::Insert,
            "d" => OpKind::Delete,
            "c" => OpKind::Call,
            "p" => return self.predicate(line, start, OpKind::PredicateRead),
            "u" => return self.predicate(line, start, OpKind::PredicateUpdate),
            _ => return Err(unknown_operation(start)),
        };
        line.spaces();
        let name = self.value(line)?;
        let key = self.builder.key(name);
        line.spaces();
        if kind == OpKind::Delete && line.take(b')') {
            self.builder.op(kind, key, Value::NIL);
            return Ok(());
        }
        line.punctuation(b',', "`,` and a value after the key")?;
        match line.peek() {
            Some(b'[') if kind == OpKind::Read => {
                self.list(line)?;
                self.builder.read_list(key, &self.elements);
            }
            Some(b'!') if kind == OpKind::Read => {
                line.take(b'!');
                let value = self.value(line)?;
                self.builder.op(OpKind::ReadOther, key, value);
            }
            _ => {
                let value = self.value(line)?;
                self.builder.op(kind, key, value);
            }
        }
        close(line)
    }

    /// Reads a list into `self.elements`.
    fn list(&mut self, line: &mut Line<'_>) -> Result<(), Fault> {
        line.take(b'[');
        self.elements.clear();
        loop {
            line.spaces();
            if line.take(b']') {
                return Ok(());
            }
            let element = line.value(self.builder.values(), Scope::Plain).map_err(|fault| {
                Fault { expected: format!("{} or `]`", fault.expected), ..fault }
            })?;
            self.elements.push(element);
        }
    }

    /// A row's columns and an operation's times, where there are any.
    fn suffixes(&mut self, line: &mut Line<'_>) -> Result<(), Fault> {
        if line.take(b'{') {
            line.spaces();
            while !line.take(b'}') {
                let column = self.value(line)?;
                line.punctuation(b'=', "`=` and the column's content after its name")?;
                let content = self.value(line)?;
                self.builder.row_column(column, content);
                line.spaces();
            }
        }
        if line.take(b'@') {
            let invoked = line.time(ALWAYS)?;
            line.dots()?;
            let completed = line.time(NEVER)?;
            self.builder.op_interval(Interval { invoked, completed });
        }
        if let Some(snapshot) = snapshot(line)? {
            self.builder.op_snapshot(snapshot);
        }
        Ok(())
    }

    fn finish(self, file: &str) -> Result<(), ReadError> {
        let Some(serial) = self.serial else {
            return Ok(());
        };
        let mut txns: HashMap<String, Named> = HashMap::new();
        for (number, (txn, name)) in self.builder.draft_names().enumerate() {
            txns.insert(format!("@{}", number + 1), Named::Once(txn));
            txns.entry(name).and_modify(|named| *named = Named::Shared).or_insert(Named::Once(txn));
        }
        let mut order = Vec::with_capacity(serial.len());
        // By transaction, not by name: `first` and `@1` may be the same one.
        let mut listed: HashSet<DraftTxn> = HashSet::new();
        for (name, line) in serial {
            let fail = |expected: &str| {
                ReadError::expected(file, Place::Line(line), expected, name.as_bytes())
            };
            match txns.get(&name) {
                Some(&Named::Once(txn)) if listed.insert(txn) => order.push(txn),
                Some(Named::Once(_)) => return Err(fail("each transaction once")),
                Some(Named::Shared) => {
                    return Err(fail("a name that only one transaction has")
                        .hint("`@3` is the third transaction of the file, whatever its name"));
                }
                None => {
                    return Err(fail("the name of a transaction")
                        .hint("`A` or `A.2` by session and place, or its own label"));
                }
            }
        }
        self.builder.total_order(order);
        Ok(())
    }
}

/// What a name in a serialization order stands for.
enum Named {
    Once(DraftTxn),
    Shared,
}

fn unlisted_rows(at: usize) -> Fault {
    Fault::new(at, "the rows of an update that is followed by a write").hint(
        "list them, as in `u(all; x=?)`; `u(all; ?)` if it changed those that the next writes \
         write, `u(all; none)` if it changed none",
    )
}

fn unknown_operation(at: usize) -> Fault {
    Fault::new(at, "`r(key,value)`, `w(key,value)`, another operation or an outcome")
}

pub(super) fn close(line: &mut Line<'_>) -> Result<(), Fault> {
    line.spaces();
    let at = line.at();
    if line.take(b')') {
        return Ok(());
    }
    Err(Fault::new(at, "`)`"))
}

/// Refuses versions to come. Other comments mean nothing.
fn version(line: &mut Line<'_>) -> Result<(), Fault> {
    line.take(b'#');
    line.spaces();
    if !line.take_text("isolde-history") || !line.spaces() {
        return Ok(());
    }
    let at = line.at();
    match line.natural() {
        Ok(VERSION) => line.end(),
        _ => Err(Fault::new(at, format!("version {VERSION} of the format"))
            .hint("a newer isolde may have written it")),
    }
}
