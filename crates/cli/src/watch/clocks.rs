//! Clocks of clients that are further apart than was promised: who they are, and by how much.

use super::monitor::Setting;
use super::narrative;
use crate::limits;
use isolde::online::{Contradiction, Time};
use std::time::Duration;

/// Contradictions that are told; the rest are counted.
const TOLD_MAX: u64 = 10;

/// What was told of them.
#[derive(Default)]
pub(super) struct Clocks {
    told: u64,
}

impl Clocks {
    /// A value was read before it was written, as the clocks have it.
    pub(super) fn contradict(&mut self, found: &Contradiction, setting: &Setting, origin: Time) {
        {
            let mut status = setting.status();
            status.drift_needed = status.drift_needed.max(found.drift);
        }
        self.told += 1;
        if self.told <= TOLD_MAX {
            let text = format!(
                "{}: their clocks are further apart than --clock-drift says, and this is no \
                 violation; the least that explains it is --clock-drift {}",
                narrative::contradiction(found, &setting.hub, origin),
                as_option(found.drift)
            );
            setting.output.note("clocks", &text);
        }
    }
}

/// A drift as `--clock-drift` takes it: in whole milliseconds, no less.
pub(super) fn as_option(drift: Time) -> String {
    let nanoseconds = drift.max(1).unsigned_abs();
    limits::typed(Duration::from_millis(nanoseconds.div_ceil(1_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_told_as_it_is_typed_and_never_too_small() {
        let told: Vec<String> = [1, 1_000_000, 1_000_001, 60_000_000_000].map(as_option).into();
        assert_eq!(told, ["1ms", "1ms", "2ms", "1m"]);
    }
}
