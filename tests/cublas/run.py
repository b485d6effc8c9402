#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of one library through the whole stack on the software GPU, for both ABIs; what a
call in steady state costs in round trips; and that everything that PyTorch imports is served.

    tests/cublas/run.py [--build FOLDER] [--family cublas|cublaslt|cudnn]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "protocol"))
import generate  # noqa: E402
from generator.api import abis  # noqa: E402
from generator.library import STEM  # noqa: E402

FEW, MANY = 20, 120
# Round trips of each thing that steady.c does; the program that runs without shortcuts.
FAMILIES = {
    "cublas": ({"gemm": 0, "gemm_ex": 0, "state": 0, "dot_device": 0, "dot_host": 1}, "products"),
    "cublaslt": ({"linear": 0, "refused": 0, "transform": 0}, "matmul"),
    "cudnn": ({"descriptors": 0, "softmax": 0, "execute": 0, "plan": 0,
               # The graph with what its heuristics find, the plan, its first execution.
               "shape": 3}, "backend"),
}
ABIS = {"cudnn": (8, 9)}  # of the others 12 and 13


def run(build, command, **more):
    env = dict(os.environ, **more)
    return subprocess.run([f"{build}/bin/vcuda", "run", "--software", "--"] + command, env=env,
                          capture_output=True, text=True, timeout=60)


def program(build, family, abi, name):
    got = run(build, [f"{build}/{family}/{abi}/{name}"])
    text = (got.stdout + got.stderr).strip()[-300:]
    # The software GPU serves all but this.
    partly = (family, name) == ("cudnn", "recurrent")
    return got.returncode == 0 and (partly or "skip: " not in text), text


def newest(family):
    return ABIS.get(family, (12, 13))[-1]


def without_shortcuts(build, family, name):
    got = run(build, [f"{build}/{family}/{newest(family)}/{name}"], VCUDA_STRICT="1",
              VCUDA_PERF="no_learn,no_cache")
    return got.returncode == 0, (got.stdout + got.stderr).strip()[-300:]


def round_trips(build, family, thing, want):
    counted = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        for n in (FEW, MANY):
            got = run(build, [f"{build}/{family}/{newest(family)}/steady", thing, str(n)],
                      VCUDA_STATS=path)
            if got.returncode:
                return False, got.stderr.strip()[-300:]
            with open(path, encoding="utf-8") as file:
                counted.append(json.load(file)["round_trips"])
            os.unlink(path)
    cost = (counted[1] - counted[0]) / (MANY - FEW)
    return cost == want, f"{cost:g} round trips" + ("" if cost == want else f", not {want}")


def imports(build, family, abi):
    """Every name of the library that PyTorch imports is exported, with its version, not refused."""
    path = os.path.join(TOP, "tests", family, f"pytorch-{abi}.txt")
    with open(path, encoding="utf-8") as file:
        names = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    fronts = [f"{build}/lib/libvcuda-{n}.so" for n in ((12, 13) if family in ABIS else (abi,))]
    nm = subprocess.run(["nm", "-D", "--defined-only"] + fronts, capture_output=True, text=True,
                        check=True).stdout
    exported = {line.split()[2].replace("@@", "@") for line in nm.splitlines()
                if len(line.split()) == 3}
    verbs = {e.name: e.verb for e in generate.load().of(family) if abi in abis(e)}
    node = f"lib{STEM.get(family, family)}.so.{abi}"
    missing = [n for n in names if f"{n}@{node}" not in exported]
    refused = [n for n in names if verbs.get(n, "refused") == "refused"]
    text = f"{len(names)} names, {len(missing)} missing, {len(refused)} refused"
    return bool(names) and not missing and not refused, \
        " ".join([text] + missing[:4] + refused[:4])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--family", default="cublas", choices=sorted(FAMILIES))
    options = parser.parse_args()
    build, family = os.path.abspath(options.build), options.family
    want, whole = FAMILIES[family]
    both = ABIS.get(family, (12, 13))
    names = sorted(f[:-2] for f in os.listdir(os.path.join(TOP, "tests", family))
                   if f.endswith(".c") and f != "steady.c")
    checks = [(f"{abi} {name}", program, (build, family, abi, name))
              for name in names for abi in both]
    checks += [("strict", without_shortcuts, (build, family, whole))]
    checks += [(f"cost of {t}", round_trips, (build, family, t, n)) for t, n in want.items()]
    checks += [(f"{abi} imports", imports, (build, family, abi)) for abi in both]
    failed = 0
    for name, check, args in checks:
        try:
            right, text = check(*args)
        except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            right, text = False, str(error)
        failed += not right
        print(f"{'pass' if right else 'fail'}  {name:20}{text}", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
