//! Damaged logs are errors with a place, never a panic, a hang or a wrong size.

mod common;

use common::{Files, LOGS, try_read, write};
use isolde_history::format::{self, ReadOptions};
use isolde_history::{Place, ReadError};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A small valid source of each format.
fn samples() -> Vec<(&'static str, Files)> {
    let plume = Files::one("w(1,1,1,1)\nr(1,1,2,2)\nw(2,1,2,-1)\nr(2,0,1,3)\n");
    let history = try_read("plume", &plume).expect("valid");
    let committed = try_read("plume", &Files::one("w(1,1,1,1)\nr(1,1,2,2)\n")).expect("valid");
    let written = |name, history| write(name, history).expect("expressible").0;
    let viper = r#"{"preBeginTS":1,"postBeginTS":2,"preCommitTS":3,"postCommitTS":4,"value":[["w",1,5,true],["i",2,7,"nil",false,true],["range",1,9,[{"id":1,"sk":1,"val":5}],[{"id":3,"val":4}]]]}
{"value":[["r",1,5,false]],"isInitial":false,"isFinal":true}
"#;
    let edn = "{:type :ok :f :txn :value [[:r 1 nil false] [:w 1 5 true] [:d 1 -7 5 false true] \
               [:range 1 9 [{:id 4, :val \"a b\"}] []]]}\n";
    let timekiller = r#"[{"tid":1,"sid":1,"sts":{"p":"10","l":0},"cts":{"p":12,"l":1},"ops":
        [{"t":"r","k":1,"v":[1,2]},{"t":"a","k":1,"v":5}]}]"#;
    let isopredict = "WRITE KEY[x] Txn(1, 0)\nREAD KEY[x] Txn(2, 0) From(1, 0)\n\
                      CONTAINS[a] in Set[s] From(1, 1) Txn(2, 0)\n";
    vec![
        ("plume", plume),
        ("awdit", written("awdit", &committed)),
        ("dbcop-hist", written("dbcop-hist", &history)),
        ("dbcop-json", written("dbcop-json", &history)),
        ("timekiller", Files::one(timekiller)),
        ("isopredict", Files::one(isopredict)),
        ("veristrong-list", Files::one("3\n1 1 A 7 5\n2 1 R 7 0\n1 1 R 7 1 5\n")),
        ("viper-json", Files::one(viper)),
        ("viper-edn", Files::one(edn)),
        ("cobra", first_file(&written("cobra", &committed))),
        ("vbox", Files::one(vbox())),
        ("dbcop-bincode", written("dbcop-bincode", &history)),
    ]
}

fn first_file(files: &Files) -> Files {
    match files {
        Files::Many(files) => Files::One(files.values().next().expect("a file").clone()),
        Files::One(_) => files.clone(),
    }
}

fn vbox() -> Vec<u8> {
    let mut bytes = Vec::new();
    let operation = |bytes: &mut Vec<u8>, tag: u8, id: u32| {
        bytes.push(tag);
        bytes.extend(id.to_le_bytes());
        bytes.extend(100u64.to_le_bytes());
        bytes.extend(200u64.to_le_bytes());
    };
    operation(&mut bytes, b'T', 1);
    operation(&mut bytes, b'S', 1);
    operation(&mut bytes, b'W', 2);
    bytes.extend([7u64.to_le_bytes(), 1u64.to_le_bytes()].concat());
    bytes.extend(33u32.to_le_bytes());
    operation(&mut bytes, b'P', 3);
    bytes.extend(1u64.to_le_bytes());
    bytes.extend([30u32.to_le_bytes(), 40u32.to_le_bytes(), 1u32.to_le_bytes()].concat());
    bytes.extend(7u64.to_le_bytes());
    bytes.extend([1u32.to_le_bytes(), 2u32.to_le_bytes()].concat());
    operation(&mut bytes, b'C', 4);
    bytes
}

fn bytes_of(files: &Files) -> &[u8] {
    match files {
        Files::One(bytes) => bytes,
        Files::Many(_) => panic!("samples are single files"),
    }
}

/// An error must say where.
fn attempt(name: &str, bytes: &[u8]) -> bool {
    match try_read(name, &Files::one(bytes)) {
        Ok(_) => true,
        Err(ReadError { place, .. }) => {
            assert_ne!(place, Place::Whole, "{name}: {:?}", String::from_utf8_lossy(bytes));
            false
        }
    }
}

#[test]
fn every_format_has_a_sample() {
    let mut names: Vec<&str> = samples().iter().map(|sample| sample.0).collect();
    for (name, files) in samples() {
        assert!(attempt(name, bytes_of(&files)), "{name}");
    }
    let mut all = LOGS.to_vec();
    all.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, all);
}

#[test]
fn files_cut_anywhere_are_read_or_refused_with_a_place() {
    for (name, files) in samples() {
        let bytes = bytes_of(&files);
        for length in 0..bytes.len() {
            attempt(name, &bytes[..length]);
        }
    }
}

/// Formats that tell their own length notice every cut.
#[test]
fn binary_files_and_arrays_cut_anywhere_are_refused() {
    for (name, files) in samples() {
        let bytes = bytes_of(&files).trim_ascii_end();
        let told = ["dbcop-bincode", "dbcop-json", "timekiller"].contains(&name);
        for length in 0..if told { bytes.len() } else { 0 } {
            assert!(!attempt(name, &bytes[..length]), "{name} cut at {length}");
        }
    }
}

#[test]
fn files_with_one_wrong_byte_are_read_or_refused_with_a_place() {
    const WRONG: &[u8] = b"\0\x01\x7f\x80\xff09-\n\r \"'[]{}(),:;#=!rwST\\";
    for (name, files) in samples() {
        let mut bytes = bytes_of(&files).to_vec();
        for at in 0..bytes.len() {
            let right = bytes[at];
            for wrong in WRONG.iter().copied().chain((0..8).map(|bit| right ^ (1 << bit))) {
                bytes[at] = wrong;
                attempt(name, &bytes);
            }
            bytes[at] = right;
        }
    }
}

#[test]
fn files_with_parts_repeated_or_removed_are_read_or_refused_with_a_place() {
    for (name, files) in samples() {
        let bytes = bytes_of(&files);
        // A fixed sequence: the same damage every time.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..2000 {
            let (from, to) =
                (random.random_range(0..bytes.len()), random.random_range(0..bytes.len()));
            attempt(name, &[&bytes[..from], &bytes[to..]].concat());
        }
    }
}

/// What one format writes must not upset the reader of another.
#[test]
fn samples_of_one_format_are_no_trouble_to_the_others() {
    for (_, files) in samples() {
        for name in LOGS {
            attempt(name, bytes_of(&files));
        }
    }
}

/// What is said of a source that looks like no format.
fn unrecognised(files: &Files) -> String {
    let read = format::read_detected(files.input(), ReadOptions::default());
    read.map(|(history, _)| history).expect_err("bad input").to_string()
}

#[test]
fn what_begins_like_a_format_is_told_by_its_reader() {
    let taken_for = |name| format!(" (taken for {name}; name another format with --from)");
    let told: [(&[u8], &str, &str); 9] = [
        (b"w(1,99999999999999999999,1,1)", "file: line 1: expected ", "plume"),
        (b"r 1 1\n---\nw 1\n", "file: line 3: expected `r key value`", "awdit"),
        (b"[x:=1 y=2]\n", "file: line 1: expected `x:=1`", "dbcop-hist"),
        (b"{:type :okay, :f :txn}", "file: line 1: expected `:invoke`", "jepsen-edn"),
        (b"{:f :txn}\n", "file: line 1: expected an operation with a `:type`", "jepsen-edn"),
        (b"[[[[[\n", "file: line 2: expected a dbcop history", "dbcop-json"),
        (b"[{\"type\": \"ok\xff\"}]", "file: line 1: expected ", "jepsen-json"),
        (
            b"[{\"tid\":1,\"sid\":1,\"sts\":{\"p\":1,\"l\":0},\"ops\":[]}]",
            "file: line 1: expected an array of TimeKiller's transactions",
            "timekiller",
        ),
        (b"WRITE KEY[x] Txn(1)\n", "file: line 1: expected ", "isopredict"),
    ];
    for (bytes, beginning, name) in told {
        let message = unrecognised(&Files::one(bytes));
        assert!(message.starts_with(beginning), "{message}");
        assert!(message.ends_with(&taken_for(name)), "{message}");
    }
    let deep = unrecognised(&Files::one([b"{:type :ok, :value ", &b"[".repeat(2000)[..]].concat()));
    assert!(deep.starts_with("file: line 1: expected "), "{deep}");
}

#[test]
fn a_cut_header_and_a_bad_tag_are_told_with_their_byte() {
    let (_, bincode) = samples().pop().expect("bincode comes last");
    let cut = unrecognised(&Files::one(&bytes_of(&bincode)[..60]));
    assert!(cut.starts_with("file: byte "), "{cut}");
    let mut log = b"S".to_vec();
    log.extend(7u64.to_be_bytes());
    log.push(b'X');
    let bad = unrecognised(&Files::many(&[("T0.log", &log)]));
    assert!(bad.starts_with("folder/T0.log: byte 9: record 1: expected "), "{bad}");
    assert_eq!(
        unrecognised(&Files::many(&[("a.txt", b"x"), ("b.txt", b"y")])),
        "folder: expected a directory of client logs, found 2 files that are none \
         (for several histories name their files instead)"
    );
}
