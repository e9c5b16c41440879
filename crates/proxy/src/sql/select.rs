//! The shape of a `SELECT`: where its list of columns ends, and which tables it reads.

use super::shape::{behind, calls, inner_query, name_of, outside, table_name};
use super::{Shape, TableRef, Token, TokenKind, Verb};

/// What ends the list of tables.
const ENDS: &[&str] =
    &["where", "group", "having", "order", "limit", "offset", "fetch", "for", "window"];
/// What begins a join.
const JOINS: &[&str] = &["join", "left", "right", "full", "inner", "cross", "natural"];
const SETS: &[&str] = &["union", "intersect", "except"];

/// The `SELECT` at `start`, in which `common` are names of common table expressions.
pub(super) fn select(sql: &str, tokens: &[Token], start: usize, common: &[String]) -> Shape {
    let is = |place: usize, word: &str| tokens.get(place).is_some_and(|it| it.is(sql, word));
    let is_any = |place: usize, words: &[&str]| words.iter().any(|word| is(place, word));
    // What stands behind `AS` is a name, whatever it is.
    let clauses = || outside(tokens, start + 1).filter(|&place| !is(place - 1, "as"));
    if is(start + 1, "distinct") {
        return Shape::opaque("SELECT DISTINCT");
    }
    if clauses().any(|place| is_any(place, SETS)) {
        return Shape::opaque("UNION, INTERSECT or EXCEPT");
    }
    let verb = Verb::Select { is_locking: clauses().any(|place| is(place, "for")) };
    let mut shape = Shape::of(verb);
    let from = clauses().find(|&place| is(place, "from") && !is(place - 1, "distinct"));
    let columns_end = from.unwrap_or(tokens.len());
    if clauses().take_while(|&place| place < columns_end).any(|place| is(place, "into")) {
        return Shape::opaque("SELECT … INTO");
    }
    shape.gap = inner_query(sql, tokens, start);
    shape.insert_at = tokens[columns_end - 1].end;
    shape.column_calls = calls(sql, &without_inner_queries(sql, &tokens[start + 1..columns_end]));
    shape.has_window = tokens[start..columns_end].iter().any(|token| token.is(sql, "over"));
    shape.has_group = clauses().any(|place| is(place, "group"));
    let Some(from) = from else { return shape };
    let end = clauses().find(|&place| place > from && is_any(place, ENDS));
    let mut list = List { sql, tokens: &tokens[..end.unwrap_or(tokens.len())], at: from + 1 };
    let Some(items) = list.items() else {
        return Shape::opaque("tables that are joined in another form");
    };
    for item in items {
        match item {
            Item::Table(table) if common.contains(&name_of(&table.name)) => {
                shape.gap = shape.gap.or(Some("the queries of WITH"));
            }
            Item::Table(table) => shape.tables.push(table),
            Item::Unseen(what) => shape.gap = shape.gap.or(Some(what)),
        }
    }
    shape
}

/// The tokens that are in no query in parentheses: what that computes is another's.
fn without_inner_queries(sql: &str, tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut place = 0;
    while let Some(token) = tokens.get(place) {
        let is_query = token.is_punctuation(b'(')
            && tokens.get(place + 1).is_some_and(|it| it.is(sql, "select") || it.is(sql, "with"));
        kept.push(*token);
        place = if is_query { behind(tokens, place).unwrap_or(tokens.len()) } else { place + 1 };
    }
    kept
}

/// One of the tables of a list.
enum Item {
    Table(TableRef),
    Unseen(&'static str),
}

/// The list of tables behind `FROM`.
struct List<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl List<'_> {
    fn is(&self, word: &str) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.is(self.sql, word))
    }

    fn is_punctuation(&self, byte: u8) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.is_punctuation(byte))
    }

    /// Goes over the word if it is the next one.
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.is(word);
        self.at += usize::from(is_next);
        is_next
    }

    /// All of them; `None` if something is not understood.
    fn items(&mut self) -> Option<Vec<Item>> {
        let mut items = vec![self.item()?];
        while self.at < self.tokens.len() {
            if self.is_punctuation(b',') {
                self.at += 1;
            } else if !self.takes_join() {
                return None;
            }
            items.push(self.item()?);
            self.skip_condition()?;
        }
        Some(items)
    }

    fn takes_join(&mut self) -> bool {
        let start = self.at;
        self.takes("natural");
        let _ = self.takes("inner") || self.takes("cross") || self.takes_outer();
        let is_join = self.takes("join");
        if !is_join {
            self.at = start;
        }
        is_join
    }

    fn takes_outer(&mut self) -> bool {
        let is_outer = self.takes("left") || self.takes("right") || self.takes("full");
        if is_outer {
            self.takes("outer");
        }
        is_outer
    }

    fn item(&mut self) -> Option<Item> {
        let is_lateral = self.takes("lateral");
        if self.is_punctuation(b'(') {
            self.at = behind(self.tokens, self.at)?;
            self.alias()?;
            return Some(Item::Unseen("a query or a join in parentheses behind FROM"));
        }
        if self.is("rows") {
            return None;
        }
        self.takes("only");
        let (mut table, next) = table_name(self.sql, self.tokens, self.at)?;
        self.at = next;
        if self.is_punctuation(b'(') {
            self.at = behind(self.tokens, self.at)?;
            if self.takes("with") && !self.takes("ordinality") {
                return None;
            }
            self.alias()?;
            return Some(Item::Unseen("a function behind FROM"));
        }
        if is_lateral || self.is("tablesample") {
            return None;
        }
        if self.tokens.get(self.at).is_some_and(|token| token.text(self.sql) == "*") {
            self.at += 1;
        }
        match self.alias()? {
            Alias::Columns => return Some(Item::Unseen("a table whose columns have other names")),
            Alias::Name(alias) => table.qualifier = alias,
            Alias::None => {}
        }
        if self.is("tablesample") {
            return None;
        }
        Some(Item::Table(table))
    }

    fn alias(&mut self) -> Option<Alias> {
        let has_as = self.takes("as");
        let Some(token) = self.tokens.get(self.at) else {
            return (!has_as).then_some(Alias::None);
        };
        let is_word = matches!(token.kind, TokenKind::Word | TokenKind::Quoted);
        let is_clause = || {
            let words = JOINS.iter().chain(&["on", "using", "tablesample"]);
            words.clone().any(|word| token.is(self.sql, word))
        };
        let name = if is_word && (has_as || !is_clause()) {
            self.at += 1;
            Some(token.text(self.sql).to_owned())
        } else if has_as && !self.is_punctuation(b'(') {
            return None;
        } else {
            None
        };
        if (name.is_some() || has_as) && self.is_punctuation(b'(') {
            self.at = behind(self.tokens, self.at)?;
            return Some(Alias::Columns);
        }
        Some(name.map_or(Alias::None, Alias::Name))
    }

    /// Goes over what stands between a join and the next one.
    fn skip_condition(&mut self) -> Option<()> {
        if self.takes("using") {
            self.at = behind(self.tokens, self.at)?;
            return if self.is("as") { None } else { Some(()) };
        }
        if !self.takes("on") {
            return Some(());
        }
        let is_next = |place: usize| {
            let word = &self.tokens[place];
            let is_call = self.tokens.get(place + 1).is_some_and(|it| it.is_punctuation(b'('));
            let is_column = self.tokens[place - 1].is_punctuation(b'.');
            JOINS.iter().any(|join| word.is(self.sql, join)) && !is_call && !is_column
        };
        // A list goes on behind a comma outside of parentheses.
        let mut depth = 0i32;
        while let Some(token) = self.tokens.get(self.at) {
            match token.kind {
                TokenKind::Punctuation(b'(' | b'[') => depth += 1,
                TokenKind::Punctuation(b')' | b']') => depth -= 1,
                TokenKind::Punctuation(b',') if depth == 0 => break,
                TokenKind::Word if depth == 0 && is_next(self.at) => break,
                _ => {}
            }
            self.at += 1;
        }
        Some(())
    }
}

enum Alias {
    None,
    Name(String),
    /// The table's columns have other names.
    Columns,
}
