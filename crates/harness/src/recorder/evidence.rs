//! Lines of a log about what the database told.

use super::{Log, number};
use crate::evidence::{Numbered, Told};
use std::io;

impl Log {
    /// All versions of a register in the order in which they were installed, as the
    /// database told it, removals with who removed it where known. If they are only the finals,
    /// those that their own transaction replaced are missing.
    pub fn versions(&self, key: u64, values: &[Told], finals: bool) -> io::Result<()> {
        let mut line = if finals { b"finals ".to_vec() } else { b"versions ".to_vec() };
        number(&mut line, key);
        line.push(b' ');
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                line.push(b',');
            }
            match *value {
                Told::Value(value) => number(&mut line, value),
                Told::Removal(Some(by)) => {
                    line.push(b'#');
                    number(&mut line, by);
                }
                Told::Removal(None) => {}
            }
        }
        line.push(b'\n');
        self.append(&line)
    }

    /// Numbers of transactions that the database told, each beside something written.
    pub fn numbers(&self, numbers: &[Numbered]) -> io::Result<()> {
        let mut line = b"numbers ".to_vec();
        for (place, it) in numbers.iter().enumerate() {
            if place > 0 {
                line.push(b',');
            }
            number(&mut line, it.number);
            line.push(b':');
            number(&mut line, it.key);
            line.push(b'=');
            number(&mut line, it.value);
        }
        line.push(b'\n');
        self.append(&line)
    }
}
