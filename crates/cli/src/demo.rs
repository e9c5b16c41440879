//! `isolde demo`: a bank that loses money, caught and explained, without a database.
//!
//! The bank is simulated and its bug is known. Everything comes from one seed, so everybody sees
//! the same violation.

use crate::exit::{Failure, Status};
use crate::job::Job;
use crate::limits::{self, Clock, Resources};
use crate::subject::Opening;
use crate::{check, convert, input, out, output, terminal};
use isolde_harness::bank::{self, BALANCE, Booking};
use isolde_harness::{Bug, Parameters, generate, preset};
use isolde_history::{History, Index, TxnId};
use isolde_report::scenario::Role;
use isolde_report::{Page, Report, Scenario, TerminalStyle};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options of `isolde demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder for the history and its page
    #[arg(long, short, value_name = "DIR", default_value = "isolde-demo")]
    output: PathBuf,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

/// Few accounts and clients, so that the violation is small; found by the first seed that shows
/// a wrong total as well.
const ACCOUNTS: u32 = 3;
const CLIENTS: u32 = 4;
const TRANSACTIONS: u32 = 60;
const SEED: u64 = 1;
const BUG: Bug = Bug::LostUpdate;

/// Lines of the explanation are no longer than this, wherever they go.
const COLUMNS: usize = 80;

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    limits::start_threads(None)?;
    let folder = &arguments.output;
    let failed = |error: std::io::Error| Failure::Write(folder.display().to_string(), error.into());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let (file, page) = (folder.join("history.txt"), folder.join("report.html"));
    let text = convert::target_or_text(Some("text"), None)?;
    convert::write(&recorded(), &text, Some(&file))?;
    let told = checked(&file, &page)?;
    let told = told + &what_next(&file, &page);
    let fitted = TerminalStyle { width: Some(COLUMNS), colour: false }.apply(&told);
    out(&terminal::dressed(&fitted))?;
    if arguments.open {
        open(&page)?;
    }
    Ok(Status::Satisfied)
}

/// What the clients of the bank saw.
fn recorded() -> History {
    let bank = preset("bank").expect("a preset of the harness").parameters;
    let parameters = Parameters {
        sessions: CLIENTS,
        keys: ACCOUNTS,
        transactions: TRANSACTIONS,
        bug: Some(BUG),
        seed: SEED,
        ..bank
    };
    generate(&parameters).expect("parameters that fit each other")
}

/// Checks the history as `isolde check` does, writes its page, and tells what was found.
fn checked(file: &Path, page: &Path) -> Result<String, Failure> {
    let unlimited = Resources { memory: None, threads: None };
    let job = Job::new(Clock::until(None), &unlimited, false);
    let input = input::Arguments { from: None, initial: None, complete_log: false };
    let (history, format) = input::read(file, &input, None)?;
    let report =
        Opening { input: &input, job: &job }.report(&history, (&input::name(file), format.name));
    let told = story(&history, &report);
    let index = Index::new(&history);
    let report = serde_json::to_value(&report).expect("a report is plain data");
    let drawn = Page { report: &report, history: Some((&history, &index)), run: None };
    let html = drawn.to_html().map_err(Failure::Usage)?;
    output::write_whole(page, |out| out.write_all(html.as_bytes()))?;
    Ok(told)
}

/// What was recorded, what is wrong with it, and what that did to the money.
fn story(history: &History, report: &Report) -> String {
    let totals = bank::totals(history);
    let mut text = format!(
        "A bank has {} accounts with {BALANCE} each. {} clients move money from one to another,\n\
         and look at all of them now and then. The bank's database promises that its\n\
         transactions are serializable: that everything looks as if one ran after\n\
         another. It has a bug.\n\n\
         {} transactions were recorded. Are they serializable?\n\n",
        totals.accounts,
        history.session_count(),
        report.history.committed,
    );
    let violated = report.levels.iter().find(|level| !level.anomalies.is_empty());
    let anomaly = &violated.expect("the bug shows with this seed").anomalies[0];
    writeln!(text, "No: {}.", anomaly.scenario.names.everyday).expect("a string grows");
    for sentence in anomaly.explanation.lines() {
        writeln!(text, "  {sentence}").expect("a string grows");
    }
    text.push_str(
        "\nS1.5 is the fifth transaction of client 1, and every write has a number of its own:\n\
         1 = 17 is what account 1 held after write 17. In money:\n",
    );
    for txn in history.txns().filter(|&txn| is_on_cycle(&anomaly.scenario, history, txn)) {
        if let Some([from, to]) = bank::transfer(history, txn) {
            text.push_str(&moved(history, txn, from, to));
        }
    }
    text.push_str("  One of the two results is gone, and its transfer is half done.\n");
    if let Some(look) = totals.wrong.first() {
        writeln!(
            text,
            "  All accounts should hold {} together. {} of {} looks saw another total; \
             the first of these, {}, saw {}.",
            totals.expected,
            totals.wrong.len(),
            totals.looks,
            history.txn_name(look.txn),
            look.total,
        )
        .expect("a string grows");
    }
    writeln!(text, "\nWhat it means: {}", anomaly.scenario.meaning).expect("a string grows");
    text
}

/// Whether the contradiction goes through this transaction.
fn is_on_cycle(scenario: &Scenario, history: &History, txn: TxnId) -> bool {
    let name = history.readable_name(txn);
    scenario.transactions.iter().any(|it| it.role == Role::Cycle && it.name == name)
}

/// A transfer in a sentence.
fn moved(history: &History, txn: TxnId, from: Booking, to: Booking) -> String {
    let account = |booking: Booking| history.datum(history.key_name(booking.account));
    format!(
        "  {} moved {} from account {} to account {}: it read {} and {}, and wrote {} and {}.\n",
        history.txn_name(txn),
        to.after - to.before,
        account(from),
        account(to),
        from.before,
        to.before,
        from.after,
        to.after,
    )
}

/// Where to go from here.
fn what_next(file: &Path, page: &Path) -> String {
    format!(
        "\n\
         page: {}\n\
         all steps: isolde explain {}\n\
         a real database: isolde run\n",
        page.display(),
        check::file_for_a_shell(file),
    )
}

/// Hands the page to whatever shows pages here.
fn open(page: &Path) -> Result<(), Failure> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(opener)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(cannot_open(page, &format!("{opener} failed ({status})"))),
        Err(error) => Err(cannot_open(page, &format!("{opener}: {error}"))),
    }
}

fn cannot_open(page: &Path, why: &str) -> Failure {
    Failure::Usage(format!("demo: cannot open {}: {why}; open it in a browser", page.display()))
}
