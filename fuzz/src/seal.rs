//! Right checksums for files of the binary format.
//!
//! No fuzzer guesses a checksum, and behind them the reader must stand anything.
//! The layout is that of `docs/formats/binary.md`.

use xxhash_rust::xxh64::xxh64;

const FILE_HEADER_BYTES: usize = 16;
const HEADER_BYTES: usize = 56;
const COVERED_BYTES: usize = 48;

/// The file with every checksum made right, as far as its frames can be followed.
pub(crate) fn sealed(format: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    if !format.starts_with("binary") {
        return None;
    }
    let mut sealed = bytes.to_vec();
    let mut at = FILE_HEADER_BYTES;
    while let Some(frame) = sealed.get_mut(at..)
        && frame.len() >= HEADER_BYTES
    {
        let (header, rest) = frame.split_at_mut(HEADER_BYTES);
        let length = u64::from_le_bytes(header[40..48].try_into().expect("eight bytes"));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(stored) = rest.get(..length) else { break };
        let sum = xxh64(stored, xxh64(&header[..COVERED_BYTES], 0));
        header[COVERED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        at += HEADER_BYTES + length.next_multiple_of(8);
    }
    Some(sealed)
}
