# SPDX-License-Identifier: Apache-2.0
"""Calls of a hostile client whose values do not fit one another, or what there is: addresses, geometries, sizes,
counts, handles minted twice.  Each is refused by the status that OTHERWISE says, else by INVALID_VALUE, and the session
answers afterwards what it answered before."""
import struct

from hostile_calls import INVALID_VALUE, NO_HANDLE, ask, prepared, well
from seed_frames import DIGEST, GRANULE, OPS, PTX, WINDOW, handle, pack, special

NO_MEMORY, NO_DEVICE, NO_FILE, NO_NAME, NOT_SUPPORTED, MISMATCH = 2, 101, 205, 500, 801, 803

FLAT = {"pitch": 64, "slice": 64, "width": 64, "height": 1, "depth": 1}
BETWEEN = {"dstPitch": 64, "dstSlice": 64, "srcPitch": 64, "srcSlice": 64, "width": 64, "height": 1, "depth": 1,
           "src": WINDOW + 65536}
BEHIND = WINDOW + 5 * GRANULE  # nothing is mapped there
ROWS = {}
for what, values in (("to memory that is not mapped", {"dst": BEHIND}), ("to address 0", {"dst": 0}),
                     ("to the last byte", {"dst": 2 ** 64 - 1}), ("before the window", {"dst": WINDOW - 4096}),
                     ("across the end of what is mapped", {"dst": WINDOW + 4 * GRANULE - 32}),
                     ("of 2^63 rows", {"height": 2 ** 63}), ("whose rows wrap", {"height": 2 ** 32, "pitch": 2 ** 32}),
                     ("whose slices wrap", {"depth": 2 ** 33, "slice": 2 ** 31}),
                     ("whose pitch is less than a row", {"pitch": 8, "height": 2}),
                     ("of 2^64-1 bytes a row", {"width": 2 ** 64 - 1}),
                     ("of another size than its payload", {"width": 128, "pitch": 128})):
    ROWS[f"copy in {what}"] = "vcudaCopyIn", {**FLAT, "dst": WINDOW, **values}, {}, bytes(64)
    if "payload" not in what:
        there = {"src" if key == "dst" else key: value for key, value in values.items()}
        ROWS[f"copy out {what.replace('to ', 'from ')}"] = "vcudaCopyOut", {**FLAT, "src": WINDOW, **there}, {}, b""
        there = {{"pitch": "dstPitch", "slice": "dstSlice"}.get(key, key): value for key, value in values.items()}
        ROWS[f"copy {what}"] = "vcudaCopy", {**BETWEEN, "dst": WINDOW, **there}, {}, b""
        if "slices" not in what:
            ROWS[f"fill {what}"] = "vcudaFill", {"pitch": 64, "width": 64, "height": 1, "element": 1, "dst": WINDOW,
                                                 **values}, {}, b""
ROWS |= {
    "fill of elements of 3 bytes": ("vcudaFill", {"dst": WINDOW, "element": 3, "height": 1}, {}, b""),
    "fill of elements of 2^31 bytes": ("vcudaFill", {"dst": WINDOW, "element": 2 ** 31, "height": 1}, {}, b""),
    "copy to device 17": ("vcudaCopy", {"dst": WINDOW, "src": WINDOW, "dstDevice": 17}, {}, b""),
    "copy from device -1": ("vcudaCopy", {"dst": WINDOW, "src": WINDOW, "srcDevice": -1}, {}, b""),
}
for what, values in (("of device 17", {"device": 17}), ("of device -1", {"device": -1}), ("twice", {"address": WINDOW}),
                     ("across what is mapped", {"address": WINDOW + 3 * GRANULE, "bytes": 2 * GRANULE}),
                     ("beside a granule", {"address": BEHIND + 4096}), ("of half a granule", {"bytes": GRANULE // 2}),
                     ("of no bytes", {"bytes": 0}), ("before the window", {"address": WINDOW - GRANULE}),
                     ("behind the window", {"address": WINDOW + (1 << 44)}),
                     ("that wraps", {"bytes": 2 ** 64 - GRANULE}),
                     ("of more than there is", {"bytes": 1 << 39})):
    ROWS[f"map {what}"] = "vcudaMemMap", {"device": 0, "address": BEHIND, "bytes": GRANULE, **values}, {}, b""
    if what not in ("twice", "across what is mapped", "of more than there is", "of no bytes"):
        ROWS[f"unmap {what}"] = "vcudaMemUnmap", {"device": 0, "address": WINDOW, "bytes": GRANULE, **(
            {"address": WINDOW + 4096} if "beside" in what else values)}, {}, b""
ROWS |= {
    "unmap what is not mapped": ("vcudaMemUnmap", {"device": 0, "address": BEHIND, "bytes": GRANULE}, {}, b""),
    "unmap across the end of what is mapped": (
        "vcudaMemUnmap", {"device": 0, "address": WINDOW + 3 * GRANULE, "bytes": 2 * GRANULE}, {}, b""),
}
for what, values in (("no blocks", {"gridX": 0}), ("no threads", {"blockZ": 0}),
                     ("2^32-1 blocks each way", {"gridX": 2 ** 32 - 1, "gridY": 2 ** 32 - 1, "gridZ": 2 ** 32 - 1}),
                     ("1025 threads", {"blockX": 1025}), ("threads that wrap", {"blockX": 2 ** 16, "blockY": 2 ** 16}),
                     ("2 GiB of shared memory", {"sharedBytes": 2 ** 31}), ("fewer parameters", {"param_bytes": 8}),
                     ("2^32-1 bytes of parameters", {"param_bytes": 2 ** 32 - 1}),
                     ("2^32-1 bytes of attributes", {"attribute_bytes": 2 ** 32 - 1}),
                     ("half an attribute", {"attribute_bytes": 4})):
    ROWS[f"launch of {what}"] = "vcudaLaunch", values, {}, b""
ROWS |= {
    "launch with parameters of another kernel": ("vcudaLaunch", {"param_bytes": 4}, {"params": bytes(4)}, b""),
    "module: bytes behind its end": ("vcudaModuleData", {"size": 16, "offset": 8}, {"digest": bytes(32)}, bytes(64)),
    "module: an offset that wraps": (
        "vcudaModuleData", {"size": 64, "offset": 2 ** 64 - 32}, {"digest": bytes(32)}, bytes(64)),
    "module: of 2^63 bytes": ("vcudaModuleData", {"size": 2 ** 63, "offset": 0}, {"digest": bytes(32)}, bytes(64)),
    "module: a digest of 16 bytes": ("vcudaModuleData", {"size": 64, "offset": 0}, {"digest": bytes(16)}, bytes(64)),
    "module: 4 GiB of options": (
        "vcudaModuleLoad", {"module": handle("CUmodule", 40), "size": len(PTX), "kind": 1, "jit_bytes": 2 ** 32 - 1},
         {"digest": DIGEST}, b""),
    "module: minted as an event": (
        "vcudaModuleLoad", {"module": handle("CUevent", 40), "size": len(PTX), "kind": 1}, {"digest": DIGEST}, b""),
    "module: minted twice": (
        "vcudaModuleLoad", {"module": handle("CUmodule"), "size": len(PTX), "kind": 1}, {"digest": DIGEST}, b""),
    "function: a name without an end": (
        "vcudaFunctionGet", {"function": handle("CUfunction", 40)}, {"name": b"add"}, b""),
    "function: a name of 60 KiB": (
        "vcudaFunctionGet", {"function": handle("CUfunction", 40)}, {"name": b"x" * 60000 + b"\0"}, b""),
    "function: minted as a stream": ("vcudaFunctionGet", {"function": handle("CUstream", 40)}, {"name": b"add\0"}, b""),
    "function: minted twice": ("vcudaFunctionGet", {"function": handle("CUfunction")}, {"name": b"add\0"}, b""),
    "global: no name": ("vcudaGlobalGet", {}, {"name": b""}, b""),
    "stream: minted twice": ("vcudaStreamCreate", {"stream": handle("CUstream"), "flags": 1, "priority": 0}, {}, b""),
    "stream: minted as an event": (
        "vcudaStreamCreate", {"stream": handle("CUevent", 40), "flags": 1, "priority": 0}, {}, b""),
    "stream: handle 0": ("vcudaStreamCreate", {"stream": 0, "flags": 1, "priority": 0}, {}, b""),
    "stream: the largest index": (
        "vcudaStreamCreate", {"stream": handle("CUstream", 0xffffff), "flags": 1, "priority": 0}, {}, b""),
    "stream: all flags": (
        "vcudaStreamCreate", {"stream": handle("CUstream", 40), "flags": 2 ** 32 - 1, "priority": 0}, {}, b""),
    "event: all flags": ("vcudaEventCreate", {"event": handle("CUevent", 40), "flags": 2 ** 32 - 1}, {}, b""),
    "event: minted twice": ("vcudaEventCreate", {"event": handle("CUevent"), "flags": 0}, {}, b""),
    "wait for all of scope 99": ("vcudaSync", {"scope": 99, "handle": 0}, {}, b""),
    "memory operations: 2^32-1 of them": ("cuStreamBatchMemOp_v2", {"count": 2 ** 32 - 1}, {}, b""),
    "memory operations: one more than there are": ("cuStreamBatchMemOp_v2", {"count": 2}, {}, b""),
    "wait for a value outside": ("cuStreamWaitValue32_v2", {"addr": BEHIND, "value": 1, "flags": 1}, {}, b""),
    "write a value outside": ("cuStreamWriteValue32_v2", {"addr": BEHIND, "value": 1, "flags": 0}, {}, b""),
    "write a value beside a word": ("cuStreamWriteValue32_v2", {"addr": WINDOW + 1, "value": 1, "flags": 0}, {}, b""),
    "array: a description of zeros": ("vcudaArrayCreate", {"array": handle("CUarray", 40)}, {"desc": bytes(40)}, b""),
    "array: a description of ones": ("vcudaArrayCreate", {"array": handle("CUarray", 40)}, {"desc": b"\xff" * 40}, b""),
    "array: half a description": ("vcudaArrayCreate", {"array": handle("CUarray", 40)}, {"desc": bytes(20)}, b""),
    "memory of 2^63 bytes": (
        "vcudaVmmCreate", {"memory": handle("CUmemGenericAllocationHandle", 40), "device": 0, "bytes": 2 ** 63}, {},
         b""),
    "memory of device 17": (
        "vcudaVmmCreate", {"memory": handle("CUmemGenericAllocationHandle", 40), "device": 17, "bytes": GRANULE}, {},
         b""),
    "memory of the machine's: 2^63 bytes": (
        "vcudaVmmCreateHost", {"memory": handle("CUmemGenericAllocationHandle", 40), "bytes": 2 ** 63}, {}, b""),
    "memory of the machine's: minted as a stream": (
        "vcudaVmmCreateHost", {"memory": handle("CUstream", 40), "bytes": GRANULE}, {}, b""),
    "host memory that kernels reach: in the window": ("vcudaMirrorMap", {"address": WINDOW, "bytes": 8192}, {}, b""),
    "host memory that kernels reach: beside a page": (
        "vcudaMirrorMap", {"address": 0x480000000001, "bytes": 8192}, {}, b""),
    "host memory that kernels reach: 2^63 bytes": (
        "vcudaMirrorMap", {"address": 0x480000000000, "bytes": 2 ** 63}, {}, b""),
    "a capture that nobody began": ("vcudaCaptureEnd", {"graph": handle("CUgraph", 40)}, {}, b""),
    "open with another version": ("vcudaOpen", {"version": 99}, {}, b""),
}
for what, values, runs in (("of type 99", {"type": 99}, {}), ("after a node that is not", {"count": 1},
                     {"after": struct.pack("<I", 77)}),
                           ("after 2^30 nodes", {"count": 2 ** 30}, {}), ("with 2^32-1 bytes", {"bytes": 2 ** 32 - 1},
                                                {}),
                           ("with half its parameters", {"bytes": 20}, {}), ("of number 2^32-1", {"node": 2 ** 32 - 1},
                                                {}),
                           ("in a graph that is not", {"graph": handle("CUgraph", 99)}, {})):
    ROWS[f"graph: a node {what}"] = "vcudaGraphAdd", {"graph": handle("CUgraph"), **values}, runs, b""

OTHERWISE = {
    NO_DEVICE: ["device 17", "device -1"], NO_MEMORY: ["map of more than there is", "memory of 2^63 bytes"],
    NO_HANDLE: ["minted", "stream: handle 0", "largest index", "a capture that nobody began", "in a graph that is not"],
    NO_NAME: ["a name of 60 KiB"], NO_FILE: ["kernels reach: in the window"], NOT_SUPPORTED: ["of type 99"],
    MISMATCH: ["open with another version"],
}


def refuses(name, status, values, runs, payload):
    def case(c):
        prepared(c)
        if name.startswith("vcudaGraph"):
            got = ask(c, OPS["vcudaGraphMake"], pack("vcudaGraphMake", {"graph": handle("CUgraph"), "what": 0}))
            assert got == 0, f"a graph: {got}"
        common = special(name) or ({}, {})
        got = ask(c, OPS[name], pack(name, {**common[0], **values}, {**common[1], **runs}), payload)
        assert got == status, f"{name}: {got}, not {status}"
        well(c, ())
    return case


def status_of(what):
    return next((status for status, words in OTHERWISE.items() if any(word in what for word in words)), INVALID_VALUE)


VALUES = {what: refuses(name, status_of(what), *rest) for what, (name, *rest) in ROWS.items()}
