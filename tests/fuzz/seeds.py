#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fuzzers' seeds, made from the description: a well-formed conversation for each operation.

    tests/fuzz/seeds.py worker|hello|handoff|socket|victim FOLDER

Frames are made by seed_frames.py, calls of libraries by seed_libraries.py.
"""
import os
import random
import re
import struct
import sys

from seed_frames import HANDOFF, OPS, PLAIN, RAW, STRIPE, STRUCTS, before, begin, drain, entries, pack, \
    payload_of, read, record, say, special, ROOT
from seed_libraries import cudnn_bodies, cufft_bodies, cusparse_bodies, cusparselt_bodies, fixed_bodies


SESSION_H = os.path.join(ROOT, "protocol/wire/session.h")


def long_seeds(parts, count=32, most=60000, ops=120):
    """Sessions of many operations in any order: to start a worker costs as much as 200 frames."""
    chance = random.Random(7)
    for number in range(count):
        session = begin()
        for part in chance.sample(parts, min(ops, len(parts))):
            if len(session) + len(part) <= most:
                session += part
        yield f"long-{number}", session


def worker_seeds():
    parts = []
    for name, struct_name, flags in entries():
        if struct_name not in STRUCTS:
            continue
        values, runs = special(name) or ({}, {})
        once = say(name, values, runs, payload_of(name, flags)) if struct_name == name else \
            record(OPS[name], pack(struct_name, values, runs), payload_of(name, flags))
        yield name, begin() + before(name) + once + once + drain()
        # What waits for a value would keep all behind it, and the session until its client ends.
        if "WaitValue" not in name and "BatchMemOp" not in name:
            parts.append(before(name) + once + once + drain())
    for name, one in cufft_bodies():
        yield name, begin() + one + drain()
        parts.append(one + drain())
    for name, one in cudnn_bodies():
        yield name, begin() + before("cudnn") + one + drain()
        parts.append(before("cudnn") + one + drain())
    for name, one in (*cusparse_bodies(), *cusparselt_bodies()):
        yield name, begin() + before(name) + one + drain()
        parts.append(before(name) + one + drain())
    for name, one in fixed_bodies():
        yield name, begin() + before(name) + one + one + drain()
        parts.append(before(name) + one + drain())
    yield from long_seeds(parts)
    ping, bye = record(32, kind=PLAIN), record(34, kind=PLAIN)
    yield "ping", begin() + ping + bye
    yield "raw", begin() + record(0, b"no frame begins here, whatever it says", kind=RAW)
    stripe = record(0, kind=STRIPE)
    copy = say("vcudaCopyIn", *special("vcudaCopyIn"), payload=bytes(256), stripe=1)
    yield "stripe", begin() + stripe + copy + copy + drain()
    yield "stripe-missing", begin() + copy + drain()
    # An empty piece, a question of two names, and what the first stands for by its name (SESSION_PIECE_…).
    name = struct.pack("<QQII", 1, 2, 256, 0)
    named = bytes(8) + struct.pack("<II", 1 << 31 | 2, 48) + 2 * name + struct.pack("<II", 1 << 30 | 256, 24) + name
    kept = struct.pack("<II", 1 << 29 | 256, 0) + bytes(range(256))
    for what, pieces in (("named", named), ("kept", named[:8] + kept), ("both", named + kept), ("unasked", named[:8] + named[64:])):
        yield f"stripe-{what}", begin() + record(2, pieces, kind=STRIPE) + copy + copy + copy + drain()
    for which in range(6):
        for with_fd in range(2):
            told = record(2 * which + with_fd, struct.pack("<IIII", 0, 1, 0, 0) + bytes(160),
                          kind=HANDOFF)
            yield f"handoff-{which}-{with_fd}", begin() + told + drain()


# A client's first words, on either port (the first byte); versions as the header has them.
def hello_seeds():
    versions = [int(v) for v in re.findall(r"SESSION_VERSION\w* (\d+)u", read(SESSION_H))]

    def hello(role, port=1, version=versions[0], token=b"t", behind=b"", **more):
        fields = {"features": 0, "session": bytes(16), "limit": 0, "gpus": 0, "grace": 0} | more
        return bytes([port]) + struct.pack(
            "<QIIQ16s16sII64s128s40s256sQII", 0x4144554356, version, role, fields["features"], fields["session"],
            bytes(16), 1, 1, b"program", b"default/pod", b"", token, fields["limit"], fields["gpus"],
            fields["grace"]) + behind
    for role in (*range(1, 11), 0, 31, 33):
        for port in (0, 1):
            yield f"role-{role}-{port}", hello(role, port)
        yield f"features-{role}", hello(role, features=(1 << 64) - 1, session=b"\1" * 16, grace=1000)
    yield "token", hello(1, token=b"another")
    yield "limits", hello(1, limit=1 << 20, gpus=64)
    yield "behind", hello(1, behind=bytes(64))
    for length in (1, 16, 4096, 0xffffffff):
        yield f"credential-{length}", hello(1, version=versions[1], token=b"",
                                            behind=struct.pack("<II", length, 0) + b"x" * min(length, 4096))


# What a worker says (gpu-agent/handoff.h, the target's `kinds`), and the bytes of struct handoff
# behind `what`: status, device_count, device, driver_version, bytes, session, gpus …
SAYS = ["ready", "failed", "lease", "stats", "ended", "share", "unshare", "want", "alive", "none"]
MEMORY = [0, 1, 2 << 20, 64 << 20, 64 << 30, 1 << 40, (1 << 64) - 1]


def told(what, worker=0, device=0, memory=0, count=1, fds=0, shared=0):
    body = struct.pack("<IIIIQ", 0, count, device, 13000, memory) + bytes(32)
    body += struct.pack("<8Q", *range(1, 9)) + b"text".ljust(192, b"\0")
    return record(SAYS.index(what) | shared << 8, body, stripe=worker, context=fds)


def handoff_seeds():
    for what in SAYS:
        for worker in range(3):
            yield f"{what}-{worker}", told(what, worker) * 2
        for fds in (1, 2):
            yield f"{what}-fds-{fds}", told(what, fds=fds) * 3
        for device in (1, 2, 15, 16, 0xffffffff):
            yield f"{what}-device-{device}", told(what, device=device, memory=2 << 20, fds=1)
    for memory in MEMORY:
        yield f"lease-bytes-{memory}", told("lease", memory=memory) + told("lease", 1, memory=memory)
        yield f"share-bytes-{memory}", told("share", memory=memory, fds=1) + \
            told("want", 1, shared=1) + told("unshare", 1, shared=1) + told("unshare", shared=1)
    yield "raw", record(0, b"short", kind=1) + record(0, bytes(8000), kind=1, stripe=1)
    for count in (1, 2, 16):
        yield f"ready-devices-{count}", told("ready", worker=2, count=count, shared=2)
    for worker in range(3):
        yield f"exit-{worker}", told("lease", worker, memory=1 << 30) + \
            record(0, kind=2, stripe=worker) + told("stats", worker)
        yield f"gone-{worker}", record(0, kind=3, stripe=worker) + told("alive", worker)


# The target `socket`: what an app and an agent say to the sidecar.
ASKS = ["attach", "pin", "unpin", "status", "held", "zero", "six", "all"]
(ASK, APP_FRAME, APP_RING, APP_PAGE, APP_TAIL, AGENT_FRAME, AGENT_BYTES, AGENT_GONE,
 ASK_RAW) = range(9)
FRAMES = {"post": 1, "call": 2, "reply": 16, "data": 17, "update": 18, "upcall": 19, "ack": 20,
          "lost": 21, "pad": 31, "ping": 32, "pong": 33, "bye": 34}


def ask(what, segment=0, size=0, fds=0, welcome=0, status=0):
    body = struct.pack("<IQQiI", segment, size, 0, 1, 0) + b"seed".ljust(64, b"\0")
    return record(ASKS.index(what), body, kind=ASK, stripe=welcome, context=status or fds)


def socket_seeds():
    attach = ask("attach")
    yield "attach", attach
    for name, kind in FRAMES.items():
        yield "app-" + name, attach + record(kind, bytes(16), kind=APP_FRAME) * 2
        yield "app-long-" + name, attach + record(kind, bytes(3000), kind=APP_FRAME, context=127)
        call = record(FRAMES["call"], bytes(16), kind=APP_FRAME, context=3)
        for body in (0, 8, 16, 24, 2016):
            yield f"agent-{name}-{body}", attach + call + \
                record(kind, bytes(body), kind=AGENT_FRAME, context=3)
        yield "agent-payload-" + name, attach + call + \
            record(kind, struct.pack("<IIQ", 0, 0, 70000), bytes(64), kind=AGENT_FRAME, context=3)
    for what in ASKS:
        yield "first-" + what, ask(what) * 2
        yield "second-" + what, attach + ask(what, 1, 4096) + ask(what, 1)
        yield "fds-" + what, attach + ask(what, 0, 1 << 20, fds=2)
    for size in MEMORY:
        yield f"pin-{size}", attach + ask("pin", 0, size) * 3 + ask("unpin", 1) + ask("unpin", 1)
    for welcome in range(8):
        yield f"welcome-{welcome}", ask("attach", welcome=welcome, status=802)
    for at in range(0, 900, 24):
        yield f"page-{at}", attach + record(0, b"\xff" * 8, kind=APP_PAGE, context=at) + \
            record(2, bytes(16), kind=APP_FRAME)
    for move in (1, 16, 32, 4096, 32767, 32768, 65535):
        yield f"tail-{move}", attach + record(0, kind=APP_TAIL, context=move) * 3
    yield "ring", attach + record(0, b"\xa5" * 512, kind=APP_RING) + \
        record(0, kind=APP_TAIL, context=512)
    yield "gone", attach + record(2, kind=APP_FRAME) + record(0, kind=AGENT_GONE)
    yield "bytes", attach + record(0, b"not a frame" * 10, kind=AGENT_BYTES)
    yield "raw", record(0, b"short", kind=ASK_RAW)


# The target `victim`: what a sidecar answers to the shim.
ANSWER, OPEN, JOIN, SEGMENT, PAGE, LOST, GONE = range(7)


def victim_seeds():
    right = record(0, kind=ANSWER)
    yield "right", right
    for call in range(12):  # as many as the program waits for
        yield f"status-{call}", right * call + record(700, kind=ANSWER, stripe=1)
        yield f"deferred-{call}", right * call + record(719, kind=ANSWER, stripe=2)
        yield f"short-{call}", right * call + record(4, kind=ANSWER, stripe=4)
        yield f"long-{call}", right * call + record(65535, kind=ANSWER, stripe=4)
        yield f"payload-{call}", right * call + record(65535, kind=ANSWER, stripe=8 | 15 << 4)
        yield f"ones-{call}", right * call + record(0, b"\xff" * 64, kind=ANSWER, context=0)
        yield f"runs-{call}", right * call + record(0, struct.pack("<8I", *[2000, 200] * 4),
                                                    kind=ANSWER, context=0)
        # Wherever in the answer a run is described: it is longer than what there is of the segment behind it.
        yield f"runs-long-{call}", right * call + record(0, struct.pack("<2I", 0, 1 << 30) * 64, kind=ANSWER, context=0)
    for at in range(0, 64 + 300, 8):
        yield f"open-{at}", record(0, b"\xff" * 8, kind=OPEN, context=at) + right
    for at in range(0, 64, 4):
        yield f"join-{at}", record(0, b"\xff" * 4, kind=JOIN, context=at)
    yield "join-short", record(0, kind=JOIN, stripe=1)
    for at in range(0, 900, 24):
        yield f"page-{at}", right * 3 + record(0, b"\xff" * 8, kind=PAGE, context=at) + right
    for at in range(0, 160, 8):  # before the program has looked
        yield f"page-first-{at}", record(0, struct.pack("<Q", 1 << 30), kind=PAGE, context=at) + right
    for at in (16, 256, 17000, 20000, 33000):
        yield f"segment-{at}", right * 5 + record(0, b"\xff" * 256, kind=SEGMENT, context=at) + right
    yield "lost", right * 9 + record(0, kind=LOST) + right
    yield "gone", right * 9 + record(0, kind=GONE) + right


def main(target, folder):
    makers = {"worker": worker_seeds, "hello": hello_seeds, "handoff": handoff_seeds, "socket": socket_seeds,
              "victim": victim_seeds}
    os.makedirs(folder, exist_ok=True)
    count = 0
    for name, data in makers[target]():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
        count += 1
    print(f"{folder}: {count} seeds")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
