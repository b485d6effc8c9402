#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fronts of unserved libraries: every function of every one answers, and each library says so once.

    tests/unserved/unserved.py BUILD PROGRAM…      with nothing preloaded: runs the programs, and
                                                   itself, with what `vcuda preload` names
    tests/unserved/unserved.py each                calls everything
"""
import ctypes
import os
import re
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "protocol"))
import generate  # noqa: E402
from generator import unserved  # noqa: E402

LINE = re.compile(r"vcuda: (\w+) of (\S+) was called: vcuda has no front for this library yet, "
                  r"and refuses its calls \((\w+)\)")


def each():
    """Calls every function with room for four answers and reads every variable; a count, or what is wrong."""
    called = read = 0
    for one, soname in unserved.sonames(generate.load()):
        library = ctypes.CDLL(soname.name)
        for name, kind in one.names(soname).items():
            function = getattr(library, name)
            function.restype = ctypes.c_uint64
            rooms = [ctypes.create_string_buffer(64) for _ in range(4)]
            if kind == "property":
                rooms[0] = ctypes.c_int(3)  # there are three
            got = function(*rooms)
            want = {"status": one.status, "property": one.status, "value": one.value, "pointer": 0}.get(kind)
            if want is not None and got != want % (1 << 64):
                sys.exit(f"{soname.name}: {name} answers {got}, not {want}")
            called += 1
        for name, size in one.variables(soname).items():
            if bytes((ctypes.c_char * size).in_dll(library, name)) != bytes(size):
                sys.exit(f"{soname.name}: {name} does not hold {size} zeros")
            read += 1
    print(f"{called} functions refuse, {read} variables are there")


def main(build, programs):
    preload = subprocess.run([os.path.join(build, "bin", "vcuda"), "preload"], timeout=20,
                             capture_output=True, text=True, check=True).stdout.strip()
    failed = False
    for command in [[p] for p in programs] + [[sys.executable, os.path.abspath(__file__), "each"]]:
        got = subprocess.run(command, capture_output=True, text=True, timeout=60,
                             env=dict(os.environ, LD_PRELOAD=preload))
        lines = [LINE.fullmatch(line) for line in got.stderr.splitlines()]
        libraries = [line[2] for line in lines if line]
        right = (not got.returncode and all(lines) and len(set(libraries)) == len(libraries)
                 and len(libraries) >= 3)
        if command[-1] == "each":
            right = right and set(libraries) == {
                soname.name for _, soname in unserved.sonames(generate.load())}
        failed |= not right
        print(f"{'pass' if right else 'fail'}  {os.path.basename(command[0])}: "
              f"{got.stdout.strip()}; {len(libraries)} libraries say so"
              + ("" if right else f"\n{got.returncode}\n{got.stderr}"))
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(each() if sys.argv[1] == "each" else main(sys.argv[1], sys.argv[2:]))
