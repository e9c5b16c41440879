//! What a database is held to: by its name and setting, by a name, or from a file.

use crate::exit::Failure;
use isolde::online::{Certifier, Dml, Granularity, Locks, Profile, Reads, Writers};
use std::path::Path;

/// A profile and what reports call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedProfile {
    pub(super) name: String,
    pub(super) profile: Profile,
}

/// Profiles of levels, whatever the database.
const LEVELS: &[(&str, Profile)] = &[
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
    (
        "snapshot-isolation",
        Profile {
            reads: Reads::FirstRequest,
            writers: Writers::FirstUpdater,
            locks: Locks::Writes,
            granularity: Granularity::Row,
            ..Profile::NONE
        },
    ),
    (
        "serializable",
        Profile {
            reads: Reads::FirstRequest,
            writers: Writers::FirstUpdater,
            locks: Locks::Writes,
            certifier: Certifier::DangerousStructure,
            ..Profile::NONE
        },
    ),
];

pub(super) fn named(name: &str) -> Result<NamedProfile, String> {
    let known = LEVELS.iter().find(|(known, _)| *known == name);
    let (_, profile) = known.ok_or_else(|| format!("expected a profile, found `{name}`"))?;
    Ok(NamedProfile { name: name.to_owned(), profile: *profile })
}

pub(super) fn of(scheme: &str, isolation: &str) -> Result<NamedProfile, String> {
    let _ = scheme;
    named(if isolation == "repeatable-read" { "snapshot-isolation" } else { isolation })
}

pub(super) fn from_file(path: &Path) -> Result<NamedProfile, Failure> {
    Err(Failure::Usage(format!("{}", path.display())))
}
