# SPDX-License-Identifier: Apache-2.0
"""A real kube-apiserver on etcd, and nothing else: no node, no controllers.

    with Apiserver() as api:
        api.create(object)                     # or dry_run=True; raises Refused

Admission is as in a cluster (Pod Security, policies), less ServiceAccount, whose accounts a
controller would make.  Objects live until the block ends.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "vcuda"
# Where an object of a kind is put; what is not here is cluster-wide under its own plural.
PLURAL = {"NetworkPolicy": "networkpolicies", "RuntimeClass": "runtimeclasses",
          "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
          "ValidatingAdmissionPolicy": "validatingadmissionpolicies"}
CLUSTER = {"Namespace", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
           "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "RuntimeClass"}


class Refused(Exception):
    """What the API server answered instead of the object."""


def find_binary(name):
    for folder in (CACHE / "cluster/bin", CACHE / "go-bin"):
        if (folder / name).exists():
            return str(folder / name)
    return shutil.which(name)


def server(name):
    return find_binary(name) or sys.exit(
        f"no {name} here: {'apt install etcd-server' if name == 'etcd' else 'tests/cluster/build.sh builds it'}")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Apiserver:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vcuda-apiserver-"))
        self.children = []
        self.warnings = []  # beside the last answer
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def spawn(self, name, *args):
        log = open(self.folder / f"{pathlib.Path(name).name}.log", "wb")
        self.children.append(subprocess.Popen([name, *args], stdout=log, stderr=log, cwd=self.folder))

    def start(self):
        client, peer, port = free_ports(3)
        key = str(self.folder / "key.pem")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (self.folder / "tokens").write_text("let-me-in,test,test,system:masters\n")
        self.spawn(server("etcd"), "--data-dir", str(self.folder / "etcd"),
                   "--listen-client-urls", f"http://127.0.0.1:{client}",
                   "--advertise-client-urls", f"http://127.0.0.1:{client}",
                   "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--log-level", "error",
                   "--unsafe-no-fsync" if " 3.4" not in self.etcd_version() else "--quota-backend-bytes=0")
        self.spawn(server("kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{client}",
                   f"--cert-dir={self.folder}", f"--secure-port={port}", "--bind-address=127.0.0.1",
                   "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                   f"--token-auth-file={self.folder / 'tokens'}", "--authorization-mode=AlwaysAllow",
                   "--service-cluster-ip-range=198.19.0.0/16",
                   "--feature-gates=MutatingAdmissionPolicy=true",
                   "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
                   "--disable-admission-plugins=ServiceAccount", "--allow-privileged")
        self.base = f"https://127.0.0.1:{port}"
        self.tls = ssl._create_unverified_context()
        deadline = time.monotonic() + 90
        while True:
            try:
                self.request("GET", "/readyz")
                return
            except (Refused, OSError) as problem:
                if time.monotonic() > deadline or any(c.poll() is not None for c in self.children):
                    raise RuntimeError(f"no API server: {problem}\n{self.tail()}") from None
                time.sleep(0.2)

    def etcd_version(self):
        return subprocess.run([server("etcd"), "--version"], capture_output=True, text=True,
                              check=True).stdout

    def tail(self):
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in self.folder.glob("*.log"))

    def request(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method,
                                         data=json.dumps(body).encode() if body is not None else None)
        request.add_header("Authorization", "Bearer let-me-in")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:
                self.warnings = answer.headers.get_all("Warning") or []
                text = answer.read()
                return json.loads(text) if text[:1] == b"{" else text
        except urllib.error.HTTPError as problem:
            self.warnings = problem.headers.get_all("Warning") or []
            text = problem.read().decode(errors="replace")
            try:
                text = json.loads(text)["message"]
            except (ValueError, KeyError):
                pass
            raise Refused(text) from None

    def place(self, thing, namespace=None):
        group, kind = thing["apiVersion"], thing["kind"]
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        if kind not in CLUSTER:
            root += f"/namespaces/{namespace or thing['metadata'].get('namespace', 'default')}"
        return f"{root}/{PLURAL.get(kind, kind.lower() + 's')}"

    def create(self, thing, dry_run=False, namespace=None):
        asked = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.request("POST", self.place(thing, namespace) + asked, thing)

    def delete(self, thing):
        return self.request("DELETE", f"{self.place(thing)}/{thing['metadata']['name']}")
