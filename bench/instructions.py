#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions a call, in the program and in the worker, of one build of vcuda or of two.

    bench/instructions.py [--dist .dist] [--before DIST] [--calls 8] [--functions KIND]

Both are folders as `make dist` makes them (bench/before.sh makes one of an older commit).  What
bench/micro times is counted here, on the software GPU: each kind of call is made CALLS and three
times CALLS times, while a thread is stepped through by ptrace, and the difference is what one call
takes.  So this needs no GPU, no counters of the processor and no quiet machine.  Of the program it
is the thread that makes the calls, with all that is in its libraries; of the worker its loop, with
what is in gpu-agent itself (not the driver, whose work differs on a GPU).  Frames are both ways'; waits
are for answers of the agent, or for memory that it unmaps (VCUDA_STATS).  --functions says in which functions
the instructions of one kind are.  Exit status 1 where a call takes more than 1.05 times what it took
before.
"""
import argparse
import bisect
import collections
import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "torch"))
import stack  # noqa: E402

KINDS = {"launch": "a launch", "record": "an event recorded", "memory": "8 MiB allocated and freed",
         "in": "4 KiB from pinned memory", "out": "4 KiB to pinned memory"}
SIDES = ("program", "worker")
HELD = 1.05
TRACEME, PEEKUSER, CONT, SINGLESTEP, ATTACH, DETACH, RIP = 0, 3, 7, 9, 16, 17, 128
WALL = 0x40000000  # waitpid: threads too, whoever's

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread, data=0, address=0):
    ctypes.set_errno(0)
    got = libc.ptrace(request, thread, address, data)
    if got == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), f"ptrace {request}: {os.strerror(ctypes.get_errno())}")
    return got


class Names:
    """Functions of a process's files by address."""

    def __init__(self, process):
        self.ranges, self.symbols = [], {}
        with open(f"/proc/{process}/maps") as maps:
            for line in maps:
                fields = line.split(maxsplit=5)
                if "x" in fields[1] and len(fields) == 6:
                    low, high = (int(end, 16) for end in fields[0].split("-"))
                    self.ranges.append((low, high, int(fields[2], 16), fields[5].strip()))

    def table(self, path):
        if path not in self.symbols:
            both = "".join(subprocess.run(["nm", *more, path], capture_output=True, text=True).stdout
                           for more in ((), ("-D",)))
            found = sorted({(int(f[0], 16), f[2].split("@")[0]) for f in map(str.split, both.splitlines())
                            if len(f) == 3 and f[1] in "tTwWi"})
            loads = [l.split() for l in subprocess.run(["readelf", "-lW", path], capture_output=True,
                                                       text=True).stdout.splitlines() if l.split()[:1] == ["LOAD"]]
            self.symbols[path] = found, [(int(l[1], 16), int(l[2], 16), int(l[4], 16)) for l in loads]
        return self.symbols[path]

    def name(self, address):
        for low, high, offset, path in self.ranges:
            if low <= address < high:
                if not path.startswith("/"):
                    return path
                found, loads = self.table(path)
                at = address - low + offset
                for file, virtual, size in loads:
                    if file <= at < file + size:
                        at += virtual - file
                        break
                i = bisect.bisect(found, (at, "\x7f")) - 1
                return found[i][1] if i >= 0 else os.path.basename(path)
        return "?"

    def functions(self, at, path=None):
        """AT, which counts addresses, by functions; with PATH only those of that file."""
        found = collections.Counter()
        for address, times in at.items():
            if not path or any(low <= address < high and file == path for low, high, _, file in self.ranges):
                found[self.name(address)] += times
        return found


def stop_of(status):
    """The signal that a thread stopped for; None: it is gone."""
    return os.WSTOPSIG(status) if os.WIFSTOPPED(status) else None


def wait(thread):
    return stop_of(os.waitpid(thread, WALL)[1])


def wait_or_over(thread, over):
    """The same; it may also sleep while OVER() says that it has nothing to do: then it is stopped."""
    while True:
        found, status = os.waitpid(thread, os.WNOHANG | WALL)
        if found:
            return stop_of(status)
        if not signal.sigtimedwait([signal.SIGCHLD], 0.05) and over():
            os.kill(thread, signal.SIGSTOP)
            wait(thread)
            return None


def step(thread, at, over=None):
    """Steps through the thread until SIGWINCH, or until OVER() says that it has nothing to do; notes
    in AT how often it was where. A thread that is gone: so far."""
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    forward, steps = 0, 0
    while True:
        ptrace(SINGLESTEP, thread, forward)
        stopped = wait_or_over(thread, over) if over else wait(thread)
        if stopped is None or stopped == signal.SIGWINCH:
            break
        forward = 0 if stopped == signal.SIGTRAP else stopped
        if forward:
            continue
        at[ptrace(PEEKUSER, thread, 0, RIP) & (1 << 64) - 1] += 1
        steps += 1
        if over and steps % 256 == 0 and over():
            break
    signal.pthread_sigmask(signal.SIG_SETMASK, kept)


def start(dist, served, kind, calls, traced):
    return subprocess.Popen([f"{dist}/bench/instructions", kind, str(calls)], env=served.env(), text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            preexec_fn=(lambda: libc.ptrace(TRACEME, 0, None, None)) if traced else None)


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def end(process):
    process.stdin.close()
    if process.wait(60):
        raise stack.Failed("instructions has failed")


def in_program(dist, served, kind, calls):
    """Functions in which the thread is that makes CALLS calls, and the instructions in each."""
    process, at = start(dist, served, kind, calls, True), collections.Counter()
    go(process)
    stopped = wait(process.pid)
    while stopped is not None and stopped != signal.SIGWINCH:
        ptrace(CONT, process.pid, 0 if stopped == signal.SIGTRAP else stopped)
        stopped = wait(process.pid)
    if stopped is None:
        raise stack.Failed(f"instructions {kind} has ended before its calls")
    step(process.pid, at)
    found = Names(process.pid).functions(at)
    ptrace(DETACH, process.pid)
    go(process)
    end(process)
    return found


def worker_of(served, process):
    """The worker that serves the program."""
    url = f"http://127.0.0.1:{served.ports['control']}/v1/sessions"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return next(one["worker_pid"] for one in json.load(answer)["sessions"] if one["pid"] == process.pid)


def in_worker(dist, served, kind, calls):
    """The same of the worker's loop, in gpu-agent itself; with what it takes to wait once."""
    process, at = start(dist, served, kind, calls, False), collections.Counter()
    if process.stdout.readline() != "ready\n":
        raise stack.Failed(f"instructions {kind} has ended before its calls")
    thread = worker_of(served, process)
    ptrace(ATTACH, thread)
    wait(thread)
    go(process)
    step(thread, at, lambda: bool(select.select([process.stdout], [], [], 0)[0]))
    found = Names(thread).functions(at, os.readlink(f"/proc/{thread}/exe"))
    ptrace(DETACH, thread)
    os.kill(thread, signal.SIGCONT)
    go(process)
    end(process)
    return found


def told(dist, served, kind, calls):
    """Frames, and waits, of a run that nobody steps through."""
    got = subprocess.run([f"{dist}/bench/instructions", kind, str(calls)], env=served.env(VCUDA_STATS="1"),
                         input="go\ngo\n", text=True, capture_output=True, timeout=60)
    numbers = dict(re.findall(r"^  (\w+) +(\d+)$", got.stderr, re.M))
    if got.returncode or "frames" not in numbers:
        raise stack.Failed(f"instructions {kind} has failed: {got.stderr[-300:]}")
    return int(numbers["frames"]), int(numbers["round_trips"]) + int(numbers["stalls"])


def of_one(dist, served, kind, few):
    """Of one call: instructions of both sides, with where they are, and frames and waits."""
    found = {}
    for side, measure in (("program", in_program), ("worker", in_worker)):
        first, second = (measure(dist, served, kind, calls) for calls in (few, 3 * few))
        where = found[side, "where"] = {name: (second[name] - first[name]) / (2 * few) for name in second}
        found[side] = sum(where.values())
    first, second = (told(dist, served, kind, calls) for calls in (100, 300))
    found["frames"], found["waits"] = ((second[i] - first[i]) / 200 for i in range(2))
    return found


def table(found, builds, kinds):
    """Prints it; how many are more than before."""
    columns, more = ("program", "worker", "frames", "waits"), 0
    width = 8 * len(builds) + 7
    print(f"{'of one call':28}" + "".join(f"{column:>{width}}" for column in columns))
    if len(builds) > 1:
        print(" " * 28 + f"{'before':>8}{'now':>8}{'ratio':>7}" * len(columns))
    for kind in kinds:
        line = f"{KINDS[kind]:28}"
        for column in columns:
            counts = [found[build, kind][column] for build in builds]
            line += "".join(f"{count:8.0f}" if column in SIDES else f"{count:8.2f}" for count in counts)
            line += f"{counts[1] / counts[0]:7.2f}" if len(counts) > 1 and counts[0] >= 0.01 else " " * 7
            more += len(counts) > 1 and counts[1] > HELD * counts[0] + 0.02
        print(line)
    return more


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(HERE, "..", ".dist"))
    parser.add_argument("--before", help="the other build")
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--functions", choices=KINDS, help="where the instructions are, of this kind alone")
    options = parser.parse_args()
    dist = os.path.abspath(options.dist)
    builds = [os.path.abspath(options.before)] if options.before else []
    builds += [dist]
    kinds = [options.functions] if options.functions else KINDS
    found = {}
    try:
        for build in builds:
            with stack.Stack(build, "software", options=("--warm", "1"), pin=False) as served:
                for kind in kinds:
                    found[build, kind] = of_one(dist, served, kind, options.calls)
    except stack.Failed as failure:
        sys.exit(f"instructions: {failure}")
    more = table(found, builds, kinds)
    for side in SIDES if options.functions else ():
        for build in builds:
            print(f"\n{side}, {build}")
            for name, count in sorted(found[build, kinds[0]][side, "where"].items(), key=lambda one: -one[1]):
                if count >= 0.5:
                    print(f"{count:9.1f}  {name}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
