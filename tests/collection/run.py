#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A collection of CUDA programs that others wrote, each built and run on the software GPU.

    tests/collection/run.py --git DIR [--under src] [--suffix -cuda] [--work DIR] [--build build]
                            [--limit SECONDS] [-jN] [NAME ...]

--git is a repository of folders under --under whose names end with --suffix, each with a Makefile
that has a rule `run` with $(LAUNCHER) in front of the program (HeCBench has).  It is copied into
--work, built there for PTX by the nvcc that `make deps` fetched, and run by `vcuda run
--software`.  Numbers among the arguments are made smaller first (launch.py), because a program
for a GPU has a thousand times the work that a test needs; one that fails so runs once more with
the size that its author chose, and one that is not done with a smaller one.  What came of each program is kept in --work/results, and those
that have a result there are not run again unless they are named.  At the end a table says how
each ended: nothing here knows what is right, so a program passes that ends with 0 and complains
of nothing.  Nothing of a collection is kept in this repository.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys

import pack

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "vcuda")
BUILD_SECONDS = 240
COMPLAINS = re.compile(
    r"(?i:\bfail(?:ed|ure|s)?\b|mismatch|\bincorrect|\bwrong\b|CUDA (?:runtime )?error|"
    r"not supported|\binvalid\b|illegal|unspecified|vcuda:|[^a-z]nan\b|misaligned)|\bERROR\b")
MPI = re.compile(r"mpicxx|mpicc|MPI_|-lmpi|MPI\b")
# Libraries by the names of our own linker stubs, build/obj/link.
LIBRARIES = {"cublas": 13, "cublasLt": 13, "cudnn": 9, "cufft": 12, "curand": 10, "cusolver": 12,
             "cusolverMg": 12, "cusparse": 12, "cusparseLt": 0, "nccl": 2, "cuda": 1}
REASONS = {
    "passes": "ends with 0 and complains of nothing",
    "complains": "ends with 0 and says that something is wrong",
    "status": "ends with another status",
    "signal": "ends by a signal",
    "time": "is not done in time",
    "nothing": "has no rule that runs something",
    "build": "does not build here",
    "data": "needs data that the repository does not hold",
    "mpi": "needs MPI",
}


def copy_out(git, under, work):
    """The files of the repository; those that it has not got (of a partial clone) are left out."""
    blobs = pack.Blobs(git)
    for path, (mode, name, _) in pack.listed(git, under).items():
        target = os.path.join(work, path)
        content = None if os.path.exists(target) else blobs.read(name)
        if content is not None:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(content)
            os.chmod(target, mode)
    blobs.close()


def toolkit(work, build):
    """A folder that looks like CUDA's: nvcc (ours), headers, and libraries to link with."""
    home = os.path.join(work, "cuda")
    for folder in ("bin", "lib64"):
        os.makedirs(os.path.join(home, folder), exist_ok=True)
    links = {"bin/nvcc": os.path.join(HERE, "nvcc.py"),
             "bin/bin2c": os.path.join(CACHE, "cuda-13.0", "bin", "bin2c"),
             "include": os.path.join(CACHE, "cuda-13.0", "include")}
    for name, version in LIBRARIES.items():
        links[f"lib64/lib{name}.so"] = os.path.join(build, "obj", "link", f"lib{name}.so.{version}")
    for name, target in links.items():
        path = os.path.join(home, name)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(target, path)
    return home


def run(command, folder, limit, env, log):
    """Its status; None: it was not done in time."""
    with open(log, "ab") as out:
        with subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, start_new_session=True) as child:
            try:
                return child.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                return None


def missing(folder, variables, env):
    """The first file that its arguments name and that is not there."""
    text = subprocess.run(["make", "-nk", *variables, "LAUNCHER=LAUNCHED", "run"], cwd=folder, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False).stdout.decode(errors="replace")
    for line in text.splitlines():
        words = line.split("LAUNCHED", 1)[1].split()[1:] if "LAUNCHED" in line else []
        for word in words:
            if ("/" in word and word[0] not in "-/" and "out" not in word and
                    not os.path.exists(os.path.join(folder, word))):
                return word
    return None


class Collection:
    def __init__(self, args):
        self.args = args
        self.home = toolkit(args.work, args.build)
        self.results = os.path.join(args.work, "results")
        os.makedirs(self.results, exist_ok=True)
        self.env = dict(os.environ, PATH=f"{self.home}/bin:{os.environ['PATH']}")
        self.variables = [f"{name}={self.home}" for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]

    def make(self, folder, rule, limit, log, **env):
        return run(["make", *self.variables, f"LAUNCHER={HERE}/launch.py", *rule], folder, limit,
                   dict(self.env, **env), log)

    def one(self, name):
        folder = os.path.join(self.args.work, self.args.under, name + self.args.suffix)
        log = os.path.join(self.results, name + ".log")
        makefile = os.path.join(folder, "Makefile")
        if not os.path.exists(makefile):
            return {"ended": "build", "why": "no Makefile"}
        with open(makefile, encoding="utf-8", errors="replace") as file:
            if MPI.search(file.read()):
                return {"ended": "mpi"}
        absent = missing(folder, self.variables, self.env)
        if absent:
            return {"ended": "data", "why": absent}
        if self.make(folder, [], BUILD_SECONDS, log):
            return {"ended": "build"}
        found = self.launches(folder, name, "small", log)
        if found["ended"] in ("passes", "nothing"):
            return found
        again = self.launches(folder, name, "least" if found["ended"] == "time" else "given", log)
        return found if again["ended"] == "time" else again

    def launches(self, folder, name, sizes, log):
        runs = os.path.join(self.results, f"{name}.{sizes}")
        if os.path.exists(runs):
            os.unlink(runs)
        self.make(folder, ["-k", "run"], 3 * self.args.limit + 60, log, COLLECTION_RUNS=runs,
                  COLLECTION_SIZES=sizes, COLLECTION_LIMIT=str(self.args.limit),
                  COLLECTION_VCUDA=os.path.join(self.args.build, "bin", "vcuda"))
        if not os.path.exists(runs):
            return {"ended": "nothing"}
        with open(runs, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        ends = [ended(one) for one in found]
        worst = min(ends, key=["time", "signal", "status", "complains", "passes"].index)
        return {"ended": worst, "runs": found}


def ended(one):
    if one["status"] is None:
        return "time"
    if one["status"] < 0 or one["status"] > 128:
        return "signal"
    if one["status"]:
        return "status"
    return "complains" if COMPLAINS.search(one["text"]) else "passes"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--git", required=True)
    parser.add_argument("--under", default="src")
    parser.add_argument("--suffix", default="-cuda")
    parser.add_argument("--work", default="/tmp/vcuda-collection")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    args.build, args.work = os.path.abspath(args.build), os.path.abspath(args.work)
    copy_out(args.git, args.under, args.work)
    collection = Collection(args)
    names = args.names or sorted(
        folder[:-len(args.suffix)] for folder in os.listdir(os.path.join(args.work, args.under))
        if folder.endswith(args.suffix))

    def result(name):
        path = os.path.join(collection.results, name + ".json")
        if args.names or not os.path.exists(path):
            found = collection.one(name)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(found, file)
            print(f"{found['ended']:10} {name} {found.get('why', '')}", flush=True)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    table = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for name, found in zip(names, pool.map(result, names)):
            table[found["ended"]].append(name)
    for how, why in REASONS.items():
        some = table[how]
        print(f"{len(some):5} {why}" + ("" if how == "passes" else f": {' '.join(some)}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
