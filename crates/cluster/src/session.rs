//! One session: its transactions in their order, as they come from the last to the first.
//!
//! Times nearly always say the same, and then nothing is told. A client whose clock was set back
//! is found out: its transactions keep their order.

use crate::access::Stamp;
use crate::event::TxnNumber;
use crate::key::{Teller, Told};
use isolde_history::Time;
use std::collections::BTreeMap;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Session {
    /// Those that what is to come may overlap.
    recent: BTreeMap<TxnNumber, Stamp>,
    /// The first in session order of all that came, and of those that are recent no more.
    first: Option<Stamp>,
    first_left: Option<Stamp>,
}

impl Session {
    pub(crate) fn take(&mut self, stamp: Stamp, teller: &mut Teller<'_>) {
        let mut follows = |earlier: &Stamp, later: &Stamp| {
            let edge = teller.model.follows(earlier, later);
            if !edge.is_implied() {
                teller.told.push(Told::Edge(edge));
            }
        };
        let later = self.recent.range(stamp.txn + 1..).next().map(|it| it.1);
        let earlier = self.recent.range(..stamp.txn).next_back().map(|it| it.1);
        if let Some(later) = later.or(self.first.as_ref().filter(|it| it.txn > stamp.txn)) {
            follows(&stamp, later);
        }
        for earlier in earlier.into_iter().chain(&self.first_left) {
            if earlier.txn < stamp.txn {
                follows(earlier, &stamp);
            }
        }
        self.recent.insert(stamp.txn, stamp);
        keep_first(&mut self.first, stamp);
    }

    pub(crate) fn forget(&mut self, watermark: Time) {
        let first_left = &mut self.first_left;
        self.recent.retain(|_, it| {
            let is_recent = it.invoked() <= watermark;
            if !is_recent {
                keep_first(first_left, *it);
            }
            is_recent
        });
    }
}

fn keep_first(first: &mut Option<Stamp>, stamp: Stamp) {
    if first.is_none_or(|it| stamp.txn < it.txn) {
        *first = Some(stamp);
    }
}
