# SPDX-License-Identifier: Apache-2.0
"""The store and its index in Redis: programs through the whole stack, commands by redis-cli alone, losses."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from redis_server import Redis, eventually, held  # noqa: E402
from tensors import Failed, store_of, tensors, wait_for  # noqa: E402


@contextlib.contextmanager
def joined(*flags, **more):
    """A stack whose store has an index, when that is filled."""
    redis = Redis()
    try:
        with tensors("--set", f"store.registry={redis.address}", "--set", "store.node=n1", *flags, **more) as s:
            s.redis = redis
            eventually("the index is filled", lambda: redis.cli("EXISTS", "node:n1") == "1")
            yield s
    finally:
        redis.close()


def hash_of(redis, name):
    client = redis.client()
    try:
        return client.hash("tensor:" + name)
    finally:
        client.close()


def shown(agent, name, what):
    return next(t[what] for t in json.loads(agent.http("/v1/tensors"))["tensors"] if t["name"] == name)


def holders_of(agent, name):
    return shown(agent, name, "holders")


def test_what_programs_make_stands_in_redis():
    with joined() as s:
        owner, reader = s.program(), s.program()
        owner("a = vcuda.create('a', 'f32', (2, 3))")
        assert hash_of(s.redis, "a")["refcount"] == "1"
        owner("fill(a, 7)")
        owner("a.seal()")
        reader("a = vcuda.get('a')")
        assert reader("every(a)") == 7
        got = hash_of(s.redis, "a")
        assert (got["dtype"], got["shape"], got["bytes"], got["refcount"]) == ("f32", "[2,3]", "24", "2"), got
        eventually("sealed", lambda: hash_of(s.redis, "a")["state"] == "sealed")
        owner.end()
        eventually("its holder has left", lambda: hash_of(s.redis, "a")["refcount"] == "1")
        reader.end()
        eventually("nobody has it", lambda: s.redis.cli("EXISTS", "tensor:a") == "0")


def test_redis_cli_alone_makes_a_tensor_that_a_program_maps():
    with joined() as s:
        command = {"op": "create", "name": "X", "dtype": "u8", "shape": [4096], "device": 0, "reply": "answers"}
        s.redis.cli("LPUSH", "tensor:cmd", json.dumps(command))
        answer = json.loads(eventually("an answer", lambda: s.redis.cli("RPOP", "answers")))
        assert answer["status"] == "made", answer
        program = s.program()
        program("x = vcuda.get('X', write=True)")
        program("fill(x, 3)")
        assert program("every(x)") == 3
        s.redis.cli("LPUSH", "tensor:cmd", json.dumps({"op": "delete", "name": "X", "reply": "answers"}))
        answer = json.loads(eventually("an answer", lambda: s.redis.cli("RPOP", "answers")))
        assert "hold" in answer["error"], answer
        program.end()
        eventually("its holder has left", lambda: hash_of(s.redis, "X")["refcount"] == "0")
        s.redis.cli("LPUSH", "tensor:cmd", json.dumps({"op": "delete", "name": "X"}))
        eventually("it is deleted", lambda: s.redis.cli("EXISTS", "tensor:X") == "0")
        late = s.program()
        late.fails("vcuda.get('X')", 500)
        late.end()


def test_a_process_of_the_node_holds_what_a_command_made():
    """The store is confined, and sees other processes all the same when they end."""
    with joined() as s:
        sleeper = subprocess.Popen(["sleep", "1000"])
        try:
            command = {"op": "create", "name": "P", "dtype": "u8", "shape": [16], "pid": sleeper.pid, "reply": "answers"}
            s.redis.cli("LPUSH", "tensor:cmd", json.dumps(command))
            answer = json.loads(eventually("an answer", lambda: s.redis.cli("RPOP", "answers")))
            assert (answer.get("owner_pid"), answer.get("refcount")) == (sleeper.pid, 1), answer
            store = store_of(s.agent)
            os.kill(store, signal.SIGKILL)
            wait_for(lambda: store_of(s.agent) != store, 30, "there is another store")
            s.redis.cli("LPUSH", "tensor:cmd", json.dumps({"op": "get", "name": "P", "reply": "answers"}))
            answer = json.loads(eventually("an answer", lambda: s.redis.cli("RPOP", "answers")))
            assert (answer["status"], answer.get("refcount")) == ("ok", 1), answer
        finally:
            sleeper.kill()
            sleeper.wait()
        eventually("its process is gone", lambda: s.redis.cli("EXISTS", "tensor:P") == "0")


def test_redis_away_is_802_and_what_is_held_stays():
    with joined() as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (4096,))")
        owner("fill(a, 5)")
        s.redis.kill()
        for line in "vcuda.create('b', 'u8', (4096,))", "vcuda.get('a')":
            began = time.monotonic()
            owner.fails(line, 802, "Redis")
            held(line + " fails", began, 1)
        assert owner("every(a)") == 5
        s.redis.start()
        began = time.monotonic()
        eventually("the registry is whole", lambda: hash_of(s.redis, "a").get("refcount") == "1")
        held("the registry is whole", began, 5)
        owner("b = vcuda.create('b', 'u8', (4096,))")
        s.redis.cli("FLUSHALL")
        began = time.monotonic()
        eventually("the registry is whole", lambda: hash_of(s.redis, "a").get("refcount") == "1" and
                   hash_of(s.redis, "b").get("refcount") == "1")
        held("the registry is whole", began, 5)
        assert owner("every(a)") == 5
        owner.end()


def test_keys_of_the_index_that_are_something_else_are_made_anew():
    with joined() as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (4096,)); fill(a, 5)")
        for i, key in enumerate(("tensor-of:n1", "tensor-nodes", "tensor-copies:n1", "tensor-lost:n1", "tensor:cmd", "tensor-cmd:n1",
                                 "tensor-taken:n1")):
            s.redis.cli("SET", key, "x")  # whatever it was
            s.redis.cli("HSET", "node:n1", "token", "x")  # and somebody enters

            def made():
                try:
                    return owner(f"b = vcuda.create('b{i}', 'u8', (16,), keep=True)") is None
                except Failed as error:
                    assert error.status == 802, error
            eventually(f"{key} is right again", made)
            eventually("and the index is whole", lambda: hash_of(s.redis, "a").get("refcount") == "1")
            assert s.redis.cli("TYPE", key) != "string", key
        s.redis.cli("LPUSH", "tensor:cmd", json.dumps({"op": "get", "name": "a", "reply": "answers"}))
        answer = json.loads(eventually("an answer", lambda: s.redis.cli("RPOP", "answers")))
        assert answer["status"] == "ok", answer
        assert owner("every(a)") == 5
        owner.end()


def test_a_store_that_is_killed_keeps_its_index():
    with joined() as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (4096,))")
        owner("fill(a, 5)")
        epoch = hash_of(s.redis, "a")["epoch"]
        store = store_of(s.agent)
        os.kill(store, signal.SIGKILL)
        wait_for(lambda: store_of(s.agent) != store, 30, "there is another store")
        late = s.program()
        late("a = vcuda.get('a')")
        assert late("every(a)") == 5
        eventually("both hold it", lambda: hash_of(s.redis, "a")["refcount"] == "2")
        assert hash_of(s.redis, "a")["epoch"] == epoch
        late.end()
        owner.end()


def test_a_name_is_one_agents():
    with joined() as s:
        with tensors("--set", f"store.registry={s.redis.address}", "--set", "store.node=n2") as other:
            eventually("the index is filled", lambda: s.redis.cli("EXISTS", "node:n2") == "1")
            owner, stranger = s.program(), other.program()
            owner("a = vcuda.create('a', 'u8', (4096,))")
            stranger.fails("vcuda.create('a', 'u8', (4096,))", 101, "n1")
            stranger.fails("vcuda.get('a')", 101, "n1")
            stranger("b = vcuda.create('b', 'u8', (4096,))")
            owner.end()
            eventually("nobody has it", lambda: s.redis.cli("EXISTS", "tensor:a") == "0")
            stranger("a = vcuda.create('a', 'u8', (4096,))")
            assert hash_of(s.redis, "a")["node"] == "n2"
            stranger.end()


def test_an_agent_that_starts_anew_with_its_gpus_in_another_order():
    """A tensor lies on the GPU of its UUID, whatever that GPU's number is; what another start had is gone, or said to be lost."""
    def on_each(s, name):
        program = s.program()
        for device in (0, 1):
            program(f"t{device} = vcuda.create('{name}{device}', 'u8', (4096,), device={device}, keep=True)")
            program(f"t{device}.seal()")
        program.end()
        got = [hash_of(s.redis, f"{name}{device}") for device in (0, 1)]
        assert [one["device"] for one in got] == ["0", "1"] and all(one["node"] == "n1" for one in got), got
        gpus = [gpu["uuid"] for gpu in json.loads(s.agent.http("/v1/gpus"))["gpus"]]
        assert [one["gpu_uuid"] for one in got] == gpus, (got, gpus)
        return gpus
    two = {"VCUDA_SOFTGPU_DEVICES": "2"}
    with joined(agent_env=two) as s:
        first = on_each(s, "a")
        os.kill(s.agent.pid, signal.SIGKILL)
        with tensors("--set", f"store.registry={s.redis.address}", "--set", "store.node=n1",
                     agent_env={**two, "CUDA_VISIBLE_DEVICES": "1,0"}) as again:
            again.redis = s.redis
            eventually("what it had is gone", lambda: all(
                hash_of(s.redis, f"a{device}").get("state", "lost") == "lost" for device in (0, 1)))
            eventually("the index is filled", lambda: s.redis.cli("HEXISTS", "node:n1", "of") == "1")
            program = again.program()
            for device in (0, 1):
                program.fails(f"vcuda.get('a{device}', device={device})", 500)
            program.end()
            assert on_each(again, "b") == first[::-1], first
            store = store_of(again.agent)
            os.kill(store, signal.SIGKILL)
            wait_for(lambda: store_of(again.agent) != store, 30, "there is another store")
            program = again.program()
            for device in (0, 1):
                program(f"vcuda.get('b{device}', device={device})")
                assert hash_of(s.redis, f"b{device}")["gpu_uuid"] == first[1 - device]
            program.end()


def test_what_is_sealed_while_redis_is_asked_is_mapped_to_be_read():
    with joined() as s:
        owner, writer = s.program(), s.program()
        for name in ("a", "b", "c", "d", "e"):
            owner(f"{name} = vcuda.create('{name}', 'i32', (64,)); fill({name}, 1)")
            os.kill(s.redis.process.pid, signal.SIGSTOP)
            try:
                writer.send(f"t = vcuda.get('{name}', write=True)")
                wait_for(lambda: holders_of(s.agent, name) == 2, 30, "the store holds it for the writer")
                owner.send(f"{name}.seal()")
                wait_for(lambda: shown(s.agent, name, "state") == "sealed", 30, "the store has sealed it")
            finally:
                os.kill(s.redis.process.pid, signal.SIGCONT)
            owner.answer()
            try:
                writer.answer()
            except Failed as error:
                assert error.status == 802, error  # a slow machine: Redis was away for too long
                continue
            assert not writer("t.writable")
            writer.fails("put(t, 7)", 700)
            assert owner(f"every({name})") == 1
            return
        raise AssertionError("Redis was away for too long, each time")
