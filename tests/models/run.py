#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the models of this folder with Spin: each holds in every state that it can reach, and each of
its mutants does not.

    tests/models/run.py [MODEL ...]

A line for each model: states, and the mutants that were found.  A model that is not searched to its
end, or that has fewer than three mutants, fails."""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 120  # for one search
DEPTH = 1_000_000
MEMORY_MB = 1024


def search(model, mutant=None):
    """(errors, states, what Spin says)"""
    with tempfile.TemporaryDirectory(prefix="vcuda-model-") as folder:
        define = [f"-D{mutant}"] if mutant else []
        # It ends with 0 after some of its errors.
        made = subprocess.run(["spin", *define, "-a", model], cwd=folder, capture_output=True, text=True)
        assert not made.returncode and "Error" not in made.stdout, f"{model} {mutant}: {made.stdout}"
        subprocess.run(["cc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}",
                        "-o", "pan", "pan.c"], cwd=folder, check=True, capture_output=True)
        got = subprocess.run(["./pan", f"-m{DEPTH}"], cwd=folder, capture_output=True, text=True,
                             timeout=SECONDS)
    found = re.search(r"errors: (\d+)", got.stdout)
    states = re.search(r"(\d+) states, stored", got.stdout)
    assert found and states, f"{model} {mutant}: {got.stdout}{got.stderr}"
    cut = "max search depth too small" in got.stdout or "out of memory" in got.stdout
    assert not cut or int(found[1]), f"{model} {mutant}: not searched to its end\n{got.stdout}"
    return int(found[1]), int(states[1]), got.stdout


def mutants(model):
    with open(model) as file:
        names = re.findall(r"^#ifn?def (\w+)$", file.read(), re.M)
    return sorted(set(names))


def check(model):
    name = os.path.basename(model)[:-len(".pml")]
    errors, states, text = search(model)
    if errors:
        return False, f"{name}: an error\n{text}"
    known = mutants(model)
    if len(known) < 3:
        return False, f"{name}: {len(known)} mutants"
    alive = [mutant for mutant in known if not search(model, mutant)[0]]
    if alive:
        return False, f"{name}: nothing is wrong with {', '.join(alive)}"
    return True, f"{name}: {states:,} states; found: {', '.join(known).lower()}"


def main(words):
    models = [os.path.join(HERE, word + ".pml") for word in words] or sorted(glob.glob(f"{HERE}/*.pml"))
    good = True
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for right, text in pool.map(check, models):
            print(text, flush=True)
            good &= right
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
