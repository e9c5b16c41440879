//! Pages of `isolde-bench` are written to their end, on histories too small to measure.

#![expect(clippy::print_stderr, reason = "a skipped test must be seen")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BENCH: &str = env!("CARGO_BIN_EXE_isolde-bench");

/// The program that is measured, if it was built.
fn isolde() -> Option<PathBuf> {
    let isolde = Path::new(BENCH).with_file_name("isolde");
    if !isolde.exists() {
        eprintln!("skipped: no isolde beside isolde-bench");
        return None;
    }
    Some(isolde)
}

/// A folder with nothing in it: what an earlier run left would be measured instead.
fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for tests");
    folder
}

#[test]
fn every_check_of_the_strong_page_ends_as_it_should() {
    let bench = Path::new(BENCH);
    let Some(isolde) = isolde() else { return };
    let folder = empty_folder("strong");
    let page = folder.join("page.md");
    let status = Command::new(bench)
        .args(["strong", "--scale", "1000", "--runs", "1", "--growth-max", "250000"])
        .args(["--timeout", "10s", "--data", "no-such-folder", "--isolde"])
        .arg(&isolde)
        .arg("--histories")
        .arg(&folder)
        .arg("--output")
        .arg(&page)
        .status()
        .expect("a program");
    assert!(status.success(), "{status}; is isolde-cli built from the same tree?");
    let text = fs::read_to_string(&page).expect("the page");
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# Benchmarks of the strong levels",
            "## Bars",
            "## Hidden faults",
            "## Switches",
            "## Growth",
            "## Choices",
            "## Explaining hidden faults",
        ]
    );
    let rows = |line: &&str| line.starts_with("| ");
    // The last cell stays empty where nothing is wrong and no bar applies.
    let wrong: Vec<&str> = (text.lines().filter(rows))
        .filter(|row| {
            ["satisfied |", "violated |", "unknown |", "failed |", "killed |"]
                .iter()
                .any(|end| row.ends_with(end))
        })
        .collect();
    assert_eq!(wrong, Vec::<&str>::new());
    // Headers, 27 bars, 16 checks around hidden faults, 6 of them explained, 6 counts, 12 checks
    // with and without a source of order, 6 times 2 sizes.
    assert_eq!(text.lines().filter(rows).count(), 6 + 27 + 16 + 6 + 6 + 12 * 2 + 6 * 2);
}

#[test]
fn every_check_of_the_white_box_page_is_satisfied() {
    let bench = Path::new(BENCH);
    let Some(isolde) = isolde() else { return };
    let folder = empty_folder("white-box");
    let page = folder.join("page.md");
    let status = Command::new(bench)
        .args(["white-box", "--scale", "100", "--runs", "1", "--timeout", "30s", "--isolde"])
        .arg(&isolde)
        .arg("--histories")
        .arg(&folder)
        .arg("--images")
        .arg(&folder)
        .arg("--output")
        .arg(&page)
        .status()
        .expect("a program");
    assert!(status.success(), "{status}; is isolde-cli built from the same tree?");
    let text = fs::read_to_string(&page).expect("the page");
    assert!(!text.contains("not decided") && !text.contains("not satisfied"), "{text}");
    // Headers, two times three workloads, eight bars.
    assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 3 + 6 + 8);
    for plot in ["white-box-orders.svg", "white-box-shares.svg"] {
        let plot = fs::read_to_string(folder.join(plot)).expect("a plot");
        assert!(plot.starts_with("<svg") && plot.ends_with("</svg>\n"), "{plot}");
    }
}

#[test]
fn every_stream_of_the_page_about_watching_is_verified() {
    let bench = Path::new(BENCH);
    let Some(isolde) = isolde() else { return };
    let folder = empty_folder("watch");
    let page = folder.join("page.md");
    let status = Command::new(bench)
        .args(["watch", "--scale", "500", "--runs", "1", "--part", "speed", "--part", "growth"])
        .arg("--isolde")
        .arg(&isolde)
        .arg("--images")
        .arg(&folder)
        .arg("--output")
        .arg(&page)
        .status()
        .expect("a program");
    assert!(status.success(), "{status}; is isolde-cli built from the same tree?");
    let text = fs::read_to_string(&page).expect("the page");
    // Headers, two profiles, four sizes.
    assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 2 + 2 + 4, "{text}");
}
