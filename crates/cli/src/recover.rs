//! `isolde recover`: the order of versions for a history that was recorded before.
//!
//! A database that is still there may still know in which order it installed the versions
//! that a history wrote. The history is written again, with that order in it. What the
//! database tells must be all of what was committed and nothing else: half an order would
//! accuse the wrong ones.

use crate::exit::{Failure, Status};
use crate::{address, convert, input, limits, output, say};
use isolde_drivers::TARGETS;
use isolde_harness::{Installed, Past};
use isolde_history::format::{self, Input};
use isolde_history::{Datum, History, OpKind, Outcome, Source};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::PathBuf;

/// Options of `isolde recover`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The database that was driven: its URL
    target: String,
    /// The history; `-` is standard input
    file: PathBuf,
    /// Where to write the history with the order in it [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// The format to write; see `isolde formats` [default: binary if the output ends in .isolde,
    /// else text]
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// The table that was driven, if it is not that of a run of ours
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// The replication slot that has kept the log, for databases that need one
    #[arg(long, value_name = "NAME")]
    slot: Option<String>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    resources: limits::Resources,
}

fn usage(message: &str) -> Failure {
    Failure::Usage(format!("recover: {message}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.resources.apply()?;
    let options = arguments.clone();
    match limits::within(&limits::Clock::until(None), move || recovered(&options)) {
        Ok(recovered) => recovered,
        Err(reached) => {
            output::forget_partial();
            limits::end(reached, &arguments.file, &arguments.resources)
        }
    }
}

fn recovered(arguments: &Arguments) -> Result<Status, Failure> {
    let to = convert::target_or_text(arguments.to.as_deref(), arguments.output.as_deref())?;
    let address = address::of(&arguments.target).map_err(|message| usage(&message))?;
    if address.is_bare {
        let target = TARGETS.iter().find(|it| it.schemes.contains(&address.scheme.as_str()));
        let example = target.map_or("postgres://user@host/database", |it| it.example);
        return Err(usage(&format!(
            "expected the address of the database that was driven, as in {example}: one that is \
             started here knows nothing of the past"
        )));
    }
    let memory_max = arguments.resources.memory_max();
    let (history, _) = input::read(&arguments.file, &arguments.input, memory_max)?;
    let name = input::name(&arguments.file);
    if !history.orders().versions.is_empty() {
        return Err(usage(&format!("{name} has an order of versions already")));
    }
    let database = isolde_drivers::open(&address).map_err(|error| usage(&error.to_string()))?;
    let written = written(&history).map_err(|message| usage(&format!("{name}: {message}")))?;
    let past = Past {
        table: arguments.table.clone(),
        slot: arguments.slot.clone(),
        written: written.keys().copied().collect(),
    };
    let told = database.recall(&past).map_err(|error| usage(&error.to_string()))?;
    let versions = told.len();
    let chains = chains(&told);
    check(written, &chains).map_err(|message| usage(&format!("{name}: {message}")))?;
    say(&format!("isolde: {} told the order of {versions} versions", database.name()));
    let history = with_orders(&history, &chains, memory_max)?;
    convert::write(&history, &to, arguments.output.as_deref())?;
    Ok(Status::Satisfied)
}

/// Versions of each key in their order; those without a value are removals.
type Chains = BTreeMap<u64, Vec<Option<u64>>>;

fn chains(told: &[Installed]) -> Chains {
    let mut chains = Chains::new();
    for &Installed { key, value, .. } in told {
        chains.entry(key).or_default().push(value);
    }
    chains
}

/// How each version ended, by key and value.
type Written = HashMap<(u64, u64), Outcome>;

fn written(history: &History) -> Result<Written, String> {
    let mut written = Written::new();
    for txn in history.txns() {
        for id in history.ops_of(txn) {
            let op = history.op(id);
            if !matches!(op.kind, OpKind::Write | OpKind::Insert) {
                continue;
            }
            let number = |value| match history.datum(value) {
                Datum::Int(number) => u64::try_from(number).ok(),
                _ => None,
            };
            let pair = number(history.key_name(op.key)).zip(number(op.value));
            let pair = pair.ok_or("expected keys and values that are natural numbers")?;
            written.insert(pair, history.outcome(txn));
        }
    }
    Ok(written)
}

/// Compares what the database told with what the history wrote.
fn check(mut written: Written, chains: &Chains) -> Result<(), String> {
    let mut foreign = (0, None);
    for (&key, values) in chains {
        for &value in values.iter().flatten() {
            match written.remove(&(key, value)) {
                Some(_) => {}
                None => foreign = (foreign.0 + 1, foreign.1.or(Some((key, value)))),
            }
        }
    }
    if let (count, Some((key, value))) = foreign {
        return Err(format!(
            "the database installed {count} versions that no transaction here wrote, among them \
             {value} of key {key}: its log is of another run, or others wrote to the table"
        ));
    }
    let mut missing: Vec<_> =
        written.iter().filter(|(_, outcome)| **outcome == Outcome::Committed).collect();
    missing.sort_unstable_by_key(|(pair, _)| **pair);
    match missing.first() {
        Some(((key, value), _)) => Err(format!(
            "the database does not tell of {} versions that were committed, among them {value} of \
             key {key}: a part of its log is gone",
            missing.len()
        )),
        None => Ok(()),
    }
}

/// The same history with these orders, by way of the format that has lines for them.
fn with_orders(
    history: &History,
    chains: &Chains,
    memory_max: Option<usize>,
) -> Result<History, Failure> {
    let mut text = format::to_text(history);
    for (key, values) in chains {
        write!(text, "order {key} complete:").expect("a string grows");
        for value in values {
            match value {
                Some(value) => write!(text, " {value}"),
                None => write!(text, " nil"),
            }
            .expect("a string grows");
        }
        text.push('\n');
    }
    let source = Source::from_bytes("the history with its order", text.as_bytes());
    let options = input::options(memory_max, None);
    Ok(format::read_detected(Input::File(source), options)?.0)
}
