//! What is written in another format accuses no database that was not accused before:
//! a writer refuses, or every level that was satisfied still is.

use isolde_checker::{Check, Level, Limits, Verdict, applicable_levels};
use isolde_history::format::{self, FORMATS, Folder, Format, Input, ReadOptions, Writer};
use isolde_history::{History, Index, Source};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[test]
fn no_history_of_the_corpus_is_accused_by_writing_it() {
    let mut files = Vec::new();
    collect(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus")), &mut files);
    files.sort();
    let mut accused = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a text file");
        accuse(&file.display().to_string(), &text, &mut accused);
    }
    assert!(accused.is_empty(), "{}", accused.join("\n"));
}

/// Values repeat, outcomes are open, and times are there or not.
#[test]
fn no_small_history_is_accused_by_writing_it() {
    const SEEDS: u64 = 400;
    let mut accused = Vec::new();
    for seed in 0..SEEDS {
        let text = small_history(seed);
        accuse(&format!("seed {seed}:\n{text}"), &text, &mut accused);
    }
    assert!(accused.is_empty(), "{}", accused.join("\n"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of the corpus");
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        if path.is_dir() && !path.ends_with("fuzz") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
}

/// Adds a line for every format and level that accuses the history.
fn accuse(name: &str, text: &str, accused: &mut Vec<String>) {
    let history = format::parse_text(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let levels = applicable_levels(&history);
    let before = verdicts(&history, &levels);
    for format in FORMATS {
        let Some(files) = written(format, &history) else { continue };
        let again = format::read(format, input(&files), ReadOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = format::read_detected(input(&files), ReadOptions::default());
        if found.is_err() && again.txn_count() > 0 {
            accused.push(format!("{name}: {} is not recognised", format.name));
        }
        let applicable = applicable_levels(&again);
        for (&level, verdict) in &before {
            if !matches!(verdict, Verdict::Satisfied(_)) || !applicable.contains(&level) {
                continue;
            }
            if let Verdict::Violated(_) = &verdicts(&again, &[level])[&level] {
                accused.push(format!("{name}: {} violates {level}", format.name));
            }
        }
    }
}

fn verdicts(history: &History, levels: &[Level]) -> BTreeMap<Level, Verdict> {
    let index = Index::new(history);
    let mut check = Check::new(history, &index, &Limits::NONE);
    levels.iter().map(|&level| (level, check.decide(level))).collect()
}

/// Files by name; that of a format of one file has none.
type Files = BTreeMap<String, Vec<u8>>;

struct Memory<'m>(&'m mut Files);

impl Folder for Memory<'_> {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(self.0.entry(name.to_owned()).or_default()))
    }
}

/// `None` if the format is not written or refuses this history.
fn written(format: &Format, history: &History) -> Option<Files> {
    let mut files = Files::new();
    let result = match format.write? {
        Writer::File(write) => write(history, files.entry(String::new()).or_default()),
        Writer::Directory(write) => write(history, &mut Memory(&mut files)),
    };
    result.ok().map(|_| files)
}

fn input(files: &Files) -> Input<'_> {
    match files.get("") {
        Some(bytes) => Input::File(Source::from_bytes("file", bytes)),
        None => Input::Directory {
            name: "folder".into(),
            files: files
                .iter()
                .map(|(name, bytes)| Source::from_bytes(format!("folder/{name}"), bytes))
                .collect(),
        },
    }
}

fn small_history(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % limit
    };
    let mut text = String::new();
    let starts_with_zero = below(2) == 0;
    if starts_with_zero {
        text += "init *=0\n";
    }
    let timed = below(2) == 0;
    let mut time = 0;
    for _ in 0..2 + below(4) {
        write!(text, "{}", ["A", "B", "C"][below(3) as usize]).expect("memory");
        if timed {
            // Milliseconds, so that every format can tell them apart.
            let begin = time + below(3);
            time = begin + 1 + below(3);
            write!(text, " @{begin}000000..{time}000000 ").expect("memory");
        }
        text += ":";
        for _ in 0..=below(3) {
            let kind = ["r", "w"][below(2) as usize];
            let key = ["x", "y"][below(2) as usize];
            let value = match below(4) {
                0 if !starts_with_zero => "nil".to_owned(),
                value => value.to_string(),
            };
            write!(text, " {kind}({key},{value})").expect("memory");
        }
        text += ["\n", "\n", "\n", " aborted\n", " unknown\n"][below(5) as usize];
    }
    text
}
