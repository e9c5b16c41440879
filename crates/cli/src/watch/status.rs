//! How a watch is going, as data, and the same as text, JSON and metrics.

use super::narrative::Narrative;
use crate::exit;
use isolde::online::{Counters, Dependencies, Time};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What finds violations of levels.
pub(super) const COMPLETE_CHECKER: &str = "complete-checker";
/// Stories that are kept for the page.
pub(super) const STORIES_MAX: usize = 100;

/// How it is going.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    /// What is watched, by which profile.
    pub(super) title: String,
    pub(super) profile: String,
    pub(super) seconds: f64,
    pub(super) counters: Counters,
    /// Operations a second, lately.
    pub(super) rate: f64,
    /// How far the watch is behind the clients, in seconds of their time.
    pub(super) lag: f64,
    /// Events that wait.
    pub(super) waiting: usize,
    pub(super) clients: usize,
    pub(super) clients_open: usize,
    pub(super) stalled: Vec<String>,
    pub(super) malformed: u64,
    /// Clients that were ended, and of which something is missing.
    pub(super) broken: u64,
    pub(super) refused: u64,
    pub(super) untold: u64,
    /// Rows of a history that a read did not find, and of which it does not tell enough.
    pub(super) absences: u64,
    pub(super) held_back: u64,
    pub(super) sent_again: u64,
    /// The least drift of clocks that explains all contradictions, in nanoseconds.
    pub(super) drift_needed: Time,
    pub(super) unseen: u64,
    /// Bytes of memory that the process has.
    pub(super) memory: u64,
    /// How many violations of each name.
    pub(super) violations: BTreeMap<&'static str, u64>,
    /// The same of what is documented.
    pub(super) documented: BTreeMap<&'static str, u64>,
    /// The first of them: when they were found, and their story.
    pub(super) stories: Vec<Told>,
    /// What the complete checker says, round by round.
    pub(super) rounds: Option<String>,
    /// Rounds that it could not decide.
    pub(super) rounds_undecided: u64,
    pub(super) is_over: bool,
    /// What ended the watch before its time.
    pub(super) ended_by: Option<String>,
}

/// What a finding counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Violation,
    /// Of what is documented: no violation.
    Deviation,
}

impl Kind {
    /// In sentences.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Violation => "violation",
            Kind::Deviation => "documented deviation",
        }
    }

    /// In events and names of files.
    pub(super) fn event(self) -> &'static str {
        match self {
            Kind::Violation => "violation",
            Kind::Deviation => "deviation",
        }
    }
}

/// A finding among those of its kind, numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) kind: Kind,
    pub(super) number: u64,
}

/// A violation, or a documented deviation, as it was told.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told {
    pub(super) kind: Kind,
    pub(super) number: u64,
    /// Seconds after the begin of the watch.
    pub(super) at: f64,
    pub(super) name: &'static str,
    pub(super) mechanism: &'static str,
    pub(super) summary: String,
    pub(super) reasons: Vec<String>,
    /// Where the history around it is.
    pub(super) saved: Option<String>,
    pub(super) opinion: Option<String>,
}

impl Told {
    pub(super) fn new(mark: Mark, at: f64, story: Narrative) -> Told {
        let Narrative { name, mechanism, summary, reasons } = story;
        let Mark { kind, number } = mark;
        Told { kind, number, at, name, mechanism, summary, reasons, saved: None, opinion: None }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { kind: self.kind, number: self.number }
    }
}

/// Names with their counts.
fn named(counts: &BTreeMap<&'static str, u64>) -> String {
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    each.join(", ")
}

/// The kinds of dependencies by their names.
fn dependencies(counters: &Counters) -> [(&'static str, Dependencies); 3] {
    [
        ("write-read", counters.write_read),
        ("write-write", counters.write_write),
        ("read-write", counters.read_write),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "shares are shown with three digits")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Status {
    pub(super) fn violation_count(&self) -> u64 {
        self.violations.values().sum()
    }

    /// Whether there was nothing to verify.
    pub(super) fn is_empty(&self) -> bool {
        self.counters.operations == 0 || self.counters.committed == 0
    }

    /// Whether something came, or should have come, that was not looked at at all.
    pub(super) fn is_anything_lost(&self) -> bool {
        let unchecked = &self.counters.unchecked;
        unchecked.events_missing + unchecked.unplaced > 0
            || self.unseen + self.malformed + self.broken > 0
            || self.counters.disorder.after_end + self.counters.disorder.forgotten > 0
    }

    /// How the command ends.
    pub(super) fn outcome(&self, is_early: bool) -> exit::Status {
        if self.violation_count() > 0 {
            exit::Status::Violated
        } else if is_early
            || self.is_empty()
            || self.is_anything_lost()
            || self.counters.contradictions > 0
            || self.rounds_undecided > 0
        {
            exit::Status::Unknown
        } else {
            exit::Status::Satisfied
        }
    }

    /// How much of what was read was verified, in a line.
    fn verified(&self) -> String {
        let Counters { unchecked, cells_read, unpromised, .. } = self.counters;
        let seen =
            cells_read + unpromised + unchecked.untold + unchecked.changed + unchecked.unplaced;
        let verified = cells_read
            .saturating_sub(unchecked.events_missing + unchecked.first + unchecked.too_many);
        let mut text = match seen {
            0 => "nothing was read".to_owned(),
            _ if verified == seen => format!("all {seen} reads verified"),
            _ => format!("{verified} of {seen} reads verified"),
        };
        if self.broken + self.malformed > 0 {
            let (ended, s) = match self.broken.max(self.malformed) {
                1 => (1, ""),
                ended => (ended, "s"),
            };
            write!(text, "; NOT VERIFIED: the rest of {ended} stream{s}").expect("a string grows");
        }
        let disorder = self.counters.disorder;
        if disorder.after_end + disorder.forgotten > 0 {
            text.push_str("; NOT VERIFIED: what came too late");
        }
        if self.unseen > 0 {
            write!(text, "; NOT VERIFIED: {} cells without room in the memory", self.unseen)
                .expect("a string grows");
        }
        text
    }

    /// The share of dependencies that nothing decides.
    pub(super) fn uncertain(&self) -> f64 {
        let all = dependencies(&self.counters);
        let uncertain = all.iter().map(|(_, kind)| kind.uncertain).sum();
        share(uncertain, all.iter().map(|(_, kind)| kind.total()).sum())
    }

    fn drift_needed_seconds(&self) -> f64 {
        std::time::Duration::from_nanos(self.drift_needed.max(0).unsigned_abs()).as_secs_f64()
    }

    /// Everything that traces had wrong, or that was not judged.
    fn troubles(&self) -> Vec<(&'static str, u64)> {
        let Counters { disorder, unchecked, .. } = &self.counters;
        let all = [
            ("clocks set back", disorder.backwards),
            ("events without a time since then", disorder.unplaced),
            ("values read before they were written", self.counters.contradictions),
            ("events answered before they were sent", disorder.inverted),
            ("events twice", disorder.duplicates),
            ("events too late", disorder.late),
            ("transactions too late to be verified", disorder.forgotten),
            ("events after the end of their transaction", disorder.after_end),
            ("transactions without an end", disorder.unended),
            ("streams with messages that cannot be read", self.malformed),
            ("clients that were ended, what they did since is missing", self.broken),
            ("connections turned away", self.refused),
            ("stalled clients", self.stalled.len() as u64),
            ("reads not checked, events of a client were missing", unchecked.events_missing),
            ("reads not checked, what they saw is not told", unchecked.untold),
            ("rows to change not checked, what they held is not told", unchecked.changed),
            ("rows not found not checked, rows are changed by condition", self.absences),
            ("reads not checked, the first that was known of their row", unchecked.first),
            ("reads not checked, of unknown time", unchecked.unplaced),
            ("reads by condition not checked, too many rows meet it", unchecked.too_many),
            ("answers that tell no version", self.untold),
            ("cells of rows that the memory has no room for", self.unseen),
            ("violations not kept", self.counters.findings_dropped),
            ("rounds not decided", self.rounds_undecided),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// One line.
    pub(super) fn to_line(&self) -> String {
        let mut text = format!(
            "{:.0} s: {} committed, {} operations ({:.0}/s), {:.0} ms behind, {:.2} % uncertain, {} MB, {} clients",
            self.seconds,
            self.counters.committed,
            self.counters.operations,
            self.rate,
            self.lag * 1e3,
            self.uncertain() * 100.0,
            self.memory >> 20,
            self.clients_open,
        );
        match self.violation_count() {
            0 => text.push_str("; no violations"),
            count => write!(text, "; {count} VIOLATIONS").expect("a string grows"),
        }
        text
    }

    /// The lines that a terminal shows in place.
    pub(super) fn to_block(&self) -> String {
        let counters = &self.counters;
        let mut text = format!("{}, profile {}\n", self.title, self.profile);
        writeln!(
            text,
            "  {:.0} s   committed {}   aborted {}   unknown {}   clients {} of {}",
            self.seconds,
            counters.committed,
            counters.aborted,
            counters.lost,
            self.clients_open,
            self.clients
        )
        .expect("a string grows");
        writeln!(
            text,
            "  operations {} ({:.0}/s)   behind {:.0} ms   waiting {}   memory {} MB",
            counters.operations,
            self.rate,
            self.lag * 1e3,
            self.waiting,
            self.memory >> 20
        )
        .expect("a string grows");
        let each: Vec<String> = dependencies(counters)
            .iter()
            .map(|(name, kind)| {
                let uncertain = share(kind.uncertain, kind.total()) * 100.0;
                format!("{name} {} ({uncertain:.2} % uncertain)", kind.total())
            })
            .collect();
        writeln!(text, "  dependencies: {}", each.join(", ")).expect("a string grows");
        if let Some(rounds) = &self.rounds {
            writeln!(text, "  complete checker: {rounds}").expect("a string grows");
        }
        for (what, count) in self.troubles() {
            writeln!(text, "  {what}: {count}").expect("a string grows");
        }
        if self.counters.contradictions > 0 {
            let least = super::clocks::as_option(self.drift_needed);
            writeln!(
                text,
                "  clocks are further apart than promised: --clock-drift {least} explains it"
            )
            .expect("a string grows");
        }
        if !self.documented.is_empty() {
            let named = named(&self.documented);
            writeln!(text, "  documented deviations: {named}").expect("a string grows");
        }
        if let Some(by) = &self.ended_by {
            writeln!(text, "  ended early, after {:.1} s: {by}", self.seconds)
                .expect("a string grows");
        }
        if self.violation_count() == 0 {
            text.push_str("  no violations\n");
        } else {
            let named = named(&self.violations);
            writeln!(text, "  violations: {named}").expect("a string grows");
        }
        text
    }

    /// The last word.
    pub(super) fn to_summary(&self) -> String {
        let mut text = format!("{}\n{}", self.verified(), self.to_block());
        if self.is_empty() {
            text.push_str("  nothing was committed, so nothing was verified\n");
        }
        let kept = &self.counters;
        writeln!(
            text,
            "  kept in memory at the end: {} versions, {} uses of rows, {} transactions, {} items",
            kept.versions, kept.row_uses, kept.txns, kept.items
        )
        .expect("a string grows");
        text
    }

    /// Everything, for the page and for programs.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let counters = &self.counters;
        let kinds: serde_json::Map<String, serde_json::Value> = dependencies(counters)
            .into_iter()
            .map(|(name, kind)| {
                let value = json!({
                    "certain": kind.certain,
                    "by_content": kind.by_content,
                    "by_locks": kind.by_locks,
                    "by_first_updater": kind.by_first_updater,
                    "uncertain": kind.uncertain,
                });
                (name.to_owned(), value)
            })
            .collect();
        json!({
            "title": self.title,
            "profile": self.profile,
            "seconds": self.seconds,
            "events": counters.events,
            "operations": counters.operations,
            "cells_read": counters.cells_read,
            "cells_written": counters.cells_written,
            "rate": self.rate,
            "lag_seconds": self.lag,
            "committed": counters.committed,
            "aborted": counters.aborted,
            "unknown": counters.lost,
            "clients": self.clients,
            "clients_open": self.clients_open,
            "waiting": self.waiting,
            "held_back": self.held_back,
            "sent_again": self.sent_again,
            "memory_bytes": self.memory,
            "dependencies": kinds,
            "uncertain_share": self.uncertain(),
            "kept": {
                "versions": counters.versions,
                "row_uses": counters.row_uses,
                "transactions": counters.txns,
                "graph_edges": counters.graph_edges,
                "items": counters.items,
            },
            "clock_drift_needed_seconds": self.drift_needed_seconds(),
            "troubles": self.troubles().into_iter().collect::<BTreeMap<_, _>>(),
            "stalled": self.stalled,
            "violations": self.violations,
            "documented": self.documented,
            "stories": self.stories,
            "complete_checker": self.rounds,
            "is_over": self.is_over,
            "ended_by": self.ended_by,
        })
    }

    /// The same for Prometheus.
    pub(super) fn to_metrics(&self) -> String {
        let mut out = Metrics(String::new());
        let counters = &self.counters;
        out.family("isolde_events_total", "counter", "events of traces taken");
        out.sample("isolde_events_total", "", counters.events);
        out.family("isolde_operations_total", "counter", "reads and writes verified");
        out.sample("isolde_operations_total", "", counters.operations);
        out.family("isolde_transactions_total", "counter", "transactions by outcome");
        for (outcome, count) in [
            ("committed", counters.committed),
            ("aborted", counters.aborted),
            ("unknown", counters.lost),
        ] {
            out.sample("isolde_transactions_total", &format!("outcome=\"{outcome}\""), count);
        }
        out.family("isolde_dependencies_total", "counter", "dependencies by what decides them");
        for (name, kind) in dependencies(counters) {
            for (decided, count) in [
                ("intervals", kind.certain),
                ("content", kind.by_content),
                ("locks", kind.by_locks),
                ("first-updater", kind.by_first_updater),
                ("nothing", kind.uncertain),
            ] {
                let labels = format!("kind=\"{name}\",decided_by=\"{decided}\"");
                out.sample("isolde_dependencies_total", &labels, count);
            }
        }
        out.family("isolde_violations_total", "counter", "violations by name");
        for name in isolde::online::NAMES {
            let count = self.violations.get(name.name()).copied().unwrap_or(0);
            let labels =
                format!("name=\"{}\",mechanism=\"{}\"", name.name(), name.mechanism().name());
            out.sample("isolde_violations_total", &labels, count);
        }
        let is_level = |name: &str| isolde::online::NAMES.iter().all(|known| known.name() != name);
        for (name, count) in self.violations.iter().filter(|(name, _)| is_level(name)) {
            let labels = format!("name=\"{name}\",mechanism=\"{COMPLETE_CHECKER}\"");
            out.sample("isolde_violations_total", &labels, count);
        }
        out.family("isolde_troubles_total", "counter", "what traces had wrong or was not judged");
        for (what, count) in self.troubles() {
            out.sample("isolde_troubles_total", &format!("what=\"{what}\""), count);
        }
        let help = "the least --clock-drift that explains values read before they were written";
        out.family("isolde_clock_drift_needed_seconds", "gauge", help);
        out.sample("isolde_clock_drift_needed_seconds", "", self.drift_needed_seconds());
        out.family("isolde_lag_seconds", "gauge", "how far the watch is behind the clients");
        out.sample("isolde_lag_seconds", "", self.lag);
        out.family("isolde_waiting_events", "gauge", "events that wait to be verified");
        out.sample("isolde_waiting_events", "", self.waiting);
        out.family("isolde_clients_open", "gauge", "clients that are connected");
        out.sample("isolde_clients_open", "", self.clients_open);
        out.family("isolde_memory_bytes", "gauge", "memory of the watch");
        out.sample("isolde_memory_bytes", "", self.memory);
        out.family("isolde_kept", "gauge", "what is kept to judge by");
        for (what, count) in [
            ("versions", counters.versions),
            ("row_uses", counters.row_uses),
            ("transactions", counters.txns),
            ("graph_edges", counters.graph_edges),
            ("items", counters.items),
        ] {
            out.sample("isolde_kept", &format!("what=\"{what}\""), count);
        }
        out.0
    }
}

/// Text in Prometheus' exposition format.
struct Metrics(String);

impl Metrics {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string grows");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        }
        .expect("a string grows");
    }
}

/// The memory of this process, if the system tells.
pub(super) fn memory() -> u64 {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_was_found_and_what_was_not_judged() {
        let mut status = Status { title: "x".into(), seconds: 2.0, ..Status::default() };
        status.counters.operations = 10;
        status.counters.committed = 4;
        status.counters.unchecked.untold = 3;
        let clean = "2 s: 4 committed, 10 operations (0/s), 0 ms behind, 0.00 % uncertain, 0 MB, 0 clients; no violations";
        assert_eq!(status.to_line(), clean);
        status.violations.insert("stale-read", 2);
        assert!(status.to_line().ends_with("; 2 VIOLATIONS"));
        let block = status.to_block();
        let end = "  reads not checked, what they saw is not told: 3\n  violations: stale-read 2\n";
        assert!(block.ends_with(end), "{block}");
        let metrics = status.to_metrics();
        let line = "isolde_violations_total{name=\"stale-read\",mechanism=\"consistent-read\"} 2";
        assert!(metrics.lines().any(|known| known == line), "{metrics}");
        assert!(metrics.lines().all(|line| line.starts_with('#') || line.contains(' ')));
    }
}
