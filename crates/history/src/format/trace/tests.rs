//! Traces as histories.

use crate::format::{Input, ReadOptions, read_detected, to_text};
use crate::{History, Source};

const HEAD: &str = "{\"isolde\":\"trace 1\",\"client\":\"a\"}\n";

fn parsed_with(text: &str, options: ReadOptions) -> Result<History, String> {
    let text = format!("{HEAD}{text}");
    let input = Input::File(Source::from_bytes("trace.jsonl", text.as_bytes()));
    let (history, format) = read_detected(input, options).map_err(|error| error.to_string())?;
    assert_eq!(format.name, "trace");
    Ok(history)
}

fn parsed(text: &str) -> History {
    parsed_with(text, ReadOptions::default()).expect("a trace")
}

/// The history as text without comments and head.
fn told(history: &History) -> Vec<String> {
    let text = to_text(history);
    text.lines().filter(|it| !it.starts_with('#') && !it.is_empty()).map(str::to_owned).collect()
}

/// A transaction of one request.
fn txn(client: &str, number: u64, at: i64, request: &str, rows: &str) -> String {
    let on = |kind: &str, from: i64, to: i64, rest: &str| {
        format!("{{\"client\":\"{client}\",\"{kind}\":[{from},{to}],\"txn\":{number}{rest}}}\n")
    };
    let rows = format!(",\"rows\":[{rows}]");
    on(request, at, at + 1, &rows) + &on("commit", at + 2, at + 3, "")
}

#[test]
fn clients_are_sessions_and_rows_are_keys() {
    let text = r#"{"begin":[10,12],"txn":1}
{"client":"b","lock":[11,14],"txn":7,"rows":[["t","k/1","c\\",null],["t",5,1.5],["t","5",2]]}
{"read":[20,25],"txn":1,"rows":[["registers",3,9]]}
{"write":[30,31],"txn":1,"rows":[["registers",3,10],["u",1,"x"]]}
{"client":"b","abort":[32,null],"txn":7}
{"commit":[40,44],"txn":1}
{"lost":[50,null],"txn":2}
{"begin":[60,61],"txn":3}
{"bye":true}
"#;
    let expected = [
        "init t/5=\"1.5\"",
        "init \"t/'5'\"=2",
        "init 3=9",
        "a @10..25..40..44: r(3,9)@20..25 w(3,10)@30..31 w(u/1,x)@30..31",
        "a @50..?..50..?: unknown",
        "a @60..61..60..?: unknown",
        "b @11..14..32..?: r(\"t/k\\\\/1/c\\\\\\\\\",nil)@11..14 r(t/5,\"1.5\")@11..14 \
         r(\"t/'5'\",2)@11..14 aborted",
    ];
    assert_eq!(told(&parsed(text)), expected);
}

#[test]
fn a_value_that_was_read_before_anybody_wrote_it_was_there() {
    let text = txn("a", 1, 10, "read", "[\"t\",1,5]")
        + &txn("b", 1, 20, "write", "[\"t\",1,5]")
        + &txn("a", 2, 30, "read", "[\"t\",1,5]");
    let history = parsed(&text);
    assert_eq!(told(&history)[0], "init t/1=5");
    assert_eq!(history.unlogged().count(), 0);
}

#[test]
fn a_value_that_its_writer_may_not_have_shown_yet_is_open() {
    // The read was answered before the commit of the only writer was.
    let text = "{\"client\":\"b\",\"write\":[1,9],\"txn\":1,\"rows\":[[\"t\",1,5],[\"t\",2,6]]}\n"
        .to_owned()
        + &txn("a", 1, 2, "read", "[\"t\",1,5],[\"t\",2,null]")
        + "{\"client\":\"b\",\"commit\":[20,21],\"txn\":1}\n"
        + &txn("a", 2, 30, "read", "[\"t\",2,6]");
    let history = parsed(&text);
    assert_eq!(told(&history)[0], "init t/1=5");
    // What was read after the commit was confirmed is the writer's.
    let text = txn("b", 1, 1, "write", "[\"t\",1,5]") + &txn("a", 1, 30, "read", "[\"t\",1,5]");
    assert!(!to_text(&parsed(&text)).contains("init t/1"));
}

#[test]
fn several_open_values_of_a_key_are_from_transactions_in_no_log() {
    let text = "{\"client\":\"b\",\"write\":[1,90],\"txn\":1,\"rows\":[[\"t\",1,5]]}\n\
                {\"client\":\"c\",\"write\":[1,90],\"txn\":1,\"rows\":[[\"t\",1,6]]}\n"
        .to_owned()
        + &txn("a", 1, 10, "read", "[\"t\",1,5]")
        + &txn("a", 2, 20, "read", "[\"t\",1,6]")
        + "{\"client\":\"b\",\"abort\":[91,92],\"txn\":1}\n\
           {\"client\":\"c\",\"abort\":[91,92],\"txn\":1}\n";
    let history = parsed(&text);
    assert_eq!(history.unlogged().count(), 1);
    assert_eq!(told(&history)[0], "init t/1=5");
    let complete = ReadOptions { complete_log: true, ..ReadOptions::default() };
    let history = parsed_with(&text, complete).expect("a trace");
    assert_eq!((history.unlogged().count(), history.declared_initial().len()), (0, 0));
}

#[test]
fn a_trace_that_was_cut_off_is_read_up_to_its_last_message() {
    let text = txn("a", 1, 10, "read", "[\"t\",1,5]") + "{\"commit\":[4";
    let history = parsed(&text);
    assert_eq!(history.txn_count(), 1);
    let remarks: Vec<&str> = history.remarks().iter().map(|remark| &*remark.kind).collect();
    assert_eq!(remarks, ["cut-off"]);
}

#[test]
fn mistakes_are_told_with_their_line() {
    let refused = |text: &str| parsed_with(text, ReadOptions::default()).expect_err("a mistake");
    let one = txn("a", 4, 10, "read", "[\"t\",1,5]");
    assert_eq!(
        refused(&format!("{one}{}", txn("a", 3, 20, "read", "[\"t\",1,5]"))),
        "trace.jsonl: line 4: expected a transaction after number 4, found 3"
    );
    assert_eq!(
        refused(&format!("{one}{one}")),
        "trace.jsonl: line 4: expected nothing more of transaction 4, which ended"
    );
}
