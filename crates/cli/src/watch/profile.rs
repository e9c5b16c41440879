//! What a database is held to: by its name and setting, or by the name of a level.

use isolde::online::{Certifier, Dml, Granularity, Locks, Profile, Reads, Writers};

/// A profile and what reports call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedProfile {
    pub(super) name: String,
    pub(super) profile: Profile,
}

const READ_COMMITTED: Profile =
    Profile { reads: Reads::Statement, dml: Dml::Current, locks: Locks::Writes, ..Profile::NONE };

const SNAPSHOT: Profile = Profile {
    reads: Reads::FirstRequest,
    writers: Writers::FirstUpdater,
    locks: Locks::Writes,
    ..Profile::NONE
};

const SERIALIZABLE_SNAPSHOT: Profile =
    Profile { certifier: Certifier::DangerousStructure, ..SNAPSHOT };

/// Names of targets, an isolation setting, and the profile. The first rows are levels.
const PROFILES: &[(&[&str], &str, Profile)] = &[
    (&[], "none", Profile::NONE),
    (&[], "read-committed", READ_COMMITTED),
    (&[], "snapshot-isolation", SNAPSHOT),
    (&[], "serializable", Profile { certifier: Certifier::Cycles, ..SNAPSHOT }),
    (POSTGRES, "read-committed", READ_COMMITTED),
    (POSTGRES, "repeatable-read", SNAPSHOT),
    (POSTGRES, "serializable", SERIALIZABLE_SNAPSHOT),
    (MYSQL, "read-committed", READ_COMMITTED),
    (MYSQL, "repeatable-read", Profile { reads: Reads::FirstRequest, ..READ_COMMITTED }),
    (
        MYSQL,
        "serializable",
        Profile {
            reads: Reads::Item,
            locks: Locks::ReadsAndWrites,
            certifier: Certifier::Cycles,
            ..READ_COMMITTED
        },
    ),
    (
        &["sqlite"],
        "serializable",
        Profile { granularity: Granularity::Database, certifier: Certifier::Cycles, ..SNAPSHOT },
    ),
];

const POSTGRES: &[&str] = &["postgres", "postgresql", "postgres+standby"];
const MYSQL: &[&str] = &["mysql", "mariadb", "galera"];

/// The profile of this name: a level, or a target and its isolation setting.
pub(super) fn named(name: &str) -> Result<NamedProfile, String> {
    let (target, setting) = match name.split_once('/') {
        Some((target, setting)) => (Some(target), setting),
        None => (None, name),
    };
    let known = PROFILES.iter().find(|(targets, known, _)| {
        *known == setting && target.map_or(targets.is_empty(), |target| targets.contains(&target))
    });
    let (_, _, profile) = known.ok_or_else(|| {
        let names: Vec<String> = (PROFILES.iter())
            .map(|(targets, setting, _)| match targets.first() {
                Some(target) => format!("{target}/{setting}"),
                None => (*setting).to_owned(),
            })
            .collect();
        format!("expected a profile ({}), found `{name}`", names.join(", "))
    })?;
    Ok(NamedProfile { name: name.to_owned(), profile: *profile })
}

/// What a target promises with this isolation setting.
pub(super) fn of(scheme: &str, isolation: &str) -> Result<NamedProfile, String> {
    let name = format!("{scheme}/{isolation}");
    named(&name)
        .map_err(|_| format!("expected --profile: it is not known which mechanisms {name} has"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_levels_or_settings_of_targets() {
        assert_eq!(named("snapshot-isolation").map(|known| known.profile), Ok(SNAPSHOT));
        assert_eq!(of("postgres", "repeatable-read").map(|known| known.profile), Ok(SNAPSHOT));
        assert!(named("repeatable-read").is_err());
        assert!(of("etcd", "serializable").is_err());
    }
}
