//! What is said about violations, word for word, as somebody read and approved it.
//!
//! `ISOLDE_BLESS=1 cargo test -p isolde-report` writes the files anew: read what changed.

#![expect(clippy::print_stdout, reason = "a skipped test must be seen")]

mod support;

use isolde::elle::{Expectations, JepsenWorkload};
use isolde::{Level, Limits, applicable_levels};
use isolde_history::format::{self, ReadOptions};
use isolde_history::{Datum, History, HistoryBuilder, Index, OpKind};
use isolde_report::scenario::EdgeKind;
use isolde_report::{Prose, Report, Which, explain, tell, to_explanations, to_text};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn report_of(path: &Path) -> Report {
    report_at(path, None)
}

/// The report of all levels, or of some alone.
fn report_at(path: &Path, levels: Option<&[Level]>) -> Report {
    let (history, format) = read(path);
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    match levels {
        Some(levels) => support::report(&history, (&name, format), levels),
        None => report(&history, &name, format),
    }
}

fn read(path: &Path) -> (History, &'static str) {
    let input = format::open(path).expect("a file");
    let options = ReadOptions::default();
    let (history, format) = format::read_detected(input, options).expect("a history");
    (history, format.name)
}

fn report(history: &History, name: &str, format: &str) -> Report {
    support::report(history, (name, format), &applicable_levels(history))
}

/// Elle's name of a cycle counts the dependencies that are shown, no others.
fn names_are_those_of_the_edges(file: &str, report: &Report) {
    for anomaly in report.levels.iter().flat_map(|level| &level.anomalies) {
        let (names, edges) = (&anomaly.scenario.names, &anomaly.scenario.edges);
        let Some(elle) = names.elle.as_deref().filter(|elle| elle.starts_with('G')) else {
            continue;
        };
        let is_anti = |place: usize| edges[place % edges.len()].kind == EdgeKind::Rw;
        let anti = (0..edges.len()).filter(|&place| is_anti(place)).count();
        let expected = match anti {
            _ if edges.is_empty() => continue,
            0 if edges.iter().any(|edge| edge.kind == EdgeKind::Wr) => "G1c",
            0 => "G0",
            1 => "G-single",
            _ if (0..edges.len()).any(|place| is_anti(place) && is_anti(place + 1)) => "G2",
            _ => "G-nonadjacent",
        };
        let found = elle.trim_end_matches("-realtime").trim_end_matches("-process");
        assert_eq!(found.trim_end_matches("-item"), expected, "{file}: {}", names.name);
    }
}

/// The explanations of all histories, compared with what was approved.
fn compare(golden: &str, root: &str, files: &[String]) {
    let mut told = String::new();
    for file in files {
        let report = report_of(&Path::new(root).join(file));
        names_are_those_of_the_edges(file, &report);
        let text = to_explanations(&report, Which::Broken);
        writeln!(told, "==== {file}\n\n{text}").expect("a string grows");
    }
    compare_texts(golden, &told);
}

/// What is told, compared with what was approved.
fn compare_texts(golden: &str, told: &str) {
    let path = Path::new(GOLDEN).join(golden);
    if std::env::var_os("ISOLDE_BLESS").is_some() {
        std::fs::write(&path, told).expect("writing a golden file");
        return;
    }
    let approved = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (approved, told)) in approved.lines().zip(told.lines()).enumerate() {
        assert_eq!(told, approved, "{golden}:{}", line + 1);
    }
    assert_eq!(told.lines().count(), approved.lines().count(), "{golden}");
}

/// The texts of a folder of the corpus, by name.
fn texts(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(Path::new(CORPUS).join(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path: PathBuf| {
            format!("{folder}/{}", path.file_name().expect("a name").to_string_lossy())
        })
        .collect();
    names.sort();
    names
}

#[test]
fn the_fourteen_anomalies_of_mini_transactions() {
    compare("mini-transactions.txt", CORPUS, &texts("anomalies/mini-transactions"));
}

#[test]
fn the_smallest_history_of_each_anomaly() {
    compare("anomalies.txt", CORPUS, &texts("anomalies"));
}

#[test]
fn the_figures_of_papers() {
    let folders = ["papers/polysi", "papers/mtc", "papers/viper"];
    compare(
        "papers.txt",
        CORPUS,
        &folders.iter().flat_map(|folder| texts(folder)).collect::<Vec<_>>(),
    );
}

#[test]
fn violations_that_others_recorded() {
    if !Path::new(DATA).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let files = [
        "mtc/fractured-reads.txt",
        "mtc/long-fork.txt",
        "mtc/lost-update.txt",
        "mtc/maria-galera-lost-update.txt",
        "mtc/session-guarantee.txt",
        "mtc/write-skew.txt",
        "polysi/violations/galera.txt",
        "polysi/violations/yugabyte.txt",
        "polysi/violations/dgraph/history.bincode",
        "cobra/violations/cock-G2",
        "cobra/violations/yuga-G2-a",
        "elle/paper-example.edn",
        "elle/si-without-g-single.edn",
        "elle/huge-scc.edn",
        "elle-cli/elle/list-append-gh-30.edn",
        "elle-cli/elle/paper-example.edn",
        "elle-cli/elle/rw-register.edn",
    ];
    compare("recorded.txt", DATA, &files.map(str::to_owned));
}

/// Anomalies that other checkers name in their own data.
#[test]
fn violations_in_the_data_of_other_checkers() {
    if !Path::new(DATA).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let files = [
        "awdit/none/hb-cycle.txt",
        "awdit/read-atomic/biswas-enea.txt",
        "awdit/read-atomic/test-ra.txt",
        "awdit/read-committed/biswas-enea.txt",
        "awdit/read-committed/non-repeatable-read.txt",
        "awdit/read-committed/test-rc.txt",
        "awdit/causal/long-fork.txt",
        "awdit/causal/lost-update.txt",
        "isopredict/not_readcommitted.txt",
        "isopredict/simple_noncausal_2s3t.txt",
        "isopredict/simple_causal_2s3t.txt",
        "isovista/dgraph_si.txt",
        "isovista/pg_ser_bug.txt",
        "isovista/yugabyte_tcc.txt",
        "elle-cli/jepsen/long-fork.edn",
        "vbox/coo/iat_dda_read_skew_committed",
        "vbox/coo/iat_dda_read_write_skew1_committed",
        "vbox/coo/iat_dda_write_skew_committed",
        "vbox/coo/iat_sda_non_repeatable_read_committed",
        "vbox/coo/rat_dda_double_write_skew1_committed",
        "vbox/coo/rat_dda_double_write_skew2",
        "vbox/coo/rat_dda_read_skew2",
        "vbox/coo/rat_dda_write_read_skew",
        "vbox/coo/rat_sda_dirty_read",
        "vbox/coo/rat_sda_intermediate_read_committed",
        "vbox/coo/wat_dda_double_write_skew2_committed",
        "vbox/coo/wat_dda_read_write_skew1_c1",
        "vbox/coo/wat_dda_read_write_skew2_c1",
        "vbox/coo/wat_dda_read_write_skew2_committed",
        "vbox/coo/wat_sda_lost_update_c2",
    ];
    compare("others.txt", DATA, &files.map(str::to_owned));
}

/// Registers, stores and locks that are no single copy.
#[test]
fn violations_of_linearizability_that_others_recorded() {
    if !Path::new(DATA).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let files = [
        "elle-cli/knossos/cas-register/bad/bad-analysis.edn",
        "elle-cli/knossos/cas-register/bad/cas-failure.edn",
        "elle-cli/knossos/cas-register/bad/mongodb-v0-ack-rollback-6.edn",
        "elle-cli/knossos/cas-register/bad/rethink-fail-minimal.edn",
        "elle-cli/knossos/cas-register/bad/rethink-fail-smaller.edn",
        "elle-cli/knossos/cas-register/bad/rethink-fail.edn",
        "jepsen-demo/etcd_q=false_g=false.history.edn",
        "jepsen-demo/etcd_q=true_g=true.history.edn",
        "jepsen-demo/zk_e=true.history.edn",
        "knossos/mutex/bad/etcd.edn",
        "porcupine/jepsen/etcd_000.log",
        "porcupine/jepsen/etcd_004.log",
        "porcupine/jepsen/etcd_006.log",
        "porcupine/jepsen/etcd_008.log",
        "porcupine/kv/c01-bad.txt",
        "porcupine/kv/c10-bad.txt",
    ];
    let mut told = String::new();
    for file in files {
        let report = report_at(&Path::new(DATA).join(file), Some(&[Level::Linearizable]));
        let text = to_explanations(&report, Which::Broken);
        writeln!(told, "==== {file}\n\n{text}").expect("a string grows");
    }
    compare_texts("linearizable.txt", &told);
}

/// Mistakes that only their own workloads know: banks, sets, locks.
#[test]
fn violations_of_jepsens_workloads() {
    if !Path::new(DATA).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let files = [
        ("bank", "elle-cli/jepsen/bank-tidb.edn"),
        ("bank", "elle-cli/jepsen/bank-negative-balances.json"),
        ("set-full", "elle-cli/jepsen/set_full.edn"),
        ("long-fork", "elle-cli/jepsen/long-fork.edn"),
        ("mutex", "elle-cli/knossos/mutex/bad/etcd.edn"),
        ("mutex", "elle-cli/knossos/mutex/bad/etcd.json"),
        ("cas-register", "elle-cli/knossos/cas-register/bad/rethink-fail.edn"),
    ];
    let mut told = String::new();
    for (model, file) in files {
        let (history, _) = read(&Path::new(DATA).join(file));
        let workload = JepsenWorkload::parse(model).expect("a workload");
        let group_size = (model == "long-fork").then_some(3);
        let expectations = Expectations { group_size, ..Expectations::default() };
        let finding = workload.check(&history, expectations, &Limits::NONE).expect("it fits");
        let index = Index::new(&history);
        let prose = Prose::new(&history, &index, file);
        writeln!(told, "==== {model} {file}\n").expect("a string grows");
        for problem in &finding.problems {
            writeln!(told, "{}: {}", problem.name, tell(&prose, problem)).expect("a string grows");
        }
        for anomaly in &finding.anomalies {
            let text = explain(&prose, anomaly);
            writeln!(told, "{}: {text}", anomaly.kind.name()).expect("a string grows");
        }
        told.push('\n');
    }
    compare_texts("workloads.txt", &told);
}

/// The names, transactions and dependencies of the first violation.
fn outline(file: &str) -> String {
    let report = report_of(&Path::new(CORPUS).join(file));
    let level = report.levels.iter().find(|level| !level.anomalies.is_empty()).expect("one");
    let scenario = &level.anomalies[0].scenario;
    let name = |place: usize| &scenario.transactions[place].name;
    let edges = scenario.edges.iter().map(|edge| {
        let key = edge.key.as_deref().unwrap_or("-");
        format!("{} {} {} on {key}", name(edge.from), edge.kind.name(), name(edge.to))
    });
    let edges: Vec<String> = edges.collect();
    format!("{}: {}", scenario.names.everyday, edges.join(", "))
}

#[test]
fn the_long_fork_of_the_paper_comes_out_as_drawn() {
    assert_eq!(
        outline("papers/polysi/figure-2-long-fork.txt"),
        "long fork: T1 wr T3 on x, T3 rw T2 on y, T2 wr T4 on y, T4 rw T1 on x"
    );
}

#[test]
fn the_lost_update_in_galera_comes_out_as_drawn() {
    assert_eq!(
        outline("papers/polysi/figure-4-lost-update-in-galera.txt"),
        "lost update: \"T:(2,13)\" rw \"T:(1,5)\" on 0, \"T:(1,5)\" rw \"T:(2,13)\" on 0"
    );
}

/// As the paper on Elle tells it: one transaction missed an append, the next saw it and
/// appended elsewhere before the first did.
#[test]
fn the_example_of_elle_is_a_read_skew() {
    let path = Path::new(DATA).join("elle/paper-example.edn");
    if !path.exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let report = report_of(&path);
    let level = report.levels.iter().find(|level| !level.anomalies.is_empty()).expect("one");
    let elle = level.anomalies[0].scenario.names.elle.as_deref();
    assert_eq!(elle, Some("G-single-item"));
}

#[test]
fn real_time_behind_an_order_of_versions_is_no_dirty_write() {
    assert_eq!(
        outline("anomalies/stale-read-of-a-replaced-value.txt"),
        "stale read: B real-time C on -, C rw B on x"
    );
    assert_eq!(
        outline("anomalies/long-fork-of-replaced-values-in-real-time.txt"),
        "long fork in real time: C wr E on x, E rw D on y, D wr F on y, F rw C on x"
    );
}

/// Keys, values, labels and file names that would command a terminal are shown, not sent.
#[test]
fn nothing_from_a_history_commands_a_terminal() {
    let hostile = "\u{1b}[2J\u{7}<script>\r\n\u{202e}\"";
    let mut builder = HistoryBuilder::new();
    let word = builder.values().text(hostile);
    let key = builder.key(word);
    for label in ["A", "B"] {
        let label = builder.values().text(&format!("{label}{hostile}"));
        let session = builder.session(label);
        builder.endpoint(session, word);
        let txn = builder.begin(session);
        builder.label(txn, label);
        builder.op(OpKind::Read, key, isolde_history::Value::NIL);
        builder.op(OpKind::Write, key, label);
    }
    let history = builder.finish("hostile").expect("a history");
    assert_eq!(history.datum(word), Datum::Text(hostile));
    let report = report(&history, hostile, "text");
    let texts =
        [to_text(&report, isolde_report::Detail::Full, None), to_explanations(&report, Which::All)];
    for text in texts {
        assert!(text.contains("lost update"), "{text}");
        let commands = |it: char| it != '\n' && (it.is_control() || it == '\u{202e}');
        assert_eq!(text.chars().find(|&it| commands(it)), None, "{text:?}");
    }
}
