//! Profiles of databases: every row can be read, is documented, stands for a claim, and accuses
//! nobody who keeps it.

use isolde::online::{Finding, NEVER, Options, Profile, Verifier, from_history};
use isolde_drivers::profiles::{PROFILES, ProfileRow, profile};
use isolde_harness::{Aborts, Distribution, Isolation, Parameters, Times, TxnKind, generate};

const PAGE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/databases/profiles.md"));

#[test]
fn every_profile_can_be_read() {
    for row in PROFILES {
        let read = Profile::NONE.parse(&row.text());
        let (_, deviations) =
            read.unwrap_or_else(|error| panic!("{} {}: {error}", row.database, row.level));
        assert_eq!(deviations.len(), row.deviations.len());
        let first = profile(row.database, row.level);
        assert_eq!(first, Some(row), "two rows for {} {}", row.database, row.level);
    }
}

#[test]
fn the_page_has_the_table_as_it_is() {
    let is_row = |line: &&str| line.starts_with("| ") && line.matches('|').count() == 10;
    let shown: Vec<&str> = PAGE.lines().filter(is_row).skip(1).collect();
    let expected: Vec<String> = PROFILES.iter().map(ProfileRow::table_row).collect();
    assert_eq!(shown, expected);
}

#[test]
fn every_setting_that_is_claimed_has_a_profile() {
    for target in isolde_drivers::TARGETS {
        let address = isolde_harness::Address::parse(target.schemes[0]).expect("a name");
        // Those that need a server say so.
        let Ok(database) = (target.open)(&address, &isolde_drivers::Stop::default()) else {
            continue;
        };
        for claim in database.claims() {
            let found = profile(target.schemes[0], &claim.isolation);
            assert!(found.is_some(), "{} {}", target.schemes[0], claim.isolation);
        }
    }
}

/// Which level of the simulated database does all that a profile promises, and whether also if
/// the times of every operation are told. Nothing waits in it, so locks, the instants of
/// statements and snapshots that come later than the begin can be played only where a
/// transaction is one interval; two-phase locks, one writer at a time and the order of
/// timestamps cannot be played at all.
fn player(row: &ProfileRow) -> Option<(Isolation, Times)> {
    if !matches!(row.locks, "none" | "writes") || row.certifier == "timestamp-order" {
        return None;
    }
    let isolation = match row.certifier {
        "none" => Isolation::SnapshotIsolation,
        _ => Isolation::Serializable,
    };
    let is_at_begin = matches!(row.reads, "unchecked" | "begin" | "window");
    let times =
        if is_at_begin && row.locks == "none" { Times::Operations } else { Times::Transactions };
    Some((isolation, times))
}

fn seeds(few: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("ISOLDE_SEEDS").ok().and_then(|text| text.parse().ok());
    0..wanted.unwrap_or(few)
}

/// What is found in a run of the simulated database without a bug.
fn found(profile: Profile, parameters: &Parameters) -> Vec<Finding> {
    let history = generate(parameters).expect("a history");
    let traced = from_history(&history).expect("times");
    let options = Options { unwritten: Some(traced.unwritten), ..Options::default() };
    let mut verifier = Verifier::new(profile, options);
    verifier.take(&traced.batch, NEVER);
    verifier.finish();
    verifier.take_findings()
}

/// `ISOLDE_SEEDS=100` tries more seeds than the usual few.
#[test]
fn no_profile_accuses_a_store_that_does_what_it_promises() {
    let mut played: Vec<(Profile, Isolation, Times)> = Vec::new();
    let mut names = Vec::new();
    for row in PROFILES {
        let Some((isolation, times)) = player(row) else { continue };
        names.push(format!("{}/{}", row.database, row.level));
        let (profile, _) = Profile::NONE.parse(&row.text()).expect("a profile");
        if !played.contains(&(profile, isolation, times)) {
            played.push((profile, isolation, times));
        }
        // Statements see what is committed when they are executed.
        let of_statements = (profile, Isolation::ReadCommitted, Times::Operations);
        let is_plain = row.locks == "none" && row.certifier == "none" && row.writers == "any";
        if matches!(row.reads, "statement" | "item") && is_plain && !played.contains(&of_statements)
        {
            played.push(of_statements);
        }
    }
    assert_eq!((names.len(), played.len()), PLAYED, "{names:?}");
    for (profile, isolation, times) in played {
        for seed in seeds(1) {
            for kind in [TxnKind::MiniTransaction, TxnKind::Mixed, TxnKind::BlindWrite] {
                let parameters = Parameters { isolation, times, kind, seed, ..SMALL };
                let findings = found(profile, &parameters);
                assert_eq!(findings, [], "{profile:?} {isolation:?} {kind:?} seed {seed}");
            }
        }
    }
}

/// How many rows can be played, and how many different profiles these are.
const PLAYED: (usize, usize) = (64, 30);

const SMALL: Parameters = Parameters {
    sessions: 8,
    transactions: 1000,
    operations: 4,
    read_share: 0.5,
    keys: 5,
    distribution: Distribution::Uniform,
    kind: TxnKind::MiniTransaction,
    isolation: Isolation::Serializable,
    times: Times::Operations,
    aborts: Aborts::Recorded,
    bug: None,
    anomaly: None,
    seed: 1,
};
