//! The text of certificates: what is written is read back, and damage has a line.

use isolde_certificate::{
    Case, Cases, Certificate, ChosenOrigin, Claim, Clause, Derivation, End, Fingerprint, Link,
    Literal, Node, Open, Proof, Reading, ReadingKind, Refutation, Rule, Search, Step, StepId,
    Taken, Variable, Witness, read, write,
};
use isolde_history::{KeyId, OpId, Source, TxnId};

fn to_text(certificate: &Certificate) -> String {
    let mut bytes = Vec::new();
    write(certificate, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn from_text(text: &str) -> Result<Certificate, String> {
    read(&mut Source::from_bytes("c", text.as_bytes())).map_err(|error| error.to_string())
}

fn claim(shown_at: &str, proof: Proof) -> Claim {
    Claim { shown_at: shown_at.into(), levels: vec![shown_at.into(), "causal".into()], proof }
}

fn refutation(steps: Vec<Step>, end: End) -> Proof {
    Proof::Refutation(Refutation::Derivation(Derivation { steps, end }))
}

/// Every kind of line there is.
fn everything() -> Certificate {
    let (read, key, path) = (OpId(3), KeyId(4), vec![StepId(0), StepId(1)]);
    let rules = [
        Rule::Session,
        Rule::RealTime,
        Rule::InitialFirst,
        Rule::ReadsFrom { read, key },
        Rule::ListOrder { read, key },
        Rule::GivenOrder { key },
        Rule::InitialRead { read, key },
        Rule::Pair { key, path: path.clone() },
        Rule::Visible { read, key, path: path.clone() },
        Rule::AntiDependency { read, key, path: path.clone() },
    ];
    let steps: Vec<Step> = (rules.into_iter())
        .map(|rule| Step { from: Node::begin(TxnId(7)), to: Node::INITIAL, rule })
        .collect();
    let (from, to) = (Node::commit(TxnId(0)), Node::begin(TxnId(12)));
    let origin = ChosenOrigin { read, key, writer: None };
    let variables = vec![
        Variable::Order { key, first: TxnId(1), second: TxnId(2) },
        Variable::Origin(origin),
        Variable::Origin(ChosenOrigin { writer: Some(TxnId(5)), ..origin }),
        Variable::Before { from, to },
    ];
    let literal = Literal::no(2);
    let clauses = vec![
        Clause::Cycle(vec![
            Link::Step(StepId(6)),
            Link::Literal { literal, from, to },
            Link::Overwritten { order: Literal::yes(0), origin: Literal::yes(1), from, to },
        ]),
        Clause::OneOrigin { read, key },
        Clause::SeenOrAfter { read, key, writer: TxnId(8), other: TxnId(9) },
        Clause::SeenTogether { one: origin, other: ChosenOrigin { writer: None, ..origin } },
        Clause::Lemma(vec![Literal::yes(0), literal]),
        Clause::Lemma(vec![]),
    ];
    let order: Vec<TxnId> = (0..40).map(TxnId).collect();
    let events = order.iter().flat_map(|&txn| [Node::begin(txn), Node::commit(txn)]).collect();
    let mut claims = vec![
        claim("serializable", Proof::Witness(Witness::Events(events))),
        claim("serializable", Proof::Witness(Witness::Events(vec![]))),
        claim(
            "causal",
            Proof::Witness(Witness::Commits {
                order,
                origins: vec![origin],
                appends: vec![OpId(4), OpId(2)],
            }),
        ),
        claim(
            "causal",
            Proof::Witness(Witness::Commits { order: vec![], origins: vec![], appends: vec![] }),
        ),
        claim("prefix", refutation(steps.clone(), End::Cycle(path))),
        claim("prefix", refutation(steps, End::Search(Search { variables, clauses }))),
    ];
    claims.extend(
        all_cases(read, key)
            .map(|cases| claim("causal", Proof::Refutation(Refutation::Cases(cases)))),
    );
    claims.extend(ReadingKind::ALL.map(|kind| {
        let reading = Reading { kind, key, ops: vec![read, OpId(9)] };
        claim("causal", Proof::Refutation(Refutation::Reading(reading)))
    }));
    let history = Fingerprint { hash: 15, sessions: 1, transactions: 40, operations: 80 };
    Certificate { history, clock_drift: 5_000_000, claims }
}

/// Everything that may be open, and every way to take it.
fn all_cases(read: OpId, key: KeyId) -> [Cases; 2] {
    let taken = |taken| Case {
        shown_at: "causal".into(),
        taken,
        refutation: Refutation::Orders(vec![KeyId(3), KeyId(5)]),
    };
    let elements =
        Cases { open: Open::Element(OpId(4)), cases: vec![taken(Taken::Append(OpId(4)))] };
    let within = Case { refutation: Refutation::Cases(elements), ..taken(Taken::CountsNot) };
    let outcome =
        Cases { open: Open::Outcome(TxnId(6)), cases: vec![taken(Taken::Counts), within] };
    let saw = [Taken::Writer(None), Taken::Writer(Some(TxnId(3))), Taken::Nowhere].map(taken);
    let origin = Cases { open: Open::Origin { read, key }, cases: saw.into() };
    [outcome, origin]
}

#[test]
fn what_is_written_is_read_back() {
    let text = to_text(&everything());
    assert_eq!(from_text(&text), Ok(everything()), "{text}");
}

#[test]
fn cases_are_not_read_in_cases_without_end() {
    let head = &to_text(&everything())[..];
    let head = &head[..head.find("claims").expect("a certificate")];
    let nested = |depth: usize| {
        let (open, close) = ("cases outcome 0\ncase causal counts\n", "no-other-case\n");
        let (open, close) = (open.repeat(depth), close.repeat(depth));
        let claim = "claims 1\nclaim violated causal\nlevels causal\n";
        from_text(&format!("{head}{claim}{open}orders 0\n{close}end\n"))
    };
    assert!(nested(64).is_ok());
    let error = nested(65).unwrap_err();
    assert!(error.contains("expected cases in at most 64 others"), "{error}");
}

#[test]
fn a_certificate_cut_anywhere_is_refused() {
    let text = to_text(&everything());
    let whole = text.trim_end();
    for length in 0..whole.len() {
        assert!(from_text(&whole[..length]).is_err(), "cut after {length} bytes");
    }
}

/// Any bytes are an error or a certificate; there is nothing to panic about.
#[test]
fn certificates_with_wrong_bytes_are_read_or_refused() {
    let text = to_text(&everything()).into_bytes();
    for place in 0..text.len() {
        for byte in [0, b'\n', b' ', b'0', b'9', b':', b'-', b'b', 0xff] {
            let mut damaged = text.clone();
            damaged[place] = byte;
            if let Err(error) = read(&mut Source::from_bytes("c", &damaged)) {
                assert!(error.to_string().starts_with("c: line "), "{error}");
            }
        }
    }
}

#[test]
fn damage_is_told_with_its_line() {
    let text = to_text(&everything());
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        from_text(&text.replacen(from, to, 1)).unwrap_err()
    };
    assert_eq!(
        with("certificate 2", "certificate 1"),
        "c: line 1: expected `isolde-certificate 2`, found `isolde-certificate 1`"
    );
    assert_eq!(
        with("sessions 1", "sessions -1"),
        "c: line 2: expected `history HASH sessions COUNT transactions COUNT operations COUNT`, \
         found `history 0000000000000000000000000000000f sessions -1 transac…`"
    );
    for drift in ["-1", "0", "9223372036854775808", "5 ms"] {
        assert_eq!(
            with("clock-drift 5000000", &format!("clock-drift {drift}")),
            format!(
                "c: line 3: expected `clock-drift NANOSECONDS`, more than 0, found `clock-drift \
                 {drift}`"
            )
        );
    }
    assert_eq!(
        with("claims 18", "claims 99999999999999999999"),
        "c: line 4: expected `claims COUNT`, found `claims 99999999999999999999`"
    );
    assert_eq!(
        with("claims 18", "claims 17"),
        "c: line 126: expected nothing after the last claim, found `claim violated causal`"
    );
    assert_eq!(
        with("claims 18", "claims 19"),
        "c: line 130: expected `claim satisfied LEVEL` or `claim violated LEVEL`, found the end of the file"
    );
    assert_eq!(
        with("events b0 c0", "events b0 x0"),
        "c: line 7: expected `events` and begins or commits, as `b0 c0`, found `events b0 x0 b1 c1 b2 c2 b3 c3 b4 c4 b5 c5 b6 c6 b7 c7`"
    );
    assert_eq!(
        with("origin 3 4 initial", "origin 3 4"),
        "c: line 22: expected `origin READ KEY WRITER`, found `origin 3 4`"
    );
}

#[test]
fn every_rule_and_kind_is_documented() {
    let page = include_str!("../../../docs/certificate.md");
    let rules = everything().claims.into_iter().flat_map(|claim| match claim.proof {
        Proof::Refutation(Refutation::Derivation(derivation)) => derivation.steps,
        _ => Vec::new(),
    });
    let mut names: Vec<&str> = ReadingKind::ALL.iter().map(|kind| kind.name()).collect();
    names.extend(rules.map(|step| step.rule.name()));
    names.retain(|name| !page.contains(&format!("`{name}")));
    assert_eq!(names, [""; 0]);
}
