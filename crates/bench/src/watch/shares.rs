//! Which dependencies the clients' intervals leave open, and who decides them.
//!
//! Leopard measures the share of dependencies whose operations overlap on YCSB-A, by skew,
//! threads and share of reads [Li et al., *Leopard*, ICDE 2024, Figure 3], and which of them its
//! mechanisms decide [Figure 12]. Here the same is measured on a private PostgreSQL, which is
//! driven and watched by `isolde watch`; the recorded run is then verified again alone, which
//! shows how much faster that is than the database.

use super::{Bench, add, last_event};
use crate::measure::Program;
use crate::plot::{Plot, Scale, Series};
use crate::workspace::{line, written};
use serde_json::Value;
use std::fmt::Write;

/// One series of runs: what differs between them.
struct Axis {
    title: &'static str,
    file: &'static str,
    option: &'static str,
    values: &'static [&'static str],
    others: &'static [&'static str],
}

/// The axes of Figure 3. Its table has a million records; transactions are of ten operations,
/// because in transactions of one operation nobody waits for anybody.
const AXES: [Axis; 3] = [
    Axis {
        title: "skew",
        file: "watch-skew.svg",
        option: "--distribution",
        values: &["zipf:0.1", "zipf:0.5", "zipf:0.7", "zipf:0.9", "zipf:0.99"],
        others: &["--sessions", "16"],
    },
    Axis {
        title: "sessions",
        file: "watch-sessions.svg",
        option: "--sessions",
        values: &["4", "8", "16", "32", "64"],
        others: &["--distribution", "zipf:0.9"],
    },
    Axis {
        title: "share of reads",
        file: "watch-reads.svg",
        option: "--read-share",
        values: &["0.1", "0.3", "0.5", "0.7", "0.9"],
        others: &["--sessions", "16", "--distribution", "zipf:0.9"],
    },
];

const YCSB: [&str; 6] = ["--preset", "YCSB-A", "--keys", "1000000", "--operations", "10"];

/// The workloads of Figure 12.
const WORKLOADS: [(&str, &[&str]); 4] = [
    ("TPC-C", &["--preset", "TPC-C"]),
    ("SmallBank", &["--preset", "SmallBank"]),
    ("BlindW-W", &["--preset", "BlindW-RW", "--read-share", "0"]),
    ("BlindW-RW", &["--preset", "BlindW-RW"]),
];

/// Percent of all dependencies.
const PERCENT: Scale = Scale { least: 0.0001, decades: 6 };

const HEAD: &str = "operations/s | dependencies | intervals overlap | uncertain | decided of \
                    those that overlap | behind, ms | memory, MiB |";

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

    fn rate(&self) -> f64 {
        self.operations / self.seconds.max(0.001)
    }

    fn cells(&self) -> String {
        format!(
            "{:.0} | {:.0} | {:.4} % | {:.4} % | {:.1} % | {:.0} | {:.0}",
            self.rate(),
            self.dependencies,
            self.open() * 100.0,
            self.uncertain() * 100.0,
            100.0 * self.deduced / (self.dependencies - self.certain).max(1.0),
            self.lag * 1e3,
            self.memory
        )
    }
}

/// Uncertain shares as in Figure 3.
pub(super) fn by_contention(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    let mut rows = String::new();
    let mut title = String::new();
    for axis in &AXES {
        write!(rows, "\n### By {}\n\n| {} | {HEAD}\n", axis.title, axis.title)
            .expect("a string grows");
        line(&mut rows, "|---|---:|---:|---:|---:|---:|---:|---:|");
        let mut all = Vec::new();
        for value in axis.values {
            let mut options = YCSB.to_vec();
            options.extend_from_slice(axis.others);
            options.extend_from_slice(&[axis.option, value]);
            let measured = measure(bench, &options)?;
            add(&mut rows, &format!("| {value} | {} |", measured.cells()));
            title.clone_from(&measured.title);
            all.push(measured);
        }
        let labels: Vec<&str> =
            axis.values.iter().map(|it| it.trim_start_matches("zipf:")).collect();
        plot(bench, axis.file, &labels, &all)?;
        line(&mut rows, &format!("\n![By {}](images/{})", axis.title, axis.file));
    }
    line(text, "\n## Dependencies that times leave open\n");
    let duration = &bench.arguments.duration;
    line(
        text,
        &format!(
            "Each row is one run of {duration} on a private {title}, driven and verified by \
             `isolde watch` on the same machine. A dependency is one between transactions that read \
             or wrote the same row. Where the intervals of the two operations overlap, their times \
             alone do not say which came first: Leopard's uncertain dependencies [Figure 3]. \
             Contents, locks and refused writers decide most of these [Figure 12], and what is left \
             is *uncertain* here. YCSB-A has a million keys, ten operations a transaction, half of \
             them reads, unless the row says otherwise. No run had a violation. The plots are in \
             percent of all dependencies; a bar without height is 0."
        ),
    );
    text.push_str(&rows);
    Ok(())
}

/// Deduced shares as in Figure 12, and how fast the recorded runs are verified alone.
pub(super) fn by_workload(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "\n### By workload\n");
    line(text, &format!("| workload | {HEAD}\n|---|---:|---:|---:|---:|---:|---:|---:|"));
    let mut all = Vec::new();
    let mut beside = String::new();
    for (name, options) in WORKLOADS {
        let mut options = options.to_vec();
        let log = bench.folder.join(format!("{name}.log")).display().to_string();
        options.extend_from_slice(&["--log", &log]);
        let measured = measure(bench, &options)?;
        add(text, &format!("| {name} | {} |", measured.cells()));
        let (rate, verified) = (measured.rate(), again(bench, &log)?);
        let times = verified / rate.max(1.0);
        add(&mut beside, &format!("| {name} | {rate:.0} | {verified:.0} | {times:.0} |"));
        all.push(measured);
    }
    let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.0).collect();
    plot(bench, "watch-workloads.svg", &names, &all)?;
    line(text, "\n![By workload](images/watch-workloads.svg)");
    line(text, "\n## Beside the database\n");
    line(
        text,
        "The same runs as they were recorded, verified again by `isolde watch --from`: operations \
         that the database and its clients got done in a second, and operations that one core \
         verifies in a second, reading the log included.\n",
    );
    line(text, "| workload | done/s | verified/CPU s | times |\n|---|---:|---:|---:|");
    text.push_str(&beside);
    Ok(())
}

/// Verifies a log alone: operations in a CPU second.
fn again(bench: &Bench<'_>, log: &str) -> Result<f64, String> {
    let profile = format!("{}/{}", bench.arguments.target, bench.arguments.isolation);
    let words = ["watch", "--from", log, "--profile", &profile, "--quiet"].map(str::to_owned);
    let words = words.into_iter().chain(bench.events_and_output());
    let usage = Program::new(&bench.isolde, words).best_of(1)?;
    let (json, _) = last_event(&bench.events())?;
    Ok(json["operations"].as_f64().unwrap_or(0.0) / usage.cpu.max(0.001))
}

fn measure(bench: &Bench<'_>, options: &[&str]) -> Result<Measured, String> {
    let arguments = bench.arguments;
    let mut words: Vec<String> = ["watch", &arguments.target, "--isolation", &arguments.isolation]
        .iter()
        .chain(options)
        .map(ToString::to_string)
        .collect();
    words.extend(["--duration".to_owned(), arguments.duration.clone(), "--quiet".to_owned()]);
    words.extend(bench.events_and_output());
    let ended = Program::new(&bench.isolde, words).best_ending_in(0, 1)?;
    let (json, text) = last_event(&bench.events())?;
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

fn plot(bench: &Bench<'_>, file: &str, groups: &[&str], all: &[Measured]) -> Result<(), String> {
    let mut plot = Plot::new("percent of dependencies", PERCENT, groups);
    let figures = |of: fn(&Measured) -> f64| all.iter().map(|it| of(it) * 100.0).collect();
    let open = Series { name: "intervals overlap", figures: figures(Measured::open) };
    let uncertain = Series { name: "uncertain", figures: figures(Measured::uncertain) };
    plot.series.extend([open, uncertain]);
    written(&bench.arguments.images.join(file), &plot.svg())
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
        assert_eq!(cells, "5 | 100 | 10.0000 % | 1.0000 % | 90.0 % | 500 | 2");
    }
}
