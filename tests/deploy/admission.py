#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a real API server says to the chart's objects and to the seed's: a dry run of each, in a
namespace that enforces restricted Pod Security where hostIPC and hostNetwork are off."""
import copy
import re
import sys

import yaml

import apiserver
import chart

SECOND = "the release vcuda/first injects pods of this cluster already"
COREFILE = ".:53 {\n    errors\n    kubernetes k8s.example in-addr.arpa ip6.arpa {\n        pods insecure\n    }\n}\n"
KUBEADM = "networking:\n  dnsDomain: corp.example\n  podSubnet: 198.18.0.0/24\n"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def pods_of(thing):
    """The pod that a workload makes, since Pod Security refuses pods and not workloads."""
    if thing["kind"] == "Pod":
        return [thing]
    if thing["kind"] not in ("DaemonSet", "Deployment"):
        return []
    pod = copy.deepcopy(thing["spec"]["template"])
    pod.update(apiVersion="v1", kind="Pod")
    pod["metadata"].update(name=thing["metadata"]["name"], namespace=thing["metadata"]["namespace"])
    return [pod]


def rendered(api, release, *values):
    """The agents' name as helm writes it where it can ask the API server, or why it does not."""
    args = [chart.HELM, "install", release, chart.CHART, "-n", "vcuda", "--dry-run=server", "--kube-apiserver", api.base,
            "--kube-token", "let-me-in", "--kube-insecure-skip-tls-verify"]
    done = chart.run(*args, *(part for value in values for part in ("--set", value)))
    return done.stderr if done.returncode else " ".join(re.findall(r"- --agent\n +- (\S+)", done.stdout))


def lookups(api):
    """What helm asks a cluster: its domain, and whether another release injects already."""
    yield "nothing says the domain", rendered(api, "vcuda"), "vcuda-agent.vcuda.svc.cluster.local.:9998"
    for name, key, text, domain in (("kubeadm-config", "ClusterConfiguration", KUBEADM, "corp.example"),
                                    ("coredns", "Corefile", COREFILE, "k8s.example")):
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"},
                    "data": {key: text}})
        yield name, rendered(api, "vcuda"), f"vcuda-agent.vcuda.svc.{domain}.:9998"
    made = chart.template(["fullnameOverride=first"], [chart.MAP], "-s", "templates/injector-map.yaml")
    policy = next(thing for thing in yaml.safe_load_all(made.stdout) if thing)
    policy["metadata"]["annotations"] = {"meta.helm.sh/release-name": "first", "meta.helm.sh/release-namespace": "vcuda"}
    api.create(policy)
    yield "the same release", rendered(api, "first"), "first-vcuda-agent.vcuda.svc.k8s.example.:9998"
    yield "a second release", rendered(api, "second"), SECOND
    yield "one without an injector", rendered(api, "second", "injector.enabled=false"), "second-vcuda-agent.vcuda.svc"


def main():
    passed = failed = 0
    sets = {"plain": [], "software": ["agent.driver=software"],
            "token": ["auth.enabled=true", "auth.token=abc", "auth.namespaces={default}"],
            "deployment": ["agent.kind=Deployment", "agent.replicas=2"]}
    with apiserver.Apiserver() as api:
        for name, labels in (("vcuda", RESTRICTED), ("tensor-fusion-test", {})):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        api.create({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"},
                    "handler": "nvidia"})

        def let_in(where, thing, wanted=None):
            nonlocal passed, failed
            try:
                api.create(thing, dry_run=True)
                problem = wanted and f"let in, where '{wanted}' was due"
            except apiserver.Refused as text:
                problem = None if wanted and wanted in str(text) else str(text)
            passed, failed = passed + (not problem), failed + bool(problem)
            if problem:
                print(f"FAIL {where} {thing['kind']}/{thing['metadata']['name']}: {problem}")

        for name, values in sets.items():
            made = chart.template(values, [chart.MAP])
            for thing in yaml.safe_load_all(made.stdout):
                if thing:
                    let_in(name, thing)
                    for pod in pods_of(thing) if thing["kind"] != "Pod" else []:
                        let_in(f"{name}, pod of", pod)
        made = chart.template(["agent.hostNetwork=true"], [chart.MAP], "-s", "templates/agent.yaml")
        for pod in pods_of(yaml.safe_load(made.stdout)):
            let_in("host network", pod, 'violates PodSecurity "restricted')
        for what, got, wanted in lookups(api):
            passed, failed = passed + (wanted in got), failed + (wanted not in got)
            if wanted not in got:
                print(f"FAIL {what}: {got[-500:]} instead of {wanted}")
        for file in ("server", "client", "annotated"):
            thing = yaml.safe_load((chart.ROOT / f"tests/deploy/seed/{file}.yaml").read_text())
            let_in("seed", thing)
            for pod in pods_of(thing):
                let_in("seed, pod of", pod)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
