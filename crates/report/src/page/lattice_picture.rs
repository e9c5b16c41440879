//! The lattice of levels as a picture: which hold, which do not, and which follows from which.

use crate::escape::xml;
use isolde::{IMPLICATIONS, Level};
use std::fmt::Write;

const STEP_X: f64 = 184.0;
const STEP_Y: f64 = 62.0;
const WIDTH: f64 = 162.0;
const HEIGHT: f64 = 42.0;
const MARGIN: f64 = 8.0;
const LINE_CHARACTERS_MAX: usize = 20;

/// The column and row of a level: the strongest on top, families side by side.
fn cell(level: Level) -> (u8, u8) {
    match level {
        Level::Linearizable => (4, 0),
        Level::StrictSerializable => (4, 1),
        Level::StrongSnapshotIsolation => (2, 1),
        Level::SessionSerializable => (4, 2),
        Level::PrefixConsistentSnapshotIsolation => (2, 2),
        Level::Serializable => (4, 3),
        Level::GeneralizedSnapshotIsolation => (3, 3),
        Level::SessionSnapshotIsolation => (2, 3),
        Level::SnapshotIsolation => (2, 4),
        Level::Prefix => (1, 4),
        Level::RepeatableRead => (4, 5),
        Level::ParallelSnapshotIsolation => (2, 5),
        Level::Causal => (1, 5),
        Level::UpdateAtomic => (2, 6),
        Level::ReadAtomic => (1, 6),
        Level::ReadYourWrites => (0, 6),
        Level::CursorStability => (3, 7),
        Level::ReadCommitted => (1, 7),
        Level::MonotonicReads => (0, 7),
        Level::MonotonicAtomicView => (1, 8),
        Level::MonotonicWrites => (0, 8),
        Level::AdyaReadCommitted => (2, 9),
        Level::WritesFollowReads => (0, 9),
        Level::ReadUncommitted => (2, 10),
    }
}

/// The picture; levels without a verdict are faint.
pub(super) fn draw(verdicts: &[(Level, &str)]) -> String {
    let (width, height) = (STEP_X * 5.0 - 22.0 + 2.0 * MARGIN, STEP_Y * 11.0 - 20.0 + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lattice\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" role=\"group\" aria-label=\"levels, the strongest on top\">\n"
    );
    for row in IMPLICATIONS.iter().filter(|row| !follows_from_others(row.stronger, row.weaker)) {
        let both = [row.stronger, row.weaker].map(|level| verdict(verdicts, level));
        let class = if both.contains(&"none") { "faint" } else { "" };
        writeln!(out, "<path class=\"{class}\" d=\"{}\"/>", line(row.stronger, row.weaker))
            .expect("a string grows");
    }
    for level in Level::ALL {
        node(&mut out, level, verdict(verdicts, level));
    }
    out.push_str("</svg>\n");
    out
}

fn verdict<'a>(verdicts: &[(Level, &'a str)], level: Level) -> &'a str {
    verdicts.iter().find(|(it, _)| *it == level).map_or("none", |(_, verdict)| match *verdict {
        "satisfied" => "satisfied",
        "violated" => "violated",
        _ => "unknown",
    })
}

fn follows_from_others(stronger: Level, weaker: Level) -> bool {
    let between = stronger.weaker_than();
    between.iter().any(|level| level.weaker_than().contains(&weaker))
}

fn corner(level: Level) -> (f64, f64) {
    let (column, row) = cell(level);
    (MARGIN + STEP_X * f64::from(column), MARGIN + STEP_Y * f64::from(row))
}

fn line(stronger: Level, weaker: Level) -> String {
    let ((x, y), (to_x, to_y)) = (corner(stronger), corner(weaker));
    // The session guarantees stand in a column of their own: into their sides.
    if cell(weaker).0 == 0 {
        let (start, end) = (x, to_x + WIDTH);
        let (from, to) = (y + HEIGHT / 2.0, to_y + HEIGHT / 2.0);
        let middle = f64::midpoint(start, end);
        return format!(
            "M{start:.0} {from:.0}C{middle:.0} {from:.0} {middle:.0} {to:.0} {end:.0} {to:.0}"
        );
    }
    let (start, end) = (x + WIDTH / 2.0, to_x + WIDTH / 2.0);
    let (from, to) = (y + HEIGHT, to_y);
    let bend = ((to - from) / 2.0).min(30.0);
    format!(
        "M{start:.0} {from:.0}C{start:.0} {:.0} {end:.0} {:.0} {end:.0} {to:.0}",
        from + bend,
        to - bend
    )
}

fn node(out: &mut String, level: Level, verdict: &str) {
    let (x, y) = corner(level);
    let row = level.row();
    let mark = match verdict {
        "satisfied" => "✓",
        "violated" => "✗",
        "unknown" => "?",
        _ => "",
    };
    let told = if verdict == "none" { "not asked" } else { verdict };
    writeln!(
        out,
        "<g class=\"level {verdict}\" data-level=\"{}\" transform=\"translate({x:.0} {y:.0})\">\
         <title>{}: {told}. {}</title><rect width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/>\
         <text class=\"mark\" x=\"12\" y=\"27\">{mark}</text>{}</g>",
        row.name,
        xml(row.title),
        xml(row.summary),
        lines(row.title)
    )
    .expect("a string grows");
}

/// A title on one line or two.
fn lines(title: &str) -> String {
    let x = 32;
    if title.len() <= LINE_CHARACTERS_MAX - 4 {
        return format!("<text x=\"{x}\" y=\"26\">{}</text>", xml(title));
    }
    let middle = title.len() / 2;
    let breaks = title.match_indices([' ', '-']).map(|(place, _)| place + 1);
    let at = breaks.min_by_key(|place| place.abs_diff(middle)).unwrap_or(middle);
    let (first, second) = title.split_at(at);
    format!(
        "<text x=\"{x}\" y=\"18\">{}</text><text x=\"{x}\" y=\"33\">{}</text>",
        xml(first.trim_end()),
        xml(second)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_a_place_of_its_own_below_what_implies_it() {
        let mut cells: Vec<(u8, u8)> = Level::ALL.into_iter().map(cell).collect();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), Level::ALL.len());
        for row in IMPLICATIONS {
            assert!(cell(row.stronger).1 <= cell(row.weaker).1, "{row:?}");
        }
    }
}
