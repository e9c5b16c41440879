//! What stands in a log, and what is left of one that ended early.

use super::*;
use isolde_history::format::{self, ReadOptions};

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("isolde-recorder-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn at(invoked: Time, completed: Time) -> Interval {
    Interval { invoked, completed }
}

fn taken(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("the log is there");
    std::fs::remove_file(path).expect("the log is there");
    text
}

#[test]
fn every_answer_has_its_operation() {
    let path = path("answers");
    let log = Log::create(&path).expect("a new file");
    let mut session = log.session("node 1", SnapshotPoint::FirstRequest).expect("writable");
    session.begin(at(1, 2));
    let answers = [
        (Request::Read { key: 1 }, Answer::Value(None)),
        (Request::Write { key: 1, value: 2 }, Answer::Done),
        (Request::ReadList { key: 3 }, Answer::List(vec![4, 5])),
        (Request::Append { key: 3, value: 6 }, Answer::Done),
        (Request::Insert { key: 7, value: 8 }, Answer::Applied(true)),
        (Request::Insert { key: 7, value: 9 }, Answer::Applied(false)),
        (Request::Delete { key: 7 }, Answer::Applied(true)),
        (Request::Delete { key: 7 }, Answer::Applied(false)),
        (Request::Range { low: 1, high: 3 }, Answer::Rows(vec![(3, 1), (2, 5), (9, 9)])),
        (Request::CompareAndSet { key: 1, expected: Some(2), value: 3 }, Answer::Applied(true)),
        (Request::CompareAndSet { key: 1, expected: None, value: 4 }, Answer::Applied(false)),
        (Request::Insert { key: 7, value: 9 }, Answer::Found(Some(8))),
        (Request::CompareAndSet { key: 1, expected: Some(5), value: 6 }, Answer::Found(Some(3))),
        (Request::CompareAndSet { key: 9, expected: Some(5), value: 6 }, Answer::Found(None)),
        (Request::UpdateRange { low: 1, high: 2, first: 50 }, Answer::Rows(vec![(2, 51)])),
    ];
    for (request, answer) in &answers {
        session.answered(request, answer, at(3, 4));
    }
    session.before_commit().expect("writable");
    session.committed(at(5, 6));
    session.begin(at(7, 8));
    session.unanswered(&Request::Write { key: 1, value: 9 }, at(9, 10));
    session.failed(&Failure::Aborted("dead\nlock".into()), at(9, 10));
    session.end().expect("writable");
    log.finish().expect("writable");
    assert_eq!(
        taken(&path),
        "isolde-log 1\n\
         session 1 node 1\n\
         txn 1 1 1-4 r1=@3-4 w1=2@3-4 l3=4,5@3-4 a3=6@3-4 i7=8@3-4 o7=@3-4 d7=@3-4 r7=@3-4 \
         q1..3=1:,2:5,3:1,9:9@3-4 r1=2@3-4 w1=3@3-4 o1=@3-4 o7=:8@3-4 o1=5:3@3-4 o9=5:@3-4 \
         u1..2=1:,2:51@3-4\n\
         commit 1 1 5-6\n\
         txn 1 2 7-10 w1=9@9-10\n\
         abort 1 2 9-10 dead lock\n\
         end\n"
    );
}

#[test]
fn what_was_about_to_commit_is_in_the_log_of_a_recorder_that_died() {
    let path = path("died");
    let log = Log::create(&path).expect("a new file");
    let mut session = log.session("", SnapshotPoint::Begin).expect("writable");
    session.begin(at(1, 2));
    session.answered(&Request::Write { key: 1, value: 2 }, &Answer::Done, at(3, 4));
    session.before_commit().expect("writable");
    session.committed(at(5, 6));
    session.begin(at(7, 8));
    // Neither the session nor the log ends.
    let whole = std::fs::read(&path).expect("the log is there");
    assert_eq!(whole, b"isolde-log 1\nsession 1\ntxn 1 1 1-2 w1=2@3-4\n");
    let input = format::open(&path).expect("the log is there");
    let (history, _) = format::read_detected(input, ReadOptions::default()).expect("a log");
    assert_eq!(history.outcomes(), [isolde_history::Outcome::Unknown]);
    assert_eq!(history.remarks().len(), 1);
    std::fs::remove_file(&path).expect("the log is there");
}

#[test]
fn a_log_is_never_overwritten() {
    let path = path("exists");
    drop(Log::create(&path).expect("a new file"));
    let error = Log::create(&path).map(|_| ()).expect_err("it exists");
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    taken(&path);
}

/// Writing to it fails as on a full disk.
#[test]
#[cfg(target_os = "linux")]
fn after_a_failure_nothing_more_is_written() {
    let file = OpenOptions::new().append(true).open("/dev/full").expect("a device");
    let log = Log {
        path: "/dev/full".into(),
        start: Instant::now(),
        file: Some(Mutex::new(LogFile { file, length: 0, failed: None })),
        observer: None,
        memory: None,
        sessions: AtomicU64::new(0),
    };
    let first = log.event("one").expect_err("the disk is full");
    let second = log.event("two").expect_err("the log has failed");
    assert_eq!(first.kind(), io::ErrorKind::StorageFull);
    assert_eq!(second.kind(), first.kind());
}

/// A driver that answers at once would be recorded at this speed, on one core.
#[test]
fn fifty_thousand_operations_a_second_are_recorded_with_room_to_spare() {
    const OPERATIONS: u32 = 200_000;
    let path = path("speed");
    let log = Log::create(&path).expect("a new file");
    let mut session = log.session("node", SnapshotPoint::Begin).expect("writable");
    let started = Instant::now();
    for txn in 0..OPERATIONS / 4 {
        let invoked = session.now();
        session.begin(at(invoked, session.now()));
        for place in 0..4 {
            let request = Request::Write { key: u64::from(txn % 1000), value: txn.into() };
            let invoked = session.now();
            let interval = at(invoked + place, session.now());
            session.answered(&request, &Answer::Done, interval);
        }
        session.before_commit().expect("writable");
        let invoked = session.now();
        session.committed(at(invoked, session.now()));
    }
    session.end().expect("writable");
    let rate = f64::from(OPERATIONS) / started.elapsed().as_secs_f64();
    std::fs::remove_file(&path).expect("the log is there");
    assert!(rate > 50_000.0, "{rate:.0} operations a second");
}

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn note(&self, text: String) {
        self.0.lock().expect("nobody panics").push(text);
    }
}

impl Observer for Notes {
    fn session(&self, number: u64, endpoint: &str, _now: Time) -> Box<dyn SessionObserver> {
        self.note(format!("session {number} {endpoint}"));
        Box::new(self.clone())
    }
    fn event(&self, _now: Time, what: &str) {
        self.note(format!("event {what}"));
    }
}

impl SessionObserver for Notes {
    fn ready(&mut self) {
        self.note("ready".into());
    }
    fn begun(&mut self, interval: Interval) {
        self.note(format!("begun {}", interval.invoked));
    }
    fn answered(&mut self, request: &Request, _answer: &Answer, interval: Interval) {
        self.note(format!("{} {}", request.kind().name(), interval.invoked));
    }
    fn unanswered(&mut self, request: &Request, interval: Interval) {
        self.note(format!("unanswered {} {}", request.kind().name(), interval.invoked));
    }
    fn committed(&mut self, interval: Interval) {
        self.note(format!("committed {}", interval.invoked));
    }
    fn failed(&mut self, failure: &Failure, interval: Interval) {
        self.note(format!("{failure} {}", interval.invoked));
    }
}

#[test]
fn an_observer_is_told_everything_also_without_a_file() {
    let notes = Notes::default();
    let log = Log::unwritten().observed_by(Arc::new(notes.clone()));
    let mut session = log.session("node 1", SnapshotPoint::Begin).expect("nothing is written");
    session.ready();
    session.begin(at(1, 2));
    session.answered(&Request::Read { key: 1 }, &Answer::Value(None), at(3, 4));
    session.before_commit().expect("nothing is written");
    session.committed(at(5, 6));
    let write = [Request::Write { key: 1, value: 2 }];
    session.before_whole(&write, 7).expect("nothing is written");
    session.unanswered_whole(&write, at(7, 8));
    session.failed(&Failure::Unknown("gone".into()), at(7, 8));
    session.before_whole(&write, 9).expect("nothing is written");
    session.whole(&write, &[Answer::Done], at(9, 10));
    session.committed(at(9, 10));
    log.event("fault").expect("nothing is written");
    session.end().expect("nothing is written");
    log.finish().expect("nothing is written");
    let told = notes.0.lock().expect("nobody panics").clone();
    assert_eq!(
        told,
        [
            "session 1 node 1",
            "ready",
            "begun 1",
            "read 3",
            "committed 5",
            "begun 7",
            "unanswered write 7",
            "outcome unknown: gone 7",
            "begun 9",
            "write 9",
            "committed 9",
            "event fault",
        ]
    );
}
