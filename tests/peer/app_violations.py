# SPDX-License-Identifier: Apache-2.0
"""A hostile app against the sidecar: one protocol violation a test.  Each must end that session with a text that
names the violation, leave another app undisturbed, and close the link to the agent."""

import contextlib
import os
import resource
import socket
import struct
import time
import unittest

from peer import *


class Violation(unittest.TestCase):
    ipc = "pod"

    def violates(self, tell, text):
        with stage(self.ipc) as (agent, sidecar, app, session):
            other = App(sidecar.path, b"other")
            theirs = agent.session()
            app.put(POST, b"honest")
            self.assertEqual(session.read()[1], b"honest")

            tell(app)
            status, why = app.wait_lost()
            self.assertEqual(status, 911)
            self.assertIn(text, why)
            self.assertTrue(session.closed(), "the link is still open")
            wait_for(lambda: "channel.lost" in sidecar.text(), message="logged")

            other.call(0, b"still here?")
            self.assertEqual(theirs.read()[1], b"still here?")
            theirs.reply(0, b"yes")
            self.assertEqual(other.answer(0), (0, b"yes", 0))
            self.assertIsNone(other.lost())
            other.close()

    def test_magic(self):
        self.violates(lambda a: a.put(POST, b"x", magic=0x1234), "magic")

    def test_kind(self):
        self.violates(lambda a: a.put(77, b"x"), "kind 77")

    def test_reply_from_the_app(self):
        self.violates(lambda a: a.put(REPLY, b"x"), "kind 16")

    def test_flags(self):
        self.violates(lambda a: a.put(POST, b"x", flags=0x80), "flags")

    def test_sequence_skipped(self):
        self.violates(lambda a: a.put(POST, b"x", seq=9), "seq 9")

    def test_sequence_repeated(self):
        self.violates(lambda a: a.put(POST, b"x", seq=1), "seq 1")

    def test_body_longer_than_the_frame(self):
        self.violates(lambda a: a.put(POST, b"x" * 64, length=8), "body of 64")

    def test_body_longer_than_allowed(self):
        self.violates(lambda a: a.put(POST, b"x", body_length=0xFFFFFFF0, length=0xFFFFFFFF), "body of")

    def test_body_past_the_tail(self):
        self.violates(lambda a: a.put(POST, b"x", body_length=4096, length=4096), "an entry of")

    def test_inline_frame_longer_than_allowed(self):
        self.violates(lambda a: a.put(POST, b"x", length=1 << 16), "inline frame")

    def test_payload_longer_than_allowed(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(0, a.arena, 2 << 20)), "payload of")

    def test_bulk_shorter_than_the_payload(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(0, a.arena, 10, 20)), "10 bulk bytes")

    def test_bulk_in_the_bounce_buffer_region(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(0, a.bounce, 16)), "lies outside")

    def test_bulk_before_the_arena(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(0, a.arena - 16, 32)), "lies outside")

    def test_bulk_past_the_arena(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(0, a.arena + a.arena_size - 8, 16)),
                 "lies outside")

    def test_bulk_offset_wraps(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(0, 2 ** 64 - 8, 16)), "lies outside")

    def test_bulk_in_an_unknown_segment(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(3, 0, 16)), "segment 3")

    def test_bulk_in_segment_beyond_all(self):
        self.violates(lambda a: a.put(POST, b"x", bulk=(2 ** 32 - 1, 0, 16)), "lies outside")

    def test_bulk_past_pinned_memory(self):
        def tell(a):
            n = a.pin(4096)
            a.put(POST, b"x", bulk=(n, 4090, 16))
        self.violates(tell, "lies outside")

    def test_bulk_in_pinned_memory_given_back(self):
        def tell(a):
            n = a.pin(4096)
            a.tell(UNPIN, segment=n)
            wait_for(lambda: not self.pinned(a), message="unpinned")
            a.put(POST, b"x", bulk=(n, 0, 16))
        self.violates(tell, "lies outside")

    @staticmethod
    def pinned(app):
        """The next PIN gets the same number again only once the first is gone."""
        n = app.pin(4096)
        app.tell(UNPIN, segment=n)
        app.ask(RESERVE)  # answered behind it
        return n != 1

    def test_unpin_what_is_not_pinned(self):
        self.violates(lambda a: a.tell(UNPIN, segment=5), "does not have")

    def test_unpin_the_channel_itself(self):
        self.violates(lambda a: a.tell(UNPIN, segment=0), "does not have")

    def test_tag_out_of_range(self):
        self.violates(lambda a: a.put(CALL, b"x", tag=128), "tag 128")

    def test_tag_twice(self):
        def tell(a):
            a.put(CALL, b"x", tag=4)
            a.put(CALL, b"x", tag=4)
        self.violates(tell, "tag 4 twice")

    def test_frame_behind_the_end(self):
        def tell(a):
            a.put(BYE, publish=False)
            a.put(POST, b"more")
        self.violates(tell, "behind the end")

    def test_tail_far_ahead(self):
        self.violates(lambda a: a.publish(a.tail + 2 * a.ring_size), "tail")

    def test_tail_behind(self):
        self.violates(lambda a: a.publish(a.tail - 16), "tail")

    def test_tail_not_aligned(self):
        self.violates(lambda a: a.publish(a.tail + 40), "tail")

    def test_half_a_header(self):
        self.violates(lambda a: a.publish(a.tail + 16), "half a header")

    def test_padding_past_the_tail(self):
        self.violates(lambda a: a.raw(frame(PAD)), "padding past the tail")

    def test_nonsense_on_the_socket(self):
        self.violates(lambda a: a.socket.send(b"x" * 100), "nonsense")

    def test_request_of_another_length(self):
        self.violates(lambda a: a.socket.send(struct.pack("<II", CHANNEL_MAGIC, 1)), "nonsense")

    def test_attach_twice(self):
        self.violates(lambda a: a.tell(ATTACH), "nonsense")


class ViolationByName(Violation):
    ipc = "host"

    def test_segment_cut_short(self):
        """The app may truncate a POSIX segment: the reader must not die of SIGBUS."""
        def tell(a):
            os.ftruncate(a.fd, 8192)
            os.eventfd_write(a.doorbell, 1)
        with stage(self.ipc) as (agent, sidecar, app, session):
            other = App(sidecar.path)
            theirs = agent.session()
            os.ftruncate(app.fd, 8192)
            session.replies.sendall(frame(UPDATE, struct.pack("<IIQ", 9, 0, 1)) * 2)
            os.eventfd_write(app.doorbell, 1)
            session.reply_sent = True
            session.replies.sendall(frame(UPDATE, struct.pack("<IIQ", 8000, 0, 1)))
            self.assertTrue(session.closed())
            other.call(0, b"?")
            theirs.read()
            theirs.reply(0, b"!")
            self.assertEqual(other.answer(0)[1], b"!")
            other.close()


    def test_place_of_an_answer_cut_short(self):
        """Another connection is of no use: the session ends, though it could be resumed."""
        def resumes(fields, hello):
            if hello[2] in (1, 5):  # COMMANDS, RESUME
                fields.update(features=2, grace=30000, session=hello[4] if hello[2] == 5 else fields["session"])
        with stage(self.ipc, welcome=resumes) as (agent, sidecar, app, session):
            number = app.pin(4 << 20)
            app.call(0)
            session.read()
            os.ftruncate(app.fd, 0)
            data = frame(REPLY, struct.pack("<IIQ", number, 0, 0), bytes(900000), seq=session.seq)
            session.send(data[:48])
            time.sleep(0.2)  # what is read with the header is copied, the rest is the kernel's to put there
            with contextlib.suppress(ConnectionError):
                session.send(data[48:])
            status, why = app.wait_lost(20)
            self.assertEqual(status, 911)
            self.assertIn("took shared memory away", why)
            self.assertNotIn("channel.cut", sidecar.text())


class Strangers(unittest.TestCase):
    """Peers that never become an app."""

    def test_first_request(self):
        agent = Agent()
        sidecar = Sidecar(agent)
        try:
            for data in (b"", b"x", b"GET / HTTP/1.0\r\n\r\n", bytes(120), bytes(5000),
                         REQUEST.pack(CHANNEL_MAGIC, CHANNEL_VERSION, 99, 0, 0, 0, 0, 0, b"")):
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.settimeout(5)
                s.connect(sidecar.path)
                if data:
                    s.send(data)
                    self.assertEqual(s.recv(1000), b"")
                s.close()
            with self.assertRaises(Refused) as caught:
                App(sidecar.path, version=7)
            self.assertEqual(caught.exception.status, 803)
            self.assertIn("version 7", caught.exception.text)
            app = App(sidecar.path)
            app.close()
        finally:
            agent.close()
            sidecar.stop()

    def test_the_heartbeat_is_not_the_programs_to_make(self):
        with stage() as (agent, sidecar, app, session):
            with self.assertRaises(PermissionError):
                mmap.mmap(app.heartbeat_fd, 4096)
            with self.assertRaises(PermissionError):
                os.pwrite(app.heartbeat_fd, b"x", 8)
            with self.assertRaises(PermissionError):
                os.ftruncate(app.heartbeat_fd, 0)
            before = app.heartbeat[8:16]
            wait_for(lambda: app.heartbeat[8:16] != before, 3, "a heartbeat")

    def test_silent_ones_cost_nothing_for_long(self):
        agent = Agent()
        sidecar = Sidecar(agent)
        try:
            before = sidecar.steady()
            crowd = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(50)]
            for s in crowd:
                s.connect(sidecar.path)
            app = App(sidecar.path)
            app.close()
            for s in crowd:
                s.close()
            wait_for(lambda: sidecar.descriptors() <= before + 1, message="forgotten")
        finally:
            agent.close()
            sidecar.stop()

    def test_a_thousand_silent_ones_lock_nobody_out(self):
        """Nor do they cost a thread, or memory to speak of; who is silent goes after 5 s."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
        agent = Agent()
        sidecar = Sidecar(agent)
        crowd = []
        try:
            before, memory = sidecar.steady(), sidecar.resident()["Pss_Anon"]
            threads = lambda: len(os.listdir("/proc/%d/task" % sidecar.process.pid))
            while len(crowd) < 1100:
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.connect(sidecar.path)
                crowd.append(s)
            self.assertLessEqual(threads(), 2)  # the main one and the heartbeat
            self.assertLess(sidecar.resident()["Pss_Anon"] - memory, 1024, "kB for all of them")
            app = App(sidecar.path)
            got = subprocess.run([os.path.join(BUILD, "bin", "vcuda-client"), "status",
                                  "--socket", sidecar.path], capture_output=True, timeout=20)
            self.assertEqual(got.returncode, 0, got.stderr)
            app.close()
            wait_for(lambda: sidecar.descriptors() <= before + 1, 8, "forgotten by itself")
        finally:
            for s in crowd:
                s.close()
            agent.close()
            sidecar.stop()
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)

    def test_a_process_joins_so_often_and_no_more(self):
        agent = Agent()
        sidecar = Sidecar(agent, "pod", "--arena", "1Mi", "--landing", "1Mi")
        apps = []
        try:
            with self.assertRaises(Refused) as caught:
                for _ in range(70):
                    apps.append(App(sidecar.path))
            self.assertEqual(len(apps), 64)
            self.assertEqual(caught.exception.status, 802)
            self.assertIn("joined 64 times", caught.exception.text)
            apps.pop().close()
            wait_for(lambda: "channel.closed" in sidecar.text())
            apps.append(App(sidecar.path))
        finally:
            for app in apps:
                app.close()
            agent.close()
            sidecar.stop()

    def test_more_than_the_most_processes_are_told(self):
        with stage("pod", "--max-processes", "1") as (agent, sidecar, app, session):
            with self.assertRaises(Refused) as caught:
                App(sidecar.path)
            self.assertIn("max_processes", caught.exception.text)

    def test_memory_that_a_program_still_maps_is_not_forgotten(self):
        """What leaves the budget is given back, whoever maps it: programs that go but keep their
        memory, and pinned memory that is said to be given back."""
        for ipc in "pod", "host":
            agent = Agent()
            sidecar = Sidecar(agent, ipc, "--shm-size", "64Mi")
            kept = []
            used = lambda: sum(os.fstat(fd).st_blocks for fd in kept) * 512
            try:
                for i in range(10):
                    app = App(sidecar.path)
                    kept.append(app.fd)
                    app.pin(8 << 20)
                    kept.append(app.fd)
                    app.tell(UNPIN, segment=1)
                    app.memory[0:app.size] = bytes(app.size)
                    app.socket.close()
                    wait_for(lambda: sidecar.text().count("channel.closed") > i)
                    self.assertLessEqual(used(), 64 << 20)
                wait_for(lambda: not used(), message="given back")
            finally:
                for fd in kept:
                    os.close(fd)
                agent.close()
                sidecar.stop()

    def test_descriptors_sent_along_are_dropped(self):
        agent = Agent()
        sidecar = Sidecar(agent)
        try:
            before = sidecar.steady()
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(sidecar.path)
            request = REQUEST.pack(CHANNEL_MAGIC, CHANNEL_VERSION, ATTACH, 0, 0, 0, 1, 0, b"fds")
            socket.send_fds(s, [request], [0] * 60)
            s.settimeout(5)
            data, fds, _, _ = socket.recv_fds(s, 1000, 4)
            self.assertEqual(ANSWER.unpack(data)[3], 0)
            self.assertLess(sidecar.descriptors(), before + 12)
            s.close()
            for fd in fds:
                os.close(fd)
        finally:
            agent.close()
            sidecar.stop()


if __name__ == "__main__":
    unittest.main()
