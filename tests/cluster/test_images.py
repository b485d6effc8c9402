# SPDX-License-Identifier: Apache-2.0
"""What the images hold and say of themselves."""
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile

import node
from cluster import BUILD, ROOT, VERSION

IMAGES = os.path.join(BUILD, "images")


class Image:
    """An archive of `make images`: its configuration and its files."""

    def __init__(self, name):
        self.path = os.path.join(IMAGES, name + ".tar")
        self.files, self.links = {}, {}
        with tarfile.open(self.path) as archive:
            manifest = json.load(archive.extractfile("manifest.json"))[0]
            self.tags = manifest["RepoTags"]
            self.digest = manifest["Config"]
            self.config = json.load(archive.extractfile(manifest["Config"]))
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=io.BytesIO(archive.extractfile(layer).read())) as tar:
                    for member in tar:
                        place = "/" + member.name.lstrip("./")
                        assert not member.mode & 0o6000 or "demo" in name or "agent" in name, place
                        if member.issym():
                            self.links[place] = member.linkname
                        elif member.isfile():
                            self.files[place] = (member.size, tar.extractfile(member).read()
                                                 if member.size < 64 << 20 else b"")


def test_the_client_is_small_static_and_nobody():
    image = Image("client")
    config = image.config["config"]
    assert sum(size for size, _ in image.files.values()) <= 8 << 20
    assert config["User"] == "65532:65532" and config["Entrypoint"] == ["/usr/bin/vcuda-client"], config
    assert image.tags == [f"ghcr.io/vcuda/client:{VERSION}"], image.tags
    assert image.links["/lib/vcuda"] == "/opt/vcuda"
    program = image.files["/opt/vcuda/vcuda-client"][1]
    # No interpreter: nothing of the image's is loaded.
    assert program[:4] == b"\x7fELF" and b"ld-linux" not in program and b"ld-musl" not in program
    names = image.files["/opt/vcuda/preload.list"][1].decode().split()
    assert names[:2] == ["libutilities.so", "libvcuda.so"]
    for name in names:
        assert "/opt/vcuda/" + name in image.files, name
    assert not [place for place in image.files if "softgpu" in place or place.endswith("/sh")]
    return f"{sum(size for size, _ in image.files.values()) / 1048576:.1f} MiB"


def test_what_is_preloaded_and_the_command_run_on_old_systems():
    for place, (_, data) in Image("client").files.items():
        if place.startswith("/opt/vcuda/") and data[:4] == b"\x7fELF":
            newest = max((tuple(map(int, got.split(b"."))) for got in
                          re.findall(rb"GLIBC_(2\.\d+)", data)), default=(2, 0))
            assert newest <= (2, 28), (place, newest)


def test_labels_and_lists_of_what_is_in_them():
    for name in ("client", "client-slim", "gpu-agent", "demo"):
        image = Image(name)
        labels = image.config["config"]["Labels"]
        for label in ("title", "version", "licenses", "vendor", "description"):
            assert labels.get("org.opencontainers.image." + label), (name, label)
        sbom = json.loads(image.files[f"/usr/share/doc/vcuda/{name}.spdx.json"][1])
        with open(os.path.join(IMAGES, name + ".spdx.json")) as file:
            assert json.load(file) == sbom
        assert sbom["spdxVersion"] == "SPDX-2.3"
        for entry in sbom["files"]:
            data = image.files[entry["fileName"]][1]
            assert entry["checksums"][0]["checksumValue"] == hashlib.sha256(data).hexdigest(), entry
        packages = {package["name"] for package in sbom["packages"]}
        wanted = {"client": {"vcuda", "libyaml", "cjson", "musl"}, "client-slim": {"busybox-static"},
                  "gpu-agent": {"libmicrohttpd12", "libyaml-0-2", "libcjson1", "libc6"},
                  "demo": {"libc6"}}[name]
        assert wanted <= packages, (name, sorted(packages))


def test_the_agent_brings_its_libraries_and_none_of_the_drivers():
    image = Image("gpu-agent")
    places = list(image.files) + list(image.links)
    assert not [p for p in places if re.search(r"/lib(cuda|nvidia)[^/]*\.so", p)], "the driver's"
    for name in ("gpu-agent", "vcuda", "vcuda-client"):
        assert image.links["/usr/local/bin/" + name] == "/opt/vcuda/bin/" + name
    assert image.config["config"]["User"] == "65532:65532"
    assert set(image.config["config"]["ExposedPorts"]) == {"9997/tcp", "9998/tcp", "9999/tcp"}


def test_the_same_build_gives_the_same_images():
    before = {name: Image(name).digest for name in ("client", "client-slim", "gpu-agent", "demo")}
    got = subprocess.run([os.path.join(ROOT, "images", "build.sh"), BUILD, node.CACHE],
                         capture_output=True, text=True, timeout=300)
    assert got.returncode == 0, got.stderr
    assert {name: Image(name).digest for name in before} == before, got.stdout
