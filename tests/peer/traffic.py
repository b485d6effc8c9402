# SPDX-License-Identifier: Apache-2.0
"""The sidecar with honest peers: what arrives, when memory is released, and that it has no name."""

import contextlib
import ctypes
import json
import os
import random
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
            before = sidecar.steady()
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


if __name__ == "__main__":
    unittest.main()
