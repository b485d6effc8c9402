# SPDX-License-Identifier: Apache-2.0
"""The manifests of the guide that the project grew from, with the names of images changed."""
from cluster import (AGENT, SLIM, SPACE, apply, container, deployment, eventually, execute, get, k, pod,
                     pod_spec, ready)
import node

RIGHT = "sums are right"
COPY = ("cp /lib/vcuda/*.so /target/lib/vcuda/ && "
        "cp /lib/vcuda/official.libcuda.so.1 /target/lib/vcuda/libcuda.so.1")


LINE = " -n native -s 9997 -r 9998 -p 9999 -a 0x1129 -k 0x298"


def test_the_guides_own_command_line():
    """It serves, and says which driver it misses on a node without a GPU."""
    apply(pod("line", pod_spec(container(image=AGENT, command=["sh", "-c", "vcuda" + LINE]))))
    ready("line")
    log = eventually(lambda: "libcuda.so.1" in k("logs", "line") and k("logs", "line"), 20, "its log")
    assert "send=9997 recv=9998 control=9999" in log and "-a is obsolete" in log, log
    assert "install the NVIDIA driver" in log, log
    k("delete", "pod", "line", "--wait=false")


def test_step_1_and_2_of_the_guide():
    # Where there is no GPU, --driver is the one thing that the guide does not have.
    server = container("server", image=AGENT, command=[
        "sh", "-c", "gpu-agent" + ("" if node.gpu() else " --driver software") + LINE],
        env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])
    apply(deployment("guide-server", pod_spec(server, **(
        {"runtimeClassName": "nvidia"} if node.gpu() else {}))))
    k("rollout", "status", "deployment/guide-server", "--timeout=60s")
    address = get("pods", space=SPACE)
    address = [p["status"]["podIP"] for p in address["items"]
               if p["metadata"].get("labels", {}).get("app") == "guide-server"][0]
    volume = {"name": "vcuda-libs"}
    spec = pod_spec(
        container("client", image=SLIM, command=[
            "sh", "-c", f"vcuda-client 0 {address} native 9998 9997 9999 0"]),
        container("app", command=["sleep", "infinity"],
                  lifecycle={"postStart": {"exec": {"command": [
                      "/bin/sh", "-c", "mkdir -p /tmp/nvidia/lib/ && "
                      "cp -r /lib/vcuda/libcuda.so.1 /tmp/nvidia/lib/"]}}},
                  env=[{"name": "DISABLE_ADDMM_CUDA_LT", "value": "1"}],
                  volumeMounts=[dict(volume, mountPath="/lib/vcuda")]),
        hostPID=True, hostIPC=True, volumes=[dict(volume, emptyDir={})],
        initContainers=[container("init-hook", image=SLIM, command=["sh", "-c", COPY],
                                  volumeMounts=[dict(volume, mountPath="/target/lib/vcuda")])])
    # The sidecar's socket needs a folder that both see; the guide's had its own way.
    shared = {"name": "run", "emptyDir": {}}
    spec["volumes"].append(shared)
    for which in spec["containers"]:
        which.setdefault("volumeMounts", []).append({"name": "run", "mountPath": "/run/tensor-fusion"})
    apply(deployment("guide", spec))
    k("rollout", "status", "deployment/guide", "--timeout=60s")
    eventually(lambda: RIGHT in execute(
        "deployment/guide", "sh", "-c",
        "LD_PRELOAD=/lib/vcuda/libutilities.so:/lib/vcuda/libvcuda.so vectorAdd", container="app",
        check=False)[1], 20, "the program of the guide's pod")
    k("delete", "deployment", "guide", "guide-server", "--wait=false")
