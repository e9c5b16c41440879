//! What the target of reports does with its bytes: make every form of a report of a history, and a
//! page of a report that somebody changed.

use crate::structured::{self, Choices};
use isolde::{Check, Level, Limits, Options, Verdict, counterexamples};
use isolde_history::Index;
use isolde_history::format::parse_text;
use isolde_report::{Findings, OUTPUTS, Page, Report, Which, to_explanations, to_json};
use serde_json::{Value, json};

const TXNS_MAX: usize = 6;

/// Takes bytes for a history and for changes of its report.
pub fn reported(bytes: &[u8]) {
    let mut choices = Choices(bytes);
    let text = structured::history(&mut choices, TXNS_MAX);
    let history = parse_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let index = Index::new(&history);
    let limits = Limits::NONE;
    let mut checking = Check::new(&history, &index, &limits);
    let decided: Vec<(Level, Verdict, f64)> =
        Level::ALL.iter().map(|&level| (level, checking.decide(level), 0.0)).collect();
    let names = ("<file>\u{1b}[31m", "text");
    let options = Options::default();
    let verdicts = decided.iter().map(|it| (it.0, &it.1));
    let shown = counterexamples((&history, &index), verdicts, options, &limits, &|_| ());
    let by_reading = checking.found();
    let findings = Findings { decided: &decided, counterexamples: &shown, by_reading, options };
    let report = Report::new(&history, &index, names, &findings);
    to_explanations(&report, Which::All);
    for output in OUTPUTS {
        let rendered = output.render(&report);
        assert!(!rendered.contains('\u{1b}'), "{}: {rendered}", output.name);
    }
    let mut json: Value = serde_json::from_str(&to_json(&report)).expect("JSON of ours");
    let page = Page { report: &json, history: Some((&history, &index)), run: None };
    let html = page.to_html().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(!html.contains("<file>"), "{text}");
    // Whatever somebody made of it is a page or refused, also beside a history that it is not of.
    while choices.are_left() {
        change(&mut json, &mut choices);
        let _ =
            Page { report: &json, history: Some((&history, &index)), run: Some(&json) }.to_html();
        let _ = Page { report: &json, history: None, run: None }.to_html();
    }
}

/// Replaces something in it, somewhere.
fn change(json: &mut Value, choices: &mut Choices<'_>) {
    let stays = choices.below(6) == 0;
    match json {
        Value::Array(values) if !values.is_empty() && !stays => {
            let place = choices.below(values.len());
            change(&mut values[place], choices);
        }
        Value::Object(fields) if !fields.is_empty() && !stays => {
            let place = choices.below(fields.len());
            let field = fields.values_mut().nth(place).expect("one of them");
            change(field, choices);
        }
        other => {
            let values = [
                json!(null),
                json!(u64::MAX),
                json!(-1),
                json!(1e300),
                json!("</script><b>"),
                json!([]),
                json!({}),
                json!([[0]]),
            ];
            *other = choices.of(&values);
        }
    }
}
