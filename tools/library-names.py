#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the `names` statements of protocol/api/*.api: the names that NVIDIA's libraries without a front
export, with what a function returns where that is no status, how large a variable is, and the versions in
their `unserved` statements. protocol/README.md says what these mean.

    tools/library-names.py PIP [LIBRARY …]

PIP (a path) says where the newest wheels of each CUDA major are; of those only the library and
the headers are read, and nothing of them is kept but names. Run it when a library gets a new
version; what it writes is committed, so that nobody else has to.
"""
import collections
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import textwrap
import urllib.request
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(TOP, "protocol", "api")
LISTS = {  # family: (library, what its names look like, packages)
    "cusolvermg": ("libcusolverMg", "cu", ("nvidia-cusolver-cu12", "nvidia-cusolver")),
    "nvshmem": ("libnvshmem_host", "nvshmem", ("nvidia-nvshmem-cu12", "nvidia-nvshmem-cu13")),
    "cufile": ("libcufile", "cuFile", ("nvidia-cufile-cu12", "nvidia-cufile")),
}
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64",
             "manylinux2014_x86_64")
# What a name answers, whatever its header says of it, or where that says nothing.
ANSWERS = (
    (r".*GetProperty", "property"),
    (r"(cusolver|cuFile)GetVersion", "number 0"),
    (r"cusparseGetVersion", "number 1"),
    (r"nvshmem_info_get_version", "parts 2"),
    (r"nvshmemx_vendor_get_version_info", "parts 3"),
    (r"nvshmem_info_get_name", "empty"),
    (r".*GetErrorName", "word"),
    (r".*(GetErrorString|GetLastError)", "sentence"),
)
UNDECLARED = (
    (r"nvshmem_(malloc|calloc|align|ptr)|nvshmemx_mc_ptr|nvshmemx_buffer_register_symmetric", "pointer"),
    (r"nvshmemx?_(my_pe|n_pes|team_(my_pe|n_pes|translate_pe))", "value"),
    (r"nvshmem(x|id)_init_status|cuFileUseCount", "pointer"),  # 0: not started, none
)
STATUS = r"\w+Result\w*|\w+Status_t|\w+_status_t|CUfileError_t|int"


def located(pip, package):
    """(version, address) of the wheel that pip would install."""
    command = [pip, "install", "-q", "--dry-run", "--no-deps", "--ignore-installed", "--report",
               "-", "--only-binary", ":all:", "--target", "/nowhere", package]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    got = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    item = got["install"][0]
    return item["metadata"]["version"], item["download_info"]["url"]


class Wheel:
    """A zip file on a server that answers requests for a range."""

    def __init__(self, url):
        self.url = url
        head = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(head, timeout=60) as answer:
            size = int(answer.headers["content-length"])
        tail = self.part(max(0, size - 65536), size)
        end = tail.rfind(b"PK\5\6")
        count, length, start = struct.unpack("<HII", tail[end + 10:end + 20])
        directory = self.part(start, start + length)
        self.files = {}
        at = 0
        for _ in range(count):
            method, packed, n, extra, note, offset = struct.unpack(
                "<10xH8xI4xHHH8xI", directory[at:at + 46])
            self.files[directory[at + 46:at + 46 + n].decode()] = method, packed, offset
            at += 46 + n + extra + note

    def open(self, start, end):
        asked = urllib.request.Request(self.url, headers={"Range": f"bytes={start}-{end - 1}"})
        return urllib.request.urlopen(asked, timeout=120)

    def part(self, start, end):
        with self.open(start, end) as answer:
            return answer.read()

    def extract(self, name, path):
        method, packed, offset = self.files[name]
        n, extra = struct.unpack("<26xHH", self.part(offset, offset + 30))
        start = offset + 30 + n + extra
        inflate = zlib.decompressobj(-15)
        with self.open(start, start + packed) as answer, open(path, "wb") as file:
            while piece := answer.read(1 << 20):
                file.write(inflate.decompress(piece) if method == 8 else piece)
            file.write(inflate.flush())


def returned(texts, prefix):
    """{function: "pointer", "void" or "value"} where a header says that it is no status."""
    found = {}
    shape = re.compile(rf"([\w][\w \t\n*]*?[\s*])((?:{prefix})\w*)\s*\(")
    for text in texts:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"\b(\w*API|extern|static|const|inline|__host__|NVSHMEMI_\w+)\b", " ", text)
        for kind, name in shape.findall(text):
            words = kind.split()
            if "*" in kind:
                found[name] = "pointer"
            elif words and not re.fullmatch(STATUS, words[-1]):
                if words[-1] in ("void", "size_t", "ssize_t", "double", "float"):
                    found[name] = "void" if words[-1] == "void" else "value"
    return found


def read(pip, library, prefix, package):
    """(version, [(SONAME, its version node)], {name: [SONAME]}, {name: what it returns, or "holds BYTES"})"""
    version, url = located(pip, package)
    wheel = Wheel(url)
    names = collections.defaultdict(list)
    sonames, sizes = [], {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        texts = []
        for name in wheel.files:
            if re.search(r"/include/[^/]*\.h$", name):
                wheel.extract(name, path)
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
        for name in wheel.files:
            if not re.search(rf"/lib/{library}\.so\.\d+$", name):
                continue
            wheel.extract(name, path)
            soname = os.path.basename(name)
            rows = subprocess.run(["nm", "-D", "-S", "--defined-only", path], capture_output=True,
                                  text=True, check=True, timeout=60).stdout.splitlines()
            node = ""
            for row in rows:
                words = row.split()
                function, _, at = words[-1].partition("@")
                if words[-2] not in "TWBD" or not re.match(prefix, function):
                    continue
                if words[-2] in "BD":
                    sizes[function] = f"holds {int(words[1], 16)}"
                node = node or at.lstrip("@")
                names[function].append(soname)
            sonames.append((soname, node))
    return version, sonames, names, {**returned(texts, prefix), **sizes}


def answer(name, declared):
    """The word of names answers() for NAME, whose header says that it returns DECLARED."""
    if declared and declared.startswith("holds"):
        return declared
    for shape, kind in ANSWERS:
        if re.fullmatch(shape, name):
            return kind
    return declared or next((kind for shape, kind in UNDECLARED if re.fullmatch(shape, name)), "status")


def statement(kind, major, names):
    word, _, size = kind.partition(" ")
    said = f" holds({size})" if word == "holds" else f" answers({kind})" if kind != "status" else ""
    head = "names" + said + (f" major({major})" if major else "")
    return "\n".join(textwrap.wrap(f"{head} {' '.join(names)};", width=100, subsequent_indent="\t",
                                   break_long_words=False, break_on_hyphens=False, expand_tabs=False)) + "\n"


def write(pip, which):
    library, prefix, packages = LISTS[which]
    names, sonames, kinds, made_from = collections.defaultdict(list), [], {}, []
    versions = {}  # the newest that has this SONAME
    for package in packages:
        version, more, functions, other = read(pip, library, prefix, package)
        made_from.append(f"{package} {version}")
        sonames += [s for s in more if s not in sonames]
        versions.update((soname, ".".join(version.split(".")[:3])) for soname, _ in more)
        kinds.update(other)
        for name, where in functions.items():
            names[name] += [s for s in where if s not in names[name]]
    groups = collections.defaultdict(list)
    for name in sorted(names):
        majors = [s.rsplit(".", 1)[1] for s in names[name]]
        only = majors[0] if len(majors) < len(sonames) else ""
        groups[answer(name, kinds.get(name)), only].append(name)
    path = os.path.join(FOLDER, f"{which}.api")
    with open(path, encoding="utf-8") as file:
        stanza = re.sub(r"\A#[^\n]*\n", "", file.read().split("\n\n", 1)[0])
    for soname, _ in sonames:
        stanza = re.sub(rf"({re.escape(soname)}=)[\d.]+", rf"\g<1>{versions[soname]}", stanza)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# Names only, made by tools/library-names.py from {', '.join(made_from)}.\n{stanza}\n")
        for (kind, major), some in sorted(groups.items(), key=lambda g: (g[0][0] != "status", g[0])):
            file.write("\n" + statement(kind, major, some))
    print(f"{which}: {len(names)} names of {' '.join(s for s, _ in sonames)}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or any(w not in LISTS for w in sys.argv[2:]):
        sys.exit(__doc__)
    for wanted in sys.argv[2:] or LISTS:
        write(sys.argv[1], wanted)
