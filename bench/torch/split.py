#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Llama with random weights that accelerate lays over two GPUs (device_map), in one process: natively, on the two
GPUs of one agent, and on one GPU of each of two agents.  Each pair generates the same 64 words.

    bench/torch/split.py [--dist .dist] [--pairs 7] [--budget SECONDS] [--json FILE]

Every arm's process lives through the run and measures in turn; a row has the medians, and those of the PAIRS
ratios to the native arm beside.  The words have to be the native ones.  Needs two GPUs.
"""
import argparse
import contextlib
import faulthandler
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time

import stack
from ranks import libraries
from ratios import in_turn, interval


def arm_main():
    """Generates once for each line of standard input."""
    faulthandler.enable()
    import torch
    from accelerate import dispatch_model, infer_auto_device_map
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(3)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=8, num_attention_heads=32,
        num_key_value_heads=8, vocab_size=32000)).to(torch.bfloat16).eval()
    half = sum(p.nbytes for p in model.parameters()) * 6 // 10
    places = infer_auto_device_map(model, {0: half, 1: half}, no_split_module_classes=["LlamaDecoderLayer"])
    model = dispatch_model(model, places)
    words = torch.randint(0, 32000, (4, 64)).to(0)
    for line in sys.stdin:
        if not line.strip():
            break
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.no_grad():
            made = model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=64, do_sample=False,
                                  pad_token_id=0)
        got = made.tolist()
        print(json.dumps({"ms": 1e3 * (time.perf_counter() - start), "words": got,
                          "devices": len(set(places.values()))}), flush=True)


class Arm:
    def __init__(self, name, env, mask, log):
        command = [sys.executable, os.path.abspath(__file__), "--arm"]
        self.name, self.log = name, f"{log}/{name}.log"
        with open(self.log, "w") as file:
            self.process = subprocess.Popen(stack.masked(command) if mask else command, env=env, text=True,
                                            bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file)

    def measure(self, seconds):
        self.process.stdin.write("generate\n")
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            if self.process.poll() is None:  # where it is, says its log
                self.process.send_signal(signal.SIGABRT)
                self.process.wait(20)
            raise stack.Failed(f"{self.name} gave no answer within {seconds:.0f} s: {stack.tail(self.log, 14)}")
        return json.loads(line)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def two_agents(on_exit, words):
    """A sidecar with both as one process's GPUs; its environment."""
    agents = [on_exit.enter_context(stack.Stack(words.dist, "nvidia", None, libraries(),
                                                ("--warm", "2", "--set", f"gpus={gpu}", "--peers", "127.0.0.1:*"),
                                                pin=False)) for gpu in range(2)]
    first = agents[0]
    socket = f"{first.work}/both.sock"
    process = first.start("sidecar-both", first.client, [
        first.binary("vcuda-client"), "run", "--agent",
        "+".join(f"127.0.0.1:{one.ports['recv']}" for one in agents), "--socket", socket])
    first.wait(process, socket, 30, "sidecar-both")
    return first.env(VCUDA_SOCKET=socket)


def compare(words):
    began = time.monotonic()
    with contextlib.ExitStack() as on_exit:
        one = on_exit.enter_context(stack.Stack(words.dist, "nvidia", None, libraries(), ("--warm", "2"), pin=False))
        settings = {"native": dict(os.environ), "one-agent": one.env(), "two-agents": two_agents(on_exit, words)}
        arms = [Arm(name, env, name != "native", one.work) for name, env in settings.items()]
        for arm in arms:
            on_exit.callback(arm.stop)
        for arm in arms:
            # What is not counted: the model comes to its places.
            first = arm.measure(max(20, began + words.budget - time.monotonic()))
            print(f"{arm.name}: ready {time.monotonic() - began:.0f} s after the start, the first time "
                  f"{first['ms'] / 1e3:.1f} s", file=sys.stderr, flush=True)
        samples = in_turn(arms, words.pairs, began + words.budget)
    same = True
    for name, got in samples.items():
        ratios = [a["ms"] / b["ms"] for a, b in zip(got, samples["native"])]
        right = all(a["words"] == b["words"] for a, b in zip(got, samples["native"]))
        same = same and right
        low, high = interval(ratios)
        print(f"{name:12}{statistics.median(a['ms'] for a in got):9.1f} ms  of native {statistics.median(ratios):.3f} "
              f"({low:.3f} to {high:.3f})  on {got[0]['devices']} GPUs, words {'the same' if right else 'DIFFERENT'}")
    if words.json:
        with open(words.json, "w") as file:
            json.dump({name: [a["ms"] for a in got] for name, got in samples.items()}, file)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".dist"))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--budget", type=float, default=200)
    parser.add_argument("--json")
    parser.add_argument("--arm", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.arm:
        return arm_main()
    try:
        return 0 if compare(words) else 1
    except stack.Failed as failure:
        sys.exit(f"split: {failure}")


if __name__ == "__main__":
    sys.exit(main())
