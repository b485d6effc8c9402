#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A collection's sources as one tar, for a machine that can fetch nothing (tests/gpu/collection.py).

    tests/collection/pack.py --git DIR [--under src] [--suffix -cuda] [--most KB] [--without-data FOLDER]...
                             [--order FILE] FILE.tar.xz

--git is a repository as run.py has it.  The tar holds the folders whose names end with --suffix, unmodified,
and what their Makefiles and sources name of other folders beside them; a file of data is left out that
has more than --most kB (default 300), and every one above 100 kB of the folders that --without-data names.  --order is a list of names, without the suffix, those first that should
run first; it travels as ORDER.
"""
import argparse
import io
import os
import re
import subprocess
import sys
import tarfile

SOURCE = re.compile(r"\.(cu|cuh|c|cc|cpp|cxx|h|hh|hpp|inl|inc|mk)$|/(Makefile|makefile)[^/]*$")
BESIDE = re.compile(rb"\.\./([A-Za-z0-9_+.-]+)")


class Blobs:
    def __init__(self, git):
        self.cat = subprocess.Popen(["git", "--git-dir", git, "cat-file", "--batch"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, name):
        self.cat.stdin.write(f"{name}\n".encode())
        self.cat.stdin.flush()
        head = self.cat.stdout.readline().split()
        return self.cat.stdout.read(int(head[2]) + 1)[:-1] if head[1] == b"blob" else None

    def close(self):
        self.cat.stdin.close()
        self.cat.wait()


def listed(git, under):
    """{path: (mode, name of the blob, size)}; a link is the file that it leads to.  What a partial clone
    has not got has no size, and is no file."""
    text = subprocess.run(["git", "--git-dir", git, "ls-tree", "-r", "-l", "-z", "HEAD", os.path.join(under, "")],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    found, links = {}, {}
    for line in filter(None, text.split("\0")):
        about, path = line.split("\t", 1)
        mode, kind, name, size = about.split()
        if kind == "blob" and size.isdigit():
            (links if mode == "120000" else found)[path] = (int(mode[-3:], 8), name, int(size))
    blobs = Blobs(git)
    for path, (_, name, _) in links.items():
        target = os.path.normpath(os.path.join(os.path.dirname(path), (blobs.read(name) or b"").decode()))
        if target in found:
            found[path] = found[target]
    blobs.close()
    return found


def write(path, contents, left):
    """A tar of CONTENTS, {path: (mode, bytes)}; says what was LEFT out of it, "SIZE PATH" each."""
    with tarfile.open(path, "w:xz", preset=9) as tar:
        for name, (mode, content) in sorted(contents.items()):
            info = tarfile.TarInfo(name)
            info.mode, info.size = mode, len(content)
            tar.addfile(info, io.BytesIO(content))
    print("\n".join(sorted(left, key=lambda line: -int(line.split()[0]))))
    print(f"{len(contents)} files, {os.path.getsize(path) / 1e6:.1f} MB; left out: {len(left)}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--git", required=True)
    parser.add_argument("--under", default="src")
    parser.add_argument("--suffix", default="-cuda")
    parser.add_argument("--most", type=int, default=300, metavar="KB")
    parser.add_argument("--without-data", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--order", metavar="FILE")
    parser.add_argument("file")
    args = parser.parse_args()
    files, blobs = listed(args.git, args.under), Blobs(args.git)
    beside, contents, left = set(), {}, []

    def folder(path):
        return path[len(args.under) + 1:].split("/", 1)[0]

    def take(path):
        mode, name, size = files[path]
        most = min(args.most, 100) if folder(path) in args.without_data else args.most
        if size > 1000 * most and not SOURCE.search(path):
            left.append(f"{size} {path}")
            return
        content = blobs.read(name)
        if content is not None:
            contents[path] = (mode, content)

    for path in files:
        if folder(path).endswith(args.suffix):
            take(path)
            if SOURCE.search(path) and path in contents:
                beside |= set(BESIDE.findall(contents[path][1]))
    for path in files:
        if folder(path).encode() in beside and path not in contents and "/" in path[len(args.under) + 1:]:
            take(path)
    blobs.close()
    if args.order:
        with open(args.order, "rb") as file:
            contents["ORDER"] = (0o644, file.read())
    write(args.file, contents, left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
