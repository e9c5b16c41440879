//! Notes about sources of order that a check was told to do without.
//!
//! Lists and told orders are part of what levels mean. Without them a level that holds is one
//! that what remains does not refute, and nobody may take that for the level itself. Session
//! order and real time are part of what some levels mean; these are refuted or unknown.

use crate::NoteReport;
use isolde::Options;
use isolde_history::{History, OpKind};

/// What was left out such that verdicts mean something else.
pub(crate) fn notes(history: &History, options: Options) -> Vec<NoteReport> {
    let mut notes = Vec::new();
    if !options.sources.lists && history.op_kinds().contains(&OpKind::ReadList) {
        notes.push(NoteReport {
            name: "without-lists",
            meaning: "the order in which lists show their elements was left out: a level that is \
                      satisfied is only not refuted by what remains",
            advice: ADVICE,
            example: None,
        });
    }
    if !options.sources.database_order {
        notes.push(NoteReport {
            name: "without-given",
            meaning: "what the database told about its execution was left out: a level that is \
                      satisfied is only not refuted by what remains",
            advice: ADVICE,
            example: None,
        });
    }
    if !options.sources.session {
        notes.push(NoteReport {
            name: "without-session",
            meaning: "the order of each session was left out: levels that it is part of are \
                      violated or unknown",
            advice: ADVICE,
            example: None,
        });
    }
    if !options.sources.real_time && history.has_times() {
        notes.push(NoteReport {
            name: "without-real-time",
            meaning: "the times of clients were left out: levels of real time are violated or \
                      unknown",
            advice: ADVICE,
            example: None,
        });
    }
    notes
}

const ADVICE: &str = "for what the levels mean, check again without `--without`";
