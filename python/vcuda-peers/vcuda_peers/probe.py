# SPDX-License-Identifier: Apache-2.0
"""python -m vcuda_peers.probe '{"free": [BYTES, ...], "devices": N, "full": true}': the known-answer test,
under `vcuda run`.

Numbers are hashed into memory, and out of it into others that this CPU knows: one number in each 2 MiB of all
that the GPU claims to have free (full), and a dense piece.  Prints JSON: {"bad": sentence}, or figures."""
import ctypes
import json
import secrets
import statistics
import sys
import time

import numpy

from .said import mib, shown

SPARSE, CHUNK, DENSE, PIECES, THREADS = 2 << 20, 256 << 20, 4 << 20, 16, 256
OUT_OF_MEMORY = 2
STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # of SplitMix64
MIX = "".join(f"shr.u64 %u, %x, {shift}; xor.b64 %x, %x, %u; mul.lo.u64 %x, %x, 0x{factor:x};\n"
              for shift, factor in STEPS)
# from == 0: to[i * stride] = mix(first + i), else to[i] = mix(from[i * stride] ^ first)
PTX = f""".version 7.0
.target sm_50
.address_size 64
.visible .entry answer(
.param .u64 to, .param .u64 from, .param .u64 stride, .param .u64 first, .param .u64 count) {{
.reg .b64 %to, %from, %stride, %x, %i, %u, %count; .reg .b32 %t, %b, %n; .reg .pred %p;
ld.param.u64 %count, [count]; ld.param.u64 %to, [to]; ld.param.u64 %from, [from];
ld.param.u64 %stride, [stride]; ld.param.u64 %x, [first];
mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %t, %b, %n, %t; cvt.u64.u32 %i, %t;
setp.ge.u64 %p, %i, %count; @%p ret;
setp.ne.u64 %p, %from, 0;
@%p bra out;
add.u64 %x, %x, %i;
mad.lo.u64 %to, %i, %stride, %to;
bra mix;
out: mad.lo.u64 %from, %i, %stride, %from; ld.global.u64 %u, [%from];
xor.b64 %x, %x, %u; mad.lo.u64 %to, %i, 8, %to;
mix: {MIX} st.global.u64 [%to], %x; ret;
}}
"""


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
        self("cuModuleLoadData", ctypes.byref(module), PTX.encode())
        self("cuModuleGetFunction", ctypes.byref(self.answer), module, b"answer")

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

    def allocate(self, count):
        """An address; None where there is no memory."""
        at = ctypes.c_uint64()
        status = self("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(count), fine=(0, OUT_OF_MEMORY))
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
        """Figures; Bad. A GPU whose memory its users have cannot be tested and is as it was."""
        free = self.memory()
        if full and claim and free < claim * 15 // 16:
            raise Bad(f"{self.name} claims {mib(claim)} of free memory and has {mib(free)}")
        dense = max(min(DENSE, free // 32) // (8 * PIECES * THREADS), 1) * 8 * PIECES * THREADS
        out, piece = self.allocate(dense), self.allocate(dense)
        if out is None or piece is None:
            if self.memory() >= 2 * dense:
                raise Bad(f"{self.name}: of {mib(free)} that it says are free nothing could be had")
            return None
        runs = [(piece + k * (dense // PIECES), 8, dense // PIECES // 8) for k in range(PIECES)]
        wanted, had = free * 15 // 16 - 2 * dense if full else 0, 0
        while had < wanted:
            count = min(CHUNK, wanted - had)
            at = self.allocate(count)
            if at is None and self.memory() < count:
                break  # others took it meanwhile
            if at is None:
                raise Bad(f"{self.name}: of {mib(free)} that it says are free {mib(had + 2 * dense)} "
                          "could be had")
            if count >= SPARSE:
                runs.append((at + secrets.randbelow(SPARSE // 8) * 8, SPARSE, count // SPARSE))
            had += count
        seed, key = secrets.randbits(63), secrets.randbits(63)
        first = seed
        for at, stride, count in runs:
            self.launch(at, 0, stride, first, count)
            first += count
        first, wrong, total = seed, 0, 0
        for at, stride, count in runs:
            self.launch(out, at, stride, key, count)
            index = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(first)
            wrong += int((self.read(out, count) != mix(mix(index) ^ numpy.uint64(key))).sum())
            first, total = first + count, total + count
        if wrong:
            raise Bad(f"{self.name} computed {wrong} of {total} numbers wrong")
        return {"memory_bytes": had + 2 * dense if full else 0, **self.speed(out, dense)}

    def speed(self, at, count):
        trips = []
        for _ in range(20):
            began = time.perf_counter()
            self.read(at, 1)
            trips.append(time.perf_counter() - began)
        began = time.perf_counter()
        self.read(at, count // 8)
        return {"round_trip_us": round(statistics.median(trips) * 1e6),
                "bytes_per_second": round(count / (time.perf_counter() - began))}


def test(claim):
    cuda, count, name = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(128)
    status = (cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
              or cuda.cuDeviceGetName(name, 128, 0))
    if status:
        raise Bad(f"its driver does not start: error {status}")
    if count.value != claim["devices"]:
        raise Bad(f"it claims {claim['devices']} GPUs and has {count.value}")
    free = claim["free"] or [0] * count.value
    got = [Gpu(device).test(free[device], claim["full"]) for device in range(count.value)]
    got = [one for one in got if one]
    return {"gpu": shown(name.value.decode(errors="replace")),
            "memory_bytes": sum(one["memory_bytes"] for one in got),
            "round_trip_us": max((one["round_trip_us"] for one in got), default=0),
            "bytes_per_second": min((one["bytes_per_second"] for one in got), default=0)}


if __name__ == "__main__":
    try:
        print(json.dumps(test(json.loads(sys.argv[1]))))
    except Bad as bad:
        print(json.dumps({"bad": str(bad)}))
