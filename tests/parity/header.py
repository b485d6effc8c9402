# SPDX-License-Identifier: Apache-2.0
"""Reads function prototypes out of NVIDIA's headers, and names out of its libraries.

What cuda.h and cuda_runtime_api.h declare is read after the compiler's preprocessor, with
__CUDA_API_VERSION_INTERNAL, under which they declare every version of every name.  Headers that
do not compile here (OpenGL, EGL, VDPAU) are read as they stand.
"""
import os
import re
import subprocess

RESULTS = ("CUresult", "cudaError_t", "const char", "void", "struct cudaChannelFormatDesc",
           "unsigned", "char", "CUptiResult", "cublasStatus_t", "cudnnStatus_t", "size_t",
           "cuComplex", "cuDoubleComplex", "float", "double", "int", "cusparseStatus_t", "cusparseMatrixType_t",
           "cusparseFillMode_t", "cusparseDiagType_t", "cusparseIndexBase_t")


def preprocess(header, includes, compiler="gcc"):
    """The text of HEADER after preprocessing with -I for each of INCLUDES."""
    command = [compiler, "-E", "-P", "-x", "c", "-D__CUDA_API_VERSION_INTERNAL", "-"]
    command += [f"-I{folder}" for folder in includes]
    return subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True,
                          check=True, timeout=60).stdout


def raw(path):
    """The text of a header without comments, directives, NVIDIA's decorations and defaults."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    text = re.sub(r'\b(CUDARTAPI|CUDART_CB|__host__|__device__|__CUDA_DEPRECATED)\b', " ", text)
    text = re.sub(r'\bextern\b(\s+"C")?', " ", text)
    return re.sub(r"\s*=\s*\w+(?=\s*[,)])", "", text)


def without_attributes(text):
    """TEXT without __attribute__((...))."""
    out, at = [], 0
    for match in re.finditer(r"__attribute__\s*\(\(", text):
        if match.start() < at:
            continue
        depth, end = 2, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        out.append(text[at:match.start()])
        at = end
    return "".join(out) + text[at:]


def prototypes(text, prefix):
    """{name: (result, parameter text)}; of two declarations of a name the first counts."""
    found = {}
    result = "|".join(re.escape(r) for r in RESULTS)
    pattern = rf"\b({result})\s*(\**)\s*({prefix}\w+)\s*\(([^;{{}}]*)\)\s*;"
    for match in re.finditer(pattern, " ".join(without_attributes(text).split())):
        result_type = f"{match.group(1)} {match.group(2)}".strip()
        found.setdefault(match.group(3), (result_type, match.group(4)))
    return found


def versions(path):
    """{(name, suffix): [CUDA versions]} from cudaTypedefs.h's PFN_name_vNNNN_suffix."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for match in re.finditer(r"\*\s*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\s*\)\s*\(", file.read()):
            found.setdefault((match.group(1), match.group(3) or ""), set()).add(
                int(match.group(2)))
    return found


def exported(library):
    """The names that a shared library exports."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True, timeout=60).stdout
    rows = (line.split() for line in out.splitlines())
    return {row[2].split("@")[0] for row in rows if len(row) == 3 and row[1] in "TtWi"}


def exported_by_node(library):
    """The functions and variables that a shared library exports, {version node or "": names}."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True, timeout=60).stdout
    found = {}
    for row in (line.split() for line in out.splitlines()):
        if len(row) == 3 and row[1] in "TtWiBDR":
            name, _, node = row[2].partition("@")
            found.setdefault(node.lstrip("@"), set()).add(name)
    return found


class Toolkit:
    """One CUDA version of the cache: its headers and its runtime library."""

    def __init__(self, cache, version, spare):
        self.version = version
        self.number = int(version.split(".")[0]) * 1000 + int(version.split(".")[1]) * 10
        self.major = self.number // 1000
        self.include = os.path.join(cache, f"cuda-{version}", "include")
        self.spare = os.path.join(cache, f"cuda-{spare}", "include")  # for headers it lacks
        self.library = os.path.join(cache, f"cuda-{version}", "lib", f"libcudart.so.{self.major}")

    def driver(self):
        return prototypes(preprocess("cuda.h", [self.include, self.spare]), "cu")

    def runtime(self):
        found = prototypes(preprocess("cuda_runtime_api.h", [self.include, self.spare]), "cuda")
        for name in ("crt/host_runtime.h", "crt/device_functions.h", "cuda_gl_interop.h",
                     "cuda_egl_interop.h", "cuda_vdpau_interop.h"):
            path = os.path.join(self.include, name)
            if not os.path.exists(path):
                path = os.path.join(self.spare, name)
            for function, prototype in prototypes(raw(path), "(?:__)?cuda").items():
                found.setdefault(function, prototype)
        return found
