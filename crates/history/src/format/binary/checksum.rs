//! XXH64, the checksum of columns: quick enough to be computed at every reading.
//!
//! Specified in the xxHash repository's `doc/xxhash_spec.md`.

const PRIMES: [u64; 5] = [
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
];

/// The XXH64 of `bytes`.
pub(super) fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let (stripes, tail) = bytes.as_chunks::<32>();
    let mut hash =
        if stripes.is_empty() { seed.wrapping_add(PRIMES[4]) } else { converge(stripes, seed) };
    hash = hash.wrapping_add(bytes.len() as u64);
    let (longs, tail) = tail.as_chunks::<8>();
    for &long in longs {
        hash ^= round(0, u64::from_le_bytes(long));
        hash = hash.rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
    }
    let (words, tail) = tail.as_chunks::<4>();
    for &word in words {
        hash ^= u64::from(u32::from_le_bytes(word)).wrapping_mul(PRIMES[0]);
        hash = hash.rotate_left(23).wrapping_mul(PRIMES[1]).wrapping_add(PRIMES[2]);
    }
    for &byte in tail {
        hash ^= u64::from(byte).wrapping_mul(PRIMES[4]);
        hash = hash.rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIMES[1]);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 32)
}

fn converge(stripes: &[[u8; 32]], seed: u64) -> u64 {
    let mut lanes = [
        seed.wrapping_add(PRIMES[0]).wrapping_add(PRIMES[1]),
        seed.wrapping_add(PRIMES[1]),
        seed,
        seed.wrapping_sub(PRIMES[0]),
    ];
    for stripe in stripes {
        let (longs, _) = stripe.as_chunks::<8>();
        for (lane, &long) in lanes.iter_mut().zip(longs) {
            *lane = round(*lane, u64::from_le_bytes(long));
        }
    }
    let mut hash = 0u64;
    for (lane, bits) in lanes.iter().zip([1, 7, 12, 18]) {
        hash = hash.wrapping_add(lane.rotate_left(bits));
    }
    for lane in lanes {
        hash ^= round(0, lane);
        hash = hash.wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
    }
    hash
}

#[inline]
fn round(lane: u64, input: u64) -> u64 {
    lane.wrapping_add(input.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    #[test]
    fn known_texts_have_their_known_sums() {
        assert_eq!(xxh64(b"", 0), 0xEF46_DB37_51D8_E999);
        assert_eq!(xxh64(b"abc", 0), 0x44BC_2CF5_AD77_0999);
        let long = b"Nobody inspects the spammish repetition";
        assert_eq!(xxh64(long, 0), 0xFBCE_A83C_8A37_8BF1);
    }

    /// A zstd frame ends with the low half of its content's XXH64.
    #[test]
    fn sums_of_all_lengths_equal_those_of_zstd() {
        let bytes: Vec<u8> = (0..200u8).map(|number| number.wrapping_mul(37)).collect();
        for length in 0..bytes.len() {
            let content = &bytes[..length];
            let mut compressor = zstd::bulk::Compressor::new(3).expect("a compressor");
            compressor.include_checksum(true).expect("an option of it");
            let frame = compressor.compress(content).expect("in memory");
            let sum = (xxh64(content, 0) as u32).to_le_bytes();
            assert_eq!(frame[frame.len() - 4..], sum, "length {length}");
        }
    }
}
