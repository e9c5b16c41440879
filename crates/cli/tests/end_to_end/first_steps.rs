//! What somebody types who has just installed the program.

use crate::support::{Folder, printed, refused};
use std::time::{Duration, Instant};

const COLUMNS: usize = 80;

#[test]
fn the_demo_finds_and_explains_a_bug_without_a_database() {
    let folder = Folder::with(&[]);
    let begun = Instant::now();
    let run = folder.isolde("demo");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    for line in run.stdout.lines() {
        assert!(line.chars().count() <= COLUMNS, "{line}");
    }
    let lines = |start: &str| run.stdout.lines().filter(|line| line.starts_with(start)).count();
    for (start, count) in [
        ("60 transactions were recorded. Are they serializable?", 1),
        ("No: lost update.", 1),
        ("  S2.6 and S1.5 both read 1 = 17 and both replaced it", 1),
        ("  S1.5 moved 8 from account 1 to account 2: it read 97 and 116", 1),
        ("  All accounts should hold 300 together. 19 of 20 looks saw another total", 1),
        ("What it means: ", 1),
        ("page: isolde-demo/report.html", 1),
        ("all steps: isolde explain isolde-demo/history.txt", 1),
    ] {
        assert_eq!(lines(start), count, "{start}\n{}", run.stdout);
    }
    assert!(folder.read("isolde-demo/report.html").contains("lost update"));
    // It was found, and is not only told.
    let gate = folder.isolde("check isolde-demo/history.txt --level serializable");
    assert_eq!(gate.status, 1, "{}", gate.stdout);
    assert!(gate.stdout.contains("lost update"), "{}", gate.stdout);
    let explained = folder.isolde("explain isolde-demo/history.txt");
    assert!(explained.stdout.contains("lost update"), "{}", explained.stdout);
    // A second look changes nothing.
    assert_eq!(folder.isolde("demo"), run);
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_of_the_demo_is_opened_only_on_request() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with(&[("xdg-open", "#!/bin/sh\necho \"$1\" > opened\n")]);
    let program = folder.path("xdg-open");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = format!("{}:/usr/bin:/bin", folder.path(".").display());
    let status = |arguments: &str, path: &str| {
        let output = folder.command(arguments).env("PATH", path).output().expect("it starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    assert_eq!(status("demo --output here", &path), (Some(0), String::new()));
    assert!(!folder.path("opened").exists());
    assert_eq!(status("demo --output here --open", &path), (Some(0), String::new()));
    assert_eq!(folder.read("opened"), "here/report.html\n");
    let (code, message) = status("demo --output here --open", "/nowhere");
    assert_eq!(code, Some(3), "{message}");
    let start = "isolde: demo: cannot open here/report.html: xdg-open: ";
    assert!(message.starts_with(start), "{message}");
    assert!(message.ends_with("; open it in a browser\n"), "{message}");
}

#[test]
fn the_version_says_what_it_was_built_from() {
    let folder = Folder::with(&[]);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(folder.isolde("-V"), printed(0, &format!("isolde {version}\n")));
    let run = folder.isolde("--version");
    let lines: Vec<&str> = run.stdout.lines().collect();
    let starts: Vec<&str> =
        lines.iter().map(|line| line.split(' ').next().expect("a word")).collect();
    assert_eq!(starts, ["isolde", "commit:", "features:", "target:"], "{}", run.stdout);
    assert_eq!(lines[0], format!("isolde {version}"));
    assert!(lines[3].contains(std::env::consts::ARCH), "{}", lines[3]);
}

#[test]
fn completions_of_every_shell_know_commands_and_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = Folder::with(&[]).isolde(&format!("completions {shell}"));
        assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{shell}");
        for word in ["explain", "clock-drift"] {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
    let run = Folder::with(&[]).isolde("completions powershel");
    assert!(run.stderr.contains("a similar value exists: 'powershell'"), "{}", run.stderr);
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::with(&[]);
    assert_eq!(folder.isolde("man --output pages"), printed(0, ""));
    let help = folder.isolde("--help").stdout;
    let (_, commands) = help.split_once("Commands:\n").expect(&help);
    let names = commands.lines().take_while(|line| !line.is_empty());
    // What a long description goes on with begins further to the right.
    let names: Vec<&str> = names
        .filter(|line| line.chars().nth(2) != Some(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.contains(&"check") && names.len() > 15, "{names:?}");
    for name in &names {
        let page = folder.read(&format!("pages/isolde-{name}.1"));
        assert!(page.contains(&format!(".TH isolde-{name} 1")), "{page}");
        assert_eq!(folder.isolde(&format!("man {name}")), printed(0, &page));
    }
    assert_eq!(folder.isolde("man"), printed(0, &folder.read("pages/isolde.1")));
    let expected = "isolde: man: expected a command, found `chek`; did you mean `check`?\n";
    assert_eq!(folder.isolde("man chek"), refused(expected));
}

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
