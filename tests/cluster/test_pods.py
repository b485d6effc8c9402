# SPDX-License-Identifier: Apache-2.0
"""What a pod gets for its annotation, and what others do not get."""
import json
import statistics
import time

from cluster import (CHART, GPU_MIB, GPU_NAME, SPACE, SYSTEM, VALUES, Api, annotations, apply, container, deployment, eventually,
                     everything, execute, get, helm, k, kubectl, pod, pod_spec, ready, soon, start)
import node

RIGHT = "sums are right"
before = {}  # what was there before anything was installed


def plain_pod():
    """A pod of nobody's, with something of everything that a policy could touch."""
    spec = pod_spec(container(env=[{"name": "LD_PRELOAD", "value": "/opt/own.so"}],
                              volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}]),
                    initContainers=[container("first", command=["true"])],
                    volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}])
    return pod("plain", spec, labels={"app": "plain"})


def as_stored(api, what):
    """What the API makes of a pod, less what differs each time."""
    got = api.dry_run(what)
    for name in ("uid", "creationTimestamp", "managedFields", "resourceVersion"):
        got["metadata"].pop(name, None)
    text = json.dumps(got, sort_keys=True)
    for volume in got["spec"]["volumes"]:  # a random name for the account's token
        if volume["name"].startswith("kube-api-access"):
            text = text.replace(volume["name"], "kube-api-access")
    return text


def test_helm_install():
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    eventually(lambda: k("get", "serviceaccount", "default"), 30, "the namespace's account")
    before["pod"] = as_stored(Api(), plain_pod())
    before["all"] = everything()
    helm("install", "vcuda", CHART, "--create-namespace", "--wait", "--timeout", "60s",
         values=VALUES)
    # Of a DaemonSet helm is content with one pod less.
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=60s")
    out = helm("test", "vcuda", "--timeout", "60s")
    assert "Succeeded" in out, out
    # A new policy is not everywhere at once.
    eventually(lambda: "vcuda-client" in as_stored(Api(), pod("probe", wanted=annotations())), 15,
               "the policy is in force")
    return GPU_NAME + ("" if VALUES else ", no values")


def test_an_annotated_deployment_computes_without_any_setting():
    began = time.monotonic()
    apply(deployment("demo", wanted=annotations()))
    eventually(lambda: get("pods")["items"], 10, "a pod")
    k("rollout", "status", "deployment/demo", "--timeout=30s")
    _, out = execute("deployment/demo", "vectorAdd")
    took = time.monotonic() - began
    assert RIGHT in out and "ERROR" not in out, out
    soon(took, 10, "from apply to the first result")
    return f"{took:.1f} s from apply to the first result"


def test_nvidia_smi_and_the_doctor_in_it():
    _, out = execute("deployment/demo", "nvidia-smi")
    assert GPU_NAME in out and f"{GPU_MIB} MiB" in out, out
    _, out = execute("deployment/demo", "nvidia-smi", "-L")
    assert out.startswith(f"GPU 0: {GPU_NAME} (UUID: GPU-"), out
    _, out = execute("deployment/demo", "/lib/vcuda/vcuda", "doctor", check=False)
    assert "sidecar" in out, out
    _, out = execute("deployment/demo", "sh", "-c", "echo $TRITON_LIBCUDA_PATH; ls -l /lib/vcuda/libcuda.so.1")
    assert out.startswith("/lib/vcuda\n"), out
    _, out = execute("deployment/demo", "sh", "-c", "ls /dev; find / -xdev -name 'libnvidia*' 2>/dev/null; true")
    assert "nvidia" not in out, "the pod itself has neither device nor driver"


def test_the_list_of_libraries_is_that_of_the_image():
    _, out = execute("deployment/demo", "sh", "-c", 'cat /lib/vcuda/preload; echo "$LD_PRELOAD"')
    ours, injected = out.strip().split("\n")
    assert ours == injected, out


def test_several_containers_share_the_sidecar():
    apply(pod("two", pod_spec(container("a"), container("b")), annotations()))
    ready("two")
    held = [start("two", "sh", "-c", "exec pinned-memory; sleep 30", container=c) for c in "ab"]
    for process in held:
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0, out
    _, out = execute("two", "/lib/vcuda/vcuda-client", "status", "--json", container="b")
    status = json.loads(out)
    assert status["totals"]["attached"] >= 2 and status["totals"]["lost"] == 0, out
    assert "vcuda-client" not in [c["name"] for c in get("pod", "two")["spec"]["containers"]]


def test_an_init_container_of_the_users_computes():
    spec = pod_spec(initContainers=[container("prepare", command=["vectorAdd"])])
    apply(pod("init", spec, annotations()))
    ready("init")
    assert RIGHT in k("logs", "init", "-c", "prepare")


def test_a_job_completes():
    spec = dict(pod_spec(container(command=["sh", "-c", "vectorAdd && matmul"])), restartPolicy="Never")
    apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": SPACE},
           "spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": annotations()},
                                                    "spec": spec}}})
    k("wait", "--for=condition=Complete", "job/job", "--timeout=60s")
    assert RIGHT in k("logs", "job/job", "-c", "app")


def test_a_static_container_beside_is_left_alone():
    beside = container("alpine", image=node.BUSYBOX, command=["sh", "-c", "env; sleep 1000"])
    apply(pod("beside", pod_spec(container(), beside), annotations(exclude_container="alpine")))
    ready("beside")
    assert "LD_PRELOAD" not in k("logs", "beside", "-c", "alpine")
    _, out = execute("beside", "ls", "/", container="alpine")
    assert "lib" not in out.split(), out
    _, out = execute("beside", "vectorAdd")  # kubectl chooses the right container by itself
    assert RIGHT in out, out


def test_restricted_pod_security():
    apply({"apiVersion": "v1", "kind": "Namespace",
           "metadata": {"name": "restricted",
                        "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    eventually(lambda: kubectl("-n", "restricted", "get", "sa", "default"), 30, "the account")
    safe = {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"}}
    apply(pod("safe", pod_spec(container(securityContext=safe)), annotations(), "restricted"))
    ready("safe", space="restricted")
    _, out = execute("safe", "vectorAdd", space="restricted")
    assert RIGHT in out, out
    spec = get("pod", "safe", "restricted")["spec"]
    assert not spec.get("hostIPC") and not spec.get("hostPID"), spec
    kubectl("delete", "namespace", "restricted", "--wait=false")


def test_preload_by_file_survives_an_empty_environment():
    apply(pod("file", wanted=annotations(preload_mode="file")))
    ready("file")
    _, out = execute("file", "env", "-i", "/usr/local/bin/vectorAdd")
    assert RIGHT in out, out


def test_a_pod_without_the_annotation_is_untouched_byte_for_byte():
    assert as_stored(Api(), plain_pod()) == before["pod"]


def test_injection_takes_at_most_100_ms():
    api, times = Api(), {}
    for name, wanted in (("annotated", annotations()), ("plain", None)):
        times[name] = []
        for i in range(20):
            what = pod(f"{name}-{i}", wanted=wanted)
            began = time.monotonic()
            got = api.dry_run(what)
            times[name].append(time.monotonic() - began)
            assert ("vcuda-client" in json.dumps(got)) == bool(wanted)
    added = statistics.median(times["annotated"]) - statistics.median(times["plain"])
    soon(added, 0.1, "injection")
    return f"{added * 1000:.1f} ms"
