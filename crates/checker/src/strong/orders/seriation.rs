//! An order of transactions guessed from who read from whom, where neither times nor sessions
//! tell anything.
//!
//! **Method.** Who reads a version stands near its writer, since versions are replaced: the
//! nearer, the more often the key is written. Transactions are put on a line such that those
//! which read from each other are near on average: the second eigenvector of the weighted
//! graph of reads-from, by which a mixed-up sequence is put in order [Atkins98]. It is found by
//! averaging over neighbours, beginning with the distances from one end of the graph; what is
//! left of an error after some rounds spans few transactions. The line has two directions; the
//! one is taken in which fewer reads miss a version.
//!
//! Linear in reads, for each round of averaging.

use crate::strong::graph::Graph;
use crate::strong::model::{Events, Node};
use crate::strong::sources::Sources;
use crate::strong::versions::{INITIAL_SLOT, Slot, Versions};
use isolde_history::{History, TxnId};

/// Rounds of averaging, and looks at neighbours in all of them together.
const ROUNDS: usize = 200;
const LOOKS_MAX: usize = 1 << 27;
/// Rounds between two that bring the line back to its middle and length.
const ROUNDS_UNSCALED: usize = 8;
/// Fewer transactions in a session, on average, tell nothing of an order.
const TXNS_PER_SESSION: usize = 2;
/// Smaller histories are decided from any order.
const TXNS_MIN: usize = 256;

/// Whether an order along sessions would tell little of a history.
pub(in crate::strong) fn is_wanted(history: &History, sources: Sources) -> bool {
    let is_short = history.session_count() * TXNS_PER_SESSION > history.txn_count();
    history.txn_count() >= TXNS_MIN && (is_short || !sources.session)
}

/// An order of all events that agrees with all edges and is near such a line, or the nodes that
/// no order fits.
pub(in crate::strong) fn order(
    graph: &Graph,
    versions: &Versions<'_>,
) -> Result<Vec<Node>, Vec<Node>> {
    let mut line = Line::new(versions).places();
    let (forward, missed) = along(graph, versions, &line)?;
    for place in &mut line {
        *place = -*place;
    }
    let (backward, missed_backward) = along(graph, versions, &line)?;
    Ok(if missed <= missed_backward { forward } else { backward })
}

/// An order of all events near a line, and how many reads miss a version in it.
fn along(
    graph: &Graph,
    versions: &Versions<'_>,
    line: &[f64],
) -> Result<(Vec<Node>, usize), Vec<Node>> {
    let model = graph.model;
    let mut sorted: Vec<u32> = (0..line.len() as u32).collect();
    sorted.sort_by(|&one, &other| line[one as usize].total_cmp(&line[other as usize]));
    let mut ranks = vec![i64::MAX; graph.node_count()];
    for (rank, txn) in (0..).zip(sorted) {
        let txn = TxnId(txn);
        if model.events == Events::Two {
            ranks[model.begin(txn) as usize] = 2 * rank;
        }
        ranks[model.commit(txn) as usize] = 2 * rank + 1;
    }
    let order = graph.sorted_by(|node| ranks[node as usize])?;
    let positions = crate::strong::saturate::positions(&order);
    Ok((order, missed(versions, |txn| positions[model.commit(txn) as usize])))
}

/// Reads with another version between them and what they saw.
fn missed(versions: &Versions<'_>, place: impl Fn(TxnId) -> u32) -> usize {
    let mut places: Vec<u32> =
        (0..versions.slot_count() as Slot).map(|slot| place(versions.writer(slot))).collect();
    let mut of_key = Vec::new();
    for key in versions.history.keys() {
        let slots = versions.slots_of(key);
        of_key.clear();
        of_key.extend(slots.clone().map(|slot| (places[slot as usize], slot)));
        of_key.sort_unstable();
        // From now on: where the next version of the key was installed.
        for (number, &(_, slot)) in of_key.iter().enumerate() {
            places[slot as usize] = of_key.get(number + 1).map_or(u32::MAX, |next| next.0);
        }
    }
    let misses = |&(read, &seen): &(usize, &Slot)| {
        seen < INITIAL_SLOT && places[seen as usize] < place(versions.readers[read])
    };
    versions.seen.iter().enumerate().filter(misses).count()
}

/// Who stands near whom.
struct Line {
    /// Per transaction, where its neighbours start.
    starts: Vec<u32>,
    neighbours: Vec<(u32, f32)>,
}

impl Line {
    fn new(versions: &Versions<'_>) -> Line {
        let txns = versions.history.txn_count();
        // The more versions, the shorter each of them stands.
        let weight = |slot: Slot| {
            let versions_of_key = versions.slots_of(versions.key_of(slot)).len();
            f32::from(u16::try_from(versions_of_key).unwrap_or(u16::MAX)) + 1.0
        };
        let each = |visit: &mut dyn FnMut(u32, u32, f32)| {
            for (read, &seen) in versions.seen.iter().enumerate() {
                if seen < INITIAL_SLOT {
                    let (reader, writer) = (versions.readers[read].0, versions.writer(seen).0);
                    visit(reader, writer, weight(seen));
                    visit(writer, reader, weight(seen));
                }
            }
        };
        let mut starts = vec![0u32; txns + 1];
        each(&mut |from, _, _| starts[from as usize + 1] += 1);
        for txn in 0..txns {
            starts[txn + 1] += starts[txn];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![(0, 0.0); starts[txns] as usize];
        each(&mut |from, to, weight| {
            neighbours[next[from as usize] as usize] = (to, weight);
            next[from as usize] += 1;
        });
        Line { starts, neighbours }
    }

    fn of(&self, txn: usize) -> &[(u32, f32)] {
        &self.neighbours[self.starts[txn] as usize..self.starts[txn + 1] as usize]
    }

    fn txns(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where every transaction stands.
    fn places(&self) -> Vec<f64> {
        let mut places = self.distances();
        let weights: Vec<f64> = (0..self.txns())
            .map(|txn| self.of(txn).iter().map(|&(_, weight)| f64::from(weight)).sum())
            .collect();
        let rounds = ROUNDS.min(LOOKS_MAX / self.neighbours.len().max(1));
        let mut averages = places.clone();
        for round in 1..=rounds {
            for (txn, average) in averages.iter_mut().enumerate() {
                let near = self.of(txn).iter();
                let sum: f64 =
                    near.map(|&(other, weight)| f64::from(weight) * places[other as usize]).sum();
                if weights[txn] > 0.0 {
                    *average = f64::midpoint(places[txn], sum / weights[txn]);
                }
            }
            std::mem::swap(&mut places, &mut averages);
            if round % ROUNDS_UNSCALED == 0 {
                rescale(&mut places, &weights);
            }
        }
        places
    }

    /// How much farther each transaction is from one end of its part than from the other, in
    /// steps. Parts that have nothing to do with each other follow one another.
    fn distances(&self) -> Vec<f64> {
        let mut distances = vec![0.0; self.txns()];
        let mut is_placed = vec![false; self.txns()];
        let (mut near, mut far) = (vec![u32::MAX; self.txns()], vec![u32::MAX; self.txns()]);
        let mut offset = 0.0;
        for start in 0..self.txns() {
            if is_placed[start] {
                continue;
            }
            let part = self.walk(start as u32, &mut near);
            let one_end = *part.last().expect("it begins somewhere");
            for &txn in &part {
                near[txn as usize] = u32::MAX;
            }
            let other_end = *self.walk(one_end, &mut near).last().expect("it begins somewhere");
            let _ = self.walk(other_end, &mut far);
            let length = f64::from(near[other_end as usize]);
            for &txn in &part {
                let place = txn as usize;
                distances[place] = offset + f64::from(near[place]) - f64::from(far[place]);
                is_placed[place] = true;
            }
            offset += 2.0 * length + 2.0;
        }
        distances
    }

    /// All that can be reached, in the order of steps to it, which are noted.
    fn walk(&self, start: u32, steps: &mut [u32]) -> Vec<u32> {
        let mut met = vec![start];
        steps[start as usize] = 0;
        let mut next = 0;
        while let Some(&txn) = met.get(next) {
            next += 1;
            for &(other, _) in self.of(txn as usize) {
                if steps[other as usize] == u32::MAX {
                    steps[other as usize] = steps[txn as usize] + 1;
                    met.push(other);
                }
            }
        }
        met
    }
}

/// Moves the line to its middle and gives it its length back: what is the same for all says
/// nothing, and averages shrink the rest.
fn rescale(places: &mut [f64], weights: &[f64]) {
    let total: f64 = weights.iter().sum();
    let middle = places.iter().zip(weights).map(|(place, weight)| place * weight).sum::<f64>();
    let middle = middle / total.max(1.0);
    let mut spread = 0.0;
    for (place, weight) in places.iter_mut().zip(weights) {
        *place -= middle;
        spread += *place * *place * weight;
    }
    let length = (spread / total.max(1.0)).sqrt().max(f64::MIN_POSITIVE);
    for place in places {
        *place /= length;
    }
}
