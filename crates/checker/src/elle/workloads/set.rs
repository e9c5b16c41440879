//! `set`: what was added is there at the end.
//!
//! **Definition** [Jepsen's `set`]. The last successful read has every element whose
//! `add` succeeded, and none that nobody tried to add.
//!
//! **Method.** Two sets. Linear.

use super::{Finding, Misfit, Problem, Recorded};
use hashbrown::HashSet;
use isolde_history::Tree;

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let Some(last) = recorded.done("read").last().filter(|read| read.value != Tree::Nil) else {
        return Ok(Finding::unknown("the set was never read"));
    };
    let Some(members) = last.value.members() else {
        return Err(Misfit { op: last.op, expected: "a sequence or set of elements".into() });
    };
    let read: HashSet<&Tree> = members.iter().collect();
    let tried: HashSet<&Tree> =
        recorded.calls.iter().filter(|it| it.function == "add").map(|it| &it.value).collect();
    let mut problems = Vec::new();
    let mut counted: HashSet<&Tree> = HashSet::new();
    for add in recorded.done("add") {
        if counted.insert(&add.value) && !read.contains(&add.value) {
            problems.push(Problem {
                name: "lost",
                ops: vec![add.op, last.op],
                text: format!("{} was added, and the last read does not have it", add.value),
            });
        }
    }
    let mut shown: HashSet<&Tree> = HashSet::new();
    for element in members.iter().filter(|it| !tried.contains(*it)) {
        if shown.insert(element) {
            problems.push(Problem {
                name: "unexpected",
                ops: vec![last.op],
                text: format!("the last read has {element}, which nobody tried to add"),
            });
        }
    }
    let counts = vec![("attempts", tried.len()), ("added", counted.len()), ("read", read.len())];
    Ok(Finding::of(problems, counts))
}
