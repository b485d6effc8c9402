#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headers of cuDNN and the names that its library exports, for both majors, into
CACHE/cudnn-{8,9}: what tests/parity compares protocol/api/cudnn.api and cudnn*.h with.  Nothing that is
built needs them.  Of wheels of 700 MB it reads the directory and these files only.

    tools/fetch_cudnn.py CACHE
"""
import os
import re
import struct
import subprocess
import sys
import urllib.parse
import urllib.request
import zlib

WHEELS = {8: ("nvidia-cudnn-cu12", "8.9.7.29"), 9: ("nvidia-cudnn-cu13", "9.28.0.42")}


def fetch(url, first, last):
    request = urllib.request.Request(url, headers={"Range": f"bytes={first}-{last}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        if answer.status != 206:
            sys.exit(f"{url}: it does not give parts of a file")
        return answer.read()


def wheel(package, version):
    """(address, bytes) of the wheel for x86-64."""
    index = f"https://pypi.org/simple/{package}/"
    with urllib.request.urlopen(index, timeout=60) as answer:
        links = re.findall(r'href="([^"#]+)[^"]*"[^>]*>([^<]+)<', answer.read().decode())
    url = next(urllib.parse.urljoin(index, link) for link, name in links
               if f"-{version}-" in name and "manylinux" in name and "x86_64" in name)
    request = urllib.request.Request(url, method="HEAD")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return url, int(answer.headers["Content-Length"])


def members(url, size):
    """(name, method, packed bytes, offset of its header) of each file of the archive."""
    tail = fetch(url, size - 65536, size - 1)
    end = tail.rindex(b"PK\5\6")
    length, start = struct.unpack("<II", tail[end + 12:end + 20])
    directory, at = fetch(url, start, start + length - 1), 0
    while directory[at:at + 4] == b"PK\1\2":
        method, = struct.unpack("<H", directory[at + 10:at + 12])
        packed, = struct.unpack("<I", directory[at + 20:at + 24])
        name, extra, comment = struct.unpack("<HHH", directory[at + 28:at + 34])
        offset, = struct.unpack("<I", directory[at + 42:at + 46])
        yield directory[at + 46:at + 46 + name].decode(), method, packed, offset
        at += 46 + name + extra + comment


def member(url, method, packed, offset):
    head = fetch(url, offset, offset + 29)
    name, extra = struct.unpack("<HH", head[26:30])
    start = offset + 30 + name + extra
    data = fetch(url, start, start + packed - 1)
    return zlib.decompress(data, -15) if method == 8 else data


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for major, (package, version) in WHEELS.items():
        folder = os.path.join(sys.argv[1], f"cudnn-{major}")
        if os.path.exists(os.path.join(folder, "names")):
            continue
        os.makedirs(folder, exist_ok=True)
        url, size = wheel(package, version)
        library = os.path.join(folder, f"libcudnn.so.{major}")
        for name, *where in members(url, size):
            file = os.path.basename(name)
            if file.endswith(".h") or file == f"libcudnn.so.{major}":
                with open(os.path.join(folder, file), "wb") as out:
                    out.write(member(url, *where))
        nm = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                            text=True, check=True).stdout
        os.unlink(library)
        with open(os.path.join(folder, "names"), "w", encoding="utf-8") as out:
            out.writelines(line.split()[2].split("@")[0] + "\n" for line in nm.splitlines()
                           if line.split()[1] in "TW")


if __name__ == "__main__":
    main()
