#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas over a real redis-server: what a second agent has of a sealed tensor, and what is left when either agent is
gone.

    BUILD=build tests/store/registry_replicas.py [CASE ...]
"""
import os
import signal
import time
import unittest

from redis_server import eventually
from registry_case import Case


class Replicas(Case):
    """What a second agent has of a sealed tensor, and what is left when either agent is gone."""
    tickets = 0

    def tearDown(self):
        self.check_counts()

    def replica(self, store, name="X", space="default"):
        Replicas.tickets += 1
        return store.ask("replica", name, f"{Replicas.tickets:032x}", space).split()[0]

    def pair(self, seal=True):
        first, second = self.store("n1"), self.store("n2")
        self.assertEqual(first.status("create", "X", "u8", "4", "s1"), "made")
        if seal:
            self.assertEqual(first.status("seal", "X"), "ok")
        return first, second

    def of(self, node):
        return [name.decode() for name in self.client("SMEMBERS", "tensor-copies:" + node)]

    def test_life(self):
        first, second = self.pair()
        self.assertEqual(second.status("take", "X", "s1"), "elsewhere")
        self.assertEqual(self.replica(second), "ok")
        got = self.client.hash("tensor:X")
        self.assertEqual((got["node"], got["replicas"]), ("n1", "n2"))
        self.assertEqual(second.status("take", "X", "s1"), "ok")
        self.assertEqual(self.refcount("X"), 2, "each agent has sessions of its own numbers")
        self.client("DEL", "tensor-copies:n2")
        eventually("somebody's hand is noticed", lambda: self.of("n2") == ["X"])
        second.say("drop", "X", "s1")
        self.assertEqual(second.status("take", "X", "s2"), "ok")
        self.assertEqual(self.refcount("X"), 2)
        self.assertEqual(second.status("delete", "X", "s2"), "elsewhere")
        self.assertEqual(first.status("force", "X", "s1"), "ok")
        self.assertEqual(self.client("KEYS", "tensor-replica:*"), [])
        self.assertEqual(self.of("n2"), [])
        eventually("the other one is told", lambda: second.list()["tensors"] == "0")
        self.assertEqual(second.status("take", "X", "s2"), "missing")

    def test_one_that_is_not_sealed_or_not_the_same(self):
        first, second = self.pair(seal=False)
        self.assertEqual(self.replica(second), "missing")
        self.assertEqual(first.status("seal", "X"), "ok")
        self.client("HSET", "tensor:X", "ctime", "5")  # as if it were made anew since
        self.assertIn(self.replica(second), ("ok", "missing"))
        self.assertEqual(first.status("take", "X", "s1"), "ok")

    def test_a_ticket_is_good_once_and_at_its_agent(self):
        first, second = self.pair()
        third = self.store("n3")
        ticket = "ab" * 16
        self.assertEqual(second.ask("replica", "X", ticket, "team").split()[0], "ok")
        self.assertEqual(third.ask("redeem", ticket), "missing")
        self.assertEqual(first.ask("redeem", ticket), "missing", "somebody has had it")
        self.assertEqual(second.ask("replica", "X", ticket, "team").split()[0], "ok")
        self.assertEqual(first.ask("redeem", ticket), "ok name=X for=team by=n2")
        self.assertEqual(first.ask("redeem", ticket), "missing")
        self.assertEqual(first.ask("redeem", "cd" * 16), "missing")

    def test_the_first_agent_and_a_replicas_die(self):
        first, second = self.pair()
        third = self.store("n3")
        self.assertEqual(self.replica(second), "ok")
        second.ask("take", "X", "s1")
        self.assertEqual(second.status("create", "Z", "u8", "4", "s1"), "made")
        self.assertEqual(second.status("seal", "Z"), "ok")
        self.assertEqual(self.replica(third, "Z"), "ok")
        third.ask("take", "Z", "s1")
        self.assertEqual((self.client.hash("tensor:Z")["replicas"], self.refcount("Z")), ("n3", 2))
        third.kill()
        self.assertEqual(first.status("create", "Y", "u8", "4", "s1"), "made")
        first.kill()
        killed = time.monotonic()
        eventually("it is marked", lambda: self.client.hash("tensor:Y").get("state") == "lost")
        if os.environ.get("VCUDA_TEST_BARS"):
            self.assertLess(time.monotonic() - killed, 12)
        got = self.client.hash("tensor:X")
        self.assertEqual((got["node"], got["state"], got["replicas"], got["gpu_uuid"], got["error"]),
                         ("n2", "sealed", "", "GPU-copy", ""))
        self.assertEqual(self.refcount("X"), 1)
        eventually("it is marked", lambda: self.client.hash("tensor:Z")["replicas"] == "")
        self.assertEqual(self.refcount("Z"), 1)
        self.assertEqual(second.status("take", "X", "s2"), "ok")
        eventually("it knows", lambda: second.list() and "first X" in second.unasked)
        again = self.store("n1", 2)
        self.assertEqual(again.status("take", "X", "s1"), "elsewhere")
        self.assertEqual(self.client.hash("tensor:X")["node"], "n2")
        self.assertEqual(second.status("delete", "X", "s9"), "held")

    def test_the_first_agent_is_back_with_nothing_before_its_key_lapses(self):
        first, second = self.pair()
        self.assertEqual(self.replica(second), "ok")
        first.kill()
        self.store("n1", 2)
        self.assertEqual(self.client.hash("tensor:X")["node"], "n2")

    def test_yield(self):
        first, second = self.pair()
        self.assertEqual(self.replica(second), "ok")
        second.ask("take", "X", "s7")
        first.say("yield", "X", "GPU-0")  # a card that fell
        eventually("the replica is the first", lambda: self.client.hash("tensor:X")["node"] == "n2")
        second.say("yield", "X", "GPU-9")
        eventually("it is lost", lambda: self.client.hash("tensor:X")["state"] == "lost")
        self.assertIn("GPU-9", self.client.hash("tensor:X")["error"])
        self.assertIn("GPU-9", first.ask("take", "X", "s1"))
        self.assertEqual(first.status("create", "X", "u8", "4", "s1"), "made")

    def test_nobody_holds_it(self):
        """Its last holder has left: the replica goes too, unless somebody there holds it."""
        for holders in (0, 1):
            first, second = self.pair()
            self.assertEqual(self.replica(second), "ok")
            if holders:
                second.ask("take", "X", "s7")
            first.say("yield", "X")
            eventually("it has yielded", lambda: self.client.hash("tensor:X").get("node") != "n1")
            self.assertEqual(self.client("EXISTS", "tensor:X"), holders)
            first.close()
            second.close()
            self.client("FLUSHALL")

    def test_the_answer_to_who_takes_a_replica_gets_lost(self):
        """Redis has the holder, its agent has not: the first one's agent gives the tensor up meanwhile, and nobody has
        it any more."""
        first, second = self.pair()
        self.assertEqual(self.replica(second), "ok")
        os.kill(second.process.pid, signal.SIGSTOP)
        self.client("SADD", "tensor-holders:X", "n2/s1")
        self.client("HSET", "tensor:X", "refcount", "2")
        first.say("drop", "X", "s1")
        first.say("yield", "X", "")
        eventually("what is held is the first", lambda: self.client.hash("tensor:X").get("node") == b"n2"
                   or self.client.hash("tensor:X").get("node") == "n2")
        self.client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        os.kill(second.process.pid, signal.SIGCONT)
        eventually("it is gone", lambda: not self.client("EXISTS", "tensor:X"))
        eventually("here, too", lambda: second.list()["tensors"] == "0")
        self.assertEqual(self.client("EXISTS", "tensor-of:n2"), 0)

    def test_flushall(self):
        first, second = self.pair()
        self.assertEqual(self.replica(second), "ok")
        second.ask("take", "X", "s7")
        for _ in range(3):
            self.client("FLUSHALL")
            eventually("the registry is whole", lambda: self.client.hash("tensor:X").get("replicas") == "n2" and
                       self.client.hash("tensor:X")["refcount"] == "2")
        self.assertEqual(second.status("take", "X", "s8"), "ok")
        self.assertEqual(self.refcount("X"), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
