//! `isolde matrix` on databases that need no server.

use crate::install::{self, Needed};
use crate::support::{Folder, printed, refused};
use serde_json::Value;

const LEGEND: &str = "\n✓ prevented, — possible, ? not decided, · cannot be tried; w a step had to \
                      wait, a a transaction was aborted, ! promised otherwise, d the same, but \
                      documented\n";

#[test]
fn every_level_prevents_what_it_forbids_and_no_more() {
    let matrix = Folder::with(&[]).isolde("matrix sim --format markdown");
    let expected = format!(
        "| simulated database {} | G0 | G1a | G1b | G1c | OTV | P2 | PMP | PMP-value | \
         PMP-write | PMP-delete | P4 | P4-list | G-single | G-single-range | G-single-value \
         | G-single-write | G-single-delete | causality | long-fork | G2-item | G2 | \
         G2-value | read-only |\n\
         |---|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|\n\
         | read-uncommitted | · | — | — | — | ✓a | — | — | — | — | ✓a | ✓a | · | — | — | — | — | — | — | — | — | — | — | — |\n\
         | read-committed | · | ✓ | ✓ | ✓ | ✓ | — | — | — | — | ✓ | — | · | — | — | — | — | — | — | — | — | — | — | — |\n\
         | read-atomic | · | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | — | · | ✓ | ✓ | ✓ | ✓ | — | ✓ | ✓ | — | — | — | — |\n\
         | causal | · | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | — | · | ✓ | ✓ | ✓ | ✓ | — | ✓ | ✓ | — | — | — | — |\n\
         | snapshot-isolation | · | ✓ | ✓ | ✓ | ✓a | ✓ | ✓ | ✓ | ✓ | ✓a | ✓a | · | ✓ | ✓ | ✓ | ✓ | ✓a | ✓ | ✓ | — | — | — | — |\n\
         | serializable | · | ✓ | ✓ | ✓a | ✓a | ✓ | ✓ | ✓ | ✓ | ✓a | ✓a | · | ✓ | ✓ | ✓ | ✓ | ✓a | ✓ | ✓ | ✓a | ✓a | ✓a | ✓a |\n\
         {LEGEND}",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(matrix, printed(0, &expected));
}

#[test]
fn waiting_is_seen() {
    let expected = format!("\n              G0   G2-item\nserializable  ✓w   ✓a\n{LEGEND}");
    let mut shown = Vec::new();
    // A machine that is busy enough lets a writer wait until its time is up: then it is aborted.
    for _ in 0..10 {
        let matrix = Folder::with(&[]).isolde("matrix sqlite --only G0 --only G2-item");
        assert_eq!((matrix.status, matrix.stderr.as_str()), (0, ""));
        let table = matrix.stdout.split_once('\n').expect("a line with the version").1;
        if table == expected {
            return;
        }
        shown.push(table.to_owned());
    }
    panic!("expected {expected}, found {shown:?}");
}

#[test]
fn a_phantom_breaks_a_promise() {
    let folder = Folder::with(&[]);
    let matrix = folder.isolde(
        "matrix sim://serializable?bug=predicate-write-skew --only G2 --format json --output kept",
    );
    assert_eq!((matrix.status, matrix.stderr.as_str()), (1, ""));
    let json: Value = serde_json::from_str(&matrix.stdout).expect("JSON");
    let cell = &json["isolations"][0]["anomalies"][0];
    assert_eq!(cell["result"], "possible");
    assert_eq!(cell["broken_promise"], true);
    assert_eq!(cell["found"], serde_json::json!(["predicate-write-skew"]));
    // The history is one like any other.
    let checked = folder.isolde("check kept/serializable-G2.log --level serializable --quiet");
    assert_eq!(checked.status, 1);
    let without = folder.isolde("matrix sim://serializable --only G2");
    assert_eq!(without.status, 0);
}

/// Answers were told as the program has them in memory.
#[test]
fn steps_are_told_in_words() {
    let matrix = Folder::with(&[]).isolde("matrix sqlite --only P4 --format json");
    let json: Value = serde_json::from_str(&matrix.stdout).expect(&matrix.stderr);
    let steps = json["isolations"][0]["anomalies"][0]["steps"].as_array().expect("steps");
    // On a busy machine every step may look as if it had waited.
    let told = |step: &Value| step.as_str().expect("a text").replace(" (blocked)", "");
    let steps: Vec<String> = steps.iter().map(told).collect();
    let expected = ["I begin", "I write 0 = 10", "I commit", "A begin", "B begin", "A read 0: 10"];
    assert_eq!(steps[..expected.len()], expected);
}

/// The second history was refused, because there was one of its name.
#[test]
fn what_is_asked_for_twice_is_tried_twice() {
    let folder = Folder::with(&[]);
    let matrix = folder.isolde(
        "matrix sim --isolation causal --isolation causal --only G1a --only G1a --output kept",
    );
    assert_eq!((matrix.status, matrix.stderr.as_str()), (0, ""));
    assert_eq!(matrix.stdout.matches("causal  ✓    ✓\n").count(), 2, "{}", matrix.stdout);
    let kept = std::fs::read_dir(folder.path("kept")).expect("a folder");
    assert_eq!(kept.count(), 4);
}

#[test]
fn what_cannot_be_stepped_or_is_not_there_is_refused() {
    let folder = Folder::with(&[]);
    assert_eq!(
        folder.isolde("matrix sim://serializable?bug=future-read"),
        refused(
            "isolde: matrix: expected a database that takes transactions request by request, \
             found sim://serializable?bug=future-read\n"
        )
    );
    let wrong = folder.isolde("matrix sqlite --isolation chaos");
    assert_eq!(wrong.status, 3);
    assert!(wrong.stderr.contains("found `chaos`"), "{}", wrong.stderr);
}

/// MariaDB says that updates get lost at repeatable read, and why something else is skewed;
/// nobody says that of the simulated database.
#[test]
fn what_is_documented_fails_nobody() {
    const MARIADB: Needed = Needed { file: "/usr/sbin/mariadbd", packages: &["mariadb-server"] };
    if !install::is_there(&MARIADB) {
        return;
    }
    let folder = Folder::with(&[]);
    let matrix = folder.isolde("matrix mariadb --isolation repeatable-read --only P4 --only G1a");
    assert_eq!((matrix.status, matrix.stderr.as_str()), (0, ""), "{}", matrix.stdout);
    let documented = "\nrepeatable-read, documented: UPDATE and DELETE see the latest rows and not \
                      those of the transaction's snapshot";
    assert!(matrix.stdout.contains("—wd") || matrix.stdout.contains("—d"), "{}", matrix.stdout);
    assert!(matrix.stdout.contains(documented), "{}", matrix.stdout);
    let skewed = "matrix mariadb --isolation repeatable-read --only G2-item --only read-only";
    let matrix = folder.isolde(skewed);
    assert_eq!((matrix.status, matrix.stderr.as_str()), (0, ""), "{}", matrix.stdout);
    let skew = "\nrepeatable-read, documented: reads see a snapshot and lock nothing";
    assert!(matrix.stdout.contains(skew), "{}", matrix.stdout);
    assert!(!matrix.stdout.contains("UPDATE and DELETE"), "{}", matrix.stdout);
    let bug = folder.isolde("matrix sim://serializable?bug=lost-update --only P4");
    assert_eq!(bug.status, 1, "{}", bug.stdout);
    assert!(bug.stdout.contains("—!"), "{}", bug.stdout);
}

/// Rows of a table: the isolation setting and the signs alone, because who waits or is
/// aborted depends on how busy the machine is.
fn signs(target: &str) -> Vec<String> {
    let matrix = Folder::with(&[]).isolde(&format!("matrix {target} --format json"));
    let json: Value = serde_json::from_str(&matrix.stdout).expect(&matrix.stderr);
    let rows = json["isolations"].as_array().expect("rows").iter();
    let sign = |cell: &Value| match cell["result"].as_str() {
        Some("prevented") => '✓',
        Some("possible") => '—',
        _ => '?',
    };
    rows.map(|row| {
        let cells = row["anomalies"].as_array().expect("cells").iter();
        let name = row["isolation"].as_str().expect("a name");
        format!("{} {name}", cells.map(sign).collect::<String>())
    })
    .collect()
}

/// G0, G1a to c, OTV, P2, PMP by key and by value, PMP of a write and of a delete, P4 twice,
/// G-single five times, causality, long fork, G2-item, G2 by key and by value, read-only: where
/// Hermitage has the column, this is what it has.
#[test]
fn postgresql_prevents_what_hermitage_says() {
    const POSTGRES: Needed =
        Needed { file: "/usr/lib/postgresql/*/bin/postgres", packages: &["postgresql"] };
    if install::is_there(&POSTGRES) {
        assert_eq!(
            signs("postgres"),
            [
                "✓✓✓✓✓—————————————————— read-committed",
                "✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓———— repeatable-read",
                "✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓ serializable",
            ]
        );
    }
}

#[test]
fn mariadb_prevents_what_hermitage_says() {
    const MARIADB: Needed = Needed { file: "/usr/sbin/mariadbd", packages: &["mariadb-server"] };
    if install::is_there(&MARIADB) {
        assert_eq!(
            signs("mariadb"),
            [
                "✓————————✓————————————— read-uncommitted",
                "✓✓✓✓✓—————————————————— read-committed",
                "✓✓✓✓✓✓✓✓————✓✓✓——✓✓———— repeatable-read",
                "✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓———— repeatable-read-snapshot",
                "✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓ serializable",
            ]
        );
    }
}
