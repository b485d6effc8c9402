#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cuBLAS programs through the whole stack on the software GPU, for both ABIs; what a call in
steady state costs in round trips; and that everything that PyTorch imports is served.

    tests/cublas/run.py [--build FOLDER]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(TOP, "protocol"))
import generate  # noqa: E402
from generator.api import abis  # noqa: E402

FEW, MANY = 20, 120
WANT = {"gemm": 0, "gemm_ex": 0, "state": 0, "dot_device": 0, "dot_host": 1}


def run(build, command, **more):
    env = dict(os.environ, **more)
    return subprocess.run([f"{build}/bin/vcuda", "run", "--software", "--"] + command, env=env,
                          capture_output=True, text=True, timeout=60)


def program(build, abi, name):
    got = run(build, [f"{build}/cublas/{abi}/{name}"])
    return got.returncode == 0, (got.stdout + got.stderr).strip()[-300:]


def without_shortcuts(build):
    got = run(build, [f"{build}/cublas/13/products"], VCUDA_STRICT="1", VCUDA_PERF="no_learn")
    return got.returncode == 0, (got.stdout + got.stderr).strip()[-300:]


def round_trips(build, thing, want):
    counted = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        for n in (FEW, MANY):
            got = run(build, [f"{build}/cublas/13/steady", thing, str(n)], VCUDA_STATS=path)
            if got.returncode:
                return False, got.stderr.strip()[-300:]
            with open(path, encoding="utf-8") as file:
                counted.append(json.load(file)["round_trips"])
            os.unlink(path)
    cost = (counted[1] - counted[0]) / (MANY - FEW)
    return cost == want, f"{cost:g} round trips" + ("" if cost == want else f", not {want}")


def imports(build, abi):
    """Every cuBLAS name that PyTorch imports is exported, with its version, and not refused."""
    with open(os.path.join(HERE, f"pytorch-{abi}.txt"), encoding="utf-8") as file:
        names = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    nm = subprocess.run(["nm", "-D", "--defined-only", f"{build}/lib/libvcuda-{abi}.so"],
                        capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2].replace("@@", "@") for line in nm.splitlines()
                if len(line.split()) == 3}
    verbs = {e.name: e.verb for e in generate.load().of("cublas") if abi in abis(e)}
    missing = [n for n in names if f"{n}@libcublas.so.{abi}" not in exported]
    refused = [n for n in names if verbs.get(n, "refused") == "refused"]
    text = f"{len(names)} names, {len(missing)} missing, {len(refused)} refused"
    return bool(names) and not missing and not refused, \
        " ".join([text] + missing[:4] + refused[:4])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    build = os.path.abspath(parser.parse_args().build)
    names = sorted(f[:-2] for f in os.listdir(HERE) if f.endswith(".c") and f != "steady.c")
    checks = [(f"{abi} {name}", program, (build, abi, name)) for name in names for abi in (12, 13)]
    checks += [("strict", without_shortcuts, (build,))]
    checks += [(f"cost of {t}", round_trips, (build, t, w)) for t, w in WANT.items()]
    checks += [(f"{abi} imports", imports, (build, abi)) for abi in (12, 13)]
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
