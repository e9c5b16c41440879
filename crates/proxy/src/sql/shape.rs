//! What a statement does to which tables, as far as its tokens tell for certain.
//!
//! This is no parser of SQL: it follows the few forms that can be rewritten, and says of
//! everything else why it is not seen. Whatever is not expected makes a statement opaque, which
//! is passed on as it is. A library that parses does not say where in the text its parts stand,
//! and prints another text than the one that the application has sent.

use super::select::select;
use super::{Token, TokenKind};

/// What kind of statement it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Reads rows; those of a locking read stay as they are until the end.
    Select {
        /// Whether it locks them.
        is_locking: bool,
    },
    Insert,
    Update,
    Delete,
    Begin,
    Commit,
    Rollback,
    RollbackTo(String),
    Savepoint(String),
    Release(String),
    /// Changes settings of the session or the transaction.
    Setting,
    /// Forgets the prepared statement of this name, or all.
    Deallocate(Option<String>),
    /// Changes the level of all transactions to come.
    SessionLevel,
    /// Neither reads nor writes rows of tables.
    Quiet,
    /// Changes what tables there are.
    Definition,
    /// Anything else.
    Other,
}

/// A table that a statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRef {
    /// Its name as it is written, with its schema if there is one.
    pub(crate) name: String,
    /// What its columns are called by in this statement.
    pub(crate) qualifier: String,
}

/// What a statement does.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the text")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) verb: Verb,
    /// The tables whose rows it returns or writes.
    pub(crate) tables: Vec<TableRef>,
    /// Where columns are added, in bytes of the text.
    pub(crate) insert_at: usize,
    /// Whether it returns columns of the rows that it writes.
    pub(crate) has_returning: bool,
    /// Names before parentheses: functions, and words that look like them.
    pub(crate) calls: Vec<String>,
    /// The same, of the list of columns alone.
    pub(crate) column_calls: Vec<String>,
    pub(crate) has_window: bool,
    pub(crate) has_group: bool,
    /// What of it is not seen although the rest is.
    pub(crate) gap: Option<&'static str>,
    /// Why it is passed on as it is.
    pub(crate) opaque: Option<&'static str>,
    /// The isolation level that it asks for.
    pub(crate) isolation: Option<String>,
    /// Names may mean something else behind it.
    pub(crate) changes_names: bool,
    /// `AND CHAIN`: the next transaction begins at once.
    pub(crate) is_chained: bool,
}

impl Shape {
    pub(super) fn of(verb: Verb) -> Shape {
        Shape {
            verb,
            tables: Vec::new(),
            insert_at: 0,
            has_returning: false,
            calls: Vec::new(),
            column_calls: Vec::new(),
            has_window: false,
            has_group: false,
            gap: None,
            opaque: None,
            isolation: None,
            changes_names: false,
            is_chained: false,
        }
    }

    /// A statement that is passed on as it is, for this reason.
    pub(super) fn opaque(reason: &'static str) -> Shape {
        Shape { opaque: Some(reason), ..Shape::of(Verb::Other) }
    }
}

/// Words with what they mean, for statements that are known by their first word.
const VERBS: &[(&str, Verb)] = &[
    ("set", Verb::Setting),
    ("reset", Verb::Setting),
    ("discard", Verb::Deallocate(None)),
    ("show", Verb::Quiet),
    ("listen", Verb::Quiet),
    ("notify", Verb::Quiet),
    ("unlisten", Verb::Quiet),
    ("close", Verb::Quiet),
    ("lock", Verb::Quiet),
    ("vacuum", Verb::Quiet),
    ("analyze", Verb::Quiet),
    ("checkpoint", Verb::Quiet),
    ("comment", Verb::Quiet),
    ("create", Verb::Definition),
    ("alter", Verb::Definition),
    ("drop", Verb::Definition),
    ("grant", Verb::Definition),
    ("revoke", Verb::Definition),
];

/// Why statements that begin like this are not seen.
const OPAQUE: &[(&str, &str)] = &[
    ("copy", "COPY"),
    ("truncate", "TRUNCATE"),
    ("do", "a block of procedural code"),
    ("call", "a procedure"),
    ("merge", "MERGE"),
    ("execute", "a statement prepared in SQL"),
    ("declare", "a cursor declared in SQL"),
    ("fetch", "a cursor declared in SQL"),
    ("move", "a cursor declared in SQL"),
    ("values", "VALUES"),
    ("table", "TABLE"),
    ("explain", "EXPLAIN ANALYZE"),
    ("refresh", "a materialized view"),
];

/// The statements of a text: ranges of its tokens, without semicolons.
pub(crate) fn statements(tokens: &[Token]) -> Vec<&[Token]> {
    let parts = tokens.split(|token| token.is_punctuation(b';'));
    parts.filter(|part| !part.is_empty()).collect()
}

/// What a statement with these tokens, at least one, does.
pub(crate) fn shape(sql: &str, tokens: &[Token]) -> Shape {
    let first = tokens[0];
    let is = |word: &str| first.is(sql, word);
    let mut found = if is("select") {
        select(sql, tokens, 0, &[])
    } else if is("with") {
        with(sql, tokens)
    } else if is("insert") {
        insert(sql, tokens, 0)
    } else if is("update") {
        update(sql, tokens, 0)
    } else if is("delete") {
        delete(sql, tokens, 0)
    } else if let Some(control) = control(sql, tokens) {
        control
    } else if is("explain") && !tokens.iter().any(|token| token.is(sql, "analyze")) {
        Shape::of(Verb::Quiet)
    } else if is("create") && tokens.iter().any(|token| token.is(sql, "select")) {
        Shape { opaque: Some("CREATE … AS"), ..Shape::of(Verb::Definition) }
    } else if is("set") && is_about_session_level(sql, tokens) {
        Shape { isolation: isolation(sql, tokens), ..Shape::of(Verb::SessionLevel) }
    } else if let Some((_, verb)) = VERBS.iter().find(|row| is(row.0)) {
        Shape { isolation: isolation(sql, tokens), ..Shape::of(verb.clone()) }
    } else {
        let known = OPAQUE.iter().find(|row| is(row.0));
        Shape::opaque(known.map_or("a statement of another kind", |row| row.1))
    };
    found.calls = calls(sql, tokens);
    found.changes_names = match found.verb {
        Verb::Definition | Verb::Other => true,
        Verb::Setting => {
            let names = ["search_path", "schema", "role", "authorization"];
            is("reset") || tokens.iter().any(|it| names.iter().any(|name| it.is(sql, name)))
        }
        _ => false,
    };
    found
}

/// `SET SESSION CHARACTERISTICS`, or the setting behind it.
fn is_about_session_level(sql: &str, tokens: &[Token]) -> bool {
    let names = ["characteristics", "default_transaction_isolation"];
    tokens.iter().any(|token| names.iter().any(|name| token.is(sql, name)))
}

/// Names before parentheses, in lower case.
pub(super) fn calls(sql: &str, tokens: &[Token]) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for pair in tokens.windows(2) {
        let is_name = matches!(pair[0].kind, TokenKind::Word | TokenKind::Quoted);
        if is_name && pair[1].is_punctuation(b'(') {
            let name = name_of(pair[0].text(sql));
            if !calls.contains(&name) {
                calls.push(name);
            }
        }
    }
    calls
}

/// A name as the catalog has it.
pub(super) fn name_of(text: &str) -> String {
    match text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => text.to_ascii_lowercase(),
    }
}

/// Statements about transactions.
fn control(sql: &str, tokens: &[Token]) -> Option<Shape> {
    let word = |place: usize| tokens.get(place).map(|token| token.text(sql).to_ascii_lowercase());
    let words: Vec<String> = (0..tokens.len().min(8)).filter_map(word).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let has = |wanted: &[&str]| wanted.iter().all(|word| words.contains(word));
    let name = |place: usize| tokens.get(place).map(|token| name_of(token.text(sql)));
    let verb = match words.as_slice() {
        ["begin", ..] | ["start", "transaction", ..] => Verb::Begin,
        ["commit" | "rollback", "prepared", ..] | ["prepare", "transaction", ..] => {
            return Some(Shape::opaque("a two-phase commit"));
        }
        ["commit" | "end", ..] => Verb::Commit,
        ["rollback", "to", "savepoint", _, ..] => Verb::RollbackTo(name(3)?),
        ["rollback", "to", _, ..] => Verb::RollbackTo(name(2)?),
        ["rollback", "work" | "transaction", "to", "savepoint", _, ..] => {
            Verb::RollbackTo(name(4)?)
        }
        ["rollback", "work" | "transaction", "to", _, ..] => Verb::RollbackTo(name(3)?),
        ["rollback" | "abort", ..] => Verb::Rollback,
        ["savepoint", _] => Verb::Savepoint(name(1)?),
        ["release", "savepoint", _] => Verb::Release(name(2)?),
        ["release", _] => Verb::Release(name(1)?),
        ["prepare", ..] => Verb::Quiet,
        ["deallocate", "all"] | ["deallocate", "prepare", "all"] => Verb::Deallocate(None),
        ["deallocate", "prepare", _] => Verb::Deallocate(name(2)),
        ["deallocate", _] => Verb::Deallocate(name(1)),
        _ => return None,
    };
    let is_chained = has(&["and", "chain"]) && !words.contains(&"no");
    Some(Shape { isolation: isolation(sql, tokens), is_chained, ..Shape::of(verb) })
}

/// The level behind `ISOLATION LEVEL`, or behind a setting of one.
fn isolation(sql: &str, tokens: &[Token]) -> Option<String> {
    let text = |token: &Token| token.text(sql).trim_matches('\'').to_ascii_lowercase();
    let words: Vec<String> = tokens.iter().map(text).collect();
    let is_setting = |word: &str| {
        matches!(word, "level" | "transaction_isolation" | "default_transaction_isolation")
    };
    let place = words.iter().position(|word| is_setting(word))?;
    let rest: Vec<&str> = words[place + 1..]
        .iter()
        .map(String::as_str)
        .filter(|word| !matches!(*word, "=" | "to"))
        .take(2)
        .collect();
    let level = rest.join(" ");
    let known = ["serializable", "repeatable read", "read committed", "read uncommitted"];
    known.iter().find(|known| level.starts_with(*known)).map(|known| (*known).to_owned())
}

/// The place behind the parenthesis that closes the one at `open`.
pub(super) fn behind(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (place, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            TokenKind::Punctuation(b'(' | b'[') => depth += 1,
            TokenKind::Punctuation(b')' | b']') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Places of tokens outside of parentheses, from `start` on; names behind dots are left out.
pub(super) fn outside(tokens: &[Token], start: usize) -> impl Iterator<Item = usize> {
    let mut depth = 0i32;
    (start..tokens.len()).filter(move |&place| {
        match tokens[place].kind {
            TokenKind::Punctuation(b'(' | b'[') => depth += 1,
            TokenKind::Punctuation(b')' | b']') => depth -= 1,
            _ => return depth == 0 && (place == 0 || !tokens[place - 1].is_punctuation(b'.')),
        }
        false
    })
}

fn has_outside(sql: &str, tokens: &[Token], start: usize, word: &str) -> bool {
    outside(tokens, start).any(|place| tokens[place].is(sql, word))
}

const INNER_QUERY: &str = "a query inside of the statement";

/// Whether there is a query in parentheses from `start` on.
pub(super) fn inner_query(sql: &str, tokens: &[Token], start: usize) -> Option<&'static str> {
    let mut words = tokens[start..].windows(2);
    let begins = |pair: &[Token]| {
        let is_query = ["select", "with", "table"].iter().any(|word| pair[1].is(sql, word));
        pair[0].is_punctuation(b'(') && is_query
    };
    words.any(begins).then_some(INNER_QUERY)
}

/// A statement behind `WITH`, whose own queries are not seen.
fn with(sql: &str, tokens: &[Token]) -> Shape {
    const UNKNOWN: &str = "WITH";
    let mut names = Vec::new();
    let mut place = 1;
    if tokens.get(place).is_some_and(|token| token.is(sql, "recursive")) {
        place += 1;
    }
    loop {
        let Some(name) = tokens.get(place) else { return Shape::opaque(UNKNOWN) };
        names.push(name_of(name.text(sql)));
        let open = (place + 1..tokens.len())
            .find(|&at| tokens[at].is_punctuation(b'(') && !tokens[at - 1].is(sql, name.text(sql)));
        let Some((open, end)) = open.and_then(|open| Some((open, behind(tokens, open)?))) else {
            return Shape::opaque(UNKNOWN);
        };
        let first = &tokens[open + 1];
        if ["insert", "update", "delete", "merge"].iter().any(|word| first.is(sql, word)) {
            return Shape::opaque("WITH that writes");
        }
        place = end;
        match tokens.get(place) {
            Some(token) if token.is_punctuation(b',') => place += 1,
            Some(_) => break,
            None => return Shape::opaque(UNKNOWN),
        }
    }
    let main = &tokens[place];
    let mut shape = if main.is(sql, "select") {
        select(sql, tokens, place, &names)
    } else if main.is(sql, "insert") {
        insert(sql, tokens, place)
    } else if main.is(sql, "update") {
        update(sql, tokens, place)
    } else if main.is(sql, "delete") {
        delete(sql, tokens, place)
    } else {
        return Shape::opaque(UNKNOWN);
    };
    shape.gap = shape.gap.or(Some("the queries of WITH"));
    shape
}

/// A name with its schema from `place` on, and the place behind it.
pub(super) fn table_name(sql: &str, tokens: &[Token], place: usize) -> Option<(TableRef, usize)> {
    let is_name = |place: usize| {
        let kind = tokens.get(place).map(|token| token.kind);
        matches!(kind, Some(TokenKind::Word | TokenKind::Quoted))
    };
    if !is_name(place) {
        return None;
    }
    let mut last = place;
    while tokens.get(last + 1).is_some_and(|token| token.is_punctuation(b'.')) && is_name(last + 2)
    {
        last += 2;
    }
    let parts = (place..=last).step_by(2).map(|at| tokens[at].text(sql));
    let name = parts.collect::<Vec<_>>().join(".");
    Some((TableRef { name, qualifier: tokens[last].text(sql).to_owned() }, last + 1))
}

/// The table that a statement writes, with its alias if one stands before any of `ends`.
fn target(sql: &str, tokens: &[Token], place: usize, ends: &[&str]) -> Option<(TableRef, usize)> {
    let place = place + usize::from(tokens.get(place)?.is(sql, "only"));
    let (mut table, mut place) = table_name(sql, tokens, place)?;
    if tokens.get(place).is_some_and(|token| token.text(sql) == "*") {
        place += 1;
    }
    let is_end = |token: &Token| ends.iter().any(|word| token.is(sql, word));
    if let Some(token) = tokens.get(place).filter(|token| !is_end(token)) {
        let has_as = token.is(sql, "as");
        let alias = tokens.get(place + usize::from(has_as))?;
        if has_as || matches!(alias.kind, TokenKind::Word | TokenKind::Quoted) {
            alias.text(sql).clone_into(&mut table.qualifier);
            place += 1 + usize::from(has_as);
        }
    }
    Some((table, place))
}

/// A statement that writes one table, whose rows are told at its end.
fn write(sql: &str, tokens: &[Token], start: usize, verb: Verb, table: TableRef) -> Shape {
    Shape {
        tables: vec![table],
        insert_at: tokens.last().expect("a statement has tokens").end,
        has_returning: has_outside(sql, tokens, start, "returning"),
        gap: inner_query(sql, tokens, start),
        ..Shape::of(verb)
    }
}

fn insert(sql: &str, tokens: &[Token], start: usize) -> Shape {
    const ENDS: &[&str] = &["select", "values", "default", "with", "overriding", "table"];
    let is_into = tokens.get(start + 1).is_some_and(|token| token.is(sql, "into"));
    let Some((table, place)) = target(sql, tokens, start + 2, ENDS).filter(|_| is_into) else {
        return Shape::opaque("an INSERT of another form");
    };
    let mut shape = write(sql, tokens, start, Verb::Insert, table);
    if ["select", "with", "table"].iter().any(|word| has_outside(sql, tokens, place, word)) {
        shape.gap = Some("the query of INSERT … SELECT");
    }
    shape
}

fn update(sql: &str, tokens: &[Token], start: usize) -> Shape {
    let found = target(sql, tokens, start + 1, &["set"]);
    let is_set = |place: usize| tokens.get(place).is_some_and(|token| token.is(sql, "set"));
    let Some((table, place)) = found.filter(|found| is_set(found.1)) else {
        return Shape::opaque("an UPDATE of another form");
    };
    let mut shape = write(sql, tokens, start, Verb::Update, table);
    let is_from = |at: usize| tokens[at].is(sql, "from") && !tokens[at - 1].is(sql, "distinct");
    if outside(tokens, place).any(is_from) {
        shape.gap = Some("the other tables of UPDATE … FROM");
    }
    shape
}

fn delete(sql: &str, tokens: &[Token], start: usize) -> Shape {
    let is_from = tokens.get(start + 1).is_some_and(|token| token.is(sql, "from"));
    let found = target(sql, tokens, start + 2, &["using", "where", "returning"]);
    let Some((table, place)) = found.filter(|_| is_from) else {
        return Shape::opaque("a DELETE of another form");
    };
    let mut shape = write(sql, tokens, start, Verb::Delete, table);
    if has_outside(sql, tokens, place, "using") {
        shape.gap = Some("the other tables of DELETE … USING");
    }
    shape
}
