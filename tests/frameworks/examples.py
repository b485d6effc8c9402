#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of frameworks in front of the software GPU: are their numbers the CPU's?

    tests/frameworks/examples.py [--build BUILD] [FRAMEWORK=PYTHON …]

PYTHON has that framework; one that is not named is skipped.  Each example runs small; its reference() says what is
right, or, where it has none (JAX), the same program on the CPU without vcuda.
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = {"cuda_python": "cuda-python/horner", "cupy": "cupy/elementwise", "jax": "jax/transformer_training",
            "numba": "numba/histogram", "onnxruntime": "onnxruntime/convolution", "triton": "triton/softmax"}
CLOSE = 2e-3  # float32, summed up in another order
SECONDS = 300
CODE = """import importlib, json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
example = importlib.import_module(os.path.basename(sys.argv[1]))
here = sys.argv[2] == "here" and hasattr(example, "reference")
print("found", json.dumps(example.reference(True) if here else example.build(small=True)()))"""


def answer_of(command, **more):
    got = subprocess.run(command, env=dict(os.environ, **more), capture_output=True, text=True, timeout=SECONDS)
    for line in got.stdout.splitlines():
        if line.startswith("found "):
            return json.loads(line[6:])
    raise RuntimeError(f"status {got.returncode}: {(got.stderr.strip().splitlines() or ['-'])[-1][:200]}")


def different(there, here):
    return [f"{name}: {there.get(name)}, on the CPU {value}" for name, value in here.items()
            if not abs(there.get(name, float("nan")) - value) <= CLOSE * max(1, abs(value))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("pythons", nargs="*", metavar="FRAMEWORK=PYTHON")
    options = parser.parse_args()
    pythons = dict(one.split("=", 1) for one in options.pythons)
    passed = failed = skipped = 0
    for name, path in EXAMPLES.items():
        if name not in pythons:
            print(f"skip  {name:14}no Python for it")
            skipped += 1
            continue
        python, example = os.path.abspath(pythons[name]), os.path.join(HERE, "..", "..", "examples", path)
        home = os.path.join(os.path.dirname(os.path.dirname(python)), "cuda")
        more = {"CUDA_HOME": home} if os.path.isdir(home) else {}
        vcuda = [os.path.join(options.build, "bin", "vcuda"), "run", "--software", "--"]
        with open(example + ".py", encoding="utf-8") as file:  # PyTorch wants CUDA's libraries on the CPU, too
            own = vcuda if "def reference(" in file.read() else []
        try:
            there = answer_of([*vcuda, python, "-c", CODE, example, "there"], XLA_PYTHON_CLIENT_PREALLOCATE="false", **more)
            bad = different(there, answer_of([*own, python, "-c", CODE, example, "here"], JAX_PLATFORMS="cpu", **more))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            bad = [str(error)]
        passed, failed = passed + (not bad), failed + bool(bad)
        print(f"{'fail' if bad else 'pass'}  {name:14}{'; '.join(bad) or ', '.join(f'{k} {v:g}' for k, v in there.items())}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
