//! What a database tells about itself while it is driven: the order of its versions.
//!
//! Clients see values, not which of two came first. A database knows, and many can be
//! asked: by their log, by a change feed. An [`Evidence`] is such a way to ask; it runs
//! alongside the workload, and what it found stands in the log when the run ends.

use crate::database::Failure;
use crate::recorder::Log;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A way to ask a database for the versions that it installed.
pub trait Evidence: Send {
    /// Adds the versions of registers that were installed since the last call, those of
    /// each key in the order in which they were installed. Called again and again while
    /// clients work, and afterwards until nothing more is added.
    fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure>;

    /// Numbers of transactions that were found so far and not asked for yet, where snapshots
    /// name them by what only the log tells. Each stands beside something that its
    /// transaction wrote.
    fn numbers(&mut self) -> Vec<Numbered> {
        Vec::new()
    }

    /// Whether of several versions of one key by one transaction only the last is told. The
    /// others come right before it, as everybody knows who has recorded the transaction.
    fn omits_intermediate(&self) -> bool {
        false
    }
}

/// A committed version of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The register's key.
    pub key: u64,
    /// Its value; `None` if it was removed.
    pub value: Option<u64>,
    /// The number of its transaction, or of the version where transactions are numbered by
    /// their last one. Only removals need it: values tell who wrote them.
    pub number: Option<u64>,
}

/// The database's number of a committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The number.
    pub number: u64,
    /// A register that it wrote.
    pub key: u64,
    /// What it wrote there.
    pub value: u64,
}

/// Versions of registers, those of each key in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Whether only the last version of each transaction is there.
    finals: bool,
    of_key: BTreeMap<u64, Vec<Told>>,
    numbers: Vec<Numbered>,
}

/// A version of a known key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// With this value.
    Value(u64),
    /// Its removal, with the number of who removed it, where known.
    Removal(Option<u64>),
}

/// Numbers of transactions on one line of a log.
const NUMBERS_PER_LINE: usize = 1000;
/// Between two questions while clients work.
const PAUSE: Duration = Duration::from_millis(100);

impl Versions {
    /// Collects until `is_done` is set and nothing more comes.
    pub(crate) fn collected(
        evidence: &mut dyn Evidence,
        is_done: &AtomicBool,
    ) -> Result<Versions, Failure> {
        let mut versions =
            Versions { finals: evidence.omits_intermediate(), ..Versions::default() };
        let mut found = Vec::new();
        loop {
            // Asked before the question: what was installed until now is in its answer.
            let was_done = is_done.load(Ordering::Acquire);
            evidence.collect(&mut found)?;
            versions.numbers.extend(evidence.numbers());
            if found.is_empty() && was_done {
                return Ok(versions);
            }
            let is_idle = found.is_empty();
            for Installed { key, value, number } in found.drain(..) {
                let told = value.map_or(Told::Removal(number), Told::Value);
                versions.of_key.entry(key).or_default().push(told);
            }
            if is_idle {
                std::thread::park_timeout(PAUSE);
            }
        }
    }

    /// Appends them to a log, a line for each key.
    pub(crate) fn write(&self, log: &Log) -> io::Result<()> {
        for (key, values) in &self.of_key {
            log.versions(*key, values, self.finals)?;
        }
        for numbers in self.numbers.chunks(NUMBERS_PER_LINE) {
            log.numbers(numbers)?;
        }
        Ok(())
    }

    /// How many there are.
    pub fn counts(&self) -> VersionCounts {
        let versions = self.of_key.values().map(|values| values.len() as u64).sum();
        VersionCounts { versions, keys: self.of_key.len() as u64 }
    }
}

/// How much a database told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionCounts {
    /// Versions whose place in the order of their key is known.
    pub versions: u64,
    /// Keys they belong to.
    pub keys: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one answer after another; with the last one, clients are done.
    struct Answers<'a> {
        answers: Vec<Result<Vec<Installed>, Failure>>,
        is_done: &'a AtomicBool,
    }

    impl Evidence for Answers<'_> {
        fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure> {
            if self.answers.len() <= 1 {
                self.is_done.store(true, Ordering::Release);
            }
            if !self.answers.is_empty() {
                found.extend(self.answers.remove(0)?);
            }
            Ok(())
        }
    }

    fn collected(answers: Vec<Result<Vec<Installed>, Failure>>) -> Result<Versions, Failure> {
        let is_done = AtomicBool::new(false);
        Versions::collected(&mut Answers { answers, is_done: &is_done }, &is_done)
    }

    fn version(key: u64, value: u64) -> Installed {
        Installed { key, value: Some(value), number: None }
    }

    #[test]
    fn versions_are_kept_in_the_order_of_their_key() {
        let removed = Installed { key: 1, value: None, number: Some(7) };
        let answers = vec![
            Ok(vec![version(2, 1), version(1, 2)]),
            Ok(Vec::new()),
            Ok(vec![removed, version(2, 3), version(1, 4)]),
        ];
        let of_key = [
            (1, vec![Told::Value(2), Told::Removal(Some(7)), Told::Value(4)]),
            (2, vec![Told::Value(1), Told::Value(3)]),
        ];
        assert_eq!(
            collected(answers),
            Ok(Versions { finals: false, of_key: of_key.into(), numbers: Vec::new() })
        );
    }

    #[test]
    fn a_database_that_stops_telling_gives_no_half_an_order() {
        let lost = Failure::Lost("end of file".into());
        assert_eq!(collected(vec![Ok(vec![version(1, 1)]), Err(lost.clone())]), Err(lost));
    }
}
