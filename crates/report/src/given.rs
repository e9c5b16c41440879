//! What became of what a database told about itself, in words.

use crate::Decided;
use crate::prose::Prose;
use isolde::{
    Axiom, Clash, Conflict, Contradiction, INITIAL, Level, Options, Satisfied, Verdict, conflicts,
    replay, timestamps,
};
use isolde_history::{History, Index, KeyId, MisreadKind, OpId, Timestamp, TxnId};
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
    pub(crate) fn new(
        prose: &Prose<'_>,
        index: &Index,
        decided: &[Decided],
    ) -> Option<GivenOrderReport> {
        let total = prose.history.orders().total.as_deref()?;
        let is_shown = decided.iter().any(|(level, verdict, _)| match verdict {
            Verdict::Satisfied(Satisfied::Order(order)) if *level == Level::Serializable => {
                let counted = total.iter().filter(|&&txn| index.is_counted(txn));
                order.iter().eq(counted)
            }
            _ => false,
        });
        let replayed = if is_shown { None } else { replay(prose.history, index)? };
        let Some(contradiction) = replayed else {
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

/// Two things that a database told, or one and what was read, that cannot both be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConflictReport {
    /// `timestamps`, `version-order`, `serialization-order`, `snapshot` or `read`.
    pub between: [&'static str; 2],
    /// The transactions that show it.
    pub transactions: Vec<String>,
    /// How, one sentence a line.
    pub explanation: String,
}

impl ConflictReport {
    pub(crate) fn all(prose: &Prose<'_>, index: &Index) -> Vec<ConflictReport> {
        let report = |conflict: Conflict| {
            let (txns, explanation) = parted(prose, conflict);
            let transactions = txns.into_iter().map(|txn| prose.txn(txn)).collect();
            ConflictReport { between: conflict.sources(), transactions, explanation }
        };
        conflicts(prose.history, index).into_iter().map(report).collect()
    }

    /// The two sources as one name.
    pub(crate) fn name(&self) -> String {
        self.between.join(" against ")
    }
}

/// The names of what is not as the database told it.
pub(crate) fn refuted(
    serial: Option<&GivenOrderReport>,
    timestamps: Option<&TimestampsReport>,
    conflicts: &[ConflictReport],
) -> Vec<String> {
    let serial = serial.is_some_and(|it| !it.explains).then(|| "serialization-order".to_owned());
    // Timestamps that some lack are no claim about all.
    let is_wrong = |it: &TimestampsReport| it.failed.iter().any(|failed| failed.name.is_some());
    let timestamps = timestamps.is_some_and(is_wrong).then(|| "timestamps".to_owned());
    let conflicts = conflicts.iter().map(ConflictReport::name);
    serial.into_iter().chain(timestamps).chain(conflicts).collect()
}

fn parted(prose: &Prose<'_>, conflict: Conflict) -> (Vec<TxnId>, String) {
    let name = |txn: TxnId| prose.txn(txn);
    let committed = |earlier: TxnId, later: TxnId| {
        let of = |txn| shown(prose.history.timestamps(txn).map(|given| given.commit));
        format!(
            "by their timestamps {} committed at {}, before {} did at {}",
            name(earlier),
            of(earlier),
            name(later),
            of(later)
        )
    };
    match conflict {
        Conflict::TimestampsAndVersions(step) => (
            vec![step.before, step.after],
            format!("{}\n{}", prose.version(&step), committed(step.after, step.before)),
        ),
        Conflict::TimestampsAndSerialOrder { first, second, key } => {
            let told = format!(
                "the serialization order has {} before {}",
                prose.txn(first),
                prose.txn(second)
            );
            let otherwise = if let Some(key) = key {
                format!("{}, and both write {}", committed(second, first), prose.key(key))
            } else {
                let given = |txn| prose.history.timestamps(txn);
                let commit = shown(given(second).map(|given| given.commit));
                let start = shown(given(first).map(|given| given.start));
                format!(
                    "by their timestamps {} committed at {commit}, before {} started at {start}",
                    prose.txn(second),
                    prose.txn(first)
                )
            };
            (vec![first, second], format!("{told}\n{otherwise}"))
        }
        Conflict::SnapshotMissesRead { read, key, writer } => {
            let reader = prose.history.txn_of(read);
            let seen =
                format!("the snapshot that the database told of it does not see {}", name(writer));
            (vec![reader, writer], format!("{}\n{seen}", has_read(prose, read, key, writer)))
        }
        Conflict::SnapshotSeesMore { read, key, saw, later } => {
            let reader = prose.history.txn_of(read);
            let seen = format!(
                "the snapshot that the database told of it sees {}{}, which was installed later",
                name(later),
                prose.written_at(later, key)
            );
            let txns = [Some(reader), saw, Some(later)].into_iter().flatten().collect();
            let saw = saw.unwrap_or(INITIAL);
            (txns, format!("{}\n{seen}", has_read(prose, read, key, saw)))
        }
    }
}

fn has_read(prose: &Prose<'_>, read: OpId, key: KeyId, writer: TxnId) -> String {
    let reader = prose.txn(prose.history.txn_of(read));
    format!(
        "{reader} read {} from {} {}",
        prose.content(read, key),
        prose.txn(writer),
        prose.at(read)
    )
}

/// A timestamp as the text format writes it.
fn shown(timestamp: Option<Timestamp>) -> String {
    match timestamp {
        None => "no time".to_owned(),
        Some(Timestamp { physical, logical: 0 }) => physical.to_string(),
        Some(Timestamp { physical, logical }) => format!("{physical}.{logical}"),
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
            let looked = prose.looked(read);
            let (reader_name, at) = (prose.txn(reader), prose.at(read));
            let explanation = match key {
                None => format!(
                    "{reader_name} {looked} {at}\nthe rows that are there by the order give another result"
                ),
                Some(key) => format!(
                    "{reader_name} {looked} {at}\nby the order, {} as {} left it is found otherwise",
                    prose.key(key),
                    name(writer),
                ),
            };
            let txns = [Some(reader), writer].into_iter().flatten().collect();
            (txns, explanation)
        }
        Contradiction::Misread(misread) => {
            let reader = prose.history.txn_of(misread.read);
            let (content, at) = (prose.content(misread.read, misread.key), prose.at(misread.read));
            let (writer, why) = never_there(prose, misread.kind);
            let txns = [Some(reader), writer].into_iter().flatten().collect();
            (txns, format!("{} read {content} {at}\n{why}", prose.txn(reader)))
        }
        Contradiction::Versions(step) => (
            vec![step.before, step.after],
            format!("{}\nthe order has them the other way round", prose.version(&step)),
        ),
    }
}

/// Why a read is wrong in every order, and by whose write.
fn never_there(prose: &Prose<'_>, kind: MisreadKind) -> (Option<TxnId>, String) {
    let by = |write: OpId| (prose.history.txn_of(write), prose.at(write));
    match kind {
        MisreadKind::ThinAir => (None, "nobody wrote that".to_owned()),
        MisreadKind::Aborted { write } => {
            let (writer, at) = by(write);
            (Some(writer), format!("{} wrote that and aborted {at}", prose.txn(writer)))
        }
        MisreadKind::Intermediate { write } => {
            let (writer, at) = by(write);
            let why = format!("{} wrote that and replaced it itself {at}", prose.txn(writer));
            (Some(writer), why)
        }
        MisreadKind::Future { write } => {
            (None, format!("it wrote that only later {}", by(write).1))
        }
        MisreadKind::NotMyOwnWrite { write } | MisreadKind::NotMyLastWrite { write } => {
            (None, format!("it had written something else itself {}", by(write).1))
        }
    }
}
