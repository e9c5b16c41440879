//! The report as JSON; `docs/report.schema.json` describes it.

use crate::{LevelReport, Report};
use serde::Serializer;
use serde::ser::SerializeMap;

/// One object, on several lines.
pub fn to_json(report: &Report) -> String {
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
