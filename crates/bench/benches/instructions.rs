//! How many instructions each stage takes: the same on a busy machine.
//!
//! `cargo bench -p isolde-bench --features instructions --bench instructions`; needs
//! valgrind and the `gungraun-runner` of the library's version.

// What the macros of the library write is not ours to document or shorten.
#![allow(missing_docs, unused_qualifications)]

mod support;

use gungraun::{library_benchmark, library_benchmark_group, main};
use isolde::{Level, Limits, Verdict, check};
use isolde_history::{History, Index};
use std::hint::black_box;

const TRANSACTIONS: u32 = 5000;

/// Only instructions of the measured function's own thread are counted, so that
/// thread has to do what the workers would.
fn alone() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    // Fails only if the pool exists already, and then it is this one.
    let _ = pool.build_global();
}

fn file((preset, format): (&str, &'static str)) -> (Vec<u8>, &'static str) {
    alone();
    (support::written(&support::history(preset, TRANSACTIONS), format), format)
}

fn generated(preset: &str) -> History {
    alone();
    support::history(preset, TRANSACTIONS)
}

fn indexed(level: Level) -> (History, Index, Level) {
    let history = generated("weak");
    let index = Index::new(&history);
    (history, index, level)
}

#[library_benchmark(setup = file)]
#[bench::plume(("weak", "plume"))]
#[bench::text(("weak", "text"))]
#[bench::binary(("weak", "binary"))]
#[bench::jepsen_edn(("list-append", "jepsen-edn"))]
fn parse((bytes, format): (Vec<u8>, &'static str)) -> History {
    black_box(support::read(black_box(&bytes), format))
}

#[library_benchmark(setup = generated)]
#[bench::weak("weak")]
#[bench::list_append("list-append")]
fn index(history: History) -> (History, Index) {
    let index = Index::new(black_box(&history));
    (history, index)
}

#[library_benchmark(setup = indexed)]
#[bench::read_committed(Level::ReadCommitted)]
#[bench::read_atomic(Level::ReadAtomic)]
#[bench::causal(Level::Causal)]
fn decide((history, index, level): (History, Index, Level)) -> Vec<(Level, Verdict)> {
    black_box(check(black_box(&history), &index, &[level], &Limits::NONE))
}

library_benchmark_group!(name = stages, benchmarks = [parse, index, decide]);
main!(library_benchmark_groups = stages);
