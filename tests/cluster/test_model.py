# SPDX-License-Identifier: Apache-2.0
"""The seed's own end: T5 by unmodified PyTorch in a pod without a GPU.  Only on a node that has a GPU,
and PyTorch to put into a pod: no registry with PyTorch's image can be reached."""
import glob
import json
import os
import re
import site
import subprocess
import sys
import tarfile

import node
import python_pod
from cluster import (BUILD, CHART, ROOT, SYSTEM, VERSION, Skip, apply, eventually, execute, get, helm,
                     kubectl)

SEED = os.path.join(ROOT, "tests", "deploy", "seed", "annotated.yaml")
NAME, T5_SPACE = "deployment/tensor-fusion-test-on-cpu-node-kyverno", "tensor-fusion-test"
LIBRARIES = ("libcublas.so.*", "libcublasLt.so.*", "libcudnn*.so.*", "libnvrtc*.so.*")


def cuda_libraries():
    """NVIDIA's libraries of the node's PyTorch, as `images/build.sh … gpu-agent-cuda13` takes them."""
    found = {}
    for folder in site.getsitepackages():
        for pattern in LIBRARIES:
            for file in glob.glob(os.path.join(folder, "nvidia", "*", "lib", pattern)):
                found[os.path.basename(file)] = file
    return found


def agent_with(libraries, archive):
    """The agent's image with one layer more: the variant, which is too large to carry here."""
    with tarfile.open(os.path.join(BUILD, "images", "gpu-agent.tar")) as base, \
            open(node.path("layer.tar"), "w+b") as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for name, source in sorted(libraries.items()):
                tar.add(os.path.realpath(source), "opt/vcuda/cuda/lib/" + name)
        manifest = json.load(base.extractfile("manifest.json"))[0]
        config = json.load(base.extractfile(manifest["Config"]))
        layers = [(digest, base.extractfile(name), base.getmember(name).size)
                  for digest, name in zip(config["rootfs"]["diff_ids"], manifest["Layers"])]
        layers.append(node.layer_of(file))
        config = node.image_config(config["config"], [layer[0] for layer in layers], ["agent_with"] * len(layers))
        node.write_archive(archive, f"ghcr.io/vcuda/gpu-agent:{VERSION}-cuda13", config, layers)


def seconds(out):
    return [float(took) for took in re.findall(r"took ([0-9.]+) s", out)]


def tokens(out):
    return re.findall(r"tokens: (.*)", out)


def test_t5_in_a_pod_of_the_guide():
    if not node.gpu() or subprocess.run([sys.executable, "-c", "import torch, transformers"],
                                        capture_output=True, timeout=120).returncode:
        raise Skip("wants a node with a GPU and with PyTorch")
    archive = os.path.join(BUILD, "images", "gpu-agent-cuda13.tar")
    if not os.path.exists(archive):
        agent_with(cuda_libraries(), node.path("agent.tar"))
        archive = node.path("agent.tar")
    node.load(archive)
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set", "agent.image.suffix=-cuda13")
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=120s", seconds=130)

    manifest = json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-f", SEED))
    venv = None if sys.prefix.startswith("/usr") else sys.prefix
    python_pod.dress(manifest["spec"]["template"]["spec"], venv, [os.path.join(ROOT, "examples")],
                     env=[("HF_HUB_OFFLINE", "1")])
    kubectl("create", "namespace", T5_SPACE)
    try:
        return beside_native(manifest)
    finally:
        kubectl("delete", "namespace", T5_SPACE, "--wait=false")


def beside_native(manifest):
    apply(manifest)
    eventually(lambda: get("pods", space=T5_SPACE)["items"], 10, "a pod")
    kubectl("-n", T5_SPACE, "rollout", "status", NAME, "--timeout=60s")
    _, out = execute(NAME, "sh", "-c", "ls /dev /usr/local/nvidia; /lib/vcuda/nvidia-smi -L", space=T5_SPACE)
    assert "nvidia0" not in out and "libcuda" not in out and "GPU 0: " in out, out

    program = [sys.executable, os.path.join(ROOT, "examples", "pytorch", "t5_translate.py"), "--repeat", "4"]
    _, remote = execute(NAME, *program, space=T5_SPACE, seconds=200)
    native = subprocess.run(program, capture_output=True, text=True, timeout=200,
                            env=dict(os.environ, HF_HUB_OFFLINE="1"))
    assert native.returncode == 0, native.stderr[-1500:]
    assert len(tokens(remote)) == 4 and tokens(remote) == tokens(native.stdout), (remote, native.stdout)
    ours, theirs = min(seconds(remote)), min(seconds(native.stdout))
    return f"{ours:.3f} s, natively {theirs:.3f} s: {ours / theirs:.2f}"
