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

/// It was told as G2-item, which snapshot isolation allows.
#[test]
fn snapshot_isolation_is_refused_for_what_it_forbids() {
    let history = "init *=0\nA: r(x,0) w(y,1) w(z,1)\nB: r(y,0) w(x,2) w(z,2)\n";
    let folder = Folder::with(&[("h.txt", history)]);
    let run = folder.isolde("elle -m rw-register -c snapshot-isolation --output json h.txt");
    let answer: Value = serde_json::from_str(&run.stdout).expect("an answer");
    assert_eq!(answer["anomaly-types"], json!(["G-single-item"]));
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
    // Of too many elements it is not known which of two appends a read saw: not all of them
    // are the first ones, nor the second ones.
    let appends = |special: u32, also: &str| {
        lines(0..12, |number| {
            let also = if number == special { also } else { "" };
            format!("{{:type :ok :f :txn :value [[:append :x {number}]{also}]}}")
        })
    };
    let (first, second) = (appends(3, " [:append :y 1]"), appends(7, " [:append :z 1]"));
    let all = (0..12).map(|it| it.to_string()).collect::<Vec<_>>().join(" ");
    let read = format!("{{:type :ok :f :txn :value [[:r :x [{all}]] [:r :y []] [:r :z []]]}}\n");
    let folder = folder();
    folder.write("long.edn", format!("{first}{second}{read}").as_bytes());
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
fn verbose_prints_the_map_that_elle_returns() {
    let expected = "{:anomalies {:incompatible-order [\"T2 read x = [1 2] (lists.json:4)\\n\
                    T3 read x = [2 1] (lists.json:5)\\nneither is a prefix of the other\"]}, \
                    :anomaly-types [:incompatible-order], :not #{:strict-serializable}, \
                    :valid? false}\n";
    assert_eq!(folder().isolde("elle -m list-append -v lists.json"), printed(1, expected));
}

#[test]
fn the_same_map_is_printed_as_json() {
    let run = folder().isolde("elle -m list-append --output json lists.json");
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

/// It told whichever cycle came up first, of twenty transactions where two would do.
#[test]
fn explanations_are_those_of_check() {
    let history = "S: a(x,1)\nS: r(x,[]) a(y,1)\nT: r(x,[1]) r(y,[])\n";
    let folder = Folder::with(&[("h.txt", history)]);
    let run = folder.isolde("elle -m list-append --output json -d out h.txt");
    let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let told = answer["anomalies"]["G-single-item-process"][0].as_str().expect("an explanation");
    let check = folder.isolde("check h.txt").stdout;
    assert!(
        check.contains(&format!("\n    {}\n", told.replace('\n', "\n    "))),
        "{told}\n{check}"
    );
    assert_eq!(folder.read("out/G-single-item-process.txt"), format!("{told}\n"));
}

#[test]
fn a_value_nobody_wrote_is_allowed_as_by_elle_and_said() {
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
            stderr: "isolde: unwritten.edn: 1 of its reads saw values that nobody wrote, which \
                     elle-cli allows, but for lost updates and two values in one transaction; \
                     --complete answers false for them\n"
                .into(),
        }
    );
    assert_eq!(
        folder.isolde("elle -m rw-register --complete unwritten.edn"),
        printed(1, "unwritten.edn \t false\n")
    );
}

/// Histories on which the answer differed from Elle's.
#[test]
fn lost_updates_of_unwritten_values_and_contradicting_lists_are_answered_as_by_elle() {
    let ops = |values: &[&str]| {
        let lines = values.iter().enumerate().map(|(process, value)| {
            format!(
                "{{:type :ok, :f :txn, :value {value}, :process {process}, :index {process}}}\n"
            )
        });
        lines.collect::<String>()
    };
    let folder = Folder::with(&[
        ("update.edn", &ops(&["[[:r :x 0] [:w :x 1]]", "[[:r :x 0] [:w :x 2]]"])),
        ("own.edn", &ops(&["[[:append :x 1]]", "[[:append :x 2] [:r :x [2]]]", "[[:r :x [1 2]]]"])),
        (
            "internal.edn",
            &ops(&[
                "[[:append :x 1] [:append :x 2] [:append :x 4]]",
                "[[:append :x 3] [:r :x [1 2 3 4]]]",
            ]),
        ),
        ("lists.json", LISTS),
    ]);
    let answer = |model: &str, of: &str, file: &str| {
        let run = folder.isolde(&format!("elle -m {model} -c {of} {file}"));
        (run.status, run.stdout.trim_end().rsplit_once(' ').expect("an answer").1.to_owned())
    };
    assert_eq!(answer("rw-register", "strict-serializable", "update.edn"), (1, "false".into()));
    assert_eq!(answer("rw-register", "cursor-stability", "update.edn"), (1, "false".into()));
    for file in ["own.edn", "lists.json"] {
        assert_eq!(answer("list-append", "read-uncommitted", file), (0, "true".into()), "{file}");
        assert_eq!(answer("list-append", "read-committed", file), (1, "false".into()), "{file}");
    }
    assert_eq!(answer("list-append", "read-uncommitted", "internal.edn"), (1, "false".into()));
    let map: Value = {
        let run =
            folder.isolde("elle -m list-append -c read-uncommitted --output json internal.edn");
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    assert_eq!(map["anomaly-types"], json!(["G0"]));
}

#[test]
fn models_of_other_histories_and_names_nobody_knows_are_refused() {
    let refusal = |arguments: &str| folder().isolde(&format!("elle {arguments} good.edn"));
    assert_eq!(
        refusal("-m bank"),
        refused(
            "isolde: good.edn: expected read or transfer in the model bank, found others in T1 (is \
             it another model?)\n"
        )
    );
    assert_eq!(
        refusal("-m register"),
        refused(
            "isolde: expected a model, found `register`; did you mean `rw-register` or \
             `cas-register`?\n"
        )
    );
    assert_eq!(
        refusal("-m queue"),
        refused(
            "isolde: expected a model (rw-register, list-append, cas-register, mutex, long-fork, \
             bank, set, set-full, counter, sequential, comments), found `queue`\n"
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

/// Two clients add to a counter and read it; what is read makes the difference.
fn counter(read: &str) -> String {
    format!(
        "{{:type :invoke, :f :add, :value 2, :process 0, :time 10, :index 0}}
{{:type :ok, :f :add, :value 2, :process 0, :time 20, :index 1}}
{{:type :invoke, :f :read, :value nil, :process 1, :time 30, :index 2}}
{{:type :ok, :f :read, :value {read}, :process 1, :time 40, :index 3}}
"
    )
}

#[test]
fn other_workloads_answer_and_explain_themselves() {
    let folder = Folder::with(&[("good.edn", &counter("2")), ("bad.edn", &counter("3"))]);
    assert_eq!(
        folder.isolde("elle -m counter good.edn bad.edn"),
        printed(1, "good.edn \t true\nbad.edn \t false\n")
    );
    let run = folder.isolde("elle -m counter --output json -d out bad.edn");
    let map: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let told = "T3 read 3, which should be from 2 to 2 (bad.edn:4)";
    let expected = json!({
        "valid?": false,
        "anomaly-types": ["out-of-bounds"],
        "anomalies": {"out-of-bounds": [told]},
        "reads-count": 1,
    });
    assert_eq!((run.status, map), (1, expected));
    assert_eq!(folder.read("out/out-of-bounds.txt"), format!("{told}\n"));
}

#[test]
fn a_test_of_nothing_passes_as_with_elle_cli_and_is_told() {
    let whole = counter("2");
    let written: String = whole.split_inclusive('\n').take(2).collect();
    let run = Folder::with(&[("short.edn", &written)]).isolde("elle -m counter short.edn");
    let expected = Run {
        status: 0,
        stdout: "short.edn \t true\n".into(),
        stderr: "isolde: short.edn: nothing was tested, which elle-cli takes as valid: the \
                 counter was never read\n"
            .into(),
    };
    assert_eq!(run, expected);
}

#[test]
fn workloads_take_their_options_in_either_notation() {
    let bank = |notation: &str| match notation {
        "edn" => {
            "[{:type :ok :f :read :value {0 5, 1 5} :process 0}\n\
                  {:type :ok :f :read :value {0 11, 1 -1} :process 0}]\n"
        }
        _ => {
            "[{\"type\":\"ok\",\"f\":\"read\",\"value\":{\"0\":5,\"1\":5},\"process\":0},\n\
              {\"type\":\"ok\",\"f\":\"read\",\"value\":{\"0\":11,\"1\":-1},\"process\":0}]\n"
        }
    };
    let folder = Folder::with(&[("bank.edn", bank("edn")), ("bank.json", bank("json"))]);
    for file in ["bank.edn", "bank.json"] {
        let answer = |options: &str| {
            let run = folder.isolde(&format!("elle -m bank {options} {file}"));
            assert_eq!(run.stderr, "", "{file} {options}");
            run.stdout
        };
        assert_eq!(answer(""), format!("{file} \t false\n"));
        assert_eq!(answer("-n"), format!("{file} \t true\n"));
        assert_eq!(answer("-n --total-amount 11"), format!("{file} \t false\n"));
        assert_eq!(answer("-n -o 10 --max-transfer 5"), format!("{file} \t true\n"));
    }
}

#[test]
fn a_history_of_another_workload_is_refused() {
    assert_eq!(
        folder().isolde("elle -m bank good.edn"),
        refused(
            "isolde: good.edn: expected read or transfer in the model bank, found others in T1 \
             (is it another model?)\n"
        )
    );
}

/// Every recorded answer of elle-cli is ours too.
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
            let answer = case["answer"].as_str().expect("an answer");
            let run = folder.isolde(&format!("elle {}", options.replace("FILE", &path)));
            let expected = (i32::from(answer == "false"), format!("{path} \t {answer}\n"));
            assert_eq!((run.status, run.stdout), expected, "{options}");
            compared += 1;
        }
    }
    assert!(compared >= 29, "the data has {compared} answers of elle-cli");
}

#[test]
fn limits_are_kept() {
    let history = "init *=0\nA: r(x,0) w(y,1)\nB: r(y,1) w(x,2)\n";
    let run = Folder::with(&[("h.txt", history)]).isolde("elle -m rw-register h.txt --timeout 0ms");
    assert_eq!((run.status, &*run.stdout), (2, "h.txt \t unknown\n"));
    assert!(run.stderr.ends_with("the time limit was reached\n"), "{}", run.stderr);
    assert_eq!(
        folder().isolde("elle -m rw-register good.edn --timeout 1h --memory 1G"),
        printed(0, "good.edn \t true\n")
    );
}
