//! `isolde elle`: in place of elle-cli, with its options and its output.
//!
//! One line per file: its name, a tab between two spaces, and `true`, `false` or
//! `unknown`. Unlike elle-cli, `unknown` has an exit status of its own.
//!
//! Transactions on registers and lists are asked about as Elle does, with models and
//! anomalies; every other workload has one question of its own.

use crate::edn::to_edn;
use crate::exit::{Failure, Status};
use crate::{input, limits, out, output, say, suggestion};
use clap::ValueEnum;
use isolde::elle::{
    ANOMALIES, ElleAnomaly, Expectations, Finding, JepsenWorkload, MODELS, Model, Question, Valid,
    WORKLOADS, Workload, allowing_unwritten, answer,
};
use isolde::{Anomaly, Limits};
use isolde_history::{History, Index, OpId, ReadError};
use isolde_report::{Prose, explain, tell, to_json};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `isolde elle`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Histories
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What the histories are: rw-register, list-append, cas-register, mutex, bank, counter, set,
    /// set-full, long-fork, sequential or comments
    #[arg(long, short, value_name = "MODEL")]
    model: String,
    /// Their format [default: found from their content]
    #[arg(long, short, value_enum)]
    format: Option<InputFormat>,
    /// Consistency models that should hold, separated by commas
    #[arg(long, short, value_name = "MODELS", default_value = "strict-serializable")]
    consistency_models: Vec<String>,
    /// Anomalies that should be absent, separated by commas
    #[arg(long, short, value_name = "ANOMALIES", default_value = "G0")]
    anomalies: Vec<String>,
    /// Print a map of what was found, in EDN, instead of one line per file
    #[arg(long, short)]
    verbose: bool,
    /// Print one line per file, or a map of what was found
    #[arg(long, value_enum)]
    output: Option<OutputKind>,
    /// Write explanations of anomalies to files in this directory
    #[arg(long, short, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Answer false for register reads of values nobody wrote, and for all that snapshot
    /// isolation forbids in long-fork: elle-cli allows both
    #[arg(long)]
    complete: bool,
    #[command(flatten)]
    of_workload: OfWorkload,
    #[command(flatten)]
    ignored: Ignored,
    #[command(flatten)]
    limits: limits::Arguments,
}

/// Options of one workload each.
#[derive(clap::Args, Clone)]
#[group(skip)]
struct OfWorkload {
    /// long-fork: how many keys are read together
    #[arg(long, short, value_name = "NUMBER")]
    group_size: Option<usize>,
    /// bank: accounts may be overdrawn
    #[arg(long, short = 'n')]
    allow_negative_balances: bool,
    /// bank: what all accounts hold together [default: that of the first read]
    #[arg(long, short = 'o', value_name = "AMOUNT", allow_negative_numbers = true)]
    total_amount: Option<i64>,
    /// set-full: every read that begins after an element was added must have it
    #[arg(long)]
    linearizable: bool,
}

/// Options of elle-cli that have nothing to act on here: nothing is plotted, and
/// transfers are not checked. They are taken so that scripts go on working.
#[derive(clap::Args, Clone)]
#[group(skip)]
#[allow(dead_code, reason = "read by nobody on purpose")]
struct Ignored {
    #[arg(long, short = 's', hide = true)]
    cycle_search_timeout: Option<u64>,
    #[arg(long, short = 'p', hide = true)]
    plot_format: Option<String>,
    #[arg(long, short = 't', hide = true)]
    plot_timeout: Option<u64>,
    #[arg(long, short = 'b', hide = true)]
    max_plot_bytes: Option<u64>,
    #[arg(long, hide = true)]
    max_transfer: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    Edn,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputKind {
    Text,
    Edn,
    Json,
}

impl Arguments {
    fn output(&self) -> OutputKind {
        self.output.unwrap_or(if self.verbose { OutputKind::Edn } else { OutputKind::Text })
    }
}

/// What histories are, and what is asked about them.
enum Asked {
    OfElle(Workload, Question),
    OfJepsen(&'static JepsenWorkload, Expectations),
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    // What cannot be asked is refused before anything is read.
    asked(arguments)?;
    input::refuse_second_standard_input(&arguments.files)?;
    arguments.limits.resources.apply()?;
    let mut worst = Status::Satisfied;
    for file in &arguments.files {
        match one(file, arguments) {
            Ok(status) => worst = worst.max(status),
            Err(failure @ Failure::Read(_)) => {
                say(&format!("isolde: {failure}"));
                worst = Status::BadInput;
            }
            Err(other) => return Err(other),
        }
    }
    Ok(worst)
}

fn asked(arguments: &Arguments) -> Result<Asked, Failure> {
    let question = question(arguments)?;
    let options = &arguments.of_workload;
    let expectations = Expectations {
        negative_balances: options.allow_negative_balances,
        total: options.total_amount.map(i128::from),
        // elle-cli's default.
        group_size: options.group_size.filter(|&size| size > 0),
        linearizable: options.linearizable,
        complete: arguments.complete,
    };
    match arguments.model.as_str() {
        "rw-register" => Ok(Asked::OfElle(Workload::RwRegister, question)),
        "list-append" => Ok(Asked::OfElle(Workload::ListAppend, question)),
        name => {
            let workload = JepsenWorkload::parse(name).ok_or_else(|| {
                let others = WORKLOADS.iter().map(|workload| workload.name);
                let names: Vec<&str> =
                    ["rw-register", "list-append"].into_iter().chain(others).collect();
                Failure::Usage(suggestion::expected("a model", name, &names))
            })?;
            Ok(Asked::OfJepsen(workload, expectations))
        }
    }
}

fn question(arguments: &Arguments) -> Result<Question, Failure> {
    let models = split(&arguments.consistency_models).map(|name| {
        Model::parse(name).ok_or_else(|| {
            let names: Vec<&str> = MODELS.iter().map(|model| model.names[0]).collect();
            Failure::Usage(suggestion::expected("a consistency model", name, &names))
        })
    });
    let anomalies = split(&arguments.anomalies).map(|name| {
        ElleAnomaly::parse(name).ok_or_else(|| {
            let names: Vec<&str> = ANOMALIES.iter().map(|anomaly| anomaly.name).collect();
            Failure::Usage(suggestion::expected("an anomaly", name, &names))
        })
    });
    Ok(Question {
        models: models.collect::<Result<_, _>>()?,
        anomalies: anomalies.collect::<Result<_, _>>()?,
        explain: arguments.directory.is_some() || arguments.output() != OutputKind::Text,
    })
}

fn split(lists: &[String]) -> impl Iterator<Item = &str> {
    let names = lists.iter().flat_map(|list| list.split(','));
    names.map(str::trim).filter(|name| !name.is_empty())
}

/// What is said about one file.
struct Said {
    valid: Valid,
    /// Explanations by the name of what they explain.
    explained: BTreeMap<&'static str, Vec<String>>,
    /// What only one kind of workload says.
    more: Map<String, Value>,
}

fn one(file: &Path, arguments: &Arguments) -> Result<Status, Failure> {
    let clock = Arc::new(arguments.limits.clock(None));
    let work = {
        let (file, arguments, clock) = (file.to_owned(), arguments.clone(), Arc::clone(&clock));
        move || said(&file, &arguments, &clock)
    };
    let said = match limits::within(&clock, work) {
        Ok(said) => said?,
        Err(reached) => match limits::while_reading(reached, file, &arguments.limits.resources) {
            Some(failure) => return Err(failure),
            None => Said {
                valid: Valid::Unknown(reached.to_string()),
                explained: BTreeMap::new(),
                more: Map::new(),
            },
        },
    };
    print(file, said, arguments)
}

/// What there is to say about a file, if that takes no longer than allowed.
fn said(file: &Path, arguments: &Arguments, clock: &limits::Clock) -> Result<Said, Failure> {
    let format = arguments.format.map(|format| match format {
        InputFormat::Edn => "jepsen-edn".to_owned(),
        InputFormat::Json => "jepsen-json".to_owned(),
    });
    let options = input::Arguments { from: format, initial: None, complete_log: false };
    let memory_max = arguments.limits.resources.memory_max();
    let (history, _) = input::read(file, &options, memory_max)?;
    let limits = Limits {
        stop: &|| clock.is_over(),
        is_memory: &|| clock.is_memory(),
        working_bytes_max: memory_max.map(|bytes| bytes.saturating_sub(history.memory())),
        ..Limits::NONE
    };
    let name = file.display().to_string();
    match asked(arguments)? {
        Asked::OfElle(workload, question) => {
            of_elle(&name, history, (workload, &question), arguments, &limits)
        }
        Asked::OfJepsen(workload, expectations) => {
            of_jepsen(&name, &history, workload, expectations, &limits)
        }
    }
}

fn print(file: &Path, said: Said, arguments: &Arguments) -> Result<Status, Failure> {
    let name = file.display().to_string();
    let (word, status) = match &said.valid {
        Valid::True => ("true", Status::Satisfied),
        Valid::False => ("false", Status::Violated),
        Valid::Unknown(reason) => {
            say(&format!("isolde: {name}: {reason}"));
            ("unknown", Status::Unknown)
        }
    };
    if let Some(directory) = &arguments.directory {
        write_explanations(directory, file, arguments.files.len(), &said.explained)?;
    }
    let line = match arguments.output() {
        OutputKind::Text => format!("{name} \t {word}"),
        OutputKind::Edn => to_edn(&as_json(said, word)),
        OutputKind::Json => to_json(&as_json(said, word)),
    };
    out(&(line + "\n"))?;
    Ok(status)
}

fn of_elle(
    name: &str,
    history: History,
    (workload, question): (Workload, &Question),
    arguments: &Arguments,
    limits: &Limits<'_>,
) -> Result<Said, Failure> {
    if let Some(op) = workload.misfit(&history) {
        let model = &arguments.model;
        return Err(misfit(name, &history, op, &format!("operations of the model {model}")));
    }
    let (history, unwritten) =
        if arguments.complete { (history, 0) } else { allowing_unwritten(history) };
    let index = Index::new(&history);
    let answer = answer(&history, &index, question, limits);
    if unwritten > 0 {
        say(&format!(
            "isolde: {name}: {unwritten} of its reads saw values that nobody wrote, which elle-cli \
             allows, but for lost updates and two values in one transaction; --complete answers \
             false for them"
        ));
    }
    let mut explained = BTreeMap::new();
    let prose = Prose::new(&history, &index, name);
    let by_edges = |anomaly: &Anomaly| anomaly.name_in_elle(&history);
    explain_all(&prose, &answer.anomalies, by_edges, &mut explained);
    let more = Map::from_iter([("not".to_owned(), json!(answer.not))]);
    Ok(Said { valid: answer.valid, explained, more })
}

fn of_jepsen(
    name: &str,
    history: &History,
    workload: &JepsenWorkload,
    expectations: Expectations,
    limits: &Limits<'_>,
) -> Result<Said, Failure> {
    let finding = workload.check(history, expectations, limits).map_err(|found| {
        let expected = format!("{} in the model {}", found.expected, workload.name);
        misfit(name, history, found.op, &expected)
    })?;
    let Finding { valid, problems, anomalies, counts, vacuous } = finding;
    if let Some(reason) = vacuous {
        say(&format!(
            "isolde: {name}: nothing was tested, which elle-cli takes as valid: {reason}"
        ));
    }
    let index = Index::new(history);
    let prose = Prose::new(history, &index, name);
    let mut explained: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for problem in &problems {
        explained.entry(problem.name).or_default().push(tell(&prose, problem));
    }
    explain_all(&prose, &anomalies, |anomaly| anomaly.kind.name(), &mut explained);
    let counts = counts.into_iter().map(|(what, count)| (format!("{what}-count"), json!(count)));
    Ok(Said { valid, explained, more: counts.collect() })
}

fn misfit(name: &str, history: &History, op: OpId, expected: &str) -> Failure {
    let txn = history.readable_name(history.txn_of(op));
    let message = format!("expected {expected}, found others in {txn}");
    ReadError::new(name, message).hint("is it another model?").into()
}

/// Adds an explanation of every anomaly.
fn explain_all(
    prose: &Prose<'_>,
    anomalies: &[Anomaly],
    name: impl Fn(&Anomaly) -> &'static str,
    explained: &mut BTreeMap<&'static str, Vec<String>>,
) {
    for anomaly in anomalies {
        explained.entry(name(anomaly)).or_default().push(explain(prose, anomaly));
    }
}

/// Like the map that Elle returns.
fn as_json(said: Said, word: &str) -> Value {
    let mut map = Map::new();
    let (valid, reason) = match said.valid {
        Valid::True => (json!(true), None),
        Valid::False => (json!(false), None),
        Valid::Unknown(reason) => (json!(word), Some(reason)),
    };
    map.insert("valid?".into(), valid);
    if let Some(reason) = reason {
        map.insert("reason".into(), json!(reason));
    }
    map.insert("anomaly-types".into(), json!(said.explained.keys().collect::<Vec<_>>()));
    map.insert("anomalies".into(), json!(said.explained));
    map.extend(said.more);
    Value::Object(map)
}

/// One file per kind of anomaly, in a folder of its own if there are several histories.
fn write_explanations(
    directory: &Path,
    file: &Path,
    histories: usize,
    explained: &BTreeMap<&'static str, Vec<String>>,
) -> Result<(), Failure> {
    let folder = match file.file_name() {
        Some(name) if histories > 1 => directory.join(name),
        _ => directory.to_owned(),
    };
    for (anomaly, texts) in explained {
        let path = folder.join(format!("{anomaly}.txt"));
        let text = texts.join("\n\n") + "\n";
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::Write(path.display().to_string(), error.into()))?;
        output::write_whole(&path, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}
