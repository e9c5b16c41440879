//! Numbers from a seed, the same on every machine.
//!
//! **Method.** xoshiro256++, seeded by `SplitMix64` as its authors advise
//! [Blackman and Vigna, *Scrambled Linear Pseudorandom Number Generators*, 2021].
//! It is written out here because a dependency may change its sequence, and then
//! a seed in a bug report would no longer name a history.

/// A sequence of numbers.
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence of this seed.
    pub(crate) fn new(seed: u64) -> Random {
        let mut weyl = seed;
        let state = [(); 4].map(|()| {
            weyl = weyl.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (weyl ^ (weyl >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        Random { state }
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
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

    /// The first outputs that the authors' program gives for the state 1, 2, 3, 4.
    #[test]
    fn the_sequence_is_that_of_the_published_algorithm() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let found: Vec<u64> = (0..6).map(|_| random.bits()).collect();
        assert_eq!(
            found,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386,
                9_228_616_714_210_784_205,
                9_973_669_472_204_895_162,
            ]
        );
    }

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
