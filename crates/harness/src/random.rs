//! Numbers from a seed, the same on every machine: a seed in a bug report names a history.
//!
//! **Method.** xoshiro256++, seeded by `SplitMix64` as its authors advise
//! [Blackman and Vigna, *Scrambled Linear Pseudorandom Number Generators*, 2021]. How numbers
//! below a bound and fractions are made of its bits is written out here, because the sequence
//! is specified and what libraries make of one is not; `tests/pinned.rs` holds both.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A sequence of numbers.
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The sequence of this seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`. The bias of the multiplication is below 2^-32.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u32
    }

    /// A number from 0 up to and without 1.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether something with this probability happens.
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times > 150), "{seen:?}");
    }
}
