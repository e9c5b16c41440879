//! What Elle calls an anomaly that was found, and which other anomalies that is as well.
//!
//! A cycle is named by its edges and may have a second name by what it does, such as
//! `lost-update`. Where only cases show that there is a cycle, each of them has names, and an
//! anomaly is there in any case if every case shows it.

use super::anomalies::{ElleAnomaly, elle_name};
use crate::anomaly::{Anomaly, AnomalyKind, Cases, Evidence};
use hashbrown::HashSet;
use isolde_history::History;

/// What is an anomaly of other names as well: Elle's implications, those of Adya's
/// generalized snapshot isolation, and that a cycle with a name is a cycle.
#[rustfmt::skip]
static IMPLIED: &[(&str, &[&str])] = &[
    ("G0", &["G1c", "G0-process", "PL-1-cycle-exists"]),
    ("G0-process", &["G1c-process", "G0-realtime", "strong-session-PL-1-cycle-exists"]),
    ("G0-realtime", &["G1c-realtime", "strong-PL-1-cycle-exists"]),
    ("G1a", &["G1"]),
    ("G1b", &["G1"]),
    ("G1c", &["G1", "G1c-process", "PL-2-cycle-exists", "PL-2.99-cycle-exists",
              "PL-SI-cycle-exists", "PL-3-cycle-exists"]),
    ("G1c-process", &["G1-process", "G1c-realtime", "strong-session-PL-2-cycle-exists",
                      "strong-session-snapshot-isolation-cycle-exists",
                      "strong-session-serializable-cycle-exists"]),
    ("G1c-realtime", &["G1-realtime", "strong-PL-2-cycle-exists",
                       "strong-snapshot-isolation-cycle-exists", "PL-SS-cycle-exists"]),
    ("G1", &["G1-process"]),
    ("G1-process", &["G1-realtime"]),
    ("G-single-item", &["G-single", "G-single-item-process", "G-nonadjacent-item"]),
    ("G-single-item-process", &["G-single-process", "G-single-item-realtime",
                                "G-nonadjacent-item-process"]),
    ("G-single-item-realtime", &["G-single-realtime", "G-nonadjacent-item-realtime"]),
    ("G-single", &["G-nonadjacent", "GSIb", "G-SIb", "G-single-process"]),
    ("G-single-process", &["G-nonadjacent-process", "G-single-realtime"]),
    ("G-single-realtime", &["G-nonadjacent-realtime"]),
    ("G-nonadjacent-item", &["G-nonadjacent", "G2-item", "G-nonadjacent-item-process"]),
    ("G-nonadjacent-item-process", &["G-nonadjacent-process", "G2-item-process",
                                     "G-nonadjacent-item-realtime"]),
    ("G-nonadjacent-item-realtime", &["G2-item-realtime", "G-nonadjacent-realtime"]),
    ("G-nonadjacent", &["G2", "G-nonadjacent-process", "PL-SI-cycle-exists"]),
    ("G-nonadjacent-process", &["G2-process", "G-nonadjacent-realtime",
                                "strong-session-snapshot-isolation-cycle-exists"]),
    ("G-nonadjacent-realtime", &["G2-realtime", "strong-snapshot-isolation-cycle-exists"]),
    ("G2-item", &["G2", "G2-item-process", "PL-2.99-cycle-exists"]),
    ("G2-item-process", &["G2-process", "G2-item-realtime"]),
    ("G2-item-realtime", &["G2-realtime"]),
    ("G2", &["G2-process", "PL-3-cycle-exists"]),
    ("G2-process", &["G2-realtime", "strong-session-serializable-cycle-exists"]),
    ("G2-realtime", &["PL-SS-cycle-exists"]),
    ("G-SIb", &["G-SI"]),
    ("GSIa", &["GSI"]),
    ("GSIb", &["GSI"]),
    ("dirty-update", &["G1a"]),
    ("future-read", &["G1c"]),
    ("incompatible-order", &["G1a"]),
    ("lost-update", &["G2-item", "write-skew"]),
    ("write-skew", &["G2"]),
];

impl Anomaly {
    /// The name that Elle files it under.
    pub fn name_in_elle(&self, history: &History) -> &'static str {
        let by_kind = elle_name(self.kind);
        let by_edges = match (self.kind, &self.evidence) {
            (AnomalyKind::LostUpdate, _) => None,
            (_, Evidence::Cases(cases)) => of_all(history, cases),
            _ => self.elle_name(history),
        };
        let known = by_edges.and_then(|name| ElleAnomaly::parse(&name));
        known.map_or(by_kind, |anomaly| anomaly.name)
    }
}

/// The name of the cycles of all cases, if it is one.
fn of_all(history: &History, cases: &Cases) -> Option<String> {
    let mut names = cases.cycles.iter().map(|cycle| cycle.elle_name(history));
    let first = names.next()??;
    let is_same =
        cases.cycles.len() == cases.count && names.all(|name| name.as_ref() == Some(&first));
    is_same.then_some(first)
}

/// Whether an anomaly that was found is one of this name, or shows that there is one.
pub(super) fn shows(history: &History, found: &Anomaly, wanted: &str) -> bool {
    let by_what_it_does: &[&str] = match found.kind {
        // Whichever of the two came first, the other replaced it without having seen it.
        AnomalyKind::LostUpdate => &["lost-update", "G-cursor", "G-single-item"],
        AnomalyKind::WriteSkew => &["write-skew"],
        _ => &[],
    };
    if by_what_it_does.iter().any(|name| is_implied(name, wanted)) {
        return true;
    }
    match &found.evidence {
        Evidence::Operations { .. } => is_implied(elle_name(found.kind), wanted),
        Evidence::Cycle(cycle) => {
            cycle.elle_name(history).is_some_and(|name| is_implied(&name, wanted))
        }
        Evidence::Cases(cases) => {
            cases.cycles.len() == cases.count
                && cases.cycles.iter().all(|cycle| {
                    cycle.elle_name(history).is_some_and(|name| is_implied(&name, wanted))
                })
        }
    }
}

/// Whether an anomaly of the one name is one of the other.
fn is_implied<'a>(name: &'a str, wanted: &str) -> bool {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut open: Vec<&'a str> = vec![name];
    while let Some(name) = open.pop() {
        if name == wanted {
            return true;
        }
        if seen.insert(name) {
            let rows = IMPLIED.iter().filter(|row| row.0 == name);
            open.extend(rows.flat_map(|row| row.1));
        }
    }
    false
}
