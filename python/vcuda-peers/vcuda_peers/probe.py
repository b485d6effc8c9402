# SPDX-License-Identifier: Apache-2.0
"""python -m vcuda_peers.probe '{"free": [BYTES, ...], "devices": N, "full": true}': the known-answer test,
under `vcuda run`.

Numbers are hashed into memory, and out of it into others that this CPU knows: one number in each 2 MiB of all
that the GPU claims to have free (full), and a dense piece.  Prints JSON: {"bad": sentence}, or figures."""
import ctypes
import json
import pathlib
import secrets
import statistics
import sys
import time

import numpy

from .errors import SHORT, mib, shown

SPARSE, CHUNK, DENSE, PIECES, THREADS = 2 << 20, 256 << 20, 4 << 20, 16, 256
OUT_OF_MEMORY = 2
PTX = pathlib.Path(__file__).with_name("probe.ptx")
STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # of SplitMix64


class Bad(Exception):
    pass


def mix(x):
    for shift, factor in STEPS:
        x = (x ^ (x >> numpy.uint64(shift))) * numpy.uint64(factor)
    return x


class Gpu:
    def __init__(self, device):
        self.cuda, self.name = ctypes.CDLL("libcuda.so.1"), f"GPU {device}"
        context, module, self.answer = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self("cuModuleLoadData", ctypes.byref(module), PTX.read_bytes())
        self("cuModuleGetFunction", ctypes.byref(self.answer), module, b"answer")
        self.free, self.had = self.memory(), 0

    def __call__(self, call, *arguments, fine=(0,)):
        status = getattr(self.cuda, call)(*arguments)
        if status == OUT_OF_MEMORY and status not in fine:  # so the worker ended our session, at any call
            raise Bad(f"{self.name}: memory that its agent granted is not there "
                      f"({call} failed with error {status})")
        if status not in fine:
            raise Bad(f"{self.name}: {call} failed with error {status}")
        return status

    def memory(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self, count):
        """An address; None where others took the memory meanwhile."""
        at = ctypes.c_uint64()
        status = self("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(count), fine=(0, OUT_OF_MEMORY))
        if not status:
            self.had += count
        elif self.memory() >= count:
            raise Bad(f"{self.name}: of {mib(self.free)} that it says are free {mib(self.had)} {SHORT}")
        return None if status else at.value

    def launch(self, to, source, stride, first, count):
        words = [ctypes.c_uint64(word) for word in (to, source, stride, first, count)]
        pointers = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        blocks = -(-count // THREADS)
        self("cuLaunchKernel", self.answer, blocks, 1, 1, THREADS, 1, 1, 0, None, pointers, None)

    def read(self, at, count):
        got = numpy.empty(count, numpy.uint64)
        self("cuMemcpyDtoH_v2", ctypes.c_void_p(got.ctypes.data), ctypes.c_uint64(at),
             ctypes.c_size_t(8 * count))
        return got

    def test(self, claim, full):
        """(bytes that were had, round trip, rate); Bad. None: its users have the memory."""
        if full and claim and self.free < claim * 15 // 16:
            raise Bad(f"{self.name} claims {mib(claim)} of free memory and has {mib(self.free)}")
        part = max(min(DENSE, self.free // 32) // (8 * PIECES * THREADS), 1) * THREADS  # numbers of a piece
        dense = 8 * PIECES * part
        out, piece = self.take(dense), self.take(dense)
        if not (out and piece):
            return None
        runs = [(piece + 8 * k * part, 8, part) for k in range(PIECES)]
        wanted = self.free * 15 // 16 // SPARSE * SPARSE if full else 0
        while self.had < wanted:
            count = min(CHUNK, wanted - self.had)
            at = self.take(count)
            if not at:
                break
            at += secrets.randbelow(min(SPARSE, count) // 8) * 8
            runs.append((at, SPARSE, max(count // SPARSE, 1)))
        runs, key, wrong = [(*run, secrets.randbits(63)) for run in runs], secrets.randbits(63), 0
        for at, stride, count, first in runs:
            self.launch(at, 0, stride, first, count)
        for at, stride, count, first in runs:
            self.launch(out, at, stride, key, count)
            index = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(first)
            wrong += int((self.read(out, count) != mix(mix(index) ^ numpy.uint64(key))).sum())
        if wrong:
            raise Bad(f"{self.name} computed {wrong} of {sum(run[2] for run in runs)} numbers wrong")
        return self.had if full else 0, *self.speed(out, dense)

    def speed(self, at, count):
        trips = []
        for _ in range(20):
            began = time.perf_counter()
            self.read(at, 1)
            trips.append(time.perf_counter() - began)
        began = time.perf_counter()
        self.read(at, count // 8)
        return round(statistics.median(trips) * 1e6), round(count / (time.perf_counter() - began))


def test(claim):
    cuda, count, name = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(128)
    status = (cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
              or cuda.cuDeviceGetName(name, 128, 0))
    if status:
        raise Bad(f"its driver does not start: error {status}")
    if count.value != claim["devices"]:
        raise Bad(f"it claims {claim['devices']} GPUs and has {count.value}")
    free = claim["free"] or [0] * count.value
    tested = [Gpu(device).test(free[device], claim["full"]) for device in range(count.value)]
    had, trips, rates = zip(*filter(None, tested)) if any(tested) else ([0], [0], [0])
    return {"gpu": shown(name.value.decode(errors="replace")), "memory_bytes": sum(had),
            "round_trip_us": max(trips), "bytes_per_second": min(rates)}


if __name__ == "__main__":
    try:
        print(json.dumps(test(json.loads(sys.argv[1]))))
    except Bad as bad:
        print(json.dumps({"bad": str(bad)}))
