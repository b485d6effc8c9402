#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One arm of first_time.py: imports everything, touches no GPU, and forks a process for each
order, so that each is as fresh as a new program without the seconds of importing.  Orders and
answers are lines of JSON, as arm.py's.

    {"do": "hello"}                      imports
    {"do": "run", "case": "step:resnet18", "limit": 60}
        -> {"seconds": [...], "calls": {name: [count, ns]}, "value": ...}

What is timed is the work alone: the model and its input are on the GPU when the clock starts.
"""
import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *(os.path.join(HERE, "..", "..", "examples", name) for name in ("pytorch", "jax", "cupy"))]
DEVICE = os.environ.get("ARM_DEVICE", "cuda")
SMALL = os.environ.get("ARM_SMALL") == "1"


def synchronize():
    import torch
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def timed(work):
    synchronize()
    start = time.perf_counter()
    value = work()
    synchronize()
    return time.perf_counter() - start, value


class Calls:
    """calls.c, where it was preloaded."""

    def __init__(self):
        path = os.environ.get("FIRST_CALLS")
        self.library = ctypes.CDLL(path) if path else None

    def take(self):
        if not self.library:
            return {}
        room = ctypes.create_string_buffer(1 << 16)
        used = self.library.calls_take(room, len(room))
        lines = room.raw[:used].decode().splitlines()
        return {name: [int(count), int(ns)] for name, count, ns in
                (line.rsplit(" ", 2) for line in lines)}


def attention(options):
    """New lengths one after the other, behind one that was met."""
    import torch
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backward = "backward" in options
    backend = SDPBackend.CUDNN_ATTENTION if DEVICE == "cuda" else SDPBackend.MATH
    seconds, sums = [], []
    with sdpa_kernel(backend):
        for length in (128, 208, 336, 472, 600, 736):
            torch.manual_seed(length)
            q, k, v = (torch.randn(1, 16, length, 64, device=DEVICE, dtype=torch.bfloat16,
                                   requires_grad=backward) for _ in range(3))

            def once():
                out = functional.scaled_dot_product_attention(q, k, v)
                if backward:
                    out.backward(torch.ones_like(out))
                return out

            one, out = timed(once)
            seconds.append(one)
            sums.append(float(out.detach().float().sum()))
    return seconds[1:], sums


def generate(_):
    """The first generate of a Llama: its cache grows by one each step."""
    import llama_decode
    run = llama_decode.build(DEVICE, SMALL)
    one, value = timed(run)
    return [one], value["tokens"].sum().item()


def step(options):
    """One training step of a model of torchvision; NAME+half: in bf16, channels last."""
    import torch
    import torchvision
    name, _, half = options.partition("+")
    torch.manual_seed(0)
    side = 299 if name == "inception_v3" else 64 if SMALL else 224
    more = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    with torch.device(DEVICE):
        model = getattr(torchvision.models, name)(weights=None, **more)
        images = torch.randn(2 if SMALL else 8, 3, side, side)
        labels = torch.arange(len(images))
    if half:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def once():
        with torch.autocast(DEVICE, torch.bfloat16, enabled=bool(half)):
            out = model(images)
            out = getattr(out, "logits", out)
            loss = torch.nn.functional.cross_entropy(out, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    one, loss = timed(once)
    return [one], float(loss)


def recurrent(kind):
    """One training step of a recurrent network of two layers."""
    import torch
    torch.manual_seed(0)
    with torch.device(DEVICE):
        model = getattr(torch.nn, kind)(64, 128, num_layers=2, batch_first=True)
        x = torch.randn(8, 32, 64)

    def once():
        model(x)[0].square().mean().backward()
        return sum(p.grad.abs().sum() for p in model.parameters())

    one, value = timed(once)
    return [one], float(value)


def workload(name):
    """The first repetition of a workload of run.py."""
    from workloads import BY_NAME
    run = BY_NAME[name].make(DEVICE, SMALL)
    one, _ = timed(run)
    return [one], None


CASES = {"attention": attention, "generate": generate, "step": step, "recurrent": recurrent,
         "workload": workload}


def child(order, out):
    case, _, options = order["case"].partition(":")
    try:
        from transformers.utils import logging
        logging.set_verbosity_error()
        logging.disable_progress_bar()
    except ImportError:
        pass
    try:
        import torch
        torch.zeros(4).to(DEVICE).cpu()  # context and PyTorch's own start
        calls = Calls()
        calls.take()
        seconds, value = CASES[case](options)
        answer = {"seconds": seconds, "value": value, "calls": calls.take()}
    except Exception as error:  # told to the runner
        text = str(error).strip().splitlines() or [""]
        answer = {"error": f"{type(error).__name__}: {text[0]}"[:300]}
    os.write(out, json.dumps(answer).encode())
    os._exit(0)


def run(order):
    got, put = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(got)
        child(order, put)
    os.close(put)
    text = b""
    while True:
        ready, _, _ = select.select([got], [], [], order.get("limit", 60))
        if not ready:
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.5)
            os.kill(pid, signal.SIGKILL)
        part = os.read(got, 1 << 16) if ready else b""
        if not part:
            break
        text += part
    os.close(got)
    _, status = os.waitpid(pid, 0)
    if not text:
        return {"error": f"ended with status {status}"}
    return json.loads(text)


def hello(_):
    import torch
    import torchvision  # noqa: F401
    import transformers  # noqa: F401
    import llama_decode  # noqa: F401
    from transformers import LlamaForCausalLM  # noqa: F401
    return {"torch": torch.__version__}


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    faulthandler.register(signal.SIGUSR1)
    for line in sys.stdin:
        order = json.loads(line)
        answers.write(json.dumps({"hello": hello, "run": run}[order["do"]](order)) + "\n")


if __name__ == "__main__":
    main()
