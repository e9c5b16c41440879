//! What became of the serialization order that came with a history, in words.

use crate::prose::Prose;
use isolde::{Axiom, Clash, Contradiction, INITIAL, Options, replay, timestamps};
use isolde_history::{History, Index, KeyId, TxnId};
use serde::Serialize;

/// What a database told that verdicts rest on, in words.
pub(crate) fn evidence(history: &History, options: Options) -> Vec<String> {
    let mut evidence = Vec::new();
    let orders = &history.orders().versions;
    if !orders.is_empty() && options.sources.given {
        let mut keys: Vec<KeyId> = orders.iter().map(|chain| chain.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let complete = orders.iter().filter(|chain| chain.complete).count();
        let all = if complete == keys.len() { "complete" } else { "partial" };
        let keys = crate::terminal::counted(keys.len(), "key");
        evidence.push(format!("{all} version orders of {keys}"));
    }
    let has_snapshot = |txn: &TxnId| {
        history.txn_snapshot(*txn).is_some()
            || history.ops_of(*txn).any(|op| history.op_snapshot(op).is_some())
    };
    if history.has_snapshots() {
        let txns = history.txns().filter(has_snapshot).count();
        evidence.push(format!("snapshots of {}", crate::terminal::counted(txns, "transaction")));
    }
    evidence
}

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

/// Whether the timestamps that a database gave explain what clients saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimestampsReport {
    /// Whether they do.
    pub explains: bool,
    /// What does not hold.
    pub failed: Vec<FailedAxiom>,
}

/// Something about timestamps that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedAxiom {
    /// `SESSION`, `INT`, `EXT` or `NOCONFLICT`; none if the timestamps are no evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// The transactions that show it.
    pub transactions: Vec<String>,
    /// How, one sentence a line.
    pub explanation: String,
}

impl TimestampsReport {
    pub(crate) fn new(prose: &Prose<'_>, index: &Index) -> Option<TimestampsReport> {
        let clashes = timestamps(prose.history, index)?;
        let failed = clashes.into_iter().map(|clash| {
            let (txns, explanation) = clashed(prose, clash);
            let transactions = txns.into_iter().map(|txn| prose.txn(txn)).collect();
            FailedAxiom { name: clash.axiom().map(Axiom::name), transactions, explanation }
        });
        let failed: Vec<FailedAxiom> = failed.collect();
        Some(TimestampsReport { explains: failed.is_empty(), failed })
    }
}

fn clashed(prose: &Prose<'_>, clash: Clash) -> (Vec<TxnId>, String) {
    let name = |txn: TxnId| prose.txn(txn);
    match clash {
        Clash::Missing(txn) => (vec![txn], format!("{} has no timestamps", name(txn))),
        Clash::Backwards(txn) => {
            (vec![txn], format!("{} commits before it starts by its timestamps", name(txn)))
        }
        Clash::Session(first, second) => (
            vec![first, second],
            format!(
                "{} starts before {}, which its session ran before it, commits",
                name(second),
                name(first)
            ),
        ),
        Clash::Internal { read, key, .. } => {
            let reader = prose.history.txn_of(read);
            let (content, at) = (prose.content(read, key), prose.at(read));
            let own = "which is not what it had written last";
            (vec![reader], format!("{} read {content}, {own} {at}", name(reader)))
        }
        Clash::External(contradiction) => told(prose, contradiction),
        Clash::Conflict(key, first, second) => (
            vec![first, second],
            format!(
                "{} and {} both write {}, and neither starts after the other commits",
                name(first),
                name(second),
                prose.key(key)
            ),
        ),
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
        Contradiction::Condition { read, key, writer } => {
            let reader = prose.history.txn_of(read);
            let predicate = prose.history.predicate(read).display(prose.history.values());
            let (reader_name, at) = (prose.txn(reader), prose.at(read));
            let explanation = match key {
                None => format!(
                    "{reader_name} found {predicate} {at}\nthe rows that are there by the order give another result"
                ),
                Some(key) => format!(
                    "{reader_name} selected rows with {predicate} {at}\nby the order, {} as {} left it is found otherwise",
                    prose.key(key),
                    name(writer),
                ),
            };
            let txns = [Some(reader), writer].into_iter().flatten().collect();
            (txns, explanation)
        }
        Contradiction::Versions(step) => (
            vec![step.before, step.after],
            format!("{}\nthe order has them the other way round", prose.version(&step)),
        ),
    }
}
