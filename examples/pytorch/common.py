# SPDX-License-Identifier: Apache-2.0
"""What the examples share: the command line, the device, progress bars, weights.

Every example is a plain PyTorch program that knows nothing of vcuda.  It has one function,
build(device, small, show), which makes model and data and returns run(): one repetition, whose
results come back as a dictionary of numbers and CPU tensors.  bench/torch times and compares the
same functions.
"""
import argparse
import os
import socket
import sys
import time

import torch


def progress(items, what, show):
    """ITEMS with a progress bar, where tqdm is there and SHOW says so."""
    if not show:
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=what)


def hub_reachable(seconds=2.0):
    """Whether Hugging Face's hub answers: asking it in vain takes minutes."""
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        return False
    try:
        socket.create_connection(("huggingface.co", 443), seconds).close()
        return True
    except OSError:
        return False


def synchronize(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def seeded(seed=0):
    """The same numbers in every run, on the CPU and on the device."""
    torch.manual_seed(seed)


def main(doc, build, random_weights=True):
    """The command line of an example."""
    parser = argparse.ArgumentParser(description=doc.strip().split("\n")[0])
    parser.add_argument("--device", help="cuda or cpu; default: cuda where there is one")
    parser.add_argument("--small", action="store_true",
                        help="a small model and few steps, for a CPU")
    parser.add_argument("--repeat", type=int, default=1, help="repetitions; default 1")
    options = parser.parse_args()
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.startswith("cuda") else "this CPU"
    print(f"device: {name}")
    if random_weights:
        print("weights: random (nothing is downloaded)")
    show = sys.stderr.isatty()
    start = time.perf_counter()
    run = build(device, options.small, show)
    synchronize(device)
    print(f"built in {time.perf_counter() - start:.2f} s")
    for _ in range(options.repeat):
        start = time.perf_counter()
        results = run()
        synchronize(device)
        seconds = time.perf_counter() - start
        for key, value in results.items():
            print(f"{key}: {describe(value)}")
        print(f"took {seconds:.3f} s")


def describe(value):
    if isinstance(value, torch.Tensor):
        flat = value.flatten()
        head = ", ".join(f"{v:.6g}" for v in flat[:4].tolist())
        return f"[{head}{', …' if flat.numel() > 4 else ''}] {tuple(value.shape)}"
    return value
