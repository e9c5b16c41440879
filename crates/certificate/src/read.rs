//! Reading a certificate; `docs/certificate.md` specifies the text.
//!
//! A certificate comes from anywhere, so nothing is believed: every line is read as what
//! it may be at its place, memory grows with the bytes actually read, and whatever is
//! wrong is an error with its line.

use crate::fingerprint::Fingerprint;
use crate::proof::{
    Case, Cases, Certificate, ChosenOrigin, Claim, Clause, Derivation, End, Link, Literal, Node,
    Open, Proof, Reading, ReadingKind, Refutation, Search, Step, Taken, Variable, Witness,
};
use crate::rule::{Rule, StepId};
use crate::write::FIRST_LINE;
use isolde_history::{KeyId, OpId, Place, ReadError, Source, Time, TxnId};

/// Cases in cases in cases: reading goes as deep, and stacks do not.
const CASES_DEPTH_MAX: usize = 64;

/// Reads a certificate.
pub fn read(source: &mut Source<'_>) -> Result<Certificate, ReadError> {
    let mut lines = Lines { name: source.name().into(), source, line: Vec::new(), number: 0 };
    lines.advance()?;
    if lines.line != FIRST_LINE.as_bytes() {
        return Err(lines.expected(&format!("`{FIRST_LINE}`")));
    }
    lines.advance()?;
    let history = lines.words().fingerprint().ok_or_else(|| {
        lines.expected("`history HASH sessions COUNT transactions COUNT operations COUNT`")
    })?;
    lines.advance()?;
    let mut clock_drift = 0;
    if lines.words().is("clock-drift") {
        let drift = lines.words().after_first().last_number();
        clock_drift = drift
            .and_then(|drift| Time::try_from(drift).ok())
            .filter(|&drift| drift > 0)
            .ok_or_else(|| lines.expected("`clock-drift NANOSECONDS`, more than 0"))?;
        lines.advance()?;
    }
    let mut words = lines.words();
    let count = (words.is("claims")).then(|| words.last_number()).flatten();
    let count = count.ok_or_else(|| lines.expected("`claims COUNT`"))?;
    let mut claims = Vec::new();
    for _ in 0..count {
        claims.push(read_claim(&mut lines)?);
    }
    while lines.advance()? {
        if !lines.line.trim_ascii().is_empty() {
            return Err(lines.expected("nothing after the last claim"));
        }
    }
    Ok(Certificate { history, clock_drift, claims })
}

struct Lines<'s, 'a> {
    name: String,
    source: &'s mut Source<'a>,
    /// The line being read.
    line: Vec<u8>,
    number: u64,
}

impl Lines<'_, '_> {
    /// Goes to the next line, which is empty after the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        self.line.clear();
        self.number += 1;
        let Some(line) = self.source.next_line()? else { return Ok(false) };
        self.line.extend_from_slice(line);
        Ok(true)
    }

    fn words(&self) -> Words<'_> {
        // What is not text has no words that mean anything here.
        Words { rest: std::str::from_utf8(&self.line).unwrap_or("\u{fffd}") }
    }

    fn expected(&self, what: &str) -> ReadError {
        ReadError::expected(&self.name, Place::Line(self.number), what, &self.line)
    }
}

fn read_claim(lines: &mut Lines<'_, '_>) -> Result<Claim, ReadError> {
    lines.advance()?;
    let (satisfied, shown_at) = lines
        .words()
        .claim()
        .ok_or_else(|| lines.expected("`claim satisfied LEVEL` or `claim violated LEVEL`"))?;
    lines.advance()?;
    let levels = lines.words().levels().ok_or_else(|| lines.expected("`levels LEVEL…`"))?;
    lines.advance()?;
    let proof = if satisfied {
        Proof::Witness(read_witness(lines)?)
    } else {
        Proof::Refutation(read_refutation(lines, CASES_DEPTH_MAX)?)
    };
    if lines.line != b"end" {
        return Err(lines.expected("`end` of the claim"));
    }
    Ok(Claim { shown_at, levels, proof })
}

/// Starts at the first line of the order and ends at the line after the witness.
fn read_witness(lines: &mut Lines<'_, '_>) -> Result<Witness, ReadError> {
    if lines.words().is("events") {
        let mut events = Vec::new();
        while lines.words().is("events") {
            let expected = |lines: &Lines<'_, '_>| {
                lines.expected("`events` and begins or commits, as `b0 c0`")
            };
            lines
                .words()
                .after_first()
                .all(Words::node, &mut events)
                .ok_or_else(|| expected(lines))?;
            lines.advance()?;
        }
        return Ok(Witness::Events(events));
    }
    if !lines.words().is("commits") {
        return Err(lines.expected("`events …` or `commits …`"));
    }
    let (mut order, mut origins) = (Vec::new(), Vec::new());
    while lines.words().is("commits") {
        let expected =
            |lines: &Lines<'_, '_>| lines.expected("`commits` and numbers of transactions");
        lines.words().after_first().all(Words::txn, &mut order).ok_or_else(|| expected(lines))?;
        lines.advance()?;
    }
    while lines.words().is("origin") {
        let origin = lines.words().after_first().whole(Words::origin);
        origins.push(origin.ok_or_else(|| lines.expected("`origin READ KEY WRITER`"))?);
        lines.advance()?;
    }
    let mut appends = Vec::new();
    while lines.words().is("append") {
        let append = lines.words().after_first().whole(Words::op);
        appends.push(append.ok_or_else(|| lines.expected("`append OPERATION`"))?);
        lines.advance()?;
    }
    Ok(Witness::Commits { order, origins, appends })
}

/// Starts at the first line of the refutation and ends at the line after it.
fn read_refutation(lines: &mut Lines<'_, '_>, depth: usize) -> Result<Refutation, ReadError> {
    if lines.words().is("cases") {
        return read_cases(lines, depth).map(Refutation::Cases);
    }
    if lines.words().is("reading") {
        let reading = lines.words().after_first().whole(Words::reading);
        let reading = reading.ok_or_else(|| lines.expected("`reading KIND KEY OPERATION…`"))?;
        lines.advance()?;
        return Ok(Refutation::Reading(reading));
    }
    if lines.words().is("orders") {
        let mut keys = Vec::new();
        while lines.words().is("orders") {
            let all = lines.words().after_first().all(Words::key, &mut keys);
            all.ok_or_else(|| lines.expected("`orders KEY…`"))?;
            lines.advance()?;
        }
        return Ok(Refutation::Orders(keys));
    }
    let mut steps = Vec::new();
    while lines.words().is("step") {
        let step = lines.words().after_first().whole(Words::step);
        steps.push(step.ok_or_else(|| {
            lines.expected(
                "`step FROM TO RULE` and what the rule needs, as `step c0 b1 reads-from 3 0`",
            )
        })?);
        lines.advance()?;
    }
    if lines.words().is("cycle") {
        let mut path = Vec::new();
        let all = lines.words().after_first().all(Words::step_id, &mut path);
        all.ok_or_else(|| lines.expected("`cycle STEP…`"))?;
        lines.advance()?;
        return Ok(Refutation::Derivation(Derivation { steps, end: End::Cycle(path) }));
    }
    let (mut variables, mut clauses) = (Vec::new(), Vec::new());
    while lines.words().is("variable") {
        let variable = lines.words().after_first().whole(Words::variable);
        variables.push(variable.ok_or_else(|| {
            lines.expected(
                "`variable order KEY WRITER WRITER`, `variable origin READ KEY WRITER` or `variable before FROM TO`",
            )
        })?);
        lines.advance()?;
    }
    while lines.words().is("clause") {
        let clause = lines.words().after_first().whole(Words::clause);
        clauses.push(clause.ok_or_else(|| {
            lines.expected("`clause cycle`, `clause one-origin`, `clause seen-or-after`, `clause seen-together` or `clause lemma` and what it needs")
        })?);
        lines.advance()?;
    }
    if clauses.is_empty() {
        return Err(lines
            .expected("`reading …`, `orders …`, `step …`, `cycle …`, `variable …` or `clause …`"));
    }
    let end = End::Search(Search { variables, clauses });
    Ok(Refutation::Derivation(Derivation { steps, end }))
}

/// Starts at the line that says what is open and ends at the line after the last case.
fn read_cases(lines: &mut Lines<'_, '_>, depth: usize) -> Result<Cases, ReadError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(lines.expected(&format!("cases in at most {CASES_DEPTH_MAX} others")));
    };
    let open = lines.words().after_first().whole(Words::open).ok_or_else(|| {
        lines.expected("`cases outcome TXN`, `cases element APPEND` or `cases origin READ KEY`")
    })?;
    lines.advance()?;
    let mut cases = Vec::new();
    while lines.words().is("case") {
        let case = lines.words().after_first().whole(Words::case);
        let (shown_at, taken) = case.ok_or_else(|| {
            lines.expected(
                "`case LEVEL` and `counts`, `counts-not`, `append OPERATION` or `saw WRITER`",
            )
        })?;
        lines.advance()?;
        let refutation = read_refutation(lines, depth)?;
        cases.push(Case { shown_at, taken, refutation });
    }
    if lines.line != b"no-other-case" {
        return Err(lines.expected("`case LEVEL …` or `no-other-case`"));
    }
    lines.advance()?;
    Ok(Cases { open, cases })
}

/// The words of a line that are still to be read, one space between them.
#[derive(Clone, Copy)]
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(word)
    }

    /// Takes the next word if it is this one.
    fn is(&mut self, word: &str) -> bool {
        let mut after = *self;
        let found = after.next() == Some(word);
        if found {
            *self = after;
        }
        found
    }

    fn after_first(mut self) -> Self {
        self.next();
        self
    }

    /// What `read` makes of all the words.
    fn whole<T>(mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        read(&mut self).filter(|_| self.rest.is_empty())
    }

    /// Reads things until the line ends.
    fn all<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>, into: &mut Vec<T>) -> Option<()> {
        while !self.rest.is_empty() {
            into.push(read(self)?);
        }
        Some(())
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut things = Vec::new();
        self.all(read, &mut things)?;
        Some(things)
    }

    fn last_number(mut self) -> Option<u64> {
        let number = self.next().and_then(natural::<u64>);
        number.filter(|_| self.rest.is_empty())
    }

    fn fingerprint(mut self) -> Option<Fingerprint> {
        let counted = |words: &mut Self, word| {
            if words.is(word) { words.next().and_then(natural::<u64>) } else { None }
        };
        if !self.is("history") {
            return None;
        }
        let hash = self.next().filter(|hash| hash.len() == 32)?;
        // `from_str_radix` takes a sign.
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let hash = hash.bytes().all(is_digit).then(|| u128::from_str_radix(hash, 16).ok())??;
        let sessions = counted(&mut self, "sessions")?;
        let transactions = counted(&mut self, "transactions")?;
        let operations = counted(&mut self, "operations")?;
        let fingerprint = Fingerprint { hash, sessions, transactions, operations };
        self.rest.is_empty().then_some(fingerprint)
    }

    fn claim(mut self) -> Option<(bool, String)> {
        if !self.is("claim") {
            return None;
        }
        let satisfied = match self.next()? {
            "satisfied" => true,
            "violated" => false,
            _ => return None,
        };
        let level = self.next()?;
        self.rest.is_empty().then(|| (satisfied, level.into()))
    }

    fn levels(mut self) -> Option<Vec<String>> {
        let levels =
            self.is("levels").then(|| self.list(|words| words.next().map(String::from)))?;
        levels.filter(|levels| !levels.is_empty())
    }

    fn number(&mut self) -> Option<u32> {
        self.next().and_then(natural::<u32>)
    }

    fn txn(&mut self) -> Option<TxnId> {
        self.number().map(TxnId)
    }

    fn op(&mut self) -> Option<OpId> {
        self.number().map(OpId)
    }

    fn key(&mut self) -> Option<KeyId> {
        self.number().map(KeyId)
    }

    fn step_id(&mut self) -> Option<StepId> {
        self.number().map(StepId)
    }

    fn node(&mut self) -> Option<Node> {
        self.next().and_then(node)
    }

    fn literal(&mut self) -> Option<Literal> {
        self.next().and_then(literal)
    }

    fn origin(&mut self) -> Option<ChosenOrigin> {
        let (read, key) = (self.op()?, self.key()?);
        let writer = if self.is("initial") { None } else { Some(self.txn()?) };
        Some(ChosenOrigin { read, key, writer })
    }

    fn open(&mut self) -> Option<Open> {
        match self.next()? {
            "outcome" => Some(Open::Outcome(self.txn()?)),
            "element" => Some(Open::Element(self.op()?)),
            "origin" => Some(Open::Origin { read: self.op()?, key: self.key()? }),
            _ => None,
        }
    }

    fn case(&mut self) -> Option<(String, Taken)> {
        let level = self.next()?.into();
        let taken = match self.next()? {
            "counts" => Taken::Counts,
            "counts-not" => Taken::CountsNot,
            "append" => Taken::Append(self.op()?),
            "saw" if self.is("initial") => Taken::Writer(None),
            "saw" if self.is("nobody") => Taken::Nowhere,
            "saw" => Taken::Writer(Some(self.txn()?)),
            _ => return None,
        };
        Some((level, taken))
    }

    fn reading(&mut self) -> Option<Reading> {
        let name = self.next()?;
        let kind = ReadingKind::ALL.into_iter().find(|kind| kind.name() == name)?;
        Some(Reading { kind, key: self.key()?, ops: self.list(Words::op)? })
    }

    fn step(&mut self) -> Option<Step> {
        let (from, to) = (self.node()?, self.node()?);
        let rule = match self.next()? {
            "session" => Rule::Session,
            "real-time" => Rule::RealTime,
            "initial-first" => Rule::InitialFirst,
            "reads-from" => Rule::ReadsFrom { read: self.op()?, key: self.key()? },
            "list-order" => Rule::ListOrder { read: self.op()?, key: self.key()? },
            "given-order" => Rule::GivenOrder { key: self.key()? },
            "initial-read" => Rule::InitialRead { read: self.op()?, key: self.key()? },
            "saw-change" => Rule::SawChange { read: self.op()?, key: self.key()? },
            "missed-change" => Rule::MissedChange { read: self.op()?, key: self.key()? },
            "pair" => Rule::Pair { key: self.key()?, path: self.list(Words::step_id)? },
            "visible" => {
                let (read, key) = (self.op()?, self.key()?);
                Rule::Visible { read, key, path: self.list(Words::step_id)? }
            }
            "anti-dependency" => {
                let (read, key) = (self.op()?, self.key()?);
                Rule::AntiDependency { read, key, path: self.list(Words::step_id)? }
            }
            _ => return None,
        };
        Some(Step { from, to, rule })
    }

    fn variable(&mut self) -> Option<Variable> {
        match self.next()? {
            "order" => {
                let (key, first, second) = (self.key()?, self.txn()?, self.txn()?);
                Some(Variable::Order { key, first, second })
            }
            "origin" => Some(Variable::Origin(self.origin()?)),
            "before" => Some(Variable::Before { from: self.node()?, to: self.node()? }),
            _ => None,
        }
    }

    fn clause(&mut self) -> Option<Clause> {
        match self.next()? {
            "cycle" => Some(Clause::Cycle(self.list(Words::link)?)),
            "one-origin" => Some(Clause::OneOrigin { read: self.op()?, key: self.key()? }),
            "seen-or-after" => {
                let (read, key) = (self.op()?, self.key()?);
                let (writer, other) = (self.txn()?, self.txn()?);
                Some(Clause::SeenOrAfter { read, key, writer, other })
            }
            "seen-together" => {
                Some(Clause::SeenTogether { one: self.origin()?, other: self.origin()? })
            }
            "lemma" => Some(Clause::Lemma(self.list(Words::literal)?)),
            _ => None,
        }
    }

    fn link(&mut self) -> Option<Link> {
        let parts: Vec<&str> = self.next()?.split(':').collect();
        Some(match parts[..] {
            [step] => Link::Step(StepId(natural(step)?)),
            [it, from, to] => {
                Link::Literal { literal: literal(it)?, from: node(from)?, to: node(to)? }
            }
            [order, origin, from, to] => {
                let (order, origin) = (literal(order)?, literal(origin)?);
                Link::Overwritten { order, origin, from: node(from)?, to: node(to)? }
            }
            _ => return None,
        })
    }
}

/// A number in digits alone, without a sign or leading zeros: each thing has one notation.
fn natural<T: std::str::FromStr>(word: &str) -> Option<T> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (word == "0" || !word.starts_with('0'));
    plain.then(|| word.parse().ok()).flatten()
}

fn node(word: &str) -> Option<Node> {
    if word == "initial" {
        return Some(Node::INITIAL);
    }
    let number = natural::<u32>(word.get(1..)?).filter(|&txn| txn < Node::TXNS_MAX)?;
    match word.as_bytes()[0] {
        b'b' => Some(Node::begin(TxnId(number))),
        b'c' => Some(Node::commit(TxnId(number))),
        _ => None,
    }
}

fn literal(word: &str) -> Option<Literal> {
    let number = natural::<u32>(word.get(1..)?).filter(|&variable| variable < u32::MAX / 2)?;
    match word.as_bytes()[0] {
        b'+' => Some(Literal::yes(number)),
        b'-' => Some(Literal::no(number)),
        _ => None,
    }
}
