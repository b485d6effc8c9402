# SPDX-License-Identifier: Apache-2.0
"""The runtime front's exported stubs, for the ABI of CUDA 12 and of CUDA 13."""
from . import text
from .api import abis
from .shim import exported


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
        "VCUDA_PROTOCOL_GENERATED_CUDART_HAND_H", ["<cuda_runtime_api.h>"])
    for e in api.of("cudart"):
        if e.verb == "refused":
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


def stub(entry, name, twin):
    declared = entry.declared()
    items = text.parameters(entry) if declared else ["void"]
    out = f"/* {entry.origin}: {entry.verb} */\n"
    if not declared or entry.result != "cudaError_t" or name.startswith("__"):
        out = text.prototype(entry.result, name, items) + "\n" + out
    out += text.prototype(f"VCUDA_EXPORT {entry.result}", name, items, "\n{\n")
    if entry.verb == "refused":
        out += "".join(f"\t(void){p.name};\n" for p in entry.params) if declared else ""
        call = ["runtime_refused(" + f"CALL_{name}", f'"{name}"', f'"{entry.reason}")']
        out += text.wrap("\treturn runtime_result(", call, ");") + "\n}\n\n"
        return out
    out += f"\truntime_count(CALL_{name});\n"
    args = arguments(entry, twin)
    give = "" if entry.result == "void" else "return "
    if entry.has("straight") or entry.result != "cudaError_t":
        out += text.wrap(f"\t{give}hand_{entry.name}(", args, ");") + "\n}\n\n"
    else:
        out += text.wrap(f"\treturn runtime_result(hand_{entry.name}(", args, "));") + "\n}\n\n"
    return out


def stubs(api):
    out = text.head(
        "The functions that libcudart exports, compiled for each major.  What is served goes to\n"
        "hand_NAME in shim/runtime/; runtime_result keeps the thread's last error.", None, [])
    out += "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda_runtime_api.h>\n\n"
    for path in text.includes("cuda_calls.h", "cudart_hand.h"):
        out += f"#include {path}\n"
    out += '#include "shim/runtime/runtime.h"\n\n'
    out += '#define VCUDA_EXPORT __attribute__((visibility("default")))\n\n'
    return out + text.by_major([(abis(e), stub(e, name, twin))
                                for e, name, twin in exported(api.of("cudart"))])
