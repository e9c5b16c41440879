//! `isolde elle`: in place of elle-cli, with its options and its output.
//!
//! One line per file: its name, a tab between two spaces, and `true`, `false` or
//! `unknown`. Unlike elle-cli, `unknown` has an exit status of its own.

use crate::exit::{Failure, Status};
use crate::{input, limits, out, say};
use clap::ValueEnum;
use isolde::Limits;
use isolde::elle::{
    ANOMALIES, Answer, ElleAnomaly, MODELS, Model, Question, Valid, Workload, answer, elle_name,
    without_unwritten,
};
use isolde_history::{Index, ReadError};
use isolde_report::{Prose, explain, to_json};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Options of `isolde elle`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Histories
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What the histories are: rw-register or list-append
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
    /// Print what was found as JSON instead of one line per file
    #[arg(long, short)]
    verbose: bool,
    /// Print as text or as JSON, the latter like --verbose
    #[arg(long, value_enum)]
    output: Option<OutputKind>,
    /// Write explanations of anomalies to files in this directory
    #[arg(long, short, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Answer false for register reads of values nobody wrote, which elle-cli overlooks
    #[arg(long)]
    complete: bool,
    #[command(flatten)]
    ignored: Ignored,
    #[command(flatten)]
    resources: limits::Resources,
}

/// Options of elle-cli that have nothing to act on here: nothing is plotted, and the
/// models they belong to are not supported. They are taken so that scripts go on working.
#[derive(clap::Args)]
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
    #[arg(long, short = 'g', hide = true)]
    group_size: Option<u64>,
    #[arg(long, short = 'n', hide = true)]
    allow_negative_balances: bool,
    #[arg(long, hide = true)]
    max_transfer: Option<u64>,
    #[arg(long, short = 'o', hide = true)]
    total_amount: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    Edn,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputKind {
    Text,
    Json,
}

/// The models of elle-cli that are not isolation levels.
const UNSUPPORTED: [&str; 9] = [
    "bank",
    "cas-register",
    "comments",
    "counter",
    "long-fork",
    "mutex",
    "sequential",
    "set",
    "set-full",
];

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let workload = workload(&arguments.model)?;
    let question = question(arguments)?;
    arguments.resources.apply_threads();
    let mut worst = Status::Satisfied;
    for file in &arguments.files {
        match one(file, workload, &question, arguments) {
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

fn workload(model: &str) -> Result<Workload, Failure> {
    match model {
        "rw-register" => Ok(Workload::RwRegister),
        "list-append" => Ok(Workload::ListAppend),
        known if UNSUPPORTED.contains(&known) => {
            Err(Failure::Usage(format!("model {known} is not supported yet")))
        }
        other => {
            let message = format!("expected the model rw-register or list-append, found `{other}`");
            Err(Failure::Usage(message))
        }
    }
}

fn question(arguments: &Arguments) -> Result<Question, Failure> {
    let models = split(&arguments.consistency_models).map(|name| {
        Model::parse(name).ok_or_else(|| {
            let names: Vec<&str> = MODELS.iter().map(|model| model.names[0]).collect();
            let names = names.join(", ");
            Failure::Usage(format!("expected a consistency model ({names}), found `{name}`"))
        })
    });
    let anomalies = split(&arguments.anomalies).map(|name| {
        ElleAnomaly::parse(name).ok_or_else(|| {
            let names: Vec<&str> = ANOMALIES.iter().map(|anomaly| anomaly.name).collect();
            Failure::Usage(format!("expected an anomaly ({}), found `{name}`", names.join(", ")))
        })
    });
    Ok(Question {
        models: models.collect::<Result<_, _>>()?,
        anomalies: anomalies.collect::<Result<_, _>>()?,
    })
}

fn split(lists: &[String]) -> impl Iterator<Item = &str> {
    let names = lists.iter().flat_map(|list| list.split(','));
    names.map(str::trim).filter(|name| !name.is_empty())
}

fn one(
    file: &Path,
    workload: Workload,
    question: &Question,
    arguments: &Arguments,
) -> Result<Status, Failure> {
    let format = arguments.format.map(|format| match format {
        InputFormat::Edn => "jepsen-edn".to_owned(),
        InputFormat::Json => "jepsen-json".to_owned(),
    });
    let options = input::Arguments { from: format, initial: None };
    let (history, _) = input::read(file, &options, arguments.resources.memory_max())?;
    let name = file.display().to_string();
    if let Some(op) = workload.misfit(&history) {
        let txn = history.txn_name(history.txn_of(op));
        let model = &arguments.model;
        let message = format!("expected operations of the model {model}, found others in {txn}");
        return Err(ReadError::new(&name, message).hint("is it another model?").into());
    }
    let (history, overlooked) =
        if arguments.complete { (history, 0) } else { without_unwritten(history) };
    let index = Index::new(&history);
    let answer = answer(&history, &index, question, &Limits::NONE);
    let (word, status) = match &answer.valid {
        Valid::True => ("true", Status::Satisfied),
        Valid::False => ("false", Status::Violated),
        Valid::Unknown(reason) => {
            say(&format!("isolde: {name}: {reason}"));
            ("unknown", Status::Unknown)
        }
    };
    if overlooked > 0 {
        say(&format!(
            "isolde: {name}: left out, as by elle-cli: {overlooked} of its reads saw values that \
             nobody wrote; --complete answers false for them"
        ));
    }
    let explained = explanations(&Prose::new(&history, &index, &name), &answer);
    if let Some(directory) = &arguments.directory {
        write_explanations(directory, file, arguments.files.len(), &explained)?;
    }
    if arguments.verbose || arguments.output == Some(OutputKind::Json) {
        out(&(to_json(&as_json(&answer, word, &explained)) + "\n"))?;
    } else {
        out(&format!("{name} \t {word}\n"))?;
    }
    Ok(status)
}

/// Elle's names of the anomalies, each with an explanation of every occurrence.
fn explanations(prose: &Prose<'_>, answer: &Answer) -> BTreeMap<&'static str, Vec<String>> {
    let mut explained: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for anomaly in &answer.anomalies {
        explained.entry(elle_name(anomaly.kind)).or_default().push(explain(prose, anomaly));
    }
    explained
}

/// Like the map that Elle returns.
fn as_json(answer: &Answer, word: &str, explained: &BTreeMap<&'static str, Vec<String>>) -> Value {
    let valid = match &answer.valid {
        Valid::True => json!(true),
        Valid::False => json!(false),
        Valid::Unknown(_) => json!(word),
    };
    let mut map = Map::new();
    map.insert("valid?".into(), valid);
    if let Valid::Unknown(reason) = &answer.valid {
        map.insert("reason".into(), json!(reason));
    }
    map.insert("anomaly-types".into(), json!(explained.keys().collect::<Vec<_>>()));
    map.insert("anomalies".into(), json!(explained));
    map.insert("not".into(), json!(answer.not));
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
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| Failure::Write(path.display().to_string(), error.into()))?;
    }
    Ok(())
}
