//! Where the parts of a counterexample's picture lie.
//!
//! The transactions of a cycle run around a racetrack: the upper row from left to right, the lower
//! one back. Each dependency of the cycle then has a gap of its own for its label. What only shows
//! that a dependency holds stands in rows below; its arrows are drawn where there is
//! room, past the cards that they do not belong to.

#![expect(clippy::cast_precision_loss, reason = "pictures are not exact")]

mod routes;

use crate::escape::cut;
use crate::scenario::{Role, Scenario, ScenarioEdge, ScenarioOp, ScenarioTxn};
use crate::svg::cycles;
use routes::{beside_each_other, between, detours, point_at, points_on};
use std::collections::BTreeSet;

/// Width of one character of the font of cards and labels.
const CHARACTER: f64 = 7.3;
const LINE: f64 = 17.0;
const MARGIN: f64 = 24.0;
const ROW_GAP: f64 = 84.0;
const LABEL_HEIGHT: f64 = 22.0;
/// Arrows keep so far away from cards that they do not belong to.
const CLEARANCE: f64 = 4.0;
/// Operations on one card.
const OPS_MAX: usize = 8;
const LINE_CHARACTERS_MAX: usize = 36;
/// Arrows of derivations that a picture shows.
const ARROWS_MAX: usize = 120;

/// A point, to the right and down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A picture.
pub(crate) struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) cards: Vec<Card>,
    pub(crate) arrows: Vec<Arrow>,
}

/// A transaction.
pub(crate) struct Card {
    /// Its place in the scenario.
    pub(crate) txn: usize,
    pub(crate) role: Role,
    pub(crate) area: Area,
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) lines: Vec<CardLine>,
}

/// One operation on a card.
pub(crate) struct CardLine {
    pub(crate) text: String,
    pub(crate) is_involved: bool,
}

/// A dependency.
pub(crate) struct Arrow {
    /// Its place: that of the edge, then that within its derivation, as `0.2.1`.
    pub(crate) path: String,
    /// How deep in a derivation; 0 is the cycle itself.
    pub(crate) depth: usize,
    pub(crate) kind: &'static str,
    pub(crate) is_assumed: bool,
    /// `A before B: …`.
    pub(crate) meaning: String,
    pub(crate) label: String,
    /// Start, two points that bend it, end.
    pub(crate) curve: [Point; 4],
    pub(crate) label_area: Area,
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    fn center(&self) -> Point {
        Point { x: self.x + self.width / 2.0, y: self.y + self.height / 2.0 }
    }

    /// Whether a point is in the rectangle or almost.
    fn is_near(&self, point: Point) -> bool {
        let (x, y) = (point.x - self.x, point.y - self.y);
        (-CLEARANCE..=self.width + CLEARANCE).contains(&x)
            && (-CLEARANCE..=self.height + CLEARANCE).contains(&y)
    }

    /// Whether two rectangles have something in common.
    pub(crate) fn overlaps(&self, other: &Area) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }
}

impl Drawing {
    /// The picture of a cycle of a scenario: its own, or that of one of its cases.
    pub(crate) fn new(scenario: &Scenario, edges: &[ScenarioEdge]) -> Drawing {
        let on_cycle = around(scenario, edges);
        let shown = shown(edges);
        let beside = beside(scenario, &shown, &on_cycle);
        let card = |&txn: &usize| Card::new(txn, &scenario.transactions[txn]);
        let mut cards: Vec<Card> = on_cycle.iter().map(card).collect();
        cards.extend(beside.iter().map(card));
        let labels = edges.iter().map(|edge| label_width(&label(edge)));
        let gap = labels.fold(90.0, f64::max) + 56.0;
        let (width, height) = place(&mut cards, on_cycle.len(), gap, !edges.is_empty());
        let mut drawing = Drawing { width, height, cards, arrows: Vec::new() };
        drawing.draw_cycle(scenario, edges);
        drawing.draw_derivations(scenario, &shown);
        drawing.fit();
        drawing
    }

    fn area_of(&self, txn: usize) -> Option<Area> {
        self.cards.iter().find(|card| card.txn == txn).map(|card| card.area)
    }

    fn draw_cycle(&mut self, scenario: &Scenario, edges: &[ScenarioEdge]) {
        for (place, edge) in edges.iter().enumerate() {
            let (Some(from), Some(to)) = (self.area_of(edge.from), self.area_of(edge.to)) else {
                continue;
            };
            let pair = edges.len() == 2 && edge.from != edge.to;
            let straight =
                if pair { beside_each_other(from, to, place) } else { between(from, to, 0) };
            let curve = self.around_others(straight, (edge.from, edge.to), 0);
            let arrow = Arrow::new(scenario, edge, (place.to_string(), 0), curve);
            self.add(arrow);
        }
    }

    fn draw_derivations(&mut self, scenario: &Scenario, shown: &[Shown<'_>]) {
        for Shown { path, depth, edge } in shown.iter().filter(|it| it.depth > 0) {
            let areas = (self.area_of(edge.from), self.area_of(edge.to));
            if let (Some(from), Some(to)) = areas {
                let spread = self.arrows.len();
                let straight = between(from, to, spread);
                let curve = self.around_others(straight, (edge.from, edge.to), spread);
                let arrow = Arrow::new(scenario, edge, (path.clone(), *depth), curve);
                self.add(arrow);
            }
        }
    }

    /// Leaves out arrows that say what another one says. The page needs them: each belongs to
    /// a step that can be opened.
    pub(crate) fn say_once(&mut self) {
        let mut said: BTreeSet<String> = BTreeSet::new();
        self.arrows.retain(|arrow| said.insert(arrow.meaning.clone()));
    }

    /// The curve, or another one with the same ends if it crosses cards that it does not belong
    /// to: the first of those that cross the fewest.
    fn around_others(
        &self,
        straight: [Point; 4],
        (from, to): (usize, usize),
        spread: usize,
    ) -> [Point; 4] {
        let others: Vec<Area> = (self.cards.iter())
            .filter(|card| card.txn != from && card.txn != to)
            .map(|card| card.area)
            .collect();
        let crossed = |curve: &[Point; 4]| {
            others.iter().filter(|area| points_on(curve).any(|point| area.is_near(point))).count()
        };
        let (Some(from), Some(to)) = (self.area_of(from), self.area_of(to)) else {
            return straight;
        };
        if crossed(&straight) == 0 {
            return straight;
        }
        let detours = detours(from, to, &others, spread);
        let free = detours.iter().find(|&curve| crossed(curve) == 0);
        let fewest = || detours.iter().chain([&straight]).min_by_key(|&curve| crossed(curve));
        free.or_else(fewest).copied().unwrap_or(straight)
    }

    /// Moves the label along its arrow to where it covers nothing, if there is such a place.
    fn add(&mut self, mut arrow: Arrow) {
        let taken = |area: &Area| {
            self.arrows.iter().any(|other| other.label_area.overlaps(area))
                || self.cards.iter().any(|card| card.area.overlaps(area))
        };
        let places = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82];
        let areas = places.map(|place| arrow.label_at(place));
        let free = areas.iter().find(|area| !taken(area)).copied();
        let below = |steps: u8| {
            let area = areas[0];
            Area { y: area.y + f64::from(steps) * (LABEL_HEIGHT + 2.0), ..area }
        };
        let moved = || (1..60).map(below).find(|area| !taken(area));
        arrow.label_area = free.or_else(moved).unwrap_or(areas[0]);
        self.arrows.push(arrow);
    }

    /// Grows the picture so that arrows and labels that leave it are inside.
    fn fit(&mut self) {
        let points = self.arrows.iter().flat_map(|arrow| {
            let label = arrow.label_area;
            let end = Point { x: label.x + label.width, y: label.y + label.height };
            points_on(&arrow.curve).chain([Point { x: label.x, y: label.y }, end])
        });
        let (mut left, mut top, mut right, mut bottom) =
            (0.0_f64, 0.0_f64, self.width, self.height);
        for point in points {
            left = left.min(point.x - MARGIN / 2.0);
            top = top.min(point.y - MARGIN / 2.0);
            right = right.max(point.x + MARGIN / 2.0);
            bottom = bottom.max(point.y + MARGIN / 2.0);
        }
        for card in &mut self.cards {
            card.area.x -= left;
            card.area.y -= top;
        }
        for arrow in &mut self.arrows {
            arrow.label_area.x -= left;
            arrow.label_area.y -= top;
            for point in &mut arrow.curve {
                point.x -= left;
                point.y -= top;
            }
        }
        (self.width, self.height) = (right - left, bottom - top);
    }
}

/// An edge that is drawn.
pub(crate) struct Shown<'a> {
    /// See [`Arrow::path`].
    path: String,
    /// See [`Arrow::depth`].
    pub(crate) depth: usize,
    pub(crate) edge: &'a ScenarioEdge,
}

/// The edges that a picture of a cycle has: its own, and what they follow from as far as there
/// is room. What is told apart is not among them.
pub(crate) fn shown(edges: &[ScenarioEdge]) -> Vec<Shown<'_>> {
    let own = |(place, edge): (usize, _)| Shown { path: place.to_string(), depth: 0, edge };
    let mut open: Vec<Shown<'_>> = edges.iter().enumerate().map(own).rev().collect();
    let mut room = ARROWS_MAX.saturating_sub(edges.len());
    let mut shown = Vec::new();
    while let Some(it) = open.pop() {
        for (place, step) in it.edge.because.iter().enumerate().rev() {
            let path = format!("{}.{place}", it.path);
            open.push(Shown { path, depth: it.depth + 1, edge: step });
        }
        if it.depth > 0 && room == 0 {
            continue;
        }
        room -= usize::from(it.depth > 0);
        shown.push(it);
    }
    shown
}

/// The transactions of the picture of a cycle, those on the cycle first.
pub(crate) fn drawn(scenario: &Scenario, edges: &[ScenarioEdge]) -> Vec<usize> {
    let mut drawn = around(scenario, edges);
    drawn.extend(beside(scenario, &shown(edges), &drawn));
    drawn
}

/// How many transactions of a scenario none of its pictures has, in words for below them.
pub(crate) fn not_drawn(scenario: &Scenario) -> Option<String> {
    let pictures = cycles(scenario).into_iter();
    let drawn: BTreeSet<usize> = pictures.flat_map(|(_, edges)| drawn(scenario, edges)).collect();
    match scenario.transactions.len() - drawn.len() {
        0 => None,
        1 => Some("1 more transaction: in the text".to_owned()),
        more => Some(format!("{more} more transactions: in the text")),
    }
}

/// The transactions on the cycle in its order; those whose operations are the proof, if there
/// is no cycle.
fn around(scenario: &Scenario, edges: &[ScenarioEdge]) -> Vec<usize> {
    let all = 0..scenario.transactions.len();
    let mut found: Vec<usize> = Vec::new();
    let starts = edges.iter().map(|edge| edge.from).filter(|txn| all.contains(txn));
    for txn in starts {
        if !found.contains(&txn) {
            found.push(txn);
        }
    }
    if edges.is_empty() {
        found = all.filter(|&txn| scenario.transactions[txn].role == Role::Cycle).collect();
    }
    found
}

/// Transactions that only derivations of these edges speak of. Those whose operations an edge
/// rests on are among them, unless what it follows from is told elsewhere: they would stand
/// there without an arrow.
fn beside(scenario: &Scenario, shown: &[Shown<'_>], on_cycle: &[usize]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for Shown { edge, .. } in shown {
        let is_elsewhere = edge.because.is_empty() && (edge.fact.or(edge.left_out)).is_some();
        let reads = edge.operations.iter().filter(|_| !is_elsewhere).map(|op| op.transaction);
        for txn in [edge.from, edge.to].into_iter().chain(reads) {
            if txn < scenario.transactions.len()
                && !on_cycle.contains(&txn)
                && !found.contains(&txn)
            {
                found.push(txn);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Gives every card its place; returns the size of the whole.
fn place(cards: &mut [Card], on_cycle: usize, gap: f64, has_arrows: bool) -> (f64, f64) {
    let widest = cards.iter().map(|card| card.area.width).fold(0.0, f64::max);
    let upper = if on_cycle <= 2 { on_cycle } else { on_cycle.div_ceil(2) };
    let columns = upper.max(1);
    let gap = if has_arrows { gap } else { 24.0 };
    let step = widest + gap;
    let whole = step * columns as f64 - gap;
    let rows: Vec<(std::ops::Range<usize>, bool)> = {
        let mut rows = vec![(0..upper, false), (upper..on_cycle, true)];
        let mut start = on_cycle;
        while start < cards.len() {
            let end = (start + columns.max(2)).min(cards.len());
            rows.push((start..end, false));
            start = end;
        }
        rows
    };
    // Two rows of evidence may be wider than a cycle of one.
    let whole = whole.max(if cards.len() > on_cycle + 1 { step * 2.0 - gap } else { whole });
    let mut y = MARGIN;
    for (range, reversed) in rows.into_iter().filter(|(range, _)| !range.is_empty()) {
        let count = range.len();
        let row = &mut cards[range];
        let tallest = row.iter().map(|card| card.area.height).fold(0.0, f64::max);
        let start = MARGIN + (whole - (step * count as f64 - gap)) / 2.0;
        for (column, card) in row.iter_mut().enumerate() {
            let column = if reversed { count - 1 - column } else { column };
            card.area.x = start + step * column as f64 + (widest - card.area.width) / 2.0;
            card.area.y = y + (tallest - card.area.height) / 2.0;
        }
        y += tallest + ROW_GAP;
    }
    (whole + 2.0 * MARGIN, y - ROW_GAP + MARGIN)
}

impl Card {
    fn new(txn: usize, it: &ScenarioTxn) -> Card {
        let mut room =
            OPS_MAX.saturating_sub(it.operations.iter().filter(|op| op.involved).count());
        let mut lines = Vec::new();
        let mut left_out = it.operations_left_out;
        for op in &it.operations {
            if op.involved || room > 0 {
                room -= usize::from(!op.involved);
                let text = cut(&operation(op), LINE_CHARACTERS_MAX);
                lines.push(CardLine { text, is_involved: op.involved });
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            lines.push(CardLine { text: format!("… {left_out} more"), is_involved: false });
        }
        let title = cut(&it.name, LINE_CHARACTERS_MAX);
        let subtitle = match it.role {
            Role::Initial => "before everything".to_owned(),
            _ if it.session.is_empty() || it.session == it.name => it.outcome.clone(),
            _ => cut(&format!("session {}, {}", it.session, it.outcome), LINE_CHARACTERS_MAX + 4),
        };
        let characters = (lines.iter().map(|line| line.text.chars().count()))
            .chain([title.chars().count() + 2, subtitle.chars().count()])
            .max()
            .unwrap_or(0);
        let width = (characters as f64 * CHARACTER + 28.0).max(130.0);
        let height = 46.0 + LINE * lines.len() as f64 + if lines.is_empty() { 0.0 } else { 12.0 };
        let area = Area { x: 0.0, y: 0.0, width, height };
        Card { txn, role: it.role, area, title, subtitle, lines }
    }
}

impl Arrow {
    fn new(
        scenario: &Scenario,
        edge: &ScenarioEdge,
        (path, depth): (String, usize),
        curve: [Point; 4],
    ) -> Arrow {
        let name = |txn: usize| scenario.transactions.get(txn).map_or("", |it| it.name.as_str());
        let mut arrow = Arrow {
            path,
            depth,
            kind: edge.kind.name(),
            is_assumed: edge.assumed,
            meaning: format!(
                "{} before {}: {}",
                name(edge.from),
                name(edge.to),
                edge.explanation.replace('\n', "; ")
            ),
            label: label(edge),
            curve,
            label_area: Area { x: 0.0, y: 0.0, width: 0.0, height: LABEL_HEIGHT },
        };
        arrow.label_area = arrow.label_at(0.5);
        arrow
    }

    /// The label's rectangle if it lies so far along the arrow.
    fn label_at(&self, place: f64) -> Area {
        let Point { x, y } = point_at(&self.curve, place);
        let width = label_width(&self.label);
        Area { x: x - width / 2.0, y: y - LABEL_HEIGHT / 2.0, width, height: LABEL_HEIGHT }
    }
}

fn label_width(label: &str) -> f64 {
    label.chars().count() as f64 * CHARACTER + 16.0
}

/// What an arrow says: the kind of dependency, and the key.
fn label(edge: &ScenarioEdge) -> String {
    const KEY_CHARACTERS_MAX: usize = 16;
    let kind = match (edge.assumed, edge.kind.name()) {
        (true, "assumed") => "assumed".to_owned(),
        (true, kind) => format!("{kind}?"),
        (false, kind) => kind.to_owned(),
    };
    match &edge.key {
        Some(key) => format!("{kind} {}", cut(key, KEY_CHARACTERS_MAX)),
        None => kind,
    }
}

/// An operation on one line.
pub(crate) fn operation(op: &ScenarioOp) -> String {
    let key = op.key.as_deref().unwrap_or("");
    if let Some(words) = &op.words {
        return words.clone();
    }
    match op.kind.as_str() {
        "read" | "read-list" => format!("read {key} = {}", op.value),
        "read-other" => format!("read {key} ≠ {}", op.value),
        "append" => format!("append {} to {key}", op.value),
        "delete" => format!("delete {key}"),
        "predicate-read" => format!("select {}", rows(op)),
        "predicate-update" => format!("update {}", rows(op)),
        kind => format!("{kind} {key} = {}", op.value),
    }
}

fn rows(op: &ScenarioOp) -> String {
    let found: Vec<String> = (op.rows.iter().filter(|row| row.matched))
        .map(|row| format!("{} = {}", row.key, row.value))
        .collect();
    format!("{}: {}", op.value, if found.is_empty() { "nothing".into() } else { found.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::EdgeKind;

    /// A cycle of so many transactions, each edge of which follows from a reader beside it.
    fn cycle(length: usize) -> Scenario {
        let op = |key: &str| ScenarioOp {
            kind: "read".into(),
            key: Some(key.into()),
            value: "1".into(),
            involved: true,
            ..ScenarioOp::default()
        };
        let txn = |name: String, role| ScenarioTxn {
            session: name.clone(),
            name,
            role,
            outcome: "committed".into(),
            operations: vec![op("x"), op("a-rather-long-key")],
            ..ScenarioTxn::default()
        };
        let edge = |from, to, because| ScenarioEdge {
            from,
            to,
            kind: EdgeKind::Rw,
            key: Some("a-rather-long-key".into()),
            because,
            ..ScenarioEdge::default()
        };
        let mut transactions: Vec<ScenarioTxn> =
            (0..length).map(|place| txn(format!("T{place}"), Role::Cycle)).collect();
        transactions.push(txn("reader".into(), Role::Evidence));
        let edges = (0..length).map(|from| {
            let because = vec![edge(from, length, Vec::new()), edge(length, from, Vec::new())];
            edge(from, (from + 1) % length, because)
        });
        Scenario { edges: edges.collect(), transactions, ..Scenario::default() }
    }

    #[test]
    fn cards_and_labels_cover_nothing() {
        for length in 1..=12 {
            let scenario = cycle(length);
            let drawing = Drawing::new(&scenario, &scenario.edges);
            let cards = drawing.cards.iter().map(|card| card.area);
            let labels = drawing.arrows.iter().map(|arrow| arrow.label_area);
            let areas: Vec<Area> = cards.chain(labels).collect();
            assert_eq!(areas.len(), (length + 1) + 3 * length, "length {length}");
            for (place, area) in areas.iter().enumerate() {
                let inside = area.x >= 0.0
                    && area.y >= 0.0
                    && area.x + area.width <= drawing.width
                    && area.y + area.height <= drawing.height;
                assert!(inside, "length {length}: {area:?}");
                for other in &areas[place + 1..] {
                    assert!(!area.overlaps(other), "length {length}: {area:?} {other:?}");
                }
            }
        }
    }

    /// Rows of evidence below the cycle, and derivations between any two transactions.
    #[test]
    fn arrows_cross_no_card_that_they_do_not_belong_to() {
        for length in 2..=6 {
            let mut scenario = cycle(length);
            let reader = scenario.transactions[length].clone();
            scenario.transactions.extend([reader.clone(), reader.clone(), reader]);
            let count = scenario.transactions.len();
            for place in 0..length {
                let template = scenario.edges[place].because[0].clone();
                let step = |to: usize| ScenarioEdge { from: place, to, ..template.clone() };
                scenario.edges[place].because = (length..count).map(step).collect();
            }
            let drawing = Drawing::new(&scenario, &scenario.edges);
            for arrow in &drawing.arrows {
                let ends: Vec<usize> = drawing
                    .cards
                    .iter()
                    .filter(|card| touches(card, arrow))
                    .map(|it| it.txn)
                    .collect();
                assert!(ends.len() <= 2, "length {length}: {} crosses {ends:?}", arrow.path);
            }
        }
    }

    fn touches(card: &Card, arrow: &Arrow) -> bool {
        points_on(&arrow.curve).any(|point| card.area.is_near(point))
    }

    #[test]
    fn operations_that_are_the_proof_stand_without_arrows() {
        let mut scenario = cycle(2);
        scenario.edges.clear();
        let drawing = Drawing::new(&scenario, &scenario.edges);
        let shown: Vec<usize> = drawing.cards.iter().map(|card| card.txn).collect();
        assert_eq!((shown, drawing.arrows.len()), (vec![0, 1], 0));
    }
}
