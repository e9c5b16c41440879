//! Operations by condition as statements of SQL.
//!
//! Conditions come as the text that reports show. Only numbers are taken over from it, so that
//! nothing of a history can be a part of a statement; other conditions stay in a comment.

use super::TABLE;
use crate::scenario::{ScenarioOp, ScenarioTxn};

/// What is asked of the table.
pub(super) struct Selection {
    /// What is computed, such as `COUNT(*)`, if not rows are selected.
    computed: Option<&'static str>,
    /// ` WHERE …`, or nothing for all rows.
    condition: String,
}

/// Functions of aggregates, as conditions begin with them.
const FUNCTIONS: [(&str, &str); 4] =
    [("count ", "COUNT(*)"), ("min ", "MIN(v)"), ("max ", "MAX(v)"), ("sum ", "SUM(v)")];

/// How keys are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Keys {
    /// As text.
    #[default]
    Text,
    /// As numbers, which have an order that databases agree on.
    Numbers,
}

impl Selection {
    /// Understands a condition such as `count value 1..9 -> 0`.
    pub(super) fn parse(text: &str, keys: Keys) -> Option<Selection> {
        let function = FUNCTIONS.iter().find(|(name, _)| text.starts_with(name));
        let (condition, computed) = match function {
            Some((name, sql)) => (text[name.len()..].rsplit_once(" -> ")?.0, Some(*sql)),
            None => (text, None),
        };
        let condition = condition.trim();
        let meant = if condition == "all" {
            String::new()
        } else {
            let (about, rest) = condition.split_once(' ')?;
            let column = match (about, keys) {
                ("value", _) => "v",
                ("key", Keys::Numbers) => "k",
                _ => return None,
            };
            format!(" WHERE {}", test(column, rest)?)
        };
        Some(Selection { computed, condition: meant })
    }

    pub(super) fn select(&self) -> String {
        let computed = self.computed.unwrap_or("k, v");
        format!("SELECT {computed} FROM {TABLE}{};", self.condition)
    }

    /// One statement for an update or delete and its writes, each a literal of a key and, unless
    /// its row was deleted, one of a value.
    pub(super) fn change(&self, writes: &[(String, Option<String>)]) -> Option<String> {
        let condition = &self.condition;
        if writes.iter().all(|(_, value)| value.is_none()) {
            return Some(format!("DELETE FROM {TABLE}{condition};"));
        }
        let case = |(key, value): &(String, Option<String>)| {
            value.as_ref().map(|value| format!(" WHEN {key} THEN {value}"))
        };
        let cases: Option<String> = writes.iter().map(case).collect();
        let cases = cases?;
        Some(format!("UPDATE {TABLE} SET v = CASE k{cases} ELSE v END{condition};"))
    }
}

fn test(column: &str, text: &str) -> Option<String> {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    if let Some(value) = text.strip_prefix("= ") {
        return Some(format!("{column} = {}", number(value)?));
    }
    if let Some(rest) = text.strip_prefix("mod ") {
        let (modulus, remainder) = rest.split_once(" = ")?;
        return Some(format!("{column} % {} = {}", number(modulus)?, number(remainder)?));
    }
    let (low, high) = text.split_once("..")?;
    let bound = |text: &str, sign: &str| match text.trim() {
        "nil" => Some(None),
        text => number(text).map(|number| Some(format!("{column} {sign} {number}"))),
    };
    let bounds = [bound(low, ">=")?, bound(high, "<=")?];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    Some(if bounds.is_empty() { format!("{column} IS NOT NULL") } else { bounds.join(" AND ") })
}

/// The writes of an update or delete by condition, which stand directly behind it.
pub(super) fn writes_of(txn: &ScenarioTxn, update: usize) -> &[ScenarioOp] {
    let rows: Vec<&str> = (txn.operations[update].rows.iter())
        .filter(|row| row.matched)
        .map(|row| row.key.as_str())
        .collect();
    let behind = &txn.operations[update + 1..];
    let is_its = |op: &&ScenarioOp| {
        let key = op.key.as_deref().unwrap_or_default();
        matches!(op.kind.as_str(), "write" | "delete") && (rows.is_empty() || rows.contains(&key))
    };
    &behind[..behind.iter().take_while(is_its).count()]
}

/// By operation of a transaction, whether a statement before it does it too.
pub(super) fn covered(txn: &ScenarioTxn, keys: Keys) -> Vec<bool> {
    let mut covered = vec![false; txn.operations.len()];
    for (place, op) in txn.operations.iter().enumerate() {
        if op.kind == "predicate-update" && Selection::parse(&op.value, keys).is_some() {
            let writes = writes_of(txn, place);
            let deletes = writes.iter().filter(|it| it.kind == "delete").count();
            if deletes == 0 || deletes == writes.len() {
                covered[place + 1..=place + writes.len()].fill(true);
            }
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_numbers_are_statements_and_others_are_not() {
        let select = |text: &str, keys| Selection::parse(text, keys).map(|it| it.select());
        for (text, expected) in [
            ("all", Some("SELECT k, v FROM isolde_replay;")),
            ("value 1..9", Some("SELECT k, v FROM isolde_replay WHERE v >= 1 AND v <= 9;")),
            ("value nil..9", Some("SELECT k, v FROM isolde_replay WHERE v <= 9;")),
            ("count all -> 3", Some("SELECT COUNT(*) FROM isolde_replay;")),
            ("max value mod 2 = 1 -> 7", Some("SELECT MAX(v) FROM isolde_replay WHERE v % 2 = 1;")),
            ("key 3..5", Some("SELECT k, v FROM isolde_replay WHERE k >= 3 AND k <= 5;")),
            ("value = 3; DROP TABLE x", None),
            ("where \"1 = 1\"", None),
            ("column age 3..5", None),
        ] {
            assert_eq!(select(text, Keys::Numbers).as_deref(), expected, "{text}");
        }
        assert_eq!(select("key 3..5", Keys::Text), None);
    }
}
