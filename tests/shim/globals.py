#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No two programs of ours give one global name two meanings, and each name begins with one of its room's words.

    tests/shim/globals.py BUILD

Reads the objects of a build: a name that two source files of shim, sidecar, gpu-agent, command, softgpu,
transport and common define is named with them (main and NVIDIA's own names aside, and the functions of
include/vcuda/tensor.h, which there are under vcuda and natively).

A room's words are those of its path and of its files' names.  WORDS has what begins otherwise, with the reason; a
row that nothing needs is a fault.  Generated code, and what it calls (hand_NAME, serve_NAME), is named by NVIDIA's.
"""
import collections
import os
import re
import subprocess
import sys
import time

ROOMS = ("shim", "sidecar", "gpu-agent", "command", "softgpu", "transport", "common")
NVIDIAS = ("cu", "__cuda", "__nv", "nvml", "_", ".")  # "_" and ".": the compiler's
KINDS = "TDBRVW"  # of definitions, as nm says
PATIENCE = 60  # seconds
BOTH_FORMS = "vcuda_tensor_"
GENERATED = ("hand_", "serve_", "vcuda_")
# (folder or file, words): why names there begin with them.
WORDS = {
    ("softgpu", "soft"): "the software GPU's own, where NVIDIA's libraries have the plain word",
    ("softgpu/nccl", "softnccl"): "of one library, which programs load beside others",
    ("softgpu/sparselt", "lt"): "cusparseLt",
    ("softgpu/driver/graph/conditional.c", "branch condition conditions defaults"): "types of conditional nodes",
    ("shim/libraries/cusparselt", "sparselt"): "the library's name without NVIDIA's prefix",
    ("gpu-agent/worker/libraries/cusparselt", "sparselt"): "the library's name without NVIDIA's prefix",
    ("shim/libraries/cufft", "fft"): "the library's name without NVIDIA's prefix",
    ("gpu-agent/worker/libraries", "run"): "run_NAME: what generated code calls of a library's function by hand",
    ("shim/loader", "image loaded"): "elf.h: a file that is mapped for a look, an object that the loader has",
    ("transport/socket_link.c", "stream"): "connections of bytes, of which several transports are made",
    # What the guard stands in for.
    ("shim/loader/buffers.c", "fread fwrite getrandom pread pread64 preadv pwrite pwrite64 pwritev read readv recv "
     "recvfrom recvmsg send sendmsg sendto write writev"): "the C library's",
    ("shim/loader/devices.c", "access stat stat64"): "the C library's",
    ("shim/loader/loader.c", "dlopen"): "the C library's",
    ("shim/loader/paths.c", "fstat fstat64 getcwd lstat lstat64 open open64 openat openat64 readlink"): "the C library's",
    ("shim/loader/signals.c", "pthread sigaction sigprocmask"): "the C library's",
}


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


def symbols(paths):
    """(object, kind, name) of every global name.  Other tests' objects may be on their way: they are waited for."""
    for start in range(0, len(paths), 500):
        for _ in range(PATIENCE):
            got = subprocess.run(["nm", "-A", "-g", *paths[start:start + 500]], capture_output=True, text=True, timeout=60)
            if not got.returncode:
                break
            time.sleep(1)
        else:
            sys.exit(f"globals.py: {got.stderr.strip()}")
        for line in got.stdout.splitlines():
            where, _, rest = line.partition(":")
            *_, kind, name = rest.split()
            yield where, kind, name


def defined(paths):
    """(object, name) of every global definition."""
    return ((where, name) for where, kind, name in symbols(paths) if kind in KINDS)


def forms(word):
    """A word, one of it and several."""
    return {word, word.removesuffix("s"), word + "s", re.sub("ies$", "y", word), re.sub("y$", "ies", word)}


def words_of(source):
    """The words that a global name of that file may begin with."""
    folder = os.path.dirname(source)
    names = [name[:-2] for name in os.listdir(folder) if name.endswith((".c", ".h"))] + folder.split("/")
    return set().union(*(forms(word) for name in names for word in (name, *re.split("[_-]", name)) if word))


def unworded(found):
    """(source, name) of (source, name)… that begins with no word of its room, and rows of WORDS without one."""
    faults, used, known = [], set(), {}
    for source, name in sorted(found):
        first = name.split("_")[0]
        if first in known.setdefault(source, words_of(source)):
            continue
        row = next((row for row in WORDS if source.startswith(row[0]) and first in row[1].split()), None)
        if row:
            used.update((row, word) for word in row[1].split() if word == first)
        else:
            faults.append(f"{source}: {name} begins with no word of its room's")
    return faults + [f"tests/shim/globals.py: {place} needs no {word}: take it out"
                     for place, words in WORDS for word in words.split() if ((place, words), word) not in used]


def objects_of(build):
    """{object: its source}; of a whole build alone."""
    objects = {}
    for path, folders, names in os.walk(build):
        folders[:] = [one for one in folders if one not in ("tests", "fuzz")]
        for name in names:
            source = source_of(os.path.relpath(os.path.join(path, name), build))
            # An object that is older than its source has names that are gone.
            if name.endswith(".o") and source and \
                    os.path.getmtime(os.path.join(path, name)) >= os.path.getmtime(source[1]):
                objects[os.path.join(path, name)] = source[1]
    if not {source.split("/")[0] for source in objects.values()} >= set(ROOMS) - {"common"}:
        sys.exit(f"globals.py: {build} is not a whole build")
    return objects


def main():
    objects = objects_of(os.path.join(sys.argv[1], "obj"))
    meanings = collections.defaultdict(set)
    for path, name in defined(sorted(objects)):
        if name != "main" and not name.startswith((*NVIDIAS, BOTH_FORMS)) and not re.match("p?nccl[A-Z]", name):
            meanings[name].add(objects[path])
    twice = {name: where for name, where in meanings.items() if len(where) > 1}
    for name, where in sorted(twice.items()):
        print(f"{name}: " + ", ".join(sorted(where)))
    found = {(source, name) for name, where in meanings.items() for source in where
             if "/generated/" not in source and not name.startswith(GENERATED)}
    faults = unworded(found)
    for fault in faults:
        print(fault)
    if not any("strange" in fault for fault in unworded({*found, ("common/log.c", "strange_name")})):
        sys.exit("globals.py: a name with a word of no room is not found")
    print(f"globals: {len(meanings)} names of {len(objects)} objects, {len(twice)} with two meanings, "
          f"{len(faults)} without their room's word")
    sys.exit(1 if twice or faults or not meanings else 0)


if __name__ == "__main__":
    main()
