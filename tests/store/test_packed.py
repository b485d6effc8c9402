# SPDX-License-Identifier: Apache-2.0
"""Small tensors that share a piece of memory: each has its own bytes, and they end one by one."""
import json
import os
import signal

from tensors import MIB, bytes_of, store_of, tensors, wait_for


def listed(agent):
    return {t["name"]: t for t in json.loads(agent.http("/v1/tensors"))["tensors"]}


def test_a_hundred_take_one_piece_and_each_has_its_own_bytes():
    with tensors(bytes="8MiB") as s:
        owner, reader = s.program(), s.program()
        owner("all = [vcuda.create(f't{i}', 'u8', (1000 + i,), packed=True) for i in range(100)]")
        owner("[fill(t, i) for i, t in enumerate(all)]; None")
        assert owner("[every(t) for t in all]") == list(range(100))
        reader.fails("vcuda.get('t7', write=True)", 800, "its owner alone writes")
        owner.fails("vcuda.share('t7', '*')", 800, "packed")
        owner.fails("vcuda.create('e', 'u8', (9,), packed=True, evictable=True)", 1, "evictable")
        owner("[t.seal() for t in all]; None")
        reader("all = vcuda.get([f't{i}' for i in range(100)])")
        assert reader("[every(t) for t in all]") == list(range(100))
        assert reader("vcuda.stat('t7')['packed'], len({t.data % (2 << 20) for t in all})") == (True, 100)
        assert bytes_of(s.agent) == {"created": 0, "sealed": 2 * MIB, "deleted": 0, "pooled": 0, "copying": 0}
        assert listed(s.agent)["t7"]["packed"]
        # Eight MiB would not be enough for each to have two.
        os.kill(store_of(s.agent), signal.SIGKILL)
        owner("more = vcuda.create('more', 'u8', (4 << 20,))", 60)
        owner.end()
        assert reader("[every(t) for t in all]") == list(range(100))
        reader.fails("put(all[7], 5)", 700)
        reader.close_stdin()
        reader.wait(30)
        wait_for(lambda: not listed(s.agent), 30, "all are gone")
        late = s.program()
        late("big = vcuda.create('big', 'u8', (8 << 20,))")
        late.end()


def test_a_neighbour_that_ends_takes_nothing_along():
    with tensors(bytes="4MiB") as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (5000,), packed=True); b = vcuda.create('b', 'u8', (5000,), packed=True)")
        owner("fill(a, 1); fill(b, 2); a.seal(); a.close()")
        wait_for(lambda: set(listed(s.agent)) == {"b"}, 30, "it is gone")
        assert owner("every(b)") == 2
        owner("c = vcuda.create('c', 'u8', (5000,), packed=True); fill(c, 3)")
        assert owner("every(b), every(c)") == (2, 3)
        owner("d = vcuda.create('d', 'u8', (2 << 20,))")
        owner.fails("vcuda.create('e', 'u8', (2 << 20,))", 2, "store.bytes")
        owner.end()
