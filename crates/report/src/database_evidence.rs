//! What became of what a database told about itself, in words.

use crate::Decided;
use crate::prose::Prose;
use isolde::{
    Axiom, Clash, Conflict, Contradiction, INITIAL, Level, Options, Satisfied, Verdict, conflicts,
    replay, timestamps,
};
use isolde_history::{
    CONTRADICTING_ORDERS, History, Index, KeyId, MisreadKind, OpId, REPEATED_NUMBER, Timestamp,
    TxnId, Value, Version, VersionChain,
};
use serde::Serialize;
use std::collections::HashSet;

/// What a database told that verdicts rest on, in words: what is left out because it tells
/// nothing, or contradicts itself, is not counted.
pub(crate) fn evidence(history: &History, index: &Index, options: Options) -> Vec<String> {
    let mut evidence = Vec::new();
    let chains = &history.orders().versions;
    let chains: Vec<&VersionChain> =
        chains.iter().filter(|it| names_a_write(history, index, it)).collect();
    if !chains.is_empty() && options.sources.database_order {
        let mut keys: Vec<KeyId> = chains.iter().map(|chain| chain.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let complete =
            chains.iter().filter(|chain| has_all_versions(history, index, chain)).count();
        let all = if complete == keys.len() { "complete" } else { "partial" };
        let keys = crate::terminal::counted(keys.len(), "key");
        evidence.push(format!("{all} version orders of {keys}"));
    }
    let has_snapshot = |txn: &TxnId| {
        history.txn_snapshot(*txn).is_some()
            || history.ops_of(*txn).any(|op| history.op_snapshot(op).is_some())
    };
    // Without the number of any writer nobody knows what a snapshot sees.
    let is_numbered = |txn: TxnId| {
        history.number(txn).is_some() && index.is_counted(txn) && !index.written_by(txn).is_empty()
    };
    if history.has_snapshots() && history.txns().any(is_numbered) {
        let txns = history.txns().filter(has_snapshot).count();
        evidence.push(format!("snapshots of {}", crate::terminal::counted(txns, "transaction")));
    }
    evidence
}

/// Whether somebody wrote what an order of versions names.
fn names_a_write(history: &History, index: &Index, chain: &VersionChain) -> bool {
    let versions = index.versions_of(history, chain.key);
    chain.values.iter().any(|value| versions.binary_search_by_key(value, |it| it.value).is_ok())
}

/// Whether an order of versions is as complete as it is said to be.
fn has_all_versions(history: &History, index: &Index, chain: &VersionChain) -> bool {
    let told: HashSet<Value> = chain.values.iter().copied().collect();
    let counts = |version: &&Version| version.is_final() && index.is_counted(version.txn);
    let mut versions = index.versions_of(history, chain.key).iter().filter(counts);
    chain.complete && versions.all(|version| told.contains(&version.value))
}

/// Something that a database told, that contradicts itself, and that verdicts do without.
pub(crate) struct LeftOut {
    /// What it is.
    pub name: &'static str,
    /// What a verdict says of it.
    pub reason: &'static str,
}

/// What a database told and is left out because it contradicts itself.
pub(crate) fn left_out(history: &History) -> Vec<LeftOut> {
    let rows = [
        (
            CONTRADICTING_ORDERS,
            LeftOut {
                name: "version-order",
                reason: "without told version orders, which contradict each other",
            },
        ),
        (
            REPEATED_NUMBER,
            LeftOut {
                name: "transaction-number",
                reason: "without told numbers that several transactions share",
            },
        ),
    ];
    let is_remarked = |kind: &str| history.remarks().iter().any(|remark| remark.kind == kind);
    rows.into_iter().filter(|row| is_remarked(row.0)).map(|row| row.1).collect()
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
    /// Whether they are wrong, and not only missing of some.
    #[serde(skip)]
    pub(crate) is_refuted: bool,
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
        // Timestamps that some lack are no claim about all.
        let is_refuted = clashes.iter().any(|clash| !matches!(clash, Clash::Missing(_)));
        let failed = clashes.into_iter().map(|clash| {
            let (txns, explanation) = clashed(prose, clash);
            let transactions = txns.into_iter().map(|txn| prose.txn(txn)).collect();
            FailedAxiom { name: clash.axiom().map(Axiom::name), transactions, explanation }
        });
        let failed: Vec<FailedAxiom> = failed.collect();
        Some(TimestampsReport { explains: failed.is_empty(), failed, is_refuted })
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
    left_out: &[LeftOut],
) -> Vec<String> {
    let serial = serial.is_some_and(|it| !it.explains).then(|| "serialization-order".to_owned());
    let timestamps = timestamps.is_some_and(|it| it.is_refuted).then(|| "timestamps".to_owned());
    let conflicts = conflicts.iter().map(ConflictReport::name);
    let left_out = left_out.iter().map(|it| it.name.to_owned());
    serial.into_iter().chain(timestamps).chain(conflicts).chain(left_out).collect()
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
            format!("{}\n{}", prose.version_at(&step), committed(step.after, step.before)),
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
            format!("{}\nthe order has them the other way round", prose.version_at(&step)),
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

#[cfg(test)]
mod tests {
    use crate::{Decided, Detail, Report, explained, to_text};
    use isolde::{Check, Level, Limits, found_by_reading};
    use isolde_history::Index;
    use isolde_history::format::parse_text;

    fn report(text: &str) -> Report {
        let history = parse_text(text).expect("a well-formed history");
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let decided: Vec<Decided> =
            vec![(Level::Serializable, check.decide(Level::Serializable), 0.0)];
        let found = found_by_reading(&history, &index);
        explained((&history, &index), ("a.txt", "text"), &decided, &found)
    }

    /// What is refuted, and how the claim is told.
    fn refutes(text: &str, refuted: &[&str], sentences: &[&str]) {
        let report = report(text);
        assert_eq!(report.refuted, refuted, "{text}");
        let told = to_text(&report, Detail::Full, None);
        for sentence in sentences {
            assert!(told.contains(sentence), "{sentence} is missing:\n{told}");
        }
        assert!(refuted.is_empty() || !told.contains("every read"), "{told}");
        let quiet = to_text(&report, Detail::Verdicts, None);
        for claim in refuted {
            assert!(quiet.contains(&format!("{claim}\trefuted")), "{quiet}");
        }
    }

    #[test]
    fn a_serialization_order_does_not_explain_what_nobody_committed() {
        let order = &["serialization-order"];
        refutes("A: w(x,1)\nB: r(x,1)\nserial: A B\n", &[], &["explains every read"]);
        refutes("A: w(x,1)\nB: r(x,7)\nserial: A B\n", order, &["nobody wrote that"]);
        let aborted = "A: w(x,1) aborted\nB: r(x,1)\nserial: B\n";
        refutes(aborted, order, &["A wrote that and aborted"]);
        let intermediate = "A: w(x,1) w(x,2)\nB: r(x,1)\nserial: A B\n";
        refutes(intermediate, order, &["A wrote that and replaced it itself"]);
        refutes("A: r(x,1) w(x,1)\nserial: A\n", order, &["it wrote that only later"]);
        refutes("A: w(x,1) r(x,2)\nB: w(x,2)\nserial: B A\n", order, &["something else itself"]);
    }

    #[test]
    fn timestamps_do_not_explain_what_nobody_wrote_nor_run_backwards() {
        let timestamps = &["timestamps"];
        let thin_air = "A ts=1..2: w(x,1)\nB ts=30..31: r(x,7)\n";
        refutes(thin_air, timestamps, &["EXT: B read x = 7", "nobody wrote that"]);
        refutes("A ts=30..20: w(x,1)\n", timestamps, &["commits before it starts"]);
        refutes("A: w(y,1)\nB ts=30..20: w(x,1)\n", timestamps, &["commits before it starts"]);
        refutes("A ts=1..2: w(x,1)\nB: r(x,1)\n", &[], &["has no timestamps"]);
    }

    #[test]
    fn a_value_that_looks_initial_comes_with_what_to_try() {
        let text = "A: r(x,0) r(y,0) w(x,1)\n";
        refutes(text, &[], &["try `--initial 0`", "(other-initial-value)"]);
    }

    #[test]
    fn evidence_that_contradicts_itself_is_refuted_and_named_in_the_verdict() {
        let without = "without told version orders, which contradict each other";
        let writes = "A: w(x,1)\nB: w(x,2)\n";
        let contradicting = format!("{writes}order x: 1 2\norder x: 2 1\n");
        refutes(&contradicting, &["version-order"], &[without]);
        assert_eq!(report(&contradicting).levels[0].reason.as_deref(), Some(without));
        assert_eq!(report(&format!("{writes}order x: 1 2\n")).levels[0].reason, None);
        let shared = "A id=3: w(x,1)\nB id=3 sees=4: r(x,1)\n";
        refutes(shared, &["transaction-number"], &["without told numbers"]);
    }

    #[test]
    fn only_evidence_that_is_used_is_counted() {
        let evidence = |text: &str| report(text).evidence.join("; ");
        let writes = "A: w(x,1)\nB: w(x,2)\nC: w(x,3)\n";
        let complete = "complete version orders of 1 key";
        let partial = "partial version orders of 1 key";
        assert_eq!(evidence(&format!("{writes}order x complete: 1 2 3\n")), complete);
        assert_eq!(evidence(&format!("{writes}order x complete: 1 3\n")), partial);
        assert_eq!(evidence(&format!("{writes}order y complete: 1 3\n")), "");
        let snapshot = "A id=3: w(x,1)\nB id=4 sees=4: r(x,1)\n";
        assert_eq!(evidence(snapshot), "snapshots of 1 transaction");
        assert_eq!(evidence("A id=3: w(x,1)\nB id=3 sees=4: r(x,1)\n"), "");
    }

    #[test]
    fn an_aggregate_that_no_state_gives_has_a_name() {
        let named = |count: u32| {
            let text = format!("A: w(x,1)\nB: p(all; x=1) p(count all -> {count})\nserial: A B\n");
            let level = report(&text).levels.remove(0);
            let names: Vec<&str> = level.anomalies.iter().map(|it| it.name).collect();
            (level.verdict, names)
        };
        assert_eq!(named(2), ("violated", vec!["result-set-mismatch"]));
        assert_eq!(named(1), ("satisfied", vec![]));
    }

    /// Two reads that differ refute the level asked for, which is shown violated by something
    /// else; what is seen besides is not said to refute nothing.
    #[test]
    fn what_is_also_seen_may_refute_the_level_too() {
        let text =
            "A: w(x,1)\nB: w(x,2)\nT: r(x,1) r(x,2)\nC: r(a,nil) w(b,1)\nD: r(b,nil) w(a,1)\n";
        let told = to_text(&report(text), Detail::Full, None);
        assert!(told.contains("also seen:\n"), "{told}");
    }
}
