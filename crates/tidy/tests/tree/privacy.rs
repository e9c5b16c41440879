//! The tree works on any machine: it names no folder of one, and no host that
//! only some can reach.

use crate::files::{assert_none, content, ending_in};

/// Text files; histories of the corpus included.
const TEXTS: &[&str] =
    &[".rs", ".md", ".toml", ".txt", ".json", ".edn", ".yml", ".yaml", ".sh", "run"];

/// Folders that differ from machine to machine. In two parts, as this file is
/// looked at as well.
const FOLDERS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/tm", "p/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("C:", "\\"),
];

/// Words in a host that say it stands in for another one.
const STAND_INS: &[&str] = &["artifact", "mirror", "nexus", "proxy", "registry", "localhost"];

/// Where packages come from, as every lock file says.
const PACKAGES: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn no_file_names_a_folder_of_one_machine() {
    let mut broken = Vec::new();
    for file in ending_in(TEXTS) {
        for (place, line) in file.text.lines().enumerate() {
            for folder in FOLDERS {
                let starts_path = |at: usize| {
                    let before = line[..at].chars().next_back();
                    before.is_none_or(|character| !character.is_alphanumeric() && character != '.')
                };
                if line.match_indices(folder).any(|(at, _)| starts_path(at)) {
                    broken.push(format!("{}:{}: {folder}", file.path, place + 1));
                }
            }
        }
    }
    assert_none("paths are relative to the tree", &broken);
}

#[test]
fn no_file_names_a_host_that_stands_in_for_another() {
    let mut broken = Vec::new();
    for file in ending_in(TEXTS) {
        for (place, line) in file.text.lines().enumerate() {
            for rest in line.split("://").skip(1) {
                let host = rest.split(['/', ')', '>', '"', ' ']).next().unwrap_or("");
                if STAND_INS.iter().any(|word| host.contains(word)) {
                    broken.push(format!("{}:{}: {host}", file.path, place + 1));
                }
            }
        }
    }
    assert_none("addresses are public", &broken);
}

#[test]
fn packages_come_from_the_public_registry() {
    let lock = content("Cargo.lock");
    let others: Vec<String> = (lock.lines())
        .filter_map(|line| line.strip_prefix("source = "))
        .map(|source| source.trim_matches('"').to_owned())
        .filter(|source| source != PACKAGES)
        .collect();
    assert_none("one source of packages", &others);
}
