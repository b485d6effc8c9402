#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch, unmodified, through the whole stack: every case of cases/, one process each.

    tests/torch/run.py [--dist build] [--driver software|nvidia] [--python FILE ...]
                       [--only CASE,CASE] [-jN]

On the software GPU here (`make test-torch`, which installs two builds of PyTorch with none of
NVIDIA's libraries), on a real one from .dist with the machine's own PyTorch.  A case is a program
(check.py says how it tells what it needs).  Exit status 1 if one fails.
"""
import argparse
import concurrent.futures
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
import stack  # noqa: E402

LIMIT = 90  # seconds a case


def cases():
    folder = os.path.join(HERE, "cases")
    return sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py"))


def says(case):
    """{"needs": [...], "arm": [...]} of its head."""
    head = {}
    with open(os.path.join(HERE, "cases", case + ".py")) as file:
        for line in file:
            if not line.startswith("#"):
                break
            got = re.match(r"# (needs|arm): (.+)", line)
            if got:
                head.setdefault(got[1], []).append(got[2].strip())
    return head


def version_of(python):
    """From the package's own file: importing it needs the libraries."""
    code = ("import importlib.metadata as m; print(m.version('torch'))")
    got = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    if got.returncode:
        raise stack.Failed(f"{python} has no torch: {got.stderr.strip()[-200:]}")
    return got.stdout.strip()


def why_not(head, driver, version):
    for need in head.get("needs", []):
        if need == "kernels" and driver != "nvidia":
            return "needs a GPU that runs PyTorch's machine code"
        if need.endswith(" GPUs"):
            if driver == "nvidia" and len(os.listdir("/proc/driver/nvidia/gpus")) < int(need.split()[0]):
                return f"needs {need}"
        elif need[0].isdigit() and numbers(version) < numbers(need):
            return f"needs PyTorch {need}"
    return None


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version.split("+")[0])]


def run(case, python, env, options):
    """(status, seconds, text)"""
    command = [python, os.path.join(HERE, "cases", case + ".py")]
    if options.mask:
        command = stack.masked(command)
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=out, start_new_session=True)
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)  # faulthandler tells where it hangs
            time.sleep(1)
            status = "timeout"
        finally:
            try:  # what it left behind
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        out.seek(0)
        text = out.read()
    return status, time.monotonic() - start, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, "build"))
    parser.add_argument("--driver", default="software", choices=("software", "nvidia"))
    parser.add_argument("--python", action="append", help="one with PyTorch; default: this one")
    parser.add_argument("--agent-libraries", default="", help="LD_LIBRARY_PATH of the agent")
    parser.add_argument("--only", default="", help="cases: " + ", ".join(cases()))
    parser.add_argument("--mask", action="store_true", help="hide /dev/nvidia* (root)")
    parser.add_argument("--log", help="a folder for the logs of all parts")
    parser.add_argument("-j", type=int, default=2)
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name] or cases()
    for name in wanted:
        if name not in cases():
            parser.error(f"no case '{name}'")
    if options.mask and options.driver != "nvidia":
        options.mask = False
    count = {"pass": 0, "FAIL": 0, "skip": 0}

    def tell(verdict, version, case, seconds, text=""):
        count[verdict] += 1
        print(f"{verdict}  {version:8}{case:26}{seconds:6.1f} s{'  ' + text if text else ''}",
              flush=True)

    libraries = [part for part in options.agent_libraries.split(":") if part]
    settings = ["--warm", "3", "--set", "nccl.allowed=true", "--set", "store.bytes=64MiB",
                # Multicast concerns all GPUs of a host, which others use.
                "--set", "nccl.environment=NCCL_NVLS_ENABLE=0"]
    if options.driver == "software":
        os.environ["VCUDA_SOFTGPU_MEMORY"] = "512M"  # small, so that filling it is cheap
        os.environ["VCUDA_SOFTGPU_DEVICES"] = "2"
    try:
        with stack.Stack(options.dist, options.driver, options.log, libraries, settings,
                         pin=False) as served, \
                concurrent.futures.ThreadPoolExecutor(options.j) as pool:
            remote = served.env(PYTHONPATH=HERE, VCUDA_TEST_DRIVER=options.driver,
                                PYTHONFAULTHANDLER="1", OMP_NUM_THREADS="1",
                                PYTHONDONTWRITEBYTECODE="1")
            nobody = dict(remote, VCUDA_SOCKET=f"{served.work}/nobody.sock")
            for python in options.python or [sys.executable]:
                version = version_of(python)
                running, waiting = [], []
                for case in wanted:
                    head = says(case)
                    reason = why_not(head, options.driver, version)
                    if reason:
                        tell("skip", version, case, 0.0, reason)
                        continue
                    env = nobody if "no agent" in head.get("arm", []) else remote
                    if "alone" in head.get("arm", []):
                        waiting.append((case, env))
                    else:
                        running.append((case, pool.submit(run, case, python, env, options)))
                endings = itertools.chain(((case, ending.result()) for case, ending in running),
                                          ((case, run(case, python, env, options))
                                           for case, env in waiting))
                for case, (status, seconds, text) in endings:
                    if status == 0:
                        tell("pass", version, case, seconds)
                    else:
                        tell("FAIL", version, case, seconds, f"status {status}")
                        print("      " + "\n      ".join(text.strip().splitlines()[-14:]))
    except stack.Failed as error:
        sys.exit(f"tests/torch: {error}")
    print(f"{count['pass']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return count["FAIL"] > 0


if __name__ == "__main__":
    sys.exit(main())
