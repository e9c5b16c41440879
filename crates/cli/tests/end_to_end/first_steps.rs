//! What somebody types who has just installed the program.

use crate::support::Folder;

/// Names that are nearly right were answered by a list of all.
#[test]
fn mistyped_values_are_answered_by_the_one_that_was_meant() {
    let folder = Folder::with(&[("it.txt", "A: w(x,1)\n")]);
    for (typed, meant) in [
        (
            "check it.txt --level serialisable",
            "a level, found `serialisable`; did you mean `serializable`?",
        ),
        ("check it.txt --format jnuit", "a form, found `jnuit`; did you mean `junit`?"),
        ("check it.txt --from txt", "a format, found `txt`; did you mean `text`?"),
        ("gen --preset bnak", "a preset, found `bnak`; did you mean `bank`?"),
        ("gen --bug lostupdate", "a bug, found `lostupdate`; did you mean `lost-update`?"),
        ("run sqlight", "a database that can be driven, found `sqlight`; did you mean `sqlite`?"),
        (
            "run --isolation serialisable",
            "an isolation setting of SQLite, found `serialisable`; did you mean `serializable`?",
        ),
        ("elle -m list-apend it.txt", "a model, found `list-apend`; did you mean `list-append`?"),
    ] {
        let run = folder.isolde(typed);
        assert_eq!(run.status, 3, "{typed}");
        assert!(run.stderr.contains(&format!("expected {meant}\n")), "{typed}: {}", run.stderr);
    }
}
