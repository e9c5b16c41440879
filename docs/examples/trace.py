"""Sends what the clients of a database see to `isolde watch --listen`.

The database is a dictionary with a lock, so that this runs anywhere; put your own calls in
the place of its methods. One `Session` is one connection to the database.

    isolde watch --listen 7416 --profile serializable --connections 1
    python3 docs/examples/trace.py 127.0.0.1:7416
"""

import json
import socket
import sys
import threading
import time


class Trace:
    """A connection to the listener, for any number of sessions."""

    def __init__(self, address, token=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.answers = self.socket.makefile("r", encoding="utf-8")
        self.lock = threading.Lock()
        head = {"isolde": "trace 1"}
        if token is not None:
            head["token"] = token
        self.sent = 0
        self.send([head])

    def send(self, messages):
        """Sends messages; what was sent before a commit is there whatever happens."""
        lines = "".join(json.dumps(message) + "\n" for message in messages)
        with self.lock:
            self.sent += len(messages)
            self.socket.sendall(lines.encode())

    def finish(self):
        """Ends the trace, and waits until all of it is acknowledged."""
        self.send([{"bye": True}])
        self.socket.shutdown(socket.SHUT_WR)
        taken = 0
        for line in self.answers:
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            taken = answer["taken"]
        if taken != self.sent:
            raise RuntimeError(f"{taken} of {self.sent} messages were acknowledged")


class Session:
    """One connection to the database: one transaction at a time."""

    def __init__(self, trace, name):
        self.trace, self.name = trace, name
        self.txn, self.pending = 0, []
        trace.send([{"client": name}])

    def timed(self, kind, request, rows=None):
        """Makes a request, and notes it with the times before and after it."""
        before = time.monotonic_ns()
        answer = request()
        event = {"client": self.name, "txn": self.txn, kind: [before, time.monotonic_ns()]}
        if rows is not None:
            event["rows"] = rows(answer)
        self.pending.append(event)
        return answer

    def hand_over(self):
        self.trace.send(self.pending)
        self.pending = []

    def transfer(self, bank, source, target, amount):
        """A transaction: read two balances, write two."""
        self.txn += 1
        self.timed("begin", bank.begin)
        row = lambda account: lambda value: [["accounts", account, "balance", value]]
        one = self.timed("read", lambda: bank.read(source), row(source))
        other = self.timed("read", lambda: bank.read(target), row(target))
        self.timed("write", lambda: bank.write(source, one - amount), row(source))
        self.timed("write", lambda: bank.write(target, other + amount), row(target))
        self.hand_over()  # before the commit: nothing commits that was not sent
        self.timed("commit", bank.commit)
        self.hand_over()


class Bank:
    """One transaction at a time: as serializable as can be."""

    def __init__(self, accounts):
        self.balances = {account: 100 for account in range(accounts)}
        self.lock = threading.Lock()

    def begin(self):
        self.lock.acquire()

    def read(self, account):
        return self.balances[account]

    def write(self, account, balance):
        self.balances[account] = balance
        return balance

    def commit(self):
        self.lock.release()


def main():
    trace = Trace(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    bank = Bank(10)

    def work(number):
        session = Session(trace, f"worker {number}")
        for turn in range(100):
            session.transfer(bank, (turn + number) % 10, (turn * 3 + 1) % 10, turn % 7)
        trace.send([{"client": session.name, "bye": True}])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.finish()
    print(f"{trace.sent} messages were sent and acknowledged")


if __name__ == "__main__":
    main()
