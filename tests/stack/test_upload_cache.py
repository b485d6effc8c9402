# SPDX-License-Identifier: Apache-2.0
"""Uploads by content: what a second process uploads again does not travel, and what may not happen with
it: another tenant's hits, more memory than was allowed, wrong bytes when the process that keeps them is
killed or the wire is cut in the middle."""
import contextlib
import json
import os
import re
import signal
import struct
import subprocess

import test_reload
import test_stripes
import test_tls
from peer import POST, frame
from proxy import Proxy, cutting
from stack import BIN, BUILD, Agent, App, Sidecar, children, environment, folder, one_line, stack, wait_for

MIB = 1 << 20
UPLOADS = os.path.join(BUILD, "stack", "uploads")
ON = ("--upload-cache", "true")


def kept(bytes_):
    return "--set", f"upload_cache_bytes={bytes_}"


def totals(sidecar):
    got = subprocess.run([os.path.join(BIN, "vcuda-client"), "status", "--json", "--socket", sidecar.socket],
                         capture_output=True, text=True, timeout=10, env=environment())
    return json.loads(got.stdout)


def upload(sidecar, *words, env=None, during=None):
    """Bytes that went to the agent, and pieces by name, of a run of `uploads`."""
    before = totals(sidecar)["totals"]
    app = App(*words, socket=sidecar.socket, program=UPLOADS, env=env)
    if during:
        during(app)
    app.right(100)
    wait_for(lambda: not totals(sidecar)["channels"], 30, "the channel is gone")
    after = totals(sidecar)["totals"]
    return after["bytes_sent"] - before["bytes_sent"], after["pieces"]["sent"]["named"] - before["pieces"]["sent"]["named"]


def figures(agent):
    """The cache's, as /metrics has them."""
    return {name: int(value) for name, value in
            re.findall(r"^vcuda_agent_upload_cache_(\w+) (\d+)$", agent.http("/metrics"), re.M)}


def wait_kept(agent, bytes_):
    """What was brought last may still be hashed."""
    wait_for(lambda: figures(agent)["bytes"] >= bytes_, 20, f"{bytes_} bytes are kept: {figures(agent)}", every=0.05)


def keeper(agent):
    return wait_for(lambda: children(agent.pid, "agent-uploads"), 30, "agent-uploads is there")[0]


def test_what_was_uploaded_before_does_not_travel():
    with stack(agent=kept("256MiB"), sidecar=ON) as s:
        # The tensors' vectors, below 32 KiB, are not kept.
        for host, mib, all_ in (("pageable", 64, 64 * MIB), ("pinned", 48, 112 * MIB), ("tensors", 24, 136 * MIB - 23040)):
            seed = mib
            sent, named = upload(s.sidecar, seed, mib, host)
            assert sent > mib * MIB and not named, (host, sent, named)
            wait_kept(s.agent, all_)
            sent, named = upload(s.sidecar, seed, mib, host)
            assert sent < mib * MIB / 100 and named >= 2 * mib, (host, sent, named)
        sent, named = upload(s.sidecar, 64, 64, "pageable", env={"VCUDA_PERF": "no_upload_cache"})
        assert sent > 64 * MIB and not named, (sent, named)
        got = wait_for(lambda: figures(s.agent)["hits_total"] >= 2 * 136 and figures(s.agent), 10, "hits are counted")
        assert 135 * MIB < got["bytes"] < 137 * MIB and got["hit_bytes_total"] == got["bytes"], got
        assert not got["evictions_total"] and got["misses_total"] >= 2 * 136, got


def test_by_tls_and_by_udp():
    with test_tls.secured(*kept("32MiB")) as (path, authority, agent):
        sidecar = test_tls.sidecar_of(path, agent, "--tls-ca", authority.file, *ON)
        upload(sidecar, 1, 12, "tensors")
        wait_kept(agent, 12 * MIB - 11520)
        sent, named = upload(sidecar, 1, 12, "tensors")
        assert sent < 12 * MIB / 100 and named >= 24, (sent, named)
    with folder() as path:
        agent = Agent(path, "--address", "light://127.0.0.1", *kept("32MiB"))
        sidecar = Sidecar(path, f"light://{agent.address}", *ON)
        upload(sidecar, 1, 12, "pinned")
        wait_kept(agent, 12 * MIB)
        sent, named = upload(sidecar, 1, 12, "pinned")
        assert sent < 12 * MIB / 100 and named == 24, (sent, named)


def test_a_byte_that_changed_travels():
    with stack(agent=kept("64MiB"), sidecar=ON) as s:
        upload(s.sidecar, 1, 16, "pageable")
        sent, named = upload(s.sidecar, 2, 16, "pageable")
        assert sent > 16 * MIB and not named, (sent, named)


def test_tenants_are_apart():
    with folder() as path:
        tokens = os.path.join(path, "tokens")
        with open(tokens, "w") as file:
            file.write("token-a a\ntoken-b b\ntoken-a2 a/other\n")
        agent = Agent(path, "--token-file", tokens, *kept("128MiB"))
        sidecars = {}
        for name in ("a", "b", "a2"):
            with open(os.path.join(path, name), "w") as file:
                file.write(f"token-{name}")
            sidecars[name] = Sidecar(os.path.join(path, f"sidecar-{name}"), agent, "--token-file",
                                     os.path.join(path, name), *ON)
        hits = {}
        for name, all_ in (("a", 16), ("b", 32), ("a2", 32)):
            hits[name] = upload(sidecars[name], 5, 16, "pageable")[1]
            wait_kept(agent, all_ * MIB)
        # Accounts of one namespace have what it has.
        assert hits == {"a": 0, "b": 0, "a2": 32}, hits
        assert upload(sidecars["b"], 5, 16, "pageable")[1] == 32
        for one in (*sidecars.values(), agent):
            one.stop()


def resident(pid):
    """KiB of memory that no file has."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^RssAnon:\s+(\d+)", file.read(), re.M)[1])


def test_no_more_is_kept_than_was_allowed():
    with stack(agent=kept("8MiB"), sidecar=ON) as s:
        for seed in (1, 2):
            upload(s.sidecar, seed, 24, "pageable")
            got = wait_for(lambda: figures(s.agent)["evictions_total"] >= seed * 48 - 16 and figures(s.agent), 10,
                           f"what was used least makes room: {figures(s.agent)}")
            assert got["bytes"] <= 8 * MIB, got
        assert resident(keeper(s.agent)) < 8 * 1024 + 4096, resident(keeper(s.agent))
        # What came last is there until what comes before it has taken its place.
        _, named = upload(s.sidecar, 2, 24, "pageable")
        assert named <= 16, named
        assert figures(s.agent)["bytes"] <= 8 * MIB


def halfway(do):
    """For `during` of a program with pauses."""
    def run(app):
        for half in range(2):
            app.line("waiting", 60)
            if half:
                do()
            app.process.stdin.write("\n")
            app.process.stdin.flush()
    return run


def test_the_process_that_keeps_them_is_killed():
    with stack(agent=kept("64MiB"), sidecar=ON) as s:
        upload(s.sidecar, 3, 32, "pageable")
        sent, named = upload(s.sidecar, 3, 32, "pageable", "pauses",
                             during=halfway(lambda: os.kill(keeper(s.agent), signal.SIGKILL)))
        assert named and sent > 15 * MIB, (sent, named)
        first = keeper(s.agent)
        upload(s.sidecar, 3, 32, "pageable")
        wait_kept(s.agent, 32 * MIB)
        _, named = upload(s.sidecar, 3, 32, "pageable")
        assert named == 64 and keeper(s.agent) == first, named
        # A front that dies takes nothing of it along.
        front = s.agent.front()
        os.kill(front, signal.SIGKILL)
        wait_for(lambda: s.agent.front() != front, 30, "there is another front")
        wait_for(lambda: s.agent.read_ports() and s.agent.is_ready, 30, "it is ready")
        _, named = upload(s.sidecar, 3, 32, "pageable")
        assert named == 64 and keeper(s.agent) == first, named
        # One that does not go on is as good as dead, and what it does later harms nobody.
        os.kill(first, signal.SIGSTOP)
        try:
            upload(s.sidecar, 3, 16, "pageable")
        finally:
            os.kill(first, signal.SIGCONT)
        upload(s.sidecar, 3, 32, "pageable")


def test_totals_do_not_fall_with_the_process_that_counts():
    with stack(agent=kept("64MiB"), sidecar=ON) as s:
        for _ in range(2):
            upload(s.sidecar, 3, 16, "pageable")
            wait_kept(s.agent, 16 * MIB)
        wait_for(lambda: figures(s.agent)["hits_total"] == 32, 20, "the hits are counted")
        for hits in 32, 64:
            before, first = figures(s.agent), keeper(s.agent)
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: keeper(s.agent) != first, 30, "another agent-uploads")
            wait_for(lambda: figures(s.agent)["bytes"] == 0, 20, "what it kept is gone")
            upload(s.sidecar, 3, 16, "pageable")
            wait_kept(s.agent, 16 * MIB)
            after = figures(s.agent)
            assert all(after[name] >= before[name] for name in before if name.endswith("_total")), (before, after)
            assert after["misses_total"] > before["misses_total"], (before, after)
            upload(s.sidecar, 3, 16, "pageable")
            wait_for(lambda: figures(s.agent)["hits_total"] == hits + 32, 20, f"the new hits are added: {figures(s.agent)}")
        # Nor with a front that added them up.
        before, front = figures(s.agent), s.agent.front()
        os.kill(front, signal.SIGKILL)
        wait_for(lambda: s.agent.front() != front, 30, "there is another front")
        wait_for(lambda: s.agent.read_ports() and s.agent.is_ready, 30, "it is ready")
        wait_for(lambda: figures(s.agent) == before, 20, f"it has what was counted: {before}")


def test_a_reload_within():
    """It empties what is kept; another size holds from then on."""
    with folder() as path:
        agent, file = test_reload.configured(path, "upload_cache_bytes: 32MiB")
        sidecar = Sidecar(path, agent, *ON)
        upload(sidecar, 4, 16, "pageable")
        wait_kept(agent, 16 * MIB)
        first = keeper(agent)
        test_reload.write(file, "upload_cache_bytes: 8MiB")
        sent, _ = upload(sidecar, 4, 16, "pageable", "pauses", during=halfway(lambda: test_reload.reload(agent)))
        assert sent > 7 * MIB, sent
        wait_for(lambda: keeper(agent) != first, 10, "another agent-uploads")
        upload(sidecar, 4, 16, "pageable")
        wait_kept(agent, 7 * MIB)
        assert figures(agent)["bytes"] <= 8 * MIB, figures(agent)


def test_wires_that_are_cut_within():
    with contextlib.ExitStack() as exits:
        s = exits.enter_context(stack(agent=kept("64MiB"), sidecar=ON, between=Proxy))
        for _ in range(3):
            with cutting(s.between, 0.05):
                upload(s.sidecar, 9, 48, "tensors")
        assert s.between.cuts, "nothing was cut"
        exits.callback(s.between.close)


FEATURES = 0x2 | 0x4 | 0x8 | 1 << 13  # RESUME, STRIPES, STRIPES_BACK, NAMES
ASK, NAMED, KEEP = 1 << 31, 1 << 30, 1 << 29
NAME = struct.Struct("<QQII")


def piece(length, coded, data=b""):
    return struct.pack("<II", length, coded) + data


@contextlib.contextmanager
def named_stripe(address):
    """A client of our own that may name payloads: (commands, replies, its first stripe)."""
    commands, told = test_stripes.greet(address, 1, features=FEATURES, grace_ms=10000)
    assert told["status"] == 0 and told["features"] == FEATURES, told
    replies, _ = test_stripes.greet("127.0.0.1:%d" % told["reply_port"], 2, told["session"], told["secret"])
    stripe, mine = test_stripes.greet(address, 4, told["session"], told["secret"], FEATURES)
    assert mine["stripe"] == 1, mine
    try:
        stripe.settimeout(10)
        stripe.sendall(bytes(8))
        greeting = test_stripes.read(stripe, 24)
        assert greeting[:8] == piece(0, 16), greeting
        yield commands, replies, stripe
    finally:
        for one in (commands, replies, stripe):
            one.close()


def test_a_client_that_lies_harms_itself_alone():
    name = NAME.pack(1, 2, 4096, 0)
    lies = (piece(ASK | 1, 23, name[:23]), piece(ASK | 1, 25, name + b"x"), piece(ASK | 65, 65 * 24, name * 65),
            piece(ASK, 0), piece(NAMED | 4096, 23, name[:23]), piece(NAMED | 4095, 24, name),
            piece(NAMED | 1 << 22, 24, name), piece(ASK | NAMED | 1, 24, name), piece(KEEP | 2 << 20, 0),
            piece(KEEP, 0), piece(0, 16, bytes(16)))
    with stack(agent=kept("64MiB"), sidecar=ON) as s:
        upload(s.sidecar, 1, 8, "pageable")
        wait_kept(s.agent, 8 * MIB)
        for lie in lies:
            with named_stripe(s.agent.address) as (commands, replies, stripe):
                stripe.sendall(lie)
                commands.sendall(frame(POST, payload=b"x" * 4096, op=1, flags=0x10, seq=1)[:-4096])
                test_stripes.ends(replies, "that is not what it says")
        with named_stripe(s.agent.address) as (commands, replies, stripe):
            # Names that nothing follows, and other bytes under a name that was asked for.
            for i in range(300):
                stripe.sendall(piece(ASK | 1, 24, NAME.pack(i, 2, 4096, 0)))
                assert test_stripes.read(stripe, 16) == piece(ASK | 1, 8, bytes(8))
            stripe.sendall(piece(KEEP | 4096, 0, b"y" * 4096))
            commands.sendall(frame(POST, payload=b"x" * 4096, op=1, flags=0x10, seq=1)[:-4096])
            wait_for(lambda: figures(s.agent)["bytes"] == 8 * MIB + 4096, 10, "they are kept")
            stripe.sendall(piece(ASK | 1, 24, NAME.pack(299, 2, 4096, 0)))
            assert test_stripes.read(stripe, 16) == piece(ASK | 1, 8, bytes(8)), "under the name that they have"
            # A name that nobody said to be there: the stripe is cut.
            stripe.sendall(piece(NAMED | 4096, 24, name))
            commands.sendall(frame(POST, payload=b"x" * 4096, op=1, flags=0x10, seq=2)[:-4096])
            assert not stripe.recv(1)
        assert upload(s.sidecar, 1, 8, "pageable")[1] == 16


def test_off():
    for agent, sidecar in (((), ON), (kept("64MiB"), ())):
        with stack(agent=agent, sidecar=sidecar) as s:
            for _ in range(2):
                sent, named = upload(s.sidecar, 1, 16, "pageable")
                assert sent > 16 * MIB and not named, (sent, named)
            assert figures(s.agent)["misses_total"] == 0
            assert bool(children(s.agent.pid, "agent-uploads")) == bool(agent)


def test_bad_words_are_named():
    one_line([os.path.join(BIN, "vcuda-client"), "probe", "--upload-cache", "perhaps"], "--upload-cache", "perhaps")
    one_line([os.path.join(BIN, "gpu-agent"), "--set", "upload_cache_bytes=much"], "upload_cache_bytes", "32GiB")
