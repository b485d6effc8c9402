# SPDX-License-Identifier: Apache-2.0
"""Values that change how agents run or whom they let in: with each the release is upgraded, tests itself, and a pod
computes; then it is as it was."""
import os

import node
from cluster import SPACE, SYSTEM, agents, annotations, apply, execute, helm, k, kubectl, pod, put_app, ready, revision, start, upgrade

RIGHT = "sums are right"
TOKEN = f"sesame-{'x' * 24}"


def computes(name, values, kind="daemonset", look=None):
    """`look`: what else is asked while a pod's program holds 1 GiB."""
    before = revision()
    upgrade(values, kind)
    try:
        assert "Succeeded" in helm("test", "vcuda", "--timeout", "60s")
        apply(pod(name, wanted=annotations()))
        ready(name, 90)
        assert RIGHT in execute(name, "vectorAdd")[1]
        if look:
            look(name)
    finally:
        k("delete", "pod", name, "--wait=false", "--ignore-not-found")
        helm("rollback", "vcuda", str(before))
        kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=60s")


def test_agents_on_the_nodes_network():
    def has_its_address(_):
        assert list(agents()) == [node.ADDRESS], agents()
    computes("network", {"agent": {"hostNetwork": True}}, look=has_its_address)


def test_a_cache_on_the_nodes_disk():
    folder = node.path("cache")
    os.makedirs(folder, exist_ok=True)
    os.chown(folder, 65532, 65532)
    computes("disk", {"agent": {"cache": {"hostPath": {"path": folder, "type": "Directory"}}}})
    assert sum(len(files) for _, _, files in os.walk(folder)), "nothing is in it"


def test_helm_makes_the_certificate():
    computes("helm", {"tls": {"enabled": True, "issuer": "helm", "secretName": "vcuda-tls-helm", "namespaces": [SPACE]}})


def test_a_namespace_has_no_more_than_its_limit_whatever_its_pods_say():
    def more(name):
        put_app(name)
        held = start(name, "/tmp/app", "hold", str(1 << 30))
        assert "holding" in held.stdout.readline()
        again = start(name, "/tmp/app", "hold", str(1 << 30))
        out = again.communicate(timeout=30)[0]
        assert "holding" not in out and again.returncode, out
        held.stdin.close()
        assert held.wait(20) == 0
    computes("limit", {"auth": {"enabled": True, "token": TOKEN, "namespaces": [SPACE],
                                "limits": {SPACE: {"memory": "1536Mi", "sessions": 4}}}}, look=more)


def test_a_deployment_instead_of_a_daemonset():
    computes("deployed", {"agent": {"kind": "Deployment", "replicas": 1}}, "deployment")
