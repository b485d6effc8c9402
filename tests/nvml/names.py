#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The front exports what nvml.h declares and pynvml asks for, and nothing else.

    names.py FRONT NVML_H PYNVML_PY
"""
import re
import subprocess
import sys


def main():
    front, header, pynvml = sys.argv[1:]
    listed = subprocess.run(["nm", "-D", "--defined-only", front], capture_output=True, text=True,
                            check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
    with open(header, encoding="utf-8") as file:
        declared = set(re.findall(r"\bDECLDIR\s+(?:char\s*)?\*?\s*(nvml\w+)\s*\(", file.read()))
    with open(pynvml, encoding="utf-8") as file:
        asked = set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', file.read()))
    faults = [f"{name}: nvml.h declares it, the front does not export it"
              for name in sorted(declared - exported)]
    faults += [f"{name}: pynvml asks for it, the front does not export it"
               for name in sorted(asked - exported)]
    faults += [f"{name}: exported, but nobody knows it" for name in sorted(exported - declared - asked)]
    if len(declared) < 400 or len(asked) < 300:
        faults.append(f"found only {len(declared)} names in {header}, {len(asked)} in {pynvml}")
    for fault in faults:
        print(fault)
    if not faults:
        print(f"nvml: {len(exported)} names exported, {len(declared)} declared, {len(asked)} asked for")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
