//! What the target of `isolde elle` does with its bytes: ask everything about a history.
//!
//! Bytes that Jepsen's EDN reads are that history, others are choices of one. Every model and
//! every workload answers or says which operation does not fit.

use crate::structured::{self, Choices};
use isolde::Limits;
use isolde::elle::{
    ANOMALIES, Expectations, MODELS, Question, WORKLOADS, Workload, allowing_unwritten, answer,
};
use isolde_history::format::{self, Input, ReadOptions, parse_text};
use isolde_history::{History, Index, Source};
use isolde_report::{Prose, explain, tell};
use std::sync::atomic::{AtomicU32, Ordering};

const TXNS_MAX: usize = 12;
/// How often a check may ask whether to stop.
const STOP_AFTER: u32 = 2_000;

/// Takes bytes for a history and asks all that elle-cli can be asked.
pub fn asked(bytes: &[u8]) {
    let history = history_of(bytes);
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= STOP_AFTER;
    let limits = Limits { stop: &stop, ..Limits::NONE };
    for workload in WORKLOADS {
        for complete in [false, true] {
            let expectations =
                Expectations { complete, linearizable: complete, ..Expectations::default() };
            let Ok(found) = workload.check(&history, expectations, &limits) else { continue };
            let index = Index::new(&history);
            let prose = Prose::new(&history, &index, "file");
            for problem in &found.problems {
                tell(&prose, problem);
            }
            for anomaly in &found.anomalies {
                explain(&prose, anomaly);
            }
        }
    }
    of_elle(history, &limits);
}

fn of_elle(history: History, limits: &Limits<'_>) {
    let workloads = [Workload::RwRegister, Workload::ListAppend];
    if workloads.iter().all(|workload| workload.misfit(&history).is_some()) {
        return;
    }
    let (history, _) = allowing_unwritten(history);
    let index = Index::new(&history);
    let question = Question {
        models: MODELS.iter().collect(),
        anomalies: ANOMALIES.iter().collect(),
        explain: true,
    };
    let answer = answer(&history, &index, &question, limits);
    let prose = Prose::new(&history, &index, "file");
    for anomaly in &answer.anomalies {
        anomaly.name_in_elle(&history);
        explain(&prose, anomaly);
    }
}

fn history_of(bytes: &[u8]) -> History {
    let edn = format::by_name("jepsen-edn").expect("a format");
    let input = Input::File(Source::from_bytes("file", bytes));
    if let Ok(history) = format::read(edn, input, ReadOptions::default()) {
        return history;
    }
    let text = structured::history(&mut Choices(bytes), TXNS_MAX);
    parse_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}
