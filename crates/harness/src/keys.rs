//! Which key an operation uses.

use crate::parameters::Distribution;
use crate::random::Random;

/// Draws places among a number of keys.
pub(crate) struct KeyChoice {
    keys: u32,
    shape: Shape,
}

enum Shape {
    Uniform,
    /// The weights of all keys up to each one, added up.
    Cumulative(Vec<f64>),
    /// Keys that most operations use.
    Hot(u32),
}

/// -ln(1 - 0.95) / (6/7): how much rarer the last key is than the first, as a power of e.
const EXPONENTIAL_DECAY: f64 = 3.495_020_987;
const HOT_CHANCE: f64 = 0.8;
const HOT_PART: u32 = 5;

impl KeyChoice {
    pub(crate) fn new(keys: u32, distribution: Distribution) -> KeyChoice {
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Zipf { theta } => {
                let mut sum = 0.0;
                let add = |rank| {
                    sum += inverse_power(f64::from(rank), theta);
                    sum
                };
                Shape::Cumulative((1..=keys).map(add).collect())
            }
            Distribution::Exponential => {
                let decay = EXPONENTIAL_DECAY / f64::from(keys);
                let mut sum = 0.0;
                let add = |rank| {
                    sum += exponential(-decay * f64::from(rank));
                    sum
                };
                Shape::Cumulative((0..keys).map(add).collect())
            }
            Distribution::Hotspot => Shape::Hot((keys / HOT_PART).max(1)),
        };
        KeyChoice { keys, shape }
    }

    /// How many keys there are.
    pub(crate) fn keys(&self) -> u32 {
        self.keys
    }

    /// A key that is not in use, if one is drawn soon; else one that is.
    pub(crate) fn draw_other(&self, random: &mut Random, is_used: impl Fn(u32) -> bool) -> u32 {
        const DRAWS_MAX: u32 = 20;
        let mut place = self.draw(random);
        for _ in 0..DRAWS_MAX {
            if !is_used(place) {
                break;
            }
            place = self.draw(random);
        }
        place
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        match &self.shape {
            Shape::Uniform => random.below(self.keys),
            Shape::Cumulative(sums) => {
                let whole = sums.last().expect("there is a key");
                let drawn = random.fraction() * whole;
                (sums.partition_point(|&sum| sum <= drawn) as u32).min(self.keys - 1)
            }
            Shape::Hot(hot) => {
                if *hot == self.keys || random.chance(HOT_CHANCE) {
                    random.below(*hot)
                } else {
                    hot + random.below(self.keys - hot)
                }
            }
        }
    }
}

/// `base` to the power of minus `exponent`.
///
/// The standard library's powers may differ in the last bit from one machine to
/// another, and a history must not; sums, products and quotients never differ.
fn inverse_power(base: f64, exponent: f64) -> f64 {
    exponential(-exponent * logarithm(base))
}

/// The natural logarithm of a number from 1.
fn logarithm(number: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let (mut mantissa, mut halvings) = (number, 0.0);
    while mantissa > 1.5 {
        mantissa /= 2.0;
        halvings += 1.0;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), and the quotient is at most a fifth.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let (mut power, mut sum, mut divisor) = (ratio, 0.0, 1.0);
    for _ in 0..16 {
        sum += power / divisor;
        power *= ratio * ratio;
        divisor += 2.0;
    }
    halvings * LN_2 + 2.0 * sum
}

fn exponential(number: f64) -> f64 {
    const HALVINGS: u32 = 10;
    let small = number / f64::from(1 << HALVINGS);
    let (mut term, mut sum, mut count) = (1.0, 1.0, 1.0);
    for _ in 0..16 {
        term *= small / count;
        sum += term;
        count += 1.0;
    }
    for _ in 0..HALVINGS {
        sum *= sum;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(keys: u32, distribution: Distribution) -> Vec<u32> {
        let (choice, mut random) = (KeyChoice::new(keys, distribution), Random::new(3));
        let mut counts = vec![0; keys as usize];
        for _ in 0..100_000 {
            counts[choice.draw(&mut random) as usize] += 1;
        }
        counts
    }

    #[test]
    fn powers_are_those_of_the_standard_library() {
        for base in [1.0, 2.0, 3.0, 10.0, 99_999.0, 268_435_456.0] {
            for exponent in [0.0, 0.5, 0.99, 2.0, 10.0] {
                let (found, expected) = (inverse_power(base, exponent), base.powf(-exponent));
                assert!((found / expected - 1.0).abs() < 1e-9, "{base} {exponent}: {found}");
            }
        }
    }

    #[test]
    fn the_second_key_of_zipf_is_used_half_as_often_as_the_first() {
        let counts = counts(10, Distribution::Zipf { theta: 1.0 });
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((ratio - 2.0).abs() < 0.1, "{counts:?}");
    }

    #[test]
    fn a_fifth_of_the_keys_is_hot() {
        let counts = counts(10, Distribution::Hotspot);
        let hot: u32 = counts[..2].iter().sum();
        assert!((79_000..81_000).contains(&hot), "{counts:?}");
        assert!(counts[2..].iter().all(|&times| times > 2000), "{counts:?}");
    }

    #[test]
    fn nineteen_of_twenty_operations_use_the_first_six_sevenths_of_exponential_keys() {
        let counts = counts(70, Distribution::Exponential);
        let first: u32 = counts[..60].iter().sum();
        // What would lie beyond the last key is spread over all of them.
        assert!((97_000..99_000).contains(&first), "{counts:?}");
        assert!(counts[0] > 20 * counts[69], "{counts:?}");
    }

    #[test]
    fn one_key_is_always_drawn() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipf { theta: 0.5 },
            Distribution::Hotspot,
            Distribution::Exponential,
        ] {
            assert_eq!(counts(1, distribution), [100_000]);
        }
    }
}
