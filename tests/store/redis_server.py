# SPDX-License-Identifier: Apache-2.0
"""A redis-server of a test's own, a client for it, and stores over it (registry_store.c)."""
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

BUILD = os.environ.get("BUILD", "build")
PATIENCE = 60  # seconds, of a machine that does other things


def eventually(what, ask, patience=PATIENCE):
    """What ASK returns as soon as it is true."""
    until = time.monotonic() + patience
    while True:
        got = ask()
        if got:
            return got
        assert time.monotonic() < until, f"{what}: not within {patience} s"
        time.sleep(0.02)


def held(what, began, most):
    """That it took MOST seconds, on a machine that has nothing else to do (VCUDA_TEST_BARS=1)."""
    took = time.monotonic() - began
    if os.environ.get("VCUDA_TEST_BARS"):
        print(f"{what} after {took:.3f} s (<= {most})")
        assert took <= most, what


class RedisError(Exception):
    pass


class Client:
    """Redis' protocol, enough of it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def answer(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("Redis hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        n = int(rest)
        if n < 0:
            return None
        if kind == b"*":
            return [self.answer() for _ in range(n)]
        return self.file.read(n + 2)[:n]

    def __call__(self, *words):
        self.send(*words)
        return self.answer()

    def hash(self, key):
        flat = self("HGETALL", key)
        return {flat[i].decode(): flat[i + 1].decode(errors="replace") for i in range(0, len(flat), 2)}


class Redis:
    """One over a Unix socket, which keeps nothing on disk: killed, it is empty."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="vcuda-redis-")
        self.path = self.folder + "/redis.sock"
        self.address = "unix://" + self.path
        self.options = options
        self.process = None
        self.start()

    def start(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "no",
             "--dir", self.folder, *self.options], stdout=subprocess.DEVNULL)

        def there():
            assert self.process.poll() is None, "redis-server ended"
            try:
                Client(self.path).close()
                return True
            except OSError:
                return False
        eventually("redis-server", there)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def client(self):
        return Client(self.path)

    def cli(self, *words):
        """What redis-cli prints."""
        got = subprocess.run(["redis-cli", "-s", self.path, *words], capture_output=True, text=True,
                             timeout=PATIENCE, check=True, errors="replace")
        return got.stdout.rstrip("\n")

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        shutil.rmtree(self.folder)


class Store:
    """registry_store: its lines and answers."""

    def __init__(self, address, node="n1", epoch=1, devices=1, *login, ready=True):
        self.node, self.numbers, self.answers, self.unasked = node, 0, {}, []
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [f"{BUILD}/tests/registry_store", address, node, str(epoch), str(devices), *login],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, bufsize=1)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if ready:
            self.ready()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, *words):
        """Returns the line's number, for hear()."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        self.numbers += 1
        return self.numbers

    def hear(self, number, patience=PATIENCE):
        """The answer to that line, without its number."""
        until = time.monotonic() + patience
        while number not in self.answers:
            line = self.lines.get(timeout=max(0.01, until - time.monotonic()))
            assert line is not None, f"registry_store ended: {self.said()}"
            first, rest = line.split(" ", 1)
            if first == "0":
                self.unasked.append(rest)
            else:
                self.answers[int(first)] = rest
        return self.answers.pop(number)

    def ask(self, *words):
        return self.hear(self.say(*words))

    def status(self, *words):
        return self.ask(*words).split()[0]

    def list(self):
        return dict(pair.split("=") for pair in self.ask("list").split())

    def ready(self):
        eventually("the index is filled", lambda: self.list()["ready"] == "1")

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def close(self):
        """Its end must be a good one: no crash, nothing left."""
        killed = self.process.poll() is not None
        self.process.stdin.close()
        if not killed:
            status = self.process.wait(PATIENCE)
            assert status == 0, f"registry_store ended with {status}: {self.said()}"
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.log.close()


class Commands:
    """The seed's commands, with a list for the answers."""

    def __init__(self, redis, reply="answers", where="tensor:cmd"):
        self.client, self.reply, self.where = redis.client(), reply, where

    def push(self, **command):
        self.client("LPUSH", self.where, json.dumps(command))

    def ask(self, **command):
        self.push(reply=self.reply, **command)
        return self.answer()

    def raw(self, text):
        self.client("LPUSH", self.where, text)

    def answer(self):
        got = self.client("BRPOP", self.reply, PATIENCE // 2)
        assert got, "no answer to a command"
        return json.loads(got[1])

    def close(self):
        self.client.close()
