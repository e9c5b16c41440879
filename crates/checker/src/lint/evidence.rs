//! Orders and snapshots that a database told, and that cannot be what they claim.

use super::{Certainty, Examples, Recording, Rule, remarks};
use isolde_history::{
    KeyId, Named, OpId, Origin, Outcome, ReadId, Timestamp, TxnId, Value, VersionChain,
};
use std::collections::{HashMap, HashSet};

/// What the entries of an order stand for.
fn named(recording: &Recording<'_>, chain: &VersionChain) -> Vec<Named> {
    let versions = recording.index.versions_of(recording.history, chain.key);
    let writes_of = |value: Value| {
        let start = versions.partition_point(|version| version.value < value);
        let same = versions[start..].iter().take_while(|version| version.value == value);
        same.map(|version| version.op()).collect()
    };
    chain.named(recording.history, &writes_of)
}

pub(super) const UNKNOWN_VERSION: Rule = Rule {
    name: "told-version-unknown",
    certainty: Certainty::Certain,
    meaning: "the database's version order names values that nobody wrote, which are left out of it",
    advice: "recover the order of the run that the history records, whole values included; `isolde lint` names them",
    find: |recording| {
        let mut examples = Examples::default();
        for chain in &recording.history.orders().versions {
            let writes = recording.index.versions_of(recording.history, chain.key);
            let initial = recording.history.initial(chain.key);
            for &value in &chain.values {
                if value != initial && writes.binary_search_by_key(&value, |it| it.value).is_err() {
                    examples.add(None, || {
                        let (key, value) = (recording.key(chain.key), recording.value(value));
                        format!("the version order of {key} has {value}, which nobody wrote to it")
                    });
                }
            }
        }
        examples
    },
};

pub(super) const MISSING_VERSION: Rule = Rule {
    name: "told-version-missing",
    certainty: Certainty::Certain,
    meaning: "a version order is said to be complete and lacks versions that were committed, so the rest of it is searched for",
    advice: "recover until the log is at its end, or do not call the order complete; `isolde lint` names them",
    find: |recording| {
        let mut examples = Examples::default();
        for chain in recording.history.orders().versions.iter().filter(|chain| chain.complete) {
            let told: HashSet<Value> = chain.values.iter().copied().collect();
            for version in recording.index.versions_of(recording.history, chain.key) {
                let is_missing = version.is_final()
                    && recording.index.is_counted(version.txn)
                    && !told.contains(&version.value);
                if is_missing {
                    examples.add(Some(version.op()), || {
                        let (key, value) =
                            (recording.key(chain.key), recording.value(version.value));
                        let writer = recording.txn(version.txn);
                        format!("the version order of {key} lacks {value}, which {writer} wrote")
                    });
                }
            }
        }
        examples
    },
};

pub(super) const ABORTED_VERSION: Rule = Rule {
    name: "told-version-aborted",
    certainty: Certainty::Likely,
    meaning: "the database's version order has values of transactions whose clients were told that they were aborted",
    advice: "record an error of a commit that may have succeeded as an unknown outcome, and recover committed versions alone; `isolde lint` names them",
    find: |recording| {
        let (history, index) = (recording.history, recording.index);
        let mut examples = Examples::default();
        for chain in &history.orders().versions {
            let versions = index.versions_of(history, chain.key);
            for &value in chain.values.iter().filter(|&&value| value != Value::NIL) {
                let start = versions.partition_point(|it| it.value < value);
                let writes = || versions[start..].iter().take_while(|it| it.value == value);
                let is_aborted = |txn: TxnId| history.outcome(txn) == Outcome::Aborted;
                if writes().all(|it| is_aborted(it.txn))
                    && let Some(version) = writes().next()
                {
                    examples.add(Some(version.op()), || {
                        let (key, value) = (recording.key(chain.key), recording.value(value));
                        let writer = recording.txn(version.txn);
                        format!("the version order of {key} has {value}, which {writer} wrote before it was aborted")
                    });
                }
            }
        }
        examples
    },
};

pub(super) const UNKNOWN_NUMBER: Rule = Rule {
    name: "told-number-unknown",
    certainty: Certainty::Likely,
    meaning: "the database's version order names the writer of a version by a number that no transaction has, and nothing else tells who it is, so the version is left out of it",
    advice: "record the database's own number of every transaction that writes, of the same run; `isolde lint` names them",
    find: |recording| {
        let history = recording.history;
        let mut examples = Examples::default();
        let chains = &history.orders().versions;
        if chains.iter().all(|chain| chain.numbers.is_empty()) {
            return examples;
        }
        let numbers: HashSet<u64> = history.txns().filter_map(|txn| history.number(txn)).collect();
        for chain in chains {
            let is_unknown = |entry: &&(u32, u64)| !numbers.contains(&entry.1);
            let mut unknown = chain.numbers.iter().filter(is_unknown).peekable();
            let named = if unknown.peek().is_some() { named(recording, chain) } else { Vec::new() };
            for &(place, number) in unknown {
                let place = place as usize;
                if !matches!(named[place], Named::Write(_)) {
                    examples.add(None, || {
                        let (key, value) =
                            (recording.key(chain.key), recording.value(chain.values[place]));
                        format!("the version order of {key} has {value} by the transaction {number}, and no transaction has that number")
                    });
                }
            }
        }
        examples
    },
};

pub(super) const CONTRADICTING_ORDERS: Rule = Rule {
    name: "told-orders-contradict",
    certainty: Certainty::Certain,
    meaning: "the evidence contradicts itself: orders of versions that the database told cannot all be true, so those of these keys are not used",
    advice: "recover each key's order once, in the order of its log; `isolde lint` names the versions and where they stand",
    find: |recording| remarks::of(recording, isolde_history::CONTRADICTING_ORDERS),
};

pub(super) const REPEATED_NUMBER: Rule = Rule {
    name: "told-number-twice",
    certainty: Certainty::Certain,
    meaning: "the evidence contradicts itself: several transactions have the same number of the database, so these numbers are not used",
    advice: "record the database's own number of each transaction, of one run; `isolde lint` names them",
    find: |recording| remarks::of(recording, isolde_history::REPEATED_NUMBER),
};

pub(super) const REVERSED_TIMESTAMPS: Rule = Rule {
    name: "told-commit-before-start",
    certainty: Certainty::Certain,
    meaning: "by the database's timestamps a transaction committed before it started",
    advice: "record the timestamp of the snapshot first and that of the commit second, of one clock",
    find: |recording| {
        let mut examples = Examples::default();
        for txn in recording.history.txns() {
            if let Some(given) = recording.history.timestamps(txn)
                && given.commit < given.start
            {
                examples.add(None, || {
                    let shown = |it: Timestamp| match it.logical {
                        0 => it.physical.to_string(),
                        logical => format!("{}.{logical}", it.physical),
                    };
                    let (start, commit) = (shown(given.start), shown(given.commit));
                    format!("{} starts at {start} and commits at {commit}", recording.txn(txn))
                });
            }
        }
        examples
    },
};

pub(super) const AGAINST_READS: Rule = Rule {
    name: "told-order-against-reads",
    certainty: Certainty::Possible,
    meaning: "the database says that one version came before another, and who read the later one and replaced it says the opposite",
    advice: "one of the two is wrong: the log it was recovered from, or what the transaction saw; `isolde lint` names both",
    find: |recording| {
        let (history, index) = (recording.history, recording.index);
        let mut examples = Examples::default();
        let mut places: HashMap<OpId, usize> = HashMap::new();
        for chain in &history.orders().versions {
            for (place, named) in named(recording, chain).into_iter().enumerate() {
                if let Named::Write(write) = named {
                    places.entry(write).or_insert(place);
                }
            }
        }
        if places.is_empty() {
            return examples;
        }
        let last_write = |txn: TxnId, key: KeyId| index.final_write(history, txn, key);
        for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
            for read in index.read_range(txn).map(ReadId) {
                let it = index.read(read);
                let Origin::Txn(writer) = it.origin else { continue };
                let (Some(seen), Some(own)) = (last_write(writer, it.key), last_write(txn, it.key))
                else {
                    continue;
                };
                let place = |write| places.get(&write).copied();
                if let (Some(first), Some(second)) = (place(seen), place(own))
                    && first > second
                {
                    examples.add(Some(it.op), || {
                        let key = recording.key(it.key);
                        let value = |write| recording.value(history.op(write).value);
                        let (seen, own) = (value(seen), value(own));
                        let (reader, writer) = (recording.txn(txn), recording.txn(writer));
                        format!("{reader} read {key} = {seen} of {writer} and replaced it by {own}, but the database says that {own} came before {seen}")
                    });
                }
            }
        }
        examples
    },
};

pub(super) const UNNUMBERED_WRITER: Rule = Rule {
    name: "told-snapshot-without-numbers",
    certainty: Certainty::Certain,
    meaning: "the database told snapshots, and some transactions that write have no number, so for their keys the snapshots tell nothing",
    advice: "record the database's number of every transaction that writes; `isolde lint` names them",
    find: |recording| {
        let (history, index) = (recording.history, recording.index);
        let mut examples = Examples::default();
        if !history.has_snapshots() {
            return examples;
        }
        for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
            if history.number(txn).is_none() && !index.written_by(txn).is_empty() {
                examples.add(None, || format!("{} writes and has no number", recording.txn(txn)));
            }
        }
        examples
    },
};

#[cfg(test)]
mod tests {
    use isolde_history::Index;
    use isolde_history::format::parse_text;

    /// The rules that apply, each with its first example.
    fn check(text: &str, expected: &[&str]) {
        let history = parse_text(text).expect("a well-formed history");
        let findings = super::super::lint(&history, &Index::new(&history));
        let told = findings.iter().filter(|finding| finding.rule.starts_with("told-"));
        let found: Vec<String> =
            told.map(|it| format!("{}: {}", it.rule, it.examples[0].text)).collect();
        assert_eq!(found, expected, "{text}");
    }

    const WRITES: &str = "A: w(x,1)\nB: r(x,1) w(x,2)\n";

    #[test]
    fn an_order_that_fits_is_not_mentioned() {
        check(&format!("{WRITES}order x complete: 1 2\n"), &[]);
    }

    #[test]
    fn a_certificate_that_is_wrong_is_told_exactly() {
        check(
            &format!("{WRITES}order x: 1 7 2\n"),
            &["told-version-unknown: the version order of x has 7, which nobody wrote to it"],
        );
        check(
            &format!("{WRITES}order x complete: 2\n"),
            &["told-version-missing: the version order of x lacks 1, which A wrote"],
        );
        check(
            "A: w(x,1)\nB: w(x,2) aborted\norder x complete: 1 2\n",
            &[
                "told-version-aborted: the version order of x has 2, which B wrote before it was aborted",
            ],
        );
        check(
            "A ts=10..1: w(x,1)\nB ts=11..11: r(x,1)\n",
            &["told-commit-before-start: A starts at 10 and commits at 1"],
        );
        check(
            "A id=3: w(x,1)\nB id=3: r(x,1)\n",
            &["told-number-twice: 2 transactions have the number 3, which is not used"],
        );
    }

    #[test]
    fn orders_that_contradict_each_other_are_told_with_their_lines() {
        let wrong = |claims: &str| {
            format!(
                "told-orders-contradict: the orders of x contradict each other and are not used: {claims}"
            )
        };
        let writes = "A: w(x,1) w(y,1)\nB: w(x,2) w(y,2)\nC: w(x,3)\n";
        for (orders, claims) in [
            ("order x: 1 2 1\n", "1 before 2 (line 4), 2 before 1 (line 4)"),
            ("order x: 1 2\norder x: 2 1\n", "1 before 2 (line 4), 2 before 1 (line 5)"),
            ("order x: 1 3 2\norder x: 2 1\n", "1 before 2 (line 4), 2 before 1 (line 5)"),
            (
                "order x: 1 2\norder x: 2 3\norder x: 3 1\n",
                "1 before 2 (line 4), 2 before 3 (line 5), 3 before 1 (line 6)",
            ),
        ] {
            check(&format!("{writes}{orders}"), &[&wrong(claims)]);
        }
        // Another key's order is another matter, and so is what was written twice.
        check(&format!("{writes}order x: 1 2\norder y: 2 1\n"), &[]);
        check(&format!("{writes}order x: 1 2\norder x: 2 3\norder x: 1 3\n"), &[]);
        check("A: w(x,1)\nB: w(x,2)\nC: w(x,1)\norder x complete: 1 2 1\n", &[]);
    }

    #[test]
    fn a_told_order_against_what_was_read_names_both() {
        check(
            &format!("{WRITES}order x: 2 1\n"),
            &[
                "told-order-against-reads: B read x = 1 of A and replaced it by 2, but the database says that 2 came before 1",
            ],
        );
    }

    #[test]
    fn a_number_that_no_transaction_has_names_nobody() {
        let unknown = "told-number-unknown: the version order of x has nil by the transaction 99, and no transaction has that number";
        check("A id=1: w(x,1)\nB id=2: w(x,2)\norder x: 1 nil@99 2\n", &[unknown]);
        let removals = "A id=1: w(x,1)\nB id=2: w(x,2)\nC id=3: d(x)\nD id=4: d(x)\n";
        check(&format!("{removals}order x: 1 nil@99 2\n"), &[unknown]);
        check(&format!("{removals}order x: 1 nil@3 2\n"), &[]);
    }

    #[test]
    fn snapshots_need_numbers() {
        check(
            "A: w(x,1)\nB id=2 sees=2: p(all; x=1)\n",
            &["told-snapshot-without-numbers: A writes and has no number"],
        );
    }
}
