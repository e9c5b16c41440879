//! One claim, held against a small history.

use isolde_certificate::{Certificate, Extent, Fingerprint, Refused, read, verify};
use isolde_history::Source;
use isolde_history::format::parse_text;

/// What the verifier says to a proof of one level.
pub(crate) fn verdict(history: &str, claim: &str, proof: &str) -> Result<Extent, String> {
    let (_, level) = claim.split_once(' ').expect("a verdict and a level");
    verdict_for(level, history, claim, proof)
}

/// The same where other levels are said to be settled.
pub(crate) fn verdict_for(
    levels: &str,
    history: &str,
    claim: &str,
    proof: &str,
) -> Result<Extent, String> {
    let history = parse_text(history).unwrap_or_else(|error| panic!("{error}\n{history}"));
    let Fingerprint { hash, sessions, transactions, operations } = Fingerprint::of(&history);
    let text = format!(
        "isolde-certificate 2\nhistory {hash:032x} sessions {sessions} transactions {transactions} \
         operations {operations}\nclaims 1\nclaim {claim}\nlevels {levels}\n{proof}\nend\n"
    );
    let certificate: Certificate =
        read(&mut Source::from_bytes("c", text.as_bytes())).map_err(|error| error.to_string())?;
    let mut results = verify(&certificate, &history).expect("the same history");
    results.remove(0).map_err(|Refused(why)| why)
}
