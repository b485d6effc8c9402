# SPDX-License-Identifier: Apache-2.0
"""The runtime front's exported stubs, for the ABI of CUDA 12 and of CUDA 13."""
from . import targets, text
from .api import abis
from .shim import exported, names


def files(api):
    out = {"cudart_hand.h": hand_header(api)}
    out["cudart_stubs.c"] = stubs(api)
    return out


def null_stream(entry):
    return ["cudaStream_t null_stream"] if entry.twin and not entry.streams else []


def hand_items(entry):
    return [p.declaration for p in entry.params] + null_stream(entry) or ["void"]


def guard(entry):
    majors = abis(entry)
    return "" if len(majors) == 2 else f"CUDART_VERSION / 1000 == {majors[0]}"


def hand_header(api):
    out = text.head(
        "What shim/runtime/ writes by hand.  Streams come with NULL already turned into\n"
        "cudaStreamPerThread for _ptsz forms; where a call names no stream, null_stream is the\n"
        "default one: cudaStreamLegacy or cudaStreamPerThread.",
        "VCUDA_SHIM_GENERATED_CUDART_HAND_H", ["<cuda_runtime_api.h>", "", '"shim/runtime/newer.h"'])
    for e in api.of("cudart"):
        if e.verb == "refused" or e.has("answers") or targets.direct(api, e):
            continue
        condition = guard(e)
        out += f"\n#if {condition}" if condition else ""
        out += "\n" + text.prototype(e.result, f"hand_{e.name}", hand_items(e))
        out += "\n#endif" if condition else ""
    return out + "\n\n#endif\n"


def arguments(entry, twin):
    out = []
    for p in entry.params:
        if twin and p in entry.streams:
            out.append(f"{p.name} ? {p.name} : cudaStreamPerThread")
        else:
            out.append(p.name)
    if null_stream(entry):
        out.append("cudaStreamPerThread" if twin else "cudaStreamLegacy")
    return out


def stub(api, entry, name, twin):
    if entry.has("answers"):
        return text.row("ANSWERS", name, entry.options["answers"]) + "\n"
    passed = dict(zip([p.name for p in entry.params] + ["null_stream"], arguments(entry, twin)))
    _, function, args = targets.call(api, entry, passed)
    rest = [name, function, text.grouped(text.parameters(entry)), text.grouped(args)]
    # What compiled code calls for itself is told where it is a launch.
    if entry.result != "cudaError_t" or entry.has("straight") and name.startswith("__"):
        return text.row("STUB_UNTOLD", entry.result, *rest) + "\n"
    rest += names(entry, args)
    if entry.has("straight"):
        return text.row("STUB_STRAIGHT", *rest) + "\n"
    return text.row("STUB", *rest) + "\n"


def asserts(api):
    """[(majors, what must hold for the stubs that hand on to the driver)]"""
    majors = {}
    for e in api.of("cudart"):
        for line in (targets.direct(api, e) or [[]])[0]:
            majors.setdefault(line, set()).update(abis(e))
    return [(sorted(of), line) for line, of in majors.items()]


def stubs(api):
    out = text.head(
        "The functions that libcudart exports, compiled for each major (shim/runtime/stub.h says\n"
        "what a row is).  What is served goes to hand_NAME in shim/runtime/.", None, [])
    out += "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda_runtime_api.h>\n\n"
    out += f"#include {text.includes('cudart_hand.h')[0]}\n"
    out += '#include "shim/runtime/forms.h"\n#include "shim/runtime/stub.h"\n\n'
    every = exported(api.of("cudart"))
    out += text.by_major(asserts(api)) + "\n"
    out += text.by_major([(abis(e), stub(api, e, name, twin)) for e, name, twin in every
                          if e.verb != "refused"])
    refused = [(e, name) for e, name, _ in every if e.verb == "refused"]
    return out + text.refusals(refused, lambda e, name: f"REFUSED_SINCE({name}, {e.since})\n"
                               if e.since else f"REFUSED({name})\n")
