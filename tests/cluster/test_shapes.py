# SPDX-License-Identifier: Apache-2.0
"""Pods as others have them: with resolvers, quotas, volumes and namespaces of their own; and what a mistake
costs."""
import json
import os
import subprocess
import tempfile

from cluster import (CHART, SPACE, SYSTEM, PREFIX, annotations, apply, container, environment, eventually, execute, get, helm, k,
                     kubectl, pod, pod_spec, ready)

RIGHT = "sums are right"
NEAR = "nearly-full"


def computes(name, space=SPACE):
    ready(name, space=space)
    _, out = execute(name, "vectorAdd", space=space)
    assert RIGHT in out, out


def test_nothing_of_the_node_is_in_sight():
    apply(pod("alone", wanted=annotations()))
    computes("alone")
    spec = get("pod", "alone")["spec"]
    assert not spec.get("hostIPC") and not spec.get("hostPID"), spec
    _, out = execute("alone", "sh", "-c", "cat /proc/[0-9]*/comm; ls -a /dev/shm")
    assert "kubelet" not in out and "containerd" not in out and "vcuda" not in out, out


def test_a_volume_on_dev_shm_is_the_programs():
    mount = {"name": "shm", "mountPath": "/dev/shm"}
    spec = pod_spec(container(volumeMounts=[mount]), volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}])
    apply(pod("shm", spec, annotations()))
    computes("shm")
    _, out = execute("shm", "/lib/vcuda/vcuda", "doctor", check=False)
    assert "802" not in out, out


def test_names_are_found_whatever_the_resolver_adds():
    for ndots in ("1", "2"):
        apply(pod(f"ndots-{ndots}", pod_spec(dnsConfig={"options": [{"name": "ndots", "value": ndots}]}), annotations()))
    server = kubectl("-n", "kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIP}").strip()
    apply(pod("resolver", pod_spec(dnsPolicy="None", dnsConfig={"nameservers": [server]}), annotations()))
    for name in ("ndots-1", "ndots-2", "resolver"):
        computes(name)
    sidecar = get("pod", "resolver")["spec"]["initContainers"][1]
    agent = next(one["value"] for one in sidecar["env"] if one["name"] == "VCUDA_AGENT")
    assert agent.startswith(f"vcuda-agent.{SYSTEM}.svc.cluster.local.:"), agent


def test_a_quota_on_every_limit_and_guaranteed_qos():
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NEAR}},
          {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all", "namespace": NEAR},
           "spec": {"hard": {"limits.cpu": "1", "limits.memory": "2Gi", "requests.cpu": "1", "requests.memory": "2Gi"}}},
          {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "ratio", "namespace": NEAR},
           "spec": {"limits": [{"type": "Container", "min": {"cpu": "50m", "memory": "64Mi"},
                                "maxLimitRequestRatio": {"cpu": "1", "memory": "1"}}]}})
    eventually(lambda: kubectl("-n", NEAR, "get", "sa", "default"), 30, "the account")
    same = {f"sidecar_{what}_{kind}": amount for what, amount in (("cpu", "200m"), ("memory", "384Mi"))
            for kind in ("request", "limit")}
    spec = pod_spec(container(resources={"limits": {"cpu": "500m", "memory": "512Mi"}}))
    apply(pod("guaranteed", spec, annotations(**same), NEAR))
    computes("guaranteed", NEAR)
    assert get("pod", "guaranteed", NEAR)["status"]["qosClass"] == "Guaranteed"
    kubectl("delete", "namespace", NEAR, "--wait=false")


def test_a_namespace_wants_all_of_its_pods_injected():
    apply({"apiVersion": "v1", "kind": "Namespace",
           "metadata": {"name": "everybody", "labels": {PREFIX + "injection": "enabled"}}})
    eventually(lambda: kubectl("-n", "everybody", "get", "sa", "default"), 30, "the account")
    apply(pod("silent", space="everybody"), pod("other", wanted={PREFIX + "enabled": "false"}, space="everybody"))
    computes("silent", "everybody")
    ready("other", space="everybody")
    assert "vcuda-client" not in json.dumps(get("pod", "other", "everybody")["spec"])
    kubectl("delete", "namespace", "everybody", "--wait=false")


def test_mistakes_are_refused_with_a_sentence():
    for wanted, text in (({PREFIX + "enabled": "yes"}, "takes true or false"),
                         (annotations(vram_limits="1Gi"), "there is no such annotation"),
                         (annotations(vram_limit="4"), "takes bytes from 10M on")):
        what = json.dumps(pod("mistake", wanted=wanted))
        try:
            kubectl("create", "-f", "-", text=what)
        except RuntimeError as refusal:
            assert text in str(refusal), refusal
        else:
            raise AssertionError(f"{wanted} was let in")
    done = subprocess.run(["kubectl", "create", "--dry-run=server", "-f", "-"], env=environment(), capture_output=True,
                          text=True, timeout=30, input=json.dumps(pod("notice", wanted=annotations(gpupool="a"))))
    assert not done.returncode and "here nothing acts on it" in done.stderr, done.stderr


def test_a_container_that_is_added_later_computes_with_the_same_mounts():
    apply(pod("debugged", wanted=annotations()))
    computes("debugged")
    spec = get("pod", "debugged")["spec"]
    preload = next(one["value"] for one in spec["containers"][0]["env"] if one["name"] == "LD_PRELOAD")
    custom = {"env": [{"name": "LD_PRELOAD", "value": preload}],
              "volumeMounts": [{"name": "tensor-fusion-libs", "mountPath": "/lib/vcuda", "readOnly": True},
                               {"name": "tensor-fusion-shm", "mountPath": "/run/tensor-fusion"}]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "custom.json")
        with open(path, "w") as file:
            json.dump(custom, file)
        k("debug", "debugged", f"--image={spec['containers'][0]['image']}", "--image-pull-policy=IfNotPresent",
          "--container=later", f"--custom={path}", "--", "vectorAdd")
    eventually(lambda: RIGHT in k("logs", "debugged", "-c", "later", check=False), 30, "it has computed")


def test_a_wrong_configuration_changes_nothing():
    def agents():
        return sorted(one["metadata"]["uid"] for one in get("pods", space=SYSTEM)["items"]
                      if one["metadata"]["labels"].get("tensor-fusion.ai/component") == "agent")

    was = agents()
    try:
        helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set", "agent.config.memory_reserve=lots",
             "--wait", "--timeout", "60s")
    except RuntimeError as refusal:
        assert "pre-upgrade" in str(refusal), refusal
    else:
        raise AssertionError("it was let in")
    told = kubectl("-n", SYSTEM, "logs", "job/vcuda-agent-check")
    assert "memory_reserve" in told and "lots" in told, told
    assert agents() == was, "agents were replaced"
    helm("rollback", "vcuda", "--timeout", "60s")
    assert agents() == was, "agents were replaced by the way back"
    kubectl("-n", SYSTEM, "delete", "job/vcuda-agent-check", "configmap/vcuda-agent-check", "--ignore-not-found")
