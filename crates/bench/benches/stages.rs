//! How long each stage takes: reading, indexing, deciding. Wall clock.
//!
//! `cargo bench -p isolde-bench --features stages --bench stages`

mod support;

use criterion::{BatchSize, Criterion, Throughput};
use isolde::{Level, Limits, check, decided_levels};
use isolde_history::Index;
use std::hint::black_box;

const TRANSACTIONS: u32 = 100_000;

/// What is read: preset and format.
const FILES: [(&str, &str); 5] = [
    ("weak", "plume"),
    ("weak", "text"),
    ("weak", "binary"),
    ("weak", "binary-raw"),
    ("list-append", "jepsen-edn"),
];

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for (preset, format) in FILES {
        let transactions = if format == "jepsen-edn" { TRANSACTIONS / 4 } else { TRANSACTIONS };
        let bytes = support::written(&support::history(preset, transactions), format);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format, |bencher| {
            bencher.iter_with_large_drop(|| support::read(black_box(&bytes), format));
        });
    }
}

fn index(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("index");
    for preset in ["weak", "list-append"] {
        let history = support::history(preset, TRANSACTIONS);
        group.bench_function(preset, |bencher| {
            bencher.iter_with_large_drop(|| Index::new(black_box(&history)));
        });
    }
}

fn decide(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    let history = support::history("weak", TRANSACTIONS);
    let index = Index::new(&history);
    let mut levels = decided_levels();
    levels.sort_unstable();
    let each = levels.iter().map(|&level: &Level| (level.name(), vec![level]));
    for (name, levels) in each.chain([("lattice", levels.clone())]) {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || levels.clone(),
                |levels| check(black_box(&history), &index, &levels, &Limits::NONE),
                BatchSize::LargeInput,
            );
        });
    }
}

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    parse(&mut criterion);
    index(&mut criterion);
    decide(&mut criterion);
    criterion.final_summary();
}
