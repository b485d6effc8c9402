#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Source files that call one another in a circle are those that are known to, with the reason.

    tests/shim/knots.py BUILD          checks
    tests/shim/knots.py BUILD --list   every knot with its files, and by which names they call one another

Reads the objects of a build: which file defines a name and which ones ask for it.  Files that all reach one another
are a knot.  KNOTS says where there are some, and why; a knot elsewhere is a fault, and so is a row without one.
Headers have no circles at all, nor have rooms: tools/layers.py.
"""
import collections
import os
import sys

import globals as names

sys.setrecursionlimit(10000)
# Files or folders: why those below them know each other.
KNOTS = {
    "shim/driver/ shim/engine/": "memory, streams, graphs, modules and contexts: the end of one is seen to by all others; "
                                 "the engine asks them by shim/engine/driver.h",
    "gpu-agent/worker/ gpu-agent/worker/driver/": "the same on the worker's side, around the one loop that serves them",
    "softgpu/driver/": "the same in the software GPU",
    "gpu-agent/front/": "one thread, one loop: each event may end a session, and that is in every table",
    "gpu-agent/store/": "a tensor's name, its copies and its memory end together",
    "gpu-agent/supervisor/network_folder.c gpu-agent/supervisor/network_table.c": "a network is a row, and what it keeps a folder",
    "sidecar/channel/": "a channel that is lost is joined again by the way in which it was made",
    "shim/libraries/cupti/": "a record is made of what the program, the frames and the agent say of one call",
    "shim/libraries/nccl/": "groups make communicators, and what communicators do is put into groups",
    "gpu-agent/worker/libraries/nccl/comm.c gpu-agent/worker/libraries/nccl/window.c": "a communicator ends with its windows",
    "softgpu/nccl/": "as shim/libraries/nccl: a group of calls is a task of communicators",
    "softgpu/ptx/run/": "kernels launch kernels",
    "softgpu/dnn/": "a graph is made of descriptors, and is one",
    "shim/libraries/cudnn/": "the same in the program",
    "shim/libraries/cufft/": "a plan on several GPUs is made of plans, and is one",
    "shim/tensor/": "a connection that closes seals its tensors",
    "transport/light/": "a connection that knocks again is the pump's",
    "transport/tls/": "a handshake takes its records from the connection that it is for",
    "transport/fault.c transport/transport.c": "fault+X:// is a row of the table, and finds X there",
    "softgpu/cupti/": "which kinds are recorded says whether anything is",
}


def calls_of(objects):
    """{file: {file that it calls: names}}; within one program's folder, or a shared one."""
    defined, wanted = collections.defaultdict(set), set()
    for path, kind, name in names.symbols(sorted(objects)):
        if kind in names.KINDS:
            defined[name].add(objects[path])
        elif kind == "U":
            wanted.add((objects[path], name))
    calls = collections.defaultdict(lambda: collections.defaultdict(set))
    for source, name in wanted:
        for target in defined.get(name, ()):
            if target != source and target.split("/")[0] in (source.split("/")[0], "common", "transport"):
                calls[source][target].add(name)
    return calls


def knots_of(calls):
    """Tarjan's strongly connected components with more than one file."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in sorted(calls.get(file, ())):
            if other not in number:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == number[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for file in sorted(calls):
        if file not in number:
            visit(file)
    return found


def faults_of(knots):
    """What is wrong with the table: knots in no row, and rows without a knot."""
    faults, used = [], set()
    for knot in knots:
        # The row with the least in it that has all of them.
        row = max((row for row in KNOTS if all(file.startswith(tuple(row.split())) for file in knot)), key=len, default=None)
        if row:
            used.add(row)
        else:
            faults.append("these call one another in a circle: " + ", ".join(knot))
    return faults + [f"tests/shim/knots.py: {row} has no knot any more: take it out" for row in KNOTS if row not in used]


def main():
    build = os.path.join(sys.argv[1], "obj")
    objects = {path: source for path, source in names.objects_of(build).items() if "/generated/" not in source}
    calls = calls_of(objects)
    knots = knots_of(calls)
    for knot in knots if "--list" in sys.argv else ():
        print(f"{len(knot)} files")
        for file in knot:
            print(f"    {file}")
            for other in sorted(set(calls[file]) & set(knot)):
                print(f"        {other}: {' '.join(sorted(calls[file][other]))}")
    faults = faults_of(knots)
    for fault in faults:
        print(fault)
    if not any("common/log.c" in fault for fault in faults_of([["common/config.c", "common/log.c"], *knots])):
        sys.exit("knots.py: a knot that nobody knows is not found")
    print(f"knots: {len(knots)} of {sum(map(len, knots))} files, {len(faults)} faults")
    sys.exit(1 if faults or not knots else 0)


if __name__ == "__main__":
    main()
