# SPDX-License-Identifier: Apache-2.0
"""Stripes: large payloads over connections of their own; what they bring is right, and one that is
cut ends the session as any cut wire does."""
import contextlib
import json
import os
import socket
import struct
import subprocess
import threading

from peer import HELLO, POST, SESSION_MAGIC, SESSION_VERSION, WELCOME, frame
from stack import App, BIN, LOST, Sidecar, environment, stack, wait_for

FOR_EVER = 0xffffffff  # rounds of `sum`: until its stdin is closed


class Relay:
    """Stands between sidecar and agent's receive port and counts what each connection brings.
    It lets `most` of them through (None: all) and closes the next ones at once."""

    def __init__(self, address, most=None):
        host, port = address.rsplit(":", 1)
        self.agent, self.pairs, self.bytes, self.back = (host, int(port)), [], [], []
        self.most, self.turned_away = most, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                if len(self.pairs) == self.most:
                    client.close()
                    self.turned_away += 1
                    continue
                server = socket.create_connection(self.agent)
                self.pairs.append((client, server))
                self.bytes.append(0)
                self.back.append(0)
                number = len(self.pairs) - 1
                for pair in ((client, server, self.bytes, number), (server, client, self.back, number)):
                    threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink, counts, number):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                counts[number] += len(data)
                sink.sendall(data)
        self.cut((source, sink))

    def cut(self, pair):
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        # Closing alone leaves accept() waiting; its system call, started again, then takes a
        # connection from whatever listener has the descriptor's number next: the next relay's.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.accepting.join(5)
        assert not self.accepting.is_alive(), "the relay still accepts"
        self.listener.close()
        for pair in self.pairs:
            self.cut(pair)


@contextlib.contextmanager
def relayed(most=None):
    with stack() as s:
        relay = Relay(s.agent.address, most)
        try:
            yield s, relay, relay.address
        finally:
            relay.close()


def stripes_of(path, what="lanes"):
    got = subprocess.run([os.path.join(BIN, "vcuda-client"), "status", "--json", "--socket", path],
                         capture_output=True, text=True, timeout=10, env=environment())
    return sum(channel[what] for channel in json.loads(got.stdout)["channels"])


def test_large_copies_are_right_and_come_by_stripes():
    with stack() as s:
        app = s.app("sum", FOR_EVER, 4096)
        seen = wait_for(lambda: stripes_of(s.sidecar.socket), 20, "stripes are open")
        app.close_stdin()
        app.right(30)
        assert "rounds right" in app.text(), app.text()
        assert seen <= 4, seen
        s.app("sum", 3, 64).right()
        assert stripes_of(s.sidecar.socket) == 0


def test_payload_takes_the_stripes():
    with relayed() as (s, relay, address):
        own = Sidecar(os.path.join(s.folder, "relayed"), address)
        app = App("sum", FOR_EVER, 4096, socket=own.socket)
        wait_for(lambda: stripes_of(own.socket) == 4, 20, "the stripes are open")
        before = list(relay.bytes)
        assert len(before) == 5, before
        wait_for(lambda: min(now - then for now, then in zip(relay.bytes[1:], before[1:])) > 8 << 20,
                 20, "the stripes carry something")
        # The way back, too.
        back = list(relay.back)
        wait_for(lambda: min(now - then for now, then in zip(relay.back[1:], back[1:])) > 8 << 20,
                 20, "the stripes carry something back")
        # A round of 4 MiB may have been on its way when the stripes opened.
        assert relay.bytes[0] - before[0] < 8 << 20, (relay.bytes, before)
        app.close_stdin()
        app.right(30)
        own.stop()


def test_a_refused_stripe_is_told_and_the_others_carry():
    with relayed(most=4) as (s, relay, address):
        own = Sidecar(os.path.join(s.folder, "relayed"), address)
        app = App("sum", FOR_EVER, 4096, socket=own.socket)
        wait_for(lambda: stripes_of(own.socket, "lanes_refused") == 1, 20, "one stripe is refused")
        assert relay.turned_away == 1 and "lane.refused" in own.log(), own.log()
        wait_for(lambda: stripes_of(own.socket) == 3, 20, "the others are open")
        wait_for(lambda: [one["lanes"] for one in s.agent.sessions()] == [3], 5,
                 "the agent says so too")
        wait_for(lambda: min(relay.bytes[1:4]) > 8 << 20, 20, "they carry")
        app.close_stdin()
        app.right(30)
        own.stop()


def test_a_cut_stripe_ends_the_session_only():
    with relayed() as (s, relay, address):
        own = Sidecar(os.path.join(s.folder, "relayed"), address, "--grace", "0")
        app = App("sum", 100000, 4096, socket=own.socket)
        wait_for(lambda: len(relay.bytes) >= 5 and min(relay.bytes[1:5]) > 1 << 20, 20,
                 "the stripes carry something")
        relay.cut(relay.pairs[1])
        got = app.line(r"error (\d+) at|gave (\d+) ", 15)
        assert int(got[1] or got[2]) == LOST, got[0]
        app.wait()
        assert own.process.poll() is None, "the sidecar goes on"
        wait_for(lambda: not s.agent.sessions(), 5, "no session is left")
        App("sum", 3, 64, socket=own.socket).right()
        own.stop()


FEATURE_ZSTD = 1
FEATURE_STRIPES = 4
FEATURE_BACK = 8


def read(wire, n):
    data = b""
    while len(data) < n:
        got = wire.recv(n - len(data))
        assert got, f"closed behind {data}"
        data += got
    return data


def greet(address, role, session=b"", secret=b"", features=FEATURE_STRIPES, grace_ms=0):
    host, port = address.rsplit(":", 1)
    wire = socket.create_connection((host, int(port)), 10)
    wire.sendall(HELLO.pack(SESSION_MAGIC, SESSION_VERSION, role, features, session, secret, 1, 1, b"test",
                            b"pod", b"", b"", 0, 0, grace_ms))
    told = dict(zip(("magic", "version", "status", "features", "session", "secret", "reply_port",
                     "stripe", "gpus", "sessions", "free_memory", "text"), WELCOME.unpack(read(wire, WELCOME.size))))
    return wire, told | {"text": told["text"].rstrip(b"\0").decode()}


@contextlib.contextmanager
def raw_session(address, features=FEATURE_STRIPES):
    commands, told = greet(address, 1, features=features)
    assert told["status"] == 0 and told["features"] == features, told
    replies, _ = greet("127.0.0.1:%d" % told["reply_port"], 2, told["session"], told["secret"])
    try:
        yield commands, replies, told
    finally:
        commands.close()
        replies.close()


def ends(replies, why):
    replies.settimeout(10)
    data = b""
    while chunk := replies.recv(65536):
        data += chunk
    assert why.encode() in data, (why, data[-200:])


def test_who_knows_stripes_one_way_gets_three_and_no_greeting():
    with stack() as s:
        with raw_session(s.agent.address) as (_, _, told):
            stripes = [greet(s.agent.address, 4, told["session"], told["secret"]) for _ in range(4)]
            assert [w["stripe"] for _, w in stripes] == [1, 2, 3, 0], stripes
            stripes[0][0].settimeout(1)
            with contextlib.suppress(TimeoutError):
                assert not stripes[0][0].recv(1), "a greeting"
        both = FEATURE_STRIPES | FEATURE_BACK
        with raw_session(s.agent.address, both) as (_, _, told):
            stripes = [greet(s.agent.address, 4, told["session"], told["secret"], both) for _ in range(5)]
            assert [w["stripe"] for _, w in stripes] == [1, 2, 3, 4, 0], stripes
            for stripe, _ in stripes[:4]:
                stripe.sendall(bytes(8))
            for stripe, _ in stripes[:4]:
                stripe.settimeout(10)
                assert stripe.recv(9) == bytes(8)


def test_violations_by_stripes_end_their_session():
    with stack() as s:
        for flags, payload, why in ((0x10, b"x" * 64, "a stripe that was not opened"),
                                    (0x10, b"", "a stripe for nothing"),
                                    (0x80, b"", "unknown flags")):
            with raw_session(s.agent.address) as (commands, replies, _):
                commands.sendall(frame(POST, payload=payload, op=1, flags=flags, seq=1))
                ends(replies, why)
        with raw_session(s.agent.address) as (commands, replies, told):
            stripe, mine = greet(s.agent.address, 4, told["session"], told["secret"])
            assert mine["status"] == 0 and mine["stripe"] == 1, mine
            stripe.sendall(struct.pack("<II", 32, 0) + b"y" * 32)
            commands.sendall(frame(POST, payload=b"x" * 64, op=1, flags=0x10, seq=1)[:-64])
            ends(replies, "another length")
            stripe.close()
        with raw_session(s.agent.address) as (_, _, told):
            for session, secret in ((told["session"], bytes(16)), (bytes(16), told["secret"])):
                stripe, refused = greet(s.agent.address, 4, session, secret)
                assert refused["status"] == 800, refused
                assert refused["text"] == "no session waits for these connections", refused
                stripe.close()
        # Another's session, whose name stands in logs, with a secret that is one's own.
        with raw_session(s.agent.address) as (_, _, mine), raw_session(s.agent.address) as (_, _, other):
            stripe, refused = greet(s.agent.address, 4, other["session"], mine["secret"])
            assert refused["status"] == 800 and refused["text"].startswith("no session waits"), refused
            stripe.close()
            stripes = [greet(s.agent.address, 4, told["session"], told["secret"]) for _ in range(4)]
            assert stripes[3][1]["status"] == 800
            for stripe, _ in stripes:
                stripe.close()
        s.app("sum", 3, 64).right()


def test_coded_pieces_that_lie_end_their_session():
    features = FEATURE_STRIPES | FEATURE_ZSTD
    fill, zstd, planes = b"\1", b"\2", b"\4"
    with stack() as s:
        # The head: bytes of the payload, and bytes that come for them.
        for length, coded, why in ((32, fill + b"\xff", "another length"),  # of 64 bytes, as the frame says
                                   (64, fill + b"x" * 70, "not what it says"),  # coded to more than it is
                                   (64, fill + b"xy", "not what it says"),
                                   (64, zstd + b"no zstd at all", "not what it says"),
                                   (64, planes + b"\0" * 9, "not what it says"),
                                   (64, b"\x63" + b"z" * 8, "not what it says")):  # a coding that there is not
            with raw_session(s.agent.address, features) as (commands, replies, told):
                stripe, mine = greet(s.agent.address, 4, told["session"], told["secret"], features)
                assert mine["status"] == 0 and mine["stripe"] == 1, mine
                stripe.sendall(struct.pack("<II", length, len(coded)) + coded)
                commands.sendall(frame(POST, payload=b"x" * 64, op=1, flags=0x10, seq=1)[:-64])
                ends(replies, why)
                stripe.close()
        s.app("sum", 3, 64).right()
