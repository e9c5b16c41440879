//! Small histories with the statements that make them.

use super::*;
use isolde_history::format::{self, Input, ReadOptions};
use isolde_history::{Index, Source};

const HEAD: &str = "{\"isolde\":\"trace 1\",\"values\":\"versions\"}\n{\"running\":100}\n\
    {\"statement\":1,\"text\":\"SELECT\"}\n{\"statement\":2,\"text\":\"UPDATE\"}\n";

/// Lines of `client operation key version` at ascending times, or `client commit`.
fn found(lines: &str) -> Findings {
    let mut text = HEAD.to_owned();
    for (place, line) in lines.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let times = format!("[{},{}]", 10 * place, 10 * place + 5);
        let client = words[0];
        let message = match words[1..] {
            ["commit"] => format!("{{\"client\":\"{client}\",\"txn\":1,\"commit\":{times}}}\n"),
            [kind, key, version] => {
                let by = if kind == "read" { 1 } else { 2 };
                format!(
                    "{{\"client\":\"{client}\",\"txn\":1,\"{kind}\":{times},\"by\":{by},\
                     \"rows\":[[\"t\",\"{key}\",{version}]]}}\n"
                )
            }
            _ => panic!("{line}"),
        };
        text += &message;
    }
    let input = Input::File(Source::from_bytes("trace", text.as_bytes()));
    let history = format::read_detected(input, ReadOptions::default()).expect("a trace").0;
    by_statements(&history, &Index::new(&history))
}

fn kinds(lines: &str) -> Vec<(Mistake, Setting, usize)> {
    found(lines).findings.iter().map(|it| (it.mistake, it.prevented_by, it.count)).collect()
}

#[test]
fn two_that_replace_what_both_read_lose_an_update() {
    let lines = "A read x 7\nB read x 7\nA write x 101\nA commit\nB write x 102\nB commit";
    assert_eq!(kinds(lines), [(Mistake::LostUpdate, Setting::RepeatableRead, 1)]);
    let text = statements_to_text(
        &found(lines),
        Some(Setting::ReadCommitted),
        Setting::Serializable,
        "history.log",
    );
    for part in [
        "1. lost update (P4), 1 time",
        "FOR UPDATE to `SELECT`",
        "READ COMMITTED permits it",
        "t/x",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn one_after_the_other_is_nothing() {
    let lines = "A read x 7\nA write x 101\nA commit\nB read x 101\nB write x 102\nB commit";
    assert_eq!(kinds(lines), []);
}

#[test]
fn two_that_change_what_the_other_has_read_skew_writes() {
    let lines = "A read x 7\nA read y 7\nB read x 7\nB read y 7\nA write x 101\nB write y 102\n\
                 A commit\nB commit";
    assert_eq!(kinds(lines), [(Mistake::WriteSkew, Setting::Serializable, 1)]);
    let advice = |wanted| statements_to_text(&found(lines), None, wanted, "history.log");
    assert!(advice(Setting::RepeatableRead).starts_with("no anomalies"));
    assert!(advice(Setting::Serializable).starts_with("1 anomaly in 1 way"));
}

#[test]
fn who_sees_a_half_of_another_reads_skew() {
    let lines = "A read x 7\nB write x 101\nB write y 101\nB commit\nA read y 101\nA commit";
    assert_eq!(kinds(lines), [(Mistake::ReadSkew, Setting::RepeatableRead, 1)]);
}

#[test]
fn the_same_statements_are_one_finding() {
    let pair = |clients: [&str; 2], key: &str, first: u32| {
        let [a, b] = clients;
        format!(
            "{a} read {key} 7\n{b} read {key} 7\n{a} write {key} {first}\n{a} commit\n\
             {b} write {key} {}\n{b} commit\n",
            first + 1
        )
    };
    let lines = pair(["A", "B"], "x", 101) + &pair(["C", "D"], "y", 103);
    assert_eq!(kinds(&lines), [(Mistake::LostUpdate, Setting::RepeatableRead, 2)]);
}

#[test]
fn what_the_setting_does_not_permit_is_the_databases() {
    let lines = "A read x 7\nB read x 7\nA write x 101\nA commit\nB write x 102\nB commit";
    let setting = Some(Setting::Serializable);
    let text = statements_to_text(&found(lines), setting, Setting::Serializable, "history.log");
    assert!(text.contains("this is the database's mistake"), "{text}");
}
