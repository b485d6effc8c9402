#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/collection.py puts each program where it belongs: a collection of shell scripts, one for each end.

    tests/collection/classes.py DIST

On the software GPU.  A script knows by COLLECTION_PREFIX which way it runs; the rest is as for programs.
"""
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DIST = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import compare  # noqa: E402

REMOTE = 'case "$COLLECTION_PREFIX" in *LD_PRELOAD*) true ;; *) false ;; esac'
COUNT = 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n'
# What the class is to be, and the program; a row with another Makefile has it in front of the program.
PROGRAMS = {
    "alike": ("same", "echo sum 5; echo took 0.$$ ms"),
    "varies": ("same", f"{COUNT}; echo sum 5; echo norm 1.$n"),
    "late": ("same", f"{COUNT}; {REMOTE} && [ $n -lt 2 ] && exit 1; echo the second time it is well"),
    "wrong": ("text differs", f"{COUNT}; echo norm 1.$n; echo sum $({REMOTE} && echo 4 || echo 5)"),
    "more": ("text differs", f"echo sum 5; {REMOTE} && echo mismatch; exit 0"),
    "status": ("remote fails", f"echo sum 5; {REMOTE} && exit 3; exit 0"),
    "signal": ("remote fails", f"echo sum 5; {REMOTE} && kill -SEGV $$; exit 0"),
    "slow": ("remote too slow", f"{REMOTE} && sleep 60; exit 0"),
    "bad": ("native fails", "exit 3"),
    "long": ("native too slow", "sleep 60"),
    "unbuilt": ("not built", "all:\n\tfalse\nrun:\n\t$(LAUNCHER) ./main\n", ""),
    "data": ("needs data", "all:\nrun:\n\t$(LAUNCHER) ./main data/none.bin\n", ""),
    "mpi": ("needs MPI", "all:\n\tmpicxx main.cc\nrun:\n\t$(LAUNCHER) ./main\n", ""),
}
MAKEFILE = "all:\nrun:\n\t$(LAUNCHER) ./main\n"


def pack(path, names=tuple(PROGRAMS)):
    with tarfile.open(path, "w:xz") as tar:
        for name in names:
            _, *text = PROGRAMS[name]
            makefile = text[0] if len(text) == 2 else MAKEFILE
            for file, content in (("Makefile", makefile), ("main", "#!/bin/sh\n" + text[-1] + "\n")):
                info = tarfile.TarInfo(f"src/{name}-cuda/{file}")
                info.mode, info.size = 0o755, len(content.encode())
                tar.addfile(info, io.BytesIO(content.encode()))


class Classes(unittest.TestCase):
    def collection(self, work, *options):
        done = subprocess.run([os.path.join(HERE, "..", "gpu", "collection.py"), "--sources", f"{work}/c.tar.xz",
                               "--dist", DIST, "--driver", "software", "--work", f"{work}/work", "--log",
                               f"{work}/log", "--jobs", "4", "--builders", "2", "--limit", "6", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=150, check=False)
        with open(f"{work}/log/results.json", encoding="utf-8") as file:
            return done.returncode, done.stdout.decode(), json.load(file)

    def test_each_class(self):
        """Each program is in its class; those that failed have both texts in the log; a second call runs nothing."""
        with tempfile.TemporaryDirectory() as work:
            pack(f"{work}/c.tar.xz")
            status, text, found = self.collection(work)
            self.assertEqual({name: one["ended"] for name, one in found.items()},
                             {name: row[0] for name, row in PROGRAMS.items()}, text)
            self.assertEqual(status, 1)
            self.assertIn("3 of 8 that run natively are the same, of 13 programs", text)
            self.assertEqual(found["late"]["tries"], 2)
            with open(f"{work}/log/wrong.txt", encoding="utf-8") as file:
                log = file.read()
            self.assertIn("natively 'sum 5', remotely 'sum 4'", log)
            self.assertIn("sum 4", log)
            self.assertFalse(os.path.exists(f"{work}/log/alike.txt"))
            _, text, again = self.collection(work)
            self.assertEqual(again, found, text)
            status, text, _ = self.collection(work, "alike", "varies")
            self.assertEqual(status, 0, text)

    def test_the_end(self):
        """What the end cuts off has not begun, and is run by the next call."""
        with tempfile.TemporaryDirectory() as work:
            pack(f"{work}/c.tar.xz", ("long", "alike"))
            _, text, found = self.collection(work, "--seconds", "4", "--jobs", "1", "--builders", "1", "long",
                                             "alike")
            self.assertEqual([found[name]["ended"] for name in ("long", "alike")], ["not begun"] * 2, text)
            _, text, found = self.collection(work)
            self.assertEqual(found["alike"]["ended"], "same", text)


class Compare(unittest.TestCase):
    def test_numbers_of_time(self):
        """Times, rates and addresses are not compared; other numbers are."""
        self.assertTrue(compare.same(["time 1.5 ms at 0x7ffd12345678"], "time 12.25  ms at 0x7ffe00000000"))
        self.assertTrue(compare.same(["sum 3\nBandwidth: 12 GB/s"], "sum 3\nBandwidth: 9.1 GB/s"))
        self.assertFalse(compare.same(["sum 3\nBandwidth: 12 GB/s"], "sum 4\nBandwidth: 12 GB/s"))
        self.assertFalse(compare.same(["iteration 3: 0.5"], "iteration 3: 0.6"))

    def test_what_varies(self):
        """A line that native runs differ in may have other numbers, but must be of their form and be there."""
        natives = ["first\nnorm 1\nlast", "first\nnorm 2\nlast"]
        self.assertTrue(compare.same(natives, "first\nnorm 3\nlast"))
        self.assertTrue(compare.same(["at shm_12\nlast", "at shm_13\nlast"], "at shm_14\nlast"))  # a process's number
        self.assertFalse(compare.same(["at shm_12\nlast", "at shm_13\nlast"], "at mem_14\nlast"))
        for remote in ("first\nnorm 3", "first\nnorm x\nlast", "first\nnorm 3\nFAIL\nlast", "First\nnorm 3\nlast"):
            self.assertFalse(compare.same(natives, remote), remote)
        longer = ["a\nstep 1\nb", "a\nstep 1\nstep 2\nb"]
        self.assertTrue(compare.same(longer, "a\nstep 1\nstep 2\nstep 3\nb"))
        self.assertFalse(compare.same(longer, "a\nstep 1\nstep 2\nerror\nb"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
