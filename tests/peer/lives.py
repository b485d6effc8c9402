# SPDX-License-Identifier: Apache-2.0
"""The sidecar with honest peers: what arrives, when memory is released, who dies and what is left,
how it starts and ends."""

import contextlib
import ctypes
import json
import os
import random
import re
import signal
import struct
import subprocess
import threading
import time
import unittest

from peer import *

CLIENT = os.path.join(BUILD, "bin", "vcuda-client")


class Traffic(unittest.TestCase):
    ipc = "pod"

    def test_thousands_of_frames_around_the_ring(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            sizes = [random.Random(1).randrange(0, 6000) for _ in range(3000)]
            got = []

            def work():
                for i in range(len(sizes)):
                    header, body, payload = session.read()
                    got.append((len(body), body[:8], len(payload)))
                    if i % 7 == 0:
                        session.ack()
                session.ack()
            worker = threading.Thread(target=work)
            worker.start()
            for i, n in enumerate(sizes):
                app.put(POST, struct.pack("<Q", i) + bytes(n))
            worker.join(30)
            self.assertEqual(got, [(n + 8, struct.pack("<Q", i), 0) for i, n in enumerate(sizes)])
            wait_for(lambda: app.u64(HEAD) == app.tail, message="released")

    def test_payloads_from_arena_and_pinned_memory(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            app.memory[app.arena:app.arena + 1000] = bytes(range(250)) * 4
            number = app.pin(3 << 20)
            app.extra[number][0:1 << 20] = b"p" * (1 << 20)
            app.put(POST, b"a", bulk=(0, app.arena + 5, 995), publish=False)
            app.put(POST, b"", bulk=(number, 0, 1 << 20), publish=False)
            app.put(POST, b"c", publish=False)
            app.publish()
            self.assertEqual(session.read()[1:], (b"a", (bytes(range(250)) * 4)[5:]))
            self.assertEqual(session.read()[1:], (b"", b"p" * (1 << 20)))
            header, body, payload = session.read()
            self.assertEqual((header["flags"], body, payload), (0, b"c", b""))

    def test_answers_land_where_the_app_said(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            number = app.pin(2 << 20)
            for tag, (segment, offset) in enumerate([(0, app.bounce), (number, 4096),
                                                     (0, app.bounce + app.bounce_size - 77)]):
                data = os.urandom(77 if tag == 2 else 900001)
                app.call(tag)
                session.read()
                session.reply(tag, struct.pack("<IIQ", segment, 0, offset) + b"reply", data, 3)
                self.assertEqual(app.answer(tag), (3, b"reply", len(data)))
                memory = app.extra[segment] if segment else app.memory
                self.assertEqual(bytes(memory[offset:offset + len(data)]), data)
            session.send(frame(DATA, struct.pack("<IIQ", number, 0, 5), b"pushed", seq=3))
            wait_for(lambda: bytes(app.extra[number][5:11]) == b"pushed", message="pushed")

    def test_words_and_upcalls(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            before = app.u32(PROGRESS)
            session.send(frame(UPDATE, struct.pack("<IIQ", 8191, 0, 77)))
            wait_for(lambda: app.u64(app.counters + 8 * 8191) == 77)
            self.assertGreater(app.u32(PROGRESS), before)
            # More than the ring holds: the sidecar stops reading until the app takes some.
            for i in range(1500):
                session.send(frame(UPCALL, struct.pack("<IIQ", 1, 0, i)))
            wait_for(lambda: app.u64(UPCALL_TAIL) == 1024)
            time.sleep(0.05)
            self.assertEqual(app.u64(UPCALL_TAIL), 1024)
            struct.pack_into("<Q", app.memory, UPCALL_HEAD, 600)
            wait_for(lambda: app.u64(UPCALL_TAIL) == 1500)
            at = app.upcalls + 16 * (1499 % 1024)
            self.assertEqual(struct.unpack_from("<IIQ", app.memory, at), (1, 1501, 1499))

    def test_nothing_is_released_before_it_is_acknowledged(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            for i in range(10):
                app.put(POST, b"x" * 100)
            for i in range(10):
                session.read()
            time.sleep(0.05)
            self.assertEqual(app.u64(HEAD), 0)
            session.send(frame(ACK, seq=4))
            wait_for(lambda: app.u64(HEAD) == 4 * 144)
            session.ack()
            wait_for(lambda: app.u64(HEAD) == app.tail)

    def test_padding_alone_is_released(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            app.put(POST, b"x")
            session.read()
            session.ack()
            wait_for(lambda: app.u64(HEAD) == app.tail)
            at = app.tail
            app.memory[app.ring + at:app.ring + at + 32] = frame(PAD)
            app.tail = app.ring_size
            app.publish()
            wait_for(lambda: app.u64(HEAD) == app.ring_size, message="released")
            app.put(POST, b"y")
            self.assertEqual(session.read()[1], b"y")

    def test_pinned_memory_comes_and_goes(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            before = sidecar.settled()
            numbers = [app.pin(5000) for _ in range(20)]
            self.assertEqual(len(set(numbers)), 20)
            self.assertTrue(all(len(app.extra[n]) == 8192 for n in numbers))
            for n in numbers:
                app.tell(UNPIN, segment=n)
            wait_for(lambda: sidecar.descriptors() <= before + 1, message="given back")
            with self.assertRaises(Refused) as caught:
                app.pin(1 << 46)
            self.assertEqual(caught.exception.status, 2)
            self.assertIn("shared memory", caught.exception.text)

    def test_the_wire_is_counted(self):
        with stage(self.ipc) as (agent, sidecar, app, session):
            app.call(0, b"12345678")
            session.read()
            session.reply(0, b"1234")
            app.answer(0)
            wait_for(lambda: struct.unpack_from("<QQQQ", app.memory, WIRE) == (1, 40, 1, 36))
            got = json.loads(subprocess.run(
                [CLIENT, "status", "--json", "--socket", sidecar.path],
                capture_output=True, check=True, timeout=10).stdout)
            channel, = got["channels"]
            self.assertEqual(channel["program"], "toy")
            self.assertEqual(channel["pid"], os.getpid())
            self.assertEqual((channel["frames_sent"], channel["bytes_sent"]), (1, 40))
            self.assertEqual(channel["in_flight"], 0)
            self.assertEqual(got["totals"]["attached"], 1)

    def test_many_at_once(self):
        agent = Agent()
        sidecar = Sidecar(agent, self.ipc)
        try:
            base = sidecar.resident()["Pss_Anon"]
            apps = [App(sidecar.path, b"app %d" % i) for i in range(32)]
            sessions = {s.hello[8].rstrip(b"\0"): s for s in (agent.session() for _ in apps)}
            for i, app in enumerate(apps):
                app.call(1, b"%d" % i)
            for i, app in enumerate(apps):
                s = sessions[b"app %d" % i]
                self.assertEqual(s.read()[1], b"%d" % i)
                s.reply(1, b"to %d" % i)
            for i, app in enumerate(apps):
                self.assertEqual(app.answer(1)[1], b"to %d" % i)
            each = (sidecar.resident()["Pss_Anon"] - base) / len(apps)
            self.assertLess(each, 8 * 1024, "kB a process beside its segment")
            for app in apps:
                app.close()
            wait_for(lambda: sidecar.resident()["Pss_Shmem"] < 30000, message="freed")
        finally:
            agent.close()
            sidecar.stop()


class TrafficInPosixMemory(Traffic):
    ipc = "host"

    def test_memory_has_no_name_at_any_time(self):
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_NONBLOCK)
        self.assertGreaterEqual(
            libc.inotify_add_watch(watch, b"/dev/shm", 0x100 | 0x80), 0)  # made, moved there
        try:
            with stage("host") as (agent, sidecar, app, session):
                app.pin(4096)
                for _ in range(5):
                    App(sidecar.path).close()
            with contextlib.suppress(BlockingIOError):
                self.assertNotIn(b"vcuda", os.read(watch, 1 << 20))
        finally:
            os.close(watch)


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
            before = sidecar.settled()
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

    def test_no_memory_is_an_answer(self):
        """A tmpfs that is full: refused with OUT_OF_MEMORY, not a SIGBUS later."""
        agent = Agent()
        sidecar = Sidecar(agent, "pod", "--arena", "64Mi", "--landing", "64Mi", wait=False)
        resource_limit = 32 << 20
        try:
            import resource
            wait_for(lambda: sidecar.reserved() > 128 << 20, message="prepared")
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
