//! The checker for Jepsen, in Clojure, with the protocol as Jepsen has it.

#![allow(clippy::print_stdout, reason = "a skipped test must be seen")]

use crate::support::Folder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const INTEGRATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations/jepsen");
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
/// Clojure and what it needs: group, name and version.
const JARS: [[&str; 3]; 3] = [
    ["org/clojure", "clojure", "1.12.0"],
    ["org/clojure", "spec.alpha", "0.5.238"],
    ["org/clojure", "core.specs.alpha", "0.4.74"],
];

/// The jars of Clojure in Maven's folder, fetched if Maven is there to do it.
fn clojure() -> Result<Vec<PathBuf>, String> {
    let home = std::env::var("HOME").map_err(|_| "no home folder".to_owned())?;
    let place = |[group, name, version]: [&str; 3]| {
        let file = format!("{home}/.m2/repository/{group}/{name}/{version}/{name}-{version}.jar");
        PathBuf::from(file)
    };
    let jars = JARS.map(place);
    if jars.iter().all(|jar| jar.is_file()) {
        return Ok(jars.into());
    }
    let [group, name, version] = JARS[0];
    let artifact = format!("-Dartifact={}:{name}:{version}", group.replace('/', "."));
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "dependency:get", &artifact]);
    let fetched =
        maven.stdin(Stdio::null()).output().map_err(|error| format!("no mvn: {error}"))?;
    match jars.iter().find(|jar| !jar.is_file()) {
        None => Ok(jars.into()),
        Some(jar) => {
            let told = String::from_utf8_lossy(&fetched.stdout);
            Err(format!("Maven left no {}: {}", jar.display(), told.trim()))
        }
    }
}

#[test]
fn the_checker_for_jepsen_answers_in_its_protocol() {
    let found = Command::new("java").arg("-version").output();
    if let Err(error) = found {
        println!("skipped: no java: {error}");
        return;
    }
    let jars = match clojure() {
        Ok(jars) => jars,
        Err(reason) => {
            println!("skipped: no Clojure: {reason}");
            return;
        }
    };
    let folder = Folder::with(&[]);
    let integration = Path::new(INTEGRATION);
    let folders = [integration.join("src"), integration.join("test")];
    let path = std::env::join_paths(folders.iter().chain(&jars)).expect("paths without colons");
    let output = Command::new("java")
        .arg(format!("-Disolde.program={}", env!("CARGO_BIN_EXE_isolde")))
        .arg(format!("-Disolde.store={}", folder.path("store").display()))
        .arg(format!("-Disolde.data={DATA}"))
        .arg("-cp")
        .arg(path)
        .args(["clojure.main", "-m", "isolde.jepsen-test"])
        .output()
        .expect("java starts");
    let [told, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    println!("{told}");
    assert!(output.status.success(), "{told}{errors}");
    assert!(told.contains("0 failures, 0 errors."), "{told}");
}
