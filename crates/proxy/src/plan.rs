//! How a statement is sent so that the rows that it reads and writes can be told.
//!
//! Columns are added behind its own: the system column `xmin`, which is the number of the
//! transaction that wrote this version of the row, and the primary key. They are taken out of
//! the answer again, so that the application sees its own columns alone.

use crate::catalog::{Catalog, Function, Known, Table};
use crate::sql::{Shape, TableRef, Verb};
use std::sync::Arc;

/// Columns that were added for one table.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    pub(crate) table: Arc<Table>,
    pub(crate) form: Form,
}

/// How the versions of a table are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A column with the number of the writer, and so many with the key.
    Row { keys: usize },
    /// One column with all rows of a group as JSON, each a list of writer and key.
    Group,
}

impl Hidden {
    pub(crate) fn width(&self) -> usize {
        match self.form {
            Form::Row { keys } => 1 + keys,
            Form::Group => 1,
        }
    }
}

/// What is done with a statement.
#[expect(clippy::struct_excessive_bools, reason = "none of them follows from others")]
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) verb: Verb,
    /// Its number in the recording.
    pub(crate) statement: u32,
    pub(crate) hidden: Vec<Hidden>,
    /// Columns that were added.
    pub(crate) width: usize,
    /// Where they were put into the text, in bytes, and what.
    pub(crate) added: Option<(usize, String)>,
    /// The application asked for no rows at all.
    pub(crate) is_silent: bool,
    /// Writers are told by the number of the whole transaction: in a savepoint that is not who
    /// wrote.
    pub(crate) has_whole_number: bool,
    /// What is not seen of it.
    pub(crate) gap: Option<&'static str>,
    /// It may write rows that are not told.
    pub(crate) may_write_more: bool,
    pub(crate) isolation: Option<String>,
    pub(crate) is_chained: bool,
    /// Names may mean something else behind it.
    pub(crate) changes_names: bool,
}

impl Plan {
    /// One that is passed on as it is.
    pub(crate) fn unchanged(shape: &Shape, statement: u32, gap: Option<&'static str>) -> Plan {
        let is_unknown = shape.verb == Verb::Other || shape.opaque.is_some();
        let writes = matches!(shape.verb, Verb::Insert | Verb::Update | Verb::Delete);
        Plan {
            verb: shape.verb.clone(),
            statement,
            hidden: Vec::new(),
            width: 0,
            added: None,
            is_silent: false,
            has_whole_number: false,
            gap,
            may_write_more: is_unknown || (writes && gap.is_some()),
            isolation: shape.isolation.clone(),
            is_chained: shape.is_chained,
            changes_names: shape.changes_names,
        }
    }

    /// How the statement of this shape is sent, given what is known of all its names.
    pub(crate) fn of(shape: &Shape, statement: u32, catalog: &Catalog) -> Plan {
        let unchanged = |gap| Plan::unchanged(shape, statement, gap);
        if let Some(reason) = shape.opaque {
            return unchanged(Some(reason));
        }
        let function = |name: &String| catalog.functions.get(name).copied();
        let has_foreign = shape.calls.iter().any(|it| function(it) == Some(Function::Foreign));
        let gap = if has_foreign { Some("a function that may read and write") } else { shape.gap };
        let mut plan = Plan { gap, ..unchanged(None) };
        plan.may_write_more = has_foreign;
        let mut aggregates = shape.column_calls.iter();
        let is_aggregate = aggregates.any(|it| function(it) == Some(Function::Aggregate));
        let is_group = is_aggregate || shape.has_group;
        if is_group && shape.has_window {
            return unchanged(Some("aggregates with windows"));
        }
        for table in &shape.tables {
            match catalog.tables.get(&table.name) {
                Some(Known::Table(known)) => {
                    let form = match (is_group, known.is_large) {
                        (false, _) => Form::Row { keys: known.keys.len().max(1) },
                        (true, false) => Form::Group,
                        (true, true) => {
                            plan.gap = Some("an aggregate of a large table");
                            continue;
                        }
                    };
                    plan.add(known, &table.qualifier, form);
                }
                Some(Known::Unseen(what)) => {
                    plan.gap = Some(what);
                    plan.may_write_more = true;
                }
                Some(Known::Missing) => plan.gap = Some("a table that was not there before"),
                Some(Known::Nothing) | None => {}
            }
        }
        let is_system = |it: &TableRef| catalog.tables.get(&it.name) == Some(&Known::Nothing);
        if !shape.tables.is_empty() && shape.tables.iter().all(is_system) {
            // Tools look at the catalog with queries in queries.
            plan.gap = None;
        }
        plan.finish(shape)
    }

    fn add(&mut self, table: &Arc<Table>, qualifier: &str, form: Form) {
        let writes = matches!(self.verb, Verb::Insert | Verb::Update);
        let is_delete = self.verb == Verb::Delete;
        let mut writer = format!("{qualifier}.xmin");
        if table.is_partitioned && writes {
            // Also if it is a number of 64 bits: what readers find are its lower 32.
            "pg_catalog.pg_current_xact_id()::pg_catalog.text".clone_into(&mut writer);
            self.has_whole_number = true;
        } else if table.is_partitioned && is_delete {
            "NULL::pg_catalog.text".clone_into(&mut writer);
        }
        // A removal does not tell the number of who removes.
        let changes_others = table.has_dependents && is_delete;
        if changes_others {
            self.gap = Some("rows that refer to what is removed");
        }
        let has_triggers = table.has_triggers && (writes || is_delete);
        if has_triggers {
            self.gap = Some("what triggers do");
        }
        self.may_write_more |= has_triggers || changes_others;
        // The client's own columns may have the same names, and be ordered by them.
        let mut count = self.width;
        let mut named = |column: &str| {
            count += 1;
            format!("{column} AS isolde_{count}")
        };
        let mut keys: Vec<String> =
            table.keys.iter().map(|key| format!("{qualifier}.{key}::pg_catalog.text")).collect();
        if keys.is_empty() {
            if table.is_partitioned {
                self.gap = Some("a partitioned table without a key");
                return;
            }
            keys.push(format!("{qualifier}.ctid::pg_catalog.text"));
        }
        let columns = match form {
            Form::Row { .. } => {
                let columns = std::iter::once(&writer).chain(&keys);
                columns.map(|column| named(column)).collect::<Vec<_>>().join(", ")
            }
            Form::Group => named(&format!(
                "pg_catalog.json_agg(pg_catalog.json_build_array({writer}::pg_catalog.text, {}))",
                keys.join(", ")
            )),
        };
        let hidden = Hidden { table: Arc::clone(table), form };
        self.width += hidden.width();
        self.hidden.push(hidden);
        let (_, text) = self.added.get_or_insert_with(|| (0, String::new()));
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&columns);
    }

    /// Puts what is added where it belongs.
    fn finish(mut self, shape: &Shape) -> Plan {
        let is_write = matches!(shape.verb, Verb::Insert | Verb::Update | Verb::Delete);
        if is_write && self.hidden.is_empty() && self.gap.is_some() {
            self.may_write_more = true;
        }
        if let Some((place, text)) = &mut self.added {
            *place = shape.insert_at;
            let is_silent = is_write && !shape.has_returning;
            *text = if is_silent { format!(" RETURNING {text}") } else { format!(", {text}") };
            self.is_silent = is_silent;
        }
        self
    }
}
