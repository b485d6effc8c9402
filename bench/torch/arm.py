#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One arm of a comparison: a process that does what it is told, line by line in JSON on its
standard input, and answers in JSON on its standard output.  Started once natively and once
remotely, so that what starting costs is paid once.

    {"do": "hello"}                      what PyTorch and the device are
    {"do": "setup", "name", "small"}     build the workload, run it once
    {"do": "run"}                        seconds of one repetition, the device's work included
    {"do": "count"}                      what one repetition counts (remote: VCUDA_STATS)
    {"do": "result", "name", "small", "file"}   build anew, run, save the results
    {"do": "compare", "files": [native, native again, remote]}
    {"do": "drop"}                       forget the workload
"""
import ctypes
import faulthandler
import gc
import json
import os
import signal
import stat
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *(os.path.join(HERE, "..", "..", "examples", name) for name in ("pytorch", "jax", "cupy"))]
DEVICE = os.environ.get("ARM_DEVICE", "cuda")
REMOTE = bool(os.environ.get("VCUDA_SOCKET"))
current = None


def synchronize():
    import torch
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def device_files_hidden():
    """Whether no /dev/nvidia* is a GPU's (masked ones are /dev/null)."""
    for name in os.listdir("/dev"):
        if name.startswith("nvidia"):
            info = os.stat(f"/dev/{name}")
            if stat.S_ISCHR(info.st_mode) and info.st_rdev != os.makedev(1, 3):
                return False
    return True


def hello(_):
    import torch
    if DEVICE == "cuda":
        torch.cuda.init()
        stop_counting()
    return {"torch": torch.__version__, "python": sys.version.split()[0],
            "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu",
            "hidden": device_files_hidden(), "pid": os.getpid()}


def stop_counting():
    if REMOTE:
        ctypes.CDLL("libcuda.so.1").vcuda_stats_end(None)


def build(order):
    from workloads import BY_NAME
    try:
        from transformers.utils import logging
        logging.set_verbosity_error()
        logging.disable_progress_bar()
    except ImportError:
        pass
    return BY_NAME[order["name"]].make(DEVICE, order.get("small", False))


def setup(order):
    global current
    start = time.perf_counter()
    current = build(order)
    synchronize()
    built = time.perf_counter() - start
    current()
    synchronize()
    return {"built": built, "first": time.perf_counter() - start - built}


def run(_):
    gc.collect()
    cpu, start = time.process_time(), time.perf_counter()
    current()
    synchronize()
    return {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}


def count(_):
    if not REMOTE:
        return {}
    cuda = ctypes.CDLL("libcuda.so.1")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        if cuda.vcuda_stats_begin():
            raise RuntimeError("counting is off: VCUDA_STATS is not set")
        try:
            current()
            synchronize()
        finally:
            cuda.vcuda_stats_end(file.name.encode())
        with open(file.name) as text:
            return json.load(text)


def drop(_):
    global current
    import torch
    current = None
    gc.collect()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
    return {}


def result(order):
    import torch
    run_it = build(order)
    values = {key: value.cpu() if isinstance(value, torch.Tensor) else torch.tensor(value)
              for key, value in run_it().items()}
    torch.save(values, order["file"])
    return {}


def distance(a, b):
    """The largest difference, relative to the largest value; None if shapes differ."""
    import torch
    worst = 0.0
    for key in a:
        x, y = a[key].double(), b[key].double()
        if x.shape != y.shape or not torch.equal(x.isnan(), y.isnan()):
            return None
        x, y = x.nan_to_num(), y.nan_to_num()
        if x.numel():
            worst = max(worst, ((x - y).abs().max() / x.abs().max().clamp_min(1e-30)).item())
    return worst


def compare(order):
    import torch
    native, again, remote = (torch.load(file, weights_only=True) for file in order["files"])
    finite = all(torch.isfinite(value.double()).all().item() for value in remote.values())
    return {"native": distance(native, again), "remote": distance(native, remote),
            "finite": finite}


DOES = {"hello": hello, "setup": setup, "run": run, "count": count, "drop": drop,
        "result": result, "compare": compare}


def main():
    # What libraries print belongs to the log.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    faulthandler.register(signal.SIGUSR1)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = DOES[order["do"]](order)
        except Exception as error:  # told to the runner, which starts another arm
            text = str(error).strip().splitlines() or [""]
            answer = {"error": f"{type(error).__name__}: {text[0]}"[:300]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
