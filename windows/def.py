#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The .def file of a DLL: the names of a version script that its objects define.

    windows/def.py DLL MAP NM OBJECT ...
"""
import fnmatch
import re
import subprocess
import sys


def main():
    dll, script, nm, *objects = sys.argv[1:]
    with open(script, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    words = set()
    for part in re.findall(r"global:(.*?)(?:local:|\})", text, flags=re.S):
        words.update(re.findall(r"[A-Za-z_][\w*]*", part))
    patterns = [word for word in words if "*" in word]
    lines = subprocess.run([nm, "--defined-only", "--extern-only", "--format=posix", *objects],
                           stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    kinds = {}
    for fields in (line.split() for line in lines):
        if len(fields) > 1:
            kinds[fields[0]] = fields[1]
    exported = sorted(name for name in kinds
                      if name in words or any(fnmatch.fnmatchcase(name, p) for p in patterns))
    if not exported:
        sys.exit(f"{dll}: none of the names of {script} is in its objects")
    print(f"LIBRARY {dll}\nEXPORTS")
    for name in exported:
        print(f"\t{name}{'' if kinds[name] == 'T' else ' DATA'}")


if __name__ == "__main__":
    main()
