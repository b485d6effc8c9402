#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a machine with a GPU: test suites that others wrote, run by pytest natively and through us: does each test end the same?

    tests/gpu/suites.py --sources FILE.tar.xz [--dist .dist] [--driver nvidia] [--log DIR] [--seconds S]
                        [--jobs N] [--limit S] [--select WORDS] [--share PART] [--no-mask] PATH[=JOBS][,apart] ...

FILE holds the suites' files (docs/COMPATIBILITY.md says which were taken); PATH is a file or a folder in it.
The paths go one after the other, natively and remotely at the same time, or "apart" where tests want most of the
GPU's memory, with JOBS workers of pytest-xdist each (--jobs).  A test that lasts longer than --limit ends its worker.  What did not end the same is run once more
by both, a worker each: a test that ends differently then, too, is different, the others are unsteady.
--seconds is a hard end: a test that both had not ended by then is not counted.
--select takes the tests that pytest's -k does; --share of them so many, the same by name at each run (0.1 is a tenth).

Prints a line for each path and each test that is different, with what either said; all outcomes are in --log.
Exit status 0 if none is different.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
import run  # noqa: E402
import stack  # noqa: E402

# Writes each test's outcome at once, so that a run that is cut off has told what it knew.
PLUGIN = '''
import json, os, zlib
bad = {}
def pytest_collection_modifyitems(items):
    most = float(os.environ["VCUDA_SUITE_SHARE"]) * 2**32
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) < most]
def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # the controller hears of it
    if report.outcome != "passed" and report.nodeid not in bad:
        text = report.longreprtext.strip().splitlines() if report.longrepr and report.outcome == "failed" else [""]
        said = [line[2:].strip() for line in text if line.startswith("E ")]
        bad[report.nodeid] = "xfail" if hasattr(report, "wasxfail") else report.outcome, (said or text[-1:])[0][:300]
    if report.when == "teardown":
        with open(os.environ["VCUDA_SUITE_OUTCOMES"], "a") as file:
            print(json.dumps([report.nodeid, *bad.pop(report.nodeid, ("passed", ""))]), file=file)
def pytest_sessionfinish(session):
    if "PYTEST_XDIST_WORKER" not in os.environ:  # those whose worker ended: no teardown
        with open(os.environ["VCUDA_SUITE_OUTCOMES"], "a") as file:
            for name, (outcome, said) in bad.items():
                print(json.dumps([name, outcome, said]), file=file)
'''


def outcomes(arm, what, jobs, served, options, work, tests=None):
    """{test: (outcome, what it said)} of the tests of a path, or of TESTS."""
    found = os.path.join(options.log, f"{what.replace('/', '_')}-{arm}{'-again' if tests else ''}.json")
    env = served.env() if arm == "remote" else dict(os.environ)
    env.update(VCUDA_SUITE_OUTCOMES=found, VCUDA_SUITE_SHARE=str(options.share),
               CUPY_CACHE_DIR=f"{work}/cupy-{arm}", TRITON_CACHE_DIR=f"{work}/triton-{arm}",
               TORCHINDUCTOR_CACHE_DIR=f"{work}/inductor-{arm}", PYTHONPATH=f"{work}:{env.get('PYTHONPATH', '')}",
               TMPDIR=f"{work}/tmp-{arm}", PYTHONFAULTHANDLER="1")
    os.makedirs(env["TMPDIR"], exist_ok=True)
    place, name = os.path.split(what.rstrip("/"))
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", "-p", "vcuda_suite", "-p", "no:cacheprovider", "-n", str(jobs),
               "--max-worker-restart", "100", "--timeout", str(options.limit), "--timeout-method", "thread",
               *(tests or ["-k", options.select, name])]
    if arm == "remote" and options.mask:
        command = stack.masked(command)
    left = options.end - time.monotonic()
    if left > 1:
        with open(found.replace(".json", ".log"), "w") as log:
            child = subprocess.Popen(command, env=env, cwd=os.path.join(work, place), stdout=log, stderr=log, start_new_session=True)
            try:
                child.wait(left)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                child.wait()
    if not os.path.exists(found):
        return {}
    with open(found, encoding="utf-8") as file:
        return {name: (outcome, said) for name, outcome, said in map(json.loads, file)}


def both(pool, apart, *arguments, **more):
    if apart:
        return [outcomes(arm, *arguments, **more) for arm in ("native", "remote")]
    arms = [pool.submit(outcomes, arm, *arguments, **more) for arm in ("native", "remote")]
    return [arm.result() for arm in arms]


def compare(path, pool, served, options, work):
    """The tests of PATH that end differently, [(test, native, remote)]."""
    path, _, apart = path.partition(",")
    what, _, jobs = path.partition("=")
    begun = time.monotonic()
    native, remote = both(pool, apart, what, int(jobs or options.jobs), served, options, work)
    ended = native.keys() & remote.keys()
    unlike = sorted(name for name in ended if native[name][0] != remote[name][0])
    again, more = both(pool, apart, what, 1, served, options, work, tests=unlike[:options.most]) if unlike else ({}, {})
    different = [(name, again[name], more[name]) for name in unlike
                 if name in again and name in more and again[name][0] != more[name][0]]
    unknown = [name for name in unlike if name not in again or name not in more]
    kinds = collections.Counter(native[name][0] for name in ended)
    print(f"{what}: {len(ended)} tests ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())} natively), "
          f"{len(different)} different, {len(unlike) - len(different) - len(unknown)} unsteady, {len(unknown)} not run again, "
          f"{len(native.keys() ^ remote.keys())} ended by one only; {time.monotonic() - begun:.0f} s", flush=True)
    for name, first, second in different:
        print(f"  {name}\n    natively {first[0]}: {first[1]}\n    remotely {second[0]}: {second[1]}", flush=True)
    for name in unknown:
        print(f"  {name} (once)\n    natively {native[name][0]}: {native[name][1]}\n    remotely {remote[name][0]}: {remote[name][1]}",
              flush=True)
    return different + [(name, native[name], remote[name]) for name in unknown]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sources", required=True)
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--driver", default="nvidia")
    parser.add_argument("--agent-libraries", default="")
    parser.add_argument("--log")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--most", type=int, default=60, help="how many tests of a path are run again")
    parser.add_argument("--select", default="", metavar="WORDS")
    parser.add_argument("--share", type=float, default=1.0, metavar="PART")
    parser.add_argument("--no-mask", dest="mask", action="store_false")
    parser.add_argument("paths", nargs="+", metavar="PATH[=JOBS][,apart]")
    options = parser.parse_args()
    options.end = time.monotonic() + options.seconds
    work = tempfile.mkdtemp(prefix="vcuda-suites-")
    options.log = os.path.abspath(options.log or os.path.join(work, "log"))
    os.makedirs(options.log, exist_ok=True)
    with tarfile.open(options.sources) as archive:
        archive.extractall(work, filter="data")
    with open(os.path.join(work, "vcuda_suite.py"), "w", encoding="utf-8") as file:
        file.write(PLUGIN)
    different = []
    with stack.Stack(options.dist, options.driver, os.path.join(options.log, "stack"), run.libraries(options), ("--warm", "4"),
                     pin=False) as served, concurrent.futures.ThreadPoolExecutor(2) as pool:
        served.env()  # the sidecar's start
        for path in options.paths:
            if options.end - time.monotonic() > 10:
                different += compare(path, pool, served, options, work)
            else:
                print(f"{path}: not begun: the time given is used up")
    print(f"{len(different)} different; logs: {options.log}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
