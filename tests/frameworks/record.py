#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder do in front of the software GPU, for docs/COMPATIBILITY.md.

    tests/frameworks/record.py [--build BUILD] FRAMEWORK=PYTHON …

PYTHON has that framework; a version may stand behind its name (cupy-13.6), as a row of its own.  Writes software.json,
in which frameworks that were not named stay as they are.  Where a row ends in an error, that is what the framework said.
"""
import argparse
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "software.json")


def record(build, framework, python):
    home = os.path.join(os.path.dirname(os.path.dirname(python)), "cuda")
    env = dict(os.environ, **({"CUDA_HOME": home} if os.path.isdir(home) else {}))
    got = subprocess.run([os.path.join(build, "bin", "vcuda"), "run", "--software", "--", python,
                          os.path.join(HERE, f"{framework.partition('-')[0]}_rows.py")],
                         env=env, capture_output=True, text=True, timeout=1200)
    found = {"version": "", "answered": [], "errors": {}}
    for line in got.stdout.splitlines():
        what, _, rest = line.partition(" ")
        name, _, digest = rest.partition(" ")
        if what == "version":
            found["version"] = rest
        elif what == "row" and ":" in digest:
            found["errors"][name] = digest
        elif what == "row":
            found["answered"].append(name)
    if got.returncode and found["version"]:  # a row ended the program: those behind it were not run
        found["errors"]["the program"] = f"status {got.returncode}: {(got.stderr.strip().splitlines() or ['-'])[-1][:100]}"
    elif got.returncode or not found["version"]:
        raise SystemExit(f"{framework}: status {got.returncode}: {got.stderr.strip()[-300:]}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("pythons", nargs="+", metavar="FRAMEWORK=PYTHON")
    options = parser.parse_args()
    known = {}
    if os.path.exists(RECORD):
        with open(RECORD, encoding="utf-8") as file:
            known = json.load(file)
    for one in options.pythons:
        framework, _, python = one.partition("=")
        known[framework] = record(options.build, framework, os.path.abspath(python))
    with open(RECORD, "w", encoding="utf-8") as file:
        json.dump(known, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
