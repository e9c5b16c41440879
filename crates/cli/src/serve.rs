//! `isolde serve`: the finished runs in a folder, in a browser.
//!
//! Only what is listed can be asked for, by its name, so no path leads elsewhere. Pages are made
//! when they are asked for.

use crate::exit::{Failure, Status};
use crate::http::{self, Answer, Waiting};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::run::strongest_levels;
use crate::subject::{HISTORY_FILE, Opening, RUN_FILE, read_json};
use crate::{input, limits, out, report, say};
use isolde_report::{RunRow, runs_to_html};
use serde_json::Value;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Requests that are answered at the same time; more wait.
const AT_ONCE_MAX: usize = 8;
/// Runs in the list.
const RUNS_MAX: usize = 10_000;
/// How long a history without verdicts is checked, unless the user says otherwise.
const CHECK_TIME: Duration = Duration::from_mins(1);

/// Options of `isolde serve`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The folder with the folders of runs
    #[arg(default_value = "isolde-runs")]
    folder: PathBuf,
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7415")]
    listen: SocketAddr,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let folder = arguments.folder.display().to_string();
    if !arguments.folder.is_dir() {
        return Err(Failure::Usage(format!("serve: expected a folder of runs, found no {folder}")));
    }
    arguments.limits.resources.apply()?;
    let stop = Interruption::of("serve")?.stop;
    let failed = |error: std::io::Error| {
        Failure::Usage(format!("serve: cannot listen on {}: {error}", arguments.listen))
    };
    let listener = TcpListener::bind(arguments.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    if !address.ip().is_loopback() {
        say("isolde: serve: other machines can read these runs, there is no password");
    }
    out(&format!("http://{address}/\n"))?;
    say("isolde: serve: Ctrl-C ends it");
    let hosts = http::hosts(address);
    let busy = AtomicUsize::new(0);
    let mut waiting = Waiting::default();
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            while let Ok((stream, _)) = listener.accept() {
                waiting.add(stream);
            }
            let free = AT_ONCE_MAX.saturating_sub(busy.load(Ordering::Relaxed));
            let asking = waiting.asking(free);
            if asking.is_empty() {
                std::thread::sleep(Duration::from_millis(30));
            }
            for stream in asking {
                busy.fetch_add(1, Ordering::Relaxed);
                let (busy, hosts) = (&busy, &hosts);
                let answer = move || {
                    // A browser that went away wants no answer.
                    let _ = answer(&stream, hosts, arguments);
                    busy.fetch_sub(1, Ordering::Relaxed);
                };
                // Without a thread, the connection is closed.
                if std::thread::Builder::new().spawn_scoped(scope, answer).is_err() {
                    busy.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    });
    Ok(Status::Satisfied)
}

fn answer(stream: &TcpStream, hosts: &[String], arguments: &Arguments) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    http::serve_one(stream, hosts, |path| page(path, arguments))
}

fn page(path: &str, arguments: &Arguments) -> Answer {
    if path == "/" {
        let folder = arguments.folder.display().to_string();
        return Answer::html(runs_to_html(&folder, &rows(&arguments.folder)));
    }
    if path == "/favicon.ico" {
        // Browsers ask for it without being told to.
        return Answer::refusal("204 No Content", "");
    }
    let missing = || Answer::refusal("404 Not Found", "there is no such run");
    let Some(wanted) = path.strip_prefix("/run/") else { return missing() };
    let Some((_, folder)) = runs(&arguments.folder).into_iter().find(|(name, _)| name == wanted)
    else {
        return missing();
    };
    if let Some(file) = leads_outside(&arguments.folder, &folder) {
        let message = format!("{file} of this run leads outside of the folder that is served");
        return Answer::refusal("403 Forbidden", &message);
    }
    let clock = arguments.limits.clock(Some(CHECK_TIME));
    let job = Job::new(clock, &arguments.limits.resources, false);
    let opening = Opening { input: &arguments.input, job: &job };
    let made = opening.open(&folder).and_then(|subject| report::to_page(&subject, wanted));
    match made {
        Ok(page) => Answer::html(page),
        Err(failure) => Answer::refusal("500 Internal Server Error", &failure.to_string()),
    }
}

/// A file of a run that is a link out of the folder of all runs: what is served was put there.
fn leads_outside(all: &Path, run: &Path) -> Option<&'static str> {
    let all = all.canonicalize().ok()?;
    [RUN_FILE, HISTORY_FILE].into_iter().find(|name| {
        let is_outside = |path: PathBuf| !path.starts_with(&all);
        run.join(name).canonicalize().is_ok_and(is_outside)
    })
}

/// Folders with a finished run, the latest first.
fn runs(folder: &Path) -> Vec<(String, PathBuf)> {
    let served = folder.canonicalize().unwrap_or_default();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(SystemTime, String, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let path = entry.path();
            if !path.canonicalize().ok()?.starts_with(&served) {
                return None;
            }
            let file = path.join(RUN_FILE).metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((file.modified().ok()?, name, path))
        })
        .take(RUNS_MAX)
        .collect();
    found.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    found.into_iter().map(|(_, name, path)| (name, path)).collect()
}

fn rows(folder: &Path) -> Vec<RunRow> {
    runs(folder).into_iter().map(|(name, path)| row(name, &path)).collect()
}

fn row(name: String, folder: &Path) -> RunRow {
    let file = folder.join(RUN_FILE);
    let link = format!("/run/{}", http::encoded(&name));
    let when = file.metadata().and_then(|it| it.modified()).map(ago).unwrap_or_default();
    let run = match read_json(&file) {
        Ok(run) => run,
        Err(failure) => {
            let empty = String::new;
            let (database, workload, size) = (empty(), empty(), empty());
            let detail = failure.to_string();
            let verdict = "not readable".to_owned();
            return RunRow { name, link, database, workload, verdict, detail, size, when };
        }
    };
    let text = |field: &str| match &run[field] {
        Value::String(text) => text.clone(),
        Value::Null => "?".to_owned(),
        other => other.to_string(),
    };
    let gate: Vec<(&str, &str)> = (run["gate"].as_array().into_iter().flatten())
        .filter_map(|gate| Some((gate["level"].as_str()?, gate["verdict"].as_str()?)))
        .collect();
    let any = |wanted: &&str| gate.iter().any(|(_, verdict)| verdict == wanted);
    let verdict = ["violated", "unknown", "satisfied"].into_iter().find(any);
    // Runs of older versions do not say what was not decided.
    let names = |field: &str| -> Vec<&str> {
        run[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let seen = strongest_levels::to_text(&names("strongest"), &names("undecided"));
    let told: Vec<String> =
        gate.iter().map(|(level, verdict)| format!("{level}: {verdict}")).collect();
    RunRow {
        link,
        database: format!(
            "{} {}, {}",
            text("database"),
            text("database_version"),
            text("isolation")
        ),
        workload: format!(
            "{}, {} sessions, seed {}",
            text("preset"),
            text("sessions"),
            text("seed")
        ),
        verdict: verdict.unwrap_or("nothing promised").to_owned(),
        detail: format!("{}; strongest seen: {seen}", told.join(", ")),
        size: format!(
            "{} committed, {} aborted, {} unknown",
            text("committed"),
            text("aborted"),
            text("unknown")
        ),
        when,
        name,
    }
}

/// How long ago something was.
fn ago(time: SystemTime) -> String {
    let seconds = time.elapsed().unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
