//! `isolde run` on the database that is compiled in.

use crate::support::{Folder, Run, refused};
use serde_json::Value;

const SHORT: &str = "--sessions 4 --transactions 400";

/// The output without what differs from run to run.
fn normalised(run: &Run) -> String {
    let mut lines = Vec::new();
    for line in run.stdout.lines() {
        let mut words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "SQLite" => words[1] = "VERSION,",
            "recorded:" => {
                words[3] = "SOME";
                words[8] = "SOME";
            }
            _ => {}
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

#[test]
fn sqlite_is_strict_serializable() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(&format!("run {SHORT} --output out"));
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(
        normalised(&run),
        "SQLite VERSION, isolation serializable, which promises strict-serializable\n\
         workload MTC: 4 sessions, seed 1\n\
         recorded: 400 committed, SOME aborted, 0 unknown in SOME s\n\
         \n\
         strict-serializable: satisfied\n\
         strongest seen: strong-snapshot-isolation, strict-serializable\n\
         history: out/history.log\n\
         again: isolde run sqlite --isolation serializable --sessions 4 --transactions 400 --seed 1"
    );
    // The history is one like any other.
    let checked = folder.isolde("check out/history.log --level strict-serializable --quiet");
    let expected = "out/history.log\tstrict-serializable\tsatisfied\n";
    assert_eq!((checked.status, checked.stdout.as_str()), (0, expected));
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert_eq!(json["gate"][0]["verdict"], "satisfied");
    assert_eq!(json["committed"], 400);
    assert_eq!(json["report"]["history"]["committed"], 400);
}

#[test]
fn every_preset_runs() {
    let folder = Folder::with(&[]);
    for preset in isolde_harness::PRESETS {
        let name = preset.name;
        let run = folder.isolde(&format!(
            "run --preset {name} --sessions 3 --transactions 60 --output {name} --quiet"
        ));
        let expected = "strict-serializable: satisfied\n";
        assert_eq!((run.status, run.stdout.as_str()), (0, expected), "{name}: {}", run.stderr);
    }
}

#[test]
fn json_is_what_run_json_has() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(&format!("run sqlite {SHORT} --output out --format json --seed 7"));
    assert_eq!(run.stdout, folder.read("out/run.json"));
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(json["seed"], 7);
    assert_eq!(json["target"], "sqlite");
    assert_eq!(json["strongest"], json["report"]["strongest"]);
}

#[test]
fn a_search_for_violations_ends_in_time() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(&format!(
        "run {SHORT} --until-violation --duration 300ms --output out --format json"
    ));
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let rounds = json["rounds"].as_u64().expect("a number");
    assert_eq!((run.status, json["seed"].as_u64()), (0, Some(rounds)));
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    let folder = Folder::with(&[("text", "this is no database, only a text of some length\n")]);
    let names: Vec<&str> = isolde_drivers::TARGETS.iter().map(|target| target.schemes[0]).collect();
    let unknown =
        format!("expected a database that can be driven ({}), found oracle", names.join(", "));
    for (arguments, message) in [
        ("run oracle://host", unknown.as_str()),
        (
            "run sqlite --isolation snapshot",
            "expected an isolation setting of SQLite (serializable), found `snapshot`",
        ),
        ("run sqlite:text", "cannot use text: file is not a database"),
        (
            "run sqlite://u:hunter2@host/x",
            "expected the path of a file, as in sqlite:/path/to/file.db, found a server's address",
        ),
        ("run --sessions 0", "expected 1 to 1048576 sessions, found 0"),
        ("run --rotate 0", "expected at least 1 transaction before keys change, found 0"),
        (
            "run sqlite --fault kill",
            "expected a server that is started here, by the name of a database without an address, \
             for --fault; this SQLite can be disturbed by hand while a run with --duration goes on",
        ),
        ("run --output text", "cannot create the folder text: File exists (os error 17)"),
    ] {
        assert_eq!(
            folder.isolde(arguments),
            refused(&format!("isolde: run: {message}\n")),
            "{arguments}"
        );
    }
}

/// Promises are names of levels, which drivers cannot check themselves.
#[test]
fn every_claim_names_levels() {
    for target in isolde_drivers::TARGETS {
        let address = isolde_harness::Address::parse(target.schemes[0]).expect("a name");
        // Those that need a server say so.
        let Ok(database) = (target.open)(&address) else { continue };
        for claim in database.claims() {
            let deviations = claim.deviations.iter().map(|deviation| &deviation.level);
            for name in claim.promises.iter().chain(deviations) {
                let level = isolde::Level::parse(name);
                assert_eq!(level.map(isolde::Level::name), Some(name.as_str()));
            }
        }
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_checks_what_it_has() {
    let folder = Folder::with(&[]);
    let mut command = folder.command("run --duration 60s --sessions 2 --output out");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let log = folder.path("out/history.log");
    let is_recording = || std::fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 2000);
    while !is_recording() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill is there");
    assert!(interrupted.success());
    let output = child.wait_with_output().expect("the program ends");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("\nstrict-serializable: satisfied\n"), "{stdout}");
    assert!(folder.read("out/history.log").ends_with("\nend\n"));
}
