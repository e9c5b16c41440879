//! Mini-transactions: one or two reads and at most two writes, and each write comes
//! after a read of its key [Gu et al., ICDE 2025, Definition 8].
//!
//! All shapes of that kind over two keys are drawn equally often. Among them are those
//! of the 14 anomalies that the authors show in their Figure 5.

use crate::keys::KeyChoice;
use crate::plan::{Action, Intent};
use crate::random::Random;
use std::sync::LazyLock;

const READS_MAX: usize = 2;
const WRITES_MAX: usize = 2;

/// Which of two keys, and what is done with it.
type Shape = Vec<(Action, u32)>;

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let mut shapes: Vec<Shape> = vec![vec![(Action::Read, 0)]];
    // Every shape is grown by one operation; there are at most four.
    let mut grown = 0;
    while grown < shapes.len() {
        let shape = shapes[grown].clone();
        grown += 1;
        for next in [(Action::Read, 0), (Action::Read, 1), (Action::Write, 0), (Action::Write, 1)] {
            let count = |action| shape.iter().filter(|step| step.0 == action).count();
            let fits = match next.0 {
                Action::Read => count(Action::Read) < READS_MAX,
                Action::Write => {
                    count(Action::Write) < WRITES_MAX && shape.contains(&(Action::Read, next.1))
                }
            };
            if fits {
                let mut longer = shape.clone();
                longer.push(next);
                shapes.push(longer);
            }
        }
    }
    shapes
});

/// Plans one.
pub(crate) fn plan(choice: &KeyChoice, random: &mut Random, plan: &mut Vec<Intent>) {
    let shape = &SHAPES[random.below(SHAPES.len() as u32) as usize];
    let first = choice.draw(random);
    let keys = [first, choice.draw_other(random, |place| place == first)];
    plan.extend(shape.iter().map(|&(action, key)| Intent { action, key: keys[key as usize] }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(shape: &Shape) -> String {
        let step = |&(action, key): &(Action, u32)| {
            let letter = if action == Action::Read { 'r' } else { 'w' };
            format!("{letter}{}", if key == 0 { 'x' } else { 'y' })
        };
        shape.iter().map(step).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shapes_are_those_of_the_definition() {
        let shapes: Vec<String> = SHAPES.iter().map(shown).collect();
        // Among them a lost update (rx wx), a write skew (rx ry wx), a long fork (rx ry), a
        // fractured read (rx wx ry wy), intermediate reads (rx wx wx) and reads of one's own
        // writes (rx wx wx rx).
        assert_eq!(
            shapes.join(", "),
            "rx, rx rx, rx ry, rx wx, rx rx wx, rx ry wx, rx ry wy, rx wx rx, rx wx ry, rx wx wx, \
             rx rx wx wx, rx ry wx wx, rx ry wx wy, rx ry wy wx, rx ry wy wy, rx wx rx wx, \
             rx wx ry wx, rx wx ry wy, rx wx wx rx, rx wx wx ry"
        );
    }
}
