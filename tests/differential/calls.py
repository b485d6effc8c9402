#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the calls of the differential test, one for each function of the driver and the runtime.

    tests/differential/calls.py FILE          C++ of the functions that functions.txt names
    tests/differential/calls.py --list        every function that could be drawn, for functions.txt
    tests/differential/calls.py --left-out    every other, and why

protocol/api says which parameters a function has; here is what each kind of parameter is drawn
from (trace.cu draws and prints).  What cannot be drawn so that every driver survives it is left
out, with the reason, in LEFT_OUT.  What a call draws depends on functions.txt too: who changes it
records the native traces anew (README.md).  CUDA13: the folder of the toolkit, for its headers.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "protocol"))
import generate  # noqa: E402
from drawn import DRAWN  # noqa: E402

# C type -> class of handles.  One class has one set of slots: the runtime's handles are the driver's.
HANDLES = {
    "CUstream": "stream", "cudaStream_t": "stream", "CUevent": "event", "cudaEvent_t": "event",
    "CUcontext": "context", "CUmodule": "module", "CUfunction": "function",
    "cudaFunction_t": "function", "CUkernel": "kernel", "cudaKernel_t": "kernel",
    "CUlibrary": "library", "cudaLibrary_t": "library", "CUgraph": "graph",
    "cudaGraph_t": "graph", "CUgraphNode": "node", "cudaGraphNode_t": "node",
    "CUgraphExec": "exec", "cudaGraphExec_t": "exec", "CUmemoryPool": "pool",
    "cudaMemPool_t": "pool", "CUmemGenericAllocationHandle": "allocation",
    "CUlinkState": "link", "CUarray": "array", "cudaArray_t": "array",
    "cudaArray_const_t": "array", "CUmipmappedArray": "mipmapped",
    "cudaMipmappedArray_t": "mipmapped", "cudaMipmappedArray_const_t": "mipmapped",
    "CUtexObject": "texture", "cudaTextureObject_t": "texture", "CUsurfObject": "surface",
    "cudaSurfaceObject_t": "surface", "CUuserObject": "user", "cudaUserObject_t": "user",
    "CUgreenCtx": "green", "CUdevResourceDesc": "description",
    "CUgraphConditionalHandle": "conditional", "cudaGraphConditionalHandle": "conditional",
}
# Structs that trace.cu has a maker for; every other one is zeros.
MADE = {
    "CUDA_ARRAY_DESCRIPTOR", "CUDA_ARRAY3D_DESCRIPTOR", "CUDA_MEMCPY2D", "CUDA_MEMCPY3D",
    "CUDA_KERNEL_NODE_PARAMS", "CUDA_MEMSET_NODE_PARAMS", "CUDA_HOST_NODE_PARAMS",
    "CUmemAllocationProp", "CUmemPoolProps", "CUmemAccessDesc", "CUmemLocation",
    "CUDA_RESOURCE_DESC", "CUDA_TEXTURE_DESC", "CUlaunchConfig", "cudaLaunchConfig_t",
    "cudaMemcpy3DParms", "cudaKernelNodeParams", "cudaMemsetParams", "cudaHostNodeParams",
    "cudaMemPoolProps", "cudaMemAccessDesc", "cudaMemLocation", "cudaResourceDesc",
    "cudaTextureDesc", "cudaChannelFormatDesc", "cudaExtent", "cudaPitchedPtr",
    "CUDA_BATCH_MEM_OP_NODE_PARAMS", "CUDA_GRAPH_INSTANTIATE_PARAMS", "cudaGraphInstantiateParams",
}
VALUES = {"dim3", "CUmemLocation", "cudaMemLocation", "cudaExtent", "cudaPitchedPtr"}
INTEGERS = {
    "int": 4, "unsigned": 4, "unsigned int": 4, "size_t": 8, "unsigned long long": 8,
    "cuuint32_t": 4, "cuuint64_t": 8, "unsigned char": 1, "unsigned short": 2, "CUdevice": 4,
    "long long int": 8,
}

# Functions that are not called, by what is wrong with it.  An expression, from the start of the name.
LEFT_OUT = [
    (r"cuGL|cudaGL|cuEGL|cudaEGL|cuVDPAU|cudaVDPAU|cuGraphics|cudaGraphics|cu\w*D3D", "graphics"),
    (r"cu\w*External|cuda\w*External|cu\w*NvSci|cuda\w*NvSci", "another program's memory"),
    (r"cu(da)?Checkpoint|cu(da)?Profiler", "of the whole process"),
    (r"cu(da)?LogsDumpToFile", "writes a file"),
    (r"cuMulticast(?!GetGranularity)|cuLogicalEndpoint|cuMemDecompress|cuMemBatchDecompress"
     r"|cuMemGetHandleForAddressRange", "needs a second GPU, or what reaches the GPU from beside it"),
    (r"cuGetExportTable|cudaGetExportTable", "answers a table of functions"),
    (r"cuLaunchGrid|cuLaunch$|cuParam|cuFuncSetBlockShape|cuFuncSetSharedSize|cu\w*MultiDevice", "of CUDA 3"),
    (r"cu\w*TexRef|cu\w*SurfRef|cuda\w*Texture\w*Reference|cudaBindTexture|cuda\w*Surface\w*Reference",
     "of CUDA 4"),
    (r"cu\w*AsyncNotification|cuda\w*AsyncNotification|cu(da)?Logs\w*Callback", "calls back at any time"),
    (r"cuCtxDetach|cuCtxAttach|cuInit|cuThreadExit|cudaThread(Exit|Sync|Get|Set)", "the frame of a trace"),
    (r"cuMemMapArrayAsync", "tiles of sparse arrays"),
    (r"__cuda|cudaFuncGetName", "of the compiler"),
]
# What a call that succeeds takes with it.
GONE = [
    (r"CtxDestroy|CtxReset|DeviceReset|PrimaryCtxRelease|ThreadExit", "GONE_ALL"),
    (r"GreenCtxDestroy|GraphDestroy|GraphRemove|MipmappedArrayDestroy|FreeMipmapped|ModuleUnload|LibraryUnload|GraphExecDestroy"
     r"|PoolDestroy", "GONE_FAMILY"),
    (r"Destroy|Free|Release|Unload|MemUnmap", "GONE_IT"),
    (r"", "GONE_NOTHING"),
]


def enums():
    """{type: its enumerators}, as the headers that trace.cu is compiled with have them."""
    found = {}
    folder = os.environ["CUDA13"] + "/include"
    for header in ("cuda.h", "driver_types.h", "cuda_runtime_api.h", "surface_types.h", "texture_types.h"):
        with open(os.path.join(folder, header)) as file:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)
        for match in re.finditer(r"enum\s+(?:__device_builtin__\s+)?(\w+)\s*\{(.*?)\}\s*(\w*)", text, re.S):
            names = re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"=[^,}]*", "", match[2]))
            for name in (match[1], match[3], match[1].removesuffix("_enum")):
                if name:
                    found.setdefault(name, names)
    for name in ("CUkernelNodeAttrID", "CUstreamAttrID"):
        found[name] = found["CUlaunchAttributeID"]
    return found


def is_left_out(name):
    return next((why for pattern, why in LEFT_OUT if re.match(pattern, name)), None)


class Cannot(Exception):
    """Which parameter no draw is known for."""


def draw(param, known, function):
    """The C++ expression that draws PARAM of FUNCTION."""
    plain = re.sub(r"\b(const|enum|struct)\b", "", param.type).replace(" ", "")
    spaced = " ".join(re.sub(r"\b(const|enum|struct)\b", "", param.type).split())
    constant, name = "const" in param.type, param.name
    base, stars = param.base.removeprefix("enum ").removeprefix("struct ").strip(), param.stars
    for functions, names, drawn in DRAWN:
        if re.fullmatch(functions, function) and re.fullmatch(names, name):
            return drawn.format(base) if "<{}>" in drawn else drawn
    if "(" in param.declaration or "[" in param.declaration:
        raise Cannot(param.declaration)
    if stars == 0:
        if base in HANDLES:
            return f'call.handle(CLASS_{HANDLES[base]})'
        if base in ("CUdeviceptr", "CUdeviceptr_v2"):
            return "call.device()"
        if base in INTEGERS:
            return f'call.number("{name}", {INTEGERS[base]})'
        if base in known:
            return f'call.choice(values_{base}, COUNT(values_{base}))'
        if base == "float":
            return "call.real()"
        if base in VALUES:
            return f"call.value<{base}>()"
        raise Cannot(param.declaration)
    if stars == 1:
        if base in HANDLES:
            if constant or name in ("dependencies", "pDependencies"):
                return f'call.handles(CLASS_{HANDLES[base]})'
            return f'call.made(CLASS_{HANDLES[base]})'
        if base in ("CUdeviceptr", "CUdeviceptr_v2"):
            return "call.made(CLASS_memory)"
        if base == "char":
            return "call.text()" if constant else "call.output(8)"
        if base in INTEGERS or base in known or base in ("float", "double"):
            unit = 8 if base == "double" else INTEGERS.get(base, 4)
            return "call.numbers()" if constant else f'call.inout("{name}", {unit})'
        if base == "void":
            if name in ("func", "fn", "entry", "hostFn", "symbol", "entryFuncAddr", "function", "hostPtr"):
                if name in ("fn", "hostFn", "function", "hostPtr", "entry", "symbol"):
                    raise Cannot(param.declaration)
                return "call.kernel()"
            if name in ("value", "data"):
                return f'call.inout("{name}", 8)'
            if re.search(r"FreeHost|HostGet", function):
                return "call.handle(CLASS_pinned)"
            if re.search(r"host|Host", name) or name in ("p",):
                return "call.host()"
            if name in ("userData", "extra", "ptr"):
                return "call.any()"
            return "call.any()"
        if base in MADE:
            return f"call.made_of<{base}>()"
        if re.fullmatch(r"\w+", base):
            return "call.zeros()" if constant else "call.output(8)"
    if stars == 2 and base == "void" and not constant:
        return "nullptr" if re.search(r"kernelParams|extra|args|optionValues|Values", name) else (
            "call.made(CLASS_pinned)" if "Host" in function else "call.made(CLASS_memory)")
    if stars == 2 and base == "char" and constant:
        return "call.text_out()"
    raise Cannot(f"{spaced} {plain} {name}")


def copy_kind(params):
    """For the direction of a copy: what its ends are, where they are addresses; arrays and symbols are the GPU's."""
    ends = {param.name: f"a{i}" for i, param in enumerate(params) if param.base == "void"}
    return f'call.copy_kind({ends.get("dst", "nullptr")}, {ends.get("src", "nullptr")})'


def rows_of(description, known):
    """{name: the C++ function that calls it}, {name: why it is left out}"""
    rows, left = {}, {}
    for entry in description.entries:
        if entry.family not in ("cuda", "cudart") or not entry.declared(13000) or entry.has("old"):
            continue
        if "abi" in entry.options and entry.options["abi"] != "13":
            continue
        why = is_left_out(entry.name)
        if entry.result not in ("CUresult", "cudaError_t"):
            why = f"answers {entry.result}"
        try:
            drawn = [] if why else [draw(param, known, entry.name) for param in entry.params]
        except Cannot as what:
            why = f"nothing is drawn for {what}"
        if why:
            left[entry.name] = why
            continue
        drawn = [copy_kind(entry.params) if "cudaMemcpyKind" in param.type else one
                 for param, one in zip(entry.params, drawn)]
        gone = gone_of(entry.name)
        types = ", ".join(param.type for param in entry.params) or "void"
        given = ", ".join(f"to<{param.type}>(a{i})" for i, param in enumerate(entry.params))
        rows[entry.name] = (f"static void call_{entry.name}(Call &call)\n{{\n"
                            + "".join(f"\tauto a{i} = {one};\n" for i, one in enumerate(drawn))
                            + f"\tcall.prepare();\n\tauto f = (unsigned (*)({types}))call.function;\n"
                            f"\tcall.result(f({given}), {gone});\n}}\n")
    return rows, left


def gone_of(name):
    return next(what for pattern, what in GONE if re.search(pattern, name))


def main():
    known = enums()
    rows, left = rows_of(generate.load(), known)
    if sys.argv[1] == "--list":
        print("\n".join(rows))
        return
    if sys.argv[1] == "--left-out":
        print("\n".join(f"{name}: {why}" for name, why in left.items()))
        return
    with open(os.path.join(HERE, "functions.txt")) as file:
        names = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    if gone := [name for name in names if name not in rows]:
        sys.exit(f"calls.py: functions.txt has {gone[0]}: {left.get(gone[0], 'no such function')}")
    used = sorted(set(re.findall(r"values_(\w+)", "".join(rows[name] for name in names))))
    out = ["// Made by tests/differential/calls.py.", ""]
    out += [f"static const long long values_{name}[] = {{{', '.join(known[name])}}};" for name in used]
    out += ["", *(rows[name] for name in names), "static const struct function functions[] = {"]
    out += [f'\t{{"{name}", call_{name}, {gone_of(name)}}},' for name in names] + ["};", ""]
    with open(sys.argv[1], "w") as file:
        file.write("\n".join(out))


if __name__ == "__main__":
    main()
