//! Which crate may use which, and what every crate declares.
//!
//! Manifests are read by a parser that knows as much TOML as they use: sections,
//! and one `key = value` a line.

use crate::files::{assert_none, content, ending_in};
use std::collections::BTreeMap;

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
        package: "isolde",
        dependencies: &["isolde-history", "isolde-certificate", "isolde-acyclic"],
        // Histories of any size whose levels are known.
        in_tests: &["isolde-harness"],
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

/// Keys of every section, with their values.
struct Manifest {
    path: String,
    sections: BTreeMap<String, BTreeMap<String, String>>,
}

impl Manifest {
    fn parse(path: &str, text: &str) -> Manifest {
        let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut current = String::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(rest) = line.strip_prefix('[')
                && let Some((name, _)) = rest.trim_start_matches('[').split_once(']')
                // An array that spans lines may have a line that begins with `[`.
                && !name.contains(['"', ','])
            {
                name.clone_into(&mut current);
                sections.entry(current.clone()).or_default();
            } else if let Some((key, value)) = line.split_once('=') {
                let section = sections.entry(current.clone()).or_default();
                section.insert(key.trim().to_owned(), value.trim().to_owned());
            }
        }
        Manifest { path: path.to_owned(), sections }
    }

    fn package(&self) -> &str {
        let name = self.sections.get("package").and_then(|package| package.get("name"));
        name.map_or("", |name| name.trim_matches('"'))
    }

    /// Our crates among the dependencies of sections whose name ends like this;
    /// sections for one platform are included.
    fn ours(&self, section: &str) -> Vec<String> {
        let (exact, nested) = (section.to_owned(), format!(".{section}"));
        (self.sections.iter())
            .filter(|(name, _)| **name == exact || name.ends_with(&nested))
            .flat_map(|(_, keys)| keys.keys())
            .map(|key| key.split('.').next().unwrap_or(key).trim_matches('"').to_owned())
            .filter(|name| name == "isolde" || name.starts_with("isolde-"))
            .collect()
    }
}

fn manifests() -> Vec<Manifest> {
    let parse = |(path, text): (String, String)| Manifest::parse(&path, &text);
    ending_in(&["Cargo.toml"])
        .into_iter()
        .map(|file| (file.path, file.text))
        .filter(|(path, _)| path.starts_with("crates/"))
        .map(parse)
        .collect()
}

#[test]
fn sections_and_keys_are_read() {
    let text = "[package]\nname = \"one\"\n# isolde = 1\n[dependencies]\nisolde.workspace = true\n\
                [target.'cfg(unix)'.dependencies]\nisolde-report = { path = \"..\" }\n";
    let manifest = Manifest::parse("Cargo.toml", text);
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
        let lints = manifest.sections.get("lints").and_then(|lints| lints.get("workspace"));
        lints.is_some_and(|value| value == "true")
    };
    let broken: Vec<String> = (manifests().iter())
        .filter(|manifest| !keeps(manifest))
        .map(|manifest| manifest.path.clone())
        .collect();
    assert_none("each manifest has `[lints] workspace = true`", &broken);
}

#[test]
fn every_crate_takes_version_and_licence_from_the_workspace() {
    let inherited = ["version", "edition", "rust-version", "license", "publish"];
    let mut broken = Vec::new();
    for manifest in manifests() {
        let package = &manifest.sections["package"];
        for key in inherited {
            if package.get(&format!("{key}.workspace")).is_none_or(|value| value != "true") {
                broken.push(format!("{}: {key}", manifest.path));
            }
        }
    }
    assert_none("a crate inherits what the workspace says once", &broken);
}

#[test]
fn the_licence_that_manifests_name_is_in_the_tree() {
    let root = Manifest::parse("Cargo.toml", &content("Cargo.toml"));
    assert_eq!(root.sections["workspace.package"]["license"], "\"MIT OR Apache-2.0\"");
    assert!(content("LICENSE-MIT").starts_with("MIT License"));
    assert!(content("LICENSE-APACHE").contains("Apache License"));
}

#[test]
fn continuous_integration_runs_the_test_command_of_the_readme() {
    let command = "cargo test --workspace --locked";
    let lines = |path: &str| content(path).lines().filter(|line| *line == command).count();
    assert_eq!((lines("README.md"), lines(".ci/run")), (1, 1));
}
