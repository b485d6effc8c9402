#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layers and the rooms: which folder may include what of which other folder.

    common < protocol < transport < {shim, sidecar, gpu-agent}, and softgpu apart

A room is a folder with one subject (its README.md says which); a file belongs to the room with the
longest name that it lies in, and generated code to the room of what it was generated from.  Each
include that its room is not allowed is named with its line; so is a circle between rooms, one of headers
within a room, a room that is not in this table, and a line of this table that nothing uses any more.
Exit status 1 then.

    tools/layers.py           checks
    tools/layers.py --test    shows that it would find each kind of fault
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "protocol"))
import generate  # noqa: E402

# room: the rooms whose headers it may include, beside its own.
ALLOWED = {
    "common": "",
    "protocol/wire": "common protocol/generated/library_kinds.inc",
    "protocol/generated/library_kinds.inc": "",
    "protocol/libraries": "protocol/wire",
    "protocol/generated": "protocol/wire protocol/libraries",
    "transport": "common protocol/wire",
    "transport/codec": "common protocol/wire transport",

    "shim/engine": "common protocol/wire",
    "include": "",
    "shim/driver": "common protocol/wire protocol/generated shim/engine shim/tensor include",
    "shim/driver/launch": "protocol/wire protocol/generated shim/engine shim/driver",
    "shim/tensor": "common protocol/wire include",  # arguments.h: what both forms of a function check
    "shim/nvml": "common shim/driver",
    "shim/runtime": "common shim/engine",
    "shim/loader": "common",
    "shim/libraries/common": "protocol/libraries shim/engine",
    "shim/libraries/unserved": "",

    # What sees frames and no call: the pod's sidecar.
    "sidecar": "common protocol/wire protocol/generated/op_last.h transport sidecar/agents sidecar/memory sidecar/options sidecar/stripes",
    "sidecar/memory": "common protocol/wire transport",
    "sidecar/agents": "common protocol/wire transport",
    "sidecar/options": "common protocol/wire transport transport/codec sidecar/agents",
    "sidecar/stripes": "common protocol/wire transport transport/codec sidecar/memory",
    "protocol/generated/operations.inc": "",
    "protocol/generated/op_last.h": "",
    "command/top": "common protocol/wire transport command",
    "command": "common protocol/wire protocol/generated/operations.inc transport",  # and asks NVIDIA's interfaces as a program does

    # The headers of what the kinds of process say to each other, and main.c, which starts each.
    "gpu-agent": "common protocol/wire transport",
    "gpu-agent/main.c":
        "common gpu-agent gpu-agent/supervisor gpu-agent/front gpu-agent/identity gpu-agent/keeper gpu-agent/probe"
        " gpu-agent/sandbox gpu-agent/cache",
    "gpu-agent/store": "common transport gpu-agent gpu-agent/front gpu-agent/sandbox",  # the loop of the front is its loop
    "gpu-agent/uploads": "common transport/codec gpu-agent gpu-agent/sandbox",
    "gpu-agent/cache": "common gpu-agent",
    "gpu-agent/sandbox": "common gpu-agent gpu-agent/cache",
    "gpu-agent/identity": "common",
    "gpu-agent/keeper": "common transport gpu-agent/identity",
    "gpu-agent/probe": "common gpu-agent",
    "gpu-agent/supervisor": "common transport gpu-agent gpu-agent/cache gpu-agent/sandbox",
    "gpu-agent/front":
        "common protocol/wire transport gpu-agent gpu-agent/cache gpu-agent/identity gpu-agent/supervisor gpu-agent/sandbox"
        " gpu-agent/probe",
    "gpu-agent/worker":
        "common protocol/wire protocol/generated transport transport/codec gpu-agent gpu-agent/cache"
        " gpu-agent/probe gpu-agent/sandbox",
    "gpu-agent/worker/driver": "common protocol/wire protocol/generated gpu-agent gpu-agent/worker",

    "gpu-agent/worker/libraries/common":
        "common protocol/libraries gpu-agent gpu-agent/worker gpu-agent/probe",


    "softgpu/ptx": "",
    "softgpu/ptx/parse": "softgpu/ptx",
    "softgpu/ptx/decode": "softgpu/ptx softgpu/ptx/parse",
    "softgpu/ptx/ops": "softgpu/ptx",
    "softgpu/ptx/run": "softgpu/ptx",
    "softgpu/ptx/tests": "softgpu/ptx",
    "softgpu/driver": "softgpu/ptx",
    "softgpu/blas": "softgpu/driver",
    "softgpu/dnn": "softgpu/driver",
    "softgpu/fft": "softgpu/driver",
    "softgpu/rand": "softgpu/driver",
    "softgpu/solver": "softgpu/driver",
    "softgpu/sparse": "softgpu/driver softgpu/ptx/ops",
    "softgpu/sparselt": "softgpu/sparse",
    "softgpu/nccl": "softgpu/driver softgpu/blas",
    "softgpu/cupti": "protocol/libraries softgpu/driver",

    # The client for Windows: shim and sidecar in one library, over a layer that stands for Linux.
    "windows/os": "",
    "windows/compat": "windows/os",
    "windows/client": "common protocol/wire sidecar sidecar/memory transport transport/codec windows/os",
    "windows/shim": "common shim/engine shim/driver windows/client windows/os",
    "windows/fronts": "common",
    "windows/command": "common windows/os",

    "bench": "common protocol/wire transport softgpu/ptx",
}
# What the room of a library may include, one for each stanza in protocol/api/.
LIBRARY_ROOMS = {
    "shim/libraries/": "protocol/wire protocol/libraries protocol/generated shim/engine shim/libraries/common",
    "gpu-agent/worker/libraries/":
        "common protocol/libraries protocol/generated gpu-agent/worker gpu-agent/worker/libraries/common"
        " gpu-agent/probe",
}
LIBRARIES = generate.load().libraries
FAMILIES = sorted(LIBRARIES)
for _prefix, _may in LIBRARY_ROOMS.items():
    ALLOWED.update({_prefix + family: _may for family in FAMILIES})
for _family in FAMILIES:
    if LIBRARIES[_family].records:  # of both; what was recorded at the agent travels in a form of its own, on a thread
        ALLOWED["shim/libraries/" + _family] += " common shim/driver shim/runtime"
        ALLOWED["gpu-agent/worker/libraries/" + _family] += " protocol/wire"
# The table of all serve functions, for the worker's loop.
ALLOWED["gpu-agent/generated/cuda_serve.c"] = " ".join(
    ["protocol/generated gpu-agent/worker"] + ["gpu-agent/worker/libraries/" + family for family in FAMILIES])
# Of its family's room: what is generated from FAMILY.api.
GENERATED = {
    "shim/generated": {"cuda_calls": "shim/engine", "cuda": "shim/driver", "vcuda": "shim/driver", "cudart": "shim/runtime", "nvml": "shim/nvml", "loader_sonames": "shim/loader",
                       "": "shim/libraries/"},
    "gpu-agent/generated": {"libraries": "gpu-agent", "cuda": "gpu-agent/worker", "serve": "gpu-agent/worker",
                            "": "gpu-agent/worker/libraries/"},
}
# (file, header): what a room may not and does, with the reason.
EXCEPTIONS = {}
# The shim uses headers of common only: it links libc and nothing else.
SHIM_COMMON = {"common/wait.h", "common/cleanup.h", "common/guard.h"}
# What connects machines is transport/'s alone: these know no sockets but those that they are given.
NO_NETWORK = ("sidecar", "gpu-agent")
NETWORK = re.compile(r"\b(socket|getaddrinfo|getnameinfo|getpeername|getsockname)\(|\bsockaddr|\bin6?_addr\b|"
                     r"\bIPPROTO_|\bTCP_[A-Z]|<netdb\.h>|<netinet/|<arpa/inet\.h>")
NETWORK_EXCEPTIONS = {"gpu-agent/front/http/http.c": "libmicrohttpd takes an accepted socket with its address"}
# Rooms that must not know a library of NVIDIA's, nor that CUDA has types.
NO_CUDA = ("common", "transport", "sidecar", "gpu-agent/front", "gpu-agent/supervisor",
           "gpu-agent/sandbox", "gpu-agent/cache", "gpu-agent/identity")


def room_of(path):
    """The room of a file or header; None where no room holds it."""
    folder, name = os.path.split(path)
    if path in ALLOWED:
        return path
    if folder in GENERATED:
        family = re.match(r"[a-z]+", name).group()
        rooms = GENERATED[folder]
        return rooms.get(name.split(".")[0]) or rooms.get(family, rooms[""] + family)
    while folder and folder not in ALLOWED:
        folder = os.path.dirname(folder)
    return folder or None


def includes(top):
    """(file, line number, header as written, whether with quotes) of every C file outside of tests."""
    for first in sorted({room.split("/")[0] for room in ALLOWED}):
        for path, folders, names in os.walk(os.path.join(top, first)):
            folders.sort()
            for name in sorted(names):
                if not name.endswith((".c", ".h")):
                    continue
                file = os.path.relpath(os.path.join(path, name), top)
                with open(os.path.join(top, file), encoding="utf-8") as lines:
                    for number, line in enumerate(lines, 1):
                        got = re.match(r'\s*#\s*include\s+(["<])([^">]+)', line)
                        if got:
                            yield file, number, got.group(2), got.group(1) == '"'


def network_faults(lines):
    """The faults of (file, number, text)…: what a program says to the kernel about the network."""
    faults, excused = [], set()
    for file, number, text in lines:
        if file.split("/")[0] not in NO_NETWORK or not NETWORK.search(text):
            continue
        if file in NETWORK_EXCEPTIONS:
            excused.add(file)
        else:
            faults.append(f"{file}:{number}: the network is transport/'s: {NETWORK.search(text).group()}")
    return faults + [f"tools/layers.py: {file} knows no network: no exception"
                     for file in NETWORK_EXCEPTIONS if file not in excused]


def lines_of(top):
    """(file, line number, text) of every line in the rooms that know no network."""
    for room in NO_NETWORK:
        for path, _, names in os.walk(os.path.join(top, room)):
            for name in names:
                if name.endswith((".c", ".h")):
                    file = os.path.join(path, name)
                    with open(file, encoding="utf-8") as lines:
                        for number, line in enumerate(lines, 1):
                            yield os.path.relpath(file, top), number, line


def circle(edges):
    """The rooms of one circle, or []."""
    state, stack = {}, []

    def visit(room):
        state[room] = 1
        stack.append(room)
        for other in sorted(edges.get(room, ())):
            if state.get(other) == 1:
                return stack[stack.index(other):] + [other]
            if other not in state:
                got = visit(other)
                if got:
                    return got
        state[room] = 2
        stack.pop()
        return []

    for room in sorted(edges):
        if room not in state:
            got = visit(room)
            if got:
                return got
    return []


def rooms_like(room):
    """The rooms that have that room's line: all of the libraries' on a side."""
    prefix = next((prefix for prefix in LIBRARY_ROOMS if room in [prefix + family for family in FAMILIES]), None)
    return [prefix + family for family in FAMILIES] if prefix else [room]


def faults_of(found):
    """The faults of (file, number, header, quoted)…, and how many files there were."""
    faults, edges, headers, used, excused, files = [], {}, {}, set(), set(), set()
    for file, number, header, quoted in found:
        files.add(file)
        room = room_of(file)
        if room is None:
            faults.append(f"{file}: lies in no room of tools/layers.py")
            continue
        if not quoted:
            if (room + "/").startswith(tuple(no + "/" for no in NO_CUDA)) and re.match(r"(cuda|cudnn|cublas|nvml)", header):
                faults.append(f"{file}:{number}: {room}/ must not include <{header}>")
            continue
        if "/" not in header:
            continue
        target = room_of(header)
        if file.endswith(".h"):
            headers.setdefault(file, set()).add(header)
        if (file, header) in EXCEPTIONS:
            excused.add((file, header))
            continue
        if target != room:
            if target not in ALLOWED[room].split() or \
                    (room.startswith("shim/") and target == "common" and header not in SHIM_COMMON):
                faults.append(f"{file}:{number}: {room}/ must not include {header}")
            used.add((room, target))
            edges.setdefault(room, set()).add(target)
    got = circle(edges)
    if got:
        faults.append("a circle of rooms: " + " -> ".join(got))
    got = circle(headers)
    if got:
        faults.append("a circle of headers: " + " -> ".join(got))
    for room in ALLOWED:
        for target in ALLOWED[room].split():
            if not any((alike, target) in used for alike in rooms_like(room)):
                faults.append(f"tools/layers.py: {room} does not use {target}: take it out")
    faults += [f"tools/layers.py: {file} does not include {header}: no exception"
               for file, header in EXCEPTIONS if (file, header) not in excused]
    return faults, len(files)


def test(found):
    """Each kind of fault is found."""
    cases = {
        "must not include gpu-agent/worker/worker.h":
            ("gpu-agent/front/session/hello.c", 1, "gpu-agent/worker/worker.h", True),
        "must not include protocol/generated/cuda_wire.h":
            ("sidecar/ring.c", 1, "protocol/generated/cuda_wire.h", True),
        "front/ must not include <cuda.h>": ("gpu-agent/front/session/hello.c", 1, "cuda.h", False),
        "options/ must not include <cuda.h>": ("sidecar/options/options.c", 1, "cuda.h", False),
        "must not include shim/libraries/cudnn/cudnn.h":
            ("shim/libraries/cublas/handle.c", 1, "shim/libraries/cudnn/cudnn.h", True),
        "must not include common/config.h": ("shim/engine/ring.c", 1, "common/config.h", True),
        "a circle of rooms": ("shim/engine/ring.c", 1, "shim/driver/stream/stream.h", True),
        "a circle of headers": ("gpu-agent/front/events.h", 1, "gpu-agent/front/front.h", True),
        "lies in no room": ("shim/new.c", 1, "stdio.h", False),
    }
    for what, include in cases.items():
        if not any(what in fault for fault in faults_of(found + [include])[0]):
            sys.exit(f"layers.py --test: {include} is not found: {what}")
    if not any("take it out" in f for f in faults_of([i for i in found if "sandbox" not in i[2]])[0]):
        sys.exit("layers.py --test: a line that nothing uses is not found")
    network = [("gpu-agent/front/http/http.c", 1, "struct sockaddr"), ("sidecar/stripes/stripes.c", 7, "fd = socket(AF_INET"),
               ("gpu-agent/front/session/hello.c", 9, "TCP_NODELAY"), ("transport/native.c", 3, "getaddrinfo(")]
    if len(network_faults(network)) != 2 or len(network_faults(network[1:])) != 3:
        sys.exit(f"layers.py --test: the network is not seen: {network_faults(network)}")
    print(f"layers: {len(cases) + 2} kinds of fault are found")


def main():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    found = list(includes(top))
    faults, files = faults_of(found)
    faults += network_faults(lines_of(top))
    if not files:
        sys.exit("layers.py: found no files")
    for fault in faults:
        print(fault)
    print(f"layers: {files} files in {len(ALLOWED)} rooms, {len(faults)} faults")
    if not faults and "--test" in sys.argv[1:]:
        test(found)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
