//! What the target of explanations does with its bytes: decide a small history, and hold what is
//! said of it against the definitions.
//!
//! No verdict differs from that of the reference. The smallest part of a violation violates the
//! level too, the proofs are accepted, and every form of the report can be made.

use crate::structured::{self, Choices};
use isolde::reference::{Reference, decide_all};
use isolde::{Check, Level, Limits, Options, Verdict, explain, shrink};
use isolde_history::format::parse_text;
use isolde_history::{History, Index};

/// The reference tries every order.
const TXNS_MAX: usize = 5;

/// Takes bytes for a history and explains it.
pub fn explained(bytes: &[u8]) {
    let text = structured::history(&mut Choices(bytes), TXNS_MAX);
    let history = parse_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let index = Index::new(&history);
    let limits = Limits::NONE;
    let mut checking = Check::new(&history, &index, &limits);
    let levels = Level::ALL;
    for (level, defined) in decide_all(&history) {
        let verdict = checking.decide(level);
        let is_opposite = match (&verdict, &defined) {
            (Verdict::Satisfied(_), reference) => *reference == Reference::Violated,
            (Verdict::Violated(_), reference) => *reference == Reference::Satisfied,
            (Verdict::Unknown(_), _) => false,
        };
        assert!(!is_opposite, "{level}: {} and {defined:?}\n{text}", verdict.name());
        let Verdict::Violated(violated) = verdict else { continue };
        let found = explain((&history, &index), level, &violated, Options::default(), &limits);
        assert!(found.is_none_or(|it| it.rules_out.contains(&it.shown_at)), "{level}\n{text}");
        let whole = (&history, &index);
        let part = shrink(whole, level, &violated, Options::default(), &limits, &|_| {});
        is_violated(&part.history, level, &text);
    }
    let certified = checking.certify(&levels).certificate;
    let accepted = isolde_certificate::verify(&certified, &history).expect("the same history");
    for (claim, result) in certified.claims.iter().zip(accepted) {
        assert!(result.is_ok(), "{:?}: {:?}\n{text}", claim.levels, result.err());
    }
}

fn is_violated(part: &History, level: Level, text: &str) {
    let verdicts = decide_all(part);
    let (_, verdict) = verdicts.iter().find(|(of, _)| *of == level).expect("all levels");
    assert!(*verdict != Reference::Satisfied, "{level}: the smallest part satisfies it\n{text}");
}
