//! Names that a text format writes without saying whether they are numbers.

use crate::value::{Value, Values};

/// The number that `name` is the usual notation of, else the text: `7` is a number,
/// `07` and `+7` are other names.
pub(super) fn number_or_text(values: &mut Values, name: &str) -> Value {
    let usual = |number: &dyn ToString| number.to_string() == name;
    match (name.parse::<u64>(), name.parse::<i64>()) {
        (Ok(natural), _) if usual(&natural) => values.unsigned(natural),
        (_, Ok(integer)) if usual(&integer) => values.int(integer),
        _ => values.text(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Datum;

    #[test]
    fn only_the_usual_notation_is_a_number() {
        let mut values = Values::default();
        let mut datum = |name: &str| {
            let value = number_or_text(&mut values, name);
            values.datum(value).to_string()
        };
        assert_eq!(datum("18446744073709551615"), "18446744073709551615");
        assert_eq!(datum("-7"), "-7");
        for name in ["07", "+7", "-0", "7x", "18446744073709551616", ""] {
            assert_eq!(datum(name), Datum::Text(name).to_string());
        }
    }
}
