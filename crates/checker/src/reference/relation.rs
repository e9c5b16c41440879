//! Relations between a few things, in the notation the definitions use.

/// The most things a relation can be about.
pub(super) const THINGS_MAX: usize = 16;

/// A set of pairs of numbers below [`THINGS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Relation {
    /// Bit `b` of row `a` stands for the pair `(a, b)`.
    rows: [u16; THINGS_MAX],
}

impl Relation {
    /// The total order in which each of `sequence` precedes those after it.
    pub(super) fn total(sequence: &[usize]) -> Relation {
        let mut order = Relation::default();
        for (place, &first) in sequence.iter().enumerate() {
            for &second in &sequence[place + 1..] {
                order.insert(first, second);
            }
        }
        order
    }

    pub(super) fn insert(&mut self, first: usize, second: usize) {
        self.rows[first] |= 1 << second;
    }

    pub(super) fn contains(self, first: usize, second: usize) -> bool {
        self.rows[first] & (1 << second) != 0
    }

    /// `self ∪ other`
    pub(super) fn or(self, other: Relation) -> Relation {
        let mut union = self;
        for (row, more) in union.rows.iter_mut().zip(other.rows) {
            *row |= more;
        }
        union
    }

    /// `self ; other`
    pub(super) fn then(self, other: Relation) -> Relation {
        let mut composition = Relation::default();
        for first in 0..THINGS_MAX {
            for middle in (0..THINGS_MAX).filter(|&middle| self.contains(first, middle)) {
                composition.rows[first] |= other.rows[middle];
            }
        }
        composition
    }

    /// `self⁺`
    pub(super) fn closure(self) -> Relation {
        let mut closure = self;
        loop {
            let longer = closure.or(closure.then(closure));
            if longer == closure {
                return closure;
            }
            closure = longer;
        }
    }

    pub(super) fn is_within(self, other: Relation) -> bool {
        self.or(other) == other
    }

    pub(super) fn is_irreflexive(self) -> bool {
        (0..THINGS_MAX).all(|thing| !self.contains(thing, thing))
    }

    pub(super) fn is_acyclic(self) -> bool {
        self.closure().is_irreflexive()
    }
}

/// Every sequence of the given things.
pub(super) fn permutations(things: &[usize]) -> Vec<Vec<usize>> {
    let Some((&first, rest)) = things.split_first() else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for shorter in permutations(rest) {
        for place in 0..=shorter.len() {
            let mut sequence = shorter.clone();
            sequence.insert(place, first);
            all.push(sequence);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_order_is_acyclic_until_its_end_meets_its_beginning() {
        let mut order = Relation::total(&[2, 0, 1]);
        assert!(order.is_acyclic());
        assert_eq!(order.closure(), order);
        order.insert(1, 2);
        assert!(!order.is_acyclic());
    }

    #[test]
    fn composition_goes_through_the_middle() {
        let expected = Relation::total(&[0, 2]);
        assert_eq!(Relation::total(&[0, 1]).then(Relation::total(&[1, 2])), expected);
    }

    #[test]
    fn three_things_have_six_sequences() {
        let mut all = permutations(&[0, 1, 2]);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
