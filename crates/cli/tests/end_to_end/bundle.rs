//! `isolde bundle`, and what `isolde report` makes of bundles, reports and what is neither.

use crate::support::{FRACTURED, Folder, refused};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};

fn bundled() -> Folder {
    let folder = Folder::with(&[("history.txt", FRACTURED)]);
    let run = folder.isolde("bundle history.txt -o all.tar.gz");
    assert_eq!((run.status, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    folder
}

#[test]
fn a_bundle_has_everything_and_report_opens_it() {
    let folder = bundled();
    let listed = std::process::Command::new("tar")
        .args(["-tzf", "all.tar.gz"])
        .current_dir(folder.path("."))
        .output()
        .expect("tar");
    assert_eq!(
        String::from_utf8_lossy(&listed.stdout),
        "isolde-bundle.json\nhistory.txt\nreport.json\ncertificate.txt\nshrunk.txt\nREADME.txt\n"
    );
    // As a vendor would: nothing else is there.
    let there = Folder::with(&[]);
    std::fs::copy(folder.path("all.tar.gz"), there.path("all.tar.gz")).expect("a copy");
    let run = there.isolde("report all.tar.gz -o page.html");
    assert_eq!((run.status, run.stderr.as_str()), (0, "isolde: wrote page.html\n"));
    let page = there.read("page.html");
    assert!(page.contains("\"counterexamples\":[{") && page.contains("\"op_keys\""));
    // The proofs are about the history beside them.
    let unpacked = std::process::Command::new("tar")
        .args(["-xzf", "all.tar.gz"])
        .current_dir(there.path("."))
        .status();
    assert!(unpacked.is_ok_and(|status| status.success()));
    assert_eq!(there.isolde("verify certificate.txt history.txt").status, 0);
}

#[test]
fn the_bundle_of_a_run_says_how_to_repeat_it() {
    let folder = Folder::with(&[]);
    folder.isolde("run sim://snapshot-isolation --transactions 50 -o run --quiet");
    let run = folder.isolde("bundle run");
    let expected =
        "isolde: wrote run.bundle.tar.gz; open it with: isolde report run.bundle.tar.gz\n";
    assert_eq!((run.status, run.stderr.as_str()), (0, expected));
    let shown = folder.isolde("report run.bundle.tar.gz -o -");
    assert!(shown.stdout.contains("isolde run sim://snapshot-isolation"));
}

#[test]
fn the_history_of_a_bundle_is_read_like_any_other() {
    let folder = bundled();
    let (bundle, history) =
        (folder.isolde("check all.tar.gz -q"), folder.isolde("check history.txt -q"));
    assert_eq!(bundle.stdout.replace("all.tar.gz", "history.txt"), history.stdout);
    assert_eq!(folder.isolde("bundle all.tar.gz -o again.tar.gz").status, 0);
    assert_eq!(folder.isolde("stats again.tar.gz").status, 0);
}

#[test]
fn a_bundle_that_is_cut_off_says_so() {
    let folder = bundled();
    let whole = std::fs::read(folder.path("all.tar.gz")).expect("it was written");
    for length in [5, 30, 100, 200, 400, whole.len() / 2, whole.len() - 1] {
        folder.write("cut.tar.gz", &whole[..length]);
        let message = "isolde: cut.tar.gz: the bundle is cut off or damaged; copy it again\n";
        assert_eq!(folder.isolde("report cut.tar.gz -o -"), refused(message), "{length}");
        assert_eq!(folder.isolde("check cut.tar.gz"), refused(message), "{length}");
    }
}

#[test]
fn a_bundle_without_its_compression_says_so() {
    let folder = bundled();
    let packed = std::fs::File::open(folder.path("all.tar.gz")).expect("it was written");
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).expect("it is whole");
    folder.write("all.tar", &plain);
    let message = "isolde: all.tar: expected a bundle as it was packed, found one without its \
                   compression (compress it again with gzip)\n";
    assert_eq!(folder.isolde("report all.tar -o -"), refused(message));
    assert_eq!(folder.isolde("check all.tar"), refused(message));
}

/// A report that was cut off, or was about several histories, was taken for a history in text.
#[test]
fn reports_that_cannot_be_shown_are_known_as_reports() {
    let folder = Folder::with(&[("one.txt", FRACTURED), ("other.txt", FRACTURED)]);
    let whole = folder.isolde("check one.txt --format json").stdout;
    folder.write("report.json", &whole.as_bytes()[..whole.len() / 2]);
    let run = folder.isolde("report report.json -o -");
    let message = "isolde: report.json: the report is cut off or damaged; check the history again \
                   (EOF while parsing ";
    assert_eq!((run.status, run.stderr.starts_with(message)), (3, true), "{}", run.stderr);
    folder.isolde("check one.txt other.txt --format json -o report.json");
    let message = "isolde: report.json: expected a report of one history, found one of several; \
                   check each history by itself, or name it instead of the report\n";
    assert_eq!(folder.isolde("report report.json -o -"), refused(message));
    let message = "isolde: report.json: expected a history, found a report of isolde (`isolde \
                   report` makes a page of it)\n";
    assert_eq!(folder.isolde("explain report.json"), refused(message));
}

#[test]
fn a_foreign_archive_and_a_foreign_version_are_refused() {
    let folder = Folder::with(&[("other", "x"), ("isolde-bundle.json", "{\"bundle\": 9}")]);
    for name in ["other", "isolde-bundle.json"] {
        let made = std::process::Command::new("tar")
            .args(["--format=ustar", "-czf", "foreign.tar.gz", name])
            .current_dir(folder.path("."))
            .status();
        assert!(made.is_ok_and(|status| status.success()));
        let message = match name {
            "other" => "expected a bundle of isolde, found an archive that begins with `other`",
            _ => "expected a bundle of version 1, found 9",
        };
        let expected = format!("isolde: foreign.tar.gz: {message}\n");
        assert_eq!(folder.isolde("report foreign.tar.gz -o -"), refused(&expected));
    }
}

#[test]
fn compressed_histories_are_no_bundles() {
    let folder = Folder::with(&[]);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(FRACTURED.as_bytes()).expect("memory");
    folder.write("history.txt.gz", &packed.finish().expect("memory"));
    assert_eq!(folder.isolde("report history.txt.gz -o -").status, 0);
}

#[test]
fn a_report_in_json_becomes_a_page_and_one_of_another_version_is_refused() {
    let folder = Folder::with(&[("history.txt", FRACTURED)]);
    folder.isolde("check history.txt --format json -o report.json");
    let shown = folder.isolde("report report.json -o -");
    assert_eq!(shown.status, 0);
    assert!(shown.stdout.contains("\"counterexamples\":[{"));
    let json = folder.read("report.json");
    let old = json.replacen("\"schema\": 4", "\"schema\": 3", 1);
    assert_ne!(old, json);
    folder.write("old.json", old.as_bytes());
    assert_eq!(
        folder.isolde("report old.json -o -"),
        refused(
            "isolde: old.json: expected a report of schema 4, found schema 3, written by isolde \
             0.1.0; check the history again with this one\n"
        )
    );
    folder.write("cut.json", &json.as_bytes()[..json.len() / 2]);
    assert_eq!(folder.isolde("report cut.json -o -").status, 3);
}
