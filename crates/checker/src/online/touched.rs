//! Which clients have used a row: what one of them did later may be missing.
//!
//! A row remembers its clients by 64 bits, of which each client has one: 8 bytes, whoever comes
//! and goes. With more clients than bits a row may count as used by one that has not; then what
//! was read of it is not judged although it could have been.

use super::trace::{Cell, ClientId};

/// See the file's first line.
#[derive(Default)]
pub(super) struct Touched {
    /// By row, the bits of those that have used it.
    rows: Vec<u64>,
    /// The bits of those of which more never comes.
    gone: u64,
    /// Whether there is such a client, though it may have used nothing.
    is_any_gone: bool,
}

const fn bit(client: ClientId) -> u64 {
    1 << (client.0 % 64)
}

impl Touched {
    /// A client uses these rows.
    pub(super) fn note(&mut self, client: ClientId, cells: &[Cell]) {
        for cell in cells.iter().filter(|cell| cell.content.condition().is_none()) {
            let row = cell.row as usize;
            if self.rows.len() <= row {
                self.rows.resize(row + 1, 0);
            }
            self.rows[row] |= bit(client);
        }
    }

    /// What this client has used may hold anything from now on.
    pub(super) fn give_up(&mut self, client: ClientId) {
        self.gone |= bit(client);
    }

    /// More of a client never comes, whether it has used anything or not.
    pub(super) fn note_gone(&mut self) {
        self.is_any_gone = true;
    }

    pub(super) fn is_any_gone(&self) -> bool {
        self.is_any_gone
    }

    /// Whether one that has used a row may have done so again.
    pub(super) fn is_blind(&self, row: u32) -> bool {
        self.gone != 0 && self.rows.get(row as usize).is_some_and(|bits| bits & self.gone != 0)
    }
}
