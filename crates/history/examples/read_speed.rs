//! How fast a history is read: `read_speed FILE [RUNS]`, megabytes a second.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use isolde_history::format::{self, ReadOptions};
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().expect("the file to read"));
    let runs = arguments.next().map_or(3, |runs| runs.parse().expect("a number of runs"));
    let bytes = u32::try_from(std::fs::metadata(&path).expect("a file").len());
    let megabytes = f64::from(bytes.expect("at most 4 GB")) / 1e6;
    for _ in 0..runs {
        let start = Instant::now();
        let input = format::open(&path).expect("a readable file");
        let (history, format) =
            format::read_detected(input, ReadOptions::default()).expect("a history");
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{}: {} transactions, {} operations, {seconds:.3} s, {:.0} MB/s, {} MB held",
            format.name,
            history.txn_count(),
            history.op_count(),
            megabytes / seconds,
            history.memory() / 1_000_000,
        );
    }
}
