#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvcc for the programs of a collection (run.py): the one that `make deps` fetched, for PTX whatever
machine code the Makefile asks for, with the headers of CUDA's libraries."""
import os
import re
import sys

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "vcuda")
CUDA = os.path.join(CACHE, "cuda-13.0")
HEADERS = ("cublas-13", "cufft-12", "cusparse-12.9", "cusolver-12", "cudnn-9", "cusparselt-cu13",
           "nccl-cu13", "pip-12.9/nvidia/curand/include")
TARGETS = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code")


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))
    words, asked, rest = iter(sys.argv[1:]), "", []
    for word in words:
        if word in TARGETS:
            asked += next(words, "") + " "
        elif word.split("=", 1)[0] in TARGETS:
            asked += word + " "
        else:
            rest.append(word)
    # What needs sm_90 says so; all else is for the software GPU's own 8.0.
    newest = max((int(n) for n in re.findall(r"_(\d+)", asked)), default=0)
    command = [os.path.join(CUDA, "bin", "nvcc"), f"-arch=compute_{90 if newest >= 90 else 80}", *rest]
    for folder in HEADERS:
        command += ["-isystem", os.path.join(CACHE, folder)]
    os.execv(command[0], [*command, f"-L{here}/lib64", f"-L{CUDA}/lib"])


main()
