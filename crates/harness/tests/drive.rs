//! Runs against a database that fails in every way there is.

use isolde::{Check, Level, Limits, Verdict};
use isolde_harness::{
    Access, Answer, Claim, Database, Drive, DriveError, Endpoint, Extent, Failure, Log, Needs,
    Parameters, Progress, Request, RequestKind, Session, SnapshotPoint, Style, Workload, preset,
};
use isolde_history::format::{self, ReadOptions};
use isolde_history::{History, Index, Outcome};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// One transaction at a time: whoever comes second is refused.
#[derive(Default)]
struct Store {
    registers: Mutex<HashMap<u64, u64>>,
    /// The session that is in a transaction.
    busy: AtomicU64,
    sessions: AtomicU64,
    commits: AtomicU64,
}

/// What goes wrong, by the number of the commit or of the session.
#[derive(Clone, Copy)]
enum Fault {
    Nothing,
    /// Every so many commits the answer is lost; every other time it had its effect.
    LostAnswers(u64),
    /// Every so many commits the connection breaks before.
    LostConnections(u64),
    /// The n-th commit is refused for good.
    Refusal(u64),
    /// After the n-th commit nobody can connect.
    Gone(u64),
}

struct Faulty {
    store: Arc<Store>,
    fault: Fault,
    style: Style,
    endpoints: Vec<Endpoint>,
    claims: Vec<Claim>,
}

impl Database for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }
    fn version(&self) -> String {
        "1".into()
    }
    fn claims(&self) -> &[Claim] {
        &self.claims
    }
    fn default_isolation(&self) -> &'static str {
        "serial"
    }
    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }
    fn supports(&self, kind: RequestKind) -> bool {
        matches!(kind, RequestKind::Read | RequestKind::Write)
    }
    fn style(&self) -> Style {
        self.style
    }
    fn prepare(&mut self, _needs: &Needs) -> Result<(), Failure> {
        Ok(())
    }
    fn connect(&self, _endpoint: usize, _isolation: &str) -> Result<Box<dyn Session>, Failure> {
        if let Fault::Gone(last) = self.fault
            && self.store.commits.load(Ordering::SeqCst) >= last
        {
            return Err(Failure::Refused("the server is gone".into()));
        }
        let id = self.store.sessions.fetch_add(1, Ordering::SeqCst) + 1;
        let (store, fault) = (Arc::clone(&self.store), self.fault);
        Ok(Box::new(FaultySession { store, fault, id, writes: HashMap::new() }))
    }
    fn clean_up(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

struct FaultySession {
    store: Arc<Store>,
    fault: Fault,
    id: u64,
    writes: HashMap<u64, u64>,
}

impl FaultySession {
    fn registers(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.store.registers.lock().expect("nobody panics")
    }

    fn end(&mut self) {
        self.writes.clear();
        let _ = self.store.busy.compare_exchange(self.id, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    fn apply(&mut self) {
        let writes = std::mem::take(&mut self.writes);
        self.registers().extend(writes);
    }
}

impl Drop for FaultySession {
    fn drop(&mut self) {
        self.end();
    }
}

impl Session for FaultySession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        let taken =
            self.store.busy.compare_exchange(0, self.id, Ordering::SeqCst, Ordering::SeqCst);
        taken.map(|_| ()).map_err(|_| Failure::Aborted("busy".into()))
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        match *request {
            Request::Read { key } => {
                let own = self.writes.get(&key).copied();
                Ok(Answer::Value(own.or_else(|| self.registers().get(&key).copied())))
            }
            Request::Write { key, value } => {
                self.writes.insert(key, value);
                Ok(Answer::Done)
            }
            ref other => Err(Failure::unsupported(other)),
        }
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let number = self.store.commits.fetch_add(1, Ordering::SeqCst) + 1;
        let result = match self.fault {
            Fault::LostAnswers(every) if number.is_multiple_of(every) => {
                if number.is_multiple_of(2 * every) {
                    self.apply();
                }
                Err(Failure::Unknown("no answer".into()))
            }
            Fault::LostConnections(every) if number.is_multiple_of(every) => {
                Err(Failure::Lost("reset".into()))
            }
            Fault::Refusal(last) if number >= last => Err(Failure::Refused("no space".into())),
            Fault::Gone(last) if number >= last => Err(Failure::Unknown("no answer".into())),
            _ => {
                self.apply();
                Ok(())
            }
        };
        self.end();
        result
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.end();
        Ok(())
    }

    fn whole(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
        self.begin(Access::ReadWrite)?;
        let answers = requests.iter().map(|request| self.execute(request));
        let answers = answers.collect::<Result<Vec<_>, _>>()?;
        self.commit()?;
        Ok(answers)
    }
}

struct Driven {
    result: Result<(), DriveError>,
    history: History,
    /// Committed, aborted, unknown: as counted while running.
    counts: (u64, u64, u64),
}

fn driven(name: &str, fault: Fault, style: Style, extent: Extent) -> Driven {
    let parameters = Parameters { sessions: 3, transactions: 300, ..mini() };
    let workload = Workload::new(parameters, None).expect("a workload");
    let claims = vec![Claim::new("serial", &["strict-serializable"], SnapshotPoint::Begin)];
    let endpoints = vec![
        Endpoint { name: "one".into(), access: Access::ReadWrite },
        Endpoint { name: "two".into(), access: Access::ReadOnly },
    ];
    let store = Arc::new(Store::default());
    let database = Faulty { store, fault, style, endpoints, claims };
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("drive-{name}-{}.log", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let (log, progress) = (Log::create(&path).expect("a new file"), Progress::default());
    let result = Drive {
        database: &database,
        claim: &database.claims[0],
        workload: &workload,
        log: &log,
        extent,
        stop: &AtomicBool::new(false),
        progress: &progress,
        evidence: None,
    }
    .run();
    let input = format::open(&path).expect("the log is there");
    let (history, _) = format::read_detected(input, ReadOptions::default()).expect("a log");
    std::fs::remove_file(&path).expect("the log is there");
    let counts = progress.counts();
    Driven { result, history, counts: (counts.committed, counts.aborted, counts.unknown) }
}

fn mini() -> Parameters {
    preset("MTC").expect("a preset").parameters
}

fn is_strict_serializable(history: &History) -> bool {
    let index = Index::new(history);
    let verdict = Check::new(history, &index, &Limits::NONE).decide(Level::StrictSerializable);
    matches!(verdict, Verdict::Satisfied(_))
}

fn outcomes(history: &History) -> (u64, u64, u64) {
    let count = |wanted| history.outcomes().iter().filter(|&&it| it == wanted).count() as u64;
    (count(Outcome::Committed), count(Outcome::Aborted), count(Outcome::Unknown))
}

#[test]
fn a_run_commits_what_it_was_asked_for_and_records_all_of_it() {
    for style in [Style::Interactive, Style::Whole] {
        let driven = driven(&format!("good-{style:?}"), Fault::Nothing, style, Extent::Counted);
        driven.result.expect("nothing fails");
        assert_eq!(outcomes(&driven.history), driven.counts);
        assert_eq!((driven.counts.0, driven.counts.2), (300, 0));
        assert_eq!(driven.history.session_count(), 3);
        assert!(driven.history.remarks().is_empty());
        assert!(is_strict_serializable(&driven.history));
    }
}

#[test]
fn a_lost_answer_is_unknown_and_ends_its_session() {
    for style in [Style::Interactive, Style::Whole] {
        let driven =
            driven(&format!("lost-{style:?}"), Fault::LostAnswers(20), style, Extent::Counted);
        driven.result.expect("clients go on");
        assert_eq!(outcomes(&driven.history), driven.counts);
        assert_eq!(driven.counts.0, 300);
        assert!(driven.counts.2 >= 15, "{:?}", driven.counts);
        assert_eq!(driven.history.session_count() as u64, 3 + driven.counts.2);
        assert!(is_strict_serializable(&driven.history));
    }
}

#[test]
fn a_broken_connection_before_the_commit_aborts_and_ends_its_session() {
    let driven = driven("broken", Fault::LostConnections(20), Style::Interactive, Extent::Counted);
    driven.result.expect("clients go on");
    assert_eq!(outcomes(&driven.history), driven.counts);
    assert_eq!((driven.counts.0, driven.counts.2), (300, 0));
    assert!(driven.history.session_count() > 3);
    assert!(is_strict_serializable(&driven.history));
}

#[test]
fn what_was_recorded_before_a_refusal_is_kept() {
    for (name, fault, message) in [
        ("refused", Fault::Refusal(50), "no space"),
        ("gone", Fault::Gone(50), "the server is gone"),
    ] {
        let driven = driven(name, fault, Style::Interactive, Extent::Counted);
        let error = driven.result.expect_err("the run ends early");
        assert_eq!(error.to_string(), message);
        assert_eq!(driven.counts.0, 49);
        assert_eq!(outcomes(&driven.history).0, 49);
        assert!(driven.history.remarks().is_empty(), "the log has its end");
        assert!(is_strict_serializable(&driven.history));
    }
}

#[test]
fn sessions_on_an_endpoint_that_only_reads_do_not_write() {
    let driven = driven("endpoints", Fault::Nothing, Style::Interactive, Extent::Counted);
    let history = &driven.history;
    for session in history.sessions() {
        let is_second = history.datum(history.endpoint(session)).to_string() == "two";
        let writes = history.txns_of(session).flat_map(|txn| history.ops_of(txn));
        let writes = writes.filter(|&op| history.op(op).kind.is_write()).count();
        assert_eq!(writes == 0, is_second, "{session:?}");
    }
}

#[test]
fn a_duration_ends_a_run_whatever_was_committed() {
    let short = Extent::Lasting(Duration::from_millis(60));
    let driven = driven("duration", Fault::Nothing, Style::Interactive, short);
    driven.result.expect("nothing fails");
    assert_eq!(outcomes(&driven.history), driven.counts);
    assert!(is_strict_serializable(&driven.history));
}

#[test]
fn a_limit_ends_a_run_before_its_number_does_and_the_number_before_the_limit() {
    let within = |limit| {
        let extent = Extent::CountedWithin(limit);
        driven("within", Fault::Nothing, Style::Interactive, extent).counts.0
    };
    assert_eq!(within(Duration::ZERO), 0);
    assert_eq!(within(Duration::from_hours(1)), 300);
}
