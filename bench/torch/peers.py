#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 that vcuda_peers trains with AdamW over two GPUs: natively, and over two agents of 16 GiB, none of which
holds it; natively on one card, too, without the package.  The losses have to be the native ones on two cards, bit for bit.

    bench/torch/peers.py [--dist .dist] [--shape xl|small] [--length WORDS] [--pairs 5] [--budget SECONDS]
                         [--rtt 5000] [--lost | --share] [--json FILE]

Every arm's process lives through the run and measures in turn: steps of the whole batch, steps of four micro-batches, and
what a step costs with RTT microseconds more to and fro.  With --lost instead: one of two agents is killed at step 50 of
100, the program ends with PeerLost, and goes on from its last checkpoint with a third agent; the losses have to be
those of a run that nobody disturbed.  With --share all agents have the first GPU, and only what more time to and fro
costs is measured.  Else it needs two GPUs.  Ray is not used: the workers are handed out by hand.
"""
import argparse
import contextlib
import faulthandler
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import stack
from ratios import in_turn, interval

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "python", "vcuda-peers")
MICRO = 4
# Layers, width, heads; samples of a batch, words of one.
SHAPES = {"xl": (48, 1600, 25, 8, 128), "small": (12, 768, 12, 4, 64)}
PEER_LOST = 75


##### The program #####

def parts(shape, length):
    """The model, and its batch of samples of LENGTH words; the same in every process."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    layers, width, heads, samples, usual = SHAPES[shape]
    torch.manual_seed(3)
    model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=width, n_head=heads, resid_pdrop=0, embd_pdrop=0,
                                       attn_pdrop=0, use_cache=False))
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train(), torch.randint(0, 50257, (samples, length or usual))


def mean_loss(out, words):
    import torch
    return torch.nn.functional.cross_entropy(out.logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())


def stepper(shape, plain, checkpoint=None, length=None):
    """step(micro_batches): its loss, on the GPU; the first step's number; what says how much memory there was."""
    import torch
    model, words = parts(shape, length)
    words = words.to("cuda:0")
    done = 0
    if plain:
        model = model.to("cuda:0")
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    else:
        from vcuda_peers import UserNode
        user = UserNode()
        model, optimizer = user.create_distributed_model(model, torch.optim.AdamW, checkpoint=checkpoint, every=10)
        optimizer(lr=5e-5)
        if checkpoint:
            done = user.resume()

    def step(micro_batches):
        optimizer.zero_grad()
        if plain:
            loss = mean_loss(model(words), words)
            loss.backward()
            loss = loss.detach()
        else:
            loss = model.step((words, words), mean_loss, micro_batches=micro_batches)
        optimizer.step()
        return loss
    return step, done


def arm_main(words):
    """Three steps for each line of standard input, which says of how many micro-batches."""
    faulthandler.enable()
    import torch
    step, _ = stepper(words.shape, words.plain, length=words.length)
    devices = range(torch.cuda.device_count())
    for line in sys.stdin:
        if not line.strip():
            break
        for device in devices:
            torch.cuda.synchronize(device)
        start, losses = time.perf_counter(), []
        for _ in range(3):
            losses.append(step(int(line)).item().hex())
        for device in devices:
            torch.cuda.synchronize(device)
        print(json.dumps({"ms": 1e3 * (time.perf_counter() - start) / 3, "losses": losses,
                          "mib": [torch.cuda.max_memory_reserved(device) >> 20 for device in devices],
                          "retries": sum(torch.cuda.memory_stats(device)["num_alloc_retries"] for device in devices)}),
              flush=True)


def train_main(words):
    step, done = stepper(words.shape, False, words.checkpoint)
    for number in range(done, words.steps):
        print(number, step(1).item().hex(), flush=True)


##### The arms #####

def workers(*names):
    """VCUDA_PEERS, as `vcuda-peers run` sets it."""
    return {"VCUDA_PEERS": json.dumps({"network": "bench", "workers": [[name, 1] for name in names]}),
            "PYTHONPATH": PACKAGE, "PYTHONUNBUFFERED": "1"}


def started(name, env, words, log, plain=False):
    command = [sys.executable, os.path.abspath(__file__), "--arm", "--shape", words.shape, *(["--plain"] if plain else []),
               *(["--length", str(words.length)] if words.length else [])]
    return stack.Arm(name, command, env, "VCUDA_SOCKET" in env, log, line="1")


def agent(on_exit, words, gpu):
    """Which has GPU, and of its memory 16 GiB."""
    return on_exit.enter_context(stack.Stack(
        words.dist, "nvidia", None, stack.library_folders(),
        ("--warm", "1", "--set", f"gpus={gpu}", "--memory-limit", "16GiB", "--peers", "127.0.0.1:*"), pin=False))


def row(name, got, beside, what):
    ratios = [a["ms"] / b["ms"] for a, b in zip(got, beside)]
    if not ratios:
        print(f"{name:28}not measured: --budget was spent")
        return
    low, high = interval(ratios)
    print(f"{name:28}{statistics.median(a['ms'] for a in got):9.1f} ms   {statistics.median(ratios):.3f} "
          f"({low:.3f} to {high:.3f}) of {what}", flush=True)


def compare(words):
    until = time.monotonic() + words.budget
    log = tempfile.mkdtemp(prefix="vcuda-peers-bench-")
    with contextlib.ExitStack() as on_exit:
        a, b = agent(on_exit, words, 0), agent(on_exit, words, 1)
        far, other = agent(on_exit, words, 0), agent(on_exit, words, 1)
        native = dict(os.environ, **workers("card-0", "card-1"))
        arms = [started("one-card", native, words, log, plain=True), started("native", native, words, log),
                started("two-agents", a.env_with([b], **workers("a", "b")), words, log),
                started("far", far.env_with([other], words.rtt, VCUDA_STATS="1", **workers("far", "other")), words, log)]
        for arm in arms:
            on_exit.callback(arm.stop)
        first = {arm.name: arm.measure(150) for arm in arms}
        one_card, native_arm, two, slow = arms
        whole = in_turn([one_card, native_arm, two], words.pairs, until)
        late = in_turn([two, slow], 2, until)
        for arm in (native_arm, two):
            arm.line = str(MICRO)
            first[arm.name + " in pieces"] = arm.measure(60)
        pieces = in_turn([native_arm, two], words.pairs, until)
    losses = {name: sum((one["losses"] for one in got), first[name]["losses"])
              for name, got in {**whole, "far": late["far"]}.items()}
    whole["far"] = late["far"]
    for name, mine in losses.items():
        apart = max(abs(float.fromhex(one) - float.fromhex(other)) for one, other in zip(mine, losses["native"]))
        last = (whole[name] or [first[name]])[-1]
        print(f"{name:12}losses {'the same' if mine == losses['native'][:len(mine)] else f'up to {apart:.2e} from'} native's on two; "
              f"{max(last['mib'])} MiB of a GPU, {last['retries']} allocations a second time, first step {first[name]['ms']:.0f} ms")
    row("native, one card", whole["one-card"], whole["native"], "native on two")
    row("native, two cards", whole["native"], whole["native"], "itself")
    row("two agents", whole["two-agents"], whole["native"], "native on two (bar 1.1)")
    row(f"two agents, {words.rtt} us more", late["far"], late["two-agents"], "two agents (bar 1.25)")
    row(f"native, {MICRO} pieces", pieces["native"], whole["native"], "native in one")
    row(f"two agents, {MICRO} pieces", pieces["two-agents"], whole["two-agents"], f"two agents in one (bar {1 / 1.4:.3f})")
    last = [got[-1]["losses"][-1] for got in pieces.values()]
    print(f"last losses in pieces: {[float.fromhex(one) for one in last]}")
    if words.json:
        with open(words.json, "w") as file:
            json.dump({"whole": whole, "pieces": pieces, "first": first}, file)
    print(stack.tail(f"{log}/far.log", 40).replace(" | ", "\n"))
    return losses["two-agents"] == losses["native"] and losses["far"] == losses["native"][:len(losses["far"])]


def share(words):
    """Agents that share one GPU: the same work over a wire that takes longer."""
    until = time.monotonic() + words.budget
    log = tempfile.mkdtemp(prefix="vcuda-peers-bench-")
    with contextlib.ExitStack() as on_exit:
        a, b = agent(on_exit, words, 0), agent(on_exit, words, 0)
        arms = [started("two-agents", a.env_with([b], **workers("a", "b")), words, log),
                started("far", a.env_with([b], words.rtt, VCUDA_STATS="1", **workers("a", "b")), words, log)]
        for arm in arms:
            on_exit.callback(arm.stop)
        first = {arm.name: arm.measure(150) for arm in arms}
        got = in_turn(arms, words.pairs, until)
    for name, one in got.items():
        print(f"{name:12}first step {first[name]['ms']:.0f} ms, {max(one[-1]['mib'])} MiB of a GPU")
        row(name, one, got["two-agents"], "two agents (bar 1.25)")
    print(stack.tail(f"{log}/far.log", 60).replace(" | ", "\n"))
    return first["far"]["losses"] == first["two-agents"]["losses"]


##### A lost agent #####

def run(env, words, folder, kill=None):
    """What it printed {step: loss}, and its exit status; KILL() when step 50 is printed."""
    command = [sys.executable, os.path.abspath(__file__), "--train", "--shape", words.shape, "--checkpoint", folder]
    losses = {}
    with open(f"{folder}.log", "a") as log, subprocess.Popen(stack.masked(command), env=env, text=True, stdin=subprocess.DEVNULL,
                                                           stdout=subprocess.PIPE, stderr=log) as program:
        for line in program.stdout:
            number, loss = line.split()
            losses[int(number)] = loss
            if kill and number == "50":
                kill()
        return losses, program.wait(60)


def lost(words):
    with contextlib.ExitStack() as on_exit, tempfile.TemporaryDirectory(prefix="vcuda-peers-lost-") as folder:
        a, b, c = (agent(on_exit, words, gpu) for gpu in (0, 1, 1))
        calm, status = run(a.env_with([b], **workers("a", "b")), words, f"{folder}/calm")
        print(f"undisturbed: {len(calm)} steps, status {status}")

        def kill():
            subprocess.run(["pkill", "-KILL", "-P", str(b.processes[0].pid)], check=False)
            b.processes[0].kill()
        before, status = run(a.env_with([b], **workers("a", "b")), words, f"{folder}/lost", kill)
        print(f"agent b killed: {len(before)} steps, status {status} ({PEER_LOST} is PeerLost): "
              f"{stack.tail(f'{folder}/lost.log', 1)}")
        began = time.monotonic()
        after, again = run(a.env_with([c], **workers("a", "c")), words, f"{folder}/lost")
        print(f"gone on with c: steps {min(after, default=0)} to {max(after, default=0)}, status {again}, {time.monotonic() - began:.1f} s")
        same = before | after == calm and len(calm) == words.steps
        print(f"losses {'the same' if same else 'DIFFERENT'} as undisturbed")
        if not same:
            print(f"{stack.tail(f'{folder}/calm.log', 8)}\n{stack.tail(f'{folder}/lost.log', 12)}")
        return same and status == PEER_LOST and not again


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(HERE, "..", "..", ".dist"))
    parser.add_argument("--shape", choices=SHAPES, default="xl")
    parser.add_argument("--length", type=int, help="words of a sample")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--budget", type=float, default=200)
    parser.add_argument("--rtt", type=int, default=5000, help="microseconds")
    parser.add_argument("--lost", action="store_true")
    parser.add_argument("--share", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--checkpoint")
    for hidden in ("--arm", "--train", "--plain"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.arm:
        return arm_main(words)
    if words.train:
        return train_main(words)
    try:
        return 0 if (lost if words.lost else share if words.share else compare)(words) else 1
    except stack.Failed as failure:
        sys.exit(f"peers: {failure}")


if __name__ == "__main__":
    sys.exit(main())
