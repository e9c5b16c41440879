//! `isolde-bench online`: how fast streams of events are verified, and what is kept of them.

mod blind_write;

use crate::workspace::in_tree;
use crate::{machine, say};
use blind_write::BlindWrite;
use isolde::online::{
    Batch, Certifier, Content, Counters, Dml, Granularity, Locks, Options, Pipeline,
    PipelineOptions, Profile, Reads, Room, Verifier, Writers,
};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// What is measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Transactions of the longest run
    #[arg(long, default_value_t = 10_000_000)]
    txns: u64,
    /// Clients
    #[arg(long, default_value_t = 24)]
    clients: u32,
    /// Where the page is written
    #[arg(long, short, value_name = "FILE", default_value_os_t = in_tree("docs/benchmarks-online.md"))]
    output: PathBuf,
}

/// Snapshots, locks, first updater wins, and dangerous structures refused.
const SERIALIZABLE: Profile = Profile {
    reads: Reads::FirstRequest,
    dml: Dml::Snapshot,
    writers: Writers::FirstUpdater,
    locks: Locks::Writes,
    granularity: Granularity::Row,
    certifier: Certifier::DangerousStructure,
    staleness: 0,
    skew: 0,
};

/// Profiles that are compared.
const PROFILES: [(&str, Profile); 3] = [
    ("reads alone", Profile { reads: Reads::FirstRequest, ..Profile::NONE }),
    ("snapshot", Profile { certifier: Certifier::None, ..SERIALIZABLE }),
    ("serializable", SERIALIZABLE),
];

/// Transactions between two looks at the clock.
const ROUND: u64 = 2000;

/// What a run took.
struct Run {
    txns: u64,
    operations: u64,
    /// Merging and verifying, without making the trace.
    verifying: Duration,
    peak: Option<u64>,
    counters: Counters,
}

/// Measures and writes the page.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let mut page = String::from("# Benchmarks of verifying while it runs\n\n");
    let _ = writeln!(
        page,
        "Written by `isolde-bench online` on {}. The workload is BlindW-RW+ with {} clients, made \
         on the fly; its making is not counted. \
         Seconds are those of one processor.\n",
        machine::describe(),
        arguments.clients
    );
    let heading = "| profile | transactions | operations | seconds | operations/s | peak memory | \
                   versions kept | uncertain dependencies |\n|---|---:|---:|---:|---:|---:|---:|---:|";
    let _ = writeln!(page, "## Growth\n\n{heading}");
    let mut sizes: Vec<u64> = [100, 10, 1].map(|part| (arguments.txns / part).max(1)).to_vec();
    sizes.dedup();
    for &txns in &sizes {
        add(&mut page, "serializable", &measure(SERIALIZABLE, txns, arguments.clients)?);
    }
    let _ = writeln!(page, "\n## Profiles\n\n{heading}");
    for (name, profile) in PROFILES {
        add(&mut page, name, &measure(profile, sizes[0], arguments.clients)?);
    }
    fs::write(&arguments.output, page)
        .map_err(|error| format!("{}: {error}", arguments.output.display()))
}

fn measure(profile: Profile, txns: u64, clients: u32) -> Result<Run, String> {
    let mut store = BlindWrite::new(clients);
    let options = Options { unwritten: Some(Content::ABSENT), ..Options::default() };
    let mut verifier = Verifier::new(profile, options);
    let mut pipeline = Pipeline::new(PipelineOptions::default());
    let mut merged = Batch::default();
    let mut verifying = Duration::ZERO;
    while store.txns < txns {
        let mut made = Vec::with_capacity(clients as usize);
        store.run(ROUND, |client, batch, sent| made.push((client, batch.clone(), sent)));
        let start = machine::processor_time();
        for (client, batch, sent) in &made {
            if pipeline.push(*client, batch) == Room::Full {
                return Err("expected even clients, found one too far ahead".to_owned());
            }
            pipeline.advance(*client, *sent);
        }
        merged.clear();
        let watermark = pipeline.drain(&mut merged);
        verifier.take(&merged, watermark);
        verifying += machine::processor_time().saturating_sub(start);
    }
    let start = machine::processor_time();
    verifier.finish();
    verifying += machine::processor_time().saturating_sub(start);
    let counters = verifier.counters();
    if counters.findings > 0 {
        let first = verifier.take_findings();
        return Err(format!("expected no violation, found {:?}", first.first()));
    }
    let (txns, operations) = (store.txns, store.operations);
    Ok(Run { txns, operations, verifying, peak: machine::peak(), counters })
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn add(page: &mut String, name: &str, run: &Run) {
    let seconds = run.verifying.as_secs_f64();
    let rate = run.operations as f64 / seconds;
    let counters = run.counters;
    let kinds = [counters.write_read, counters.write_write, counters.read_write];
    let uncertain: u64 = kinds.iter().map(|kind| kind.uncertain).sum();
    let total: u64 = kinds.iter().map(isolde::online::Dependencies::total).sum();
    let peak = run.peak.map_or("?".to_owned(), |peak| format!("{} MB", peak / 1_000_000));
    let line = format!(
        "| {name} | {} | {} | {seconds:.2} | {rate:.0} | {peak} | {} | {uncertain} of {total} |",
        run.txns, run.operations, counters.versions
    );
    say(&line);
    let _ = writeln!(page, "{line}");
}
