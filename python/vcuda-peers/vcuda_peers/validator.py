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
import threading
import time

from . import directory, keep
from .engine import RAY, Jobs, Seats, check_ray, ray, take_token
from .errors import SHORT, PeersError, last_line, shown

RENEWED = 4  # seconds after which a worker has said anew what it has
FAILURES = 3  # in a row keep a worker out
PATIENCE = 60  # seconds for the test of one worker
HEAD_PATIENCE = 120
AT_ONCE = 8
NEW = directory.Verdict(state="refused", reason="", address="nowhere:1", failures=0, until=0, checked=0,
                        since=0)  # of whom nothing was said


def call(*command, seconds=30):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL)
    except OSError as error:
        raise PeersError(f"{command[0]}: {error.strerror}") from None


def answers(vcuda, address, token_file):
    """"": an agent at ADDRESS takes the token; else the sentence that says what is wrong."""
    try:
        got = call(vcuda, "doctor", "--json", "--agent", address, "--token-file", token_file)
        checks = json.loads(got.stdout)["checks"]
    except subprocess.TimeoutExpired:
        return f"agent {address} does not answer within 30 s"
    except (ValueError, KeyError) as error:
        raise PeersError(f"{vcuda} doctor says nothing: {error}") from None
    return shown("; ".join(one["text"] for one in checks
                           if one["check"] == "agent" and one["state"] == "wrong"))


class Doorkeeper:
    """Judges until its process ends. Ray starts it again."""

    def __init__(self, network, vcuda, every, bar):
        self.network, self.vcuda, self.every, self.bar = network, vcuda, every, bar
        self.under_way, self.complaints = {}, {}  # worker: its test; worker: reason
        self.version = call(vcuda, "--version").stdout.split()[1]
        threading.Thread(target=self.loop, daemon=True).start()

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
                time.sleep(0.2 if self.under_way else 1)

    def round(self, pool):
        there = {one.node: one for one in directory.workers(self.network)[0]}
        for node in [node for node, one in self.under_way.items() if one.done()]:
            self.under_way.pop(node).result()
        said = directory.verdicts(self.network)
        self.complaints.update(directory.complaints(self.network))
        self.complaints = {node: reason for node, reason in self.complaints.items() if node in there}
        for node in set(said) - set(self.under_way):  # who failed does not come back as another
            if not said[node] or node not in there and not said[node].failures:
                directory.judge(self.network, node, None)
        was = {node: said.get(node) or NEW for node in there}
        # Of two IDs of one agent the one that waits longer is tested first.
        for node in sorted(set(there) - set(self.under_way), key=lambda node: (was[node].checked, node)):
            if there[node].address in {there[one].address for one in self.under_way if one in there}:
                continue  # two IDs of one agent: its memory is there once
            if self.is_due(there[node], was[node]):
                self.under_way[node] = pool.submit(self.judge, there[node], was[node],
                                                   self.complaints.pop(node, ""))

    def is_due(self, worker, was):
        now = time.time()
        return now >= was.until and (now >= was.checked + self.every or worker.node in self.complaints
                                     or was.address != worker.address)

    def judge(self, worker, was, complaint):
        full = was.state != "admitted" or bool(complaint) or was.address != worker.address
        reason, figures = self.test(worker, full)
        state = "admitted" if not reason else "refused" if was.state == "refused" else "evicted"
        failures, now = was.failures + 1 if reason else 0, int(time.time())
        if complaint and not reason:
            reason = f"tested again, and right: {complaint}"
        directory.judge(self.network, worker.node, {
            **{key: value for key, value in figures.items() if value}, "state": state,
            "reason": shown(reason), "since": was.state == state and was.since or now, "checked": now,
            "failures": failures, "until": now + self.bar if failures >= FAILURES else 0,
            "address": worker.address,
        }, seconds=max(self.bar, 10 * self.every))

    def test(self, worker, full):
        """(what is wrong or "", figures)"""
        version = worker.version.split(" ")[0]
        if version and version != self.version:
            return f"it is version {version}, and this validator {self.version}", {}
        wrong = answers(self.vcuda, worker.address, self.network.token_file)
        if wrong:
            return wrong, {}
        reason, figures = self.probe(worker, full)
        if reason.endswith(SHORT):  # a job that took it, and has ended, may be younger than what the worker said
            time.sleep(RENEWED)
            newest = {one.node: one for one in directory.workers(self.network)[0]}.get(worker.node, worker)
            reason, figures = self.probe(newest, full)
        return reason, figures

    def probe(self, worker, full):
        claim = json.dumps({"free": worker.free_bytes, "devices": worker.devices, "full": full})
        try:
            got = call(self.vcuda, "run", "--agent", worker.address, "--token-file", self.network.token_file,
                       "--", sys.executable, "-m", "vcuda_peers.probe", claim, seconds=PATIENCE)
            said = json.loads(got.stdout)
        except subprocess.TimeoutExpired:
            return f"the test took more than {PATIENCE} s", {}
        except ValueError:
            return f"the test ended with status {got.returncode}: {last_line(got.stderr)}", {}
        return said.pop("bad", ""), said


@contextlib.contextmanager
def lease(network, mine):
    """An event, which is set when another validator has it. A directory that is away may come back."""
    lost = threading.Event()

    def hold():
        try:
            while not lost.wait(directory.LEASE / 4):
                with contextlib.suppress(PeersError):
                    if not directory.renew(network, mine):
                        break
        finally:
            lost.set()

    directory.become_validator(network, mine)
    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    try:
        yield lost
    finally:
        lost.set()
        holder.join()
        with contextlib.suppress(PeersError):  # it lapses by itself, too
            directory.renew(network, mine, 0)


def wait_for_ports(*addresses):
    """What a validator that was killed left behind ends soon."""
    until = time.monotonic() + 2 * directory.LEASE
    while taken := [one for one in addresses if not directory.reached(one)]:
        if time.monotonic() > until:
            raise PeersError(f"{', '.join(taken)}: another program listens there")
        time.sleep(0.2)


@contextlib.contextmanager
def ray_head(host, port, dashboard, env, folder):
    """The process of Ray's head, when it serves."""
    wait_for_ports(f"{host}:{port}", f"{host}:{port + 1}", dashboard)
    until = time.monotonic() + HEAD_PATIENCE
    process = folder.start("head", ray(
        "--head", "--node-ip-address", host, "--port", str(port), "--ray-client-server-port", str(port + 1),
        "--dashboard-host", "127.0.0.1", "--dashboard-port", dashboard.split(":")[1], "--num-gpus", "0",
        "--temp-dir", os.path.join(folder.path, "ray")), env)
    try:
        while directory.reached(dashboard):
            if process.poll() is not None or time.monotonic() > until:
                raise PeersError(f"Ray's head does not start: {folder.last('head')}")
            time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        process.wait()


def start_actor(head, *arguments):
    import ray as engine
    handler = signal.getsignal(signal.SIGTERM)
    engine.init(address=head, namespace="vcuda-peers", log_to_driver=False, logging_level="ERROR")
    actor = engine.remote(Doorkeeper).options(
        name="validator", lifetime="detached", max_restarts=-1, num_cpus=0,
        resources={"node:__internal_head__": 0.001}).remote(*arguments)
    engine.get(actor.__ray_ready__.remote(), timeout=HEAD_PATIENCE)
    engine.shutdown()
    signal.signal(signal.SIGTERM, handler)  # Ray has one, too


def run(network, vcuda, every, bar, address, port, dashboard_port, no_seats):
    """Is the network's validator until it is ended."""
    check_ray()
    take_token(network, make=True)
    vcuda = shutil.which(vcuda) or vcuda
    # Jobs' drivers import PyTorch there, which wants CUDA's libraries; there is no GPU behind these.
    preload = call(vcuda, "preload")
    if preload.returncode:
        raise PeersError(f"{vcuda} preload: {last_line(preload.stderr)}")
    head, dashboard = f"{address}:{port}", f"127.0.0.1:{dashboard_port}"
    try:
        mine = directory.Validator(host=socket.gethostname(), pid=os.getpid(), head=head, dashboard=dashboard,
                                   ray=RAY).model_dump_json()
    except ValueError:
        raise PeersError(f"--address and --port are no HOST and port that others could reach: {head}"
                         ) from None
    with contextlib.ExitStack() as held:
        lost = held.enter_context(lease(network, mine))
        folder = held.enter_context(keep.own_folder())
        env = {**os.environ, "LD_PRELOAD": preload.stdout.strip()}
        process = held.enter_context(ray_head(address, port, dashboard, env, folder))
        seats = Seats(network, vcuda, folder)
        held.callback(seats.end)
        start_actor(head, network, vcuda, every, bar)
        jobs = Jobs(network, dashboard)
        print(f"vcuda-peers: {network.name}: Ray's head is {head}, its dashboard http://{dashboard}",
              flush=True)
        trouble = ""
        while not lost.wait(1):
            if process.poll() is not None:
                raise PeersError(f"Ray's head ended with status {process.returncode}")
            try:
                if not no_seats:
                    seats.follow(head)
                jobs.carry()
                trouble = ""
            except PeersError as error:
                if trouble != str(error):
                    trouble = str(error)
                    print(f"vcuda-peers: {trouble}", file=sys.stderr, flush=True)
        raise PeersError(f"another validator of {network.name} took this one's place")
