#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""archive.py normalize ARCHIVE REFERENCE | base LAYER.tar REFERENCE ARCHIVE

Image archives, of the form that `docker save` writes and every tool loads.

normalize takes out of an archive what is the tool's that built it (times, host names, names of owners,
order, labels of its own) and puts the same things back in one form: docker, podman and buildah then
give the same digests, byte for byte.  It touches the last layer, which is ours; those of the base
keep their digests, so that they are shared with everything else on that base.  The digest is
printed: that of the configuration, which names every layer by its own.

base makes an image of one layer, which keeps its digest too.
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile

EPOCH = "1970-01-01T00:00:00Z"
# What of a configuration is the image's.  The rest tells of the machine that built it.
KEPT = ("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels",
        "StopSignal")
TOOLS_LABELS = ("io.buildah.version",)


def fail(text):
    sys.exit(f"archive.py: {text}")


class Hashing:
    """A file to write to, and the digest of what was written."""

    def __init__(self, file):
        self.file, self.hash = file, hashlib.sha256()

    def write(self, data):
        self.hash.update(data)
        return self.file.write(data)


def opened_layer(archive, name):
    file = archive.extractfile(name)
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=file)
    if magic == b"\x28\xb5\x2f\xfd":
        fail(f"{name} is packed with zstd; have the tool write plain or gzip layers")
    return file


def normalized_layer(layer, out):
    """Copies a layer: sorted, of time 0, owners by number.  Its digest."""
    hashing = Hashing(out)
    # Sorting wants seeking: a packed layer is unpacked first.
    with tempfile.TemporaryFile() as plain:
        if isinstance(layer, gzip.GzipFile):
            shutil.copyfileobj(layer, plain, 1 << 20)
            plain.seek(0)
            layer = plain
        with tarfile.open(fileobj=layer) as tar, \
                tarfile.open(fileobj=hashing, mode="w|", format=tarfile.GNU_FORMAT) as copy:
            entries = {member.name.removeprefix("./").strip("/"): member for member in tar}
            for name in sorted(entries):
                member = entries[name]
                if name in ("", "."):
                    continue
                if member.islnk():
                    fail(f"{name} is a hard link to {member.linkname}: copy it, or link it softly")
                if member.uid or member.gid:
                    fail(f"{name} belongs to {member.uid}:{member.gid}, not to root")
                member.name, member.mtime, member.mode = name, 0, member.mode & 0o7777
                member.uname = member.gname = ""
                member.pax_headers = {}
                copy.addfile(member, tar.extractfile(member) if member.isfile() else None)
    return "sha256:" + hashing.hash.hexdigest()


def normalized_config(config, diffs):
    kept = {key: value for key, value in config.get("config", {}).items() if key in KEPT and value}
    if kept.get("WorkingDir") == "/":
        del kept["WorkingDir"]
    if "Labels" in kept:
        kept["Labels"] = {key: value for key, value in kept["Labels"].items() if key not in TOOLS_LABELS}
    return image_config(kept, diffs, ["base"] * (len(diffs) - 1) + ["COPY rootfs/ /"])


def image_config(config, diffs, history):
    return {"architecture": "amd64", "os": "linux", "created": EPOCH, "config": config,
            "rootfs": {"type": "layers", "diff_ids": diffs},
            "history": [{"created": EPOCH, "created_by": text} for text in history]}


def add(archive, name, file, size):
    info = tarfile.TarInfo(name)
    info.size = size
    archive.addfile(info, file)


def layer_of(file):
    """A layer as write_archive takes it: an open tar file, from its beginning."""
    file.seek(0)
    digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    size = file.tell()
    file.seek(0)
    return digest, file, size


def write_archive(path, reference, config, layers):
    """layers: (digest, file, size) in order.  Whole or not at all.  The image's digest."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(text).hexdigest()
    manifest = [{"Config": digest + ".json", "RepoTags": [reference],
                 "Layers": [name[7:] + ".tar" for name, _, _ in layers]}]
    part = path + ".part"
    with tarfile.open(part, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, file, size in {layer[0]: layer for layer in layers}.values():
            add(archive, name[7:] + ".tar", file, size)
        for name, data in ((digest + ".json", text), ("manifest.json", json.dumps(manifest).encode())):
            add(archive, name, io.BytesIO(data), len(data))
    os.replace(part, path)
    return digest


def normalize(path, reference):
    folder = os.path.dirname(os.path.abspath(path))
    with tarfile.open(path) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        config = json.load(archive.extractfile(manifest["Config"]))
        diffs, layers = list(config["rootfs"]["diff_ids"]), []
        if len(diffs) != len(manifest["Layers"]):
            fail(f"{path}: {len(manifest['Layers'])} layers, but {len(diffs)} digests")
        for number, name in enumerate(manifest["Layers"]):
            file = tempfile.TemporaryFile(dir=folder)
            layer = opened_layer(archive, name)
            if number == len(diffs) - 1:
                diffs[number] = normalized_layer(layer, file)
            else:
                shutil.copyfileobj(layer, file, 1 << 20)
            size = file.tell()
            file.seek(0)
            layers.append((diffs[number], file, size))
        print(write_archive(path, reference, normalized_config(config, diffs), layers))


def base(layer, reference, path):
    with open(layer, "rb") as file:
        only = layer_of(file)
        write_archive(path, reference, image_config({}, [only[0]], ["debian"]), [only])


if __name__ == "__main__":
    if sys.argv[1:2] == ["normalize"] and len(sys.argv) == 4:
        normalize(*sys.argv[2:])
    elif sys.argv[1:2] == ["base"] and len(sys.argv) == 5:
        base(*sys.argv[2:])
    else:
        sys.exit("usage: archive.py normalize ARCHIVE REFERENCE | base LAYER.tar REFERENCE ARCHIVE")
