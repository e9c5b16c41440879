//! Counterexamples as SVG, laid out here, so that nothing needs to be installed.
//!
//! The same picture stands in the page, where its parts can be chosen: cards have their
//! transaction in `data-txn`, arrows their edge in `data-edge` and their labels in `data-label`.

#![expect(clippy::cast_precision_loss, reason = "pictures are not exact")]

use crate::counterexample::Counterexample;
use crate::drawing::{Arrow, Card, Drawing, not_drawn};
use crate::escape::xml;
use crate::scenario::{Role, Scenario, ScenarioEdge};
use std::fmt::Write;

/// How pictures look, in the page and by themselves.
pub(crate) const STYLE: &str = include_str!("../web/graph.css");

/// Room for a line below a picture.
const NOTE_HEIGHT: f64 = 28.0;

/// The pictures of all counterexamples of a report, one below the other.
pub(crate) fn to_svg(counterexamples: &[Counterexample<'_>]) -> String {
    let mut parts: Vec<(String, Drawing, Option<String>)> = Vec::new();
    for counterexample in counterexamples {
        let scenario = counterexample.scenario;
        for (title, edges) in cycles(scenario) {
            let name = &counterexample.title;
            let heading = if title.is_empty() { name.clone() } else { format!("{name}: {title}") };
            let mut drawing = Drawing::new(scenario, edges);
            drawing.say_once();
            parts.push((heading, drawing, None));
        }
        if let Some((_, drawing, note)) = parts.last_mut() {
            *note = not_drawn(scenario);
            drawing.height += if note.is_some() { NOTE_HEIGHT } else { 0.0 };
        }
    }
    let width = parts.iter().map(|(_, drawing, _)| drawing.width).fold(420.0, f64::max);
    let height: f64 = parts.iter().map(|(_, drawing, _)| drawing.height + 40.0).sum();
    let height = height.max(60.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" width=\"{width:.0}\" \
         height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
         <style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
    );
    if parts.is_empty() {
        out.push_str("<text class=\"heading\" x=\"24\" y=\"36\">no violation was found</text>\n");
    }
    let mut top = 0.0;
    for (number, (heading, drawing, note)) in parts.iter().enumerate() {
        let text = xml(heading);
        writeln!(out, "<text class=\"heading\" x=\"24\" y=\"{:.0}\">{text}</text>", top + 28.0)
            .expect("a string grows");
        writeln!(out, "<g transform=\"translate(0 {:.0})\">", top + 40.0).expect("a string grows");
        parts_of(&mut out, drawing, &format!("p{number}"));
        out.push_str("</g>\n");
        top += drawing.height + 40.0;
        if let Some(note) = note {
            let (text, y) = (xml(note), top - NOTE_HEIGHT / 2.0);
            writeln!(out, "<text class=\"session\" x=\"24\" y=\"{y:.0}\">{text}</text>")
                .expect("a string grows");
        }
    }
    out.push_str("</svg>\n");
    out
}

/// One picture for the page, whose style sheet has [`STYLE`].
pub(crate) fn inline(scenario: &Scenario, edges: &[ScenarioEdge], id: &str) -> String {
    let drawing = Drawing::new(scenario, edges);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" viewBox=\"0 0 {w:.0} {h:.0}\" \
         width=\"{w:.0}\" height=\"{h:.0}\" role=\"group\" aria-label=\"counterexample\">\n",
        w = drawing.width,
        h = drawing.height
    );
    parts_of(&mut out, &drawing, id);
    out.push_str("</svg>\n");
    out
}

/// The cycles of a scenario, each with its assumption; one without edges if operations alone
/// are the proof.
pub(crate) fn cycles(scenario: &Scenario) -> Vec<(&str, &[ScenarioEdge])> {
    if scenario.cases.is_empty() {
        return vec![("", &scenario.edges)];
    }
    let cases = scenario.cases.iter();
    cases.map(|case| (case.assumption.as_str(), case.edges.as_slice())).collect()
}

fn parts_of(out: &mut String, drawing: &Drawing, id: &str) {
    let mut kinds: Vec<&str> = drawing.arrows.iter().map(|arrow| arrow.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    out.push_str("<defs>");
    for kind in kinds {
        write!(
            out,
            "<marker id=\"{id}-{kind}\" class=\"{kind}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" \
             markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 10 5 0 10z\"/>\
             </marker>"
        )
        .expect("a string grows");
    }
    out.push_str("</defs>\n");
    // Arrows of the cycle lie above those of derivations, and no arrow crosses what is written.
    for arrow in drawing.arrows.iter().rev() {
        draw_arrow(out, arrow, id);
    }
    for card in &drawing.cards {
        draw_card(out, card);
    }
    for arrow in drawing.arrows.iter().rev() {
        draw_label(out, arrow);
    }
}

fn draw_card(out: &mut String, card: &Card) {
    let role = match card.role {
        Role::Cycle => "cycle",
        Role::Evidence => "evidence",
        Role::Initial => "initial",
    };
    let area = card.area;
    let (title, subtitle) = (xml(&card.title), xml(&card.subtitle));
    write!(
        out,
        "<g class=\"card {role}\" data-txn=\"{}\" transform=\"translate({:.1} {:.1})\">\
         <rect width=\"{:.1}\" height=\"{:.1}\" rx=\"9\"/>\
         <text class=\"name\" x=\"14\" y=\"22\">{title}</text>\
         <text class=\"session\" x=\"14\" y=\"38\">{subtitle}</text>",
        card.txn, area.x, area.y, area.width, area.height
    )
    .expect("a string grows");
    if !card.lines.is_empty() {
        write!(out, "<path class=\"rule\" d=\"M0 46.5H{:.1}\"/>", area.width)
            .expect("a string grows");
    }
    for (place, line) in card.lines.iter().enumerate() {
        let class = if line.is_involved { "op involved" } else { "op" };
        let (text, y) = (xml(&line.text), 64.0 + 17.0 * place as f64);
        write!(out, "<text class=\"{class}\" x=\"14\" y=\"{y:.0}\">{text}</text>")
            .expect("a string grows");
    }
    out.push_str("</g>\n");
}

fn draw_arrow(out: &mut String, arrow: &Arrow, id: &str) {
    let [start, first, second, end] = arrow.curve;
    let meaning = xml(&arrow.meaning);
    writeln!(
        out,
        "<g class=\"arrow {class}\" data-edge=\"{path}\" aria-label=\"{meaning}\">\
         <title>{meaning}</title>\
         <path class=\"reach\" d=\"{curve}\"/>\
         <path class=\"line\" d=\"{curve}\" marker-end=\"url(#{id}-{kind})\"/></g>",
        class = classes(arrow),
        kind = arrow.kind,
        path = arrow.path,
        curve = format_args!(
            "M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            start.x, start.y, first.x, first.y, second.x, second.y, end.x, end.y
        ),
    )
    .expect("a string grows");
}

/// What an arrow and its label have in common.
fn classes(arrow: &Arrow) -> String {
    let assumed = if arrow.is_assumed { " assumed" } else { "" };
    let derived = if arrow.depth > 0 { " derived" } else { "" };
    format!("{}{assumed}{derived}", arrow.kind)
}

fn draw_label(out: &mut String, arrow: &Arrow) {
    let (label, meaning) = (xml(&arrow.label), xml(&arrow.meaning));
    let area = arrow.label_area;
    writeln!(
        out,
        "<g class=\"label {class}\" data-label=\"{path}\"><title>{meaning}</title>\
         <rect class=\"tag\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"11\"/>\
         <text class=\"tag\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text></g>",
        area.x,
        area.y,
        area.width,
        area.height,
        area.x + area.width / 2.0,
        area.y + area.height / 2.0 + 4.0,
        class = classes(arrow),
        path = arrow.path,
    )
    .expect("a string grows");
}
