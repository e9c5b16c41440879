//! The complete checker beside the watch: it decides finished parts, round by round.

use super::monitor::Setting;
use isolde::online::{Batch, Content, Rounds, RoundsOptions, Time};
use isolde::{Level, Limits, Verdict};
use std::fmt::Write;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Transactions of a round, at least; and those without a cut from which on one is forced.
const TXNS: [usize; 2] = [1000, 20_000];
/// How long one round may take.
const TIME_MAX: Duration = Duration::from_secs(30);
const MEMORY_MAX: usize = 1 << 30;

/// Decides rounds until no more events come.
pub(super) fn complete(
    level: Level,
    unwritten: Option<Content>,
    drift: Time,
    setting: &Setting,
    batches: Receiver<Batch>,
) {
    // Checking would take every core from the clients.
    let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(1).build() else { return };
    let [txns_min, txns_max] = TXNS;
    let options = RoundsOptions { txns_min, txns_max, drift, unwritten };
    let mut deciding = Deciding { rounds: Rounds::new(level, options), level, setting, unknown: 0 };
    for batch in batches {
        deciding.rounds.take(&batch);
        if deciding.rounds.is_due() {
            pool.install(|| deciding.decide(false));
        }
    }
    pool.install(|| deciding.decide(true));
}

struct Deciding<'a> {
    rounds: Rounds,
    level: Level,
    setting: &'a Setting,
    /// Rounds that were not decided.
    unknown: u64,
}

impl Deciding<'_> {
    fn decide(&mut self, is_last: bool) {
        let deadline = Instant::now() + TIME_MAX;
        let stop = || Instant::now() >= deadline;
        let limits = Limits { stop: &stop, working_bytes_max: Some(MEMORY_MAX), observe: &|_| {} };
        let verdict =
            if is_last { self.rounds.finish(&limits) } else { self.rounds.decide(&limits) };
        let round = self.rounds.counts().rounds;
        let name = self.level.name();
        match verdict {
            Ok(Verdict::Satisfied(_)) => {}
            Ok(Verdict::Violated(violated)) => {
                let anomaly = violated.anomalies.first().map_or("", |found| found.kind.name());
                let text =
                    format!("the complete checker: round {round} violates {name} ({anomaly})");
                self.setting.voice.note("round", &text);
                let mut status = self.setting.status();
                *status.violations.entry(name).or_default() += 1;
            }
            Ok(Verdict::Unknown(_)) | Err(_) => self.unknown += 1,
        }
        let text = self.told();
        self.setting.status().rounds = Some(text);
    }

    fn told(&self) -> String {
        let counts = self.rounds.counts();
        let mut text = format!(
            "{}, {} transactions in {} rounds, {} carried",
            self.level.name(),
            counts.txns,
            counts.rounds,
            counts.carried
        );
        if self.unknown > 0 {
            write!(text, ", {} rounds not decided", self.unknown).expect("a string grows");
        }
        if counts.is_exact() {
            text.push_str(", all cuts exact");
        }
        if counts.forced > 0 {
            write!(text, ", {} cuts forced", counts.forced).expect("a string grows");
        }
        if counts.left_out + counts.late > 0 {
            let left_out = counts.left_out + counts.late;
            write!(text, ", {left_out} transactions judged in part").expect("a string grows");
        }
        text
    }
}
