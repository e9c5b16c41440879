//! The normal form of a statement: without its literals, so that all its runs have one name.

use super::{Token, TokenKind};

/// What a statement is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Statement {
    /// Its text, literals as `?`.
    pub(crate) text: String,
    /// What an application said in a comment about its place in the code, such as
    /// `route='/checkout'`; empty if nothing.
    pub(crate) tags: String,
}

/// How long a name is kept; what follows distinguishes no statements that people write.
const TEXT_MAX: usize = 2000;

/// The normal form of the statement with these tokens.
pub(crate) fn normalised(sql: &str, tokens: &[Token], comments: &[(usize, usize)]) -> Statement {
    let mut text = String::with_capacity(sql.len().min(TEXT_MAX));
    let mut end = tokens.first().map_or(0, |token| token.start);
    for (place, token) in tokens.iter().enumerate() {
        if token.start > end && !text.is_empty() {
            text.push(' ');
        }
        end = token.end;
        if is_sign(sql, tokens, place) {
            continue;
        }
        if token.kind == TokenKind::Literal {
            text.push('?');
            shorten_list(&mut text);
        } else if token.is_punctuation(b')') {
            text.push(')');
            shorten_rows(&mut text);
        } else {
            text.push_str(token.text(sql));
        }
        if text.len() > TEXT_MAX {
            text.push('…');
            break;
        }
    }
    Statement { text, tags: tags(sql, tokens, comments) }
}

/// Whether a token is the sign of a number, which is a part of it.
fn is_sign(sql: &str, tokens: &[Token], place: usize) -> bool {
    let is_literal = |token: &Token| token.kind == TokenKind::Literal;
    let is_open = |token: &Token| {
        token.kind == TokenKind::Operator
            || token.is_punctuation(b'(')
            || token.is_punctuation(b',')
    };
    tokens[place].kind == TokenKind::Operator
        && matches!(tokens[place].text(sql), "-" | "+")
        && tokens.get(place + 1).is_some_and(is_literal)
        && place.checked_sub(1).is_some_and(|before| is_open(&tokens[before]))
}

/// `?, ?` becomes `?`: how many there are names no other statement.
fn shorten_list(text: &mut String) {
    for ending in ["?, ?", "?,?"] {
        if text.ends_with(ending) {
            text.truncate(text.len() - ending.len() + 1);
        }
    }
}

/// Rows of literals become one.
fn shorten_rows(text: &mut String) {
    for ending in ["(?), (?)", "(?),(?)"] {
        if text.ends_with(ending) {
            text.truncate(text.len() - ending.len() + 3);
        }
    }
}

/// Tags that differ from request to request name nothing in the code.
const REQUEST_TAGS: &[&str] = &["traceparent", "tracestate", "request_id", "db_driver"];

/// The tags of a comment by the rules of sqlcommenter: `/*key='value',key='value'*/`.
fn tags(sql: &str, tokens: &[Token], comments: &[(usize, usize)]) -> String {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        return String::new();
    };
    // Before the statement or behind it, also behind its semicolon.
    let is_near =
        |place: &&(usize, usize)| place.0 + 4096 > first.start && place.0 < last.end + 4096;
    let inner = |&(start, end): &(usize, usize)| {
        let text = sql[start..end].strip_prefix("/*")?.strip_suffix("*/")?.trim();
        text.contains("='").then_some(text)
    };
    let Some(text) = comments.iter().filter(is_near).filter_map(inner).next_back() else {
        return String::new();
    };
    let pairs = text.split("',").map(str::trim).filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        !REQUEST_TAGS.contains(&name)
    });
    let pairs: Vec<String> =
        pairs.map(|pair| format!("{}'", pair.strip_suffix('\'').unwrap_or(pair))).collect();
    pairs.join(" ")
}
