#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layers: common < protocol < transport < {shim, sidecar, gpu-agent}, and softgpu apart.

A file may include headers of its own folder and of the folders listed for it; anything else is
named with its line, and the exit status is 1.
"""
import os
import re
import sys

ALLOWED = {
    "common": {"common"},
    "protocol": {"common", "protocol"},
    "transport": {"common", "protocol", "transport"},
    "shim": {"common", "protocol", "shim"},
    "sidecar": {"common", "protocol", "transport", "sidecar"},
    "gpu-agent": {"common", "protocol", "transport", "gpu-agent"},
    "softgpu": {"softgpu"},
    "command": {"common", "protocol", "transport", "command"},
    "bench": {"common", "protocol", "softgpu"},
}
# The shim uses headers of common only: it links libc and nothing else.
SHIM_COMMON = {"common/wait.h", "common/cleanup.h"}


def main():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    os.chdir(top)
    faults = files = 0
    for folder in sorted(ALLOWED):
        for path, folders, names in os.walk(folder):
            for name in sorted(names):
                if not name.endswith((".c", ".h")):
                    continue
                files += 1
                file = os.path.join(path, name)
                for number, line in enumerate(open(file, encoding="utf-8"), 1):
                    got = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                    if not got or "/" not in got.group(1):
                        continue
                    target = got.group(1)
                    allowed = target.split("/")[0] in ALLOWED[folder]
                    if folder == "shim" and target.startswith("common/"):
                        allowed = target in SHIM_COMMON
                    if not allowed:
                        print(f"{file}:{number}: {folder}/ must not include {target}")
                        faults += 1
    if not files:
        sys.exit("layers.py: found no files")
    print(f"layers: {files} files, {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
