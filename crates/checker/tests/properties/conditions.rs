//! Reads by condition: the engine answers as the definition does, and proves it.

use crate::support::{Random, each_seed, history, random_histories};
use isolde_certificate::{Claim, Proof, Refutation, Verifier, verify};
use isolde_checker::reference::{self, Reference};
use isolde_checker::{Check, Level, Limits, Verdict, check, decided_levels};
use isolde_history::format::to_text;
use isolde_history::{Index, KeyId, OpId, Part, Selection};
use std::collections::BTreeMap;
use std::fmt::Write;

type Store = BTreeMap<usize, usize>;

struct Run {
    random: Random,
    keys: usize,
    store: Store,
    /// The store after each number of commits.
    past: Vec<Store>,
    /// Versions of each key in their order.
    versions: BTreeMap<usize, Vec<String>>,
    last: usize,
    noise: usize,
    /// Whether the database tells its snapshots.
    snapshots: bool,
    aggregates: bool,
    /// Whether some transactions are aborted or of unknown outcome.
    outcomes: bool,
}

/// A random history of a store with several versions: some transactions look at old ones, some
/// results are wrong, and the database tells some of what it did.
pub(crate) fn random_conditions(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut run = Run {
        keys: 1 + random.below(3),
        noise: [0, 0, 5, 20][random.below(4)],
        snapshots: random.below(2) == 0,
        aggregates: random.below(3) == 0,
        outcomes: seed % 3 == 2,
        random,
        store: Store::new(),
        past: vec![Store::new()],
        versions: BTreeMap::new(),
        last: 0,
    };
    let mut text = format!("# seed {seed}\n");
    if run.random.below(3) == 0 {
        text.push_str("init 1=90\n");
        run.store.insert(1, 90);
        run.past = vec![run.store.clone()];
    }
    for _ in 0..=run.random.below(4) {
        text.push_str(&run.txn());
    }
    if run.random.below(3) > 0 {
        for (key, values) in &run.versions {
            writeln!(text, "order {key} complete: {}", values.join(" ")).expect("memory");
        }
    }
    text
}

impl Run {
    fn txn(&mut self) -> String {
        let session = ["A", "B", "C"][self.random.below(3)];
        let seen = match self.random.below(3) {
            0 => self.random.below(self.past.len()),
            _ => self.past.len() - 1,
        };
        let number = self.past.len();
        let mut view = self.past[seen].clone();
        let mut effects = self.store.clone();
        let versions = self.versions.clone();
        let mut ops = String::new();
        for _ in 0..=self.random.below(3) {
            self.op(&mut view, &mut effects, &mut ops);
        }
        // Whoever never learned its outcome may have done all or nothing.
        let outcome = if self.outcomes { self.random.below(6) } else { 5 };
        if matches!(outcome, 0 | 1) {
            self.versions = versions;
        } else {
            self.store = effects;
        }
        let end = [" aborted", " unknown", " unknown"].get(outcome).copied().unwrap_or_default();
        self.past.push(self.store.clone());
        let told = match self.snapshots {
            true if self.random.below(100) < self.noise => " sees=1".to_owned(),
            true => format!(" sees={}", seen + 1),
            false => String::new(),
        };
        let id = if self.snapshots { format!(" id={number}") } else { String::new() };
        format!("{session}{id}{told}:{ops}{end}\n")
    }

    fn op(&mut self, view: &mut Store, effects: &mut Store, ops: &mut String) {
        let key = 1 + self.random.below(self.keys);
        match self.random.below(10) {
            0..4 => {
                let word = self.write(key, view, effects);
                write!(ops, " {word}").expect("memory");
            }
            4 => {
                let value = view.get(&key).map_or("nil".to_owned(), ToString::to_string);
                write!(ops, " r({key},{value})").expect("memory");
            }
            5 => self.update(view, effects, ops),
            _ => {
                let (text, holds) = self.condition();
                let word = self.found(&text, &holds, view);
                write!(ops, " {word}").expect("memory");
            }
        }
    }

    fn write(&mut self, key: usize, view: &mut Store, effects: &mut Store) -> String {
        if self.random.below(4) == 0 {
            view.remove(&key);
            effects.remove(&key);
            // With a number, the database says who removed it.
            let told = self.snapshots && self.random.below(2) == 0;
            let by = if told { format!("@{}", self.past.len()) } else { String::new() };
            self.versions.entry(key).or_default().push(format!("nil{by}"));
            return format!("d({key})");
        }
        self.last += 1;
        view.insert(key, self.last);
        effects.insert(key, self.last);
        self.versions.entry(key).or_default().push(self.last.to_string());
        format!("w({key},{})", self.last)
    }

    fn condition(&mut self) -> (String, Box<dyn Fn(usize, usize) -> bool>) {
        let (one, other) = (self.random.below(4), self.random.below(8));
        match self.random.below(5) {
            0 => ("all".into(), Box::new(|_, _| true)),
            1 => (
                format!("key {one}..{}", one + 1),
                Box::new(move |key, _| (one..=one + 1).contains(&key)),
            ),
            2 => (format!("value mod 2 = {}", one % 2), Box::new(move |_, it| it % 2 == one % 2)),
            3 => (format!("value = {other}"), Box::new(move |_, it| it == other)),
            _ => (
                format!("value {one}..{}", one + other),
                Box::new(move |_, it| (one..=one + other).contains(&it)),
            ),
        }
    }

    fn found(&mut self, text: &str, holds: &dyn Fn(usize, usize) -> bool, view: &Store) -> String {
        let noise = self.noise;
        let mut random = |_: &_| self.random.below(100) >= noise;
        let rows: Vec<(usize, usize)> =
            view.iter().map(|(&key, &value)| (key, value)).filter(|it| holds(it.0, it.1)).collect();
        let rows: Vec<(usize, usize)> = rows.into_iter().filter(&mut random).collect();
        if self.aggregates && self.random.below(2) == 0 {
            let values = rows.iter().map(|row| row.1);
            let or_nil = |it: Option<usize>| it.map_or("nil".to_owned(), |it| it.to_string());
            let some = (!rows.is_empty()).then_some(());
            let (name, result) = match self.random.below(4) {
                0 => ("count", rows.len().to_string()),
                1 => ("min", or_nil(values.min())),
                2 => ("max", or_nil(values.max())),
                _ => ("sum", or_nil(some.map(|()| values.sum()))),
            };
            return format!("p({name} {text} -> {result})");
        }
        let listed: Vec<String> = rows.iter().map(|row| format!("{}={}", row.0, row.1)).collect();
        let mut others = String::new();
        // Some of the rows that were looked at and do not meet the condition.
        for (key, value) in view {
            if !holds(*key, *value) && self.random.below(4) == 0 {
                write!(others, " {key}={value}").expect("memory");
            }
        }
        format!("p({text}; {};{others})", listed.join(" "))
    }

    fn update(&mut self, view: &mut Store, effects: &mut Store, ops: &mut String) {
        let (text, holds) = self.condition();
        let rows: Vec<(usize, usize)> =
            view.iter().map(|it| (*it.0, *it.1)).filter(|it| holds(it.0, it.1)).collect();
        // Some databases tell what they replaced, some only which rows.
        let told = if rows.is_empty() { 0 } else { self.random.below(4) };
        let listed: Vec<String> = (rows.iter())
            .map(|&(key, value)| match told {
                1 => format!("{key}=?"),
                _ => format!("{key}={value}"),
            })
            .collect();
        let listed = if told > 0 { listed.join(" ") } else { "?".to_owned() };
        write!(ops, " u({text}; {listed})").expect("memory");
        let keys: Vec<usize> = rows.into_iter().map(|row| row.0).collect();
        for key in keys {
            let word = self.write(key, view, effects);
            write!(ops, " {word}").expect("memory");
        }
        // What follows is no part of the update, which a list says by itself.
        if told == 0 {
            ops.push_str(" r(1,?)");
        }
    }
}

fn histories() -> u64 {
    random_histories(6_000)
}

#[test]
pub(crate) fn random_conditions_get_the_verdicts_of_the_definition() {
    let mut counts: BTreeMap<(Level, &str), usize> = BTreeMap::new();
    each_seed(0..histories(), |seed| {
        let text = random_conditions(seed);
        let history = history(&text);
        let index = Index::new(&history);
        for (level, verdict) in check(&history, &index, &decided_levels(), &Limits::NONE) {
            let expected = match reference::decide(&history, level) {
                Reference::Satisfied => "satisfied",
                Reference::Violated => "violated",
                Reference::Unknown(_) => continue,
            };
            assert_eq!(verdict.name(), expected, "{level}: {verdict:?}\n{text}");
            *counts.entry((level, expected)).or_default() += 1;
        }
    });
    for level in [Level::SnapshotIsolation, Level::Serializable, Level::SessionSerializable] {
        for verdict in ["satisfied", "violated"] {
            assert!(counts[&(level, verdict)] > 100, "{level} {verdict}: {counts:?}");
        }
    }
}

/// Transactions that read a row which nobody made: so many that not all orders are tried.
const BYSTANDERS: &str = "P: r(99,nil)\nQ: r(99,nil)\nR: r(99,nil)\nS: r(99,nil)\n\
    T: r(99,nil)\nU: r(99,nil)\nV: r(99,nil)\nW: r(99,nil)\n";

/// Aggregates that nothing can give were left `unknown` among many transactions.
#[test]
fn bystanders_hide_no_impossible_aggregate() {
    let mut violated = 0;
    each_seed(0..histories() / 4, |seed| {
        let text = random_conditions(seed);
        let (few, many) = (history(&text), history(&format!("{text}{BYSTANDERS}")));
        let index = Index::new(&many);
        let is_aggregate = |op: u32| {
            let is_condition = !few.op(OpId(op)).kind.has_key();
            is_condition && few.predicate(OpId(op)).aggregate.is_some()
        };
        if !(0..few.op_count() as u32).any(is_aggregate) {
            return;
        }
        for level in [Level::Prefix, Level::SnapshotIsolation, Level::SessionSerializable] {
            let verdict = Check::new(&many, &index, &Limits::NONE).decide(level);
            let expected = match (verdict.name(), reference::decide(&few, level)) {
                ("unknown", _) | (_, Reference::Unknown(_)) => continue,
                (_, Reference::Satisfied) => "satisfied",
                (_, Reference::Violated) => "violated",
            };
            assert_eq!(verdict.name(), expected, "{level}: {verdict:?}\n{text}");
            violated += u64::from(expected == "violated");
        }
    });
    assert!(violated > histories() / 200, "{violated}");
}

/// The nearest results that there can be are not refuted by reading.
#[test]
fn a_result_that_no_versions_give_is_violated_in_long_histories() {
    let decided = |result: &str| {
        let lines = format!("A: w(1,1)\nB: w(2,2)\nC: w(2,7) unknown\nD: p(sum all -> {result})\n");
        let history = history(&format!("{lines}{BYSTANDERS}"));
        let index = Index::new(&history);
        let levels = [Level::Prefix, Level::RepeatableRead, Level::Serializable];
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let certified = check.certify(&levels);
        assert_eq!(certified.left_out, []);
        let verified = verify(&certified.certificate, &history).expect("the same history");
        assert!(verified.iter().all(Result::is_ok), "{verified:?}");
        let verdicts = check.decide_all(&levels);
        verdicts.iter().map(|it| it.1.name()).collect::<Vec<_>>().join(" ")
    };
    for impossible in ["0", "4", "9", "10"] {
        assert_eq!(decided(impossible), "violated satisfied violated", "{impossible}");
    }
    for possible in ["nil", "1", "2", "3", "7", "8"] {
        assert!(!decided(possible).contains("violated"), "{possible}");
    }
}

/// A row that is listed and the reader's own is one row; only its later version is not found.
#[test]
fn an_own_row_that_is_listed_adds_once() {
    let decided = |sum: &str| {
        let line = format!("A: w(1,5) p(sum value 5..5 -> {sum}; 1=5) w(1,6)\n");
        let history = history(&format!("{line}{BYSTANDERS}"));
        let index = Index::new(&history);
        Check::new(&history, &index, &Limits::NONE).decide(Level::Serializable).name()
    };
    assert_eq!([decided("5"), decided("10")], ["satisfied", "violated"]);
}

#[test]
fn verdicts_about_conditions_are_certified() {
    let mut claimed = 0;
    each_seed(0..histories() / 2, |seed| {
        let text = random_conditions(seed);
        let history = history(&text);
        let index = Index::new(&history);
        let certified = Check::new(&history, &index, &Limits::NONE).certify(&decided_levels());
        let results = verify(&certified.certificate, &history).expect("the same history");
        for (claim, result) in certified.certificate.claims.iter().zip(results) {
            assert!(result.is_ok(), "{}: {result:?}\n{claim:?}\n{text}", claim.levels.join(", "));
            claimed += claim.levels.len();
        }
        let left_out = &certified.left_out;
        assert!(left_out.is_empty(), "seed {seed}: {left_out:?}\n{text}");
    });
    assert!(claimed as u64 > histories(), "{claimed}");
}

/// A proof by all orders is accepted of violations alone, whichever keys it is about.
#[test]
fn all_orders_fit_conditions_only_if_the_level_holds() {
    let mut accepted = 0;
    each_seed(0..histories() / 4, |seed| {
        let text = random_conditions(seed);
        let history = history(&text);
        let verifier = Verifier::new(&history);
        let keys: Vec<KeyId> = history.keys().collect();
        for level in [Level::Prefix, Level::SnapshotIsolation, Level::SessionSerializable] {
            let expected = reference::decide(&history, level);
            for set in 1_usize..1 << keys.len() {
                let is_in = |place: &usize| set & (1 << place) != 0;
                let some = (0..keys.len()).filter(is_in).map(|place| keys[place]).collect();
                let proof = Proof::Refutation(Refutation::Orders(some));
                let name = level.name().to_owned();
                let claim = Claim { shown_at: name.clone(), levels: vec![name], proof };
                if verifier.check(&claim).is_ok() {
                    assert_eq!(expected, Reference::Violated, "{level}, keys {set:b}\n{text}");
                    accepted += 1;
                }
            }
        }
    });
    assert!(accepted > histories() / 40, "{accepted}");
}

#[test]
fn a_part_of_what_fits_its_conditions_fits_them() {
    each_seed(0..histories() / 4, |seed| {
        let text = random_conditions(seed);
        let history = history(&text);
        let index = Index::new(&history);
        let mut random = Random::new(seed);
        let ops = (0..history.op_count() as u32).map(OpId);
        let ops = ops.filter(|_| random.below(3) > 0).collect();
        let mut selection = Selection { ops, ..Selection::default() };
        selection.close(&history, &index);
        let part = Part::new(&history, &index, &selection);
        for (level, verdict) in check(&history, &index, &decided_levels(), &Limits::NONE) {
            if matches!(verdict, Verdict::Satisfied(_)) {
                let found = reference::decide(&part.history, level);
                assert_ne!(found, Reference::Violated, "{level}\n{text}{}", to_text(&part.history));
            }
        }
    });
}

/// The rows 46 and 47 lose the writes before the update, which listed them; row 21 behind the
/// update's own writes is none of its rows.
#[test]
fn an_update_that_loses_its_list_replaced_none_of_what_follows() {
    let whole = history(
        "A: w(46,1) w(47,2) w(21,3)
         B: u(key 46..57; 46=? 47=?) w(46,4) w(47,5) w(21,6)",
    );
    let index = Index::new(&whole);
    let ops = (0..whole.op_count() as u32).map(OpId).filter(|op| op.0 > 1).collect();
    let part = Part::new(&whole, &index, &Selection { ops, ..Selection::default() });
    let found = reference::decide(&part.history, Level::Serializable);
    assert_eq!(found, Reference::Satisfied);
    let replaced = (0..part.history.op_count() as u32).map(OpId);
    let mut replaced = replaced.filter(|&op| !part.history.op(op).kind.has_key());
    let update = replaced.next().expect("the update");
    assert_eq!(part.history.replaced(update).count(), 0);
}

/// Without the second version, the removal of D, which had found the first one, would seem to
/// stand behind that, and the other order of the two removals against that of `y`.
#[test]
fn a_removal_stays_where_the_whole_order_has_it() {
    let whole = history(
        "A: w(x,5)
         B: w(x,7)
         C: u(all; x=7) d(x) w(y,1)
         D: u(all; x=5) d(x) w(y,2)
         order x complete: 5 7 nil nil
         order y complete: 1 2",
    );
    let index = Index::new(&whole);
    let level = Level::ReadUncommitted;
    assert_eq!(reference::decide(&whole, level), Reference::Satisfied);
    let ops = (0..whole.op_count() as u32).map(OpId).filter(|op| op.0 != 1).collect();
    let part = Part::new(&whole, &index, &Selection { ops, ..Selection::default() });
    assert_eq!(reference::decide(&part.history, level), Reference::Satisfied);
}

/// Row 1 loses a write, and no version of it lies in the range: listing it as unknown with every
/// condition makes parts of large histories dear.
#[test]
fn a_part_lists_only_rows_that_may_meet_the_condition() {
    let whole = history(
        "A: w(1,10) w(50,20)
         B: w(1,11) w(50,21) w(60,30)
         C: p(key 46..57; 50=21) p(value 20..29; 50=21) p(value 10..19; 1=11)",
    );
    let index = Index::new(&whole);
    let ops = (0..whole.op_count() as u32).map(OpId).filter(|op| op.0 > 1).collect();
    let part = Part::new(&whole, &index, &Selection { ops, ..Selection::default() });
    let rows = (0..part.history.op_count() as u32).map(OpId);
    let rows = rows.filter(|&op| !part.history.op(op).kind.has_key());
    let rows: Vec<usize> = rows.map(|op| part.history.predicate(op).rows.len()).collect();
    assert_eq!(rows, [1, 1, 1]);
}

/// No condition tells anything of a list, and of what is left of one neither.
#[test]
fn a_list_is_one_without_the_operations_that_show_it() {
    for list in ["B: a(x,1) aborted", "B: r(x,[1]) aborted"] {
        let whole = history(&format!("init x=5\nA: p(sum all -> 10)\n{list}"));
        let index = Index::new(&whole);
        assert_eq!(reference::decide(&whole, Level::Serializable), Reference::Satisfied, "{list}");
        let mut selection = Selection::all(&whole);
        selection.ops.retain(|op| op.0 != 1);
        let part = Part::new(&whole, &index, &selection);
        let found = reference::decide(&part.history, Level::Serializable);
        assert_eq!(found, Reference::Satisfied, "{list}");
    }
}
