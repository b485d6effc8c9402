#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operator of PyTorch's own list (torch.testing's op_db), forward and backward, natively and
through vcuda on the same GPU: are the bits the same?

    tests/gpu/operators.py [--dist .dist] [--only REGEX] [--types float32,complex64] [--shards N]
                           [--seconds S] [--json FILE] [--arms native,again,remote]

A row is an operator, a variant and a type: all of its sample inputs, made from a seed of the row's
name.  Its result is a digest of what the operator gives and one of the gradients, or the error.
Rows whose two native runs differ are left out and counted.  Rows that differ remotely are run five times more
natively: those that gave more than one answer by then, the remote one among them or not, are left out too, since
an answer that comes once in a while (atomic additions) can be the same twice.  Processes that answer row by row run
side by side; a row that takes longer than 90 s, or ends its process, is told as that.  With
--seconds a run ends there: rows that are not done are told as a number.  Exit status 1 if a row
differs.
"""
import argparse
import collections
import hashlib
import json
import os
import queue
import re
import select
import subprocess
import sys
import threading
import time
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
TYPES = "float32,float64,complex64,bfloat16"
ROW_SECONDS = 90
MORE_RUNS = 5  # natively, of rows that differ
# Operators of these names call cuBLAS, cuFFT, cuSOLVER, cuSPARSE or cuDNN.
LIBRARIES = (r"linalg|fft|svd|qr|lu|cholesky|lobpcg|eig|solve|inverse|pinv|det$|logdet|matrix_|geqrf|ormqr|"
             r"sparse|mm|mv|bmm|matmul|addr|dot|einsum|inner|cdist|corrcoef|cov|conv|pool|norm|"
             r"attention|linear|bilinear|stft|istft|tensordot|tensorsolve|multi_dot|ger|outer|kron|ctc|householder")


##### A process that answers rows #####

def digest_of(value, found):
    """Adds every tensor and number of VALUE to FOUND, in an order that is always the same."""
    import torch
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        tensor = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)
        found.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    elif isinstance(value, dict):
        for key in value:
            digest_of(value[key], found)
    elif isinstance(value, (tuple, list)):
        for one in value:
            digest_of(one, found)
    elif isinstance(value, (int, float, complex, bool, str, type(None))):
        found.update(repr(value).encode())
    else:
        found.update(type(value).__name__.encode())


def differentiable(value):
    import torch
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, (tuple, list)):
        return [tensor for one in value for tensor in differentiable(one)]
    if isinstance(value, dict):
        return differentiable(list(value.values()))
    return []


def run_sample(operator, sample, forward, backward):
    import torch
    out = operator(sample.input, *sample.args, **sample.kwargs)
    digest_of(out, forward)
    # Some gradients exist of a part or a product of what the operator gives: the list says of which.
    outs = [one for one in differentiable(sample.output_process_fn_grad(out)) if one.is_floating_point() or one.is_complex()]
    inputs = differentiable([sample.input, sample.args, sample.kwargs])
    if outs and inputs:
        gradients = torch.autograd.grad(outs, inputs, [torch.ones_like(one) for one in outs], allow_unused=True)
        digest_of(gradients, backward)


def row_of(operators, order, device):
    """{"forward", "backward"}: digests; or {"error"}."""
    import torch
    operator = operators[order["row"]]
    kind = getattr(torch, order["type"])
    torch.manual_seed(zlib.crc32(order["row"].encode()))
    backward = operator.supports_autograd and kind in operator.supported_backward_dtypes(device)
    found = {"forward": hashlib.sha256(), "backward": hashlib.sha256()}
    try:
        for sample in operator.sample_inputs(device, kind, requires_grad=backward):
            run_sample(operator, sample, found["forward"], found["backward"])
        if device == "cuda":
            torch.cuda.synchronize()
    except Exception as error:  # told to the runner, which compares it like a result
        text = re.sub(r"0x[0-9a-f]+|\s+", " ", str(error))[:160]
        return {"error": f"{type(error).__name__}: {text}", "fatal": "CUDA error" in text or "cuda" in type(error).__name__.lower()}
    return {name: value.hexdigest()[:16] for name, value in found.items()}


def serve(device):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import warnings
    warnings.simplefilter("ignore")
    import types
    import unittest
    import torch
    try:
        import expecttest  # noqa: F401
    except ImportError:  # the list's module wants it for test classes, of which none is used here
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db
    torch.set_num_threads(1)
    operators = {f"{one.name}{'.' if one.variant_test_name else ''}{one.variant_test_name}": one for one in op_db}
    if device == "cuda":
        torch.zeros(4).to(device).cpu()
    answers.write(json.dumps({"torch": torch.__version__}) + "\n")
    for line in sys.stdin:
        order = json.loads(line)
        if order["row"] == "?":  # the rows there are
            rows = [[name, kind] for name, one in operators.items() for kind in order["types"]
                    if getattr(torch, kind) in one.supported_dtypes(device)]
            answers.write(json.dumps(rows) + "\n")
            continue
        answer = row_of(operators, order, device)
        answers.write(json.dumps(answer) + "\n")
        if answer.pop("fatal", False):
            return  # nothing after it would be the row's own


##### The runner #####

class Shard:
    def __init__(self, command, env, log):
        self.command, self.env, self.log, self.process = command, env, log, None

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, env=self.env, text=True, bufsize=1, stderr=log,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.line(180) is None:
            raise RuntimeError(f"no process of {self.log} got ready")

    def line(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else None
        if line:
            return json.loads(line)
        self.process.kill()
        status = self.process.wait()
        self.process = None
        self.why = f"ended with status {status}" if line == "" else f"no answer within {seconds} s"
        return None

    def ask(self, **order):
        if self.process is not None and self.process.poll() is not None:
            self.process = None
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
        except BrokenPipeError:
            self.process.wait()
            self.process = None
            return self.ask(**order)
        answer = self.line(ROW_SECONDS)
        if answer is None:
            return {"error": self.why}
        if isinstance(answer, dict):
            answer.pop("fatal", None)
        return answer

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def run_arm(shards, rows, end):
    """{row: answer}, by as many threads as there are processes."""
    waiting, answers = queue.SimpleQueue(), {}
    for row in rows:
        waiting.put(row)

    def work(shard):
        try:
            while time.monotonic() < end:
                name, kind = waiting.get_nowait()
                answers[name, kind] = shard.ask(row=name, type=kind)
        except queue.Empty:
            pass
        except (RuntimeError, OSError) as error:
            print(f"operators.py: {error}", file=sys.stderr)
        shard.end()

    threads = [threading.Thread(target=work, args=(shard,)) for shard in shards]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def differing(rows, arms):
    """The rows of two equal native answers and another remote one."""
    return [row for row in rows if all(row in arm for arm in arms.values())
            and arms["native"][row] == arms.get("again", arms["native"])[row] != arms["remote"][row]]


def unsteady(rows, shards, end):
    """Those of ROWS that give more than one answer natively."""
    runs = [run_arm(shards, rows, end) for _ in range(MORE_RUNS)] if rows else []
    return {row for row in rows if len({json.dumps(run[row], sort_keys=True) for run in runs if row in run}) > 1}


def report(rows, arms, left_out=()):
    """Prints the rows that differ; how many."""
    first = next(iter(arms))
    counts, differ = collections.Counter(), []
    for row in rows:
        got = [arms[arm].get(row) for arm in arms]
        if None in got:
            counts["not done"] += 1
        elif row in left_out or "again" in arms and arms["native"][row] != arms["again"][row]:
            counts["left out: native runs differ"] += 1
        elif any(one != got[0] for one in got):
            counts["different"] += 1
            differ.append(row)
        else:
            counts["the same error" if "error" in got[0] else "the same"] += 1
    for name, kind in differ:
        told = [json.dumps(arms[arm][name, kind])[:150] for arm in (first, "remote") if arm in arms]
        print(f"DIFFERENT {name} {kind}\n    {first} {told[0]}\n    remote {told[-1]}")
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())), f"of {len(rows)} rows")
    return counts["different"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--only", default=LIBRARIES, help="a regular expression; default: those that call a library; . is all")
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--shards", type=int, default=max(1, min(8, len(os.sched_getaffinity(0)) // 2)))
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--json", help="every answer of every arm")
    parser.add_argument("--arms", default="native,again,remote")
    parser.add_argument("--device", default="cuda", help="cpu: to try the script without a GPU, with --arms native,again")
    parser.add_argument("--driver", default="nvidia")
    parser.add_argument("--agent-libraries", default="", help="LD_LIBRARY_PATH of the agent")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.device)
    import contextlib
    import tempfile
    import run
    import stack
    command = [sys.executable, os.path.abspath(__file__), "--serve", "--device", options.device]
    scratch = tempfile.mkdtemp(prefix="vcuda-operators-")
    names = options.arms.split(",")
    begun, arms = time.monotonic(), {}
    first = Shard(command, dict(os.environ), f"{scratch}/rows.log")
    rows = [tuple(row) for row in first.ask(row="?", types=options.types.split(","))
            if re.search(options.only, row[0])]
    first.end()
    with contextlib.ExitStack() as open_now:
        served = None
        if "remote" in names:
            served = open_now.enter_context(stack.Stack(options.dist, options.driver, None, run.libraries(options),
                                                        ("--warm", str(options.shards)), pin=False))
        for number, arm in enumerate(names):
            start = time.monotonic()
            env = served.env() if arm == "remote" else dict(os.environ)
            shards = [Shard(command, env, f"{scratch}/{arm}-{i}.log") for i in range(options.shards)]
            share = (options.seconds - (start - begun)) / (len(names) - number)
            arms[arm] = run_arm(shards, rows, start + share)
            print(f"{arm}: {len(arms[arm])} of {len(rows)} rows in {time.monotonic() - start:.0f} s", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({arm: {f"{name} {kind}": answer for (name, kind), answer in answers.items()}
                       for arm, answers in arms.items()}, file, indent=0, sort_keys=True)
    left_out = set()
    if {"native", "remote"} <= arms.keys():
        shards = [Shard(command, dict(os.environ), f"{scratch}/more-{i}.log") for i in range(min(2, options.shards))]
        left_out = unsteady(differing(rows, arms), shards, begun + options.seconds)
    return report(rows, arms, left_out) > 0


if __name__ == "__main__":
    sys.exit(main())
