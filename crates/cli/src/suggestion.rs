//! What a user may have meant who typed a name that does not exist.

/// How alike two names must be, from 0 to 1, for one to be offered for the other: a letter or two
/// of a word, but not `perfect` for `prefix`.
const ALIKE: f64 = 0.8;
/// What is so much less alike than the likest was not meant.
const DOUBT: f64 = 0.05;

/// Says what was expected: the names that are most like the one that was found, or all of them.
pub(crate) fn expected(what: &str, found: &str, names: &[&str]) -> String {
    match &alike(found, names)[..] {
        [] => format!("expected {what} ({}), found `{found}`", names.join(", ")),
        alike => {
            let quoted: Vec<String> = alike.iter().map(|name| format!("`{name}`")).collect();
            format!("expected {what}, found `{found}`; did you mean {}?", quoted.join(" or "))
        }
    }
}

/// Up to three names that are like this one, the likest first.
fn alike<'a>(found: &str, names: &[&'a str]) -> Vec<&'a str> {
    const OFFERED_MAX: usize = 3;
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', ' '], "-");
    let likeness = |name: &&'a str| (strsim::jaro_winkler(&plain(found), &plain(name)), *name);
    let mut likely: Vec<(f64, &str)> = names.iter().map(likeness).collect();
    likely.sort_by(|one, other| other.0.total_cmp(&one.0));
    let best = likely.first().map_or(0.0, |it| it.0);
    let offered = likely.into_iter().take_while(|it| it.0 > ALIKE && it.0 > best - DOUBT);
    offered.take(OFFERED_MAX).map(|it| it.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: &[&str] = &["serializable", "session-serializable", "causal", "prefix"];

    fn check(found: &str, expected_text: &str) {
        assert_eq!(expected("a level", found, LEVELS), expected_text);
    }

    #[test]
    fn a_name_that_is_nearly_right_is_offered() {
        check(
            "serialisable",
            "expected a level, found `serialisable`; did you mean `serializable`?",
        );
        check("Casual", "expected a level, found `Casual`; did you mean `causal`?");
    }

    #[test]
    fn of_a_name_that_is_like_none_all_are_listed() {
        check(
            "quantum",
            "expected a level (serializable, session-serializable, causal, prefix), found \
             `quantum`",
        );
    }
}
