//! Windows of time: which of them an event lies in.
//!
//! `docs/windows.md` proves that a history without a dependency against real time has a cycle
//! only if it has one within a short span of time: three times the longest event where each
//! transaction is one event, four times where begins and commits are told apart. Windows that
//! overlap by this span therefore miss no cycle, and each is decided by itself.

use isolde_history::Time;
use std::ops::RangeInclusive;

/// How many times the longest event a cycle spans at most, if each transaction is one event.
pub const SPANS_WHOLE: u32 = 3;
/// The same where begins and commits are events of their own.
pub const SPANS_APART: u32 = 4;

/// Windows from time to time, each overlapping the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    origin: Time,
    step: u64,
    overlap: u64,
}

impl Windows {
    /// Windows from `origin` on, so that each span of time that is at most `overlap` long lies
    /// in one of them. A window has `step` more, at least as much as it overlaps: then nothing
    /// is in more than three.
    pub fn new(origin: Time, overlap: u64, step: u64) -> Windows {
        Windows { origin, overlap, step: step.max(overlap).max(1) }
    }

    /// The windows that contain everything between two times, which are none before the origin.
    pub fn containing(&self, low: Time, high: Time) -> RangeInclusive<u64> {
        let last = self.since_origin(low) / self.step;
        let too_late = self.since_origin(high).saturating_sub(self.step + self.overlap - 1);
        too_late.div_ceil(self.step)..=last
    }

    /// Before this time, nothing is in a window of this number or a later one.
    pub fn start(&self, window: u64) -> Time {
        let start = i128::from(self.origin) + i128::from(window) * i128::from(self.step);
        Time::try_from(start).unwrap_or(Time::MAX)
    }

    fn since_origin(&self, time: Time) -> u64 {
        u64::try_from(i128::from(time) - i128::from(self.origin)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_span_lies_in_a_window_and_nothing_in_more_than_three() {
        for (overlap, step) in [(0, 0), (1, 1), (3, 0), (3, 5), (4, 9)] {
            let windows = Windows::new(-7, overlap, step);
            for low in -7..60 {
                for length in 0..=overlap {
                    let high = low + length.cast_signed();
                    let all: Vec<u64> = windows.containing(low, high).collect();
                    assert!((1..=3).contains(&all.len()), "{windows:?} {low} {high} {all:?}");
                    for window in all {
                        let end = windows.start(window + 1) + overlap.cast_signed();
                        assert!(windows.start(window) <= low && high < end);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_longer_than_a_window_lies_in_none() {
        assert!(Windows::new(0, 3, 3).containing(0, 6).is_empty());
        assert_eq!(Windows::new(0, 3, 3).containing(0, 5), 0..=0);
    }
}
