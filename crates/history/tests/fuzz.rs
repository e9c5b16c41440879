//! Damaged files in every format: an error with a place or a history, quickly and in little memory.
//!
//! A short and repeatable part of what the targets in `fuzz/` do for hours, from the
//! same seeds, and every input that they found in `corpus/fuzz`.

mod common;
mod traces;

use common::{Files, write};
use isolde_history::format::{self, FORMATS, Format, ReadOptions};
use isolde_history::{History, Index, Place, ReadError};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Inputs made from the seeds of a format: less than a second of work.
const INPUTS_PER_FORMAT: u32 = 6000;
/// Inputs grow up to this.
const INPUT_BYTES_MAX: usize = 1 << 16;
/// A hundred times what the slowest input takes; machines that run tests are busy.
const INPUT_TIME_MAX: Duration = Duration::from_secs(2);
/// The window of a source, a dense table of keys, and the history itself.
const INPUT_MEMORY_BYTES_MAX: usize = 48 << 20;
/// Long enough that work quadratic in the length takes much longer than allowed.
const LONG_BYTES: usize = 1 << 19;
/// What stands between the files of a directory in a seed.
const SEPARATOR: &[u8] = b"--8<--";

#[test]
fn every_format_has_a_target_and_seeds_that_can_be_read() {
    for format in FORMATS {
        let target = format!("{ROOT}/fuzz/targets/{}.rs", format.name.replace('-', "_"));
        assert!(Path::new(&target).is_file(), "{target}");
        for (file, seed) in seeds(format) {
            let files = directory(&seed).unwrap_or(Files::One(seed));
            if let Err(error) = read(format, &files) {
                panic!("{}: {error}", file.display());
            }
        }
    }
}

#[test]
fn inputs_that_were_trouble_once_are_none_now() {
    let files_found = files_in(&format!("{ROOT}/corpus/fuzz"));
    let troubles: Vec<&PathBuf> =
        files_found.iter().filter(|file| file.extension().is_none_or(|ext| ext != "md")).collect();
    assert!(!troubles.is_empty());
    for file in troubles {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        if name.starts_with("trace-") {
            traces::attempt(&std::fs::read(file).expect("a file"), name);
            continue;
        }
        let named = FORMATS.iter().filter(|format| name.starts_with(format.name));
        let format = named.max_by_key(|format| format.name.len()).expect("called after a format");
        let input = std::fs::read(file).expect("a file");
        attempt(format, &input, name);
        if let Ok(history) = read(format, &Files::One(input)) {
            for other in FORMATS {
                round_trip(other, &history);
            }
        }
    }
}

#[test]
fn damaged_seeds_are_read_or_refused_quickly_and_in_little_memory() {
    for format in FORMATS {
        let seeds: Vec<Vec<u8>> = seeds(format).into_iter().map(|seed| seed.1).collect();
        let mut damage = Damage::new();
        for round in 0..INPUTS_PER_FORMAT {
            let input = damage.input(&seeds);
            attempt(format, &input, &format!("round {round}"));
        }
    }
}

/// What takes time quadratic in the length of a line, a form or a list shows here.
#[test]
fn long_inputs_are_read_or_refused_quickly() {
    const BYTES: &[u8] = b" \n\t,;#:\"\\-=[({0a\0\xff";
    for format in FORMATS {
        let is_quick = |long: &[u8], what: &str| {
            let _ = read_within_limits(format, &Files::one(long), long, what);
        };
        let seeds = seeds(format);
        let longest = seeds.iter().map(|seed| &seed.1).max_by_key(|seed| seed.len());
        let seed = longest.expect("a seed");
        for &byte in BYTES {
            let long = vec![byte; LONG_BYTES];
            is_quick(&long, "one byte again and again");
            is_quick(&[&seed[..seed.len() / 2], &long].concat(), "the same behind half a seed");
        }
        for (_, seed) in &seeds {
            is_quick(&seed.repeat(LONG_BYTES / seed.len()), "a seed again and again");
            let line = seed.split_inclusive(|&byte| byte == b'\n').max_by_key(|line| line.len());
            let line = line.expect("a seed is not empty");
            is_quick(&line.repeat(LONG_BYTES / line.len()), "a line again and again");
        }
    }
}

/// Reads an input as one file and as a directory, and goes on with the history.
fn attempt(format: &Format, input: &[u8], what: &str) {
    for files in [Some(Files::one(input)), directory(input)].into_iter().flatten() {
        let history = read_within_limits(format, &files, input, what);
        let used = catch_unwind(AssertUnwindSafe(|| history.map(|it| use_history(format, &it))));
        if used.is_err() {
            fail(format, input, what, "a panic after reading");
        }
    }
}

/// The history, if it is one. Time is taken again before it is called too long:
/// another process may have had the core.
fn read_within_limits(format: &Format, files: &Files, input: &[u8], what: &str) -> Option<History> {
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let memory = Memory::measure();
        let start = Instant::now();
        let read = catch_unwind(AssertUnwindSafe(|| read(format, files)));
        shortest = shortest.min(start.elapsed());
        let bytes = memory.peak();
        let Ok(read) = read else { fail(format, input, what, "a panic") };
        if bytes > INPUT_MEMORY_BYTES_MAX {
            fail(format, input, what, &format!("{} KiB of memory", bytes >> 10));
        }
        if shortest <= INPUT_TIME_MAX {
            return read.inspect_err(check_error).ok();
        }
    }
    fail(format, input, what, &format!("{shortest:?}"))
}

fn fail(format: &Format, input: &[u8], what: &str, problem: &str) -> ! {
    let start = &input[..input.len().min(500)];
    panic!("{}: {what}: {problem}: {}", format.name, start.escape_ascii())
}

fn read(format: &Format, files: &Files) -> Result<History, ReadError> {
    let options =
        ReadOptions { memory_max: Some(INPUT_MEMORY_BYTES_MAX), ..ReadOptions::default() };
    format::read(format, files.input(), options)
}

fn check_error(error: &ReadError) {
    let about_all = [" MiB", "*.log", "found a directory"];
    let is_about_all = about_all.iter().any(|part| error.message.contains(part));
    assert!(error.place != Place::Whole || is_about_all, "no place: {error}");
    let text = error.to_string();
    assert!(text.len() < 2000 && !text.contains(char::is_control), "unreadable: {error:?}");
}

/// What was read can be indexed and written, and what is written can be read.
fn use_history(format: &Format, history: &History) {
    let _ = Index::new(history);
    let text = format::to_text(history);
    let again = format::parse_text(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(format::to_text(&again), text);
    round_trip(format, history);
}

fn round_trip(format: &Format, history: &History) {
    if format.write.is_some()
        && let Ok((written, _)) = write(format.name, history)
        && let Err(error) = format::read(format, written.input(), ReadOptions::default())
    {
        panic!("{} wrote what it cannot read: {error}", format.name);
    }
}

/// The directory that an input with separators stands for.
fn directory(input: &[u8]) -> Option<Files> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(SEPARATOR.len()).position(|part| part == SEPARATOR) {
        parts.push(&rest[..at]);
        rest = &rest[at + SEPARATOR.len()..];
    }
    parts.push(rest);
    let named = parts.iter().enumerate();
    let files = named.map(|(index, part)| (format!("T{index:04}.log"), part.to_vec()));
    (parts.len() > 1).then(|| Files::Many(files.collect()))
}

fn seeds(format: &Format) -> Vec<(PathBuf, Vec<u8>)> {
    seeds_of(format.name)
}

fn seeds_of(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = format!("{ROOT}/fuzz/seeds/{target}");
    let seeds: Vec<(PathBuf, Vec<u8>)> = files_in(&folder)
        .into_iter()
        .map(|file| {
            let bytes = std::fs::read(&file).expect("a seed");
            (file, bytes)
        })
        .collect();
    assert!(!seeds.is_empty(), "{folder} has seeds");
    seeds
}

/// In order of their names, so that every run makes the same inputs.
fn files_in(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files
}

/// A fixed sequence of damages.
struct Damage(Xoshiro256PlusPlus);

impl Damage {
    fn new() -> Damage {
        Damage(Xoshiro256PlusPlus::seed_from_u64(1))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.random_range(0..limit.max(1))
    }

    /// A seed with one to four damages.
    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            let other = &seeds[self.below(seeds.len())];
            self.damage(&mut input, other);
            input.truncate(INPUT_BYTES_MAX);
        }
        input
    }

    fn damage(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        const PIECES: &[&[u8]] = &[
            b"\0",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"-1",
            b"0",
            b"4294967295",
            b"9223372036854775808",
            b"18446744073709551616",
            b"1e999",
            b"nil",
            b"null",
            b"\"",
            b"\\u{110000}",
            b"[[[[[[[[",
            b"}])",
            b"{",
            b"#_",
            b"\n",
            b"\r\n",
            b"\xef\xbb\xbf",
            b"\xc3\x28",
            b"..",
            b"@",
            b"--8<--",
        ];
        let at = self.below(input.len() + 1);
        let end = (at + self.below(40)).min(input.len());
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let again = input[at..end].repeat(1 + self.below(3));
                input.splice(at..at, again);
            }
            4 => {
                let again = input[at..end].repeat(1 + self.below(400));
                input.splice(at..at, again);
            }
            5 => {
                let from = self.below(other.len());
                input.splice(at..end, other[from..].iter().copied());
            }
            6 => input.truncate(at),
            _ => {
                let piece = PIECES[self.below(PIECES.len())];
                input.splice(at..end.min(at + self.below(3)), piece.iter().copied());
            }
        }
    }
}

/// Counts what this process has allocated.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static MEASURING: Mutex<()> = Mutex::new(());

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allocated = ALLOCATED.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(allocated, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

/// One measurement; there is one peak, so tests take turns.
struct Memory {
    before: usize,
    _turn: MutexGuard<'static, ()>,
}

impl Memory {
    fn measure() -> Self {
        let turn = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = ALLOCATED.load(Relaxed);
        PEAK.store(before, Relaxed);
        Memory { before, _turn: turn }
    }

    fn peak(self) -> usize {
        PEAK.load(Relaxed).saturating_sub(self.before)
    }
}
