//! How source files begin, how long they and their functions are, and words
//! they do without.

use crate::files::{TextFile, assert_none, ending_in};
use std::collections::BTreeSet;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, with the reason.
const LONG_FILES: &[&str] = &[];
/// Functions that may be longer, as `path: name`, with the reason.
const LONG_FUNCTIONS: &[&str] = &[];

/// What is not merged. Written in two parts, so that this file keeps its own rule.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("db", "g!("),
    concat!("#[ig", "nore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

/// Databases, in lower case. Formats are named after the tools and systems they
/// come from; everything else below the drivers works for any database.
const DATABASES: &[&str] = &[
    "cassandra",
    "cockroachdb",
    "dgraph",
    "etcd",
    "foundationdb",
    "galera",
    "mariadb",
    "mongodb",
    "mysql",
    "postgres",
    "postgresql",
    "redis",
    "spanner",
    "sqlite",
    "tidb",
    "yugabyte",
    "yugabytedb",
];
/// Where they are not named.
const BELOW_DRIVERS: &[&str] = &[
    "crates/history/src/",
    "crates/certificate/src/",
    "crates/acyclic/src/",
    "crates/checker/src/",
    "crates/report/src/",
    "crates/harness/src/",
];
const FORMATS: &str = "crates/history/src/format/";

fn sources() -> Vec<TextFile> {
    ending_in(&[".rs"])
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let says = |file: &TextFile| {
        let first = file.text.lines().next().unwrap_or("");
        first.strip_prefix("//! ").is_some_and(|text| !text.trim().is_empty())
    };
    let broken: Vec<String> =
        sources().into_iter().filter(|file| !says(file)).map(|file| file.path).collect();
    assert_none("the first line is a `//!` sentence", &broken);
}

#[test]
fn a_folder_of_modules_begins_with_its_mod_file() {
    let sources = sources();
    let folders: BTreeSet<&str> =
        sources.iter().filter_map(|file| Some(file.path.rsplit_once('/')?.0)).collect();
    let broken: Vec<String> = (sources.iter())
        .filter(|file| file.path.strip_suffix(".rs").is_some_and(|path| folders.contains(path)))
        .map(|file| file.path.clone())
        .collect();
    assert_none("what is in a folder is declared by its `mod.rs`, not beside the folder", &broken);
}

#[test]
fn files_are_short_enough_to_read() {
    let broken: Vec<String> = (sources().iter())
        .filter(|file| !LONG_FILES.contains(&file.path.as_str()))
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .map(|(file, lines)| format!("{}: {lines} lines", file.path))
        .collect();
    assert_none("a file has at most 600 lines", &broken);
}

/// A function as it stands in its file.
#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    /// The line of its name, from 1.
    line: usize,
    lines: usize,
}

/// The functions of a file that `rustfmt` has formatted: the body of a function
/// ends at the first closing brace that is indented like its first line.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let opens = |line: &&str| line.ends_with('{') || line.ends_with('}') || line.ends_with(';');
        let opened = start + lines[start..].iter().position(opens).unwrap_or(0);
        let mut last = opened;
        if lines[opened].ends_with('{') {
            last += lines[opened..].iter().position(|line| *line == end).unwrap_or(0);
        }
        found.push(Function { name, line: start + 1, lines: last - start + 1 });
    }
    found
}

/// The name of the function that a line declares.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(' ');
    let name = loop {
        match words.next()? {
            "fn" => break words.next()?,
            "const" | "async" | "unsafe" | "extern" | "\"C\"" => {}
            word if word.starts_with("pub") || word.ends_with(')') => {}
            _ => return None,
        }
    };
    let end = name.find(|character: char| !character.is_alphanumeric() && character != '_');
    Some(&name[..end.unwrap_or(name.len())])
}

#[test]
fn functions_are_found_with_their_length() {
    let text = "fn one() {}\n\npub(crate) const fn two<T>(\n    text: &T,\n) -> bool {\n    {\n    }\n\
                }\n\ntrait Three {\n    fn four();\n}\n";
    let function = |name, line, lines| Function { name, line, lines };
    assert_eq!(
        functions(text),
        [function("one", 1, 1), function("two", 3, 6), function("four", 11, 1)]
    );
}

#[test]
fn functions_are_short_enough_to_read() {
    let mut broken = Vec::new();
    for file in sources() {
        for function in functions(&file.text) {
            let name = format!("{}: {}", file.path, function.name);
            if function.lines > FUNCTION_LINES_MAX && !LONG_FUNCTIONS.contains(&name.as_str()) {
                broken.push(format!("{name}, {} lines", function.lines));
            }
        }
    }
    assert_none("a function has at most 70 lines", &broken);
}

#[test]
fn functions_are_named_for_what_they_answer_or_do() {
    let mut broken = Vec::new();
    for file in sources() {
        for Function { name, line, .. } in functions(&file.text) {
            let prefixed = ["get_", "do_", "test_"].iter().any(|prefix| name.starts_with(prefix));
            if prefixed || ["_impl", "_helper"].iter().any(|suffix| name.ends_with(suffix)) {
                broken.push(format!("{}:{line}: {name}", file.path));
            }
        }
        let base = file.path.rsplit('/').next().unwrap_or("");
        if ["util.rs", "utils.rs", "helper.rs", "helpers.rs"].contains(&base) {
            broken.push(file.path);
        }
    }
    assert_none("no `get_`, `do_`, `test_`, `_impl`, and no drawer for odds and ends", &broken);
}

#[test]
fn nothing_unfinished_is_merged() {
    let mut broken = Vec::new();
    for file in sources() {
        for (place, line) in file.text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
                broken.push(format!("{}:{}: {word}", file.path, place + 1));
            }
        }
    }
    assert_none("open ends and switched-off tests are not merged", &broken);
}

#[test]
fn no_database_is_named_below_the_drivers() {
    let below = |path: &str| {
        BELOW_DRIVERS.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(FORMATS)
    };
    let mut broken = Vec::new();
    for file in sources().into_iter().filter(|file| below(&file.path)) {
        for (place, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            let mut words = line.split(|character: char| !character.is_alphanumeric());
            if let Some(name) = words.find(|word| DATABASES.contains(word)) {
                broken.push(format!("{}:{}: {name}", file.path, place + 1));
            }
        }
    }
    assert_none("what is below the drivers works for any database", &broken);
}
