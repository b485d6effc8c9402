# SPDX-License-Identifier: Apache-2.0
"""Lanes: large payloads over connections of their own; what they bring is right, and one that is
cut ends the session as any cut wire does."""
import contextlib
import json
import os
import socket
import subprocess
import threading

from stack import App, BIN, LOST, Sidecar, environment, stack, wait_for


class Relay:
    """Stands between sidecar and agent's receive port and counts what each connection brings."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.agent, self.pairs, self.bytes = (host, int(port)), [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                server = socket.create_connection(self.agent)
                self.pairs.append((client, server))
                self.bytes.append(0)
                for pair in ((client, server, len(self.pairs) - 1), (server, client, None)):
                    threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink, number):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                if number is not None:
                    self.bytes[number] += len(data)
                sink.sendall(data)
        self.cut((source, sink))

    def cut(self, pair):
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        for pair in self.pairs:
            self.cut(pair)


@contextlib.contextmanager
def relayed():
    with stack() as s:
        relay = Relay(s.agent.address)
        try:
            yield s, relay, relay.address
        finally:
            relay.close()


def lanes_of(path):
    got = subprocess.run([os.path.join(BIN, "vcuda-client"), "status", "--json", "--socket", path],
                         capture_output=True, text=True, timeout=10, env=environment())
    return sum(channel["lanes"] for channel in json.loads(got.stdout)["channels"])


def test_large_copies_are_right_and_come_by_lanes():
    with stack() as s:
        app = s.app("sum", 12, 4096)
        seen = wait_for(lambda: lanes_of(s.sidecar.socket), 20, "lanes are open")
        app.right(30)
        assert "12 rounds right" in app.text(), app.text()
        assert seen <= 2, seen
        s.app("sum", 3, 64).right()
        assert lanes_of(s.sidecar.socket) == 0


def test_payload_takes_the_lanes():
    with relayed() as (s, relay, address):
        own = Sidecar(os.path.join(s.folder, "relayed"), address)
        App("sum", 16, 4096, socket=own.socket).right(30)
        wait_for(lambda: len(relay.bytes) >= 3, 5, "the lanes go through the relay")
        assert min(relay.bytes[1:3]) > 8 << 20, relay.bytes
        assert relay.bytes[0] < 24 << 20, relay.bytes
        own.stop()


def test_a_cut_lane_ends_the_session_only():
    with relayed() as (s, relay, address):
        own = Sidecar(os.path.join(s.folder, "relayed"), address)
        app = App("sum", 100000, 4096, socket=own.socket)
        wait_for(lambda: len(relay.bytes) >= 3 and min(relay.bytes[1:3]) > 1 << 20, 20,
                 "the lanes carry something")
        relay.cut(relay.pairs[1])
        got = app.line(r"error (\d+) at|gave (\d+) ", 15)
        assert int(got[1] or got[2]) == LOST, got[0]
        app.wait()
        assert own.process.poll() is None, "the sidecar goes on"
        wait_for(lambda: not s.agent.sessions(), 5, "no session is left")
        App("sum", 3, 64, socket=own.socket).right()
        own.stop()
