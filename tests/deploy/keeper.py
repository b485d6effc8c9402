#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart's Job that keeps certificate and keys, run against an API server of our own that grants the rights of
the chart's roles and no others; and what the chart then gives to agents and pods, run as processes that speak TLS."""
import base64
import contextlib
import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import yaml

import chart

sys.path.append(str(chart.ROOT / "tests/stack"))
sys.path.append(str(chart.ROOT / "tests/peer"))
import stack  # noqa: E402
import test_identity  # noqa: E402

TOKEN = "the.account's.token"
VALUES = ["tls.enabled=true", "tls.namespaces={team-a}", "auth.serviceAccount.enabled=true", "agent.driver=software"]
# What injection adds to a pod, as the chart has it before a policy is made of it.
PIECES = {"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pieces"},
                            "data": {"pieces": '{{ include "vcuda.inject.pieces" . | b64enc }}'}}]}
NAME = "vcuda-agent.vcuda.svc"
AGENT = os.path.join(stack.BIN, "gpu-agent")


def openssl(*words, text=None):
    return subprocess.run(["openssl", *map(str, words)], input=text, capture_output=True, text=True, check=True, timeout=60).stdout


class Cluster:
    """Objects by path, and the rights that Role and RoleBinding, as rendered, give to the Job's ServiceAccount."""

    def __init__(self, things, folder, host="127.0.0.1"):
        self.objects, self.asked, self.version, self.jwks, self.conflict = {}, [], 1, "{}", False
        for thing in things:
            kind, meta = thing["kind"], thing["metadata"]
            if kind in ("ConfigMap", "Secret"):
                self.objects[f"/api/v1/namespaces/{meta.get('namespace', 'vcuda')}/{kind.lower()}s/{meta['name']}"] = {
                    "kind": kind, "metadata": dict(meta, resourceVersion="1"), "data": thing.get("data", {})}
        self.rights = {(thing["metadata"]["namespace"], resource, name, verb)
                       for thing in things if thing["kind"] == "Role" for rule in thing["rules"]
                       for resource in rule["resources"] for name in rule["resourceNames"] for verb in rule["verbs"]}
        self.folder = pathlib.Path(folder)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=kube",
                "-addext", f"subjectAltName=IP:{host}", "-keyout", self.folder / "server.key", "-out", self.folder / "ca.crt")
        (self.folder / "token").write_text(TOKEN + "\n")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "ca.crt", self.folder / "server.key")
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                cluster.answer(self, "get")

            def do_PATCH(self):
                cluster.answer(self, "patch")

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request, verb):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        status, text = self.decide(request, verb, body)
        self.asked.append((verb, request.path, status))
        request.send_response(status)
        request.end_headers()
        request.wfile.write((text if isinstance(text, str) else json.dumps(text)).encode())
        with contextlib.suppress(OSError, ssl.SSLError):
            request.connection.unwrap()

    def decide(self, request, verb, body):
        parts = request.path.split("/")
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return 401, {"message": "Unauthorized"}
        accepted = [entry.strip() for entry in request.headers.get("Accept", "").split(",")]
        wanted = "application/jwk-set+json" if request.path == "/openid/v1/jwks" else "application/json"
        if wanted not in accepted:  # as Kubernetes' API server
            return 406, {"message": f"Not Acceptable\n\nAvailable representations: {wanted}"}
        if request.path == "/openid/v1/jwks" and verb == "get":
            return 200, self.jwks
        if len(parts) != 7 or (parts[4], parts[5], parts[6], verb) not in self.rights:
            return 403, {"message": f'User "keeper" cannot {verb} {request.path}'}
        if request.path not in self.objects:
            return 404, {"message": "not found"}
        thing = self.objects[request.path]
        if verb == "patch":
            assert request.headers["Content-Type"] == "application/merge-patch+json"
            patch = json.loads(body)
            if self.conflict or patch["metadata"]["resourceVersion"] != thing["metadata"]["resourceVersion"]:
                return 409, {"message": "the object has been modified"}
            self.version += 1
            thing["metadata"]["resourceVersion"] = str(self.version)
            for key, value in patch["data"].items():
                thing["data"].pop(key, None)
                if value is not None:
                    thing["data"][key] = value
        return 200, thing

    def run(self, args):
        """The Job: (status, stderr, what it patched)."""
        before = len(self.asked)
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.server.server_address[1])}
        done = subprocess.run([AGENT, args[0], "--account", str(self.folder), *args[1:]], env=env, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr, [path for verb, path, status in self.asked[before:] if (verb, status) == ("patch", 200)]

    def data(self, kind, name, space="vcuda"):
        data = self.objects[f"/api/v1/namespaces/{space}/{kind}s/{name}"]["data"]
        return {key: base64.b64decode(value).decode() for key, value in data.items()} if kind == "secret" else data

    def put(self, data):
        self.objects["/api/v1/namespaces/vcuda/secrets/vcuda-tls"]["data"] = {
            key: base64.b64encode(value.encode()).decode() for key, value in data.items()}


def rendered():
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(PIECES, file)
        file.flush()
        done = chart.template(VALUES, [chart.MAP], "-f", file.name)
    assert not done.returncode, done.stderr
    return [thing for thing in yaml.safe_load_all(done.stdout) if thing]


def arguments(things):
    job, cron = (next(thing for thing in things if thing["kind"] == kind and "keeper" in thing["metadata"]["name"])
                 for kind in ("Job", "CronJob"))
    assert job["spec"] == cron["spec"]["jobTemplate"]["spec"]
    return job["spec"]["template"]["spec"]["containers"][0]["args"]


def verified(folder, bundle, cert, key):
    """Whether clients that believe in the bundle take the certificate; and that the key is the certificate's."""
    for name, text in (("bundle", bundle), ("cert", cert), ("key", key)):
        (pathlib.Path(folder) / name).write_text(text)
    done = subprocess.run(["openssl", "verify", "-CAfile", f"{folder}/bundle", "-purpose", "sslserver", "-verify_hostname", NAME,
                           f"{folder}/cert"], capture_output=True, text=True, timeout=60)
    pair = openssl("x509", "-in", f"{folder}/cert", "-noout", "-pubkey") == openssl("pkey", "-in", f"{folder}/key", "-pubout")
    return not done.returncode and pair


def days_left(pem):
    end = openssl("x509", "-noout", "-enddate", text=pem).strip().split("=")[1]
    return (ssl.cert_time_to_seconds(end) - time.time()) / 86400


def signed(folder, days, ca_days):
    """A CA and a certificate by it, with so many days to live, as the Secret has them."""
    f = pathlib.Path(folder)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-days", ca_days, "-subj", "/CN=their CA", "-keyout", f / "a.key", "-out", f / "a.crt")
    openssl("req", *key, "-subj", "/CN=x", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", f / "b.key", "-out", f / "b.csr")
    openssl("x509", "-req", "-in", f / "b.csr", "-CA", f / "a.crt", "-CAkey", f / "a.key", "-CAcreateserial", "-days", days,
            "-copy_extensions", "copy", "-out", f / "b.crt")
    return {"ca.crt": (f / "a.crt").read_text(), "ca.key": (f / "a.key").read_text(),
            "tls.crt": (f / "b.crt").read_text(), "tls.key": (f / "b.key").read_text()}


def check_first(checks, cluster, args, folder):
    status, text, wrote = cluster.run(args)
    checks.check("the Job makes all that there is to make", status and text)
    secret, bundle = cluster.data("secret", "vcuda-tls"), cluster.data("configmap", "vcuda-ca")["ca.crt"]
    checks.check("the same CA for each namespace", cluster.data("configmap", "vcuda-ca", "team-a")["ca.crt"] != bundle and "differs")
    checks.check("a certificate that pods take", not verified(folder, bundle, secret["tls.crt"], secret["tls.key"]) and "is none")
    checks.check("for 90 days", not 88 < days_left(secret["tls.crt"]) <= 90 and days_left(secret["tls.crt"]))
    checks.check("and the CA for ten years", not 3640 < days_left(secret["ca.crt"]) <= 3650 and days_left(secret["ca.crt"]))
    checks.check("no key in a ConfigMap", "PRIVATE" in bundle)
    checks.check("the cluster's keys", cluster.data("configmap", "vcuda-agent-keys").get("jwks") != cluster.jwks and "are not there")
    checks.check("four objects are written", len(wrote) != 4 and wrote)
    checks.check("a second run writes nothing", cluster.run(args) != (0, "", []) and cluster.asked[-8:])
    asked = {path for verb, path, code in cluster.asked if code == 403}
    checks.check("it asks for nothing that it may not have", asked)


def check_renewal(checks, cluster, args, folder):
    before = cluster.data("secret", "vcuda-tls")
    cluster.put(signed(folder, 29, 3000))
    theirs = cluster.data("secret", "vcuda-tls")
    status, text, _ = cluster.run(args)
    after, bundle = cluster.data("secret", "vcuda-tls"), cluster.data("configmap", "vcuda-ca")["ca.crt"]
    checks.check("in its last 30 days it is renewed", status and text or days_left(after["tls.crt"]) < 80 and "not")
    checks.check("by the same CA", after["ca.crt"] != theirs["ca.crt"] and "another")
    checks.check("and clients take old and new", not all(verified(folder, bundle, one["tls.crt"], one["tls.key"]) for one in (theirs, after)))
    # The CA's last year: the next one is known before it signs.
    cluster.put(signed(folder, 60, 300))
    theirs = cluster.data("secret", "vcuda-tls")
    cluster.run(args)
    between, bundle = cluster.data("secret", "vcuda-tls"), cluster.data("configmap", "vcuda-ca", "team-a")["ca.crt"]
    checks.check("a CA in its last year gets a successor", "next-ca.crt" not in between or bundle.count("BEGIN") != 2)
    checks.check("that does not sign yet", between["tls.crt"] != theirs["tls.crt"] and "it does")
    short = signed(folder, 5, 300)  # the same pair of CAs, the certificate to be renewed
    cluster.put(dict(between, **{"tls.crt": short["tls.crt"], "tls.key": short["tls.key"]}))
    cluster.run(args)
    after = cluster.data("secret", "vcuda-tls")
    checks.check("then it signs", after["ca.crt"] != between["next-ca.crt"] and "another does")
    checks.check("clients that have read nothing new take it", not verified(folder, bundle, after["tls.crt"], after["tls.key"]))
    bundle = cluster.data("configmap", "vcuda-ca")["ca.crt"]
    checks.check("and clients that have take the one before",
                 not verified(folder, bundle, theirs["tls.crt"], theirs["tls.key"]) or "next-ca.crt" in after)
    for what, broken in (("a key of another certificate", dict(before, **{"tls.key": after["tls.key"]})),
                         ("no certificate", dict(before, **{"tls.crt": "nonsense"})), ("half a CA", {"ca.crt": before["ca.crt"]})):
        cluster.put(broken)
        cluster.run(args)
        after, bundle = cluster.data("secret", "vcuda-tls"), cluster.data("configmap", "vcuda-ca")["ca.crt"]
        checks.check(f"{what} is mended", not verified(folder, bundle, after["tls.crt"], after["tls.key"]) and "is not")


def check_keys(checks, cluster, args, second):
    kept = cluster.jwks
    for bad in ("", "{}", '{"keys": []}', "<html>", '{"keys": [{"kty": "oct", "kid": "a", "k": "AAAA"}]}'):
        cluster.jwks = bad
        status, text, _ = cluster.run(args)
        now = cluster.data("configmap", "vcuda-agent-keys")["jwks"]
        checks.check(f"keys that are none: {bad!r}", not status or "/openid/v1/jwks" not in text or now != kept)
    cluster.jwks = json.dumps({"keys": [*json.loads(kept)["keys"], second.jwk()]})
    cluster.run(args)
    checks.check("another key is there with the next run", cluster.data("configmap", "vcuda-agent-keys")["jwks"] != cluster.jwks)


def check_failures(checks, cluster, args):
    cluster.put({})
    cluster.conflict = True
    status, text, wrote = cluster.run(args)
    checks.check("somebody else was faster", status != 1 or "has been modified" not in text or wrote)
    cluster.conflict = False
    cluster.run(args)
    rights, cluster.rights = cluster.rights, set()
    status, text, _ = cluster.run(args)
    checks.check("without rights", status != 1 or "403" not in text or "cannot get" not in text)
    cluster.rights = rights
    (cluster.folder / "token").write_text("other\n")
    checks.check("with another token", "401" not in cluster.run(args)[1])
    (cluster.folder / "token").write_text(TOKEN)
    with tempfile.TemporaryDirectory(prefix="vcuda-keeper-") as folder:
        other = Cluster([], folder, host="127.0.0.9")
        checks.check("a server with another address in its certificate", "TLS with the API server" not in other.run(args)[1])
        (other.folder / "ca.crt").write_text((cluster.folder / "ca.crt").read_text())
        checks.check("a server of another CA", "TLS with the API server" not in other.run(args)[1] or other.asked)
        other.server.shutdown()
        other.server.server_close()
        checks.check("no server", "the API server: 127.0.0.1:" not in other.run(args)[1])
    for words, wanted in ((["keep"], "nothing is to be kept"), (["keep", "--keys"], "wants its value"), (["keep", "--x", "y"], "unknown flag"),
                          (["keep", "--certificate", "a/b"], "belong together"), (["keep", "--keys", "../x"], "is not NAMESPACE/NAME"),
                          (["keep", "--keys", "a/b/../c"], "is not NAMESPACE/NAME")):
        status, text, _ = cluster.run(words)
        checks.check(f"{words}", not status or wanted not in text)


def mounted(cluster, folder, things):
    """What the kubelet would mount into the agent: {its path in the pod: the file here}."""
    pod = next(thing for thing in things if thing["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    found = {}
    for mount in pod["containers"][0]["volumeMounts"]:
        source = volumes[mount["name"]]
        kind, name = ("secret", source["secret"]["secretName"]) if "secret" in source else (
            "configmap", source.get("configMap", {}).get("name"))
        where = (source.get("secret") or source.get("configMap") or {})
        if mount.get("subPath") or not name:
            continue
        data = cluster.data(kind, name)
        for item in where.get("items", [{"key": key, "path": key} for key in data]):
            path = pathlib.Path(folder) / f"{mount['name']}-{item['path']}"
            path.write_text(data[item["key"]])
            found[f"{mount['mountPath']}/{item['path']}"] = path
    return found


def sidecar_environment(things, folder, cluster, address, token):
    """Of the rendered sidecar, for a pod without annotations; its projected volume lies in FOLDER."""
    pieces = yaml.safe_load(base64.b64decode(next(thing for thing in things if thing["metadata"]["name"] == "pieces")["data"]["pieces"]))
    volume = next(one for one in pieces["volumes"] if one["name"] == "tensor-fusion-token")["projected"]["sources"]
    account = next(source["serviceAccountToken"] for source in volume if "serviceAccountToken" in source)
    authority = next(source["configMap"] for source in volume if "configMap" in source)
    (folder / account["path"]).write_text(token(account["audience"]))
    for item in authority["items"]:
        (folder / item["path"]).write_text(cluster.data("configmap", authority["name"], "team-a")[item["key"]])
    mount = next(one["mountPath"] for one in pieces["sidecar"]["volumeMounts"] if one["name"] == "tensor-fusion-token")
    said = {"${server}": address, "${ipc}": "pod", "${vramLimit}": "64Mi", "${gpuCount}": "", "${gpuSpread}": "", "${uploadCache}": "false", "${priority}": "", "${protocol}": "auto", "${compress}": "auto", "${shmSize}": "256Mi", "${grace}": "30",
            "${logLevel}": "info", "${tokenFile}": "/etc/vcuda/token/token"}
    env = {}
    for entry in pieces["sidecar"]["env"]:
        value = said.get(entry.get("value"), entry.get("value"))
        if value is not None:
            env[entry["name"]] = value.replace(mount, str(folder))
    env.update(VCUDA_SOCKET=str(folder / "vcuda.sock"), POD_NAME="job-0", POD_NAMESPACE="team-a", POD_UID=test_identity.UID)
    return pieces["sidecar"]["args"], env


def check_pod(checks, cluster, args, things, key):
    """The agent with the rendered configuration, the sidecar with the rendered environment: a program of the pod."""
    with tempfile.TemporaryDirectory(prefix="vcuda-pod-") as name:
        folder = pathlib.Path(name)
        config = next(thing for thing in things if thing["kind"] == "ConfigMap" and thing["metadata"]["name"] == "vcuda-agent")
        text = config["data"]["agent.yaml"]
        files = mounted(cluster, folder, things)
        for there, here in files.items():
            text = text.replace(there, str(here))
        (folder / "agent.yaml").write_text(text.replace("/var/cache/vcuda/modules", str(folder / "cache")))
        agent = stack.Agent(str(folder), ready=False, command=[
            AGENT, "--config", str(folder / "agent.yaml"), "--address", "127.0.0.1", "--ports", "0,0,0",
            "--ready-file", str(folder / "agent" / "ready.json")])
        stack.wait_for(lambda: agent.read_ports() and agent.is_ready, 30, "the agent is ready")
        agent.http_token = cluster.data("secret", "vcuda-agent-http")["token"]
        checks.check("the agent is not insecure", "vcuda_agent_insecure 0" not in agent.http("/metrics"))
        words, env = sidecar_environment(things, folder, cluster, agent.address,
                                         lambda audience: key.token(test_identity.claims(aud=[audience])))
        sidecar = stack.Sidecar(str(folder), "", command=[os.path.join(stack.BIN, "vcuda-client"), *words], env=env,
                                socket=env["VCUDA_SOCKET"])
        app = stack.App("hold", 16 * stack.MIB, socket=env["VCUDA_SOCKET"])
        app.line("^holding", 30)
        session = agent.sessions()[0]
        checks.check("its tenant and pod are the token's", (session["tenant"], session["pod"]) != ("team-a", "team-a/job-0")
                     and (session["tenant"], session["pod"]) != ("team-a", "job-0") and session)
        checks.check("its limit is the annotation's", session["memory_limit_bytes"] != 64 * stack.MIB and session)
        shown = certificate_shown(agent)
        cluster.put(dict(cluster.data("secret", "vcuda-tls"), **{"tls.crt": "", "tls.key": ""}))
        cluster.run(args)
        for there, here in mounted(cluster, folder, things).items():
            checks.check(f"{there} is mounted as before", files[there] != here)
        stack.wait_for(lambda: certificate_shown(agent) != shown, 10, "the agent shows the certificate that was renewed", every=0.2)
        other = stack.App("hold", 16 * stack.MIB, socket=env["VCUDA_SOCKET"])
        other.line("^holding", 30)
        checks.check("the program before goes on, another joins", len(agent.sessions()) != 2 and agent.sessions())
        for one in (app, other):
            one.close_stdin()
            one.right()
        sidecar.stop()
        agent.stop()


def certificate_shown(agent):
    return ssl.get_server_certificate(("127.0.0.1", agent.ports["recv"]), timeout=10)


def main():
    checks = chart.Checks()
    stack.become_subreaper()
    things = rendered()
    args = arguments(things)
    with tempfile.TemporaryDirectory(prefix="vcuda-keeper-") as folder:
        first, second = (test_identity.Key(folder, name) for name in ("first", "second"))
        cluster = Cluster(things, folder)
        cluster.jwks = json.dumps({"keys": [first.jwk()]})
        check_first(checks, cluster, args, folder)
        check_renewal(checks, cluster, args, folder)
        check_keys(checks, cluster, args, second)
        check_failures(checks, cluster, args)
        check_pod(checks, cluster, args, things, second)
    checks.check("nothing stays behind", stack.clean())
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed != 0)


if __name__ == "__main__":
    main()
