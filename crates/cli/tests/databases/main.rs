//! What real databases promise and what they do: `isolde run` on private servers.
//!
//! Servers come from Debian's packages and are installed if they are missing. Every run
//! ends by a number of transactions; the anomalies that are expected show up in each of
//! thousands. The one that takes a meeting is looked for until it is found, for at most a minute.

#[path = "../../../drivers/tests/install/mod.rs"]
mod install;
mod watches;

use install::Needed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const POSTGRES: Needed =
    Needed { file: "/usr/lib/postgresql/*/bin/postgres", packages: &["postgresql"] };

const MARIADB: Needed = Needed {
    file: "/usr/lib/galera/libgalera_smm.so",
    packages: &["mariadb-server", "galera-4", "rsync", "socat", "iproute2"],
};

/// Few keys, so that clients meet.
const SHORT: &str = "--sessions 8 --transactions 3000 --keys 50";

const REDIS: Needed = Needed { file: "/usr/bin/redis-server", packages: &["redis-server"] };
const ETCD: Needed = Needed { file: "/usr/bin/etcd", packages: &["etcd-server"] };

/// A folder for one test, which servers of other users can reach.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("isolde-test-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("a new folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Folder(path)
    }

    fn isolde(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
        command.args(arguments.split(' ')).current_dir(&self.0).env("TMPDIR", &self.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What servers and runs have in it.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a run found.
struct Found {
    status: i32,
    /// For each level its verdict, and the name of an anomaly if it is violated.
    levels: BTreeMap<String, String>,
    /// All of `run.json`.
    json: Value,
    shown: String,
}

impl Found {
    fn level(&self, level: &str) -> &str {
        &self.levels[level]
    }
}

fn run(folder: &Folder, arguments: &str) -> Found {
    let _ = fs::remove_dir_all(folder.0.join("out"));
    let output = folder
        .isolde(&format!("run {arguments} --output out --format json"))
        .output()
        .expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let messages = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{arguments}: {error}: {text}{messages}"));
    let levels = json["report"]["levels"].as_object().expect("levels");
    let verdict = |level: &Value| {
        let verdict = level["verdict"].as_str().expect("a verdict");
        match level["anomalies"][0]["name"].as_str() {
            Some(anomaly) if verdict == "violated" => anomaly.to_owned(),
            _ => verdict.to_owned(),
        }
    };
    assert_eq!(folder.entries(), ["out"], "{arguments}: a server left something behind");
    Found {
        status: output.status.code().expect("a status"),
        levels: levels.iter().map(|(name, level)| (name.clone(), verdict(level))).collect(),
        shown: format!("{arguments}: {messages}{}", json["gate"]),
        json,
    }
}

#[test]
fn postgresql_keeps_what_it_promises_and_not_more() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("postgres");
    for (isolation, promised) in [
        ("read-committed", "monotonic-atomic-view"),
        ("repeatable-read", "strong-snapshot-isolation"),
        ("serializable", "serializable"),
    ] {
        let found = run(&folder, &format!("postgres --isolation {isolation} {SHORT}"));
        assert_eq!(found.status, 0, "{}", found.shown);
        assert_eq!(found.level(promised), "satisfied", "{}", found.shown);
    }
    // What snapshot isolation lets happen is mostly a write skew of two.
    let skews = &["write-skew", "read-only-transaction-anomaly", "anti-dependency-cycle"][..];
    for (isolation, stronger, anomalies) in [
        ("read-committed", "cursor-stability", &["lost-update"][..]),
        ("repeatable-read", "serializable", skews),
    ] {
        let found = run(
            &folder,
            &format!(
                "postgres --isolation {isolation} --level {stronger} --sessions 8 \
                 --transactions 3000 --keys 20 --until-violation --duration 60s"
            ),
        );
        assert_eq!(found.status, 1, "{}", found.shown);
        let shown = found.level(stronger);
        assert!(anomalies.contains(&shown), "{shown}: {}", found.shown);
    }
}

#[test]
fn postgresql_tells_the_order_of_its_versions() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("postgres-white-box");
    for (isolation, preset) in
        [("read-committed", "MTC"), ("serializable", "BlindW-RW"), ("repeatable-read", "YCSB-A")]
    {
        let found = run(
            &folder,
            &format!("postgres --isolation {isolation} --white-box --preset {preset} {SHORT}"),
        );
        assert_eq!(found.status, 0, "{}", found.shown);
        let told = &found.json["white_box"];
        assert!(told["versions"].as_u64() > Some(100), "{isolation}: {told}");
        assert!(told.get("lost").is_none(), "{isolation}: {told}");
    }
}

#[test]
fn mariadb_tells_the_order_of_its_versions() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let folder = Folder::new("mariadb-white-box");
    for (isolation, preset) in [
        ("read-committed", "MTC"),
        ("serializable", "BlindW-RW"),
        ("repeatable-read-snapshot", "MTC"),
    ] {
        let found = run(
            &folder,
            &format!("mariadb --isolation {isolation} --white-box --preset {preset} {SHORT}"),
        );
        assert_eq!(found.status, 0, "{}", found.shown);
        let told = &found.json["white_box"];
        assert!(told["versions"].as_u64() > Some(100), "{isolation}: {told}");
        assert!(told.get("lost").is_none(), "{isolation}: {told}");
    }
}

/// Its locks tell what reads by condition saw: the state of the log right before the commit.
#[test]
fn mariadb_at_serializable_is_decided_with_conditions() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let folder = Folder::new("mariadb-conditions");
    let found = run(
        &folder,
        "mariadb --isolation serializable --white-box --preset predicates --sessions 6 \
         --transactions 400 --level serializable",
    );
    assert_eq!(found.status, 0, "{}", found.shown);
    let told = &found.json["white_box"];
    assert!(told["snapshots"].as_u64() > Some(0), "{told}");
}

/// Rows are only inserted, so nothing that reads of single rows show is wrong.
#[test]
fn postgresql_shows_anomalies_that_only_conditions_see() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("postgres-conditions");
    let found = run(
        &folder,
        "postgres --isolation read-committed --white-box --preset phantoms --sessions 8 \
         --transactions 1000 --level serializable --level repeatable-read",
    );
    assert_eq!(found.status, 1, "{}", found.shown);
    assert_eq!(found.level("repeatable-read"), "satisfied", "{}", found.shown);
    let shown = found.level("serializable");
    assert!(
        ["predicate-write-skew", "phantom", "predicate-many-preceders"].contains(&shown)
            || shown == "predicate-anti-dependency-cycle",
        "{}",
        found.shown
    );
    for preset in ["phantoms", "predicates"] {
        let found = run(
            &folder,
            &format!(
                "postgres --isolation serializable --white-box --preset {preset} --sessions 4 \
                 --transactions 1000"
            ),
        );
        assert_eq!(found.status, 0, "{}", found.shown);
        assert_eq!(found.level("serializable"), "satisfied", "{}", found.shown);
        let told = &found.json["white_box"];
        assert!(told["snapshots"].as_u64() >= Some(1000), "{told}");
    }
}

/// Who reads the verdicts alone must not take them for those of a white box.
#[test]
fn a_white_box_that_was_lost_shows_beside_every_verdict() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("postgres-lost");
    let run = "run postgres --isolation serializable --white-box --preset BlindW-RW --sessions 4 \
               --duration 6s --fault restart --fault-every 1s --quiet --output out";
    let output = folder.isolde(run).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let shown = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("serializable: ") && output.status.code() != Some(1), "{shown}");
    assert!(text.lines().all(|line| line.contains(" (white box lost: ")), "{shown}");
}

/// Ranges and deletes without a white box: tombstones tell which deletes a range saw.
#[test]
fn postgresql_is_judged_by_ranges_that_show_tombstones() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("postgres-tombstones");
    for preset in ["Range-RQH", "Range-IDH"] {
        let marked = format!("--deletes mark --preset {preset} {SHORT}");
        let found = run(&folder, &format!("postgres --isolation serializable {marked}"));
        assert_eq!(found.status, 0, "{}", found.shown);
        assert_eq!(found.level("serializable"), "satisfied", "{}", found.shown);
        let found = run(
            &folder,
            &format!(
                "postgres --isolation read-committed --level serializable {marked} \
                 --until-violation --duration 60s"
            ),
        );
        assert_eq!(found.status, 1, "{}", found.shown);
    }
}

/// Records a history of a server that stays, and asks it afterwards.
fn recovered(folder: &Folder, address: &str, more: &str) -> (String, i32) {
    let found = run(folder, &format!("{address} --preset BlindW-RW {SHORT}"));
    assert_eq!(found.status, 0, "{}", found.shown);
    let recover = format!("recover {address} out/history.log --output out/with.txt{more}");
    let output = folder.isolde(&recover).output().expect("the program starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let text = fs::read_to_string(folder.0.join("out/with.txt")).expect("a history");
    let orders = text.lines().filter(|line| line.starts_with("order ")).count();
    assert!(orders > 10, "{orders}");
    let check = folder.isolde("check out/with.txt --level read-committed").output();
    (told, check.expect("the program starts").status.code().expect("a status"))
}

#[test]
fn the_order_of_versions_is_recovered_afterwards() {
    if !install::is_there(&POSTGRES) || !install::is_there(&MARIADB) {
        return;
    }
    let open = |name: &str| {
        isolde_drivers::open(&isolde_harness::Address::parse(name).expect("an address"))
            .expect("a private server")
    };
    let folder = Folder::new("recover");
    let server = open("mariadb");
    let address = format!("mariadb://root@{}/test", server.endpoints()[0].name);
    let (told, status) = recovered(&folder, &address, "");
    assert!(told.starts_with("isolde: MariaDB told the order of "), "{told}");
    assert_eq!(status, 0);
    // Of two runs in one log, the one whose versions the history wrote is meant.
    fs::rename(folder.0.join("out/history.log"), folder.0.join("first.log")).expect("a file");
    let found = run_again(&folder, &address);
    assert!(found.starts_with("isolde: MariaDB told the order of "), "{found}");
    drop(server);
    let server = open("postgres");
    let at = server.endpoints()[0].name.clone();
    let address = format!("postgres://postgres@{at}/postgres");
    let refused = folder.isolde(&format!("recover {address} first.log --slot absent")).output();
    let text = String::from_utf8_lossy(&refused.expect("a start").stderr).into_owned();
    assert!(
        text.ends_with(
            "create it before the run, by SELECT pg_create_logical_replication_slot('name', \
             'test_decoding')\n"
        ),
        "{text}"
    );
}

/// Records once more, and recovers the first.
fn run_again(folder: &Folder, address: &str) -> String {
    let _ = fs::remove_dir_all(folder.0.join("out"));
    let _ = folder
        .isolde(&format!("run {address} --preset BlindW-RW {SHORT} --output out --quiet"))
        .output()
        .expect("the program starts");
    let output = folder.isolde(&format!("recover {address} first.log")).output();
    let output = output.expect("the program starts");
    let found = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{found}");
    found
}

/// Servers are killed without `fsync`: what a process has written, the system keeps.
#[test]
fn postgresql_stays_serializable_whatever_is_done_to_its_server() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("faults");
    let found = run(
        &folder,
        "postgres --isolation serializable --sessions 8 --keys 100 --duration 12s \
         --fault kill,partition,pause,restart --fault-every 1s",
    );
    assert_eq!(found.status, 0, "{}", found.shown);
    assert_eq!(found.level("serializable"), "satisfied", "{}", found.shown);
    let faults = found.json["faults"].as_array().expect("faults");
    let mut names: Vec<&str> = faults.iter().filter_map(|fault| fault["fault"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    // How many there are in the time depends on how fast the server comes back.
    let asked = ["kill", "partition", "pause", "restart"];
    assert!(names.len() > 1 && names.iter().all(|name| asked.contains(name)), "{names:?}");
    let log = fs::read_to_string(folder.0.join("out/history.log")).expect("the log");
    let count = |start: &str| log.lines().filter(|line| line.starts_with(start)).count();
    let over = log.lines().filter(|line| line.ends_with(" is over")).count();
    assert!(over >= faults.len() - 1, "{log}");
    assert_eq!(count("event "), faults.len() + over);
    // Broken connections end sessions, and lost answers are nothing else than unknown.
    assert!(count("session ") > 8, "{}", found.shown);
    let lines = |word: &str| count(&format!("{word} ")) as u64;
    for (word, number) in [("commit", "committed"), ("abort", "aborted"), ("unknown", "unknown")] {
        assert_eq!(Some(lines(word)), found.json[number].as_u64(), "{word}");
    }
    assert!(!log.lines().any(|line| line.starts_with("commit ") && line.ends_with('-')));
}

#[test]
fn servers_of_a_cluster_end_and_come_back() {
    for (needed, target) in [
        (
            &POSTGRES,
            "postgres+standby --isolation repeatable-read --level parallel-snapshot-isolation",
        ),
        (&ETCD, "etcd+cluster --isolation linearizable-reads --level strict-serializable"),
        (&REDIS, "redis+replica --level serializable"),
        (&MARIADB, "galera --isolation read-committed --level monotonic-atomic-view"),
    ] {
        if !install::is_there(needed) {
            continue;
        }
        let folder = Folder::new("cluster");
        let faults = "--fault kill,restart --fault-every 1s --duration 12s --keys 20";
        let found = run(&folder, &format!("{target} {faults}"));
        assert_eq!(found.status, 0, "{}", found.shown);
        let happened = found.json["faults"].as_array().expect("faults");
        for fault in ["kill", "restart"] {
            let is_there = happened.iter().any(|it| it["fault"] == fault);
            assert!(is_there, "{fault}: {} {happened:?}", found.shown);
        }
    }
}

#[test]
fn a_standby_of_postgresql_shows_a_long_fork() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let folder = Folder::new("standby");
    let found = run(
        &folder,
        "postgres+standby --isolation repeatable-read --level snapshot-isolation \
         --level parallel-snapshot-isolation --preset BlindW-RW+ --operations 2 --keys 20 --sessions 30 --transactions 5000 \
         --until-violation --duration 60s --timeout 20s",
    );
    assert_eq!(found.status, 1, "{}", found.shown);
    // What violates the one and not the other is a long fork, whatever else lies on the
    // cycle that is shown for it.
    assert_ne!(found.level("snapshot-isolation"), "satisfied", "{}", found.shown);
    assert_eq!(found.level("parallel-snapshot-isolation"), "satisfied", "{}", found.shown);
}

#[test]
fn mariadb_loses_updates_unless_snapshots_are_kept() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let folder = Folder::new("mariadb");
    let found = run(&folder, &format!("mariadb --isolation repeatable-read {SHORT}"));
    assert_eq!(found.status, 1, "{}", found.shown);
    assert_eq!(found.level("repeatable-read"), "lost-update");
    assert!(found.shown.contains("innodb_snapshot_isolation=ON refuses that"), "{}", found.shown);
    let found = run(&folder, &format!("mariadb --isolation repeatable-read-snapshot {SHORT}"));
    assert_eq!(found.status, 0, "{}", found.shown);
    assert_eq!(found.level("session-snapshot-isolation"), "satisfied");
}

#[test]
fn galera_loses_updates_and_reads_stale_values() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let folder = Folder::new("galera");
    let workload = "--sessions 6 --transactions 2000 --keys 50";
    let found = run(&folder, &format!("galera --isolation repeatable-read {workload}"));
    assert_eq!(found.status, 1, "{}", found.shown);
    assert_eq!(found.level("cursor-stability"), "lost-update");
    // Some nodes are behind others, which real time shows. Single reads and writes lose no
    // update; a circle of more than two of them has another name, and the next seed is tried.
    let deadline = Instant::now() + Duration::from_mins(2);
    let stale = "--preset YCSB-A --sessions 6 --keys 5 --transactions 2000 --level \
                 strict-serializable --until-violation --duration 60s";
    for seed in 1.. {
        let found = run(
            &folder,
            &format!("galera --isolation repeatable-read-snapshot {stale} --seed {seed}"),
        );
        assert_eq!(found.status, 1, "{}", found.shown);
        let shown = found.level("strict-serializable");
        if shown == "stale-read" {
            return;
        }
        assert!(Instant::now() < deadline, "{shown}: {}", found.shown);
    }
}

/// An error may come after the row that was asked for: who misses it takes what follows for a
/// part of a transaction that has ended.
#[test]
fn galera_takes_back_what_it_aborts() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let folder = Folder::new("galera-aborts");
    let workload = "--preset predicates --transactions 4000 --seed 2 --level adya-read-committed";
    let found = run(&folder, &format!("galera --isolation repeatable-read-snapshot {workload}"));
    assert_eq!(found.level("adya-read-committed"), "satisfied", "{}", found.shown);
}

/// Waits until a run records, so that its server is there.
fn wait_for_history(folder: &Folder, running: &mut Child) {
    let deadline = Instant::now() + Duration::from_mins(1);
    let history = folder.0.join("out/history.log");
    while !fs::metadata(&history).is_ok_and(|file| file.len() > 10_000) {
        let ended = running.try_wait().expect("a child");
        assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(running: &Child, name: &str) {
    let id = running.id().to_string();
    let sent = Command::new("/bin/kill").args([name, &id]).status();
    assert!(sent.expect("kill is there").success());
}

fn is_gone(folder: &Folder) -> bool {
    (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        !folder.entries().iter().any(|name| name.starts_with("isolde-"))
    })
}

#[test]
fn a_private_server_ends_with_the_program_however_that_ends() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let arguments = "run postgres --isolation serializable --duration 120s --output out --quiet";
    let recording = |name: &str| {
        let folder = Folder::new(name);
        let mut running = folder.isolde(arguments).spawn().expect("the program starts");
        wait_for_history(&folder, &mut running);
        (folder, running)
    };
    // A second signal ends it before it has cleaned up, or checked.
    for (name, sent) in [("killed", "-KILL"), ("ended", "-INT")] {
        let (folder, mut running) = recording(name);
        while running.try_wait().expect("a child").is_none() {
            signal(&running, sent);
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(is_gone(&folder), "{name}: {:?}", folder.entries());
    }
    let (folder, running) = recording("interrupted");
    signal(&running, "-INT");
    let output = running.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text, "strong-snapshot-isolation: satisfied\nserializable: satisfied\n");
    assert_eq!(folder.entries(), ["out"]);
}
