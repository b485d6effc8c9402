# SPDX-License-Identifier: Apache-2.0
"""An archive of `make images`, read: what it is called, how it starts, which files it brings."""
import json
import os
import re
import tarfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "vcuda")
IMAGES = os.path.join(BUILD, "images")
with open(os.path.join(ROOT, "common", "version.h")) as file:
    VERSION = re.search(r'VCUDA_VERSION "(.*)"', file.read()).group(1)
NAMES = ("client", "client-slim", "gpu-agent", "demo", "redis")
LARGE = 64 << 20  # the contents of larger files are not kept


def path(name):
    return os.path.join(IMAGES, name + ".tar")


class Image:
    """files: place -> (size, contents); links: place -> target; all modes of both in modes."""

    def __init__(self, name):
        self.files, self.links, self.modes = {}, {}, {}
        with tarfile.open(path(name)) as archive:
            manifest = json.load(archive.extractfile("manifest.json"))[0]
            self.tags = manifest["RepoTags"]
            self.digest = manifest["Config"].removesuffix(".json")
            self.config = json.load(archive.extractfile(manifest["Config"]))
            self.layers = manifest["Layers"]
            for layer in self.layers:
                with tarfile.open(fileobj=archive.extractfile(layer)) as tar:
                    self.read(tar)

    def read(self, tar):
        for member in tar:
            place = "/" + member.name.removeprefix("./")
            self.modes[place] = member.mode
            if member.issym():
                self.links[place] = member.linkname
            elif member.isfile():
                data = tar.extractfile(member).read() if member.size < LARGE else b""
                self.files[place] = (member.size, data)

    def size(self):
        return sum(size for size, _ in self.files.values())
