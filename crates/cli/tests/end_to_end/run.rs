//! `isolde run` on the database that is compiled in.

use crate::support::{Folder, Run, refused};
use isolde_harness::TxnKind;
use serde_json::Value;
use std::collections::BTreeSet;

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

/// Verdicts about the first lines of a log passed for verdicts about the run.
#[test]
fn a_log_that_was_cut_off_since_its_run_is_warned_of() {
    let folder = Folder::with(&[]);
    folder.isolde("run sim://snapshot-isolation --transactions 50 --seed 1 -o run --quiet");
    assert_eq!(folder.isolde("check run --quiet").stderr, "");
    let log = folder.read("run/history.log");
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    folder.write("run/history.log", lines[..lines.len() / 2].concat().as_bytes());
    for command in ["check run", "check run/history.log", "explain run", "report run -o page.html"]
    {
        let said = folder.isolde(command).stderr;
        assert!(said.starts_with("isolde: run/history.log: it has "), "{command}: {said}");
        let noted = "transactions, but run.json noted 50, ";
        assert!(said.contains(noted) && said.contains("cut off"), "{command}: {said}");
        assert_eq!(said.matches("cut off").count(), 1, "{command}: {said}");
    }
}

#[test]
fn sqlite_is_strict_serializable() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(&format!("run {SHORT} --timeout 90s --output out"));
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
         again: isolde run sqlite --isolation serializable --sessions 4 --transactions 400 \
         --timeout 1m30s --seed 1"
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
        let run = |output: &str, told: &str| {
            folder.isolde(&format!(
                "run --preset {name} --sessions 3 --transactions 60 --output {output} --quiet{told}"
            ))
        };
        // What conditions alone show may take the order of versions.
        let mut told = "";
        if matches!(preset.parameters.kind, TxnKind::Rows(_)) {
            let untold = run(&format!("{name}-untold"), "");
            assert_ne!(untold.status, 1, "{name}: {}", untold.stdout);
            told = " --white-box";
        }
        let run = run(name, told);
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

/// What was not decided looked like what does not hold.
#[test]
fn levels_without_a_verdict_stand_beside_the_strongest_that_was_seen() {
    let folder = Folder::with(&[]);
    let run = folder.isolde("run sqlite --preset phantoms --transactions 300 --timeout 0 -o out");
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    let levels = json["report"]["levels"].as_object().expect("levels");
    let is_open = |name: &&String| levels[*name]["verdict"] == "unknown";
    let open: BTreeSet<&str> = levels.keys().filter(is_open).map(String::as_str).collect();
    let names = json["undecided"].as_array().expect("names").iter().filter_map(Value::as_str);
    assert_eq!(names.collect::<BTreeSet<_>>(), open);
    assert!(open.contains("strict-serializable"), "{open:?}");
    let line = run.stdout.lines().find(|line| line.starts_with("strongest seen: "));
    let line = line.expect(&run.stdout);
    let told = format!(" (not decided: {} levels up to ", open.len());
    assert!(line.contains(&told) && line.ends_with("strict-serializable)"), "{line}");
}

/// The time for a level beside those that decide does not make the answer wait.
#[test]
fn only_levels_that_are_told_are_searched_for() {
    let folder = Folder::with(&[]);
    let levels = |options: &str, output: &str| {
        folder.isolde(&format!("run sqlite {SHORT} --output {output} {options}"));
        let run = folder.read(&format!("{output}/run.json"));
        let json: Value = serde_json::from_str(&run).expect("JSON");
        let decided = json["report"]["levels"].as_object().expect("levels").len();
        (decided, json["undecided"].as_array().expect("names").len())
    };
    let (all, undecided) = levels("", "told");
    assert_eq!((all > 10, undecided), (true, 0));
    // What is stronger than the promise, or beside it, is not known.
    assert_eq!(levels("--quiet", "quiet"), (1, 3));
    for (output, options) in [("json", "--format json"), ("page", "--report html=page.html")] {
        assert_eq!(levels(&format!("--quiet {options}"), output), (all, 0), "{options}");
    }
}

#[test]
fn a_search_for_violations_ends_in_time() {
    let folder = Folder::with(&[]);
    let run = folder
        .isolde(&format!("run {SHORT} --until-violation --duration 2s --output out --format json"));
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let rounds = json["rounds"].as_u64().expect("a number");
    assert_eq!((run.status, json["seed"].as_u64()), (0, Some(rounds)));
}

/// The time was looked at between rounds alone.
#[test]
fn a_round_of_a_search_ends_when_the_time_is_up() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(
        "run sim://serializable --transactions 100000000 --sessions 2 --until-violation --duration 1s \
         --output out --format json",
    );
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        (run.status, json["rounds"].as_u64(), &json["ended_by"]),
        (0, Some(1), &Value::Null)
    );
    let committed = json["committed"].as_u64().expect("a number");
    assert!(committed > 0 && committed < 100_000_000, "{committed}");
    // All levels are told of the last round.
    assert!(json["report"]["levels"]["causal"].is_object(), "{json}");
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    let folder = Folder::with(&[("text", "this is no database, only a text of some length\n")]);
    let names: Vec<&str> = isolde_drivers::TARGETS.iter().map(|target| target.schemes[0]).collect();
    let unknown =
        format!("expected a database that can be driven ({}), found `oracle`", names.join(", "));
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
        (
            "run --transactions 0",
            "expected a number of transactions from 1 on, found 0: leave it out for as many as the \
             preset has",
        ),
        (
            "run --deletes mark",
            "expected a workload that deletes rows by key for tombstones: Range-B, Range-RQH or \
             Range-IDH",
        ),
        ("run --rotate 0", "expected at least 1 transaction before keys change, found 0"),
        (
            "run postgres://user@192.0.2.1/none --fault kill",
            "expected a server that is started here, by the name of a database without an address, \
             for --fault, found postgres://user@192.0.2.1/none",
        ),
        (
            "run sqlite --fault kill",
            "expected a server that is started here, by the name of a database without an address, \
             for --fault; this SQLite can be disturbed by hand while a run with --duration goes on",
        ),
        ("run --output text", "cannot create the folder text: File exists (os error 17)"),
        (
            "run fjall --preset predicates",
            "fjall has no read by condition, which this workload needs",
        ),
    ] {
        assert_eq!(
            folder.isolde(arguments),
            refused(&format!("isolde: run: {message}\n")),
            "{arguments}"
        );
    }
    assert!(!folder.path("isolde-runs").exists(), "a run that never began leaves nothing");
}

#[test]
fn a_duration_of_nothing_is_refused() {
    let folder = Folder::with(&[]);
    for (command, time) in [("run", "0s"), ("watch", "0"), ("run", "0ms")] {
        let message = format!(
            "error: invalid value '{time}' for '--duration <TIME>': expected a time longer than \
             nothing, such as 30s, found `{time}`\n\nFor more information, try '--help'.\n"
        );
        let given = folder.isolde(&format!("{command} sqlite --duration {time}"));
        assert_eq!(given, refused(&message), "{command}");
    }
}

/// Without it they mostly end as `unknown`.
#[test]
fn the_help_says_which_presets_want_a_white_box() {
    let help = Folder::with(&[]).isolde("run --help").stdout;
    let end = help.split("The presets ").last().expect("a text");
    let (names, _) = end.split_once(" want --white-box").expect(&help);
    for name in names.split(" and ") {
        assert!(help.contains(&format!("\n  {name}: ")), "{name}");
    }
}

/// Promises are names of levels, which drivers cannot check themselves.
#[test]
fn every_claim_names_levels_and_anomalies() {
    for target in isolde_drivers::TARGETS {
        let address = isolde_harness::Address::parse(target.schemes[0]).expect("a name");
        // Those that need a server say so.
        let Ok(database) = (target.open)(&address, &isolde_drivers::Stop::default()) else {
            continue;
        };
        for claim in database.claims() {
            let deviations = claim.deviations.iter().map(|deviation| &deviation.level);
            for name in claim.promises.iter().chain(deviations) {
                let level = isolde::Level::parse(name);
                assert_eq!(level.map(isolde::Level::name), Some(name.as_str()));
            }
            for name in claim.deviations.iter().flat_map(|deviation| &deviation.anomalies) {
                assert!(isolde::AnomalyKind::ALL.iter().any(|kind| kind.name() == name), "{name}");
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
    assert!(stdout.contains(" of 60.0 s: interrupted by a signal\n"), "{stdout}");
    assert!(folder.read("out/history.log").ends_with("\nend\n"));
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert_eq!(json["ended_by"], "interrupted by a signal");
    assert_eq!(json["asked"], serde_json::json!({ "seconds": 60.0, "until_violation": false }));
}

/// Keys and values of a log: those that committed transactions wrote, and those that the
/// database told; both sorted.
fn written_and_told(log: &str) -> [Vec<(String, String)>; 2] {
    let (mut written, mut told) = (Vec::new(), Vec::new());
    let mut open = std::collections::HashMap::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "txn" => {
                let writes = words[4..].iter().filter_map(|word| word.strip_prefix('w'));
                let pairs = writes.map(|write| {
                    let write = write.split('@').next().expect("a word");
                    let (key, value) = write.split_once('=').expect("a write");
                    (key.to_owned(), value.to_owned())
                });
                open.insert(words[1].to_owned(), pairs.collect::<Vec<_>>());
            }
            "commit" => written.extend(open.remove(words[1]).expect("a transaction")),
            "versions" => {
                let values = words[2].split(',');
                told.extend(values.map(|value| (words[1].to_owned(), value.to_owned())));
            }
            _ => {}
        }
    }
    written.sort();
    told.sort();
    [written, told]
}

#[test]
fn conditions_are_judged_by_what_a_white_box_tells() {
    for target in ["sqlite", "sim://serializable"] {
        for preset in ["predicates", "phantoms"] {
            let folder = Folder::with(&[]);
            let run = folder.isolde(&format!(
                "run {target} --white-box --preset {preset} {SHORT} --level serializable --output out"
            ));
            assert_eq!(run.status, 0, "{target} {preset}: {}{}", run.stdout, run.stderr);
        }
    }
}

/// What ranges show of deleted keys is decided without a white box, and a store that is not
/// serializable is found out.
#[test]
fn ranges_that_show_tombstones_are_decided_alone() {
    let folder = Folder::with(&[]);
    for preset in ["Range-RQH", "Range-IDH"] {
        let marked = format!("--deletes mark --preset {preset} --keys 50");
        let run = folder.isolde(&format!("run sqlite {marked} {SHORT} --output {preset}"));
        assert_eq!(run.status, 0, "{preset}: {}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains(" --deletes mark "), "{}", run.stdout);
        let log = folder.read(&format!("{preset}/history.log"));
        let tombstone = (1u64 << 62).to_string();
        let is_range = |word: &&str| word.starts_with('q') && word.contains(&tombstone[..6]);
        assert!(log.split(' ').any(|word| is_range(&word)), "{preset}: no range shows a tombstone");
        let run = folder.isolde(&format!(
            "run sim://read-committed {marked} {SHORT} --level serializable \
             --until-violation --duration 60s --output {preset}-weak"
        ));
        assert_eq!(run.status, 1, "{preset}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn a_database_without_a_past_is_not_asked_for_it() {
    let folder = Folder::with(&[("h.txt", "# isolde-history 1\n1: w(1,2)\n")]);
    for (target, expected) in [
        (
            "sim://serializable",
            "recover: simulated database does not know afterwards in which order it installed \
             versions; ask it while it is driven, by isolde run --white-box",
        ),
        (
            "sqlite:other.db",
            "recover: SQLite does not know afterwards in which order it installed versions; ask it \
             while it is driven, by isolde run --white-box",
        ),
        (
            "mariadb",
            "recover: expected the address of the database that was driven, as in \
             mariadb://user:password@host:3306/database?ssl-mode=required: one that is started \
             here knows nothing of the past",
        ),
    ] {
        let run = folder.isolde(&format!("recover {target} h.txt"));
        assert_eq!(run.status, 3, "{target}");
        assert_eq!(run.stderr, format!("isolde: {expected}\n"), "{target}");
    }
}

#[test]
fn a_white_box_tells_the_order_of_every_version() {
    for target in ["sqlite", "sim://serializable", "sim://snapshot-isolation"] {
        let folder = Folder::with(&[]);
        let run = folder.isolde(&format!(
            "run {target} --white-box --preset BlindW-RW --keys 50 {SHORT} --output out"
        ));
        assert_eq!(run.status, 0, "{target}: {}", run.stderr);
        let log = folder.read("out/history.log");
        let [written, told] = written_and_told(&log);
        assert!(!told.is_empty(), "{target}");
        assert_eq!(written, told, "{target}");
        let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
        let keys = log.lines().filter(|line| line.starts_with("versions ")).count();
        let snapshots = json["white_box"]["snapshots"].as_u64().expect("a number");
        assert!(snapshots >= json["committed"].as_u64().expect("a number"), "{target}");
        let expected =
            serde_json::json!({ "versions": told.len(), "keys": keys, "snapshots": snapshots });
        assert_eq!(json["white_box"], expected, "{target}");
        let said = format!(
            "white box: the database told the order of {} versions of {keys} keys, and \
             {snapshots} snapshots",
            told.len()
        );
        assert!(run.stdout.contains(&said), "{target}: {}", run.stdout);
    }
}

#[test]
fn a_violated_level_is_told_from_an_order_that_does_not_show_it() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(
        "run sim://snapshot-isolation --white-box --level serializable --preset GeneralRW \
         --keys 20 --sessions 8 --transactions 2000 --output out",
    );
    assert_eq!(run.status, 1, "{}", run.stdout);
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert_eq!(json["report"]["levels"]["serializable"]["without_given"], "violated");
}

#[test]
fn a_database_without_evidence_says_so() {
    let folder = Folder::with(&[]);
    let run = folder.isolde("run sim://causal --white-box --output out");
    let message = "run: expected a level whose versions have one order for --white-box, found \
                   causal";
    assert_eq!((run.status, run.stdout.as_str()), (3, ""));
    assert!(run.stderr.contains(message), "{}", run.stderr);
    let run = folder.isolde("run redb --white-box --output other");
    assert_eq!(run.status, 3);
    assert!(run.stderr.contains("has no way to tell the order of its versions"), "{}", run.stderr);
}

/// A database that answers until the first read, and then never again.
const SILENT: &str = r#"#!/bin/sh
while read -r line; do
  case "$line" in
    *'"hello"'*) echo '{"name":"Silent","version":"1","default":"serializable","isolations":[{"name":"serializable","promises":["serializable"]}],"requests":["read","write"]}' ;;
    *'"do":"read"'* | *'"do":"write"'*) sleep 1000.125 & wait ;;
    *) echo '{}' ;;
  esac
done
"#;

#[test]
fn a_program_that_never_answers_keeps_no_run_from_ending() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with(&[("silent", SILENT)]);
    let program = folder.path("silent");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("our own file");
    // Words of its own, by which what it started is found.
    let target = format!("exec:{}", program.display());
    let started = std::time::Instant::now();
    let run = folder.isolde(&format!("run {target} --preset GeneralRW --duration 1s --output out"));
    let took = started.elapsed();
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    // Nothing was committed, so nothing is known.
    assert_eq!(run.status, 2, "{}{}", run.stdout, run.stderr);
    for process in std::fs::read_dir("/proc").expect("a Linux").flatten() {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let name = program.display().to_string();
        assert!(!words.contains(&name), "still running: {words}");
    }
}

#[test]
fn a_run_that_committed_nothing_has_tested_nothing() {
    let folder = Folder::with(&[]);
    let nothing = "nothing was committed, so nothing was tested";
    let run = folder.isolde("run sim://serializable --duration 1ns --quiet --output quiet");
    let verdict = format!("strict-serializable: unknown ({nothing})\n");
    assert_eq!((run.status, run.stdout), (2, verdict.clone()));
    let run = folder.isolde("run sim://serializable --duration 1ns --output out");
    assert_eq!(run.status, 2, "{run:?}");
    let (head, rest) = run.stdout.split_once("\n\n").expect("a head");
    assert!(head.ends_with(nothing), "{run:?}");
    // Nothing is explained, and nothing is praised.
    assert!(rest.starts_with(&format!("{verdict}history: out/history.log\n")), "{run:?}");
    // One level that needs times, and one that does not.
    let levels = "--level serializable --level strong-snapshot-isolation";
    let run = folder.isolde(&format!("run sqlite --duration 1ns --quiet --output both {levels}"));
    let unknown = |level: &str| format!("{level}: unknown ({nothing})\n");
    let verdicts = unknown("strong-snapshot-isolation") + &unknown("serializable");
    assert_eq!((run.status, run.stdout), (2, verdicts));
    let watch = folder.isolde("watch sim://serializable --duration 1ns --quiet");
    assert_eq!(watch.status, 2, "{watch:?}");
    let said = "  nothing was committed, so nothing was verified\n";
    assert!(watch.stdout.contains(said), "{watch:?}");
}

/// It was six screens long.
#[test]
fn the_short_help_fits_a_screen_and_the_long_one_is_in_groups() {
    let folder = Folder::with(&[]);
    let short = folder.isolde("run -h").stdout;
    assert!(short.lines().count() <= 50, "{}: {short}", short.lines().count());
    for word in ["--isolation", "--preset", "--duration", "--report", "isolde run --help"] {
        assert!(short.contains(word), "{word}: {short}");
    }
    let long = folder.isolde("run --help").stdout;
    for heading in ["\nOptions:\n", "\nWorkload:\n", "\nFaults:\n", "\nLimits:\n"] {
        assert_eq!(long.matches(heading).count(), 1, "{heading}{long}");
    }
    assert!(long.contains("--distribution") && !short.contains("--distribution"));
    assert!(long.contains("\nDatabases:\n") && !short.contains("\nDatabases:\n"));
}

/// `junit=x.xml` was the name of a file that had HTML in it.
#[test]
fn a_run_writes_the_forms_of_check() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(
        "run sim://serializable?bug=lost-update --preset bank --transactions 2000 -o out --quiet \
         --report junit=it.xml --report markdown=it.md",
    );
    assert_eq!((run.status, run.stderr.as_str()), (1, ""));
    let xml = folder.read("it.xml");
    assert!(xml.contains("tests=\"1\" failures=\"1\" errors=\"0\""), "{xml}");
    assert!(xml.contains("name=\"strict-serializable\""), "{xml}");
    assert!(folder.read("it.md").contains("lost update"), "{}", folder.read("it.md"));
    let run = folder.isolde("run --report page.html");
    assert!(run.stderr.contains("expected FORM=FILE, such as junit=report.xml"), "{}", run.stderr);
}

#[test]
fn the_page_of_a_run_is_written_at_once() {
    let folder = Folder::with(&[]);
    std::fs::create_dir(folder.path("pages")).expect("a new folder");
    for (report, page) in [("page.html", "page.html"), ("pages", "pages/report.html")] {
        let output = format!("run-{}", report.len());
        let run = folder.isolde(&format!(
            "run sqlite --transactions 20 -o {output} --report html={report} --quiet"
        ));
        assert_eq!((run.status, run.stderr), (0, format!("isolde: wrote {page}\n")));
        let shown = folder.isolde(&format!("report {output} -o -"));
        assert_eq!(folder.read(page), shown.stdout);
    }
}
