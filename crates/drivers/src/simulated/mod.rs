//! The simulated database, which the harness has, under an address.

use crate::{Stop, Target};
use isolde_harness::{Address, BUGS, Bug, Database, Failure, Isolation, Simulated};

/// How the simulated database is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["sim"],
    title: "a simulated database of a chosen level, with a chosen bug",
    example: "sim://serializable?bug=write-skew",
    open,
};

fn open(address: &Address, _: &Stop) -> Result<Box<dyn Database>, Failure> {
    let level = match &address.hosts[..] {
        [] if address.path.is_empty() => None,
        [host] if host.port.is_none() && address.path.is_empty() => Some(level(&host.name)?),
        _ => {
            return Err(Failure::Refused(format!(
                "expected one level, as in {}, found {address}",
                TARGET.example
            )));
        }
    };
    let (mut bug, mut seed) = (None, 1);
    for (name, value) in &address.options {
        match name.as_str() {
            "bug" => bug = Some(bug_of(value)?),
            "seed" => {
                seed = value.parse().map_err(|_| {
                    Failure::Refused(format!("expected a number as seed, found {value}"))
                })?;
            }
            other => {
                return Err(Failure::Refused(format!("expected bug or seed, found {other}")));
            }
        }
    }
    if let (Some(bug), Some(level)) = (bug, level)
        && !bug.fits(level)
    {
        return Err(Failure::Refused(format!(
            "expected a level that can have {}, found {}",
            bug.row().name,
            level.name()
        )));
    }
    Ok(Box::new(Simulated::new(level, bug, seed)))
}

fn level(name: &str) -> Result<Isolation, Failure> {
    // What the strongest stores give has a name of its own.
    let name = match name {
        "strict-serializable" => "serializable",
        "strong-snapshot-isolation" => "snapshot-isolation",
        other => other,
    };
    Isolation::by_name(name).ok_or_else(|| {
        let names = Isolation::ALL.map(Isolation::name).join(", ");
        Failure::Refused(format!("expected one of {names}, found {name}"))
    })
}

fn bug_of(name: &str) -> Result<Bug, Failure> {
    Bug::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = BUGS.iter().map(|row| row.name).collect();
        Failure::Refused(format!("expected one of {}, found {name}", names.join(", ")))
    })
}
