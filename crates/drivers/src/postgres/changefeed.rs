//! The order of versions as CockroachDB has it: a changefeed.
//!
//! `EXPERIMENTAL CHANGEFEED FOR table WITH updated, resolved` answers with a row for each
//! changed row, as JSON, with the timestamp of its transaction, and now and then with a
//! *resolved* timestamp: nothing older is going to come. Rows may come twice, and rows of
//! different keys in any order; timestamps are the order of versions. Of several versions of
//! one key by one transaction only the last is told.
//!
//! The feed never ends, so a thread of its own reads it. Asking waits until everything that
//! was committed by then has come, which takes as long as the cluster's closed timestamps lag
//! behind: three seconds, unless `kv.closed_timestamp.target_duration` says otherwise.

use super::errors::described;
use isolde_harness::{Evidence, Failure, Installed};
use postgres::Client;
use postgres::fallible_iterator::FallibleIterator;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long nothing may come, not even a resolved timestamp.
const SILENCE_LIMIT: Duration = Duration::from_mins(1);

/// A timestamp of the cluster: nanoseconds and a counter.
type Stamp = (u64, u64);

/// What a feed tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// A version, and when it was committed.
    Version(Stamp, Installed),
    /// Nothing older comes any more.
    Resolved(Stamp),
}

/// Reads the changefeed of one table.
pub(super) struct Changefeed {
    client: Client,
    messages: Receiver<Result<Told, String>>,
    /// Versions that may still be preceded by others.
    waiting: BTreeMap<(Stamp, u64), Installed>,
}

impl Changefeed {
    /// Begins to follow the registers, from now on, on the second connection.
    pub(super) fn begin(
        mut client: Client,
        mut feed: Client,
        registers: &str,
    ) -> Result<Changefeed, Failure> {
        if registers.is_empty() {
            return Err(Failure::Refused(
                "this workload has no registers; the order of lists shows in what is read of them, \
                 so leave --white-box out"
                    .to_owned(),
            ));
        }
        let row = client
            .query_one("SELECT cluster_logical_timestamp()::string", &[])
            .map_err(|error| refusal(&error))?;
        let cursor: String = row.get(0);
        let statement = format!(
            "EXPERIMENTAL CHANGEFEED FOR {registers} WITH updated, resolved = '200ms', \
             min_checkpoint_frequency = '200ms', cursor = '{cursor}'"
        );
        feed.batch_execute("SET statement_timeout = 0").map_err(|error| refusal(&error))?;
        let (sender, messages) = channel();
        std::thread::Builder::new()
            .name("changefeed".to_owned())
            .spawn(move || follow(&mut feed, &statement, &sender))
            .map_err(|error| Failure::Refused(format!("cannot follow the changefeed: {error}")))?;
        Ok(Changefeed { client, messages, waiting: BTreeMap::new() })
    }
}

/// Passes on what the feed tells until nobody listens any more.
fn follow(feed: &mut Client, statement: &str, sender: &Sender<Result<Told, String>>) {
    let told = feed.query_raw(statement, std::iter::empty::<i32>()).and_then(|mut rows| {
        while let Some(row) = rows.next()? {
            let [key, value] = [1, 2].map(|column| row.try_get::<_, Option<Vec<u8>>>(column));
            let message = message(key?.as_deref().unwrap_or_default(), &value?.unwrap_or_default());
            if sender.send(message).is_err() {
                break;
            }
        }
        Ok(())
    });
    if let Err(error) = told {
        let Failure::Refused(text) = refusal(&error) else { return };
        // Nobody may be there to hear it.
        let _ = sender.send(Err(text));
    }
}

/// What is missing, and how to get it.
fn refusal(error: &postgres::Error) -> Failure {
    let text = described(error);
    let advice = if text.contains("rangefeed") {
        "; changefeeds need SET CLUSTER SETTING kv.rangefeed.enabled = true"
    } else if text.contains("42501") {
        "; the user needs GRANT CHANGEFEED ON TABLE, or SELECT before version 22.2"
    } else {
        ""
    };
    Failure::Refused(format!("cannot follow the changefeed: {text}{advice}"))
}

/// A row of the feed: the key as `[5]`, and the rest.
fn message(key: &[u8], value: &[u8]) -> Result<Told, String> {
    let wrong = || {
        let shown = String::from_utf8_lossy(value);
        format!("expected a row with key, value and time in the changefeed, found {shown}")
    };
    let value: Value = serde_json::from_slice(value).map_err(|_| wrong())?;
    if let Some(resolved) = value.get("resolved").and_then(Value::as_str) {
        return stamp(resolved).map(Told::Resolved).ok_or_else(wrong);
    }
    let updated = value.get("updated").and_then(Value::as_str).and_then(stamp).ok_or_else(wrong)?;
    let key: Value = serde_json::from_slice(key).map_err(|_| wrong())?;
    let key = key.get(0).and_then(Value::as_u64).ok_or_else(wrong)?;
    let installed = match value.get("after") {
        Some(Value::Null) => Installed { key, value: None, number: None },
        Some(row) => {
            let value = row.get("value").and_then(Value::as_u64).ok_or_else(wrong)?;
            Installed { key, value: Some(value), number: None }
        }
        None => return Err(wrong()),
    };
    Ok(Told::Version(updated, installed))
}

/// `1600000000000000000.0000000001`.
fn stamp(text: &str) -> Option<Stamp> {
    let (nanoseconds, counter) = text.split_once('.').unwrap_or((text, "0"));
    Some((nanoseconds.parse().ok()?, counter.parse().ok()?))
}

impl Evidence for Changefeed {
    fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure> {
        let row = self
            .client
            .query_one("SELECT cluster_logical_timestamp()::string", &[])
            .map_err(|error| refusal(&error))?;
        let now = stamp(row.get(0)).unwrap_or((u64::MAX, 0));
        loop {
            match self.messages.recv_timeout(SILENCE_LIMIT) {
                Ok(Ok(told)) => {
                    if take(&mut self.waiting, told, found).is_some_and(|resolved| resolved >= now)
                    {
                        return Ok(());
                    }
                }
                Ok(Err(text)) => return Err(Failure::Refused(text)),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure::Lost(format!(
                        "the changefeed said nothing for {SILENCE_LIMIT:?}"
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Lost("the changefeed has ended".to_owned()));
                }
            }
        }
    }

    fn omits_intermediate(&self) -> bool {
        true
    }
}

/// Keeps a version until everything before it has come; what is resolved, in order, was
/// found.
fn take(
    waiting: &mut BTreeMap<(Stamp, u64), Installed>,
    told: Told,
    found: &mut Vec<Installed>,
) -> Option<Stamp> {
    match told {
        Told::Version(stamp, installed) => {
            waiting.insert((stamp, installed.key), installed);
            None
        }
        Told::Resolved(resolved) => {
            let later = waiting.split_off(&(resolved, u64::MAX));
            found.extend(std::mem::replace(waiting, later).into_values());
            Some(resolved)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers as CockroachDB's documentation describes them: the key, a tab, the value.
    const ANSWERS: &str = include_str!("../../tests/fixtures/cockroachdb-changefeed.txt");

    #[test]
    fn versions_come_in_the_order_of_their_timestamps_each_once() {
        let (mut waiting, mut found) = (BTreeMap::new(), Vec::new());
        let mut resolved = Vec::new();
        for line in ANSWERS.lines().filter(|line| !line.starts_with('#')) {
            let (key, value) = line.split_once('\t').expect("a tab");
            let told = message(key.as_bytes(), value.as_bytes()).expect("an answer");
            if take(&mut waiting, told, &mut found).is_some() {
                resolved.push(found.len());
            }
        }
        let version = |key, value| Installed { key, value, number: None };
        assert_eq!(
            found,
            [version(5, Some(12)), version(7, Some(13)), version(5, Some(14)), version(7, None),]
        );
        assert_eq!(resolved, [0, 3, 4]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for (key, value) in
            [("[5]", "{}"), ("[]", r#"{"after": null, "updated": "1.0"}"#), ("", "x")]
        {
            let error = message(key.as_bytes(), value.as_bytes()).expect_err(value);
            assert!(error.ends_with(&format!("found {value}")), "{error}");
        }
    }
}
