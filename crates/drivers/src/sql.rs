//! What the drivers of SQL servers have in common: tables, requests, stages of a transaction.

use isolde_harness::{Failure, Filter, Needs, RequestKind};

/// What can be asked for. Kinds that are added later are no part of it until a driver
/// has a statement for them.
pub(crate) const SUPPORTED: &[RequestKind] = &[
    RequestKind::Read,
    RequestKind::Write,
    RequestKind::ReadList,
    RequestKind::Append,
    RequestKind::Insert,
    RequestKind::Delete,
    RequestKind::Range,
    RequestKind::CompareAndSet,
    RequestKind::UpdateRange,
    RequestKind::Select,
    RequestKind::Aggregate,
    RequestKind::UpdateWhere,
    RequestKind::DeleteWhere,
];

/// Which of the statements for conditions is that of a filter.
pub(crate) const fn place_of(filter: Filter) -> usize {
    match filter {
        Filter::Keys { .. } => 0,
        Filter::Values { .. } => 1,
        Filter::Remainder { .. } => 2,
    }
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Anything before the commit.
    Statement,
    /// The commit.
    Commit,
}

impl Stage {
    /// What a connection that broke at this stage means for the transaction.
    pub(crate) fn disconnected(self, text: String) -> Failure {
        match self {
            Stage::Statement => Failure::Lost(text),
            Stage::Commit => Failure::Unknown(text),
        }
    }
}

/// Names of the tables; empty if there are none.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    pub(crate) registers: String,
    pub(crate) lists: String,
    /// Whether conditions on values are asked for.
    pub(crate) by_condition: bool,
}

impl Tables {
    /// Takes note of what is needed beside tables.
    pub(crate) fn note(&mut self, needs: &Needs) {
        self.by_condition = needs.requests.iter().any(|kind| kind.is_by_condition());
    }

    /// The statement that removes them.
    pub(crate) fn removal(&self) -> Option<String> {
        let names: Vec<&str> = self.names().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("DROP TABLE IF EXISTS {}", names.join(", ")))
    }

    /// Removes them, one by one, with what executes a statement. Those that cannot be removed
    /// are still there.
    pub(crate) fn remove(
        &mut self,
        mut execute: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for table in [&mut self.registers, &mut self.lists] {
            if table.is_empty() {
                continue;
            }
            execute(&format!("DROP TABLE IF EXISTS {table}")).map_err(|failure| match failure {
                Failure::Refused(text) => Failure::Refused(format!("cannot drop {table}: {text}")),
                transient => transient,
            })?;
            table.clear();
        }
        Ok(())
    }

    /// Those that there are.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        [&self.registers, &self.lists].into_iter().filter(|name| !name.is_empty())
    }
}
