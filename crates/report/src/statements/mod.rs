//! Anomalies by the statements that make them: what the people who wrote an application can use.
//!
//! One mistake in a program makes thousands of violations, which all go through the same
//! statements. So cycles of dependencies are grouped by the statements that make them, counted, and told
//! once, with the smallest example: by which statement read what which other one replaced.
//!
//! **What is counted.** For each transaction that read a version which another one replaced, a
//! shortest cycle through that edge [Adya99 §3.2]. Edges are those that are certain: who wrote what was
//! read is in the history, and so is the order of versions that it gives, or that a transaction
//! shows which read a version before it wrote the next. What is not certain makes no edge, so
//! there may be more violations than these; `isolde check` decides.

mod cycles;
mod graph;
mod text;

pub use text::statements_to_text;

use cycles::Cycle;
use graph::{Dependency, Graph};
use isolde_history::{History, Index, OpId};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};

/// How a transaction depends on another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The second one read what the first one wrote.
    Wr,
    /// The second one replaced what the first one wrote.
    Ww,
    /// The second one replaced what the first one read.
    Rw,
}

/// What prevents an anomaly, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Every setting: where it is seen, the database is wrong.
    ReadCommitted,
    /// A snapshot for each transaction, and no lost updates.
    RepeatableRead,
    /// An order of all transactions.
    Serializable,
}

impl Setting {
    const ALL: [Setting; 3] =
        [Setting::ReadCommitted, Setting::RepeatableRead, Setting::Serializable];

    /// As SQL calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Setting::ReadCommitted => "read committed",
            Setting::RepeatableRead => "repeatable read",
            Setting::Serializable => "serializable",
        }
    }

    /// The setting that a database with snapshots gives to who asks for this.
    pub fn parse(name: &str) -> Option<Setting> {
        let name = name.to_ascii_lowercase().replace(['-', '_'], " ");
        match name.as_str() {
            "read uncommitted" => Some(Setting::ReadCommitted),
            "snapshot isolation" => Some(Setting::RepeatableRead),
            _ => Setting::ALL.into_iter().find(|setting| setting.name() == name),
        }
    }
}

/// What kind of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    /// A cycle without a read of what was replaced.
    CircularInformationFlow,
    /// Two replaced what both had read.
    LostUpdate,
    /// One saw a part of what another one did.
    ReadSkew,
    /// Two read what the other one changed.
    WriteSkew,
    /// The same with more transactions.
    Unserializable,
}

/// A dependency of an example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The transaction, as the history calls it.
    pub from: String,
    /// What it asked.
    pub from_statement: String,
    /// Where in the history.
    pub from_position: u32,
    /// How the next one depends on it.
    pub relation: Relation,
    /// The row.
    pub key: String,
    /// The next one.
    pub to: String,
    /// What that asked.
    pub to_statement: String,
    /// Where in the history.
    pub to_position: u32,
}

/// All violations of one kind through the same statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub mistake: Mistake,
    /// The weakest setting that prevents it.
    pub prevented_by: Setting,
    /// How many there are.
    pub count: usize,
    /// One of them: a cycle.
    pub example: Vec<Step>,
}

/// What was found, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// What was found.
    pub findings: Vec<Finding>,
    /// Whether there are more, which were not looked for.
    pub is_cut: bool,
}

/// More violations than these are not looked for.
const CYCLES_MAX: usize = 100_000;

/// Groups what is wrong with a history by statements.
pub fn by_statements(history: &History, index: &Index) -> Findings {
    let graph = Graph::new(history, index);
    let overwritten = |read: &Dependency| graph.overwritten(history, index, read);
    let (cycles, is_cut) = cycles::through_replaced_reads(&graph, overwritten, CYCLES_MAX);
    let mut groups: HashMap<Name, (usize, Cycle)> = HashMap::new();
    for cycle in cycles {
        let setting = kind(index, &cycle).1;
        let group = groups.entry((setting, pairs(history, &cycle)));
        let (count, smallest) = group.or_insert((0, cycle.clone()));
        *count += 1;
        if cycle.len() < smallest.len() {
            *smallest = cycle;
        }
    }
    let mut findings: Vec<Finding> = (groups.into_values())
        .map(|(count, cycle)| {
            let (mistake, prevented_by) = kind(index, &cycle);
            let example = cycle.iter().map(|edge| step(history, edge)).collect();
            Finding { mistake, prevented_by, count, example }
        })
        .collect();
    let place = |finding: &Finding| {
        let steps = finding.example.iter();
        steps
            .map(|step| (step.from_statement.clone(), step.to_statement.clone()))
            .collect::<Vec<_>>()
    };
    findings.sort_by_cached_key(|it| (std::cmp::Reverse(it.count), it.mistake, place(it)));
    Findings { findings, is_cut }
}

fn statement(history: &History, op: OpId) -> String {
    match history.datum(history.statement(op)) {
        isolde_history::Datum::Text(text) => text.to_owned(),
        _ => String::new(),
    }
}

/// What cycles are grouped by: what prevents them, and which statements read what others replaced.
/// The rest of a cycle differs from meeting to meeting.
type Name = (Setting, BTreeSet<(String, String)>);

fn pairs(history: &History, cycle: &[Dependency]) -> BTreeSet<(String, String)> {
    let reads = cycle.iter().filter(|edge| edge.relation == Relation::Rw);
    reads.map(|edge| (statement(history, edge.from_op), statement(history, edge.to_op))).collect()
}

/// What a cycle is called, and what prevents it.
///
/// Snapshot isolation forbids every cycle in which no two reads of something replaced follow one
/// another [Cerone15]; and of two that write the same row, it lets only one commit.
fn kind(index: &Index, cycle: &[Dependency]) -> (Mistake, Setting) {
    let is_read = |place: usize| cycle[place % cycle.len()].relation == Relation::Rw;
    let reads = (0..cycle.len()).filter(|&place| is_read(place)).count();
    if reads == 0 {
        return (Mistake::CircularInformationFlow, Setting::ReadCommitted);
    }
    let is_pair = cycle.len() == 2;
    // Who writes what he has read, after another one did, has not seen that.
    let loses =
        |edge: &&Dependency| edge.relation == Relation::Rw && index.writes(edge.from, edge.key);
    if cycle.iter().any(|edge| loses(&edge)) {
        return (Mistake::LostUpdate, Setting::RepeatableRead);
    }
    let follow = (0..cycle.len()).any(|place| is_read(place) && is_read(place + 1));
    let writes_same =
        || index.written_by(cycle[0].from).iter().any(|&key| index.writes(cycle[0].to, key));
    match (!follow || (is_pair && writes_same()), is_pair) {
        (true, _) => (Mistake::ReadSkew, Setting::RepeatableRead),
        (false, true) => (Mistake::WriteSkew, Setting::Serializable),
        (false, false) => (Mistake::Unserializable, Setting::Serializable),
    }
}

fn step(history: &History, edge: &Dependency) -> Step {
    Step {
        from: history.readable_name(edge.from),
        from_statement: statement(history, edge.from_op),
        from_position: history.position(edge.from_op),
        relation: edge.relation,
        key: history.datum(history.key_name(edge.key)).to_string(),
        to: history.readable_name(edge.to),
        to_statement: statement(history, edge.to_op),
        to_position: history.position(edge.to_op),
    }
}

#[cfg(test)]
mod tests;
