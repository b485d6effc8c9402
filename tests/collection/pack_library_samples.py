#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's samples of its libraries as a collection in one tar, for collection.py --under programs --suffix=-sample.

    tests/collection/pack_library_samples.py --git DIR [--order FILE] FILE.tar.xz

--git is a repository of github.com/NVIDIA/CUDALibrarySamples.  Each source with a main() of the folders
of LIBRARIES is a program: it gets a Makefile that builds it by nvcc, with the sources beside it that have
no main() and with the library that its folder is about, and whose rule `run` runs it without arguments.
Left out: the other libraries' folders, documents, and what LEFT_OUT names.
"""
import argparse
import os
import re
import sys

import pack

LIBRARIES = {
    "cuBLAS": "cublas", "cuBLASLt": "cublasLt cublas", "cuFFT": "cufft", "cuRAND": "curand",
    "cuSOLVER": "cusolver cusolverMg cusparse cublas", "cuSPARSE": "cusparse cublas", "cuSPARSELt": "cusparseLt cusparse",
}
PROGRAM = re.compile(rb"\bmain\s*\(")
CODE = (".cu", ".c", ".cc", ".cpp", ".hxx", ".h")
LEFT_OUT = re.compile(r"legacy_callback_example"  # wants libcufft_static, whose calls nobody can take
                      r"|cuda-10\.2\.cu$")        # the form of another release
WORDS = re.compile(r"^(sample|cublas(Lt)?|cusolver|curand)_|_?example|^Lt|\.\w+$", re.I)
CALLBACK = "cuFFT/lto_callback_window_1d/src"
MAKEFILE = """ARCH = sm_90
LAUNCHER =
CUDA_HOME = /usr/local/cuda
TOP = ../..
FLAGS = -std=c++17 -O2 -Wno-deprecated-gpu-targets -Wno-deprecated-declarations

all: program

program: {sources} {made}
	nvcc -arch=$(ARCH) $(FLAGS) {flags} -I. {includes} {sources} -o $@ {libraries}

callback.h: $(TOP)/{callback}/r2c_c2r_lto_callback_device.cu
	nvcc -std=c++17 -gencode arch=compute_75,code=lto_75 -dc -fatbin $< -o callback.fatbin
	bin2c --name window_callback --type longlong callback.fatbin >$@
	ln -sf $@ r2c_c2r_lto_callback_device_fatbin.h

# What cuBLAS of before 13.2 does not declare, and each sample's helper names.
newer.h:
	echo '#include <cublasLt.h>' >asked.cu
	echo '#define CUBLASLT_MATMUL_MATRIX_SCALE_PER_BATCH_SCALAR_32F ((cublasLtMatmulMatrixScale_t)6)' >$@
	if nvcc -E asked.cu | grep -q PER_BATCH_SCALAR_32F; then : >$@; fi

run:
	$(LAUNCHER) ./program
"""


def name_of(path):
    """cublas_dot, cublaslt_LtSgemm, cufft_1d_c2c: what names it of its folder and of its file."""
    folder, file = path.split("/")[-2:]
    library = path.split("/", 1)[0]
    word = folder if file.startswith("main.") else file
    if library == "cuSPARSELt" or file.startswith("spmv_csr_op"):
        word = folder
    if "/Emulation/" in path and folder not in file:
        word = f"{folder}_{file}" if "grading" in folder else folder
    while WORDS.search(word):
        word = WORDS.sub("", word)
    return f"{library.lower()}_{word}"


def makefile(path, beside, content):
    library = path.split("/", 1)[0]
    folder = os.path.dirname(path)
    flags, made, libraries = "", "", LIBRARIES[library].split()
    if library == "cuFFT":
        flags = "-x cu"
    if "grading" in folder:
        libraries.append("openblas")
        flags = "-O0"
    if library == "cuBLASLt":
        flags, made = "-include newer.h", "newer.h"
    if folder == CALLBACK:
        flags = ""
        if "nvrtc" in path:
            flags = f"-DCUDA_ARCH=75 -DCUDA_PATH=$(CUDA_HOME) -DSOURCE_PATH=$(CURDIR)/$(TOP)/{CALLBACK}"
        else:
            made = "callback.h"
    libraries += [name for name in ("cuda", "nvrtc") if re.search(rb"[<\"/_]%s(_helper)?\.h" % name.encode(), content)]
    places = [folder, f"{library}/utils", f"{library}/Common"]
    return MAKEFILE.format(
        sources=" ".join(f"$(TOP)/{source}" for source in (path, *beside)), made=made, flags=flags, callback=CALLBACK,
        includes=" ".join(f"-I$(TOP)/{place}" for place in places), libraries=" ".join(f"-l{name}" for name in libraries))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--git", required=True)
    parser.add_argument("--order", metavar="FILE")
    parser.add_argument("file")
    args = parser.parse_args()
    blobs, contents, left = pack.Blobs(args.git), {}, []
    for library in LIBRARIES:
        for path, (mode, name, size) in pack.listed(args.git, library).items():
            content = blobs.read(name) if path.endswith(CODE) else None
            if content is not None and not LEFT_OUT.search(path):
                contents[path] = (mode, content)
            elif path.endswith(CODE):
                left.append(f"{size} {path}")
    blobs.close()
    programs = {}
    compiled = {path: content for path, (_, content) in contents.items() if path.endswith((".cu", ".c", ".cpp"))}
    for path in compiled:
        if not PROGRAM.search(compiled[path]):
            continue
        beside = [other for other in compiled if os.path.dirname(other) == os.path.dirname(path) and
                  not PROGRAM.search(compiled[other]) and "callback_device" not in other]
        if b"LtMatmulCustomFind.h" in compiled[path]:
            beside.append("cuBLASLt/Common/helpers.cpp")
        name = name_of(path)
        if name in programs:
            sys.exit(f"pack_library_samples.py: {path} and {programs[name]} are both {name}")
        programs[name] = path
        contents[f"programs/{name}-sample/Makefile"] = (0o644, makefile(path, beside, compiled[path]).encode())
    if args.order:
        with open(args.order, "rb") as file:
            contents["ORDER"] = (0o644, file.read())
    pack.write(args.file, contents, left)
    print(f"{len(programs)} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
