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

/// The profile in a file: settings on top of nothing, or of the profile that `base` names.
pub(super) fn from_file(path: &Path) -> Result<NamedProfile, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("watch: {name}: cannot be read: {error}")))?;
    let says_something = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
    if !text.lines().any(says_something) {
        let message = "expected settings such as `reads = statement`, found none";
        return Err(Failure::Usage(format!("watch: {name}: {message}")));
    }
    on_base(&text)
        .map(|(profile, deviations)| NamedProfile { name: name.clone(), profile, deviations })
        .map_err(|message| Failure::Usage(format!("watch: {name}: {message}")))
}

/// Settings on top of those that `base = NAME` names, if a line says so.
fn on_base(text: &str) -> Result<(Profile, Vec<KnownDeviation>), String> {
    let is_base = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == "base");
    let mut bases = text.lines().enumerate().filter(|(_, line)| is_base(line));
    let Some((place, line)) = bases.next() else {
        return Profile::NONE.parse(text).map_err(|error| error.to_string());
    };
    if let Some((place, line)) = bases.next() {
        return Err(format!("line {}: expected `base` once, found `{}`", place + 1, line.trim()));
    }
    let (_, name) = line.split_once('=').unwrap_or(("", line));
    let base = named(name.trim()).map_err(|message| format!("line {}: {message}", place + 1))?;
    // An empty line in its place, so that the others keep their numbers.
    let lines: Vec<&str> = text.lines().map(|line| if is_base(line) { "" } else { line }).collect();
    let (profile, own) =
        base.profile.parse(&lines.join("\n")).map_err(|error| error.to_string())?;
    let mut deviations = base.deviations;
    deviations.retain(|known| own.iter().all(|other| other.name != known.name));
    deviations.extend(own);
    Ok((profile, deviations))
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
    fn a_file_replaces_single_settings_of_its_base() {
        let text = "# ours\nbase = mysql/repeatable-read\nlocks = none\n\
                    deviation = stale-read: a replica may lag\n";
        let base = named("mysql/repeatable-read").expect("a row");
        let (profile, deviations) = on_base(text).expect("a profile");
        assert_eq!(profile, Profile { locks: Locks::None, ..base.profile });
        let names: Vec<&str> = deviations.iter().map(|known| known.name.name()).collect();
        assert_eq!(names, ["lost-update", "stale-read"]);
        let refused = |text: &str| on_base(text).expect_err("an error");
        assert!(refused("\nbase = nowhere").starts_with("line 2: expected a profile ("));
        assert!(refused("base = serializable\nlock = none").starts_with("line 2: expected reads"));
        assert_eq!(
            refused("base = serializable\nbase = read-committed"),
            "line 2: expected `base` once, found `base = read-committed`"
        );
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
