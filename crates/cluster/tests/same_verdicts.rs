//! Workers say what one process says: on the corpus, on random histories with times, and on
//! those of the simulated database.

#![expect(clippy::print_stdout, reason = "figures for people")]

use isolde::{Check, Level, Limits, Verdict};
use isolde_cluster::{Hosts, Options, Outcome, Pieces, Ruling, USUAL_WINDOW, verify};
use isolde_harness::{Anomaly, Isolation, Parameters, Times, generate};
use isolde_history::format::{self, ReadOptions};
use isolde_history::{History, HistoryBuilder, Index, Interval, OpKind, TxnTimes, Value};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DECIDED: [Level; 2] = [Level::StrictSerializable, Level::StrongSnapshotIsolation];

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ (it >> 31)) % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn options() -> Options {
    Options {
        levels: Level::ALL.to_vec(),
        clock_drift: 0,
        subject: String::new(),
        window: USUAL_WINDOW,
        is_full: || false,
    }
}

fn by_workers(history: History, hosts: &Hosts) -> Outcome {
    verify(&Pieces::of(history), &options(), hosts).unwrap()
}

/// The same in windows that are as short as can be.
fn in_short_windows(history: History, hosts: &Hosts) -> Outcome {
    verify(&Pieces::of(history), &Options { window: 1, ..options() }, hosts).unwrap()
}

fn by_one_process(history: &History, level: Level) -> Verdict {
    let index = Index::new(history);
    Check::new(history, &index, &Limits::NONE).decide(level)
}

/// What is said of the levels that windows decide.
fn decided(rulings: &[(Level, Ruling)]) -> Vec<&(Level, Ruling)> {
    rulings.iter().filter(|it| DECIDED.contains(&it.0)).collect()
}

/// How often workers answered, and how often they did not.
#[derive(Debug, Default)]
struct Tally {
    satisfied: usize,
    violated: usize,
    open: usize,
}

impl Tally {
    /// Fails if workers and one process contradict each other.
    fn compare(&mut self, history: &History, outcome: &Outcome, what: &str) {
        for (level, ruling) in &outcome.rulings {
            let is_decided = DECIDED.contains(level);
            match ruling {
                Ruling::Unknown(_) => self.open += usize::from(is_decided),
                Ruling::Satisfied(_) => {
                    let expected = by_one_process(history, *level);
                    let name = expected.name();
                    assert!(matches!(expected, Verdict::Satisfied(_)), "{what}: {level} {name}");
                    self.satisfied += usize::from(is_decided);
                }
                Ruling::Violated => {
                    let expected = by_one_process(history, *level);
                    let name = expected.name();
                    assert!(matches!(expected, Verdict::Violated(_)), "{what}: {level} {name}");
                    self.violated += usize::from(is_decided);
                }
            }
        }
    }
}

/// A small history: transactions take effect at some instant while they are open, or at another
/// one now and then.
struct Drawn {
    /// Which of them saw something else than what was there, in percent.
    wrong: u64,
    /// Whether begins and commits have times of their own.
    is_apart: bool,
    are_lists: bool,
}

struct DrawnTxn {
    session: u64,
    /// Begin invoked and completed, commit invoked and completed.
    times: [i64; 4],
    instant: i64,
    /// Key, and whether it writes.
    ops: Vec<(u64, bool)>,
    is_unknown: bool,
}

impl Drawn {
    fn history(&self, random: &mut Random) -> History {
        let sessions = 2 + random.below(3);
        let mut clocks = vec![0; sessions as usize];
        let mut txns: Vec<DrawnTxn> = Vec::new();
        for _ in 0..3 + random.below(6) {
            let session = random.below(sessions);
            let clock = &mut clocks[session as usize];
            let mut later = |most: u64| {
                *clock += random.below(most).cast_signed();
                *clock
            };
            let times = [later(4), later(4), later(4), later(4)];
            let instant =
                times[0] + random.below((times[3] - times[0] + 1).cast_unsigned()).cast_signed();
            let ops = (0..=random.below(3)).map(|_| (random.below(3), random.chance(50)));
            let ops = ops.collect();
            clocks[session as usize] += i64::from(random.chance(80));
            let is_unknown = random.chance(8);
            txns.push(DrawnTxn { session, times, instant, ops, is_unknown });
        }
        self.recorded(&txns, random)
    }

    fn recorded(&self, txns: &[DrawnTxn], random: &mut Random) -> History {
        let mut order: Vec<usize> = (0..txns.len()).collect();
        order.sort_by_key(|&it| (txns[it].instant, it));
        let mut states: Vec<Vec<u64>> = vec![Vec::new(); 3];
        let mut seen: Vec<Vec<Vec<u64>>> = vec![Vec::new(); txns.len()];
        let mut next = 0;
        for txn in order {
            for &(key, is_write) in &txns[txn].ops {
                let state = &mut states[key as usize];
                if is_write {
                    next += 1;
                    state.push(next);
                    seen[txn].push(vec![next]);
                } else {
                    let back = if random.chance(self.wrong) { random.below(3) as usize } else { 0 };
                    seen[txn].push(state[..state.len().saturating_sub(back)].to_vec());
                }
            }
        }
        let mut builder = HistoryBuilder::new();
        for (it, seen) in txns.iter().zip(seen) {
            self.add(&mut builder, it, &seen);
        }
        builder.finish("drawn").unwrap()
    }

    fn add(&self, builder: &mut HistoryBuilder, it: &DrawnTxn, seen: &[Vec<u64>]) {
        let label = builder.values().unsigned(it.session);
        let session = builder.session(label);
        let txn = builder.begin(session);
        let [begin, begun, committing, committed] = it.times;
        if it.is_unknown {
            builder.outcome(txn, isolde_history::Outcome::Unknown);
        }
        if self.is_apart {
            let begin = Interval { invoked: begin, completed: begun };
            let commit = Interval { invoked: committing, completed: committed };
            builder.times(txn, TxnTimes { begin, commit });
        } else {
            builder.interval(txn, Interval { invoked: begin, completed: committed });
        }
        for (&(key, is_write), seen) in it.ops.iter().zip(seen) {
            let name = builder.values().unsigned(key);
            let key = builder.key(name);
            let values: Vec<Value> = seen.iter().map(|&it| builder.values().unsigned(it)).collect();
            match (is_write, self.are_lists) {
                (true, true) => builder.op(OpKind::Append, key, values[0]),
                (true, false) => builder.op(OpKind::Write, key, values[0]),
                (false, true) => builder.read_list(key, &values),
                (false, false) => {
                    builder.op(OpKind::Read, key, values.last().copied().unwrap_or(Value::NIL));
                }
            }
        }
    }
}

fn cases(usual: u64) -> u64 {
    std::env::var("ISOLDE_RANDOM_HISTORIES").map_or(usual, |it| it.parse().unwrap())
}

#[test]
fn random_histories_have_the_verdicts_of_one_process() {
    let mut tally = Tally::default();
    for seed in 0..cases(1_500) {
        let history = drawn(seed);
        let threads = Hosts::Threads(1 + usize::from(seed.is_multiple_of(50)));
        let outcome = in_short_windows(drawn(seed), &threads);
        tally.compare(&history, &outcome, &format!("seed {seed}\n{}", format::to_text(&history)));
    }
    println!("{tally:?}");
    let all = tally.satisfied + tally.violated + tally.open;
    assert!(tally.satisfied > all / 5 && tally.violated > all / 5, "{tally:?}");
    assert!(tally.open < all / 50, "{tally:?}");
}

/// A random history of any kind.
fn drawn(seed: u64) -> History {
    let mut random = Random(seed);
    let drawn = Drawn {
        wrong: [0, 0, 10, 30][random.below(4) as usize],
        is_apart: random.chance(50),
        are_lists: random.chance(40),
    };
    drawn.history(&mut random)
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn the_corpus_has_the_verdicts_of_one_process() {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"), &mut found);
    found.sort();
    let mut tally = Tally::default();
    let mut timed = 0;
    for path in found {
        let read = || format::read_detected(format::open(&path).ok()?, ReadOptions::default()).ok();
        let (Some((history, _)), Some((again, _))) = (read(), read()) else { continue };
        if !history.has_times() {
            continue;
        }
        timed += 1;
        let outcome = by_workers(again, &Hosts::Threads(1));
        tally.compare(&history, &outcome, &path.display().to_string());
    }
    println!("{timed} histories: {tally:?}");
    assert!(timed > 20 && tally.satisfied > 5 && tally.violated > 5, "{timed}, {tally:?}");
}

fn simulated(seed: u64, isolation: Isolation, anomaly: Option<Anomaly>) -> History {
    let parameters = Parameters {
        transactions: 3_000,
        isolation,
        anomaly,
        times: Times::Transactions,
        seed,
        ..isolde_harness::preset("GeneralRW").unwrap().parameters
    };
    generate(&parameters).unwrap()
}

#[test]
fn any_number_of_threads_finds_the_same() {
    for isolation in [Isolation::Serializable, Isolation::SnapshotIsolation, Isolation::ReadAtomic]
    {
        let history = simulated(1, isolation, None);
        let mut all = Vec::new();
        for threads in 1..=4 {
            let outcome = by_workers(simulated(1, isolation, None), &Hosts::Threads(threads));
            all.push(outcome.rulings);
            let short = in_short_windows(simulated(1, isolation, None), &Hosts::Threads(threads));
            assert_eq!(decided(&short.rulings), decided(&all[0]), "{isolation:?} {threads}");
        }
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{isolation:?} {all:?}");
        let mut tally = Tally::default();
        let outcome = by_workers(simulated(1, isolation, None), &Hosts::Threads(2));
        tally.compare(&history, &outcome, &format!("{isolation:?}"));
        println!("{isolation:?} {tally:?}");
        assert_eq!(tally.open, 0);
    }
}

/// What each of several processes says, which here are threads that meet on loopback.
fn by_processes(history: fn() -> History, count: usize) -> Vec<Outcome> {
    let free: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> =
        free.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
    drop(free);
    let processes: Vec<_> = (0..count)
        .map(|process| {
            let (addresses, patience) = (addresses.clone(), Duration::from_mins(1));
            let hosts = Hosts::Processes { addresses, process, patience };
            std::thread::spawn(move || by_workers(history(), &hosts))
        })
        .collect();
    processes.into_iter().map(|it| it.join().unwrap()).collect()
}

#[test]
fn any_number_of_processes_finds_the_same() {
    let history = || simulated(2, Isolation::SnapshotIsolation, None);
    let expected = by_workers(history(), &Hosts::Threads(1)).rulings;
    for count in 2..=4 {
        for outcome in by_processes(history, count) {
            assert_eq!(outcome.rulings, expected, "{count} processes");
        }
    }
}
