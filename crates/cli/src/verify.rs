//! `isolde verify`: whether a certificate proves what it claims of a history.
//!
//! The verifier shares no code with what decides. Exits 0 if every claim is proved, 1 if
//! one is refused, 2 if there is none; a certificate of another history is bad input.

use crate::exit::{Failure, Status};
use crate::output::{self, OutputFormat};
use crate::{input, limits};
use isolde_certificate::{Certificate, Claim, Extent, Proof, Refused};
use isolde_history::ReadError;
use isolde_history::format;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options of `isolde verify`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The certificate, as `isolde check --certificate` writes it
    certificate: PathBuf,
    /// The history it is about
    history: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    /// Write the result to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    let (options, clock) = (arguments.clone(), arguments.limits.clock(None));
    let (text, status) = match limits::within(&clock, move || verified(&options)) {
        Ok(verified) => verified?,
        Err(reached) => {
            return limits::end(reached, &arguments.history, &arguments.limits.resources);
        }
    };
    output::write(&text, arguments.format, arguments.output.as_deref())?;
    Ok(status)
}

fn verified(arguments: &Arguments) -> Result<(String, Status), Failure> {
    let name = input::name(&arguments.certificate);
    let mut source = format::open(&arguments.certificate)?.file()?;
    let certificate = isolde_certificate::read(&mut source)?;
    let memory_max = arguments.limits.resources.memory_max();
    let (history, _) = input::read(&arguments.history, &arguments.input, memory_max)?;
    let results = isolde_certificate::verify(&certificate, &history)
        .map_err(|other| ReadError::new(&name, other.to_string()))?;
    let text = match arguments.format {
        OutputFormat::Text => to_text(&certificate, &results),
        OutputFormat::Json => to_json(&certificate, &results),
    };
    Ok((text, status_of(&results)))
}

/// A certificate without claims proves nothing: who waits for a proof must not take it for one.
fn status_of(results: &[Result<Extent, Refused>]) -> Status {
    if results.is_empty() {
        return Status::Unknown;
    }
    let all = results.iter().all(Result::is_ok);
    if all { Status::Satisfied } else { Status::Violated }
}

/// What is said of a certificate without claims.
const NOTHING_CLAIMED: &str = "nothing is claimed, so nothing is verified";

const fn verdict(claim: &Claim) -> &'static str {
    match claim.proof {
        Proof::Witness(_) => "satisfied",
        Proof::Refutation(_) => "violated",
    }
}

/// A line for each level that is proved, and for each reason why others are not.
fn to_text(certificate: &Certificate, results: &[Result<Extent, Refused>]) -> String {
    let mut lines = Vec::new();
    let mut refusals: Vec<Refusal<'_>> = Vec::new();
    for (number, (claim, result)) in certificate.claims.iter().zip(results).enumerate() {
        match result {
            Ok(extent) => lines.extend(claim.levels.iter().map(|level| {
                let shown = format!("verified{} ({extent})", by(claim, level));
                format!("{level}: {}, {shown}\n", verdict(claim))
            })),
            Err(refused) => refuse(&mut refusals, (number, claim), refused),
        }
    }
    lines.extend(refusals.iter().map(told));
    if lines.is_empty() {
        lines.push(format!("{NOTHING_CLAIMED}\n"));
    }
    if certificate.clock_drift > 0 {
        lines.push(format!("with clocks up to {} ns apart\n", certificate.clock_drift));
    }
    lines.concat()
}

/// By which other level a claim settles one.
fn by(claim: &Claim, level: &str) -> String {
    if claim.shown_at == level { String::new() } else { format!(" by {}", claim.shown_at) }
}

/// Levels that are not proved, for one reason.
struct Refusal<'a> {
    reason: &'a Refused,
    /// The first claim with that reason, and its number.
    claim: (usize, &'a Claim),
    levels: Vec<&'a str>,
}

/// Adds what a refused claim does not prove. A mistake in one proof is one reason, however many
/// levels and claims rest on it.
fn refuse<'a>(
    refusals: &mut Vec<Refusal<'a>>,
    (number, claim): (usize, &'a Claim),
    reason: &'a Refused,
) {
    // The level that the proof is about says most of it.
    let itself = claim.levels.iter().filter(|level| **level == claim.shown_at);
    let others = claim.levels.iter().filter(|level| **level != claim.shown_at);
    let levels = itself.chain(others).map(String::as_str);
    let is_same = |refusal: &&mut Refusal<'_>| {
        refusal.reason == reason && verdict(refusal.claim.1) == verdict(claim)
    };
    match refusals.iter_mut().find(is_same) {
        Some(known) => known.levels.extend(levels),
        None => refusals.push(Refusal { reason, claim: (number, claim), levels: levels.collect() }),
    }
}

fn told(refusal: &Refusal<'_>) -> String {
    let Refusal { reason, claim: (number, claim), levels } = refusal;
    let Some((first, others)) = levels.split_first() else { return String::new() };
    let by = by(claim, first);
    let said = format!("{first}: {}, refused{by}: claim {number}: {reason}\n", verdict(claim));
    match others {
        [] => said,
        [one] => format!("{said}  and another level for the same reason: {one}\n"),
        _ => {
            let (count, others) = (others.len(), others.join(", "));
            format!("{said}  and {count} more levels for the same reason: {others}\n")
        }
    }
}

fn to_json(certificate: &Certificate, results: &[Result<Extent, Refused>]) -> String {
    let mut levels = serde_json::Map::new();
    for (claim, result) in certificate.claims.iter().zip(results) {
        for level in &claim.levels {
            let (verified, why) = match result {
                Ok(extent) => (true, extent.to_string()),
                Err(refused) => (false, refused.to_string()),
            };
            let shown_at = &claim.shown_at;
            let entry = json!({
                "verdict": verdict(claim),
                "verified": verified,
                "shown_at": shown_at,
                "explanation": why,
            });
            // Two claims about one level: the refused one must not be hidden.
            let hides = levels.get(level).is_some_and(|known: &Value| known["verified"] == false);
            if !hides {
                levels.insert(level.clone(), entry);
            }
        }
    }
    let history = &certificate.history;
    let mut report = json!({
        "schema": 1,
        "history": {
            "sessions": history.sessions,
            "transactions": history.transactions,
            "operations": history.operations,
        },
        "clock_drift": certificate.clock_drift,
        "verified": status_of(results) == Status::Satisfied,
        "levels": levels,
    });
    if results.is_empty() {
        report["reason"] = NOTHING_CLAIMED.into();
    }
    serde_json::to_string_pretty(&report).expect("text keys")
}
