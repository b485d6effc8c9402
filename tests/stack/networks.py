# SPDX-License-Identifier: Apache-2.0
"""An agent in networks of people (docs/PEERS.md), for tests: their files, real Redis servers as their directories, and
`vcuda peer`."""
import contextlib
import json
import os
import subprocess
import sys
import time

from stack import BIN, Agent, App, Sidecar, environment, folder, one_line, operator, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "store"))
from redis_server import Redis  # noqa: E402

VCUDA, GPU_AGENT = os.path.join(BIN, "vcuda"), os.path.join(BIN, "gpu-agent")


class Place:
    """A folder with networks' files, and their directories."""

    def __init__(self, path):
        self.path, self.networks, self.redis, self.agent = path, os.path.join(path, "networks"), {}, None
        os.mkdir(self.networks, 0o700)

    def secret(self, name, text, mode=0o600):
        path = os.path.join(self.path, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def directory(self, name):
        if name not in self.redis:
            self.redis[name] = Redis()
        return self.redis[name].address

    def redis_of_all(self, name):
        """That every user of this machine reaches."""
        path = self.directory(name)[len("unix://"):]
        os.chmod(os.path.dirname(path), 0o711)
        os.chmod(path, 0o777)

    def network(self, name, directory=None, **more):
        """NETWORK.yaml of its own directory and token."""
        self.secret(f"{name}.token", f"token-of-{name}\n")
        lines = {"name": name, "directory": directory or self.directory(name), "token_file": f"{name}.token", **more}
        return self.secret(f"{name}.yaml", "".join(f"{key}: {value}\n" for key, value in lines.items()))

    def drop(self, name, **more):
        """The same, where the agent looks for it."""
        with open(self.network(name, **more)) as file:
            text = file.read().replace("token_file: ", f"token_file: {self.path}/")
        path = os.path.join(self.networks, f".{name}")
        with open(path, "w") as file:
            os.chmod(path, 0o600)
            file.write(text)
        os.rename(path, os.path.join(self.networks, f"{name}.yaml"))

    def start(self, *flags, gpus=2, env=None):
        self.agent = Agent(self.path, *operator(self.path), "--set", f"networks_folder={self.networks}", *flags,
                           env={"VCUDA_SOFTGPU_DEVICES": str(gpus), "XDG_STATE_HOME": self.path, **(env or {})})
        self.agent.http_token = "http-token-of-a-test"
        return self.agent

    def state(self, name):
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(self.networks, "agent.json")) as file:
                return {one["name"]: one for one in json.load(file)["networks"]}.get(name, {})
        return {}

    def entries(self, name):
        """The agents in that network's directory."""
        client = self.redis[name].client()
        try:
            return {key.decode(): client.hash(key.decode()) for key in client("KEYS", "node:*")}
        finally:
            client.close()

    def entered(self, name, seconds=5):
        return wait_for(lambda: list(self.entries(name).values()), seconds, f"an entry in {name}'s directory")[0]

    def sidecar(self, name, *flags):
        return Sidecar(os.path.join(self.path, f"of-{name}"), self.agent, "--token-file",
                       os.path.join(self.path, f"{name}.token"), *flags)

    def peer(self, verb, *words, env=None):
        return subprocess.run([VCUDA, "peer", verb, "--folder", self.networks, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, env=environment(env))

    def peer_fails(self, verb, *words, needle):
        line = one_line([VCUDA, "peer", verb, "--folder", self.networks, *words], needle, status=1, seconds=60)
        assert line.startswith("vcuda: "), line

    def close(self):
        for redis in self.redis.values():
            redis.close()


@contextlib.contextmanager
def place():
    with folder() as path:
        p = Place(path)
        try:
            yield p
        except AssertionError as error:
            log = p.agent.log()[-1500:] if p.agent else ""
            raise AssertionError(f"{error}\n{log}").with_traceback(error.__traceback__) from None
        finally:
            p.close()


def ok(got):
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout


def end(*apps):
    for app in apps:
        app.close_stdin()
        app.right()


def refused(socket, *needles):
    """What a program is told that may not begin."""
    app = App("count", socket=socket)
    app.wait(30)
    for needle in ("devices 0", *needles):
        assert needle in app.text(), f"'{needle}' is not in: {app.text()}"


def clock(shift):
    """A time of this machine's day, SHIFT minutes from now."""
    return time.strftime("%H:%M", time.localtime(time.time() + 60 * shift))
