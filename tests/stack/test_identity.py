# SPDX-License-Identifier: Apache-2.0
"""Tokens that a cluster signed for a pod's ServiceAccount: who is let in by them, as whom, and
who is not.  The cluster is this file, with the openssl command for its keys."""
import base64
import calendar
import contextlib
import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import time

from peer import HELLO, SESSION_MAGIC, WELCOME
from stack import NOT_PERMITTED, Agent, App, environment, folder, wait_for
from test_stripes import FOR_EVER
from test_tls import CLIENT, Authority, agent_flags, context, openssl, plain_address, say_hello, sidecar_of

ISSUER = "https://kubernetes.default.svc.cluster.local"
VERSION_CREDENTIAL, PROBE = 5, 3
UID = "0b5d2b3c-6f1e-4c57-9a53-6b1a3f1c9d10"


def b64(data):
    return base64.urlsafe_b64encode(data if isinstance(data, bytes) else data.encode()).rstrip(b"=").decode()


def number(value):
    return b64(value.to_bytes((value.bit_length() + 7) // 8))


class Key:
    """RS256 or ES256, in a folder."""

    def __init__(self, path, name, kind="EC"):
        self.name, self.kind, self.alg = name, kind, {"EC": "ES256", "RSA": "RS256"}[kind]
        self.private = os.path.join(path, name + ".key")
        self.public = os.path.join(path, name + ".pub")
        more = ("ec_paramgen_curve:P-256",) if kind == "EC" else ("rsa_keygen_bits:2048",)
        openssl("genpkey", "-algorithm", kind, "-pkeyopt", *more, "-out", self.private)
        openssl("pkey", "-in", self.private, "-pubout", "-out", self.public)

    def jwk(self):
        der = subprocess.run(["openssl", "pkey", "-pubin", "-in", self.public, "-outform", "DER"],
                             capture_output=True, check=True, timeout=30).stdout
        if self.kind == "EC":
            return {"kty": "EC", "crv": "P-256", "kid": self.name, "use": "sig", "alg": "ES256",
                    "x": b64(der[-64:-32]), "y": b64(der[-32:])}
        text = subprocess.run(["openssl", "rsa", "-pubin", "-in", self.public, "-noout", "-modulus"],
                              capture_output=True, check=True, text=True, timeout=30).stdout
        return {"kty": "RSA", "kid": self.name, "use": "sig", "alg": "RS256", "e": "AQAB",
                "n": number(int(text.strip().split("=")[1], 16))}

    def sign(self, text):
        raw = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.private], input=text.encode(),
                             capture_output=True, check=True, timeout=30).stdout
        if self.kind == "RSA":
            return raw
        at, halves = 2, b""
        for _ in range(2):  # DER: two INTEGERs
            size = raw[at + 1]
            halves += int.from_bytes(raw[at + 2:at + 2 + size]).to_bytes(32)
            at += 2 + size
        return halves

    def token(self, claims, **header):
        """CLAIMS: a dict, or the text itself."""
        header = {"alg": self.alg, "kid": self.name} | header
        text = claims if isinstance(claims, (str, bytes)) else json.dumps(claims)
        signed = f"{b64(json.dumps(header))}.{b64(text)}"
        return f"{signed}.{b64(self.sign(signed))}"


def claims(seconds=3600, namespace="team-a", account="trainer", pod="job-0", uid=UID, **more):
    now = int(time.time())
    return {"aud": ["vcuda-agent"], "exp": now + seconds, "iat": now, "nbf": now, "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "kubernetes.io": {"namespace": namespace, "pod": {"name": pod, "uid": uid},
                              "serviceaccount": {"name": account, "uid": UID[::-1]}}} | more


def put(path, text):
    """As the kubelet does: whole, or not at all."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


class Cluster:
    """Keys, a JWKS of some of them, and an agent that believes it."""

    def __init__(self, path, *flags, tls=True):
        self.path = path
        self.key, self.rsa = Key(path, "key-1"), Key(path, "key-2", "RSA")
        self.jwks = os.path.join(path, "jwks.json")
        self.publish(self.key, self.rsa)
        self.ca = Authority(path) if tls else None
        secure = agent_flags(*self.ca.issue("agent")) if tls else ()
        self.agent = Agent(path, *secure, "--set", f"service_account.keys={self.jwks}",
                           *(flags or ("--set", "token=")))
        if tls:
            self.agent.address = f"tls://{self.agent.address}"

    def publish(self, *keys):
        put(self.jwks, json.dumps({"keys": [key.jwk() for key in keys]}))

    def file(self, token, name="token"):
        path = os.path.join(self.path, name)
        put(path, token + "\n")
        return path

    def ask(self, token, uid="", role=PROBE, length=None):
        """What an agent answers to a PROBE with TOKEN: (status, text), or None."""
        data = token if isinstance(token, bytes) else token.encode()
        hello = HELLO.pack(SESSION_MAGIC, VERSION_CREDENTIAL, role, 0, b"", b"", 1, 1, b"test", b"pod",
                           uid.encode(), b"", 0, 0, 0)
        size = (len(data) if length is None else length).to_bytes(4, "little") + bytes(4)
        with socket.create_connection(plain_address(self.agent), 10) as raw:
            with context(self.ca.file).wrap_socket(raw, server_hostname="127.0.0.1") if self.ca else raw as wire:
                wire.sendall(hello + size + data)
                got = b""
                with contextlib.suppress(OSError):
                    while len(got) < WELCOME.size and (more := wire.recv(WELCOME.size - len(got))):
                        got += more
        if len(got) < WELCOME.size:
            return None
        fields = WELCOME.unpack(got)
        return fields[2], fields[-1].split(b"\0")[0].decode()


@contextlib.contextmanager
def cluster(*flags, **more):
    with folder() as path:
        yield Cluster(path, *flags, **more)


def test_a_signed_token_is_its_namespace():
    with cluster() as c:
        for key in (c.key, c.rsa):
            file = c.file(key.token(claims()))
            sidecar = sidecar_of(c.path, c.agent, "--tls-ca", c.ca.file, "--token-file", file, name=key.name)
            app = App("sum", FOR_EVER, 65536, socket=sidecar.socket)
            session = wait_for(c.agent.sessions, 20, "a session")[0]
            # What it says of itself gives way to what was signed.
            assert (session["tenant"], session["pod"]) == ("team-a", "team-a/job-0"), session
            app.close_stdin()
            app.right(30)
            sidecar.stop()
            wait_for(lambda: not c.agent.sessions(), 5, "the session is over")
        assert "token.made" not in c.agent.log() and "agent.insecure" not in c.agent.log(), c.agent.log()


def test_a_tenant_can_be_an_account():
    with cluster("--set", "token=", "--set", "service_account.tenant=service_account") as c:
        file = c.file(c.key.token(claims()))
        sidecar = sidecar_of(c.path, c.agent, "--tls-ca", c.ca.file, "--token-file", file)
        app = App("sum", FOR_EVER, 65536, socket=sidecar.socket)
        assert wait_for(c.agent.sessions, 20, "a session")[0]["tenant"] == "team-a/trainer"
        app.close_stdin()
        app.right(30)


def bad_tokens(c, stranger):
    """(what it is, token): 30 and more of them."""
    key, right = c.key, claims()
    good = key.token(right)
    head, body, signature = good.split(".")
    text = json.dumps(right)
    with open(c.rsa.public, "rb") as file:
        public = file.read()
    hs256 = f"{b64(json.dumps({'alg': 'HS256', 'kid': c.rsa.name}))}.{body}"

    def without(*names, inside=None):
        copy = json.loads(text)
        at = copy["kubernetes.io"] if inside else copy
        for name in names:
            del at[name]
        return copy

    flipped = bytearray(base64.urlsafe_b64decode(signature + "=="))
    flipped[5] ^= 1
    yield "a bit of the signature", f"{head}.{body}.{b64(bytes(flipped))}"
    yield "a signature of zeros", f"{head}.{body}.{b64(bytes(64))}"
    yield "no signature", f"{head}.{body}."
    yield "two parts", f"{head}.{body}"
    yield "four parts", f"{good}.{signature}"
    yield "alg none", f"{b64(json.dumps({'alg': 'none', 'kid': key.name}))}.{body}."
    yield "alg none, signed", f"{b64(json.dumps({'alg': 'none', 'kid': key.name}))}.{body}.{signature}"
    yield "HS256 by the public key", f"{hs256}.{b64(hmac.digest(public, hs256.encode(), hashlib.sha256))}"
    yield "RS256 of an EC key", key.token(right, alg="RS256")
    yield "ES256 of an RSA key", c.rsa.token(right, alg="ES256")
    yield "alg in small letters", key.token(right, alg="es256")
    yield "another key", stranger.token(right)
    yield "another key under our key's name", stranger.token(right, kid=key.name)
    yield "its own key beside it", stranger.token(right, jwk=stranger.jwk(), kid="x")
    yield "no kid", key.token(right, kid=None)
    yield "a kid that is a path", key.token(right, kid="../../key-1")
    yield "something critical", key.token(right, crit=["exp"])
    yield "another issuer", key.token(right | {"iss": ISSUER + "/"})
    yield "no issuer", key.token(without("iss"))
    yield "another audience", key.token(right | {"aud": ["https://kubernetes.default.svc"]})
    yield "no audience", key.token(without("aud"))
    yield "an audience of numbers", key.token(right | {"aud": ["vcuda-agent", 1]})
    yield "expired", key.token(right | {"exp": int(time.time()) - 60})
    yield "no exp", key.token(without("exp"))
    yield "exp as text", key.token(right | {"exp": str(right["exp"])})
    yield "exp beyond all time", key.token(text.replace(str(right["exp"]), "1e400", 1))
    yield "not valid yet", key.token(right | {"nbf": int(time.time()) + 600})
    yield "another's sub", key.token(right | {"sub": "system:serviceaccount:team-b:trainer"})
    yield "bound to no pod", key.token(without("pod", inside=True))
    yield "no namespace", key.token(without("namespace", inside=True))
    yield "no kubernetes.io", key.token(without("kubernetes.io"))
    yield "a namespace that climbs", key.token(claims(namespace="../team-a"))
    yield "a namespace with a NUL", key.token(text.replace("team-a", "team-a\\u0000b"))
    yield "claims twice", key.token(text[:-1] + f', "exp": {right["exp"] + 10**6}}}')
    yield "claims twice, one escaped", key.token(text[:-1] + f', "e\\u0078p": {right["exp"] + 10**6}}}')
    yield "something behind the claims", key.token(text + "{}")
    yield "claims nested deep", key.token(text[:-1] + ', "x": ' + "[" * 500 + "]" * 500 + "}")
    yield "claims that are no UTF-8", key.token(text.encode()[:-1] + b', "x": "\xc0\xaf"}')
    yield "claims that are a list", key.token("[" + text + "]")
    yield "claims cut short", key.token(text[:-1])
    yield "base64 with its end", f"{head}.{body}.{signature}=="
    yield "base64 of the old kind", f"{head}.{body}.+{signature[1:]}"
    yield "bits behind the end", f"{head}.{body}.{signature[:-1]}{'B' if signature[-1] != 'B' else 'C'}"
    yield "a line behind it", good + "\n"
    yield "a space before it", " " + good
    yield "Bearer", "Bearer " + good
    yield "huge", key.token(text[:-1] + ', "x": "' + "x" * 2000 + '"}') + "x" * 1000
    yield "only dots", ".."
    yield "nonsense", "x" * 400


def test_bad_signed_tokens():
    with cluster() as c:
        assert c.ask(c.key.token(claims()))[0] == 0
        assert c.ask(c.rsa.token(claims()), UID)[0] == 0
        answers, count = set(), 0
        for what, token in bad_tokens(c, Key(c.path, "stranger")):
            answer = c.ask(token)
            assert answer and answer[0] == NOT_PERMITTED, (what, answer)
            answers.add(answer)
            count += 1
        for what, answer in (("another pod's", c.ask(c.key.token(claims()), UID.replace("0", "1"))),
                             ("longer than it may be", c.ask("x" * 5000)),
                             ("of no length", c.ask("", length=0)),
                             ("of a false length", c.ask(c.key.token(claims()), length=2**32 - 1))):
            assert answer and answer[0] == NOT_PERMITTED, (what, answer)
            answers.add(answer)
            count += 1
        # Nobody learns from the answer how near it was.
        assert count >= 50 and len(answers) == 1, (count, answers)
        assert f'refused_total{{reason="token"}} {count}' in c.agent.http("/metrics"), c.agent.http("/metrics")
        assert not c.agent.sessions()


def test_keys_change_without_a_restart():
    with cluster() as c:
        new = Key(c.path, "key-3")
        assert c.ask(new.token(claims()))[0] == NOT_PERMITTED
        c.publish(c.key, new)
        wait_for(lambda: c.ask(new.token(claims()))[0] == 0, 5, "the new key is known", 0.1)
        assert c.ask(c.key.token(claims()))[0] == 0
        assert c.ask(c.rsa.token(claims()))[0] == NOT_PERMITTED
        put(c.jwks, '{"keys": [')
        wait_for(lambda: c.ask(new.token(claims()))[0] == 0 and "keys of before stay good" in c.agent.log(), 5,
                 "a broken file changes nothing", 0.1)


def test_never_in_the_clear_but_where_that_is_said():
    with cluster(tls=False) as c:
        good = c.key.token(claims())
        assert c.ask(good)[0] == NOT_PERMITTED and "in the clear" in c.agent.log(), c.agent.log()
        file = c.file(good)

        def probe(*flags):
            return subprocess.run([CLIENT, "probe", "--agent", c.agent.address, "--token-file", file, *flags],
                                  capture_output=True, text=True, timeout=20, env=environment())

        # The client does not even send it.
        assert "not sent in the clear" in probe().stderr
        assert "set it on the client's side" in probe("--insecure", "true").stderr
        c.agent.stop()
    with cluster("--insecure", tls=False) as c:
        assert c.ask(c.key.token(claims()))[0] == 0
        # Who brings one must bring a good one.
        assert c.ask(c.key.token(claims(seconds=-60)))[0] == NOT_PERMITTED


def test_a_session_ends_with_its_token_unless_there_is_a_new_one():
    with cluster("--set", "token=", "--set", "expiry_grace=0s") as c:
        def begin(name):
            file = c.file(c.key.token(claims(seconds=1)), name)  # and 10 s for clocks
            sidecar = sidecar_of(c.path, c.agent, "--tls-ca", c.ca.file, "--token-file", file, name="sidecar-" + name)
            app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
            wait_for(lambda: any(s["pid"] == app.pid and s["expires"] for s in c.agent.sessions()), 20, "a session")
            return app, file

        kept, file = begin("kept")
        left, _ = begin("left")
        c.file(c.key.token(claims()), os.path.basename(file))
        wait_for(lambda: "session.renewed" in c.agent.log(), 10, "the sidecar brings the new one")
        left.line(f"gave {NOT_PERMITTED}", 25)
        assert "session.expired" in c.agent.log() and left.wait() != 0, c.agent.log()
        time.sleep(1)
        kept.close_stdin()
        kept.right(30)
        metrics = c.agent.http("/metrics")
        assert "sessions_renewed_total 1" in metrics and "sessions_expired_total 1" in metrics, metrics


# --- by certificate ---

SPIFFE = "URI:spiffe://cluster.local/ns/{}/sa/trainer"


@contextlib.contextmanager
def certified(*flags):
    """(path, authority, agent) of an agent that asks for certificates."""
    with folder() as path:
        ca = Authority(path)
        agent = Agent(path, *agent_flags(*ca.issue("agent"), "--set", f"tls.client_ca={ca.file}",
                                         "--set", "tls.require_client_cert=true"), *(flags or ("--set", "token=")))
        agent.address = f"tls://{agent.address}"
        yield path, ca, agent


def own(ca, name, alternative):
    cert, key = ca.issue(name, alternative=alternative, usage="clientAuth")
    return "--tls-ca", ca.file, "--tls-cert", cert, "--tls-key", key


def asked(agent, *flags):
    got = subprocess.run([CLIENT, "probe", "--agent", agent.address, *flags], capture_output=True, text=True,
                         timeout=20, env=environment())
    return got.returncode, got.stdout + got.stderr


def test_a_certificate_is_a_tenant():
    with certified() as (path, ca, agent):
        sidecar = sidecar_of(path, agent, *own(ca, "one", SPIFFE.format("team-a")))
        app = App("sum", FOR_EVER, 65536, socket=sidecar.socket)
        session = wait_for(agent.sessions, 20, "a session")[0]
        assert session["tenant"] == "team-a" and session["expires"] > time.time(), session
        app.close_stdin()
        app.right(30)
        for alternative in (SPIFFE.format("team-a") + "," + SPIFFE.format("team-b"), "URI:https://team-a.example",
                            SPIFFE.format("team-a") + "/x", SPIFFE.format(".."), SPIFFE.format("Team")):
            status, said = asked(agent, *own(ca, "bad", alternative))
            assert status == 3 and "set it on the client's side" in said, (alternative, said)
        assert "is not one SPIFFE identity" in agent.log(), agent.log()


def test_certificate_and_token_name_one_tenant():
    with folder() as there:
        tokens = os.path.join(there, "tokens")
        put(tokens, "token-a team-a\ntoken-b team-b\n")
        with certified("--token-file", tokens) as (path, ca, agent):
            first, named = own(ca, "one", SPIFFE.format("team-a")), own(ca, "two", "DNS:team-b")
            other = own(ca, "three", "DNS:nobodys-name")
            for flags, token, status in ((first, "token-a", 0), (first, "token-b", 3), (named, "token-b", 0),
                                         (named, "token-a", 3), (other, "token-a", 0), (other, "token-b", 0),
                                         (first, "", 3)):
                got, said = asked(agent, *flags, *(("--token", token) if token else ()))
                assert got == status, (flags, token, said)
            assert "name different tenants" in agent.log(), agent.log()
    with cluster() as c:
        agent = Agent(os.path.join(c.path, "2"), *agent_flags(*c.ca.issue("agent2")), "--set", "token=", "--set",
                      f"tls.client_ca={c.ca.file}", "--set", f"service_account.keys={c.jwks}")
        agent.address = f"tls://{agent.address}"
        file = c.file(c.key.token(claims()))
        for namespace, status in (("team-a", 0), ("team-b", 3)):
            got, said = asked(agent, *own(c.ca, "n-" + namespace, SPIFFE.format(namespace)), "--token-file", file)
            assert got == status, (namespace, said)
            # What `vcuda doctor` shows.
            assert status or re.search(r"ready: 1 GPU, .*; as team-a until 20\d\d-\d\d-\d\dT", said), said


def test_a_ticket_does_not_outlive_the_certificate():
    with certified() as (path, ca, agent):
        began = time.time()
        ca.issue("first", alternative=SPIFFE.format("team-a"), usage="clientAuth")
        now = time.time()  # on a busy machine making a certificate takes seconds of its life
        end = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(now + 5 + 5 * (now - began)))
        cert, key = ca.issue("short", alternative=SPIFFE.format("team-a"), usage="clientAuth", end=end)
        made = context(ca.file)
        made.load_cert_chain(cert, key)
        session = None
        for status in (0, None):
            with socket.create_connection(plain_address(agent), 10) as raw, \
                    made.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as wire:
                assert wire.session_reused == bool(session)
                assert say_hello(wire, b"", PROBE) == status
                session = wire.session
            wait_for(lambda: status is None or time.time() > calendar.timegm(time.strptime(end, "%Y%m%d%H%M%SZ")), 60,
                     "it has expired", 0.1)
        assert "the client's certificate has expired" in agent.log(), agent.log()


def test_a_bad_configuration_is_named():
    with folder() as path:
        empty = os.path.join(path, "jwks")
        for text, why in (("", "no JSON Web Key Set"), ('{"keys": []}', "no key of RSA"),
                          ('{"keys": [{"kty": "oct", "kid": "a", "k": "AAAA"}]}', "no key of RSA")):
            put(empty, text)
            got = subprocess.run([os.path.join(os.path.dirname(CLIENT), "gpu-agent"), "--driver", "software",
                                  "--check-config", "--set", f"service_account.keys={empty}"],
                                 capture_output=True, text=True, timeout=20, env=environment())
            assert got.returncode == 1 and why in got.stderr and empty in got.stderr, (text, got)
