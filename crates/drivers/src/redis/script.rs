//! Transactions of Redis as one script each.
//!
//! The script is always the same; what it does is in its arguments, so that the server
//! compiles it once. Values are texts throughout, because Lua's numbers are not exact.

use super::driver::{list, range, register, value};
use super::errors::{unexpected, unknown};
use super::protocol::Connection;
use super::watch::elements;
use isolde_harness::{Access, Answer, Failure, Request, Session};
use redis::Value;

/// Arguments: for each request a letter, its keys and values. Reading a key that is not
/// there gives `false`, which is nothing in the reply.
const SCRIPT: &str = r"
local place, replies = 1, {}
local function next() place = place + 1 return ARGV[place - 1] end
while place <= #ARGV do
  local what, reply = next(), nil
  if what == 'R' then reply = redis.call('GET', next())
  elseif what == 'W' then local key = next() redis.call('SET', key, next()) reply = 1
  elseif what == 'L' then reply = redis.call('LRANGE', next(), 0, -1)
  elseif what == 'A' then local key = next() redis.call('RPUSH', key, next()) reply = 1
  elseif what == 'D' then reply = redis.call('DEL', next())
  elseif what == 'C' then
    local key, expected, new = next(), next(), next()
    local found = redis.call('GET', key)
    if (found or '') == expected then
      redis.call('SET', key, new) reply = 1
    else reply = {found} end
  elseif what == 'Q' then
    reply = {}
    for i = 1, tonumber(next()) do reply[i] = redis.call('GET', next()) end
  elseif what == 'U' then
    reply = {}
    for i = 1, tonumber(next()) do
      local key, new = next(), next()
      if redis.call('EXISTS', key) == 1 then redis.call('SET', key, new) reply[i] = new
      else reply[i] = false end
    end
  end
  replies[#replies + 1] = reply
end
return replies
";

pub(super) struct ScriptSession {
    connection: Connection,
    prefix: String,
}

impl ScriptSession {
    pub(super) fn new(connection: Connection, prefix: &str) -> ScriptSession {
        ScriptSession { connection, prefix: prefix.to_owned() }
    }

    fn arguments(&self, request: &Request, out: &mut Vec<String>) -> Result<(), Failure> {
        let mut add = |parts: &[&str]| out.extend(parts.iter().map(|&part| part.to_owned()));
        let register = |key| register(&self.prefix, key);
        match *request {
            Request::Read { key } => add(&["R", &register(key)]),
            Request::Write { key, value } => add(&["W", &register(key), &value.to_string()]),
            Request::ReadList { key } => add(&["L", &list(&self.prefix, key)]),
            Request::Append { key, value } => {
                add(&["A", &list(&self.prefix, key), &value.to_string()]);
            }
            Request::Insert { key, value } => add(&["C", &register(key), "", &value.to_string()]),
            Request::CompareAndSet { key, expected, value } => {
                let expected = expected.map(|value| value.to_string()).unwrap_or_default();
                add(&["C", &register(key), &expected, &value.to_string()]);
            }
            Request::Delete { key } => add(&["D", &register(key)]),
            Request::Range { low, high } => {
                let keys = range(low, high)?;
                add(&["Q", &keys.clone().count().to_string()]);
                keys.for_each(|key| add(&[&register(key)]));
            }
            Request::UpdateRange { low, high, first } => {
                let keys = range(low, high)?;
                add(&["U", &keys.clone().count().to_string()]);
                keys.for_each(|key| add(&[&register(key), &(first + (key - low)).to_string()]));
            }
            ref other => return Err(Failure::unsupported(other)),
        }
        Ok(())
    }
}

fn answer(request: &Request, reply: &Value) -> Result<Answer, Failure> {
    Ok(match (request, reply) {
        (Request::Read { .. }, found) => Answer::Value(value(found)?),
        (Request::Write { .. } | Request::Append { .. }, Value::Int(_)) => Answer::Done,
        (Request::ReadList { .. }, Value::Array(texts)) => Answer::List(elements(texts)?),
        (
            Request::Insert { .. } | Request::Delete { .. } | Request::CompareAndSet { .. },
            Value::Int(count),
        ) => Answer::Applied(*count > 0),
        (Request::Insert { .. } | Request::CompareAndSet { .. }, Value::Array(found)) => {
            match &found[..] {
                [found] => Answer::Found(value(found)?),
                _ => return Err(unexpected(reply)),
            }
        }
        (Request::Range { low, .. } | Request::UpdateRange { low, .. }, Value::Array(texts)) => {
            let mut rows = Vec::new();
            for (key, text) in (*low..).zip(texts) {
                rows.extend(value(text)?.map(|value| (key, value)));
            }
            Answer::Rows(rows)
        }
        (_, other) => return Err(unexpected(other)),
    })
}

impl Session for ScriptSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        Err(Failure::Refused("scripts are whole transactions".to_owned()))
    }

    fn execute(&mut self, _request: &Request) -> Result<Answer, Failure> {
        Err(Failure::Refused("scripts are whole transactions".to_owned()))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Err(Failure::Refused("scripts are whole transactions".to_owned()))
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn whole(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
        let is_reading = requests.iter().all(|request| request.kind().is_read());
        // Replicas execute only scripts that say they do not write.
        let command = if is_reading { "EVAL_RO" } else { "EVAL" };
        let mut parts = vec![command.to_owned(), SCRIPT.to_owned(), "0".to_owned()];
        for request in requests {
            self.arguments(request, &mut parts)?;
        }
        let reply = self.connection.call(&parts).map_err(|error| unknown(&error))?;
        let Value::Array(replies) = &reply else { return Err(unexpected(&reply)) };
        requests.iter().zip(replies).map(|(request, reply)| answer(request, reply)).collect()
    }
}
