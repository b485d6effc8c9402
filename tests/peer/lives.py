# SPDX-License-Identifier: Apache-2.0
"""The sidecar with honest peers: who dies and what is left, how it starts and ends."""

import json
import os
import signal
import struct
import subprocess
import threading
import time
import unittest

from peer import *

CLIENT = os.path.join(BUILD, "bin", "vcuda-client")


class Others(unittest.TestCase):
    """What a stranger of the sidecar's own user reaches who sees its process: a pod with the
    node's processes, as hostIPC of the seeds' manifests comes with."""

    def test_the_same_user_opens_nothing_of_the_process(self):
        user = 65532 if not os.geteuid() else os.geteuid()
        folder = tempfile.mkdtemp(prefix="vcuda-test-")
        token = os.path.join(folder, "token")
        with open(token, "w") as f:
            f.write("sesame\n")
        for path in (folder, token):
            os.chown(path, user, user)
        agent = Agent()
        path = os.path.join(folder, "s")
        client = subprocess.Popen([os.path.abspath(CLIENT), "run", "--socket", path, "--agent",
                                   "127.0.0.1:%d" % agent.port, "--token-file", token,
                                   "--token=sesame"],
                                  stderr=subprocess.DEVNULL, user=user, group=user, cwd=folder)
        try:
            wait_for(lambda: os.path.exists(path))
            app = App(path)
            looks = """cd /proc/%d || exit
                for name in maps environ; do cat $name >/dev/null && echo $name; done
                : 2>/dev/null <mem && echo mem
                ls fd 2>/dev/null && echo fd
                grep -q sesame cmdline && echo cmdline
                for name in root cwd exe; do readlink $name && echo $name; done""" % client.pid
            stranger = subprocess.run(["sh", "-c", looks], capture_output=True, text=True,
                                      timeout=20, user=user, group=user, cwd="/")
            self.assertEqual(stranger.stdout, "", stranger)
            app.close()
        finally:
            client.terminate()
            client.wait(5)
            agent.close()
            shutil.rmtree(folder)


class Ends(unittest.TestCase):
    def test_app_dies(self):
        with stage() as (agent, sidecar, app, session):
            before = sidecar.steady()
            other = App(sidecar.path)
            agent.session()
            other.close()
            self.assertTrue(agent.sessions[1].closed(), "the link is still open")
            wait_for(lambda: sidecar.descriptors() <= before + 1, message="freed")

    def test_what_was_posted_before_the_end_is_sent(self):
        agent = Agent()
        sidecar = Sidecar(agent)
        try:
            app = App(sidecar.path)
            session = agent.session()
            for i in range(200):
                app.put(POST, b"%d" % i, publish=False)
            app.put(BYE, publish=False)
            app.publish()
            app.close()
            for i in range(200):
                self.assertEqual(session.read()[1], b"%d" % i)
            self.assertEqual(session.read()[0]["kind"], BYE)
            # The worker may still answer while it finishes: nobody minds.
            session.send(frame(UPDATE, struct.pack("<IIQ", 20, 0, 1), seq=session.seq))
            time.sleep(0.05)
            session.close()
            wait_for(lambda: "channel.closed" in sidecar.text(), message="closed")
            self.assertNotIn("channel.lost", sidecar.text())
        finally:
            agent.close()
            sidecar.stop()

    def test_agent_dies(self):
        # Not noticed by its silence, which may last an hour here.
        with stage("pod", "--ping-timeout", "3600") as (agent, sidecar, app, session):
            app.call(9, b"")
            session.read()
            session.close()
            self.assertEqual(app.wait_lost()[0], 911)
            self.assertEqual(app.answer(9)[0], 911)
            with self.assertRaises(Refused) as caught:
                app.pin(4096)
            self.assertEqual(caught.exception.status, 911)

    def test_agent_says_why(self):
        with stage() as (agent, sidecar, app, session):
            app.call(9, b"")
            session.read()
            session.send(frame(LOST, b"the GPU fell off the bus", status=719, seq=1))
            session.close()
            status, text = app.wait_lost()
            self.assertEqual((status, app.answer(9)[0]), (719, 719))
            self.assertIn("fell off the bus", text)

    def test_agent_falls_silent(self):
        with stage("pod", "--ping-timeout", "1") as (agent, sidecar, app, session):
            self.assertIn("does not answer", app.wait_lost(8)[1])
            # It was asked before it was given up.
            header = FRAME.unpack(read_exact(session.commands, FRAME.size))
            self.assertEqual(header[2], PING)

    def test_pings_are_answered_both_ways(self):
        with stage("pod", "--ping-timeout", "1") as (agent, sidecar, app, session):
            got = []
            reader = threading.Thread(target=lambda: got.append(session.read(8)[0]))
            reader.start()
            time.sleep(5)  # two PINGs and more than the patience
            self.assertIsNone(app.lost())
            session.send(frame(PING))
            reader.join(5)
            self.assertEqual((got[0]["kind"], got[0]["seq"]), (PONG, 0))

    def test_the_agent_hears_something_though_it_talks_all_the_time(self):
        """Nothing for long is what it sees of a sidecar that was stopped."""
        agent = Agent()
        sidecar = Sidecar(agent)
        apps = []
        try:
            for i in range(2):
                apps.append(App(sidecar.path))
            talks, full = agent.session(), agent.session()
            for i in range(1500):  # more than are taken: it does not read on
                full.send(frame(UPCALL, struct.pack("<IIQ", 1, 0, i)))
            end = time.monotonic() + 4.5
            heard = {}
            while time.monotonic() < end and len(heard) < 2:
                talks.send(frame(UPDATE, struct.pack("<IIQ", 20, 0, 1)))
                for session in select.select([talks.commands, full.commands], [], [], 0.05)[0]:
                    header = FRAME.unpack(read_exact(session, 32))
                    heard.setdefault(session, header[2])
            self.assertEqual(list(heard.values()), [PONG, PONG])
            self.assertFalse(any(app.lost() for app in apps))
        finally:
            for app in apps:
                app.close()
            agent.close()
            sidecar.stop()

    def test_sigterm(self):
        with stage() as (agent, sidecar, app, session):
            app.put(POST, b"x")
            session.read()
            sidecar.process.send_signal(signal.SIGTERM)
            header, _, _ = session.read()
            self.assertEqual((header["kind"], header["seq"]), (BYE, 2))
            self.assertIn("stopped", app.wait_lost()[1])
            self.assertEqual(sidecar.process.wait(5), 0)
            self.assertEqual(os.listdir(os.path.dirname(sidecar.path)), [])
            sidecar.process.poll = lambda: None  # it ended as it should
            sidecar.process.send_signal = lambda s: None


class Starts(unittest.TestCase):
    def run_client(self, *arguments, env=None):
        return subprocess.run([CLIENT, *arguments], capture_output=True, text=True, timeout=20,
                              env=dict(os.environ, **(env or {})))

    def test_stale_socket_is_replaced(self):
        sidecar = Sidecar()
        sidecar.process.kill()
        sidecar.process.wait()
        self.assertTrue(os.path.exists(sidecar.path))
        again = subprocess.Popen([CLIENT, "run", "--socket", sidecar.path],
                                 stderr=subprocess.DEVNULL)
        wait_for(lambda: self.run_client("status", "--socket", sidecar.path).returncode == 0)
        again.terminate()
        self.assertEqual(again.wait(5), 0)
        sidecar.stop()

    def test_live_socket_is_an_error(self):
        sidecar = Sidecar()
        wait_for(lambda: self.run_client("status", "--socket", sidecar.path).returncode == 0)
        got = self.run_client("run", "--socket", sidecar.path)
        self.assertEqual(got.returncode, 1)
        self.assertIn("pid %d" % sidecar.process.pid, got.stderr)
        sidecar.stop()

    def test_simultaneous_starts_for_one_user(self):
        sidecar = Sidecar(None, "pod", "--idle-exit", "1", wait=False)
        others = [subprocess.Popen([CLIENT, "run", "--socket", sidecar.path, "--idle-exit", "1"],
                                   stderr=subprocess.DEVNULL) for _ in range(5)]
        everybody = others + [sidecar.process]
        wait_for(lambda: self.run_client("status", "--socket", sidecar.path).returncode == 0)
        wait_for(lambda: sum(p.poll() is None for p in everybody) == 1, message="one serves")
        for p in everybody:
            self.assertEqual(p.wait(10), 0)
        self.assertEqual(os.listdir(os.path.dirname(sidecar.path)), [])
        sidecar.stop()

    def test_idle_exit_waits_for_the_last_app(self):
        agent = Agent()
        sidecar = Sidecar(agent, "pod", "--idle-exit", "1")
        app = App(sidecar.path)
        time.sleep(1.5)
        self.assertIsNone(sidecar.process.poll())
        app.close()
        self.assertEqual(sidecar.process.wait(5), 0)
        agent.close()
        sidecar.stop()

    def test_drain(self):
        with stage() as (agent, sidecar, app, session):
            self.assertEqual(self.run_client("drain", "--socket", sidecar.path).returncode, 0)
            with self.assertRaises(Refused) as caught:
                App(sidecar.path)
            self.assertEqual(caught.exception.status, 802)
            app.call(1, b"")
            session.read()
            session.reply(1)
            app.answer(1)
            app.socket.close()
            self.assertEqual(sidecar.process.wait(5), 0)
            sidecar.process.poll = lambda: None
            sidecar.process.send_signal = lambda s: None

    def test_positional_form(self):
        agent = Agent()
        path = os.path.join(tempfile.mkdtemp(prefix="vcuda-test-"), "s")
        client = subprocess.Popen([CLIENT, "0", "127.0.0.1", "native", str(agent.port), "9997",
                                   "9999", "0"], env=dict(os.environ, VCUDA_SOCKET=path),
                                  stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(path))
        app = App(path)
        self.assertEqual(app.mode, 1)
        app.put(POST, b"hello")
        self.assertEqual(agent.session().read()[1], b"hello")
        app.close()
        client.terminate()
        self.assertEqual(client.wait(5), 0)
        agent.close()
        shutil.rmtree(os.path.dirname(path))

    def test_configuration_file(self):
        folder = tempfile.mkdtemp(prefix="vcuda-test-")
        agent = Agent()
        config, token = os.path.join(folder, "c.yaml"), os.path.join(folder, "token")
        with open(token, "w") as f:
            f.write("sesame\n")
        with open(config, "w") as f:
            f.write("socket: %s/s\nipc: host\nagent: 127.0.0.1:%d\ntokenFile: %s\nring: 256Ki\n"
                    % (folder, agent.port, token))
        client = subprocess.Popen([CLIENT, "--config", config], stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(folder + "/s"))
        app = App(folder + "/s")
        self.assertEqual((app.mode, app.ring_size), (1, 256 << 10))
        self.assertEqual(agent.session().hello[11].rstrip(b"\0"), b"sesame")
        app.close()
        client.terminate()
        client.wait(5)
        agent.close()
        shutil.rmtree(folder)

    def test_probe(self):
        agent = Agent()
        got = self.run_client("probe", "--agent", "127.0.0.1:%d" % agent.port, "--json")
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertTrue(json.loads(got.stdout)["granted"])
        agent.welcome = lambda fields, hello: fields.update(status=800, text=b"no token")
        got = self.run_client("probe", "--agent", "127.0.0.1:%d" % agent.port)
        self.assertEqual(got.returncode, 3)
        self.assertIn("no token", got.stderr)
        agent.close()

    def test_usage_errors_name_what_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            def config(text):
                path = os.path.join(folder, "c.yaml")
                with open(path, "w") as f:
                    f.write(text)
                return ["--config", path], path
            cases = [
                (["--frobnicate", "1"], "--frobnicate"),
                (["--agent"], "--agent needs a value"),
                (["--agent", "host:99999"], "host:99999"),
                (["--agent", "rdma://host"], "no such transport"),
                (["--ipc", "both"], "neither host nor pod"),
                (["--ring", "300Ki"], "--ring: '300Ki' is not a power of two"),
                (["--spin", "much"], "auto, never"),
                (["--token-file", "/nonexistent"], "--token-file"),
                (["frob"], "frob"),
                (["0", "host", "native"], "positional form"),
                (["0", "host", "rdma", "1", "2", "3", "0"], "native"),
                (["--config", "/nonexistent"], "/nonexistent"),
            ]
            for text, line, what in [("socket: /x\nfoo: 1\n", 2, "unknown key 'foo'"),
                                     ("ring:\n  - 1\n", 2, "not a list"),
                                     ("agent: [\n", 2, ""),
                                     ("a: &x 1\nb: *x\n", 1, "unknown key 'a'"),
                                     ("- a\n", 1, "not a list"),
                                     ("\n\nidle_exit: soon\n", 3, "not a number")]:
                arguments, path = config(text)
                got = self.run_client(*arguments)
                self.assertEqual(got.returncode, 2)
                self.assertIn("%s:%d:" % (path, line), got.stderr, text)
                self.assertIn(what, got.stderr)
            for arguments, what in cases:
                got = self.run_client(*arguments)
                self.assertEqual(got.returncode, 2, arguments)
                self.assertIn(what, got.stderr)
                self.assertEqual(got.stderr.count("\n"), 1, got.stderr)

    def test_memory_of_a_program_that_ended_is_the_next_ones(self):
        """There is room for one: the next waits while the first one's BYE is on its way, and is
        refused at once while the first one lives."""
        agent = Agent()
        sidecar = Sidecar(agent, "pod", "--shm-size", "14Mi")
        try:
            first = App(sidecar.path)
            session = agent.session()
            with self.assertRaises(Refused) as caught:
                App(sidecar.path)
            self.assertEqual(caught.exception.status, 2)
            self.assertIn("shm_size", str(caught.exception))
            first.put(BYE)
            self.assertEqual(session.read()[0]["kind"], BYE)
            first.close()
            ending = threading.Event()

            def end():
                ending.set()
                session.close()

            ended = threading.Timer(0.4, end)
            ended.start()
            App(sidecar.path).close()
            self.assertTrue(ending.is_set(), "the next one did not wait")
            ended.join()
        finally:
            agent.close()
            sidecar.stop()

    def test_memory_is_there_before_it_is_used(self):
        """A library of before, which knows no part of its memory, has all of it; one of now has the first part
        until it asks, once or again."""
        agent = Agent()
        for ipc in "pod", "host":
            sidecar = Sidecar(agent, ipc)
            try:
                before, now = App(sidecar.path), App(sidecar.path, features=FEATURE_RESERVE)
                of = lambda app: os.fstat(app.fd).st_blocks * 512
                self.assertEqual(of(before), before.size)
                self.assertEqual(of(now), now.arena + (2 << 20))
                for _ in range(2):
                    now.ask(RESERVE)
                    self.assertEqual(of(now), now.size)
                before.close()
                now.close()
            finally:
                sidecar.stop()
        agent.close()

    def test_no_memory_is_an_answer(self):
        """A tmpfs that is full: refused with OUT_OF_MEMORY, not a SIGBUS later."""
        agent = Agent()
        sidecar = Sidecar(agent, "pod", "--arena", "64Mi", "--landing", "64Mi", wait=False)
        resource_limit = 32 << 20
        try:
            import resource
            wait_for(lambda: any(size > 128 << 20 and memory > 2 << 20 for size, memory in sidecar.segments()),
                     message="prepared")
            resource.prlimit(sidecar.process.pid, resource.RLIMIT_FSIZE,
                             (resource_limit, resource_limit))
            # The prepared segment was made before the limit; the next one cannot be.
            first = App(sidecar.path)
            with self.assertRaises(Refused) as caught:
                App(sidecar.path)
            self.assertEqual(caught.exception.status, 2)
            first.close()
        finally:
            agent.close()
            sidecar.stop()


if __name__ == "__main__":
    unittest.main()
