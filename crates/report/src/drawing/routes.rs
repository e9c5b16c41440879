//! Where the arrows of a picture run.

use super::{Area, Point};

/// Ways past other cards that are tried.
const LANES_MAX: usize = 400;

/// There and back between two cards in one row: the first above, the second below.
pub(super) fn beside_each_other(from: Area, to: Area, place: usize) -> [Point; 4] {
    let half = from.height.min(to.height) / 2.0;
    let offset = (half * 0.6).clamp(14.0, 28.0);
    let down = if place == 0 { -offset } else { offset };
    let right = to.center().x > from.center().x;
    let side = |area: Area, to_the_right: bool| Point {
        x: if to_the_right { area.x + area.width } else { area.x },
        y: area.center().y + down,
    };
    let (start, end) = (side(from, right), side(to, !right));
    let bend = (end.x - start.x) / 3.0;
    let lift = down * 0.8;
    [
        start,
        Point { x: start.x + bend, y: start.y + lift },
        Point { x: end.x - bend, y: end.y + lift },
        end,
    ]
}

/// From one card to another, wherever they are; `spread` keeps arrows apart.
pub(super) fn between(from: Area, to: Area, spread: usize) -> [Point; 4] {
    let (a, b) = (from.center(), to.center());
    let shift = |area: Area| {
        let steps = [0.0, 0.18, -0.18, 0.32, -0.32, 0.1, -0.1];
        area.width * steps[spread % steps.len()]
    };
    if from == to {
        let x = from.x + from.width;
        let (start, end) = (Point { x, y: a.y - 14.0 }, Point { x, y: a.y + 14.0 });
        let far = x + 70.0;
        return [start, Point { x: far, y: a.y - 40.0 }, Point { x: far, y: a.y + 40.0 }, end];
    }
    let apart = (a.y - b.y).abs();
    if apart < f64::midpoint(from.height, to.height) {
        let near = (a.x - b.x).abs() < from.width.max(to.width) + 320.0;
        if near && spread == 0 {
            let right = b.x > a.x;
            let start = Point { x: if right { from.x + from.width } else { from.x }, y: a.y };
            let end = Point { x: if right { to.x } else { to.x + to.width }, y: b.y };
            let middle =
                Point { x: f64::midpoint(start.x, end.x), y: f64::midpoint(start.y, end.y) };
            return [start, middle, middle, end];
        }
        // Over the heads of the row.
        let (start, end) =
            (Point { x: a.x + shift(from), y: from.y }, Point { x: b.x + shift(to), y: to.y });
        let lift = 40.0 + 10.0 * (spread % 4) as f64;
        return [
            start,
            Point { x: start.x, y: start.y - lift },
            Point { x: end.x, y: end.y - lift },
            end,
        ];
    }
    let down = b.y > a.y;
    let start = Point { x: a.x + shift(from), y: if down { from.y + from.height } else { from.y } };
    let end = Point { x: b.x + shift(to), y: if down { to.y } else { to.y + to.height } };
    let bend = (end.y - start.y) / 2.0;
    [start, Point { x: start.x, y: start.y + bend }, Point { x: end.x, y: end.y - bend }, end]
}

/// Curves from one card to another that go past others, shorter ones first.
pub(super) fn detours(from: Area, to: Area, others: &[Area], spread: usize) -> Vec<[Point; 4]> {
    let (a, b) = (from.center(), to.center());
    let shift = 14.0 * (spread % 4) as f64;
    let mut lanes: Vec<f64> = Vec::new();
    let cards = || others.iter().chain([&from, &to]);
    for area in cards() {
        for far in [30.0, 90.0, 180.0, 320.0, 520.0] {
            lanes.extend([area.x - far - shift, area.x + area.width + far + shift]);
        }
    }
    let length = |lane: &f64| (lane - a.x).abs() + (lane - b.x).abs();
    lanes.sort_by(|one, other| length(one).total_cmp(&length(other)));
    lanes.dedup();
    lanes.truncate(LANES_MAX);
    // Out of the side that the lane is on, and out of what faces the other card.
    let side = |area: Area, lane: f64| Point {
        x: if lane > area.center().x { area.x + area.width } else { area.x },
        y: area.center().y,
    };
    let face = |area: Area, down: bool| Point {
        x: area.center().x,
        y: if down { area.y + area.height } else { area.y },
    };
    let down = b.y > a.y;
    let mut curves = Vec::new();
    for lane in lanes {
        for (start, end) in [
            (side(from, lane), side(to, lane)),
            (face(from, down), side(to, lane)),
            (side(from, lane), face(to, !down)),
            (face(from, down), face(to, !down)),
            (face(from, down), face(to, down)),
            (face(from, !down), face(to, !down)),
        ] {
            let (one, other) = (Point { x: lane, y: start.y }, Point { x: lane, y: end.y });
            curves.push([start, one, other, end]);
        }
    }
    // Over or under everything.
    let top = cards().map(|area| area.y).fold(f64::MAX, f64::min) - 60.0 - shift;
    let bottom = cards().map(|area| area.y + area.height).fold(0.0, f64::max) + 60.0 + shift;
    for (height, is_below) in [(top, false), (bottom, true)] {
        let (start, end) = (face(from, is_below), face(to, is_below));
        curves.push([start, Point { y: height, ..start }, Point { y: height, ..end }, end]);
    }
    curves
}

/// Points along a curve, close enough together that no card lies between two.
pub(super) fn points_on(curve: &[Point; 4]) -> impl Iterator<Item = Point> {
    const STEPS: u8 = 64;
    let curve = *curve;
    (0..=STEPS).map(move |step| point_at(&curve, f64::from(step) / f64::from(STEPS)))
}

/// Where a curve is after so much of it.
pub(super) fn point_at(curve: &[Point; 4], place: f64) -> Point {
    let rest = 1.0 - place;
    let weights =
        [rest.powi(3), 3.0 * rest * rest * place, 3.0 * rest * place * place, place.powi(3)];
    let sum = |of: fn(&Point) -> f64| {
        curve.iter().zip(weights).map(|(point, weight)| of(point) * weight).sum::<f64>()
    };
    Point { x: sum(|point| point.x), y: sum(|point| point.y) }
}
