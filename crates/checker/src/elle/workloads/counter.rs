//! `counter`: a counter is what was added to it.
//!
//! **Definition** [Jepsen's `counter`]. A counter starts at zero. A successful read is
//! at least the sum of what certainly was added before it began, and at most that of
//! what may have been added until it ended. Adding less than nothing counts towards the
//! other bound; Jepsen does not allow it.
//!
//! **Method.** Sums of additions by completion and by invocation, and a binary search
//! in each for every read. O(n log n).

use super::calls::Call;
use super::{Finding, Misfit, Problem, Recorded};
use isolde_history::{NEVER, Time, Tree};

/// What was added up to some time, split by its sign.
#[derive(Clone, Copy, Default)]
struct Sum {
    more: i128,
    less: i128,
}

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let done = sums(recorded.done("add"), |add| add.completed)?;
    let sent = sums(recorded.possible("add"), |add| add.invoked)?;
    let mut problems = Vec::new();
    let mut reads = 0;
    for read in recorded.done("read") {
        let value = integer(read)?;
        reads += 1;
        // Without times nothing certainly came before.
        let certain = up_to(&done, |time| time < read.invoked && time != NEVER);
        let possible = up_to(&sent, |time| time <= read.completed);
        let lowest = certain.more + possible.less;
        let highest = possible.more + certain.less;
        if value < lowest || value > highest {
            let name = recorded.history.readable_name(recorded.history.txn_of(read.op));
            let text = format!("{name} read {value}, which should be from {lowest} to {highest}");
            problems.push(Problem { name: "out-of-bounds", ops: vec![read.op], text });
        }
    }
    if reads == 0 {
        return Ok(Finding::vacuous("the counter was never read"));
    }
    Ok(Finding::of(problems, vec![("reads", reads)]))
}

fn integer(call: &Call<'_>) -> Result<i128, Misfit> {
    match call.value {
        Tree::Int(number) => Ok(number),
        _ => Err(Misfit { op: call.op, expected: "an integer".into() }),
    }
}

/// Times in order, each with the sum up to and including it.
fn sums<'a>(
    adds: impl Iterator<Item = &'a Call<'a>>,
    time: fn(&Call<'_>) -> Time,
) -> Result<Vec<(Time, Sum)>, Misfit> {
    let mut added = Vec::new();
    for add in adds {
        added.push((time(add), integer(add)?));
    }
    added.sort_unstable();
    let mut sum = Sum::default();
    let next = |(time, number): (Time, i128)| {
        sum.more += number.max(0);
        sum.less += number.min(0);
        (time, sum)
    };
    Ok(added.into_iter().map(next).collect())
}

fn up_to(sums: &[(Time, Sum)], is_before: impl Fn(Time) -> bool) -> Sum {
    let count = sums.partition_point(|&(time, _)| is_before(time));
    count.checked_sub(1).map_or(Sum::default(), |last| sums[last].1)
}
