//! Reports as JSON; `docs/schema/report.schema.json` describes that of a check.

use crate::LevelReport;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A report of any kind as one object, on several lines.
pub fn to_json(report: &impl Serialize) -> String {
    serde_json::to_string_pretty(report).expect("a report is plain data")
}

/// Levels by name, in their order.
pub(crate) fn as_map<S: Serializer>(
    levels: &[LevelReport],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(levels.len()))?;
    for level in levels {
        map.serialize_entry(level.level, level)?;
    }
    map.end()
}
