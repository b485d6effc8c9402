# SPDX-License-Identifier: Apache-2.0
"""cupti.api, cupti_callbacks.txt and the parameters that CUPTI tells of calls, against NVIDIA's headers and names
as tools/fetch_headers.py has put them into the cache."""
import glob
import os
import re

import generate
import header
from generator import api, callbacks, shim

MAJORS = (12, 13)
# Exported by CUDA 12.1, and no longer by 12.9.
OLDER = {"cuptiDeviceGetTimestamp"}
# It has a number in CUDA 12.9, and is in no header of that.
UNDECLARED = {"cuGreenCtxGetId"}
META = {"cuda": ("generated_cuda_meta.h",),
        "cudart": ("generated_cuda_runtime_api_meta.h", "generated_cudart_removed_meta.h")}


def folder(cache, major):
    return os.path.join(cache, f"cupti-{major}")


def functions(description, cache, shape, names):
    """Differences between cupti.api and NVIDIA's headers and libraries."""
    out = []
    for major in MAJORS:
        text = "".join(map(header.raw, sorted(glob.glob(os.path.join(folder(cache, major), "cupti*.h")))))
        theirs = header.prototypes(re.sub(r"\b(CUPTIAPI|CUPTIUTILAPI)\b", " ", text), "cupti")
        with open(os.path.join(folder(cache, major), "names"), encoding="utf-8") as file:
            exported = set(file.read().split())
        ours = {e.name: e for e in description.of("cupti") if major in api.abis(e)}
        out += names(set(ours) - (OLDER if major == 12 else set()), exported, f"libcupti.so.{major}")
        for name, e in ours.items():
            if e.has("opaque") or name in OLDER:
                continue
            result, params = theirs.get(name, ("nothing", ""))
            if shape(", ".join(p.declaration for p in e.params)) != shape(params):
                out.append(f"cupti.h {major}: {e.origin}: {name} takes ({params})")
            if e.result != result:
                out.append(f"cupti.h {major}: {e.origin}: {name} returns {result}")
    return out


def told():
    """cupti_callbacks.txt."""
    with open(os.path.join(generate.HERE, "api", "cupti_callbacks.txt"), encoding="utf-8") as file:
        return callbacks.read(file)


def numbers(rows, cache):
    """Differences between cupti_callbacks.txt and the headers with NVIDIA's numbers."""
    out = []
    for domain, ours in rows.items():
        for major in MAJORS:
            with open(os.path.join(folder(cache, major), f"cupti_{domain}_cbid.h"), encoding="utf-8") as file:
                found = re.findall(r"_CBID_(\w+)\s*=\s*(\d+)\s*[,}]", file.read())
            theirs = {(int(number), name) for name, number in found if name not in ("INVALID", "SIZE")}
            mine = {(number, of[major]) for number, of in ours.items() if major in of}
            out += [f"cupti_{domain}_cbid.h {major}: {name} is {number}: not described"
                    for number, name in sorted(theirs - mine)]
            out += [f"cupti_{domain}_cbid.h {major}: {name} is not {number}" for number, name in sorted(mine - theirs)]
    return out


def structs(path):
    """{call: its members, as parameters}; some have a type by its older name."""
    found = {}
    for body, name in re.findall(r"typedef struct \w+_params_st \{(.*?)\}\s*(\w+)_params;", header.raw(path), re.S):
        members = ", ".join(filter(None, (" ".join(m.split()) for m in body.split(";"))))
        found[name] = re.sub(r"\bcuda(KernelNode|Stream)Attr(ID|Value)\b", r"cudaLaunchAttribute\2", members)
    return found


def params(description, rows, cache, shape):
    """Differences between what a stub tells of a call (shim/engine/trace.h: its parameters in a struct) and the
    structs of NVIDIA's headers; and calls that are told under a number for which there is no struct."""
    out = []
    for major in MAJORS:
        for domain, family in callbacks.DOMAINS.items():
            theirs = {}
            for name in META[family]:
                path = os.path.join(folder(cache, major), name)
                if os.path.exists(path):
                    theirs.update(structs(path))
            known = callbacks.numbers(rows, domain, major)
            entries = [e for e in description.of(family) if family == "cuda" or major in api.abis(e)]
            for e, name, _ in shim.exported(entries):
                if name not in known or e.verb == "refused" or e.has("answers") or not e.params:
                    continue
                # What compiled code calls for itself has none.
                if name.startswith("__cuda") or name in UNDECLARED and major == 12:
                    continue
                number = rows[domain][known[name]][major]
                if number not in theirs:
                    out.append(f"{domain} {major}: {number}: {name} is told, and has no struct")
                elif shape(theirs[number]) != shape(", ".join(p.declaration for p in e.params)):
                    out.append(f"{domain} {major}: {e.origin}: {number} has ({theirs[number]})")
    return out
