//! The same parameters give the same history, on every machine and forever.
//!
//! A seed in a report names a history only as long as these numbers stay. If a
//! change to the generator moves them, the change is wrong.

use isolde_harness::{
    Aborts, Distribution, Isolation, PRESETS, Parameters, Times, TxnKind, generate,
};
use isolde_history::{History, OpKind};

/// FNV-1a over everything a generated history says.
fn fingerprint(history: &History) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |number: i64| {
        for byte in number.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for txn in history.txns() {
        let times = history.txn_times(txn);
        mix(i64::from(history.session_of(txn).0));
        mix(history.outcome(txn) as i64);
        for interval in [times.begin, times.commit] {
            mix(interval.invoked);
            mix(interval.completed);
        }
        for id in history.ops_of(txn) {
            let op = history.op(id);
            mix(op.kind as i64);
            mix(i64::from(history.key_name(op.key).bits()));
            mix(history.op_interval(id).invoked);
            if op.kind == OpKind::ReadList {
                history.list(id).iter().for_each(|element| mix(i64::from(element.bits())));
            } else {
                mix(i64::from(op.value.bits()));
            }
        }
    }
    hash
}

fn pinned(parameters: &Parameters) -> String {
    let history = generate(parameters).expect("a preset");
    format!(
        "{} transactions, {} operations, {:016x}",
        history.txn_count(),
        history.op_count(),
        fingerprint(&history)
    )
}

#[test]
fn every_preset_gives_the_history_it_always_gave() {
    let found: Vec<String> = PRESETS
        .iter()
        .filter(|preset| !matches!(preset.parameters.kind, TxnKind::Rows(_)))
        .map(|preset| {
            let transactions = preset.parameters.transactions.min(20_000);
            let history = pinned(&Parameters { transactions, ..preset.parameters });
            format!("{}: {history}", preset.name)
        })
        .collect();
    assert_eq!(
        found,
        [
            "BlindW-RW: 10000 transactions, 80000 operations, d07446bd091f0d90",
            "GeneralRH: 10000 transactions, 80000 operations, 2c5d0d0e7bccd13f",
            "GeneralRW: 10000 transactions, 80000 operations, e68bf70125394796",
            "GeneralWH: 10000 transactions, 80000 operations, e2374330325390b5",
            "PolySI: 2000 transactions, 30000 operations, 32ec027e7c0a2b16",
            "mini-transactions: 10000 transactions, 40000 operations, fb8b1861621d90fe",
            "weak: 20000 transactions, 160000 operations, 67adcd53cbe83a85",
            "list-append: 10000 transactions, 40000 operations, 2036fd9175daae8c",
            "MTC: 10000 transactions, 32107 operations, 9ccb8d2af63cf08a",
            "BlindW-RM: 10000 transactions, 80000 operations, 8c5eafcfb62f4559",
            "BlindW-W: 10000 transactions, 80000 operations, c842e60b86c37b9b",
            "YCSB-A: 10000 transactions, 10000 operations, 51fdefc19e4882bf",
            "SmallBank: 10000 transactions, 32109 operations, 7b091a5094196b7d",
            "TPC-C: 10000 transactions, 90267 operations, bb7296e4a3db46e7",
            "RUBiS: 10000 transactions, 28438 operations, 06e1a71f5a436ebd",
            "C-Twitter: 10000 transactions, 35590 operations, 7997e96a04128dab",
            "bank: 10000 transactions, 62260 operations, 4de7fa7e44ec7d97",
        ]
    );
}

#[test]
fn every_level_gives_the_history_it_always_gave() {
    let found: Vec<String> = Isolation::ALL
        .map(|isolation| {
            let history = pinned(&Parameters {
                transactions: 2000,
                keys: 100,
                distribution: Distribution::Hotspot,
                isolation,
                times: Times::Operations,
                aborts: Aborts::Recorded,
                seed: 2,
                ..PRESETS[2].parameters
            });
            format!("{}: {history}", isolation.name())
        })
        .to_vec();
    assert_eq!(
        found,
        [
            "read-uncommitted: 14676 transactions, 43772 operations, 713eaf8532565765",
            "read-committed: 2000 transactions, 16000 operations, f59daf056a7a00da",
            "read-atomic: 2000 transactions, 16000 operations, 6ff8036a1dc7ba7d",
            "causal: 2000 transactions, 16000 operations, 8fba69dd145a433a",
            "snapshot-isolation: 9092 transactions, 72736 operations, c72456a434ea7efc",
            "serializable: 15828 transactions, 126624 operations, 108670c23565be5f",
        ]
    );
}
