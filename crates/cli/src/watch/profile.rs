//! What a database is held to: by its name and setting, by the name of a level, or from a file.

use crate::exit::Failure;
use isolde::online::{Certifier, Dml, KnownDeviation, Locks, Profile, Reads, Writers};
use isolde_drivers::TARGETS;
use isolde_drivers::profiles::{PROFILES, ProfileRow, profile};
use std::path::Path;

/// A profile, what reports call it, and what is known to be otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedProfile {
    pub(super) name: String,
    pub(super) profile: Profile,
    pub(super) deviations: Vec<KnownDeviation>,
}

/// Levels, whatever the database, as most databases keep them.
const LEVELS: [(&str, Profile); 4] = [
    ("none", Profile::NONE),
    (
        "read-committed",
        Profile {
            reads: Reads::Statement,
            dml: Dml::Current,
            locks: Locks::Writes,
            ..Profile::NONE
        },
    ),
    ("snapshot-isolation", SNAPSHOT),
    ("serializable", Profile { certifier: Certifier::Cycles, ..SNAPSHOT }),
];

const SNAPSHOT: Profile = Profile {
    reads: Reads::FirstRequest,
    writers: Writers::FirstUpdater,
    locks: Locks::Writes,
    ..Profile::NONE
};

/// The profile of this name: a level, or a database and its isolation setting.
pub(super) fn named(name: &str) -> Result<NamedProfile, String> {
    if let Some((_, profile)) = LEVELS.iter().find(|(level, _)| *level == name) {
        return Ok(NamedProfile { name: name.to_owned(), profile: *profile, deviations: vec![] });
    }
    let known = name.split_once('/').and_then(|(database, level)| row(database, level));
    known.map(of_row).ok_or_else(|| {
        let levels = LEVELS.map(|(level, _)| level).join(", ");
        let database = name.split('/').next().unwrap_or(name);
        let settings: Vec<String> = (PROFILES.iter())
            .filter(|row| row.database == database)
            .map(|row| format!("{}/{}", row.database, row.level))
            .collect();
        let settings = match settings[..] {
            [] => "DATABASE/SETTING such as postgres/serializable".to_owned(),
            _ => settings.join(", "),
        };
        format!("expected a profile ({levels}, or {settings}), found `{name}`")
    })
}

/// What a target promises with this isolation setting.
pub(super) fn of(scheme: &str, isolation: &str) -> Result<NamedProfile, String> {
    row(scheme, isolation).map(of_row).ok_or_else(|| {
        format!("expected --profile: it is not known which mechanisms {scheme}/{isolation} has")
    })
}

/// The row of a database, by any name that its addresses may begin with.
fn row(scheme: &str, isolation: &str) -> Option<&'static ProfileRow> {
    let target = TARGETS.iter().find(|target| target.schemes.contains(&scheme));
    let others = target.map_or(&[][..], |target| target.schemes);
    let mut names = std::iter::once(scheme).chain(others.iter().copied());
    names.find_map(|name| profile(name, isolation))
}

fn of_row(row: &ProfileRow) -> NamedProfile {
    let (profile, deviations) = Profile::NONE.parse(&row.text()).expect("a test reads every row");
    NamedProfile { name: format!("{}/{}", row.database, row.level), profile, deviations }
}

/// The profile in a file.
pub(super) fn from_file(path: &Path) -> Result<NamedProfile, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("watch: {name}: cannot be read: {error}")))?;
    let (profile, deviations) = Profile::NONE
        .parse(&text)
        .map_err(|error| Failure::Usage(format!("watch: {name}: {error}")))?;
    let says_something = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
    if !text.lines().any(says_something) {
        let message = "expected settings such as `reads = statement`, found none";
        return Err(Failure::Usage(format!("watch: {name}: {message}")));
    }
    Ok(NamedProfile { name, profile, deviations })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_profile() {
        for row in PROFILES {
            let name = format!("{}/{}", row.database, row.level);
            let found = named(&name).unwrap_or_else(|message| panic!("{message}"));
            assert_eq!((found.name, found.deviations.len()), (name, row.deviations.len()));
        }
    }

    #[test]
    fn profiles_are_levels_or_settings_of_databases() {
        assert_eq!(named("snapshot-isolation").map(|found| found.profile), Ok(SNAPSHOT));
        let found = of("postgresql", "repeatable-read").map(|found| found.profile);
        assert_eq!(found, Ok(SNAPSHOT));
        assert!(of("postgres", "snapshot").is_err());
        let message = named("sqlite/wrong").expect_err("no such setting");
        assert!(message.contains("or sqlite/serializable), found `sqlite/wrong`"), "{message}");
    }
}
