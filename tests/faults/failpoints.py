#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The n-th call that may fail does (failpoint.c), for n = 1, 2, 3 … until nothing is left to fail: a clear
error or success, never a crash, a hang, a wrong result or something left behind.

    tests/faults/failpoints.py                      all: sidecar, front, worker, supervisor, store, uploads and the
                                                    program's own side (app), in each state of a program, over TCP and, of
                                                    three, over UDP (light-…); with copies from agent to agent (direct-…)
                                                    or through the program (relay-…), with replicas of named tensors
                                                    (replica-…); and starting
    tests/faults/failpoints.py --jobs 2 --most 60   so many at most of each process in each state, two at once
    tests/faults/failpoints.py --short              some of the points of each
    tests/faults/failpoints.py --only front --state pin --from 40 --to 60
"""
import argparse
import concurrent.futures
import contextlib
import mmap
import os
import re
import struct
import subprocess
import sys
import time

from rig import Rig, outcome
from redis_server import Redis
from stack import ANYWHERE, Agent, BIN, BUILD, alive, become_subreaper, clean, environment, folder, preloaded, wait_for

LIBRARY = os.path.join(BUILD, "faults", "libfailpoint.so")
POINT = struct.Struct("<IIIIii16s32sQ")
BROKEN = 304  # a copy between agents whose connection broke
ELSEWHERE = 101  # a tensor that could not be copied here
LOST = 911
ALLOWED = ("right", 2, 100, 802, LOST)
NO_HANDLE = 400  # a stream that could not be made, which was known only later
UNKNOWN = 98  # what could not be registered for want of memory is a kernel that nobody knows
NO_THREAD = 304  # for host functions, and for memory of the program's that is mapped
MORE = {"app": (UNKNOWN, NO_THREAD), "capture": (NO_HANDLE,), "between": (BROKEN,), "replica": (ELSEWHERE,), "copied": (ELSEWHERE,)}
CHILDREN = ("front", "worker", "store", "uploads")
BETWEEN = ("direct-worker", "direct-sidecar", "direct-front", "relay-worker", "relay-sidecar")
REPLICAS = ("replica-store", "replica-front", "replica-worker")
NOT_SHORT = (*BETWEEN[1:4], "replica-front")
SERVING = ("sidecar", "front", "worker", "supervisor", "store", "uploads", "app", "light-sidecar", "light-front",
           "light-worker", *BETWEEN, *REPLICAS)
STARTING = ("start-sidecar", "start-agent")
STATES = ("launch", "upload", "download", "module", "pin", "callback", "capture", "tensor")
ONLY = {"store": ["tensor"], "uploads": ["upload"], **dict.fromkeys(BETWEEN, ["between"]),
        **dict.fromkeys(REPLICAS, ["replica", "copied"]), **dict.fromkeys(STARTING, [""])}
STEPS = 3    # that a program does in its state; the first is the same in all
MOST_FAILURES = 20
PATIENCE = 4  # points that nothing reached: how many calls there are differs a little from run to run
SHORT = {"app": 3, "store": 1}  # step in the short tier: a program alone is quick, and the store has few
NEVER = 0xffffffff  # a call that is not reached
LOOK_EVERY = 8  # calls of the program's own that failed unnoticed, between two looks whether the next one is served


class Point:
    """The page that failpoint.c reads."""

    def __init__(self, path, role=""):
        self.path = path
        with open(path, "wb") as file:
            file.write(bytes(4096))
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)
        self.page[24:40] = role.encode().ljust(16, b"\0")
        self.env = {"LD_PRELOAD": LIBRARY, "VCUDA_FAILPOINT": path}

    def arm(self, n, exempt=0, only="", lasts=False):
        """ONLY: calls of this name are counted.  LASTS: those behind the n-th fail, too."""
        struct.pack_into("<III", self.page, 4, n, 0, 0)
        struct.pack_into("<i", self.page, 16, exempt)
        struct.pack_into("<I20s", self.page, POINT.size, lasts, only.encode())
        struct.pack_into("<I", self.page, 0, 1)

    def struck(self):
        return POINT.unpack_from(self.page)[3]

    def disarm(self):
        """(whether it struck, how many calls there were, which one)"""
        struct.pack_into("<I", self.page, 0, 0)
        _, _, count, hit, _, _, _, what, where = POINT.unpack_from(self.page)
        return hit, count, f"{what.split(bytes(1))[0].decode()} at {where:#x}"


class FailRig(Rig):
    """A rig of which one process has the library."""

    def __init__(self, path, who):
        how, _, self.who = who.rpartition("-")
        self.point = Point(os.path.join(path, "point"), self.who if self.who in CHILDREN else "")
        self.redis, store = None, []
        if how == "replica":
            self.redis = Redis()
            store = [("--set", f"store.registry={self.redis.address}", "--set", f"store.node={node}", "--set",
                      "store.address=127.0.0.1", "--set", "store.bytes=64MiB") for node in ("here", "there")]
        # What is kept by content is less than a program sends.
        kept = ("--set", "upload_cache_bytes=4MiB") if who == "uploads" else ()
        beside = who in (*BETWEEN, *REPLICAS)
        super().__init__(path, between=False,
                         agent=("--set", "store.bytes=64MiB", *kept, *(store[0] if store else ()),
                                *(("--peers", ANYWHERE) if beside else ())),
                         agent_env=self.point.env if self.who not in ("sidecar", "app") else None,
                         scheme="light://" if how == "light" else "",
                         beside=(store[1] if store else ()) if beside else None,
                         app_env={"VCUDA_PERF": "no_direct"} if how == "relay" else None,
                         victim=("--upload-cache", "true") if kept else (),
                         victim_env=self.point.env if self.who == "sidecar" else None)

    def victim(self, state):
        """The program that the n-th call is failed under."""
        if self.who != "app":
            return self.app(state, STEPS, stdin_ends=True)
        env = {**self.point.env, "LD_PRELOAD": f"{LIBRARY}:{preloaded()}", "VCUDA_FAILPOINT_IN": "libvcuda"}
        before, self.app_env = self.app_env, env
        try:
            return self.app(state, STEPS, stdin_ends=True)
        finally:
            self.app_env = before

    def crashed(self):
        """What of the logs says that a process died of a signal, or that an account is wrong."""
        text = self.agent.log() + self.sidecar.log()
        found = re.search(r".*(signal 1?[1468]\b|SIG(SEGV|ABRT|BUS|ILL)|core dumped|ledger\.bug|\*\*\* ).*", text)
        return found[0][-300:] if found else ""


def name_of(who, where):
    """The source line of an offset in the program."""
    binary = os.path.join(BIN, "vcuda-client" if "sidecar" in who else "gpu-agent")
    library = re.search(r" (lib\S+)", where)
    if library:
        binary = os.path.join(BUILD, "lib", library[1])
    offset = re.search(r"0x[0-9a-f]+", where)
    got = subprocess.run(["addr2line", "-e", binary, offset[0]], capture_output=True, text=True)
    return where.split(" at ")[0] + " in " + got.stdout.strip().split("/work/")[-1]


def healthy(rig):
    """Another program is served, at once or a moment later: an agent that could not start a worker says so
    to who comes next, and tries again; a warm worker that the call failed in loses the session that it gets."""
    wounded = (802, 911) if rig.who == "worker" else (802,)
    wounded += (ELSEWHERE,) if rig.redis else ()

    def right():
        state = "replica" if rig.redis else "tensor" if rig.who == "store" else "attach"
        app = rig.app(state, STEPS, stdin_ends=True)
        got = outcome(app, 60)
        text = app.text()
        rig.executed(app.pid)  # or the next process of that number has its steps
        rig.forget(app)
        assert got == "right" or got in wounded, f"the next program: {got}: {text[-300:]}"
        return got == "right"
    wait_for(right, 15, "the next program is served", every=0.2)


def serve_once(rig, n, state):
    """Attach, a small program, its end, with the n-th call failing.  None: nothing was left to fail."""
    rig.point.arm(n, rig.worker)
    app = rig.victim(state)
    try:
        got = outcome(app, 60)
    except AssertionError as error:
        raise AssertionError(f"{rig.point.disarm()[2]}: {error}: {rig.sidecar.log()[-300:]}") from None
    finally:
        hit, count, what = rig.point.disarm()
    assert got in (*ALLOWED, *MORE.get(state, ()), *MORE.get(rig.who, ())), f"{what}: got {got}: {app.text()[-300:]}"
    for who in (rig.agent, rig.sidecar, rig.quiet):
        assert who.process.poll() is None, f"{what}: {type(who).__name__} ended: {who.log()[-300:]}"
    crash = rig.crashed()
    assert not crash, f"{what}: {crash}"
    try:
        rig.bystander_lives()
        if rig.who != "app" or got != "right" or n % LOOK_EVERY == 0:
            healthy(rig)
        rig.at_rest(45)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from None
    rig.once(app, state, got == "right")
    rig.forget(app)
    return (got, count, what) if hit else None


def start_sidecar(path, n):
    point = Point(os.path.join(path, "point"))
    where = os.path.join(path, "s")
    point.arm(n)
    with open(os.path.join(path, "log"), "w+") as log:
        process = subprocess.Popen([os.path.join(BIN, "vcuda-client"), "run", "--agent", "127.0.0.1:9",
                                    "--socket", where], stderr=log, stdin=subprocess.DEVNULL,
                                   env=environment(point.env))
        try:
            wait_for(lambda: process.poll() is not None or answers(where), 20, "the sidecar serves or ends")
        except AssertionError as error:
            raise AssertionError(f"{point.disarm()[2]}: {error}") from None
        finally:
            hit, count, what = point.disarm()
            ended = process.poll()
            if ended is None:
                process.terminate()
                process.wait(10)
        log.seek(0)
        text = log.read()
    return judged(process.returncode, ended, text, hit, count, what)


def judged(status, ended, text, hit, count, what):
    assert status >= 0, f"{what}: died of signal {-status}: {text[-300:]}"
    assert ended is None or (status and text.strip()), f"{what}: ended with {status} and said nothing"
    return ("serves" if ended is None else "said so", count, what) if hit else None


def answers(where):
    got = subprocess.run([os.path.join(BIN, "vcuda-client"), "status", "--socket", where], capture_output=True,
                         timeout=10, env=environment())
    return got.returncode == 0


def start_agent(path, n):
    point = Point(os.path.join(path, "point"))
    point.arm(n)
    agent = Agent(path, env=point.env, ready=False)
    try:
        def known():
            if agent.process.poll() is not None:
                return True
            with contextlib.suppress(AssertionError, OSError):
                return agent.read_ports() and agent.is_ready
            return False
        wait_for(known, 30, "the agent serves or ends")
    except AssertionError as error:
        raise AssertionError(f"{point.disarm()[2]}: {error}: {agent.log()[-500:]}") from None
    hit, count, what = point.disarm()
    ended, everyone = agent.process.poll(), agent.everyone()
    if ended is None:
        agent.stop()
    wait_for(lambda: not any(map(alive, everyone)), 10, f"{what}: no process of the agent is left")
    return judged(agent.process.returncode, ended, agent.log(), hit, count, what)


class Points:
    """One process's points, one after the other."""

    def __init__(self, who, states, step=1, most=0):
        self.who, self.step, self.most, self.rig, self.stack = who, step, most, None, None
        self.states = ONLY.get(who, states)
        self.count, self.results, self.failures = 0, {}, []

    def rig_now(self):
        if not self.rig:
            self.stack = contextlib.ExitStack()
            self.rig = FailRig(self.stack.enter_context(folder()), self.who)
        return self.rig

    def drop(self):
        if self.rig:
            self.rig.bystander.close_stdin()
            if self.rig.redis:
                self.rig.redis.close()
            self.rig = None
            clean()
            self.stack.close()

    def one(self, n, state):
        if self.who in STARTING:
            with folder() as path:
                return (start_sidecar if self.who == "start-sidecar" else start_agent)(path, n)
        return serve_once(self.rig_now(), n, state)

    def run(self, first, last):
        for state in self.states:
            before = self.count
            self.run_state(state, first, last)
            if state:
                print(f"{self.who} {state}: {self.count - before} points", flush=True)
        self.drop()
        said = ", ".join(f"{count} times {what}" for what, count in sorted(self.results.items(), key=str))
        print(f"{self.who}: {self.count} points, {len(self.failures)} failures; {said}", flush=True)

    def stride(self, state):
        """So that there are as many as were asked for, at most, if so many calls may fail as in a run that none does in."""
        if not self.most or self.who in STARTING:
            return self.step
        rig = self.rig_now()
        rig.point.arm(NEVER, rig.worker)
        app = rig.victim(state)
        try:
            assert outcome(app, 60) == "right", f"{self.who} {state}: without a call that fails: {app.text()[-300:]}"
        finally:
            _, count, _ = rig.point.disarm()
        rig.once(app, state)
        rig.forget(app)
        rig.at_rest(45)
        return max(self.step, -(-count // self.most))

    def run_state(self, state, first, last):
        n, missed = first, 0
        try:
            step = self.stride(state)
        except AssertionError as error:
            self.failures.append(0)
            print(f"fail  {self.who} {state}: {error}", flush=True)
            return
        while n <= last and missed < PATIENCE and len(self.failures) <= MOST_FAILURES:
            try:
                got = self.one(n, state)
                missed = 0 if got else missed + 1
                if got:
                    self.results[got[0]] = self.results.get(got[0], 0) + 1
                    self.count += 1
            except AssertionError as error:
                self.count += 1
                text = re.sub(r"(\w+ \S* ?at 0x[0-9a-f]+)", lambda m: name_of(self.who, m[1]), str(error), count=1)
                self.failures.append(n)
                print(f"fail  {self.who} {n} {state}: {text}", flush=True)
                self.drop()
            n += step


def everyone(but=()):
    return [who for who in (*SERVING, *STARTING) if who not in but]


def apart(args, who, state):
    """(points, failures) of one process in one state, in a run of its own."""
    command = [sys.executable, __file__, "--only", who, "--step", str(args.step), "--most", str(args.most),
               *(["--state", state] if state else [])]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
    print(text, end="", flush=True)
    count = re.search(r"^(\d+) points, (\d+) failures", text, re.M)
    return (int(count[1]), int(count[2])) if count else (0, 1)


def main():
    parser = argparse.ArgumentParser(description="the n-th call that may fail does")
    parser.add_argument("--only", choices=[*SERVING, *STARTING])
    parser.add_argument("--state", choices=(*STATES, "between", "replica", "copied"))
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--to", dest="last", type=int, default=5000)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--most", type=int, default=0, help="so many in each process and state, evenly spread")
    parser.add_argument("--short", action="store_true", help="a few points of each")
    parser.add_argument("--jobs", type=int, help="all of them, so many processes and states at once")
    parser.add_argument("--least", type=int, default=1, help="how many points there must be")
    args = parser.parse_args()
    become_subreaper()
    began, total, failures = time.monotonic(), 0, 0
    if args.jobs:
        todo = [(who, state) for who in everyone() for state in Points(who, STATES).states]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for points, wrong in pool.map(lambda one: apart(args, *one), todo):
                total += points
                failures += wrong
        todo = []
    else:
        todo = [args.only] if args.only else everyone(NOT_SHORT if args.short else ())
    for who in todo:
        states = [args.state] if args.state else STATES
        if args.short:
            points = Points(who, states[:3] if who != "app" else ["launch", "pin"], SHORT.get(who, 41))
        else:
            points = Points(who, states, args.step, args.most)
            if args.state:
                points.states = [args.state]
        points.run(args.first, min(args.last, 120) if args.short else args.last)
        total += points.count
        failures += len(points.failures)
    print(f"{total} points, {failures} failures, {time.monotonic() - began:.0f} s")
    return failures > 0 or total < max(args.least, 1)


if __name__ == "__main__":
    sys.exit(main())
