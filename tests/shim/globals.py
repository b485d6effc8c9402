#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No two programs of ours give one global name two meanings.

    tests/shim/globals.py BUILD

Reads the objects of a build: a name that two source files of shim, sidecar, gpu-agent, command, softgpu,
transport and common define is named with them (main and NVIDIA's own names aside, and the functions of
include/vcuda/tensor.h, which there are under vcuda and natively).
"""
import collections
import os
import re
import subprocess
import sys

ROOMS = ("shim", "sidecar", "gpu-agent", "command", "softgpu", "transport", "common")
NVIDIAS = ("cu", "__cuda", "__nv", "nvml", "_", ".")  # "_" and ".": the compiler's
BOTH_FORMS = "vcuda_tensor_"


def source_of(path):
    """(room, source file) of an object; None: it is no room's."""
    parts = path.split("/")
    for room in ROOMS:
        if room in parts:
            at = len(parts) - 1 - parts[::-1].index(room)
            source = "/".join(parts[at:]).removesuffix(".o")
            source = source.removesuffix(".base").removesuffix(".v3") + ".c"
            return (room, source) if os.path.exists(source) else None
    return None


def defined(paths):
    """(object, name) of every global definition."""
    got = subprocess.run(["nm", "-A", "-g", "--defined-only", *paths], capture_output=True, text=True,
                         timeout=60, check=True)
    for line in got.stdout.splitlines():
        where, kind, name = line.rsplit(" ", 2)
        if kind in "TDBRVW":
            yield where.rsplit(":", 1)[0], name


def main():
    build = os.path.join(sys.argv[1], "obj")
    objects = {}
    for path, folders, names in os.walk(build):
        folders[:] = [one for one in folders if one not in ("tests", "fuzz")]
        for name in names:
            source = source_of(os.path.relpath(os.path.join(path, name), build))
            if name.endswith(".o") and source:
                objects[os.path.join(path, name)] = source
    if not {room for room, _ in objects.values()} >= set(ROOMS) - {"common"}:
        sys.exit(f"globals.py: {build} is not a whole build")
    meanings = collections.defaultdict(set)
    for path, name in defined(sorted(objects)):
        if name != "main" and not name.startswith((*NVIDIAS, BOTH_FORMS)) and not re.match("p?nccl[A-Z]", name):
            meanings[name].add(objects[path][1])
    twice = {name: where for name, where in meanings.items() if len(where) > 1}
    for name, where in sorted(twice.items()):
        print(f"{name}: " + ", ".join(sorted(where)))
    print(f"globals: {len(meanings)} names of {len(objects)} objects, {len(twice)} with two meanings")
    sys.exit(1 if twice or not meanings else 0)


if __name__ == "__main__":
    main()
