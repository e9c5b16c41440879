//! What is known of a check while it goes on, for when a limit is reached.
//!
//! The thread that waits cannot ask the one that works, so whatever is found is left here.

use crate::certificate::Slot;
use isolde::{Level, Limit, Satisfied, Unknown, Verdict, implied};
use isolde_history::History;
use isolde_report::{Decided, Report, Size, UnloggedReport};
use std::sync::{Mutex, OnceLock};

/// What a check has found so far.
#[derive(Default)]
pub(crate) struct PartialResult {
    read: OnceLock<Read>,
    decided: Mutex<Vec<Decided>>,
    pub(crate) certificate: Slot,
}

/// A history that was read.
struct Read {
    size: Size,
    unlogged: Option<UnloggedReport>,
    format: &'static str,
    /// The levels that are asked for.
    levels: Vec<Level>,
}

impl PartialResult {
    /// The history was read, and these levels are asked for.
    pub(crate) fn note_read(&self, history: &History, format: &'static str, levels: &[Level]) {
        let (size, unlogged) = (Size::of(history), UnloggedReport::of(history));
        let read = Read { size, unlogged, format, levels: levels.to_vec() };
        // A history is read once; a second time it would be the same.
        let _ = self.read.set(read);
    }

    /// A level was decided, as far as it could.
    pub(crate) fn note(&self, level: Level, verdict: &Verdict, seconds: f64) {
        let verdict = without_evidence(verdict);
        let mut decided = self.decided.lock().expect("nobody panics while holding it");
        decided.retain(|known| known.0 != level);
        decided.push((level, verdict, seconds));
    }

    /// What is decided so far.
    pub(crate) fn known(&self) -> Vec<Decided> {
        // A thread that wanted too much memory is held wherever it was, also in here.
        self.decided.try_lock().map_or_else(|_| Vec::new(), |it| it.clone())
    }

    /// The levels that are asked for, if that is known.
    pub(crate) fn levels(&self) -> Option<&[Level]> {
        self.read.get().map(|read| &*read.levels)
    }

    /// Verdicts for all levels: what is not decided is unknown because of the limit.
    pub(crate) fn decided(&self, levels: &[Level], reached: Limit) -> Vec<Decided> {
        let decided = self.known();
        let verdict = |&level: &Level| {
            let known = decided.iter().find(|known| known.0 == level).cloned();
            let known = known.filter(|known| !matches!(known.1, Verdict::Unknown(_)));
            let limit = || Verdict::Unknown(Unknown::Limit(reached));
            let others = decided.iter().map(|(level, verdict, _)| (*level, verdict));
            known.unwrap_or_else(|| (level, implied(level, others).unwrap_or_else(limit), 0.0))
        };
        levels.iter().map(verdict).collect()
    }

    /// A report on these verdicts of the history of this name, without what would take the
    /// history itself.
    pub(crate) fn report(&self, name: &str, decided: &[Decided], reached: Limit) -> Report {
        let read = self.read.get();
        let names = (name, read.map_or("not read", |read| read.format));
        let size = read.map_or(Size::NOTHING, |read| read.size);
        let mut report = Report::of_verdicts(names, size, decided, &reached.to_string());
        report.note_unlogged(read.and_then(|read| read.unlogged.clone()));
        report
    }
}

/// A verdict that needs no history to be told.
fn without_evidence(verdict: &Verdict) -> Verdict {
    let mut verdict = match verdict {
        Verdict::Satisfied(Satisfied::Order(_) | Satisfied::Events(_)) => {
            Verdict::Satisfied(Satisfied::Order(Vec::new()))
        }
        other => other.clone(),
    };
    if let Verdict::Violated(violated) = &mut verdict {
        violated.anomalies.clear();
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::Violated;
    use isolde_history::format::parse_text;

    #[test]
    fn what_follows_from_what_was_found_is_told_too() {
        let partial_result = PartialResult::default();
        let levels = [Level::ReadCommitted, Level::Causal, Level::Prefix, Level::Serializable];
        partial_result.note(Level::Causal, &Verdict::Violated(Violated::by(Vec::new())), 1.0);
        partial_result.note(
            Level::ReadAtomic,
            &Verdict::Satisfied(Satisfied::Order(Vec::new())),
            1.0,
        );
        let names =
            |decided: Vec<Decided>| decided.iter().map(|it| it.1.name()).collect::<Vec<_>>();
        let told = names(partial_result.decided(&levels, Limit::Memory));
        assert_eq!(told, ["satisfied", "violated", "violated", "unknown"]);
    }

    #[test]
    fn what_was_found_before_the_time_was_up_is_told() {
        let partial_result = PartialResult::default();
        let history = parse_text("A: w(x,1)\nB: r(x,1) w(y,1)\n").expect("a history");
        let levels = [Level::ReadCommitted, Level::Causal, Level::Serializable];
        partial_result.note_read(&history, "text", &levels);
        partial_result.note(
            Level::ReadCommitted,
            &Verdict::Violated(Violated::by(Vec::new())),
            1.0,
        );
        partial_result.note(Level::Causal, &Verdict::Unknown(Unknown::Limit(Limit::Turn)), 1.0);
        partial_result.note(Level::Causal, &Verdict::Satisfied(Satisfied::Order(Vec::new())), 1.0);
        let report =
            partial_result.report("h", &partial_result.decided(&levels, Limit::Time), Limit::Time);
        let told: Vec<(&str, &str)> = report
            .levels
            .iter()
            .map(|it| (it.verdict, it.reason.as_deref().unwrap_or("")))
            .collect();
        let expected = [
            ("violated", "the time limit was reached before it was explained"),
            ("satisfied", ""),
            ("unknown", "the time limit was reached"),
        ];
        assert_eq!(told, expected);
        assert_eq!(report.history, Size::of(&history));
        assert_eq!((&*report.format, report.notes.len()), ("text", 0));
    }

    #[test]
    fn without_a_history_nothing_is_said_of_it() {
        let partial_result = PartialResult::default();
        assert_eq!(partial_result.levels(), None);
        let report = partial_result.report(
            "h",
            &partial_result.decided(&[Level::Causal], Limit::Memory),
            Limit::Memory,
        );
        assert_eq!((report.history.transactions, &*report.format), (0, "not read"));
    }
}
