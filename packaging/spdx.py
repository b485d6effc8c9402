#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a product holds and what it needs, as SPDX 2.3 JSON on stdout.

    packaging/spdx.py LIBRARIES FILE      FILE: a Debian package, a wheel or a gzipped tar archive

LIBRARIES is what old-libraries.sh made: the versions and licences of what is linked into the wheel and stands
beside it. Nothing in it depends on where it was made; the time is SOURCE_DATE_EPOCH.
"""
import glob
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile

LICENCES = {"cjson": "MIT", "hiredis": "BSD-3-Clause", "libyaml": "MIT", "libmicrohttpd": "LGPL-2.1-or-later", "libzstd": "BSD-3-Clause",
            "lz4": "BSD-2-Clause", "ncurses": "X11", "openssl": "Apache-2.0", "xxhash": "BSD-2-Clause",
            "openblas": "BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1 AND LGPL-2.1-or-later"}


def contents(path):
    """[(place, data)] of each file in it, in order."""
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            return [(name, archive.read(name)) for name in sorted(archive.namelist())]
    if path.endswith(".deb"):
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], capture_output=True, check=True, timeout=60).stdout
        archive = tarfile.open(fileobj=io.BytesIO(data))
    else:
        archive = tarfile.open(path)
    with archive:
        return sorted((member.name.removeprefix("./"), archive.extractfile(member).read())
                      for member in archive if member.isfile())


def field(path, name):
    return subprocess.run(["dpkg-deb", "--field", path, name], capture_output=True, text=True, check=True,
                          timeout=20).stdout.strip()


def package(name, version, supplier, licence, purl=None):
    entry = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name), "name": name, "versionInfo": version,
             "supplier": supplier, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
    if purl:
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return entry


def linked(libraries):
    """What old-libraries.sh built or fetched."""
    for path in sorted(glob.glob(f"{libraries}/doc/*.VERSION")):
        name = os.path.basename(path)[:-len(".VERSION")]
        with open(path) as file:
            version = file.read().strip()
        if name == "openblas":
            yield package(name, version, "Organization: OpenBLAS", LICENCES[name], f"pkg:pypi/scipy-openblas32@{version}")
        else:
            yield package(name, version, "Organization: Debian", LICENCES[name], f"pkg:deb/debian/{name}@{version}?arch=source")


# Of a header alone: dpkg finds no library of it that a package would depend on.
COMPILED_IN = {"vcuda-client": ("xxhash",), "gpu-agent": ("xxhash",)}


def compiled_in(path):
    for name in COMPILED_IN.get(field(path, "Package"), ()):
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", f"lib{name}-dev"], capture_output=True, text=True,
                                 check=True, timeout=20).stdout
        yield package(name, version, "Organization: Debian", LICENCES[name], f"pkg:deb/debian/{name}@{version}?arch=source")


def needs(path, libraries, files):
    """[(package, how the product is related to it)]."""
    if path.endswith(".deb"):
        for need in filter(None, field(path, "Depends").split(", ")):
            name, bound = re.match(r"(\S+)(?: \((.*)\))?", need).groups()
            yield package(name, bound or "NOASSERTION", "NOASSERTION", "NOASSERTION", f"pkg:deb/debian/{name}"), "DEPENDS_ON"
        for found in compiled_in(path):
            yield found, "CONTAINS"
    elif any(place.endswith("Chart.yaml") for place, _ in files):
        values = next(data for place, data in files if place == "vcuda/Chart.yaml").decode()
        for name, tag in re.findall(r"image: ghcr\.io/vcuda/([\w-]+):(\S+)", values):
            yield package(f"image-{name}", tag, "Organization: vcuda", "Apache-2.0",
                          f"pkg:oci/{name}?repository_url=ghcr.io/vcuda/{name}&tag={tag}"), "DEPENDS_ON"
    else:
        for found in linked(libraries):
            yield found, "CONTAINS"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    libraries, path = sys.argv[1:]
    files = contents(path)
    name = os.path.basename(path)
    with open(path, "rb") as file:
        whole = hashlib.sha256(file.read()).hexdigest()
    version = field(path, "Version") if path.endswith(".deb") else re.search(r"-(\d+\.\d+\.\d+)", name)[1]
    product = package("product", version, "Organization: vcuda", "Apache-2.0")
    product.update(name=name, packageFileName=name, checksums=[{"algorithm": "SHA256", "checksumValue": whole}])
    related = list(needs(path, libraries, files))
    entries = [{"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{place}",
                "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                              {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
                "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"}
               for number, (place, data) in enumerate(files)]
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 0))))
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-product")]
    relations += [("SPDXRef-product", how, found["SPDXID"]) for found, how in related]
    relations += [("SPDXRef-product", "CONTAINS", entry["SPDXID"]) for entry in entries]
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"https://vcuda.invalid/spdx/{name}-{whole[:16]}",
        "creationInfo": {"created": moment, "creators": ["Organization: vcuda", "Tool: packaging/spdx.py"]},
        "packages": [product, *(found for found, _ in related)], "files": entries,
        "relationships": [{"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}
                          for one, how, other in relations]}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
