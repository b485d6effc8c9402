# SPDX-License-Identifier: Apache-2.0
"""Calls of libraries for the fuzzers' seeds: bodies of items, descriptors by content, and what each library has beside."""
import os
import re
import struct
import sys

from seed_frames import CALL, OPS, POST, ROOT, WINDOW, handle, library_state, read, record, say

sys.path.insert(0, os.path.join(ROOT, "protocol"))
import generate  # noqa: E402
from generator import fixed, items  # noqa: E402


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
        elif p.mark in ("inout", "inout?", "result"):
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
    for policy, limited, callbacks in ((1, 0, 0), (2, 1, 0), (4, 0, 0), (1, 2, 0), (0, 0, 1)):
        extra = content(64) + struct.pack("<Q4I", 64, policy, limited, callbacks, 0)
        asked = frame("cufftXtSetWorkAreaPolicy", extra + struct.pack("<Ii", 0, 0), CALL)
        yield f"cufft-extra-{policy}-{limited}-{callbacks}", asked + \
            frame("cufftXtSetWorkAreaPolicy", extra + struct.pack("<Ii", 0, 9), POST)
    for at, total, size in ((0, 68, 68), (0, 68, 32), (32, 68, 36), (0, 1 << 30, 8), (0, 5, 5)):
        piece = struct.pack("<3Q4I", at, total, 0, 1, 0, 5, 0) + b"load\0" + bytes(size - 5)
        yield f"cufft-callback-{at}-{total}-{size}", frame("cufftXtSetJITCallback", piece, CALL) + \
            frame("cufftXtSetJITCallback", piece, POST) + frame("cufftDestroy", struct.pack("<iI", 0, 1), POST)
    yield "cufft-none", frame("cufftXtExec", run(5, 0), CALL) + frame("cufftXtExec", run(-1, 0), POST)
