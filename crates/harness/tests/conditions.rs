//! Driven by conditions, with all that it tells about itself: the simulated database keeps
//! its levels, and each bug of conditions is found under its name.

use isolde::{Level, Limits, Verdict, check};
use isolde_harness::{
    Access, Answer, Bug, Database, Drive, Extent, Filter, Isolation, Log, Needs, Parameters,
    Progress, Request, RequestKind, SessionLog, Simulated, Workload, preset,
};
use isolde_history::format::{self, ReadOptions};
use isolde_history::{History, Index, Interval};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// A recorded run of so many transactions.
fn recorded(mut database: Simulated, workload: &str, transactions: u32) -> History {
    let parameters = preset(workload).expect("a preset").parameters;
    // Few keys, so that clients meet.
    let keys = parameters.keys.min(1000);
    let parameters = Parameters { transactions, sessions: 4, keys, ..parameters };
    let workload = Workload::new(parameters, None).expect("a workload");
    let needs = Needs { prefix: "isolde_conditions_".to_owned(), requests: workload.requests() };
    database.prepare(&needs).expect("a store");
    let name = format!("{}-{:?}.log", std::process::id(), std::thread::current().id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let log = Log::create(&path).expect("a new file");
    let claim = database.claims().last().expect("a setting").clone();
    let evidence = database.evidence().expect("it tells everything");
    let drive = Drive {
        database: &database,
        claim: &claim,
        workload: &workload,
        log: &log,
        extent: Extent::Counted,
        stop: &AtomicBool::new(false),
        progress: &Progress::default(),
        evidence: Some(Mutex::new(evidence)),
    };
    drive.run().expect("a run");
    let options = ReadOptions::default();
    let read = format::read_detected(format::open(&path).expect("the log"), options);
    std::fs::remove_file(&path).expect("it is there");
    read.expect("a log").0
}

fn anomalies(history: &History, level: Level) -> Option<Vec<&'static str>> {
    let verdicts = check(history, &Index::new(history), &[level], &Limits::NONE);
    match verdicts.into_iter().next().expect("a verdict").1 {
        Verdict::Violated(violated) => {
            let mut names: Vec<_> = violated.anomalies.iter().map(|it| it.kind.name()).collect();
            names.sort_unstable();
            names.dedup();
            Some(names)
        }
        Verdict::Satisfied(_) => None,
        Verdict::Unknown(unknown) => panic!("{unknown}"),
    }
}

#[test]
fn levels_are_kept_by_condition_too() {
    for (isolation, level) in [
        (Isolation::ReadCommitted, Level::ReadCommitted),
        (Isolation::SnapshotIsolation, Level::StrongSnapshotIsolation),
        (Isolation::Serializable, Level::StrictSerializable),
    ] {
        for workload in ["predicates", "phantoms"] {
            let history = recorded(Simulated::new(Some(isolation), None, 1), workload, 1000);
            assert!(history.has_snapshots());
            assert_eq!(anomalies(&history, level), None, "{workload} {}", isolation.name());
        }
    }
}

#[test]
fn bugs_of_conditions_are_found_under_their_names() {
    for (bug, isolation, workload) in [
        (Bug::Phantom, Isolation::SnapshotIsolation, "phantoms"),
        (Bug::PredicateManyPreceders, Isolation::SnapshotIsolation, "phantoms"),
        (Bug::PredicateWriteSkew, Isolation::Serializable, "phantoms"),
    ] {
        let row = bug.row();
        let level = Level::parse(row.violates).expect("a level");
        let history = recorded(Simulated::new(Some(isolation), Some(bug), 1), workload, 1000);
        let names = anomalies(&history, level).unwrap_or_default();
        let is_named = !names.is_empty() && names.iter().all(|name| row.shows.contains(name));
        assert!(is_named, "{}: {names:?}", row.name);
    }
}

#[test]
fn two_inserts_of_one_row_are_found_under_their_name() {
    let row = Bug::LostInsert.row();
    let isolation = Isolation::SnapshotIsolation;
    let mut database = Simulated::new(Some(isolation), Some(Bug::LostInsert), 1);
    let requests = vec![RequestKind::Select, RequestKind::Insert];
    let needs = Needs { prefix: "isolde_inserts_".to_owned(), requests };
    database.prepare(&needs).expect("a store");
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-i.log", std::process::id()));
    let log = Log::create(&path).expect("a new file");
    let claim = database.claims().last().expect("a setting").clone();
    let mut clients: Vec<_> = (0..2)
        .map(|_| {
            let session = database.connect(0, &claim.isolation).expect("a session");
            (session, log.session("one", claim.snapshot).expect("a line"))
        })
        .collect();
    let times = |log: &SessionLog<'_>, since| Interval { invoked: since, completed: log.now() };
    for (session, log) in &mut clients {
        let since = log.now();
        session.begin(Access::ReadWrite).expect("a begin");
        log.begin(times(log, since));
    }
    for (value, (session, log)) in (1..).zip(&mut clients) {
        let select = Request::Select { filter: Filter::Values { low: 1, high: 9 } };
        let insert = Request::Insert { key: 1, value };
        for (request, expected) in
            [(select, Answer::Rows(Vec::new())), (insert, Answer::Applied(true))]
        {
            let since = log.now();
            let answer = session.execute(&request).expect("an answer");
            assert_eq!(answer, expected);
            log.answered(&request, &answer, times(log, since));
        }
    }
    for (mut session, mut log) in clients {
        log.before_commit().expect("a line");
        let since = log.now();
        session.commit().expect("the bug");
        log.committed(times(&log, since));
        log.end().expect("a line");
    }
    log.finish().expect("a log");
    let read = format::read_detected(format::open(&path).expect("the log"), ReadOptions::default());
    std::fs::remove_file(&path).expect("it is there");
    let level = Level::parse(row.violates).expect("a level");
    assert_eq!(anomalies(&read.expect("a log").0, level).unwrap_or_default(), row.shows);
}
