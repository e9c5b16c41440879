//! Second opinions of `isolde watch`: none says more than a check of the whole stream.

use crate::support::Folder;

/// `x` is 1, A makes it 0 and B makes it 1 again. C and D lose an update of `y`. The part around
/// these two had A's read of 1 and B's write of 1, and nothing of what was there before: so A
/// seemed to have read what B wrote later, and to have missed what it wrote itself.
const AGAIN: &str = r#"{"isolde":"trace 1","unit":"us"}
{"client":"A"}
{"client":"B"}
{"client":"C"}
{"client":"D"}
{"client":"C","read":[5,8],"txn":1,"rows":[["t","y","v",5]]}
{"client":"A","read":[10,20],"txn":1,"rows":[["t","x","v",1]]}
{"client":"A","write":[30,40],"txn":1,"rows":[["t","x","v",0]]}
{"client":"A","commit":[50,60],"txn":1}
{"client":"B","write":[100,110],"txn":1,"rows":[["t","x","v",1]]}
{"client":"B","commit":[120,130],"txn":1}
{"client":"A","read":[200,210],"txn":2,"rows":[["t","x","v",1]]}
{"client":"A","commit":[220,230],"txn":2}
{"client":"D","read":[305,315],"txn":1,"rows":[["t","y","v",5]]}
{"client":"D","write":[320,330],"txn":1,"rows":[["t","y","v",6]]}
{"client":"D","commit":[340,350],"txn":1}
{"client":"C","write":[400,410],"txn":1,"rows":[["t","y","v",7]]}
{"client":"C","commit":[420,430],"txn":1}
{"bye":true}
"#;

#[test]
fn a_value_that_was_there_before_it_was_written_again_is_no_writers() {
    let folder = Folder::with(&[("again.jsonl", AGAIN)]);
    let watch = "watch --from again.jsonl --profile postgres/serializable --output found --quiet";
    let run = folder.isolde(watch);
    assert_eq!(run.status, 1, "{run:?}");
    let opinion = run.stdout.lines().find(|line| line.contains("second opinion"));
    let opinion = opinion.expect("an opinion");
    assert!(!opinion.contains("read-your-writes"), "{opinion}");
    assert!(opinion.contains("lost-update"), "{opinion}");
    let part = folder.read("found/violation-1.txt");
    assert!(part.contains("init t/x/v=1") || part.contains("t/x/v\"=1"), "{part}");
    let lint = folder.isolde("lint found/violation-1.txt");
    assert!(!lint.stdout.contains("read-before-it-was-sent"), "{lint:?}");
}

/// The clocks are wrong by as much as is allowed, and so are the times in the part.
#[test]
fn a_part_stands_without_the_clock_drift_that_was_allowed() {
    let trace = r#"{"isolde":"trace 1","unit":"ms"}
{"client":"a"}
{"client":"b"}
{"client":"c"}
{"client":"a","txn":1,"write":[10,11],"rows":[["t",1,1]]}
{"client":"a","txn":1,"commit":[12,13]}
{"client":"b","txn":1,"read":[14,15],"rows":[["t",1,null]]}
{"client":"c","txn":1,"read":[14,15],"rows":[["t",2,7]]}
{"client":"b","txn":1,"commit":[16,17]}
{"client":"c","txn":1,"commit":[16,17]}
{"bye":true}
"#;
    let folder = Folder::with(&[("drift.jsonl", trace)]);
    let watch = "watch --from drift.jsonl --profile snapshot-isolation --initial absent \
                 --clock-drift 5ms --output found --quiet";
    let run = folder.isolde(watch);
    // What c read nobody wrote; b may have read before a wrote.
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stdout.contains("violations: unexplained-read 1\n"), "{run:?}");
    assert!(!run.stdout.contains("stale-read"), "{run:?}");
}

#[test]
fn a_lost_update_is_found_where_only_what_was_read_tells_of_snapshots() {
    let folder = Folder::with(&[]);
    for database in ["cockroach", "yugabyte"] {
        let options = format!(
            "--profile {database}/repeatable-read --keys 5 --transactions 1000 --explain 1 --quiet"
        );
        let sound = folder.isolde(&format!("watch sim://snapshot-isolation {options}"));
        assert_eq!(sound.status, 0, "{database}: {sound:?}");
        let lost =
            folder.isolde(&format!("watch sim://snapshot-isolation?bug=lost-update {options}"));
        assert_eq!(lost.status, 1, "{database}: {lost:?}");
        assert!(lost.stdout.contains("violation 1: lost-update"), "{database}: {lost:?}");
        assert!(lost.stdout.contains("which replaced what it read in "), "{database}: {lost:?}");
    }
}
