"""An example of a database for `isolde run exec:`: SQLite, through Python.

    isolde run "exec:python3 exec_sqlite.py /path/to/file.db"

Every process is one session. It reads a line of JSON, does what it says, and writes a
line of JSON; the protocol is described in exec.md.
"""

import json
import sqlite3
import sys

REQUESTS = ["read", "write", "read-list", "append", "insert", "delete", "range",
            "compare-and-set", "update-range"]


class Database:
    def __init__(self, path):
        # No transactions but those that are asked for; wait a second for other writers.
        self.connection = sqlite3.connect(path, timeout=1, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = wal")
        self.connection.execute("PRAGMA synchronous = off")
        self.prefix = ""

    def sql(self, text, *values):
        text = text.replace("REGISTERS", self.prefix + "registers")
        return self.connection.execute(text.replace("LISTS", self.prefix + "lists"), values)

    def hello(self, protocol):
        return {
            "name": "SQLite through Python",
            "version": sqlite3.sqlite_version,
            "isolations": [{"name": "serializable", "promises": ["strict-serializable"],
                            "snapshot": "first-request"}],
            "default": "serializable",
            "requests": REQUESTS,
        }

    def prepare(self, prefix, requests):
        self.prefix = prefix
        self.sql("CREATE TABLE REGISTERS (key INTEGER PRIMARY KEY, value INTEGER)")
        self.sql("CREATE TABLE LISTS (key INTEGER PRIMARY KEY, elements TEXT)")
        return {}

    def clean_up(self, prefix):
        self.prefix = prefix
        self.sql("DROP TABLE REGISTERS")
        self.sql("DROP TABLE LISTS")
        return {}

    def connect(self, prefix, isolation):
        self.prefix = prefix
        return {}

    def begin(self, access):
        self.sql("BEGIN")
        return {}

    def commit(self):
        self.sql("COMMIT")
        return {}

    def rollback(self):
        self.sql("ROLLBACK")
        return {}

    def read(self, key):
        row = self.sql("SELECT value FROM REGISTERS WHERE key = ?", key).fetchone()
        return {"value": row[0] if row else None}

    def write(self, key, value):
        self.sql("INSERT INTO REGISTERS VALUES (?1, ?2) ON CONFLICT (key) "
                 "DO UPDATE SET value = ?2", key, value)
        return {}

    def read_list(self, key):
        row = self.sql("SELECT elements FROM LISTS WHERE key = ?", key).fetchone()
        return {"list": [int(element) for element in row[0].split(",")] if row else []}

    def append(self, key, value):
        self.sql("INSERT INTO LISTS VALUES (?1, ?2) ON CONFLICT (key) "
                 "DO UPDATE SET elements = elements || ',' || ?2", key, str(value))
        return {}

    def insert(self, key, value):
        done = self.sql("INSERT INTO REGISTERS VALUES (?, ?) ON CONFLICT DO NOTHING", key, value)
        return {"applied": done.rowcount > 0}

    def delete(self, key):
        return {"applied": self.sql("DELETE FROM REGISTERS WHERE key = ?", key).rowcount > 0}

    def compare_and_set(self, key, expected, value):
        if expected is None:
            return self.insert(key, value)
        done = self.sql("UPDATE REGISTERS SET value = ?3 WHERE key = ?1 AND value = ?2",
                        key, expected, value)
        return {"applied": done.rowcount > 0}

    def range(self, low, high):
        rows = self.sql("SELECT key, value FROM REGISTERS WHERE key BETWEEN ? AND ?", low, high)
        return {"rows": [list(row) for row in rows]}

    def update_range(self, low, high, first):
        self.sql("UPDATE REGISTERS SET value = ?3 + key - ?1 WHERE key BETWEEN ?1 AND ?2",
                 low, high, first)
        return self.range(low, high)

    def answer(self, message):
        method = getattr(self, message.pop("do").replace("-", "_"))
        try:
            return method(**message)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                return {"failure": "refused", "reason": str(error)}
            # Another transaction was first: this one has no effect and is over.
            if self.connection.in_transaction:
                self.sql("ROLLBACK")
            return {"failure": "aborted", "reason": "locked"}


def main():
    database = Database(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(database.answer(json.loads(line))), flush=True)


main()
