//! `isolde-bench watch`: how fast streams are verified, what is kept of them, how much of a real
//! database they leave open, and how soon a violation is told.
//!
//! | file | what it measures |
//! |---|---|
//! | `blind_write.rs`, `frames.rs` | BlindW-RW+ as a trace that never ends |
//! | `speed.rs` | operations a second, and growth |
//! | `shares.rs` | a private PostgreSQL: which dependencies are uncertain, and how fast it is |
//! | `notice.rs` | the time until a violation is told |

mod blind_write;
mod frames;
mod notice;
mod shares;
mod speed;

use crate::workspace::{Folder, built, in_tree, line, written};
use crate::{machine, say};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `isolde-bench watch`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each run of a database lasts, as `isolde watch` understands it
    #[arg(long, value_name = "TIME", default_value = "6s")]
    duration: String,
    /// What is driven
    #[arg(long, value_name = "TARGET", default_value = "postgres")]
    target: String,
    /// Its isolation setting
    #[arg(long, value_name = "NAME", default_value = "serializable")]
    isolation: String,
    /// Divide the size of every trace by this; bars are then not looked at
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    /// Runs of each program on a file; the best counts
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    runs: u32,
    /// Measure this part alone, which may be given several times [default: all]
    #[arg(long, value_name = "PART", value_enum)]
    part: Vec<Part>,
    /// The program to measure [default: the release build of this tree]
    #[arg(long, value_name = "PATH")]
    isolde: Option<PathBuf>,
    /// What else readers of the figures have to know, such as how that program was built
    #[arg(long, value_name = "TEXT", requires = "isolde")]
    note: Option<String>,
    /// The folder for the plots
    #[arg(long, value_name = "DIR", default_value_os_t = in_tree("docs/images"))]
    images: PathBuf,
    /// Where to write the page
    #[arg(long, short, value_name = "FILE", default_value_os_t = in_tree("docs/benchmarks-watch.md"))]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Speed,
    Growth,
    Contention,
    Workloads,
    Notice,
}

type Measure = fn(&Bench<'_>, &mut String) -> Result<(), String>;

/// What is measured, in the order of the page.
const PARTS: [(Part, Measure); 5] = [
    (Part::Speed, speed::speed),
    (Part::Growth, speed::growth),
    (Part::Notice, notice::notice),
    (Part::Contention, shares::by_contention),
    (Part::Workloads, shares::by_workload),
];

struct Bench<'a> {
    arguments: &'a Arguments,
    isolde: PathBuf,
    folder: &'a Path,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let isolde = arguments.isolde.clone().map_or_else(built, Ok)?;
    let folder = Folder::new(None)?;
    let bench = Bench { arguments, isolde, folder: folder.path() };
    let mut text = bench.introduction();
    for (part, measure) in PARTS {
        if arguments.part.is_empty() || arguments.part.contains(&part) {
            measure(&bench, &mut text)?;
        }
    }
    written(&arguments.output, &text)
}

impl Bench<'_> {
    fn introduction(&self) -> String {
        let Arguments { duration, target, isolation, scale, .. } = self.arguments;
        let scaled = if *scale == 1 { String::new() } else { format!(" --scale {scale}") };
        let mut text = String::from("# Benchmarks of watching\n\n");
        let command = format!(
            "isolde-bench watch --duration {duration} --target {target} --isolation {isolation}{scaled}"
        );
        line(&mut text, &format!("Written by `{command}`; do not edit.\n"));
        let (isolde, note) = (self.arguments.isolde.as_deref(), self.arguments.note.as_deref());
        text.push_str(&machine::heading(&machine::load(), isolde, note));
        text
    }

    /// So many millions of transactions, or a part of them.
    fn txns(&self, millions: u64) -> u64 {
        (millions * 1_000_000 / self.arguments.scale).max(1)
    }

    fn events(&self) -> PathBuf {
        self.folder.join("events.jsonl")
    }

    /// Options that say where to write.
    fn events_and_output(&self) -> Vec<String> {
        let (events, found) = (self.events(), self.folder.join("found"));
        let words = ["--events".into(), events.display().to_string(), "--output".into()];
        words.into_iter().chain([found.display().to_string()]).collect()
    }
}

/// Adds a row, and shows it at once.
fn add(text: &mut String, row: &str) {
    say(row);
    line(text, row);
}

/// The last line of the events of a watch, and all of them.
fn last_event(path: &Path) -> Result<(Value, String), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let last = text.lines().last().ok_or("expected events of a watch, found none")?;
    let json = serde_json::from_str(last).map_err(|error| error.to_string())?;
    Ok((json, text))
}
