//! The order of versions as TiDB has it: all versions that its store still holds.
//!
//! TiDB answers by HTTP what it stores of a row: `/mvcc/key/DATABASE/TABLE/KEY` lists the
//! commits of the row, the last one first, with their timestamps and contents. Commit
//! timestamps are the order of versions. Of several versions of one key by one transaction
//! only the last is stored. What the garbage collection has removed is gone, so its
//! `tidb_gc_life_time` must be longer than the run.
//!
//! Rows are stored in TiDB's row format 2: a head, the ids of the columns, where each ends, and
//! the contents; integers are little-endian and as short as they can be.

use super::driver::Server;
use super::errors::described;
use crate::http::Connection;
use crate::network;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use isolde_harness::{Evidence, Failure, Installed};
use mysql::prelude::Queryable;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where TiDB answers by HTTP, unless it is told otherwise.
const STATUS_PORT: u16 = 10080;

/// Reads the stored versions of one table.
pub(super) struct StoredVersions {
    server: Server,
    status: network::Server,
    /// Database and table.
    table: (String, String),
    /// The last commit of each key that was told already. Of what comes before it the garbage
    /// collection may take what it wants.
    told: BTreeMap<u64, u64>,
}

impl StoredVersions {
    /// Begins to look at the registers.
    pub(super) fn begin(server: &Server, registers: &str) -> Result<StoredVersions, Failure> {
        if registers.is_empty() {
            return Err(Failure::Refused(
                "this workload has no registers; the order of lists shows in what is read of them, \
                 so leave --white-box out"
                    .to_owned(),
            ));
        }
        let mut conn = server.connect()?;
        let database: Option<String> = conn
            .query_first("SELECT DATABASE()")
            .map_err(|error| Failure::Refused(described(&error)))?;
        let (host, _) = server.name().rsplit_once(':').unwrap_or((server.name(), ""));
        let mut stored = StoredVersions {
            server: server.clone(),
            status: network::Server::plain(host, STATUS_PORT),
            table: (database.unwrap_or_default(), registers.to_owned()),
            told: BTreeMap::new(),
        };
        // Whether somebody answers shows now.
        stored.collect(&mut Vec::new())?;
        Ok(stored)
    }

    /// Keys that there are, or were when this was last asked.
    fn keys(&self) -> Result<Vec<u64>, Failure> {
        let mut conn = self.server.connect()?;
        let keys: Vec<u64> = conn
            .query(format!("SELECT `key` FROM {}", self.table.1))
            .map_err(|error| Failure::Refused(described(&error)))?;
        let mut keys: Vec<u64> = keys.into_iter().chain(self.told.keys().copied()).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }
}

impl Evidence for StoredVersions {
    fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure> {
        let refused = |failure: Failure| {
            Failure::Refused(format!(
                "expected TiDB's status server at {} for --white-box: {}; start TiDB with --status",
                self.status.name(),
                failure.reason()
            ))
        };
        let mut connection = Connection::open(&self.status).map_err(refused)?;
        for key in self.keys()? {
            let path = format!("/mvcc/key/{}/{}/{key}", self.table.0, self.table.1);
            let answered =
                connection.get(&path).map_err(|error| Failure::Lost(error.to_string()))?;
            let versions = versions(key, &answered.body).ok_or_else(|| {
                Failure::Refused(format!(
                    "expected the versions of key {key} from TiDB's status server, found {}",
                    answered.body
                ))
            })?;
            let told = self.told.entry(key).or_default();
            found.extend(untold(versions, told));
        }
        Ok(())
    }

    fn omits_intermediate(&self) -> bool {
        true
    }
}

/// Versions after the last one that was told, which is now the last of these.
fn untold(versions: BTreeMap<u64, Installed>, told: &mut u64) -> Vec<Installed> {
    let before = *told;
    *told = versions.keys().next_back().map_or(before, |&last| last.max(before));
    versions.into_iter().filter(|(commit, _)| *commit > before).map(|it| it.1).collect()
}

/// The versions of a key by their commits.
fn versions(key: u64, answer: &Value) -> Option<BTreeMap<u64, Installed>> {
    let info = answer.pointer("/value/info").or_else(|| answer.pointer("/info"))?;
    let mut commits = BTreeMap::new();
    for write in info.get("writes").and_then(Value::as_array).into_iter().flatten() {
        let value = match write.get("type").and_then(Value::as_u64).unwrap_or(0) {
            0 => {
                let start = write.get("start_ts")?;
                let content = match write.get("short_value").and_then(Value::as_str) {
                    Some(short) => short,
                    // Longer contents are stored apart, by the time of the begin.
                    None => (info.get("values")?.as_array()?.iter())
                        .find(|it| it.get("start_ts") == Some(start))?
                        .get("value")?
                        .as_str()?,
                };
                Some(second_column(&BASE64_STANDARD.decode(content).ok()?)?)
            }
            1 => None,
            // A lock that was released, or a transaction that was rolled back.
            _ => continue,
        };
        commits.insert(write.get("commit_ts")?.as_u64()?, Installed { key, value, number: None });
    }
    Some(commits)
}

/// The one integer beside the key in a row of format 2.
fn second_column(row: &[u8]) -> Option<u64> {
    let [128, flags, columns, 0, nulls, 0, rest @ ..] = row else { return None };
    let is_large = flags & 1 != 0;
    let (columns, nulls) = (usize::from(*columns), usize::from(*nulls));
    let (id_bytes, end_bytes) = if is_large { (4, 4) } else { (1, 2) };
    let ends = rest.get((columns + nulls) * id_bytes..)?;
    let (ends, data) = ends.split_at_checked(columns * end_bytes)?;
    let last = ends.chunks(end_bytes).next_back()?;
    let before = ends.chunks(end_bytes).rev().nth(1);
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let from = usize::try_from(before.map_or(0, number)).ok()?;
    let content = data.get(from..usize::try_from(number(last)).ok()?)?;
    (content.len() <= 8).then(|| number(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer as TiDB's documentation describes it.
    const ANSWER: &str = include_str!("../../tests/fixtures/tidb-mvcc.json");

    #[test]
    fn versions_come_in_the_order_of_their_commits() {
        let answer: Value = serde_json::from_str(ANSWER).expect("JSON");
        let version = |value| Installed { key: 5, value, number: None };
        let mut all = versions(5, &answer).expect("an answer");
        let mut told = 0;
        let expected = [version(Some(12)), version(None), version(Some(70_000))];
        assert_eq!(untold(all.clone(), &mut told), expected);
        assert_eq!(untold(all.clone(), &mut told), []);
        // The garbage collection takes the first one, and another one is committed.
        all.pop_first();
        all.insert(told + 1, version(Some(9)));
        assert_eq!(untold(all, &mut told), [version(Some(9))]);
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for text in [
            "{}",
            r#"{"value": {"info": {"writes": [{"start_ts": 1, "commit_ts": 2, "short_value": "!"}]}}}"#,
            r#"{"value": {"info": {"writes": [{"start_ts": 1, "commit_ts": 2}]}}}"#,
            r#"{"value": {"info": {"writes": [{"start_ts": 1, "type": 1}]}}}"#,
        ] {
            let answer: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(versions(5, &answer), None, "{text}");
        }
    }

    #[test]
    fn rows_are_read_to_their_end_and_not_beyond() {
        // One column with the id 2, whose content ends after one byte.
        assert_eq!(second_column(&[128, 0, 1, 0, 0, 0, 2, 1, 0, 12]), Some(12));
        assert_eq!(second_column(&[128, 0, 1, 0, 0, 0, 2, 9, 0, 12]), None);
        assert_eq!(second_column(&[128, 0, 1, 0, 0, 0, 2, 1]), None);
        assert_eq!(second_column(&[1, 2]), None);
    }
}
