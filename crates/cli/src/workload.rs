//! Options that say what clients do: a preset, and what differs from it.

use crate::suggestion;
use clap::ValueEnum;
use isolde_harness::{Distribution, PRESETS, Parameters, Preset, Times, TxnKind};
use std::fmt::Write;

/// What clients do.
#[derive(clap::Args, Clone)]
#[group(skip)]
#[command(next_help_heading = "Workload")]
pub(crate) struct Arguments {
    /// The workload to start from, listed below; options left out are as it says
    #[arg(long, value_name = "NAME", value_parser = parse_preset)]
    preset: Option<&'static Preset>,
    /// How many clients there are; each runs one transaction after another [default: the preset's]
    #[arg(long, value_name = "NUMBER")]
    sessions: Option<u32>,
    /// How many transactions commit, in all sessions together [default: the preset's]
    #[arg(long, value_name = "NUMBER")]
    transactions: Option<u32>,
    /// How many operations each transaction has [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "NUMBER")]
    operations: Option<u32>,
    /// The share of reads among operations, from 0 to 1; of read-only transactions with blindw
    /// [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "SHARE")]
    read_share: Option<f64>,
    /// How many keys are in use at a time [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "NUMBER")]
    keys: Option<u32>,
    /// How often each key is used: uniform, zipf:EXPONENT (larger is more skewed, zipf alone is
    /// zipf:0.5), hotspot (four operations of five on a fifth of the keys) or exponential
    /// [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "SHAPE", value_parser = parse_distribution)]
    distribution: Option<Distribution>,
    /// What transactions do [default: the preset's]
    #[arg(long, hide_short_help = true, value_enum, value_name = "NAME")]
    workload: Option<Workload>,
    /// Which of the possible workloads; the same seed gives the same one [default: 1]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Each operation is a read or a write
    Mixed,
    /// Read-only transactions and transactions of writes alone
    Blindw,
    /// Each key is read, then written
    Rmw,
    /// Each operation reads a list or appends to one
    ListAppend,
    /// Up to two reads, and up to two writes of keys that were read
    Mini,
}

impl Arguments {
    /// The preset, or the one of this name.
    pub(crate) fn preset_or(&self, name: &str) -> &'static Preset {
        self.preset.or_else(|| isolde_harness::preset(name)).expect("a default that exists")
    }

    /// Whether nothing was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.typed().is_empty() && self.seed.is_none()
    }

    /// Whether a number of transactions was asked for.
    pub(crate) fn is_counted(&self) -> bool {
        self.transactions.is_some()
    }

    /// Parameters of a preset with what was given in their place.
    pub(crate) fn applied_to(&self, preset: Parameters) -> Parameters {
        Parameters {
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
                Workload::Mini => TxnKind::MiniTransaction,
            }),
            seed: self.seed.unwrap_or(preset.seed),
            ..preset
        }
    }

    /// The options that were given, but for the seed, as one would type them.
    pub(crate) fn typed(&self) -> String {
        let mut text = String::new();
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                write!(text, " --{name} {value}").expect("a string grows");
            }
        };
        option("preset", self.preset.map(|preset| preset.name.to_owned()));
        let workload = self.workload.and_then(|workload| workload.to_possible_value());
        option("workload", workload.map(|value| value.get_name().to_owned()));
        option("sessions", self.sessions.map(|number| number.to_string()));
        option("transactions", self.transactions.map(|number| number.to_string()));
        option("operations", self.operations.map(|number| number.to_string()));
        option("read-share", self.read_share.map(|share| share.to_string()));
        option("keys", self.keys.map(|number| number.to_string()));
        option("distribution", self.distribution.map(shape));
        text
    }
}

/// A distribution as one types it.
fn shape(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => "uniform".to_owned(),
        Distribution::Zipf { theta } => format!("zipf:{theta}"),
        Distribution::Hotspot => "hotspot".to_owned(),
        Distribution::Exponential => "exponential".to_owned(),
    }
}

/// The presets with what they say, for the end of a command's help.
pub(crate) fn presets(default: &str) -> String {
    let mut text = format!("Presets [default: {default}]:\n");
    for Preset { name, title, parameters, .. } in PRESETS {
        let workload = match parameters.kind {
            TxnKind::Mixed => "mixed",
            TxnKind::BlindWrite => "blindw",
            TxnKind::ReadModifyWrite => "rmw",
            TxnKind::ListAppend => "list-append",
            TxnKind::MiniTransaction => "mini",
            TxnKind::Application(_) | TxnKind::Rows(_) => "of its own",
        };
        let times = match parameters.times {
            Times::None => "none",
            Times::Transactions => "transactions",
            Times::Operations => "operations",
        };
        writeln!(
            text,
            "  {name}: {title}\n      sessions {}, transactions {}, operations {}, read-share {}, \
             keys {}, distribution {},\n      workload {workload}, isolation {}, times {times}",
            parameters.sessions,
            parameters.transactions,
            parameters.operations,
            parameters.read_share,
            parameters.keys,
            shape(parameters.distribution),
            parameters.isolation.name(),
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn parse_preset(name: &str) -> Result<&'static Preset, String> {
    isolde_harness::preset(name).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        suggestion::expected("a preset", name, &names)
    })
}

fn parse_distribution(text: &str) -> Result<Distribution, String> {
    match text.split_once(':') {
        None if text == "uniform" => Ok(Distribution::Uniform),
        None if text == "hotspot" => Ok(Distribution::Hotspot),
        None if text == "exponential" => Ok(Distribution::Exponential),
        None if text == "zipf" => Ok(Distribution::Zipf { theta: 0.5 }),
        Some(("zipf", theta)) => {
            let number = theta.parse::<f64>();
            let theta = number.map_err(|_| format!("expected an exponent, found `{theta}`"))?;
            Ok(Distribution::Zipf { theta })
        }
        _ => {
            Err(format!("expected uniform, zipf:EXPONENT, hotspot or exponential, found `{text}`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
