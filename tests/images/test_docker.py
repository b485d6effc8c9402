# SPDX-License-Identifier: Apache-2.0
"""The images under docker: as strangers would run them, with a read-only root and no rights.

Containers have no network but each other's, so that any engine will do; names carry our pid.
"""
import json
import os
import subprocess
import time
import unittest

from image import NAMES, VERSION, Image, path

MINE = f"vcuda-test-{os.getpid()}"
BARE = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
ALONE = [*BARE, "--network", "none"]
COPY = ("cp /lib/vcuda/*.so /target/lib/vcuda/ && "
        "cp /lib/vcuda/official.libcuda.so.1 /target/lib/vcuda/libcuda.so.1")
PRELOAD = "LD_PRELOAD=/lib/vcuda/libutilities.so:/lib/vcuda/libvcuda.so"


def docker(*words, check=True, seconds=60):
    """(exit status, stdout and stderr)"""
    got = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=seconds)
    out = got.stdout + got.stderr
    if check and got.returncode:
        raise AssertionError(f"docker {' '.join(words)}: {got.returncode}: {out[-1500:]}")
    return got.returncode, out


def image(name):
    return f"ghcr.io/vcuda/{name}:{VERSION}"


def run(name, *command, options=(), check=True):
    return docker("run", "--rm", *ALONE, *options, image(name), *command, check=check)


def eventually(what, seconds, message):
    end = time.monotonic() + seconds
    while not (got := what()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {message}")
        time.sleep(0.2)
    return got


class Docker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            status, _ = docker("version", check=False, seconds=20)
        except FileNotFoundError:
            raise unittest.SkipTest("docker is not installed") from None
        if status:
            raise unittest.SkipTest("no docker engine answers (tests/images/engine.sh run make test-images)")
        for name in NAMES:
            docker("load", "-q", "-i", path(name), seconds=120)

    def setUp(self):
        self.containers, self.volumes = [], []

    def tearDown(self):
        for name in self.containers:
            docker("rm", "-f", name, check=False)
        for name in self.volumes:
            docker("volume", "rm", name, check=False)

    def volume(self, name):
        self.volumes.append(f"{MINE}-{name}")
        docker("volume", "create", self.volumes[-1])
        return self.volumes[-1]

    def start(self, name, which, *command, options=()):
        """A container that goes on; its name."""
        self.containers.append(f"{MINE}-{name}")
        docker("run", "-d", "--name", self.containers[-1], *BARE, *options, image(which), *command)
        return self.containers[-1]

    def agent(self):
        name = self.start("agent", "gpu-agent", "--driver", "software", "--insecure", options=[
            "--network", "none", "--tmpfs", "/var/cache/vcuda:mode=1777"])
        eventually(lambda: "event=agent.ready" in docker("logs", name)[1], 20, "the agent is ready")
        return name

    def test_docker_knows_them_by_the_archives_digests(self):
        for name in NAMES:
            shown = json.loads(docker("image", "inspect", image(name))[1])[0]
            self.assertEqual(shown["Id"], "sha256:" + Image(name).digest)
            self.assertEqual(shown["RootFS"]["Layers"], Image(name).config["rootfs"]["diff_ids"])

    def test_the_client_says_what_it_is(self):
        self.assertIn(VERSION, run("client", "--version")[1])
        self.assertIn("vcuda-client install FROM TO", run("client", "--help")[1])

    def test_a_probe_without_a_sidecar_fails_with_a_sentence(self):
        status, out = run("client", "probe", check=False)
        self.assertEqual(status, 1)
        self.assertEqual(out.strip().count("\n"), 0, out)
        self.assertIn("no sidecar serves there", out)

    def test_they_run_as_whom_they_say(self):
        for name, user in (("demo", "65532"), ("client-slim", "0")):
            out = run(name, "sh", "-c", "ls -nd /proc/$$")[1]
            self.assertEqual(out.split()[2], user, out)

    def test_a_program_computes_by_a_sidecar_beside_it(self):
        libraries, socket = self.volume("libraries"), self.volume("socket")
        agent = self.agent()
        self.assertIn("files", run("client", "install", "/opt/vcuda", "/target",
                                   options=["-v", f"{libraries}:/target"])[1])
        sidecar = self.start("sidecar", "client", "run", options=[
            "--network", f"container:{agent}", "-v", f"{socket}:/run/tensor-fusion",
            "-e", "VCUDA_AGENT=127.0.0.1"])
        probe = ("exec", sidecar, "/usr/bin/vcuda-client", "probe")
        eventually(lambda: docker(*probe, check=False)[0] == 0, 20, "the probe of the sidecar")
        there = ["-v", f"{libraries}:/lib/vcuda:ro", "-v", f"{socket}:/run/tensor-fusion"]
        self.assertIn("sums are right", run("demo", "vectorAdd", options=[*there, "-e", PRELOAD])[1])
        self.assertIn("products are right",
                      run("demo", "/lib/vcuda/vcuda", "run", "--", "matmul", options=there)[1])
        self.assertIn("software GPU", run("demo", "/lib/vcuda/nvidia-smi", options=there)[1])
        # Without them there is nothing to run with, and no trace of us.
        status, out = run("demo", "vectorAdd", check=False)
        self.assertEqual(status, 127)
        self.assertIn("libcudart", out)

    def test_the_agents_sessions_are_seen_from_its_own_container(self):
        self.assertIn("sessions", docker("exec", self.agent(), "vcuda", "top", "--once")[1])

    def test_a_stopped_agent_ends_by_itself(self):
        agent = self.agent()
        docker("stop", "-t", "20", agent)  # ends it by force after that: status 137
        state = json.loads(docker("inspect", agent)[1])[0]["State"]
        self.assertEqual((state["ExitCode"], state["OOMKilled"]), (0, False))

    def test_the_older_guides_command_lines(self):
        libraries = self.volume("guide")
        line = "gpu-agent --driver software -n native -s 9997 -r 9998 -p 9999 -a 0x1129 -k 0x298"
        agent = self.start("agent", "gpu-agent", "-c", line, options=[
            "--network", "none", "--ipc", "shareable", "--tmpfs", "/var/cache/vcuda:mode=1777",
            "--entrypoint", "sh"])
        eventually(lambda: "event=agent.ready" in docker("logs", agent)[1], 20, "the agent is ready")
        self.assertIn("event=options.obsolete flag=-a", docker("logs", agent)[1])
        run("client-slim", "sh", "-c", COPY, options=["-v", f"{libraries}:/target/lib/vcuda"])
        sidecar = self.start("client", "client-slim", "sh", "-c",
                             "vcuda-client 0 127.0.0.1 native 9998 9997 9999 0", options=[
                                 "--network", f"container:{agent}", "--ipc", f"container:{agent}",
                                 "--tmpfs", "/run/tensor-fusion:mode=1777"])
        eventually(lambda: "sidecar.ready" in docker("logs", sidecar)[1], 20, "the sidecar is ready")
        _, out = docker("run", "--rm", *BARE, "--network", f"container:{agent}", "--ipc",
                        f"container:{agent}", "--user", "0", "-v", f"{libraries}:/lib/vcuda:ro", "-e", PRELOAD,
                        image("demo"), "vectorAdd")
        self.assertIn("sums are right", out)


if __name__ == "__main__":
    unittest.main()
