//! What killed runs have left in a database, known by its names.
//!
//! Everything that a run creates has a name that begins with a prefix of its own. A run that is
//! killed removes nothing, and only such a name tells later that it was one of ours.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

/// How every name of a run begins.
pub const FIRST: &str = "isolde_";

/// The prefix of a run that begins now: the time and the number of the process, so that no two
/// are the same.
pub fn fresh_prefix() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{FIRST}{:x}_{:x}_", now.as_nanos() & 0xff_ffff_ffff, std::process::id())
}

/// The prefix of the run whose name this is, if it is one: letters, digits and underscores alone,
/// so that such a name can stand in a statement as it is.
pub fn prefix_of(name: &str) -> Option<&str> {
    let all = |text: &str, is_fit: fn(u8) -> bool| !text.is_empty() && text.bytes().all(is_fit);
    let is_number = |text| all(text, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_word = |text| all(text, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'_'));
    let mut parts = name.strip_prefix(FIRST)?.splitn(3, '_');
    let (time, process, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let is_one = is_number(time) && is_number(process) && is_word(rest);
    is_one.then(|| &name[..name.len() - rest.len()])
}

/// The prefixes of the runs that these names are of.
pub fn prefixes_of<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Vec<String> {
    let names = names.into_iter();
    let found: BTreeSet<String> =
        names.filter_map(|name| prefix_of(name.as_ref()).map(str::to_owned)).collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_are_known_and_others_are_left_alone() {
        let prefix = fresh_prefix();
        let ours = [format!("{prefix}registers"), format!("{prefix}lists")];
        assert_eq!(prefixes_of(ours), [prefix]);
        assert_eq!(
            prefixes_of(["isolde_2_b_lists", "isolde_1_a_x_y"]),
            ["isolde_1_a_", "isolde_2_b_"]
        );
        for other in [
            "isolde_1_a_",
            "isolde_1_a",
            "isolde_1_users",
            "isolde_g_a_lists",
            "my_isolde_1_a_x",
            "isolde_1_a_x; DROP TABLE users",
            "",
        ] {
            assert_eq!(prefix_of(other), None, "{other}");
        }
    }
}
