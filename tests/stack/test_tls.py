# SPDX-License-Identifier: Apache-2.0
"""tls://HOST:PORT: TLS 1.3 on every connection, and nothing else where it is configured.  The other
side is Python's ssl (OpenSSL), which is told to be wrong in each way."""
import contextlib
import os
import random
import re
import socket
import ssl
import subprocess
import time

from peer import HELLO, SESSION_MAGIC, SESSION_VERSION, WELCOME
from stack import BIN, LOST, NOT_PERMITTED, Agent, App, Sidecar, environment, folder, now, soon, wait_for
from test_stripes import FOR_EVER, Relay, stripes_of

CLIENT, AGENT = os.path.join(BIN, "vcuda-client"), os.path.join(BIN, "gpu-agent")


def openssl(*words):
    got = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=30)
    assert got.returncode == 0, got.stderr


class Authority:
    """A CA in a folder; issue() gives the paths of a certificate and its key."""

    def __init__(self, path, name="ca"):
        self.path, self.name = path, name
        self.file, self.key = os.path.join(path, f"{name}.pem"), os.path.join(path, f"{name}.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.file)

    def issue(self, name, alternative="IP:127.0.0.1", usage="serverAuth", expired=False, end=None):
        cert, key, asked = (os.path.join(self.path, f"{name}.{end}") for end in ("pem", "key", "csr"))
        extra, index = os.path.join(self.path, f"{name}.ext"), os.path.join(self.path, "index")
        with open(extra, "w") as file:
            file.write(f"[e]\nsubjectAltName={alternative}\nextendedKeyUsage={usage}\n[ca]\ndefault_ca=c\n"
                       f"[c]\ndatabase={index}\nnew_certs_dir={self.path}\ndefault_md=sha256\npolicy=p\n"
                       "rand_serial=yes\nunique_subject=no\n[p]\ncommonName=supplied\n")
        open(index, "a").close()
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", key, "-out", asked)
        dates = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z") if expired else \
            ("-enddate", end) if end else ("-days", "1")
        openssl("ca", "-batch", "-config", extra, "-cert", self.file, "-keyfile", self.key, "-in", asked, "-out", cert,
                "-notext", "-extensions", "e", *dates)
        return cert, key


def agent_flags(cert, key, *more):
    return ("--set", f"tls.cert={cert}", "--set", f"tls.key={key}", *more)


@contextlib.contextmanager
def secured(*flags, **certificate):
    """(folder, authority, agent)"""
    with folder() as path:
        authority = Authority(path)
        agent = Agent(path, *agent_flags(*authority.issue("agent", **certificate)), *flags)
        agent.address = f"tls://{agent.address}"
        yield path, authority, agent


def sidecar_of(path, agent, *flags, name="sidecar"):
    return Sidecar(os.path.join(path, name), agent, *flags)


def probe(agent, *flags, status=0):
    got = subprocess.run([CLIENT, "probe", "--agent", getattr(agent, "address", agent), *flags],
                         capture_output=True, text=True, timeout=20, env=environment())
    assert got.returncode == status, (got.returncode, got.stdout, got.stderr)
    return got.stdout + got.stderr


def test_computes_with_stripes():
    with secured() as (path, authority, agent):
        sidecar = sidecar_of(path, agent, "--tls-ca", authority.file)
        app = App("sum", FOR_EVER, 65536, socket=sidecar.socket)
        wait_for(lambda: stripes_of(sidecar.socket) == 4, 20, "the stripes are open")
        wait_for(lambda: [one["lanes"] for one in agent.sessions()] == [4], 5, "the agent says so")
        app.close_stdin()
        app.right(30)
        assert re.search(r"[1-9]\d* rounds right", app.text()), app.text()


def test_what_a_client_does_not_accept():
    for certificate, name, why in (({"alternative": "DNS:another"}, "", "IP address mismatch"),
                                   ({"expired": True}, "", "certificate has expired"),
                                   ({"alternative": "DNS:gpu.example"}, "gpu2.example", "hostname mismatch"),
                                   ({"usage": "clientAuth"}, "", "unsuitable certificate purpose")):
        with secured(**certificate) as (path, authority, agent):
            said = probe(agent, "--tls-ca", authority.file, *(["--tls-name", name] if name else []), status=1)
            assert why.lower() in said.lower() and authority.file in said, said
    with secured(alternative="DNS:gpu.example") as (path, authority, agent):
        other = Authority(path, "other")
        said = probe(agent, "--tls-ca", other.file, "--tls-name", "gpu.example", status=1)
        assert "unable to get local issuer" in said and other.file in said, said
        assert "ready: 1 GPU" in probe(agent, "--tls-ca", authority.file, "--tls-name", "gpu.example")


def test_files_that_do_not_fit_are_named():
    with folder() as path:
        authority = Authority(path)
        cert, key = authority.issue("agent")
        other = authority.issue("other")[1]
        nothing, nonsense = os.path.join(path, "nothing"), os.path.join(path, "nonsense")
        with open(nonsense, "w") as file:
            file.write("nonsense\n")
        for flags, why in ((agent_flags(nothing, key), f"tls.cert: {nothing}: No such file"),
                           (agent_flags(cert, nothing), f"tls.key: {nothing}: No such file"),
                           (agent_flags(nonsense, key), f"tls.cert: {nonsense}: "),
                           (agent_flags(cert, other), f"tls.key: {other}: key values mismatch"),
                           (agent_flags(cert, ""), "cert and key belong together"),
                           (agent_flags(cert, key, "--set", f"tls.client_ca={nothing}"), f"tls.client_ca: {nothing}: "),
                           (agent_flags(cert, key, "--set", "tls.require_client_cert=true"), "needs client_ca"),
                           (agent_flags(cert, key, "--set", f"tls.peer_ca={nothing}"), f"tls.peer_ca: tls.ca: {nothing}: "),
                           (agent_flags(cert, key, "--set", "tls.peer_name=a"), "peer_name needs peer_ca"),
                           (("--set", f"tls.peer_ca={authority.file}"), "peer_ca and peer_name need cert and key"),
                           (agent_flags(cert, key, "--address", "native://127.0.0.1"), "nothing is sent in the clear")):
            got = subprocess.run([AGENT, "--driver", "software", "--insecure", "--check-config", *flags],
                                 capture_output=True, text=True, timeout=20, env=environment())
            assert got.returncode == 1 and why in got.stderr, (flags, got)
        for flags, why in ((("--tls-ca", nothing), f"tls.ca: {nothing}: No such file"),
                           (("--tls-cert", cert, "--tls-key", key), "ca is needed"),
                           (("--tls-ca", authority.file, "--tls-cert", cert), "belong together")):
            said = probe("tls://127.0.0.1:1", *flags, status=2)
            assert why in said, said
        assert "nothing is sent in the clear" in probe("native://127.0.0.1:1", "--tls-ca", authority.file, status=2)
        assert "no CA is configured" in probe_listening("tls://")


def probe_listening(scheme, *flags):
    """What a probe says of a port where nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return probe(f"{scheme}127.0.0.1:{listener.getsockname()[1]}", *flags, status=1)


def test_never_in_the_clear():
    with secured() as (path, authority, agent):
        plain = agent.address.removeprefix("tls://")
        assert "this agent speaks TLS only" in probe(plain, status=3)
        wait_for(lambda: "does not speak TLS" in agent.log(), 5, "the agent says so")
        # An address without a scheme is a TLS one where a CA is known.
        assert "ready: 1 GPU" in probe(plain, "--tls-ca", authority.file)
        with open(os.path.join(path, "config.yaml"), "w") as file:
            file.write(f"agent: {plain}\ntls:\n  ca: {authority.file}\n")
        assert "ready: 1 GPU" in probe(plain, "--config", file.name)
        agent.stop()
    with folder() as path:
        authority, agent = Authority(path), Agent(path)
        said = probe(f"tls://{agent.address}", "--tls-ca", authority.file, status=1)
        assert "closed in the TLS handshake: does the other side speak TLS?" in said, said
        assert "reason=magic" in agent.log(), agent.log()


def handshakes(agent):
    found = re.findall(r'tls_handshakes_total{kind="(\w+)"} (\d+)', agent.http("/metrics"))
    return {kind: int(count) for kind, count in found}


def test_stripes_resume_by_a_ticket():
    with secured() as (path, authority, agent):
        sidecar = sidecar_of(path, agent, "--tls-ca", authority.file)
        for sessions in range(1, 3):
            app = App("sum", FOR_EVER, 65536, socket=sidecar.socket)
            wait_for(lambda: [one["lanes"] for one in agent.sessions()] == [4], 20, "the stripes are open")
            # Six connections a session; only the first of all had no ticket.
            assert handshakes(agent) == {"full": 1, "resumed": 6 * sessions - 1, "refused": 0}, handshakes(agent)
            app.close_stdin()
            app.right(30)
            wait_for(lambda: not agent.sessions(), 5, "the session is over")


def test_clients_bring_certificates():
    with folder() as path:
        authority, other = Authority(path), Authority(path, "other")
        agent = Agent(path, *agent_flags(*authority.issue("agent"), "--set", f"tls.client_ca={authority.file}",
                                         "--set", "tls.require_client_cert=true"), "--set", "token=")
        agent.address = f"tls://{agent.address}"
        for cert, why in ((None, "asks for a certificate (tls.cert, tls.key)"),
                          (other.issue("stranger", usage="clientAuth"), "does not know who signed"),
                          (authority.issue("old", usage="clientAuth", expired=True), "has expired"),
                          (authority.issue("server"), "does not accept our certificate")):
            said = probe(agent, "--tls-ca", authority.file,
                         *(["--tls-cert", cert[0], "--tls-key", cert[1]] if cert else []), status=1)
            assert why in said, said
            if not cert:  # one such line a second
                wait_for(lambda: "did not return a certificate" in agent.log(), 5, "the agent says so too")
        cert, key = authority.issue("client", usage="clientAuth")
        sidecar = sidecar_of(path, agent, "--tls-ca", authority.file, "--tls-cert", cert, "--tls-key", key)
        App("sum", 3, 65536, socket=sidecar.socket).right()
        # Nobody asked for a token: the certificate is enough, and the log does not call it insecure.
        assert "agent.insecure" not in agent.log() and "token.made" not in agent.log(), agent.log()


# --- clients of all kinds: Python's, and bytes ---

def context(ca, **changes):
    made = ssl.create_default_context(cafile=ca)
    for key, value in changes.items():
        setattr(made, key, value)
    return made


def say_hello(wire, token=b"", role=1):
    """The status of WELCOME, or None where there is no answer."""
    wire.sendall(HELLO.pack(SESSION_MAGIC, SESSION_VERSION, role, 0, b"", b"", 1, 1, b"test", b"pod", b"", token,
                            0, 0, 0))
    data = b""
    with contextlib.suppress(OSError):
        while len(data) < WELCOME.size:
            got = wire.recv(WELCOME.size - len(data))
            if not got:
                return None
            data += got
    return WELCOME.unpack(data)[2]


def plain_address(agent):
    host, port = agent.address.removeprefix("tls://").rsplit(":", 1)
    return host, int(port)


def test_bad_tokens():
    right = "right-token-of-40-characters-0123456789x"
    wrong = ["", " ", right[:-1], right + "x", right.upper(), right.swapcase(), " " + right, right + " ", right[1:],
             right[::-1], right + "\n", "\0" + right, "default", "token", "Bearer " + right, right * 2, "x" * 255,
             "\x7f", "%s%n", "../token", "' or 1=1", "null", "None", "0", "true", "*", right.replace("-", "_"),
             right[:20] + "\0" + right[21:], right.encode().hex(), "é" * 20]
    assert len(wrong) == 30
    with folder() as path:
        file = os.path.join(path, "token")
        with open(file, "w") as out:
            out.write(right + "\n")
        authority = Authority(path)
        agent = Agent(path, *agent_flags(*authority.issue("agent")), "--token-file", file)
        for token in [*wrong, right]:
            with socket.create_connection(plain_address(agent), 10) as raw, \
                    context(authority.file).wrap_socket(raw, server_hostname="127.0.0.1") as wire:
                assert say_hello(wire, token.encode(), 3) == (0 if token == right else NOT_PERMITTED), token
        assert agent.http("/metrics").count('refused_total{reason="token"} 30') == 1, agent.http("/metrics")


def client_hello(ca):
    """What a right client sends first, as a list of its parts: before, suites, between, extensions."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    wire = context(ca).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        wire.do_handshake()
    data = outgoing.read()
    at = 5 + 4 + 2 + 32
    at += 1 + data[at]
    suites = int.from_bytes(data[at:at + 2])
    head, suites, rest = data[9:at], data[at + 2:at + 2 + suites], data[at + 2 + suites:]
    compression, rest = rest[:1 + rest[0]], rest[1 + rest[0] + 2:]
    extensions = {}
    while rest:
        size = int.from_bytes(rest[2:4])
        extensions[int.from_bytes(rest[:2])] = rest[4:4 + size]
        rest = rest[4 + size:]
    return head, suites, compression, extensions


def packed(head, suites, compression, extensions, version=b"\3\1"):
    tail = b"".join(kind.to_bytes(2) + len(value).to_bytes(2) + value for kind, value in extensions.items())
    body = head + len(suites).to_bytes(2) + suites + compression + len(tail).to_bytes(2) + tail
    return b"\x16" + version + (len(body) + 4).to_bytes(2) + b"\1" + len(body).to_bytes(3) + body


VERSIONS, GROUPS, SIGNATURES, SHARES, MODES = 43, 10, 13, 51, 45


def downgrades(ca):
    """(what it is, bytes) of clients that want less than TLS 1.3 with our suite, or something else."""
    head, suites, compression, extensions = client_hello(ca)
    yield "right", packed(head, suites, compression, extensions)
    for version in (b"\3\3", b"\3\2", b"\3\1", b"\3\0", b"\2\0", b"\x7f\x1c", b"\x0a\x0a", b"\3\5"):
        yield f"only version {version}", packed(head, suites, compression,
                                                extensions | {VERSIONS: b"\2" + version})
        without = {kind: value for kind, value in extensions.items() if kind != VERSIONS}
        yield f"{version} as of old", packed(version + head[2:], suites, compression, without)
    for suite in (0x0000, 0x0001, 0x0005, 0x000a, 0x002f, 0x0035, 0x009c, 0x1302, 0x1303, 0x1304, 0x1305, 0xc009,
                  0xc013, 0xc02b, 0xc02f, 0xc030, 0xcca8, 0x00ff, 0x5600, 0x0a0a, 0xc0b4):
        yield f"only suite {suite:#x}", packed(head, suite.to_bytes(2), compression, extensions)
    yield "no suite", packed(head, b"", compression, extensions)
    yield "deflate", packed(head, suites, b"\1\1", extensions)
    for missing in (VERSIONS, GROUPS, SIGNATURES, SHARES):
        yield f"no extension {missing}", packed(head, suites, compression, {
            kind: value for kind, value in extensions.items() if kind != missing})
    yield "a group of nobody", packed(head, suites, compression, extensions | {
        GROUPS: b"\0\2\xfe\xfe", SHARES: b"\0\x05\xfe\xfe\0\1x"})
    yield "signatures with SHA-1", packed(head, suites, compression, extensions | {
        SIGNATURES: b"\0\4\2\1\2\3"})
    yield "SSLv2", b"\x80\x2e\1\0\2\0\x15\0\0\0\x10" + b"\1\0\x80" * 7 + b"x" * 16
    yield "plain HELLO", HELLO.pack(SESSION_MAGIC, SESSION_VERSION, 1, 0, b"", b"", 1, 1, b"", b"", b"", b"", 0, 0, 0)
    yield "STARTTLS", b"STARTTLS\r\n"
    yield "HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "data before the handshake", b"\x17\3\3\0\x20" + b"x" * 32
    yield "an alert first", b"\x15\3\3\0\2\1\0"
    yield "a record of 0 bytes", b"\x16\3\3\0\0" * 4
    yield "a record that is too long", b"\x16\3\3\xff\xff" + b"x" * 100


def test_never_negotiated_down():
    with secured() as (path, authority, agent):
        count, answers = 0, set()
        for what, data in downgrades(authority.file):
            with socket.create_connection(plain_address(agent), 10) as wire:
                wire.sendall(data)
                wire.settimeout(2)
                got = b""
                with contextlib.suppress(OSError):
                    got = wire.recv(4096)
            if what == "right":
                assert got[:1] == b"\x16", (what, got)
                continue
            count += 1
            hello_back = got[:1] == b"\x16" and got[5:6] == b"\2"
            assert not hello_back, (what, got)
            if got[:8] == SESSION_MAGIC.to_bytes(8, "little"):
                assert WELCOME.unpack(got)[2] == NOT_PERMITTED, (what, got)
                answers.add("plain refusal")
            else:
                assert got[:1] in (b"\x15", b""), (what, got)
                answers.add("alert" if got else "end")
        assert count >= 50 and answers == {"plain refusal", "alert", "end"}, (count, answers)
        for changes in ({"maximum_version": ssl.TLSVersion.TLSv1_2}, {"maximum_version": ssl.TLSVersion.TLSv1_1,
                                                                      "minimum_version": ssl.TLSVersion.TLSv1}):
            with socket.create_connection(plain_address(agent), 10) as raw, contextlib.suppress(ssl.SSLError, OSError):
                context(authority.file, **changes).wrap_socket(raw, server_hostname="127.0.0.1")
                raise AssertionError(f"a handshake with {changes}")
        assert "ready: 1 GPU" in probe(agent, "--tls-ca", authority.file)
        assert handshakes(agent)["full"] == 1, handshakes(agent)


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1])


def test_half_handshakes_lock_nobody_out():
    """Connections that begin a handshake and stop, from one address and more: the next client gets in,
    the front's memory stays within its slots, and they are gone in time."""
    with secured() as (path, authority, agent):
        front, (_, port) = agent.front(), plain_address(agent)
        assert "ready: 1 GPU" in probe(agent, "--tls-ca", authority.file)
        before, held = resident(front), []
        head, suites, compression, extensions = client_hello(authority.file)
        right = packed(head, suites, compression, extensions)
        for number in range(600):
            raw = socket.socket()
            raw.bind((f"127.0.{number % 40}.{1 + number % 7}", 0))
            raw.connect(("127.0.0.1", port))
            raw.sendall(right if number % 3 else right[:number % len(right)])
            held.append(raw)
        began = now()
        assert "ready: 1 GPU" in probe(agent, "--tls-ca", authority.file)
        soon(began, 2, "a client waits for those who hold")
        assert resident(front) - before < 40 << 10, (before, resident(front))
        for raw in held[-20:]:  # drip: the deadline is for the whole of it
            raw.sendall(b"\x16")
        wait_for(lambda: "vcuda_agent_handshakes_half_open 0" in agent.http("/metrics"), 8, "all of them are gone")
        for raw in held:
            raw.close()


def test_garbage():
    with secured() as (path, authority, agent):
        draw = random.Random(1)
        right = packed(*client_hello(authority.file))
        for number in range(400):
            data = bytearray(right if number % 2 else draw.randbytes(draw.randrange(1, 3000)))
            if number % 2:
                for _ in range(draw.randrange(1, 6)):
                    data[draw.randrange(len(data))] = draw.randrange(256)
            elif number % 4:
                data[:3] = b"\x16\3\1"
            with socket.create_connection(plain_address(agent), 10) as wire, contextlib.suppress(OSError):
                wire.sendall(data)
                wire.shutdown(socket.SHUT_WR)
                wire.settimeout(1)
                wire.recv(1)
        assert "ready: 1 GPU" in probe(agent, "--tls-ca", authority.file)
        assert handshakes(agent)["full"] == 1 and "front.died" not in agent.log(), agent.log()


class Changing(Relay):
    """Changes one bit of what the client sends, behind `after` bytes of a connection."""
    after = 0

    def pump(self, source, sink, counts, number):
        seen = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                if counts is self.bytes and seen <= self.after < seen + len(data):
                    data = bytearray(data)
                    data[self.after - seen] ^= 4
                seen += len(data)
                sink.sendall(data)
        self.cut((source, sink))


def test_a_changed_bit_ends_the_connection():
    for after in (5_000_000, 3_000):
        with secured() as (path, authority, agent):
            relay = Changing(agent.address.removeprefix("tls://"))
            relay.after = after
            sidecar = sidecar_of(path, f"tls://{relay.address}", "--tls-ca", authority.file, "--grace", "0")
            app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
            got = app.line(r"error (\d+) at|gave (\d+) ", 20)
            assert int(got[1] or got[2]) == LOST, got[0]
            assert "wrong" not in app.text(), app.text()
            relay.close()


def replace(pair, wanted):
    """New files in the place of the old, as a mounted Secret changes: whole, by rename."""
    for new, old in zip(pair, wanted):
        with open(new) as source, open(old + ".new", "w") as sink:
            sink.write(source.read())
        os.rename(old + ".new", old)


def test_certificates_are_renewed_without_a_restart():
    with secured() as (path, authority, agent):
        ca = os.path.join(path, "trusted.pem")
        replace([authority.file], [ca])
        sidecar = sidecar_of(path, agent, "--tls-ca", ca)
        running = App("sum", FOR_EVER, 64, socket=sidecar.socket)
        agent.worker(running)
        second = Authority(path, "second")
        cert, key = (os.path.join(path, name) for name in ("agent.pem", "agent.key"))
        time.sleep(1.01)  # files are looked at once a second
        replace(second.issue("renewed"), (cert, key))
        assert "unable to get local issuer" in probe(agent, "--tls-ca", authority.file, status=1)
        assert "ready: 1 GPU" in probe(agent, "--tls-ca", second.file)
        assert "read again" in agent.log(), agent.log()
        # The client's file is read again as well, and its tickets were the former CA's.
        replace([second.file], [ca])
        time.sleep(1.01)
        App("sum", 3, 64, socket=sidecar.socket).right()
        # What does not fit is said, and what was there stays.
        with open(key, "w") as file:
            file.write("nonsense\n")
        time.sleep(1.01)
        assert "ready: 1 GPU" in probe(agent, "--tls-ca", second.file)
        wait_for(lambda: re.search(rf"tls\.key: {re.escape(key)}: .*stay in use", agent.log()), 5, "the log says so")
        running.close_stdin()
        running.right()


def test_commands_take_it_from_the_environment():
    with secured() as (path, authority, agent):
        program = os.path.join(os.path.dirname(BIN), "stack", "app")
        for address in (agent.address, agent.address.removeprefix("tls://")):
            for words in (("run", "--agent", address, "--", program, "sum", "3", "64"),
                          ("doctor", "--agent", address)):
                got = subprocess.run([os.path.join(BIN, "vcuda"), *words], capture_output=True, text=True, timeout=60,
                                     env=environment({"VCUDA_CA": authority.file}))
                assert got.returncode == 0, (words, got.stdout, got.stderr)
        assert handshakes(agent)["full"] >= 4 and "tls.refused" not in agent.log(), agent.log()
