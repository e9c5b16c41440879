//! What streams say, whole, in pieces and damaged.

use super::*;
use std::fmt::Write;

/// Writes down what it is told.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) said: Vec<String>,
    clients: Vec<String>,
}

impl Sink for Notes {
    fn hello(&mut self, hello: Hello<'_>) -> Result<(), String> {
        self.said.push(format!("hello {:?} {:?}", hello.client, hello.token));
        Ok(())
    }
    fn client(&mut self, name: &str) -> Result<u32, String> {
        let known = self.clients.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            self.clients.push(name.to_owned());
            self.clients.len() - 1
        });
        Ok(place as u32)
    }
    fn event(
        &mut self,
        client: u32,
        txn: u64,
        kind: Kind,
        interval: Interval,
        rows: &[Row<'_>],
    ) -> Result<(), String> {
        let Interval { invoked, completed } = interval;
        let completed = if completed == NEVER { "never".into() } else { completed.to_string() };
        let mut text = format!("{client}/{txn} {kind:?} {invoked}-{completed}");
        for Row { table, key, column, value } in rows {
            write!(text, " {table}[{key:?}].{}={value:?}", column.unwrap_or(""))
                .expect("a string grows");
        }
        self.said.push(text);
        Ok(())
    }
    fn heartbeat(&mut self, client: Option<u32>, time: Time) -> Result<(), String> {
        self.said.push(format!("heartbeat {client:?} {time}"));
        Ok(())
    }
    fn bye(&mut self, client: Option<u32>) -> Result<(), String> {
        self.said.push(format!("bye {client:?}"));
        Ok(())
    }

    fn broken(&mut self, client: u32) -> Result<(), String> {
        self.said.push(format!("broken {client}"));
        Ok(())
    }
}

const LINES: &str = r#"{"isolde":"trace 1","client":"a","token":"t","unit":"us"}
{"begin":[1,2],"txn":1}
{"read":[3,4],"txn":1,"rows":[["accounts",5,"balance",100],["accounts","x\"y",null]]}
{"client":7,"lock":[3,4],"txn":1,"rows":[["t",-5,1.5]]}

{"write":[5,6],"txn":1,"rows":[["accounts",5,"balance",18446744073709551615]]}
{"commit":[7,8],"txn":1}
{"client":"7","lost":[9,null],"txn":1}
{"heartbeat":10}
{"client":"a","heartbeat":11}
{"bye":true}
"#;

const SAID: &[&str] = &[
    r#"hello Some("a") Some("t")"#,
    "0/1 Begin 1000-2000",
    r#"0/1 Read 3000-4000 accounts[Integer(5)].balance=Integer(100) accounts[Text("x\"y")].=Absent"#,
    r#"1/1 LockingRead 3000-4000 t[Integer(-5)].=Text("1.5")"#,
    r#"0/1 Write 5000-6000 accounts[Integer(5)].balance=Text("18446744073709551615")"#,
    "0/1 Commit 7000-8000",
    "1/1 Lost 9000-never",
    "heartbeat None 10000",
    "heartbeat Some(0) 11000",
    "bye None",
];

#[test]
fn lines_say_the_same_whole_and_byte_by_byte() {
    for piece in [LINES.len(), 1, 7] {
        let mut decoder = Decoder::new();
        let mut notes = Notes::default();
        for bytes in LINES.as_bytes().chunks(piece) {
            decoder.take(bytes, &mut notes).expect("a good trace");
        }
        assert_eq!(notes.said, SAID, "in pieces of {piece}");
        assert!(!decoder.is_inside());
        assert_eq!(decoder.messages(), 11);
    }
}

#[test]
fn a_saved_file_says_whose_rest_is_missing() {
    let mut lines = write::merged_head().into_bytes();
    write::bye(&mut lines, "a #1");
    write::broken(&mut lines, "b #2");
    write::bye_of_all(&mut lines);
    let mut notes = Notes::default();
    Decoder::new().take(&lines, &mut notes).expect("a good trace");
    assert_eq!(notes.said, ["hello None None", "bye Some(0)", "broken 1", "bye None"]);
}

fn error_of(bytes: &[u8]) -> String {
    let mut decoder = Decoder::new();
    decoder.take(bytes, &mut Notes::default()).expect_err("a damaged trace")
}

#[test]
fn wrong_lines_are_refused_with_their_place() {
    const HEAD: &str = "{\"isolde\":\"trace 1\"}\n";
    for (line, message) in [
        ("{\"begin\":[1,2],\"txn\":1}\n", "line 2: expected a `client`, found none"),
        (
            "{\"client\":1,\"begin\":[1,2]}\n",
            "line 2: expected the number of a transaction, `txn`, found none",
        ),
        (
            "{\"client\":1,\"write\":[1,2],\"txn\":1}\n",
            "line 2: expected the `rows` that were written, found none",
        ),
        (
            "{\"client\":1,\"begin\":[1,2],\"commit\":[1,2],\"txn\":1}\n",
            "line 2: expected one event, found several in one line",
        ),
        ("{\"bye\":false}\n", "line 2: expected a message of a trace, found `{\"bye\":false}`"),
        ("{\"broken\":true}\n", "line 2: expected a message of a trace, found `{\"broken\":true}`"),
        ("{\"merged\":true}\n", "line 2: expected one head, in the first line, found another"),
        (HEAD, "line 2: expected one head, in the first line, found another"),
    ] {
        assert_eq!(error_of(format!("{HEAD}{line}").as_bytes()), message);
    }
    let start = "line 1: expected the head of a trace, {\"isolde\":\"trace 1\"}, found";
    assert!(error_of(b"{\"isolde\":\"trace 2\"}\n").starts_with(start));
    let unknown = error_of(format!("{HEAD}{{\"client\":1,\"raed\":[1,2]}}\n").as_bytes());
    assert!(unknown.contains("unknown field `raed`"), "{unknown}");
    let endless = vec![b' '; MESSAGE_BYTES_MAX];
    assert!(error_of(&endless).ends_with("found a longer line"));
}

/// Frames with their lengths.
fn frames(payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = BINARY_HEAD.to_vec();
    for payload in payloads {
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(payload);
    }
    bytes
}

const HELLO: &[u8] = &[0, 1, b'a', 0, 0];
const NAME: &[u8] = &[1, 1, b't'];

fn event(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 1];
    bytes.extend_from_slice(&1i64.to_le_bytes());
    bytes.extend_from_slice(&2i64.to_le_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

#[test]
fn frames_say_what_lines_say() {
    let read = event(4, &[2, 0, 1, 9, 0, 1, 4, 0, 2, 1, b'k', 1, 0]);
    let bytes = frames(&[HELLO, NAME, &read, &event(7, &[]), &[11, 0]]);
    for piece in [bytes.len(), 1, 5] {
        let mut notes = Notes::default();
        let mut decoder = Decoder::new();
        for bytes in bytes.chunks(piece) {
            decoder.take(bytes, &mut notes).expect("good frames");
        }
        assert_eq!(
            notes.said,
            [
                r#"hello Some("a") None"#,
                r#"0/1 Read 1-2 t[Integer(-5)].=Integer(2) t[Text("k")].t=Absent"#,
                "0/1 Commit 1-2",
                "bye Some(0)",
            ]
        );
    }
}

#[test]
fn wrong_frames_are_refused_with_their_place() {
    for (payload, message) in [
        (&[9u8][..], "frame 2: expected more, found the end of the frame"),
        (&[99], "frame 2: expected a kind from 0 to 11, found 99"),
        (&[11, 5], "frame 2: expected a client below 1, found 5"),
        (&[11, 0, 0], "frame 2: expected the end of the frame, found 1 more bytes"),
        (&[1, 200, 1], "frame 2: expected more, found the end of the frame"),
        (&[1, 1, 0xff], "frame 2: expected a text in UTF-8, found other bytes"),
    ] {
        assert_eq!(error_of(&frames(&[HELLO, payload])), message);
    }
    let many = event(4, &[0xff, 0xff, 3, 0, 0]);
    let message = "frame 2: expected that many rows, found too few bytes for 65535";
    assert_eq!(error_of(&frames(&[HELLO, &many])), message);
    let long = [&[1, 0x80, 2][..], &[b'x'; 256]].concat();
    let message = "frame 2: expected a name of at most 255 bytes, found 256";
    assert_eq!(error_of(&frames(&[HELLO, &long])), message);
    let mut endless = BINARY_HEAD.to_vec();
    endless.extend_from_slice(&u32::MAX.to_le_bytes());
    assert!(error_of(&endless).starts_with("frame 1: expected a frame of 1 to"));
}

/// Whatever byte is changed: an error or another meaning, and never a panic.
#[test]
fn damage_is_refused_or_understood() {
    let read = event(4, &[2, 0, 1, 9, 0, 1, 4, 0, 2, 1, b'k', 1, 0]);
    let good = [LINES.as_bytes().to_vec(), frames(&[HELLO, NAME, &read, &event(7, &[])])];
    for bytes in good {
        for place in 0..bytes.len() {
            for change in [1u8, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] ^= change;
                let _ = Decoder::new().take(&damaged, &mut Notes::default());
                let _ = Decoder::new().take(&damaged[..place], &mut Notes::default());
            }
        }
    }
}
