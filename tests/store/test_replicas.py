# SPDX-License-Identifier: Apache-2.0
"""Replicas: sealed tensors that another agent copies once, and what is left when an agent, a copy or a card is lost."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from redis_server import Redis, eventually  # noqa: E402
from tensors import MIB, Program, bytes_of, children, folder, tensors, wait_for  # noqa: E402

from stack import BIN, freeze, soon  # noqa: E402
from test_limits import two_tenants  # noqa: E402

ANYWHERE = "127.0.0.0/8:*"


@contextlib.contextmanager
def agents(count=2, flags=(), each=(), more_of=(), redis=None, **more):
    """Stacks n1, n2, … with one index, which may dial each other. FLAGS: of all, EACH: of one, by number."""
    with contextlib.ExitStack() as stack:
        if not redis:
            redis = Redis()
            stack.callback(redis.close)
        made = []
        for i in range(1, count + 1):
            own = each[i - 1] if i <= len(each) else ()
            s = stack.enter_context(tensors(
                "--set", f"store.registry={redis.address}", "--set", f"store.node=n{i}", "--set", "store.address=127.0.0.1",
                "--peers", ANYWHERE,
                *flags, *own, **more, **(more_of[i - 1] if i <= len(more_of) else {})))
            s.redis = redis
            made.append(s)
        for i in range(1, count + 1):
            eventually("the index is filled", lambda: redis.cli("EXISTS", f"node:n{i}") == "1")
        yield made


def hash_of(redis, name):
    client = redis.client()
    try:
        return client.hash("tensor:" + name)
    finally:
        client.close()


def lost(*stacks):
    """As the alert VcudaTensorsLost counts them."""
    return sum(int(line.rsplit(None, 1)[1]) for s in stacks for line in s.agent.http("/metrics").splitlines()
               if line.startswith('vcuda_agent_tensor_events_total{event="lost"}'))


def copied(s, way, what="vcuda_agent_tensor_copied_bytes_total"):
    for line in s.agent.http("/metrics").splitlines():
        if line.startswith(f'{what}{{way="{way}"'):
            return int(line.rsplit(None, 1)[1])
    raise AssertionError(f"no {what}")


def upload(owner, name, size, seed=1, more="", keep=True):
    """A sealed tensor of SIZE bytes that look like no others, kept; its digest."""
    owner("import hashlib, random")
    owner(f"t = vcuda.create({name!r}, 'u8', ({size},), keep={keep}{more})")
    owner(f"b = random.Random({seed}).randbytes({size})")
    owner("upload(t, b)")
    owner("t.seal()")
    return owner("hashlib.sha256(b).hexdigest()")


def digest(program, variable="t"):
    program("import hashlib")
    return program(f"hashlib.sha256(download({variable})).hexdigest()")


def nothing_left(s, *states):
    """No memory of the store's but that of STATES, and no worker at a copy."""
    wait_for(lambda: not any(n for state, n in bytes_of(s.agent).items() if state not in states), 20,
             "no memory is left")


def test_a_get_elsewhere_copies_once():
    with agents() as (one, two):
        owner = one.program()
        size = 9 * MIB + 12345
        right = upload(owner, "w", size)
        reader = two.program()
        reader("t = vcuda.get('w')")
        assert digest(reader) == right
        assert copied(two, "in") == copied(one, "out") == size
        got = hash_of(one.redis, "w")
        assert (got["node"], got["replicas"], got["refcount"]) == ("n1", "n2", "2"), got
        # Another pod there, and one that asks again, have the same copy.
        late = two.program()
        late("t = vcuda.get('w')")
        assert digest(late) == right
        late("u = vcuda.get('w')")
        assert copied(two, "in") == size, "it was copied again"
        assert bytes_of(two.agent)["sealed"] == 10 * MIB
        assert "vcuda_agent_tensor_replicas 1\n" in two.agent.http("/metrics")
        assert [t["replica"] for t in json.loads(two.agent.http("/v1/tensors"))["tensors"]] == [True]
        shown = subprocess.run([f"{BIN}/vcuda", "tensors", "--agent", f"127.0.0.1:{two.agent.ports['control']}"],
                               capture_output=True, text=True, check=True)
        assert "\nreplica " in shown.stdout, shown
        # Nobody writes it; it is deleted where it is first.
        late.fails("vcuda.get('w', write=True)", 800)
        late.fails("vcuda.delete('w')", 101, "replica")
        # `create` of one that is there opens it, here too.
        late("v = vcuda.create('w', 'u8', (%d,))" % size)
        assert late("v.made") is False
        owner("vcuda.delete('w')")
        reader.end()
        late.fails("vcuda.get('w')", 500)
        late.end()
        owner.end()
        nothing_left(one)
        nothing_left(two)


def delays(there, listener, seconds):
    """Passes on what comes to LISTENER, a Unix socket, and back; on the way there it takes SECONDS."""
    def way(source, to, wait):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                time.sleep(wait)
                to.sendall(data)
        for end in source, to:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                near = listener.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                far.connect(there)
                threading.Thread(target=way, args=(near, far, seconds), daemon=True).start()
                threading.Thread(target=way, args=(far, near, 0), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


def test_who_gets_it_elsewhere_after_a_seal_finds_it_sealed():
    """Though the agent that has it comes to Redis slowly."""
    with folder() as path, contextlib.closing(Redis()) as redis, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path + "/slow")
        listener.listen()
        delays(redis.path, listener, 0.1)
        slowly = ("--set", f"store.registry=unix://{path}/slow")
        with agents(each=(slowly,), redis=redis) as (one, two):
            owner, reader = one.program(), two.program()
            right = upload(owner, "w", MIB)
            reader("t = vcuda.get('w')")
            assert digest(reader) == right
            reader.end()
            owner.end()


def test_what_only_a_replicas_holders_hold_goes_with_them():
    """Whose first has gone with its own last holder; whether it was told that it is the first, or is told later."""
    with agents() as (one, two):
        for told in True, False:
            owner, reader = one.program(), two.program()
            upload(owner, "w", MIB, keep=False)
            reader("t = vcuda.get('w')")
            owner.end()
            eventually("the replica is the first", lambda: hash_of(one.redis, "w").get("node") == "n2")
            if told:
                wait_for(lambda: [t["replica"] for t in json.loads(two.agent.http("/v1/tensors"))["tensors"]] == [False], 20,
                         "it is told")
            reader.end()
            nothing_left(two)
            nothing_left(one)
            eventually("the name is gone", lambda: one.redis.cli("EXISTS", "tensor:w") == "0")


def test_ten_at_once_copy_once():
    with agents() as (one, two):
        owner = one.program()
        size = 6 * MIB
        right = upload(owner, "w", size)
        readers = [two.program() for _ in range(10)]
        for reader in readers:
            reader.send("t = vcuda.get('w')")
        for reader in readers:
            reader.answer(60)
        assert copied(two, "in") == size
        assert {digest(reader) for reader in readers} == {right}
        assert bytes_of(two.agent)["sealed"] == size
        assert hash_of(one.redis, "w")["refcount"] == "11"
        for reader in readers:
            reader.end()
        owner.end()


def kill_agent(s):
    """All of it at once, as a node that loses its power."""
    for pid in (s.agent.pid, *children(s.agent.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_an_agent_that_is_killed():
    """Its tensors are lost, or another one's replica is the first, within 12 s; and a get elsewhere is right."""
    with agents(3) as (one, two, three):
        owner = one.program()
        right = upload(owner, "w", 3 * MIB)
        upload(owner, "alone", MIB)
        reader = two.program()
        reader("t = vcuda.get('w')")
        kill_agent(one)
        killed = time.monotonic()
        eventually("they are marked", lambda: hash_of(two.redis, "alone").get("state") == "lost" and
                   hash_of(two.redis, "w").get("node") == "n2", 20)
        soon(killed, 12, "they are marked")
        eventually("it is counted", lambda: lost(two, three) == 1)
        assert digest(reader) == right
        late = three.program()
        late("t = vcuda.get('w')")
        assert digest(late) == right
        assert copied(two, "out") == copied(three, "in") == 3 * MIB
        sentence = late.fails("vcuda.get('alone')", 500, "lost")
        assert "n1" in sentence, sentence
        # What is the first now is deleted there, and shared.
        reader("vcuda.delete('w')")
        late.fails("vcuda.get('w')", 500)
        late.end()
        reader.end()
        nothing_left(two)
        nothing_left(three)
        owner.process.kill()


def test_the_source_dies_in_the_middle():
    with agents() as (one, two):
        owner = one.program()
        upload(owner, "w", 16 * MIB)
        reader = two.program()
        workers = wait_for(lambda: children(one.agent.pid, "agent-worker"), 10, "there are workers")
        for worker in workers:
            freeze(worker)
        reader.send("t = vcuda.get('w')")
        wait_for(lambda: bytes_of(two.agent)["copying"] == 16 * MIB, 10, "it is being copied")
        time.sleep(0.5)
        kill_agent(one)
        killed = time.monotonic()
        try:
            reader.answer(30)
            raise AssertionError("half a tensor")
        except Exception as error:
            assert getattr(error, "status", 0) in (802, 911), error
            assert "n1" in str(error), error
        soon(killed, 20, "an answer")
        nothing_left(two)
        assert reader("1 + 1") == 2
        reader.end()
        owner.process.kill()


def test_what_one_may_not_have():
    """Another namespace gets a replica of what is shared with it, and nothing of what is not."""
    with contextlib.ExitStack() as stack:
        redis = Redis()
        stack.callback(redis.close)
        sides = []
        for i in (1, 2):
            place = os.path.join(stack.enter_context(folder()), str(i))
            os.makedirs(place)
            sides.append(two_tenants(
                place, "--set", f"store.registry={redis.address}", "--set", f"store.node=n{i}", "--set",
                "store.address=127.0.0.1", "--peers", ANYWHERE))
        eventually("the index is filled", lambda: redis.cli("EXISTS", "node:n1", "node:n2") == "2")
        owner, red, blue = Program(sides[0][1].socket), Program(sides[1][1].socket), Program(sides[1][2].socket)
        right = upload(owner, "w", 3 * MIB)
        none = blue.fails("vcuda.get('red/w')", 500)
        assert none.replace("red/w", "X") == blue.fails("vcuda.get('red/v')", 500).replace("red/v", "X")
        blue.fails("vcuda.get('w')", 500)
        assert bytes_of(sides[1][0]) == dict.fromkeys(bytes_of(sides[1][0]), 0), "something was copied"
        red("t = vcuda.get('w')")
        assert digest(red) == right
        # There is a replica now; it is still not theirs.
        assert none == blue.fails("vcuda.get('red/w')", 500)
        owner("vcuda.share('w', 'blue')")
        eventually("it is shared", lambda: hash_of(redis, "red/w").get("share") == "blue,")
        blue("t = vcuda.get('red/w')")
        assert digest(blue) == right
        assert bytes_of(sides[1][0])["sealed"] == 4 * MIB
        # The account is its owner's.
        seen = json.loads(sides[1][0].http("/v1/tensors", token="secret-of-red"))["tensors"]
        assert [(t["namespace"], t["replica"]) for t in seen] == [("red", True)]
        # One that blue is the first to ask for.
        upload(owner, "v", MIB, seed=3)
        owner("vcuda.share('v', '*')")
        eventually("it is shared", lambda: hash_of(redis, "red/v").get("share") == "*,")
        blue("t = vcuda.get('red/v')")
        # A ticket that nobody gave opens nothing.
        for program in (owner, red, blue):
            program.end()


def test_a_forged_ticket():
    """Nobody without the index is sent anything: a HELLO with a ticket at random, and one without."""
    with agents(1) as (one,):
        owner = one.program()
        upload(owner, "w", 4096)
        for ticket in (bytes(16), os.urandom(16)):
            hello = struct.pack("<QIIQ16s16sII64s128s40s256sQII", 0x4144554356, 4, 10, 0, bytes(16), ticket, 1, 0,
                                b"", b"", b"", b"", 0, 0, 0)
            with socket.create_connection(("127.0.0.1", one.agent.ports["recv"])) as peer:
                peer.sendall(hello)
                peer.settimeout(10)
                got = b""
                while piece := peer.recv(65536):
                    got += piece
            assert b"the ticket is for nothing" in got and len(got) < 1024, got
        assert copied(one, "out") == 0
        owner.end()


def test_quota():
    """A replica counts in its namespace's account; one that does not fit is out of memory, and leaves nothing."""
    each = ((), ("--set", "store.bytes_per_namespace=16MiB"))
    with agents(each=each) as (one, two):
        owner, reader = one.program(), two.program()
        upload(owner, "large", 20 * MIB)
        right = upload(owner, "small", 10 * MIB)
        reader.fails("vcuda.get('large')", 2, "bytes_per_namespace")
        nothing_left(two)
        reader("t = vcuda.get('small')")
        assert digest(reader) == right
        reader.fails("vcuda.create('more', 'u8', (10 << 20,))", 2, "bytes_per_namespace")
        assert hash_of(one.redis, "large")["replicas"] == ""
        reader.end()
        owner.end()


def test_one_that_is_not_sealed():
    with agents() as (one, two):
        owner, reader = one.program(), two.program()
        owner("t = vcuda.create('w', 'u8', (4096,), keep=True)")
        sentence = reader.fails("vcuda.get('w')", 101, "not sealed", "n1")
        assert sentence.count("GPU-") == 2, sentence
        nothing_left(two)
        owner("fill(t, 3)")
        owner("t.seal()")
        reader("t = vcuda.get('w')")
        assert reader("every(t)") == 3
        reader.end()
        owner.end()


def test_without_peers():
    """An agent that may go nowhere says so."""
    with agents(each=((), ("--peers", ""))) as (one, two):
        owner, reader = one.program(), two.program()
        upload(owner, "w", 4096)
        reader.fails("vcuda.get('w')", 800, "peers")
        nothing_left(two)
        reader.end()
        owner.end()


def test_store_and_front_die_in_the_middle():
    """The question is asked again, and answered right; nothing is left of the copy that ended."""
    with agents() as (one, two):
        owner = one.program()
        right = upload(owner, "w", 16 * MIB)
        for name in ("agent-store", "agent-front"):
            workers = wait_for(lambda: children(one.agent.pid, "agent-worker"), 10, "there are workers")
            reader = two.program()
            for worker in workers:
                freeze(worker)
            reader.send("t = vcuda.get('w')")
            wait_for(lambda: bytes_of(two.agent)["copying"] == 16 * MIB, 10, "it is being copied")
            os.kill(children(two.agent.pid, name)[0], signal.SIGKILL)
            for worker in workers:
                os.kill(worker, signal.SIGCONT)
            reader.answer(60)
            assert digest(reader) == right
            wait_for(lambda: bytes_of(two.agent)["copying"] == 0, 10, "nothing is being copied")
            assert bytes_of(two.agent)["sealed"] == 16 * MIB
            reader.end()
            owner("vcuda.delete('w')")
            nothing_left(two)
            right = upload(owner, "w", 16 * MIB, seed=2)
        owner.end()


def test_a_card_that_falls():
    """A kernel of a program's meets the GPU's error, new workers meet it too: what lay there is lost, or another's."""
    with folder() as place:
        fallen = os.path.join(place, "fallen")
        each = ({"agent_env": {"VCUDA_SOFTGPU_FAULT": f"fall-with={fallen}"}}, {})
        with agents(more_of=each) as (one, two):
            owner, other, reader = one.program(), one.program(), two.program()
            right = upload(owner, "w", 3 * MIB)
            upload(owner, "alone", MIB)
            owner("mine = vcuda.create('unsealed', 'u8', (4096,))")
            reader("t = vcuda.get('w')")
            # What a program alone meets takes nothing from others.
            other("s = vcuda.get('w')")
            other.fails("put(s, 1)", 700)
            other.process.kill()
            time.sleep(1)
            assert hash_of(one.redis, "w")["node"] == "n1"
            with open(fallen, "w"):
                pass
            owner.fails("put(mine, 1)", 214)
            fell = time.monotonic()
            eventually("they are marked", lambda: hash_of(one.redis, "alone").get("state") == "lost" and
                       hash_of(one.redis, "w").get("node") == "n2", 20)
            soon(fell, 12, "they are marked")
            assert "fallen" in hash_of(one.redis, "alone")["error"], hash_of(one.redis, "alone")
            assert lost(one) >= 1 and lost(two) == 0, (lost(one), lost(two))
            assert digest(reader) == right
            late = two.program()
            late.fails("vcuda.get('alone')", 500, "lost", "fallen")
            late("t = vcuda.get('w')")
            assert digest(late) == right
            owner.process.kill()
            late.end()
            reader.end()


def test_another_gpu_of_the_same_agent():
    """A get on another GPU copies it there once, and goes with what it is of; with an index and without."""
    two_gpus = {"VCUDA_SOFTGPU_DEVICES": "2"}
    with tensors(agent_env=two_gpus) as s:
        owner, reader = s.program(), s.program()
        owner("t = vcuda.create('open', 'u8', (4096,))")
        sentence = reader.fails("vcuda.get('open', device=1)", 101)
        assert sentence.count(" GPU ") == 1 and "not on" in sentence, sentence
        right = upload(owner, "w", 5 * MIB)
        for program in (reader, s.program()):
            program("t = vcuda.get('w', device=1)")
            program("context(1)")
            assert digest(program) == right
            assert program("t.device") == 1
        assert bytes_of(s.agent)["sealed"] == 12 * MIB, bytes_of(s.agent)
        assert "vcuda_agent_tensor_replicas 1\n" in s.agent.http("/metrics")
        assert [t["name"] for t in owner("vcuda.names()")].count("default/w") == 1
        owner("vcuda.delete('w')")
        reader.fails("vcuda.get('w', device=1)", 500)
        assert digest(reader) == right
        reader.end()
        program.end()
        owner.end()
        nothing_left(s)
    with agents(more_of=({}, {"agent_env": two_gpus})) as (one, two):
        owner, reader = one.program(), two.program()
        right = upload(owner, "w", 5 * MIB)
        reader("t = vcuda.get('w', device=1)")
        reader("u = vcuda.get('w', device=0)")
        assert digest(reader, "u") == right
        reader("context(1)")
        assert digest(reader, "t") == right
        assert copied(one, "out") == 5 * MIB, "the second GPU's came from the first"
        reader.end()
        owner("vcuda.delete('w')")
        owner.end()
        nothing_left(two)


def test_another_gpu_that_reaches_it_maps_it():
    """Where the caller says so and peers reach each other: no copy, and the same rights."""
    with tensors(agent_env={"VCUDA_SOFTGPU_DEVICES": "2"}) as s:
        owner, reader, writer = s.program(), s.program(), s.program()
        right = upload(owner, "w", 5 * MIB)
        owner("o = vcuda.create('open', 'u8', (4096,)); fill(o, 3)")
        assert owner("t.peer") is False
        for program in (reader, writer):
            program("t = vcuda.get('w', device=1, peer=True)")
            program("context(1)")
            assert digest(program) == right
            assert program("t.device, t.peer, t.writable") == (1, True, False)
        writer("o = vcuda.get('open', device=1, peer=True, write=True)")
        writer("put(o, 0x04040404)")
        assert owner("download(o)[:5]") == bytes((4, 4, 4, 4, 3))
        assert bytes_of(s.agent)["sealed"] == 6 * MIB and bytes_of(s.agent)["created"] == 2 * MIB, bytes_of(s.agent)
        assert "vcuda_agent_tensor_replicas 0\n" in s.agent.http("/metrics")
        owner("o.seal()")
        wait_for(lambda: reader("vcuda.stat('open')['sealed']"), 10, "it is sealed")
        reader("o = vcuda.get('open', device=1, peer=True)")
        assert reader("download(o)[:5]") == bytes((4, 4, 4, 4, 3))
        reader.fails("put(o, 1)", 700)
        # It holds the memory like any other.
        owner("vcuda.delete('w')")
        owner.end()
        assert digest(writer) == right
        writer.end()
        reader.process.kill()
        nothing_left(s)
    with tensors(agent_env={"VCUDA_SOFTGPU_DEVICES": "2", "VCUDA_SOFTGPU_FAULT": "no-peers=1"}) as s:
        owner, reader = s.program(), s.program()
        right = upload(owner, "w", 5 * MIB)
        owner("o = vcuda.create('open', 'u8', (4096,))")
        sentence = reader.fails("vcuda.get('open', device=1, peer=True)", 101)
        assert sentence.count(" GPU ") == 1 and "not on" in sentence, sentence
        reader("t, u = vcuda.get(['w', 'w'], device=1, peer=True)")
        reader("context(1)")
        assert digest(reader) == right and reader("t.peer") is False
        assert bytes_of(s.agent)["sealed"] == 12 * MIB, bytes_of(s.agent)
        wait_for(lambda: [t["holders"] for t in json.loads(s.agent.http("/v1/tensors"))["tensors"]
                          if t["name"] == "w"] == [1, 1], 10, "its owner holds the first, the reader the copy alone")
        owner("vcuda.delete('w')")
        owner.end()
        assert digest(reader) == right
        reader.end()
        nothing_left(s)


def test_a_card_falls_and_the_other_has_a_replica():
    with folder() as place:
        fallen = os.path.join(place, "fallen")
        env = {"VCUDA_SOFTGPU_DEVICES": "2", "VCUDA_SOFTGPU_FAULT": f"fall-with={fallen}"}
        with agents(1, agent_env=env) as (one,):
            owner, reader = one.program(), one.program()
            right = upload(owner, "w", MIB)
            upload(owner, "alone", MIB)
            owner("mine = vcuda.create('unsealed', 'u8', (4096,))")
            reader("context(1)")
            reader("t = vcuda.get('w', device=1)")
            before = hash_of(one.redis, "w")
            with open(fallen + ".0", "w"):
                pass
            owner.fails("put(mine, 1)", 214)
            eventually("it is on the other one", lambda: hash_of(one.redis, "alone").get("state") == "lost" and
                       hash_of(one.redis, "w").get("gpu_uuid") != before["gpu_uuid"], 20)
            after = hash_of(one.redis, "w")
            assert (after["state"], after["device"], after["node"]) == ("sealed", "1", "n1"), after
            assert digest(reader) == right
            reader("u = vcuda.get('w', device=1)")
            owner.process.kill()
            reader.end()


def test_weights_of_two_agents():
    """Whoever loads a file first uploads it; the other agent's program waits for that and copies it."""
    with folder() as place, agents() as (one, two):
        path, data = os.path.join(place, "model.safetensors"), os.urandom(3 * MIB)
        head = json.dumps({"w": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head + data)
        first, second = one.program(), two.program()
        for program in (first, second):
            program("import vcuda.weights")
            program.send(f"whole, parts = vcuda.weights.open_file({path!r})")
        for program in (first, second):
            program.answer(60)
        assert sorted(program("whole.made") for program in (first, second)) == [False, True]
        assert digest(first, "whole") == digest(second, "whole")
        assert copied(one, "in") + copied(two, "in") == first("whole.nbytes")
        first.end()
        second.end()
