//! What each level means to the verifier, and which implies which.
//!
//! Written down a second time on purpose: the checker has tables of its own, and a
//! mistake in one of the two shows as a certificate that is refused.
//! `docs/definitions.md` has the definitions.

use EventKind::{Begin, Commit};

/// A level that proofs can be about.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) name: &'static str,
    pub(crate) meaning: Meaning,
}

/// What must exist for the level to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// A commit order.
    Commits(Commits),
    /// An order of begins and commits.
    Events(Events),
    /// Version orders without a cycle that has fewer than two anti-dependencies.
    Parallel,
}

/// A level of one commit order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commits {
    pub(crate) reads: Reads,
    /// Whether the order contains session order.
    pub(crate) sessions: bool,
    pub(crate) visible: Visible,
}

/// What reads of a level have to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Nothing.
    Ignored,
    /// A read that saw no counted transaction is ignored.
    Any,
    /// Each saw a final write of a counted transaction, or the initial state.
    Final,
}

/// Which transactions a reader should have seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible {
    Nothing,
    /// What an earlier operation of the reader read from.
    EarlierRead,
    /// One step of session order or reads-from.
    OneStep,
    /// Any number of such steps.
    AnySteps,
    Session,
    ReadThenSession,
    SessionThenRead,
    ReadThenSessionThenRead,
    /// What precedes the reader in the commit order, for items that it also writes.
    BeforeUpdate,
    /// What it reads from, and what precedes it and writes a common key.
    CommonWriter,
}

/// A level of begins and commits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Events {
    /// Whether begin and commit are one event.
    pub(crate) one: bool,
    /// Where version order leads to, from the commit of the earlier writer.
    pub(crate) overwriter: EventKind,
    pub(crate) sessions: bool,
    /// Real time, from an event of one kind to an event of the other.
    pub(crate) real_time: &'static [(EventKind, EventKind)],
    pub(crate) rows: Rows,
    /// Whether transactions of several operations are outside of the definition.
    pub(crate) single: bool,
}

/// What rows of a read by condition have to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Whom they were read from.
    ReadsFrom,
    /// Also that nobody overwrote them meanwhile.
    Protected,
    /// And whether they meet the condition.
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Begin,
    Commit,
}

const SNAPSHOT: Events = Events {
    one: false,
    overwriter: Begin,
    sessions: false,
    real_time: &[],
    rows: Rows::Exact,
    single: false,
};
const SERIAL: Events = Events { one: true, ..SNAPSHOT };
const STRICT: Events = Events { sessions: true, real_time: &[(Commit, Begin)], ..SERIAL };

const fn commits(name: &'static str, reads: Reads, sessions: bool, visible: Visible) -> Level {
    Level { name, meaning: Meaning::Commits(Commits { reads, sessions, visible }) }
}

const fn events(name: &'static str, events: Events) -> Level {
    Level { name, meaning: Meaning::Events(events) }
}

#[rustfmt::skip]
static LEVELS: &[Level] = &[
    commits("read-uncommitted", Reads::Ignored, false, Visible::Nothing),
    commits("adya-read-committed", Reads::Final, false, Visible::Nothing),
    commits("monotonic-atomic-view", Reads::Final, false, Visible::EarlierRead),
    commits("read-committed", Reads::Final, true, Visible::EarlierRead),
    commits("read-atomic", Reads::Final, true, Visible::OneStep),
    commits("read-your-writes", Reads::Any, true, Visible::Session),
    commits("monotonic-reads", Reads::Any, true, Visible::ReadThenSession),
    commits("monotonic-writes", Reads::Any, true, Visible::SessionThenRead),
    commits("writes-follow-reads", Reads::Any, true, Visible::ReadThenSessionThenRead),
    commits("causal", Reads::Final, true, Visible::AnySteps),
    commits("cursor-stability", Reads::Final, false, Visible::BeforeUpdate),
    commits("update-atomic", Reads::Final, false, Visible::CommonWriter),
    events("prefix", Events { overwriter: Commit, sessions: true, rows: Rows::Protected, ..SNAPSHOT }),
    Level { name: "parallel-snapshot-isolation", meaning: Meaning::Parallel },
    events("repeatable-read", Events { rows: Rows::ReadsFrom, ..SERIAL }),
    events("snapshot-isolation", SNAPSHOT),
    events("generalized-snapshot-isolation",
        Events { real_time: &[(Begin, Commit), (Commit, Commit)], ..SNAPSHOT }),
    events("session-snapshot-isolation", Events { sessions: true, ..SNAPSHOT }),
    events("prefix-consistent-snapshot-isolation",
        Events { sessions: true, real_time: &[(Begin, Commit), (Commit, Commit)], ..SNAPSHOT }),
    events("strong-snapshot-isolation",
        Events {
            sessions: true,
            real_time: &[(Begin, Commit), (Commit, Commit), (Commit, Begin)],
            ..SNAPSHOT
        }),
    events("serializable", SERIAL),
    events("session-serializable", Events { sessions: true, ..SERIAL }),
    events("strict-serializable", STRICT),
    events("linearizable", Events { single: true, ..STRICT }),
];

/// The first implies the second; the others follow from these.
#[rustfmt::skip]
static IMPLICATIONS: &[(&str, &str)] = &[
    ("adya-read-committed", "read-uncommitted"),
    ("monotonic-atomic-view", "adya-read-committed"),
    ("read-committed", "monotonic-atomic-view"),
    ("read-atomic", "read-committed"),
    ("read-atomic", "read-your-writes"),
    ("causal", "read-atomic"),
    ("causal", "monotonic-reads"),
    ("causal", "monotonic-writes"),
    ("causal", "writes-follow-reads"),
    ("cursor-stability", "adya-read-committed"),
    ("update-atomic", "cursor-stability"),
    ("update-atomic", "monotonic-atomic-view"),
    ("parallel-snapshot-isolation", "update-atomic"),
    ("prefix", "causal"),
    ("snapshot-isolation", "parallel-snapshot-isolation"),
    ("session-snapshot-isolation", "snapshot-isolation"),
    ("session-snapshot-isolation", "prefix"),
    ("generalized-snapshot-isolation", "snapshot-isolation"),
    ("prefix-consistent-snapshot-isolation", "session-snapshot-isolation"),
    ("prefix-consistent-snapshot-isolation", "generalized-snapshot-isolation"),
    ("strong-snapshot-isolation", "prefix-consistent-snapshot-isolation"),
    ("repeatable-read", "cursor-stability"),
    ("serializable", "snapshot-isolation"),
    ("serializable", "repeatable-read"),
    ("session-serializable", "serializable"),
    ("session-serializable", "session-snapshot-isolation"),
    ("strict-serializable", "session-serializable"),
    ("linearizable", "strict-serializable"),
];

impl Level {
    pub(crate) fn named(name: &str) -> Option<&'static Level> {
        LEVELS.iter().find(|level| level.name == name)
    }

    /// Whether every history that satisfies this level satisfies `weaker`.
    pub(crate) fn implies(&self, weaker: &str) -> bool {
        let mut reached = vec![self.name];
        let mut next = 0;
        while let Some(&from) = reached.get(next) {
            next += 1;
            for &(_, to) in IMPLICATIONS.iter().filter(|row| row.0 == from) {
                if !reached.contains(&to) {
                    reached.push(to);
                }
            }
        }
        reached.contains(&weaker)
    }

    /// What reads have to say.
    pub(crate) fn reads(&self) -> Reads {
        match self.meaning {
            Meaning::Commits(commits) => commits.reads,
            Meaning::Events(_) | Meaning::Parallel => Reads::Final,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implications_name_levels_and_go_one_way() {
        for &(stronger, weaker) in IMPLICATIONS {
            let (stronger, weaker) =
                (Level::named(stronger).unwrap(), Level::named(weaker).unwrap());
            assert!(stronger.implies(weaker.name) && !weaker.implies(stronger.name));
        }
    }
}
