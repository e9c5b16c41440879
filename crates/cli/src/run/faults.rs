//! Options that say what is done to servers while they are driven, and what was.

use crate::limits;
use isolde_harness::{Access, Address, Database, Endpoint, Failure, Fault, FaultPlan, Happened};
use serde::Serialize;
use std::time::Duration;

/// What is done to servers.
#[derive(clap::Args, Clone)]
#[group(skip)]
#[command(next_help_heading = "Faults")]
pub(crate) struct Arguments {
    /// Disturb a server that is started here: kill, pause, restart, partition, or several of them
    /// with commas between
    #[arg(long = "fault", hide_short_help = true, value_name = "NAMES", value_delimiter = ',', value_parser = parse)]
    faults: Vec<Fault>,
    /// About how long after one fault the next one comes
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_every)]
    #[arg(requires = "faults", hide_short_help = true)]
    fault_every: Duration,
}

fn parse(text: &str) -> Result<Fault, String> {
    let found = Fault::ALL.into_iter().find(|fault| fault.name() == text);
    found.ok_or_else(|| {
        let names = Fault::ALL.map(Fault::name).join(", ");
        format!("expected a fault ({names}), found `{text}`")
    })
}

fn parse_every(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(100);
    match limits::parse_duration(text)? {
        every if every < LEAST => Err(format!("expected at least {LEAST:?}, found `{text}`")),
        every => Ok(every),
    }
}

impl Arguments {
    /// Refuses servers that were not started here, before anything is asked of them.
    pub(crate) fn refuse_address(&self, address: &Address) -> Result<(), String> {
        if self.faults.is_empty() || address.is_bare {
            return Ok(());
        }
        Err(format!(
            "expected a server that is started here, by the name of a database without an \
             address, for --fault, found {address}"
        ))
    }

    /// Whether nothing is to happen.
    pub(crate) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Tells the database what to expect. One that was not started here refuses.
    pub(crate) fn announce(&self, database: &mut dyn Database) -> Result<(), Failure> {
        if self.faults.is_empty() { Ok(()) } else { database.expect_faults(&self.faults) }
    }

    /// What is going to happen, if anything.
    pub(crate) fn plan(&self, seed: u64) -> Option<FaultPlan> {
        let is_asked_for = !self.faults.is_empty();
        is_asked_for.then(|| FaultPlan::new(&self.faults, self.fault_every, seed))
    }

    /// The options as one would type them.
    pub(super) fn typed(&self) -> String {
        if self.faults.is_empty() {
            return String::new();
        }
        let names: Vec<&str> = self.faults.iter().map(|fault| fault.name()).collect();
        format!(" --fault {} --fault-every {}ms", names.join(","), self.fault_every.as_millis())
    }
}

/// A fault that happened, as `run.json` has it.
#[derive(Serialize)]
pub(super) struct Seen {
    fault: &'static str,
    server: String,
    /// Seconds after the begin of the log.
    at: f64,
    /// How long it took until the server answered again.
    seconds: f64,
}

impl Seen {
    pub(super) fn of(happened: &Happened) -> Seen {
        #[expect(clippy::cast_precision_loss, reason = "a run takes less than 2^52 ns, a month")]
        let seconds = |nanoseconds: i64| nanoseconds as f64 / 1e9;
        Seen {
            fault: happened.fault.name(),
            server: happened.server.clone(),
            at: seconds(happened.began),
            seconds: seconds(happened.ended - happened.began),
        }
    }
}

/// One line about all of them. Where there are several servers, it says which one was meant.
pub(super) fn to_text(seen: &[Seen], servers: &[Endpoint]) -> String {
    if seen.is_empty() {
        return "faults: none, the run was over before the first; --duration makes it longer"
            .to_owned();
    }
    let server = |name: &str| match servers.iter().find(|server| server.name == name) {
        _ if servers.len() < 2 => String::new(),
        Some(Endpoint { access: Access::ReadOnly, .. }) => format!(" of {name} (read only)"),
        _ => format!(" of {name}"),
    };
    let each: Vec<String> = (seen.iter())
        .map(|Seen { fault, server: name, at, seconds }| {
            format!("{fault}{} at {at:.1} s for {seconds:.1} s", server(name))
        })
        .collect();
    format!("faults: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_one_line() {
        let happened = |fault, began, ended| Happened {
            fault,
            server: "127.0.0.1:20000".to_owned(),
            began,
            ended,
        };
        let seen = [
            Seen::of(&happened(Fault::Kill, 3_210_000_000, 4_250_000_000)),
            Seen::of(&happened(Fault::Partition, 8_000_000_000, 9_500_000_000)),
        ];
        let server = |name: &str, access| Endpoint { name: name.to_owned(), access };
        let standby = server("127.0.0.1:20000", Access::ReadOnly);
        let alone = to_text(&seen, std::slice::from_ref(&standby));
        assert_eq!(alone, "faults: kill at 3.2 s for 1.0 s, partition at 8.0 s for 1.5 s");
        // Also if only one of several was disturbed.
        let primary = server("127.0.0.1:10000", Access::ReadWrite);
        assert_eq!(
            to_text(&seen, &[primary, standby]),
            "faults: kill of 127.0.0.1:20000 (read only) at 3.2 s for 1.0 s, \
             partition of 127.0.0.1:20000 (read only) at 8.0 s for 1.5 s"
        );
    }
}
