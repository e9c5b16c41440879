//! Writing one operation a line; see [`super`] for the format.

use crate::format::WriteError;
use crate::format::registers::{self, Abilities, Losses};
use crate::history::{History, Outcome, TxnId};
use crate::value::{Datum, Value};
use std::io::{BufWriter, Write};

pub(super) fn write(history: &History, out: &mut dyn Write) -> Result<Vec<String>, WriteError> {
    let mut losses = Losses::default();
    let abilities = Abilities { aborted: true, ..Abilities::default() };
    let plan = registers::plan(history, abilities, &mut losses)?;
    registers::note_initial(history, &plan, Datum::Int(0), &mut losses);
    let numbers = registers::Numbers::new(history, &plan, &mut losses);
    let ids = Ids::new(history, &mut losses);
    let mut out = BufWriter::with_capacity(1 << 16, out);
    for session in history.sessions() {
        let mut after_aborted = false;
        for txn in history.txns_of(session).filter(|&txn| plan.is_kept(txn)) {
            let aborted = history.outcome(txn) == Outcome::Aborted;
            if aborted && after_aborted {
                losses.add("aborted transactions that follow one another become one");
            }
            let mut written = 0;
            for op in history.ops_of(txn) {
                let op = history.op(op);
                let Some(value) = numbers.value(op.key, op.value) else {
                    continue;
                };
                let kind = if op.kind.is_write() { 'w' } else { 'r' };
                let (key, session) = (numbers.key(op.key), ids.sessions[session.index()]);
                write!(out, "{kind}({key},{value},{session},")?;
                if aborted {
                    out.write_all(b"-1)\n")?;
                } else {
                    writeln!(out, "{})", ids.txn(txn))?;
                }
                written += 1;
            }
            if written == 0 {
                losses.add("transactions without operations are left out");
            } else {
                after_aborted = aborted;
            }
        }
    }
    out.flush()?;
    Ok(losses.sentences())
}

/// The numbers that sessions and transactions have in the file.
struct Ids {
    sessions: Vec<u64>,
    /// `None` where transactions are numbered from 1 in the order of the history.
    txns: Option<Vec<u64>>,
}

impl Ids {
    fn new(history: &History, losses: &mut Losses) -> Self {
        let labels = history.sessions().map(|session| history.session_label(session));
        let sessions = registers::distinct_naturals(history, labels).unwrap_or_else(|| {
            losses.add("sessions are numbered from 1");
            (1..=history.session_count() as u64).collect()
        });
        // Aborted transactions have no id of their own in the file: any stands in.
        let aborted = |txn: &TxnId| history.outcome(*txn) == Outcome::Aborted;
        let labels =
            || history.txns().filter(|txn| !aborted(txn)).map(|txn| history.txn_label(txn));
        let mut txns = registers::distinct_naturals(history, labels()).map(|ids| {
            let mut ids = ids.into_iter();
            let id = |txn| if aborted(&txn) { Some(0) } else { ids.next() };
            history.txns().map_while(id).collect::<Vec<u64>>()
        });
        // A reader could take the first transaction for the initial values.
        if let Some(ids) = &txns
            && sessions.first() == Some(&0)
            && ids.first() == Some(&0)
        {
            txns = None;
        }
        if txns.is_none() && labels().any(|label| label != Value::NIL) {
            losses.add("transactions are numbered from 1");
        }
        Ids { sessions, txns }
    }

    fn txn(&self, txn: TxnId) -> u64 {
        match &self.txns {
            Some(ids) => ids[txn.index()],
            None => u64::from(txn.0) + 1,
        }
    }
}
