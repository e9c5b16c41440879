//! Columns of numbers as text: a few characters for each, where JSON takes seven.
//!
//! A number is written in digits of base 45. The last digit of a number is one of the first 45
//! characters of [`DIGITS`], the ones before it are of the others, so that nothing stands
//! between numbers. `unpacked` in `web/data.js` reads them.

/// Characters that need no escape, neither in JSON nor in a page.
const DIGITS: &[u8; 90] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+,-./:;=?@[]^_`{|}~ '";
const BASE: u64 = 45;
/// Numbers up to here stay exact in a browser, and so do twice the differences between them.
pub(super) const EXACT_MAX: i64 = 1 << 50;

/// Numbers, one after another.
#[derive(Default)]
pub(super) struct Packed(String);

impl Packed {
    /// Each number for itself.
    pub(super) fn of(numbers: impl Iterator<Item = u64>) -> String {
        let mut packed = Packed::default();
        numbers.for_each(|number| packed.push(number));
        packed.0
    }

    /// The difference of each number to the one before it.
    pub(super) fn differences(numbers: impl Iterator<Item = i64>) -> String {
        let mut last = 0;
        Packed::of(numbers.map(|number| signed(number - std::mem::replace(&mut last, number))))
    }

    pub(super) fn push(&mut self, number: u64) {
        let mut digits = [0; 12];
        let mut start = digits.len();
        let (mut rest, mut offset) = (number, 0);
        loop {
            start -= 1;
            digits[start] = DIGITS[(rest % BASE) as usize + offset];
            (rest, offset) = (rest / BASE, BASE as usize);
            if rest == 0 {
                break;
            }
        }
        self.0.extend(digits[start..].iter().map(|&digit| char::from(digit)));
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// A number with its sign in the last bit.
pub(super) const fn signed(number: i64) -> u64 {
    number.unsigned_abs() * 2 - (number < 0) as u64
}

#[cfg(test)]
mod tests {
    use super::{DIGITS, Packed, signed};

    #[test]
    fn numbers_have_as_few_characters_as_they_need() {
        assert_eq!(Packed::of([0, 44, 45, 2024, 2025].into_iter()), "0ik0'ikj0");
        assert_eq!(Packed::differences([7, 7, 5].into_iter()), "E03");
    }

    #[test]
    fn no_digit_means_anything_to_a_page() {
        let text = String::from_utf8(DIGITS.to_vec()).expect("plain characters");
        assert_eq!(serde_json::to_string(&text).expect("text"), format!("\"{text}\""));
        assert_eq!(crate::escape::json_in_html(&text), text);
        let mut each: Vec<u8> = DIGITS.to_vec();
        each.sort_unstable();
        each.dedup();
        assert_eq!(each.len(), DIGITS.len());
    }

    #[test]
    fn signs_are_kept() {
        assert_eq!([0, -1, 1, -2, 2].map(signed), [0, 1, 2, 3, 4]);
    }
}
