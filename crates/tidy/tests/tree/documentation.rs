//! Documentation that must match the code, and links that must lead somewhere.

use crate::files::{assert_none, at, content, ending_in};
use isolde::{AnomalyKind, LEVELS};
use isolde_history::format::FORMATS;
use std::path::Path;

const DEFINITIONS: &str = "docs/definitions.md";
/// How citations look, in the page that says so.
const EXAMPLE: &str = "Author99";
const FORMAT_INDEX: &str = "docs/formats/README.md";

#[test]
fn every_format_has_a_row_and_a_page_that_speaks_of_it() {
    let index = content(FORMAT_INDEX);
    let mut broken = Vec::new();
    for format in FORMATS {
        let start = format!("| [`{}`](", format.name);
        let Some(row) = index.lines().find_map(|line| line.strip_prefix(&start)) else {
            broken.push(format!("{}: no row in {FORMAT_INDEX}", format.name));
            continue;
        };
        let written = if format.write.is_some() { "yes" } else { "no" };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if cells.get(1) != Some(&written) {
            broken.push(format!("{}: the row does not say written: {written}", format.name));
        }
        let target = row.split(')').next().unwrap_or("");
        let page = target.split('#').next().unwrap_or("");
        let text = content(&format!("docs/formats/{page}"));
        let speaks = text.contains(&format!("`{}`", format.name))
            || text.lines().any(|line| line == format!("# The {} format, version 1", format.name));
        if !speaks {
            broken.push(format!("{}: {page} does not speak of it", format.name));
        }
    }
    assert_none("each format is documented", &broken);
}

#[test]
fn every_level_is_defined_with_its_synonyms() {
    let text = content(DEFINITIONS);
    let mut broken = Vec::new();
    for row in LEVELS {
        let heading = format!("### `{}`", row.name);
        if !text.lines().any(|line| line == heading) {
            broken.push(format!("{}: no heading", row.name));
        }
        for synonym in row.synonyms.iter().filter(|name| !text.contains(&format!("`{name}`"))) {
            broken.push(format!("{}: synonym {synonym}", row.name));
        }
    }
    assert_none("docs/definitions.md has every level and all its names", &broken);
}

#[test]
fn every_anomaly_is_defined_with_its_code() {
    let text = content(DEFINITIONS);
    let row = |kind: AnomalyKind| match kind.code() {
        Some(code) => format!("| `{}` ({code}) |", kind.name()),
        None => format!("| `{}` |", kind.name()),
    };
    let broken: Vec<String> = (AnomalyKind::ALL.into_iter())
        .map(row)
        .filter(|row| !text.lines().any(|line| line.starts_with(row)))
        .collect();
    assert_none("docs/definitions.md has a row for every anomaly", &broken);
}

#[test]
fn unsafe_code_is_where_the_page_about_security_says() {
    let page = content("docs/security.md");
    let says = ["unsafe {", "unsafe fn", "unsafe impl"];
    let files: Vec<String> = (ending_in(&[".rs"]).into_iter())
        .filter(|file| !file.path.starts_with("crates/tidy/"))
        .filter(|file| says.iter().any(|word| file.text.contains(word)))
        .map(|file| file.path)
        .collect();
    let listed: Vec<&str> = (page.lines())
        .filter_map(|line| line.strip_prefix("| `crates/")?.split_once(".rs` |"))
        .map(|(path, _)| path)
        .collect();
    let wanted: Vec<&str> = (files.iter())
        .filter_map(|path| path.strip_prefix("crates/")?.strip_suffix(".rs"))
        .collect();
    let sorted = |mut paths: Vec<&str>| {
        paths.sort_unstable();
        paths.join("\n")
    };
    assert_eq!(sorted(listed), sorted(wanted));
}

#[test]
fn every_level_and_format_is_in_the_readme() {
    let text = content("README.md");
    let levels = LEVELS.iter().map(|row| row.name);
    let formats = FORMATS.iter().map(|format| format.name);
    let broken: Vec<String> = levels
        .chain(formats)
        .filter(|name| !text.contains(&format!("`{name}`")))
        .map(str::to_owned)
        .collect();
    assert_none("the tables of README.md are complete", &broken);
}

/// `[Adya99 §3.2]`, and names of tools that are cited like one: `[Leopard]`.
fn citations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in text.split('[').skip(1) {
        let inside = rest.split(']').next().unwrap_or("");
        for part in inside.split(';') {
            let name = part.trim().split([' ', ',']).next().unwrap_or("");
            let letters = name.trim_end_matches(|character: char| character.is_ascii_digit());
            let starts_like_a_name =
                letters.len() > 2 && letters.starts_with(|first: char| first.is_ascii_uppercase());
            if starts_like_a_name
                && name.len() == letters.len() + 2
                && letters.chars().all(|letter| letter.is_ascii_alphabetic())
            {
                found.push(name.to_owned());
            }
        }
    }
    found
}

#[test]
fn citations_are_found_with_their_year() {
    let text =
        "see [Adya99 §3.2], [Biswas19, Def. 2.4; Bailis14], [`Level`], [u8; 16] and [text](x)";
    assert_eq!(citations(text), ["Adya99", "Biswas19", "Bailis14"]);
}

#[test]
fn every_citation_is_in_the_bibliography() {
    let definitions = content(DEFINITIONS);
    let mut broken = Vec::new();
    for file in ending_in(&[".rs", ".md", ".txt"]) {
        if file.path.starts_with("crates/tidy/") {
            continue;
        }
        for citation in citations(&file.text).into_iter().filter(|name| name != EXAMPLE) {
            if !definitions.contains(&format!("| [{citation}] |")) {
                broken.push(format!("{}: [{citation}]", file.path));
            }
        }
    }
    broken.dedup();
    assert_none("docs/definitions.md lists what is cited", &broken);
}

/// The targets of `[text](target)` outside code.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if !in_code {
            found.extend(line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        }
    }
    found
}

/// How a heading is called in a link, for headings without punctuation but `-`.
fn anchor(heading: &str) -> String {
    let kept =
        |character: &char| character.is_alphanumeric() || [' ', '-', '_'].contains(character);
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

#[test]
fn every_local_link_leads_somewhere() {
    let mut broken = Vec::new();
    for file in ending_in(&[".md"]) {
        let folder = Path::new(&file.path).parent().expect("a file in a folder");
        for link in links(&file.text).into_iter().filter(|link| !link.contains("://")) {
            let (path, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => file.path.clone(),
                path => folder.join(path).to_string_lossy().into_owned(),
            };
            if !at(&target).exists() {
                broken.push(format!("{}: {link}", file.path));
            } else if !place.is_empty() {
                let text = content(&target);
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                if !headings.any(|line| anchor(line.trim_start_matches('#')) == place) {
                    broken.push(format!("{}: {link} has no such heading", file.path));
                }
            }
        }
    }
    assert_none("links in the documentation lead to files and headings", &broken);
}
