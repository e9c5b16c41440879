//! The histories that are measured: a preset, and what is changed of it.

use crate::measure::Program;
use crate::say;
use std::path::{Path, PathBuf};

/// A generated history.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    pub(super) preset: &'static str,
    pub(super) transactions: u32,
    /// The preset's if 0.
    pub(super) keys: u32,
    /// Further options of `isolde gen`.
    pub(super) options: &'static [&'static str],
    /// The format of its file.
    pub(super) format: &'static str,
}

/// The text of `PolySI`, which most other checkers read; it has no times.
pub(super) const TEXT: &str = "plume";
/// Our own format, with times.
pub(super) const BINARY: &str = "binary";

pub(super) const SERIALIZABLE: &[&str] = &["--isolation", "serializable"];
/// A few keys are used most.
pub(super) const HOT: &[&str] = &["--isolation", "serializable", "--distribution", "zipf:0.99"];
pub(super) const TIMED: &[&str] = &["--times", "transactions"];

impl Workload {
    /// The preset with so many transactions, as text without times.
    pub(super) const fn new(preset: &'static str, transactions: u32) -> Workload {
        Workload { preset, transactions, keys: 0, options: &[], format: TEXT }
    }

    /// What the tables call it.
    pub(super) fn title(&self) -> String {
        let mut words = vec![format!("{} {}", self.preset, short(self.transactions))];
        if self.keys != 0 {
            words.push(format!("{} keys", short(self.keys)));
        }
        for pair in self.options.chunks(2) {
            words.push(match pair {
                ["--times", value] => format!("times of {value}"),
                ["--isolation", value] => (*value).to_owned(),
                [option, value] => format!("{value} {}", option.trim_start_matches('-')),
                _ => unreachable!("each option has a value"),
            });
        }
        words.join(", ")
    }

    /// Its file, generated unless it is there; all sizes divided by `scale`.
    pub(super) fn generated(
        &self,
        isolde: &Path,
        folder: &Path,
        scale: u32,
    ) -> Result<PathBuf, String> {
        let transactions = self.transactions.div_ceil(scale).to_string();
        let mut arguments =
            vec!["gen", "--preset", self.preset, "--to", self.format, "--transactions"];
        arguments.push(&transactions);
        let keys = self.keys.div_ceil(scale).to_string();
        if self.keys != 0 {
            arguments.extend(["--keys", &keys]);
        }
        arguments.extend(self.options);
        // The options are the name, so that a file is what its name says.
        let words = arguments[2..].iter().filter(|word| !word.starts_with("--"));
        let name = words.map(|word| word.replace(':', "-")).collect::<Vec<_>>().join("-");
        let path = folder.join(format!("{name}.history"));
        if !path.exists() {
            say(&format!("generating {}", path.display()));
            let mut program = Program::new(isolde, arguments);
            program.arguments.extend(["--output".into(), path.clone().into()]);
            program.run()?;
        }
        Ok(path)
    }
}

/// A number as `10k` or `1M`.
pub(super) fn short(number: u32) -> String {
    match number {
        0 => "0".into(),
        _ if number.is_multiple_of(1_000_000) => format!("{}M", number / 1_000_000),
        _ if number.is_multiple_of(1000) => format!("{}k", number / 1000),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_says_what_is_changed_of_the_preset() {
        let plain = Workload::new("GeneralRW", 10_000);
        assert_eq!(plain.title(), "GeneralRW 10k");
        let options = &["--times", "transactions", "--sessions", "20"];
        let changed = Workload { transactions: 1_500_000, keys: 1_000_000, options, ..plain };
        assert_eq!(changed.title(), "GeneralRW 1500k, 1M keys, times of transactions, 20 sessions");
        let serializable = Workload { options: SERIALIZABLE, ..plain };
        assert_eq!(serializable.title(), "GeneralRW 10k, serializable");
    }
}
