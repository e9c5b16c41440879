//! Orders of all sessions: what is found, and how many configurations that takes.

use super::*;
use isolde_history::format::parse_text;

/// The order that is found, by sessions, or what else came of it; how many configurations
/// were looked at.
fn found(text: &str, real_time: Option<Time>, kept: usize) -> (String, usize) {
    let history = parse_text(text).expect("a well-formed history");
    let index = Index::new(&history);
    let problem = Problem::of(&history, &index, real_time).expect("reads and writes of values");
    let mut work = WORK_MAX;
    let (found, looked_at) = Walk::new(&problem, kept, &mut work, &Limits::NONE).all();
    let name = |txn| history.datum(history.session_label(history.session_of(txn))).to_string();
    let told = match found {
        Interleaved::Order(order) => order.into_iter().map(name).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    };
    (told, looked_at)
}

fn check(text: &str, expected: &str) {
    assert_eq!(found(text, None, KEPT_MAX).0, expected, "{text}");
}

#[test]
fn equal_values_of_two_writers_are_seen_in_turn() {
    let text = "A: w(x,1)\nB: r(x,1) w(x,2)\nC: r(x,2) w(x,1)\nD: r(x,1) w(x,3)\n";
    check(&format!("{text}E: r(x,3)"), "A B C D E");
    check("A: w(x,1)\nB: r(x,1) w(x,2)\nC: r(x,1) w(x,2)", "Nowhere");
}

#[test]
fn sessions_keep_their_order_and_times_theirs() {
    check("A: w(x,1)\nA: r(x,2)\nB: w(x,2)\nB: r(x,1)", "Nowhere");
    let text = "A @1..2: w(x,1)\nB @3..4: w(x,2)\nC @5..6: w(x,2)\nD @7..9: r(x,";
    assert_eq!(found(&format!("{text}2)"), Some(0), KEPT_MAX).0, "A B C D");
    assert_eq!(found(&format!("{text}1)"), Some(0), KEPT_MAX).0, "Nowhere");
    assert_eq!(found(&format!("{text}1)"), Some(5), KEPT_MAX).0, "A D B C");
}

#[test]
fn a_refused_compare_and_set_finds_anything_else() {
    check("A: w(x,1)\nA: r(x,!1)\nB: w(x,2)\nC: w(x,1)\nC: r(x,1)", "A B A C C");
    check("A: w(x,1)\nA: r(x,!1)\nC: w(x,1)\nC: r(x,1)", "Nowhere");
}

/// Transactions one after another on few keys with few values, by session.
fn serial(txns: u64) -> Vec<String> {
    let mut state = [0_u64; 6];
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut sessions = vec!["init *=0\n".to_owned()];
    sessions.extend((0..8).map(|_| String::new()));
    for _ in 0..txns {
        let session = 1 + random(8) as usize;
        let mut txn = format!("S{session}:");
        for (key, held) in state.iter_mut().enumerate() {
            if random(2) == 0 {
                txn = format!("{txn} r(k{key},{held})");
            } else {
                *held = 1 + random(3);
                txn = format!("{txn} w(k{key},{held})");
            }
        }
        sessions[session] = format!("{}{txn}\n", sessions[session]);
    }
    sessions
}

/// Who wrote each of these values was tried read by read, and the level stayed unknown.
#[test]
fn many_repeated_values_take_work_in_proportion_to_the_history() {
    let looked_at = [200, 400].map(|txns| {
        let text = serial(txns).concat();
        let (told, looked_at) = found(&text, None, KEPT_MAX);
        assert_eq!(told.split(' ').count() as u64, txns, "{told}");
        looked_at
    });
    assert!(looked_at[1] < 4 * looked_at[0], "{looked_at:?}");
    // What everything held at first was replaced by the session that sees it.
    let mut sessions = serial(200);
    sessions[1].push_str("S1: r(k0,0) r(k1,0) r(k2,0) r(k3,0) r(k4,0) r(k5,0)\n");
    assert_eq!(found(&sessions.concat(), None, KEPT_MAX).0, "Nowhere");
}
