//! `isolde-bench watch`: which dependencies the clients' intervals leave open, and who decides them.
//!
//! Leopard measures the share of dependencies whose operations overlap on YCSB-A, by skew,
//! threads and share of reads [Li et al., *Leopard*, ICDE 2024, Figure 3], and which of them its
//! mechanisms decide [Figure 12]. Here the same is measured on a private PostgreSQL, which is
//! driven and watched by `isolde watch`.

use crate::machine;
use crate::measure::Program;
use crate::workspace::{Folder, built, in_tree, line, written};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `isolde-bench watch`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each run lasts, as `isolde watch` understands it
    #[arg(long, value_name = "TIME", default_value = "6s")]
    duration: String,
    /// What is driven
    #[arg(long, value_name = "TARGET", default_value = "postgres")]
    target: String,
    /// Its isolation setting
    #[arg(long, value_name = "NAME", default_value = "serializable")]
    isolation: String,
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

/// One series of runs: what differs between them.
struct Series {
    title: &'static str,
    file: &'static str,
    option: &'static str,
    values: &'static [&'static str],
    others: &'static [&'static str],
}

/// The axes of Figure 3. Its table has a million records; transactions are of ten operations,
/// because in transactions of one operation nobody waits for anybody.
const SERIES: [Series; 3] = [
    Series {
        title: "skew",
        file: "watch-skew.svg",
        option: "--distribution",
        values: &["zipf:0.1", "zipf:0.5", "zipf:0.7", "zipf:0.9", "zipf:0.99"],
        others: &["--sessions", "16"],
    },
    Series {
        title: "sessions",
        file: "watch-sessions.svg",
        option: "--sessions",
        values: &["4", "8", "16", "32", "64"],
        others: &["--distribution", "zipf:0.9"],
    },
    Series {
        title: "share of reads",
        file: "watch-reads.svg",
        option: "--read-share",
        values: &["0.1", "0.3", "0.5", "0.7", "0.9"],
        others: &["--sessions", "16", "--distribution", "zipf:0.9"],
    },
];

/// The workloads of Figure 12.
const WORKLOADS: [(&str, &[&str]); 4] = [
    ("TPC-C", &["--preset", "TPC-C"]),
    ("SmallBank", &["--preset", "SmallBank"]),
    ("BlindW-W", &["--preset", "BlindW-RW", "--read-share", "0"]),
    ("BlindW-RW", &["--preset", "BlindW-RW"]),
];

const YCSB: [&str; 6] = ["--preset", "YCSB-A", "--keys", "1000000", "--operations", "10"];

/// What one run showed.
struct Measured {
    title: String,
    violations: u64,
    operations: f64,
    seconds: f64,
    dependencies: f64,
    certain: f64,
    deduced: f64,
    lag: f64,
    memory: f64,
}

impl Measured {
    /// The share whose intervals overlap.
    fn open(&self) -> f64 {
        (self.dependencies - self.certain) / self.dependencies.max(1.0)
    }

    /// The share that nothing decides.
    fn uncertain(&self) -> f64 {
        (self.dependencies - self.certain - self.deduced) / self.dependencies.max(1.0)
    }

    fn cells(&self) -> String {
        format!(
            "{:.0} | {:.0} | {:.3} % | {:.3} % | {:.1} % | {:.0} | {:.0}",
            self.operations / self.seconds.max(0.001),
            self.dependencies,
            self.open() * 100.0,
            self.uncertain() * 100.0,
            100.0 * self.deduced / (self.dependencies - self.certain).max(1.0),
            self.lag * 1e3,
            self.memory
        )
    }
}

const HEAD: &str = "operations/s | dependencies | intervals overlap | uncertain | decided of those that overlap | behind, ms | memory, MiB |\n";

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let isolde = arguments.isolde.clone().map_or_else(built, Ok)?;
    let folder = Folder::new(None)?;
    let load = machine::load();
    let mut text = String::new();
    let mut title = String::new();
    for series in &SERIES {
        line(&mut text, &format!("\n## By {}\n", series.title));
        write!(text, "| {} | {HEAD}", series.title).expect("a string grows");
        line(&mut text, "|---|---:|---:|---:|---:|---:|---:|---:|");
        let mut points = Vec::new();
        for value in series.values {
            let mut options = YCSB.to_vec();
            options.extend_from_slice(series.others);
            options.extend_from_slice(&[series.option, value]);
            let measured = measure(arguments, &isolde, &options, folder.path())?;
            line(&mut text, &format!("| {value} | {} |", measured.cells()));
            title.clone_from(&measured.title);
            let label = value.trim_start_matches("zipf:").to_owned();
            points.push((label, measured.open() * 100.0, measured.uncertain() * 100.0));
        }
        let picture = plot(series.title, &points);
        written(&arguments.images.join(series.file), &picture)?;
        line(&mut text, &format!("\n![By {}](images/{})", series.title, series.file));
    }
    line(&mut text, "\n## By workload\n");
    write!(text, "| workload | {HEAD}").expect("a string grows");
    line(&mut text, "|---|---:|---:|---:|---:|---:|---:|---:|");
    for (name, options) in WORKLOADS {
        let measured = measure(arguments, &isolde, options, folder.path())?;
        line(&mut text, &format!("| {name} | {} |", measured.cells()));
    }
    let text = format!("{}{text}", introduction(arguments, &title, &load));
    written(&arguments.output, &text)
}

fn introduction(arguments: &Arguments, title: &str, load: &str) -> String {
    let Arguments { duration, target, isolation, .. } = arguments;
    let mut text = String::from("# Benchmarks of watching\n\n");
    line(
        &mut text,
        &format!(
            "Written by `isolde-bench watch --duration {duration} --target {target} --isolation \
             {isolation}`; do not edit.\n"
        ),
    );
    let (isolde, note) = (arguments.isolde.as_deref(), arguments.note.as_deref());
    line(&mut text, &machine::heading(load, isolde, note));
    line(
        &mut text,
        &format!(
            "Each row is one run of {duration} on a private {title}, driven and verified by \
             `isolde watch`; clients, server and verifier share the machine. Dependencies are those \
             between transactions that read or wrote the same row. Where the intervals of the two \
             operations overlap, their times alone do not say which came first; contents, locks and \
             refused writers decide most of these, and what is left is uncertain. YCSB-A has a \
             million keys, ten operations a transaction, half of them reads, unless the row says \
             otherwise. No run had a violation."
        ),
    );
    text
}

fn measure(
    arguments: &Arguments,
    isolde: &Path,
    options: &[&str],
    folder: &Path,
) -> Result<Measured, String> {
    let events = folder.join("events.jsonl");
    let mut words: Vec<String> = ["watch", &arguments.target, "--isolation", &arguments.isolation]
        .iter()
        .chain(options)
        .map(ToString::to_string)
        .collect();
    words.extend(["--duration".to_owned(), arguments.duration.clone(), "--quiet".to_owned()]);
    words.extend(["--events".to_owned(), events.display().to_string()]);
    words.extend(["--output".to_owned(), folder.join("found").display().to_string()]);
    let ended = Program::new(isolde, words).best_ending_in(0, 1)?;
    let text = fs::read_to_string(&events).map_err(|error| error.to_string())?;
    let last = text.lines().last().ok_or("expected events of a watch, found none")?;
    let json: Value = serde_json::from_str(last).map_err(|error| error.to_string())?;
    let measured = measured(&json, &text);
    if ended.status != Some(0) {
        return Err(format!(
            "expected a clean watch, found status {:?} and {} violations with {options:?}",
            ended.status, measured.violations
        ));
    }
    Ok(measured)
}

/// The last event, and the largest lag and memory of all.
fn measured(json: &Value, events: &str) -> Measured {
    let sum = |names: &[&str]| -> f64 {
        let kinds = json["dependencies"].as_object().into_iter().flatten();
        kinds.flat_map(|(_, kind)| names.iter().filter_map(|name| kind[*name].as_f64())).sum()
    };
    let most = |name: &str| {
        let all = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.filter_map(|event| event[name].as_f64()).fold(0.0, f64::max)
    };
    let deduced = ["by_content", "by_locks", "by_first_updater"];
    let (certain, deduced) = (sum(&["certain"]), sum(&deduced));
    let violations = json["violations"].as_object().into_iter().flatten();
    Measured {
        title: json["title"].as_str().unwrap_or_default().to_owned(),
        violations: violations.filter_map(|(_, count)| count.as_u64()).sum(),
        operations: json["operations"].as_f64().unwrap_or(0.0),
        seconds: json["seconds"].as_f64().unwrap_or(0.0),
        dependencies: certain + deduced + sum(&["uncertain"]),
        certain,
        deduced,
        lag: most("lag_seconds"),
        memory: most("memory_bytes") / f64::from(1 << 20),
    }
}

/// Two lines over a few points, in percent.
#[expect(clippy::cast_precision_loss, reason = "a handful of points")]
fn plot(title: &str, points: &[(String, f64, f64)]) -> String {
    const SIZE: (f64, f64) = (480.0, 240.0);
    const LEFT: f64 = 56.0;
    const BOTTOM: f64 = 40.0;
    let most = points.iter().map(|point| point.1).fold(0.001, f64::max) * 1.1;
    let step = (SIZE.0 - LEFT - 20.0) / (points.len().max(2) - 1) as f64;
    let place = |index: usize, value: f64| {
        let height = SIZE.1 - BOTTOM - 30.0;
        (LEFT + step * index as f64, SIZE.1 - BOTTOM - height * value / most)
    };
    let path = |of: fn(&(String, f64, f64)) -> f64| {
        let each = points.iter().enumerate().map(|(index, point)| {
            let (x, y) = place(index, of(point));
            format!("{x:.1},{y:.1}")
        });
        each.collect::<Vec<_>>().join(" ")
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>Dependencies by {title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        SIZE.0, SIZE.1
    );
    for part in 0..=4 {
        let value = most * f64::from(part) / 4.0;
        let (_, y) = place(0, value);
        writeln!(
            out,
            "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#d6dce8\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\" fill=\"#5d677d\">{value:.3} %</text>",
            SIZE.0 - 20.0,
            LEFT - 4.0,
            y + 4.0
        )
        .expect("a string grows");
    }
    for (index, (label, _, _)) in points.iter().enumerate() {
        let (x, _) = place(index, 0.0);
        writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5d677d\">{label}</text>",
            SIZE.1 - BOTTOM + 16.0
        )
        .expect("a string grows");
    }
    let lines = [
        ("intervals overlap", "#1f6feb", path(|point| point.1)),
        ("uncertain", "#c2255c", path(|point| point.2)),
    ];
    for (index, (name, colour, path)) in lines.iter().enumerate() {
        writeln!(
            out,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"18\" fill=\"{colour}\">{name}</text>",
            LEFT + 150.0 * index as f64
        )
        .expect("a string grows");
    }
    let middle = SIZE.0 / 2.0;
    writeln!(out, "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#1d2330\">{title}</text>\n</svg>", SIZE.1 - 6.0)
        .expect("a string grows");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_dependencies() {
        let json: Value = serde_json::from_str(
            "{\"dependencies\":{\"write-read\":{\"certain\":90,\"by_content\":6,\"by_locks\":2,\
             \"by_first_updater\":1,\"uncertain\":1}},\"operations\":10,\"seconds\":2}",
        )
        .expect("JSON");
        let cells = measured(&json, "{\"lag_seconds\":0.5,\"memory_bytes\":2097152}\n").cells();
        assert_eq!(cells, "5 | 100 | 10.000 % | 1.000 % | 90.0 % | 500 | 2");
    }
}
