# SPDX-License-Identifier: Apache-2.0
"""Namespaces, limits and bad input."""
import json
import os

from stack import Agent
from tensors import MIB, Program, Sidecar, folder, tensors


def sidecar(path, agent, name):
    file = os.path.join(path, name + ".token")
    with open(file, "w") as out:
        out.write(f"secret-of-{name}\n")
    return Sidecar(os.path.join(path, name), agent, "--token-file", file)


def two_tenants(path, *flags):
    tokens = os.path.join(path, "tokens")
    with open(tokens, "w") as out:
        out.write("secret-of-red red\nsecret-of-blue blue\n")
    os.chmod(tokens, 0o600)
    agent = Agent(path, "--token-file", tokens, "--set", "store.bytes=64MiB", *flags)
    return agent, sidecar(path, agent, "red"), sidecar(path, agent, "blue")


def test_a_namespace_sees_its_own_and_what_is_shared_with_it():
    with folder() as path:
        agent, red, blue = two_tenants(path)
        r, b = Program(red.socket), Program(blue.socket)
        r("a = vcuda.create('a', 'u8', (64,)); fill(a, 1)")
        b("a = vcuda.create('a', 'u8', (32,)); fill(a, 2); a.seal()")
        assert r("every(a)") == 1 and b("every(vcuda.get('blue/a'))") == 2
        none = b.fails("vcuda.get('red/a')", 500)
        assert none.replace("red/a", "X") == b.fails("vcuda.get('red/b')", 500).replace("red/b", "X")
        for line in ("vcuda.create('red/x', 'u8', (1,))", "vcuda.get('red/a', write=True)", "vcuda.stat('red/a')",
                     "vcuda.delete('red/a')", "vcuda.touch('red/a')", "vcuda.share('red/a', 'blue')"):
            try:
                b(line)
            except Exception as error:
                assert error.status in (500, 800), f"{line}: {error}"
            else:
                raise AssertionError(f"{line} succeeded")
        r("vcuda.share('a', 'blue')")
        b.fails("vcuda.get('red/a')", 500)  # not sealed yet
        r("a.seal()")
        assert b("every(vcuda.get('red/a'))") == 1
        b.fails("vcuda.delete('red/a')", 800)
        assert b("sorted(t['name'] for t in vcuda.names())") == ["blue/a", "red/a"]
        assert r("[t['name'] for t in vcuda.names()]") == ["red/a"]
        seen = json.loads(agent.http("/v1/tensors", token="secret-of-red"))["tensors"]
        assert [t["namespace"] for t in seen] == ["red"]


def test_limits_of_all_and_of_each_namespace():
    with folder() as path:
        _, red, blue = two_tenants(path, "--set", "store.bytes_per_namespace=40MiB")
        r, b = Program(red.socket), Program(blue.socket)
        r("a = vcuda.create('a', 'u8', (40 << 20,))")
        r.fails("vcuda.create('b', 'u8', (1,))", 2, "store.bytes_per_namespace", "red")
        b("a = vcuda.create('a', 'u8', (24 << 20,))")
        b.fails("vcuda.create('b', 'u8', (1,))", 2, "store.bytes")
        r("a.close()")
        b("b = vcuda.create('b', 'u8', (16 << 20,))")
        b.fails("vcuda.create('c', 'u8', (1,))", 2, "store.bytes_per_namespace", "blue")


def test_what_tensors_take_is_not_promised_to_sessions():
    with tensors(bytes="1GiB") as s:
        one = s.program()
        before = s.agent.gpu()["memory_free_bytes"]
        one("a = vcuda.create('a', 'u8', (256 << 20,))")
        assert before - s.agent.gpu()["memory_free_bytes"] == 256 * MIB


def test_bad_input_is_a_sentence_that_names_it():
    with tensors() as s:
        one = s.program()
        one("a = vcuda.create('a', 'f32', (2, 3))")
        for line, status, needle in (
                ("vcuda.create('a', 'f32', (3, 2))", 1, "another shape"),
                ("vcuda.create('a', 'f16', (2, 3))", 1, "another shape or dtype"),
                ("vcuda.create('a', 'f32', (2, 3), new=True)", 1, "already"),
                ("vcuda.create('b', 'f33', (1,))", 1, "f33"),
                ("vcuda.create('b', 'u8', (0,))", 1, "(0,)"),
                ("vcuda.create('b', 'u8', (-1,))", 1, "(-1,)"),
                ("vcuda.create('b', 'f64', (1 << 40, 1 << 40))", 1, "too many bytes"),
                ("vcuda.create('b', 'u8', (1,) * 9)", 1, "shape"),
                ("vcuda.create('', 'u8', (1,))", 1, "1 to 256 bytes"),
                ("vcuda.create('x' * 257, 'u8', (1,))", 1, "257"),
                (r"vcuda.create('x\x01', 'u8', (1,))", 1, "control character"),
                *((line, 1, "has a NUL") for line in (
                    r"vcuda.create('x\0y', 'u8', (1,))", r"vcuda.get('a\0')", r"vcuda.get(['a', 'a\0b'])", r"vcuda.delete('a\0b')",
                    r"vcuda.share('a', '*\0')", r"vcuda.touch('a\0b')", r"vcuda.stat('a\0b')", r"vcuda.names('a\0')",
                    r"vcuda.wait('a\0b')")),
                ("vcuda.create('x/y/z', 'u8', (1,))", 1, "x/y/z"),
                ("vcuda.create('other/z', 'u8', (1,))", 800, "namespace 'default'"),
                ("vcuda.create('b', 'u8', (1 << 40,))", 2, "store.bytes"),
                ("vcuda.create('b', 'u8', (1,), device=9)", 101, "device 9"),
                ("vcuda.get('nobody')", 500, "default/nobody"),
                ("vcuda.get(['a', 'nobody'])", 500, "default/nobody"),
                ("vcuda.delete('nobody')", 500, "default/nobody"),
                ("vcuda.share('a', 'x,y')", 1, "no ','"),
                ("vcuda.wait('a', seconds=0.2)", 600, "not sealed")):
            one.fails(line, status, needle)
        one("a.seal(); b = vcuda.get('a')")
        one("b.close(); b.close()")
        one.fails("b.data", 1, "closed")
        assert one("every(a)") >= -1  # the session goes on
        assert one("[t['name'] for t in vcuda.names()]") == ["default/a"]


def test_an_agent_without_a_store_says_so():
    with tensors(bytes="0") as s:
        s.program().fails("vcuda.create('a', 'u8', (1,))", 802, "store.bytes")


def test_many_in_one_call():
    with tensors(bytes="1GiB") as s:
        one, two = s.program(), s.program()
        one("t = [vcuda.create(f'n{i}', 'i16', (i + 1, 2)) for i in range(300)]")
        one("[fill(x, i % 251) for i, x in enumerate(t)]")
        one("[x.seal() for x in t]", 60)
        two("t = vcuda.get([f'n{i}' for i in range(300)])")
        assert two("all(x.shape == (i + 1, 2) and every(x) == i % 251 for i, x in enumerate(t))")
        assert two("len(vcuda.names('n1'))") == 111
        two("[x.close() for x in t]", 60)
        one.end()
        two.end()


def test_no_namespace_takes_all_records():
    """Pooled memory is a record too; a packed tensor is one, where memory is not what it takes."""
    with folder() as path:
        _, red, blue = two_tenants(path, "--set", "store.tensors_per_namespace=3", "--set", "store.pool_bytes=64MiB")
        r, b = Program(red.socket), Program(blue.socket)
        r("a = [vcuda.create(f'a{i}', 'u8', (1,)) for i in range(3)]")
        r.fails("vcuda.create('b', 'u8', (1,))", 2, "store.tensors_per_namespace", "red", "3 tensors")
        r("a[0].close()")  # its memory is in the pool, and goes for one of another size
        r("a[0] = vcuda.create('b', 'u8', (3 << 20,))")
        r.fails("vcuda.create('c', 'u8', (1,))", 2, "store.tensors_per_namespace")
        b("p = [vcuda.create(f'p{i}', 'u8', (1000,), packed=True) for i in range(3)]")
        b.fails("vcuda.create('q', 'u8', (1000,), packed=True)", 2, "store.tensors_per_namespace", "blue")
        b("p[0].close()")
        b("vcuda.create('q', 'u8', (1000,), packed=True)")
