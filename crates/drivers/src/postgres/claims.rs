//! Which databases speak PostgreSQL's protocol, and what each promises.
//!
//! PostgreSQL [its manual, chapter "Transaction Isolation"]: Read Committed sees a new
//! snapshot with every statement, and the commit of a transaction makes all of it visible
//! at once. Repeatable Read is snapshot isolation; the snapshot is taken with the first
//! statement after BEGIN, and contains everything committed before. Serializable is the
//! same, and refuses what no serial order explains; that order need not be the one of
//! real time.

use super::driver;
use crate::Target;
use isolde_harness::{Claim, SnapshotPoint};

/// A database of this protocol.
pub(super) struct Flavour {
    pub(super) name: &'static str,
    pub(super) port: u16,
    pub(super) database: &'static str,
    pub(super) default_isolation: &'static str,
    pub(super) claims: fn(Servers) -> Vec<Claim>,
}

/// What an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Servers {
    /// All of them take writes.
    Writable,
    /// Some follow others, and take reads alone.
    WithStandby,
}

/// How PostgreSQL is reached.
pub(crate) const POSTGRES: Target = Target {
    schemes: &["postgres", "postgresql"],
    title: "PostgreSQL; a private server unless one is given",
    example: "postgres://user:password@host:5432/database?sslmode=require",
    open: |address, stop| driver::open(&FLAVOURS[0], address, stop),
};

/// How CockroachDB is reached.
pub(crate) const COCKROACH: Target = Target {
    schemes: &["cockroach", "cockroachdb"],
    title: "CockroachDB",
    example: "cockroach://user@host:26257/database",
    open: |address, stop| driver::open(&FLAVOURS[1], address, stop),
};

/// How YugabyteDB is reached.
pub(crate) const YUGABYTE: Target = Target {
    schemes: &["yugabyte", "yugabytedb"],
    title: "YugabyteDB, by its YSQL interface",
    example: "yugabyte://user:password@host:5433/database",
    open: |address, stop| driver::open(&FLAVOURS[2], address, stop),
};

pub(super) static FLAVOURS: [Flavour; 3] = [
    Flavour {
        name: "PostgreSQL",
        port: 5432,
        database: "postgres",
        default_isolation: "read-committed",
        claims: postgres,
    },
    Flavour {
        name: "CockroachDB",
        port: 26257,
        database: "defaultdb",
        default_isolation: "serializable",
        claims: cockroach,
    },
    Flavour {
        name: "YugabyteDB",
        port: 5433,
        database: "yugabyte",
        default_isolation: "read-committed",
        claims: yugabyte,
    },
];

/// What its manual says of concurrent changes names UPDATE, DELETE and locking reads alone.
const UPSERT_OF_DELETED: &str = "where rows are deleted: INSERT ... ON CONFLICT of a row that a \
    concurrent transaction has deleted makes a new row instead of failing, and the transaction \
    sees both";

/// Seen of `PostgreSQL` 15; its manual does not say so.
const REFUSED_INSERT: &str = "where inserts found their row there already: INSERT ... ON CONFLICT \
    DO NOTHING does not count as a read of the row that it finds, so whoever deletes or changes \
    it is not seen to come later";

fn postgres(servers: Servers) -> Vec<Claim> {
    let read_committed =
        Claim::new("read-committed", &["monotonic-atomic-view"], SnapshotPoint::EachRequest);
    match servers {
        Servers::Writable => vec![
            read_committed,
            Claim::new(
                "repeatable-read",
                &["strong-snapshot-isolation"],
                SnapshotPoint::FirstRequest,
            )
            .deviates("strong-snapshot-isolation", UPSERT_OF_DELETED),
            Claim::new(
                "serializable",
                &["serializable", "strong-snapshot-isolation"],
                SnapshotPoint::FirstRequest,
            )
            .deviates_by_refused_inserts("serializable", REFUSED_INSERT)
            .deviates("strong-snapshot-isolation", UPSERT_OF_DELETED),
        ],
        // A standby replays the log in its order, which is not the order in which
        // commits became visible on the primary. It refuses to be serializable.
        Servers::WithStandby => vec![
            read_committed,
            Claim::new(
                "repeatable-read",
                &["parallel-snapshot-isolation"],
                SnapshotPoint::FirstRequest,
            ),
        ],
    }
}

/// From its documentation: serializable, with stale reads neither within a session nor of
/// keys that others have written, but no order of real time between unrelated keys.
fn cockroach(_: Servers) -> Vec<Claim> {
    vec![
        Claim::new("read-committed", &["monotonic-atomic-view"], SnapshotPoint::EachRequest),
        Claim::new("repeatable-read", &["snapshot-isolation"], SnapshotPoint::FirstRequest),
        Claim::new("serializable", &["serializable"], SnapshotPoint::FirstRequest),
    ]
}

fn yugabyte(_: Servers) -> Vec<Claim> {
    vec![
        Claim::new("read-committed", &["monotonic-atomic-view"], SnapshotPoint::EachRequest),
        Claim::new("repeatable-read", &["snapshot-isolation"], SnapshotPoint::FirstRequest),
        Claim::new("serializable", &["serializable"], SnapshotPoint::FirstRequest),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_harness::Found;

    #[test]
    fn serializable_is_known_to_miss_refused_inserts_and_nothing_else() {
        let claims = postgres(Servers::Writable);
        let claim = claims.last().expect("serializable");
        let known = |has_refused_inserts| {
            let found = Found { names: &["no-version-order"], has_refused_inserts };
            claim.deviation("serializable", found).map(|it| it.text.as_str())
        };
        assert_eq!(known(true), Some(REFUSED_INSERT));
        assert_eq!(known(false), None);
    }
}
