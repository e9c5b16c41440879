//! What a run was asked for, and how much of it was done when something ended it early.

use super::Arguments;
use super::record::Recorded;
use isolde_harness::Parameters;
use serde::Serialize;

/// What ends a run in its time, as `run.json` has it.
#[derive(Serialize)]
pub(super) struct Goal {
    /// Transactions to commit, in each round.
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<u32>,
    /// How long it may take, all rounds together.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// Whether one round follows another until a level is violated.
    until_violation: bool,
}

impl Goal {
    pub(super) fn of(arguments: &Arguments, parameters: Parameters) -> Goal {
        let Arguments { duration, until_violation, .. } = *arguments;
        // A duration takes the place of a number, but for rounds, which have both.
        let is_counted = until_violation || duration.is_none();
        Goal {
            transactions: is_counted.then_some(parameters.transactions),
            seconds: duration.map(|duration| duration.as_secs_f64()),
            until_violation,
        }
    }

    /// Whether this is less than was asked for.
    pub(super) fn is_more_than(&self, recorded: &Recorded) -> bool {
        let transactions =
            self.transactions.is_some_and(|asked| recorded.counts.committed < u64::from(asked));
        let seconds = self.transactions.is_none()
            && self.seconds.is_some_and(|asked| recorded.seconds < asked);
        self.until_violation || transactions || seconds
    }

    /// How much was done, as in "ended early, after".
    pub(super) fn done(&self, committed: u64, seconds: f64, rounds: u32) -> String {
        let round =
            if self.until_violation { format!(" of round {rounds}") } else { String::new() };
        match (self.transactions, self.seconds) {
            (Some(asked), _) => format!("{committed} of {asked} transactions{round}"),
            (None, asked) => format!("{seconds:.1} of {:.1} s", asked.unwrap_or_default()),
        }
    }
}
