//! Histories in parts: the verdicts are those of the whole, and what is not as it was written is
//! refused.

use isolde::Level;
use isolde_cluster::{Hosts, MANIFEST, Manifest, Options, Pieces, Ruling, split, verify};
use isolde_harness::{Isolation, Parameters, Times, generate, preset};
use isolde_history::History;
use std::path::{Path, PathBuf};

const LEVELS: [Level; 2] = [Level::StrongSnapshotIsolation, Level::StrictSerializable];

/// Small windows, so that these histories have many.
const WINDOW: u64 = 64;

/// A folder that is gone with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("isolde-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn part(&self, number: usize) -> PathBuf {
        self.0.join(format!("part-{number:05}.isolde"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn simulated(isolation: Isolation) -> History {
    let parameters = preset("GeneralRW").unwrap().parameters;
    let times = Times::Transactions;
    generate(&Parameters { transactions: 2_000, isolation, times, ..parameters }).unwrap()
}

fn decide(pieces: &Pieces, threads: usize) -> Result<Vec<(Level, Ruling)>, String> {
    let options = Options {
        levels: LEVELS.to_vec(),
        clock_drift: 0,
        subject: String::new(),
        window: WINDOW,
        is_full: || false,
    };
    verify(pieces, &options, &Hosts::Threads(threads)).map(|it| it.rulings)
}

fn of_folder(folder: &Path) -> Result<Vec<(Level, Ruling)>, String> {
    let manifest = Manifest::read(folder).map_err(|error| error.to_string())?;
    decide(&manifest.pieces(folder, None), 2)
}

#[test]
fn parts_have_the_verdicts_of_the_whole() {
    for isolation in [Isolation::Serializable, Isolation::SnapshotIsolation, Isolation::ReadAtomic]
    {
        let expected = decide(&Pieces::of(simulated(isolation)), 1).unwrap();
        assert!(expected.iter().all(|it| !matches!(it.1, Ruling::Unknown(_))), "{expected:?}");
        for count in [1, 2, 7, 50] {
            let folder = Folder::new("parts-whole");
            assert_eq!(split(simulated(isolation), count, &folder.0), Ok(Vec::new()));
            let manifest = Manifest::read(&folder.0).unwrap();
            assert_eq!(manifest.count(), count);
            let pieces = manifest.pieces(&folder.0, None);
            for threads in 1..=3 {
                assert_eq!(decide(&pieces, threads).unwrap(), expected, "{isolation:?} {count}");
            }
        }
    }
}

/// What is said of a folder of three parts to which this was done.
fn after(name: &str, damage: impl FnOnce(&Folder)) -> String {
    let folder = Folder::new(name);
    split(simulated(Isolation::Serializable), 3, &folder.0).unwrap();
    assert!(of_folder(&folder.0).is_ok());
    damage(&folder);
    of_folder(&folder.0).unwrap_err()
}

#[test]
fn a_part_that_was_cut_is_refused() {
    let error = after("parts-cut", |folder| {
        let bytes = std::fs::read(folder.part(1)).unwrap();
        std::fs::write(folder.part(1), &bytes[..bytes.len() - 1]).unwrap();
    });
    assert!(error.contains("part-00001.isolde: expected ") && error.contains(" bytes, found "));
}

#[test]
fn a_part_with_another_byte_is_refused() {
    let error = after("parts-byte", |folder| {
        let mut bytes = std::fs::read(folder.part(1)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(folder.part(1), &bytes).unwrap();
    });
    assert!(error.contains("expected the part that the manifest was written for"), "{error}");
}

#[test]
fn a_part_that_is_missing_is_refused() {
    let error = after("parts-missing", |folder| std::fs::remove_file(folder.part(2)).unwrap());
    assert!(error.contains("part-00002.isolde: No such file"), "{error}");
}

#[test]
fn parts_that_overlap_are_refused() {
    let error = after("parts-overlap", |folder| {
        // The manifest says of the second part what it says of the first.
        let path = folder.0.join(MANIFEST);
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().nth(2).unwrap().replacen("part 0", "part 1", 1);
        let second = text.lines().nth(3).unwrap();
        std::fs::write(&path, text.replace(second, &first)).unwrap();
        std::fs::copy(folder.part(0), folder.part(1)).unwrap();
    });
    assert!(error.contains("line 4: expected a part that begins after"), "{error}");
}

#[test]
fn a_manifest_that_was_cut_is_refused() {
    let error = after("parts-manifest", |folder| {
        let path = folder.0.join(MANIFEST);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().take(4).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
    });
    assert!(error.contains("line 5: expected `part`"), "{error}");
}

#[test]
fn a_history_without_times_is_not_cut() {
    let parameters = preset("GeneralRW").unwrap().parameters;
    let history = generate(&Parameters { transactions: 50, times: Times::None, ..parameters });
    let folder = Folder::new("parts-untimed");
    let error = split(history.unwrap(), 2, &folder.0).unwrap_err().to_string();
    assert!(error.ends_with("found one without times"), "{error}");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn windows_that_do_not_fit_in_memory_leave_levels_unknown_and_name_the_longest_transaction() {
    let pieces = Pieces::of(simulated(Isolation::Serializable));
    let options = Options {
        levels: LEVELS.to_vec(),
        clock_drift: 0,
        subject: String::new(),
        window: WINDOW,
        is_full: || true,
    };
    for (level, ruling) in verify(&pieces, &options, &Hosts::Threads(2)).unwrap().rulings {
        let Ruling::Unknown(reason) = ruling else { panic!("{level}: {ruling:?}") };
        assert!(reason.starts_with("windows of time did not fit in memory"), "{reason}");
        assert!(reason.contains("the longest transaction, number "), "{reason}");
    }
}
