//! `isolde-bench strategies`: what each strategy is worth, on recorded and on generated histories.
//!
//! Every level that a history can tell something about is decided together, as `isolde check`
//! does, with all strategies and then without one of them. A strategy that decides nothing, and
//! without which nothing takes longer, has no reason to be there.

use crate::workspace::{Folder, built, in_tree, line, written};
use crate::{machine, say};
use isolde::{
    Check, Level, Limits, Options, Stage, Strategies, StrategyName, Verdict, applicable_levels,
};
use isolde_history::{History, Index, format};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Options of `isolde-bench strategies`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Recorded histories of others [default: `../shared/data` beside the tree]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// The program that generates histories [default: the release build of this tree]
    #[arg(long, value_name = "PATH")]
    isolde: Option<PathBuf>,
    /// Seconds after which a history is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
    /// Where to write the page
    #[arg(long, short, value_name = "FILE", default_value_os_t = in_tree("docs/benchmarks-strategies.md"))]
    output: PathBuf,
}

/// Larger files are not read: many histories say more than large ones.
const BYTES_MAX: u64 = 2_000_000;

/// Generated histories: what to tell `isolde gen`.
const GENERATED: [&[&str]; 9] = [
    &["GeneralRW", "10000"],
    &["GeneralRW", "10000", "--times", "transactions"],
    &["GeneralWH", "5000", "--keys", "300"],
    &["BlindW-RW", "5000"],
    &["BlindW-RW", "5000", "--isolation", "causal", "--seed", "2"],
    &["list-append", "10000"],
    &["mini-transactions", "10000", "--times", "transactions"],
    &["TPC-C", "5000"],
    &["C-Twitter", "5000"],
];

/// Some histories that are measured together.
struct Group {
    title: &'static str,
    histories: Vec<History>,
}

/// What came of a group without one strategy.
struct Measured {
    /// By history, the verdicts.
    verdicts: Vec<Vec<(Level, Verdict)>>,
    /// Which strategy decided how many levels.
    decided: BTreeMap<StrategyName, usize>,
    time: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let isolde = arguments.isolde.clone().map_or_else(built, Ok)?;
    let folder = Folder::new(None)?;
    let data = arguments.data.clone().unwrap_or_else(|| in_tree("../shared/data"));
    let groups = [
        Group { title: "corpus", histories: read_all(&in_tree("corpus")) },
        Group { title: "recorded", histories: read_all(&data) },
        Group { title: "generated", histories: generated(&isolde, folder.path())? },
    ];
    let limit = Duration::from_secs(arguments.timeout);
    let usual: Vec<Measured> =
        groups.iter().map(|group| measured(group, Strategies::NONE, limit)).collect();
    let mut text = introduction(&groups, &usual);
    for &(off, name, about) in StrategyName::ALL {
        say(&format!("without {name}"));
        let mut cells = format!("| `{name}` | {about} |");
        for (group, usual) in groups.iter().zip(&usual) {
            let found = measured(group, Strategies::NONE.and(off), limit);
            let [opened, changed] = differences(usual, &found);
            if changed > 0 {
                return Err(format!("without {name}, {changed} verdicts are others"));
            }
            let decided = usual.decided.get(&off).copied().unwrap_or(0);
            let ratio = found.time.as_secs_f64() / usual.time.as_secs_f64();
            let _ = write!(cells, " {decided} | {opened} | {ratio:.2} |");
        }
        line(&mut text, &cells);
    }
    written(&arguments.output, &text)
}

fn introduction(groups: &[Group], usual: &[Measured]) -> String {
    let mut text = String::from("# What strategies are worth\n\n");
    line(
        &mut text,
        "Written by `cargo run --release -p isolde-bench -- strategies`; do not edit.\n",
    );
    line(&mut text, &format!("Machine: {}.\n", machine::describe()));
    line(
        &mut text,
        "All levels of each history are decided together, in one \
         process, with all strategies and then without one. `decides` counts the \
         verdicts that a strategy gave when none was off, `open` the levels that are `unknown` \
         without it and were not before, and `time` compares the wall seconds of the group with \
         those when none is off. No other verdict differs, or there would be no page.\n",
    );
    for (group, usual) in groups.iter().zip(usual) {
        let levels: usize = usual.verdicts.iter().map(Vec::len).sum();
        let (title, histories) = (group.title, group.histories.len());
        let seconds = usual.time.as_secs_f64();
        line(
            &mut text,
            &format!("- {title}: {histories} histories, {levels} levels, {seconds:.2} s"),
        );
    }
    line(
        &mut text,
        "\n| strategy | what it is | corpus: decides | open | time | recorded: decides | open | \
         time | generated: decides | open | time |",
    );
    line(&mut text, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    text
}

fn measured(group: &Group, without: Strategies, limit: Duration) -> Measured {
    let options = Options { without, conflicts_max: Some(20_000), ..Options::default() };
    let mut measured =
        Measured { verdicts: Vec::new(), decided: BTreeMap::new(), time: Duration::ZERO };
    for history in &group.histories {
        let index = Index::new(history);
        let levels = applicable_levels(history);
        let start = Instant::now();
        let decided: Mutex<BTreeMap<Level, StrategyName>> = Mutex::default();
        let limits = Limits {
            stop: &|| start.elapsed() > limit,
            observe: &|stage| {
                if let Stage::Decided { level, by } = stage {
                    decided.lock().expect("nobody panics while holding it").insert(level, by);
                }
            },
            ..Limits::NONE
        };
        let mut check = Check::new(history, &index, &limits).with_options(options);
        let mut levels = levels;
        levels.sort_unstable();
        measured.verdicts.push(check.decide_all(&levels));
        measured.time += start.elapsed();
        drop(check);
        for by in decided.into_inner().expect("nobody panics while holding it").into_values() {
            *measured.decided.entry(by).or_default() += 1;
        }
    }
    measured
}

/// How many levels are open that were not, and how many have another verdict.
fn differences(usual: &Measured, found: &Measured) -> [usize; 2] {
    let both = usual.verdicts.iter().flatten().zip(found.verdicts.iter().flatten());
    let names = both.map(|((_, usual), (_, found))| (usual.name(), found.name()));
    let differing: Vec<_> = names.filter(|(usual, found)| usual != found).collect();
    let opened = differing.iter().filter(|names| names.1 == "unknown").count();
    let changed = differing.iter().filter(|names| names.0 != "unknown" && names.1 != "unknown");
    [opened, changed.count()]
}

/// All histories below a folder that can be read; each format of others has files that are none.
fn read_all(folder: &Path) -> Vec<History> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if fs::metadata(&path).is_ok_and(|it| it.len() <= BYTES_MAX) {
                files.push(path);
            }
        }
    }
    files.sort();
    files.iter().filter_map(|path| read(path).ok()).collect()
}

fn read(path: &Path) -> Result<History, String> {
    let input = format::open(path).map_err(|error| error.to_string())?;
    let history = format::read_detected(input, format::ReadOptions::default());
    Ok(history.map_err(|error| error.to_string())?.0)
}

fn generated(isolde: &Path, folder: &Path) -> Result<Vec<History>, String> {
    let mut histories = Vec::new();
    for (number, options) in GENERATED.iter().enumerate() {
        let path = folder.join(format!("{number}.history"));
        let mut arguments = vec!["gen", "--preset", options[0], "--transactions", options[1]];
        arguments.extend(["--to", "binary"]);
        arguments.extend(&options[2..]);
        let mut program = crate::measure::Program::new(isolde, arguments);
        program.arguments.extend(["--output".into(), path.clone().into()]);
        program.run()?;
        histories.push(read(&path)?);
    }
    Ok(histories)
}
