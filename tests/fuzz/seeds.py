#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fuzzers' seeds, made from the description: a well-formed conversation for each operation.

    tests/fuzz/seeds.py worker|handoff|socket|victim FOLDER

Fields of a frame are found in the generated headers, and get values that mean something in the
session that every seed begins with: device memory, a module, and one of each kind of handle.
"""
import glob
import hashlib
import os
import random
import re
import struct
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "protocol"))
import generate  # noqa: E402
from generator import fixed, items  # noqa: E402

GENERATED = os.path.join(ROOT, "protocol", "generated")
SERVED = os.path.join(ROOT, "gpu-agent", "generated")
FRAME, CALL, POST, RAW, HANDOFF, STRIPE, PLAIN = range(7)
WINDOW, GRANULE = 0x200000000000, 2 << 20
# Host memory that kernels reach, and a run of two words of it: address, words, bytes and masks.
HOST = 0x480000000000
RUN = struct.pack("<QIIQQ8B", HOST + 4088, 2, 0, 1, 2 << 56, 1, 128, *bytes(6))
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.global .align 4 .b8 table[4096];
.visible .entry add(.param .u64 p, .param .u32 n) {
 .reg .u64 %rd<4>; .reg .u32 %r<6>; .reg .pred %p;
 ld.param.u64 %rd1,[p]; ld.param.u32 %r1,[n];
 mov.u32 %r2,%tid.x; setp.ge.u32 %p,%r2,%r1; @%p bra E;
 mul.wide.u32 %rd2,%r2,4; add.u64 %rd3,%rd1,%rd2;
 ld.global.u32 %r3,[%rd3]; add.u32 %r3,%r3,1; st.global.u32 [%rd3],%r3;
E: ret; }
.visible .entry nothing() { ret; }
\0"""
DIGEST = hashlib.sha256(PTX).digest()


def read(path):
    with open(path) as file:
        return file.read()


KINDS = {}
for path in ("protocol/wire/handle.h", "protocol/generated/library_kinds.inc"):
    with open(os.path.join(ROOT, path)) as kinds:
        KINDS.update({m[1]: int(m[2]) for m in re.finditer(r"KIND_(\w+) = (\d+)", kinds.read())})
OPS = {m[1]: int(m[2]) for paths, row in (("*_ops.h", r"OP_(\w+) = (\d+)"), ("*_list.inc", r"\bSENT\((\w+), \w+, (\d+)\)"))
       for path in glob.glob(os.path.join(GENERATED, paths)) for m in re.finditer(row, read(path), re.M)}

OPEN_VERSION = int(re.search(r"OPEN_VERSION (\d+)",
                             read(os.path.join(ROOT, "protocol", "wire", "open.h")))[1])

# Index of each handle that begin() makes; records.c knows them.
MADE = {"CUstream": 10, "CUevent": 11, "CUmodule": 12, "CUfunction": 13, "CUgraph": 14,
        "CUgraphExec": 15, "cublasHandle": 16, "cublasLtHandle": 17, "cudnnHandle": 18,
        "CUmemGenericAllocationHandle": 19, "CUmemoryPool": 20, "CUlinkState": 21}


def handle(kind, index=None):
    """`index` None: the one that begin() made."""
    index = MADE.get(kind, 22) if index is None else index
    return 1 << 32 | KINDS[kind] << 24 | index


def structs():
    """{name: ([(type, field, elements, comment)], size)} of the frames' bodies."""
    found = {}
    for path in glob.glob(os.path.join(GENERATED, "*_wire.h")):
        pattern = r"struct wire_(\w+) \{(.*?)\n\};\n_Static_assert\(\s*sizeof\(struct wire_\w+\)" \
                  r"\s*==\s*(\d+)"
        for name, body, size in re.findall(pattern, read(path), re.S):
            fields = re.findall(r"^\t((?:struct )?\w+) (\w+)(?:\[(\d+)\])?;(?:\s*/\*(.*?)\*/)?",
                                body, re.M)
            found[name] = ([(t, f, int(n or 0), c) for t, f, n, c in fields], int(size))
        for name, model in re.findall(r"#define wire_(\w+) wire_(\w+)", read(path)):
            found[name] = found[model]
    return found


STRUCTS = structs()
WIDTH = {"uint64_t": 8, "int64_t": 8, "double": 8, "uint16_t": 2, "uint8_t": 1, "int8_t": 1}


def entries():
    """(name, struct's name, flags) of every operation that has a struct of its own."""
    for path in sorted(glob.glob(os.path.join(SERVED, "*_serve.c"))):
        pattern = r"\{OP_(\w+),\s*sizeof\(struct (\w+)\),\s*(?:0|sizeof\([^)]*\)),\s*([A-Z_| \s]+),"
        for name, body, flags in re.findall(pattern, read(path)):
            yield name, body[5:] if body.startswith("wire_") else None, flags
        for form, name in re.findall(r"^\t(ITEMS|LIST|FRAME)\((\w+),", read(path), re.M):  # a library's
            yield name, name if form == "FRAME" else None, ""


def record(op, body=b"", payload=b"", kind=FRAME, stripe=0, context=1):
    return struct.pack("<HBBHHHH", op, kind, stripe, context, len(body), len(payload), 0) + body + \
        payload


def value(name, field, kind, comment):
    """What a session as begin() makes it could say there."""
    lower = field.lower()
    of = re.search(r"KIND_(?:KIND_)?(\w+)", comment)
    if of and of[1] in KINDS:
        return handle(of[1], 30 if "minted" in comment else None)
    if lower.startswith("pad") or lower.endswith("device") or lower == "dev":
        return 0
    if lower in ("dst", "src", "address", "addr", "globaladdress", "a", "b", "c", "x", "y",
                 "workspace") and kind == "uint64_t":
        return WINDOW + 4096
    if name.startswith("cublas") and kind == "uint64_t":
        return WINDOW + 65536
    if lower in ("of", "graph"):
        return handle("CUgraph")
    if lower in ("bytes", "size") and re.match("vcuda(Mem|Vmm|Ipc)", name):
        return GRANULE
    if "pitch" in lower or lower in ("width", "slice", "dstslice", "srcslice"):
        return 64
    if lower in ("lda", "ldb", "ldc", "ldd", "m", "n", "k"):
        return 4
    if lower == "major":
        return 9 if "cudnn" in name.lower() else 10 if name.startswith("curand") else \
            0 if name.startswith("cusparseLt") else 12 if name.startswith(("cusolver", "cusparse")) else 13
    if lower == "count" or lower.endswith("_bytes"):
        return 0
    return 1


def pack(name, values=None, runs=None):
    """The body of one frame."""
    fields, size = STRUCTS[name]
    values, runs = values or {}, runs or {}
    head, tail = b"", b""
    begin_of_runs = size + 7 & ~7
    for kind, field, count, comment in fields:
        if kind == "struct wire_run":
            data = runs.get(field, b"")
            tail += bytes(-len(tail) % 8)
            head += struct.pack("<II", begin_of_runs + len(tail), len(data))
            tail += data
        elif kind == "struct frame_destination":
            head += struct.pack("<IIQ", 0, 0, 0)
        elif kind == "struct library_state":
            head += library_state(name)
        elif kind.startswith("struct "):
            head += bytes(max(0, size - len(head)))
        else:
            width = WIDTH.get(kind, 4)
            one = values.get(field, value(name, field, kind, comment))
            for _ in range(count or 1):
                head += struct.pack("<d" if width == 8 else "<f", 1.0) \
                    if kind in ("float", "double") else \
                    (int(one) & (1 << 8 * width) - 1).to_bytes(width, "little")
    head = head[:size] + bytes(size - len(head))
    return head + bytes(begin_of_runs - size) + tail


def say(name, values=None, runs=None, payload=b"", **more):
    return record(OPS[name], pack(name, values, runs), payload, **more)


def begin():
    """The session that every seed begins with."""
    out = say("vcudaOpen", {"version": OPEN_VERSION, "features": 0, "capacity": 1 << 20}, kind=CALL, context=0)
    for at in range(4):
        out += say("vcudaMemMap", {"device": 0, "address": WINDOW + at * GRANULE,
                                   "bytes": GRANULE}, context=0)
    out += say("vcudaModuleData", {"size": len(PTX), "offset": 0}, {"digest": DIGEST}, PTX,
               context=0)
    out += say("vcudaModuleLoad", {"module": handle("CUmodule"), "size": len(PTX), "kind": 1,
                                   "jit_bytes": 0}, {"digest": DIGEST}, kind=CALL)
    out += say("vcudaFunctionGet", {"module": handle("CUmodule"),
                                    "function": handle("CUfunction")}, {"name": b"add\0"},
               kind=CALL)
    out += say("vcudaStreamCreate", {"stream": handle("CUstream"), "flags": 1, "priority": 0})
    out += say("vcudaEventCreate", {"event": handle("CUevent"), "flags": 0})
    return out


def special(name):
    """Values and runs of operations whose fields must fit together; None: the common ones do."""
    add = struct.pack("<QI", WINDOW + 4096, 16)
    kernel = struct.pack("<QIIIIIIIII", handle("CUfunction"), 1, 1, 1, 32, 1, 1, 0, len(add), 0)
    copy = {"width": 64, "height": 2, "depth": 2, "pitch": 64, "slice": 128, "dstPitch": 64,
            "srcPitch": 64, "dstSlice": 128, "srcSlice": 128}
    return {
        "vcudaOpen": ({"version": OPEN_VERSION, "capacity": 1 << 20}, {}),
        "vcudaLaunch": ({"gridX": 1, "gridY": 1, "gridZ": 1, "blockX": 32, "blockY": 1,
                         "blockZ": 1, "sharedBytes": 0, "flags": 0, "attribute_bytes": 0,
                         "param_bytes": len(add)}, {"params": add}),
        "vcudaCopy": (copy, {}), "vcudaCopyIn": (copy, {}), "vcudaCopyOut": (copy, {}),
        "vcudaMemMap": ({"address": WINDOW + 8 * GRANULE, "bytes": GRANULE}, {}),
        "vcudaMemUnmap": ({"address": WINDOW, "bytes": GRANULE}, {}),
        "vcudaModuleData": ({"size": len(PTX), "offset": 0}, {"digest": DIGEST}),
        "vcudaModuleLoad": ({"size": len(PTX), "kind": 1, "jit_bytes": 0}, {"digest": DIGEST}),
        "vcudaFunctionGet": ({}, {"name": b"nothing\0"}),
        "vcudaGlobalGet": ({}, {"name": b"table\0"}),
        "vcudaGraphAdd": ({"type": 0, "node": 0, "bytes": len(kernel) + len(add), "count": 0},
                          {"params": kernel + add}),
        "vcudaGraphSet": ({"type": 0, "node": 0, "bytes": len(kernel) + len(add), "exec": 0},
                          {"params": kernel + add}),
        "vcudaMirrorMap": ({"address": HOST, "bytes": 8192}, {}),
        "vcudaMirrorUnmap": ({"address": HOST}, {}),
        "vcudaMirrorWrite": ({"bytes": len(RUN)}, {"runs": RUN}),
        "vcudaMirrorFetch": ({"scope": 3, "handle": 0, "capacity": 65536}, {}),
        "cuStreamBatchMemOp_v2": ({"count": 1}, {"paramArray": struct.pack(
            "<IIQQIIQQ", 2, 0, WINDOW + 4096, 5, 0, 0, 0, 0)}),
    }.get(name)


def before(name):
    """What an operation needs beside begin()."""
    out = b""
    if "Graph" in name or "Capture" in name:
        out += say("vcudaGraphMake", {"graph": handle("CUgraph"), "what": 0})
        if name not in ("vcudaGraphMake", "vcudaGraphAdd"):
            values, runs = special("vcudaGraphAdd")
            out += say("vcudaGraphAdd", dict(values, graph=handle("CUgraph")), runs)
            out += say("vcudaGraphInstantiate", {"graph": handle("CUgraph"),
                                                 "exec": handle("CUgraphExec")}) \
                if "vcudaGraphInstantiate" in STRUCTS else b""
    if name.startswith("vcudaMirror") and name != "vcudaMirrorMap":
        out += say("vcudaMirrorMap", {"address": HOST, "bytes": 8192}, kind=CALL)
    if name.startswith("cublasLt"):
        return out
    if name.startswith("cublas") and not name.startswith("cublasCreate"):
        out += say("cublasCreate_v2", {"major": 13}, kind=CALL)
    if name.startswith("curand") and not name.startswith("curandCreateGenerator"):
        out += say("curandCreateGenerator", {"major": 10, "rng_type": 101}, kind=CALL)
    if name.startswith("cusolver") and name != "cusolverDnCreate":
        out += say("cusolverDnCreate", {"major": 12}, kind=CALL)
    if name.startswith("cusparseLt"):
        return out if name == "cusparseLtInit" else out + say("cusparseLtInit", {"major": 0}, kind=CALL)
    if name.startswith("cusparse") and name != "cusparseCreate":
        out += say("cusparseCreate", {"major": 12}, kind=CALL)
    if (name.startswith("cudnn") and name != "cudnnCreate") or "Cudnn" in name:
        out += say("cudnnCreate", {"major": 9}, kind=CALL)
    return out


def drain():
    """Waits for all that was begun."""
    return say("vcudaSync", {"scope": 0, "handle": 0}, kind=CALL)


def payload_of(name, flags):
    if "PAYLOAD" not in flags:
        return b""
    return bytes(range(256)) if name == "vcudaCopyIn" else PTX


def library_state(name):
    one, first = ("curandGenerator", 101) if name.startswith("curand") else \
        ("cusparseLtHandle", 0) if name.startswith("cusparseLt") else \
        ("cusparseHandle", 0) if name.startswith("cusparse") else \
        ("cudnnHandle" if name.startswith("cudnn") else "cusolverDnHandle" if
         name.startswith("cusolver") else "cublasHandle", 0)
    return struct.pack("<QQIIII", handle(one), handle("CUstream"), first, 0, 0, 0)


def fixed_bodies():
    """Calls of libraries whose items have a known size: numbers, addresses and scalars."""
    api = generate.load()
    for e in api.entries:
        if not (e.library and e.op and items.travels(api, e)) or items.has_sizes(api, e):
            continue
        places = fixed.layout(api, e)
        key, varying = [1] * places.keys, [WINDOW + 65536] * places.varied
        for p in e.params:
            if p.name in places.key and p.name in ("lda", "ldb", "ldc", "m", "n", "k"):
                key[places.key[p.name]] = 4
            if p.mark in fixed.VALUES:
                at = places.varying[p.name]
                varying[at:at + fixed.words(p)] = [0x3f8000003f800000] * fixed.words(p)
        words = struct.pack(f"<{len(key)}I", *key)
        yield e.name, record(OPS[e.name], library_state(e.name) + struct.pack("<HHI", len(key), 0, 0) +
                             words + bytes(-len(words) % 8) + struct.pack(f"<{len(varying)}Q", *varying),
                             kind=CALL)


def cusparse_descriptor(item, number):
    """(words of the key, the varying part) of a descriptor: 4 by 4, 4 elements, of float."""
    content = {1: struct.pack("<4i", 0, 0, 0, 0), 2: struct.pack("<2q4i", 4, 4, 2, 0, 0, 0),
               3: struct.pack("<q2i", 4, 0, 0), 4: struct.pack("<4q4i", 4, 4, 4, 0, 0, 1, 1, 0),
               5: struct.pack("<8q12i", 4, 4, 0, 2, 2, 0, 0, 0, 1, 2, 2, 0, 0, 2, *6 * (0,))}.get(item, bytes(4))
    places = [WINDOW + 65536 * i for i in range(1, 1 + {2: 2, 3: 1, 4: 1, 5: 3}.get(item, 0))]
    return struct.pack("<I", item << 16 | len(content) // 4) + content, \
        struct.pack(f"<Qq{len(places)}Q", number, 4, *places) if item > 1 else b""


def cusparse_body(api, entry, number):
    """A call of cuSPARSE, as its stub puts it; NUMBER: of what it leaves something in, and of the next ones."""
    listed = read(os.path.join(ROOT, "protocol", "libraries", "cusparse.h"))
    kinds = re.findall(r"\bCUSPARSE_ITEM_(\w+)(?: = 1)?,", listed[listed.index("enum cusparse_item {"):])
    key, varying, present, pointers = b"", b"", 0, 0
    for p in entry.params[1:]:
        kind = items.descriptor_kind(api, p)
        if kind:
            stays = p.mark in ("stays", "sized")
            words, places = cusparse_descriptor(1 + kinds.index(kind[14:]), number if stays else 0)
            number, key, varying = number + stays, key + words, varying + places
        elif p.mark in ("device", "scalar"):
            present, pointers = present | 1 << pointers, pointers + 1
            varying += struct.pack("<Q", WINDOW + 65536) if p.mark == "device" else struct.pack("<2Q", 0x3f800000, 0)
        elif p.mark in ("inout", "result"):
            varying += struct.pack("<Q", 4096)
        elif p.mark not in ("out", "out?"):
            wide = items.number(api, entry, p) in ("long", "double")
            key += struct.pack("<Q", 4) if wide else struct.pack("<I", 0 if api.types[p.base].wire == "enum" else 4)
    return struct.pack("<HHI", len(key) // 4, 0, present) + key + bytes(-len(key) % 8) + varying


def cusparse_bodies():
    """Calls whose descriptors travel by content, or by a number: used twice, as another kind, and after they ended."""
    api = generate.load()
    kept = handle("cusparseObject", 40)
    for e in api.of("cusparse"):
        if not e.op or not items.travels(api, e):
            continue
        body = library_state(e.name) + cusparse_body(api, e, kept)
        yield e.name, b"".join(record(OPS[e.name], body, kind=kind) for kind in (CALL, POST)) + \
            say("vcudaCusparseObjectClose", {"object": kept}) + record(OPS[e.name], body, kind=CALL)
        if e.op % 16 == 0:
            yield e.name + "-stale", record(OPS[e.name], library_state(e.name) +
                                            cusparse_body(api, e, handle("cublasHandle")), kind=CALL)


def cusparselt_descriptor(item):
    """(words of the key, the varying part) of a descriptor: 32 by 32 halves, the first two in four."""
    matrices = [struct.pack("<3q2Q4i2I", 32, 32, 32, 0, 0, 16, 2, 2, int(not i), 0, 0) for i in range(4)]
    product = struct.pack("<3iI", 0, 0, 2, 1 << 8) + b"".join(matrices) + \
        struct.pack("<20Q", *(9 if i == 8 else 0 for i in range(20)))
    content = {1: matrices[0], 2: product}.get(item, product + struct.pack("<i2I7i", 0, 0, 0, *7 * (0,)))
    return struct.pack("<I", item << 16 | len(content) // 4) + content, \
        struct.pack("<Q", WINDOW + 65536) if item > 1 else b""


def cusparselt_bodies():
    """Calls of cuSPARSELt: twice each, so that what is kept is found."""
    api = generate.load()
    item = {"MATRIX": 1, "PRODUCT": 2, "ALGORITHM": 3, "PLAN": 4}
    by_hand = {3802: 1, 3803: 1, 3804: 1, 3805: 2, 3806: 2, 3807: 3, 3808: 3, 3810: 4, 3811: 4, 3812: 4}
    for e in api.of("cusparselt"):
        if not e.op or not items.travels(api, e):
            continue
        kind = by_hand.get(e.op) or next(item[items.descriptor_kind(api, p)[16:]] for p in e.params
                                         if items.descriptor_kind(api, p))
        key, varying = cusparselt_descriptor(kind)
        if e.op in (3811, 3812):
            scalar = struct.pack("<2Q", 0x3f800000, 0)
            varying += scalar + struct.pack("<2Q", WINDOW + 65536, WINDOW + 131072) + scalar + \
                struct.pack("<3Q", WINDOW + 65536, WINDOW + 65536, 0)
        else:
            key += struct.pack("<3I", 1, 0, 1) if e.name.endswith("2") else struct.pack("<2I", 0, 4)
            varying += struct.pack("<3Q", *3 * (WINDOW + 65536,))
        body = library_state(e.name) + struct.pack("<HHI", len(key) // 4, 0, 0xff) + key + bytes(-len(key) % 8) + varying
        yield e.name, b"".join(record(OPS[e.name], body, kind=kind) for kind in (CALL, POST))


def cudnn_bodies():
    """Bodies of cuDNN calls, as the target of cuDNN's half has them."""
    folder = os.path.join(ROOT, "tests", "fuzz", "corpus", "cudnn")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        if len(data) < 24:
            continue
        body = struct.pack("<QQ", handle("cudnnHandle"), 0) + data[24:]
        yield "cudnn-" + name, record(struct.unpack_from("<H", data)[0], body,
                                      kind=POST if data[2] & 1 else CALL)


def cufft_bodies():
    """Frames of cuFFT (protocol/libraries/cufft.h): a plan prepared, named, run and ended."""
    def content(n, rank=1, form=5):  # complex numbers, by cufftXtMakePlanMany
        return struct.pack("<18q8I", n, *8 * (0,), 1, n, 1, n, 2, *4 * (0,), 12, form, rank, 0, 4, 4, 4, 0)

    def frame(name, body, kind):
        return record(OPS[name], body, kind=kind)

    def run(plan, area):
        return struct.pack("<4QiIQiI", handle("CUstream"), WINDOW + 4096, WINDOW + 8192, area, plan, 0x29,
                           0, -1, 0)
    for n in (8, 127, 256):
        prepared = frame("cufftXtGetSizeMany", content(n) + struct.pack("<II", 0, 0), CALL)
        named = frame("cufftXtMakePlanMany", content(n) + struct.pack("<iI", n, 0), POST)
        ended = frame("cufftDestroy", struct.pack("<iI", n, 0), POST)
        yield f"cufft-{n}", prepared + named + frame("cufftXtExec", run(n, WINDOW + 65536), CALL) + \
            frame("cufftXtExec", run(n, 1 << 60), POST) + ended + ended
    for what, form, rank in ((1, 5, 1), (2, 3, 1), (0, 0, 1), (0, 4, 3), (0, 9, 1), (0, 5, 4), (7, 5, 1)):
        yield f"cufft-asked-{what}-{form}-{rank}", frame(
            "cufftXtGetSizeMany", content(16, rank, form) + struct.pack("<II", what, 0), CALL)
    yield "cufft-none", frame("cufftXtExec", run(5, 0), CALL) + frame("cufftXtExec", run(-1, 0), POST)


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
    for at in range(0, 64 + 300, 8):
        yield f"open-{at}", record(0, b"\xff" * 8, kind=OPEN, context=at) + right
    for at in range(0, 64, 4):
        yield f"join-{at}", record(0, b"\xff" * 4, kind=JOIN, context=at)
    yield "join-short", record(0, kind=JOIN, stripe=1)
    for at in range(0, 900, 24):
        yield f"page-{at}", right * 3 + record(0, b"\xff" * 8, kind=PAGE, context=at) + right
    for at in (16, 256, 17000, 20000, 33000):
        yield f"segment-{at}", right * 5 + record(0, b"\xff" * 256, kind=SEGMENT, context=at) + right
    yield "lost", right * 9 + record(0, kind=LOST) + right
    yield "gone", right * 9 + record(0, kind=GONE) + right


def main(target, folder):
    makers = {"worker": worker_seeds, "handoff": handoff_seeds, "socket": socket_seeds,
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
