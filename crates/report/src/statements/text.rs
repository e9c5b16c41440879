//! Findings as text: which statements, how often, an example, and what helps.

use super::{Finding, Findings, Mistake, Relation, Setting, Step};
use std::collections::HashMap;
use std::fmt::Write;

/// What was found, for people who wrote the application. `setting` is the weakest that their
/// transactions had, if that is known; `wanted` is the one to compare with.
pub fn statements_to_text(
    findings: &Findings,
    setting: Option<Setting>,
    wanted: Setting,
    file: &str,
) -> String {
    let is_shown = |it: &&Finding| it.prevented_by <= wanted;
    let shown: Vec<&Finding> = findings.findings.iter().filter(is_shown).collect();
    let total: usize = shown.iter().map(|it| it.count).sum();
    let mut text = String::new();
    if shown.is_empty() {
        return format!("no anomalies: nothing that {} prevents\n", wanted.name());
    }
    let more = if findings.is_cut { "at least " } else { "" };
    let ways = counted(shown.len(), "way", "ways");
    line(&mut text, format_args!("{more}{} in {ways}", counted(total, "anomaly", "anomalies")));
    for (place, finding) in shown.iter().enumerate() {
        text.push('\n');
        one(&mut text, place + 1, finding, setting, file);
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string grows");
    text.push('\n');
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn one(text: &mut String, number: usize, finding: &Finding, setting: Option<Setting>, file: &str) {
    let times = counted(finding.count, "time", "times");
    line(text, format_args!("{number}. {}, {times}", title(finding.mistake)));
    line(text, format_args!("   {}", meaning(finding.mistake)));
    let mut letters: HashMap<&str, char> = HashMap::new();
    for (letter, step) in ('A'..='Z').zip(&finding.example) {
        letters.entry(&step.from).or_insert(letter);
    }
    for step in &finding.example {
        let (from, to) = (letters[step.from.as_str()], letters[step.to.as_str()]);
        let (first, second) = words(step.relation);
        line(text, format_args!("     {from} {first}: {}", shown(&step.from_statement)));
        line(text, format_args!("     {to} {second}: {}", shown(&step.to_statement)));
    }
    let mut names: Vec<(char, &str)> =
        letters.iter().map(|(name, letter)| (*letter, *name)).collect();
    names.sort_unstable();
    let names: Vec<String> =
        names.iter().map(|(letter, name)| format!("{letter} is {name}")).collect();
    let mut keys: Vec<&str> = finding.example.iter().map(|step| step.key.as_str()).collect();
    keys.dedup();
    line(
        text,
        format_args!(
            "   example: {}; {} ({file}:{})",
            names.join(", "),
            keys.join(", "),
            places(finding)
        ),
    );
    line(text, format_args!("   {}", whose(finding.prevented_by, setting)));
    line(text, format_args!("   remedy: {}", remedy(finding)));
}

fn places(finding: &Finding) -> String {
    let mut places: Vec<u32> =
        (finding.example.iter()).flat_map(|step| [step.from_position, step.to_position]).collect();
    places.sort_unstable();
    places.dedup();
    places.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn shown(statement: &str) -> &str {
    if statement.is_empty() { "a statement that is not recorded" } else { statement }
}

const fn title(mistake: Mistake) -> &'static str {
    match mistake {
        Mistake::CircularInformationFlow => "circular information flow (G1c)",
        Mistake::LostUpdate => "lost update (P4)",
        Mistake::ReadSkew => "read skew (G-single)",
        Mistake::WriteSkew => "write skew (G2-item)",
        Mistake::Unserializable => "no serial order of three or more (G2)",
    }
}

const fn meaning(mistake: Mistake) -> &'static str {
    match mistake {
        Mistake::CircularInformationFlow => "Transactions saw each other's changes in a circle.",
        Mistake::LostUpdate => {
            "Both read a row, and both wrote it: what the second one wrote rests on what the \
             first one had replaced."
        }
        Mistake::ReadSkew => "One saw a part of what the other changed, and not the rest.",
        Mistake::WriteSkew => {
            "Each read what the other changed, before the change: what both have checked is not \
             true after both."
        }
        Mistake::Unserializable => {
            "What these saw and changed fits no order in which they ran one after the other."
        }
    }
}

const fn words(relation: Relation) -> (&'static str, &'static str) {
    match relation {
        Relation::Wr => ("writes", "then reads that"),
        Relation::Ww => ("writes", "then overwrites that"),
        Relation::Rw => ("reads", "then changes that"),
    }
}

/// Who has to do something about it.
fn whose(prevented_by: Setting, setting: Option<Setting>) -> String {
    let name = prevented_by.name().to_uppercase();
    match setting {
        _ if prevented_by == Setting::ReadCommitted => {
            "No setting permits it: this is the database's mistake.".to_owned()
        }
        Some(setting) if setting >= prevented_by => format!(
            "All transactions ran at {} or above, which does not permit it: this is the \
             database's mistake.",
            setting.name().to_uppercase()
        ),
        Some(setting) => format!(
            "{} permits it: this is the application's. The weakest setting that prevents it: {name}.",
            setting.name().to_uppercase()
        ),
        None => format!("The weakest setting that prevents it: {name}."),
    }
}

/// What helps without another setting.
fn remedy(finding: &Finding) -> String {
    let read = |step: &&Step| step.relation == Relation::Rw;
    let mut reads: Vec<&str> =
        finding.example.iter().filter(read).map(|step| shown(&step.from_statement)).collect();
    reads.sort_unstable();
    reads.dedup();
    let reads = reads.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(" and ");
    match finding.mistake {
        Mistake::CircularInformationFlow => {
            "none in the application; `isolde explain` says what was seen".to_owned()
        }
        Mistake::LostUpdate => format!(
            "add FOR UPDATE to {reads}, or compute the new value in the UPDATE itself with its \
             condition, or REPEATABLE READ and a retry after error 40001"
        ),
        Mistake::ReadSkew => format!(
            "read in one statement what belongs together, or add FOR SHARE to {reads}, or \
             REPEATABLE READ and a retry after error 40001"
        ),
        Mistake::WriteSkew | Mistake::Unserializable => format!(
            "add FOR UPDATE to {reads}, or let a constraint check it, or SERIALIZABLE and a retry \
             after error 40001"
        ),
    }
}
