//! `isolde proxy`: pass an application's connections on to its database, and record them.
//!
//! The application changes its port, and nothing else. A signal ends the recording, which is
//! then checked like any other history, and told by statements.

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::output::{self, OutputFormat};
use crate::recorded::Account;
use crate::subject::HISTORY_FILE;
use crate::{advise, input, limits, say};
use isolde_harness::Address;
use isolde_proxy::{Listener, Recording, Route, Summary};
use isolde_report::statements::Setting;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `isolde proxy`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The server, as postgres://HOST:PORT or, if only one database is to be recorded,
    /// postgres://HOST:PORT/DATABASE
    target: String,
    /// Where the application connects to
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6432")]
    listen: String,
    /// The folder for the recording, which must not exist
    #[arg(long, value_name = "DIR", required_unless_present = "plain")]
    record: Option<PathBuf>,
    /// Judge against this level: what it would have prevented
    #[arg(long, value_name = "LEVEL", value_parser = advise::parse_setting, default_value = "serializable")]
    advise: Setting,
    /// Write keys of rows as hashes
    #[arg(long)]
    redact: bool,
    /// Listen at an address that other machines reach, too
    #[arg(long)]
    public: bool,
    /// Pass everything on without a look at it, and record nothing: for measurements
    #[arg(long, conflicts_with = "record")]
    plain: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    limits: limits::Arguments,
}

const DEFAULT_PORT: u16 = 5432;

fn usage(message: &str) -> Failure {
    Failure::Usage(format!("proxy: {message}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    let route = route(arguments)?;
    refuse_public_address(arguments)?;
    let interruption = Interruption::of("proxy")?;
    let listener = Listener::bind(&arguments.listen)
        .map_err(|error| usage(&format!("cannot listen at {}: {error}", arguments.listen)))?;
    let address = listener.address().map_err(|error| usage(&error.to_string()))?;
    let recording = Arc::new(match &arguments.record {
        Some(folder) => {
            let recording = create(folder, arguments.redact)?;
            // A recording that is ended from outside is known by it.
            Account::of(&Summary::default()).write(folder)?;
            recording
        }
        None => Recording::unwritten(),
    });
    say(&format!("isolde: listening at {address}, passing on to {}", route.server));
    listener.serve(route, &recording, &interruption.stop);
    let summary = recording.finish();
    let Some(folder) = &arguments.record else { return Ok(Status::Satisfied) };
    let account = Account::of(&summary);
    account.write(folder)?;
    let judged = judge(arguments, &account, folder);
    match summary.error {
        Some(error) => {
            let path = folder.join(HISTORY_FILE).display().to_string();
            Err(Failure::Write(path, std::io::Error::other(error).into()))
        }
        None => judged,
    }
}

/// Tells what was recorded, and what is wrong with it.
fn judge(arguments: &Arguments, account: &Account, folder: &Path) -> Result<Status, Failure> {
    let input = input::Arguments { from: None, initial: None, complete_log: false };
    // The signal that ended the recording does not end this, the next one does.
    let clock = arguments.limits.clock(Some(limits::USUAL_TIME));
    let findings = match advise::findings(folder, &input, &arguments.limits, clock)? {
        Ok(findings) => findings,
        Err(reached) => return limits::end(reached, folder, &arguments.limits.resources),
    };
    let text = match arguments.format {
        OutputFormat::Json => {
            let json = serde_json::json!({ "recording": account, "findings": findings });
            serde_json::to_string_pretty(&json).expect("plain data")
        }
        OutputFormat::Text => {
            let found = advise::to_text(&findings, folder, arguments.advise);
            format!("{}\n{found}", account.to_text(folder))
        }
    };
    output::write(&text, arguments.format, None)?;
    Ok(advise::status(&findings, arguments.advise))
}

fn route(arguments: &Arguments) -> Result<Route, Failure> {
    let address = Address::parse(&arguments.target).map_err(|message| usage(&message))?;
    if !matches!(address.scheme.as_str(), "postgres" | "postgresql") {
        let found = &address.scheme;
        return Err(usage(&format!("expected the address of a PostgreSQL, found `{found}`")));
    }
    let [host] = address.hosts.as_slice() else {
        return Err(usage("expected one server, as in postgres://127.0.0.1:5432"));
    };
    if let Some((name, value)) = address.options.first() {
        let is_plain =
            name == "sslmode" && matches!(value.as_str(), "disable" | "allow" | "prefer");
        if !is_plain {
            return Err(usage(&format!(
                "expected an address without `{name}={value}`: connections through the proxy are \
                 not encrypted"
            )));
        }
    }
    let (name, port) = host.with_port(DEFAULT_PORT);
    let server =
        if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
    let database = Some(address.path).filter(|path| !path.is_empty());
    Ok(Route { server, database, is_plain: arguments.plain })
}

/// Who reaches the proxy reaches the database.
fn refuse_public_address(arguments: &Arguments) -> Result<(), Failure> {
    let host = arguments.listen.rsplit_once(':').map_or("", |it| it.0);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_loopback || arguments.public {
        return Ok(());
    }
    Err(usage(&format!(
        "expected an address of this machine alone, such as 127.0.0.1:6432, found {}; --public \
         allows others",
        arguments.listen
    )))
}

fn create(folder: &Path, redacts: bool) -> Result<Recording, Failure> {
    let failed = |error: std::io::Error| {
        usage(&format!("cannot create the recording in {}: {error}", folder.display()))
    };
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::create_dir(folder).map_err(failed)?;
    Recording::create(&folder.join(HISTORY_FILE), redacts).map_err(failed)
}
