# SPDX-License-Identifier: Apache-2.0
"""cudnn.api and protocol/libraries/cudnn*.h against NVIDIA's headers and names, as tools/fetch_headers.py
has put them into the cache."""
import glob
import os
import re

import constants
import header
from constants import enumerators, raw
from generator import api, library

MAJORS = (8, 9)
HEADERS = ("cudnn.h", "cudnn_status.h", "cudnn_backend.h", "cudnn_attributes.h")  # ours
# Graph neural networks are refused, the statuses of each major are compared apart, and counts are of the newest version.
NOT_OURS = re.compile(r"_COUNTS?$|CUDNN_STATUS_|CUDNN_GNN")


def headers(folder):
    return [path for path in sorted(glob.glob(os.path.join(folder, "*.h")))
            if not re.search(r"_v\d\.h$", path)]  # each is there twice


def text_of(folder):
    text = "".join(map(raw, headers(folder)))
    return re.sub(r"\b(CUDNNWINAPI|CUDNN_DEPRECATED(_ENUM)?)\b", " ", text)


def ours(folder):
    """Ours are constants as they stand; the statuses of the two majors are in one file."""
    text = "".join(raw(os.path.join(folder, f)) for f in HEADERS)
    old, new = re.findall(r"\benum\s*\{([^}]*CUDNN_STATUS_SUCCESS[^}]*)\}", text)
    statuses = {8: enumerators(f"enum {{{old}}}"), 9: enumerators(f"enum {{{new}}}")}
    return enumerators(text), statuses


def shape(params):
    """Types alone, arrays as pointers."""
    out = []
    for p in params.split(","):
        p = " ".join(p.replace("*", " * ").split())
        array = re.search(r"\[\w*\]$", p)
        p = re.sub(r"\[\w*\]$", "", p)
        p = re.sub(r"\s*\b\w+$", "", p) if p not in ("void", "") else p
        p = re.sub(r"\s+const$", "", p)
        out.append((p + (" *" if array else "")).strip())
    return out


def differences(description, cache, protocol):
    out = []
    mine, statuses = ours(protocol)
    for major in MAJORS:
        text = text_of(os.path.join(cache, f"cudnn-{major}"))
        theirs = header.prototypes(text, "cudnn")
        with open(os.path.join(cache, f"cudnn-{major}", "names"), encoding="utf-8") as file:
            exported = set(file.read().split())
        entries = {e.name: e for e in description.of("cudnn") if major in api.abis(e)}
        out += [f"libcudnn.so.{major} exports {n}: not described" for n in exported - set(entries)]
        out += [f"libcudnn.so.{major} has no {n}" for n in set(entries) - exported]
        for name, e in entries.items():
            if e.has("opaque") or name not in theirs:
                continue
            if shape(", ".join(library.items_of(e) or ["void"])) != shape(theirs[name][1]):
                out.append(f"cudnn.h {major}: {e.origin}: {name} takes ({theirs[name][1]})")
            if e.result.replace(" ", "") != theirs[name][0].replace(" ", ""):
                out.append(f"cudnn.h {major}: {e.origin}: {name} returns {theirs[name][0]}")
        for name, value in enumerators(text).items():
            known = statuses[major] if name.startswith("CUDNN_STATUS_") else mine
            if name.startswith("CUDNN_STATUS_") or (
                    name.startswith("CUDNN_") and not NOT_OURS.search(name)):
                if known.get(name) != value:
                    out.append(f"cudnn.h {major}: {name} is {value}, ours {known.get(name)}")
    return out + constants.differences(
        [os.path.join(protocol, f) for f in HEADERS],
        {f"cuDNN {major}": headers(os.path.join(cache, f"cudnn-{major}")) for major in MAJORS},
        skip=r"CUDNN_STATUS_|\w+_COUNTS?$")
