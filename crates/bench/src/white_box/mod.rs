//! `isolde-bench white-box`: what a database tells about itself, and what it is worth.
//!
//! The ablation of King Cobra's paper [King Cobra, Figures 13 and 14]: three workloads, with and
//! without session order, with all, some and none of the version order. Then bars for histories
//! with reads by condition, checked through a version certificate and by replay.

mod workload;

use crate::machine;
use crate::measure::{Ended, Program, counted};
use crate::plot::{Plot, Scale, Series};
use crate::workspace::{Folder, built, in_tree, line, written};
use std::path::{Path, PathBuf};
use workload::{Evidence, Mix, Workload};

/// Options of `isolde-bench white-box`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Divide the size of every history by this; bars are then not looked at
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,
    /// Runs of each program; the best counts
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    runs: u32,
    /// The most that one check may take, as `isolde check` understands it
    #[arg(long, value_name = "TIME", default_value = "5m")]
    timeout: String,
    /// The program to measure [default: the release build of this tree]
    #[arg(long, value_name = "PATH")]
    isolde: Option<PathBuf>,
    /// Where to put the histories [default: a temporary directory, removed at the end]
    #[arg(long, value_name = "DIRECTORY")]
    histories: Option<PathBuf>,
    /// Where to write the plots
    #[arg(long, value_name = "DIRECTORY", default_value_os_t = in_tree("docs/images"))]
    images: PathBuf,
    /// Where to write the page
    #[arg(long, short, value_name = "FILE", default_value_os_t = in_tree("docs/benchmarks-white-box.md"))]
    output: PathBuf,
}

struct Bench<'a> {
    arguments: &'a Arguments,
    isolde: PathBuf,
    folder: &'a Path,
}

/// Transactions and clients of the ablation.
const TXNS: u32 = 10_000;
const CLIENTS: u32 = 20;
/// Shares of the version order in percent.
const SHARES: [u32; 6] = [0, 25, 50, 75, 90, 100];

/// From a hundredth of a second to a thousand.
const SECONDS: Scale = Scale { least: 0.01, decades: 5 };

/// The workloads of the ablation: percent of reads, writes and read-modify-writes.
const WORKLOADS: [(&str, Mix); 3] = [
    ("read-modify-write", Mix { reads: 25, writes: 25, updates: 50, ..Mix::NONE }),
    ("read/write", Mix { reads: 50, writes: 50, ..Mix::NONE }),
    ("heavy write", Mix { reads: 10, writes: 80, updates: 10, ..Mix::NONE }),
];

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let isolde = arguments.isolde.clone().map_or_else(built, Ok)?;
    let folder = Folder::new(arguments.histories.as_deref())?;
    let bench = Bench { arguments, isolde, folder: folder.path() };
    let mut text = bench.introduction();
    bench.ablation(&mut text)?;
    bench.shares(&mut text)?;
    bench.bars(&mut text)?;
    written(&arguments.output, &format!("{}\n", text.trim_end()))
}

/// A row of the bars: history, evidence, transactions, keys, operations, what is told, CPU
/// seconds.
type Row = (&'static str, &'static str, u32, u32, Mix, Evidence, Option<f64>);

impl Bench<'_> {
    fn introduction(&self) -> String {
        let (machine, load) = (machine::describe(), machine::load());
        let (runs, scale) = (counted(self.arguments.runs), self.arguments.scale);
        let scaled = if scale == 1 { String::new() } else { format!(" --scale {scale}") };
        let mut text = String::from("# Benchmarks of white-box evidence\n\n");
        let command = format!("cargo run --release -p isolde-bench -- white-box{scaled}");
        line(&mut text, &format!("Written by `{command}`; do not edit.\n"));
        line(&mut text, &format!("Machine: {machine}; load before the first run: {load}."));
        line(
            &mut text,
            &format!(
                "The least of {runs}, each figure for itself, as processes, reading the file \
                 included; CPU seconds are of all threads together. Figures of Emme, Enne and King \
                 Cobra are those of their paper, on its machines.\n"
            ),
        );
        text
    }

    fn checked(&self, workload: &Workload, level: &str) -> Result<Ended, String> {
        let file = workload.written(self.folder, self.arguments.scale)?;
        crate::say(&format!("checking {level} of {}", file.display()));
        let mut program = Program::new(&self.isolde, ["check", "--quiet", "--timeout"]);
        program.arguments.push(self.arguments.timeout.as_str().into());
        program.arguments.extend(["--level".into(), level.into(), file.into()]);
        program.best_ending_in(0, self.arguments.runs)
    }

    /// Session order with and without version order.
    fn ablation(&self, text: &mut String) -> Result<(), String> {
        line(text, "## Session order and version order\n");
        line(
            text,
            "[King Cobra, Figure 13]: ten thousand transactions of twenty clients. Without session \
             order, every transaction is a session of its own and the level is `serializable`; with it, \
             `session-serializable`. CPU seconds; nobody may need five minutes.\n",
        );
        line(text, "![Session order and version order](images/white-box-orders.svg)\n");
        line(text, "| workload | neither | version order | session order | both |");
        line(text, "|---|---:|---:|---:|---:|");
        let cases = [(false, 0), (false, 100), (true, 0), (true, 100)];
        let mut plot = Plot::new(
            "CPU seconds",
            SECONDS,
            &["neither", "version order", "session order", "both"],
        );
        for (name, mix) in WORKLOADS {
            let mut figures = Vec::new();
            for (sessions, share) in cases {
                let evidence = Evidence { sessions, share, ..Evidence::NONE };
                figures.push(self.figure(name, mix, evidence)?);
            }
            line(text, &format!("| {name} | {} |", shown(&figures)));
            plot.series.push(Series { name, figures: figures.iter().map(|it| it.0).collect() });
        }
        line(text, "");
        written(&self.arguments.images.join("white-box-orders.svg"), &plot.svg())
    }

    /// Parts of the version order.
    fn shares(&self, text: &mut String) -> Result<(), String> {
        line(text, "## Parts of the version order\n");
        line(
            text,
            "[King Cobra, Figure 14]: the same without session order, with some of the versions \
             left out of the order that the database told.\n",
        );
        line(text, "![Parts of the version order](images/white-box-shares.svg)\n");
        let titles: Vec<String> = SHARES.iter().map(|share| format!("{share} %")).collect();
        line(text, &format!("| workload | {} |", titles.join(" | ")));
        line(text, &format!("|---|{}", "---:|".repeat(SHARES.len())));
        let names: Vec<&str> = titles.iter().map(String::as_str).collect();
        let mut plot = Plot::new("CPU seconds", SECONDS, &names);
        for (name, mix) in WORKLOADS {
            let mut figures = Vec::new();
            for share in SHARES {
                figures.push(self.figure(name, mix, Evidence { share, ..Evidence::NONE })?);
            }
            line(text, &format!("| {name} | {} |", shown(&figures)));
            plot.series.push(Series { name, figures: figures.iter().map(|it| it.0).collect() });
        }
        line(text, "");
        written(&self.arguments.images.join("white-box-shares.svg"), &plot.svg())
    }

    /// CPU seconds, and whether it ended as it should.
    fn figure(&self, name: &str, mix: Mix, evidence: Evidence) -> Result<(f64, bool), String> {
        let workload = Workload {
            name,
            txns: TXNS,
            clients: CLIENTS,
            operations: 8,
            keys: 1_000,
            mix,
            evidence,
        };
        let level = if evidence.sessions { "session-serializable" } else { "serializable" };
        let ended = self.checked(&workload, level)?;
        Ok((ended.usage.cpu, ended.status == Some(0)))
    }

    fn bars(&self, text: &mut String) -> Result<(), String> {
        line(text, "## Certificates and replay\n");
        line(
            text,
            "Transactions of five operations. Items: 30 % updates, 40 % reads, 20 % increments, 10 % \
             inserts of a thousand keys. Predicates: a hundred keys, 10 % inserts, the rest reads and \
             updates in equal parts, of which the share named is by condition: ranges of values, least and \
             largest values. Both with the order of all versions and every transaction's snapshot, and \
             by replay with the serialization order.\n",
        );
        line(text, "| history | evidence | transactions | CPU s | bar | met |");
        line(text, "|---|---|---:|---:|---:|---|");
        let items = Mix { reads: 40, writes: 30, updates: 20, inserts: 10, ..Mix::NONE };
        let by_condition = |share| Mix::by_condition(share);
        let (told, serial) = (Evidence::CERTIFICATE, Evidence::SERIAL);
        let rows: [Row; 8] = [
            ("items", "certificate", 100_000, 1_000, items, told, Some(4.9)),
            ("items", "serialization order", 100_000, 1_000, items, serial, Some(1.7)),
            ("40 % by condition", "certificate", 2_500, 100, by_condition(40), told, Some(0.76)),
            ("40 % by condition", "certificate", 25_000, 100, by_condition(40), told, None),
            ("40 % by condition", "certificate", 50_000, 100, by_condition(40), told, None),
            ("40 % by condition", "certificate", 100_000, 100, by_condition(40), told, Some(30.0)),
            (
                "40 % by condition",
                "serialization order",
                50_000,
                100,
                by_condition(40),
                serial,
                None,
            ),
            (
                "40 % by condition",
                "serialization order",
                100_000,
                100,
                by_condition(40),
                serial,
                Some(5.0),
            ),
        ];
        for (name, evidence_name, txns, keys, mix, evidence, bar) in rows {
            let workload =
                Workload { name, txns, clients: CLIENTS, operations: 5, keys, mix, evidence };
            let ended = self.checked(&workload, "serializable")?;
            let met = match bar {
                _ if ended.status != Some(0) => "not satisfied",
                Some(bar) if self.arguments.scale == 1 => {
                    if ended.usage.cpu <= bar {
                        "yes"
                    } else {
                        "no"
                    }
                }
                _ => "",
            };
            let bar = bar.map_or(String::new(), |bar| bar.to_string());
            let txns = txns / self.arguments.scale;
            let cpu = ended.usage.cpu;
            line(
                text,
                &format!("| {name} | {evidence_name} | {txns} | {cpu:.2} | {bar} | {met} |"),
            );
        }
        Ok(())
    }
}

fn shown(figures: &[(f64, bool)]) -> String {
    let cells: Vec<String> = figures
        .iter()
        .map(
            |(cpu, ended)| {
                if *ended { format!("{cpu:.2}") } else { format!("{cpu:.2} (not decided)") }
            },
        )
        .collect();
    cells.join(" | ")
}
