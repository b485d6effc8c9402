# SPDX-License-Identifier: Apache-2.0
"""What the images hold and say of themselves; that it does not matter which tool built them."""
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from image import BUILD, CACHE, IMAGES, NAMES, ROOT, VERSION, Image, path



class Archives(unittest.TestCase):
    def test_the_client_is_small_static_and_nobody(self):
        image = Image("client")
        config = image.config["config"]
        # 8.2 MiB on 2026-11-28, 3.2 of them the sidecar with OpenSSL and zstd, 4.4 the fronts; packed, as docs/IMAGES.md says.
        self.assertLessEqual(image.size(), 9 << 20)
        with open(path("client"), "rb") as file:
            self.assertLessEqual(len(gzip.compress(file.read())), 3 << 20)
        self.assertEqual(config["User"], "65532:65532")
        self.assertEqual(config["Entrypoint"], ["/usr/bin/vcuda-client"])
        self.assertEqual(image.tags, [f"ghcr.io/vcuda/client:{VERSION}"])
        self.assertEqual(image.links["/lib/vcuda"], "/opt/vcuda")
        program = image.files["/opt/vcuda/vcuda-client"][1]
        # No interpreter: nothing of the image's is loaded.
        self.assertEqual(program[:4], b"\x7fELF")
        self.assertNotIn(b"ld-linux", program)
        self.assertNotIn(b"ld-musl", program)
        names = image.files["/opt/vcuda/preload.list"][1].decode().split()
        self.assertEqual(names[:2], ["libutilities.so", "libvcuda.so"])
        for name in names:
            self.assertIn("/opt/vcuda/" + name, image.files)
        self.assertEqual([place for place in image.files
                          if "softgpu" in place or place.endswith("/sh")], [])

    def test_what_is_preloaded_and_the_command_run_on_old_systems(self):
        checked = 0
        for place, (_, data) in Image("client").files.items():
            if place.startswith("/opt/vcuda/") and data[:4] == b"\x7fELF":
                newest = max((tuple(map(int, got.split(b"."))) for got in
                              re.findall(rb"GLIBC_(2\.\d+)", data)), default=(2, 0))
                self.assertLessEqual(newest, (2, 17), place)
                checked += 1
        self.assertGreater(checked, 5)

    def test_no_file_of_ours_is_setuid(self):
        for name in ("client", "client-slim"):
            image = Image(name)
            self.assertEqual([place for place in image.files if image.modes[place] & 0o6000], [])

    def test_labels_and_lists_of_what_is_in_them(self):
        linked = {"vcuda", "libyaml", "cjson", "openssl", "libzstd", "xxhash", "musl"}
        wanted = {"client": linked, "client-slim": {"busybox-static", *linked},
                  "gpu-agent": {"libmicrohttpd12", "libyaml-0-2", "libcjson1", "libc6", "libzstd1", "libhiredis0.14", "xxhash"},
                  "demo": {"libc6"}, "redis": {"redis-server", "libjemalloc2", "libc6"}}
        for name in NAMES:
            image = Image(name)
            labels = image.config["config"]["Labels"]
            for label in ("title", "version", "licenses", "vendor", "description"):
                self.assertTrue(labels.get("org.opencontainers.image." + label), (name, label))
            sbom = json.loads(image.files[f"/usr/share/doc/vcuda/{name}.spdx.json"][1])
            with open(os.path.join(IMAGES, name + ".spdx.json")) as file:
                self.assertEqual(json.load(file), sbom)
            self.assertEqual(sbom["spdxVersion"], "SPDX-2.3")
            for entry in sbom["files"]:
                data = image.files[entry["fileName"]][1]
                self.assertEqual(entry["checksums"][0]["checksumValue"],
                                 hashlib.sha256(data).hexdigest(), entry)
            packages = {package["name"] for package in sbom["packages"]}
            self.assertLessEqual(wanted[name], packages)

    def test_licences_of_what_is_linked_in(self):
        for name, wanted in (("client", ("libyaml", "cJSON", "OpenSSL", "zstd", "xxhash")), ("gpu-agent", ("xxhash",))):
            places = Image(name).files
            for library in wanted:
                self.assertGreater(places[f"/usr/share/doc/vcuda/{library}.LICENSE"][0], 500, (name, library))

    def test_what_programs_and_libraries_need_is_there(self):
        for name in ("gpu-agent", "demo", "redis"):
            image = Image(name)
            there = {os.path.basename(place) for place in (*image.files, *image.links)}
            checked = 0
            for place, (_, data) in image.files.items():
                if not place.startswith(("/opt/", "/usr/local/bin/")) or data[:4] != b"\x7fELF":
                    continue
                with tempfile.NamedTemporaryFile() as file:
                    file.write(data)
                    file.flush()
                    said = subprocess.run(["objdump", "-p", file.name], capture_output=True, text=True, check=True, timeout=60).stdout
                needed = set(re.findall(r"NEEDED +(\S+)", said))
                # A program's CUDA runtime is preloaded.
                missing = {one for one in needed - there if name != "demo" or not one.startswith("libcudart")}
                self.assertEqual(missing, set(), (name, place))
                checked += 1
            self.assertGreater(checked, 0, name)

    def test_the_agent_brings_its_libraries_and_none_of_the_drivers(self):
        image = Image("gpu-agent")
        places = list(image.files) + list(image.links)
        self.assertEqual([p for p in places if re.search(r"/lib(cuda|nvidia)[^/]*\.so", p)], [])
        for name in ("gpu-agent", "vcuda", "vcuda-client", "vcuda-top"):
            self.assertEqual(image.links["/usr/local/bin/" + name], "/opt/vcuda/bin/" + name)
        config = image.config["config"]
        self.assertEqual(config["User"], "65532:65532")
        self.assertEqual(set(config["ExposedPorts"]), {"9997/tcp", "9998/tcp", "9999/tcp"})


class AnyTool(unittest.TestCase):
    """Each tool that works here builds what `make images` built, byte for byte."""

    def rebuilt(self, tool, **environment):
        if not shutil.which(tool):
            self.skipTest(f"{tool} is not installed")
        if tool == "docker" and subprocess.run(["docker", "version"], capture_output=True,
                                               timeout=20).returncode:
            self.skipTest("no docker engine answers (tests/images/engine.sh run make test-images)")
        before = {}
        for name in NAMES:
            with open(path(name), "rb") as file:
                before[name] = hashlib.file_digest(file, "sha256").hexdigest()
        got = subprocess.run([os.path.join(ROOT, "images", "build.sh"), BUILD, CACHE],
                             capture_output=True, text=True, timeout=400,
                             env=dict(os.environ, TOOL=tool, **environment))
        self.assertEqual(got.returncode, 0, got.stderr)
        for name in NAMES:
            with open(path(name), "rb") as file:
                self.assertEqual(hashlib.file_digest(file, "sha256").hexdigest(), before[name],
                                 f"{name}: {tool} built another\n{got.stdout}")

    def test_buildah_builds_the_same(self):
        self.rebuilt("buildah")

    def test_podman_builds_the_same(self):
        self.rebuilt("podman")

    def test_docker_builds_the_same(self):
        self.rebuilt("docker", DOCKER_BUILDKIT="0")

    def test_dockers_buildkit_builds_the_same(self):
        debians = os.path.join(CACHE, "docker", "usr", "bin")  # engine.sh's: a client that needs no plug-in
        if not shutil.which("docker"):
            self.skipTest("docker is not installed")
        if not subprocess.run(["docker", "buildx", "version"], capture_output=True).returncode:
            debians = ""
        elif not os.path.exists(debians):
            self.skipTest("docker has no buildx here")
        self.rebuilt("docker", DOCKER_BUILDKIT="1", PATH=f"{debians}:{os.environ['PATH']}".strip(":"))


class Normalizing(unittest.TestCase):
    """images/archive.py on archives as other tools would write them."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def normalized(self, config, layers):
        """(exit status, what it prints) for an archive with those layers, put as docker 25 puts them."""
        path = os.path.join(self.folder.name, "archive.tar")
        names = [f"blobs/sha256/{number:064x}" for number in range(len(layers) + 1)]
        with tarfile.open(path, "w") as archive:
            for name, data in ((names[0], json.dumps(config).encode()), *zip(names[1:], layers),
                               ("manifest.json", json.dumps([{
                                   "Config": names[0], "RepoTags": None, "Layers": names[1:]}]).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        got = subprocess.run([os.path.join(ROOT, "images", "archive.py"), "normalize", path,
                              f"ghcr.io/vcuda/client:{VERSION}"], capture_output=True, text=True)
        self.written = path
        return got.returncode, (got.stdout + got.stderr).strip()

    @staticmethod
    def layer(*members):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, more in members:
                info = tarfile.TarInfo(name)
                info.mtime, info.uname = 1234567890.5, "root"
                for key, value in more.items():
                    setattr(info, key, value)
                tar.addfile(info)
        return data.getvalue()

    def config(self, *layers):
        return {"config": {}, "rootfs": {"diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()
                                                      for layer in layers]}}

    def test_a_packed_layer_in_another_order_of_another_time(self):
        image = Image("client")
        with tarfile.open(path("client")) as archive:
            layer = archive.extractfile(image.layers[0]).read()
        out = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar, \
                tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as copy:
            for member in reversed(tar.getmembers()):
                member.mtime, member.uname, member.gname = 1234567890.5, "root", "root"
                member.name = "./" + member.name
                copy.addfile(member, tar.extractfile(member) if member.isfile() else None)
        config = dict(image.config, created="2031-01-01T00:00:00Z", container="9" * 64, docker_version="99")
        config["config"] = dict(image.config["config"], Hostname="9" * 12, Cmd=None, WorkingDir="/")
        config["rootfs"] = {"type": "layers",
                            "diff_ids": ["sha256:" + hashlib.sha256(out.getvalue()).hexdigest()]}
        status, digest = self.normalized(config, [gzip.compress(out.getvalue())])
        self.assertEqual((status, digest), (0, image.digest))
        with open(self.written, "rb") as mine, open(path("client"), "rb") as first:
            self.assertEqual(mine.read(), first.read())

    def test_layers_of_the_base_are_left_alone(self):
        base, ours = self.layer(("z", {}), ("a", {})), self.layer(("x", {}))
        status, out = self.normalized(self.config(base, ours), [base, ours])
        self.assertEqual(status, 0, out)
        with tarfile.open(self.written) as archive:
            manifest = json.load(archive.extractfile("manifest.json"))[0]
            self.assertEqual(archive.extractfile(manifest["Layers"][0]).read(), base)
            self.assertNotEqual(archive.extractfile(manifest["Layers"][1]).read(), ours)

    def test_what_cannot_be_normalized_is_refused_with_a_sentence(self):
        for member, word in ((("f", {"type": tarfile.LNKTYPE, "linkname": "g"}), "hard link"),
                             (("f", {"uid": 1000}), "1000:0")):
            layer = self.layer(member)
            status, out = self.normalized(self.config(layer), [layer])
            self.assertEqual((status, word in out, out.count("\n")), (1, True, 0), out)
        layer = self.layer(("f", {}))
        for layers, word in (([b"\x28\xb5\x2f\xfd" + layer], "zstd"), ([layer, layer], "2 layers")):
            status, out = self.normalized(self.config(layer), layers)
            self.assertEqual((status, word in out, out.count("\n")), (1, True, 0), out)


if __name__ == "__main__":
    unittest.main()
