# SPDX-License-Identifier: Apache-2.0
"""A hostile agent against the sidecar: one protocol violation a test.  Each must end the session with a text,
answer every call that waits, and write nothing outside the places that an app offered."""

import struct
import unittest

from peer import *


def bounce(segment, offset, data=b""):
    return struct.pack("<IIQ", segment, 0, offset) + data


class Violation(unittest.TestCase):
    def violates(self, tell, text, status=911):
        with stage() as (agent, sidecar, app, session):
            app.call(5, b"waits")
            session.read()
            before = bytes(app.memory[app.arena:app.bounce])
            tell(app, session)
            got, why = app.wait_lost()
            self.assertEqual(got, status)
            self.assertIn(text, why)
            self.assertEqual(app.answer(5)[0], status)
            self.assertTrue(session.closed())
            self.assertEqual(bytes(app.memory[app.arena:app.bounce]), before)

    def test_magic(self):
        self.violates(lambda a, s: s.send(frame(ACK, magic=1)), "wrong magic")

    def test_kind(self):
        self.violates(lambda a, s: s.send(frame(99)), "unknown kind")

    def test_post_from_the_agent(self):
        self.violates(lambda a, s: s.send(frame(POST)), "unknown kind")

    def test_flags(self):
        self.violates(lambda a, s: s.send(frame(ACK, flags=1)), "flags")

    def test_body_longer_than_the_frame(self):
        self.violates(lambda a, s: s.send(frame(REPLY, b"", tag=5, body_length=100)), "forged length")

    def test_length_of_four_gigabytes(self):
        self.violates(lambda a, s: s.send(frame(DATA, bounce(0, 0), length=2 ** 32 - 1)),
                 "forged length")

    def test_ack_with_a_body(self):
        self.violates(lambda a, s: s.send(frame(ACK, b"12345678")), "wrong size")

    def test_update_too_short(self):
        self.violates(lambda a, s: s.send(frame(UPDATE, b"1234")), "wrong size")

    def test_update_with_a_payload(self):
        self.violates(lambda a, s: s.send(frame(UPDATE, bytes(16), b"x")), "payload where none")

    def test_reply_too_long(self):
        self.violates(lambda a, s: s.send(frame(REPLY, bytes(2017), tag=5)), "wrong size")

    def test_reply_with_payload_and_no_bounce_buffer(self):
        self.violates(lambda a, s: s.send(frame(REPLY, bytes(8), b"payload", tag=5)), "wrong size")

    def test_reply_nobody_asked_for(self):
        self.violates(lambda a, s: s.send(frame(REPLY, tag=6)), "nobody waits")

    def test_reply_twice(self):
        def tell(a, s):
            a.call(7, b"second")
            s.read()
            s.reply(7, b"fine")
            s.reply(7, b"again")
        self.violates(tell, "nobody waits")

    def test_reply_with_a_tag_out_of_range(self):
        self.violates(lambda a, s: s.send(frame(REPLY, tag=4000)), "nobody waits")

    def test_acknowledges_the_future(self):
        self.violates(lambda a, s: s.send(frame(ACK, seq=2)), "cannot have")

    def test_acknowledges_backwards(self):
        def tell(a, s):
            s.send(frame(ACK, seq=1))
            s.send(frame(ACK, seq=0))
        self.violates(tell, "cannot have")

    def test_bounce_buffer_in_the_ring(self):
        self.violates(lambda a, s: s.send(frame(REPLY, bounce(0, a.ring), b"x" * 64, tag=5)),
                 "no bounce buffer")

    def test_bounce_buffer_on_the_page(self):
        self.violates(lambda a, s: s.send(frame(DATA, bounce(0, 0), b"x" * 64)), "no bounce buffer")

    def test_bounce_buffer_in_the_arena(self):
        self.violates(lambda a, s: s.send(frame(DATA, bounce(0, a.arena), b"x" * 64)),
                 "no bounce buffer")

    def test_bounce_buffer_past_the_end(self):
        self.violates(lambda a, s: s.send(
            frame(DATA, bounce(0, a.bounce + a.bounce_size - 32), b"x" * 64)),
            "no bounce buffer")

    def test_bounce_buffer_offset_wraps(self):
        self.violates(lambda a, s: s.send(frame(DATA, bounce(0, 2 ** 64 - 32), b"x" * 64)),
                 "no bounce buffer")

    def test_bounce_buffer_in_an_unknown_segment(self):
        self.violates(lambda a, s: s.send(frame(DATA, bounce(9, 0), b"x" * 64)), "segment 9")

    def test_counter_out_of_range(self):
        self.violates(lambda a, s: s.send(frame(UPDATE, struct.pack("<IIQ", 8192, 0, 1))), "counter 8192")

    def test_half_a_frame_and_goodbye(self):
        def tell(a, s):
            s.send(frame(DATA, bounce(0, a.bounce), b"x" * 1000)[:500])
            s.close()
        self.lie_closed(tell)

    def lie_closed(self, tell):
        with stage() as (agent, sidecar, app, session):
            app.call(5, b"waits")
            session.read()
            tell(app, session)
            self.assertEqual(app.wait_lost()[0], 911)
            self.assertEqual(app.answer(5)[0], 911)

    def test_text_with_control_characters(self):
        self.violates(lambda a, s: s.send(frame(LOST, b"two\nlines\x1b[31m", status=700)),
                 "two?lines?[31m", status=700)


class Handshake(unittest.TestCase):
    """Agents that refuse, and what answers on the wrong port."""

    def refused(self, welcome, status, text, *flags):
        agent = Agent(welcome)
        sidecar = Sidecar(agent, "pod", *flags)
        try:
            before = sidecar.steady()
            with self.assertRaises(Refused) as caught:
                App(sidecar.path)
            self.assertEqual(caught.exception.status, status)
            self.assertIn(text, caught.exception.text)
            wait_for(lambda: sidecar.descriptors() <= before + 1, message="closed")
        finally:
            agent.close()
            sidecar.stop()

    def test_refused_politely(self):
        def welcome(fields, hello):
            fields.update(status=800, text=b"the token is not right")
        self.refused(welcome, 800, "the token is not right")

    def test_another_version(self):
        def welcome(fields, hello):
            fields.update(version=SESSION_VERSION - 1, status=803, text=b"version")
        self.refused(welcome, 803, f"protocol version {SESSION_VERSION - 1}")

    def test_another_version_granted(self):
        def welcome(fields, hello):
            fields.update(version=9)
        self.refused(welcome, 803, "protocol version 9")

    def test_not_an_agent(self):
        def welcome(fields, hello):
            fields.update(raw=b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" + bytes(300))
        self.refused(welcome, 802, "not a vcuda agent")

    def test_closes_at_once(self):
        def welcome(fields, hello):
            fields.update(raw=b"")
        self.refused(welcome, 802, "during the handshake")

    def test_half_a_welcome(self):
        def welcome(fields, hello):
            fields.update(raw=struct.pack("<QII", SESSION_MAGIC, SESSION_VERSION, 0))
        self.refused(welcome, 802, "during the handshake")

    def test_second_connection_refused(self):
        def welcome(fields, hello):
            if hello[2] == 2:
                fields.update(status=800, text=b"wrong secret")
        self.refused(welcome, 800, "wrong secret")

    def test_no_reply_port(self):
        def welcome(fields, hello):
            fields.update(port=0)
        self.refused(welcome, 802, "no reply port")

    def test_features_not_asked_for(self):
        def welcome(fields, hello):
            fields.update(features=1 << 40)
        self.refused(welcome, 802, "features")

    def test_silence(self):
        def welcome(fields, hello):
            time.sleep(3)
            fields.update(raw=b"")
        self.refused(welcome, 802, "timed out", "--attach-timeout", "1")

    def test_nobody_there(self):
        agent = Agent()
        agent.close()
        sidecar = Sidecar("127.0.0.1:%d" % agent.port)
        try:
            with self.assertRaises(Refused) as caught:
                App(sidecar.path)
            self.assertEqual(caught.exception.status, 802)
            self.assertIn("refused", caught.exception.text)
            self.assertIn(str(agent.port), caught.exception.text)
        finally:
            sidecar.stop()

    def test_no_agent(self):
        sidecar = Sidecar()
        try:
            with self.assertRaises(Refused) as caught:
                App(sidecar.path)
            self.assertEqual(caught.exception.status, 100)
            self.assertIn("--agent", caught.exception.text)
        finally:
            sidecar.stop()


if __name__ == "__main__":
    unittest.main()
