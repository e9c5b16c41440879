//! Notes what the program was built from, for `isolde --version`.
//!
//! Builds from an archive have no `git`, and then nothing is noted. Builds for debugging note
//! no commit either: it would have to be compiled again after each one.

use std::path::Path;
use std::process::Command;

/// What `cargo package` leaves in a crate.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// Features that change what the program can do.
const FEATURES: [&str; 3] = ["cadical", "duckdb", "duckdb-bundled"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ISOLDE_COMMIT");
    let commit = match variable("ISOLDE_COMMIT") {
        Some(named) => Some(named),
        None if variable("PROFILE").as_deref() == Some("release") => packaged().or_else(from_git),
        None => None,
    };
    note("COMMIT", commit.as_deref().unwrap_or("not noted"));
    note("TARGET", &variable("TARGET").expect("cargo sets it"));
    let is_on = |feature: &&str| {
        let name = feature.to_ascii_uppercase().replace('-', "_");
        variable(&format!("CARGO_FEATURE_{name}")).is_some()
    };
    let features: Vec<&str> = FEATURES.into_iter().filter(is_on).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    note("FEATURES", &features);
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn note(name: &str, value: &str) {
    println!("cargo::rustc-env=ISOLDE_{name}={value}");
}

/// The commit that a packaged crate was made of.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(PACKAGED).ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    rest.get(..12).map(str::to_owned)
}

/// The commit that is checked out, if this is our repository and not one around it.
fn from_git() -> Option<String> {
    if Path::new(PACKAGED).exists() || !Path::new("../../.git").exists() {
        return None;
    }
    let ask = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = ask(&["rev-parse", "--short=12", "HEAD"])?;
    // What a commit or a checkout changes.
    if let Some(log) = ask(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    Some(commit)
}
