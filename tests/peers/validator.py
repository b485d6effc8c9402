#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The validator of python/vcuda-peers: who is admitted, seats, jobs, and what is left when one dies.

    BUILD=build tests/peers/validator.py [CASE ...]      # by a Python with PyTorch and Ray
"""
import concurrent.futures
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import psutil
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import peers  # noqa: E402
from peers import ADA, BIN, BOB, PACKAGE, ROOT, Agent, clean, environment, eventually  # noqa: E402
from stack import become_subreaper, start  # noqa: E402

EVE, MAX = "127.0.0.4", "127.0.0.5"
PATIENCE = 150  # seconds, of a machine that does other things
VCUDA = os.path.join(BIN, "vcuda")


def free_ports():
    """(P, D): P and P + 1 are free, and D."""
    while True:
        with socket.socket() as one, socket.socket() as two, socket.socket() as three:
            one.bind(("", 0))
            try:
                two.bind(("", one.getsockname()[1] + 1))
            except OSError:
                continue
            three.bind(("", 0))
            return one.getsockname()[1], three.getsockname()[1]


class Case(peers.Case):
    def setUp(self):
        super().setUp()
        self.ports = free_ports()
        self.client = self.redis.client()  # a redis-cli for each look would want a good part of a core
        self.addCleanup(self.client.close)

    def clean(self):
        self.assertEqual(clean(), [], "left behind")

    def agent(self, node, *flags, token="token", **env):
        agent = Agent(os.path.join(self.folder, node), "--address", node, "--token-file", os.path.join(self.folder, token),
                      "--set", f"store.registry={self.redis.address}", "--set", f"store.node={node}", "--set",
                      "store.bytes=1MiB", "--set", "nccl.allowed=true", *flags,
                      env={"VCUDA_SOFTGPU_MEMORY": "64M", "VCUDA_SOFTGPU_IDENTITY": node, **env})
        eventually(f"{node} is there", lambda: self.redis.cli("EXISTS", "node:" + node) == "1")
        return agent

    def entry(self, node, address, **more):
        words = {"address": address, "devices": "1", **more}
        self.redis.cli("HSET", "node:" + node, *(word for pair in words.items() for word in pair))
        self.redis.cli("SADD", "tensor-nodes", node)

    def leave(self, node):
        self.redis.cli("DEL", "node:" + node)

    def validator(self, *flags, every="600", wait=True):
        log = open(os.path.join(self.folder, "validator.log"), "a")
        self.addCleanup(log.close)
        process = start([sys.executable, "-m", "vcuda_peers", "validator", self.network, "--vcuda", VCUDA, "--every", every,
                         "--port", str(self.ports[0]), "--dashboard-port", str(self.ports[1]), *flags], stdout=log, stderr=log,
                        env=environment({"PYTHONPATH": PACKAGE}))
        self.addCleanup(self.end, process)
        if wait:
            before = self.log().count("Ray's head is")

            def there():
                self.assertIsNone(process.poll(), self.log())
                return self.log().count("Ray's head is") > before
            eventually("the validator serves", there, PATIENCE)
        return process

    def log(self):
        with open(os.path.join(self.folder, "validator.log")) as file:
            return file.read()

    def end(self, process):
        if process.poll() is None:
            process.terminate()
        process.wait(60)

    def verdict(self, node, **wanted):
        """What the validator says of NODE when it says WANTED."""
        def said():
            got = self.client.hash("peer:" + node)
            return got if all(got.get(key) == value for key, value in wanted.items()) and got else None
        try:
            return eventually(f"{node} is {wanted}", said, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.redis.cli('HGETALL', 'peer:' + node)}\n{self.log()[-800:]}") from None

    def seats(self, process):
        """{worker} of seats that the validator has: by their processes."""
        found = set()
        for one in psutil.Process(process.pid).children():
            try:
                words = one.cmdline()
            except psutil.NoSuchProcess:
                continue
            if "--agent" in words:
                found.add(json.loads(words[words.index("--resources") + 1]).popitem()[0].removeprefix("worker:"))
        return found

    def peers_right(self, *words, **more):
        got = self.peers(*words, **more)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        return got.stdout

    def submit(self, *program, more=()):
        return self.peers_right("submit", self.network, *more, "--", *program).split()[-1]

    def job(self, name, state, meanwhile=lambda: None):
        """What it printed, when it is in STATE. The dashboard is asked: a command that imports Ray wants a core for seconds."""
        with open(os.path.join(self.folder, "lab.ray-token")) as file:
            token = file.read().strip()
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[1]}/api/jobs/{name}", headers={"Authorization": f"Bearer {token}"})

        def ended():
            meanwhile()
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    status = json.load(answer)["status"]
            except OSError:
                return None  # the next validator has not submitted it yet
            return status in {state, "FAILED"} and status
        try:
            self.assertEqual(eventually(f"{name} is {state}", ended, 2 * PATIENCE), state)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.peers('logs', self.network, name).stdout[-1500:]}\n{self.log()}") from None
        return self.peers_right("logs", self.network, name)


class Admission(Case):
    def test_who_lies_is_not_admitted_and_the_reason_is_shown(self):
        self.write("other", "another-token\n")
        # The agent's HTTP port is the next one, as it is by default: status asks there.
        recv, send = free_ports()
        ada, wrong = self.agent(ADA, "--ports", f"{send},{recv},{recv + 1}"), self.agent(EVE, VCUDA_SOFTGPU_FAULT="wrong-result=5")
        self.agent(BOB, token="other")
        self.agent(MAX, VCUDA_SOFTGPU_FAULT="oom-at=30M")  # of the 64 MiB that it says
        self.entry("liar", ada.address.replace("127.0.0.1", ADA), free_bytes=str(1 << 40))
        self.entry("two", ada.address.replace("127.0.0.1", ADA), devices="2")
        self.entry("old", ada.address.replace("127.0.0.1", ADA), version="0.0.9")
        healthy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Healthy)
        threading.Thread(target=healthy.serve_forever, daemon=True).start()
        self.addCleanup(healthy.server_close)
        self.addCleanup(healthy.shutdown)
        self.entry("healthy", f"127.0.0.1:{healthy.server_port}")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            port = nobody.getsockname()[1]
        self.entry("nobody", f"127.0.0.1:{port}")
        began = time.monotonic()
        validator = self.validator(every="3")
        reasons = {"liar": "claims 1048576.0 MiB of free memory and has", "two": "it claims 2 GPUs and has 1",
                   "old": "it is version 0.0.9, and this validator", "healthy": "handshake", "nobody": f"127.0.0.1:{port}",
                   BOB: "the token is not the agent's", EVE: "numbers wrong",
                   MAX: "GPU 0: memory that its agent granted is not there"}
        for node, reason in reasons.items():
            with self.subTest(node):
                self.assertIn(reason, self.verdict(node, state="refused")["reason"])
        figures = self.verdict(ADA, state="admitted", reason="")
        self.assertGreater(int(figures["memory_bytes"]), 56 << 20)
        self.assertGreater(int(figures["round_trip_us"]), 0)
        self.assertGreater(int(figures["bytes_per_second"]), 0)
        took = time.monotonic() - began
        print(f"all judged {took:.0f} s after the validator's start (<= 90)")
        self.assertTrue(took <= 90 or not os.environ.get("VCUDA_TEST_BARS"), took)
        # Three failures keep one out: it is not tested again, and may as well be right.
        self.assertGreater(int(self.verdict("old", failures="3")["until"]), time.time() + 3000)
        self.entry("old", ada.address.replace("127.0.0.1", ADA), version="0.1.0")
        # Eviction takes the seat.
        eventually("only the admitted one has a seat", lambda: self.seats(validator) == {ADA}, PATIENCE)
        said = json.loads(self.peers_right("status", self.network, "--json"))
        shown = {one["node"]: one for one in said["workers"]}
        self.assertEqual({node: one["verdict"] for node, one in shown.items()},
                         {ADA: "admitted", **{node: "refused" for node in reasons}})
        self.assertIn("numbers wrong", self.peers_right("status", self.network))
        self.assertLessEqual({"launches", "bytes_sent", "bytes_received", "sessions", "free_bytes", "round_trip_us", "gpu"}, set(shown[ADA]))
        self.assertNotIn("launches", shown[BOB])
        wrong.stop()
        got = self.peers("doctor", self.network, "--vcuda", VCUDA)
        self.assertEqual(got.returncode, 1, got.stdout)
        for node, right in ((ADA, "ok   "), (BOB, "WRONG"), ("nobody", "WRONG"), ("directory", "ok   "), ("validator", "ok   ")):
            self.assertTrue(any(line.startswith(f"{right}  {node} ") for line in got.stdout.splitlines()), got.stdout)
        self.assertIn(f"127.0.0.1:{port}", got.stdout)
        # Who judges is killed, and judges again.
        actors = [one for one in psutil.Process(validator.pid).children(recursive=True) if one.name().startswith("ray::Doorkeep")]
        self.assertEqual(len(actors), 1)
        actors[0].kill()
        self.redis.cli("RPUSH", "peer-complaints", json.dumps({"worker": ADA, "reason": "a difference"}), "nonsense")
        self.verdict(ADA, state="admitted", reason="tested again, and right: a difference")
        self.redis.cli("HSET", "node:" + ADA, "version", "0.0.8")
        self.assertIn("0.0.8", self.verdict(ADA, state="evicted")["reason"])
        eventually("its seat is gone", lambda: not self.seats(validator), PATIENCE)
        self.assertEqual(self.verdict("old", failures="3")["state"], "refused")
        self.end(validator)
        self.assertEqual(self.redis.cli("EXISTS", "validator:lab"), "0")

    def test_fifty_join_and_leave(self):
        """IDs of two agents. The first five are there until all have seats, the others go when they are admitted."""
        agents = [self.agent(node) for node in (ADA, BOB)]
        validator = self.validator()
        for turn in range(int(os.environ.get("VCUDA_TEST_JOINS", 50)) // 5):
            nodes = [f"w{turn}-{number}" for number in range(5)]
            for number, node in enumerate(nodes):
                self.entry(node, f"{(ADA, BOB)[number % 2]}:{agents[number % 2].ports['recv']}")
            if not turn:
                eventually("all have seats", lambda: self.seats(validator) >= set(nodes), PATIENCE)
            for node in nodes:
                self.verdict(node, state="admitted")
                self.leave(node)
        eventually("no seat is left", lambda: self.seats(validator) <= {ADA, BOB}, PATIENCE)
        eventually("no key is left", lambda: not [key for key in self.redis.cli("KEYS", "*").split("\n")
                                                  if "w" in key and key.startswith(("peer:w", "node:w"))], PATIENCE)
        self.assertLessEqual(set(self.redis.cli("SMEMBERS", "peers:lab").split()), {ADA, BOB})
        self.end(validator)

        def sessions(node, agent):
            request = urllib.request.Request(f"http://{node}:{agent.ports['control']}/v1/sessions",
                                             headers={"Authorization": f"Bearer {agent.http_token}"})
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read())["sessions"]
        eventually("no session is left", lambda: not any(map(sessions, (ADA, BOB), agents)), PATIENCE)


class Elsewhere(Case):
    """A validator without seats of its own, whose head serves all of this."""

    def test_a_complaint_seats_and_ray_train(self):
        ada, bob = self.agent(ADA), self.agent(BOB)
        validator = self.validator("--no-seats")
        for node in (ADA, BOB):
            self.verdict(node, state="admitted", reason="")
        self.assertEqual(self.seats(validator), set())
        self.a_jobs_complaint_is_looked_into()
        seat = start([sys.executable, "-m", "vcuda_peers", "seat", self.network, ADA, "--vcuda", VCUDA],
                     env=environment({"PYTHONPATH": PACKAGE}))
        eventually("it has its seat", lambda: self.seats(seat) == {ADA}, PATIENCE)
        pod, probe = self.a_seat_in_a_pod(bob)
        self.ray_train_with_two_workers_has_the_losses_of_one()
        self.end(pod)
        got = subprocess.run([*probe[0], f"{probe[1]} && kill -9 {bob.pid} && sleep 1; {probe[1]}"], capture_output=True, text=True,
                             timeout=PATIENCE, env=environment({"PATH": probe[2]}))
        self.assertEqual((got.returncode, got.stdout.count("GPU 0: ")), (1, 1), got.stdout + got.stderr)
        self.assertIsNone(ada.process.poll())
        self.end(seat)
        self.end(validator)

    def a_jobs_complaint_is_looked_into(self):
        """From `verify`, by `vcuda-peers run` and the directory, to a validator that tests the worker again."""
        got = self.run_program("verified.py", BOB, "backward", 1)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        self.assertEqual(json.loads(got.stdout)["state"], "disputed")
        for node in (ADA, BOB):  # the error was put in on the user's side: both GPUs are right
            eventually(f"{node} is tested again", lambda: re.match("tested again, and right: .* differ in a stage of step",
                                                                   self.client.hash("peer:" + node)["reason"]), PATIENCE)
            self.verdict(node, state="admitted", failures="0")
        self.assertEqual(self.redis.cli("EXISTS", "peer-complaints"), "0")

    def a_seat_in_a_pod(self, bob):
        """By the manifest's own command; the sidecar of its pod is `vcuda run` here. (It, (a command before, its liveness probe, PATH))"""
        with open(os.path.join(ROOT, "examples", "peers", "seat.yaml")) as file:
            pod = yaml.safe_load(file)["spec"]["template"]
        container, notes = pod["spec"]["containers"][0], pod["metadata"]["annotations"]
        env = {one["name"]: one["value"] for one in container["env"]}
        self.assertEqual(notes["tensor-fusion.ai/server"], f"{env['WORKER']}:9998")  # that worker's agent
        smi = os.path.join(self.folder, "bin")
        os.makedirs(smi)
        os.symlink(VCUDA, os.path.join(smi, "nvidia-smi"))  # as it is in a pod
        path = os.pathsep.join((smi, os.path.dirname(sys.executable), os.environ["PATH"]))
        env |= {"HEAD": f"127.0.0.1:{self.ports[0]}", "WORKER": BOB, "PATH": path, "RAY_AUTH_TOKEN_PATH": f"{self.folder}/lab.ray-token"}
        line = [VCUDA, "run", "--agent", f"{BOB}:{bob.ports['recv']}", "--token-file", os.path.join(self.folder, "token"), "--"]
        seats = []

        def begin():  # and again, as kubelet does: on a busy machine Ray gives up a node that wants more than 30 s
            if not seats or seats[-1].poll() is not None:
                seats.append(start([*line, *container["command"]], env=environment(env)))
        look = self.submit(sys.executable, "-c", "import ray, time\nray.init(log_to_driver=False)\n"
                           f"while not {{'worker:{ADA}', 'worker:{BOB}'}} <= set(ray.cluster_resources()): time.sleep(1)\n"
                           "print('GPUs', ray.cluster_resources()['GPU'])")
        self.assertIn("GPUs 2.0\n", self.job(look, "SUCCEEDED", begin))
        return seats[-1], ([*line, "sh", "-c"], " ".join(container["livenessProbe"]["exec"]["command"]), path)

    def ray_train_with_two_workers_has_the_losses_of_one(self):
        examples = os.path.join(ROOT, "examples", "peers")
        losses = []
        for workers in ("2", "1"):
            said = self.job(self.submit(sys.executable, "ray_train.py", workers, more=("--working-dir", examples)), "SUCCEEDED")
            losses.append(json.loads(said.split("losses ", 1)[1].splitlines()[0]))
        self.assertEqual(len(losses[0]), 4)
        self.assertEqual(*losses)


class Turns(Case):
    def test_of_two_ids_of_one_agent_none_waits_for_ever(self):
        """One is tested at a time: the one that waits longer; who is kept out takes no turn."""
        sys.path.insert(0, PACKAGE)
        from vcuda_peers import directory, network, validator
        lab, now, turns = network.read(self.network), int(time.time()), []
        keeper = validator.Doorkeeper.__new__(validator.Doorkeeper)  # without its thread
        keeper.network, keeper.every = lab, 60
        for node in ("a", "b"):
            self.entry(node, "127.0.0.2:1")

        class Pool:
            def submit(self, judge, worker, *_):
                turns.append(worker.node)
                return concurrent.futures.Future()

        for first, second, wanted in (({"until": now + 3000}, None, "b"), ({}, {"checked": now - 200}, "b"),
                                      ({"checked": now - 300}, {"checked": now - 200}, "a")):
            for node, more in (("a", first), ("b", second)):
                directory.judge(lab, node, None if more is None else {
                    "state": "refused", "reason": "x", "address": "127.0.0.2:1", "failures": 3, "until": 0,
                    "checked": now - 100, "since": 1, **more})
            keeper.under_way, keeper.complaints = {}, {}
            turns.clear()
            keeper.round(Pool())
            self.assertEqual(turns, [wanted])


class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_):
        pass


class Life(Case):
    def test_one_at_a_time_and_the_next_has_its_jobs(self):
        ada, bob = self.agent(ADA), self.agent(BOB)
        first = self.validator()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            another = pool.submit(self.peers, "validator", self.network, "--vcuda", VCUDA)
            eventually("two seats", lambda: self.seats(first) == {ADA, BOB}, PATIENCE)
            self.refused(another.result(), f"lab has a validator: {socket.gethostname()}, process {first.pid}")
        # A worker that is killed takes its seat.
        os.kill(bob.pid, signal.SIGKILL)
        eventually("its seat is gone", lambda: self.seats(first) == {ADA}, PATIENCE)
        eventually("its verdict is gone", lambda: self.redis.cli("EXISTS", "peer:" + BOB) == "0", PATIENCE)  # or it failed once
        # A job's status, logs and stop.
        marks, began = os.path.join(self.folder, "marks"), os.path.join(self.folder, "began")
        sleeper = self.submit(sys.executable, "-c", f"print('begun', flush=True); open({began!r}, 'w'); import time; time.sleep(600)")
        eventually("it runs", lambda: os.path.exists(began), PATIENCE)
        self.assertIn("begun", self.peers_right("logs", self.network, sleeper))
        self.assertEqual([(one["job"], one["status"]) for one in json.loads(self.peers_right("jobs", self.network, "--json"))],
                         [(sleeper, "RUNNING")])
        self.peers_right("stop", self.network, sleeper)
        self.job(sleeper, "STOPPED")
        self.refused(self.peers("logs", self.network, "job-nobody"), "Ray says: ")
        self.refused(self.peers("submit", self.network), "submit wants a program")
        job = self.submit(sys.executable, "-c", f"import os, time; again = os.path.exists({marks!r})\n"
                          f"open({marks!r}, 'a').write('x')\nif not again: time.sleep(600)")
        eventually("it began", lambda: os.path.exists(marks), PATIENCE)
        folder = next(os.path.dirname(one.path) for one in psutil.Process(first.pid).open_files() if one.path.endswith("/lock"))
        first.kill()
        began = time.monotonic()
        second = self.validator("--no-seats", wait=False)
        eventually("the next has the lease", lambda: f'"pid":{second.pid},' in self.redis.cli("GET", "validator:lab"), 60)
        took = time.monotonic() - began
        print(f"a killed validator is replaced in {took:.1f} s")
        if os.environ.get("VCUDA_TEST_BARS"):
            self.assertLess(took, 15)
        eventually("it serves", lambda: self.log().count("Ray's head is") == 2, PATIENCE)
        self.job(job, "SUCCEEDED")
        with open(marks) as file:
            self.assertEqual(file.read(), "xx")
        eventually("nothing is to be carried on", lambda: self.redis.cli("EXISTS", "peer-jobs:lab") == "0", PATIENCE)
        self.assertTrue(ada.process.poll() is None)
        self.end(second)
        self.assertFalse(os.path.exists(folder), "what the killed one left is gone")

    def test_the_indexed_jobs_command_in_two_places_has_the_losses_of_one(self):
        with open(os.path.join(ROOT, "examples", "peers", "job.yaml")) as file:
            service, job = yaml.safe_load_all(file)
        pod = job["spec"]["template"]
        container = pod["spec"]["containers"][0]
        env = {one["name"]: one["value"] for one in container["env"]}
        name = service["metadata"]["name"]
        self.assertEqual(env["FIRST"], f"{job['metadata']['name']}-0.{name}")
        self.assertEqual((pod["spec"]["subdomain"], service["spec"]["selector"]["job-name"]), (name, job["metadata"]["name"]))
        command = [word.replace("/srv/", os.path.join(ROOT, "examples", "peers", "")).replace("python3", sys.executable)
                   for word in container["command"]]
        pods = []
        for index in range(job["spec"]["completions"]):
            agent = self.agent((ADA, BOB)[index])
            pods.append(start([VCUDA, "run", "--agent", f"{(ADA, BOB)[index]}:{agent.ports['recv']}", "--token-file",
                               os.path.join(self.folder, "token"), "--", *command], stdout=subprocess.PIPE, text=True,
                              env=environment({"FIRST": "127.0.0.1", "PORT": str(self.ports[0]), "JOB_COMPLETION_INDEX": str(index)})))
        said = [pod.communicate(timeout=2 * PATIENCE)[0] for pod in pods]
        self.assertEqual([pod.returncode for pod in pods], [0, 0], said)
        self.assertIn("losses [-116.875, ", said[0])

    def test_torchrun_with_two_workers_has_the_losses_of_one(self):
        for node in (ADA, BOB):
            self.agent(node)
        losses = []
        for workers in (f"{ADA},{BOB}", ADA):
            said = self.peers_right("run", self.network, "--workers", workers, "--vcuda", VCUDA, "--", sys.executable, "-m",
                                    "torch.distributed.run", "--nproc-per-node", str(workers.count(",") + 1),
                                    os.path.join(ROOT, "examples", "peers", "torchrun_train.py"), seconds=300)
            losses.append(json.loads(said.split("losses ", 1)[1].splitlines()[0]))
        self.assertEqual(*losses)


class Nodes(Case):
    def test_a_worker_node_lends_this_machines_gpu(self):
        """By the command itself: the agent that it starts is in the directory, computes, and ends with its network."""
        self.write("lab.yaml", f"name: lab\ndirectory: {self.redis.address}\ntoken_file: token\naddress: {ADA}\n")
        folder = os.path.join(self.folder, "networks")
        program = (f"import vcuda_peers\n"
                   f"flags = ['--driver', 'software', '--address', '{ADA}', '--ports', '0,0,0']\n"
                   f"with vcuda_peers.WorkerNode({self.network!r}, *flags, folder={folder!r}):\n"
                   f"    print('joined', flush=True)\n    input()\n")
        path = os.pathsep.join((BIN, os.environ["PATH"]))
        node = start([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                     env=environment({"PYTHONPATH": PACKAGE, "PATH": path, "XDG_CACHE_HOME": self.folder,
                                      "VCUDA_SOFTGPU_MEMORY": "64M"}))
        lines = iter(node.stdout.readline, "")
        self.assertIn("joined\n", lines)
        self.assertIn(f"node:{ADA}-", self.redis.cli("KEYS", "node:*"))  # its port is not the usual one
        got = self.train(64, 4, 8)
        self.assertEqual((got.returncode, got.stdout.splitlines()[-1:]), (0, ["right"]), got.stdout + got.stderr)
        node.communicate("\n", timeout=PATIENCE)
        self.assertEqual((node.returncode, self.redis.cli("KEYS", "node:*")), (0, ""))
        self.refused(self.train(64, 4, 8), "lab has no worker")


class BadInput(Case):
    def test_each_has_a_sentence(self):
        for words in (("jobs", self.network), ("seat", self.network, ADA), ("stop", self.network, "x")):
            self.refused(self.peers(*words), "lab has no validator: start vcuda-peers validator")
        said = {"host": "h", "pid": 1, "head": "127.0.0.1:1", "dashboard": "127.0.0.1:1", "ray": "2.59.0"}
        self.redis.cli("SET", "validator:lab", json.dumps(said))
        self.refused(self.peers("jobs", self.network), "Ray 2.59.0 is needed, and here is 2.60.0")
        self.redis.cli("SET", "validator:lab", json.dumps({**said, "ray": "2.60.0"}))
        self.refused(self.peers("jobs", self.network), "lab.ray-token: No such file or directory: it is made by")
        self.write("lab.ray-token", "x" * 64, 0o644)
        self.refused(self.peers("jobs", self.network), "others than its owner may read it (mode 644)")
        for odd in ("nonsense", "[]", "[" * 4000, json.dumps({**said, "head": "h:1 --x"}), json.dumps({**said, "host": "h" * 5000})):
            self.redis.cli("SET", "validator:lab", odd)
            self.refused(self.peers("jobs", self.network), "lab has no validator")
        self.write("lab.ray-token", "x" * 64)
        self.refused(self.peers("validator", self.network, "--vcuda", VCUDA, "--address", "a b"), "are no HOST and port")
        self.redis.kill()
        self.refused(self.peers("validator", self.network, "--vcuda", VCUDA), "does not serve: ")
        self.assertIn("WRONG  directory", self.peers("doctor", self.network).stdout)

    def test_nodes_from_python(self):
        for kind, path, status, sentence in (("ValidatorNode", "", 1, "/nowhere.yaml: No such file or directory"),
                                             ("WorkerNode", "/nowhere", 1, "vcuda_peers.errors.PeersError: vcuda: No such file or directory")):
            program = f"import sys, vcuda_peers; node = vcuda_peers.{kind}('/nowhere.yaml'); node.start(); sys.exit(node.wait(60))"
            got = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                                 env=environment({"PYTHONPATH": PACKAGE, "PATH": path or os.environ["PATH"]}))
            self.assertEqual(got.returncode, status, got.stderr)
            self.assertIn(sentence, got.stderr)


if __name__ == "__main__":
    become_subreaper()
    unittest.main(verbosity=2)
