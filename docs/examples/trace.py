"""Sends what the clients of a database see to `isolde watch --listen`.

The database is a dictionary with a lock, so that this runs anywhere; put your own calls in
the place of its methods. One `Session` is one connection to the database.

    isolde watch --listen 7416 --profile serializable --connections 1
    python3 docs/examples/trace.py 127.0.0.1:7416
"""

import collections
import json
import socket
import sys
import threading
import time
import uuid


class Trace:
    """A connection to the listener, for any number of sessions.

    One that is cut is made again. What was not acknowledged is sent again; by `resume` the
    listener knows what it has taken already.
    """

    def __init__(self, address, token=None):
        host, port = address.rsplit(":", 1)
        self.address = (host, int(port))
        self.head = {"isolde": "trace 1", "resume": str(uuid.uuid4())}
        if token is not None:
            self.head["token"] = token
        self.lock = threading.Lock()
        self.unacknowledged = collections.deque()
        self.total = 0
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(self.address)
        self.failed = None
        self.sent = self.taken = 0
        self.answers = threading.Thread(target=self.listen, args=(self.socket,), daemon=True)
        self.answers.start()
        again = list(self.unacknowledged)
        self.unacknowledged.clear()
        self.write([self.head] + [message for _, message in again if message is not self.head])

    def listen(self, connection):
        """Notes what is acknowledged."""
        try:
            for line in connection.makefile("r", encoding="utf-8"):
                answer = json.loads(line)
                if connection is self.socket:
                    self.failed = answer.get("error", self.failed)
                    self.taken = answer.get("taken", self.taken)
        except OSError:
            pass

    def write(self, messages):
        for message in messages:
            self.sent += 1
            self.unacknowledged.append((self.sent, message))
        while self.unacknowledged and self.unacknowledged[0][0] <= self.taken:
            self.unacknowledged.popleft()
        lines = "".join(json.dumps(message) + "\n" for message in messages)
        self.socket.sendall(lines.encode())

    def send(self, messages):
        """Sends messages; what was sent before a commit is there whatever happens."""
        with self.lock:
            self.total += len(messages)
            if self.failed:
                raise RuntimeError(self.failed)
            try:
                self.write(messages)
            except OSError:
                self.connect()

    def finish(self):
        """Ends the trace, and waits until all of it is acknowledged."""
        self.send([{"bye": True}])
        for attempt in range(3):
            self.socket.shutdown(socket.SHUT_WR)
            self.answers.join()
            if self.failed:
                raise RuntimeError(self.failed)
            if self.taken == self.sent:
                return
            with self.lock:
                self.connect()
        raise RuntimeError(f"{self.taken} of {self.sent} messages were acknowledged")


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
        try:
            self.hand_over()  # before the commit: nothing commits that was not sent
        except RuntimeError:
            bank.abort()
            raise
        self.timed("commit", bank.commit)
        self.hand_over()


class Bank:
    """One transaction at a time: as serializable as can be."""

    def __init__(self, accounts):
        self.balances = {account: 100 for account in range(accounts)}
        self.lock = threading.Lock()

    def begin(self):
        self.lock.acquire()
        self.before = dict(self.balances)

    def read(self, account):
        return self.balances[account]

    def write(self, account, balance):
        self.balances[account] = balance
        return balance

    def commit(self):
        self.lock.release()

    def abort(self):
        self.balances = self.before
        self.lock.release()


def main():
    trace = Trace(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    bank = Bank(10)

    def work(number):
        try:
            session = Session(trace, f"worker {number}")
            for turn in range(100):
                session.transfer(bank, (turn + number) % 10, (turn * 3 + 1) % 10, turn % 7)
            trace.send([{"client": session.name, "bye": True}])
        except RuntimeError:
            pass  # the trace was refused, which is told once, at the end

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        trace.finish()
    except RuntimeError as refused:
        sys.exit(f"trace.py: {refused}")
    print(f"{trace.total} messages were sent and acknowledged")


if __name__ == "__main__":
    main()
