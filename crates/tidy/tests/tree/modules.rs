//! Which top module of a crate uses which: no two of them each other, by whatever way.
//!
//! The picture in ARCHITECTURE.md is made from the sources, a line for each layer: a module uses
//! only modules of the lines below its own. `ISOLDE_WRITE=1` writes it anew.

use crate::files::{assert_none, at, content, ending_in};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Crates whose modules still use each other in circles, with what is in the way.
const CIRCULAR: &[(&str, &str)] = &[
    ("cli", "reading a file, its limits and what a folder of a run holds know each other"),
    ("drivers", "a driver starts the private server that connects with it"),
    ("harness", "settings name bugs and anomalies, which are about settings"),
    ("history", "columns, the builder and what stands in columns of its own know each other"),
    ("report", "sentences are made of scenarios, and scenarios have sentences"),
];

const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- modules: made from the sources by a test of `tidy` -->\n";
const END: &str = "<!-- end of modules -->\n";

/// The modules that each module uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// What is code: without comments, and without the tests at the end of a file.
fn code(text: &str) -> String {
    let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..tests].lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of all paths that begin with `crate::`, those in braces too.
fn names_after_crate(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in code.split("crate::").skip(1) {
        match part.strip_prefix('{') {
            None => names.push(first_name(part)),
            Some(list) => {
                let mut depth = 0;
                let mut start = 0;
                for (at, character) in list.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth > 0 => depth -= 1,
                        '}' | ',' if depth == 0 => {
                            names.push(first_name(list[start..at].trim()));
                            start = at + 1;
                            if character == '}' {
                                break;
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

fn first_name(path: &str) -> String {
    path.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
}

/// Names that the root of a crate takes from its modules, and the module of each.
fn exports(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for item in code(root).split(';') {
        let Some((_, path)) = item.split_once("use ") else { continue };
        let module = first_name(path);
        if !modules.contains(&module) {
            continue;
        }
        let names = path.split(|it: char| !(it.is_alphanumeric() || it == '_'));
        exports.extend(names.skip(1).map(|name| (name.to_owned(), module.clone())));
    }
    exports
}

/// The graph of a crate. Files of tests are left out: they may look at everything.
fn graph(files: &[(String, String)]) -> Graph {
    let module = |path: &str| path.split(['/', '.']).next().unwrap_or("").to_owned();
    let is_root = |path: &str| matches!(path, "lib.rs" | "main.rs");
    let is_test = |path: &str| path.ends_with("tests.rs") || path.contains("tests/");
    let modules: BTreeSet<String> =
        files.iter().filter(|(path, _)| !is_root(path)).map(|(path, _)| module(path)).collect();
    let root = files.iter().find(|(path, _)| is_root(path));
    let exports = root.map_or_else(BTreeMap::new, |(_, text)| exports(text, &modules));
    let mut graph: Graph = modules.iter().map(|it| (it.clone(), BTreeSet::new())).collect();
    for (path, text) in files.iter().filter(|(path, _)| !is_root(path) && !is_test(path)) {
        let own = module(path);
        for name in names_after_crate(&code(text)) {
            let used = if modules.contains(&name) { Some(&name) } else { exports.get(&name) };
            if let Some(used) = used.filter(|it| **it != own) {
                graph.get_mut(&own).expect("a module of the crate").insert(used.clone());
            }
        }
    }
    graph
}

/// Modules by layers, the top first; modules in circles are left over.
fn layers(mut graph: Graph) -> (Vec<Vec<String>>, Graph) {
    let mut layers: Vec<Vec<String>> = Vec::new();
    loop {
        let leaves: Vec<String> = graph
            .iter()
            .filter(|(_, used)| used.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        if leaves.is_empty() {
            layers.reverse();
            return (layers, graph);
        }
        graph.retain(|name, _| !leaves.contains(name));
        for used in graph.values_mut() {
            used.retain(|name| !leaves.contains(name));
        }
        layers.push(leaves);
    }
}

/// Of modules that are left over: those that no circle needs, by layers, and those in circles.
fn above(mut graph: Graph) -> (Vec<Vec<String>>, Graph) {
    let mut above = Vec::new();
    loop {
        let is_used = |name: &String| graph.values().any(|used| used.contains(name));
        let tops: Vec<String> = graph.keys().filter(|name| !is_used(name)).cloned().collect();
        if tops.is_empty() {
            return (above, graph);
        }
        graph.retain(|name, _| !tops.contains(name));
        above.push(tops);
    }
}

/// The graph of each crate.
fn crates() -> BTreeMap<String, Graph> {
    let mut files: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for file in ending_in(&[".rs"]) {
        let path = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        if let Some((name, path)) = path {
            files.entry(name.to_owned()).or_default().push((path.to_owned(), file.text));
        }
    }
    files.into_iter().map(|(name, files)| (name, graph(&files))).collect()
}

#[test]
fn no_modules_of_a_crate_use_each_other_in_a_circle() {
    let mut broken = Vec::new();
    for (name, graph) in crates() {
        let (_, rest) = layers(graph);
        let is_known = CIRCULAR.iter().any(|(known, _)| *known == name);
        if rest.is_empty() == is_known {
            broken.push(if is_known {
                format!("{name}: no circle is left, so it is no exception")
            } else {
                format!("{name}: {rest:?}")
            });
        }
    }
    assert_none("modules use each other in a circle", &broken);
}

#[test]
fn the_picture_of_modules_is_made_from_the_sources() {
    let mut picture = String::new();
    for (name, graph) in crates() {
        let (layers, rest) = layers(graph);
        if layers.iter().map(Vec::len).sum::<usize>() < 2 {
            continue;
        }
        writeln!(picture, "\n**{name}**\n\n```").expect("a string grows");
        let (above, circle) = above(rest);
        for layer in above {
            writeln!(picture, "{}", layer.join(" ")).expect("a string grows");
        }
        if !circle.is_empty() {
            let names: Vec<String> = circle.into_keys().collect();
            writeln!(picture, "in a circle: {}", names.join(" ")).expect("a string grows");
        }
        for layer in layers {
            writeln!(picture, "{}", layer.join(" ")).expect("a string grows");
        }
        picture += "```\n";
    }
    let page = content(PAGE);
    let (before, rest) = page.split_once(BEGIN).expect("where the picture begins");
    let (shown, after) = rest.split_once(END).expect("where the picture ends");
    if shown != picture && std::env::var_os("ISOLDE_WRITE").is_some() {
        let page = format!("{before}{BEGIN}{picture}{END}{after}");
        std::fs::write(at(PAGE), page).expect("a writable tree");
        return;
    }
    assert_eq!(shown, picture, "ISOLDE_WRITE=1 cargo test -p isolde-tidy writes it anew");
}

#[test]
fn a_circle_through_a_name_of_the_root_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let root = file("lib.rs", "pub use b::{Thing, Other};");
    let b = file("b/mod.rs", "use crate::{c::X, d};\n#[cfg(test)]\nmod tests { use crate::a; }");
    let c = file("b/deep.rs", "// use crate::a;\nfn f() -> crate::c::X { todo() }");
    let a = file("a.rs", "use crate::Thing;");
    let leaves = [file("c.rs", ""), file("d.rs", "")];
    let mut files = vec![root, a, b, c];
    files.extend(leaves.clone());
    let (found, rest) = layers(graph(&files));
    assert_eq!(
        (found, rest.len()),
        (vec![vec!["a".into()], vec!["b".into()], vec!["c".into(), "d".into()]], 0)
    );
    files.push(file("d/more.rs", "use crate::a::Way;"));
    let (_, rest) = layers(graph(&files));
    assert_eq!(rest.into_keys().collect::<Vec<_>>(), ["a", "b", "d"]);
}
