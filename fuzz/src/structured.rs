//! Histories from bytes: whatever the bytes are, a history that clients may have recorded.
//!
//! Of inputs that are changed blindly, five in six end in a reader. Here every byte is a choice:
//! which session goes on, what its transaction does, and which of the versions that there are a
//! read sees. Most reads see one, so that levels have something to decide.

use std::fmt::Write;

const SESSIONS: &[&str] = &["A", "B", "C"];
const REGISTERS: &[&str] = &["x", "y"];
const LISTS: &[&str] = &["l", "m"];
const OPS_MAX: usize = 3;

/// Choices, one byte each; of no more bytes, the first one each time.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    /// One of so many.
    pub fn below(&mut self, count: usize) -> usize {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(byte) % count.max(1)
    }

    /// One of these.
    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Whether there are choices left.
    pub fn are_left(&self) -> bool {
        !self.0.is_empty()
    }
}

/// What has been written, by the places of keys.
#[derive(Default)]
struct Store {
    registers: [Vec<u32>; 2],
    lists: [Vec<u32>; 2],
    next: u32,
}

/// A history in the text format, of at most so many transactions.
pub fn history(choices: &mut Choices<'_>, txns_max: usize) -> String {
    let mut store = Store::default();
    let mut text = String::new();
    let is_timed = choices.below(3) == 0;
    let mut now = 0;
    for _ in 0..txns_max {
        if !choices.are_left() {
            break;
        }
        text.push_str(choices.of(SESSIONS));
        if is_timed {
            let start = now + choices.below(3);
            now = start + 1 + choices.below(4);
            write!(text, " @{start}..{now}").expect("a string grows");
            // The next one may begin before this one has ended.
            now -= choices.below(3).min(now - start);
        }
        text.push(':');
        for _ in 0..=choices.below(OPS_MAX) {
            operation(choices, &mut store, &mut text);
        }
        text.push_str(match choices.below(8) {
            0 => " aborted",
            1 => " unknown",
            _ => "",
        });
        text.push('\n');
    }
    text
}

fn operation(choices: &mut Choices<'_>, store: &mut Store, text: &mut String) {
    let place = choices.below(2);
    let (register, list) = (REGISTERS[place], LISTS[place]);
    let done = match choices.below(10) {
        0..3 => {
            store.next += 1;
            // Rarely a value that another write has, too.
            let value = if choices.below(16) == 0 { 1 } else { store.next };
            store.registers[place].push(value);
            write!(text, " w({register},{value})")
        }
        3..6 => {
            let seen = value(choices, &store.registers[place]);
            write!(text, " r({register},{seen})")
        }
        6 => {
            store.next += 1;
            store.lists[place].push(store.next);
            write!(text, " a({list},{})", store.next)
        }
        7 => {
            let all = &store.lists[place];
            let mut seen: Vec<String> =
                all[..choices.below(all.len() + 1)].iter().map(u32::to_string).collect();
            if choices.below(8) == 0 && !seen.is_empty() {
                seen.remove(choices.below(seen.len()));
            }
            write!(text, " r({list},[{}])", seen.join(" "))
        }
        8 => {
            let rows: Vec<String> = (REGISTERS.iter().zip(&store.registers))
                .map(|(key, values)| format!("{key}={}", value(choices, values)))
                .filter(|row| !row.ends_with("nil"))
                .collect();
            write!(text, " p(all; {})", rows.join(" "))
        }
        _ => write!(text, " d({register})"),
    };
    done.expect("a string grows");
}

/// The latest value, an older one, none, or one that nobody wrote.
fn value(choices: &mut Choices<'_>, values: &[u32]) -> String {
    match (choices.below(8), values) {
        (0, _) | (_, []) => "nil".to_owned(),
        (1, _) => "?".to_owned(),
        (2, _) if choices.below(4) == 0 => "99".to_owned(),
        (2..5, values) => choices.of(values).to_string(),
        (_, [.., last]) => last.to_string(),
    }
}
