# SPDX-License-Identifier: Apache-2.0
"""A registry of one's own, with a password: what docs/KUBERNETES.md says of clusters without the
internet.  Nothing of it can be had otherwise: the tag is one that the node has not."""
import os
import tempfile

import node
from cluster import (BUILD, CHART, HELM, SPACE, SYSTEM, VALUES, VERSION, Skip, annotations, apply, eventually, execute, get,
                     helm, k, kubectl, pod, ready, why)

RIGHT = "sums are right"
PLACE = node.REGISTRY + "/mirror/vcuda"
digests = {}


def secret(space):
    kubectl("-n", space, "create", "secret", "docker-registry", "mirror", "--docker-server", node.REGISTRY,
            "--docker-username", node.REGISTRY_USER, "--docker-password", node.REGISTRY_PASSWORD)


def image_of(name, which, space=SPACE):
    spec = get("pod", name, space)["spec"]
    return [c["image"] for c in spec.get("initContainers", []) + spec["containers"] if c["name"] == which][0]


def test_the_chart_comes_from_it_by_one_value():
    if not node.registry():
        raise Skip("docker-registry and skopeo are not installed")
    for name in ("client", "gpu-agent"):
        archive = os.path.join(BUILD, "images", name + ".tar")
        digests[name] = node.push(archive, f"{PLACE}/{name}:mirrored")
    secret(SYSTEM)
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set",
         f"image.registry={PLACE},image.tag=mirrored,image.pullSecrets={{mirror}},image.pullPolicy=Always")
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=90s", seconds=100)
    agent = [p["metadata"]["name"] for p in get("pods", space=SYSTEM)["items"]
             if p["metadata"]["labels"].get("tensor-fusion.ai/component") == "agent"]
    assert image_of(agent[0], "gpu-agent", SYSTEM) == f"{PLACE}/gpu-agent:mirrored"
    assert "Succeeded" in helm("test", "vcuda", "--timeout", "60s")


def test_a_namespace_without_the_pull_secret_is_told_and_with_it_computes():
    if not digests:
        raise Skip("there is no registry")
    apply(pod("mirrored", wanted=annotations()))
    eventually(lambda: "Failed to pull image" in why("mirrored") and PLACE in why("mirrored"), 40,
               "the event says what could not be pulled")
    secret(SPACE)
    ready("mirrored", 90)
    assert image_of("mirrored", "vcuda-client") == f"{PLACE}/client:mirrored"
    _, out = execute("mirrored", "vectorAdd")
    assert RIGHT in out, out


def test_the_chart_itself_comes_from_it():
    if not digests:
        raise Skip("there is no registry")
    with tempfile.TemporaryDirectory() as folder:
        node.run(HELM, "package", CHART, "--destination", folder)
        archive = os.path.join(folder, os.listdir(folder)[0])
        login = ("--plain-http", "--username", node.REGISTRY_USER, "--password", node.REGISTRY_PASSWORD)
        node.run(*node.inside(HELM, "push", archive, f"oci://{node.REGISTRY}/charts", *login))
        shown = node.run(*node.inside(HELM, "show", "chart", f"oci://{node.REGISTRY}/charts/vcuda", *login))
    assert f"version: {VERSION}" in shown, shown


def test_digests_pin():
    if not digests:
        raise Skip("there is no registry")
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set",
         f"agent.image.digest={digests['gpu-agent']},injector.image.digest={digests['client']}")
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=90s", seconds=100)
    apply(pod("pinned", wanted=annotations()))
    ready("pinned", 60)
    assert image_of("pinned", "vcuda-client").endswith("@" + digests["client"])
    _, out = execute("pinned", "vectorAdd")
    assert RIGHT in out, out
    # As it was, for those that follow.
    helm("upgrade", "vcuda", CHART, "--reset-values", values=VALUES)
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=90s", seconds=100)
    k("delete", "pod", "mirrored", "pinned", "--wait=false")
