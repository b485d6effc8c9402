# SPDX-License-Identifier: Apache-2.0
"""Pods with the machine's own Python and what was installed for it: no registry with such images can be reached.

Such a pod has an image of links alone, the machine's /usr without what is mounted in it (a driver), and
folders of the machine at the places where they are."""
import os
import sys

import node

IMAGE = "localhost/usr:test"


def image():
    """Makes and loads it, once for a node."""
    if os.path.ismount(node.path("usr")):
        return
    for name in ("usr", "usr-upper", "usr-work"):
        os.makedirs(node.path(name), exist_ok=True)
    node.run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/usr,upperdir={node.path('usr-upper')},"
             f"workdir={node.path('usr-work')}", node.path("usr"))
    node.make_image(IMAGE, {}, ["/usr/bin/sleep", "infinity"],
                    [(name, "usr/" + name) for name in ("bin", "sbin", "lib", "lib64")])


def dress(spec, venv=None, folders=(), at=(), env=()):
    """Makes SPEC's first container such a one: `python3` is VENV's (the machine's, without one), FOLDERS are
    where they are on the machine, AT is of pairs (place in the pod, folder of the machine)."""
    image()
    places = {"/usr": node.path("usr"), **{folder: folder for folder in folders}, **dict(at)}
    prefixes = [sys.base_prefix] + ([venv] if venv else [])
    places.update({prefix: prefix for prefix in prefixes if not prefix.startswith("/usr")})
    path = ([os.path.join(venv, "bin")] if venv else []) + ["/usr/bin", "/bin"]
    first = spec["containers"][0]
    first["image"] = IMAGE
    first["env"] = first.get("env", []) + [{"name": name, "value": value} for name, value in (
        ("HOME", "/tmp"), ("USER", "root"), ("PATH", ":".join(path)), *env)]
    volumes = [("folder" + str(i), place) for i, place in enumerate(places)]
    first["volumeMounts"] = first.get("volumeMounts", []) + [{"name": "tmp", "mountPath": "/tmp"}] + [
        {"name": name, "mountPath": place} for name, place in volumes]
    spec["volumes"] = spec.get("volumes", []) + [{"name": "tmp", "emptyDir": {}}] + [
        {"name": name, "hostPath": {"path": places[place]}} for name, place in volumes]
    return spec
