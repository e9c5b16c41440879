//! `isolde gen`: histories without a database.

use crate::exit::{Failure, Status};
use crate::{check, convert};
use clap::ValueEnum;
use isolde::Level;
use isolde_harness::{
    Aborts, Anomaly, Distribution, INJECTED, Isolation, PRESETS, Preset, Times, TxnKind, generate,
};
use std::fmt::Write;
use std::path::PathBuf;

/// Options of `isolde gen`.
#[derive(clap::Args)]
#[command(after_help = presets())]
pub(crate) struct Arguments {
    /// The workload to start from, listed below; options left out are as it says
    #[arg(long, value_name = "NAME", default_value = "GeneralRW", value_parser = parse_preset)]
    preset: &'static Preset,
    /// How many clients there are; each runs one transaction after another [default: the preset's]
    #[arg(long, value_name = "NUMBER")]
    sessions: Option<u32>,
    /// How many transactions commit, in all sessions together [default: the preset's]
    #[arg(long, value_name = "NUMBER")]
    transactions: Option<u32>,
    /// How many operations each transaction has [default: the preset's]
    #[arg(long, value_name = "NUMBER")]
    operations: Option<u32>,
    /// The share of reads among operations, from 0 to 1; of read-only transactions with blindw
    /// [default: the preset's]
    #[arg(long, value_name = "SHARE")]
    read_share: Option<f64>,
    /// How many keys are in use at a time [default: the preset's]
    #[arg(long, value_name = "NUMBER")]
    keys: Option<u32>,
    /// How often each key is used: uniform, zipf:EXPONENT (larger is more skewed, zipf alone is
    /// zipf:0.5) or hotspot (four operations of five on a fifth of the keys) [default: the
    /// preset's]
    #[arg(long, value_name = "SHAPE", value_parser = parse_distribution)]
    distribution: Option<Distribution>,
    /// What transactions do [default: the preset's]
    #[arg(long, value_enum, value_name = "NAME")]
    workload: Option<Workload>,
    /// What the simulated database guarantees: read-uncommitted, read-committed, read-atomic,
    /// causal, snapshot-isolation or serializable [default: the preset's]
    #[arg(long, value_name = "LEVEL", value_parser = parse_isolation)]
    isolation: Option<Isolation>,
    /// Which times the clients note [default: the preset's]
    #[arg(long, value_enum, value_name = "OF")]
    times: Option<Noted>,
    /// Record the transactions that the database refused, too [default: they are left out]
    #[arg(long)]
    aborts: bool,
    /// Add a fault at the end: lost-update, long-fork, g-sib, causality, fractured-read,
    /// write-skew, thin-air, aborted-read or intermediate-read [default: none]
    #[arg(long, value_name = "NAME", value_parser = parse_anomaly)]
    anomaly: Option<Anomaly>,
    /// Which of the possible histories; the same seed gives the same one [default: 1]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// The format to write; see `isolde formats`
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    to: String,
    /// Where to write: a file, or a directory for formats that are one [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Workload {
    /// Each operation is a read or a write
    Mixed,
    /// Read-only transactions and transactions of writes alone
    Blindw,
    /// Each key is read, then written
    Rmw,
    /// Each operation reads a list or appends to one
    ListAppend,
}

#[derive(Clone, Copy, ValueEnum)]
enum Noted {
    /// No times
    None,
    /// Begin and commit of each transaction
    Transactions,
    /// Those, and each operation
    Operations,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let to = convert::writable(&arguments.to)?;
    let history = generate(&arguments.parameters())
        .map_err(|error| Failure::Usage(format!("gen: {error}")))?;
    convert::write(&history, &to, arguments.output.as_deref())?;
    Ok(Status::Satisfied)
}

impl Arguments {
    fn parameters(&self) -> isolde_harness::Parameters {
        let preset = self.preset.parameters;
        isolde_harness::Parameters {
            sessions: self.sessions.unwrap_or(preset.sessions),
            transactions: self.transactions.unwrap_or(preset.transactions),
            operations: self.operations.unwrap_or(preset.operations),
            read_share: self.read_share.unwrap_or(preset.read_share),
            keys: self.keys.unwrap_or(preset.keys),
            distribution: self.distribution.unwrap_or(preset.distribution),
            kind: self.workload.map_or(preset.kind, |workload| match workload {
                Workload::Mixed => TxnKind::Mixed,
                Workload::Blindw => TxnKind::BlindWrite,
                Workload::Rmw => TxnKind::ReadModifyWrite,
                Workload::ListAppend => TxnKind::ListAppend,
            }),
            isolation: self.isolation.unwrap_or(preset.isolation),
            times: self.times.map_or(preset.times, |times| match times {
                Noted::None => Times::None,
                Noted::Transactions => Times::Transactions,
                Noted::Operations => Times::Operations,
            }),
            aborts: if self.aborts { Aborts::Recorded } else { preset.aborts },
            anomaly: self.anomaly.or(preset.anomaly),
            seed: self.seed.unwrap_or(preset.seed),
        }
    }
}

fn presets() -> String {
    let mut text = String::from("Presets:\n");
    for Preset { name, title, parameters, .. } in PRESETS {
        let shape = match parameters.distribution {
            Distribution::Uniform => "uniform".to_owned(),
            Distribution::Hotspot => "hotspot".to_owned(),
            Distribution::Zipf { theta } => format!("zipf:{theta}"),
        };
        let workload = match parameters.kind {
            TxnKind::Mixed => "mixed",
            TxnKind::BlindWrite => "blindw",
            TxnKind::ReadModifyWrite => "rmw",
            TxnKind::ListAppend => "list-append",
        };
        let times = match parameters.times {
            Times::None => "none",
            Times::Transactions => "transactions",
            Times::Operations => "operations",
        };
        writeln!(
            text,
            "  {name}: {title}\n      sessions {}, transactions {}, operations {}, read-share {}, \
             keys {}, distribution {shape},\n      workload {workload}, isolation {}, times {times}",
            parameters.sessions,
            parameters.transactions,
            parameters.operations,
            parameters.read_share,
            parameters.keys,
            parameters.isolation.name(),
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn parse_preset(name: &str) -> Result<&'static Preset, String> {
    isolde_harness::preset(name).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        format!("expected one of {}, found `{name}`", names.join(", "))
    })
}

fn parse_distribution(text: &str) -> Result<Distribution, String> {
    match text.split_once(':') {
        None if text == "uniform" => Ok(Distribution::Uniform),
        None if text == "hotspot" => Ok(Distribution::Hotspot),
        None if text == "zipf" => Ok(Distribution::Zipf { theta: 0.5 }),
        Some(("zipf", theta)) => {
            let number = theta.parse::<f64>();
            let theta = number.map_err(|_| format!("expected an exponent, found `{theta}`"))?;
            Ok(Distribution::Zipf { theta })
        }
        _ => Err(format!("expected uniform, zipf:EXPONENT or hotspot, found `{text}`")),
    }
}

/// Any name of a level that the store of some isolation level gives; the stores of
/// the snapshot levels keep sessions and real time as well.
fn parse_isolation(name: &str) -> Result<Isolation, String> {
    let level = check::parse_level(name)?;
    let same = match level {
        Level::SessionSnapshotIsolation | Level::StrongSnapshotIsolation => {
            Level::SnapshotIsolation
        }
        Level::SessionSerializable | Level::StrictSerializable => Level::Serializable,
        other => other,
    };
    let found = Isolation::ALL.into_iter().find(|isolation| isolation.name() == same.name());
    found.ok_or_else(|| {
        let names = Isolation::ALL.map(Isolation::name).join(", ");
        format!(
            "expected one of {names}, found {}, which is checked but not simulated",
            level.name()
        )
    })
}

fn parse_anomaly(name: &str) -> Result<Anomaly, String> {
    Anomaly::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = INJECTED.iter().map(|row| row.name).collect();
        format!("expected one of {}, found `{name}`", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_names_for_what_a_store_gives_are_understood() {
        assert_eq!(parse_isolation("si"), Ok(Isolation::SnapshotIsolation));
        assert_eq!(parse_isolation("strict-serializable"), Ok(Isolation::Serializable));
        assert!(parse_isolation("prefix").is_err());
        assert!(parse_isolation("none").is_err());
    }

    #[test]
    fn distributions_name_their_exponent() {
        assert_eq!(parse_distribution("zipf:0.99"), Ok(Distribution::Zipf { theta: 0.99 }));
        assert_eq!(parse_distribution("zipf"), Ok(Distribution::Zipf { theta: 0.5 }));
        assert_eq!(parse_distribution("uniform"), Ok(Distribution::Uniform));
        for wrong in ["zipf:", "zipf:x", "uniform:1", ""] {
            assert!(parse_distribution(wrong).is_err(), "{wrong}");
        }
    }
}
