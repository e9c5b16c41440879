//! Histories and files in memory, for the benches.

use isolde_harness::{Parameters, generate, preset};
use isolde_history::format::{self, Input, ReadOptions, Writer};
use isolde_history::{History, Source};

/// A preset's history with this many transactions.
pub(crate) fn history(name: &str, transactions: u32) -> History {
    let preset = preset(name).expect("a preset");
    generate(&Parameters { transactions, ..preset.parameters }).expect("a preset can be generated")
}

/// A history as a file of this format.
pub(crate) fn written(history: &History, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match format::by_name(name).expect("a format").write {
        Some(Writer::File(write)) => write(history, &mut bytes).expect("memory can be written"),
        _ => unreachable!("{name} is written to one file"),
    };
    bytes
}

/// Reads a file of this format.
pub(crate) fn read(bytes: &[u8], name: &str) -> History {
    let input = Input::File(Source::from_bytes(name, bytes));
    format::read(format::by_name(name).expect("a format"), input, ReadOptions::default())
        .expect("what was written is read")
}
