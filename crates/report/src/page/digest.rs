//! SHA-256, by which a page tells the browser the only script and style that it may use.
//!
//! The data of a page comes from histories of others. Should any of it ever end up as a script
//! against all care, the browser refuses to run it, because its hash is not in the policy.
//!
//! The algorithm is that of FIPS 180-4; the constants are computed as it defines them.

/// The hash of `text` as a policy names it: `sha256-` and Base64.
pub(crate) fn source(text: &str) -> String {
    format!("sha256-{}", base64(&sha256(text.as_bytes())))
}

fn sha256(message: &[u8]) -> Vec<u8> {
    let (mut state, rounds) = constants();
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        compress(&mut state, &rounds, block);
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The first state and the round constants: the first 32 bits behind the point of square and
/// cube roots of the first primes.
fn constants() -> ([u32; 8], [u32; 64]) {
    let is_prime = |number: &u128| (2..*number).all(|divisor| !number.is_multiple_of(divisor));
    let mut primes = (2u128..).filter(is_prime);
    let (mut state, mut rounds) = ([0; 8], [0; 64]);
    for (place, round) in rounds.iter_mut().enumerate() {
        let prime = primes.next().expect("primes do not end");
        if let Some(word) = state.get_mut(place) {
            *word = root(prime << 64, |root| root * root);
        }
        *round = root(prime << 96, |root| root * root * root);
    }
    (state, rounds)
}

/// The low 32 bits of the largest whole number whose power is at most `number`.
fn root(number: u128, power: fn(u128) -> u128) -> u32 {
    let mut found: u128 = 0;
    for bit in (0..40).rev() {
        let next = found | (1 << bit);
        if power(next) <= number {
            found = next;
        }
    }
    (found & 0xffff_ffff) as u32
}

fn compress(state: &mut [u32; 8], rounds: &[u32; 64], block: &[u8]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for place in 16..64 {
        let (far, near) = (words[place - 15], words[place - 2]);
        let first = far.rotate_right(7) ^ far.rotate_right(18) ^ (far >> 3);
        let second = near.rotate_right(17) ^ near.rotate_right(19) ^ (near >> 10);
        let sum = words[place - 16].wrapping_add(first).wrapping_add(words[place - 7]);
        words[place] = sum.wrapping_add(second);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for place in 0..64 {
        let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = (e & f) ^ (!e & g);
        let first = (h.wrapping_add(mixed).wrapping_add(chosen))
            .wrapping_add(rounds[place])
            .wrapping_add(words[place]);
        let other = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let most = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(other.wrapping_add(most)));
    }
    for (word, added) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(added);
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        let of = |text: &str| -> String {
            sha256(text.as_bytes())
                .iter()
                .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
        };
        assert_eq!(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }

    #[test]
    fn sources_are_written_as_policies_have_them() {
        assert_eq!(source(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
