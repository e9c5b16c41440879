//! Running this crate's benches and collecting what they found.

use crate::say;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A bench and its figure.
pub(crate) type Figure = (String, f64);

/// Seconds of each stage by wall clock, from the bench `stages`.
pub(crate) fn stages(target: &Path) -> Result<Vec<Figure>, String> {
    cargo_bench("stages", Stdio::inherit())?;
    let mut figures = Vec::new();
    collect(&target.join("criterion"), "", &mut figures)?;
    figures.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(figures)
}

/// Means below a folder of Criterion's, each in `…/NAME/new/estimates.json`.
fn collect(folder: &Path, name: &str, figures: &mut Vec<Figure>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let estimates = folder.join("new").join("estimates.json");
    if let Ok(text) = fs::read_to_string(&estimates) {
        let json: Value = serde_json::from_str(&text)
            .map_err(|error| format!("{}: {error}", estimates.display()))?;
        let nanoseconds = json["mean"]["point_estimate"].as_f64();
        let nanoseconds = nanoseconds
            .ok_or_else(|| format!("{}: expected a mean, found none", estimates.display()))?;
        figures.push((name.to_owned(), nanoseconds / 1e9));
        return Ok(());
    }
    // Groups hold benches, and nothing is deeper than that.
    if name.contains('/') {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let own = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && own != "report" {
            let longer = if name.is_empty() { own } else { format!("{name}/{own}") };
            collect(&entry.path(), &longer, figures)?;
        }
    }
    Ok(())
}

/// Instructions of each stage, from the bench `instructions`; `None`, and a word to
/// the user, if what it needs is not there.
pub(crate) fn instructions() -> Result<Option<Vec<Figure>>, String> {
    let runner = std::env::var_os("GUNGRAUN_RUNNER").map(PathBuf::from);
    for (name, place, from) in [
        ("valgrind", None, "a package of most systems"),
        ("gungraun-runner", runner, "cargo install gungraun-runner@0.20.0"),
    ] {
        if place.is_none() && !in_path(name) {
            say(&format!("skipped: instructions are not counted, no {name} in the path ({from})"));
            return Ok(None);
        }
    }
    let output = cargo_bench("instructions", Stdio::piped())?;
    Ok(Some(counted(&output)))
}

/// Names and instruction counts in the bench's output: a line
/// `FILE::GROUP::FUNCTION NAME:…`, then one `Instructions: COUNT|…`.
fn counted(output: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut name = String::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [path, id, ..] if path.starts_with("instructions::") => {
                let function = path.rsplit("::").next().unwrap_or(path);
                let id = id.split(':').next().unwrap_or(id).replace('_', "-");
                name = format!("{function}/{id}");
            }
            ["Instructions:", count, ..] => {
                let digits = count.split('|').next().unwrap_or(count);
                if let Ok(number) = digits.parse::<f64>() {
                    figures.push((name.clone(), number));
                }
            }
            _ => {}
        }
    }
    figures
}

/// Whether a program of this name can be started.
pub(crate) fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The `cargo` that runs this program, or the one in the path.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn cargo_bench(name: &str, output: Stdio) -> Result<String, String> {
    let done = Command::new(cargo())
        .args(["bench", "--package", "isolde-bench", "--features", name, "--bench", name])
        .stdout(output)
        .stderr(Stdio::inherit())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| format!("cargo: {error}"))?;
    if !done.status.success() {
        return Err(format!("expected the bench {name} to succeed, found {}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_belong_to_the_bench_above_them() {
        let output = "instructions::stages::parse jepsen_edn:(\"list-append\", \"jepsen-edn\")\n  \
                      Instructions:      123456|N/A       (*********)\n  \
                      L1 Hits:            99|N/A\n\
                      instructions::stages::decide causal:Level :: Causal\n  \
                      Instructions:      7|6 (+16%)\n";
        let expected =
            [("parse/jepsen-edn".to_owned(), 123_456.0), ("decide/causal".to_owned(), 7.0)];
        assert_eq!(counted(output), expected);
    }
}
