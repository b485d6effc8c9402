# SPDX-License-Identifier: Apache-2.0
"""Processes of the agent's node that do not run under vcuda: its Unix socket (store.socket), and the machine's driver."""
import json
import os
import signal
import socket
import stat
import struct

from stack import Agent, freeze
from tensors import Native, Program, children, folder, store_of, tensors, wait_for
from test_limits import two_tenants


class Node:
    """A stack whose store has a socket, in a folder of its own."""

    def __init__(self, *flags):
        self.flags = flags

    def __enter__(self):
        self.folder = folder()
        self.path = self.folder.__enter__()
        self.socket = os.path.join(self.path, "tensors.sock")
        self.stack = tensors("--set", f"store.socket={self.socket}", *self.flags)
        self.s = self.stack.__enter__()
        return self

    def native(self, **more):
        return Native(self.path, self.socket, **more)

    def __exit__(self, *what):
        try:
            return self.stack.__exit__(*what)
        finally:
            self.folder.__exit__(*what)


def test_a_native_process_reads_what_a_pod_wrote_and_the_other_way_round():
    with Node() as node:
        assert stat.S_IMODE(os.stat(node.socket).st_mode) == 0o660
        pod, native = node.s.program(), node.native()
        pod("a = vcuda.create('a', 'u8', (3 << 20,)); fill(a, 7); a.seal()")
        native("a = vcuda.get('a')")
        assert native("every(a), a.writable, a.sealed, a.device") == (7, False, True, 0)
        native("b = vcuda.create('b', 'f16', (100, 2)); fill(b, 9)")
        assert native("b.made, b.owned, b.writable") == (True, True, True)
        pod("b = vcuda.get('b')")
        assert pod("every(b)") == 9
        native("b.seal()")
        assert pod("vcuda.stat('b')['holders'], vcuda.stat('b')['sealed']") == (2, True)
        assert native("sorted(t['name'] for t in vcuda.names())") == ["default/a", "default/b"]
        # Neither's kernel writes what is sealed.
        native.fails("put(b, 1)", 700)
        assert pod("every(b)") == 9
        # Its end is an end as a session's.
        native.end()
        wait_for(lambda: pod("vcuda.stat('b')['holders']") == 1, 30, "the process is no holder any more")
        pod("b.close()")
        pod.fails("vcuda.get('b')", 500)
        pod.end()


def test_who_wrote_beside_the_owner_is_told_that_it_is_sealed():
    with Node() as node:
        pod, native = node.s.program(), node.native()
        pod("a = vcuda.create('a', 'u8', (4096,)); fill(a, 1)")
        native("a = vcuda.get('a', write=True); fill(a, 2)")
        assert pod("every(a)") == 2
        freeze(native.pid)
        pod.send("a.seal()")
        other = node.s.program()
        other("b = vcuda.create('b', 'u8', (64,)); b.seal()")
        assert len(pod.lines) == pod.at, "the seal returned while a process of the node could write"
        os.kill(native.pid, signal.SIGCONT)
        pod.answer(60)
        native.fails("put(a, 5)", 700)
        other.end()
        assert pod("every(a)") == 2
        native.end()
        pod.end()


def test_a_seal_says_that_a_process_of_the_node_may_still_write():
    """Nobody else can take its mapping away, so nobody is told that it is gone."""
    with Node() as node:
        pod, native = node.s.program(), node.native()
        pod("a = vcuda.create('a', 'u8', (4096,)); fill(a, 1)")
        native("a = vcuda.get('a', write=True); fill(a, 2)")
        freeze(native.pid)
        pod.fails("a.seal()", 802, "has not ended")
        os.kill(native.pid, signal.SIGCONT)
        pod("a.seal()", 60)
        native.fails("put(a, 5)", 700)
        assert pod("every(a)") == 2


def test_front_and_store_that_are_killed_are_asked_again():
    with Node() as node:
        pod, native = node.s.program(), node.native()
        pod("a = vcuda.create('a', 'u8', (4096,), keep=True); fill(a, 4); a.seal()")
        native("a = vcuda.get('a')")
        os.kill(store_of(node.s.agent), signal.SIGKILL)
        assert native("every(vcuda.get('a'))") == 4
        front = node.s.agent.front()
        os.kill(front, signal.SIGKILL)
        wait_for(lambda: children(node.s.agent.pid, "agent-front") not in ([], [front]), 30, "there is another front")
        assert native("every(a)") == 4

        def again():
            try:
                return native("every(vcuda.get('a'))") == 4
            except Exception as error:
                assert error.status == 802, error
                return False
        wait_for(again, 30, "it is asked again")
        # That one was closed. What the connection before it had open does not keep its hold.
        wait_for(lambda: pod("vcuda.stat('a')['holders']") == 1, 30, "the pod alone holds it")
        native("a.close()")
        native.end()
        pod.end()


def test_tokens_are_namespaces_here_too():
    with folder() as path:
        at = os.path.join(path, "tensors.sock")
        _, red, _ = two_tenants(path, "--set", f"store.socket={at}")
        pod = Program(red.socket)
        pod("a = vcuda.create('a', 'u8', (64,)); fill(a, 3); a.seal()")
        mine = Native(path, at, token=os.path.join(path, "red.token"))
        assert mine("every(vcuda.get('a'))") == 3
        other = Native(path, at, token=os.path.join(path, "blue.token"))
        other.fails("vcuda.get('red/a')", 500)
        Native(path, at).fails("vcuda.get('a')", 802, "token that is nobody's")


def test_without_an_agent_it_says_so():
    with folder() as path:
        alone = Native(path, os.path.join(path, "nothing.sock"))
        alone.fails("vcuda.stat('a')", 100, "vcuda is not preloaded here", "nothing.sock")
        alone.end()


def test_what_makes_no_sense_hurts_nobody_else():
    with Node() as node:
        native = node.native()
        native("a = vcuda.create('a', 'u8', (4096,)); fill(a, 6)")
        hello = struct.pack("<8sII256s", b"vcudaSOC", 1, 0, b"")
        for words in ([b""], [b"x"], [b"\xff" * 4096], [hello[:-1]], [b"y" + hello[1:]], [hello, b"\0" * 8],
                      [hello, struct.pack("<II", 1, 99) + bytes(1000)], [hello, hello],
                      [hello, struct.pack("<II", 1, 1) + b"\xff" * 1200]):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
                one.settimeout(20)
                one.connect(node.socket)
                for word in words:
                    one.send(word)
                assert one.recv(1) == b"", words
        # Those who say nothing go; many at once leave room for others when they are gone.
        silent = []
        for _ in range(300):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.settimeout(20)
            one.connect(node.socket)
            silent.append(one)
        assert silent[0].recv(1) == b""
        for one in silent:
            one.close()
        assert native("every(vcuda.get('a'))") == 6
        native.end()


def test_a_reload_is_not_noticed_by_who_asks_again():
    with folder() as path:
        at, file = os.path.join(path, "tensors.sock"), os.path.join(path, "agent.yaml")

        def configure(mib):
            with open(file, "w") as out:
                out.write(f"store:\n  bytes: {mib}MiB\n  socket: {at}\n")
        configure(16)
        agent = Agent(path, "--config", file)
        native = Native(path, at)
        native("a = vcuda.create('a', 'u8', (64,), keep=True); fill(a, 3); a.seal()")
        front = agent.front()
        configure(64)
        os.kill(agent.pid, signal.SIGHUP)
        wait_for(lambda: "event=agent.reloaded" in agent.log() and agent.front() != front, 30, "there is another front")
        wait_for(lambda: json.loads(agent.http("/v1/tensors"))["tensors"], 30, "it knows the tensors")
        assert native("every(vcuda.get('a'))") == 3
        native("b = vcuda.create('b', 'u8', (32 << 20,)); fill(b, 4)")
        assert native("every(a), every(b)") == (3, 4)
        native.end()
