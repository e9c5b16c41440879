//! Which crate may use which, and what every crate declares.
//!
//! Manifests are read as they are written: what Cargo makes of them no longer has the lints,
//! nor what is inherited from the workspace.

use crate::files::{assert_none, at, content, ending_in};
use std::fs;
use toml::{Table, Value};

/// A crate of ours and those of ours it may use.
struct Allowed {
    package: &'static str,
    dependencies: &'static [&'static str],
    /// Beside the dependencies, in tests alone.
    in_tests: &'static [&'static str],
}

/// Dependencies point down. Nobody uses the command line, the measurements or
/// these tests, so they appear in no list.
const ALLOWED: &[Allowed] = &[
    Allowed { package: "isolde-history", dependencies: &[], in_tests: &[] },
    Allowed { package: "isolde-acyclic", dependencies: &[], in_tests: &[] },
    // The verifier cannot use the checker, in tests neither.
    Allowed { package: "isolde-certificate", dependencies: &["isolde-history"], in_tests: &[] },
    Allowed {
        package: "isolde-checker",
        dependencies: &["isolde-history", "isolde-certificate", "isolde-acyclic"],
        // Histories of any size whose levels are known; and itself, as others call it.
        in_tests: &["isolde-harness", "isolde"],
    },
    // The door for others: nobody here uses it.
    Allowed {
        package: "isolde",
        dependencies: &["isolde-history", "isolde-checker", "isolde-report"],
        in_tests: &[],
    },
    Allowed {
        package: "isolde-report",
        dependencies: &["isolde-history", "isolde"],
        in_tests: &[],
    },
    Allowed {
        package: "isolde-harness",
        dependencies: &["isolde-history"],
        // What is generated at a level is held to the definition of that level.
        in_tests: &["isolde"],
    },
    Allowed {
        package: "isolde-drivers",
        dependencies: &["isolde-harness"],
        // What a condition finds is compared with what databases find.
        in_tests: &["isolde-history"],
    },
    // Whoever passes an application's requests on decides nothing about them.
    Allowed { package: "isolde-proxy", dependencies: &["isolde-history"], in_tests: &[] },
    Allowed {
        package: "isolde-cluster",
        dependencies: &["isolde-history", "isolde"],
        // Histories of any size whose levels are known.
        in_tests: &["isolde-harness"],
    },
    Allowed {
        package: "isolde-cli",
        dependencies: &[
            "isolde-history",
            "isolde-proxy",
            "isolde-certificate",
            "isolde",
            "isolde-cluster",
            "isolde-report",
            "isolde-harness",
            "isolde-drivers",
        ],
        // What it sends is what the listener understands.
        in_tests: &["isolde-client"],
    },
    // It becomes a part of other people's applications.
    Allowed { package: "isolde-client", dependencies: &[], in_tests: &[] },
    Allowed {
        package: "isolde-bench",
        dependencies: &["isolde-history", "isolde", "isolde-report", "isolde-harness"],
        in_tests: &[],
    },
    // Tests alone: nothing else builds the second engine.
    Allowed {
        package: "isolde-crosscheck",
        dependencies: &["isolde"],
        in_tests: &["isolde-history", "isolde-harness"],
    },
    Allowed {
        package: "isolde-tidy",
        dependencies: &[],
        in_tests: &["isolde-history", "isolde", "isolde-report", "isolde-harness"],
    },
];

/// A manifest.
struct Manifest {
    path: String,
    table: Table,
}

impl Manifest {
    fn package(&self) -> &str {
        let name = self.table.get("package").and_then(|package| package.get("name"));
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// Our crates among those of this section that take their version from the workspace.
    fn with_versions(&self, section: &str) -> Vec<&String> {
        let keys = self.table.get(section).and_then(Value::as_table).into_iter().flatten();
        let inherited = keys.filter(|it| is_true(it.1.get("workspace"))).map(|it| it.0);
        inherited.filter(|key| key.starts_with("isolde")).collect()
    }

    /// Our crates among the dependencies of this section; those for one platform are included.
    fn ours(&self, section: &str) -> Vec<&String> {
        let platforms = self.table.get("target").and_then(Value::as_table);
        let platforms = platforms.into_iter().flatten().filter_map(|(_, it)| it.get(section));
        (self.table.get(section).into_iter().chain(platforms))
            .filter_map(Value::as_table)
            .flat_map(Table::keys)
            .filter(|name| *name == "isolde" || name.starts_with("isolde-"))
            .collect()
    }
}

fn parsed(path: &str, text: &str) -> Table {
    text.parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn manifests() -> Vec<Manifest> {
    (ending_in(&["Cargo.toml"]).into_iter())
        .filter(|file| file.path.starts_with("crates/"))
        .map(|file| Manifest { table: parsed(&file.path, &file.text), path: file.path })
        .collect()
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool) == Some(true)
}

#[test]
fn sections_of_one_platform_are_read_too() {
    let text = "[package]\nname = \"one\"\n# isolde = 1\n[dependencies]\nisolde.workspace = true\n\
                [target.'cfg(unix)'.dependencies]\nisolde-report = { path = \"..\" }\n";
    let manifest = Manifest { path: String::new(), table: parsed("one", text) };
    assert_eq!(manifest.package(), "one");
    assert_eq!(manifest.ours("dependencies"), ["isolde", "isolde-report"]);
}

#[test]
fn dependencies_point_down() {
    let mut broken = Vec::new();
    for manifest in manifests() {
        let package = manifest.package();
        let Some(allowed) = ALLOWED.iter().find(|row| row.package == package) else {
            broken.push(format!("{}: `{package}` has no row in ALLOWED", manifest.path));
            continue;
        };
        let sections = [
            ("dependencies", &[] as &[&str]),
            ("build-dependencies", &[]),
            ("dev-dependencies", allowed.in_tests),
        ];
        for (section, more) in sections {
            for used in manifest.ours(section) {
                let may = |list: &[&str]| list.contains(&used.as_str());
                if !may(allowed.dependencies) && !may(more) {
                    broken.push(format!("{}: {section} has {used}", manifest.path));
                }
            }
        }
    }
    assert_none("a crate uses only those below it", &broken);
}

#[test]
fn every_crate_keeps_the_workspace_lints() {
    let keeps = |manifest: &Manifest| {
        is_true(manifest.table.get("lints").and_then(|lints| lints.get("workspace")))
    };
    let broken: Vec<String> = (manifests().iter())
        .filter(|manifest| !keeps(manifest))
        .map(|manifest| manifest.path.clone())
        .collect();
    assert_none("each manifest has `[lints] workspace = true`", &broken);
}

/// Crates that are of no use to others.
const FOR_US_ALONE: &[&str] = &["isolde-bench", "isolde-crosscheck", "isolde-tidy"];

#[test]
fn every_published_crate_has_a_page_and_depends_on_versions() {
    let mut broken = Vec::new();
    for manifest in manifests().iter().filter(|it| !FOR_US_ALONE.contains(&it.package())) {
        let readme = manifest.path.replace("Cargo.toml", "README.md");
        let page = fs::read_to_string(at(&readme)).unwrap_or_default();
        if page.lines().next() != Some(&format!("# {}", manifest.package())) {
            broken.push(format!("{readme}: expected a page about {}", manifest.package()));
        }
        if manifest.table["package"].get("description").is_none() {
            broken.push(format!("{}: no description", manifest.path));
        }
        // Crates use each other in a circle there, and cargo leaves out what has no version.
        for name in manifest.with_versions("dev-dependencies") {
            broken.push(format!("{}: {name} by the workspace in tests", manifest.path));
        }
    }
    let root = parsed("Cargo.toml", &content("Cargo.toml"));
    let dependencies = root["workspace"]["dependencies"].as_table().expect("a table of crates");
    let ours = dependencies.iter().filter(|it| it.1.get("path").is_some());
    let version = |value: &Value| value.get("version").and_then(Value::as_str) == Some("0.1.0");
    let unversioned = ours.filter(|it| !version(it.1));
    broken.extend(unversioned.map(|it| format!("Cargo.toml: {} without its version", it.0)));
    assert_none("what is published can be published", &broken);
}

#[test]
fn every_crate_takes_version_and_licence_from_the_workspace() {
    let inherited = ["version", "edition", "rust-version", "license"];
    let mut broken = Vec::new();
    for manifest in manifests() {
        let package = &manifest.table["package"];
        for key in inherited {
            if !is_true(package.get(key).and_then(|value| value.get("workspace"))) {
                broken.push(format!("{}: {key}", manifest.path));
            }
        }
        let own = package.get("publish").map(|value| value.as_bool() == Some(false));
        if own != FOR_US_ALONE.contains(&manifest.package()).then_some(true) {
            broken.push(format!("{}: publish", manifest.path));
        }
    }
    assert_none("a crate inherits what the workspace says once", &broken);
}

#[test]
fn the_licence_that_manifests_name_is_in_the_tree() {
    let root = parsed("Cargo.toml", &content("Cargo.toml"));
    assert_eq!(root["workspace"]["package"]["license"].as_str(), Some("MIT OR Apache-2.0"));
    assert!(content("LICENSE-MIT").starts_with("MIT License"));
    assert!(content("LICENSE-APACHE").contains("Apache License"));
}

#[test]
fn continuous_integration_runs_the_test_command_of_the_readme() {
    let command = "cargo test --workspace --locked";
    let lines = |path: &str| content(path).lines().filter(|line| *line == command).count();
    assert_eq!((lines("README.md"), lines(".ci/run")), (1, 1));
}
