//! What each text format of logs means, on the smallest files that show it.

mod common;

use common::{Files, detected, read, refused, shown, try_read};
use isolde_history::{Interval, Timestamp, Timestamps, TxnId};

fn check(format: &str, text: &str, expected: &str) {
    let history = read(format, &Files::one(text));
    assert_eq!(shown(&history), expected, "{text}");
}

#[test]
fn plume_transactions_may_interleave() {
    check(
        "plume",
        "w(1,2,3,4)\nr(1,2,5,6)\r\nw(9,18446744073709551615,3,4)\n\nr(1,0,3,7)",
        "init *=0\n\
         3/4: w(1,2) w(9,18446744073709551615)\n\
         3/7: r(1,0)\n\
         5/6: r(1,2)\n",
    );
}

#[test]
fn plume_runs_of_minus_one_are_aborted_transactions() {
    check(
        "plume",
        "w(1,1,1,-1)\nw(2,1,2,-1)\nw(3,1,1,-1)\nw(4,1,1,5)\nw(5,1,1,-1)\n",
        "init *=0\n\
         1: w(1,1) w(3,1) aborted\n\
         1/5: w(4,1)\n\
         1: w(5,1) aborted\n\
         2: w(2,1) aborted\n",
    );
}

#[test]
fn plume_ids_used_by_two_sessions_are_two_transactions() {
    check(
        "plume",
        "w(1,1,1,1)\nw(1,2,2,1)\nr(1,1,2,1)\nr(1,2,1,1)\n",
        "init *=0\n\
         1/1: w(1,1) r(1,2)\n\
         2/1: w(1,2) r(1,1)\n\
         # reused-transaction-id at 2\n",
    );
}

#[test]
fn plume_first_transaction_of_zeros_is_the_initial_state() {
    check(
        "plume",
        "w(1,0,0,0)\nw(2,0,0,0)\nr(1,0,1,1)\nw(3,1,1,1)\n",
        "init *=0\n1/1: r(1,0) w(3,1)\n# initial-transaction at 1\n",
    );
}

#[test]
fn plume_first_transaction_may_declare_other_initial_values() {
    check(
        "plume",
        "w(1,7,0,0)\nw(2,8,0,0)\nr(1,7,1,1)\nw(2,1,1,1)\n",
        "init *=0\ninit 1=7\ninit 2=8\n1/1: r(1,7) w(2,1)\n# initial-transaction at 1\n",
    );
}

/// Each is one step from a declaration of initial values: a key that is not
/// declared, a read of 0, another transaction in the session, a read, a late write.
#[test]
fn plume_first_transactions_that_may_be_a_clients_are_kept() {
    let kept = [
        ("r(2,8,1,1)\n", "1/1: r(2,8)\n0/0: w(1,7)\n"),
        ("r(1,0,1,1)\n", "1/1: r(1,0)\n0/0: w(1,7)\n"),
        ("w(1,8,0,1)\n", "0/0: w(1,7)\n0/1: w(1,8)\n"),
        ("r(1,7,0,0)\n", "0/0: w(1,7) r(1,7)\n"),
        ("r(1,7,1,1)\nw(1,9,0,0)\n", "1/1: r(1,7)\n0/0: w(1,7) w(1,9)\n"),
    ];
    for (rest, expected) in kept {
        let text = format!("w(1,7,0,0)\n{rest}");
        check("plume", &text, &format!("init *=0\n{expected}"));
    }
}

#[test]
fn plume_lines_of_another_form_are_named() {
    let bad = [
        ("w(1,2,3,4)\nread(x,1)\n", "line 2", "`read(x,1)`"),
        ("w(1,2,3,4)\n\nw(1,2,3)\n", "line 3", "`w(1,2,3)`"),
        ("w(1,2,3,-2)\n", "line 1", "`w(1,2,3,-2)`"),
        ("w(1,2,3,4) \n", "line 1", "`w(1,2,3,4) `"),
        ("w(99999999999999999999,2,3,4)\n", "line 1", "`w(99999999999999999999,2,3,4)`"),
    ];
    for (text, place, found) in bad {
        let expected = format!(
            "file: {place}: expected `r(key,value,session,transaction)` or `w(…)` in decimal \
             digits, found {found}"
        );
        assert_eq!(refused("plume", &Files::one(text)), expected);
    }
}

#[test]
fn plume_errors_far_into_the_file_give_their_line() {
    let text = "w(1,2,3,4)\n".repeat(300_000) + "oops\n";
    let message = refused("plume", &Files::one(text));
    assert!(message.starts_with("file: line 300001: "), "{message}");
}

#[test]
fn awdit_has_no_initial_state() {
    check(
        "awdit",
        "w 0 0\n=====\nw 0 1\n-----\nr 0 1\n---\n====\n====\nr 0 0",
        "1: w(0,0)\n2: w(0,1)\n2: r(0,1)\n3: r(0,0)\n",
    );
    assert_eq!(
        refused("awdit", &Files::one("w 0 0\nw 0\n")),
        "file: line 2: expected `r key value`, `w key value`, `---` or `===`, found `w 0`"
    );
}

#[test]
fn dbcop_json_comes_bare_or_wrapped_long_or_compact() {
    let sessions = r#"[[{"events":[{"Write":{"variable":0,"version":1}},["r",7,null]],
        "committed":true}],[{"committed":false,"events":[["w","x",3]]}]]"#;
    let expected = "1: w(0,1) r(7,nil)\n2: w(x,3) aborted\n";
    check("dbcop-json", sessions, expected);
    let wrapped = format!("{{\"params\":{{\"id\":0}},\"info\":\"\",\"data\":{sessions}}}");
    check("dbcop-json", &wrapped, expected);
    assert_eq!(
        refused("dbcop-json", &Files::one("[[\n{\"events\":[]}]]")),
        "file: line 2: expected a dbcop history, found other JSON: missing field `committed`"
    );
    assert_eq!(
        refused("dbcop-json", &Files::one("[[{\"events\":[[\"w\",1,null]],\"committed\":true}]]")),
        "file: line 1: expected a dbcop history, found other JSON: a write without a version"
    );
}

#[test]
fn dbcop_version_zero_is_initial_unless_somebody_writes_it() {
    check(
        "dbcop-hist",
        "// a comment\n[x==0 y==0 z==?] [y:=0]!\n\n---\n[x:=1]\n",
        "1: r(x,nil) r(y,0) r(z,nil)\n1: w(y,0) aborted\n2: w(x,1)\n",
    );
    for (text, expected) in [
        ("[x:=1]\n[x=1]\n", "line 2: expected `x:=1`, `x==1` or `x==?`, found `x=1`"),
        ("[x:=1\n", "line 1: expected `]` behind the transaction, found `[x:=1`"),
        ("[]\n", "line 1: expected an event in the transaction, found `[]`"),
        ("x:=1\n", "line 1: expected `[` before a transaction, found `x:=1`"),
    ] {
        let message = refused("dbcop-hist", &Files::one(text));
        assert_eq!(message, format!("file: {expected}"));
    }
}

#[test]
fn viper_ranges_tell_dead_rows_and_replacing_a_row_reads_it() {
    let log = r#"{"value":[["w",1,10,true],["w",2,20,false],["d",1,-11,10,false,true]]}
{"value":[["range",1,"nil",[{"id":3,"sk":3,"val":30}],[{"id":1,"sk":1,"val":-11}]],["r",2,"nil",false]]}
{"value":[["i","k",7,"nil",false,true]]}
"#;
    let history = read("viper-json", &Files::many(&[("J3.log", log.as_bytes())]));
    assert_eq!(
        shown(&history),
        "init 3=30\n\
         J3: w(1,10) r(1,10) d(1,-11)\n\
         J3: p(key 1..nil; 3=30 1!-11) r(2,nil)\n\
         J3: r(k,nil) i(k,7)\n"
    );
}

#[test]
fn viper_initial_transactions_tell_all_initial_values() {
    let initial = r#"{"value":[["range","nil","nil",[{"id":1,"val":5}],[]]],"isInitial":true,"isFinal":false}"#;
    let log = r#"{"value":[["r",1,5,false],["r",2,6,false]]}"#;
    let files = Files::many(&[("J0.log", initial.as_bytes()), ("J1.log", log.as_bytes())]);
    assert_eq!(shown(&read("viper-json", &files)), "init 1=5\nJ1: r(1,5) r(2,6)\n");
}

#[test]
fn viper_keys_have_one_initial_value() {
    let log = r#"{"value":[["r",1,5,false],["r",1,6,false],["r",2,7,false],["r",2,"nil",false]]}"#;
    assert_eq!(
        shown(&read("viper-json", &Files::one(log))),
        "init 1=5\nfile: r(1,5) r(1,6) r(2,7) r(2,nil)\n\
         # several-initial-values at 1\n# several-initial-values at 1\n"
    );
}

#[test]
fn viper_times_are_begin_and_commit() {
    let log = r#"{"preBeginTS":1,"postBeginTS":2,"preCommitTS":3,"postCommitTS":4,"value":[["w",1,1,true]]}"#;
    let history = read("viper-json", &Files::one(log));
    let times = history.txn_times(TxnId(0));
    let of = |interval: Interval| (interval.invoked, interval.completed);
    assert_eq!([of(times.begin), of(times.commit)], [(1, 2), (3, 4)]);
}

#[test]
fn viper_lines_that_are_no_transactions_are_named() {
    for (line, expected) in [
        (
            r#"{"value":[["q",1]]}"#,
            "expected an operation [\"r\"|\"w\"|\"i\"|\"d\"|\"range\", …], found `[\"q\",1]`",
        ),
        (
            r#"{"value":[["#,
            "expected a transaction of Viper, found other JSON: EOF while parsing a list",
        ),
    ] {
        let text = format!("{{\"value\":[]}}\n{line}\n");
        let message = refused("viper-json", &Files::one(text));
        assert_eq!(message, format!("file: line 2: {expected}"));
    }
}

#[test]
fn viper_edn_is_told_from_jepsens_by_its_flags() {
    let log = "{:type :ok :f :txn :value [[:r 1 nil false] [:w 1 5 true] [:w 2 6 false]]}\n\
               {:type :ok, :f :txn, :value [[:d 1 -7 5 false true] [:range 1 9 [{:id 4, :sk 4, :val 2ab}] []]]}\n";
    let files = Files::many(&[("Jep1.log", log.as_bytes())]);
    assert_eq!(
        shown(&read("viper-edn", &files)),
        "init 4=\"2ab\"\nJep1: r(1,nil) w(1,5)\nJep1: r(1,5) d(1,-7) p(key 1..9; 4=\"2ab\")\n"
    );
    let jepsen = "{:type :ok :f :txn :value [[:r 1 nil] [:w 1 5]] :process 0}\n";
    assert_ne!(detected(jepsen.as_bytes()), Some("viper-edn"));
    let deep = format!("{{:type :ok :f :txn :value {}", "[".repeat(1 << 20));
    assert_eq!(
        refused("viper-edn", &Files::one(deep)),
        format!("file: line 1: expected forms less deep, found `{}…`", "[".repeat(60))
    );
}

#[test]
fn timekiller_timestamps_may_be_text_and_null_is_nothing() {
    let text = r#"[{"tid":1,"sid":"a","sts":{"p":"10","l":0},"cts":{"p":12,"l":1},
        "ops":[{"t":"r","k":1,"v":null},{"t":"read","k":1},{"t":"w","k":1,"v":5}]}]"#;
    let history = read("timekiller", &Files::one(text));
    assert_eq!(shown(&history), "a/1: r(1,nil) r(1,nil) w(1,5)\n");
    let timestamp = |physical, logical| Timestamp { physical, logical };
    assert_eq!(
        history.timestamps(TxnId(0)),
        Some(Timestamps { start: timestamp(10, 0), commit: timestamp(12, 1) })
    );
}

#[test]
fn timekiller_null_in_a_history_of_lists_is_the_empty_list() {
    let txn = |ops: &str| {
        format!(r#"{{"tid":1,"sid":1,"sts":{{"p":1,"l":0}},"cts":{{"p":1,"l":0}},"ops":[{ops}]}}"#)
    };
    let text = format!(
        "[{},{}]",
        txn(r#"{"t":"r","k":1,"v":null}"#),
        txn(r#"{"t":"a","k":1,"v":2},{"t":"r","k":1,"v":[1,2]}"#)
    );
    check("timekiller", &text, "1/1: r(1,[])\n1/1: a(1,2) r(1,[1 2])\n");
}

#[test]
fn timekiller_commits_before_their_start_are_refused() {
    let text = r#"[{"tid":1,"sid":1,"sts":{"p":2},"cts":{"p":1},"ops":[]}]"#;
    let message = refused("timekiller", &Files::one(text));
    assert_eq!(
        message,
        "file: line 1: expected an array of TimeKiller's transactions, found other JSON: \
         invalid timestamps: transaction 1 commits before it starts"
    );
}

#[test]
fn isopredict_versions_are_called_after_their_writers() {
    check(
        "isopredict",
        "WRITE KEY[x] Txn(0, 0)\n\
         READ KEY[x] Txn(2, 0) From(1, 0)\n\
         WRITE KEY[x] Txn(1, 0)\n\
         READ KEY[x] Txn(1, 0) From(1, 0)\n\
         WRITE KEY[x] Txn(1, 0)\n\
         READ KEY[7] Txn(1, 0) From(0, 0)\n\
         INSERT[a] to Set[s] Txn(1, 1)\n\
         CONTAINS[a] in Set[s] From(1, 1) Txn(2, 0)\n\
         DELETE KEY[a] From Set(s) Txn(2, 1)\n\n",
        "2/T2.0: r(x,T1.0) r(s/a,T1.1)\n\
         2/T2.1: d(s/a,T2.1)\n\
         1/T1.0: w(x,T1.0/1) r(x,T1.0/1) w(x,T1.0) r(7,nil)\n\
         1/T1.1: i(s/a,T1.1)\n",
    );
}

#[test]
fn isopredict_traces_end_at_a_blank_line() {
    let text = "WRITE KEY[x] Txn(1, 0)\n\nWRITE KEY[x] Txn(1, 1)\n";
    assert_eq!(
        refused("isopredict", &Files::one(text)),
        "file: line 3: expected the end of the trace after a blank line, \
         found `WRITE KEY[x] Txn(1, 1)`"
    );
    for line in ["READ KEY[x] Txn(1, 0)", "WRITE KEY[x] Txn(1, 0) From(0, 0)", "WRITE KEY[x]"] {
        assert!(try_read("isopredict", &Files::one(line)).is_err(), "{line}");
    }
}

#[test]
fn veristrong_lists_announce_their_length() {
    check(
        "veristrong-list",
        "4\n1 1 A 7 5\n2 1 R 7 0\n1 1 R 7 1 5\n2 1 R 7 2 5 6\n",
        "1/1: a(7,5) r(7,[5])\n2/1: r(7,[]) r(7,[5 6])\n",
    );
    assert_eq!(
        refused("veristrong-list", &Files::one("2\n1 1 A 7 5\n")),
        "file: line 3: expected 2 operations, found 1 \
         (the first line tells their number; the file may be cut off)"
    );
    let message = refused("veristrong-list", &Files::one("1\n1 1 R 7 2 5\n"));
    assert!(message.starts_with("file: line 2: expected `session txn A"), "{message}");
}

#[test]
fn other_formats_are_not_taken_for_these() {
    let others: [&[u8]; 12] = [
        b"A: r(x,1) w(y,2)\n",
        b"# isolde-history 1\nA: r(x,1)\n",
        b"{:type :invoke, :f :txn, :value [[:append 1 2]], :process 0}\n",
        b"#jepsen.history.Op{:index 0, :type :ok, :f :txn, :value [[:r 1 nil]]}\n",
        b"[{\"type\":\"ok\",\"f\":\"txn\",\"value\":[[\"r\",1,[1]]],\"process\":1,\"index\":3}]\n",
        b"{\"type\":\"ok\",\"f\":\"txn\",\"value\":[[\"r\",1,1]],\"process\":1}\n",
        b"INFO  jepsen.util - 0\t:invoke\t:read\tnil\n",
        b"{:process 0, :type :invoke, :f :get, :key \"k\", :value nil}\n",
        b"0\t:invoke\t:txn\t[[:r 1 nil]]\n",
        b"The quick brown fox\n",
        b"SELECT 1; -- not a log of Cobra\n",
        b"TABLE of contents, and what follows it\n",
    ];
    for head in others {
        let found = detected(head).filter(|name| common::LOGS.contains(name));
        assert_eq!(found, None, "{}", String::from_utf8_lossy(head));
    }
}
