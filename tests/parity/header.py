# SPDX-License-Identifier: Apache-2.0
"""Reads the function prototypes out of NVIDIA's headers.

The compiler preprocesses the header (so that comments and macros are gone), and what is left is
searched for declarations that return a known type.  A prototype is kept as tokens, so that the
comparison does not depend on layout.
"""
import re
import subprocess


def preprocess(header, include, defines=(), compiler="gcc"):
    """The text of HEADER after preprocessing with -I INCLUDE."""
    command = [compiler, "-E", "-P", "-I", include, "-x", "c", "-"]
    command += [f"-D{name}" for name in defines]
    return subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True,
                          check=True, timeout=60).stdout


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


def prototypes(text, results=("CUresult",), prefix="cu"):
    """[(name, result, parameter text)] in order, each name once."""
    found = {}
    text = without_attributes(text)
    result = "|".join(re.escape(r) for r in results)
    pattern = rf"\b({result})\s*(\**)\s*({prefix}\w+)\s*\(([^;{{}}]*)\)\s*;"
    for match in re.finditer(pattern, text):
        name = match.group(3)
        if name not in found:
            found[name] = (name, (match.group(1) + " " + match.group(2)).strip(),
                           " ".join(match.group(4).split()))
    return list(found.values())
