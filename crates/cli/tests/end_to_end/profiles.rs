//! Profiles of databases: every row can be read, is documented, and stands for a claim.

use isolde::online::Profile;
use isolde_drivers::profiles::{PROFILES, ProfileRow, profile};

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
        let Ok(database) = (target.open)(&address) else { continue };
        for claim in database.claims() {
            let found = profile(target.schemes[0], &claim.isolation);
            assert!(found.is_some(), "{} {}", target.schemes[0], claim.isolation);
        }
    }
}
