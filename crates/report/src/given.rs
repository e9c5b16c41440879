//! What became of the serialization order that came with a history, in words.

use crate::prose::Prose;
use isolde::{Contradiction, INITIAL, replay};
use isolde_history::{Index, TxnId};
use serde::Serialize;

/// Whether the serialization order that a database gave explains what clients saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GivenOrderReport {
    /// Whether it does.
    pub explains: bool,
    /// The transactions by which it does not.
    pub transactions: Vec<String>,
    /// Why not, one sentence a line.
    pub explanation: String,
}

impl GivenOrderReport {
    pub(crate) fn new(prose: &Prose<'_>, index: &Index) -> Option<GivenOrderReport> {
        let Some(contradiction) = replay(prose.history, index)? else {
            let (transactions, explanation) = (Vec::new(), String::new());
            return Some(GivenOrderReport { explains: true, transactions, explanation });
        };
        let (txns, explanation) = told(prose, contradiction);
        let transactions = txns.into_iter().map(|txn| prose.txn(txn)).collect();
        Some(GivenOrderReport { explains: false, transactions, explanation })
    }
}

fn told(prose: &Prose<'_>, contradiction: Contradiction) -> (Vec<TxnId>, String) {
    let name = |txn: Option<TxnId>| prose.txn(txn.unwrap_or(INITIAL));
    match contradiction {
        Contradiction::Missing(txn) => {
            (vec![txn], format!("{} took effect, but is not in the order", prose.txn(txn)))
        }
        Contradiction::Read { read, key, expected, saw } => {
            let reader = prose.history.txn_of(read);
            let (content, at) = (prose.content(read, key), prose.at(read));
            let written = expected.map(|writer| prose.written_at(writer, key)).unwrap_or_default();
            let explanation = format!(
                "{} read {content} from {} {at}\nthe last before it in the order is that of \
                 {}{written}",
                prose.txn(reader),
                name(saw),
                name(expected),
            );
            let txns = [Some(reader), saw, expected].into_iter().flatten().collect();
            (txns, explanation)
        }
        Contradiction::Versions(step) => (
            vec![step.before, step.after],
            format!("{}\nthe order has them the other way round", prose.version(&step)),
        ),
    }
}
