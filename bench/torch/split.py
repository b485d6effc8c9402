#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Llama with random weights that accelerate lays over two GPUs (device_map), in one process: natively, on the two
GPUs of one agent, and on one GPU of each of two agents.  Each pair generates the same words.

    bench/torch/split.py [--dist .dist] [--shape small|large] [--pairs 7] [--budget SECONDS] [--json FILE]

small: 8 layers, 64 words; every arm's process lives through the run and measures in turn.  large: 92 layers of
Llama-70B's, 161 GB in bf16, 32 words, natively and on two agents: no two arms have room at once, so each round starts
them one after the other, and measures three times after one that is not counted.  A row has the medians, and those of
the ratios to the native arm beside.  The words have to be the native ones.  Needs two GPUs.
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


SHAPES = {
    "small": (64, {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 8, "num_attention_heads": 32,
                   "num_key_value_heads": 8, "vocab_size": 32000}),
    "large": (32, {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 92, "num_attention_heads": 64,
                   "num_key_value_heads": 8, "vocab_size": 128256}),
}


def laid(config):
    """The model, whose weights are made where they lie, and on how many GPUs that is."""
    import torch
    from accelerate import dispatch_model, infer_auto_device_map, init_empty_weights
    from accelerate.utils import set_module_tensor_to_device
    from transformers import LlamaConfig, LlamaForCausalLM
    with init_empty_weights(include_buffers=False):
        model = LlamaForCausalLM(LlamaConfig(**config)).to(torch.bfloat16).eval()
    half = sum(p.nbytes for p in model.parameters()) * 6 // 10
    places = infer_auto_device_map(model, {0: half, 1: half}, no_split_module_classes=["LlamaDecoderLayer"])
    numbers = [torch.Generator(f"cuda:{device}").manual_seed(3) for device in range(2)]
    for name, weight in list(model.named_parameters()):
        device = next(places[part] for part in places if f"{name}.".startswith(f"{part}."))
        made = torch.ones(weight.shape, dtype=weight.dtype, device=device)
        if weight.dim() > 1:  # not a norm
            made.normal_(0, 0.02, generator=numbers[device])
        set_module_tensor_to_device(model, name, device, made)
    return dispatch_model(model, places), len(set(places.values()))


def arm_main(shape):
    """Generates once for each line of standard input."""
    faulthandler.enable()
    import torch
    count, config = SHAPES[shape]
    model, devices = laid(config)
    torch.manual_seed(3)
    words = torch.randint(0, 32000, (4, 64)).to(0)
    for line in sys.stdin:
        if not line.strip():
            break
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.no_grad():
            made = model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=count, do_sample=False,
                                  pad_token_id=0)
        got = made.tolist()
        print(json.dumps({"ms": 1e3 * (time.perf_counter() - start), "words": got, "devices": devices}), flush=True)


def started(name, env, log, shape):
    command = [sys.executable, os.path.abspath(__file__), "--arm", "--shape", shape]
    return stack.Arm(name, command, env, name != "native", log)


def two_agents(on_exit, words):
    """The environment of a program that has a GPU of each of two agents."""
    first, second = [on_exit.enter_context(stack.Stack(words.dist, "nvidia", None, stack.library_folders(),
                                                       ("--warm", "2", "--set", f"gpus={gpu}", "--peers", "127.0.0.1:*"),
                                                       pin=False)) for gpu in range(2)]
    return first.env_with([second])


def ready(arm, began, seconds):
    """What is not counted: the model comes to its places."""
    first = arm.measure(seconds)
    print(f"{arm.name}: ready {time.monotonic() - began:.0f} s after the start, the first time "
          f"{first['ms'] / 1e3:.1f} s", file=sys.stderr, flush=True)


def side_by_side(words, settings, log, until):
    began = time.monotonic()
    with contextlib.ExitStack() as on_exit:
        arms = [started(name, env, log, words.shape) for name, env in settings.items()]
        for arm in arms:
            on_exit.callback(arm.stop)
        for arm in arms:
            ready(arm, began, max(20, until - time.monotonic()))
        return in_turn(arms, words.pairs, until)


def memory_is_back(least=120 << 10, seconds=20):
    """What a process had is free a while after its end: waits until each GPU has LEAST MiB."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        free = subprocess.check_output(["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"], text=True)
        if min(map(int, free.split())) >= least:
            return
        time.sleep(0.2)


def one_by_one(words, settings, log, until):
    samples = {name: [] for name in settings}
    for pair in range(words.pairs):
        for name in settings if pair % 2 else reversed(settings):
            if time.monotonic() > until and pair:
                break
            memory_is_back()
            began = time.monotonic()
            arm = started(name, settings[name], log, words.shape)
            try:
                ready(arm, began, 120)
                samples[name] += [arm.measure(60) for _ in range(3)]
            finally:
                arm.stop()
    return samples


def compare(words):
    until = time.monotonic() + words.budget
    with contextlib.ExitStack() as on_exit:
        settings = {"native": dict(os.environ)}
        log = tempfile.mkdtemp(prefix="vcuda-split-")
        if words.shape == "small":
            one = on_exit.enter_context(stack.Stack(words.dist, "nvidia", None, stack.library_folders(), ("--warm", "2"), pin=False))
            settings["one-agent"] = one.env()
        settings["two-agents"] = two_agents(on_exit, words)
        samples = (side_by_side if words.shape == "small" else one_by_one)(words, settings, log, until)
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
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--budget", type=float, default=200)
    parser.add_argument("--json")
    parser.add_argument("--arm", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.arm:
        return arm_main(words.shape)
    try:
        return 0 if compare(words) else 1
    except stack.Failed as failure:
        sys.exit(f"split: {failure}")


if __name__ == "__main__":
    sys.exit(main())
