//! Transactions of unknown outcome where there are reads by condition.
//!
//! Who read a value names its writer, so that a transaction which nobody read from can be left
//! out. What was found by condition names nobody: a sum, or a row that is missing, may be due to
//! any writer. So a level that is violated without such writers may still hold with some.

use crate::check::Check;
use crate::check::certify::accepted;
use crate::level::Level;
use crate::strong::unnamed_writers;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Verdict, Violated};
use isolde_certificate::Verifier;

impl Check<'_> {
    /// Whether reads by condition leave open who counts.
    pub(crate) fn has_open_outcomes(&self) -> bool {
        unnamed_writers(self.history, self.index).next().is_some()
    }

    /// What a violation that was found without such writers means for the level: it stands if the
    /// verifier accepts its proof, which leaves open who counts, or if no way helps.
    pub(crate) fn whoever_counts(&mut self, level: Level, violated: Violated) -> Verdict {
        if self.is_one_way || !self.has_open_outcomes() {
            return Verdict::Violated(violated);
        }
        let verifier = Verifier::new(self.history).with_clock_drift(self.options.clock_drift);
        let shown = self.refutation(level, &violated);
        if shown.is_ok_and(|shown| accepted(&verifier, shown).is_ok()) {
            return Verdict::Violated(violated);
        }
        let open = || Verdict::Unknown(Unknown::Unsupported(Obstacle::UnknownOutcomes));
        self.in_every_way(level).unwrap_or_else(open)
    }
}
