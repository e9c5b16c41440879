//! A store without versions: read uncommitted.
//!
//! A write is in place at once, so others read it before it commits, and even if
//! it never does. A key belongs to the transaction that wrote it until that ends,
//! which keeps writes of two transactions from interleaving on several keys.

use super::{Conflict, OpenTxn, Store};
use crate::random::Random;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct InPlace {
    cells: Vec<Cell>,
}

#[derive(Clone, Copy)]
struct Cell {
    value: u32,
    /// The session whose open transaction wrote it, or [`NOBODY`].
    owner: u32,
}

const NOBODY: u32 = u32::MAX;

impl Store for InPlace {
    fn begin(&mut self, txn: &mut OpenTxn, _: &mut Random) {
        txn.replaced.clear();
    }

    fn read(&mut self, _: &OpenTxn, key: u32) -> u32 {
        self.cells.get(key as usize).map_or(0, |cell| cell.value)
    }

    fn write(&mut self, txn: &mut OpenTxn, key: u32, value: u32) -> Result<(), Conflict> {
        let place = key as usize;
        if self.cells.len() <= place {
            self.cells.resize(place + 1, Cell { value: 0, owner: NOBODY });
        }
        let cell = &mut self.cells[place];
        if cell.owner != NOBODY && cell.owner != txn.session {
            return Err(Conflict);
        }
        txn.replaced.push((key, cell.value));
        *cell = Cell { value, owner: txn.session };
        Ok(())
    }

    fn commit(&mut self, txn: &OpenTxn) -> Result<(), Conflict> {
        for &(key, _) in &txn.replaced {
            self.cells[key as usize].owner = NOBODY;
        }
        Ok(())
    }

    fn undo(&mut self, txn: &OpenTxn) {
        for &(key, before) in txn.replaced.iter().rev() {
            self.cells[key as usize] = Cell { value: before, owner: NOBODY };
        }
    }
}
