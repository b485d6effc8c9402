#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch natively and through vcuda, side by side, from one run on one machine with a GPU.

    bench/torch/run.py [--dist .dist] [--only poly,t5] [--pairs 7] [--rtt 0,50,200,1000]
                       [--local] [--json FILE] [--check] [--profile WORKLOAD] [--budget SECONDS]

Starts an agent (upper half of the cores) and a sidecar (lower half), and two processes that live
through the run (arm.py): one native on the lower half, one remote on the same cores with
/dev/nvidia* hidden.  Each workload runs in turn natively and remotely, PAIRS times after one pair
that is not counted; what is compared is the ratio of each pair.  Exit status 1 if a bound is
missed or a workload fails.  docs/PYTORCH.md says how to read the table.
"""
import argparse
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time

import stack
from ratios import interval
from workloads import BY_NAME, COLD_BOUND, WORKLOADS

HERE = os.path.dirname(os.path.abspath(__file__))
ARM = os.path.join(HERE, "arm.py")
# Calls that make the program wait for the device, as PyTorch makes them.
SYNCS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy",
         "cudaStreamQuery", "cudaEventQuery")
QUERIES = ("cudaStreamQuery", "cudaEventQuery")
STARTING = ("import torch; print(torch.ones(4, device='cuda').add(1).sum().item())")


class Arm:
    """A process of arm.py. start() when needed; a failure ends it, the next order starts it anew."""

    def __init__(self, name, command, env, log):
        self.name, self.command, self.env, self.log = name, command, env, log
        self.process = None

    def start(self):
        # Appended to: what an earlier process said is kept.
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, env=self.env, text=True, bufsize=1,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=log, start_new_session=True)
        return self.order(120, do="hello")

    def order(self, seconds, **order):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            ready, _, _ = select.select([self.process.stdout], [], [], seconds)
            line = self.process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = ""
        if line is None:
            self.process.send_signal(signal.SIGUSR1)  # leaves where it stands in the log
            time.sleep(0.5)
        if not line:
            status = self.end()
            why = f"no answer within {seconds} s" if line is None else f"ended ({status})"
            raise stack.Failed(f"{self.name} {order['do']}: {why}: {stack.tail(self.log, 2)}")
        answer = json.loads(line)
        if "error" in answer:
            self.end()
            raise stack.Failed(f"{self.name} {order['do']}: {answer['error']}")
        return answer

    def end(self):
        """Its exit status; no word of it after that."""
        if self.process is None:
            return None
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (subprocess.TimeoutExpired, OSError):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        status, self.process = self.process.returncode, None
        return status


def drift(values):
    """The native arm against itself: each repetition over the one before."""
    return statistics.median(b / a for a, b in zip(values, values[1:])) if values[1:] else 1.0


class Bench:
    def __init__(self, options, served):
        self.options, self.stack = options, served
        self.end = time.monotonic() + options.budget
        self.rows, self.arms = [], {}
        self.hello = {}

    def arm(self, delay=None):
        """The native arm, or the remote one with that delay."""
        if delay not in self.arms:
            command = self.stack.pinned(self.stack.client, [sys.executable, ARM])
            env = dict(os.environ, ARM_DEVICE=self.options.native_device)
            if self.options.native_libraries:
                env["LD_LIBRARY_PATH"] = self.options.native_libraries
            name = "native"
            if delay is not None:
                name = "remote" if not delay else f"remote+{delay}us"
                env = self.stack.env(delay, ARM_DEVICE="cuda", VCUDA_STATS="/dev/null")
                if self.options.mask:
                    command = stack.masked(command)
            self.arms[delay] = Arm(name, command, env, f"{self.stack.work}/{name}.log")
        return self.arms[delay]

    def tell(self, text):
        print(text, file=sys.stderr, flush=True)

    def left(self):
        return self.end - time.monotonic()

    def measure(self, workload, delay):
        """One row."""
        row = {"name": workload.name, "title": workload.title, "delay_us": delay,
               "steps": workload.steps, "pairs": []}
        bound = workload.delayed.get(delay) if delay else workload.ratio
        row["bound"] = bound
        row["bound_us"] = None if delay else workload.step_us
        self.rows.append(row)
        if self.left() < 20:
            row["error"] = "not run: the time given is used up"
            return row
        arms = []
        try:
            arms = native, remote = self.arm(), self.arm(delay)
            for arm in arms:
                if not delay:
                    arm.end()  # what it pays the first time is a fresh process's
                row[f"{arm.name.split('+')[0]}_setup"] = arm.order(
                    120, do="setup", name=workload.name, small=self.options.small)
            used = self.stack.cpu_seconds()
            for pair in range(self.options.pairs + 1):
                times = [arm.order(60, do="run") for arm in arms]
                if pair:  # the first is for warming up
                    row["pairs"].append([t["seconds"] for t in times])
                    row.setdefault("client_cpu", []).append([t["cpu"] for t in times])
                if self.left() < 5 and len(row["pairs"]) >= 3:
                    break
            now = self.stack.cpu_seconds()
            row["server_cpu"] = {key: (now[key] - used[key]) / (len(row["pairs"]) + 1)
                                 for key in now}
            if not delay:
                row["counts"] = remote.order(60, do="count")
                self.count(row)
            for arm in arms:
                arm.order(30, do="drop")
        except stack.Failed as error:
            row["error"] = str(error)
            for arm in arms:  # what it was doing is not known
                arm.end()
        if not delay and "native_setup" in row and "remote_setup" in row:
            row["first"] = [row["native_setup"]["first"], row["remote_setup"]["first"]]
        self.judge(row)
        self.save()
        return row

    def save(self):
        """Everything measured so far: a run that is stopped leaves it."""
        if not self.options.json:
            return
        with open(self.options.json, "w") as file:
            json.dump({"when": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
                       "hello": self.hello, "pairs": self.options.pairs,
                       "small": self.options.small, "client_cores": self.stack.client,
                       "agent_cores": self.stack.server, "check": self.options.check,
                       "rows": self.rows}, file, indent=1)

    def count(self, row):
        calls = {name: call["count"] for name, call in row["counts"].get("calls", {}).items()}
        steps = row["steps"] if not self.options.small else None
        row["round_trips"] = row["counts"].get("round_trips")
        row["sync_calls"] = sum(calls.get(name, 0) for name in SYNCS if name not in QUERIES)
        if steps:
            row["trips_per_step"] = row["round_trips"] / steps
            row["syncs_per_step"] = row["sync_calls"] / steps

    def judge(self, row):
        if "error" in row or not row["pairs"]:
            row["verdict"] = "fail"
            return
        native, remote = zip(*row["pairs"])
        ratios = [r / n for n, r in row["pairs"]]
        row["native"], row["remote"] = statistics.median(native), statistics.median(remote)
        row["ratio"], row["interval"] = statistics.median(ratios), interval(ratios)
        row["drift"] = drift(native)
        held = True
        if row["bound"] is not None:
            held = row["ratio"] <= row["bound"]
        if row["bound_us"] is not None:
            row["step_us"] = row["remote"] / row["steps"] * 1e6
            held = held and row["step_us"] <= row["bound_us"]
        # One in a hundred steps may ask for memory.
        row["avoidable"] = max(0, row.get("round_trips", 0) - row.get("sync_calls", 0))
        if row["avoidable"] > max(1, row["steps"] // 100):
            held = False
            row["note"] = f"{row['avoidable']} round trips are no synchronizing call's"
        row["verdict"] = "pass" if held else "fail"
        if row["bound"] is None and row["bound_us"] is None and held:
            row["verdict"] = "-"

    def cold(self):
        """Process start to first result; both arms start a process each time."""
        row = {"name": "cold", "title": "cold start, first result", "delay_us": 0, "steps": 1,
               "pairs": [], "bound": None, "bound_us": None}
        self.rows.append(row)
        native, remote = self.arm(), self.arm(0)
        for arm in (native, remote):
            arm.end()  # frees the GPU
        try:
            for pair in range(min(self.options.pairs, 5) + 1):
                if self.left() < 15:
                    break
                times = []
                for arm in (native, remote):
                    command = arm.command[:-2] + [sys.executable, "-c", STARTING]
                    env = {key: value for key, value in arm.env.items() if key != "VCUDA_STATS"}
                    time.sleep(0.7)  # a warm worker gets ready again
                    start = time.perf_counter()
                    got = subprocess.run(command, env=env, capture_output=True, text=True,
                                         timeout=90)
                    times.append(time.perf_counter() - start)
                    if got.returncode:
                        line = (got.stderr.strip().splitlines() or ["nothing said"])[-1]
                        raise stack.Failed(f"{arm.name}: status {got.returncode}: {line[:200]}")
                if pair:
                    row["pairs"].append(times)
        except (stack.Failed, subprocess.TimeoutExpired) as error:
            row["error"] = str(error)
        self.judge(row)
        if "native" in row:
            more = statistics.median(r - n for n, r in row["pairs"])
            row["more_seconds"], row["bound_seconds"] = more, COLD_BOUND
            row["verdict"] = "pass" if more <= COLD_BOUND else "fail"

    def round_trip(self, delay):
        """Microseconds of one .item(), which is a round trip."""
        try:
            arm = self.arm(delay)
            arm.order(120, do="setup", name="item", small=True)
            seconds = statistics.median(arm.order(60, do="run")["seconds"] for _ in range(3))
            return seconds / 201 * 1e6
        except stack.Failed:
            return None

    def run(self):
        names = self.options.only or [w.name for w in WORKLOADS if not w.extra] + ["cold"]
        delays = self.options.rtt
        if 0 in delays:
            for name in names:
                self.tell(f"{name} …")
                if name == "cold":
                    self.cold()
                else:
                    self.measure(BY_NAME[name], 0)
                self.tell(line_of(self.rows[-1]))
        for delay in filter(None, delays):
            measured = None
            for name in names:
                if name == "cold" or not BY_NAME[name].delayed:
                    continue
                if measured is None:
                    measured = self.round_trip(delay)
                row = self.measure(BY_NAME[name], delay)
                row["round_trip_us"] = measured
                self.save()
                self.tell(line_of(row))
            if delay in self.arms:
                self.arms.pop(delay).end()

    def check(self):
        """Each example's results: native, native again, remote."""
        for workload in WORKLOADS:
            if workload.name not in (self.options.only or [w.name for w in WORKLOADS]):
                continue
            row = {"name": workload.name, "title": workload.title, "verdict": "fail"}
            self.rows.append(row)
            files = [f"{self.stack.work}/{workload.name}-{i}.pt" for i in range(3)]
            try:
                if self.left() < 10:
                    raise stack.Failed("not run: the time given is used up")
                for arm, file in zip((self.arm(), self.arm(), self.arm(0)), files):
                    arm.order(120, do="result", name=workload.name, file=file,
                              small=self.options.small)
                    arm.order(30, do="drop")
                row.update(self.arm().order(60, do="compare", files=files))
                native, remote = row["native"], row["remote"]
                if remote is None:
                    row["text"] = "results of another shape"
                elif remote == 0:
                    row["text"], row["verdict"] = "bit-identical", "pass"
                else:
                    row["text"] = (f"differs by {remote:.2g}; two native runs by "
                                   f"{'shape' if native is None else f'{native:.2g}'}")
                    # Two samples tell the size of what is not deterministic, not its end.
                    if native is None or remote <= 3 * native:
                        row["verdict"] = "pass"
            except stack.Failed as error:
                row["text"] = row["error"] = str(error)
                for arm in list(self.arms.values()):
                    arm.end()
            self.tell(f"{row['verdict']:5} {row['name']:13} {row['text']}")

    def close(self):
        for arm in self.arms.values():
            arm.end()


HEAD = (f"{'':15}{'added RTT':>10}{'native':>11}{'remote':>11}{'ratio':>9}{'95 %':>15}"
        f"{'bound':>9}{'drift':>7}{'trips/step':>12}{'syncs':>8}{'first time':>22}")


def line_of(row):
    start = f"{row['name']:15}{row['delay_us']:>7} us"
    if "native" not in row:
        return f"{start}  fail: {row.get('error', '?')[:150]}"
    low, high = row["interval"]
    bound = f"{row['bound']:.2f}" if row["bound"] is not None else ""
    if row["bound_us"] is not None:
        bound = f"{row['bound_us']:.0f} us"
    if "bound_seconds" in row:
        bound = f"+{row['bound_seconds']:.1f} s"
    text = (f"{start}{time_of(row, 'native'):>11}{time_of(row, 'remote'):>11}{row['ratio']:>9.3f}"
            f"{f'{low:.3f}-{high:.3f}':>15}{bound:>9}{row['drift']:>7.3f}")
    if "trips_per_step" in row:
        text += f"{row['trips_per_step']:>12.3f}{row['syncs_per_step']:>8.3f}"
    else:
        text += " " * 20
    first = "{:.0f}, {:.0f} ms".format(*(t * 1e3 for t in row["first"])) if "first" in row else ""
    text += f"{first:>22}  {row['verdict']}"
    if row.get("round_trip_us"):
        text += f"  (.item() takes {row['round_trip_us']:.0f} us)"
    return text + (f"  ({row['note']})" if "note" in row else "")


def time_of(row, arm):
    if row["bound_us"] is not None:
        return f"{row[arm] / row['steps'] * 1e6:.1f} us"
    return f"{row[arm] * 1e3:.1f} ms" if row[arm] < 10 else f"{row[arm]:.2f} s"


def profile(bench, name):
    """Where the time of one workload goes."""
    before = bench.stack.metrics()
    row = bench.measure(BY_NAME[name], 0)
    after = bench.stack.metrics()
    print(HEAD + "\n" + line_of(row))
    if "native" not in row:
        return
    steps = row["steps"]
    client = statistics.median(cpu for _, cpu in row["client_cpu"])
    own = statistics.median(cpu for cpu, _ in row["client_cpu"])
    print(f"\none repetition, {steps} steps: seconds of CPU: program {client:.3f} (natively "
          f"{own:.3f}), sidecar {row['server_cpu']['sidecar']:.3f}, agent and workers "
          f"{row['server_cpu']['agent']:.3f}; seconds of time: {row['remote']:.3f} (natively "
          f"{row['native']:.3f})")
    counts = row["counts"]
    print(f"the counted repetition waited {counts['answer_wait_ns'] / 1e9:.3f} s for "
          f"{counts['round_trips']} answers ({counts['answer_wait_ns'] / 1e3 / max(1, counts['round_trips']):.1f} us "
          f"each) and {counts['stall_ns'] / 1e9:.3f} s in {counts['stalls']} stalls (for room: the "
          f"agent is behind); the rest is the program's own")
    print(f"frames {counts['frames'] / steps:.1f}, sent {counts['bytes_sent'] / steps:.0f} bytes, "
          f"received {counts['bytes_received'] / steps:.0f} bytes, "
          f"errors {counts['errors']} (a step, or all)")
    print(f"\n{'calls a step':44}{'verb':>9}{'count':>12}{'round trips':>14}")
    calls = sorted(counts["calls"].items(), key=lambda call: -call[1]["count"])
    for call, what in calls[:40]:
        print(f"{call:44}{what['verb']:>9}{what['count'] / steps:>12.3f}{what['round_trips'] / steps:>14.3f}")
    print("\nthe agent's counters, difference over the whole measurement")
    for key in sorted(after):
        if after[key] != before.get(key, 0.0) and "seconds" not in key:
            print(f"  {key:76}{after[key] - before.get(key, 0.0):>16.0f}")


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    names = [workload.name for workload in WORKLOADS] + ["cold"]
    root = os.path.join(HERE, "..", "..")
    parser.add_argument("--dist", default=os.path.join(root, ".dist"))
    parser.add_argument("--only", help="workloads: " + ", ".join(names))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--rtt", default="0,50,200,1000", help="added round trips, in us")
    parser.add_argument("--local", action="store_true", help="agent and sidecar share memory (local://)")
    parser.add_argument("--json", help="everything that was measured, into this file")
    parser.add_argument("--log", help="a folder for the logs of all parts")
    parser.add_argument("--check", action="store_true", help="compare results, not times")
    parser.add_argument("--profile", metavar="WORKLOAD", choices=names[:-1])
    parser.add_argument("--budget", type=float, default=600, help="seconds; default 600")
    parser.add_argument("--no-mask", dest="mask", action="store_false",
                        help="leave /dev/nvidia* visible to the remote arm (without root)")
    parser.add_argument("--driver", default="nvidia", help="of the agent: nvidia or software")
    parser.add_argument("--native-device", default="cuda", help="cpu: to try the runner without a GPU")
    parser.add_argument("--native-libraries", help="LD_LIBRARY_PATH of the native arm")
    parser.add_argument("--agent-libraries", default="", help="LD_LIBRARY_PATH of the agent")
    parser.add_argument("--small", action="store_true", help="small models")
    options = parser.parse_args()
    try:
        options.rtt = [int(part) for part in options.rtt.split(",")]
    except ValueError:
        parser.error(f"--rtt wants numbers, not '{options.rtt}'")
    if options.only:
        options.only = options.only.split(",")
        for name in options.only:
            if name not in names:
                parser.error(f"no workload '{name}' (there are: {', '.join(names)})")
    if options.pairs < 1:
        parser.error("--pairs wants a number from 1")
    return options


def libraries(options):
    """Where the agent finds NVIDIA's libraries: as given, else beside this Python's PyTorch."""
    given = [part for part in options.agent_libraries.split(":") if part]
    if given or options.driver != "nvidia":
        return given
    return stack.library_folders()


def main():
    options = options_of()
    bench = stopped = None
    start = time.monotonic()
    if options.check:  # XLA takes kernels by times that it measures, and the bits of a product depend on the kernel
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_autotune_level=0"
    try:
        with stack.Stack(options.dist, options.driver, options.log, libraries(options),
                         ("--warm", "2"), local=options.local) as served:
            bench = Bench(options, served)
            try:
                hello = {}
                for delay in (None, 0):
                    arm = bench.arm(delay)
                    hello[arm.name] = arm.start()
                bench.hello = hello
                if options.profile:
                    profile(bench, options.profile)
                elif options.check:
                    bench.check()
                else:
                    bench.run()
            finally:
                bench.close()
    except stack.Failed as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = "stopped"
    if stopped:
        print(f"bench/torch: {stopped}", file=sys.stderr)
    if bench is None:
        return 1
    report(options, bench, served, time.monotonic() - start)
    return bool(stopped) or any(row.get("verdict") == "fail" for row in bench.rows)


def report(options, bench, served, seconds):
    hello = bench.hello
    bench.save()
    if options.profile:
        return
    native, remote = hello.get("native", {}), hello.get("remote", {})
    print(f"PyTorch {remote.get('torch')}; native: {native.get('device')}; remote: "
          f"{remote.get('device')}, device files hidden: {'yes' if remote.get('hidden') else 'no'}")
    print(f"client cores {served.client[0]}-{served.client[-1]}, agent cores {served.server[0]}-"
          f"{served.server[-1]}, {options.pairs} pairs, {seconds:.0f} s, logs in {served.work}")
    if options.check:
        for row in bench.rows:
            print(f"{row['verdict']:6}{row['name']:15}{row['text'][:160]}")
    else:
        print(HEAD)
        for row in bench.rows:
            print(line_of(row))
    verdicts = [row.get("verdict") for row in bench.rows]
    print(f"{verdicts.count('pass')} passed, {verdicts.count('fail')} failed, "
          f"{verdicts.count('-')} without a bound")


if __name__ == "__main__":
    sys.exit(main())
