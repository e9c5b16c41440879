//! The order of versions as PostgreSQL has it: its log, decoded.
//!
//! Logical decoding gives the changes of committed transactions in the order of their
//! commits. Of one key that is the order of its versions, because the second writer of a
//! row waits for the first. It is *not* the order in which commits become visible, so
//! nothing else is concluded from it. Several versions by one transaction are all there.
//!
//! What is visible comes from snapshots. PostgreSQL tells them as `10:20:10,14`: everything
//! below 10 is over, nothing from 20 on had begun, and 10 and 14 were running. A snapshot
//! names transactions by the numbers that they get when they first write.
//!
//! The slot is temporary: the server drops it with the connection, however that ends.

use super::errors::described;
use crate::sql::Tables;
use isolde_harness::{Evidence, Failure, Installed, Past, Snapshot};
use postgres::Client;
use std::collections::BTreeMap;

/// Changes that are fetched at once; a transaction is never cut in two.
const CHANGES_MAX: i32 = 20_000;

/// Decodes the changes of one table.
pub(super) struct Decoding {
    client: Client,
    slot: String,
    /// How lines about the table begin.
    beginning: String,
    /// A number that a transaction had when this began, in all of its 64 bits; the log has 32.
    recent: u64,
    /// The transaction whose changes are being read.
    txn: Option<u64>,
}

impl Decoding {
    /// Begins to decode the changes of the registers, from now on.
    pub(super) fn begin(mut client: Client, tables: &Tables) -> Result<Decoding, Failure> {
        let registers = &tables.registers;
        if registers.is_empty() {
            return Err(Failure::Refused(
                "this workload has no registers; the order of lists shows in what is read of them, \
                 so leave --white-box out"
                    .to_owned(),
            ));
        }
        let refused = |error: postgres::Error| refusal(&error);
        client.batch_execute("SET statement_timeout = 0").map_err(refused)?;
        let row = client
            .query_one(
                "SELECT current_setting('wal_level'), current_schema()::text, \
                 pg_snapshot_xmax(pg_current_snapshot())::text",
                &[],
            )
            .map_err(refused)?;
        let level: String = row.get(0);
        if level != "logical" {
            return Err(Failure::Refused(format!(
                "expected wal_level to be logical for --white-box, found {level}; set \
                 wal_level = logical in postgresql.conf and restart the server"
            )));
        }
        let schema: Option<String> = row.get(1);
        let slot = format!("{}slot", registers.trim_end_matches("registers"));
        client
            .execute(
                "SELECT pg_create_logical_replication_slot($1, 'test_decoding', true)",
                &[&slot],
            )
            .map_err(refused)?;
        let schema = schema.unwrap_or_else(|| "public".to_owned());
        let recent: String = row.get(2);
        let recent = recent.parse().map_err(|_| {
            Failure::Refused(format!("expected the number of a transaction, found {recent}"))
        })?;
        let beginning = format!("table {schema}.{registers}: ");
        Ok(Decoding { client, slot, beginning, recent, txn: None })
    }
}

/// What is missing, and how to get it.
fn refusal(error: &postgres::Error) -> Failure {
    let code = error.code().map_or("", postgres::error::SqlState::code);
    let text = described(error);
    Failure::Refused(format!("cannot follow the log: {text}{}", advice(code, &text)))
}

/// What to do about an error of this code and text.
fn advice(code: &str, text: &str) -> &'static str {
    let says = |part: &str| text.contains(part);
    match code {
        "42501" => {
            "; the user needs the attribute REPLICATION, which a superuser gives by ALTER ROLE name \
             REPLICATION"
        }
        "53400" => {
            "; drop one that nobody needs: SELECT slot_name FROM pg_replication_slots WHERE NOT \
             active, then SELECT pg_drop_replication_slot('name'); or raise max_replication_slots \
             and restart the server"
        }
        "55006" => {
            "; another connection reads this slot: let it end, or end it by SELECT \
             pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'name'"
        }
        "55000" if says("wal_level") => {
            "; set wal_level = logical in postgresql.conf and restart the server"
        }
        "55000" if says("not created in this database") => {
            "; name the database in the address that the slot was created in: SELECT database FROM \
             pg_replication_slots WHERE slot_name = 'name'"
        }
        "55000" if says("physical") => {
            "; expected a logical slot: SELECT pg_create_logical_replication_slot('name', \
             'test_decoding')"
        }
        "55000" if says("no longer") || says("invalidated") => {
            "; the server has removed the log that the slot needs: raise max_slot_wal_keep_size, \
             create a new slot and run again"
        }
        "55000" => "; the slot must belong to this database and have the plugin test_decoding",
        "42704" if says("replication slot") => {
            "; a slot keeps the log only from its creation on: create it before the run, by SELECT \
             pg_create_logical_replication_slot('name', 'test_decoding')"
        }
        "58P01" | "42704" => {
            "; the output plugin test_decoding is missing: it comes with the server's contrib \
             programs"
        }
        _ => "",
    }
}

impl Evidence for Decoding {
    fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure> {
        let rows = self
            .client
            .query(
                "SELECT data FROM pg_logical_slot_get_changes($1, NULL, $2, \
                 'skip-empty-xacts', '1', 'include-xids', '1')",
                &[&self.slot, &CHANGES_MAX],
            )
            .map_err(|error| refusal(&error))?;
        for row in &rows {
            let line: &str = row.try_get(0).map_err(|error| refusal(&error))?;
            if let Some(number) = line.strip_prefix("BEGIN ") {
                self.txn = number.parse().ok().map(|short| whole_number(self.recent, short));
            }
            let Some(change) = line.strip_prefix(self.beginning.as_str()) else { continue };
            let mut version = installed(change).ok_or_else(|| {
                Failure::Refused(format!("expected a change of key and value, found `{line}`"))
            })?;
            version.number = self.txn.filter(|_| version.value.is_none());
            found.push(version);
        }
        Ok(())
    }
}

/// The number of 64 bits that is nearest to a recent one and ends in these.
fn whole_number(recent: u64, short: u32) -> u64 {
    let later = short.wrapping_sub(recent as u32);
    recent.wrapping_add_signed(i64::from(later.cast_signed()))
}

/// The versions of the past that a slot has kept. They stay in it.
pub(super) fn recall(mut client: Client, past: &Past) -> Result<Vec<Installed>, Failure> {
    let Some(slot) = &past.slot else {
        return Err(Failure::Refused(
            "expected --slot: PostgreSQL keeps its log for those who asked before the run, by \
             SELECT pg_create_logical_replication_slot('name', 'test_decoding'); without one, use \
             isolde run --white-box"
                .to_owned(),
        ));
    };
    client.batch_execute("SET statement_timeout = 0").map_err(|error| refusal(&error))?;
    let rows = client
        .query(
            "SELECT data FROM pg_logical_slot_peek_changes($1, NULL, NULL, \
             'skip-empty-xacts', '1', 'include-xids', '0')",
            &[slot],
        )
        .map_err(|error| refusal(&error))?;
    let mut tables: BTreeMap<String, Vec<Installed>> = BTreeMap::new();
    for row in &rows {
        let line: &str = row.try_get(0).map_err(|error| refusal(&error))?;
        // Such as `table public.isolde_1_registers: INSERT: key[bigint]:5 value[bigint]:12`.
        let Some((table, change)) =
            line.strip_prefix("table ").and_then(|rest| rest.split_once(": "))
        else {
            continue;
        };
        let name = table.split_once('.').map_or(table, |(_, name)| name);
        if past.is_wanted(name)
            && let Some(installed) = installed(change)
        {
            tables.entry(name.to_owned()).or_default().push(installed);
        }
    }
    past.choose(tables)
}

/// The version that a change installed, such as `UPDATE: key[bigint]:5 value[bigint]:12`.
fn installed(change: &str) -> Option<Installed> {
    let (kind, row) = change.split_once(": ")?;
    let column = |name: &str| -> Option<u64> {
        let (_, rest) = row.split_once(name)?;
        rest.split(' ').next()?.parse().ok()
    };
    let key = column("key[bigint]:")?;
    let value = match kind {
        "INSERT" | "UPDATE" => Some(column("value[bigint]:")?),
        "DELETE" => None,
        _ => return None,
    };
    Some(Installed { key, value, number: None })
}

/// The snapshot that PostgreSQL writes like this, such as `10:20:10,14`.
pub(super) fn snapshot(text: &str) -> Option<Snapshot> {
    let mut parts = text.split(':');
    let (_, next, running) = (parts.next()?, parts.next()?, parts.next()?);
    let running = running.split(',').filter(|number| !number.is_empty());
    let mut except = running.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    except.sort_unstable();
    Some(Snapshot { below: next.parse().ok()?, except })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_read_as_they_are_written() {
        let seen = |below, except: &[u64]| Some(Snapshot { below, except: except.to_vec() });
        for (text, expected) in [
            ("10:20:10,14", seen(20, &[10, 14])),
            ("10:10:", seen(10, &[])),
            ("10:20", None),
            ("10:x:", None),
            ("", None),
        ] {
            assert_eq!(snapshot(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_the_log_are_near_those_of_the_snapshots() {
        assert_eq!(whole_number(700, 705), 705);
        assert_eq!(whole_number((3 << 32) + 700, 690), (3 << 32) + 690);
        assert_eq!(whole_number((3 << 32) - 2, 5), (3 << 32) + 5);
    }

    #[test]
    fn changes_are_versions_and_removals() {
        let version = |key, value| Some(Installed { key, value, number: None });
        for (change, expected) in [
            ("INSERT: key[bigint]:5 value[bigint]:12", version(5, Some(12))),
            ("UPDATE: key[bigint]:5 value[bigint]:13", version(5, Some(13))),
            ("DELETE: key[bigint]:5", version(5, None)),
            ("DELETE: (no-tuple-data)", None),
            ("TRUNCATE: (no-flags)", None),
            ("UPDATE: key[bigint]:5 value[bigint]:null", None),
            ("", None),
        ] {
            assert_eq!(installed(change), expected, "{change}");
        }
    }
}
