#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands that come by a real redis-server's lists: whoever may write there gets tensors, once for each id, and what is
left when those that serve them are gone.

    BUILD=build tests/store/registry_commands.py [CASE ...]
"""
import json
import signal
import subprocess
import unittest

from redis_server import eventually
from registry_case import SEED, Case


class FromOutside(Case):
    def tearDown(self):
        self.check_counts()

    def test_redis_cli_alone(self):
        self.store()
        command = {"op": "create", "name": "X", "dtype": "f32", "shape": [2, 3], "device": 0}
        self.redis.cli("LPUSH", "tensor:cmd", json.dumps(command))
        eventually("the tensor", lambda: "f32" in self.redis.cli("HGETALL", "tensor:X"))
        self.assertLessEqual(SEED, set(self.redis.cli("HKEYS", "tensor:X").split("\n")))
        self.assertEqual(len(self.client("HGET", "tensor:X", "ipc_handle")), 64)
        self.redis.cli("LPUSH", "tensor_lifecycle", json.dumps({"op": "get", "name": "X", "reply": "mine"}))
        answer = eventually("an answer", lambda: self.redis.cli("RPOP", "mine"))
        self.assertEqual(json.loads(answer)["bytes"], 24)
        self.redis.cli("LPUSH", "tensor:cmd", json.dumps({"op": "delete", "name": "X"}))
        eventually("it is deleted", lambda: self.redis.cli("EXISTS", "tensor:X") == "0")
        self.assertEqual(self.redis.cli("LLEN", "tensor-taken:n1"), "0")

    def test_bad_commands(self):
        store = self.store()
        commands = self.commands()
        good = {"op": "create", "name": "X", "dtype": "f32", "shape": [2, 3]}
        commands.ask(**good)
        for change, why in [
                ({"op": "grow"}, '"op" is none of'), ({"op": 7}, '"op" is no text'),
                ({"dtype": "f31"}, "the dtype is none of"), ({"dtype": None}, '"dtype" is no text'),
                ({"shape": [-1]}, "dimension 0"), ({"shape": [2, 0]}, "dimension 1"), ({"shape": [1.5]}, "dimension 0"),
                ({"shape": ["2"]}, "dimension 0"), ({"shape": 6}, "no list"), ({"shape": [1 << 40, 1 << 40]}, "2^50"),
                ({"shape": [1e300]}, "dimension 0"), ({"shape": [1] * 17}, "more than 16"),
                ({"name": "n" * 257}, "256"), ({"name": "a\nb"}, "control byte"), ({"name": ""}, "empty"),
                ({"name": "a b/x"}, "namespace"), ({"name": "cmd"}, "list of commands"), ({"name": ["X"]}, "no text"),
                ({"device": 7}, "no agent has a device 7"), ({"device": -1}, '"device" is no whole'),
                ({"device": 7, "node": "n1"}, "n1 has no device 7"), ({"node": "n9"}, "there is no agent n9"),
                ({"shape": [6]}, "is there with dtype f32 and shape [2,3]"), ({"pid": 0x7ffffffe}, "no process"),
                ({"pid": -4}, '"pid" is no whole'), ({"pid": 1, "ttl": 1}, "both"), ({"id": "a b"}, '"id" has'),
                ({"op": "get", "name": "Y"}, "no tensor with this name"),
                ({"op": "delete", "name": "Y"}, "no tensor with this name")]:
            answer = commands.ask(**{**good, **change})
            self.assertIn(why, answer.get("error", ""), change)
        deep = '{"reply":"answers","op":' + "[" * 100 + "]" * 100 + "}"
        broken = ["", "{", "[]", "null", '{"op":"create"', good.__repr__(), deep, '{"op":"get","op":"get"}', "x" * 70000,
                  '{"name":"X\\u0000"}', '{"reply":"tensor:X","op":"get"}', '{"reply":"node:n1"}', '{"a":1}trailing', "\0\xff"]
        for text in broken:
            commands.raw(text)
        eventually("each is told", lambda: self.client("LLEN", "tensor-errors") == len(broken))
        for text in self.client("LRANGE", "tensor-errors", 0, -1):
            self.assertTrue(json.loads(text)["error"])
        # Where nobody waits for the answer, the hash says it; and nothing was lost.
        commands.push(op="create", name="bad", dtype="f31", shape=[1])
        eventually("an error in a hash", lambda: "dtype" in self.client.hash("tensor:bad").get("error", ""))
        self.assertEqual(commands.ask(op="create", name="bad", dtype="u8", shape=[1])["status"], "made")
        self.assertEqual(commands.ask(op="get", name="X")["shape"], [2, 3])
        store.ask("take", "X", "s1")
        store.ask("take", "X", "s2")
        self.assertIn("2 hold", commands.ask(op="delete", name="X")["error"])
        self.assertEqual(store.list()["tensors"], "2")
        self.assertEqual(self.client("LLEN", "tensor-taken:n1"), 0)

    def test_an_id_is_done_once(self):
        store, commands = self.store(), self.commands()
        create = dict(op="create", name="X", dtype="u8", shape=[4], id="c-1")
        first = commands.ask(**create)
        self.assertEqual((first["status"], first["id"]), ("made", "c-1"))
        self.assertEqual(commands.ask(op="delete", name="X", id="d-1")["status"], "ok")
        # It is told what it was told, and no tensor is made.
        self.assertEqual(commands.ask(**create), first)
        self.assertEqual(self.client("EXISTS", "tensor:X"), 0)
        self.assertEqual(commands.ask(op="delete", name="X", id="d-1")["status"], "ok")
        self.assertEqual(store.list()["tensors"], "0")

    def test_a_node_is_named(self):
        stores = [self.store("n1", 1, 1), self.store("n2", 1, 4)]
        commands = self.commands()
        for i in range(20):
            node = f"n{1 + i % 2}"
            self.assertEqual(commands.ask(op="create", name=f"T{i}", dtype="u8", shape=[1], node=node)["node"], node)
            # From either agent's hands: the one that has it answers.
            self.assertEqual(commands.ask(op="get", name=f"T{i}")["node"], node)
        for i in range(10):
            self.assertEqual(commands.ask(op="create", name=f"D{i}", dtype="u8", shape=[1], device=3)["node"], "n2")
        for i in range(20):
            self.assertEqual(commands.ask(op="delete", name=f"T{i}")["status"], "ok")
        self.assertEqual([store.list()["tensors"] for store in stores], ["0", "10"])

    def test_holders_of_commands_end(self):
        store, commands = self.store(), self.commands()
        sleeper = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        made = commands.ask(op="create", name="P", dtype="u8", shape=[1], pid=sleeper.pid)
        self.assertEqual((made["owner_pid"], made["refcount"]), (sleeper.pid, 1))
        self.assertEqual(commands.ask(op="create", name="T", dtype="u8", shape=[1], ttl=1)["refcount"], 1)
        self.assertEqual(commands.ask(op="create", name="N", dtype="u8", shape=[1])["refcount"], 0)
        self.assertEqual(commands.ask(op="get", name="N", pid=sleeper.pid)["refcount"], 1)
        eventually("its time is over", lambda: not self.client("EXISTS", "tensor:T"))
        self.assertEqual(self.client("EXISTS", "tensor:P"), 1)
        self.assertIn("1 hold", commands.ask(op="delete", name="P")["error"])
        sleeper.kill()
        eventually("its process is gone", lambda: not self.client("EXISTS", "tensor:P"))
        eventually("and all is told", lambda: store.list()["tensors"] == "0")

    def test_ten_thousand_with_an_agent_killed(self):
        """Each is answered once and done once, whoever has it in hand when it dies."""
        stores = [self.store("n1"), self.store("n2")]
        commands = self.commands()
        n = 10000
        for i in range(n):
            commands.client.send("LPUSH", "tensor:cmd", json.dumps(
                {"op": "create", "name": f"T{i}", "dtype": "u8", "shape": [8], "id": f"i{i}", "reply": "answers"}))
        for i in range(n):
            commands.client.answer()
        eventually("some are done", lambda: self.client("LLEN", "answers") > n // 10)
        # It has some in hand when it dies.
        def stopped_with_some():
            stores[0].process.send_signal(signal.SIGSTOP)
            if self.client("LLEN", "tensor-taken:n1") or not self.client("LLEN", "tensor:cmd"):
                return True
            stores[0].process.send_signal(signal.SIGCONT)
            return False
        eventually("n1 has some in hand", stopped_with_some)
        self.assertGreater(self.client("LLEN", "tensor-taken:n1"), 0)
        stores[0].kill()
        eventually("all are done", lambda: self.client("LLEN", "answers") >= n, 240)
        self.assertEqual(self.client("LLEN", "tensor:cmd"), 0)
        eventually("none is in hand", lambda: not self.client("EXISTS", "tensor-taken:n1", "tensor-taken:n2"))
        answers = [json.loads(text) for text in self.client("LRANGE", "answers", 0, -1)]
        self.assertEqual(len(answers), n)
        self.assertEqual(len({answer["id"] for answer in answers}), n)
        for answer in answers:
            self.assertNotIn("error", answer)
        n2 = sum(answer["node"] == "n2" for answer in answers)
        self.assertGreater(n2, 0)
        # All that n2 answered for is there, and nothing else.
        self.assertEqual(self.client("SCARD", "tensor-of:n2"), n2)
        self.assertEqual(stores[1].list()["tensors"], str(n2))

    def test_redis_killed_between_commands(self):
        """What a dead Redis had in its lists is gone with it; what an agent has in hand ends, and it takes new ones."""
        store, commands = self.store(), self.commands()
        commands.ask(op="create", name="X", dtype="u8", shape=[8])
        for _ in range(3):
            for i in range(50):
                commands.push(op="get", name="X", reply="answers")
            self.redis.kill()
            self.redis.start()
            commands.close()
            commands = self.commands()
            self.assertEqual(commands.ask(op="get", name="X")["bytes"], 8)
        self.assertEqual(store.list()["tensors"], "1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
