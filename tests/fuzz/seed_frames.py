# SPDX-License-Identifier: Apache-2.0
"""Frames for the fuzzers' seeds, as the generated headers have them: fields get values that mean something in the
session that every seed begins with (device memory, a module, and one of each kind of handle)."""
import glob
import hashlib
import os
import re
import struct

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GENERATED = os.path.join(ROOT, "protocol", "generated")
SERVED = os.path.join(ROOT, "gpu-agent", "generated")
FRAME, CALL, POST, RAW, HANDOFF, STRIPE, PLAIN = range(7)
WINDOW, GRANULE = 0x200000000000, 2 << 20
# Host memory that kernels reach, and a run of two words of it: address, words, bytes and masks.
HOST = 0x480000000000
RUN = struct.pack("<QIIQQ8B", HOST + 4088, 2, 0, 1, 2 << 56, 1, 128, *bytes(6))
# Kernels, copies and fills, of protocol/wire/profile.h.
PROFILED = 1 << 1 | 1 << 2 | 1 << 3
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
        "vcudaProfileEnable": ({"kinds": PROFILED}, {}),
        "vcudaProfileFlush": ({"flag": 0}, {}),
        "vcudaProfileRead": ({"offset": 0, "bytes": 184}, {}),
        "vcudaProfileId": ({"what": 1, "handle": handle("CUstream")}, {}),
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
    if name in ("vcudaProfileFlush", "vcudaProfileRead"):
        values, runs = special("vcudaLaunch")
        out += say("vcudaProfileEnable", {"kinds": PROFILED}, kind=CALL, context=0)
        out += say("vcudaLaunch", dict(values, function=handle("CUfunction")), runs)
        out += say("vcudaFill", {"dst": WINDOW, "element": 1, "height": 1}) + drain()
        out += say("vcudaProfileFlush", {"flag": 0}, kind=CALL, context=0) if name == "vcudaProfileRead" else b""
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
