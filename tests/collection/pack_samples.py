#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's CUDA samples as a collection in one tar, for tests/gpu/collection.py --under programs --suffix=-sample.

    tests/collection/pack_samples.py --git DIR [--most KB] FILE.tar.xz

--git is a repository of github.com/NVIDIA/cuda-samples.  Each sample gets a Makefile that builds it by
its own CMakeLists.txt, for one architecture, and whose rule `run` runs it as run_tests.py of the samples
does.  Left out: those that draw or need NPP, nvJPEG, MPI, NvSci or another system; documents; a file of
data above --most kB.
"""
import argparse
import json
import re
import sys

import pack

SAMPLE = re.compile(r"^(Samples/[0-6]_[^/]+/([^/]+))/CMakeLists.txt$")
ELSEWHERE = re.compile(r"OpenGL|GLUT|Vulkan|EGL|npp|nvjpeg|NvSci|nvSci|\bMPI\b|D3D|cudla|FreeImage")
DOCUMENT = re.compile(r"\.(docx?|pdf|png|jpe?g|gif|lib|dll|sln|vcxproj)$|/doc/", re.I)
MAKEFILE = """ARCH = sm_90
LAUNCHER =
SAMPLE = ../../{folder}

all:
	sed -i 's/^\\( *set(CMAKE_CUDA_ARCHITECTURES\\) .*/\\1 $(ARCH:sm_%=%))/' $(SAMPLE)/CMakeLists.txt
	cmake -S $(SAMPLE) -B $(SAMPLE)/build -DCMAKE_BUILD_TYPE=Release >/dev/null
	cmake --build $(SAMPLE)/build -j 4
	test -x $(SAMPLE)/build/{name}

run:
"""


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--git", required=True)
    parser.add_argument("--most", type=int, default=300, metavar="KB")
    parser.add_argument("file")
    args = parser.parse_args()
    files, blobs = pack.listed(args.git, "."), pack.Blobs(args.git)

    def text(path):
        return blobs.read(files[path][1]).decode(errors="replace")

    arguments, contents, left = json.loads(text("test_args.json")), {}, []
    folders = {}
    for path in files:
        found = SAMPLE.match(path)
        if found and not ELSEWHERE.search(text(path)):
            folders[found[1]] = found[2]
    for path, (mode, name, size) in files.items():
        folder = "/".join(path.split("/")[:3])
        if (folder not in folders and not path.startswith(("Common/", "cmake/"))) or DOCUMENT.search(path):
            continue
        content = blobs.read(name) if size <= 1000 * args.most or pack.SOURCE.search(path) else None
        if content is None:
            left.append(f"{size} {path}")
        else:
            contents[path] = (mode, content)
    for folder, name in folders.items():
        told = arguments.get(name, {})
        makefile = MAKEFILE.format(folder=folder, name=name)
        for run in told.get("runs", [told]):
            makefile += f"\tcd $(SAMPLE)/build && $(LAUNCHER) ./{name} {' '.join(run.get('args', []))}\n"
        contents[f"programs/{name}-sample/Makefile"] = (0o644, makefile.encode())
    blobs.close()
    pack.write(args.file, contents, left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
