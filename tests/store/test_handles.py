# SPDX-License-Identifier: Apache-2.0
"""Tensors as the 64 bytes that Redis has: programs that know Redis and cudaIpcOpenMemHandle, and nothing of vcuda."""
import json
import os

from redis_server import Redis, eventually
from stack import BUILD, App, folder
from tensors import Program
from test_limits import two_tenants
from test_registry import hash_of, joined

READER = os.path.join(BUILD, "store", "redis_reader")


def reader(s, name, what="read"):
    return s.app(s.redis.path, name, what, program=READER)


def test_a_program_that_knows_redis_alone_reads_what_another_wrote():
    with joined() as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (3 << 20,), keep=True); fill(a, 7); a.seal()")
        one = reader(s, "a")
        one.line("^right: 3145728 bytes of 7", 30)
        eventually("it is a holder", lambda: hash_of(s.redis, "a")["refcount"] == "2")
        # The name goes; what is open stays.
        owner("vcuda.delete('a'); a.close()")
        owner("b = vcuda.create('a', 'u8', (3 << 20,)); fill(b, 8)")
        one.close_stdin()
        one.line("^still: 3145728 bytes of 7", 30)
        one.right()
        owner.end()


def test_what_redis_made_is_written_by_one_and_read_by_another():
    with joined() as s:
        command = {"op": "create", "name": "X", "dtype": "f32", "shape": [1000], "device": 0, "reply": "answers"}
        s.redis.cli("LPUSH", "tensor:cmd", json.dumps(command))
        answer = json.loads(eventually("an answer", lambda: s.redis.cli("RPOP", "answers")))
        assert answer["status"] == "made", answer
        writer = reader(s, "X", "write")
        writer.line("^wrote: 4000 bytes of 9", 30)
        writer.right()
        one = reader(s, "X")
        one.line("^right: 4000 bytes of 9", 30)
        one.close_stdin()
        one.right()


def test_forged_and_stale_handles_are_refused():
    with joined("--set", "store.pool_bytes=64MiB") as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (4096,)); fill(a, 7); a.seal()")
        forger = reader(s, "a", "forge")
        forger.line("^forged: none opens", 60)
        forger.right()
        # Sealed, nobody writes it, by whichever way it came.
        writer = reader(s, "a", "write")
        assert writer.wait(60), "a sealed tensor was written"
        assert owner("every(a)") == 7
        # The pool's memory keeps its id, but not the handle.
        client = s.redis.client()
        old = client("HGET", "tensor:a", "ipc_handle")
        owner("a.close()")
        eventually("it is gone", lambda: s.redis.cli("EXISTS", "tensor:a") == "0")
        owner("b = vcuda.create('b', 'u8', (4096,)); fill(b, 5)")
        assert client("HGET", "tensor:b", "ipc_handle")[8:24] == old[8:24], "the pool was not used"
        client("HSET", "tensor:stale", "ipc_handle", old, "bytes", "4096")
        client.close()
        late = reader(s, "stale")
        late.line("^error 1: cudaIpcOpenMemHandle", 30)
        assert late.wait(30) == 1
        owner.end()


def test_a_handle_is_worth_nothing_in_another_namespace():
    redis = Redis()
    try:
        with folder() as path:
            _, red, blue = two_tenants(path, "--set", f"store.registry={redis.address}", "--set", "store.node=n1")
            eventually("the index is filled", lambda: redis.cli("EXISTS", "node:n1") == "1")
            owner = Program(red.socket)
            owner("a = vcuda.create('a', 'u8', (4096,)); fill(a, 7)")
            for share in ("pass", "a.seal()"):
                owner(share)
                stranger = App(redis.path, "red/a", "read", program=READER, socket=blue.socket)
                stranger.line("^error 1: cudaIpcOpenMemHandle", 30)
                assert stranger.wait(30) == 1
            owner("vcuda.share('a', 'blue')")
            guest = App(redis.path, "red/a", "read", program=READER, socket=blue.socket)
            guest.line("^right: 4096 bytes of 7", 30)
            guest.close_stdin()
            guest.right()
            owner.end()
    finally:
        redis.close()
