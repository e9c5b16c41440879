//! The strongest levels that a run saw, told such that nobody takes what was not decided for
//! refuted.

use isolde::{Level, Verdict};
use isolde_report::Decided;

/// More levels than this are counted, and only the strongest of them named.
const NAMED_MAX: usize = 3;

/// Those of `levels` that may hold or not: neither decided nor implied by what is.
pub(super) fn undecided(levels: &[Level], decided: &[Decided]) -> Vec<&'static str> {
    let any = |others: &[Level], is: fn(&Verdict) -> bool| {
        decided.iter().any(|(level, verdict, _)| others.contains(level) && is(verdict))
    };
    let is_known = |level: Level| {
        let above = [level.stronger_than(), vec![level]].concat();
        let below = [level.weaker_than(), vec![level]].concat();
        any(&above, |verdict| matches!(verdict, Verdict::Satisfied(_)))
            || any(&below, |verdict| matches!(verdict, Verdict::Violated(_)))
    };
    levels.iter().filter(|&&level| !is_known(level)).map(|level| level.name()).collect()
}

/// What stands behind `strongest seen:`, or nothing if every level is violated.
pub(crate) fn to_text(strongest: &[&str], undecided: &[&str]) -> String {
    let seen = strongest.join(", ");
    if undecided.is_empty() {
        return seen;
    }
    let seen = if seen.is_empty() { "none" } else { &seen };
    let open: Vec<Level> = undecided.iter().filter_map(|name| Level::parse(name)).collect();
    let is_below = |level: &Level| level.stronger_than().iter().any(|above| open.contains(above));
    let named = match open.len() {
        ..=NAMED_MAX => undecided.join(", "),
        count => {
            let top = open.iter().filter(|&level| !is_below(level)).map(|level| level.name());
            format!("{count} levels up to {}", top.collect::<Vec<_>>().join(", "))
        }
    };
    format!("{seen} (not decided: {named})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::{Limit, Satisfied, Unknown, Violated};

    #[test]
    fn what_is_implied_by_a_verdict_is_decided() {
        let levels = [Level::AdyaReadCommitted, Level::SnapshotIsolation, Level::Serializable];
        let unknown = || Verdict::Unknown(Unknown::Limit(Limit::Time));
        let at = |level, verdict| vec![(level, verdict, 0.0)];
        let satisfied = Verdict::Satisfied(Satisfied::Definition);
        let holds = at(Level::SnapshotIsolation, satisfied);
        assert_eq!(undecided(&levels, &holds), ["serializable"]);
        let broken = at(Level::AdyaReadCommitted, Verdict::Violated(Violated::by(Vec::new())));
        assert!(undecided(&levels, &broken).is_empty());
        let open = at(Level::Serializable, unknown());
        assert_eq!(undecided(&levels, &open).len(), 3);
    }

    #[test]
    fn what_was_not_decided_stands_beside_what_holds() {
        let holds = ["read-uncommitted"];
        assert_eq!(to_text(&holds, &[]), "read-uncommitted");
        assert_eq!(to_text(&[], &[]), "");
        assert_eq!(
            to_text(&holds, &["serializable", "strict-serializable"]),
            "read-uncommitted (not decided: serializable, strict-serializable)"
        );
        let many = ["causal", "prefix", "snapshot-isolation", "serializable"];
        assert_eq!(to_text(&[], &many), "none (not decided: 4 levels up to prefix, serializable)");
    }
}
