#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same calls natively and through vcuda: what each answered, compared line by line.

    tests/differential/run.py [--dist build]              against the recorded native traces, with
                                                          the software GPU
    tests/differential/run.py --driver nvidia --native    on a machine with a GPU: native, then remote
    … --record FILE                                       keeps the native traces, as native.tar.xz is
    tests/differential/run.py --twice                     remote twice: what tells of the run itself is a mistake
    … --perf no_post,no_cache                             with optimisations off (VCUDA_PERF)

Exit status 1 if a call differs undeclared, or if a sequence does not come to its end that did natively.
"""
import argparse
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "torch"))
import compare  # noqa: E402
import stack  # noqa: E402

RECORDED = os.path.join(HERE, "native.tar.xz")


def trace(program, options, folder, env):
    os.makedirs(folder)
    command = [program, str(options.first), str(options.count), str(options.calls), folder]
    with tempfile.TemporaryDirectory() as where:  # some calls write files
        subprocess.run(command, env=env, check=True, timeout=options.timeout, cwd=where,
                       stdin=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    root = os.path.join(HERE, "..", "..")
    parser.add_argument("--dist", default=os.path.join(root, "build"))
    parser.add_argument("--driver", default="software", help="of the agent: nvidia or software")
    parser.add_argument("--gpus", default="all", help="which GPUs the agent has; the record is of a machine with one")
    parser.add_argument("--native", action="store_true", help="make the native traces here")
    parser.add_argument("--twice", action="store_true", help="compare two remote runs: both must tell the same")
    parser.add_argument("--record", help="keep the native traces in this file")
    parser.add_argument("--record-only", action="store_true", help="and make no remote ones")
    parser.add_argument("--perf", default="", help="VCUDA_PERF of the remote program")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=460, help="how many seeds")
    parser.add_argument("--calls", type=int, default=300, help="calls of each")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each side")
    parser.add_argument("--show", type=int, default=3, help="examples of each function that differs")
    parser.add_argument("--keep", help="a folder for both sides' traces")
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.dist, "differential", "trace"))
    scratch = tempfile.TemporaryDirectory(prefix="vcuda-differential-")
    folder = os.path.abspath(options.keep or scratch.name)
    native, other = os.path.join(folder, "native"), os.path.join(folder, "other")
    if options.native:
        env = dict(os.environ)
        env["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.path.join(options.dist, "native"),
                                                        env.get("LD_LIBRARY_PATH")]))
        trace(program, options, native, env)
        if options.record:
            with tarfile.open(options.record, "w:xz") as archive:
                for seed in sorted(os.listdir(native), key=int):
                    archive.add(os.path.join(native, seed), seed)
        if options.record_only:
            return 0
    elif not options.twice:
        with tarfile.open(RECORDED) as archive:
            archive.extractall(native, filter="data")
    with stack.Stack(options.dist, options.driver, options=("--warm", "4", "--gpus", options.gpus),
                     pin=False) as served:
        for side in (native, other) if options.twice else (other,):
            trace(program, options, side, served.env(VCUDA_PERF=options.perf))
    return compare.report(native, other, os.path.join(HERE, "declared.txt"), options.show, options.first, options.count,
                          (options.driver, *options.perf.split(",")))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (stack.Failed, subprocess.SubprocessError) as failure:
        sys.exit(f"run.py: {failure}")
