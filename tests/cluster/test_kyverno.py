# SPDX-License-Identifier: Apache-2.0
"""Kyverno's admission controller in the cluster, by the chart that its own module carries; then both
of our policies for it.  Needs `build.sh kyverno`."""
import json
import os
import re
import shutil
import subprocess

import node
from cluster import (CHART, HELM, ROOT, SYSTEM, Api, Skip, annotations, apply, environment, eventually,
                     execute, get, helm, k, kubectl, pod, ready)

RIGHT = "sums are right"
KYVERNO = "v1.19.1"
# Of the golden pods, with their labels: deploy/kyverno/tests/namespaces.yaml says the same to Kyverno's CLI.
SPACES = {"restricted": {"pod-security.kubernetes.io/enforce": "restricted"},
          "wide": {"tensor-fusion.ai/injection": "enabled"}}


def install():
    for name in ("kyverno", "kyverno-init"):
        binary = os.path.join(node.BIN, name)
        if not os.path.exists(binary):
            raise Skip("tests/cluster/build.sh kyverno was not run")
        node.make_image(f"localhost/{name}:{KYVERNO}", {"app": binary}, ["/app"], entrypoint=True)
    got = node.run("go", "mod", "download", "-json", "github.com/kyverno/kyverno@" + KYVERNO, seconds=120,
                   env=dict(os.environ, GOFLAGS="-mod=mod", GOTOOLCHAIN="local"))
    module = json.loads(got)["Dir"]
    chart = node.path("kyverno")
    shutil.rmtree(chart, ignore_errors=True)
    shutil.copytree(os.path.join(module, "charts", "kyverno"), chart, copy_function=shutil.copyfile)
    for folder, _, _ in os.walk(chart):
        os.chmod(folder, 0o755)
    # Charts that the module does not carry are cut out of the dependencies.
    os.unlink(os.path.join(chart, "Chart.lock"))
    with open(os.path.join(chart, "Chart.yaml")) as file:
        text = file.read()
    version = re.search(r"^version: (\S+)", text, re.M).group(1)
    text = text[:text.index("dependencies:")] + "dependencies:\n" + "".join(
        f"- {{name: {name}, version: {version}, condition: {condition}}}\n"
        for name, condition in (("grafana", "grafana.enabled"), ("crds", "crds.install")))
    with open(os.path.join(chart, "Chart.yaml"), "w") as file:
        file.write(text)
    kubectl("apply", "--server-side", "-f", os.path.join(module, "config", "crds", "policies.kyverno.io"))
    image = lambda name: {"registry": "localhost", "repository": name, "tag": KYVERNO, "pullPolicy": "Never"}
    off = {"enabled": False}
    node.run(HELM, "-n", "kyverno", "upgrade", "--install", "kyverno", chart, "--create-namespace", "--wait",
             "--timeout", "180s", "-f", "-", seconds=200, env=environment(), text=json.dumps({
                 "crds": {"migration": off}, "webhooksCleanup": off, "backgroundController": off,
                 "cleanupController": off, "reportsController": off,
                 "features": {"policyReports": off, "admissionReports": off},
                 "admissionController": {"replicas": 1,
                                         "initContainer": {"image": image("kyverno-init")},
                                         "container": {"image": image("kyverno")}}}))


def injected_by(engine):
    """The chart with that engine, and a pod that computes."""
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set", "injector.engine=" + engine)
    api = Api()

    def names(wanted):
        got = api.dry_run(pod("asked", wanted=wanted))
        return [c["name"] for c in got["spec"].get("initContainers", [])]

    eventually(lambda: names(annotations()) == ["tensor-fusion-init", "vcuda-client"], 40,
               f"{engine} injects")
    assert not names(None)
    name = "by-" + engine
    apply(pod(name, wanted=annotations(vram_limit="1Gi")))
    ready(name)
    _, out = execute(name, "vectorAdd")
    assert RIGHT in out and "1024 MiB" in out, out
    return f"{golden_pods(api)} golden pods"


def read_pod(*path):
    return json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-f", os.path.join(ROOT, *path)))


def golden_pods(api):
    """The controller makes what the CLI made of the shapes in deploy/kyverno/tests."""
    for space, label in SPACES.items():
        apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": label}})
    for space in SPACES:
        eventually(lambda space=space: kubectl("-n", space, "get", "serviceaccount", "default", check=False), 30,
                   f"the account of the namespace {space}")

    def stored(what):
        # The account's token would stand in front of our volumes, or behind them.
        what["spec"]["automountServiceAccountToken"] = False
        got = api.dry_run(what)
        for key in ("uid", "creationTimestamp", "managedFields", "resourceVersion"):
            got["metadata"].pop(key, None)
        return got

    files = sorted(os.listdir(os.path.join(ROOT, "deploy/kyverno/tests/patched")))
    for name in files:
        raw = read_pod("tests/deploy/pods", name)
        want = read_pod("deploy/kyverno/tests/patched", name)
        want = json.loads(json.dumps(want).replace("vcuda-agent.vcuda.svc", f"vcuda-agent.{SYSTEM}.svc"))
        raw, want = stored(raw), stored(want)
        for part in ("metadata", "spec"):
            assert raw[part] == want[part], f"{name}: {part}\n  got  {raw[part]}\n  want {want[part]}"
    kubectl("delete", "namespace", *SPACES, "--timeout=60s")
    return len(files)


def test_kyverno_comes_up_in_the_cluster():
    install()
    assert get("pods", space="kyverno")["items"]


def test_mutatingpolicy_injects_real_pods():
    installed()
    return injected_by("mutatingpolicy")


def test_clusterpolicy_injects_real_pods():
    installed()
    return injected_by("clusterpolicy")


def installed():
    if not kubectl("get", "deployment", "-n", "kyverno", "-o", "name", check=False):
        raise Skip("Kyverno is not in the cluster")


def test_kyverno_goes_and_kubernetes_own_policy_injects_again():
    installed()
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set", "injector.engine=map")
    subprocess.run([HELM, "-n", "kyverno", "uninstall", "kyverno", "--wait", "--timeout", "60s"],
                   env=environment(), capture_output=True, timeout=90)
    kubectl("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-l",
            "webhook.kyverno.io/managed-by=kyverno", "--ignore-not-found")
    crds = [name for name in kubectl("get", "crd", "-o", "name").split() if "kyverno" in name]
    if crds:
        kubectl("delete", "--timeout=60s", *crds)
    kubectl("delete", "namespace", "kyverno", "--timeout=60s")
    apply(pod("again", wanted=annotations()))
    ready("again")
    assert RIGHT in execute("again", "vectorAdd")[1]
