//! Which databases speak MySQL's protocol, and what each promises.
//!
//! InnoDB [the manuals of MySQL and MariaDB, "Consistent Nonlocking Reads"]: READ COMMITTED
//! has a snapshot for every read. REPEATABLE READ has one for all reads of a transaction,
//! taken with the first of them; but UPDATE and DELETE work on the latest rows, snapshot or
//! not, unless MariaDB's `innodb_snapshot_isolation` refuses that with error 1020.
//! SERIALIZABLE locks what it reads.
//!
//! Galera [Codership, "Isolation Levels"] certifies writes between nodes, first committer
//! wins, and calls that snapshot isolation; a node may be behind the others. What it certifies
//! are rows that were written at the same time, not rows that changed since they were read:
//! those are left to `innodb_snapshot_isolation`, which misses some in a cluster, as MariaDB's
//! page "MariaDB Galera Cluster Known Limitations" says.

use super::driver;
use crate::Target;
use crate::profiles::LOST_BETWEEN_NODES;
use isolde_harness::{Claim, SnapshotPoint};

/// A database of this protocol.
pub(super) struct Flavour {
    /// Its name, unless the server knows better.
    pub(super) name: &'static str,
    pub(super) port: u16,
    /// What is started if there is no address.
    pub(super) managed: Option<Managed>,
    pub(super) claims: fn(Snapshots) -> Vec<Claim>,
}

/// What can be started here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Managed {
    OneServer,
    Cluster,
}

/// Whether the server knows `innodb_snapshot_isolation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Snapshots {
    Unknown,
    /// It does, and this is what its users get.
    Known {
        is_on: bool,
    },
}

/// The setting whose snapshots are kept to in writes, too.
pub(super) const WITH_SNAPSHOT: &str = "repeatable-read-snapshot";

/// How MariaDB and MySQL are reached.
pub(crate) const MARIADB: Target = Target {
    schemes: &["mariadb", "mysql"],
    title: "MariaDB or MySQL; a private MariaDB unless one is given",
    example: "mariadb://user:password@host:3306/database?ssl-mode=required",
    open: |address, stop| driver::open(&FLAVOURS[0], address, stop),
};

/// How a Galera cluster is reached.
pub(crate) const GALERA: Target = Target {
    schemes: &["galera"],
    title: "MariaDB with Galera; a private cluster of three unless one is given",
    example: "galera://user:password@host1:3306,host2:3306/database",
    open: |address, stop| driver::open(&FLAVOURS[1], address, stop),
};

/// How TiDB is reached.
pub(crate) const TIDB: Target = Target {
    schemes: &["tidb"],
    title: "TiDB",
    example: "tidb://user:password@host:4000/database?tidb_txn_mode=optimistic",
    open: |address, stop| driver::open(&FLAVOURS[2], address, stop),
};

pub(super) static FLAVOURS: [Flavour; 3] = [
    Flavour { name: "MySQL", port: 3306, managed: Some(Managed::OneServer), claims: innodb },
    Flavour { name: "MariaDB Galera", port: 3306, managed: Some(Managed::Cluster), claims: galera },
    Flavour { name: "TiDB", port: 4000, managed: None, claims: tidb },
];

const LATEST: &str = "UPDATE and DELETE see the latest rows and not those of the transaction's \
                      snapshot, so updates get lost";
const LOSSES: &[&str] = &["lost-update", "read-skew"];

/// Adya's repeatable read forbids what snapshots permit.
const SKEW: &str = "reads see a snapshot and lock nothing, so each of two transactions may miss \
                    what the other writes; serializable prevents that";
const SKEWS: &[&str] = &["write-skew", "read-only-transaction-anomaly"];

fn innodb(snapshots: Snapshots) -> Vec<Claim> {
    // MySQL has no setting for it, nor has an old MariaDB.
    let help = match snapshots {
        Snapshots::Known { .. } => "innodb_snapshot_isolation=ON refuses that",
        Snapshots::Unknown => "SELECT … FOR UPDATE prevents that",
    };
    let mut claims = vec![
        Claim::new("read-uncommitted", &["read-uncommitted"], SnapshotPoint::EachRequest),
        Claim::new("read-committed", &["monotonic-atomic-view"], SnapshotPoint::EachRequest),
        Claim::new("repeatable-read", &["repeatable-read"], SnapshotPoint::FirstRequest)
            .deviates_by("repeatable-read", SKEWS, SKEW)
            .deviates("repeatable-read", &format!("{LATEST}; {help}")),
    ];
    if snapshots != Snapshots::Unknown {
        // The snapshot is taken with the first read, which may come after a write: so
        // nothing is promised about real time.
        claims.push(Claim::new(
            WITH_SNAPSHOT,
            &["session-snapshot-isolation"],
            SnapshotPoint::FirstRequest,
        ));
    }
    claims.push(Claim::new("serializable", &["serializable"], SnapshotPoint::EachRequest));
    claims
}

fn galera(snapshots: Snapshots) -> Vec<Claim> {
    let local = "locks hold on one node alone, and writes of another are certified without \
                 regard to what was read";
    // In a cluster the setting is not enough, by MariaDB's own account.
    let help = match snapshots {
        Snapshots::Known { .. } => "; innodb_snapshot_isolation=ON refuses most of that",
        Snapshots::Unknown => "",
    };
    let mut claims = vec![
        Claim::new("read-committed", &["monotonic-atomic-view"], SnapshotPoint::EachRequest),
        Claim::new("repeatable-read", &["snapshot-isolation"], SnapshotPoint::FirstRequest)
            .deviates("snapshot-isolation", &format!("{LATEST}{help}")),
    ];
    if snapshots != Snapshots::Unknown {
        claims.push(
            Claim::new(WITH_SNAPSHOT, &["snapshot-isolation"], SnapshotPoint::FirstRequest)
                .deviates_by("snapshot-isolation", LOSSES, LOST_BETWEEN_NODES),
        );
    }
    claims.push(
        Claim::new("serializable", &["serializable"], SnapshotPoint::EachRequest)
            .deviates("serializable", local),
    );
    claims
}

/// From its documentation: snapshots by timestamps of the begin; pessimistic transactions,
/// the default, write to the latest rows as MySQL's do.
fn tidb(_: Snapshots) -> Vec<Claim> {
    vec![
        Claim::new("read-committed", &["monotonic-atomic-view"], SnapshotPoint::EachRequest),
        Claim::new("repeatable-read", &["snapshot-isolation"], SnapshotPoint::Begin).deviates(
            "snapshot-isolation",
            "pessimistic transactions update the latest rows and not those of the snapshot; \
             tidb_txn_mode=optimistic does not",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::profile;
    use isolde_harness::Found;

    fn named<'a>(names: &'a [&'a str]) -> Found<'a> {
        Found { names, has_refused_inserts: false }
    }

    /// MySQL was advised to use a setting of MariaDB.
    #[test]
    fn only_servers_that_know_a_setting_are_advised_to_use_it() {
        let advice = |snapshots| {
            let claims = innodb(snapshots);
            let claim = claims.iter().find(|it| it.isolation == "repeatable-read");
            let claim = claim.expect("InnoDB has repeatable read");
            let known = claim.deviation("repeatable-read", named(&["lost-update"]));
            known.expect("updates get lost").text.rsplit_once("; ").expect("advice").1.to_owned()
        };
        let setting = "innodb_snapshot_isolation=ON refuses that";
        assert_eq!(advice(Snapshots::Known { is_on: false }), setting);
        assert_eq!(advice(Snapshots::Unknown), "SELECT … FOR UPDATE prevents that");
    }

    /// A run called a violation what a watch called documented.
    #[test]
    fn runs_and_watches_of_galera_know_the_same_lost_updates() {
        let claims = galera(Snapshots::Known { is_on: true });
        for level in ["repeatable-read", WITH_SNAPSHOT] {
            let claim = claims.iter().find(|claim| claim.isolation == level).expect(level);
            let known = claim.deviation("snapshot-isolation", named(&["lost-update"]));
            let row = profile("galera", level).expect(level);
            let watched = row.deviations.iter().find(|(name, _)| *name == "lost-update");
            assert!(known.is_some() && watched.is_some(), "{level}");
        }
        let snapshot = &claims[2];
        let known = |found: &str| snapshot.deviation("snapshot-isolation", named(&[found]));
        let text = known("lost-update").map(|deviation| deviation.text.as_str());
        assert_eq!(text, Some(LOST_BETWEEN_NODES));
        // Nobody documents these.
        for found in ["long-fork", "aborted-read"] {
            assert_eq!(known(found), None, "{found}");
        }
    }
}
