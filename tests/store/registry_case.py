# SPDX-License-Identifier: Apache-2.0
"""What the tests of the registry share: a Redis of their own, and stores and commands that use it."""
import unittest

from redis_server import Commands, Redis, Store

SEED = {"name", "dtype", "shape", "device", "bytes", "ipc_handle", "owner_pid", "refcount", "ctime", "mtime"}


class Case(unittest.TestCase):
    options = ()

    def setUp(self):
        self.redis = Redis(*self.options)
        self.addCleanup(self.redis.close)
        self.client = self.redis.client()
        self.addCleanup(self.client.close)

    def store(self, *arguments, **options):
        store = Store(self.redis.address, *arguments, **options)
        self.addCleanup(store.close)
        return store

    def commands(self, *arguments, **options):
        commands = Commands(self.redis, *arguments, **options)
        self.addCleanup(commands.close)
        return commands

    def refcount(self, name):
        got = self.client.hash("tensor:" + name)
        self.assertEqual(int(got["refcount"]), self.client("SCARD", "tensor-holders:" + name))
        return int(got["refcount"])

    def check_counts(self):
        """How many names an agent's sets have stands in its entry: were it wrong, each renewal would fill anew."""
        client = self.redis.client()
        for key in client("KEYS", "node:*"):
            entry = client.hash(key.decode())
            for name in ("of", "copies"):
                if name in entry:
                    self.assertEqual(int(entry[name]), client("SCARD", f"tensor-{name}:{key.decode()[5:]}"), entry)
        client.close()
