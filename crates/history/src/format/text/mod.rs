//! The native text format: what people and tests write by hand.
//!
//! Described in `docs/formats/text.md`. It keeps everything the model has but
//! the places of operations in a foreign source and an importer's remarks.
//! Tolerated beyond the description: a byte order mark, spaces around
//! punctuation, and any order of declarations and transactions.

mod condition;
mod read;
mod scan;
mod write;

use super::{Format, Sample, Writer};
use scan::{Line, Scope};

pub(super) const FORMAT: Format = Format {
    name: "text",
    title: "Isolde's text format, one transaction a line",
    detect,
    read: read::read,
    write: Some(Writer::File(write::write)),
};

const VERSION: u64 = 1;
/// First words of lines that are no transactions. A session of this name is quoted.
const DECLARATIONS: [&str; 5] = ["init", "session", "order", "serial", "event"];

/// What the `# expect LEVEL VERDICT` comments of a text demand, in their order.
/// A comment with anything but one level and one verdict comes back as it is, so
/// that a mistake in it is seen and not skipped.
pub fn expectations(text: &str) -> Vec<(String, String)> {
    let demands = text.lines().filter_map(|line| {
        let comment = line.trim().strip_prefix('#')?.trim_start();
        let demand = comment.strip_prefix("expect")?;
        demand.starts_with([' ', '\t']).then(|| demand.trim())
    });
    demands
        .map(|demand| {
            let (level, verdict) = demand.split_once([' ', '\t']).unwrap_or((demand, ""));
            (level.to_owned(), verdict.trim_start().to_owned())
        })
        .collect()
}

fn detect(sample: &Sample<'_>) -> bool {
    if sample.names.is_some() {
        return false;
    }
    let head = sample.head;
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    for line in head.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line.trim_ascii());
        if line.starts_with("# isolde-history") || line.starts_with("# expect ") {
            return true;
        }
        if !line.is_empty() && !line.starts_with('#') {
            return looks_like_a_line(&line);
        }
    }
    false
}

/// Whether this is a declaration or begins like a transaction. What follows may
/// be wrong: then the reader tells where, which is better than not knowing the
/// format at all.
fn looks_like_a_line(line: &str) -> bool {
    let mut cursor = Line::new(line);
    if let Some(word) = cursor.declaration() {
        return match word {
            "init" => line.contains('='),
            "order" => line.contains(": "),
            "serial" => cursor.take(b':'),
            "event" => cursor
                .rest()
                .starts_with(|first: char| first == '?' || first == '-' || first.is_ascii_digit()),
            _ => true,
        };
    }
    let mut values = crate::value::Values::default();
    if read::head(&mut cursor, &mut values).is_err() {
        return names_operations(line);
    }
    let rest = cursor.rest();
    let word = rest.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    rest.is_empty()
        || rest.starts_with([' ', '\t', '#'])
        || (word.len() < rest.len() && word.starts_with('('))
}

/// Whether a line that begins like none goes on like one: a word, then reads or writes.
/// No other format has those behind a space.
fn names_operations(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && [" r(", " w("].iter().any(|operation| line.contains(operation))
}

/// Whether `token` means the text `token` where an address is expected: it is
/// not the notation of another value and ends at the next space.
fn is_plain_address(token: &str) -> bool {
    let first_fits = token
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric() || b"_/[.".contains(&first));
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:[]%@".contains(&byte);
    let mut line = Line::new(token);
    let mut values = crate::value::Values::default();
    let is_value = line.value(&mut values, Scope::Plain).is_ok() && line.rest().is_empty();
    first_fits && token.bytes().all(fits) && (!is_value || crate::value::is_bare_word(token))
}

#[cfg(test)]
mod tests;
