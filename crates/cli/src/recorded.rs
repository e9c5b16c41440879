//! What a proxy tells of its recording beside the recording itself: `proxy.json`.

use crate::exit::Failure;
use crate::output;
use crate::subject::PROXY_FILE;
use isolde_proxy::Summary;
use isolde_report::statements::Setting;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;

/// What came of a run, as `proxy.json` has it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Account {
    schema: u32,
    connections: u64,
    committed: u64,
    aborted: u64,
    unknown: u64,
    statements: u64,
    unseen: u64,
    /// Transactions by isolation level.
    levels: Vec<(String, u64)>,
    gaps: Vec<Gap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Gap {
    reason: String,
    statement: String,
    count: u64,
}

/// Gaps that are printed; the file has all.
const GAPS_SHOWN: usize = 10;

impl Account {
    pub(crate) fn of(summary: &Summary) -> Account {
        let gap = |gap: &isolde_proxy::Gap| Gap {
            reason: gap.reason.to_owned(),
            statement: gap.statement.clone(),
            count: gap.count,
        };
        Account {
            schema: 1,
            connections: summary.connections,
            committed: summary.committed,
            aborted: summary.aborted,
            unknown: summary.unknown,
            statements: summary.statements,
            unseen: summary.unseen,
            levels: summary.levels.clone(),
            gaps: summary.gaps.iter().map(gap).collect(),
            error: summary.error.clone(),
        }
    }
}

impl Account {
    /// What a terminal shows of it.
    pub(crate) fn to_text(&self, folder: &Path) -> String {
        to_text(self, folder)
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(self).expect("plain data");
        output::write_whole(&folder.join(PROXY_FILE), |out| {
            out.write_all(json.as_bytes())?;
            out.write_all(b"\n")
        })
    }
}

fn to_text(account: &Account, folder: &Path) -> String {
    let mut text = String::new();
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        text.write_fmt(arguments).expect("a string grows");
        text.push('\n');
    };
    line(format_args!(
        "{} connections, {} statements; {} transactions committed, {} aborted, {} unknown",
        account.connections,
        account.statements,
        account.committed,
        account.aborted,
        account.unknown
    ));
    if account.unseen > 0 {
        line(format_args!("not seen, or not wholly: {} statements", account.unseen));
        for gap in account.gaps.iter().take(GAPS_SHOWN) {
            line(format_args!("  {:>6}  {}: {}", gap.count, gap.reason, gap.statement));
        }
        if account.gaps.len() > GAPS_SHOWN {
            let more = account.gaps.len() - GAPS_SHOWN;
            line(format_args!("          {more} more: {}", folder.join(PROXY_FILE).display()));
        }
    }
    line(format_args!("recorded in {}", folder.display()));
    text
}

/// The weakest setting that transactions of a recording had, if all of them are known.
pub(crate) fn weakest_setting(recording: &Path) -> Option<Setting> {
    let folder = if recording.is_dir() { recording } else { recording.parent()? };
    let json = std::fs::read(folder.join(PROXY_FILE)).ok()?;
    let account: Account = serde_json::from_slice(&json).ok()?;
    let settings: Option<Vec<Setting>> =
        account.levels.iter().map(|(name, _)| Setting::parse(name)).collect();
    settings?.into_iter().min()
}
