# SPDX-License-Identifier: Apache-2.0
"""How long tensors live: owners and holders that end, processes of the agent that are killed, the pool."""
import json
import os
import signal
import time

from stack import freeze, kill
from tensors import MIB, Failed, bytes_of, children, store_of, tensors, wait_for


def listed(agent):
    return {t["name"]: t for t in json.loads(agent.http("/v1/tensors"))["tensors"]}


def events(agent):
    return {line.split('"')[1]: int(line.rsplit(None, 1)[1]) for line in agent.http("/metrics").splitlines()
            if line.startswith("vcuda_agent_tensor_events_total{")}


def test_a_tensor_goes_with_its_last_holder_unless_it_is_kept():
    with tensors() as s:
        one, two = s.program(), s.program()
        one("a = vcuda.create('a', 'u8', (100,)); fill(a, 1); a.seal()")
        one("k = vcuda.create('k', 'f16', (3, 5), keep=True); fill(k, 2); k.seal()")
        two("a = vcuda.get('a')")
        assert listed(s.agent)["a"]["holders"] == 2 and listed(s.agent)["k"]["keep"]
        one.end()
        wait_for(lambda: listed(s.agent)["a"]["holders"] == 1, 30, "the owner's hold is gone")
        assert two("every(a)") == 1
        two("a.close()")
        two.fails("vcuda.get('a')", 500, "default/a")
        wait_for(lambda: set(listed(s.agent)) == {"k"}, 30, "only the kept one is there")
        assert two("every(vcuda.get('k'))") == 2
        two("vcuda.delete('k')")
        wait_for(lambda: not listed(s.agent), 30, "nothing is there")
        two.end()
        wait_for(lambda: not any(bytes_of(s.agent).values()), 30, "no byte is left")


def test_a_deleted_name_goes_at_once_and_its_memory_with_the_last_holder():
    with tensors() as s:
        one, two = s.program(), s.program()
        one("a = vcuda.create('a', 'u8', (1 << 20,)); fill(a, 3); a.seal()")
        two("a = vcuda.get('a')")
        one("vcuda.delete('a')")
        two.fails("vcuda.get('a')", 500)
        one("b = vcuda.create('a', 'i32', (7,))")
        assert one("b.made") and two("every(a)") == 3
        assert bytes_of(s.agent)["deleted"] == 2 * MIB
        one.end()
        assert two("every(a)") == 3
        two.end()
        wait_for(lambda: not any(bytes_of(s.agent).values()), 30, "no byte is left")


def test_what_its_owner_did_not_finish_goes_with_it():
    with tensors() as s:
        owner, reader = s.program(), s.program()
        owner("a = vcuda.create('a', 'u8', (1 << 20,), keep=True)")
        reader("a = vcuda.get('a', write=True)")
        reader("fill(a, 4)")
        assert owner("every(a)") == 4
        kill(owner.pid)
        wait_for(lambda: not listed(s.agent), 30, "the name is gone")
        assert reader("every(a)") == 4
        reader.fails("vcuda.get('a')", 500)
        reader.fails("a.seal()", 800)


def test_who_writes_beside_the_owner_cannot_once_it_is_sealed():
    with tensors() as s:
        owner, writer = s.program(), s.program()
        owner("a = vcuda.create('a', 'u8', (2 << 20,))")
        writer("a = vcuda.get('a', write=True)")
        writer("put(a, 5)")
        writer("fill(a, 6)")
        writer.fails("a.seal()", 800, "another session's")
        owner("a.seal()")
        writer.fails("vcuda.get('a', write=True)", 800, "sealed")
        writer.fails("put(a, 7)", 700)
        assert owner("every(a)") == 6


class Writer:
    """Owner, and another program whose kernel counts in the owner's tensor all the time."""

    def __init__(self, s):
        self.owner, self.writer = s.program(), s.program()
        self.owner("a = vcuda.create('a', 'i32', (1024,)); fill(a, 0)")
        self.writer("a = vcuda.get('a', write=True)")
        self.worker = s.agent.worker(self.writer, 30)
        self.writer.send("count(a)")
        wait_for(lambda: self.word() != self.word(), 30, "the kernel counts")

    def word(self):
        return self.owner("download(a)[:4]")

    def stays(self):
        was = self.word()
        for _ in range(100):
            assert self.word() == was, "somebody wrote what is sealed"


def test_a_seal_is_over_when_nobody_writes_any_more():
    with tensors() as s:
        w = Writer(s)
        freeze(w.worker)
        w.owner.send("a.seal()")
        other = s.program()
        other("b = vcuda.create('b', 'i32', (64,)); fill(b, 1); b.seal()")
        assert len(w.owner.lines) == w.owner.at, "the seal returned while somebody could write"
        os.kill(w.worker, signal.SIGCONT)
        w.owner.answer(60)
        w.stays()
        try:
            w.writer.answer(60)
        except Failed as error:
            assert error.status == 700, error
        w.owner("a.close()")


def test_a_writer_that_stands_still_holds_no_seal_up_and_loses_its_session():
    with tensors() as s:
        w = Writer(s)
        freeze(w.worker)
        w.owner("a.seal()", 60)
        assert not os.path.exists(f"/proc/{w.worker}"), "who did not answer still runs"
        w.stays()
        try:
            w.writer.answer(60)
            raise AssertionError("the kernel of the session that was ended came to its end")
        except Failed as error:
            assert error.status not in (0, 700), error
        assert listed(s.agent)["a"]["state"] == "sealed"


def test_processes_that_are_killed_leave_held_tensors_right():
    with tensors() as s:
        owner, reader = s.program(), s.program()
        owner("a = vcuda.create('a', 'u8', (2 << 20,), keep=True); fill(a, 8); a.seal()")
        reader("a = vcuda.get('a')")
        front = s.agent.front()
        os.kill(front, signal.SIGKILL)
        wait_for(lambda: children(s.agent.pid, "agent-front") not in ([], [front]), 30, "there is another front")
        assert reader("every(a)") == 8 and reader("vcuda.stat('a')['sealed']")
        kill(s.agent.worker(owner, 30))
        wait_for(lambda: listed(s.agent)["a"]["holders"] == 1, 30, "the dead worker's hold is gone")
        assert reader("every(a)") == 8
        late = s.program()
        late("a = vcuda.get('a')")
        assert late("every(a)") == 8


def test_the_store_killed_while_many_ask_answers_all_of_them():
    with tensors() as s:
        programs = [s.program() for _ in range(4)]
        programs[0]("a = vcuda.create('a', 'u8', (64,), keep=True); fill(a, 1); a.seal()")
        for round in range(5):
            for program in programs:
                program.send("sum(vcuda.get('a').nbytes for _ in range(40))")
            os.kill(store_of(s.agent), signal.SIGKILL)
            for program in programs:
                assert program.answer(60) == 40 * 64
        for program in programs:
            program.end()
        wait_for(lambda: listed(s.agent)["a"]["holders"] == 0, 30, "nobody holds it")


def test_a_session_with_hundreds_of_sealed_tensors_outlives_the_store_and_the_front():
    """Each is told again to each of them that it is sealed: more than a socket takes at once."""
    with tensors(bytes="1GiB") as s:
        owner = s.program()
        owner("all = [vcuda.create(f't{i}', 'u8', (64,)) for i in range(400)]; [t.seal() for t in all]; None", 60)
        for process in (store_of(s.agent), s.agent.front()):
            # The worker reads nothing meanwhile, as one that is in a long call of the driver.
            worker = s.agent.worker(owner, 30)
            freeze(worker)
            os.kill(process, signal.SIGKILL)
            time.sleep(0.5)
            os.kill(worker, signal.SIGCONT)
            wait_for(lambda: len(listed(s.agent)) == 400, 30, "all are there")
            assert owner("every(vcuda.get('t399'))", 60) == 0
        owner.end()


def test_freed_memory_is_kept_for_the_next_one():
    with tensors("--set", "store.pool_bytes=8MiB") as s:
        one = s.program()
        for _ in range(5):
            one("vcuda.create('a', 'u8', (4 << 20,)).close()")
            wait_for(lambda: bytes_of(s.agent)["pooled"] == 4 * MIB, 30, "it is in the pool")
        assert events(s.agent)["pool_hit"] == 4
        one("vcuda.create('b', 'u8', (6 << 20,)).close()")
        wait_for(lambda: bytes_of(s.agent)["pooled"] == 4 * MIB, 30, "no more than 8 MiB")


def test_evictable_ones_go_when_memory_is_short_the_least_used_first():
    with tensors(bytes="8MiB") as s:
        one = s.program()
        for name in "abc":
            one(f"t = vcuda.create('{name}', 'u8', (2 << 20,), evictable=True); fill(t, 1); t.seal(); t.close()")
        wait_for(lambda: all(t["holders"] == 0 for t in listed(s.agent).values()), 30, "nobody holds them")
        one("held = vcuda.get('a')")
        one("big = vcuda.create('big', 'u8', (4 << 20,))")
        assert set(listed(s.agent)) == {"a", "c", "big"}
        assert events(s.agent)["evicted"] == 1
        one.fails("vcuda.create('more', 'u8', (6 << 20,))", 2, "store.bytes")
        assert one("every(held)") == 1
