//! The tests of `engines.rs`, built and run with the second engine.
//!
//! They are a build of their own: CaDiCaL is C++, and nothing else needs a compiler for it.
//! Where there is none and none can be installed, a line says `skipped: …`.

#[path = "../../drivers/tests/install/mod.rs"]
mod install;

use install::Needed;
use std::process::{Command, Stdio};

/// What the build script of CaDiCaL calls, unless `CXX` names another.
const COMPILER: Needed = Needed { file: "/usr/bin/c++", packages: &["g++"] };

#[test]
fn both_engines_give_every_strong_level_the_same_verdict() {
    if !compiles() && !install::is_there(&COMPILER) {
        return;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--locked", "--package", env!("CARGO_PKG_NAME")]);
    cargo.args(["--features", "cadical", "--test", "engines"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let output = cargo.stdin(Stdio::null()).output().expect("cargo that built this test runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{text}");
    let passed = text.lines().find(|line| line.starts_with("test result: ok."));
    let passed = passed.unwrap_or_else(|| panic!("no result of the tests in\n{text}"));
    assert!(!passed.contains(" 0 passed"), "no test was run: {passed}");
}

/// Whether there is a compiler already, wherever it lies.
fn compiles() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(compiler);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
