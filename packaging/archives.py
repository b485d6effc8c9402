#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Archives of a release that are the same bytes each time: sorted, of one time, owned by root.

    packaging/archives.py chart OUT             the Helm chart: vcuda-VERSION.tgz, as `helm package` names it
    packaging/archives.py binaries WHEEL OUT    the files of the wheel in bin/ and lib/vcuda/: vcuda-VERSION-linux-x86_64.tar.gz

SOURCE_DATE_EPOCH is the time of the files.
"""
import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def write(path, files):
    """files: {name: (data, mode)}."""
    moment = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    with open(path, "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            data, mode = files[name]
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, moment
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(data))
    print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")


def chart(out):
    folder = f"{ROOT}/deploy/helm/vcuda"
    tracked = subprocess.run(["git", "-C", folder, "ls-files", "-z"], capture_output=True, check=True, timeout=20).stdout
    with open(f"{folder}/.helmignore") as file:
        ignored = [line.strip().lstrip("/") for line in file if line.startswith("/")]
    files = {}
    for name in filter(None, tracked.decode().split("\0")):
        if any(name == entry or entry.endswith("/") and name.startswith(entry) for entry in ignored):
            continue
        with open(f"{folder}/{name}", "rb") as file:
            files[f"vcuda/{name}"] = (file.read(), 0o644)
    version = re.search(r"^version: (.*)$", files["vcuda/Chart.yaml"][0].decode(), re.M)[1]
    write(f"{out}/vcuda-{version}.tgz", files)


def binaries(wheel, out):
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            folder, _, name = entry.filename.partition("/")
            top = f"{folder.removesuffix('.data').removesuffix('.dist-info')}-linux-x86_64"
            if name.startswith("scripts/"):
                place = f"bin/{name[8:]}"
            elif name.startswith("data/"):
                place = name[5:]
            elif name.startswith("licenses/"):
                place = name
            else:
                continue
            files[f"{top}/{place}"] = (archive.read(entry), entry.external_attr >> 16 & 0o777)
    write(f"{out}/{top}.tar.gz", files)


if __name__ == "__main__":
    if sys.argv[1:2] == ["chart"] and len(sys.argv) == 3:
        chart(sys.argv[2])
    elif sys.argv[1:2] == ["binaries"] and len(sys.argv) == 4:
        binaries(*sys.argv[2:])
    else:
        sys.exit(__doc__)
