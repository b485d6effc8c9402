#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/vcuda-peers over a real Redis and real agents on the software GPU.

    BUILD=build tests/peers/peers.py [CASE ...]      # by a Python with PyTorch, accelerate and PyYAML
"""
import ast
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "store"), os.path.join(HERE, "..", "stack")]
from redis_server import Redis, eventually  # noqa: E402
from stack import BIN, ROOT, Agent, alive, clean, environment, start  # noqa: E402

TOKEN = "token-of-the-lab"
LARGE = os.environ.get("VCUDA_PEERS_LARGE")
ADA, BOB, CID, DAN = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"
PACKAGE = os.path.join(ROOT, "python", "vcuda-peers")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="vcuda-peers-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.clean)  # waits for what is our child: after Redis, which is one
        self.redis = Redis()
        self.addCleanup(self.redis.close)
        self.write("token", TOKEN + "\n")
        self.network = self.write("lab.yaml", f"name: lab\ndirectory: {self.redis.address}\ntoken_file: token\n"
                                  "address: 10.0.0.2\ngpus: [0, 2-3]\nmemory: 8GiB\nsessions: 4\nhours: 22:00-06:00\n")

    def clean(self):
        clean()

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def worker(self, node, memory=64 << 20, fault=""):
        """An agent on a loopback address of its own, by which it is in the directory; its GPU has FAULT."""
        agent = Agent(os.path.join(self.folder, node), "--address", node, "--token-file", os.path.join(self.folder, "token"), "--set",
                      f"store.registry={self.redis.address}", "--set", f"store.node={node}",
                      "--set", "store.bytes=1MiB",
                      env={"VCUDA_SOFTGPU_MEMORY": str(memory), "VCUDA_SOFTGPU_FAULT": fault})
        agent.node = node
        eventually(f"{node} is there",  # and not what one before it left
                   lambda: self.redis.cli("HGET", "node:" + node, "address").endswith(f":{agent.ports['recv']}"))
        return agent

    def peers(self, *words, seconds=120):
        return subprocess.run([sys.executable, "-m", "vcuda_peers", *words], capture_output=True, text=True,
                              timeout=seconds * (4 if LARGE else 1), env=environment({"PYTHONPATH": PACKAGE}), stdin=subprocess.DEVNULL)

    def run_program(self, program, *words, more=()):
        return self.peers("run", self.network, "--vcuda", os.path.join(BIN, "vcuda"), *more, "--", sys.executable,
                          os.path.join(HERE, program), *map(str, words))

    def train(self, *shape, more=()):
        return self.run_program("train.py", *shape, more=more)

    def refused(self, got, sentence):
        self.assertEqual(got.returncode, 1, got.stdout + got.stderr)
        self.assertIn(sentence, got.stderr)
        self.assertEqual(len(got.stderr.strip().splitlines()), 1, got.stderr)


class Training(Case):
    def test_one_step_over_two_workers_is_that_of_the_cpu(self):
        for node in (ADA, BOB):
            self.worker(node, 256 << 20)  # PyTorch gives each stream's products a workspace
        got = self.train(64, 4, 8, "pieces")
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        self.assertIn("right", got.stdout.splitlines())
        status = json.loads(got.stdout.split("status ", 1)[1].splitlines()[0])
        self.assertEqual([one["worker"] for one in status["workers"]], [ADA, BOB])
        for one in status["workers"]:
            self.assertTrue(one["modules"] and one["allocated_bytes"], status)

    def test_a_model_that_three_workers_hold_and_none_alone(self):
        """Its gradients are the CPU's; in one worker it is refused with the numbers. VCUDA_PEERS_LARGE=1: 600 MiB over 3 of 512."""
        memory, width, count = (512 << 20, 1024, 150) if LARGE else (128 << 20, 512, 90)
        size = width * width * 4 * count / 2**20
        for node in (ADA, BOB, CID):
            self.worker(node, memory)
        got = self.train(width, count, 4, "SGD")
        self.assertEqual((got.returncode, got.stdout.splitlines()[-1:]), (0, ["right"]), got.stdout + got.stderr)
        status = json.loads(got.stdout.split("status ", 1)[1].splitlines()[0])
        self.assertTrue(all(one["modules"] for one in status["workers"]) and len(status["workers"]) == 3, status)
        self.refused(self.train(width, count, 4, "SGD", more=("--workers", BOB)), f"refused: the model needs {2 * size:.1f} MiB "
                     f"(2 times its {size:.1f} MiB of weights, and 10% of a GPU kept free), and there is {BOB}: ")

    def test_a_model_on_the_meta_device_is_filled_where_it_lies(self):
        for node in (ADA, BOB):
            self.worker(node)
        got = self.run_program("weights.py", self.folder)
        self.assertEqual((got.returncode, got.stdout), (0, "right\n"), got.stdout + got.stderr)

    def test_models_and_a_trainer_of_hugging_face_on_the_cpu(self):
        self.worker(ADA)
        got = self.run_program("frameworks.py", self.folder)
        self.assertEqual((got.returncode, got.stdout.splitlines()[-1:]), (0, ["right"]), got.stdout + got.stderr)

    def test_a_model_that_fits_nowhere_is_refused_with_the_numbers(self):
        for node in (ADA, BOB):
            self.worker(node)
        # 80 MiB of weights; with gradients and AdamW's state 320 MiB, and there are 128.
        got = self.train(1024, 20, 2)
        self.refused(got, "refused: the model needs 320.0 MiB (4 times its 80.0 MiB of weights")
        self.assertIn(ADA + ": ", got.stderr)
        self.assertIn(BOB + ": ", got.stderr)


class Failure(Case):
    def job(self, name, *words, more=()):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return self.run_program("job.py", folder, *words, more=more)

    def final(self, got):
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        return got.stdout.split("final ", 1)[1].strip()

    def test_workers_die_in_mid_training(self):
        """Each in a step that is drawn; what is left resumes from the last checkpoint, to the bits of a job that nobody disturbed.
        VCUDA_PEERS_KILLS=20: so many in all, three of four workers in each job."""
        left, took = int(os.environ.get("VCUDA_PEERS_KILLS", 3)), []
        agents = [self.worker(node) for node in (ADA, BOB, CID, DAN)]
        undisturbed = self.final(self.job("undisturbed", 12))
        while left:
            seed = random.randrange(1 << 32)
            draw = random.Random(seed)
            dead = draw.sample(agents, min(left, 3))
            steps = sorted(draw.sample(range(12), len(dead)))
            with self.subTest(seed=seed):
                got = self.job(f"disturbed-{left}", 12, *(f"{agent.pid}@{step}" for agent, step in zip(dead, steps)))
                self.assertEqual(self.final(got), undisturbed, got.stderr)
                lines = got.stdout.splitlines()
                self.assertEqual([int(line.split()[2]) for line in lines if line.startswith("begins")],
                                 [0] + [step // 2 * 2 for step in steps], got.stdout + got.stderr)
                for agent in dead:
                    self.assertIn(f"PeerLost: lab lost {agent.node}, with", got.stderr)
                at = {word: [float(line.split()[2]) for line in lines if line.startswith(word + " at")] for word in ("kills", "steps")}
                for killed in at["kills"]:
                    took.append(min(stepped for stepped in at["steps"] if stepped > killed) - killed)
            left -= len(dead)
            for agent in dead if left else ():
                agents[agents.index(agent)] = self.worker(agent.node)
        print(f"{len(took)} kills, each resumed after {min(took, default=0):.1f} to {max(took, default=0):.1f} s (<= 60)")
        self.assertTrue(max(took, default=0) <= 60 or not os.environ.get("VCUDA_TEST_BARS"), took)

    def test_the_program_ends_with_who_started_it(self):
        """Also where that is killed; a signal to end is passed on. A folder that a killed one left the next removes."""
        self.worker(ADA)
        temporary = os.path.join(self.folder, "temporary")
        os.makedirs(temporary)
        program = self.write("program.py", "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
        for number in (signal.SIGKILL, signal.SIGTERM):
            run = start([sys.executable, "-m", "vcuda_peers", "run", self.network, "--vcuda", os.path.join(BIN, "vcuda"), "--",
                         sys.executable, program], stdout=subprocess.PIPE, text=True,
                        env=environment({"PYTHONPATH": PACKAGE, "TMPDIR": temporary}))
            pid = int(run.stdout.readline())
            run.send_signal(number)
            eventually("the program has ended", lambda: not alive(pid))
            self.assertEqual(run.wait(60), -9 if number == signal.SIGKILL else 128 + 15)
            self.assertEqual(len(os.listdir(temporary)), 1 if number == signal.SIGKILL else 0)

    def test_a_newest_checkpoint_that_is_torn(self):
        """The one before it is taken, and the job ends with the bits of one that nobody disturbed."""
        self.worker(ADA)
        undisturbed = self.final(self.job("undisturbed", 8))
        self.final(self.job("torn", 6))
        newest = os.path.join(self.folder, "torn", "checkpoints", "step-000000000006.pt")
        os.truncate(newest, os.path.getsize(newest) // 2)
        got = self.job("torn", 8)
        self.assertIn("begins at 4 on ", got.stdout, got.stderr)
        self.assertIn(f"the checkpoint {newest} is broken; the one before it is taken", got.stderr)
        self.assertEqual(self.final(got), undisturbed)
        self.assertEqual(sorted(os.listdir(os.path.dirname(newest))), [f"step-{step:012}.pt" for step in (6, 8)])

    def test_without_a_retry_the_status_says_that_a_worker_was_lost(self):
        agent = self.worker(ADA)
        got = self.job("one", 4, f"{agent.pid}@1", more=("--retries", "0"))
        self.assertEqual(got.returncode, 75, got.stdout + got.stderr)
        agent = self.worker(BOB)
        got = self.job("two", 4, f"{agent.pid}@1", more=("--retries", "1", "--workers", BOB))
        self.assertEqual(got.returncode, 1, got.stdout + got.stderr)
        self.assertEqual(got.stderr.splitlines()[-1], "vcuda-peers: lab has no worker left")


class Verification(Case):
    def verified(self, *words):
        got = self.run_program("verified.py", *words)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        complaints = self.redis.cli("LRANGE", "peer-complaints", "0", "-1").splitlines()
        self.redis.cli("DEL", "peer-complaints")
        return json.loads(got.stdout), [json.loads(line)["worker"] for line in complaints if line], got.stderr

    def named(self, found, wrong, count):
        """That in COUNT disputes between ADA and BOB, or with CID, a third worker said that WRONG is; nobody: both are named."""
        status, complaints, said = found
        self.assertEqual((status["state"], len(status["disputes"]), status["unverified"]), ("disputed", count, 0), status)
        self.assertEqual({one["wrong"] for one in status["disputes"]}, {wrong})
        self.assertEqual(set(complaints), {wrong} if wrong else {ADA, BOB})
        self.assertIn(f"a third worker says that {wrong} is wrong" if wrong else "nobody could decide which is wrong", said)
        for one in status["disputes"]:
            self.assertIn(f"{' and '.join(one['workers'])} differ in a stage of step {one['step']}", said)
            self.assertIn(wrong or BOB, one["workers"])

    def test_a_wrong_gpu_is_found(self):
        """Every product of BOB's GPU is wrong by a bit. Of two workers both are named, a third decides."""
        for node, fault in ((ADA, ""), (BOB, "wrong-result=1")):
            self.worker(node, fault=fault)
        self.named(self.verified("-", "-", 1), None, 9)
        self.worker(CID)
        found = self.verified("-", "-", 1)
        self.named(found, BOB, len(found[0]["disputes"]))
        self.assertEqual(found[0]["verified"], 9)

    def test_wrong_gradients_are_found(self):
        for node in (ADA, BOB):
            self.worker(node)
        status, complaints, _ = self.verified("-", "-", 1)
        self.assertEqual((status["state"], status["verified"], status["unverified"], complaints), ("running", 9, 0, []), status)
        self.named(self.verified(BOB, "backward", 1), None, 8)  # the ninth forward has no backward

    def test_a_share_is_drawn_by_a_seed(self):
        for node in (ADA, BOB):
            self.worker(node)
        status, complaints, _ = self.verified("-", "-", 0.3)
        first = [status["verified"], complaints, status["unverified"]]
        self.assertEqual(first[1:], [[], 0])
        self.assertTrue(0 < first[0] < 9, first)
        self.assertEqual(self.verified("-", "-", 0.3)[0]["verified"], first[0])
        plain = self.verified("-", "-", 0)[0]
        self.assertEqual((plain["verified"], plain["loss"]), (0, status["loss"]))  # to be looked at changes nothing


class Examples(Case):
    FOLDER = os.path.join(ROOT, "examples", "peers")

    def test_train(self):
        """The loop of examples/peers: what two workers began, one goes on with, to the losses of one alone."""
        agents = [self.worker(node) for node in (ADA, BOB)]
        program = os.path.join(self.FOLDER, "train.py")
        words = ["--checkpoint", os.path.join(self.folder, "checkpoints"), "--verify", "1"]
        got = self.run_program(program, *words, "--epochs", 2)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        agents[1].stop()
        more = self.run_program(program, *words[:2], "--epochs", 4, more=("--workers", ADA))
        self.assertEqual(more.returncode, 0, more.stdout + more.stderr)
        whole = self.run_program(program, "--epochs", 4, more=("--workers", ADA))
        losses = [[line.split()[-1] for line in one.stdout.splitlines() if line.startswith("Epoch")] for one in (got, more, whole)]
        self.assertEqual(losses[0] + losses[1][2:], losses[2])
        status = ast.literal_eval(got.stdout.split("Job Status: ", 1)[1])
        self.assertEqual((status["state"], status["step"], status["verified"], status["unverified"]), ("running", 4, 4, 0), status)

    def test_serve(self):
        """The server of examples/peers/serve by its one line, but on the CPU: the routes, and an answer."""
        agents = [self.worker(node) for node in (ADA, BOB)]
        model = os.path.join(self.folder, "model")
        os.makedirs(os.path.join(self.folder, "hub"))  # of which /v1/models tells
        env = environment({"HF_HUB_OFFLINE": "1", "HF_HOME": self.folder})
        line = [os.path.join(BIN, "vcuda"), "run", "--agent", "+".join(f"{one.node}:{one.ports['recv']}" for one in agents),
                "--token-file", os.path.join(self.folder, "token"), "--", sys.executable]
        subprocess.run([*line, os.path.join(self.FOLDER, "serve", "small_model.py"), model], check=True, env=env, timeout=120,
                       capture_output=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = self.write("log", "")
        with open(log, "w") as out:
            start([*line, os.path.join(os.path.dirname(sys.executable), "transformers"), "serve", "--device", "cpu", "--port",
                   str(port), model], env=env, stdout=out, stderr=out)

        def ask(path, body=None):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body and json.dumps(body).encode(),
                                             {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        def there():
            try:
                return ask("/v1/models")
            except OSError:
                return None
        eventually("the server is there", there)
        said = ask("/v1/chat/completions", {"model": model, "max_tokens": 4, "messages": [{"role": "user", "content": "Once"}]})
        self.assertEqual(said["choices"][0]["message"]["role"], "assistant")
        self.assertIn(said["usage"]["completion_tokens"], range(1, 5))
        self.assertIn("choices", ask("/v1/completions", {"model": model, "max_tokens": 4, "prompt": "Once"}))


def serve(case, answer, asked):
    """The port of who gives everybody ANSWER; None: a byte now and then, for ever."""
    listener = socket.create_server(("127.0.0.1", 0))
    case.addCleanup(listener.close)

    def give(connection):
        with contextlib.suppress(OSError), connection:
            asked.append(connection.recv(4096))
            connection.sendall(answer or b"HTTP/1.0 200 OK\r\n\r\n")
            while answer is None:
                connection.sendall(b" ")
                time.sleep(0.1)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=give, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


class Directory(Case):
    def test_whom_the_validator_refused_is_not_used(self):
        for node in (ADA, BOB):
            self.worker(node)
        verdict = {"state": "evicted", "reason": "wrong products", "address": f"{BOB}:1", "failures": 1, "until": 0, "checked": 1, "since": 1}
        self.redis.cli("HSET", "peer:" + BOB, *(str(word) for pair in verdict.items() for word in pair))
        self.redis.cli("SADD", "peers:lab", BOB)
        got = self.train(1024, 20, 2)
        self.refused(got, f"and there is {ADA}: ")
        self.assertTrue(got.stderr.strip().endswith(f"; refused were {BOB} (wrong products)"), got.stderr)
        self.refused(self.train(8, 1, 1, more=("--workers", BOB)), f"the validator of lab refused '{BOB}': wrong products")

    def status(self):
        got = self.peers("status", self.network, "--json")
        self.assertEqual(got.returncode, 0, got.stderr)
        return json.loads(got.stdout)

    def test_a_worker_is_there_until_it_ends(self):
        ada, bob = self.worker(ADA), self.worker(BOB)
        said = self.status()
        self.assertEqual([(one["node"], one["address"], one["devices"]) for one in said["workers"]],
                         [(node, f"{node}:{agent.ports['recv']}", 1) for node, agent in ((ADA, ada), (BOB, bob))])
        os.kill(ada.pid, 9)
        eventually("its lease has lapsed", lambda: [one["node"] for one in self.status()["workers"]] == [BOB])

    def test_an_entry_that_lies_hides_no_other(self):
        self.worker(ADA)
        client = self.redis.client()
        self.addCleanup(client.close)
        good = {"address": "127.0.0.1:1", "devices": "1"}
        lies = ({"address": "x:1 --software"}, {"address": "--software:1"}, {"address": "h:65536"}, {"address": "h:0"},
                {"address": "h:1\n"}, {"address": "h" * 254 + ":1"}, {"devices": "1e9"}, {"devices": "0"}, {"devices": "65"},
                {"devices": "\u0661"}, {"devices": ""}, {"devices": "1" * 5000}, {"gpus": "GPU-1 GPU-2"}, {"gpus": "\x1b[2J"},
                {"gpus": "G" * 4097}, {"free_bytes": "-1"}, {"free_bytes": "1 2"}, {"free_bytes": "9" * 4000},
                {"free_bytes": "1e3"}, {"version": "0.1.0\r"}, {"version": "\x9b"}, {"version": "v" * (64 << 20)},
                {"version": b"\xff\xfe"}, {"network": "lab\x00"})
        entries = [{**good, **lie} for lie in lies] + [{"devices": "1"}, {"address": "h:1"}, {"else": "x" * 5000}]
        for number, entry in enumerate(entries):
            client("SADD", "tensor-nodes", f"liar{number:02}")
            client("HSET", f"node:liar{number:02}", *(word for pair in entry.items() for word in pair))
        types = (("SET", "x"), ("RPUSH", "x"), ("SADD", "x"), ("SETBIT", 8 << 20, 1))
        for number, (command, *words) in enumerate(types):
            client("SADD", "tensor-nodes", f"type{number}")
            client(command, f"node:type{number}", *words)
        names = {"": "", "a b": "a b", "\x1b]0;owned\x07": "?]0;owned?", "n" * 500: "n" * 63, b"\xff": "?"}
        for name in names:
            client("SADD", "tensor-nodes", name)
            client("HSET", b"node:" + (name if isinstance(name, bytes) else name.encode()), *(w for pair in good.items() for w in pair))
        said = self.status()
        self.assertEqual([one["node"] for one in said["workers"]], [ADA])
        self.assertEqual(sorted(said["unreadable"]), sorted([
            *(f"liar{number:02}" for number in range(len(entries))), *(f"type{number}" for number in range(len(types))), *names.values()]))
        for words in (("status", self.network), ("doctor", self.network, "--vcuda", os.path.join(BIN, "vcuda"))):
            shown = self.peers(*words).stdout
            self.assertRegex(shown, r"\A[ -~\n]*\Z")
            self.assertIn("?]0;owned?", shown)
            self.assertLess(max(map(len, shown.splitlines())), 400)

    def test_a_verdict_that_no_validator_wrote_is_none(self):
        client = self.redis.client()
        self.addCleanup(client.close)
        good = {"state": "admitted", "reason": "", "address": "127.0.0.1:1", "failures": "0", "until": "0", "checked": "1", "since": "1",
                "gpu": "4090"}
        odd = ({"reason": "\x1b[2J"}, {"state": "best"}, {"round_trip_us": "9" * 4400}, {"gpu": "g" * 301}, {"address": "x"},
               {"until": "soon"}, {"until": "-1"}, {"failures": "9" * 16})
        for number, more in enumerate(({}, *odd)):
            client("SADD", "tensor-nodes", f"worker{number}")
            client("HSET", f"node:worker{number}", "address", "127.0.0.1:1", "devices", "1")
            client("SADD", "peers:lab", f"worker{number}")
            client("HSET", f"peer:worker{number}", *(word for pair in {**good, **more}.items() for word in pair))
        client("SADD", "peers:lab", "gone\x07")
        client("HSET", "peer:gone\x07", *(word for pair in good.items() for word in pair))
        said = self.status()
        self.assertEqual([one["verdict"] for one in said["workers"]], ["admitted"] + ["unjudged"] * len(odd))
        self.assertEqual((said["workers"][0]["gpu"], said["away"]), ("4090", []))

    def test_an_agent_that_answers_anything_hides_no_other(self):
        """Its control port: `vcuda-peers status` ends soon, and says of it what the directory does."""
        whole = b"HTTP/1.0 200 OK\r\n\r\n"
        rows = '{"sessions":[{"launches":%s,"bytes_received":1,"bytes_sent":1}]}'
        answers = [b"nonsense\r\n\r\n", whole + b"[" * (1 << 20), whole + b"[]", whole + b"\xff", whole + b'{"sessions":{"a":1}}',
                   b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
                   *(whole + (rows % one).encode() for one in ("Infinity", "NaN", "-1", "1e300", "9" * 4300, '"1"', "null")), None]
        asked = []
        for number, answer in enumerate(answers):
            port = serve(self, answer, asked)
            self.redis.cli("SADD", "tensor-nodes", f"odd{number:02}")
            self.redis.cli("HSET", f"node:odd{number:02}", "address", f"127.0.0.1:{port - 1}", "devices", "1", "free_bytes", "7")
        began = time.monotonic()
        said = self.status()
        self.assertEqual([(one["node"], one["free_bytes"], "launches" in one) for one in said["workers"]],
                         [(f"odd{number:02}", 7, False) for number in range(len(answers))])
        self.assertGreaterEqual(len(asked), len(answers))  # it was not for want of asking
        if os.environ.get("VCUDA_TEST_BARS"):
            self.assertLess(time.monotonic() - began, 30)

    def test_a_wrong_token_is_refused_by_the_agent(self):
        self.worker(ADA)
        self.write("token", "another\n")
        got = self.train(8, 1, 1)
        self.assertNotEqual(got.returncode, 0, got.stdout)
        self.assertNotIn("right", got.stdout.splitlines())


class BadInput(Case):
    def test_each_has_a_sentence(self):
        head = f"name: lab\ndirectory: {self.redis.address}\n"
        whole = head + "token_file: token\n"
        cases = (("colour: red\n" + whole, 0o600, "unknown key 'colour'"), (head, 0o600, "token_file is missing"),
                 (whole, 0o644, "others than its owner may read it (mode 644)"), ("[", 0o600, "it is no YAML"),
                 ("a", 0o600, "it has no keys"), (whole + "user: lab\n", 0o600, "user wants a password_file"),
                 (whole.replace("unix://", "http://"), 0o600, "directory is not unix:///PATH or tcp://HOST:PORT"),
                 (whole.replace("name: lab", "name: A B"), 0o600, "name is not 1 to 63"),
                 (whole.replace(self.redis.path, "/nowhere"), 0o600, "No such file or directory"),
                 (whole + "password_file: token\n", 0o600, "does not serve: AUTH"))
        for text, mode, sentence in cases:
            with self.subTest(sentence):
                self.refused(self.peers("status", self.write("bad.yaml", text, mode)), sentence)
        self.refused(self.peers("status", "/nowhere.yaml"), "/nowhere.yaml: No such file or directory")
        self.refused(self.peers("status", self.folder), f"{self.folder}: Is a directory")

    def test_arguments_of_a_model(self):
        for node in (ADA, BOB):
            self.worker(node)
        got = self.run_program("refusals.py", self.folder)
        self.assertEqual((got.returncode, got.stdout), (0, "right\n"), got.stdout + got.stderr)

    def test_workers(self):
        self.refused(self.train(8, 1, 1), "lab has no worker")
        self.worker(ADA)
        self.refused(self.train(8, 1, 1, more=("--workers", "eve")), f"lab has no worker 'eve'; there are {ADA}")
        self.refused(self.train(8, 1, 1, more=("--workers", f"{ADA},{ADA}")), f"names '{ADA}' twice")
        self.refused(self.peers("run", self.network), "run wants a program")


if __name__ == "__main__":
    unittest.main(verbosity=2)
