//! Levels that ask for a commit order which explains what each reader missed.
//!
//! **Definition** [Biswas19 §2]. Some total order `co` of the counted
//! transactions contains reads-from, the known version order and, where the level
//! says so, session order. Whenever a reader reads a key from a writer, another
//! transaction writes the key and the level says that the reader must see that
//! other, then the other precedes the writer in `co`. Nothing precedes the initial
//! transaction.
//!
//! Read uncommitted asks for the version order alone: its reads mean nothing.
//!
//! Cursor stability is about items read one by one: rows of a read by condition
//! are left out, as repeatable read leaves out their anti-dependencies. Without
//! that, `p(all; x=0) w(x,1)` beside `p(all; x=0) w(x,2)` would satisfy
//! repeatable read [Adya99 §3.2.4] and violate the weaker cursor stability.

use super::execution::{Counted, Execution, ExternalRead};
use super::relation::{Relation, permutations};
use crate::level::Level;

/// Whether some commit order satisfies the level.
pub(super) fn is_satisfied(execution: &Execution<'_>, level: Level) -> bool {
    let required = required(execution, level);
    let txns: Vec<Counted> = (0..execution.counted.len()).collect();
    (permutations(&txns).iter())
        .map(|sequence| Relation::total(sequence))
        .any(|co| required.is_within(co) && explains_every_read(execution, level, co))
}

/// What the commit order must contain.
fn required(execution: &Execution<'_>, level: Level) -> Relation {
    let versions =
        (execution.versions.values()).fold(Relation::default(), |all, &versions| all.or(versions));
    let with_reads = versions.or(execution.reads_from);
    match level {
        Level::ReadUncommitted => versions,
        Level::AdyaReadCommitted
        | Level::MonotonicAtomicView
        | Level::CursorStability
        | Level::UpdateAtomic => with_reads,
        _ => with_reads.or(execution.session_order),
    }
}

fn explains_every_read(execution: &Execution<'_>, level: Level, co: Relation) -> bool {
    execution.reads.iter().all(|read| {
        (execution.writers.get(&read.key).into_iter().flatten())
            .filter(|&&other| other != read.reader && Some(other) != read.writer)
            .filter(|&&other| must_see(execution, level, co, read, other))
            .all(|&other| (read.writer).is_some_and(|writer| co.contains(other, writer)))
    })
}

/// Whether the reader, in this read, must see what `other` wrote.
fn must_see(
    execution: &Execution<'_>,
    level: Level,
    co: Relation,
    read: &ExternalRead,
    other: Counted,
) -> bool {
    let (so, wr) = (execution.session_order, execution.reads_from);
    let reader = read.reader;
    match level {
        Level::MonotonicAtomicView | Level::ReadCommitted => {
            (execution.reads.iter()).any(|earlier| {
                earlier.reader == reader && earlier.op < read.op && earlier.writer == Some(other)
            })
        }
        Level::ReadAtomic => so.or(wr).contains(other, reader),
        Level::Causal => so.or(wr).closure().contains(other, reader),
        Level::ReadYourWrites => so.contains(other, reader),
        Level::MonotonicReads => wr.then(so).contains(other, reader),
        Level::MonotonicWrites => so.then(wr).contains(other, reader),
        Level::WritesFollowReads => wr.then(so).then(wr).contains(other, reader),
        Level::UpdateAtomic => {
            wr.contains(other, reader)
                || (write_a_common_key(execution, other, reader) && co.contains(other, reader))
        }
        Level::CursorStability => {
            !read.is_row
                && execution.writers[&read.key].contains(&reader)
                && co.contains(other, reader)
        }
        _ => false,
    }
}

fn write_a_common_key(execution: &Execution<'_>, one: Counted, other: Counted) -> bool {
    (execution.writers.values()).any(|writers| writers.contains(&one) && writers.contains(&other))
}
