#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a machine with two GPUs: Hugging Face's models, a Trainer, gradient checkpointing and pieces of a batch with models
that vcuda_peers lays over both (tests/peers/frameworks.py), natively and over two agents with one GPU each.

    tests/gpu/peer_models.py [--dist .dist]

Exit status 77 where there is one GPU only, 0 if both ways end well.
"""
import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
import stack  # noqa: E402
from split import two_agents  # noqa: E402


def run(name, env, mask):
    command = [sys.executable, os.path.join(ROOT, "tests", "peers", "frameworks.py")]
    env = dict(env, PYTHONPATH=os.path.join(ROOT, "python", "vcuda-peers"), CUBLAS_WORKSPACE_CONFIG=":4096:8")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command += [folder, "gpus"]
        got = subprocess.run(stack.masked(command) if mask else command, env=env, capture_output=True, text=True, check=False,
                             timeout=200, stdin=subprocess.DEVNULL)
    right = got.returncode == 0 and got.stdout.splitlines()[-1:] == ["right"]
    print(f"{name:12}{'right' if right else 'FAILED'}  {time.monotonic() - began:.0f} s", flush=True)
    if not right:
        print((got.stdout + got.stderr)[-4000:], flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    words = parser.parse_args()
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout.count("GPU ")
    if gpus < 2:
        print(f"peer_models: {gpus} GPU: nothing to lay over")
        return 77
    with contextlib.ExitStack() as on_exit:
        ways = [run("native", os.environ, False), run("two agents", two_agents(on_exit, words), True)]
    return 0 if all(ways) else 1


if __name__ == "__main__":
    sys.exit(main())
