# SPDX-License-Identifier: Apache-2.0
"""Calls of a hostile client, in a session that has memory, a module, a stream and an event: every operation that the
agent serves, by family, with a body that is cut off, runs that lie outside of it, handles of other kinds, payloads and
contexts that are not.  Each is refused by its status, and the
session answers afterwards what it answered before."""
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from hostile_sessions import goes_on, next_frame  # noqa: E402
from peer import CALL, LOST, POST, REPLY, frame  # noqa: E402
from seed_frames import CALL as SEED_CALL  # noqa: E402
from seed_frames import MADE, OPS, STRUCTS, WIDTH, begin, entries, handle, pack, special  # noqa: E402

INVALID_VALUE, NO_CONTEXT, NO_HANDLE, NOT_SUPPORTED = 1, 201, 400, 801
NOWHERE = 65000  # an operation that is not
FAMILIES = {
    "memory": "vcuda(Mem|Vmm|Ipc|Pool|Host|Mirror)|cuMem", "copies": "vcuda(Copy|Fill|Array|Reference|Texture|Surface)|cuTensor",
    "modules": "vcuda(Module|Function|Global|Link|Library|Launch|Occupancy|Cooperative)|cu(Func|Occu)",
    "streams": "vcuda(Stream|Event|Sync|Query|Capture|Callback|Wait)|cu(Stream|Event)", "graphs": "vcuda(Graph|Cond)|cuGraph",
    "contexts": "cuCtx|cuDevice|vcuda(Ctx|Context|Limit|Primary|Green|Device|Nvml|Peer|Direct|Tensor|Cu|Open|Lease|Output|Profile)",
    "cuBLAS": "cublas", "cuDNN": "cudnn", "cuRAND": "curand", "cuSOLVER": "cusolver", "cuSPARSE": "cusparse",
}
assert all(any(re.match(names, name) for names in FAMILIES.values()) for name, form, _ in entries() if form in STRUCTS), \
    "an operation of no family"
# Where no other agent is joined these refuse before they look.
REFUSED_FIRST = {"vcudaDirectSend": 304, "vcudaDirectReceive": 304, "vcudaDirectSignal": 304, "vcudaDirectAwait": 304}


def put(c, op, body=b"", payload=b"", kind=CALL, context=1):
    c.seq += 1
    data = bytearray(frame(kind, body, payload, op=op, seq=c.seq, tag=1))
    struct.pack_into("<H", data, 22, context)
    c.commands.sendall(data)


def answer(c):
    """(its status, the first failure of posts before it)"""
    while True:
        header, rest = next_frame(c)
        assert header["kind"] != LOST, f"the session ended: {rest[-190:]}"
        if header["kind"] == REPLY:
            return header["status"], header["deferred"]


def ask(c, op, body=b"", payload=b"", context=1):
    put(c, op, body, payload, context=context)
    return answer(c)[0]


def prepared(c):
    """What seeds of the fuzzers begin with: each part of it succeeds."""
    c.begin(grace=0)
    parts, at = begin(), 0
    while at < len(parts):
        op, kind, _, context, body, payload, _ = struct.unpack_from("<HBBHHHH", parts, at)
        at += 12
        got = ask(c, op, parts[at:at + body], parts[at + body:at + body + payload], context)
        assert got == 0, f"operation {op} of the beginning: {got}, kind {kind == SEED_CALL}"
        at += body + payload


def offsets(name):
    """(type, field, comment, where it stands) of a body's fields, as far as they are plain."""
    found, at = [], 0
    for kind, field, count, comment in STRUCTS[name][0]:
        size, align = {"struct wire_run": (8, 4), "struct frame_destination": (16, 8)}.get(kind, (0, 0))
        if kind.startswith("struct ") and not size:
            break
        align = align or WIDTH.get(kind, 4)
        at = (at + align - 1) // align * align
        found.append((kind, field, comment, at))
        at += size or align * (count or 1)
    return found


def operations(family):
    for name, form, flags in entries():
        if form in STRUCTS and re.match(FAMILIES[family], name):
            values, runs = special(name) or ({}, {})
            yield name, form, flags, pack(form, values, runs)


def well(c, wrong):
    assert not wrong, "; ".join(f"{name}: {got}" for name, got in wrong[:8])
    assert ask(c, NOWHERE) == NOT_SUPPORTED, "an unknown call is answered otherwise now"
    goes_on(c)


def each(family, lies):
    """LIES(operation): (what, body, payload, context, statuses that refuse it) of each false word about it."""
    def case(c):
        prepared(c)
        wrong, count = [], 0
        for name, form, flags, body in operations(family):
            for what, told, payload, context, refused in lies(name, form, flags, body):
                got, count = ask(c, OPS[name], told, payload, context), count + 1
                if got not in refused and got != REFUSED_FIRST.get(name):
                    wrong.append((f"{name}, {what}", got))
        assert count, "no operation has that"
        well(c, wrong)
    return case


def cut_off(name, form, flags, body):
    for _, field, _, at in offsets(form):
        if at < STRUCTS[form][1]:
            yield f"cut before {field}", body[:at], b"", 1, (INVALID_VALUE,)
    yield "without its last byte", body[:STRUCTS[form][1] - 1], b"", 1, (INVALID_VALUE,)


def patched(body, at, layout, *values):
    told = bytearray(body)
    struct.pack_into(layout, told, at, *values)
    return bytes(told)


def run(offset, length):
    """A run that lies there: {size}, {end} of its body."""
    def lies(name, form, flags, body):
        for kind, field, comment, at in offsets(form):
            if kind == "struct wire_run":
                where = {"size": STRUCTS[form][1], "end": len(body)}.get(offset, offset)
                yield field, patched(body, at, "<II", where, length), b"", 1, (INVALID_VALUE, NO_HANDLE)
    return lies


def other_handle(make):
    def lies(name, form, flags, body):
        for kind, field, comment, at in offsets(form):
            of = re.search(r"KIND_(?:KIND_)?(\w+)", comment)
            if kind == "uint64_t" and of and "minted" not in comment and not re.match("vcuda(Reference|Cusparse)", name):
                yield field, patched(body, at, "<Q", make(of[1])), b"", 1, (NO_HANDLE,)
    return lies


def with_payload(name, form, flags, body):
    if flags and "PAYLOAD" not in flags:
        yield "64 bytes of payload", body, bytes(64), 1, (INVALID_VALUE,)


def without_context(number):
    def lies(name, form, flags, body):
        if flags and "NO_CONTEXT" not in flags:
            yield f"context {number}", body, b"", number, (NO_CONTEXT,)
    return lies


def posted(family):
    """A call that is awaited, sent as one that is not: refused when the next one waits."""
    def case(c):
        prepared(c)
        wrong, count = [], 0
        for name, _, flags, body in operations(family):
            if flags and "SERVE_POST" not in flags:
                put(c, OPS[name], body, kind=POST)
                put(c, NOWHERE)
                status, deferred = answer(c)
                count += 1
                if (status, deferred) != (NOT_SUPPORTED, INVALID_VALUE):
                    wrong.append((name, (status, deferred)))
        assert count, "no operation has that"
        well(c, wrong)
    return case


LIES = {
    "cut off before each field": cut_off, "a run behind the body": run("end", 64), "a run of 4 GiB": run("size", 2 ** 32 - 1),
    "a run that wraps": run(2 ** 32 - 8, 16), "a run that ends a byte late": run("end", 1),
    "handles of another kind": other_handle(lambda kind: handle("CUstream" if kind == "CUevent" else "CUevent")),
    "handles of a generation to come": other_handle(lambda kind: handle(kind) + (1 << 32) if kind in MADE else 2 << 32 | 11),
    "handles that nobody made": other_handle(lambda kind: handle("CUevent", 0xffffff)),
    "handles of all ones": other_handle(lambda kind: 2 ** 64 - 1), "a payload where none belongs": with_payload,
    "a context that nobody made": without_context(1000), "the largest context": without_context(2 ** 16 - 1),
}


def has(family, lies):
    return any(True for one in operations(family) for _ in lies(*one))


CALLS = {f"{family}: {what}": each(family, lies) for family in FAMILIES for what, lies in LIES.items() if has(family, lies)}
CALLS |= {f"{family}: posted, though it is awaited": posted(family) for family in FAMILIES
          if any(flags and "SERVE_POST" not in flags for _, _, flags, _ in operations(family))}
