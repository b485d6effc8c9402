#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The index of tensors over a real redis-server: what agents see, and what is left when Redis, its content or an agent
is gone.

    BUILD=build tests/store/registry.py [CASE ...]
"""
import json
import signal
import time
import unittest

from redis_server import Redis, RedisError, eventually, held
from registry_case import SEED, Case


class Requests(Case):
    def test_life(self):
        store = self.store()
        self.assertEqual(store.status("create", "X", "f32", "2,3", "s1"), "made")
        got = self.client.hash("tensor:X")
        self.assertLessEqual(SEED, set(got))
        self.assertEqual((got["dtype"], got["shape"], got["bytes"], got["node"], got["state"]),
                         ("f32", "[2,3]", "24", "n1", "created"))
        self.assertEqual(store.status("create", "X", "f32", "2,3", "s2"), "here")
        self.assertEqual(store.status("create", "default/X", "f32", "6", "s2"), "unlike")
        self.assertEqual(store.status("take", "X", "s3"), "ok")
        self.assertEqual(store.status("take", "X", "s3"), "ok")
        self.assertEqual(self.refcount("X"), 3)
        self.assertEqual(store.status("delete", "X", "s1"), "held")
        self.assertEqual(store.status("seal", "X"), "ok")
        self.assertEqual(self.client.hash("tensor:X")["state"], "sealed")
        self.assertEqual(self.client.hash("tensor:X")["version"], "2")
        store.say("drop", "X", "s2")
        store.say("drop", "X", "s3")
        self.assertEqual(store.status("delete", "X", "s1"), "ok")
        self.assertEqual(store.status("take", "X", "s1"), "missing")
        self.assertEqual(self.client("EXISTS", "tensor:X", "tensor-holders:X"), 0)
        self.assertEqual(self.client("SMEMBERS", "tensor-of:n1"), [])
        self.assertEqual(store.list()["tensors"], "0")

    def test_two_agents_never_own_one_name(self):
        stores = [self.store("n1"), self.store("n2")]
        for some in (range(i, i + 20) for i in range(0, 200, 20)):
            asked = [(store, store.say("create", f"T{i}", "u8", "1", "s")) for i in some for store in stores]
            got = [store.hear(number).split()[0] for store, number in asked]
            for i in range(0, len(got), 2):
                self.assertEqual(sorted(got[i:i + 2]), ["elsewhere", "made"])
        self.assertEqual(sum(int(store.list()["tensors"]) for store in stores), 200)
        mine = {name for node in ("n1", "n2") for name in self.client("SMEMBERS", "tensor-of:" + node)}
        self.assertEqual(len(mine), 200)

    def test_a_lost_tensor_is_missing_and_may_be_made_again(self):
        store, other = self.store("n1"), self.store("n2")
        store.ask("create", "X", "u8", "4", "s")
        self.assertEqual(store.status("lose", "X", "XID-79"), "ok")
        self.assertIn("XID-79", other.ask("take", "X", "t"))
        self.assertEqual(other.status("create", "X", "u8", "5", "t"), "made")
        self.assertEqual(self.client.hash("tensor:X")["node"], "n2")
        self.assertEqual(self.refcount("X"), 1)


class Losses(Case):
    def whole(self, store, names, holders=2):
        """The index says what the store knows, and nothing else."""
        def same():
            return all(self.client.hash(f"tensor:{name}").get("refcount") == str(holders) and
                       self.client("SCARD", f"tensor-holders:{name}") == holders for name in names)
        began = time.monotonic()
        eventually("the registry is whole", same)
        held("the registry is whole", began, 5)
        of = {name.decode() for name in eventually("tensor-of", lambda: self.client("SMEMBERS", "tensor-of:n1"))}
        self.assertEqual(of, set(names))

    def fill(self, store, n=100):
        names = [f"T{i}" for i in range(n)]
        # Each request has 800 ms from when it is asked: no more at once than a busy machine answers in that time.
        for some in (names[i:i + 20] for i in range(0, n, 20)):
            for number in [store.say("create", name, "f32", "4", "a") for name in some]:
                self.assertEqual(store.hear(number).split()[0], "made")
            for number in [store.say("take", name, "b") for name in some]:
                self.assertEqual(store.hear(number).split()[0], "ok")
        return names

    def test_redis_is_killed(self):
        store = self.store()
        names = self.fill(store)
        self.redis.kill()
        self.assertEqual(store.status("create", "new", "u8", "1", "s"), "away")
        self.assertEqual(store.status("take", "T1", "s"), "away")
        store.say("drop", "T0", "b")
        self.assertEqual(store.list()["tensors"], "100")
        self.redis.start()
        self.client.close()
        self.client = self.redis.client()
        self.addCleanup(self.client.close)
        store.ready()
        self.assertEqual(self.refcount("T0"), 1)
        self.assertEqual(store.status("take", "T0", "b"), "ok")
        self.whole(store, names)
        self.assertEqual(store.status("create", "new", "u8", "1", "s"), "made")

    def test_redis_is_stopped(self):
        """It takes what is written and answers nothing."""
        store = self.store()
        names = self.fill(store, 10)
        self.redis.process.send_signal(signal.SIGSTOP)
        asked = [store.say("create", f"new{i}", "u8", "1", "s") for i in range(5)]
        for number in asked:
            self.assertEqual(store.hear(number).split()[0], "away")
        self.redis.process.send_signal(signal.SIGCONT)
        store.ready()
        # What Redis did of them after all is swept: nobody has their memory.
        self.whole(store, names)
        self.assertEqual(self.client("KEYS", "tensor:new*"), [])

    def test_flushall(self):
        store = self.store()
        names = self.fill(store, 500)
        for _ in range(3):
            self.client("FLUSHALL")
            self.whole(store, names)

    def test_flushall_and_a_request_at_once(self):
        """The request itself finds the index empty: nobody's name is given away, nobody waits for a renewal."""
        store = self.store()
        names = self.fill(store)
        for i in range(20):
            self.client("FLUSHALL")
            self.assertEqual(store.status("create", f"T{i}", "f32", "4", "a"), "here")
        self.whole(store, names)
        self.client("SCRIPT", "FLUSH")
        self.client("FLUSHALL")
        self.assertEqual(store.status("take", "T7", "b"), "ok")
        self.whole(store, names)

    def test_a_hash_edited_by_hand(self):
        store = self.store()
        names = self.fill(store, 20)
        edits = [("HSET", "bytes", "999"), ("HSET", "shape", "[2,"), ("HSET", "shape", "[9999999999999999999999]"),
                 ("HSET", "node", "n9"), ("HSET", "epoch", "7"), ("HSET", "refcount", "77"), ("HDEL", "dtype"),
                 ("HSET", "state", "lost"), ("HSET", "ipc_handle", "short"), ("HSET", "device", "-1")]
        for i, (verb, *edit) in enumerate(edits):
            self.client(verb, f"tensor:T{i}", *edit)
            self.assertEqual(store.status("take", f"T{i}", "b"), "ok", edit)
            self.assertIn("somebody else had changed", self.client.hash(f"tensor:T{i}")["error"])
        self.client("SADD", "tensor-holders:T10", "nobody")
        self.assertEqual(store.status("take", "T10", "b"), "ok")
        self.client("SET", "tensor:T11", "a text")
        self.assertEqual(store.status("take", "T11", "b"), "ok")
        self.client("DEL", "tensor-holders:T12")
        self.client("LPUSH", "tensor-holders:T12", "x")
        self.assertEqual(store.status("seal", "T12"), "ok")
        self.whole(store, names)
        # Names that no store has.
        self.client("SET", "tensor:mine", "a text")
        self.client("HSET", "tensor:yours", "dtype", "f32")
        self.assertIn("somebody else has changed", store.ask("create", "mine", "u8", "1", "s"))
        self.assertIn("somebody else has changed", store.ask("take", "yours", "s"))
        self.assertEqual(self.client("GET", "tensor:mine"), b"a text")
        self.whole(store, names)

    def test_an_index_edited_by_hand_that_nobody_asks(self):
        """The agent finds it when it renews its key."""
        store = self.store()
        names = self.fill(store, 20)
        was = {name: self.client.hash("tensor:" + name) for name in names}

        def as_it_was():
            try:
                return (len(self.client("SMEMBERS", "tensor-of:n1")) == len(names) and
                        all({**self.client.hash("tensor:" + name), "error": ""} == was[name] for name in names))
            except RedisError:  # a key is of another kind
                return False
        for edit in (("DEL", "tensor:T0"), ("HSET", "tensor:T1", "bytes", "999"), ("DEL", "tensor-holders:T2"),
                     ("SET", "tensor:T3", "a text"), ("SET", "tensor-of:n1", "a text"),
                     ("DEL", "tensor-of:n1"), ("SREM", "tensor-of:n1", "T4", "T5")):
            self.client(*edit)
            eventually(f"{edit} is mended", as_it_was)
            self.whole(store, names)
        for name in names:
            self.assertEqual(store.status("take", name, "b"), "ok")

    def test_an_agent_is_gone_and_comes_back(self):
        store, other = self.store("n1"), self.store("n2")
        self.fill(store, 600)
        store.kill()
        eventually("n1 has lapsed", lambda: self.client.hash("tensor:T599").get("state") == "lost" and
                   self.client("EXISTS", "tensor-of:n1") == 0)
        for i in range(600):
            got = self.client.hash(f"tensor:T{i}")
            self.assertEqual((got["state"], got["refcount"]), ("lost", "0"))
            self.assertIn("has not renewed node:n1", got["error"])
        self.assertIn("has not renewed", other.ask("take", "T5", "s"))
        self.assertEqual(other.status("create", "T5", "f32", "4", "s"), "made")
        # What it had is lost with it; what is another's now stays.
        self.store("n1", 2)
        self.assertEqual(self.client("KEYS", "tensor:T*"), [b"tensor:T5"])

    def test_an_agent_restarts_before_its_key_lapses(self):
        store = self.store("n1", 1)
        self.fill(store, 50)
        store.kill()
        again = self.store("n1", 2)
        self.assertEqual(self.client("KEYS", "tensor:T*"), [])
        self.assertEqual(again.status("create", "T1", "u8", "9", "s"), "made")
        self.assertEqual(self.client.hash("tensor:T1")["epoch"], "2")

    def test_an_agent_that_was_thought_dead(self):
        store, other = self.store("n1"), self.store("n2")
        names = self.fill(store, 30)
        store.process.send_signal(signal.SIGSTOP)
        eventually("n1 has lapsed", lambda: self.client.hash("tensor:T29").get("state") == "lost" and
                   self.client("EXISTS", "tensor-of:n1") == 0)
        self.assertEqual(other.status("create", "T3", "f32", "4", "s"), "made")
        store.process.send_signal(signal.SIGCONT)
        eventually("n1 is back", lambda: self.client.hash("tensor:T29").get("state") == "created")
        self.whole(store, [name for name in names if name != "T3"])
        self.assertEqual(self.client.hash("tensor:T3")["node"], "n2")
        store.list()
        self.assertIn("renamed T3 node=n2", store.unasked)

    def test_one_node_id_twice(self):
        newer = self.store("n1", 5)
        older = self.store("n1", 4, ready=False)
        self.assertIn("newer epoch", older.ask("create", "X", "u8", "1", "s"))
        self.assertEqual(newer.status("create", "X", "u8", "1", "s"), "made")


class Login(Case):
    options = ("--user", "vcuda", "on", ">secret", "~tensor*", "~node:*", "~answers", "+@all", "-@admin",
               "-@dangerous", "--user", "default", "off")

    def setUp(self):
        self.redis = Redis(*self.options)
        self.addCleanup(self.redis.close)
        self.client = self.redis.client()
        self.addCleanup(self.client.close)
        self.client("AUTH", "vcuda", "secret")
        self.password = self.redis.folder + "/password"

    def put(self, text):
        with open(self.password, "w") as file:
            file.write(text)

    def test_a_user_of_its_own(self):
        self.put("secret\n")
        store = self.store("n1", 1, 1, "vcuda", self.password)
        self.assertEqual(store.status("create", "X", "u8", "1", "s"), "made")
        self.client("LPUSH", "tensor:cmd", json.dumps({"op": "get", "name": "X", "reply": "answers"}))
        self.assertTrue(self.client("BRPOP", "answers", 30))

    def test_a_wrong_password(self):
        self.put("guess\n")
        store = self.store("n1", 1, 1, "vcuda", self.password, ready=False)
        said = eventually("the reason", lambda: (lambda text: "WRONGPASS" in text and text)(
            store.ask("create", "X", "u8", "1", "s")))
        self.assertTrue(said.startswith("away"))
        self.assertNotIn("guess", said + store.said())
        # A new one needs no restart.
        self.put("secret\n")
        store.ready()
        self.assertEqual(store.status("create", "X", "u8", "1", "s"), "made")

    def test_no_password_file(self):
        store = self.store("n1", 1, 1, "vcuda", self.password, ready=False)
        eventually("the reason", lambda: "No such file" in store.ask("take", "X", "s"))


class Speed(Case):
    def test_deadline(self):
        """Nothing listens: an answer comes all the same, within a second."""
        self.redis.kill()
        store = self.store(ready=False)
        began = time.monotonic()
        self.assertEqual(store.status("take", "X", "s"), "away")
        held("away", began, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
