//! What lists and given orders say about version order, held against an order of commits.
//!
//! All lists that counted transactions read show beginnings of one sequence of appends, and
//! appends that none of them shows come later. A given order names values; what stands
//! for which write is a matter of the history. Two operations in a known order put their transactions in that
//! order; two of one transaction must be in the order of its program.

use super::facts::{Facts, Reader, Seen};
use crate::level::Reads;
use isolde_history::{KeyId, Named, OpId, TxnId, Value, VersionChain};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What becomes of lists and given orders that contradict themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Faults {
    /// The level does not hold.
    Refused,
    /// They order nothing.
    Ignored,
}

/// Not in the order.
const NONE: u32 = u32::MAX;

/// Checks that `position`, by transaction, agrees with every given version order.
pub(super) fn check_given(
    facts: &Facts<'_>,
    position: &[u32],
    faults: Faults,
) -> Result<(), String> {
    for (place, chain) in facts.history.orders().versions.iter().enumerate() {
        let given = given_writes(facts, chain);
        if given.late_initial && faults == Faults::Refused {
            return Err(format!("given order {place}: the initial state comes after a write"));
        }
        let takes_part = |write: &&OpId| position[facts.history.txn_of(**write).index()] != NONE;
        let writes: Vec<OpId> = given.writes.iter().filter(takes_part).copied().collect();
        check_sequence(facts, position, &writes, faults)
            .map_err(|why| format!("given order {place}: {why}"))?;
    }
    Ok(())
}

/// The writes that a given order is about.
pub(super) struct Given {
    pub(super) writes: Vec<OpId>,
    pub(super) late_initial: bool,
}

/// The writes of a given order. Entries of which nothing tells who wrote them are left out.
pub(super) fn given_writes(facts: &Facts<'_>, chain: &VersionChain) -> Given {
    let mut given = Given { writes: Vec::new(), late_initial: false };
    let writes_of = |value| facts.writes_of_value(chain.key, value).collect();
    for named in chain.named(facts.history, &writes_of) {
        match named {
            Named::Write(write) => given.writes.push(write),
            Named::Initial => given.late_initial |= !given.writes.is_empty(),
            Named::Open | Named::Nobody => {}
        }
    }
    given
}

/// Two writes of one transaction, in the order of the program, that a sequence has the
/// other way round; or one that it has twice.
fn against_program(facts: &Facts<'_>, writes: &[OpId]) -> Option<(OpId, OpId)> {
    let mut last: HashMap<TxnId, OpId> = HashMap::new();
    for &write in writes {
        if let Some(later) = last.insert(facts.history.txn_of(write), write)
            && write <= later
        {
            return Some((write, later));
        }
    }
    None
}

/// Whether a sequence has the writes of every transaction in the order of its program,
/// whichever transactions count. Those that do not count order nothing.
pub(super) fn keeps_programs(
    facts: &Facts<'_>,
    mut writes: Vec<OpId>,
    never_counting: &HashSet<TxnId>,
) -> bool {
    writes.retain(|&write| {
        let txn = facts.history.txn_of(write);
        facts.may_count(txn) && !never_counting.contains(&txn)
    });
    against_program(facts, &writes).is_none()
}

fn check_sequence(
    facts: &Facts<'_>,
    position: &[u32],
    writes: &[OpId],
    faults: Faults,
) -> Result<(), String> {
    if let Some((earlier, later)) = against_program(facts, writes) {
        let (earlier, later) = (earlier.0, later.0);
        return match faults {
            Faults::Ignored => Ok(()),
            Faults::Refused => Err(format!("operation {later} comes before {earlier}")),
        };
    }
    let place = |write: OpId| position[facts.history.txn_of(write).index()];
    for pair in writes.windows(2) {
        if place(pair[0]) > place(pair[1]) {
            return Err(format!(
                "operation {} comes before {}, and their commits do not",
                pair[0].0, pair[1].0
            ));
        }
    }
    Ok(())
}

/// Checks that `position`, by transaction, agrees with what lists show.
pub(super) fn check_lists(
    facts: &Facts<'_>,
    position: &[u32],
    reads: Reads,
    faults: Faults,
) -> Result<(), String> {
    let history = facts.history;
    let mut lists: BTreeMap<KeyId, Vec<(OpId, &[Value])>> = BTreeMap::new();
    let mut repeating = None;
    let mut reader = Reader::default();
    for txn in history.txns().filter(|txn| position[txn.index()] != NONE) {
        reader.visit(history, txn, |read| match read.seen {
            Seen::List(Some(others)) => {
                lists.entry(read.key).or_default().push((read.op, others));
            }
            Seen::List(None) if has_repeats(history.list(read.op)) => repeating = Some(read.op),
            _ => {}
        });
    }
    if let Some(read) = repeating.filter(|_| faults == Faults::Refused) {
        return Err(format!("operation {} saw an element twice", read.0));
    }
    for (key, lists) in lists {
        let list = ListOrder { facts, position, key, reads, faults };
        list.check(&lists).map_err(|why| format!("lists of key {}: {why}", key.0))?;
    }
    Ok(())
}

/// Whether an element stands twice in a list.
pub(super) fn has_repeats(elements: &[Value]) -> bool {
    let distinct: HashSet<Value> = elements.iter().copied().collect();
    distinct.len() < elements.len()
}

struct ListOrder<'f, 'a> {
    facts: &'f Facts<'a>,
    position: &'f [u32],
    key: KeyId,
    reads: Reads,
    faults: Faults,
}

impl ListOrder<'_, '_> {
    fn check(&self, lists: &[(OpId, &[Value])]) -> Result<(), String> {
        let Some(&(longest_read, longest)) = lists.iter().max_by_key(|list| list.1.len()) else {
            return Ok(());
        };
        let places: HashMap<Value, usize> =
            longest.iter().enumerate().map(|(place, &element)| (element, place)).collect();
        for &(read, others) in lists {
            if !longest.starts_with(others) {
                let why = format!(
                    "operations {} and {} saw lists that are not beginnings of one another",
                    longest_read.0, read.0
                );
                return self.faulty(why);
            }
        }
        if self.faults == Faults::Refused {
            self.check_distinct(lists, longest, &places)?;
        }
        let shown = self.shown(longest_read, longest)?;
        let is_shown: HashSet<OpId> = shown.iter().copied().collect();
        let mut sequence = shown;
        sequence.retain(|&append| self.takes_part(append));
        let later = self.facts.writes_of(self.key);
        let mut later: Vec<OpId> =
            later.filter(|op| !is_shown.contains(op) && self.takes_part(*op)).collect();
        later
            .sort_unstable_by_key(|&op| (self.position[self.facts.history.txn_of(op).index()], op));
        sequence.extend(later);
        check_sequence(self.facts, self.position, &sequence, self.faults)
    }

    fn faulty(&self, why: String) -> Result<(), String> {
        if self.faults == Faults::Ignored { Ok(()) } else { Err(why) }
    }

    fn takes_part(&self, append: OpId) -> bool {
        self.position[self.facts.history.txn_of(append).index()] != NONE
    }

    /// No list, own appends included, has an element twice.
    fn check_distinct(
        &self,
        lists: &[(OpId, &[Value])],
        longest: &[Value],
        places: &HashMap<Value, usize>,
    ) -> Result<(), String> {
        let mut distinct = places.len() == longest.len();
        for &(read, others) in lists {
            let own = &self.facts.history.list(read)[others.len()..];
            distinct &= (0..own.len()).all(|place| {
                !own[..place].contains(&own[place])
                    && places.get(&own[place]).is_none_or(|&first| first >= others.len())
            });
        }
        if distinct { Ok(()) } else { Err("an element stands twice in a list".into()) }
    }

    /// The appends of the elements of the longest list.
    fn shown(&self, read: OpId, longest: &[Value]) -> Result<Vec<OpId>, String> {
        let reader = self.facts.history.txn_of(read);
        let mut shown = Vec::new();
        for &element in longest {
            // Nobody's elements order nothing; where they refute, the reader does.
            if self.facts.writes_of_value(self.key, element).next().is_none() {
                continue;
            }
            let append = self.facts.append_of(reader, self.key, element, self.reads);
            let why = || format!("it is open which append operation {} saw", read.0);
            shown.push(append.ok_or_else(why)?);
        }
        Ok(shown)
    }
}
