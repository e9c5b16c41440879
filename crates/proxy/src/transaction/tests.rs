//! What becomes of statements and savepoints in the recording.

use super::*;
use crate::sql::{normalised, shape, tokens};
use isolde_history::format;
use isolde_history::{History, Source};

struct Session {
    tracker: Tracker,
    recording: Arc<Recording>,
    table: Arc<Table>,
    path: std::path::PathBuf,
}

impl Session {
    fn new(name: &str) -> Session {
        let path = std::env::temp_dir().join(format!("isolde-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let recording = Arc::new(Recording::create(&path, false).unwrap());
        recording.running(100);
        let table = Table {
            name: "t".into(),
            keys: vec!["id".into()],
            is_partitioned: false,
            has_triggers: false,
            has_dependents: false,
            is_large: false,
        };
        let tracker = Tracker::new(Arc::clone(&recording), "client".into());
        Session { tracker, recording, table: Arc::new(table), path }
    }

    /// A statement that finds or leaves these versions, each a key and its writer.
    fn run(&mut self, sql: &str, versions: &[(&str, u32)]) -> &mut Session {
        let (tokens, _) = tokens(sql).unwrap();
        let shape = shape(sql, &tokens);
        let number = self.recording.statement(normalised(sql, &tokens, &[]));
        let plan = Plan::unchanged(&shape, number, None);
        let table = &self.table;
        let version = |&(key, writer): &(&str, u32)| Version {
            table: Arc::clone(table),
            key: key.into(),
            writer: Some(writer),
        };
        let versions = versions.iter().map(version).collect();
        let invoked = self.recording.now();
        let interval = Interval { invoked, completed: self.recording.now() };
        let tag = sql.to_ascii_uppercase();
        self.tracker.completed(&plan, versions, interval, tag.as_bytes());
        self
    }

    fn history(mut self) -> History {
        self.tracker.closed(None);
        let bytes = std::fs::read(&self.path).unwrap();
        std::fs::remove_file(&self.path).unwrap();
        let input = format::Input::File(Source::from_bytes("trace", &bytes));
        format::read_detected(input, format::ReadOptions::default()).unwrap().0
    }

    /// Operations of all transactions, in the native notation.
    fn told(self) -> Vec<String> {
        let text = format::to_text(&self.history());
        let ops = text.lines().filter(|line| line.contains("(t/"));
        ops.map(|line| line.split(": ").nth(1).unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn a_version_that_its_own_transaction_replaced_has_another_name() {
    let mut session = Session::new("replaced");
    session.run("begin", &[]).run("update t set v = 1", &[("1", 200)]);
    session.run("select * from t", &[("1", 200)]).run("update t set v = 2", &[("1", 200)]);
    session.run("select * from t", &[("1", 200)]).run("commit", &[]);
    let told = session.told();
    assert_eq!(told.len(), 1);
    let values: Vec<&str> = told[0].split_whitespace().collect();
    assert_eq!(values.len(), 4, "{told:?}");
    assert!(values[0].contains("200.1") && values[1].contains("200.1"), "{told:?}");
    assert!(values[2].contains("200)") && values[3].contains("200)"), "{told:?}");
}

#[test]
fn what_is_undone_with_a_savepoint_was_never_written() {
    let mut session = Session::new("undone");
    session.run("begin", &[]).run("select * from t", &[("1", 7)]).run("savepoint a", &[]);
    session
        .run("update t set v = 1", &[("1", 201)])
        .run("select * from t", &[("1", 201), ("2", 7)]);
    session.run("rollback to a", &[]).run("select * from t", &[("1", 7)]).run("commit", &[]);
    let told = session.told().join("\n");
    assert!(!told.contains("201"), "{told}");
    assert_eq!(told.matches("r(").count(), 3, "{told}");
}

#[test]
fn a_commit_without_an_answer_is_unknown_and_none_is_an_abort() {
    for (is_sent, outcome) in [(true, "unknown"), (false, "aborted")] {
        let mut session = Session::new(outcome);
        session.run("begin", &[]).run("update t set v = 1", &[("1", 300)]);
        let now = session.recording.now();
        session.tracker.closed(is_sent.then_some(now));
        let history = session.history();
        assert_eq!(format!("{:?}", history.outcomes()).to_lowercase(), format!("[{outcome}]"));
    }
}

#[test]
fn an_operation_names_its_statement() {
    let mut session = Session::new("named");
    session.run("update t set v = 5 where id = 1", &[("1", 400)]);
    session.tracker.ready(b'I', 1);
    let history = session.history();
    let op = history.ops_of(history.txns().next().unwrap()).next().unwrap();
    let statement = history.datum(history.statement(op)).to_string();
    assert!(statement.contains("update t set v = ? where id = ?"), "{statement}");
}
