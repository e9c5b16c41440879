//! Transactions that are in no log, although somebody read what they wrote.
//!
//! Some recorders write the name of the writer down with every read. A name that no log has is
//! either a transaction whose log was lost, or one that the database made up. The reader of such
//! a format adds the transaction with the writes that were read, and its outcome is unknown: a
//! level that is satisfied is so if it committed. In a recording that lacks nothing there is no
//! such transaction, and who read from it read what nobody wrote.

use super::columns::{gather, set};
use super::{DraftTxn, HistoryBuilder};
use crate::history::{Columns, History, OpId, Outcome, TxnId};

impl HistoryBuilder {
    /// `txn` is in no log: the reader of the format adds it, since somebody read what it wrote.
    /// Its outcome is unknown.
    pub fn unlogged(&mut self, txn: DraftTxn) {
        self.outcome(txn, Outcome::Unknown);
        set(&mut self.columns.unlogged, txn.0, true, false);
    }

    /// The recording lacks nothing: transactions that are in no log never happened.
    pub(crate) fn complete_log(&mut self) {
        self.complete_log = true;
    }

    /// Whether the recording lacks nothing.
    pub(crate) fn is_complete_log(&self) -> bool {
        self.complete_log
    }
}

impl History {
    /// Whether a transaction is in no log; see [`HistoryBuilder::unlogged`].
    pub fn is_unlogged(&self, txn: TxnId) -> bool {
        self.columns.unlogged.get(txn.index()).copied().unwrap_or(false)
    }

    /// Transactions that are in no log, ascending.
    pub fn unlogged(&self) -> impl Iterator<Item = TxnId> {
        let flags = (0..).zip(&self.columns.unlogged);
        flags.filter(|&(_, &is_unlogged)| is_unlogged).map(|(txn, _)| TxnId(txn))
    }
}

/// Leaves out transactions that are in no log, and sessions that have no others.
pub(super) fn leave_out(columns: &mut Columns) {
    let is_kept = |txn: &u32| !columns.unlogged.get(*txn as usize).copied().unwrap_or(false);
    let txn_count = columns.outcomes.len() as u32;
    let kept: Vec<u32> = (0..txn_count).filter(is_kept).collect();
    if kept.len() == txn_count as usize {
        return;
    }
    leave_out_sessions(columns, &kept);
    leave_out_ops(columns, &kept);
    if let Some(total) = &mut columns.orders.total {
        let place = |txn: &TxnId| kept.binary_search(&txn.0).ok();
        *total = total.iter().filter_map(place).map(|place| TxnId(place as u32)).collect();
    }
    let txns: Vec<(u32, u32)> = kept.iter().map(|&txn| (txn, txn + 1)).collect();
    gather(&mut columns.outcomes, &txns);
    gather(&mut columns.labels, &txns);
    gather(&mut columns.errors, &txns);
    gather(&mut columns.invoked, &txns);
    gather(&mut columns.completed, &txns);
    gather(&mut columns.begun, &txns);
    gather(&mut columns.committing, &txns);
    gather(&mut columns.timestamps, &txns);
    gather(&mut columns.snapshots.numbers, &txns);
    gather(&mut columns.snapshots.of_txns, &txns);
    columns.unlogged = Vec::new();
}

fn leave_out_sessions(columns: &mut Columns, kept: &[u32]) {
    let mut starts = vec![0];
    let mut sessions = Vec::new();
    for (session, range) in columns.sessions.iter().zip(columns.session_txns.windows(2)) {
        let end = kept.partition_point(|&txn| txn < range[1]) as u32;
        let is_empty = starts.last() == Some(&end);
        if !is_empty || range[0] == range[1] {
            sessions.push(session.clone());
            starts.push(end);
        }
    }
    columns.sessions = sessions;
    columns.session_txns = starts;
}

fn leave_out_ops(columns: &mut Columns, kept: &[u32]) {
    let range = |&txn: &u32| (columns.txn_ops[txn as usize], columns.txn_ops[txn as usize + 1]);
    let ranges: Vec<(u32, u32)> = kept.iter().map(range).collect();
    let mut starts = vec![0u32];
    for &(start, end) in &ranges {
        starts.push(starts[starts.len() - 1] + end - start);
    }
    let moved = |op: OpId| {
        let place = ranges.partition_point(|range| range.1 <= op.0);
        let start = ranges.get(place)?.0;
        Some(OpId(starts[place] + op.0.checked_sub(start)?))
    };
    let rows = columns.rows.iter();
    columns.rows = rows.filter_map(|row| Some((moved(row.0)?, row.1, row.2))).collect();
    let of_ops = columns.snapshots.of_ops.iter();
    columns.snapshots.of_ops =
        of_ops.filter_map(|entry| Some((moved(entry.0)?, entry.1))).collect();
    gather(&mut columns.kinds, &ranges);
    gather(&mut columns.op_keys, &ranges);
    gather(&mut columns.op_values, &ranges);
    gather(&mut columns.positions, &ranges);
    gather(&mut columns.op_invoked, &ranges);
    gather(&mut columns.op_completed, &ranges);
    columns.txn_ops = starts;
}

#[cfg(test)]
mod tests {
    use crate::format::{Input, ReadOptions, by_name, read, to_text};
    use crate::{History, Source};

    const TEXT: &str = "A @1..2: w(x,1)\nB @?..?: w(x,2){a=7} w(x,3) unlogged\n\
                        C @3..4: r(x,2) w(y,1){a=8}\nC @5..6: w(y,2) unlogged\nC @7..8: r(y,2)\n\
                        serial: A B C.1 C.2 C.3\n";

    fn parsed(bytes: &[u8], format: &str, complete_log: bool) -> History {
        let input = Input::File(Source::from_bytes("history", bytes));
        let options = ReadOptions { complete_log, ..ReadOptions::default() };
        read(by_name(format).expect("a format"), input, options).expect("a history")
    }

    fn told(history: &History) -> Vec<String> {
        to_text(history).lines().filter(|line| line.contains(':')).map(str::to_owned).collect()
    }

    #[test]
    fn a_complete_log_has_no_transactions_that_are_in_no_log() {
        let history = parsed(TEXT.as_bytes(), "text", true);
        let expected = [
            "A @1..2: w(x,1)",
            "C @3..4: r(x,2) w(y,1){a=8}",
            "C @7..8: r(y,2)",
            "serial: A C.1 C.2",
        ];
        assert_eq!(told(&history), expected);
        assert_eq!((history.session_count(), history.unlogged().count()), (2, 0));
    }

    #[test]
    fn both_native_formats_keep_what_is_in_no_log() {
        let history = parsed(TEXT.as_bytes(), "text", false);
        let names: Vec<String> = history.unlogged().map(|txn| history.txn_name(txn)).collect();
        assert_eq!(names, ["B", "C.2"]);
        let again = parsed(to_text(&history).as_bytes(), "text", false);
        assert_eq!(told(&again), told(&history));
        let mut bytes = Vec::new();
        let Some(crate::format::Writer::File(write)) = by_name("binary").expect("a format").write
        else {
            unreachable!("one file")
        };
        write(&history, &mut bytes).expect("everything is expressible");
        assert_eq!(told(&parsed(&bytes, "binary", false)), told(&history));
        let complete = parsed(TEXT.as_bytes(), "text", true);
        assert_eq!(told(&parsed(&bytes, "binary", true)), told(&complete));
    }
}
