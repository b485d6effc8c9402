# SPDX-License-Identifier: Apache-2.0
"""How pods reach the agent: by QUIC through the network policy, and on the agent's own node by shared memory."""
import contextlib
import json
import os

import node
from cluster import (SYSTEM, annotations, apply, eventually, execute, helm, k, kubectl, pod, put_app, ready, revision, start, upgrade)

RESTRICTED = "restricted"
found = {}


def transport_of(name, **more):
    """What the sidecar of such a pod says of a program that runs in it."""
    wanted = annotations(**more.pop("wanted", {}))
    where = more.pop("space", "programs")
    apply(pod(name, more.pop("spec", None), wanted, where))
    ready(name, space=where)
    put_app(name, space=where)
    holder = start(name, "/tmp/app", "hold", str(1 << 20), space=where)
    try:
        line = holder.stdout.readline()
        assert "holding" in line, line + holder.communicate(timeout=20)[0]
        _, out = execute(name, "/lib/vcuda/vcuda-client", "status", "--json", container="vcuda-client", space=where)
        return [channel["transport"] for channel in json.loads(out)["channels"]]
    finally:
        with contextlib.suppress(BrokenPipeError):
            holder.stdin.close()
        holder.wait(20)
        kubectl("-n", where, "delete", "pod", name, "--wait=false")


def test_light_goes_through_the_network_policy():
    found["revision"] = revision()
    upgrade({"agent": {"config": {"listen": "light://"}}}, "daemonset")
    node.enforce()
    try:
        assert transport_of("far", wanted={"protocol": "light"}) == ["light"]
        assert transport_of("near") == ["native"]  # as before
    finally:
        node.lift()
        helm("rollback", "vcuda", str(found["revision"]))


def test_pods_on_the_agents_node_share_memory_by_a_folder():
    folder = node.path("local")
    os.makedirs(folder, exist_ok=True)
    os.chown(folder, 65532, 65532)
    upgrade({"agent": {"localSocket": folder}}, "daemonset")
    assert transport_of("by-folder") == ["local"]
    assert transport_of("asked", wanted={"protocol": "native"}) == ["native"]


def test_where_pod_security_refuses_the_folder_they_stay_on_the_network():
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": RESTRICTED, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    eventually(lambda: kubectl("-n", RESTRICTED, "get", "sa", "default"), 30, "the namespace's account")
    spec = {"terminationGracePeriodSeconds": 1, "securityContext": {"runAsNonRoot": True, "runAsUser": 1000,
                                                                    "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "app", "image": pod("x")["spec"]["containers"][0]["image"], "securityContext": {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}
    try:
        assert transport_of("kept", spec=spec, space=RESTRICTED) == ["native"]
    finally:
        kubectl("delete", "namespace", RESTRICTED, "--wait=false")
        helm("rollback", "vcuda", str(found["revision"]))


def test_where_both_have_hostipc_no_folder_is_needed():
    upgrade({"agent": {"hostIPC": True}}, "daemonset")
    try:
        assert transport_of("inside", wanted={"ipc_mode": "host"}) == ["local"]
        assert transport_of("outside") == ["native"]
    finally:
        helm("rollback", "vcuda", str(found["revision"]))
        kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=60s")
        k("delete", "pod", "far", "near", "by-folder", "asked", "inside", "outside", "--wait=false", "--ignore-not-found")
