//! The complete checker beside the watch: it decides finished parts, round by round.

use super::hub::Hub;
use super::monitor::{Completing, Setting};
use super::window::item_name;
use crate::decision;
use isolde::online::{Batch, Cell, ClientId, Content, Names, Round, Rounds, RoundsOptions};
use isolde::{Check, Level, Limits, Options, Verdict, Violated, counterexamples};
use isolde_history::{History, Index};
use isolde_report::{Findings, Report, Which, to_explanations};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// Transactions of a round, at least; and those without a cut from which on one is forced.
const TXNS: [usize; 2] = [1000, 20_000];
/// How long one round may take.
const TIME_MAX: Duration = Duration::from_secs(30);
const MEMORY_MAX: usize = 1 << 30;

/// A round that violates the level.
pub(super) struct ViolatedRound {
    pub(super) number: u64,
    pub(super) level: Level,
    pub(super) anomaly: &'static str,
    /// Why, as `isolde explain` tells it.
    pub(super) argument: Vec<String>,
    pub(super) history: History,
}

/// Decides rounds until no more events come.
pub(super) fn complete(
    completing: Completing,
    initial: &[Cell],
    setting: &Setting,
    batches: Receiver<Batch>,
    violated: Sender<ViolatedRound>,
) {
    // Checking would take every core from the clients.
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool,
        Err(error) => return cannot_start(setting, &error),
    };
    let [txns_min, txns_max] = TXNS;
    let Completing { level, unwritten, drift, reads } = completing;
    let options = RoundsOptions { txns_min, txns_max, drift, unwritten, reads };
    let names = Box::new(NamesOfHub(Arc::clone(&setting.hub)));
    let mut rounds = Rounds::new(level, options).with_names(names);
    for cell in initial {
        rounds.initial(*cell);
    }
    let mut deciding = Deciding { rounds, completing, setting, unknown: 0, violated };
    for batch in batches {
        deciding.rounds.take(&batch);
        if deciding.rounds.is_due() {
            pool.install(|| deciding.decide(false));
        }
    }
    pool.install(|| deciding.decide(true));
}

/// There is no thread for it: nothing is decided.
pub(super) fn cannot_start(setting: &Setting, error: &dyn std::fmt::Display) {
    let text = format!("the complete checker decides nothing: {error}");
    setting.output.note("round", &text);
    setting.status().rounds_undecided = 1;
}

struct NamesOfHub(Arc<Hub>);

impl Names for NamesOfHub {
    fn client(&self, client: u32) -> String {
        self.0.name(ClientId(client))
    }

    fn item(&self, item: u32) -> String {
        item_name(&self.0, item)
    }

    fn content(&self, content: Content) -> String {
        self.0.catalogue().content_text(content)
    }
}

struct Deciding<'a> {
    rounds: Rounds,
    completing: Completing,
    setting: &'a Setting,
    /// Rounds that were not decided.
    unknown: u64,
    violated: Sender<ViolatedRound>,
}

impl Deciding<'_> {
    fn decide(&mut self, is_last: bool) {
        let deadline = Instant::now() + TIME_MAX;
        let stop = || Instant::now() >= deadline;
        let limits = Limits { stop: &stop, working_bytes_max: Some(MEMORY_MAX), ..Limits::NONE };
        let decided =
            if is_last { self.rounds.finish(&limits) } else { self.rounds.decide(&limits) };
        match decided {
            Ok(Round { verdict: Verdict::Violated(violated), history: Some(history), .. }) => {
                self.tell(&violated, history, &limits);
            }
            Ok(Round { verdict: Verdict::Unknown(why), .. }) => self.give_up(&why.to_string()),
            Err(error) => self.give_up(&error.to_string()),
            Ok(_) => {}
        }
        let text = self.told();
        let mut status = self.setting.status();
        status.rounds = Some(text);
        status.rounds_undecided = self.unknown;
    }

    fn tell(&self, violated: &Violated, history: History, limits: &Limits<'_>) {
        let level = self.completing.level;
        let argument = argument(&history, level, self.completing.drift, limits);
        // Nobody listens only if the watch is over.
        let _ = self.violated.send(ViolatedRound {
            number: self.rounds.counts().rounds,
            level,
            anomaly: violated.anomalies.first().map_or("no order", |found| found.kind.name()),
            argument,
            history,
        });
    }

    fn give_up(&mut self, why: &str) {
        self.unknown += 1;
        let round = self.rounds.counts().rounds;
        let text = format!("the complete checker: round {round} was not decided: {why}");
        self.setting.output.note("round", &text);
    }

    fn told(&self) -> String {
        let counts = self.rounds.counts();
        let mut text = format!(
            "{}, {} transactions in {} rounds, {} carried",
            self.completing.level.name(),
            counts.txns,
            counts.rounds,
            counts.carried
        );
        if self.unknown > 0 {
            write!(text, ", {} rounds not decided", self.unknown).expect("a string grows");
        }
        let conditions = self.setting.hub.conditions.load(Ordering::Relaxed);
        if conditions > 0 {
            write!(text, ", without {conditions} operations by condition").expect("a string grows");
        }
        if counts.real_time > 0 {
            write!(text, ", {} rounds violate real time alone", counts.real_time)
                .expect("a string grows");
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

/// Why a part violates a level, as `isolde explain` tells it.
fn argument(history: &History, level: Level, drift: i64, limits: &Limits<'_>) -> Vec<String> {
    let index = Index::new(history);
    let options = Options { clock_drift: drift, ..Options::default() };
    let mut checking = Check::new(history, &index, limits).with_options(options);
    let decided = decision::decide(&mut checking, &[level], |_, _, _| {});
    let verdicts = decided.iter().map(|it| (it.0, &it.1));
    let shown = counterexamples((history, &index), verdicts, options, limits, &|_| {});
    let by_reading = checking.found();
    let findings = Findings { decided: &decided, counterexamples: &shown, by_reading, options };
    let report = Report::new(history, &index, ("round", "text"), &findings);
    let text = to_explanations(&report, Which::All);
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}
