//! Where transactions stand in a timeline without times.
//!
//! Each stands to the right of the one before it in its session and of those it read from. Where
//! that is impossible, because transactions read from each other in a circle, session order wins.

use isolde_history::{History, Index, Origin, TxnId};
use std::collections::VecDeque;

/// The column of each of these transactions, which are in ascending order.
pub(super) fn layers(history: &History, index: &Index, shown: &[TxnId]) -> Vec<u32> {
    let place_of = |txn: TxnId| shown.binary_search(&txn).ok();
    let mut session_before: Vec<Option<usize>> = vec![None; shown.len()];
    let mut followers: Vec<Vec<u32>> = vec![Vec::new(); shown.len()];
    let mut missing: Vec<u32> = vec![0; shown.len()];
    for (place, &txn) in shown.iter().enumerate() {
        let same = |&before: &usize| history.session_of(shown[before]) == history.session_of(txn);
        session_before[place] = place.checked_sub(1).filter(same);
        let read_from = index.reads_of(txn).filter_map(|read| match read.origin {
            Origin::Txn(writer) => place_of(writer),
            _ => None,
        });
        let mut before: Vec<usize> = read_from.chain(session_before[place]).collect();
        before.sort_unstable();
        before.dedup();
        missing[place] = before.len() as u32;
        for earlier in before {
            followers[earlier].push(place as u32);
        }
    }
    let mut layer: Vec<u32> = vec![0; shown.len()];
    let mut is_placed = vec![false; shown.len()];
    let mut ready: VecDeque<usize> = (0..shown.len()).filter(|&it| missing[it] == 0).collect();
    let mut stuck = 0;
    loop {
        let Some(place) = ready.pop_front() else {
            // A circle: go on with the first that is left, whose session is placed up to it.
            while stuck < shown.len() && is_placed[stuck] {
                stuck += 1;
            }
            if stuck == shown.len() {
                return layer;
            }
            missing[stuck] = 0;
            ready.push_back(stuck);
            continue;
        };
        if std::mem::replace(&mut is_placed[place], true) {
            continue;
        }
        for &follower in &followers[place] {
            let follower = follower as usize;
            if is_placed[follower] {
                continue;
            }
            layer[follower] = layer[follower].max(layer[place] + 1);
            missing[follower] = missing[follower].saturating_sub(1);
            if missing[follower] == 0 {
                ready.push_back(follower);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    fn of(text: &str) -> Vec<u32> {
        let history = parse_text(text).expect("a well-formed history");
        let shown: Vec<TxnId> = history.txns().collect();
        layers(&history, &Index::new(&history), &shown)
    }

    #[test]
    fn readers_stand_to_the_right_of_writers_and_of_their_sessions_past() {
        assert_eq!(of("A: w(x,1)\nA: w(y,1)\nB: r(y,1)\nC: r(x,1)"), [0, 1, 2, 1]);
    }

    #[test]
    fn a_circle_of_reads_leaves_sessions_in_order() {
        assert_eq!(of("A: r(y,1)\nA: w(x,1)\nB: r(x,1) w(y,1)"), [0, 1, 2]);
    }
}
