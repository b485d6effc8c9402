#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What takes long of replicas: programs and processes of agents that are killed at random points, again and again, and
whether anything is left of them.

    BUILD=build tests/store/replica_kills.py [ROUNDS [SEED]]        (200 rounds)
"""
import os
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "stack"))
sys.dont_write_bytecode = True

from redis_server import Redis, Store, eventually  # noqa: E402
from tensors import MIB, Failed, bytes_of, children, wait_for  # noqa: E402
from test_replicas import agents, digest, hash_of, upload  # noqa: E402

import stack  # noqa: E402

SIZE = 6 * MIB
# What may be told where a process ended in the middle: it is away, it is gone, the session is over.
TOLD = {500, 802, 911, 101, 708}


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


def victims(one, two, owner, readers):
    """By name: what is killed."""
    return {
        "owner": lambda: [owner.process.pid],
        "importer": lambda: [random.choice(readers).process.pid],
        "all importers": lambda: [reader.process.pid for reader in readers],
        "store there": lambda: children(one.agent.pid, "agent-store"),
        "store here": lambda: children(two.agent.pid, "agent-store"),
        "front here": lambda: children(two.agent.pid, "agent-front"),
        "front there": lambda: children(one.agent.pid, "agent-front"),
        "a worker there": lambda: random.sample(children(one.agent.pid, "agent-worker"), 1),
        "a worker here": lambda: random.sample(children(two.agent.pid, "agent-worker"), 1),
    }


def drain(one, two, name):
    """Both agents serve again, and nothing is left of the name on either, nor in Redis."""
    def gone():
        return all(not any(bytes_of(s.agent).values()) for s in (one, two))
    for s in (one, two):
        wait_for(lambda s=s: s.agent.http("/readyz") is not None, 30, "the agent serves")
    janitor = one.program()
    until = time.monotonic() + 30
    while True:
        try:
            janitor(f"vcuda.delete({name!r})")
        except Failed as error:
            if error.status == 101:  # the other agent's is the first
                other = two.program()
                other(f"vcuda.delete({name!r})")
                other.end()
            elif error.status == 500:
                break
        assert time.monotonic() < until, f"{name} cannot be deleted"
    janitor.end()
    wait_for(gone, 30, f"memory is free: {bytes_of(one.agent)} {bytes_of(two.agent)}")
    eventually("Redis knows nothing of it", lambda: not one.redis.cli("KEYS", f"tensor*{name}*"), 20)


def one_round(one, two, number, tally):
    name = f"w{number}"
    owner, readers = one.program(), [two.program() for _ in range(2)]
    right = upload(owner, name, SIZE, seed=number)
    who = random.choice(sorted(victims(one, two, owner, readers)))
    for reader in readers:
        reader.send(f"t = vcuda.get({name!r})")
    time.sleep(random.uniform(0, 0.25))
    killed = [pid for pid in victims(one, two, owner, readers)[who]() if kill(pid)]
    told = []
    for reader in readers:
        if reader.process.pid in killed:
            continue
        try:
            reader.answer(60)
            assert digest(reader) == right, f"round {number}, {who}: other bytes"
            told.append("right")
        except Failed as error:
            assert error.status in TOLD, f"round {number}, {who}: {error}"
            told.append(str(error.status))
        except AssertionError:
            # The program ended with its session.
            assert reader.process.poll() is not None, f"round {number}, {who}: no answer"
            told.append("ended")
    for program in (owner, *readers):
        program.process.kill()
        program.process.wait()
    tally.setdefault(who, []).extend(told)
    drain(one, two, name)


def test_kills(rounds, seed):
    random.seed(seed)
    tally = {}
    with agents() as (one, two):
        for number in range(rounds):
            one_round(one, two, number, tally)
        for s in (one, two):
            left = [w for w in children(s.agent.pid, "agent-worker")]
            assert len(left) <= 3, f"workers are left: {left}"
            free = s.agent.gpu()
            assert free["memory_free_bytes"] > 0, free
    for who in sorted(tally):
        told = tally[who]
        print(f"  {who}: " + ", ".join(f"{told.count(word)} {word}" for word in sorted(set(told))))


def test_a_replica_without_its_first_is_dropped():
    """Its agent is gone and Redis is empty: nobody knows whether the name was deleted."""
    redis = Redis()
    try:
        first, second = Store(redis.address, "n1"), Store(redis.address, "n2")
        assert first.status("create", "X", "u8", "4", "s") == "made"
        assert first.status("seal", "X") == "ok"
        assert second.ask("replica", "X", "ab" * 16, "default").split()[0] == "ok"
        first.kill()
        redis.cli("FLUSHALL")
        eventually("nobody knows it", lambda: second.list()["tensors"] == "0", 30)
        assert redis.cli("KEYS", "tensor-replica:*") == ""
        second.close()
    finally:
        redis.close()


def main(words):
    rounds = int(words[0]) if words else 200
    seed = int(words[1]) if len(words) > 1 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    try:
        test_a_replica_without_its_first_is_dropped()
        test_kills(rounds, seed)
    finally:
        stack.clean()
    print(f"{rounds} rounds: nothing left, nothing wrong")


if __name__ == "__main__":
    main(sys.argv[1:])
