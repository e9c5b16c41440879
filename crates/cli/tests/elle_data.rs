//! elle-cli's published test list gets elle-cli's answers, where it is at hand.
//!
//! `../shared/data/expected.jsonl` beside the project has the options of each test and
//! what elle-cli prints.

#![expect(clippy::print_stderr, reason = "the test says what it skipped")]

use std::path::Path;
use std::process::Command;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

#[test]
fn answers_are_those_of_elle_cli() {
    let Ok(expected) = std::fs::read_to_string(Path::new(DATA).join("expected.jsonl")) else {
        eprintln!("skipped: no ../shared/data");
        return;
    };
    let mut tried = 0;
    let mut missed = Vec::new();
    for line in expected.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON lines");
        let path = row["path"].as_str().expect("a path");
        for asked in row["elle_cli"].as_array().into_iter().flatten() {
            let options = asked["options"].as_str().expect("options");
            let answer = asked["answer"].as_str().expect("an answer");
            let mut isolde = Command::new(env!("CARGO_BIN_EXE_isolde"));
            isolde.current_dir(DATA).arg("elle");
            isolde.args(options.split(' ').map(|it| if it == "FILE" { path } else { it }));
            let output = isolde.output().expect("the program runs");
            let printed = String::from_utf8(output.stdout).expect("UTF-8");
            let status = match answer {
                "true" => 0,
                "false" => 1,
                _ => 2,
            };
            tried += 1;
            if (printed.as_str(), output.status.code())
                != (format!("{path} \t {answer}\n").as_str(), Some(status))
            {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                missed.push(format!("{options} {path}: expected {answer}, found {printed}{said}"));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(tried >= 29, "the list has {tried} tests");
}
