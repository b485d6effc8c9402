#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/frameworks natively and through vcuda on the same GPU: are the answers the same?

    tests/gpu/frameworks.py [--dist .dist] [--only jax,cupy] [--record FILE] [--seconds S]

Natively twice, so that a row which differs by itself is told as that; remotely with /dev/nvidia*
hidden.  Frameworks run side by side, the arms of one after the other.  A framework that this
Python lacks is skipped.  --record writes what docs/COMPATIBILITY.md is made of.  Exit status 1 if a
row differs.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
import run  # noqa: E402
import stack  # noqa: E402

# Which kernel XLA takes for a product depends on times that it measures, and the bits depend on the kernel.
XLA_FLAGS = "--xla_gpu_autotune_level=0"
FOLDER = os.path.join(ROOT, "tests", "frameworks")


def programs():
    return {os.path.basename(path).removesuffix("_rows.py"): path for path in sorted(glob.glob(f"{FOLDER}/*_rows.py"))}


def answers_of(command, env, log, seconds):
    """{"version", "rows": {name: digest or error}, "why"}; "why": what ended it before its end."""
    found = {"version": None, "rows": {}, "why": None}
    with open(log, "w") as errors:
        try:
            got = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=seconds)
            text = got.stdout
            if got.returncode:
                found["why"] = f"status {got.returncode}: {stack.tail(log, 1)}"[:200]
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            found["why"] = f"not ready after {seconds:.0f} s"
    for line in text.splitlines():
        what, _, rest = line.partition(" ")
        if what == "version":
            found["version"] = rest
        elif what == "row":
            name, _, digest = rest.partition(" ")
            found["rows"][name] = digest
    return found


def compare(name, path, served, options, work):
    end = time.monotonic() + options.seconds
    arms = {}
    for arm in ("native", "again", "remote"):
        env = served.env() if arm == "remote" else dict(os.environ)
        # Compiled code of one arm is not another's to find; JAX would take three quarters of the GPU.
        env.update(XLA_PYTHON_CLIENT_PREALLOCATE="false", XLA_FLAGS=f"{env.get('XLA_FLAGS', '')} {XLA_FLAGS}",
                   CUPY_CACHE_DIR=f"{work}/cupy-{arm}",
                   VLLM_CACHE_ROOT=f"{work}/vllm-{arm}", TRITON_CACHE_DIR=f"{work}/triton-{arm}", TORCHINDUCTOR_CACHE_DIR=f"{work}/inductor-{arm}")
        command = [sys.executable, path]
        if arm == "remote" and options.mask:
            command = stack.masked(command)
        arms[arm] = answers_of(command, env, f"{work}/{name}-{arm}.log", max(1, end - time.monotonic()))
        if arm == "native" and arms[arm]["version"] is None and "ModuleNotFoundError" in (arms[arm]["why"] or ""):
            return {"name": name, "skipped": arms[arm]["why"]}
    result = {"name": name, "version": arms["native"]["version"], "why": {a: arms[a]["why"] for a in arms},
              "same": [], "errors": [], "itself": [], "different": {}}
    for row, native in arms["native"]["rows"].items():
        remote = arms["remote"]["rows"].get(row, "absent")
        if arms["again"]["rows"].get(row) != native:
            result["itself"].append(row)
        elif remote != native:
            result["different"][row] = [native, remote]
        else:
            result["errors" if ":" in native else "same"].append(row)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--only", help="frameworks: " + ", ".join(programs()))
    parser.add_argument("--record", help="a file for the results")
    parser.add_argument("--seconds", type=float, default=400, help="for all arms of a framework; default 400")
    parser.add_argument("--driver", default="nvidia", help="of the agent: nvidia or software")
    parser.add_argument("--agent-libraries", default="", help="LD_LIBRARY_PATH of the agent")
    parser.add_argument("--no-mask", dest="mask", action="store_false", help="leave /dev/nvidia* visible (without root)")
    options = parser.parse_args()
    wanted = {name: path for name, path in programs().items() if not options.only or name in options.only.split(",")}
    work = tempfile.mkdtemp(prefix="vcuda-frameworks-")
    results, bad = [], 0
    with stack.Stack(options.dist, options.driver, work, run.libraries(options), ("--warm", "4"), pin=False) as served:
        with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
            for result in pool.map(lambda one: compare(*one, served, options, work), wanted.items()):
                results.append(result)
    for one in results:
        if "skipped" in one:
            print(f"{one['name']:14} skipped: {one['skipped']}")
            continue
        for row, (native, remote) in one["different"].items():
            print(f"DIFFERENT {one['name']} {row}: native {native}, remote {remote}")
        for row in one["errors"]:
            print(f"error both ways: {one['name']} {row}")
        for arm, why in one["why"].items():
            if why:
                print(f"{one['name']} {arm}: {why}")
        bad += bool(one["different"] or one["why"]["remote"] or not one["same"])
    for one in results:
        if "skipped" not in one:
            print(f"{one['name']:14} {one['version'] or '-':44} {len(one['same'])} the same, {len(one['errors'])} the same "
                  f"error, {len(one['itself'])} differ natively, {len(one['different'])} different")
    if options.record:
        with open(options.record, "w") as file:
            json.dump({"when": time.strftime("%Y-%m-%d", time.gmtime()), "results": results}, file, indent=1)
            file.write("\n")
    return bad > 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except stack.Failed as failure:
        sys.exit(f"frameworks.py: {failure}")
