//! The forms of `isolde check`: `--format` and `--report`.

use crate::support::{FRACTURED, Folder, GOOD, refused};

const SKEW: &str = "A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\n";
const LONG_FORK: &str =
    "A/T0: w(x,0) w(y,0)\nB/T1: w(x,1)\nC/T2: w(y,1)\nD/T3: r(x,1) r(y,0)\nE/T4: r(x,0) r(y,1)\n";

fn printed(history: &str, form: &str) -> String {
    let folder = Folder::with(&[("history.txt", history)]);
    let run = folder.isolde(&format!("check history.txt --level serializable --format {form}"));
    assert_eq!((run.status, run.stderr.as_str()), (1, ""));
    run.stdout
}

#[test]
fn junit_skips_levels_of_a_history_without_a_committed_transaction() {
    let folder = Folder::with(&[("aborted.txt", "A: w(x,1) aborted\n")]);
    let run = folder.isolde("check aborted.txt --level serializable --format junit");
    assert_eq!(run.status, 2, "{}", run.stderr);
    assert!(run.stdout.contains("skipped=\"1\""), "{}", run.stdout);
    let skipped = "<skipped message=\"no transaction committed, so nothing was tested\"/>";
    assert!(run.stdout.contains(skipped), "{}", run.stdout);
}

#[test]
fn junit_has_a_test_case_for_each_level() {
    let folder = Folder::with(&[("skew.txt", SKEW), ("good.txt", GOOD)]);
    folder.write("bad.txt", b"A: w(");
    let run = folder.isolde(
        "check skew.txt good.txt bad.txt --level serializable --level causal --format junit",
    );
    assert_eq!(run.status, 3);
    let text = regular(&run.stdout);
    for expected in [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"isolde\">",
        "<testsuite name=\"skew.txt\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\"",
        "<testcase name=\"causal\" classname=\"skew.txt\" time=\"T\"/>",
        "<failure message=\"write-skew (G2-item)\">",
        "<testsuite name=\"good.txt\" tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\"",
        "<testcase name=\"reading\" classname=\"bad.txt\" time=\"T\">\n      <error message=\"bad.txt:",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

/// A text with its times replaced.
fn regular(text: &str) -> String {
    let mut parts = text.split("time=\"");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out.push_str("time=\"T\"");
        out.push_str(part.split_once('"').map_or("", |(_, rest)| rest));
    }
    out
}

#[test]
fn github_gets_annotations_with_places_and_a_step_summary() {
    let folder = Folder::with(&[("skew.txt", SKEW)]);
    let output = folder
        .command("check skew.txt --level serializable --format github")
        .env("GITHUB_STEP_SUMMARY", folder.path("summary.md"))
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("::error file=skew.txt,line=1,title=not serializable%3A write skew"),
        "{text}"
    );
    let summary = folder.read("summary.md");
    assert!(summary.contains("| serializable | ❌ violated |"), "{summary}");
}

#[test]
fn dot_and_svg_show_both_transactions_and_both_edges() {
    let dot = printed(SKEW, "dot");
    assert_eq!((dot.matches(" -> ").count(), dot.matches("label=\"rw ").count()), (2, 2), "{dot}");
    let svg = printed(SKEW, "svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!((svg.matches("class=\"card ").count(), svg.matches("data-edge=").count()), (2, 2));
}

/// A history of a mutex gave the same long reason at each of 23 levels.
#[test]
fn a_reason_that_levels_share_is_said_once() {
    let call = |kind: &str| format!("{{:process 0, :type :{kind}, :f :acquire, :value nil}}\n");
    let folder = Folder::with(&[("mutex.edn", &(call("invoke") + &call("ok")))]);
    let reason = "is neither read nor write";
    for (form, referring) in [("text", "  (see [1])\n"), ("markdown", "| see \\[1\\] |\n")] {
        let told = folder.isolde(&format!("check mutex.edn --format {form}")).stdout;
        let found = (told.matches(reason).count(), told.matches(referring).count());
        assert!(found.0 == 1 && found.1 > 20, "{found:?} in {told}");
    }
    // What only one level has stands beside it.
    let told = folder.isolde("check mutex.edn --level causal").stdout;
    assert!(told.contains("  causal  unknown  (one operation is neither"), "{told}");
}

/// A dashed arrow ran through the label of another, and through the name of a transaction.
#[test]
fn no_arrow_of_a_picture_crosses_what_is_written() {
    let svg = printed(LONG_FORK, "svg");
    let places = |mark: &str| -> Vec<usize> { svg.match_indices(mark).map(|it| it.0).collect() };
    let (arrows, labels) = (places("data-edge="), places("data-label="));
    assert!(arrows.len() > 4 && arrows.len() == labels.len(), "{arrows:?} {labels:?}");
    let cards = places("data-txn=");
    assert!(arrows.iter().max() < cards.iter().min(), "{svg}");
    assert!(cards.iter().max() < labels.iter().min(), "{svg}");
    // What a label lies on is not seen through it.
    assert!(svg.contains(".graph .label rect{fill:var(--paper)"), "{svg}");
}

#[test]
fn a_replay_types_the_reads_before_the_commits_that_they_missed() {
    let text = printed(SKEW, "replay");
    let steps: Vec<&str> =
        text.lines().filter(|line| line.starts_with("/* A") || line.starts_with("/* B")).collect();
    let at = |part: &str| {
        steps
            .iter()
            .position(|step| step.contains(part))
            .unwrap_or_else(|| panic!("{part}: {text}"))
    };
    let commits: Vec<usize> = (0..steps.len()).filter(|&it| steps[it].contains("COMMIT")).collect();
    assert_eq!(commits.len(), 2);
    assert!(at("SELECT v FROM isolde_replay WHERE k = 'x'") < commits[0], "{text}");
    assert!(at("SELECT v FROM isolde_replay WHERE k = 'y'") < commits[0], "{text}");
    assert!(text.contains("-- Terminal B alone"), "{text}");
}

#[test]
fn several_forms_are_written_in_one_run() {
    let folder = Folder::with(&[("skew.txt", SKEW)]);
    let run = folder.isolde(
        "check skew.txt --level serializable --quiet --report junit=out.xml --report markdown=out.md \
         --report html=out.html --report elle=elle",
    );
    assert_eq!((run.status, run.stdout.as_str()), (1, "skew.txt\tserializable\tviolated\n"));
    assert!(folder.read("out.xml").contains("<failure"));
    assert!(folder.read("out.md").starts_with("## skew.txt: not serializable\n"));
    assert!(folder.read("out.html").starts_with("<!doctype html>"));
    let elle = folder.read("elle/G2-item.txt");
    assert!(elle.starts_with("Let:\n  A = {") && elle.ends_with(": a contradiction!\n"), "{elle}");
    let results = folder.read("elle/results.edn");
    assert!(results.starts_with("{:valid? false\n :anomaly-types [:G2-item]\n"), "{results}");
}

#[test]
fn forms_that_do_not_exist_or_do_not_fit_are_refused() {
    let folder = Folder::with(&[("a", GOOD), ("b", FRACTURED)]);
    let message = "isolde: svg, html and elle are for one history at a time\n";
    assert_eq!(folder.isolde("check a b --format html"), refused(message));
    assert_eq!(folder.isolde("check a --format pdf").status, 3);
    assert_eq!(folder.isolde("check a --format elle").status, 3);
    assert_eq!(folder.isolde("check a --report junit").status, 3);
}

#[test]
fn hostile_strings_are_markup_in_no_form() {
    let key = "\"</script><b>\\\" \\\\N ]]> ```\\n::error::x\\u{1b}[31m'; DROP TABLE t; --\"";
    let history = format!("A: r({key},nil) w(y,{key})\nB: r(y,nil) w({key},1)\n");
    for form in ["text", "json", "junit", "github", "markdown", "dot", "svg", "replay", "html"] {
        let text = printed(&history, form);
        assert!(!text.contains('\u{1b}'), "{form}");
        if ["junit", "svg", "html"].contains(&form) {
            assert!(!text.contains("<b>") && !text.contains("</script><b"), "{form}: {text}");
        }
        assert!(!text.lines().any(|line| line.starts_with("::error::x")), "{form}");
        if form == "replay" {
            let code = text.lines().map(|line| line.split("  -- ").next().unwrap_or(""));
            let code: Vec<&str> = code.filter(|line| !line.starts_with("--")).collect();
            assert!(!code.iter().any(|line| line.contains("DROP")), "{code:?}");
        }
    }
}

#[test]
fn no_result_replaces_a_history_or_another_result() {
    let folder = Folder::with(&[("history.txt", SKEW)]);
    let name = folder.path("history.txt");
    let name = name.canonicalize().expect("it is there");
    let lost = format!(
        "isolde: {}: expected a file other than the input, which would be lost\n",
        name.display()
    );
    for arguments in [
        "check history.txt --output history.txt",
        "check history.txt --report json=./history.txt",
        "check history.txt --certificate history.txt",
        "convert history.txt --to text --output history.txt",
        "shrink history.txt --output history.txt",
        "explain history.txt --output history.txt",
        "report history.txt --output history.txt",
        "bundle history.txt --output history.txt",
        "lint history.txt --output history.txt",
        "stats history.txt --output history.txt",
    ] {
        assert_eq!(folder.isolde(arguments), refused(&lost), "{arguments}");
        assert_eq!(folder.read("history.txt"), SKEW, "{arguments}");
    }
    let twice = "check history.txt --report json=a --report dot=a";
    let each = "isolde: a: expected a file for each result\n";
    assert_eq!(folder.isolde(twice), refused(each));
}

#[test]
fn names_of_files_are_no_commands_to_a_terminal() {
    let folder = Folder::with(&[("\u{1b}[31mred.txt", SKEW)]);
    for arguments in
        ["check \u{1b}[31mred.txt", "lint \u{1b}[31mred.txt", "stats \u{1b}[31mred.txt"]
    {
        let run = folder.isolde(arguments);
        assert!(run.stdout.contains("\\u{1b}[31mred.txt"), "{}", run.stdout);
        assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    }
    let run = folder.isolde("check \u{1b}[31mnone.txt");
    assert!(run.stderr.contains("[31mnone.txt: cannot be opened"), "{}", run.stderr);
    assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
}
