//! Takes events in order, lets them wait until they can be judged, forgets what is settled.

use super::counters::Counters;
use super::finding::Finding;
use super::profile::Profile;
use super::trace::{Batch, Cell, ClientId, Content, NEVER, Time};

/// What beside the profile decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How far the clients' clocks may differ, in nanoseconds. Every interval is widened
    /// by it on both sides.
    pub drift: Time,
    /// What items hold that nobody has written; unknown if it is not given, and then the
    /// first reads of an item are taken for it.
    pub unwritten: Option<Content>,
    /// Findings that are kept until they are fetched; more are counted only.
    pub findings_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { drift: 0, unwritten: None, findings_max: 1000 }
    }
}

/// See the module's documentation.
pub struct Verifier {
    profile: Profile,
    options: Options,
    counters: Counters,
    findings: Vec<Finding>,
}

impl Verifier {
    /// One that has seen nothing.
    pub fn new(profile: Profile, options: Options) -> Verifier {
        Verifier { profile, options, counters: Counters::default(), findings: Vec::new() }
    }

    /// What the item holds before everything. To be told before the item is used.
    pub fn initial(&mut self, cell: Cell) {
        let _ = cell;
    }

    /// Takes events in the order in which they were sent, such that everything sent
    /// before `watermark` has been taken, and judges what can be judged by then.
    pub fn take(&mut self, batch: &Batch, watermark: Time) {
        let _ = (batch, watermark);
    }

    /// Events of this client are missing from now on. Its open transaction may have
    /// committed, and what nobody is known to have written may be its work.
    pub fn set_aside(&mut self, client: ClientId) {
        let _ = client;
    }

    /// Judges everything that waits: nothing more will come.
    pub fn finish(&mut self) {
        self.take(&Batch::default(), NEVER);
    }

    /// What was found since this was last asked.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// What was verified, and what is kept.
    pub fn counters(&self) -> Counters {
        let _ = (self.profile, self.options);
        self.counters
    }
}
