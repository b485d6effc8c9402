#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a machine with a GPU: PyTorch, CuPy and Numba see a tensor with a name without a copy.

    tests/gpu/views.py [--dist .dist] [--driver nvidia|software] [--only torch,cupy,numba] [--no-mask]

Each in a process of its own, through vcuda with /dev/nvidia* hidden: by each way that it has (`.torch()`, DLPack,
`__cuda_array_interface__`) it has the tensor's own address, what it writes a second process reads by the same ways once
it is sealed, and a kernel of its own that writes there then is an error and changes nothing.  A framework that this Python
lacks is skipped.  Exit status 1 if one is wrong, 77 if all are skipped.
"""
import argparse
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NAMES = ("torch", "cupy", "numba")
SHAPE = (300, 7)
WORDS = SHAPE[0] * SHAPE[1]
LACKS = 77
KERNELS = os.environ.get("VIEWS_KERNELS")


class Torch:
    def __init__(self):
        import torch
        self.torch, self.version = torch, torch.__version__
        self.ways = {".torch()": lambda t: t.torch(), "from_dlpack": torch.from_dlpack,
                     "as_tensor": lambda t: torch.as_tensor(t, device="cuda")}

    def address(self, view):
        return view.data_ptr()

    def write(self, view):
        view.copy_(self.torch.arange(WORDS, dtype=self.torch.float32, device="cuda").reshape(SHAPE) * 0.5)
        self.torch.cuda.synchronize()

    def read(self, view):
        return (view + 1).cpu().numpy() - 1

    def spoil(self, view):
        view.add_(1)
        self.torch.cuda.synchronize()


class Cupy:
    """Its kernels are machine code, which the software GPU refuses: there it copies."""

    def __init__(self):
        import cupy
        import numpy
        self.cupy, self.numpy, self.version = cupy, numpy, cupy.__version__
        self.ways = {"asarray": cupy.asarray, "from_dlpack": cupy.from_dlpack}

    def address(self, view):
        return view.data.ptr

    def write(self, view):
        if KERNELS:
            view[...] = self.cupy.arange(WORDS, dtype="f4").reshape(SHAPE) * self.cupy.float32(0.5)
        else:
            view.set((self.numpy.arange(WORDS) * 0.5).reshape(SHAPE).astype("f4"))
        self.cupy.cuda.runtime.deviceSynchronize()

    def read(self, view):
        return (view + 1).get() - 1 if KERNELS else view.get()

    def spoil(self, view):
        if KERNELS:
            view += 1
        else:
            view.set(self.numpy.ones(SHAPE, "f4"))
        self.cupy.cuda.runtime.deviceSynchronize()


class Numba:
    def __init__(self):
        import numba
        import numpy
        from numba import cuda
        self.cuda, self.numpy, self.version = cuda, numpy, numba.__version__
        self.ways = {"as_cuda_array": cuda.as_cuda_array}

    def address(self, view):
        return view.device_ctypes_pointer.value

    def write(self, view):
        view.copy_to_device((self.numpy.arange(WORDS, dtype="f4") * 0.5).reshape(SHAPE).astype("f4"))
        self.cuda.synchronize()

    def read(self, view):
        return view.copy_to_host()

    def spoil(self, view):
        view.copy_to_device(self.numpy.ones(SHAPE, "f4"))
        self.cuda.synchronize()


KINDS = dict(zip(NAMES, (Torch, Cupy, Numba)))


def right(kind, view):
    """Half of its place, in each word."""
    got = kind.read(view).ravel()
    return len(got) == WORDS and all(float(got[i]) == 0.5 * i for i in range(WORDS))


def child(name, role):
    try:
        kind = KINDS[name]()
    except ImportError as error:
        print(f"skip {name}: {error}", flush=True)
        sys.exit(LACKS)
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import vcuda
    # The framework has a context before it is asked.
    seen = f"seen-{name}"
    t = vcuda.create(seen, "f32", SHAPE, keep=True) if role == "owner" else vcuda.get(seen)
    # PyTorch takes no read-only memory by the CUDA array interface.
    views = {way: see(t) for way, see in kind.ways.items() if t.writable or way != "as_tensor"}
    for way, view in views.items():
        assert kind.address(view) == t.data, f"{way}: 0x{kind.address(view):x} is not the tensor's 0x{t.data:x}"
        assert tuple(view.shape) == SHAPE, f"{way}: {view.shape}"
    if role == "owner":
        kind.write(next(iter(views.values())))
    for way, view in views.items():
        assert right(kind, view), f"{way}: {role} does not read what was written"
    if role == "owner":
        t.seal()
        subprocess.run([sys.executable, os.path.abspath(__file__), "--child", name, "--role", "reader"], check=True)
        again = vcuda.get(seen)
        assert right(kind, next(iter(kind.ways.values()))(again)), "the reader's write changed it"
        vcuda.delete(seen)
        print(f"pass {name} {kind.version}: {', '.join(views)}", flush=True)
        return
    try:
        kind.spoil(next(iter(views.values())))
    except Exception:
        os._exit(0)  # its context is broken, as it has to be
    raise AssertionError("a write to what is sealed was no error")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--driver", default="nvidia", choices=("nvidia", "software"))
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--no-mask", action="store_true", help="/dev/nvidia* stays (without root)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--role", default="owner", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.role)
        return
    sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
    import stack
    wrong = passed = 0
    with stack.Stack(options.dist, options.driver, options=["--set", "store.bytes=256MiB"], pin=False) as served:
        for name in options.only.split(","):
            command = [sys.executable, os.path.abspath(__file__), "--child", name]
            if options.driver == "nvidia" and not options.no_mask:
                command = stack.masked(command)
            env = dict(served.env(), **({"VIEWS_KERNELS": "1"} if options.driver == "nvidia" else {}))
            got = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
            print(got.stdout, end="")
            if got.returncode not in (0, LACKS):
                print(f"fail {name}: {got.stderr[-1500:]}")
                wrong += 1
            passed += not got.returncode
    sys.exit(1 if wrong else 0 if passed else LACKS)


if __name__ == "__main__":
    main()
