# SPDX-License-Identifier: Apache-2.0
"""The agent's images with CUDA's libraries, where their archives were built (docs/IMAGES.md).

There is no driver here: the agent is given the software GPU's as if it were one, and then looks for
NVIDIA's own libraries as it would on a GPU node.
"""
import json
import os
import re
import unittest

import test_docker
from image import Image, path
from test_docker import BARE, docker, eventually

# What a program of the major version calls, and what is found.
FOUND = {
    "12": {"libcublas.so.12": "12.9.1", "libcublasLt.so.12": "12.9.1", "libcudnn.so.9": "9.10.2",
           "libcufft.so.11": "11.4.1", "libcurand.so.10": "10.3.10"},
    "13": {"libcublas.so.13": "13.1.0", "libcublasLt.so.13": "13.1.0", "libcudnn.so.9": "9.28.0",
           "libcufft.so.12": "12.0.0", "libcurand.so.10": "10.4.0"},
}
FOLDER = "/opt/vcuda/cuda/lib"
# One of cuDNN's is linked with the driver: the software GPU's stands in.
LOAD = f"""ln -s /opt/vcuda/lib/libvcuda-softgpu.so /tmp/libcuda.so.1
for library in {FOLDER}/*.so*; do
	LD_LIBRARY_PATH=/tmp LD_PRELOAD=$library /bin/true && echo "loaded ${{library##*/}}"
done"""
ASK = ("exec 3<>/dev/tcp/127.0.0.1/9999; printf 'GET /readyz?verbose HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")


class Variant:
    major = None

    @classmethod
    def setUpClass(cls):
        cls.name = "gpu-agent-cuda" + cls.major
        if not os.path.exists(path(cls.name)):
            raise unittest.SkipTest(f"images/build.sh build ~/.cache/vcuda {cls.name} makes it (3 GB of disk)")

    def test_it_holds_the_libraries_and_none_of_the_drivers(self):
        image = Image(self.name)
        self.assertTrue(image.tags[0].endswith("-cuda" + self.major), image.tags)
        libraries = {place.removeprefix(FOLDER + "/") for place in image.files if place.startswith(FOLDER)}
        self.assertLessEqual(set(FOUND[self.major]), libraries)
        self.assertEqual([place for place in image.files
                          if re.search(r"/lib(cuda|nvidia)[^/]*\.so", place) and "libcudart" not in place],
                         [])
        self.assertIn(f"library_path: {FOLDER}", image.files["/etc/vcuda/agent.yaml"][1].decode())

    def test_its_list_names_them_and_their_licences(self):
        image = Image(self.name)
        sbom = json.loads(image.files[f"/usr/share/doc/vcuda/{self.name}.spdx.json"][1])
        packages = {entry["name"]: entry for entry in sbom["packages"]
                    if entry["supplier"] == "Organization: NVIDIA"}
        texts = {entry["licenseId"]: entry for entry in sbom["hasExtractedLicensingInfos"]}
        self.assertGreaterEqual(len(packages), 3)
        for name, entry in packages.items():
            licence = texts[entry["licenseDeclared"]]
            self.assertIn("license agreement", licence["name"].lower())
            stands = image.files[f"/usr/share/doc/vcuda/{name}-{entry['versionInfo']}.LICENSE"][1]
            self.assertEqual(licence["extractedText"].split(), stands.decode().split())
        files = {entry["fileName"]: entry for entry in sbom["files"]}
        for place in image.files:
            if place.startswith(FOLDER):
                self.assertIn(files[place]["licenseConcluded"], texts, place)

    def test_every_library_loads_in_the_image(self):
        docker_here(self)
        _, out = docker("run", "--rm", *BARE, "--network", "none", "--tmpfs", "/tmp",
                        "--entrypoint", "sh", self.reference, "-c", LOAD, seconds=120)
        loaded = set(re.findall("^loaded (.*)$", out, re.M))
        self.assertEqual(loaded, {place.removeprefix(FOLDER + "/") for place in Image(self.name).files
                                  if place.startswith(FOLDER)}, out)

    def test_the_agent_finds_them(self):
        docker_here(self)
        name = f"{test_docker.MINE}-cuda{self.major}"
        self.addCleanup(docker, "rm", "-f", name, check=False)
        docker("run", "-d", "--name", name, *BARE, "--network", "none", "--tmpfs",
               "/var/cache/vcuda:mode=1777", self.reference, "--config", "/etc/vcuda/agent.yaml",
               "--driver", "/opt/vcuda/lib/libvcuda-softgpu.so", seconds=120)
        for library, version in FOUND[self.major].items():
            line = f'event=library.found name={library} version="{version}" path="{FOLDER}/{library}"'
            eventually(lambda line=line: line in docker("logs", name)[1], 60, line)
        _, answer = docker("exec", name, "bash", "-c", ASK)
        for library, version in FOUND[self.major].items():
            self.assertIn(f"[+] {library}: {version}, {FOLDER}/{library}", answer)


def docker_here(test):
    """Skips, or loads the archive once."""
    try:
        test_docker.Docker.setUpClass()
    except unittest.SkipTest as reason:
        test.skipTest(str(reason))
    image = Image(test.name)
    test.reference = image.tags[0]
    shown = docker("image", "inspect", "-f", "{{.Id}}", test.reference, check=False)[1].strip()
    if shown != "sha256:" + image.digest:
        docker("load", "-q", "-i", path(test.name), seconds=300)


class Cuda12(Variant, unittest.TestCase):
    major = "12"


class Cuda13(Variant, unittest.TestCase):
    major = "13"


if __name__ == "__main__":
    unittest.main()
