//! `isolde check`: options that change what is asked, and whether the answer says so.

use crate::support::{Folder, refused};

/// A transaction whose client's clock was set back.
const SET_BACK: &str = "A @10..5: w(x,1)\nB @11..12: r(x,1)\n";

#[test]
fn an_end_before_the_beginning_is_noted_and_violates_nothing() {
    let folder = Folder::with(&[("back.hist", SET_BACK)]);
    let run = folder.isolde("check back.hist -l sser -l strong-si -l gsi -l pcsi -l lin");
    let note = "\nnote: a transaction or operation ended before it began; levels of real time take \
                its beginning for its end (completed-before-invoked)\n  such as: A was invoked at \
                10 and ended at 5\n";
    assert!(run.status == 0 && run.stdout.contains(note), "{}", run.stdout);
    assert_eq!(folder.isolde("explain back.hist -l sser").status, 0);
}

#[test]
fn a_clock_drift_can_be_a_few_nanoseconds() {
    let folder = Folder::with(&[("stale.hist", "A @1..2: w(x,1)\nB @5..6: r(x,nil)\n")]);
    for engine in ["fast", "reference"] {
        let status = |drift: &str| {
            let options = format!("-q -l sser --engine {engine} --clock-drift {drift}");
            folder.isolde(&format!("check stale.hist {options}")).status
        };
        assert_eq!([status("0"), status("2ns"), status("3ns"), status("1us")], [1, 1, 0, 0]);
    }
}

#[test]
fn the_definitions_refuse_to_do_without_a_source() {
    let message = "isolde: the definitions use all there is: expected --engine reference without \
                   --without lists or read-modify-write\n";
    let folder = Folder::with(&[("back.hist", SET_BACK)]);
    let run = folder.isolde("check back.hist --engine reference --without lists");
    assert_eq!(run, refused(message));
}
