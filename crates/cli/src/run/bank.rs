//! What a run of the bank says about its total.

use isolde_harness::bank::{self, Look};
use isolde_history::History;
use serde::Serialize;
use std::fmt::Write;

/// The total of all accounts, as `run.json` has it.
#[derive(Serialize)]
pub(super) struct Total {
    accounts: usize,
    /// What all accounts hold together.
    expected: i64,
    /// Committed transactions that looked at all accounts.
    looks: usize,
    /// Those that saw another total.
    wrong: usize,
    /// Those that saw a value which no transfers lead to.
    unfounded: usize,
    /// The first wrong one.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
}

#[derive(Serialize)]
struct Evidence {
    transaction: String,
    total: i64,
    reads: Vec<Read>,
}

#[derive(Serialize)]
struct Read {
    account: String,
    value: String,
    balance: i64,
    /// The line of the log.
    line: u32,
}

impl Total {
    pub(super) fn of(history: &History) -> Total {
        let totals = bank::totals(history);
        Total {
            accounts: totals.accounts,
            expected: totals.expected,
            looks: totals.looks,
            wrong: totals.wrong.len(),
            unfounded: totals.unfounded,
            evidence: totals.wrong.first().map(|look| Evidence::of(history, look)),
        }
    }

    /// One line, and the reads of the first wrong look.
    pub(super) fn to_text(&self) -> String {
        let Total { accounts, expected, looks, wrong, unfounded, .. } = self;
        let mut text = if *looks == 0 {
            return format!("bank: nobody looked at all {accounts} accounts");
        } else if *wrong + *unfounded == 0 {
            return format!("bank: all {looks} looks at {accounts} accounts saw {expected}");
        } else {
            format!("bank: {wrong} of {looks} looks at {accounts} accounts did not see {expected}")
        };
        if *unfounded > 0 {
            write!(text, ", {unfounded} saw values that no transfers lead to")
                .expect("a string grows");
        }
        if let Some(evidence) = &self.evidence {
            write!(text, "; {} saw {}:", evidence.transaction, evidence.total)
                .expect("a string grows");
            for Read { account, value, balance, line } in &evidence.reads {
                write!(text, "\n  {account} = {value}, which is {balance} (line {line})")
                    .expect("a string grows");
            }
        }
        text
    }
}

impl Evidence {
    fn of(history: &History, look: &Look) -> Evidence {
        let read = |&(id, balance): &(_, i64)| {
            let op = history.op(id);
            Read {
                account: history.datum(history.key_name(op.key)).to_string(),
                value: history.datum(op.value).to_string(),
                balance,
                line: history.position(id),
            }
        };
        Evidence {
            transaction: history.txn_name(look.txn),
            total: look.total,
            reads: look.balances.iter().map(read).collect(),
        }
    }
}
