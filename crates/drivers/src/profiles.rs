//! Which mechanisms each database has at each level, as its documents say.
//!
//! A row is text in the form of a profile file, so that this crate needs nothing of the
//! verifier, and a user's own file can replace any of it. Sources are the databases'
//! manuals, Jepsen's and Hermitage's findings, and Table I of [Li et al., ICDE 2024]. A
//! test of the command line reads every row.

use std::fmt::Write;

/// What one level of one database is promised to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileRow {
    /// The database, as its addresses begin, or in lower case if it cannot be driven.
    pub database: &'static str,
    /// The isolation setting, as claims call it.
    pub level: &'static str,
    /// What reads see.
    pub reads: &'static str,
    /// What locking reads and written rows see.
    pub dml: &'static str,
    /// What becomes of two writers.
    pub writers: &'static str,
    /// What is locked.
    pub locks: &'static str,
    /// How serializability is kept.
    pub certifier: &'static str,
    /// What that amounts to.
    pub effectively: &'static str,
    /// What is known and documented to be otherwise: a finding's name, and a sentence.
    pub deviations: &'static [(&'static str, &'static str)],
}

impl ProfileRow {
    /// The row as a profile file.
    pub fn text(&self) -> String {
        let settings = [
            ("reads", self.reads),
            ("dml", self.dml),
            ("writers", self.writers),
            ("locks", self.locks),
            ("certifier", self.certifier),
        ];
        let granularity = if self.locks == "database" { "database" } else { "row" };
        let mut text = String::new();
        for (name, value) in settings {
            let value = if value == "database" { "writes" } else { value };
            let _ = writeln!(text, "{name} = {value}");
        }
        let _ = writeln!(text, "granularity = {granularity}");
        if self.certifier == "timestamp-order" {
            let _ = writeln!(text, "skew = {CLOCK_OFFSET_MAX}");
        }
        for (name, sentence) in self.deviations {
            let _ = writeln!(text, "deviation = {name}: {sentence}");
        }
        text
    }
}

impl ProfileRow {
    /// The row as a line of the table in `docs/databases/profiles.md`.
    pub fn table_row(&self) -> String {
        let documented = match self.deviations {
            [] => "–".to_owned(),
            known => {
                known.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            }
        };
        format!(
            "| {} | `{}` | `{}` | `{}` | `{}` | `{}` | `{}` | {} | {documented} |",
            self.database,
            self.level,
            self.reads,
            self.dml,
            self.writers,
            self.locks,
            self.certifier,
            self.effectively
        )
    }
}

/// The row of a database's level.
pub fn profile(database: &str, level: &str) -> Option<&'static ProfileRow> {
    let of = |name: &str| PROFILES.iter().find(|row| row.database == name && row.level == level);
    // Several servers of one database are held to what one is, unless they have rows.
    of(database).or_else(|| of(database.split_once('+')?.0))
}

const fn row(
    database: &'static str,
    level: &'static str,
    [reads, dml, writers, locks, certifier]: [&'static str; 5],
    effectively: &'static str,
) -> ProfileRow {
    ProfileRow {
        database,
        level,
        reads,
        dml,
        writers,
        locks,
        certifier,
        effectively,
        deviations: &[],
    }
}

/// How far apart the clocks of nodes may be that go by timestamps; a node that is further off
/// ends itself.
const CLOCK_OFFSET_MAX: &str = "500ms";

const REPLICAS: &[(&str, &str)] = &[
    ("stale-read", "reads of another node may lag behind the one that took the write"),
    ("read-skew", "reads of another node may lag behind the one that took the write"),
    ("unexplained-read", "reads of another node may lag behind the one that took the write"),
    ("missed-row", "reads of another node may lag behind the one that took the write"),
];
const LOST_UPDATES: &[(&str, &str)] =
    &[("lost-update", "rows are written as they are, whatever the snapshot shows")];
/// [MariaDB, "MariaDB Galera Cluster Known Limitations"], and Jepsen's findings of 2026 with
/// `innodb_snapshot_isolation`, which was on.
pub(crate) const LOST_BETWEEN_NODES: &str = "an update of another node may come between what a \
    transaction reads and what it writes, and is lost then: MariaDB lists that among Galera's \
    known limitations (MDEV-38977)";
/// Seen of `DuckDB` 1.5.6; its documentation does not say so.
pub(crate) const LOST_IN_PLACE: &str = "DuckDB 1.5 does not compare changes in place (UPDATE, \
    upserts) with DELETE and UPDATE … RETURNING: of two concurrent ones of a row, one is lost";
const CROSS_NODE: &[(&str, &str)] = &[
    (
        "stale-read",
        "without wsrep_sync_wait a node may read before it has applied the last commits",
    ),
    ("read-skew", "without wsrep_sync_wait a node may read before it has applied the last commits"),
    (
        "unexplained-read",
        "without wsrep_sync_wait a node may read before it has applied the last commits",
    ),
    (
        "missed-row",
        "without wsrep_sync_wait a node may read before it has applied the last commits",
    ),
    ("lost-update", LOST_BETWEEN_NODES),
    ("lock-violation", "locks are those of one node"),
];

/// All of them. Columns: reads, DML, writers, locks, certifier.
#[rustfmt::skip]
pub static PROFILES: &[ProfileRow] = &[
    row("postgres", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("postgres", "repeatable-read", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("postgres", "serializable", ["first-request", "snapshot", "first-updater", "writes", "dangerous-structure"], "serializable"),
    ProfileRow { deviations: REPLICAS, ..row("postgres+standby", "read-committed", ["statement", "current", "any", "writes", "none"], "read committed, late on the standby") },
    ProfileRow { deviations: REPLICAS, ..row("postgres+standby", "repeatable-read", ["first-request", "snapshot", "first-updater", "writes", "none"], "parallel snapshot isolation") },
    row("opengauss", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("opengauss", "repeatable-read", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("opengauss", "serializable", ["first-request", "snapshot", "first-updater", "writes", "dangerous-structure"], "serializable"),
    row("mariadb", "read-uncommitted", ["unchecked", "current", "any", "writes", "none"], "read uncommitted"),
    row("mariadb", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    ProfileRow { deviations: LOST_UPDATES, ..row("mariadb", "repeatable-read", ["first-read", "current", "reported", "writes", "none"], "below monotonic atomic view once it writes") },
    row("mariadb", "repeatable-read-snapshot", ["first-read", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("mariadb", "serializable", ["item", "current", "any", "reads-and-writes", "cycles"], "serializable"),
    row("mysql", "read-uncommitted", ["unchecked", "current", "any", "writes", "none"], "read uncommitted"),
    row("mysql", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    ProfileRow { deviations: LOST_UPDATES, ..row("mysql", "repeatable-read", ["first-read", "current", "reported", "writes", "none"], "below monotonic atomic view once it writes") },
    row("mysql", "serializable", ["item", "current", "any", "reads-and-writes", "cycles"], "serializable"),
    row("aurora", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("aurora", "serializable", ["item", "current", "any", "reads-and-writes", "cycles"], "serializable"),
    row("polardb", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("polardb", "serializable", ["item", "current", "any", "reads-and-writes", "cycles"], "serializable"),
    ProfileRow { deviations: LOST_UPDATES, ..row("aurora", "repeatable-read", ["first-read", "current", "reported", "writes", "none"], "below monotonic atomic view once it writes") },
    ProfileRow { deviations: LOST_UPDATES, ..row("polardb", "repeatable-read", ["first-read", "current", "reported", "writes", "none"], "below monotonic atomic view once it writes") },
    ProfileRow { deviations: CROSS_NODE, ..row("galera", "read-committed", ["statement", "current", "any", "none", "none"], "read committed on each node") },
    ProfileRow { deviations: CROSS_NODE, ..row("galera", "repeatable-read", ["first-read", "current", "reported", "none", "none"], "snapshots of one node, lost updates") },
    ProfileRow { deviations: CROSS_NODE, ..row("galera", "repeatable-read-snapshot", ["first-read", "snapshot", "first-committer", "none", "none"], "snapshots of one node") },
    ProfileRow { deviations: CROSS_NODE, ..row("galera", "serializable", ["item", "current", "any", "none", "none"], "serializable on each node") },
    row("sqlserver", "read-committed", ["item", "current", "any", "writes", "none"], "read committed"),
    row("sqlserver", "read-committed-snapshot", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("sqlserver", "repeatable-read", ["item", "current", "any", "reads-and-writes", "none"], "repeatable read"),
    row("sqlserver", "snapshot", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("sqlserver", "serializable", ["item", "current", "any", "reads-and-writes", "cycles"], "serializable"),
    row("oracle", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("oracle", "serializable", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("saphana", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("saphana", "serializable", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("nuodb", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    row("nuodb", "consistent-read", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("tidb", "read-committed", ["statement", "current", "any", "writes", "none"], "monotonic atomic view"),
    ProfileRow { deviations: LOST_UPDATES, ..row("tidb", "repeatable-read", ["begin", "current", "reported", "writes", "none"], "snapshots, but rows are written as they are") },
    row("tidb", "optimistic", ["begin", "snapshot", "first-committer", "none", "none"], "snapshot isolation"),
    row("cockroach", "read-committed", ["item", "current", "any", "none", "none"], "monotonic atomic view"),
    row("cockroach", "repeatable-read", ["window", "snapshot", "as-read", "none", "none"], "snapshot isolation"),
    row("cockroach", "serializable", ["window", "snapshot", "any", "none", "timestamp-order"], "serializable"),
    row("yugabyte", "read-committed", ["item", "current", "any", "none", "none"], "monotonic atomic view"),
    row("yugabyte", "repeatable-read", ["window", "snapshot", "as-read", "none", "none"], "snapshot isolation"),
    row("yugabyte", "serializable", ["window", "snapshot", "any", "none", "cycles"], "serializable"),
    row("sqlite", "serializable", ["first-request", "snapshot", "any", "database", "cycles"], "serializable"),
    ProfileRow { deviations: &[("lost-update", LOST_IN_PLACE)], ..row("duckdb", "snapshot", ["first-request", "snapshot", "first-updater", "none", "none"], "snapshot isolation") },
    row("mongodb", "local", ["unchecked", "snapshot", "any", "none", "none"], "read uncommitted"),
    row("mongodb", "snapshot", ["window", "snapshot", "first-updater", "none", "none"], "snapshot isolation"),
    row("foundationdb", "serializable", ["window", "snapshot", "any", "none", "validation"], "strict serializable"),
    row("spanner", "serializable", ["item", "current", "any", "reads-and-writes", "cycles"], "external consistency"),
    row("oceanbase", "read-committed", ["statement", "current", "any", "writes", "none"], "read committed"),
    row("oceanbase", "repeatable-read", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("oceanbase", "serializable", ["first-request", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("singlestore", "read-committed", ["item", "current", "any", "writes", "none"], "read committed"),
    row("rocksdb", "pessimistic", ["item", "current", "any", "writes", "none"], "read committed; more by use"),
    row("rocksdb", "pessimistic-snapshot", ["window", "snapshot", "first-updater", "writes", "none"], "snapshot isolation"),
    row("rocksdb", "optimistic", ["window", "snapshot", "first-committer", "none", "none"], "snapshot isolation"),
    row("fjall", "serializable", ["window", "snapshot", "any", "none", "cycles"], "serializable"),
    row("redb", "serializable", ["begin", "snapshot", "any", "database", "cycles"], "serializable, one writer at a time"),
    row("redis", "watch", ["item", "snapshot", "any", "none", "cycles"], "serial"),
    row("redis", "lua", ["item", "snapshot", "any", "none", "cycles"], "serial"),
    ProfileRow { deviations: REPLICAS, ..row("redis+replica", "watch", ["item", "snapshot", "any", "none", "none"], "serial, late on the replica") },
    row("etcd", "linearizable-reads", ["item", "snapshot", "any", "none", "cycles"], "serial"),
    ProfileRow { deviations: REPLICAS, ..row("etcd", "serializable-reads", ["item", "snapshot", "any", "none", "none"], "serial, late on a follower") },
    row("cassandra", "lightweight-transactions", ["item", "current", "any", "none", "none"], "compare-and-set per partition"),
    row("sim", "read-uncommitted", ["unchecked", "snapshot", "any", "writes", "none"], "read uncommitted"),
    row("sim", "read-committed", ["statement", "snapshot", "any", "none", "none"], "read committed"),
    row("sim", "read-atomic", ["unchecked", "snapshot", "any", "none", "none"], "read atomic"),
    row("sim", "causal", ["unchecked", "snapshot", "any", "none", "none"], "causal"),
    row("sim", "snapshot-isolation", ["begin", "snapshot", "first-committer", "none", "none"], "snapshot isolation"),
    row("sim", "serializable", ["begin", "snapshot", "first-committer", "none", "validation"], "strict serializable"),
];
