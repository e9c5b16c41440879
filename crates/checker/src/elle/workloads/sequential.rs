//! `sequential`: a client's writes are seen in their order.
//!
//! **Definition** [Jepsen's `sequential`]. One client writes the parts of a key in
//! order; another reads them in the opposite order, last part first. Who saw a part
//! sees all earlier ones: in a read `[key [part …]]`, no part is absent after one that
//! is there.
//!
//! **Method.** One pass over each read. Linear.

use super::{Finding, Misfit, Problem, Recorded};
use isolde_history::Tree;

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let mut problems = Vec::new();
    let (mut reads, mut whole, mut none) = (0, 0, 0);
    for read in recorded.done("read") {
        let misfit = Misfit { op: read.op, expected: "`[key [part …]]`".into() };
        let Tree::Sequence(pair) = &read.value else { return Err(misfit) };
        let [key, Tree::Sequence(parts)] = pair.as_slice() else { return Err(misfit) };
        reads += 1;
        let first = parts.iter().position(|part| *part != Tree::Nil);
        none += usize::from(first.is_none());
        whole += usize::from(first == Some(0));
        let Some(first) = first else { continue };
        let missing = parts[first..].iter().position(|part| *part == Tree::Nil);
        if let Some(missing) = missing {
            whole -= usize::from(first == 0);
            let name = recorded.history.readable_name(recorded.history.txn_of(read.op));
            let text = format!(
                "{name} saw {} of key {key}, and then missed a part that was written before it",
                parts[first + missing - 1]
            );
            problems.push(Problem { name: "out-of-order", ops: vec![read.op], text });
        }
    }
    if reads == 0 {
        return Ok(Finding::vacuous("no key was ever read"));
    }
    let counts = vec![("reads", reads), ("all", whole), ("none", none)];
    Ok(Finding::of(problems, counts))
}
