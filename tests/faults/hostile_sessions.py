# SPDX-License-Identifier: Apache-2.0
"""Handshakes of a hostile client: cut off in each field, in a wrong order, with secrets of other sessions or of
before, and frames whose session ends with a sentence.  Each case holds what the agent says of it, and that the
session it was aimed at goes on."""
import contextlib
import re
import socket

from hostile_client import (COMMANDS, END, NOBODY, PROBE, RENEW, REPLIES, RESUME, RESUMES, STRIPE, STRIPES, TAKEN,
                            Client, hello)
from peer import BYE, CALL, FRAME, HELLO, LOST, PING, PONG, POST, REPLY, frame, read_exact

PEER, LIGHT, COPY = 8, 9, 10
FIELDS = ["magic", "version", "role", "features", "session", "secret", "pid", "uid", "program", "pod", "pod_uid", "token",
          "vram_limit", "gpu_count", "grace_ms"]
WIDTHS = [8, 4, 4, 8, 16, 16, 4, 4, 64, 128, 40, 256, 8, 4, 4]
BRIEF = 100  # ms that a session outlives its client
NO_SESSION, OVER = "no session waits for these connections", "the session is over"


def next_frame(c, seconds=10):
    names = "length op kind flags seq body tag context status magic deferred".split()
    try:
        header = dict(zip(names, FRAME.unpack(read_exact(c.replies, FRAME.size, seconds))))
        return header, read_exact(c.replies, header["length"], seconds)
    except (EOFError, ConnectionResetError):
        raise AssertionError("the agent closed without a word") from None


def goes_on(c):
    """It answers."""
    c.raw(frame(PING))
    while next_frame(c)[0]["kind"] != PONG:
        pass


def lost(c, text):
    """It is over, and the agent says why."""
    while True:
        header, rest = next_frame(c)
        if header["kind"] == LOST:
            assert text in rest.decode(errors="replace"), f"not '{text}': {rest[:200]}"
            return


def refused(c, text, data, port="recv"):
    got = c.welcome(c.say(data, port))
    assert got, "closed without a word"
    said = got[11].split(b"\0")[0].decode()
    assert got[2] and re.search(text, said), f"status {got[2]}, not '{text}': '{said}'"


def cut_before(count):
    def case(c):
        s = c.say(hello()[:sum(WIDTHS[:count])])
        s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert not s.recv(4096), "an answer to half a HELLO"
    return case


def flipped(secret, at=0):
    return secret[:at] + bytes([secret[at] ^ 1]) + secret[at + 1:]


def aimed(role, text, port="recv", session=None, secret=None):
    """A HELLO at a session that runs; SESSION and SECRET make other ones of what it has."""
    def case(c):
        c.begin(grace=BRIEF)
        refused(c, text, hello(role, session=session(c) if session else c.session,
                               secret=secret(c) if secret else c.secret, grace=0), port)
        goes_on(c)
    return case


def of_another(role, text, port="recv"):
    """Two sessions of one client: the one's secret does not open the other."""
    def case(c):
        c.begin(grace=BRIEF)
        other = Client(c.rig)
        try:
            other.begin(grace=BRIEF)
            refused(c, text, hello(role, session=other.session, secret=c.secret), port)
            refused(c, text, hello(role, session=c.session, secret=other.secret), port)
            goes_on(c)
            goes_on(other)
        finally:
            other.leave()
            other.close()
    return case


def half_begun(role, text, port="recv", after=None):
    """Before the replies' connection is there."""
    def case(c):
        got = c.welcome(c.say(hello(grace=0)))
        refused(c, text, hello(role, session=got[4], secret=got[5], grace=0), port)
        joined = c.welcome(c.say(hello(REPLIES, session=got[4], secret=got[5]), "send"))
        assert joined and not joined[2], "its own second connection is refused now"
    return case


def resumed(c):
    """The secret of before."""
    c.begin(grace=1000)
    c.commands.close()
    s = c.say(hello(RESUME, session=c.session, secret=c.secret, grace=0))
    got = c.welcome(s)
    assert got and not got[2], f"not resumed: {got}"
    old, c.secret, c.commands = c.secret, got[5], s
    c.replies = c.say(hello(REPLIES, session=c.session, secret=c.secret), "send")
    got = c.welcome(c.replies)
    assert got and not got[2], "no second connection"
    return old


def replayed(role, text, port="recv"):
    def case(c):
        old = resumed(c)
        goes_on(c)
        refused(c, text, hello(role, session=c.session, secret=old, grace=0), port)
        goes_on(c)
    return case


def ended_with(role, text, port="recv"):
    """A session that its client ended."""
    def case(c):
        c.begin(grace=BRIEF)
        c.welcome(c.say(hello(END, session=c.session, secret=c.secret)))
        c.over()
        refused(c, text, hello(role, session=c.session, secret=c.secret, grace=0), port)
    return case


def commands_of_another(c):
    """COMMANDS begins a session, whatever names it: it does not take one over."""
    c.begin(grace=BRIEF)
    s = c.say(hello(session=c.session, secret=c.secret, grace=0))
    got = c.welcome(s)
    assert got and not got[2] and got[4] != c.session and got[5] != c.secret, "let in to the session that runs"
    goes_on(c)


def stripes_beyond(features, most):
    def case(c):
        c.begin(features=features, grace=BRIEF)
        for _ in range(most):
            got = c.welcome(c.say(hello(STRIPE, features=features, session=c.session, secret=c.secret)))
            assert got and not got[2], "a stripe that it may have"
        refused(c, f"has its {most} stripes" if most else "no session takes this stripe",
                hello(STRIPE, features=features, session=c.session, secret=c.secret))
        goes_on(c)
    return case


def second_hello(text, **fields):
    """The replies' HELLO is another than the first one's; the right one is let in afterwards."""
    def case(c):
        got = c.welcome(c.say(hello(grace=0)))
        refused(c, text, hello(REPLIES, **{"session": got[4], "secret": got[5], **fields}), "send")
        joined = c.welcome(c.say(hello(REPLIES, session=got[4], secret=got[5]), "send"))
        assert joined and not joined[2], "its own second connection is refused now"
    return case


def probe_of_a_session(c):
    """PROBE asks for no session: it is told of none, and of no secret."""
    c.begin(grace=BRIEF)
    got = c.welcome(c.say(hello(PROBE, session=c.session, secret=c.secret)))
    assert got and got[4] != c.session and got[5] == NOBODY, "a probe is told of a session"
    goes_on(c)


HANDSHAKES = {f"HELLO cut off before {name}": cut_before(i) for i, name in enumerate(FIELDS)}
HANDSHAKES["HELLO cut off in its last byte"] = lambda c: cut_before(0)(c) or c.say(hello()[:HELLO.size - 1]).close()
for name, role, port in (("replies", REPLIES, "send"), ("stripe", STRIPE, "recv"), ("resume", RESUME, "recv"),
                         ("renewal", RENEW, "recv")):
    unknown = "no such session" if role == RENEW else NO_SESSION
    HANDSHAKES |= {
        f"{name}: the secret's first bit": aimed(role, unknown, port, secret=lambda c: flipped(c.secret)),
        f"{name}: the secret's last bit": aimed(role, unknown, port, secret=lambda c: flipped(c.secret, 15)),
        f"{name}: no secret": aimed(role, unknown, port, secret=lambda c: NOBODY),
        f"{name}: the session's first bit": aimed(role, unknown, port, session=lambda c: flipped(c.session)),
        f"{name}: session and secret changed over": aimed(role, unknown, port, session=lambda c: c.secret,
                                                          secret=lambda c: c.session),
        f"{name}: another session's secret": of_another(role, unknown, port),
        f"{name}: the secret of before a resume": replayed(role, unknown, port),
        f"{name}: of a session that its client ended": ended_with(role, f"{OVER}|ended|{unknown}", port),
    }
HANDSHAKES |= {
    "replies: on the port for commands": aimed(REPLIES, "not served"),
    "stripe: on the port for replies": aimed(STRIPE, "not served", "send"),
    "resume: on the port for replies": aimed(RESUME, "not served", "send"),
    "replies twice": aimed(REPLIES, "is gone again", "send"),
    "stripe before the replies": half_begun(STRIPE, NO_SESSION),
    "renewal before the replies": half_begun(RENEW, "no such session"),
    "resume before the replies": half_begun(RESUME, NO_SESSION),
    "commands with a session's secret": commands_of_another, "probe with a session's secret": probe_of_a_session,
    "a stripe that was not agreed": stripes_beyond(RESUMES, 0), "a fourth stripe": stripes_beyond(RESUMES | STRIPES, 3),
    "a fifth stripe of both ways": stripes_beyond(RESUMES | STRIPES | 1 << 3, 4),
    "replies of another version": second_hello("protocol 3, this agent 4", version=3),
    "replies of a session of zeros": second_hello(NO_SESSION, session=NOBODY),
    "peer: a ticket of zeros": aimed(PEER, ".", secret=lambda c: NOBODY),
    "peer: the session's secret for a ticket": aimed(PEER, "."), "peer: on the send port": aimed(PEER, "not served", "send"),
    "copy: a ticket of zeros": aimed(COPY, ".", secret=lambda c: NOBODY),
    "copy: the session's secret for a ticket": aimed(COPY, "."), "copy: on the send port": aimed(COPY, "not served", "send"),
    "light: of a session that goes by TCP": aimed(LIGHT, "."),
    "commands: on the send port, with a session": aimed(COMMANDS, "not served", "send"),
}


# --- frames that end their session with a sentence ---

def says(text, grace=0, first=(), **fields):
    def case(c):
        c.begin(grace=grace)
        for one in first:
            c.post(**one)
        c.post(**fields)
        lost(c, text)
    return case


def out_of_order(text, *numbers):
    def case(c):
        c.begin(grace=0)
        for number in numbers:
            c.post(POST, seq=number, op=1)
        lost(c, text)
    return case


def counts_less(c):
    """A number that came late: it says nothing new."""
    c.begin()
    c.post(CALL, op=65000, tag=5)
    while next_frame(c)[0]["kind"] != REPLY:
        pass
    c.post(POST, op=65000, status=1)
    c.post(POST, op=65000, status=0)
    c.post(POST, op=65000, status=2 ** 32 - 1)
    goes_on(c)
    c.leave()


def answered_once(c):
    """Two calls with one tag: each is answered, none takes the other's place."""
    c.begin(grace=0)
    c.post(CALL, op=65000, tag=5)
    c.post(CALL, op=65001, tag=5)
    replies = []
    while len(replies) < 2:
        header, _ = next_frame(c)
        replies += [(header["tag"], header["status"])] if header["kind"] == REPLY else []
    assert replies == [(5, 801), (5, 801)], replies
    goes_on(c)


def behind_bye(c):
    c.begin(grace=0)
    c.post(BYE)
    c.post(CALL, op=65000, tag=1)
    c.over()


def on_the_replies(data):
    """What a client writes to the connection that it is to read from: nobody reads it."""
    def case(c):
        c.begin(grace=0)
        c.replies.sendall(data)
        goes_on(c)
    return case


SENTENCES = {
    "says: no magic": says("no frame begins here", kind=POST, magic=0),
    "says: kind of a reply": says("unknown kind of frame", kind=REPLY),
    "says: TAKEN without a grace": says("unknown kind of frame", kind=TAKEN),
    "says: PING with a body": says("a body where there is none", kind=PING, body=bytes(8)),
    "says: PONG with a body": says("a body where there is none", kind=PONG, body=bytes(8)),
    "says: TAKEN with a body": says("a body where there is none", grace=2000, kind=TAKEN, body=bytes(8)),
    "says: flags": says("unknown flags", kind=POST, flags=0x80),
    "says: a body beyond the limit": says("a body beyond the limit", kind=POST, body_length=2 ** 32 - 1, length=2 ** 32 - 1),
    "says: a body beyond its frame": says("a body beyond the limit", kind=POST, body_length=9, length=8),
    "says: a payload beyond the limit": says("a payload beyond the limit", kind=POST, length=2 ** 32 - 1),
    "says: a stripe without a payload": says("a stripe for nothing", kind=POST, flags=0x10, body=bytes(16)),
    "says: stripe 5": says("a stripe for nothing", kind=POST, flags=0x50, body=bytes(16), length=32),
    "says: stripe 7": says("a stripe for nothing", kind=POST, flags=0x70, body=bytes(16), length=32),
    "says: a stripe that was not opened": says("a stripe that was not opened", kind=POST, flags=0x10, body=bytes(16),
                                               length=32),
    "says: a tag out of range": says("a tag out of range", kind=CALL, tag=2 ** 16 - 1),
    "says: a number again": out_of_order("out of order", 1, 1), "says: a number before": out_of_order("out of order", 1, 2, 1),
    "says: a number left out": out_of_order("out of order", 1, 3), "says: begins at 0": out_of_order("out of order", 0),
    "says: 2^32 + 1 for 1": out_of_order("out of order", 2 ** 32 + 1),
    "says: counted what was not sent": says("counted what was never sent", grace=2000, kind=CALL, status=7),
    "says: took what was not sent": says("counted what was never sent", grace=2000, kind=TAKEN, seq=7),
    "counts less than before": counts_less, "two calls with one tag": answered_once, "a call behind BYE": behind_bye,
    "frames on the replies' connection": on_the_replies(frame(CALL, seq=1)),
    "a megabyte on the replies' connection": on_the_replies(bytes(1 << 20)),
}
