#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile clients of an agent and workers that were taken over, one violation after the other: one session
dies at most, the neighbour's results are right, and agent, front and the neighbour's worker are the same
processes as before.

    tests/faults/hostile.py [WORD ...]      the cases that have one of the words in their names
    tests/faults/hostile.py --short         every tenth
"""
import contextlib
import os
import random
import re
import struct
import sys
import time

from rig import Rig, outcome
from hostile_calls import CALLS
from hostile_values import VALUES
from hostile_sessions import HANDSHAKES, SENTENCES
from hostile_client import (ALL, COMMANDS, END, NOBODY, PROBE, RENEW, REPLIES, RESUME, STRIPE, TAKEN, Client, hello)
from peer import ACK, BULK, CALL, DATA, FRAME, HELLO, LOST, PAD, PING, POST, REPLY, UPDATE, frame
from stack import become_subreaper, clean, folder, wait_for

OPS = 2000  # more than there are


# --- before there is a session ---

def refuses(port="recv", after=b"", **fields):
    return lambda c: c.refused(hello(**fields) + after, port)


def closes(data, port="recv"):
    """Whatever it is, the agent answers no more than a refusal, and ends the connection by itself."""
    def case(c):
        s = c.say(data, port)
        s.settimeout(12)
        with contextlib.suppress(ConnectionResetError):
            while s.recv(4096):
                pass
    return case


def neighbour(role, port="recv", secret=NOBODY):
    """The bystander's session, which stands in logs, with a secret that is not its own."""
    def case(c):
        session = bytes.fromhex(re.search(r"channel.open session=([0-9a-f]{32})", c.rig.quiet.log())[1])
        got = c.welcome(c.say(hello(role, session=session, secret=secret), port))
        assert role == END or got is None or got[2], "let in to another's session"
    return case


def odd(**fields):
    """Let in or not; nothing comes of it."""
    return lambda c: c.welcome(c.say(hello(**fields)))


def crowd(role, count):
    def case(c):
        for _ in range(count):
            with contextlib.suppress(OSError):
                c.say(hello(role))
    return case


def half_open(c):
    for size in (1, 8, 100, HELLO.size - 1) * 8:
        c.say(hello()[:size])


BEFORE = {
    "magic": refuses(magic=1), "version 0": refuses(version=0), "version of tomorrow": refuses(version=99),
    "role 0": refuses(role=0), "role 99": refuses(role=99), "role of 32 bits": refuses(role=2 ** 32 - 1),
    "half a HELLO, closed": lambda c: c.say(hello()[:50]).close(),
    "half a HELLO, silence": closes(hello()[:50]),
    "32 half HELLOs": half_open,
    "HTTP on the receive port": closes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(HELLO.size)),
    "TLS on a plain port": closes(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(HELLO.size)),
    "a megabyte of zeros": closes(bytes(1 << 20)),
    "a megabyte of ones": closes(b"\xff" * (1 << 20), "send"),
    "names without an end": odd(program=b"x" * 64, pod=b"y" * 128, pod_uid=b"z" * 40, token=b"t" * 256),
    "names of control characters": odd(program=b"\n\x1b[31m\"", pod=b"a\nlevel=error b\0c", pod_uid=b"\xff\xfe"),
    "all numbers largest": odd(features=ALL, pid=2 ** 32 - 1, uid=2 ** 32 - 1, memory=ALL, gpus=2 ** 32 - 1,
                               grace=2 ** 32 - 1),
    "more GPUs than there are": refuses(gpus=17),
    "commands on the send port": refuses("send"),
    "replies on the receive port": refuses(role=REPLIES),
    "replies of no session": refuses("send", role=REPLIES), "stripe of no session": refuses(role=STRIPE),
    "resume of no session": refuses(role=RESUME), "renewal of no session": refuses(role=RENEW),
    "end of no session": odd(role=END),
    "credential of length 0": refuses(version=5, after=struct.pack("<II", 0, 0)),
    "credential of 4 GiB": refuses(version=5, after=struct.pack("<II", 2 ** 32 - 1, 0) + bytes(5000)),
    "credential of dots": odd(version=5, token=b""), "another's replies": neighbour(REPLIES, "send"),
    "another's stripe": neighbour(STRIPE), "another's resume": neighbour(RESUME),
    "another's resume, guessed": neighbour(RESUME, secret=b"\xff" * 16), "another's end": neighbour(END),
    "another's renewal": neighbour(RENEW),
    "100 probes that are not read": crowd(PROBE, 100), "100 commands that are not joined": crowd(COMMANDS, 100),
    "HELLO twice": lambda c: c.welcome(c.say(hello(PROBE) * 2)),
}


# --- a session's frames ---

def breaks(grace=0, **fields):
    """A frame that ends its session."""
    def case(c):
        c.begin(grace=grace)
        c.post(**fields)
        c.over()
    return case


def tells(work):
    """Frames that are refused or not; the session may go on until its client goes."""
    def case(c):
        c.begin(grace=0)
        work(c)
    return case


def every_op(kind, body):
    def work(c):
        for op in range(OPS):
            c.post(kind, body, op=op, tag=op % 100)
            if not op % 50:
                c.replies.settimeout(0.01)
                with contextlib.suppress(OSError):
                    c.replies.recv(1 << 20)
    return tells(work)


def random_bodies(c):
    rng = random.Random(7)
    for _ in range(3000):
        c.post(CALL, rng.randbytes(rng.choice((0, 8, 16, 24, 64, 200))), op=rng.randrange(700), tag=rng.randrange(128))
        c.replies.settimeout(0.001)
        with contextlib.suppress(OSError):
            c.replies.recv(1 << 20)


def never_reads(c):
    c.begin(grace=0)
    c.commands.settimeout(3)
    with contextlib.suppress(OSError):
        for i in range(200000):
            c.post(CALL, bytes(64), op=i % 300, tag=i % 100)


def byte_by_byte(c):
    c.begin(grace=0)
    for byte in frame(PING)[:20]:
        c.raw(bytes([byte]))
        time.sleep(0.01)


def stripe(data):
    def case(c):
        c.begin(grace=0)
        s = c.say(hello(STRIPE, session=c.session, secret=c.secret))
        c.welcome(s)
        with contextlib.suppress(OSError):
            s.sendall(data)
        time.sleep(0.1)
    return case


def many_stripes(c):
    c.begin(grace=0)
    for _ in range(30):
        c.welcome(c.say(hello(STRIPE, session=c.session, secret=c.secret)))


def resumes(counted, times=1):
    def case(c):
        c.begin()
        for _ in range(times):
            c.commands.close()
            s = c.say(hello(RESUME, session=c.session, secret=c.secret, memory=counted, grace=0))
            got = c.welcome(s)
            if got and not got[2]:
                c.welcome(c.say(hello(REPLIES, session=c.session, secret=got[5]), "send"))
        c.say(hello(END, session=c.session, secret=c.secret))
    return case


def ends_twice(c):
    c.begin()
    for _ in range(2):
        c.welcome(c.say(hello(END, session=c.session, secret=c.secret)))


def goes(where):
    def case(c):
        c.begin(grace=0)
        c.raw(frame(POST, bytes(1000), seq=1)[:where])
    return case


FRAMES = {
    "magic": breaks(kind=PING, magic=1), "unknown kind": breaks(kind=99), "kind 0": breaks(kind=0),
    "a reply": breaks(kind=REPLY), "data": breaks(kind=DATA, body=bytes(16)), "an update": breaks(kind=UPDATE, body=bytes(16)),
    "LOST": breaks(kind=LOST), "an ACK": breaks(kind=ACK), "PAD": breaks(kind=PAD),
    "flags": breaks(kind=POST, flags=0x80), "BULK on the wire": breaks(kind=POST, flags=BULK, body=bytes(16)),
    "stripe that is not there": breaks(kind=POST, flags=0x30, body=bytes(16), length=32),
    "body longer than the frame": breaks(kind=POST, body_length=100),
    "4 GiB": breaks(kind=POST, length=2 ** 32 - 1), "body of 61 KiB": breaks(kind=POST, body=bytes(61 << 10)),
    "body of 4 GiB": breaks(kind=POST, length=2 ** 32 - 1, body_length=2 ** 32 - 1),
    "payload of 2 MiB": breaks(kind=POST, payload=bytes(2 << 20)),
    "a number left out": breaks(kind=POST, seq=2), "number 0": breaks(kind=POST, seq=0),
    "the largest number": breaks(kind=POST, seq=ALL),
    "counted what was not sent": breaks(grace=2000, kind=CALL, status=10 ** 6),
    "TAKEN of what was not sent": breaks(grace=2000, kind=TAKEN, seq=10 ** 6),
    "TAKEN with a body": tells(lambda c: c.post(TAKEN, bytes(8))),
    "PING with a body": tells(lambda c: c.post(PING, bytes(8))), "tag without a slot": breaks(kind=CALL, tag=4000),
    "a context that is not": tells(lambda c: c.post(CALL, bytes(64), op=20)),
    "half a header": goes(20), "half a body": goes(500),
    "byte by byte": byte_by_byte, "answers that are not read": never_reads,
    "every call, empty": every_op(CALL, b""), "every call, ones": every_op(CALL, b"\xff" * 256),
    "every call, zeros": every_op(CALL, bytes(2000)), "every post, ones": every_op(POST, b"\xff" * 64),
    "calls of random bytes": tells(random_bodies),
    "stripe: a piece of 4 GiB": stripe(struct.pack("<II", 2 ** 32 - 1, 0)),
    "stripe: a piece that no frame names": stripe(struct.pack("<II", 4096, 0) + bytes(4096)),
    "stripe: half a piece": stripe(struct.pack("<II", 4096, 0) + bytes(100)),
    "stripe: noise": stripe(b"\xaa" * (1 << 20)), "30 stripes": many_stripes,
    "resume with the largest count": resumes(ALL), "resume ten times": resumes(0, 10), "ended twice": ends_twice,
}

# --- a worker that was taken over: hostile_worker.c, by number ---

WORKER = ["version 0", "version of tomorrow", "kind 0", "the largest kind", "the front's SESSION", "the front's GRANT",
          "READY again", "READY of all ones", "FAILED of all ones", "LEASE of no device", "LEASE of 2^64-1", "LEASE of 0",
          "1000 times LEASE of 4 GiB", "STATS of all ones", "STATS of 17 devices", "STATS of 2^32-1 devices",
          "ENDED, and it goes on", "ENDED of all ones", "SHARE without memory", "SHARE of /dev/null",
          "SHARE of 2^64-1 in 4 KiB", "200 times SHARE", "UNSHARE of nobody's", "WANT of nobody's", "1000 times WANT",
          "AGAIN unasked", "AGAIN of all ones", "TIME of all ones", "1000 times TIME", "PARKED of 2^64-1",
          "PARKED of all ones", "4 bytes", "0 bytes", "a byte more", "64 KiB", "10 descriptors", "20000 times ALIVE",
          "its socket closed", "its socket shut", "300 times noise", "it ends", "it crashes",
          "IMAGE_WANT of 2^64-1", "IMAGE_WANT of 0", "1000 times IMAGE_WANT", "IMAGE_PUT without memory",
          "IMAGE_PUT of /dev/null", "IMAGE_PUT of memory that changes", "IMAGE_PUT with another digest",
          "IMAGE_PUT of more than there is", "2000 times IMAGE_PUT"]


def run(rig, group, name, case):
    client = Client(rig)
    try:
        if group == "worker":
            app = rig.app("hostile", WORKER.index(name))
            app.line("^in hostile", 30)
            app.close_stdin()
            with contextlib.suppress(AssertionError):  # its own result may be anything
                outcome(app, 30)
            assert app.process.poll() is not None, "its program hangs"
        else:
            case(client)
            if group not in ("before", "frames"):
                client.leave()
    finally:
        client.close()
    rig.bystander_lives()
    assert [rig.agent.pid, rig.agent.front()] == rig.pids, "the agent or its front is another process"
    rig.at_rest(30)
    done = rig.bystander.text()
    assert "wrong" not in done and "error" not in done, done[-300:]
    assert "ledger.bug" not in rig.agent.log(), "an account is wrong"
    rig.agent.check()


def main(words):
    become_subreaper()
    cases = [("before", name, case) for name, case in BEFORE.items()]
    cases += [("handshake", name, case) for name, case in HANDSHAKES.items()]
    cases += [("calls", name, case) for name, case in {**CALLS, **VALUES}.items()]
    cases += [("frames", name, case) for name, case in {**FRAMES, **SENTENCES}.items()]
    cases += [("worker", name, None) for name in WORKER]
    if words == ["--short"]:
        cases, words = cases[3::10], []
    cases = [one for one in cases if not words or any(word in f"{one[0]}: {one[1]}" for word in words)]
    failed, began, rig, stack = 0, time.monotonic(), None, contextlib.ExitStack()
    for group, name, case in cases:
        if not rig:
            path = stack.enter_context(folder())
            rig = Rig(path, between=False)
            rig.pids = [rig.agent.pid, rig.agent.front()]
        try:
            run(rig, group, name, case)
        except (AssertionError, OSError) as error:
            failed += 1
            log = rig.agent.log()[-500:].replace("\n", "\n      ")
            print(f"fail  {group}: {name}: {error}\n      {log}", flush=True)
            clean()
            rig = None
    if rig:
        rig.close()
        wait_for(lambda: True, 1, "")
        if clean():
            failed += 1
            print("fail  something is left behind")
    stack.close()
    print(f"{len(cases) - failed} of {len(cases)} cases: one session at most, and nobody else, "
          f"{time.monotonic() - began:.0f} s")
    return failed > 0 or not cases


if __name__ == "__main__":
    assert FRAME.size == 32 and os.path.isdir("/proc/self")
    sys.exit(main(sys.argv[1:]))
