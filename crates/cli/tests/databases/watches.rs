//! `isolde watch` on private servers.

use crate::{Folder, MARIADB, POSTGRES, install};
use std::fs;

/// How a watch of some seconds ended, and what it printed.
fn watch(folder: &Folder, arguments: &str) -> (i32, String) {
    let output = folder
        .isolde(&format!("watch {arguments} --quiet --explain 1 --output out"))
        .output()
        .expect("the program starts");
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    let messages = String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("a status"), format!("{arguments}: {printed}{messages}"))
}

#[test]
fn a_watch_of_postgresql_is_clean_at_each_level_also_with_faults() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("watch-postgres");
    for options in [
        "--isolation read-committed --duration 4s",
        "--isolation repeatable-read --duration 4s --complete snapshot-isolation",
        "--isolation repeatable-read --duration 4s --preset BlindW-RW --keys 100",
        "--isolation serializable --duration 4s --complete serializable",
        "--isolation serializable --duration 8s --fault kill,pause,partition --fault-every 2s",
        "--isolation repeatable-read --duration 4s --preset SmallBank-balances --keys 100",
        "--isolation serializable --duration 4s --preset TPC-C-balances --keys 100",
    ] {
        let (status, printed) = watch(&folder, &format!("postgres {options}"));
        assert_eq!(status, 0, "{printed}");
        assert!(printed.contains("  no violations\n"), "{printed}");
    }
    let options = "--isolation read-committed --profile snapshot-isolation --duration 4s";
    let workload = "--preset SmallBank-balances --keys 20";
    let (status, printed) = watch(&folder, &format!("postgres {options} {workload}"));
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("lost-update "), "{printed}");
    fs::remove_dir_all(folder.0.join("out")).expect("what was found");
    assert_eq!(folder.entries(), Vec::<String>::new());
}

#[test]
fn a_run_of_postgresql_with_changes_by_condition_is_clean_again_from_its_log() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("watch-log");
    for level in ["read-committed", "repeatable-read", "serializable"] {
        let options =
            format!("--preset predicate-deletes --keys 30 --duration 4s --log {level}.log");
        let (status, printed) = watch(&folder, &format!("postgres --isolation {level} {options}"));
        assert_eq!(status, 0, "{printed}");
        let (status, printed) =
            watch(&folder, &format!("--from {level}.log --profile postgres/{level}"));
        assert_eq!(status, 0, "{printed}");
    }
}

#[test]
fn a_watch_finds_stale_reads_of_a_standby() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("watch-standby");
    let (status, printed) = watch(
        &folder,
        "postgres+standby --isolation repeatable-read --profile snapshot-isolation --duration 6s",
    );
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("stale-read "), "{printed}");
    assert!(folder.0.join("out/violation-1.txt").exists(), "{printed}");
}

#[test]
fn a_watch_finds_lost_updates_of_mariadb_and_stale_reads_of_galera() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let folder = Folder::new("watch-mariadb");
    for (target, name) in [("mariadb", "lost-update "), ("galera", "stale-read ")] {
        let options = "--isolation repeatable-read --profile snapshot-isolation --duration 6s";
        let (status, printed) = watch(&folder, &format!("{target} {options}"));
        assert_eq!(status, 1, "{printed}");
        assert!(printed.contains(name), "{printed}");
    }
}
