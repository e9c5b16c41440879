//! Which mechanisms a database has, as data.
//!
//! A profile is what the verifier mirrors: it knows no databases. As text it is a list of
//! `name = value` lines; see [`Profile::parse`].

use super::finding::{NAMES, Name};
use super::trace::{EventKind, Time};

/// What a read is promised to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Nothing is promised, and nothing is checked.
    Unchecked,
    /// Each cell was committed, and not replaced, at an instant of its own while the
    /// statement ran.
    Item,
    /// As `item`, but at any instant from the transaction's begin on: snapshots that may
    /// be moved forward, or whose clocks order nothing but one item.
    Window,
    /// All cells of a statement at one instant while it ran.
    Statement,
    /// All cells of a transaction at one instant while it began.
    Begin,
    /// All cells of a transaction at one instant of its first request after the begin.
    FirstRequest,
    /// All cells of a transaction at one instant of its first read without a lock.
    FirstRead,
}

impl Reads {
    /// Whether all reads of a transaction have one instant.
    pub const fn is_transactional(self) -> bool {
        matches!(self, Reads::Begin | Reads::FirstRequest | Reads::FirstRead)
    }

    /// Whether the first request of this kind takes the snapshot of its transaction.
    pub const fn takes_snapshot(self, kind: EventKind) -> bool {
        match self {
            Reads::Begin => true,
            Reads::FirstRequest => kind.is_operation(),
            Reads::FirstRead => matches!(kind, EventKind::Read),
            Reads::Unchecked | Reads::Item | Reads::Window | Reads::Statement => false,
        }
    }
}

/// What reads that lock, and reads of rows that the transaction has written, see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dml {
    /// The snapshot that all reads see.
    Snapshot,
    /// What is committed when the row is locked; a row that the transaction has written is
    /// from then on read as of that write.
    Current,
}

/// What becomes of two transactions that write one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// They may overwrite one another.
    Any,
    /// The same, but it is reported if the second did not see what the first wrote. For what
    /// a database's documents announce; nothing is deduced from it.
    Reported,
    /// Who writes what it has read is refused if somebody else has replaced it since. What a
    /// transaction has not read it may overwrite.
    AsRead,
    /// The second updater is refused, unless the first had committed before its snapshot.
    FirstUpdater,
    /// The second to commit is refused, unless the first had committed before its snapshot.
    FirstCommitter,
}

impl Writers {
    /// Whether one of two concurrent writers is refused.
    pub const fn are_refused(self) -> bool {
        matches!(self, Writers::FirstUpdater | Writers::FirstCommitter)
    }

    /// Whether writers of one row are compared with one another, whatever they have read.
    pub(super) const fn are_compared(self) -> bool {
        !matches!(self, Writers::Any | Writers::AsRead)
    }
}

/// What is locked until the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// Nothing.
    None,
    /// Rows that were written or read with a lock, against others that do so.
    Writes,
    /// Those, and rows that were read, against writers.
    ReadsAndWrites,
}

/// How much a lock locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// A row.
    Row,
    /// Everything: there is one writer at a time.
    Database,
}

/// How serializability is kept, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certifier {
    /// It is not.
    None,
    /// In some way: dependencies form no cycle.
    Cycles,
    /// As `cycles`, and two anti-dependencies in a row between concurrent transactions, of
    /// which the last committed first, are refused.
    DangerousStructure,
    /// As `cycles`, and a transaction that writes is refused if anything that it read was
    /// replaced before it committed.
    Validation,
    /// By the order of timestamps, one for each transaction, which are of the time between its
    /// begin and its end: what depends on a transaction has a later one.
    TimestampOrder,
}

/// What one isolation level of one database is promised to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Consistent read.
    pub reads: Reads,
    /// What locking reads see.
    pub dml: Dml,
    /// First updater or committer wins.
    pub writers: Writers,
    /// Mutual exclusion.
    pub locks: Locks,
    /// What a lock covers.
    pub granularity: Granularity,
    /// Serialization certifier.
    pub certifier: Certifier,
    /// How old a snapshot may be, in nanoseconds: 0 where every read is of the present.
    pub staleness: Time,
    /// How far timestamps of transactions may be from the time of clients, in nanoseconds.
    pub skew: Time,
}

impl Profile {
    /// Whether it matters which version each read saw.
    pub(super) fn notes_reads(&self) -> bool {
        self.certifier != Certifier::None || self.writers == Writers::AsRead
    }

    /// Nothing is promised.
    pub const NONE: Profile = Profile {
        reads: Reads::Unchecked,
        dml: Dml::Snapshot,
        writers: Writers::Any,
        locks: Locks::None,
        granularity: Granularity::Row,
        certifier: Certifier::None,
        staleness: 0,
        skew: 0,
    };
}

/// A line of a profile that cannot be read. Displayed as `line 2: expected …, found …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// The line, from 1.
    pub line: usize,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl std::fmt::Display for ProfileError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "line {}: expected {}, found {}", self.line, self.expected, self.found)
    }
}

impl std::error::Error for ProfileError {}

/// A finding that a database's documents announce: behaviour, not a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDeviation {
    /// What it is called.
    pub name: Name,
    /// What happens, in a sentence.
    pub text: String,
}

/// A setting and the words for its values.
struct Setting {
    name: &'static str,
    values: &'static [&'static str],
    set: fn(&mut Profile, usize),
}

macro_rules! setting {
    ($name:literal, $field:ident, $($word:literal => $value:expr),+ $(,)?) => {
        Setting {
            name: $name,
            values: &[$($word),+],
            set: |profile, place| profile.$field = [$($value),+][place],
        }
    };
}

/// All settings but `staleness`, `skew` and `deviation`, whose values are no words.
static SETTINGS: &[Setting] = &[
    setting!("reads", reads,
        "unchecked" => Reads::Unchecked, "item" => Reads::Item, "window" => Reads::Window,
        "statement" => Reads::Statement, "begin" => Reads::Begin,
        "first-request" => Reads::FirstRequest, "first-read" => Reads::FirstRead),
    setting!("dml", dml, "snapshot" => Dml::Snapshot, "current" => Dml::Current),
    setting!("writers", writers,
        "any" => Writers::Any, "reported" => Writers::Reported, "as-read" => Writers::AsRead,
        "first-updater" => Writers::FirstUpdater,
        "first-committer" => Writers::FirstCommitter),
    setting!("locks", locks,
        "none" => Locks::None, "writes" => Locks::Writes,
        "reads-and-writes" => Locks::ReadsAndWrites),
    setting!("granularity", granularity,
        "row" => Granularity::Row, "database" => Granularity::Database),
    setting!("certifier", certifier,
        "none" => Certifier::None, "cycles" => Certifier::Cycles,
        "dangerous-structure" => Certifier::DangerousStructure,
        "validation" => Certifier::Validation,
        "timestamp-order" => Certifier::TimestampOrder),
];

impl Profile {
    /// Reads settings, one `name = value` a line, on top of this profile. Empty lines and
    /// those that begin with `#` say nothing. Each setting may be there once, and one
    /// `deviation = NAME: SENTENCE` for each name.
    pub fn parse(self, text: &str) -> Result<(Profile, Vec<KnownDeviation>), ProfileError> {
        let mut profile = self;
        let mut deviations: Vec<KnownDeviation> = Vec::new();
        let mut settings: Vec<&str> = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |expected: String, found: &str| ProfileError {
                line: place + 1,
                expected,
                found: if found.is_empty() { "nothing".to_owned() } else { format!("`{found}`") },
            };
            let Some((name, value)) = line.split_once('=') else {
                return Err(wrong("`name = value`".to_owned(), line));
            };
            let (name, value) = (name.trim(), value.trim());
            if settings.contains(&name) {
                return Err(wrong(format!("`{name}` once"), line));
            }
            if name != "deviation" {
                settings.push(name);
            }
            match (name, SETTINGS.iter().find(|setting| setting.name == name)) {
                (_, Some(setting)) => {
                    let place = setting.values.iter().position(|word| *word == value);
                    let place = place.ok_or_else(|| wrong(one_of(setting.values), value))?;
                    (setting.set)(&mut profile, place);
                }
                ("staleness" | "skew", None) => {
                    let time = duration(value).ok_or_else(|| {
                        wrong("a time as `10s`, `250ms`, `5us` or `0`".to_owned(), value)
                    })?;
                    let set =
                        if name == "skew" { &mut profile.skew } else { &mut profile.staleness };
                    *set = time;
                }
                ("deviation", None) => {
                    let (name, text) = value.split_once(':').unwrap_or((value, ""));
                    let known = NAMES.iter().find(|known| known.name() == name.trim());
                    let names: Vec<&str> = NAMES.iter().map(|known| known.name()).collect();
                    let name = *known.ok_or_else(|| wrong(one_of(&names), name.trim()))?;
                    if deviations.iter().any(|known| known.name == name) {
                        return Err(wrong(format!("`deviation = {}` once", name.name()), line));
                    }
                    if text.trim().is_empty() {
                        let expected = format!("`{}:` and a sentence", name.name());
                        return Err(wrong(expected, value));
                    }
                    deviations.push(KnownDeviation { name, text: text.trim().to_owned() });
                }
                _ => {
                    let names = SETTINGS.iter().map(|setting| setting.name);
                    let names: Vec<&str> =
                        names.chain(["staleness", "skew", "deviation"]).collect();
                    return Err(wrong(one_of(&names), name));
                }
            }
        }
        Ok((profile, deviations))
    }
}

fn one_of(words: &[&str]) -> String {
    match words {
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
        [] => String::new(),
    }
}

/// A time with its unit, in nanoseconds.
fn duration(text: &str) -> Option<Time> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: Time = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "" if number == 0 => 1,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_replace_those_of_the_profile() {
        let text = "# ours\n\nreads = first-request\n locks=writes\nstaleness = 250ms\n\
                    deviation = stale-read: a replica may lag\n";
        let expected = Profile {
            reads: Reads::FirstRequest,
            locks: Locks::Writes,
            staleness: 250_000_000,
            ..Profile::NONE
        };
        let lag = KnownDeviation { name: Name::StaleRead, text: "a replica may lag".to_owned() };
        assert_eq!(Profile::NONE.parse(text), Ok((expected, vec![lag])));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_a_line() {
        let refused = |text: &str| Profile::NONE.parse(text).expect_err("an error").to_string();
        assert_eq!(refused("\nreads"), "line 2: expected `name = value`, found `reads`");
        assert_eq!(refused("dml = latest"), "line 1: expected snapshot or current, found `latest`");
        assert_eq!(
            refused("lock = none"),
            "line 1: expected reads, dml, writers, locks, granularity, certifier, staleness, skew \
             or deviation, found `lock`"
        );
        assert_eq!(
            refused("staleness = 5"),
            "line 1: expected a time as `10s`, `250ms`, `5us` or `0`, found `5`"
        );
        assert_eq!(
            refused("staleness = 99999999999999999999s"),
            "line 1: expected a time as `10s`, `250ms`, `5us` or `0`, found `99999999999999999999s`"
        );
        assert!(refused("deviation = odd: x").ends_with("found `odd`"));
        assert_eq!(
            refused("writers ="),
            "line 1: expected any, reported, as-read, first-updater or first-committer, found nothing"
        );
        assert_eq!(
            refused("locks = none\nlocks = writes"),
            "line 2: expected `locks` once, found `locks = writes`"
        );
        assert_eq!(
            refused("deviation = stale-read: a\ndeviation = stale-read: b"),
            "line 2: expected `deviation = stale-read` once, found `deviation = stale-read: b`"
        );
        assert_eq!(
            refused("deviation = stale-read:"),
            "line 1: expected `stale-read:` and a sentence, found `stale-read:`"
        );
    }
}
