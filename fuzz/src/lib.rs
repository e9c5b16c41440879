//! What every fuzz target does with its bytes: read them, and go on with what was read.
//!
//! Any bytes are an error with a place or a history. A history can be indexed, checked
//! and written, and what is written can be read again. Whatever panics, hangs or takes
//! more memory than allowed on the way is a finding.
//!
//! What other targets do stands in the other files. Those without a limit of their own are run by
//! `crates/cli/tests/fuzz`, too.

#[path = "../../crates/cli/src/archive.rs"]
#[allow(dead_code, reason = "of the command line too")]
mod archive;
mod bundle;
mod certificate;
mod elle;
mod explanation;
mod folder;
#[path = "../../crates/cli/src/http.rs"]
#[allow(dead_code, reason = "of the command line too")]
mod http;
mod predicate;
mod report;
mod request;
mod seal;
mod structured;
mod trace;

pub use bundle::opened;
pub use certificate::verify;
pub use elle::asked;
pub use explanation::explained;
use folder::Parts;
use isolde::{Limits, check, decided_levels};
use isolde_history::format::{self, FORMATS, Format, Input, ReadOptions, Writer};
use isolde_history::{History, Index, Place, ReadError, Source};
pub use predicate::evaluated;
pub use report::reported;
pub use request::requested;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
pub use trace::watch;

/// Far more than inputs of fuzzers need, far less than what kills the process.
const MEMORY_BYTES_MAX: usize = 64 << 20;
/// How often a check may ask whether to stop.
const STOP_AFTER: u32 = 2_000;

/// Reads bytes in the format of this name, as one file and as a directory.
pub fn read(name: &str, bytes: &[u8]) {
    use_one_thread();
    let format = format::by_name(name).expect("a target is called like its format");
    attempt(format, || Input::File(Source::from_bytes("file", bytes)), bytes.len());
    if let Some(parts) = Parts::of(name, bytes) {
        attempt(format, || parts.input(), bytes.len());
    }
    if let Some(sealed) = seal::sealed(name, bytes) {
        attempt(format, || Input::File(Source::from_bytes("file", &sealed)), bytes.len());
    }
}

/// Reads bytes in the format that they look like.
pub fn detect(bytes: &[u8]) {
    use_one_thread();
    let input = Input::File(Source::from_bytes("file", bytes));
    if let Ok((history, format)) = format::read_detected(input, OPTIONS) {
        use_history(format, &history, bytes.len());
    }
}

const OPTIONS: ReadOptions = ReadOptions {
    memory_max: Some(MEMORY_BYTES_MAX),
    is_memory_full: None,
    initial: None,
    complete_log: false,
};

/// The fuzzer counts what code an input reaches; other threads would blur it.
fn use_one_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        pool.build_global().expect("the first pool");
    });
}

fn attempt<'a>(format: &Format, input: impl Fn() -> Input<'a>, choice: usize) {
    match format::read(format, input(), OPTIONS) {
        Ok(history) => use_history(format, &history, choice),
        Err(error) => check_error(&error),
    }
}

fn check_error(error: &ReadError) {
    let too_large = error.message.contains(" MiB");
    let no_files = error.message.contains(".log");
    assert!(error.place != Place::Whole || too_large || no_files, "no place: {error}");
    let text = error.to_string();
    assert!(text.len() < 2000 && !text.contains(char::is_control), "unreadable: {error:?}");
}

fn use_history(format: &Format, history: &History, choice: usize) {
    let index = Index::new(history);
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= STOP_AFTER;
    let limits = Limits { stop: &stop, working_bytes_max: Some(MEMORY_BYTES_MAX), ..Limits::NONE };
    check(history, &index, &decided_levels(), &limits);

    native_round_trip(history);
    round_trip(format, history);
    // One more writer, told by the input: all of them would take too long.
    round_trip(&FORMATS[choice % FORMATS.len()], history);
}

/// What the native formats write says the same when read.
fn native_round_trip(history: &History) {
    let text = format::to_text(history);
    let again = format::parse_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(format::to_text(&again), text);
    let raw = format::by_name("binary-raw").expect("a native format");
    let again = round_trip(raw, history).expect("the native format expresses everything");
    assert_eq!(format::to_text(&again), text);
}

/// What a format writes it also reads.
fn round_trip(format: &Format, history: &History) -> Option<History> {
    let parts = match format.write? {
        Writer::File(write) => {
            let mut bytes = Vec::new();
            write(history, &mut bytes).ok()?;
            Parts::One(bytes)
        }
        Writer::Directory(write) => {
            let mut files = Vec::new();
            write(history, &mut folder::Memory(&mut files)).ok()?;
            Parts::Many(files)
        }
    };
    match format::read(format, parts.input(), ReadOptions::default()) {
        Ok(history) => Some(history),
        Err(error) => panic!("{} wrote what it cannot read: {error}", format.name),
    }
}
