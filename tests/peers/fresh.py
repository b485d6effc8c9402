#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From machines that have nothing to a first step, a loop that a killed validator does not end, and workers that turn bad.

    BUILD=build tests/peers/fresh.py      # by a Python with PyTorch and Ray
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import validator  # noqa: E402
from peers import ADA, BIN, BOB, CID, PACKAGE, environment, eventually  # noqa: E402
from redis_server import Redis  # noqa: E402
from stack import alive, become_subreaper, start  # noqa: E402
from validator import PATIENCE, VCUDA, free_ports  # noqa: E402

BARS = os.environ.get("VCUDA_TEST_BARS")


class Fresh(validator.Case):
    def held(self, what, took, most):
        print(f"{what}: {took:.1f} s (<= {most})", flush=True)
        self.assertTrue(took <= most or not BARS, what)

    def join(self, host, name="lab", fault="", again=False):
        """This machine as HOST's: its agent begins with its first network."""
        folder = os.path.join(self.folder, "of-" + host)
        if not os.path.exists(folder):
            os.mkdir(folder, 0o700)
            self.at[host] = free_ports()[0]
        redis = {"lab": self.redis, "annex": self.annex}[name]
        self.write(f"{host}.{name}.token", f"token-of-{name}\n")
        file = self.write(f"{host}.{name}.yaml", f"name: {name}\ndirectory: {redis.address}\ntoken_file: {host}.{name}.token\n"
                          f"address: {host}\n")
        flags = ("--", "--driver", "software", "--address", host, "--ports", f"0,{self.at[host]},0") if host not in self.agents or again else ()
        got = subprocess.run([VCUDA, "peer", "join", "--folder", folder, file, *flags], capture_output=True, text=True, timeout=60,
                             stdin=subprocess.DEVNULL, env=environment({"XDG_CACHE_HOME": folder, "VCUDA_SOFTGPU_MEMORY": "512M",
                                                                        "VCUDA_SOFTGPU_FAULT": fault, "VCUDA_SOFTGPU_IDENTITY": host}))
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        self.agents.add(host)
        if not again:
            self.addCleanup(subprocess.run, [VCUDA, "peer", "leave", "--no-wait", "--folder", folder, name], timeout=60,
                            stdin=subprocess.DEVNULL, capture_output=True)
        return f"{host}-{self.at[host]}"

    def pid(self, host):
        with open(os.path.join(self.folder, "of-" + host, "agent.json")) as file:
            return json.load(file)["pid"]

    def step(self):
        try:
            with open(os.path.join(self.folder, "step")) as file:
                return int(file.read())
        except OSError:
            return 0

    def test_fresh_machines(self):
        self.at, self.agents = {}, set()
        self.annex = Redis()
        self.addCleanup(self.annex.close)
        self.write("token", "token-of-lab\n")
        began = time.monotonic()
        ada, bob, cid = (self.join(host) for host in (ADA, BOB, CID))
        self.join(CID, "annex")
        first = self.validator(every="60")
        for node in (ada, bob, cid):
            self.verdict(node, state="admitted", reason="")
        got = self.train(64, 4, 8)
        self.assertEqual((got.returncode, got.stdout.splitlines()[-1:]), (0, ["right"]), got.stdout + got.stderr)
        self.held("from the first join to the first step", time.monotonic() - began, 60)
        status = json.loads(got.stdout.split("status ", 1)[1].splitlines()[0])
        self.assertEqual([one["worker"] for one in status["workers"]], sorted((ada, bob, cid)))
        self.two_networks(cid)
        second = self.a_killed_validator(first)
        self.who_turns_bad(ada, bob, cid)
        self.end(second)

    def two_networks(self, cid):
        """What each one's directory has, and whose token its agents take."""
        annex = self.write("annex.yaml", f"name: annex\ndirectory: {self.annex.address}\ntoken_file: {CID}.annex.token\n")
        said = json.loads(self.peers_right("status", annex, "--json"))
        self.assertEqual([one["node"] for one in said["workers"]], [cid])
        for host, taken in ((CID, True), (ADA, False)):
            got = subprocess.run([VCUDA, "doctor", "--agent", f"{host}:{self.at[host]}", "--token-file",
                                  os.path.join(self.folder, f"{CID}.annex.token")], capture_output=True, text=True, timeout=60,
                                 env=environment())
            self.assertEqual("the token is not the agent's" not in got.stdout + got.stderr, taken, got.stdout + got.stderr)

    def a_killed_validator(self, first):
        """The loop goes on without one, and with the next."""
        loop = start([sys.executable, "-m", "vcuda_peers", "run", self.network, "--vcuda", os.path.join(BIN, "vcuda"), "--",
                      sys.executable, os.path.join(HERE, "loop.py"), self.folder], stdout=subprocess.PIPE, text=True,
                     env=environment({"PYTHONPATH": PACKAGE}))

        def goes_on(where):
            before = self.step()
            eventually(f"the loop goes on {where}", lambda: self.step() >= before + 3 or loop.poll() is not None, PATIENCE)
            self.assertIsNone(loop.poll(), where)
        goes_on("at first")
        first.kill()
        first.wait()
        began = time.monotonic()
        goes_on("without a validator")
        second = self.validator("--no-seats", every="60", wait=False)
        eventually("the next has the lease", lambda: f'"pid":{second.pid},' in self.redis.cli("GET", "validator:lab"), PATIENCE)
        self.held("from a validator's death until the next has the directory", time.monotonic() - began, 15)
        goes_on("with the next validator")
        self.write("stop", "")
        said, _ = loop.communicate(timeout=PATIENCE)
        self.assertEqual((loop.returncode, said.startswith("right in ")), (0, True), said)
        eventually("the next one judges", lambda: self.log().count("Ray's head is") == 2, PATIENCE)
        return second

    def who_turns_bad(self, ada, bob, cid):
        """Each was admitted, and is tested every minute."""
        self.entry("old", f"{ADA}:{self.at[ADA]}")
        for node in (ada, bob, cid, "old"):
            self.verdict(node, state="admitted")
        began = time.monotonic()
        self.redis.cli("HSET", "node:old", "version", "0.0.8")
        self.write(f"{BOB}.lab.token", "another\n")
        agent = self.pid(CID)
        os.kill(agent, signal.SIGKILL)  # and comes back with a GPU that computes wrongly, before its entry lapses
        eventually("it has ended", lambda: not alive(agent), PATIENCE)
        self.assertEqual(self.join(CID, fault="wrong-result=5", again=True), cid)
        for node, reason in (("old", "it is version 0.0.8"), (bob, "the token is not the agent's"), (cid, "numbers wrong")):
            eventually(f"{node} is out: {reason}", lambda node=node, reason=reason: reason in
                       self.client.hash("peer:" + node).get("reason", ""), PATIENCE)
        self.held("from turning bad to the last eviction", time.monotonic() - began, 90)
        said = json.loads(self.peers_right("status", self.network, "--json"))
        verdicts = {one["node"]: one["verdict"] for one in said["workers"]}
        self.assertIn(verdicts.pop(cid), ("evicted", "refused"))  # where its entry was away for a moment it is a new one
        self.assertEqual(verdicts, {ada: "admitted", "old": "evicted", bob: "evicted"})


if __name__ == "__main__":
    become_subreaper()
    unittest.main(verbosity=2)
