//! From findings to verdicts: what the windows decide, what follows, and what the ordinary checker
//! says of the transactions of a finding.

use crate::access::Model;
use crate::event::TxnNumber;
use crate::evidence::{Fetched, Wanted, fetch, part, together};
use crate::hosts::{Hosts, connect};
use crate::options::Options;
use crate::parts::Pieces;
use crate::share::share;
use crate::survey::{Counted, Survey, survey};
use crate::worker::{Finding, verify as verify_model};
use isolde::{Check, Level, Limits, Verdict};
use isolde_history::{History, Index, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use timely::communication::Hooks;
use timely::communication::allocator::AllocatorBuilder;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::worker::{Config as WorkerConfig, Worker};

/// So many findings are explained together.
const EXPLAINED_MAX: usize = 8;
/// More transactions around a finding are not looked at together.
const AROUND_MAX: usize = 20_000;

/// What is said of a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ruling {
    /// It holds: by windows, or because this one of the levels that windows decide holds.
    Satisfied(String),
    /// It does not hold, and neither does it of the part that is shown.
    Violated,
    /// Why it is not decided.
    Unknown(String),
}

/// How large a history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Transactions, whatever their outcome.
    pub txns: u64,
    /// Those that committed.
    pub committed: u64,
    /// Those that aborted.
    pub aborted: u64,
    /// Operations.
    pub ops: u64,
}

/// What all workers found together.
pub struct Outcome {
    /// In the order of the levels.
    pub rulings: Vec<(Level, Ruling)>,
    /// How large the history is.
    pub counts: Counts,
    /// The transactions that show violations, if there are any.
    pub part: Option<History>,
}

/// Decides levels of a history in pieces, together with the other processes.
pub fn verify(pieces: &Pieces, options: &Options, hosts: &Hosts) -> Result<Outcome, String> {
    let (pieces, asked) = (pieces.clone(), options.clone());
    let work = move |worker: &mut Worker| judge(worker, &pieces, &asked);
    let guards = match hosts {
        Hosts::Threads(1) => timely::execute(timely::Config::thread(), work),
        Hosts::Threads(count) => timely::execute(timely::Config::process(*count), work),
        Hosts::Processes { addresses, process, patience } => {
            let sockets = connect(addresses, *process, *patience, &greeting(addresses, options))?;
            let hooks = Hooks::default();
            let builders =
                ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), hooks.spill.clone());
            let (builders, guard) =
                initialize_networking_from_sockets(builders, sockets, *process, 1, hooks)
                    .map_err(|error| format!("the processes cannot be connected: {error}"))?;
            let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
            timely::execute::execute_from(builders, Box::new(guard), WorkerConfig::default(), work)
        }
    }?;
    let mut outcomes = guards.join().into_iter();
    outcomes.next().ok_or("no worker ran")?.map_err(|error| format!("a worker ended: {error}"))?
}

/// What must be the same for all processes.
fn greeting(addresses: &[String], options: &Options) -> String {
    let levels: Vec<&str> = options.levels.iter().map(|level| level.name()).collect();
    format!(
        "isolde {}\nhosts {}\nlevels {}\nclock drift {}\n{}",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" "),
        levels.join(" "),
        options.clock_drift,
        options.subject,
    )
}

fn judge(worker: &mut Worker, pieces: &Pieces, options: &Options) -> Result<Outcome, String> {
    let (survey, counted) = survey(worker, pieces, options.clock_drift);
    if let Some(error) = &survey.error {
        return Err(error.clone());
    }
    let mut judge = Judge { worker, pieces, options, survey, counted, evidence: Vec::new() };
    let decided = judge.windows()?;
    let Survey { txns, committed, aborted, ops, .. } = judge.survey;
    let counts = Counts { txns, committed, aborted, ops };
    let evidence = together(std::mem::take(&mut judge.evidence));
    let part = (!evidence.is_empty()).then(|| part(&evidence));
    let violated = judge.violated(part.as_ref());
    let rulings = options
        .levels
        .iter()
        .map(|&level| (level, ruling(level, &decided, &violated, judge.survey.is_single)));
    Ok(Outcome { rulings: rulings.collect(), counts, part })
}

struct Judge<'a> {
    worker: &'a mut Worker,
    pieces: &'a Pieces,
    options: &'a Options,
    survey: Survey,
    counted: Vec<Counted>,
    evidence: Vec<Fetched>,
}

/// The levels that windows decide.
const DECIDED: [(Level, Model); 2] =
    [(Level::StrictSerializable, Model::Whole), (Level::StrongSnapshotIsolation, Model::Apart)];

impl Judge<'_> {
    /// Decides the levels that windows decide, as far as they matter.
    fn windows(&mut self) -> Result<Vec<(Level, Ruling)>, String> {
        let mut decided: Vec<(Level, Ruling)> = Vec::new();
        for (level, model) in DECIDED {
            let ruling = if let Some(reason) = self.survey.unfit.first() {
                Ruling::Unknown(reason.clone())
            } else if !self.survey.is_apart
                && decided.iter().any(|it| matches!(it.1, Ruling::Satisfied(_)))
            {
                // An instant within each transaction is one for its begin and its commit.
                Ruling::Satisfied(DECIDED[0].0.name().to_owned())
            } else {
                self.decide(level, model)?
            };
            decided.push((level, ruling));
        }
        Ok(decided)
    }

    fn decide(&mut self, level: Level, model: Model) -> Result<Ruling, String> {
        let told = (&self.survey, &self.counted[..]);
        let findings = verify_model(self.worker, self.pieces, told, model, self.options);
        let mut reason = None;
        let mut suspects: Vec<Vec<TxnNumber>> = Vec::new();
        for finding in findings {
            match finding {
                Finding::Cycle(events) => suspects.push(events.iter().map(|it| it.txn).collect()),
                Finding::Suspect(txns) => suspects.push(txns),
                Finding::Unread(error) => return Err(error),
                other => reason = reason.or(Some(self.why(&other))),
            }
        }
        if suspects.is_empty() {
            return Ok(match reason {
                None => Ruling::Satisfied(level.name().to_owned()),
                Some(reason) => Ruling::Unknown(reason),
            });
        }
        if self.shows(level, &suspects) {
            return Ok(Ruling::Violated);
        }
        let proposed = "writers of one key overlapped, and the order that was proposed for their \
                        versions explains less than there is";
        Ok(Ruling::Unknown(reason.unwrap_or_else(|| proposed.to_owned())))
    }

    fn why(&self, finding: &Finding) -> String {
        match finding {
            Finding::Repeated(_) => "values repeat, so that it is open who read from whom".into(),
            Finding::Mixed(_) => "a key is a list for one transaction and a register for \
                                  another"
                .into(),
            Finding::Memory => {
                let (length, txn) = self.survey.longest;
                format!(
                    "windows of time did not fit in memory: they are several times as long as \
                     the longest transaction, number {} of part {}, which took {:.3} s",
                    (txn & u64::from(u32::MAX)) + 1,
                    (txn >> 32) + 1,
                    Duration::from_nanos(length).as_secs_f64(),
                )
            }
            _ => "a dependency came after its window was decided".into(),
        }
    }

    /// Whether transactions of these findings, with those they read from, violate a level by
    /// themselves. If not, everything around the first of them may.
    fn shows(&mut self, level: Level, suspects: &[Vec<TxnNumber>]) -> bool {
        let mut txns: Vec<TxnNumber> =
            suspects.iter().take(EXPLAINED_MAX).flatten().copied().collect();
        txns.sort_unstable();
        txns.dedup();
        let wanted = Wanted { txns, ..Wanted::default() };
        let fetched = fetch(self.worker, self.pieces, &wanted);
        let during = part(&fetched);
        if self.is_violated(level, &during) {
            self.evidence.extend(fetched);
            return true;
        }
        let overlap = Time::try_from(self.survey.longest.0.saturating_mul(3)).unwrap_or(Time::MAX);
        let spans: Vec<_> = during.txns().map(|txn| during.txn_interval(txn)).collect();
        let invoked = spans.iter().map(|it| it.invoked).min().unwrap_or(0);
        let completed = spans.iter().map(|it| it.completed).filter(|&it| it != Time::MAX).max();
        let around =
            (invoked.saturating_sub(overlap), completed.unwrap_or(invoked).saturating_add(overlap));
        let wanted = Wanted { during: Some(around), ..Wanted::default() };
        let fetched = fetch(self.worker, self.pieces, &wanted);
        if fetched.len() > AROUND_MAX || !self.is_violated(level, &part(&fetched)) {
            return false;
        }
        self.evidence.extend(fetched);
        true
    }

    /// The first worker asks the ordinary checker and tells the others.
    fn is_violated(&mut self, level: Level, part: &History) -> bool {
        let own = match self.worker.index() {
            0 => vec![!self.check(part, &[level]).is_empty()],
            _ => Vec::new(),
        };
        share(self.worker, own).contains(&true)
    }

    /// The levels that are asked for and that a part violates.
    fn violated(&mut self, part: Option<&History>) -> Vec<Level> {
        let Some(part) = part else { return Vec::new() };
        let own: Vec<String> = match self.worker.index() {
            0 => self.check(part, &self.options.levels),
            _ => Vec::new(),
        };
        let all = share(self.worker, own);
        all.iter().filter_map(|name| Level::parse(name)).collect()
    }

    fn check(&self, part: &History, levels: &[Level]) -> Vec<String> {
        let index = Index::new(part);
        let is_full = self.options.is_full;
        let limits = Limits { stop: &is_full, is_memory: &is_full, ..Limits::NONE };
        let options =
            isolde::Options { clock_drift: self.options.clock_drift, ..isolde::Options::default() };
        let mut check = Check::new(part, &index, &limits).with_options(options);
        let is_violated = |level: &&Level| matches!(check.decide(**level), Verdict::Violated(_));
        levels.iter().filter(is_violated).map(|level| level.name().to_owned()).collect()
    }
}

/// What follows for a level from those that windows decide.
fn ruling(
    level: Level,
    decided: &[(Level, Ruling)],
    violated: &[Level],
    is_single: bool,
) -> Ruling {
    if violated.contains(&level) {
        return Ruling::Violated;
    }
    // Linearizability is strict serializability of single operations.
    let is_same = |it: Level| {
        it == level || level == Level::Linearizable && is_single && it == Level::StrictSerializable
    };
    for (known, ruling) in decided {
        if is_same(*known) {
            return ruling.clone();
        }
    }
    let holds = |it: &&(Level, Ruling)| matches!(it.1, Ruling::Satisfied(_));
    for (known, _) in decided.iter().filter(holds) {
        if known.weaker_than().contains(&level) {
            return Ruling::Satisfied(known.name().to_owned());
        }
    }
    for (known, ruling) in decided {
        if *ruling == Ruling::Violated && level.weaker_than().contains(known) {
            return Ruling::Violated;
        }
    }
    let unfit = decided.iter().find_map(|it| match &it.1 {
        Ruling::Unknown(reason) => Some(reason.clone()),
        _ => None,
    });
    Ruling::Unknown(unfit.unwrap_or_else(|| {
        "workers decide strict serializability and strong snapshot isolation, and what follows \
         from these or from the transactions that violate them"
            .into()
    }))
}
