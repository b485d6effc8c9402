#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sbom.py NAME VERSION ROOTFS SOURCES [PACKAGES]: what an image holds, as SPDX 2.3 JSON on stdout.

Files of ROOTFS that came from a Debian package are found by the machine's dpkg (SHA-256 of the file
against the one that the package installed); the libraries of SOURCES are linked into the client.
PACKAGES: `dpkg-query` lines of the base image, where it was made here.  Nothing in it depends on when
or where it was made.
"""
import hashlib
import json
import os
import re
import subprocess
import sys

name, version, rootfs, sources = sys.argv[1:5]
listing = sys.argv[5] if len(sys.argv) > 5 else None


PLACES = {"/bin", "/usr/bin", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
          "/usr/lib/x86_64-linux-gnu/openblas-pthread", "/usr/lib/gcc/x86_64-linux-gnu/12"}
licences = {}  # those that SPDX has no name for
licensed = {}  # NVIDIA's libraries: file name -> licence


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def package(name, version, supplier, license, comment=None):
    entry = {"SPDXID": f"SPDXRef-{name}".replace("+", "-").replace(":", "-").replace("_", "-"),
             "name": name, "versionInfo": version, "supplier": supplier,
             "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": license, "licenseDeclared": license,
             "copyrightText": "NOASSERTION"}
    purl = {"Debian": f"pkg:deb/debian/{name}@{version}?arch=amd64",
            "NVIDIA": f"pkg:pypi/{name}@{version}"}.get(supplier.split()[-1])
    if purl:
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": purl}]
    if comment:
        entry["comment"] = comment
    return entry


def debian_of(path):
    """(package, version) that a library was copied from, or None."""
    base = os.path.basename(path)
    got = subprocess.run(["dpkg", "-S", f"*/{base}"], capture_output=True, text=True)
    for line in sorted(got.stdout.splitlines()):
        owner, _, place = line.partition(": ")
        folder = os.path.dirname(place)
        # Not of that name in somebody's folder of examples, hooks or completions.
        if os.path.basename(place) != base or folder not in PLACES or "diversion" in line:
            continue
        owner = owner.split(",")[0]
        shown = subprocess.run(["dpkg-query", "-W", "-f", "${binary:Package} ${Version}", owner],
                               capture_output=True, text=True).stdout.split()
        if len(shown) == 2:
            return shown[0].split(":")[0], shown[1]
    return None


def licence_of(text):
    """The name of a licence that SPDX has none for: LicenseRef-… of its first line."""
    title = next(line.strip() for line in text.splitlines() if line.strip())
    words = re.findall("[A-Za-z]+", title if "nvidia" in title.lower() else "NVIDIA " + title)
    name = "LicenseRef-" + "-".join(words).title().replace("Nvidia", "NVIDIA")
    known = licences.setdefault(name, {"licenseId": name, "name": title, "extractedText": text})
    if known["extractedText"] != text:
        sys.exit(f"sbom.py: two licences are called {title!r}")
    return name


def nvidias():
    """The packages that the agent's variants have libraries of; whose licence each library has."""
    documents = os.path.join(rootfs, "usr/share/doc/vcuda")
    if not os.path.exists(os.path.join(documents, "cuda-packages")):
        return
    with open(os.path.join(documents, "cuda-packages")) as file:
        for line in file:
            name, version, text, *libraries = line.split()
            with open(os.path.join(documents, text), encoding="utf-8") as licence:
                called = licence_of(licence.read())
            packages[name] = package(name, version, "Organization: NVIDIA", called,
                                     f"{', '.join(libraries)} in /opt/vcuda/cuda/lib; its licence is "
                                     f"/usr/share/doc/vcuda/{text}")
            licensed.update((library, called) for library in libraries)


packages = {"vcuda": package("vcuda", version, "Organization: vcuda", "Apache-2.0")}
files = []
nvidias()
for folder, folders, names in os.walk(rootfs):
    folders.sort()
    for entry in sorted(names):
        path = os.path.join(folder, entry)
        if os.path.islink(path):
            continue
        place = "/" + os.path.relpath(path, rootfs)
        files.append({"SPDXID": f"SPDXRef-File-{len(files)}", "fileName": place,
                      "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(path)}],
                      "licenseConcluded": licensed.get(entry, "NOASSERTION"),
                      "copyrightText": "NOASSERTION"})
        if "/deps/" in place or entry in ("busybox", "redis-server"):
            found = debian_of(place)
            if found:
                packages[found[0]] = package(*found, "Organization: Debian", "NOASSERTION",
                                             f"{place} is a copy out of it")
# What has no file of its own here: sources that are compiled into programs.
if name.startswith("client"):
    for library, license, where in (("libyaml", "MIT", "vcuda-client and vcuda"), ("cjson", "MIT", "vcuda-client and vcuda"),
                                    ("libzstd", "BSD-3-Clause", "vcuda-client"), ("xxhash", "BSD-2-Clause", "vcuda-client"),
                                    ("openssl", "Apache-2.0", "vcuda-client")):
        with open(os.path.join(sources, library, "VERSION")) as file:
            packages[library] = package(library, file.read().strip(), "Organization: Debian", license, f"linked into {where}")
    packages["musl"] = package("musl", "1.2.5", "Organization: musl libc", "MIT",
                               "linked into vcuda-client; as Zig 0.14.1 brings it")
if name.startswith("gpu-agent"):
    header = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libxxhash-dev"], capture_output=True, text=True).stdout
    packages["xxhash"] = package("xxhash", header or "NOASSERTION", "Organization: Debian", "BSD-2-Clause",
                                 "its header is compiled into gpu-agent and vcuda-client")
if listing:
    with open(listing) as file:
        for line in file:
            packages.setdefault(line.split()[0], package(*line.split()[:2], "Organization: Debian",
                                                         "NOASSERTION", "of the base image"))
everything = hashlib.sha256(json.dumps([files, sorted(packages)]).encode()).hexdigest()
document = {
    "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
    "name": f"ghcr.io/vcuda/{name}:{version}",
    "documentNamespace": f"https://vcuda.invalid/spdx/{name}-{version}-{everything[:16]}",
    "creationInfo": {"created": "1970-01-01T00:00:00Z",
                     "creators": ["Organization: vcuda", "Tool: images/sbom.py"]},
    "packages": [packages[key] for key in sorted(packages)], "files": files,
    **({"hasExtractedLicensingInfos": [licences[key] for key in sorted(licences)]} if licences else {}),
    "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                       "relatedSpdxElement": packages[key]["SPDXID"]} for key in sorted(packages)],
}
json.dump(document, sys.stdout, indent=1)
print()
