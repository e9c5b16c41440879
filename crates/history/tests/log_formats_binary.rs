//! What each binary format of logs means, on the smallest files that show it.

mod common;

use common::{Files, read, refused, shown};
use isolde_history::{Interval, NEVER, TxnId};

/// Write, variable, value and success.
type BincodeEvent = (bool, u64, u64, bool);
/// Events, and whether they were committed.
type BincodeTxn<'t> = (&'t [BincodeEvent], bool);

fn bincode(sessions: &[&[BincodeTxn<'_>]]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    let number = |bytes: &mut Vec<u8>, number: usize| {
        bytes.extend((number as u64).to_le_bytes());
    };
    for text in ["db", "", ""] {
        number(&mut bytes, text.len());
        bytes.extend(text.as_bytes());
    }
    number(&mut bytes, sessions.len());
    for session in sessions {
        number(&mut bytes, session.len());
        for (events, committed) in *session {
            number(&mut bytes, events.len());
            for &(write, variable, value, success) in *events {
                bytes.push(write.into());
                bytes.extend(variable.to_le_bytes());
                bytes.extend(value.to_le_bytes());
                bytes.push(success.into());
            }
            bytes.push((*committed).into());
        }
    }
    bytes
}

#[test]
fn dbcop_bincode_leaves_failed_events_out_and_keeps_aborted_transactions() {
    let bytes = bincode(&[
        &[(&[(true, 1, 1, true), (false, 2, 0, false)], true)],
        &[(&[(true, 1, 2, true)], false), (&[], true)],
    ]);
    let history = read("dbcop-bincode", &Files::one(bytes));
    assert_eq!(
        shown(&history),
        "init *=0\n1: w(1,1)\n2: w(1,2) aborted\n2:\n# failed-operation at 0\n"
    );
}

#[test]
fn dbcop_bincode_errors_give_record_and_byte() {
    let mut bytes = bincode(&[&[(&[(true, 1, 1, true)], true)]]);
    bytes.push(0);
    let end = bytes.len() - 1;
    assert_eq!(
        refused("dbcop-bincode", &Files::one(&bytes)),
        format!("file: byte {end}: record 1: expected the end of the file, found more bytes")
    );
    bytes.truncate(end - 1);
    bytes[end - 2] = 7;
    assert_eq!(
        refused("dbcop-bincode", &Files::one(&bytes)),
        format!(
            "file: byte {}: record 1: expected 0 or 1 for whether the event succeeded, found 7",
            end - 2
        )
    );
    bytes[end - 2] = 1;
    assert_eq!(
        refused("dbcop-bincode", &Files::one(&bytes)),
        format!(
            "file: byte {}: record 1: expected whether the transaction committed (1 bytes), \
             found the end of the file after 0 (the file is cut off, or in another format)",
            end - 1
        )
    );
}

const INITIAL: u64 = 0xbebe_ebee;
const NULL: u64 = 0xdead_beef;
const UNIVERSAL: u64 = 0xabdd_efee;

/// Tag and fields.
type CobraRecord<'r> = (u8, &'r [u64]);

fn cobra(records: &[CobraRecord<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (tag, fields) in records {
        bytes.push(*tag);
        for field in *fields {
            bytes.extend(field.to_be_bytes());
        }
    }
    bytes
}

#[test]
fn cobra_reads_name_their_writers_and_missing_ones_are_unknown() {
    let first = cobra(&[
        (b'S', &[1]),
        (b'W', &[101, 5, 9]),
        (b'R', &[INITIAL, INITIAL, 6, 0]),
        (b'R', &[NULL, NULL, 7, 0]),
        (b'C', &[1]),
    ]);
    let second = cobra(&[
        (b'S', &[2]),
        (b'R', &[1, 101, 5, 9]),
        (b'R', &[3, 300, 5, 9]),
        (b'R', &[1, 102, 5, 9]),
        (b'R', &[3, 301, 6, 9]),
        (b'C', &[2]),
    ]);
    let files =
        Files::many(&[("T0.log", &first), ("T1.log", &second), ("T1.debug", b"[DEBUG] noise")]);
    assert_eq!(
        shown(&read("cobra", &files)),
        "T0/1: w(5,101) r(6,nil) r(7,nil)\n\
         T1/2: r(5,101) r(5,300) r(5,102) r(6,301)\n\
         3/3: w(5,300) w(6,301) unknown\n\
         # missing-writer at 3\n"
    );
}

#[test]
fn cobra_universal_ids_are_matched_by_value() {
    let log = cobra(&[
        (b'S', &[1]),
        (b'W', &[UNIVERSAL, 5, 9]),
        (b'R', &[UNIVERSAL, UNIVERSAL, 5, 9]),
        (b'C', &[1]),
    ]);
    let history = read("cobra", &Files::many(&[("T0.log", &log)]));
    assert_eq!(shown(&history), "T0/1: w(5,9) r(5,9)\n");
}

#[test]
fn cobra_times_end_with_the_clients_next_begin() {
    let log = cobra(&[
        (b'S', &[1, 1_600_000_000_000]),
        (b'C', &[1, 1_600_000_000_005]),
        (b'S', &[2, 1_600_000_000_009]),
        (b'C', &[2, 1_600_000_000_010]),
    ]);
    let history = read("cobra", &Files::many(&[("T0.log", &log)]));
    let interval = |txn| history.txn_interval(TxnId(txn));
    let (first, second) = (
        Interval { invoked: 1_600_000_000_000_000_000, completed: 1_600_000_000_009_999_999 },
        Interval { invoked: 1_600_000_000_009_000_000, completed: NEVER },
    );
    assert_eq!([interval(0), interval(1)], [first, second]);
    let commit = history.txn_times(TxnId(0)).commit;
    assert_eq!(commit.invoked, 1_600_000_000_005_000_000);
}

#[test]
fn cobra_records_out_of_place_are_named() {
    let bad: [(&[CobraRecord<'_>], &str); 4] = [
        (&[(b'W', &[1, 2, 3])], "byte 0: record 1: expected `S`, found `W`"),
        (
            &[(b'S', &[1]), (b'C', &[2])],
            "byte 18: record 2: expected the end of transaction 1, found that of 2",
        ),
        (
            &[(b'S', &[1]), (b'W', &[2, 3, 4])],
            "byte 34: record 2: expected the commit of transaction 1, found the end of the file",
        ),
        (
            &[(b'S', &[1]), (b'W', &[2, 3, 4]), (b'X', &[])],
            "byte 34: record 3: expected a record with tag S, C, A, W or R, found byte 0x58",
        ),
    ];
    for (records, expected) in bad {
        let files = Files::many(&[("T0.log", &cobra(records))]);
        let message = refused("cobra", &files);
        assert_eq!(message, format!("folder/T0.log: {expected}"));
    }
}

fn vbox(records: &[(u8, &[u64], &[u8])]) -> Vec<u8> {
    // Widths say how many bytes each field has.
    let mut bytes = Vec::new();
    for (tag, fields, widths) in records {
        bytes.push(*tag);
        for (field, &width) in fields.iter().zip(*widths) {
            bytes.extend(&field.to_le_bytes()[..width.into()]);
        }
    }
    bytes
}

#[test]
fn vbox_versions_are_named_by_their_writers() {
    let first = vbox(&[
        (b'T', &[1, 100, 190], &[4, 8, 8]),
        (b'S', &[1, 100, 110], &[4, 8, 8]),
        (b'W', &[2, 120, 130, 7, 1, 33], &[4, 8, 8, 8, 8, 4]),
        (b'W', &[2, 120, 130, 7, 2, 44], &[4, 8, 8, 8, 8, 4]),
        (b'W', &[3, 140, 150, 8, 1, 55], &[4, 8, 8, 8, 8, 4]),
        (b'C', &[4, 180, 190], &[4, 8, 8]),
    ]);
    let second = vbox(&[
        (b'T', &[2, 100, 190], &[4, 8, 8]),
        (b'S', &[5, 100, 110], &[4, 8, 8]),
        (b'R', &[6, 120, 130, 7, 0, 0], &[4, 8, 8, 8, 4, 4]),
        (b'P', &[7, 140, 150, 1, 30, 40, 1, 7, 1, 2], &[4, 8, 8, 8, 4, 4, 4, 8, 4, 4]),
        (b'A', &[8, 180, 190], &[4, 8, 8]),
        (b'T', &[3, 200, 210], &[4, 8, 8]),
        (b'S', &[9, 200, 210], &[4, 8, 8]),
    ]);
    let history = read("vbox", &Files::many(&[("1.log", &first), ("2.log", &second)]));
    assert_eq!(
        shown(&history),
        "1/1: w(7,T1.2){1=33 2=44} w(8,T1.3){1=55}\n\
         2/2: r(7,nil) p(column 1 30..40; 7=T1.2) aborted\n\
         2/3: unknown\n"
    );
    let of = |interval: Interval| (interval.invoked, interval.completed);
    let times = history.txn_times(TxnId(0));
    assert_eq!([of(times.begin), of(times.commit)], [(120, 130), (180, 190)]);
    let ops = history.ops_of(TxnId(0));
    let intervals: Vec<_> = ops.map(|op| of(history.op_interval(op))).collect();
    assert_eq!(intervals, [(120, 130), (140, 150)]);
}

#[test]
fn vbox_claims_of_many_rows_allocate_nothing() {
    let log = vbox(&[
        (b'T', &[1, 100, 190], &[4, 8, 8]),
        (b'P', &[7, 140, 150, 1, 30, 40, u64::from(u32::MAX)], &[4, 8, 8, 8, 4, 4, 4]),
    ]);
    assert_eq!(
        refused("vbox", &Files::many(&[("1.log", &log)])),
        "folder/1.log: byte 62: record 2: expected a key (8 bytes), found the end of the file \
         after 0 (the file is cut off, or in another format)"
    );
}

#[test]
fn empty_first_logs_do_not_hide_the_format_of_a_directory() {
    let log = cobra(&[(b'S', &[1]), (b'W', &[1, 2, 3]), (b'C', &[1])]);
    let files = Files::many(&[("T0.log", b""), ("T1.log", &log)]);
    assert_eq!(shown(&read("cobra", &files)), "T1/1: w(2,1)\n");
    let log = b"{\"value\":[[\"w\",2,1,true]]}\n";
    let files = Files::many(&[("J0.log", b""), ("J1.log", log)]);
    assert_eq!(shown(&read("viper-json", &files)), "J1: w(2,1)\n");
}
