# SPDX-License-Identifier: Apache-2.0
"""tls://HOST:PORT: TLS 1.3 on every connection, and nothing else where it is configured.  The other
side is Python's ssl (OpenSSL), which is told to be wrong in each way."""
import contextlib
import os
import re
import socket
import ssl
import subprocess


from stack import BIN, Agent, App, Sidecar, environment, folder, wait_for
from test_stripes import FOR_EVER, stripes_of

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

    def issue(self, name, alternative="IP:127.0.0.1", usage="serverAuth", expired=False):
        cert, key, asked = (os.path.join(self.path, f"{name}.{end}") for end in ("pem", "key", "csr"))
        extra, index = os.path.join(self.path, f"{name}.ext"), os.path.join(self.path, "index")
        with open(extra, "w") as file:
            file.write(f"[e]\nsubjectAltName={alternative}\nextendedKeyUsage={usage}\n[ca]\ndefault_ca=c\n"
                       f"[c]\ndatabase={index}\nnew_certs_dir={self.path}\ndefault_md=sha256\npolicy=p\n"
                       "rand_serial=yes\nunique_subject=no\n[p]\ncommonName=supplied\n")
        open(index, "a").close()
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", key, "-out", asked)
        dates = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z") if expired else ("-days", "1")
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
        wait_for(lambda: stripes_of(sidecar.socket) == 3, 20, "the stripes are open")
        wait_for(lambda: [one["lanes"] for one in agent.sessions()] == [3], 5, "the agent says so")
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
            wait_for(lambda: [one["lanes"] for one in agent.sessions()] == [3], 20, "the stripes are open")
            # Five connections a session; only the first of all had no ticket.
            assert handshakes(agent) == {"full": 1, "resumed": 5 * sessions - 1, "refused": 0}, handshakes(agent)
            app.close_stdin()
            app.right(30)
            wait_for(lambda: not agent.sessions(), 5, "the session is over")
