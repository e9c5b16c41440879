//! Lists of natural numbers as text, found without reading the numbers.

/// Bytes whose spaces are counted in one byte.
const COUNTED: usize = 128;

/// If `bytes` begin with natural numbers, one space between two, and then `]`: the length
/// of their text, and how many they are. All looks are at many bytes at once.
#[inline]
pub(super) fn number_list(bytes: &[u8]) -> Option<(usize, u32)> {
    let length = memchr::memchr(b']', bytes)?;
    let text = &bytes[..length];
    if !text.first()?.is_ascii_digit() || !text.last()?.is_ascii_digit() {
        return None;
    }
    let mut is_other = false;
    let mut spaces = 0;
    for chunk in text.chunks(COUNTED) {
        let mut others = 0u8;
        let mut counted = 0u8;
        for &byte in chunk {
            let is_space = u8::from(byte == b' ');
            counted += is_space;
            others |= 1 - (u8::from(byte.wrapping_sub(b'0') < 10) | is_space);
        }
        is_other |= others != 0;
        spaces += u32::from(counted);
    }
    (!is_other && is_regular(text)).then_some((length, spaces + 1))
}

/// Whether digits and spaces are numbers without zeros before them, one space between two.
#[inline]
fn is_regular(text: &[u8]) -> bool {
    let leads = |pair: &[u8]| pair[0] == b'0' && pair[1] != b' ';
    if text.len() >= 2 && leads(&text[..2]) {
        return false;
    }
    let (mut doubled, mut zeros) = (0u8, 0u8);
    let seconds = text.get(1..).unwrap_or_default();
    let thirds = text.get(2..).unwrap_or_default();
    for (&first, &second) in text.iter().zip(seconds) {
        doubled |= u8::from(first == b' ') & u8::from(second == b' ');
    }
    for ((&first, &second), &third) in text.iter().zip(seconds).zip(thirds) {
        let leads = u8::from(first == b' ') & u8::from(second == b'0');
        zeros |= leads & u8::from(third != b' ');
    }
    doubled | zeros == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_up_to_the_bracket() {
        assert_eq!(number_list(b"1]"), Some((1, 1)));
        assert_eq!(number_list(b"0]"), Some((1, 1)));
        assert_eq!(number_list(b"12 0 305] [:r 1]"), Some((8, 3)));
        let long: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let text = long.join(" ") + "]";
        assert_eq!(number_list(text.as_bytes()), Some((text.len() - 1, 1000)));
    }

    #[test]
    fn anything_else_is_left_to_others() {
        for text in [
            "", "]", "1", "1 2", " 1]", "1 ]", "1  2]", "01]", "1 02]", "1 00]", "1,2]", "1 -2]",
            "1 a]", "1 [2]]", "1 2.5]", "1\n2]", "1 2N]", "00]",
        ] {
            assert_eq!(number_list(text.as_bytes()), None, "{text}");
        }
    }
}
