//! The table of implications holds for the definitions: a history that satisfies
//! a level satisfies every weaker one.

use crate::support::{Size, every_history, history, random_history};
use isolde_checker::reference::{Reference, decide_all};
use isolde_checker::{IMPLICATIONS, Level};

/// What was seen of each level, so that a test that never sees a violation fails.
#[derive(Default)]
struct Seen {
    histories: usize,
    satisfied: [usize; Level::ALL.len()],
    violated: [usize; Level::ALL.len()],
}

impl Seen {
    fn check(&mut self, text: &str) {
        let verdicts = decide_all(&history(text));
        self.histories += 1;
        for (level, verdict) in &verdicts {
            match verdict {
                Reference::Satisfied => self.satisfied[*level as usize] += 1,
                Reference::Violated => self.violated[*level as usize] += 1,
                Reference::Unknown(_) => {}
            }
        }
        for row in IMPLICATIONS {
            let refuted = verdicts[row.stronger as usize].1 == Reference::Satisfied
                && verdicts[row.weaker as usize].1 == Reference::Violated;
            let (stronger, weaker) = (row.stronger, row.weaker);
            assert!(
                !refuted,
                "{stronger} holds and {weaker} does not, yet \"{}\":\n{text}",
                row.reason
            );
        }
    }

    /// Levels of which not both verdicts were seen.
    fn one_sided(&self) -> Vec<Level> {
        let both = |level: &Level| {
            self.satisfied[*level as usize] > 0 && self.violated[*level as usize] > 0
        };
        Level::ALL.into_iter().filter(|level| !both(level)).collect()
    }
}

#[test]
fn implications_hold_for_every_small_history() {
    let size = Size { txns_max: 3, ops_max: 2, keys_max: 2 };
    let mut seen = Seen::default();
    every_history(size, &mut |text| seen.check(text));
    // Registers alone never violate read uncommitted, and there are no times.
    assert_eq!(
        seen.one_sided(),
        [
            Level::ReadUncommitted,
            Level::GeneralizedSnapshotIsolation,
            Level::PrefixConsistentSnapshotIsolation,
            Level::StrongSnapshotIsolation,
            Level::StrictSerializable,
            Level::Linearizable,
        ]
    );
    assert_eq!(seen.histories, 80_165);
}

#[test]
fn implications_hold_for_random_histories() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    let mut seen = Seen::default();
    for seed in 0..5_000 {
        seen.check(&random_history(seed, size));
    }
    assert_eq!(seen.one_sided(), []);
}
