//! What people install: the archive and the Debian package in an empty root, and the action.

use crate::support::{FRACTURED, Folder, GOOD};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// Runs a command that has to succeed, and gives what it printed.
fn done(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The archive and, where there is dpkg-deb, the Debian package of this program.
fn packed(folder: &Folder) -> Vec<PathBuf> {
    // Without what a debugger wants, there is less to compress.
    let program = folder.path("isolde");
    done(Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_isolde")));
    let script = Path::new(ROOT).join(".ci/package");
    let target = folder.path("target");
    let printed = done(Command::new(script).arg(&program).env("CARGO_TARGET_DIR", &target));
    let lines = printed.lines().filter(|line| !line.starts_with("skipped: "));
    lines.map(PathBuf::from).collect()
}

/// Libraries of the system that a program is linked with, and what loads them.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let printed = done(Command::new("ldd").arg(program));
    let words = printed.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout, reason = "a skipped test must be seen")]
#[test]
fn the_packages_work_in_an_empty_root() {
    let folder = Folder::with(&[]);
    for package in packed(&folder) {
        let root = folder.path(&format!("root-{}", package.extension().unwrap().display()));
        fs::create_dir_all(root.join("usr")).expect("a folder");
        if package.extension().is_some_and(|it| it == "deb") {
            done(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
        } else {
            let usr = root.join("usr");
            let mut tar = Command::new("tar");
            done(tar.args(["--strip-components=1", "-xzf"]).arg(&package).arg("-C").arg(&usr));
        }
        for file in [
            "share/man/man1/isolde.1.gz",
            "share/man/man1/isolde-check.1.gz",
            "share/bash-completion/completions/isolde",
            "share/zsh/vendor-completions/_isolde",
            "share/fish/vendor_completions.d/isolde.fish",
            "share/doc/isolde/README.md",
        ] {
            assert!(root.join("usr").join(file).is_file(), "{file} in {}", package.display());
        }
        let program = root.join("usr/bin/isolde");
        // The container's last stage has the same and nothing else.
        for library in libraries(&program) {
            let place = root.join(library.strip_prefix("/").expect("a path from the root"));
            fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
            fs::copy(&library, place).expect("a library");
        }
        fs::create_dir_all(root.join("tmp")).expect("a folder");
        let inside = |arguments: &[&str]| {
            let mut command = Command::new("/usr/sbin/chroot");
            command.arg(&root).arg("/usr/bin/isolde").args(arguments).output()
        };
        let demo = match inside(&["demo", "--output", "demo"]) {
            Ok(output) if text(&output).contains("cannot change root") => {
                println!("skipped: chroot takes root");
                return;
            }
            Err(error) => {
                println!("skipped: no chroot: {error}");
                return;
            }
            Ok(output) => output,
        };
        assert!(demo.status.success(), "{}", text(&demo));
        assert!(text(&demo).contains("No: lost update."), "{}", text(&demo));
        assert!(root.join("demo/report.html").is_file());
        let run = inside(&["run", "--transactions", "200", "--output", "run"]);
        let run = run.expect("chroot is there");
        assert!(run.status.success(), "{}", text(&run));
        assert!(text(&run).contains("strict-serializable: satisfied"), "{}", text(&run));
    }
}

#[cfg(unix)]
#[test]
fn the_action_annotates_and_leaves_a_page_for_each_history() {
    let folder = Folder::with(&[("good.txt", GOOD), ("bad one.txt", FRACTURED)]);
    let step = |histories: &str, levels: &str| {
        let mut command = Command::new(Path::new(ROOT).join("integrations/github/check"));
        command.current_dir(folder.path(".")).env("ISOLDE", env!("CARGO_BIN_EXE_isolde"));
        command.env("HISTORIES", histories).env("LEVELS", levels).env("PAGES", "pages");
        command.env("ARGUMENTS", "--timeout 1m").env("GITHUB_OUTPUT", folder.path("output"));
        command.env("GITHUB_STEP_SUMMARY", folder.path("summary.md"));
        let output = command.output().expect("bash starts");
        (output.status.code(), text(&output))
    };
    let (code, printed) = step("good.txt\nbad one.txt\n", "read-atomic");
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("::error "), "{printed}");
    assert_eq!(folder.read("output"), "answer=violated\n");
    assert!(folder.read("summary.md").contains("bad one.txt"));
    for page in ["pages/good.txt.html", "pages/bad_one.txt.html"] {
        assert!(folder.read(page).contains("</html>"), "{page}");
    }
    assert_eq!(step("good.txt", "read-atomic").0, Some(0));
    assert_eq!(step("good.txt\nmissing.txt", "").0, Some(3));
    assert!(folder.read("output").ends_with("answer=satisfied\nanswer=error\n"));
    let action = fs::read_to_string(Path::new(ROOT).join("action.yml")).expect("the action");
    assert!(action.contains("$GITHUB_ACTION_PATH/integrations/github/check"));
}
