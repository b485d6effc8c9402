#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of one library through the whole stack on the software GPU, for both ABIs; what a
call in steady state costs in round trips; and that everything that PyTorch imports is served.

    tests/cublas/run.py [--build FOLDER] [--family cublas|cublaslt|cudnn|cufft|curand|cusolver|cusparse|cusparselt|nccl] [--only NAME | --list]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "protocol"))
sys.path.insert(0, os.path.join(TOP, "tests"))
import generate  # noqa: E402
from generator.api import abis  # noqa: E402
import list as list_tests  # noqa: E402

FEW, MANY = 20, 120
# Round trips of each thing that steady.c does; the program that runs without shortcuts.
FAMILIES = {
    "cublas": ({"gemm": 0, "gemm_ex": 0, "state": 0, "dot_device": 0, "dot_host": 1,
                "rank": 0, "legacy": 0, "xt": 1}, "products"),
    "cublaslt": ({"linear": 0, "refused": 0, "transform": 0}, "matmul"),
    "cufft": ({"transform": 0, "real": 0, "stream": 0, "area": 0, "again": 0, "estimate": 0, "shape": 2},
              "transforms"),
    "curand": ({"bits": 0, "normal": 0, "poisson": 0, "sobol": 0, "reseed": 0, "stream": 0,
                "make": 1, "host": 2}, "numbers"),
    "cudnn": ({"descriptors": 0, "softmax": 0, "lstm": 0, "execute": 0, "plan": 0,
               # The graph with what its heuristics find, the plan, its first execution.
               "shape": 3}, "backend"),
    "cusparse": ({"spmv": 0, "spmm": 0, "spsv": 0, "elements": 0, "spgemm": 2}, "products"),
    "cusparselt": ({"linear": 0, "plan": 0, "search": 1}, "matmul"),
    "nccl": ({"all_reduce": 0, "alone": 0, "exchange": 0, "scale": 0, "what": 0, "error": 1,
              "put_signal": 0}, "first"),
    "cusolver": ({"solve": 0, "qr": 0, "eigen": 0, "svd": 0, "range": 1, "sparse": 0}, "lu"),
}
ABIS = {"cudnn": (8, 9), "cusolver": (11, 12), "nccl": (13,)}  # of the others 12 and 13


def run(build, command, **more):
    env = dict(os.environ, VCUDA_SOFTGPU_DEVICES="2", **more)
    return subprocess.run([f"{build}/bin/vcuda", "run", "--software", "--"] + command, env=env,
                          capture_output=True, text=True, timeout=60)


def program(build, family, abi, name):
    got = run(build, [f"{build}/{family}/{abi}/{name}"])
    text = (got.stdout + got.stderr).strip()[-300:]
    # The software GPU leaves nothing out.
    return got.returncode == 0 and "skip: " not in text, text


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
    description = generate.load()
    verbs = {e.name: e.verb for e in description.of(family) if abi in abis(e)}
    node = f"{description.libraries[family].stem}.so.{abi}"
    missing = [n for n in names if f"{n}@{node}" not in exported]
    refused = [n for n in names if verbs.get(n, "refused") == "refused"]
    text = f"{len(names)} names, {len(missing)} missing, {len(refused)} refused"
    return bool(names) and not missing and not refused, \
        " ".join([text] + missing[:4] + refused[:4])


def tests(build, family):
    """[(name, what it shows, function, its arguments)]"""
    want, whole = FAMILIES[family]
    both = ABIS.get(family, (12, 13))
    names = sorted(f[:-2] for f in os.listdir(os.path.join(TOP, "tests", family))
                   if f.endswith(".c") and f not in ("steady.c", "record.c"))
    rows = [(f"{abi}-{name}", shows(family, name), program, (build, family, abi, name))
            for name in names for abi in both if name[-2:] not in ("-8", "-9") or name.endswith(f"-{abi}")]
    rows += [("strict", f"{whole} with every call answered, nothing learned or remembered",
              without_shortcuts, (build, family, whole))]
    rows += [(f"cost-{t}", f"round trips of one {t}: {n}", round_trips, (build, family, t, n))
             for t, n in want.items()]
    if not os.path.exists(os.path.join(TOP, "tests", family, f"pytorch-{both[0]}.txt")):
        return rows
    rows += [(f"{abi}-imports", f"every name that PyTorch imports of lib{family} is served",
              imports, (build, family, abi)) for abi in both]
    return rows


def source(family, name):
    """The file of a program; of what is no program, this one."""
    path = f"tests/{family}/{name}.c"
    return path if os.path.exists(os.path.join(TOP, path)) else "tests/cublas/run.py"


def shows(family, name):
    return list_tests.sentence(list_tests.comment_of(source(family, name)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--family", default="cublas", choices=sorted(FAMILIES))
    parser.add_argument("--only", help="this test alone")
    parser.add_argument("--list", action="store_true", help="the tests, and what each shows")
    options = parser.parse_args()
    build, family = os.path.abspath(options.build), options.family
    checks = tests(build, family)
    if options.list:
        print("\n".join(f"{name}\t{what}\t{source(family, args[-1])}"
                        for name, what, _, args in checks))
        return 0
    if options.only:
        checks = [row for row in checks if row[0] == options.only]
        if not checks:
            parser.error(f"no test '{options.only}'")
    failed = 0
    for name, _, check, args in checks:
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
