#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a GPU machine with PyTorch: a training natively, twice, and remotely while something breaks every few seconds:
its wire is cut, the agent's front is killed, its sidecar is killed and started again.  Each loss and the
model at the end must be those of the native run, bit for bit, and no program may see an error.

    tests/gpu/train_under_cuts.py [--dist .dist] [--driver nvidia|software] [--steps N] [--arms cuts,fronts,…]
                                  [--python FILE]

All arms run side by side, each with an agent and a sidecar of its own: a minute altogether.  The software
GPU does not run PyTorch's machine code: there a training by hand runs, whose products are on the GPU and
the rest on the CPU (`make run-torch_under_cuts`), and the undisturbed arms stand for the native ones.  Exit
status 0 if all is equal.
"""
import argparse
import glob
import os
import re
import site
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.dont_write_bytecode = True
LIMIT = {"nvidia": 120, "software": 170}  # seconds until every program has ended
PAUSE = 0.02  # of the program's own, each step: so that it lasts some ten seconds


##### The program #####

def train(steps):
    """Says each loss as the bits that it is, and a digest of the model now and then."""
    import hashlib
    import torch
    from torch import nn
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2),
                          nn.Flatten(), nn.LayerNorm(32 * 15 * 15), nn.Linear(32 * 15 * 15, 512), nn.GELU(),
                          nn.Dropout(0.1), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(11)

    def digest():
        found = hashlib.sha256()
        for value in model.state_dict().values():
            found.update(value.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return found.hexdigest()[:16]

    for step in range(steps):
        images = torch.randn(64, 3, 32, 32, generator=batches)
        labels = torch.randint(0, 10, (64,), generator=batches)
        if step % 2:
            images, labels = images.pin_memory(), labels.pin_memory()
        loss = nn.functional.cross_entropy(model(images.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item().hex()}", flush=True)
        if step % 50 == 49:
            print(f"step {step} model {digest()}", flush=True)
        time.sleep(PAUSE)
    print(f"end model {digest()}", flush=True)


def train_by_hand(steps):
    """Two layers whose products are the GPU's, copied there and back: no kernel but the library's runs."""
    import torch
    torch.manual_seed(3)
    first, second = torch.randn(256, 64), torch.randn(64, 10)

    def product(a, b):
        return torch.mm(a.contiguous().cuda(), b.contiguous().pin_memory().cuda(non_blocking=True)).cpu()

    for step in range(steps):
        x, y = torch.randn(128, 256), torch.randn(128, 10)
        hidden = product(x, first)
        kept = hidden.clamp(min=0)
        wrong = product(kept, second) - y
        back = product(wrong, second.t()) * (hidden > 0)
        second -= 1e-3 * product(kept.t(), wrong)
        first -= 1e-3 * product(x.t(), back)
        print(f"step {step} loss {(wrong ** 2).mean().item().hex()}", flush=True)
        time.sleep(PAUSE)
    print(f"end model {first.sum().item().hex()} {second.sum().item().hex()}", flush=True)


##### What breaks #####

def cut(arm):
    arm.served.between.cut()


def kill_front(arm):
    arm.lib.kill(arm.served.agent.front())


def kill_sidecar(arm):
    """Another one at the same place, as a kubelet does it."""
    served = arm.served
    arm.lib.kill(served.sidecar.pid)
    served.sidecar.process.wait(10)
    os.remove(served.sidecar.socket)
    served.sidecar = arm.lib.Sidecar(served.folder, served.address)


# Name: what is done, every so many seconds.
FAULTS = {"undisturbed": (None, 1), "cuts": (cut, 2), "fronts": (kill_front, 3), "sidecars": (kill_sidecar, 3)}
NATIVE = ("native", "again")


class Arm(threading.Thread):
    """One run of the program: `said` is what it said, `wrong` why it is worth nothing."""

    def __init__(self, lib, proxy, name, options):
        super().__init__(daemon=True)
        self.lib, self.proxy, self.name, self.options = lib, proxy, name, options
        self.said, self.wrong, self.seconds = [], "it never ended", 0.0
        self.served, self.faults, self.resumes = None, 0, 0

    def command(self):
        return [os.path.abspath(__file__), "--train", self.options.steps, "--driver", self.options.driver]

    def follow(self, start, fault=None, every=1, **more):
        """Runs the program, with FAULT again and again from its first step on."""
        app = start(*self.command(), program=self.options.python, env={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}, **more)
        app.line("^step 0 ", max(1, self.options.until - time.monotonic()))
        began = time.monotonic()
        due = began + every
        while app.process.poll() is None:
            assert time.monotonic() < self.options.until, f"no end; it said: {app.text()[-300:]}"
            if fault and time.monotonic() >= due:
                fault(self)
                self.faults += 1
                due += every
            time.sleep(0.02)
        app.right(5)
        self.seconds = time.monotonic() - began
        self.said = re.findall(r"^(?:step|end) .*", app.text(), re.M)

    def remote(self):
        fault, every = FAULTS.get(self.name, (None, 1))
        found = [path for place in site.getsitepackages() for path in sorted(glob.glob(f"{place}/nvidia/*/lib"))]
        env = {"LD_LIBRARY_PATH": ":".join(filter(None, [*found, os.environ.get("LD_LIBRARY_PATH")]))}
        with self.lib.stack(driver=self.options.driver, agent_env=env,
                            between=self.proxy if fault is cut else None) as self.served:
            self.follow(self.served.app, fault, every)
            self.resumes = self.lib.wait_for(self.went_on, 10, "the agent tells how often it went on") - 1
            assert not fault or self.faults >= 2, f"it ended after {self.faults} faults: more --steps"
            assert not fault or self.resumes, "no session was resumed or taken over: nothing was broken"

    def went_on(self):
        """How often the session was resumed or taken over by another front, plus 1; None: no front just now."""
        try:
            text = self.served.agent.http("/metrics")
        except OSError:
            return None
        return 1 + sum(int(n) for n in re.findall(
            r'^vcuda_agent_(?:resumes_total\{result="resumed"\}|sessions_adopted_total) (\d+)', text, re.M))

    def run(self):
        try:
            if self.name in NATIVE and self.options.driver == "nvidia":
                self.follow(self.lib.App, preload=False)
            else:
                self.remote()
            self.wrong = None
        except Exception as error:  # told in the table
            self.wrong = f"{type(error).__name__}: {error}"

    def verdict(self, native):
        if self.wrong:
            return self.wrong.replace("\n", "\n      ")
        for mine, theirs in zip(self.said, native.said):
            if mine != theirs:
                return f"'{mine}', natively '{theirs}'"
        return None if len(self.said) == len(native.said) else f"{len(self.said)} lines, natively {len(native.said)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--driver", default="nvidia", choices=("nvidia", "software"))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--arms", default=",".join(FAULTS), help="of: " + ", ".join(FAULTS))
    parser.add_argument("--python", default=sys.executable, help="one with PyTorch (this one)")
    parser.add_argument("--train", type=int, help="be the program, for so many steps")
    options = parser.parse_args()
    if options.train:
        (train if options.driver == "nvidia" else train_by_hand)(options.train)
        return 0
    options.steps = options.steps or (500 if options.driver == "nvidia" else 400)
    names = [name for name in options.arms.split(",") if name]
    if not set(names) <= set(FAULTS):
        parser.error(f"--arms are of: {', '.join(FAULTS)}")
    os.environ["BUILD"] = os.path.abspath(options.dist)  # as tests/stack wants to know it
    sys.path[:0] = [os.path.join(ROOT, "tests", name) for name in ("stack", "peer")]
    import stack as lib
    from proxy import Proxy
    lib.become_subreaper()
    options.until = time.monotonic() + LIMIT[options.driver]
    arms = [Arm(lib, Proxy, name, options) for name in (*NATIVE, *names)]
    try:
        for arm in arms:
            arm.start()
        for arm in arms:
            arm.join(max(0, options.until - time.monotonic()) + 20)
    finally:
        left = lib.clean()
    bad = 0
    for arm in arms:
        wrong = arm.verdict(arms[0]) if not arm.is_alive() else "it hangs"
        bad += bool(wrong)
        print(f"{'fail' if wrong else 'pass'}  {arm.name:12}{len(arm.said):5} lines{arm.seconds:7.1f} s"
              f"{arm.faults:4} faults{arm.resumes:4} went on{'  ' + wrong if wrong else ''}")
    if left:
        print(f"fail  left behind: {', '.join(left)}")
        bad += 1
    print(f"{len(arms) - min(bad, len(arms))} passed, {bad} failed, 0 skipped")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
