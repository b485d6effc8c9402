# SPDX-License-Identifier: Apache-2.0
"""local:// against programs and sidecars that violate the protocol, once each, which ends that session with a sentence that
names it, and leaves another session as it was."""
import contextlib
import fcntl
import os
import re
import socket
import struct
import sys
import tempfile

from stack import LOST, App, wait_for
from test_local import on_one_machine

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peer"))
import peer  # noqa: E402
from peer import CALL, PAD, POST, REPLY, UNPIN, frame  # noqa: E402


def pinned_and_given_back(app):
    number = app.pin(4096)
    app.tell(UNPIN, segment=number)
    wait_for(lambda: app.pin(4096) == number, 30, "the number is free again")
    app.tell(UNPIN, segment=number)
    app.ask(peer.PIN, size=4096)  # behind the UNPIN, for another number or the same
    app.put(POST, b"x", bulk=(4095, 0, 16))


PROGRAM_VIOLATIONS = {  # what the ring says: what the program reads
    "magic": (lambda a: a.put(POST, b"x", magic=0x1234), "magic"),
    "kind": (lambda a: a.put(77, b"x"), "kind 77"),
    "reply": (lambda a: a.put(REPLY, b"x"), "kind 16"),
    "flags": (lambda a: a.put(POST, b"x", flags=0x80), "flags"),
    "sequence skipped": (lambda a: a.put(POST, b"x", seq=9), "seq 9"),
    "body longer than the frame": (lambda a: a.put(POST, b"x" * 64, length=8), "body of 64"),
    "body past the tail": (lambda a: a.put(POST, b"x", body_length=4096, length=4096), "an entry of"),
    "payload too long": (lambda a: a.put(POST, b"x", bulk=(0, a.arena, 2 << 20)), "payload of"),
    "bulk in the bounce buffer": (lambda a: a.put(POST, b"x", bulk=(0, a.bounce, 16)), "lies outside"),
    "bulk before the arena": (lambda a: a.put(POST, b"x", bulk=(0, a.arena - 16, 32)), "lies outside"),
    "bulk wraps": (lambda a: a.put(POST, b"x", bulk=(0, 2 ** 64 - 8, 16)), "lies outside"),
    "bulk of no segment": (lambda a: a.put(POST, b"x", bulk=(3, 0, 16)), "segment 3"),
    "bulk past pinned memory": (lambda a: a.put(POST, b"x", bulk=(a.pin(4096), 4090, 16)), "lies outside"),
    "bulk in memory given back": (pinned_and_given_back, "lies outside"),
    "tag out of range": (lambda a: a.put(CALL, b"x", tag=128), "tag 128"),
    "tail far ahead": (lambda a: a.publish(a.tail + 2 * a.ring_size), "tail"),
    "tail behind": (lambda a: a.publish(a.tail - 16), "tail"),
    "half a header": (lambda a: a.publish(a.tail + 16), "half a header"),
    "padding past the tail": (lambda a: a.raw(frame(PAD)), "padding past the tail"),
}


def test_violations_by_programs():
    with on_one_machine() as (agent, sidecar):
        other = App("calls", socket=sidecar.socket)
        other.line("^calling")
        worker = agent.worker(other)
        for name, (violate, text) in PROGRAM_VIOLATIONS.items():
            app = peer.App(sidecar.socket, b"hostile")
            violate(app)
            try:
                status, why = app.wait_lost(30)
            except Exception as error:
                raise AssertionError(f"{name}: {error}") from None
            assert (status, text in why) == (LOST, True), (name, status, why)
            app.close()
        wait_for(lambda: len(agent.sessions()) == 1, 30, "the liars' sessions are over")
        assert agent.worker(other) == worker, "the other one has its worker"
        assert other.process.poll() is None, other.text()
        App("sum", 3, 64, socket=sidecar.socket).right()


def test_memory_that_is_cut_off():
    with on_one_machine(sidecar=("--ipc", "host")) as (agent, sidecar):
        app = peer.App(sidecar.socket, b"robber")
        os.ftruncate(app.fd, 8192)
        app.publish(app.tail + 64)  # a frame where there is no memory any more
        wait_for(lambda: "channel.lost" in sidecar.log(), 30, "the session is over")
        wait_for(lambda: not agent.sessions(), 30, "and its worker gone")
        app.close()
        App("sum", 3, 64, socket=sidecar.socket).right()


# --- sidecars ----------------------------------------------------------------------------------

MESSAGE = struct.Struct("<IIIIIIQQQQQQQQ168s")  # transport/local.h
MAGIC = 0x6C61636F
ATTACH, PIN, UNPIN_IT, ATTACHED, UNPINNED, PONG, END = 1, 2, 3, 16, 17, 18, 19
PING = 5
FEATURE_LOCAL = 1 << 10
SIZES = 512 << 10, 8 << 20, 4 << 20
PAGES = 4096 + 128 * 2048 + 8192 * 8 + 1024 * 16
SIZE = PAGES + sum(SIZES)


def memory(size=SIZE, sealed=True):
    fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if sealed:
        fcntl.fcntl(fd, 1033, 7)  # F_ADD_SEALS: no seals, shrinking, growing
    return fd


def say(what, segment=0, sealed=1, size=SIZE, sizes=SIZES, magic=MAGIC):
    return MESSAGE.pack(magic, what, segment, 0, sealed, 0, size, *sizes, 0, 0, 0, 0, b"")


@contextlib.contextmanager
def session(agent):
    """The connection of a session whose worker waits for ATTACH."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(30)
        wire.connect(agent.socket)
        wire.sendall(peer.HELLO.pack(peer.SESSION_MAGIC, peer.SESSION_VERSION, 1, FEATURE_LOCAL, bytes(16), bytes(16), 1, 0,
                                     b"hostile", b"pod", b"", b"", 0, 0, 0))
        welcome = peer.WELCOME.unpack(peer.read_exact(wire, peer.WELCOME.size, 30))
        assert welcome[2] == 0 and welcome[3] == FEATURE_LOCAL, welcome
        yield wire


def heard(wire, what):
    """The text of the next message, which is WHAT; PONGs do not count."""
    while True:
        fields = MESSAGE.unpack(peer.read_exact(wire, MESSAGE.size, 30))
        if fields[1] != PONG or what == PONG:
            assert fields[1] == what, fields
            return fields[-1].rstrip(b"\0").decode()


def file_on_disk():
    file, path = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(__file__)))
    os.unlink(path)
    os.ftruncate(file, SIZE)
    return file


ATTACH_VIOLATIONS = {
    "no descriptor": (say(ATTACH), lambda: [], "no doorbell|no descriptor"),
    "one descriptor": (say(ATTACH), lambda: [memory()], "no doorbell"),
    "a pipe": (say(ATTACH), lambda: [os.pipe()[0], os.eventfd(0)], "not a file of memory"),
    "a file on disk": (say(ATTACH, sealed=0), lambda: [file_on_disk(), os.eventfd(0)], "not a file of memory"),
    "shorter than it says": (say(ATTACH), lambda: [memory(4096), os.eventfd(0)], "4096 bytes, said to be"),
    "no whole pages": (say(ATTACH, size=SIZE - 1), lambda: [memory(SIZE - 1), os.eventfd(0)], "said to be"),
    "not sealed": (say(ATTACH), lambda: [memory(sealed=False), os.eventfd(0)], "could get shorter"),
    "parts do not fit": (say(ATTACH, sizes=(512 << 10, 16 << 20, 4 << 20)), lambda: [memory(), os.eventfd(0)], "do not fit"),
    "no power of two": (say(ATTACH, sizes=(500 << 10, 8 << 20, 4 << 20)), lambda: [memory(), os.eventfd(0)], "do not fit"),
    "sizes that wrap": (say(ATTACH, sizes=(1 << 63, 1 << 63, 4 << 20)), lambda: [memory(), os.eventfd(0)], "do not fit"),
    "no bounce buffer": (say(ATTACH, sizes=(512 << 10, 8 << 20, 0)), lambda: [memory(), os.eventfd(0)], "do not fit"),
    "another message": (say(PING), lambda: [], "what came was none"),
    "no message": (say(ATTACH, magic=1), lambda: [memory(), os.eventfd(0)], "what came was none"),
}


def test_violations_by_sidecars_at_attach():
    with on_one_machine() as (agent, sidecar):
        for name, (message, fds, text) in ATTACH_VIOLATIONS.items():
            with session(agent) as wire:
                some = fds()
                socket.send_fds(wire, [message], some)
                for fd in some:
                    os.close(fd)
                got = heard(wire, END)
                assert re.search(text, got), (name, got)
        wait_for(lambda: not agent.sessions(), 30, "no session is left")
        App("sum", 3, 64, socket=sidecar.socket).right()


LATER_VIOLATIONS = {
    "unknown message": (lambda: (say(99), []), "unknown message"),
    "no magic": (lambda: (say(PING, magic=7), []), "no message"),
    "pinned as the channel": (lambda: (say(PIN, 0, size=4096), [memory(4096)]), "pinned memory as number 0"),
    "pinned beyond all": (lambda: (say(PIN, 1 << 20, size=4096), [memory(4096)]), "pinned memory as number"),
    "pinned without memory": (lambda: (say(PIN, 1, size=4096), []), "no descriptor came"),
    "pinned too short": (lambda: (say(PIN, 1, size=1 << 20), [memory(4096)]), "4096 bytes, said to be 1048576"),
    "given back, not had": (lambda: (say(UNPIN_IT, 9), []), "does not have"),
    "the channel given back": (lambda: (say(UNPIN_IT, 0), []), "does not have"),
}


def test_violations_by_sidecars_later():
    with on_one_machine() as (agent, sidecar):
        for name, (violate, text) in LATER_VIOLATIONS.items():
            with session(agent) as wire:
                socket.send_fds(wire, [say(ATTACH)], [memory(), os.eventfd(0)])
                heard(wire, ATTACHED)
                message, fds = violate()
                socket.send_fds(wire, [message], fds)
                got = heard(wire, END)
                assert text in got, (name, got)
        wait_for(lambda: not agent.sessions(), 30, "no session is left")
        App("sum", 3, 64, socket=sidecar.socket).right()


def test_messages_in_pieces():
    """A message may come byte by byte, its descriptors with the first."""
    with on_one_machine() as (agent, _):
        with session(agent) as wire:
            whole = say(ATTACH)
            socket.send_fds(wire, [whole[:1]], [memory(), os.eventfd(0)])
            for at in range(1, len(whole), 51):
                wire.sendall(whole[at:at + 51])
            heard(wire, ATTACHED)
            for _ in range(3):
                wire.sendall(say(PING))
                heard(wire, PONG)
