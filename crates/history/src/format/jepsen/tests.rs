//! Tests of Jepsen's formats: small histories, and what becomes of them.

use crate::format::{self, Input, ReadOptions, Writer};
use crate::history::{ALWAYS, History, NEVER, OpId, OpKind, Outcome, TxnId};
use crate::source::Source;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn read(format: &str, text: &str) -> Result<History, String> {
    let format = format::by_name(format).expect("a format");
    let input = Input::File(Source::from_bytes("test", text.as_bytes()));
    format::read(format, input, ReadOptions::default()).map_err(|error| error.to_string())
}

/// One line a transaction: its name, outcome, interval and operations.
fn shown(history: &History) -> String {
    let time = |time| match time {
        ALWAYS | NEVER => String::new(),
        known => known.to_string(),
    };
    let mut lines = Vec::new();
    for txn in history.txns() {
        let interval = history.txn_interval(txn);
        let outcome = match history.outcome(txn) {
            Outcome::Committed => "",
            Outcome::Aborted => " aborted",
            Outcome::Unknown => " unknown",
        };
        let mut ops = vec![String::new()];
        ops.extend(history.ops_of(txn).map(|op| shown_op(history, op)));
        lines.push(format!(
            "{}/{}{outcome} {}..{}{}",
            history.datum(history.session_label(history.session_of(txn))),
            history.datum(history.txn_label(txn)),
            time(interval.invoked),
            time(interval.completed),
            ops.join(" "),
        ));
    }
    lines.join("\n")
}

fn shown_op(history: &History, op: OpId) -> String {
    let found = history.op(op);
    if found.kind == OpKind::PredicateRead {
        let predicate = history.predicate(op);
        let rows: Vec<String> = predicate
            .rows
            .iter()
            .map(|row| {
                let key = history.datum(history.key_name(row.key));
                format!("{key}={}", history.datum(row.value))
            })
            .collect();
        let condition = predicate.condition.display(history.values());
        return format!("select({condition}: {})", rows.join(" "));
    }
    let key = history.datum(history.key_name(found.key));
    match found.kind {
        OpKind::ReadList => {
            let elements: Vec<String> = history
                .list(op)
                .iter()
                .map(|&element| history.datum(element).to_string())
                .collect();
            format!("list({key},[{}])", elements.join(" "))
        }
        kind => {
            let name = format!("{kind:?}").to_lowercase();
            format!("{name}({key},{})", history.datum(found.value))
        }
    }
}

fn remarks(history: &History) -> Vec<String> {
    let remarks = history.remarks().iter();
    remarks.map(|remark| format!("{} {}", remark.position, remark.kind)).collect()
}

fn check(format: &str, text: &str, expected: &str) -> Option<History> {
    let read = read(format, text);
    let found = match &read {
        Ok(history) => shown(history),
        Err(error) => error.clone(),
    };
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{text}");
    read.ok()
}

#[test]
fn invocations_and_completions_become_transactions() {
    let text = "; a comment, then records and maps, commas and a nemesis
        #jepsen.history.Op{:index 0, :time 5, :type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:r :x nil]]}
        {:index 1 :time 6 :type :invoke :process 1 :f :txn :value [[:append :x 2] [:r :y nil]]}
        {:index 2 :time 7 :type :info :process :nemesis :f :kill :value {:n1 :ok}}
        {:index 3 :time 8 :type :ok :process 0 :f :txn :value [[:append :x 1] [:r :x [1]]], :extra #object[a.B 0x1 \"b\"]}
        {:index 4 :time 9 :type :fail :process 1 :f :txn :value [[:append :x 2] [:r :y nil]] :error [:conflict 7]}
        {:index 5 :time 10 :type :invoke :process 0 :f :txn :value [[:append \"k\" 3]]}
        {:index 6 :time 11 :type :invoke :process 1 :f :txn :value [[:r 9 nil]]}
        {:index 7 :time 12 :type :info :process 1 :f :txn :error :timeout}";
    let history = check(
        "jepsen-edn",
        text,
        "0/3 5..8 append(:x,1) list(:x,[1])
         0/5 unknown 10.. append(k,3)
         1/4 aborted 6..9 append(:x,2) read(:y,?)
         1/7 unknown 11.. read(9,?)",
    )
    .expect("read");
    assert_eq!(history.events()[0].text, ":nemesis :kill {:n1 :ok}");
    assert_eq!(history.events()[0].time, Some(7));
    assert_eq!(history.datum(history.error(TxnId(2))).to_string(), "~\"[:conflict 7]\"");
    assert_eq!(history.position(OpId(0)), 5);
    assert_eq!(remarks(&history), [""; 0]);
}

#[test]
fn one_vector_or_list_of_maps_is_a_history_too() {
    for (opener, closer) in [("[", "]"), ("(", ")"), ("", "")] {
        let text =
            format!("{opener}{{:type :ok :process 1 :value [[:w 1 2]\n[:r 3 nil]]}}{closer}");
        check("jepsen-edn", &text, "1/nil .. write(1,2) read(3,nil)");
    }
}

#[test]
fn nil_is_an_empty_list_where_lists_are_read_and_an_absent_register_elsewhere() {
    let nil_first = "{:type :ok :process 0 :value [[:r 1 nil]]}\n";
    check("jepsen-edn", nil_first, "0/nil .. read(1,nil)");
    for (second, expected) in [
        ("[:append 1 5]", "0/nil .. list(1,[])\n1/nil .. append(1,5)"),
        ("[:r 2 [7]]", "0/nil .. list(1,[])\n1/nil .. list(2,[7])"),
        ("[:w 2 7]", "0/nil .. read(1,nil)\n1/nil .. write(2,7)"),
        ("[:r 2 7]", "0/nil .. read(1,nil)\n1/nil .. read(2,7)"),
    ] {
        let text = format!("{nil_first}{{:type :ok :process 1 :value [{second}]}}");
        check("jepsen-edn", &text, expected);
    }
}

#[test]
fn without_times_the_order_of_lines_is_the_real_time() {
    let history = check(
        "jepsen-edn",
        "{:type :invoke :process 0 :f :write :value 1}
         {:type :invoke :process 1 :f :read}
         {:type :ok :process 0 :f :write :value 1}
         {:type :ok :process 1 :f :read :value 1}
         {:type :invoke :process 1 :f :read}",
        "0/nil 1..3 write(:register,1)
         1/nil 2..4 read(:register,1)
         1/nil unknown 5.. read(:register,?)",
    )
    .expect("read");
    assert_eq!(remarks(&history), ["0 order-as-time"]);
    check(
        "jepsen-edn",
        "{:type :ok :process 0 :f :write :value 1}\n{:type :ok :process 0 :f :read :value 1}",
        "0/nil .. write(:register,1)\n0/nil .. read(:register,1)",
    );
}

#[test]
fn compare_and_set_reads_and_writes() {
    check(
        "jepsen-edn",
        "{:type :ok :process 0 :f :cas :value [1 2]}
         {:type :fail :process 0 :f :cas :value [3 4]}
         {:type :info :process 0 :f :cas :value [5 6]}
         {:type :ok :process 0 :f :cas :value [:k [1 2]]}
         {:type :ok :process 0 :f :read :value [:k nil]}",
        "0/nil .. read(:register,1) write(:register,2)
         0/nil aborted .. write(:register,4)
         0/nil unknown .. read(:register,5) write(:register,6)
         0/nil .. read(:k,1) write(:k,2)
         0/nil .. read(:k,nil)",
    );
}

#[test]
fn a_refused_compare_and_set_of_etcd_saw_another_value() {
    check(
        "porcupine-etcd",
        "INFO  jepsen.util - 0\t:invoke\t:cas\t[3 4]
INFO  jepsen.core - nothing of interest
INFO  jepsen.util - 1   :invoke :read   nil
INFO  jepsen.util - 0\t:fail\t:cas\t[3 4]
INFO  jepsen.util - 1   :fail   :read   :timed-out",
        "0/nil 1..3 readother(:register,3)
         1/nil aborted 2..4 read(:register,?)",
    );
}

#[test]
fn what_only_its_test_understands_is_a_call() {
    check(
        "jepsen-edn",
        "{:type :ok :process 0 :f :read :value {0 10, 1 20}}
         {:type :ok :process 0 :f :transfer :value {:from 0 :to 1}}
         {:type :fail :process 0 :f :acquire}",
        "0/nil .. call(:read,~\"{0 10 1 20}\")
         0/nil .. call(:transfer,~\"{:from 0 :to 1}\")
         0/nil aborted .. call(:acquire,nil)",
    );
    check(
        "jepsen-edn",
        "{:type :ok :process 0 :f :read :value 0}\n{:type :ok :process 0 :f :add :value 1}",
        "0/nil .. call(:read,0)\n0/nil .. call(:add,1)",
    );
}

#[test]
fn closed_predicates_have_their_initial_state_and_conditions() {
    let history = check(
        "jepsen-edn",
        "{:type :ok :process 0 :f :init :value {:x 1 :y 2}}
         {:type :ok :process 0 :f :txn :value [[:insert :z 3] [:delete :x] [:rp :true {:y 2}]]}
         {:type :ok :process 0 :f :txn :value [[:rp [:= 2] {:y 2}] [:rp [:mod 2 1] {}]]}",
        "0/nil .. insert(:z,3) delete(:x,nil) select(all: :y=2)
         0/nil .. select(value = 2: :y=2) select(value mod 2 = 1: )",
    )
    .expect("read");
    let initial: Vec<String> =
        history.keys().map(|key| history.datum(history.initial(key)).to_string()).collect();
    assert_eq!(initial, ["1", "2", "nil"]);
}

#[test]
fn a_store_that_appends_cannot_be_taken_apart() {
    let put = "{:process 0, :type :ok, :f :put, :key \"k\", :value \"a\"}\n";
    let append = "{:process 0, :type :ok, :f :append, :key \"k\", :value \"b\"}\n";
    check("porcupine-kv", put, "0/nil .. write(k,a)");
    check(
        "porcupine-kv",
        &[put, append].concat(),
        r#"0/nil .. call(:put,~"[\"k\" \"a\"]")
           0/nil .. call(:append,~"[\"k\" \"b\"]")"#,
    );
}

#[test]
fn mistakes_of_harnesses_are_remarked() {
    let history = read(
        "jepsen-edn",
        "{:index 0 :time 0 :type :invoke :process 0 :f :txn :value [[:w 1 1]]}
         {:index 1 :time 1 :type :info :process 0 :f :txn :value [[:w 1 1]]}
         {:index 2 :time 2 :type :invoke :process 0 :f :txn :value [[:w 1 2]]}
         {:index 2 :time 3 :type :invoke :process 0 :f :txn :value [[:w 1 3]]}
         {:index 4 :time 4 :type :fail :process 0 :f :txn :error :timed-out}
         {:index 5 :time 5 :type :ok :process 0 :f :txn :value [[:w 1 4]]}
         {:index 6 :time 6 :type :invoke :process 1 :f :txn :value [[:w 1 5]]}
         {:index 7 :time 6 :type :fail :process 1 :f :txn :error \"Connection refused\"}
         {:index 8 :time 7 :type :invoke :process 1 :f :txn :value [[:w 1 6]]}
         {:index 9 :time 8 :type :fail :process 1 :f :txn :value :timed-out}",
    )
    .expect("read");
    assert_eq!(
        remarks(&history),
        [
            "3 reused-process",
            "4 duplicate-index",
            "4 reused-process",
            "5 fail-after-timeout",
            "6 completion-without-invocation",
            "10 fail-after-timeout",
        ]
    );
}

#[test]
fn json_says_the_same_as_edn() {
    let edn = "{:index 0 :type :invoke :process 0 :f :txn :value [[:append 1 5] [:r 1 nil]]}
        {:index 1 :type :ok :process 0 :f :txn :value [[:append 1 5] [:r 1 [5]]]}";
    let lines = r#"{"index":0,"type":"invoke","process":0,"f":"txn","value":[["append",1,5],["r",1,null]]}
        {"index":1,"type":"ok","process":0,"f":"txn","value":[["append",1,5],["r",1,[5]]],"x":{"y":["}"]}}"#;
    let array = format!("[{}]", lines.replace("}\n", "},\n"));
    let expected = "0/1 1..2 append(1,5) list(1,[5])";
    check("jepsen-edn", edn, expected);
    check("jepsen-json", lines, expected);
    check("jepsen-json", &array, expected);
}

#[test]
fn history_txt_has_a_field_a_tab() {
    check(
        "jepsen-txt",
        "0\t:invoke\t:txn\t[[:append 1 5]]
0\t:ok\t:txn\t[[:append 1 5]]
:nemesis\t:info\t:start\tnil
0\t:invoke\t:txn\t[[:r 1 nil]]
0\t:fail\t:txn\t[[:r 1 nil]]\t:conflict",
        "0/nil 1..2 append(1,5)\n0/nil aborted 3..4 read(1,?)",
    );
}

/// A format, a text in it, and what is wrong with it.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "jepsen-edn",
        "{:type :ok}\n{:type :done}",
        "line 2: expected `:invoke`, `:ok`, `:fail` or `:info`, found `:done}`",
    ),
    (
        "jepsen-edn",
        "{:type :ok}\n\n{:process 1}",
        "line 3: expected an operation with a `:type`, found `{:process 1}`",
    ),
    ("jepsen-edn", "{:type :ok :value [1)}", "line 1: expected a form or `]`, found `)}`"),
    (
        "jepsen-edn",
        "{:type :ok :value [1",
        "line 1: expected the rest of this form, found the end of the file (the file seems to be cut off)",
    ),
    (
        "jepsen-edn",
        "{:type :ok}\n\n; cut\n{:type :ok :value [1",
        "line 4: expected the rest of this form, found the end of the file (the file seems to be cut off)",
    ),
    (
        "jepsen-edn",
        "[{:type :ok}",
        "line 1: expected a record or `]`, found the end of the file (the file seems to be cut off)",
    ),
    (
        "jepsen-edn",
        "{:type :ok} 7",
        "line 1: expected an operation like `{:type :ok, …}`, found `7`",
    ),
    (
        "jepsen-edn",
        "{:type :ok :process 1 :value [[:r 1 2 true]]}",
        "line 1: expected `[:r key value]`, found `[:r 1 2 true]`",
    ),
    (
        "jepsen-edn",
        "{:type :ok :value [[:append 1]]}",
        "line 1: expected `[:append key element]`, found `[:append 1]`",
    ),
    (
        "jepsen-edn",
        "{:type :ok :f :cas :value 1}",
        "line 1: expected `[old new]` or `[key [old new]]`, found `1`",
    ),
    (
        "jepsen-json",
        "{\"type\":\"ok\"}\n{\"type\":3}",
        "line 2: expected an operation like {\"type\":\"ok\",…}, found invalid type: integer `3`, expected a string",
    ),
    (
        "jepsen-json",
        "[{\"type\":\"ok\"}\n{\"type\":\"ok\"}]",
        "line 2: expected `,` or `]`, found `{\"type\":\"ok\"}]`",
    ),
    (
        "jepsen-json",
        "[{\"type\":\"ok\"}",
        "line 1: expected an object, `,` or `]`, found the end of the file",
    ),
    (
        "jepsen-json",
        "{\"type\":\"ok\"",
        "line 1: expected the rest of this object, found the end of the file (the file seems to be cut off)",
    ),
    ("jepsen-txt", "0\t:ok", "line 1: expected `process :type :f value`, found `0\u{fffd}:ok`"),
];

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (format, text, expected) in MISTAKES {
        check(format, text, &format!("test: {expected}"));
    }
    let deep = format!("{{\"type\":\"ok\",\"value\":{}", "[".repeat(100_000));
    assert!(read("jepsen-json", &deep).is_err());
    let closed = format!("{deep}{}}}", "]".repeat(100_000));
    let error = read("jepsen-json", &closed).expect_err("too deep");
    assert!(error.contains("nested more than 127 deep"), "{error}");
    let invalid = b"{:type :ok :value \"\xff\"}";
    let input = Input::File(Source::from_bytes("test", invalid));
    let format = format::by_name("jepsen-edn").expect("a format");
    let error = format::read(format, input, ReadOptions::default()).expect_err("not UTF-8");
    assert!(error.message.starts_with("expected text in UTF-8"), "{error}");
}

#[test]
fn only_histories_of_jepsen_are_taken_for_them() {
    let detected = |text: &str| {
        let sample = format::Sample { names: None, head: text.as_bytes() };
        let ours = ["jepsen-edn", "jepsen-json", "jepsen-txt", "porcupine-kv", "porcupine-etcd"];
        ours.into_iter().find(|name| (format::by_name(name).expect("a format").detect)(&sample))
    };
    for (text, expected) in [
        ("{:type :ok, :value []}", Some("jepsen-edn")),
        ("; note\n ({:f :txn :type :invoke})", Some("jepsen-edn")),
        ("#jepsen.history.Op{:type :ok}", Some("jepsen-edn")),
        ("{:type :ok, :f :get, :key \"k\"}", Some("porcupine-kv")),
        ("{:type :ok, :f :txn, :key \"k\"}", Some("jepsen-edn")),
        ("[{\"type\":\"ok\"}]", Some("jepsen-json")),
        ("{\"f\":\"txn\",\"type\":\"ok\"}\n", Some("jepsen-json")),
        ("0\t:invoke\t:read\tnil\n", Some("jepsen-txt")),
        ("INFO  jepsen.util - 0\t:invoke\t:read\tnil\n", Some("porcupine-etcd")),
        ("{:type :ok :f :txn :value [[:r 1 2 false]]}", None),
        ("A: r(x,1)", None),
        ("r(1,2,3,4)\n", None),
        ("[[{\"events\":[],\"committed\":true}]]", None),
        ("[{\"tid\":1,\"sid\":2}]", None),
        ("{\"value\":[[\"r\",1,2,false]]}", None),
        ("[x:=1 y==2]\n", None),
        ("{:a 1}", None),
        ("WRITE KEY[k] Txn(1, 2)", None),
        ("", None),
    ] {
        assert_eq!(detected(text), expected, "{text}");
    }
}

/// What a history looks like after it was written and read again, and what that lost.
fn again(format: &str, history: &History) -> (String, Vec<String>) {
    let Some(Writer::File(write)) = format::by_name(format).expect("a format").write else {
        panic!("{format} cannot be written");
    };
    let mut bytes = Vec::new();
    let lost = write(history, &mut bytes).expect("expressible");
    let text = String::from_utf8(bytes).expect("text");
    let history = read(format, &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (shown(&history), lost)
}

#[test]
fn what_is_written_is_read_back() {
    for text in [
        "{:index 0 :time 5 :type :invoke :process 0 :f :txn :value [[:append 1 1] [:r 2 nil]]}
         {:index 1 :time 5 :type :invoke :process 3 :f :txn :value [[:append \"a\\\"b\" -7]]}
         {:index 2 :time 8 :type :ok :process 0 :f :txn :value [[:append 1 1] [:r 2 []]]}
         {:index 3 :time 9 :type :fail :process 3 :f :txn :error \"why\"}
         {:index 4 :time 10 :type :invoke :process 0 :f :txn :value [[:r 1 nil]]}
         {:index 5 :time 11 :type :info :process 0 :f :txn :value [[:r 1 nil]]}",
        "{:index 0 :type :ok :process 0 :f :txn :value [[:w 1 1.5] [:r 2 nil]]}
         {:index 1 :type :ok :process 1 :f :txn :value [[:r 1 1.5]]}",
        "{:index 0 :type :ok :process 0 :f :txn :value [[:insert 3 3] [:delete 1] [:rp [:mod 2 1] {3 3}]]}",
        "{:index 0 :type :ok :process 0 :f :add :value 5}
         {:index 1 :type :ok :process 1 :f :acquire :value nil}",
    ] {
        let history = read("jepsen-edn", text).expect("read");
        for format in ["jepsen-edn", "jepsen-json"] {
            let (found, lost) = again(format, &history);
            assert_eq!(found, shown(&history), "{format}");
            assert_eq!(lost, ["labels of transactions: they are numbered by line"]);
        }
    }
}

#[test]
fn what_cannot_be_said_is_refused() {
    let refusal = |history: &History, format: &str| {
        let Some(Writer::File(write)) = format::by_name(format).expect("a format").write else {
            panic!("{format} cannot be written");
        };
        let refused = write(history, &mut Vec::new()).expect_err("refused");
        refused.to_string()
    };
    let cas = "INFO jepsen.util - 0 :invoke :cas [3 4]\nINFO jepsen.util - 0 :fail :cas [3 4]";
    let history = read("porcupine-etcd", cas).expect("read");
    assert_eq!(
        refusal(&history, "jepsen-edn"),
        "transaction S0 has a refused compare-and-set, which Jepsen's histories cannot say"
    );
    let both = format::parse_text("A: w(x,1)\nB: r(l,[])\n").expect("a text");
    assert_eq!(
        refusal(&both, "jepsen-edn"),
        "transaction B has a read of a list among registers, which Jepsen's histories cannot say"
    );
    let keyword = "{:type :ok :process 0 :f :txn :value [[:w :x 1]]}";
    let history = read("jepsen-edn", keyword).expect("read");
    assert_eq!(refusal(&history, "jepsen-json"), ":x cannot be written in JSON");
}

#[test]
fn a_completion_that_repeats_the_error_as_its_value_wrote_what_was_asked() {
    check(
        "jepsen-edn",
        "{:time 1 :type :invoke :process 0 :f :write :value 1}
         {:time 2 :type :info :process 0 :f :write :value :timed-out}",
        "0/nil unknown 1.. write(:register,1)",
    );
}

/// A format and a text in it that uses much of it.
const SAMPLES: &[(&str, &str)] = &[
    (
        "jepsen-edn",
        "[{:index 0 :time 1 :type :invoke :process 0 :f :txn :value [[:append 1 5] [:r :x nil]]}\n {:type :ok :process 0 :value [[:append 1 5] [:r :x [5 \"a\\n\"]] [:rp [:mod 2 1] {1 2}]] :error #e{:a \\b}}]",
    ),
    (
        "jepsen-edn",
        "{:type :ok :process 0 :f :cas :value [1 [2 3]]} {:type :fail :process :nemesis :f :read :value #{1 2}} {:type :ok :f :init :value {1 2}}",
    ),
    (
        "porcupine-kv",
        "{:process 0, :type :ok, :f :append, :key \"k\", :value \"a\"}{:process 0, :type :ok, :f :get, :key \"k\", :value \"\"}",
    ),
    (
        "jepsen-json",
        r#"[{"index":0,"type":"invoke","process":0,"f":"txn","value":[["append",1,5],["r","x",null]]},{"type":"ok","process":0,"value":[["append",1,5],["rp",["mod",2,1],{"1":2.5}]],"error":"\u0041"}]"#,
    ),
    (
        "jepsen-txt",
        "0\t:invoke\t:cas\t[1 2]\n:nemesis\t:info\t:start\tnil\n0\t:fail\t:cas\t[1 2]\t:conflict",
    ),
    (
        "porcupine-etcd",
        "INFO  jepsen.util - 0\t:invoke\t:cas\t[3 4]\nINFO  jepsen.util - 0 :info :cas :timed-out",
    ),
];

#[test]
fn no_mutation_of_a_history_makes_a_reader_panic() {
    let bytes_of_note = b"[](){}\"\\;#_:,/ 09aNnril+-.\n\t\xff\xc3";
    let (mut read_well, mut random) = (0, Xoshiro256PlusPlus::seed_from_u64(1));
    for round in 0..30_000 {
        let (name, text) = SAMPLES[round % SAMPLES.len()];
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random.random_range(0..4) {
            let (at, byte) = (
                random.random_range(0..bytes.len()),
                bytes_of_note[random.random_range(0..bytes_of_note.len())],
            );
            match random.random_range(0..4) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let end = (at + random.random_range(0..20)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let format = format::by_name(name).expect("a format");
        let input = Input::File(Source::from_bytes("test", &bytes));
        if let Ok(history) = format::read(format, input, ReadOptions::default()) {
            read_well += 1;
            // Whatever was read can be shown, and written or refused.
            let _ = shown(&history);
            for name in ["jepsen-edn", "jepsen-json"] {
                if let Some(Writer::File(write)) = format::by_name(name).expect("a format").write {
                    let _ = write(&history, &mut Vec::new());
                }
            }
        }
    }
    assert!((1_000..29_000).contains(&read_well), "{read_well} of 30000 were read");
}
