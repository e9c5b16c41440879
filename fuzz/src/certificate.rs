//! What the target of the verifier does with its bytes: take them for a certificate.
//!
//! What can be read is held against small histories whose verdicts the definitions know,
//! whatever history it says it is about. An accepted proof of the opposite is a finding.

use isolde::Level;
use isolde::reference::{Reference, decide_all};
use isolde_certificate::{Certificate, Fingerprint, Proof};
use isolde_history::format::parse_text;
use isolde_history::{History, Place, Source};
use std::sync::OnceLock;

/// Registers, lists, rows, unknown outcomes, repeated values, times and given orders.
const HISTORIES: &[&str] = &[
    "A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\n",
    "A: w(x,1) w(y,1)\nB: r(x,1) r(y,nil)\nB: w(x,2) unknown\nC: r(x,2)\n",
    "A @1..2: w(x,1)\nB @3..4: r(x,nil) w(x,2)\nA @5..6: r(x,1)\n",
    "A: a(l,1) a(m,1)\nB: a(l,2) a(m,2)\nC: r(l,[1 2]) r(m,[2])\n",
    "A: w(x,1)\nB: w(x,1) w(y,2)\nC: r(x,1) r(y,nil)\nD: p(all; x=1; y=nil)\n",
    "A: w(x,1) w(y,1)\nB: w(x,2) w(y,2)\nC: r(x,1) r(y,2)\norder x: 1 2\n",
    "A: a(l,1) a(m,1)\nB: a(l,1) a(n,1) unknown\nC: r(l,[1]) r(m,[])\n",
];

type Verdicts = [(Level, Reference); Level::ALL.len()];

/// Takes bytes for a certificate.
pub fn verify(bytes: &[u8]) {
    static KNOWN: OnceLock<Vec<(History, Verdicts)>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let history = |text: &&str| parse_text(text).expect("a history");
        HISTORIES
            .iter()
            .map(history)
            .map(|it| {
                let verdicts = decide_all(&it);
                (it, verdicts)
            })
            .collect()
    });
    let mut certificate = match isolde_certificate::read(&mut Source::from_bytes("file", bytes)) {
        Ok(certificate) => certificate,
        Err(error) => return assert!(error.place != Place::Whole, "no place: {error}"),
    };
    for (history, verdicts) in known {
        certificate.history = Fingerprint::of(history);
        check(&certificate, history, verdicts);
    }
}

fn check(certificate: &Certificate, history: &History, verdicts: &Verdicts) {
    let results = isolde_certificate::verify(certificate, history).expect("the same history");
    for (claim, result) in certificate.claims.iter().zip(results) {
        let opposite = match claim.proof {
            _ if result.is_err() => continue,
            Proof::Witness(_) => Reference::Violated,
            Proof::Refutation(_) => Reference::Satisfied,
        };
        for (level, verdict) in verdicts {
            let is_claimed = claim.levels.iter().any(|name| name == level.name());
            assert!(!is_claimed || *verdict != opposite, "{level}: {claim:?}");
        }
    }
}
