#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that PyTorch's libraries import is there, with its version, and served.

    tests/imports/imports.py LIBRARY_DIR [LIST …]

A list (*.txt here: what `nm -D` says of the libraries in PyTorch's wheels, weak names apart) is held against the
symbol tables of our libraries and, for the libraries that have a front, against docs/COVERAGE.md:
missing 0, refused 0. What a program brings itself (NVRTC, CUPTI) is left out.
"""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COVERAGE = os.path.join(HERE, "..", "..", "docs", "COVERAGE.md")
# Prefix: family, and the library where the name has no version; the first that fits. None: the
# program's own.
FAMILIES = (("nvrtc|cupti", None, None), ("cublasLt", "cublasLt", None),
            ("cublas", "cublas", None), ("curand", "curand", None), ("cudnn", "cudnn", None), ("cufft", "cufft", None),
            ("cusolver(?!Mg)", "cusolver", None),
            ("cusparseLt", "cusparselt", "libcusparseLt.so.0"), ("cusparse", "cusparse", None),
            ("p?nccl", "nccl", "libnccl.so.2"),
            ("cusolver|nvshmem|cuFile", "without a front", None),
            ("__cuda", "__cuda", None), ("cuda", "cuda", None), ("cu[A-Z]", "cu", "libcuda.so.1"))
# Refused: what PyTorch's symmetric memory hands to kernels.
REFUSED = {"ncclDevCommCreate", "ncclDevCommDestroy", "ncclGetLsaMultimemDevicePointer",
           "ncclGetPeerDevicePointer"}


def exported(folder):
    """Every name that our libraries export, with the version as an import has it."""
    found = set()
    for library in ("libvcuda-cuda.so", "libvcuda-12.so", "libvcuda-13.so"):
        rows = subprocess.run(["nm", "-D", "--defined-only", os.path.join(folder, library)],
                              capture_output=True, text=True, check=True, timeout=60).stdout
        found |= {row.split()[2].replace("@@", "@") for row in rows.splitlines()}
    return found


def verbs():
    """{(library, name): verb} of docs/COVERAGE.md; `lib` is what its section is named after."""
    found, libraries = {}, []
    with open(COVERAGE, encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                libraries = re.findall(r"lib\w+\.so\.\d+", line)
            row = re.match(r"\| (`.*`) \| (\w+) \|(.*)", line)
            if not row:
                continue
            names = re.findall(r"`(\w+)`", row[1])
            names += [f"{names[0]}_64"] if "`_64`" in row[3] else []
            found.update({(lib, name): row[2] for lib in libraries for name in names})
    return found


def listed(path):
    """{name: (family, library or None)} of a list."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    for line in lines:
        name, _, library = line.partition("@")
        for shape, family, own in FAMILIES:
            if re.match(shape, name):
                if family:
                    yield line, name, family, library or own
                break
        else:
            yield line, name, "unknown", None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    have, served = exported(sys.argv[1]), verbs()
    failed = False
    for path in sys.argv[2:] or sorted(glob.glob(os.path.join(HERE, "*.txt"))):
        count, missing, refused = {}, {}, {}
        for line, name, family, library in listed(path):
            count[family] = count.get(family, 0) + 1
            if line not in have:
                missing.setdefault(family, []).append(line)
            elif family != "without a front" and name not in REFUSED and (
                    served.get((library, name), "refused") == "refused"):
                refused.setdefault(family, []).append(line)
        for family, n in sorted(count.items()):
            gone, no = missing.get(family, []), refused.get(family, [])
            wrong = bool(gone or no or family == "unknown")
            failed |= wrong
            print(f"{'fail' if wrong else 'pass'}  {os.path.basename(path)[:-4]}: {family}: "
                  f"{n} names, {len(gone)} missing, {len(no)} refused"
                  + "".join(f"\n      missing {name}" for name in gone[:200])
                  + "".join(f"\n      refused {name}" for name in no[:200]))
        if not count:
            sys.exit(f"{path}: no names")
    return failed


if __name__ == "__main__":
    sys.exit(main())
