#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program pays the first time it meets a shape: natively and through vcuda, each
measurement in a process of its own (first_arm.py).

    bench/torch/first_time.py [--dist .dist] [--before DIST] [--only attention,step:squeezenet1_0]
                              [--repeat 5] [--json FILE] [--profile CASE,CASE] [--budget SECONDS]

Cases: a new length of attention (and its gradient), the first `generate` of a Llama whose cache
grows, one training step of models of torchvision, of an LSTM and a GRU.  Native and remote in
turn; with --before a second build stands beside, measured in the same way.  With --profile the
calls of each case by name: how often, and how long the program was in them (calls.c).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import stack
from run import Arm, libraries

HERE = os.path.dirname(os.path.abspath(__file__))
ARM = os.path.join(HERE, "first_arm.py")
MODELS = ("alexnet", "vgg11", "squeezenet1_0", "resnet18", "resnet50", "densenet121", "googlenet",
          "inception_v3", "mobilenet_v2", "mobilenet_v3_large", "mnasnet1_0", "shufflenet_v2_x1_0",
          "efficientnet_b0", "regnet_y_400mf", "resnext50_32x4d", "convnext_tiny", "vit_b_16",
          "swin_t")
CASES = ["attention", "attention:backward", "generate", *(f"step:{name}" for name in MODELS),
         "recurrent:LSTM", "recurrent:GRU"]
# At most; a new length in seconds, the others by native.
BOUNDS = {"attention": "60 ms", "generate": "1.1"}


def built_calls(folder):
    """calls.c as a library, where there is a compiler; else None."""
    path = os.path.join(folder, "calls.so")
    try:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path,
                        os.path.join(HERE, "calls.c"), "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return path


class Arms:
    """native, remote and, where asked for, before; and each once more with calls.c preloaded."""

    def __init__(self, options, stacks):
        self.options, self.stacks = options, stacks
        self.work = next(iter(stacks.values())).work
        self.calls = built_calls(self.work) if options.profile is not None else None
        self.arms = {}

    def arm(self, name, profiled):
        if (name, profiled) not in self.arms:
            served = self.stacks.get(name) or next(iter(self.stacks.values()))
            command = served.pinned(served.client, [sys.executable, ARM])
            small = "1" if self.options.small else "0"
            if name == "native":
                env = dict(os.environ, ARM_DEVICE=self.options.native_device, ARM_SMALL=small)
                if self.options.native_libraries:
                    env["LD_LIBRARY_PATH"] = self.options.native_libraries
            else:
                env = served.env(ARM_DEVICE="cuda", ARM_SMALL=small)
                if self.options.mask:
                    command = stack.masked(command)
            if profiled and self.calls:
                preload = [self.calls, *filter(None, [env.get("LD_PRELOAD")])]
                env.update(LD_PRELOAD=":".join(preload), FIRST_CALLS=self.calls)
            label = name + ("-calls" if profiled else "")
            self.arms[name, profiled] = Arm(label, command, env, f"{self.work}/{label}.log")
            self.arms[name, profiled].order(120, do="hello")  # imports
        return self.arms[name, profiled]

    def names(self):
        return ["native", *self.stacks]

    def close(self):
        for arm in self.arms.values():
            arm.end()


def measure(arms, case, repeat, end):
    """{"case", arm: [seconds of each repetition], "value": {arm: ...}}"""
    row = {"case": case, "seconds": {}, "value": {}}
    for _ in range(repeat):
        for name in arms.names():
            if time.monotonic() > end:
                return row
            try:
                got = arms.arm(name, False).order(120, do="run", case=case, limit=60)
            except stack.Failed as error:
                row["error"] = f"{name}: {error}"
                return row
            row["seconds"].setdefault(name, []).append(statistics.median(got["seconds"]))
            row["value"].setdefault(name, []).append(got["value"])
    return row


def line_of(row, names):
    text = f"{row['case']:28}"
    for name in names:
        got = row["seconds"].get(name)
        text += f"{statistics.median(got) * 1e3:>10.1f} ms" if got else f"{'-':>13}"
    native = row["seconds"].get("native")
    for name in names[1:]:
        got = row["seconds"].get(name)
        if got and native:
            ratio = statistics.median(got) / statistics.median(native)
            row.setdefault("ratio", {})[name] = ratio
            text += f"{ratio:>9.2f}"
    values = [value for arm in row["value"].values() for value in arm]
    if values:
        row["same"] = all(value == values[0] for value in values)
        text += "  same" if row["same"] else "  differs"
    return text + (f"  {row['error'][:120]}" if "error" in row else "")


def profile(arms, case):
    """Calls by name, one column of count and one of milliseconds for each arm."""
    table = {"case": case}
    for name in arms.names():
        try:
            got = arms.arm(name, True).order(120, do="run", case=case, limit=60)
            table[name] = got["calls"]
            table[name]["all"] = [len(got["seconds"]), sum(got["seconds"]) * 1e9]
        except stack.Failed as error:
            table[name] = {}
            print(f"{case}: {name}: {error}", file=sys.stderr)
    return table


def print_profile(table, names):
    print(f"\n{table['case']}: calls, and milliseconds in them")
    print(f"{'':44}" + "".join(f"{name:>18}" for name in names))
    calls = sorted({call for name in names for call in table[name]},
                   key=lambda call: -max(table[name].get(call, [0, 0])[1] for name in names))
    for call in calls[:24]:
        cells = (table[name].get(call) for name in names)
        print(f"{call:44}" + "".join(
            f"{cell[0]:>8}{cell[1] / 1e6:>10.1f}" if cell else f"{'':>18}" for cell in cells))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    root = os.path.join(HERE, "..", "..")
    parser.add_argument("--dist", default=os.path.join(root, ".dist"))
    parser.add_argument("--before", help="another build, to stand beside")
    parser.add_argument("--only", help="cases, or families of them: " + ", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--profile", help="the calls of these cases, by name")
    parser.add_argument("--json", help="everything that was measured, into this file")
    parser.add_argument("--log", help="a folder for the logs of all parts")
    parser.add_argument("--budget", type=float, default=480, help="seconds; default 480")
    parser.add_argument("--no-mask", dest="mask", action="store_false",
                        help="leave /dev/nvidia* visible to the remote arm (without root)")
    parser.add_argument("--driver", default="nvidia", help="of the agent: nvidia or software")
    parser.add_argument("--native-device", default="cuda", help="cpu: to try it without a GPU")
    parser.add_argument("--native-libraries", help="LD_LIBRARY_PATH of the native arm")
    parser.add_argument("--agent-libraries", default="", help="LD_LIBRARY_PATH of the agent")
    parser.add_argument("--small", action="store_true", help="small models")
    options = parser.parse_args()
    options.profile = options.profile.split(",") if options.profile else None
    wanted = options.only.split(",") if options.only else CASES
    options.cases = [case for case in CASES if case in wanted or case.split(":")[0] in wanted]
    options.cases += [case for case in wanted if ":" in case and case not in options.cases]
    return options


def summary(rows, names):
    for name in names[1:]:
        steps = [row["ratio"][name] for row in rows
                 if row["case"].startswith("step:") and name in row.get("ratio", {})]
        if steps:
            print(f"{name}: {len(steps)} models: median {statistics.median(steps):.2f} of native, "
                  f"worst {max(steps):.2f}")


def main():
    options = options_of()
    end = time.monotonic() + options.budget
    rows, tables, stacks = [], [], {}
    folders = {"before": options.before, "remote": options.dist}
    try:
        for name, folder in folders.items():
            if folder:
                work = os.path.join(options.log, name) if options.log else \
                    tempfile.mkdtemp(prefix="vcuda-first-")
                stacks[name] = stack.Stack(folder, options.driver, work, libraries(options),
                                           ("--warm", "2")).__enter__()
        arms = Arms(options, stacks)
        try:
            names = arms.names()
            print(f"{'':28}" + "".join(f"{name:>13}" for name in names))
            for case in options.cases:
                rows.append(measure(arms, case, options.repeat, end))
                print(line_of(rows[-1], names), flush=True)
            for case in options.profile or []:
                if time.monotonic() < end:
                    tables.append(profile(arms, case))
                    print_profile(tables[-1], names)
            summary(rows, names)
        finally:
            arms.close()
    except stack.Failed as error:
        print(f"bench/torch: {error}", file=sys.stderr)
        return 1
    finally:
        for served in stacks.values():
            served.__exit__()
        if options.json:
            with open(options.json, "w") as file:
                json.dump({"when": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()), "rows": rows,
                           "profiles": tables}, file, indent=1)
    return any("error" in row for row in rows)


if __name__ == "__main__":
    sys.exit(main())
