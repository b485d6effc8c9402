#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a machine with two GPUs and PyTorch: a named tensor of the first GPU, mapped by another program for the second.
Its words are the owner's, it costs no copy, a kernel that writes to it is refused by the GPU, and a program without
`peer` gets a copy; what reading it costs beside memory of the reader's own GPU is told and gates nothing.

    tests/gpu/peer_tensors.py [--dist .dist] [--mib 1024]

Exit status 77 where there is one GPU only, 0 if all holds.
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
import stack  # noqa: E402

# Each program is `python3 -c COMMON + PROGRAM MIB`, says "ready", and waits for its input's end.
COMMON = """
import sys, time, torch, vcuda
count = int(sys.argv[1]) << 20 >> 2
def total(x): return int(x.to(torch.int64).sum())
def ready(*words):
    print("ready", *words, flush=True)
    sys.stdin.read()
"""
OWNER = """
t = vcuda.create("w", "i32", (count,), device=0)
t.torch().copy_(torch.arange(count, dtype=torch.int32, device="cuda:0"))
t.seal()
ready(total(t.torch()))
"""
READER = """
t = vcuda.get("w", device=1, peer=PEER)
x = t.torch()
assert t.peer is PEER and t.device == 1 and not t.writable, (t.peer, t.device, t.writable)
def rate(x):
    with torch.cuda.device(1):
        got = torch.empty(count, dtype=torch.int32, device="cuda:1")
        best = 0
        for _ in range(5):
            torch.cuda.synchronize()
            began = time.perf_counter()
            torch.add(x, 1, out=got)
            torch.cuda.synchronize()
            best = max(best, 4 * count / (time.perf_counter() - began) / 1e9)
        return best, int(got.to(torch.int64).sum()) - count
with torch.cuda.device(1):
    theirs, sum_there = rate(x)
    own, _ = rate(torch.zeros(count, dtype=torch.int32, device="cuda:1"))
    refused = ""
    if PEER:
        try:
            x.fill_(1)
            torch.cuda.synchronize()
        except RuntimeError as error:
            refused = str(error).split(chr(10))[0].replace(" ", "_")
ready(sum_there, f"{theirs:.0f}", f"{own:.0f}", refused)
"""


def program(env, text, mib):
    env = dict(env, PYTHONPATH=os.path.join(ROOT, "python"))
    process = subprocess.Popen(stack.masked([sys.executable, "-c", COMMON + text, str(mib)]), env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    words = process.stdout.readline().split()
    if words[:1] != ["ready"]:
        raise stack.Failed(f"a program ended with {process.wait(60)}")
    return process, words[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--mib", type=int, default=1024)
    words = parser.parse_args()
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout.count("GPU ")
    if gpus < 2:
        print(f"peer_tensors: {gpus} GPU: nothing to map from one to the other")
        return 77
    wrong, programs = [], []
    with stack.Stack(words.dist, "nvidia", None, stack.library_folders(), ("--set", "store.bytes=8GiB"), pin=False) as s:
        try:
            owner, said = program(s.env(), OWNER, words.mib)
            programs.append(owner)
            for peer in (True, False):
                reader, got = program(s.env(), READER.replace("PEER", str(peer)), words.mib)
                programs.append(reader)
                copies = sum(value for name, value in s.metrics().items() if name.startswith("vcuda_agent_tensor_replicas"))
                print(f"peer={peer}: sum {got[0]}, owner's {said[0]}; read at {got[1]} GB/s, own memory at {got[2]}; copies {copies:.0f}; "
                      f"a write: {' '.join(got[3:]) or '-'}", flush=True)
                wrong += [f"peer={peer}: the sum"] * (got[0] != said[0])
                wrong += [f"peer={peer}: {copies} copies"] * (copies != (0 if peer else 1))
                wrong += ["a write went through"] * (peer and "memory_access" not in "".join(got[3:]))
        finally:
            for process in programs:
                process.stdin.close()
                process.wait(60)
    print("\n".join(wrong) or "peer_tensors: right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
