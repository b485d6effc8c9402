# SPDX-License-Identifier: Apache-2.0
"""What the tests of the real node are written with: the API as kubectl shows it, and pods."""
import json
import os
import re
import ssl
import subprocess
import time
import urllib.request

import node
import node_process

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
CHART = os.path.join(ROOT, "deploy", "helm", "vcuda")
HELM = os.path.join(node_process.CACHE, "go-bin", "helm")
SYSTEM, SPACE = "vcuda-system", "programs"
with open(os.path.join(ROOT, "common", "version.h")) as version:
    VERSION = re.search(r'VCUDA_VERSION "(.*)"', version.read()).group(1)
DEMO = f"ghcr.io/vcuda/demo:{VERSION}"
SLIM = f"ghcr.io/vcuda/client-slim:{VERSION}"
AGENT = f"ghcr.io/vcuda/gpu-agent:{VERSION}"
PREFIX = "tensor-fusion.ai/"


def node_gpu():
    """Name, MiB and number of the GPUs that agents have: the node's own, else two software GPUs of 8 GiB."""
    if not node.gpu():
        return "vcuda software GPU", 8192, 2
    rows = node.run("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    rows = [row.rsplit(", ", 1) for row in rows.strip().split("\n")]
    return rows[0][0], int(rows[0][1]), len(rows)


GPU_NAME, GPU_MIB, GPUS = node_gpu()
# A user with a GPU node gives no value at all.
VALUES = None if node.gpu() else {"agent": {"driver": "software", "env": [
    {"name": "VCUDA_SOFTGPU_MEMORY", "value": f"{GPU_MIB >> 10}G"},
    {"name": "VCUDA_SOFTGPU_DEVICES", "value": str(GPUS)}]}}


class Skip(Exception):
    """What a test needs is not there."""


def environment():
    return node.environment(KUBECONFIG=node.path("config", "admin"))


def kubectl(*words, text=None, check=True, seconds=90):
    return node.run("kubectl", *words, text=text, check=check, seconds=seconds, env=environment())


def k(*words, **more):
    return kubectl("-n", SPACE, *words, **more)


def helm(*words, values=None, seconds=120):
    more = ["-f", "-"] if values else []
    return node.run(HELM, "-n", SYSTEM, *words, *more, seconds=seconds, env=environment(),
                    text=json.dumps(values) if values else None)


def apply(*objects):
    kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List",
                                                 "items": list(objects)}))


def get(kind, name=None, space=SPACE):
    return json.loads(kubectl("-n", space, "get", kind, *([name] if name else []), "-o", "json"))


def eventually(what, seconds, message):
    """The first true value of what(); AssertionError after `seconds`."""
    end, got = time.monotonic() + seconds, None
    while True:
        try:
            got = what()
        except RuntimeError as error:
            got, message = None, f"{message}: {error}"[:600]
        if got:
            return got
        assert time.monotonic() < end, f"not within {seconds} s: {message}"
        time.sleep(0.2)


def soon(took, seconds, what):
    """Held with VCUDA_TEST_BARS=1 only: a busy machine may take longer."""
    assert took <= seconds or not os.environ.get("VCUDA_TEST_BARS"), f"{what}: {took:.2f} s, not {seconds}"


# --- pods ---

def container(name="app", image=DEMO, **more):
    return dict({"name": name, "image": image}, **more)


def pod_spec(*containers, **more):
    return dict({"terminationGracePeriodSeconds": 1, "containers": list(containers or [container()])},
                **more)


def annotations(**more):
    """enabled, and those given: vram_limit="4Gi"."""
    wanted = {PREFIX + "enabled": "true"}
    wanted.update({PREFIX + name.replace("_", "-"): value for name, value in more.items()})
    return wanted


def pod(name, spec=None, wanted=None, space=SPACE, labels=None):
    metadata = {"name": name, "namespace": space}
    if wanted:
        metadata["annotations"] = wanted
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec or pod_spec()}


def deployment(name, spec=None, wanted=None, space=SPACE):
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": space},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}, "annotations": wanted or {}},
                                  "spec": spec or pod_spec()}}}


def ready(name, seconds=60, space=SPACE):
    try:
        kubectl("-n", space, "wait", "--for=condition=Ready", name if "/" in name else "pod/" + name,
                f"--timeout={seconds}s", seconds=seconds + 10)
    except RuntimeError as error:
        raise AssertionError(f"{error}\n{why(name, space)}") from None


def why(name, space=SPACE):
    return kubectl("-n", space, "describe", name if "/" in name else "pod/" + name, check=False)[-1500:]


def execute(name, *command, container=None, seconds=40, check=True, space=SPACE, text=None):
    """(exit status, stdout and stderr) of a command in a pod, as a person would type it."""
    got = subprocess.run(["kubectl", "-n", space, "exec", *(["-i"] if text is not None else []), name,
                          *(["-c", container] if container else []), "--", *command],
                         capture_output=True, timeout=seconds, env=environment(), input=text)
    out = (got.stdout + got.stderr).decode(errors="replace")
    assert not check or got.returncode == 0, f"{command}: {got.returncode}: {out[-1500:]}"
    return got.returncode, out


def start(name, *command, container=None, space=SPACE):
    """A command in a pod that goes on; its stdin is open."""
    return subprocess.Popen(["kubectl", "-n", space, "exec", "-i", name,
                             *(["-c", container] if container else []), "--", *command],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, env=environment())


def put_program(name, source, place, container=None, space=SPACE):
    """A program of this machine's, at that place of the container."""
    with open(source, "rb") as file:
        execute(name, "sh", "-c", f"cat >{place} && chmod +x {place}", container=container,
                space=space, text=file.read())


def put_app(name, container=None, space=SPACE):
    """tests/stack's program, at /tmp/app of the container."""
    put_program(name, os.path.join(BUILD, "stack", "app"), "/tmp/app", container, space)


def restarts(name, which, space=SPACE):
    status = get("pod", name, space)["status"]
    for entry in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
        if entry["name"] == which:
            return entry["restartCount"], entry["ready"]
    raise AssertionError(f"{name} has no container {which}")


def process(name, which, space=SPACE):
    """The process of a pod's container, as the node sees it."""
    status = get("pod", name, space)["status"]
    number = [entry["containerID"] for entry in
              status.get("initContainerStatuses", []) + status["containerStatuses"]
              if entry["name"] == which][0].split("//")[1]
    tasks = node.run("ctr", "-a", node.path("containerd.sock"), "-n", "k8s.io", "tasks", "ls")
    return [int(line.split()[1]) for line in tasks.split("\n") if line.startswith(number)][0]


# --- agents ---

def agent():
    """(name, address) of the one that serves."""
    for one in get("pods", space=SYSTEM)["items"]:
        meta = one["metadata"]
        if meta["labels"].get(PREFIX + "component") == "agent" and not meta.get("deletionTimestamp"):
            return meta["name"], one["status"].get("podIP")
    raise AssertionError("no agent")


def ask_agents(what):
    """{address: the JSON that it answers} of each agent."""
    found = {}
    for one in get("pods", space=SYSTEM)["items"]:
        name, address = one["metadata"]["name"], one["status"].get("podIP")
        if one["metadata"]["labels"].get(PREFIX + "component") == "agent" and address:
            raw = kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/{name}:9999/proxy{what}")
            found[address] = json.loads(raw)
    return found


def agents():
    """{address: sessions} by the agents' own word."""
    return {address: len(said["sessions"]) for address, said in ask_agents("/v1/sessions").items()}


def revision():
    """Of the release, to be rolled back to."""
    return json.loads(helm("status", "vcuda", "-o", "json"))["version"]


def proofs():
    """Values: TLS by the chart's Job, and pods that prove their namespace by their ServiceAccount's token."""
    issuer = json.loads(kubectl("get", "--raw", "/.well-known/openid-configuration"))["issuer"]
    return {"tls": {"enabled": True, "issuer": "job", "namespaces": [SPACE]},
            "auth": {"serviceAccount": {"enabled": True, "issuer": issuer}}}


def upgrade(values, kind="deployment"):
    """Of the release, with agents of that kind, until all of them are there."""
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", values=values)
    kubectl("-n", SYSTEM, "rollout", "status", kind, "--timeout=90s", seconds=100)


def two_agents(values):
    """Makes the release have two, with one software GPU each, and VALUES, where the network enforces policies; the
    number of the revision before."""
    before = revision()
    # What tests before left would take the processors that two agents and ten pods ask for.
    k("delete", "deployment,job,pod", "--all", "--timeout=60s")
    env = [one for one in VALUES["agent"]["env"] if one["name"] != "VCUDA_SOFTGPU_DEVICES"]
    agent = {"kind": "Deployment", "replicas": 2, "env": env, **values.pop("agent", {})}
    upgrade({"agent": agent, **values})
    eventually(lambda: len(agents()) == 2, 60, "only the two are there")
    node.enforce()
    return before


def as_it_was(before):
    """With one agent, a DaemonSet's, and without policies."""
    node.lift()
    helm("rollback", "vcuda", str(before))
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=60s")
    eventually(lambda: len(agents()) == 1, 60, "the two agents are gone")


# --- the API itself ---

class Api:
    """Without kubectl's own start-up: for times and for bytes."""

    def __init__(self):
        self.context = ssl.create_default_context(cafile=node.path("pki", "ca.crt"))
        self.context.load_cert_chain(node.path("pki", "admin.crt"), node.path("pki", "admin.key"))

    def ask(self, where, body=None):
        request = urllib.request.Request(f"https://127.0.0.1:{node.PORT}{where}",
                                         json.dumps(body).encode() if body else None,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20, context=self.context) as answer:
            return json.load(answer)

    def dry_run(self, body):
        space = body["metadata"]["namespace"]
        return self.ask(f"/api/v1/namespaces/{space}/pods?dryRun=All", body)


def everything():
    """The name of each object that is there, but for those that come and go by themselves."""
    skipped = {"events", "endpoints", "endpointslices", "leases", "pods", "replicasets",
               "controllerrevisions", "componentstatuses", "bindings"}
    kinds = [kind for kind in kubectl("api-resources", "--verbs=list", "-o", "name").split()
             if kind.split(".")[0] not in skipped]
    names = kubectl("get", ",".join(kinds), "-A", "-o", "name", "--ignore-not-found", check=False)
    return {line for line in names.split("\n") if line}
