//! `isolde elle`: elle-cli's lines and options, and statuses that tell.

use crate::support::{Folder, Run, lines, printed, refused};
use serde_json::{Value, json};
use std::path::Path;

const REGISTERS: &str = "\
{:type :invoke, :f :txn, :value [[:w :x 1]], :process 0, :index 0}
{:type :ok, :f :txn, :value [[:w :x 1]], :process 0, :index 1}
{:type :invoke, :f :txn, :value [[:r :x nil]], :process 1, :index 2}
{:type :ok, :f :txn, :value [[:r :x 1]], :process 1, :index 3}
";
/// The second transaction misses what the first had written before it began.
const STALE: &str = "\
{:type :invoke, :f :txn, :value [[:w :x 1]], :process 0, :index 0}
{:type :ok, :f :txn, :value [[:w :x 1]], :process 0, :index 1}
{:type :invoke, :f :txn, :value [[:r :x nil]], :process 1, :index 2}
{:type :ok, :f :txn, :value [[:r :x nil]], :process 1, :index 3}
";
/// Two list reads of which neither is a prefix of the other.
const LISTS: &str = r#"[
{"type":"ok","f":"txn","value":[["append","x",1]],"process":0,"index":0},
{"type":"ok","f":"txn","value":[["append","x",2]],"process":1,"index":1},
{"type":"ok","f":"txn","value":[["r","x",[1,2]]],"process":2,"index":2},
{"type":"ok","f":"txn","value":[["r","x",[2,1]]],"process":3,"index":3}]
"#;

fn folder() -> Folder {
    Folder::with(&[("good.edn", REGISTERS), ("stale.edn", STALE), ("lists.json", LISTS)])
}

#[test]
fn strict_serializability_is_the_default() {
    assert_eq!(folder().isolde("elle -m rw-register good.edn"), printed(0, "good.edn \t true\n"));
    assert_eq!(
        folder().isolde("elle -m rw-register stale.edn"),
        printed(1, "stale.edn \t false\n")
    );
}

#[test]
fn weaker_models_are_asked_for_by_name() {
    assert_eq!(
        folder().isolde("elle --model rw-register -c serializable,PL-2 -a G1 stale.edn good.edn"),
        printed(0, "stale.edn \t true\ngood.edn \t true\n")
    );
}

#[test]
fn one_false_outweighs_an_unknown_and_bad_input_both() {
    // Which of two appends of one element a read saw is not searched in long histories.
    let appends =
        lines(0..9, |number| format!("{{:type :ok :f :txn :value [[:append :x {number}]]}}"));
    let again = "{:type :ok :f :txn :value [[:append :x 1]]}\n";
    let read = "{:type :ok :f :txn :value [[:r :x [0 1]]]}\n";
    let folder = folder();
    folder.write("long.edn", format!("{appends}{again}{read}").as_bytes());
    folder.write("bad.edn", b"{:type :ok :f :txn :value [[:r :x ");
    let statuses = |files: &str| {
        let Run { status, stdout, .. } = folder.isolde(&format!("elle -m list-append {files}"));
        (status, stdout)
    };
    assert_eq!(statuses("long.edn"), (2, "long.edn \t unknown\n".into()));
    let both = "long.edn \t unknown\nlists.json \t false\n";
    assert_eq!(statuses("long.edn lists.json"), (1, both.into()));
    assert_eq!(statuses("lists.json bad.edn"), (3, "lists.json \t false\n".into()));
}

#[test]
fn options_about_plots_are_taken_and_ignored() {
    let options = "-f json --plot-format svg --cycle-search-timeout 1000 --plot-timeout 5000 \
                   --max-plot-bytes 65536";
    assert_eq!(
        folder().isolde(&format!("elle --model list-append {options} lists.json")),
        printed(1, "lists.json \t false\n")
    );
}

#[test]
fn verbose_prints_a_map_like_elles() {
    let run = folder().isolde("elle -m list-append -v lists.json");
    let map: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let told = "T2 read x = [1 2] (lists.json:4)\nT3 read x = [2 1] (lists.json:5)\n\
                neither is a prefix of the other";
    let expected = json!({
        "valid?": false,
        "anomaly-types": ["incompatible-order"],
        "anomalies": {"incompatible-order": [told]},
        "not": ["strict-serializable"],
    });
    assert_eq!((run.status, map), (1, expected));
}

#[test]
fn explanations_go_to_a_directory() {
    let folder = folder();
    let run = folder.isolde("elle -m list-append -d out lists.json");
    assert_eq!(run, printed(1, "lists.json \t false\n"));
    let text = folder.read("out/incompatible-order.txt");
    assert!(text.ends_with("neither is a prefix of the other\n"), "{text}");
}

#[test]
fn a_value_nobody_wrote_is_overlooked_as_by_elle_and_said() {
    let folder = folder();
    folder.write(
        "unwritten.edn",
        STALE
            .replace("[:r :x nil]], :process 1, :index 3", "[:r :x 7]], :process 1, :index 3")
            .as_bytes(),
    );
    let run = folder.isolde("elle -m rw-register unwritten.edn");
    assert_eq!(
        run,
        Run {
            status: 0,
            stdout: "unwritten.edn \t true\n".into(),
            stderr: "isolde: unwritten.edn: left out, as by elle-cli: 1 of its reads saw values \
                     that nobody wrote; --complete answers false for them\n"
                .into(),
        }
    );
    assert_eq!(
        folder.isolde("elle -m rw-register --complete unwritten.edn"),
        printed(1, "unwritten.edn \t false\n")
    );
}

#[test]
fn models_of_other_histories_and_names_nobody_knows_are_refused() {
    let refusal = |arguments: &str| folder().isolde(&format!("elle {arguments} good.edn"));
    assert_eq!(
        refusal("-m bank"),
        refused(
            "isolde: good.edn: expected functions of the model bank, found others in T1 (is it \
             another model?)\n"
        )
    );
    assert_eq!(
        refusal("-m register"),
        refused(
            "isolde: expected a model (rw-register, list-append, cas-register, mutex, long-fork, \
             bank, set, set-full, counter, sequential, comments), found `register`\n"
        )
    );
    let model = refusal("-m rw-register -c perfect");
    assert!(model.stderr.ends_with(", found `perfect`\n"), "{}", model.stderr);
    let anomaly = refusal("-m rw-register -a G9");
    assert!(anomaly.stderr.ends_with(", found `G9`\n"), "{}", anomaly.stderr);
    assert_eq!((model.status, anomaly.status), (3, 3));
}

#[test]
fn a_history_of_another_model_is_refused() {
    assert_eq!(
        folder().isolde("elle -m list-append good.edn"),
        refused(
            "isolde: good.edn: expected operations of the model list-append, found others in T1 \
             (is it another model?)\n"
        )
    );
}

/// Every recorded answer of elle-cli for the models that are built is ours too.
#[test]
#[allow(clippy::print_stdout, reason = "a skipped test must be seen")]
fn recorded_answers_of_elle_cli_are_ours() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let Ok(expected) = std::fs::read_to_string(Path::new(data).join("expected.jsonl")) else {
        println!("skipped: no ../shared/data");
        return;
    };
    let folder = Folder::with(&[]);
    let mut compared = 0;
    for line in expected.lines().filter(|line| line.contains("elle_cli")) {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let path = format!("{data}/{}", row["path"].as_str().expect("a path"));
        for case in row["elle_cli"].as_array().expect("cases") {
            let options = case["options"].as_str().expect("options");
            if !options.contains("rw-register") && !options.contains("list-append") {
                continue;
            }
            let answer = case["answer"].as_str().expect("an answer");
            let run = folder.isolde(&format!("elle {}", options.replace("FILE", &path)));
            assert_eq!(run.stdout, format!("{path} \t {answer}\n"), "{options}");
            compared += 1;
        }
    }
    assert!(compared > 0, "the data has answers of elle-cli");
}
