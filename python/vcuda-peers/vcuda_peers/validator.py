# SPDX-License-Identifier: Apache-2.0
"""The validator: one process holds the lease, Ray's head and the seats; an actor on it judges workers."""
import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from . import directory, jobs, keep, network as networks
from .errors import PeersError
from .said import last_line, shown
from .seats import RAY, Seats, check_ray, environment, ray

FAILURES = 3  # in a row keep a worker out
PATIENCE = 60  # seconds for the test of one worker
HEAD_PATIENCE = 120
AT_ONCE = 8


def call(*command, seconds=30):
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)


def answers(vcuda, address, token_file):
    """"": an agent at ADDRESS takes the token; else the sentence that says what is wrong."""
    try:
        got = call(vcuda, "doctor", "--json", "--agent", address, "--token-file", token_file)
        checks = json.loads(got.stdout)["checks"]
    except subprocess.TimeoutExpired:
        return f"agent {address} does not answer within 30 s"
    except (OSError, ValueError, KeyError) as error:
        raise PeersError(f"{vcuda} doctor cannot be run: {error}") from None
    return shown("; ".join(one["text"] for one in checks
                           if one["check"] == "agent" and one["state"] == "wrong"))


def said_by(vcuda, word):
    try:
        got = call(vcuda, word)
        got.check_returncode()
        return got.stdout.split()
    except (OSError, subprocess.SubprocessError) as error:
        raise PeersError(f"{vcuda} {word} cannot be run: {error}") from None


class Doorkeeper:
    """Judges until its process ends. Ray starts it again."""

    def __init__(self, path, vcuda, every, bar):
        self.network, self.vcuda, self.every, self.bar = networks.read(path), vcuda, every, bar
        self.under_way, self.complaints = {}, {}  # worker: its test; worker: reason
        self.version = said_by(vcuda, "--version")[1]
        threading.Thread(target=self.loop, daemon=True).start()

    def pid(self):
        return os.getpid()

    def loop(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            while True:
                try:
                    self.round(pool)
                except PeersError as error:
                    print(error, flush=True)
                except BaseException as error:
                    print(repr(error), flush=True)
                    os._exit(1)  # a fresh process knows better
                time.sleep(1)

    def round(self, pool):
        there = {one.node: one for one in directory.workers(self.network)[0]}
        for node in [node for node, one in self.under_way.items() if one.done()]:
            self.under_way.pop(node).result()
        said, now = directory.verdicts(self.network), int(time.time())
        self.complaints.update(directory.complaints(self.network))
        for node in set(said) - set(self.under_way):
            if not said[node] or node not in there and said[node]["failures"] == "0":
                directory.judge(self.network, node, None)
            elif node not in there and said[node]["state"] != "gone":  # it does not come back as another
                directory.judge(self.network, node, {**said[node], "state": "gone", "since": now},
                                max(int(said[node]["until"]) - now, 10 * self.every))
        def last(node):  # of two IDs of one agent the one that waits longer is tested first
            return int((said.get(node) or {}).get("checked", 0)), node

        for node in sorted(set(there) - set(self.under_way), key=last):
            if there[node].address in {there[one].address for one in self.under_way if one in there}:
                continue  # two IDs of one agent: its memory is there once
            if node in self.complaints or self.is_due(there[node], said.get(node), now):
                self.under_way[node] = pool.submit(self.judge, there[node], said.get(node) or {},
                                                   self.complaints.pop(node, None), now)
        self.complaints = {node: reason for node, reason in self.complaints.items() if node in there}

    def is_due(self, worker, verdict, now):
        if verdict and verdict["state"] != "gone" and now < int(verdict["until"]):
            return False  # it is kept out, and takes no turn of another ID of its agent
        if not verdict or now >= int(verdict["checked"]) + self.every:
            return True
        return verdict["state"] == "gone" or verdict["address"] != worker.address

    def judge(self, worker, verdict, complaint, now):
        failures, was = int(verdict.get("failures", 0)), verdict.get("state")
        if now < int(verdict.get("until", 0)):
            if was == "gone":
                directory.judge(self.network, worker.node, {**verdict, "state": "refused", "checked": now})
            return
        full = was != "admitted" or complaint is not None or verdict["address"] != worker.address
        reason, figures = self.test(worker, full)
        state = "admitted" if not reason else "evicted" if was in ("admitted", "evicted") else "refused"
        failures = failures + 1 if reason else 0
        until = int(time.time() + self.bar) if failures >= FAILURES else 0
        if complaint is not None and not reason:
            reason = f"tested again, and right: {complaint}"
        kept = {} if full else {key: verdict[key] for key in ("gpu", *directory.FIGURES) if key in verdict}
        directory.judge(self.network, worker.node, {
            **kept, **{key: value for key, value in figures.items() if value}, "state": state,
            "reason": shown(reason), "since": verdict["since"] if was == state else now, "failures": failures,
            "until": until, "checked": int(time.time()), "address": worker.address})

    def test(self, worker, full):
        """(what is wrong or "", figures)"""
        if worker.version and worker.version != self.version:
            return f"it is version {worker.version}, and this validator {self.version}", {}
        wrong = answers(self.vcuda, worker.address, self.network.token_file)
        if wrong:
            return wrong, {}
        claim = json.dumps({"free": worker.free, "devices": worker.devices, "full": full})
        try:
            got = call(self.vcuda, "run", "--agent", worker.address, "--token-file", self.network.token_file,
                       "--", sys.executable, "-m", "vcuda_peers.probe", claim, seconds=PATIENCE)
            said = json.loads(got.stdout)
        except subprocess.TimeoutExpired:
            return f"the test took more than {PATIENCE} s", {}
        except ValueError:
            return f"the test ended with status {got.returncode}: {last_line(got.stderr)}", {}
        return said.pop("bad", ""), said


def wait_for_head(process, dashboard, log):
    until = time.monotonic() + HEAD_PATIENCE
    host, _, port = dashboard.rpartition(":")
    while True:
        if process.poll() is not None or time.monotonic() > until:
            with open(log, errors="replace") as file:
                raise PeersError(f"Ray's head does not start: {last_line(file.read(), 'it says nothing')}")
        with contextlib.suppress(OSError):
            socket.create_connection((host, int(port)), 1).close()
            return
        time.sleep(0.2)


def wait_for_ports(*ports):
    """What a validator that was killed left behind ends soon."""
    until = time.monotonic() + 2 * directory.LEASE
    for port in ports:
        while True:
            with socket.socket() as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    one.bind(("", port))
                    break
                except OSError as error:
                    if time.monotonic() > until:
                        raise PeersError(f"port {port}: {error.strerror}") from None
            time.sleep(0.2)


def start_actor(network_path, head, options):
    import ray as engine
    handler = signal.getsignal(signal.SIGTERM)
    engine.init(address=head, namespace="vcuda-peers", log_to_driver=False, logging_level="ERROR")
    actor = engine.remote(Doorkeeper).options(
        name="validator", lifetime="detached", max_restarts=-1, num_cpus=0,
        resources={"node:__internal_head__": 0.001},
    ).remote(network_path, options.vcuda, options.every, options.bar)
    engine.get(actor.pid.remote(), timeout=HEAD_PATIENCE)
    engine.shutdown()
    signal.signal(signal.SIGTERM, handler)  # Ray has one, too


def run(options):
    """Is the network's validator until it is ended."""
    check_ray()
    network = networks.read(options.network)
    os.environ.update(environment(network, make=True))
    vcuda = options.vcuda = shutil.which(options.vcuda) or options.vcuda
    host = socket.gethostname()
    # Jobs' drivers import PyTorch there, which wants CUDA's libraries; there is no GPU behind these.
    env = {**os.environ, "LD_PRELOAD": said_by(vcuda, "preload")[0]}
    head, dashboard = f"{options.address}:{options.port}", f"127.0.0.1:{options.dashboard_port}"
    if not directory.is_address(head):
        raise PeersError(f"--address and --port are no HOST and port that others could reach: {head}")
    mine = json.dumps({"host": host, "pid": os.getpid(), "head": head, "dashboard": dashboard, "ray": RAY})
    directory.become_validator(network, mine)
    with contextlib.ExitStack() as ends:
        ends.callback(directory.resign, network, mine)
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="vcuda-peers-",
                                                                ignore_cleanup_errors=True))
        lost = threading.Event()
        threading.Thread(target=hold, args=(network, mine, lost), daemon=True).start()
        wait_for_ports(options.port, options.port + 1, options.dashboard_port)
        log = os.path.join(folder, "head.log")
        with open(log, "w") as file:
            process = keep.start(ray("--head", "--node-ip-address", options.address,
                                     "--port", str(options.port), "--dashboard-host", "127.0.0.1",
                                     "--dashboard-port", str(options.dashboard_port),
                                     "--ray-client-server-port", str(options.port + 1), "--num-gpus", "0",
                                     "--temp-dir", os.path.join(folder, "ray")), file, env)
        ends.callback(process.wait)
        ends.callback(process.terminate)
        seats = Seats(network, vcuda, dict(os.environ), folder)
        ends.callback(seats.end)
        wait_for_head(process, dashboard, log)
        start_actor(os.path.abspath(options.network), head, options)
        desk = jobs.Desk(network, dashboard)
        print(f"vcuda-peers: {network.name}: Ray's head is {head}, its dashboard http://{dashboard}",
              flush=True)
        trouble = ""
        while not lost.wait(1):
            if process.poll() is not None:
                raise PeersError(f"Ray's head ended with status {process.returncode}")
            try:
                if not options.no_seats:
                    seats.follow(head)
                desk.carry()
                trouble = ""
            except PeersError as error:
                if trouble != str(error):
                    trouble = str(error)
                    print(f"vcuda-peers: {trouble}", file=sys.stderr, flush=True)
        raise PeersError(f"another validator of {network.name} took this one's place")


def hold(network, mine, lost):
    """Renews the lease. A directory that is away may come back: who took our place then has it."""
    try:
        while not lost.wait(directory.LEASE / 4):
            with contextlib.suppress(PeersError):
                if not directory.renew(network, mine):
                    break
    finally:
        lost.set()
