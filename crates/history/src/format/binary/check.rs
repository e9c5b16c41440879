//! What is checked of every column before it is believed.

use super::frame::{Column, Entry};
use super::read::Reader;
use crate::error::ReadError;
use crate::value::Value;

impl Reader<'_> {
    /// Fails at the first entry that is not as it must be.
    pub(super) fn check<T: Entry + std::fmt::Display>(
        &self,
        column: &Column<T>,
        expected: &str,
        fits: impl Fn(T) -> bool,
    ) -> Result<(), ReadError> {
        let Some(index) = column.entries.iter().position(|&entry| !fits(entry)) else {
            return Ok(());
        };
        let message = format!("expected {expected}, found {}", column.entries[index]);
        Err(column.wrong(self.file, index, &message))
    }

    /// Fails unless the column has `length` entries.
    pub(super) fn check_length<T: Entry>(
        &self,
        column: &Column<T>,
        length: usize,
    ) -> Result<(), ReadError> {
        if column.len() == length {
            return Ok(());
        }
        let message = format!("expected {length} entries, found {}", column.len());
        Err(column.wrong(self.file, 0, &message))
    }

    /// A column that is absent or has an entry for each of `length` things.
    pub(super) fn check_optional<T: Entry>(
        &self,
        column: &Column<T>,
        length: usize,
    ) -> Result<(), ReadError> {
        if column.entries.is_empty() {
            return Ok(());
        }
        self.check_length(column, length)
    }

    /// Fails unless the entries ascend from 0 to `end`, for `groups` groups.
    pub(super) fn check_offsets<T: Entry + Into<u64>>(
        &self,
        column: &Column<T>,
        groups: usize,
        end: usize,
    ) -> Result<(), ReadError> {
        self.check_length(column, groups + 1)?;
        let mut last = 0;
        for (index, &entry) in column.entries.iter().enumerate() {
            let entry: u64 = entry.into();
            if entry < last || (index == 0 && entry != 0) {
                let message = format!("expected offsets that ascend from 0, found {entry}");
                return Err(column.wrong(self.file, index, &message));
            }
            last = entry;
        }
        if last != end as u64 {
            let message = format!("expected offsets up to {end}, found {last}");
            return Err(column.wrong(self.file, groups, &message));
        }
        Ok(())
    }

    pub(super) fn check_values(&self, column: &Column<u32>) -> Result<(), ReadError> {
        self.check(column, "the id of a value", |bits| {
            self.columns.values.contains(Value::from_bits(bits))
        })
    }

    pub(super) fn check_keys(&self, column: &Column<u32>) -> Result<(), ReadError> {
        let keys = self.columns.keys.len();
        self.check(column, &format!("a key below {keys}"), |key| (key as usize) < keys)
    }

    /// Fails unless all entries, `what` they are, differ and ascend.
    pub(super) fn check_ascending(
        &self,
        column: &Column<u32>,
        what: &str,
    ) -> Result<(), ReadError> {
        match column.entries.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(place) => {
                let message = format!("expected {what} in ascending order, found another");
                Err(column.wrong(self.file, place + 1, &message))
            }
            None => Ok(()),
        }
    }

    pub(super) fn check_flags(&self, column: &Column<u8>) -> Result<(), ReadError> {
        self.check(column, "0 or 1", |flag| flag <= 1)
    }

    /// Fails if there are `ids_max` things or more.
    pub(super) fn check_ids<T: Entry>(
        &self,
        column: &Column<T>,
        ids_max: usize,
    ) -> Result<(), ReadError> {
        if column.len() < ids_max {
            return Ok(());
        }
        let message = format!("expected fewer than {ids_max} entries, found {}", column.len());
        Err(column.wrong(self.file, 0, &message))
    }
}

/// Cuts a text into pieces of given lengths.
pub(super) struct Slices<'a> {
    file: &'a str,
    column: &'a Column<u8>,
    rest: &'a str,
}

impl<'a> Slices<'a> {
    pub(super) fn new(file: &'a str, column: &'a Column<u8>) -> Result<Self, ReadError> {
        let rest = std::str::from_utf8(&column.entries).map_err(|error| {
            let message = "expected UTF-8 text, found other bytes";
            column.wrong(file, error.valid_up_to(), message)
        })?;
        Ok(Slices { file, column, rest })
    }

    pub(super) fn next(
        &mut self,
        length: u64,
        lengths: &Column<u64>,
        index: usize,
    ) -> Result<&'a str, ReadError> {
        let fitting = u32::try_from(length).ok();
        let Some((piece, rest)) = fitting.and_then(|end| self.rest.split_at_checked(end as usize))
        else {
            let message = format!("expected the length of a text, found {length}");
            return Err(lengths.wrong(self.file, index, &message));
        };
        self.rest = rest;
        Ok(piece)
    }

    pub(super) fn finish(self) -> Result<(), ReadError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let at = self.column.len() - self.rest.len();
        let message = "expected the end of the last text, found more";
        Err(self.column.wrong(self.file, at, message))
    }
}
