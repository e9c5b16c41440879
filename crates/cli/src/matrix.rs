//! `isolde matrix`: which anomalies each isolation setting of a database prevents.
//!
//! Every template is run step by step at every setting, recorded, and judged by the
//! checker: the anomaly is possible if the history violates a level that forbids it.

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::run::prefix;
use crate::{address, check, limits, out, say, suggestion};
use clap::ValueEnum;
use isolde::{Level, Limits, Verdict};
use isolde_drivers::{DEFAULT_TARGET, TemporaryFolder};
use isolde_harness::matrix::{
    self, Happened, Pace, Servers, StepOutcome, TEMPLATES, Template, Trial,
};
use isolde_harness::{Claim, Database, Found, Log, Needs, Style, clean_up_after, remains};
use isolde_history::Index;
use isolde_history::format::{self, ReadOptions};
use serde::Serialize;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Options of `isolde matrix`.
#[derive(clap::Args)]
#[command(after_help = templates())]
pub(crate) struct Arguments {
    /// The database: a name or a URL, as for `isolde run` [default: sqlite]
    target: Option<String>,
    /// Only this isolation setting; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    isolation: Vec<String>,
    /// Only this anomaly; may be given several times [default: all]
    #[arg(long, value_name = "NAME", value_parser = parse_template)]
    only: Vec<&'static Template>,
    /// Each session on a server of its own, as far as the database has several; who only reads
    /// is on one that takes no writes [default: all on the first that takes writes]
    #[arg(long)]
    spread: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value = "text")]
    format: MatrixFormat,
    /// Keep the histories in this folder, which must not exist [default: they are not kept]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MatrixFormat {
    Text,
    Json,
    Markdown,
}

fn templates() -> String {
    let width = TEMPLATES.iter().map(|template| template.name.len()).max().unwrap_or(0);
    let mut text = String::from("Anomalies:\n");
    for template in TEMPLATES {
        writeln!(text, "  {:width$}  {}", template.name, template.title).expect("a string grows");
    }
    text
}

fn parse_template(name: &str) -> Result<&'static Template, String> {
    let found = TEMPLATES.iter().find(|template| template.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        suggestion::expected("a script", name, &names)
    })
}

fn usage(message: &str) -> Failure {
    Failure::Usage(format!("matrix: {message}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let target = arguments.target.as_deref().unwrap_or(DEFAULT_TARGET);
    let address = address::of(target).map_err(|message| usage(&message))?;
    limits::start_threads(None)?;
    let interruption = Interruption::of("matrix")?;
    let mut database = interruption.opened(&address)?;
    let claims = claims(database.as_ref(), &arguments.isolation)?;
    if database.style() == Style::Whole {
        return Err(usage(&format!(
            "expected a database that takes transactions request by request, found {address}"
        )));
    }
    let templates: Vec<&Template> =
        if arguments.only.is_empty() { TEMPLATES.iter().collect() } else { arguments.only.clone() };
    let servers = servers(database.as_ref(), arguments.spread)?;
    let folder = Folder::create(arguments.output.as_deref())?;
    let mut requests: Vec<_> = templates.iter().flat_map(|template| template.requests()).collect();
    requests.retain(|&kind| database.supports(kind));
    requests.sort_unstable();
    requests.dedup();
    let prepared = database.prepare(&Needs { prefix: prefix(), requests });
    interruption.leaves(remains(database.as_ref()));
    let filled = prepared.map_err(|failure| usage(&failure.to_string())).and_then(|()| {
        let filling = Filling {
            database: database.as_ref(),
            templates: &templates,
            servers,
            folder: folder.path(),
            interruption: &interruption,
        };
        filling.rows(&claims)
    });
    let ended_by = filled.as_ref().err().map(ToString::to_string);
    let ended_by = clean_up_after(database.as_mut(), ended_by);
    interruption.leaves([]);
    let isolations = match (filled, &ended_by) {
        (Err(_), Some(message)) => return Err(Failure::Usage(message.clone())),
        (filled, _) => filled?,
    };
    let matrix = Matrix {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        database: database.name().to_owned(),
        database_version: database.version(),
        target: address.to_string(),
        isolations,
    };
    out(&match arguments.format {
        MatrixFormat::Text => matrix.to_text(),
        MatrixFormat::Markdown => matrix.to_markdown(),
        MatrixFormat::Json => isolde_report::to_json(&matrix) + "\n",
    })?;
    let (tried, all) = matrix.tried();
    if interruption.is_wanted() && tried < all {
        say(&format!(
            "isolde: matrix: interrupted by a signal, after {tried} of {all} anomalies: what was \
             not tried by then is not decided"
        ));
    }
    match (matrix.status(), ended_by) {
        (Status::Violated, Some(message)) => {
            say(&format!("isolde: matrix: {message}"));
            Ok(Status::Violated)
        }
        (_, Some(message)) => Err(usage(&message)),
        (status, None) => Ok(status),
    }
}

/// Where the sessions are.
fn servers(database: &dyn Database, is_spread: bool) -> Result<Servers, Failure> {
    match database.endpoints() {
        _ if !is_spread => Ok(Servers::First),
        [_, _, ..] => Ok(Servers::Spread),
        _ => Err(usage(
            "expected a database with several servers for --spread, found one (try galera, \
             postgres+standby, or an address with several hosts)",
        )),
    }
}

/// The claims of these settings, or all.
fn claims(database: &dyn Database, wanted: &[String]) -> Result<Vec<Claim>, Failure> {
    if wanted.is_empty() {
        return Ok(database.claims().to_vec());
    }
    let claim = |name: &String| crate::run::claim(database, Some(name));
    wanted.iter().map(|name| claim(name).map_err(|message| usage(&message))).collect()
}

/// Where the histories lie.
enum Folder {
    Named(PathBuf),
    Temporary(TemporaryFolder),
}

impl Folder {
    fn create(wanted: Option<&Path>) -> Result<Folder, Failure> {
        let Some(path) = wanted else {
            let folder = TemporaryFolder::new("matrix");
            return folder.map(Folder::Temporary).map_err(|error| usage(&error.to_string()));
        };
        std::fs::create_dir(path).map_err(|error| {
            usage(&format!("cannot create the folder {}: {error}", path.display()))
        })?;
        Ok(Folder::Named(path.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Named(path) => path,
            Folder::Temporary(folder) => folder.path(),
        }
    }
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Matrix {
    schema: u32,
    version: &'static str,
    database: String,
    database_version: String,
    target: String,
    isolations: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    isolation: String,
    promises: Vec<String>,
    anomalies: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    name: &'static str,
    title: &'static str,
    forbidden_by: &'static str,
    result: CellResult,
    /// Whether what the setting promises forbids the anomaly, which is possible.
    broken_promise: bool,
    /// Why that is no surprise.
    #[serde(skip_serializing_if = "Option::is_none")]
    documented: Option<String>,
    /// Whether a step had to wait.
    blocked: bool,
    /// Reasons why transactions were aborted, by others than their clients.
    aborted: Vec<String>,
    /// Whether one of them is that a wait took too long.
    #[serde(skip)]
    is_timeout: bool,
    /// Anomalies that the checker found.
    found: Vec<&'static str>,
    steps: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CellResult {
    Prevented,
    Possible,
    Unknown,
    NotApplicable,
}

/// What the cells are filled with.
struct Filling<'a> {
    database: &'a dyn Database,
    templates: &'a [&'static Template],
    servers: Servers,
    folder: &'a Path,
    interruption: &'a Interruption,
}

impl Filling<'_> {
    fn rows(&self, claims: &[Claim]) -> Result<Vec<Row>, Failure> {
        let mut first_key = 0;
        let mut rows = Vec::new();
        for claim in claims {
            let mut anomalies = Vec::new();
            for template in self.templates {
                let path = self.history(claim, template);
                let attempt = |pace| {
                    let key = first_key;
                    first_key += Template::KEYS;
                    self.attempt(claim, template, key, (pace, &path))
                };
                anomalies.push(settled(attempt)?);
            }
            let Claim { isolation, promises, .. } = claim.clone();
            rows.push(Row { isolation, promises, anomalies });
        }
        Ok(rows)
    }

    /// Where the history of an anomaly will lie: what is asked for twice has two.
    fn history(&self, claim: &Claim, template: &Template) -> PathBuf {
        let name = format!("{}-{}", claim.isolation, template.name);
        let mut path = self.folder.join(format!("{name}.log"));
        for number in 2.. {
            if !path.exists() {
                break;
            }
            path = self.folder.join(format!("{name}-{number}.log"));
        }
        path
    }

    /// Tries an anomaly on keys that nobody has used yet.
    fn attempt(
        &self,
        claim: &Claim,
        template: &'static Template,
        first_key: u64,
        (pace, path): (Pace, &Path),
    ) -> Result<Cell, Failure> {
        let mut cell = Cell::new(template);
        if !template.requests().iter().all(|&kind| self.database.supports(kind)) {
            return Ok(cell);
        }
        if self.interruption.is_wanted() {
            cell.result = CellResult::Unknown;
            return Ok(cell);
        }
        if pace == Pace::Brisk {
            // The history of the attempt before. What cannot be removed cannot be created.
            let _ = std::fs::remove_file(path);
        }
        let log = Log::create(path)
            .map_err(|error| Failure::Write(path.display().to_string(), error.into()))?;
        let trial = Trial { first_key, servers: self.servers, pace };
        let outcomes = matrix::run(self.database, claim, template, trial, &log)
            .map_err(|error| usage(&format!("{}: {error}", template.name)))?;
        cell.describe(&outcomes);
        cell.is_timeout = cell.aborted.iter().any(|reason| self.database.is_timeout(reason));
        let level = check::parse_level(template.forbidden_by).map_err(|error| usage(&error))?;
        cell.judge(path, level)?;
        if cell.result == CellResult::Possible {
            cell.compare(claim, level);
        }
        Ok(cell)
    }
}

/// Tries again where a wait that took too long kept the anomaly from happening: no script
/// means that, but a busy machine is slow to make the step that is waited for. If it stays so,
/// nothing is known.
fn settled(mut attempt: impl FnMut(Pace) -> Result<Cell, Failure>) -> Result<Cell, Failure> {
    const TRIES: usize = 5;
    let is_open = |cell: &Cell| cell.is_timeout && cell.result == CellResult::Prevented;
    let mut cell = attempt(Pace::Patient)?;
    for _ in 1..TRIES {
        if !is_open(&cell) {
            break;
        }
        cell = attempt(Pace::Brisk)?;
    }
    if is_open(&cell) {
        cell.result = CellResult::Unknown;
    }
    Ok(cell)
}

impl Cell {
    /// One that was not tried.
    fn new(template: &Template) -> Cell {
        Cell {
            name: template.name,
            title: template.title,
            forbidden_by: template.forbidden_by,
            result: CellResult::NotApplicable,
            broken_promise: false,
            documented: None,
            blocked: false,
            aborted: Vec::new(),
            is_timeout: false,
            found: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Compares an anomaly that is possible with what was promised. It is documented if
    /// every promise that forbids it is known to be broken.
    fn compare(&mut self, claim: &Claim, forbidden_by: Level) {
        let forbids = |name: &&String| {
            let promise = Level::parse(name);
            promise.is_some_and(|it| it == forbidden_by || it.weaker_than().contains(&forbidden_by))
        };
        let promises: Vec<&String> = claim.promises.iter().filter(forbids).collect();
        self.broken_promise = !promises.is_empty();
        let documented = promises.iter().map(|&promise| {
            let found = Found { names: &self.found, has_refused_inserts: false };
            let deviation = claim.deviation(promise, found);
            deviation.map(|deviation| deviation.text.clone())
        });
        let documented: Option<Vec<String>> = documented.collect();
        self.documented =
            documented.filter(|texts| !texts.is_empty()).map(|texts| texts.join("; "));
    }

    /// Whether the database broke a promise, and nobody had said that it would.
    fn is_surprise(&self) -> bool {
        self.broken_promise && self.documented.is_none()
    }

    fn describe(&mut self, outcomes: &[StepOutcome]) {
        for outcome in outcomes {
            self.blocked |= outcome.blocked;
            let end = match &outcome.happened {
                Happened::Done => String::new(),
                Happened::Answered(answer) => match answer.to_string() {
                    nothing if nothing.is_empty() => nothing,
                    answer => format!(": {answer}"),
                },
                Happened::Failed(failure) => {
                    self.aborted.push(failure.reason().to_owned());
                    format!(": {failure}")
                }
                Happened::LeftOut => ": left out".to_owned(),
            };
            let waited = if outcome.blocked { " (blocked)" } else { "" };
            self.steps.push(format!("{} {}{waited}{end}", outcome.session, outcome.step));
        }
    }

    /// Checks the history against the level that forbids the anomaly.
    fn judge(&mut self, path: &Path, level: Level) -> Result<(), Failure> {
        let options = ReadOptions::default();
        let (history, _) = format::read_detected(format::open(path)?, options)?;
        let index = Index::new(&history);
        let verdicts = isolde::check(&history, &index, &[level], &Limits::NONE);
        self.result = match verdicts.into_iter().next() {
            Some((_, Verdict::Satisfied(_))) => CellResult::Prevented,
            Some((_, Verdict::Violated(violated))) => {
                self.found = violated.anomalies.iter().map(|it| it.kind.name()).collect();
                CellResult::Possible
            }
            _ => CellResult::Unknown,
        };
        Ok(())
    }

    fn shown(&self) -> String {
        let sign = match self.result {
            CellResult::Prevented => "✓",
            CellResult::Possible => "—",
            CellResult::Unknown => "?",
            CellResult::NotApplicable => "·",
        };
        let mut text = sign.to_owned();
        if self.blocked {
            text.push('w');
        }
        if !self.aborted.is_empty() {
            text.push('a');
        }
        if self.is_surprise() {
            text.push('!');
        } else if self.broken_promise {
            text.push('d');
        }
        text
    }
}

const LEGEND: &str = "✓ prevented, — possible, ? not decided, · cannot be tried; \
                      w a step had to wait, a a transaction was aborted, ! promised otherwise, d the same, \
                      but documented";

/// A wider table is folded.
const COLUMNS: usize = 80;

fn column_width(head: &str) -> usize {
    head.len().max(3)
}

/// The columns of each part of a table, which fit beside the first one.
fn folded(first: usize, head: &[String]) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut width = usize::MAX;
    for (place, head) in head.iter().enumerate() {
        let wide = 2 + column_width(head);
        match parts.last_mut() {
            Some(part) if width + wide <= COLUMNS => {
                part.end = place + 1;
                width += wide;
            }
            _ => {
                parts.push(place..place + 1);
                width = first + wide;
            }
        }
    }
    parts
}

impl Matrix {
    fn status(&self) -> Status {
        let cells = || self.isolations.iter().flat_map(|row| &row.anomalies);
        if cells().any(Cell::is_surprise) {
            Status::Violated
        } else if cells().any(|cell| cell.result == CellResult::Unknown) {
            Status::Unknown
        } else {
            Status::Satisfied
        }
    }

    /// How many anomalies were tried, which shows in their steps, and how many can be.
    fn tried(&self) -> (usize, usize) {
        let cells = self.isolations.iter().flat_map(|row| &row.anomalies);
        let possible = cells.filter(|cell| cell.result != CellResult::NotApplicable);
        possible.fold((0, 0), |(tried, all), cell| {
            (tried + usize::from(!cell.steps.is_empty()), all + 1)
        })
    }

    fn head(&self) -> Vec<&'static str> {
        let first = self.isolations.first();
        first.map(|row| row.anomalies.iter().map(|cell| cell.name).collect()).unwrap_or_default()
    }

    fn to_text(&self) -> String {
        let mut text = format!("{} {}\n", self.database, self.database_version);
        let first = self.isolations.iter().map(|row| row.isolation.len()).max().unwrap_or(0);
        let head: Vec<String> = self.head().into_iter().map(str::to_owned).collect();
        for columns in folded(first, &head) {
            text.push('\n');
            let mut line = |name: &str, cells: &[String]| {
                let mut line = format!("{name:first$}");
                for (cell, head) in cells[columns.clone()].iter().zip(&head[columns.clone()]) {
                    write!(line, "  {cell:width$}", width = column_width(head))
                        .expect("a string grows");
                }
                text.push_str(line.trim_end());
                text.push('\n');
            };
            line("", &head);
            for row in &self.isolations {
                let cells: Vec<String> = row.anomalies.iter().map(Cell::shown).collect();
                line(&row.isolation, &cells);
            }
        }
        write!(text, "\n{LEGEND}\n").expect("a string grows");
        self.add_documented(&mut text);
        text
    }

    /// What is documented, once for each setting.
    fn add_documented(&self, text: &mut String) {
        for row in &self.isolations {
            let mut said: Vec<&String> =
                row.anomalies.iter().filter_map(|cell| cell.documented.as_ref()).collect();
            said.dedup();
            for documented in said {
                write!(text, "\n{}, documented: {documented}\n", row.isolation)
                    .expect("a string grows");
            }
        }
    }

    fn to_markdown(&self) -> String {
        let head = self.head();
        let mut text = format!("| {} {} |", self.database, self.database_version);
        for name in &head {
            write!(text, " {name} |").expect("a string grows");
        }
        text.push_str("\n|---|");
        text.push_str(&":-:|".repeat(head.len()));
        text.push('\n');
        for row in &self.isolations {
            write!(text, "| {} |", row.isolation).expect("a string grows");
            for cell in &row.anomalies {
                write!(text, " {} |", cell.shown()).expect("a string grows");
            }
            text.push('\n');
        }
        write!(text, "\n{LEGEND}\n").expect("a string grows");
        self.add_documented(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_is_folded_where_the_next_column_does_not_fit() {
        let head: Vec<String> = [10, 20, 30, 40, 90].map(|width| "x".repeat(width)).into();
        let parts = |first, head: &[String]| format!("{:?}", folded(first, head));
        assert_eq!(parts(20, &head), "[0..2, 2..3, 3..4, 4..5]");
        assert_eq!(parts(12, &head[..3]), "[0..3]");
        assert_eq!(parts(15, &head[..3]), "[0..2, 2..3]");
        assert_eq!(parts(12, &[]), "[]");
    }

    #[test]
    fn a_wait_that_took_too_long_prevents_nothing() {
        // How many attempts end in a timeout before one does not, and what comes of them.
        for (timeouts, attempts, result) in [(0, 1, "✓"), (1, 2, "✓"), (4, 5, "✓"), (9, 5, "?")]
        {
            let mut made = Vec::new();
            let cell = settled(|pace| {
                made.push(pace);
                let is_timeout = made.len() <= timeouts;
                Ok(Cell { result: CellResult::Prevented, is_timeout, ..Cell::new(&TEMPLATES[0]) })
            });
            assert_eq!(cell.expect("no failure").shown(), result);
            assert_eq!(made.len(), attempts);
            assert!(made.iter().skip(1).all(|&pace| pace == Pace::Brisk));
        }
        // What happened all the same is possible.
        let cell = settled(|_| {
            let result = CellResult::Possible;
            Ok(Cell { result, is_timeout: true, ..Cell::new(&TEMPLATES[0]) })
        });
        assert_eq!(cell.expect("no failure").shown(), "—");
    }
}
