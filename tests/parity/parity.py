#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares protocol/api/*.api with NVIDIA's headers and with what its runtime libraries export.

    parity.py CACHE [LIBRARY …]     CACHE holds cuda-12.9, cuda-13.0 and cuda-13.5; LIBRARY is
                                    one of our fronts, as built

Any difference is named and fails: a name that is missing or too much, another prototype, another
version.  The comparison is tried on broken descriptions as well, and must notice each.
"""
import collections
import copy
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "protocol"))

import generate  # noqa: E402
from generator import api, library, shim, unserved  # noqa: E402

import constants  # noqa: E402
import cudnn  # noqa: E402
import cupti  # noqa: E402
import header  # noqa: E402
import nvml  # noqa: E402

TWINS = ("_ptsz", "_ptds")
# Functions that cudaTypedefs.h dates earlier than the first cuda.h that declares them.
UNDECLARED = {"cuGreenCtxGetId": 12090}

# Functions of Windows' driver only.
WINDOWS = {"cuWGLGetDevice"}


def shape(text):
    """A parameter list as types alone, spelled one way."""
    types = []
    for i, item in enumerate(api.split_top(text) if text.strip() not in ("", "void") else []):
        param = api.parse_param(item, i)
        kind = param.declaration if param.type == "function" else param.type
        kind = re.sub(r"\bunsigned\b(?! (?:int|long|char|short))", "unsigned int", kind)
        kind = re.sub(r"\(\s*\*\s*\w+\s*\)", "(*)", kind)
        types.append(re.sub(r"\s+", "", re.sub(r"\bstruct (?=CU\w+_st)", "", kind)))
    return types


def described(entries):
    """{exported name: entry}"""
    return {name: e for e, name, _ in shim.exported(entries)}


def names(ours, theirs, what):
    """Differences between two sets of names."""
    return ([f"{what}: not described: {n}" for n in sorted(theirs - ours)] +
            [f"{what}: described, but does not exist: {n}" for n in sorted(ours - theirs)])


def prototypes(ours, theirs, what):
    """Differences in prototypes of the names that both have."""
    out = []
    for name in sorted(set(ours) & set(theirs)):
        entry, (result, params) = ours[name], theirs[name]
        mine = shape(", ".join(p.declaration for p in entry.params))
        if mine != shape(params):
            out.append(f"{what}: {entry.origin}: {name} takes ({params})")
        if entry.result.replace(" ", "") != result.replace(" ", ""):
            out.append(f"{what}: {entry.origin}: {name} returns {result}")
    return out


def driver(description, toolkits, headers):
    """Differences between cuda.api and the cuda.h of each toolkit."""
    out = []
    for kit in toolkits:
        theirs = headers[kit.version, "driver"]
        known = [e for e in description.of("cuda") if e.since <= kit.number and
                 not e.has("opaque") and UNDECLARED.get(e.name) != kit.number]
        ours = described(known)
        what = f"cuda.h {kit.version}"
        missing = set(theirs) - set(ours)
        # What a header declares may be older than it and newer than another; a name that is
        # described with a later `since` than the header is a wrong `since`.
        late = missing & set(described(description.of("cuda")))
        out += [f"{what}: declares {n}, described as newer" for n in sorted(late)]
        out += names(set(ours) | late, set(theirs), what)
        out += prototypes(ours, theirs, what)
    return out


def since(description, found):
    """Differences between `since` and cudaTypedefs.h with those of OpenGL, VDPAU, EGL and the profiler, whose
    functions are described as opaque: nothing else holds that all of them are there."""
    out, groups = [], {}
    for e in description.of("cuda"):
        groups.setdefault(e.base, []).append(e)
    out += [f"cudaTypedefs.h: not described: {base}" for base in sorted({base for base, _ in found} - set(groups) - WINDOWS)]
    for base, entries in sorted(groups.items()):
        mine = sorted(e.since for e in entries)
        theirs = sorted(found.get((base, ""), ()))
        if mine != theirs:
            out.append(f"cudaTypedefs.h: {base} came with {theirs}, described as {mine}")
        for twin in TWINS:
            mine = sorted(int(e.options[twin[1:]] or e.since) for e in entries if e.has(twin[1:]))
            theirs = sorted(found.get((base, twin), ()))
            if mine != theirs:
                out.append(f"cudaTypedefs.h: {base}{twin} came with {theirs}, described as {mine}")
    return out


def runtime(description, toolkits, headers):
    """Differences between cudart.api and the headers and libraries of each toolkit."""
    out = []
    for kit in toolkits:
        theirs = headers[kit.version, "runtime"]
        known = [e for e in description.of("cudart")
                 if kit.major in api.abis(e) and e.since <= kit.number]
        ours = described(known)
        what = f"libcudart.so.{kit.major} of {kit.version}"
        out += names(set(ours), headers[kit.version, "exported"], what)
        declared = {n: e for n, e in ours.items() if n in theirs}
        out += prototypes(declared, theirs, f"cuda_runtime_api.h {kit.version}")
    return out


def refusals(description):
    """At most 8 of 100 functions of either are refused, each with a reason that tells a user something."""
    wrong = []
    for family in ("cuda", "cudart"):
        entries = [e for e in description.entries if e.family == family]
        refused = [e for e in entries if e.verb == "refused"]
        if len(refused) * 100 > 8 * len(entries):
            wrong.append(f"{family}.api: {len(refused)} of {len(entries)} are refused")
        wrong += [f"{e.name}: '{e.reason}' is no reason" for e in refused if len(e.reason.split()) < 3]
    return wrong


def built(description, library):
    """Differences between what one of our libraries exports and what is described: by version
    node, since it holds several fronts."""
    stem = os.path.basename(library)
    out = []
    refused = collections.defaultdict(set)
    for one, soname in unserved.sonames(description):
        refused[one.node_of(soname)] |= set(one.names(soname)) | set(one.variables(soname))
    # Those of libraries that are served and have no versions stand with those that are refused.
    for family, one in description.libraries.items():
        if one.nodeless:
            refused[""] |= one.names({e.name for e in description.of(family)})
    for node, theirs in header.exported_by_node(library).items():
        theirs = {n for n in theirs if not n.startswith("vcuda_")}
        if node in refused and stem != "libvcuda-cuda.so":
            ours = refused[node]
        else:
            family, major = (node or "libcuda.so.13")[3:].lower().split(".so.")
            entries = [e for e in description.of(family) if int(major) in api.abis(e)]
            ours = {n for _, n in shim.wide_exported(entries)} | set(described(entries))
        out += names(ours, theirs, f"{node} in {stem}" if node else stem)
    return out


def plain(kind):
    """A type as cublas.api writes it: the 16-bit floats are opaque there."""
    return re.sub(r"\b(__half|__nv_bfloat16)\b", "void", kind)


def rand(description, cache):
    """Differences between curand.api and NVIDIA's header and library of CUDA 12.9."""
    folder = os.path.join(cache, "pip-12.9", "nvidia", "curand")
    text = re.sub(r"\bCURANDAPI\b", " ", header.raw(os.path.join(folder, "include", "curand.h")))
    theirs = header.prototypes(text, "curand")
    ours = {e.name: e for e in description.of("curand")}
    exported = header.exported(os.path.join(folder, "lib", "libcurand.so.10"))
    return names(set(ours), {n for n in exported if n.startswith("curand")}, "libcurand.so.10") + \
        prototypes(ours, theirs, "curand.h")


def blas(description, cache):
    """Differences between cublas.api and what tools/fetch_headers.py has put into CACHE."""
    out = []
    for major in (12, 13):
        folder = os.path.join(cache, f"cublas-{major}")
        text = "".join(header.raw(os.path.join(folder, f)) for f in ("cublas_api.h", "cublas.h", "cublasXt.h"))
        text = re.sub(r"\b(CUBLASAPI|CUBLASWINAPI)\b", " ", text)
        text = re.sub(r"\bcublasStatus\b", "cublasStatus_t", text)
        theirs = header.prototypes(text, "cublas")
        with open(os.path.join(folder, "names"), encoding="utf-8") as file:
            exported = set(file.read().split())
        entries = [e for e in description.of("cublas") if major in api.abis(e)]
        out += names({n for _, n in shim.wide_exported(entries)}, exported,
                     f"libcublas.so.{major}")
        for e, name in shim.wide_exported(entries):
            if e.has("opaque") or name not in theirs:
                continue
            wide = library.items_of(e, name != e.name)
            mine = shape(", ".join(wide))
            if mine != shape(plain(theirs[name][1])):
                out.append(f"cublas_api.h {major}: {e.origin}: {name} takes ({theirs[name][1]})")
            if e.result.replace(" ", "") != theirs[name][0].replace(" ", ""):
                out.append(f"cublas_api.h {major}: {e.origin}: {name} returns {theirs[name][0]}")
    return out


def blaslt(description, cache):
    """Differences between cublaslt.api and cublasLt.h: every function of the header is described."""
    out = []
    for major in (12, 13):
        text = header.raw(os.path.join(cache, f"cublas-{major}", "cublasLt.h"))
        text = re.sub(r"\b(CUBLASAPI|CUBLASWINAPI)\b", " ", text)
        theirs = header.prototypes(text, "cublasLt")
        # Its inline functions call these.
        ours = {e.name: e for e in description.of("cublaslt") if major in api.abis(e)}
        out += names(set(ours), set(theirs), f"cublasLt.h {major}")
        for name, e in ours.items():
            if e.has("opaque") or name not in theirs:
                continue
            if shape(", ".join(library.items_of(e) or ["void"])) != shape(theirs[name][1] or "void"):
                out.append(f"cublasLt.h {major}: {e.origin}: {name} takes ({theirs[name][1]})")
            if e.result.replace(" ", "") != theirs[name][0].replace(" ", ""):
                out.append(f"cublasLt.h {major}: {e.origin}: {name} returns {theirs[name][0]}")
    return out


def fft(description, cache):
    """Differences between cufft.api and what tools/fetch_headers.py has put into CACHE."""
    out = []
    for major in (11, 12):
        folder = os.path.join(cache, f"cufft-{major}")
        text = "".join(header.raw(os.path.join(folder, file)) for file in ("cufft.h", "cufftXt.h"))
        theirs = header.prototypes(re.sub(r"\bCUFFTAPI\b", " ", text), "cufft")
        with open(os.path.join(folder, "names"), encoding="utf-8") as file:
            exported = set(file.read().split())
        entries = {e.name: e for e in description.of("cufft") if major in api.abis(e)}
        out += names(set(entries), exported, f"libcufft.so.{major}")
        out += prototypes({n: e for n, e in entries.items() if n in theirs and not e.has("opaque")},
                          theirs, f"cufft.h {major}")
    return out


def solver(description, cache):
    """Differences between cusolver.api with cusolver_sparse.api and NVIDIA's headers: all that the libraries
    export is described, and all that the headers declare as they do."""
    out = []
    for major in (11, 12):
        folder = os.path.join(cache, f"cusolver-{major}")
        text = "".join(header.raw(os.path.join(folder, f)) for f in ("cusolver_common.h", "cusolverDn.h", "cusolverSp.h",
                                                               "cusolverSp_LOWLEVEL_PREVIEW.h", "cusolverRf.h"))
        text = re.sub(r"\bCUSOLVERAPI\b|\bCUSOLVER_DEPRECATED_?(\([^)]*\))?", " ", text)
        theirs = header.prototypes(text, "cusolver")
        with open(os.path.join(folder, "names"), encoding="utf-8") as file:
            exported = set(file.read().split())
        ours = {e.name: e for e in description.of("cusolver") if major in api.abis(e)}
        out += names(set(ours), exported, f"libcusolver.so.{major}")
        out += prototypes({n: e for n, e in ours.items() if n in theirs and not e.has("opaque")},
                          theirs, f"cuSOLVER's headers {major}")
    return out


def sparse(description, cache):
    """Differences between cusparse.api and cusparse.h: one name for all, of which the newest library has most."""
    out, ours = [], {e.name: e for e in description.of("cusparse")}
    for version in ("12.5", "12.9"):
        folder = os.path.join(cache, f"cusparse-{version}")
        text = header.raw(os.path.join(folder, "cusparse.h"))
        text = re.sub(r"\bCUSPARSEAPI\b|\bCUSPARSE_DEPRECATED\w*(\([^)]*\))?", " ", text)
        theirs = header.prototypes(text, "cusparse")
        with open(os.path.join(folder, "names"), encoding="utf-8") as file:
            exported = set(file.read().split())
        known = set(ours) if version == "12.9" else set(ours) & exported
        out += names(known, exported, f"libcusparse.so.{version}")
        out += prototypes({n: e for n, e in ours.items() if n in theirs and not e.has("opaque")},
                          theirs, f"cusparse.h {version}")
    return out


def sparselt(description, cache):
    """Differences between cusparselt.api and cusparseLt.h, which both majors of CUDA have."""
    out, ours = [], {e.name: e for e in description.of("cusparselt")}
    for major in (12, 13):
        folder = os.path.join(cache, f"cusparselt-cu{major}")
        text = re.sub(r"\bCUSPARSELT_API\b", " ", header.raw(os.path.join(folder, "cusparseLt.h")))
        theirs = header.prototypes(text, "cusparseLt")
        with open(os.path.join(folder, "names"), encoding="utf-8") as file:
            exported = {name for name in file.read().split() if not name.startswith("_Z")}
        out += names(set(ours), exported, f"libcusparseLt.so.0 of CUDA {major}")
        out += prototypes(ours, theirs, f"cusparseLt.h of CUDA {major}")
    return out


def nccl(description, cache):
    """Differences between nccl.api and nccl.h."""
    ours = {e.name: e for e in description.of("nccl")}
    folder = os.path.join(cache, "nccl-cu13")
    with open(os.path.join(folder, "names"), encoding="utf-8") as file:
        exported = {name for name in file.read().split() if re.match("p?nccl", name)}
    exported |= {"pncclResetDebugInitInternal"}  # the one name that has no second there
    out = names(description.libraries["nccl"].names(set(ours)), exported, "libnccl.so.2")
    theirs = header.prototypes(header.raw(os.path.join(folder, "nccl.h")), "nccl")
    return out + prototypes({n: e for n, e in ours.items() if n in theirs and not e.has("opaque")},
                            theirs, "nccl.h")


def cublas_constants(cache, ours, theirs):
    return constants.differences(
        [os.path.join(generate.HERE, "libraries", ours)],
        {f"{theirs} {major}": [os.path.join(cache, f"cublas-{major}", f)
                               for f in ("cublas_api.h", "cublasLt.h", "cublasXt.h")] for major in (12, 13)})


def libraries(description, cache):
    """{what: function that compares}; FileNotFoundError where a header is not there."""
    shim_nvml = os.path.join(HERE, "..", "..", "shim", "nvml")
    return {
        "cublas.api against cublas_api.h, cublas.h, cublasXt.h and libcublas": lambda: blas(description, cache),
        "cublas.h against cublas_api.h": lambda: cublas_constants(cache, "cublas.h", "cublas_api.h"),
        "cublaslt.api against cublasLt.h": lambda: blaslt(description, cache),
        "cublaslt.h against cublasLt.h": lambda: cublas_constants(cache, "cublaslt.h", "cublasLt.h"),
        "cudnn.api and cudnn.h against cuDNN's headers": lambda: cudnn.differences(
            description, cache, os.path.join(generate.HERE, "libraries")),
        "cufft.api against cufft.h, cufftXt.h and libcufft": lambda: fft(description, cache),
        "cufft.h against NVIDIA's": lambda: constants.differences(
            [os.path.join(generate.HERE, "libraries", "cufft.h")],
            {f"cufft.h {major}": [os.path.join(cache, f"cufft-{major}", file) for file in ("cufft.h", "cufftXt.h", "cudalibxt.h")]
             for major in (11, 12)}),
        "cusolver.api against cuSOLVER's headers and libcusolver": lambda: solver(description, cache),
        "cusolver.h against NVIDIA's": lambda: constants.differences(
            [os.path.join(generate.HERE, "libraries", "cusolver.h")],
            {f"cusolver_common.h {major}": [os.path.join(cache, f"cusolver-{major}", "cusolver_common.h")]
             for major in (11, 12)}, skip=r"CUSOLVER_(ITEM|SET)_"),
        "cusparse.api against cusparse.h and libcusparse": lambda: sparse(description, cache),
        "cusparse.h against NVIDIA's": lambda: constants.differences(
            [os.path.join(generate.HERE, "libraries", "cusparse.h")],
            {f"cusparse.h {version}": [os.path.join(cache, f"cusparse-{version}", "cusparse.h")]
             for version in ("12.5", "12.9")}, skip=r"CUSPARSE_(ITEM_|ATTRIBUTES|PLACES|SPMAT_STORAGE|SPMAT_SYMMETRY)"),
        "cusparselt.api against cusparseLt.h and libcusparseLt": lambda: sparselt(description, cache),
        "cusparselt.h against NVIDIA's": lambda: constants.differences(
            [os.path.join(generate.HERE, "libraries", "cusparselt.h")],
            {f"cusparseLt.h of CUDA {major}": [os.path.join(cache, f"cusparselt-cu{major}", "cusparseLt.h")]
             for major in (12, 13)}, skip=r"CUSPARSELT_(ITEM_|\w+_ATTRIBUTES|MATRICES|ALPHAS|BETAS|[ABCD]$)"),
        "cupti.api against CUPTI's headers and libcupti": lambda: cupti.functions(description, cache, shape, names),
        "cupti_callbacks.txt against CUPTI's headers": lambda: cupti.numbers(cupti.told(), cache),
        "what stubs tell of calls against CUPTI's headers": lambda: cupti.params(
            description, cupti.told(), cache, shape),
        "nccl.api against nccl.h and libnccl": lambda: nccl(description, cache),
        "nccl.h against NVIDIA's": lambda: constants.differences(
            [os.path.join(generate.HERE, "libraries", "nccl.h")],
            {"nccl.h": [os.path.join(cache, "nccl-cu13", "nccl.h")]}),
        "curand.api against curand.h and libcurand": lambda: rand(description, cache),
        "curand.h against NVIDIA's": lambda: constants.differences(
            [os.path.join(generate.HERE, "libraries", "curand.h")],
            {"curand.h": [os.path.join(cache, "pip-12.9", "nvidia", "curand", "include",
                                       "curand.h")]}),
        "shim/nvml against nvml.h": lambda: nvml.differences(
            cache, shim_nvml, description.unserved["nvml"]),
    }


def peers_errors():
    path = os.path.join(HERE, "..", "..", "python", "vcuda-peers", "vcuda_peers", "errors.py")
    with open(path, encoding="utf-8") as file:
        return file.read()


def statuses(text):
    """What vcuda_peers/errors.py says of protocol/wire/status.h, which it cannot include."""
    ours = {name: int(value) for names, values in re.findall(r"(?m)^(STATUS_[\w, ]+) = ([\d, ]+)$", text)
            for name, value in zip(names.split(", "), values.split(", "), strict=True)}
    told = constants.enumerators(constants.raw(os.path.join(generate.HERE, "wire", "status.h")), "wire_status")
    return [f"{name} is {value}, not {told.get(name)}" for name, value in ours.items() if told.get(name) != value] + \
        ([] if ours else ["errors.py has no STATUS_…"])


def compare(description, toolkits, headers, found):
    return {"cuda.api against cuda.h": driver(description, toolkits, headers),
            "cuda.api against cudaTypedefs.h": since(description, found),
            "vcuda_peers/errors.py against status.h": statuses(peers_errors()),
            "cudart.api against libcudart": runtime(description, toolkits, headers),
            "cuda.api and cudart.api refuse little": refusals(description)}


def without(description, name):
    description.entries = [e for e in description.entries if e.name != name]


def breakages():
    """[(what, function that breaks a description)]; the comparison must notice each."""
    def other_type(d):
        d.find("cuMemGetInfo_v2").params[0].declaration = "unsigned int *free"

    def fewer(d):
        d.find("cudaMemcpy").params.pop()

    def result(d):
        d.find("cudaGetErrorString").result = "char *"

    def twin(d):
        del d.find("cuLaunchKernel").options["ptsz"]

    def version(d):
        d.find("cuMemAllocAsync").options["since"] = "11030"

    def newer(d):
        d.find("cuFuncGetParamCount").options["since"] = "13000"

    def invented(d):
        entry = copy.deepcopy(d.find("cuInit"))
        entry.name = "cuInitialise"
        d.entries.append(entry)

    def major(d):
        d.find("cudaThreadExit").options["abi"] = "13"

    def much(d):
        for e in [e for e in d.entries if e.family == "cudart" and e.verb != "refused"][:20]:
            e.verb, e.reason = "refused", "because it was not done"

    def why(d):
        next(e for e in d.entries if e.family == "cuda" and e.verb == "refused").reason = "refused"

    return [("too much refused", much), ("a reason that is none", why),
            ("an entry of cuda.api removed", lambda d: without(d, "cuStreamSynchronize")),
            ("an entry of cudart.api removed", lambda d: without(d, "__cudaRegisterFatBinary")),
            ("another parameter type", other_type), ("a parameter too few", fewer),
            ("another result", result), ("a per-thread form left out", twin),
            ("a wrong version", version), ("a function called older than it is", newer),
            ("a function that does not exist", invented), ("the wrong major", major)]


def library_breakages(description, cache):
    """[(what, whether the comparison notices it)]: a wrong library description or header of ours."""
    def described(family, name, spoil):
        broken = copy.deepcopy(description)
        spoil(broken.find(name))
        compared = {"cublas": blas, "cublaslt": blaslt, "cupti": lambda d, c: cupti.functions(d, c, shape, names)}.get(
            family, lambda d, c: cudnn.differences(d, c, os.path.join(generate.HERE, "libraries")))
        return bool(compared(broken, cache))

    def written(ours, theirs, old, new):
        with open(os.path.join(generate.HERE, "libraries", ours), encoding="utf-8") as file:
            text = file.read()
        assert old in text, f"{ours} has no '{old}'"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, ours)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new, 1))
            return bool(cublas_constants(cache, path, theirs))

    def fewer(entry):
        entry.params.pop()

    def result(entry):
        entry.result = "int"

    def renumbered():
        rows = cupti.told()
        rows["runtime"][211], rows["runtime"][212] = rows["runtime"][212], rows["runtime"][211]
        return bool(cupti.numbers(rows, cache))

    def told(name):
        broken = copy.deepcopy(description)
        fewer(broken.find(name))
        return bool(cupti.params(broken, cupti.told(), cache, shape))

    return [
        ("another number in vcuda_peers/errors.py", bool(statuses(peers_errors().replace("911", "912")))),
        ("a parameter too few in cupti.api", described("cupti", "cuptiSubscribe", fewer)),
        ("two numbers exchanged in cupti_callbacks.txt", renumbered()),
        ("a parameter too few of what is told", told("cuMemcpyHtoDAsync_v2") and told("cudaLaunchKernel")),
        ("a parameter too few in cublas.api", described("cublas", "cublasSgemm_v2", fewer)),
        ("another result in cublaslt.api", described("cublaslt", "cublasLtMatmul", result)),
        ("a parameter too few in cudnn.api", described("cudnn", "cudnnSoftmaxForward", fewer)),
        ("another number in cublas.h",
         written("cublas.h", "cublas_api.h", "CUBLAS_COMPUTE_32I = 72", "CUBLAS_COMPUTE_32I = 74")),
        ("an invented number in cublas.h",
         written("cublas.h", "cublas_api.h", "CUBLAS_COMPUTE_32I =", "CUBLAS_COMPUTE_33I =")),
        ("another struct in cublaslt.h",
         written("cublaslt.h", "cublasLt.h", "float wavesCount;", "double wavesCount;")),
    ]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cache = sys.argv[1]
    toolkits = [header.Toolkit(cache, v, "13.0") for v in ("12.9", "13.0", "13.5")]
    headers, found = {}, {}
    for kit in toolkits:
        headers[kit.version, "driver"] = kit.driver()
        headers[kit.version, "runtime"] = kit.runtime()
        headers[kit.version, "exported"] = header.exported(kit.library)
        for part in ("", "GL", "VDPAU", "EGL", "Profiler"):
            path = os.path.join(kit.include, f"cuda{part}Typedefs.h")
            for key, values in header.versions(path).items():
                found.setdefault(key, set()).update(values)

    passed = failed = 0
    description = generate.load()
    as_is = compare(description, toolkits, headers, found)
    ours = {f"{os.path.basename(path)} exports what is described": built(description, path)
            for path in sys.argv[2:]}
    complete = True
    for what, compared in libraries(description, cache).items():
        try:
            ours[what] = compared()
        except FileNotFoundError as error:
            complete = False
            if os.environ.get("CI"):
                ours[what] = [f"cannot be compared: no {error.filename} (make deps)"]
            else:
                print(f"skip - {what}: no {error.filename} (make deps)")
    for what, differences in {**as_is, **ours}.items():
        print(f"{'not ok' if differences else 'ok'} - {what}")
        for line in differences:
            print(f"  {line}")
        passed, failed = passed + (not differences), failed + bool(differences)
    for what, spoil in breakages():
        broken = copy.deepcopy(description)
        spoil(broken)
        noticed = compare(broken, toolkits, headers, found) != as_is
        print(f"{'ok' if noticed else 'not ok'} - noticed: {what}")
        passed, failed = passed + noticed, failed + (not noticed)
    if complete:
        for what, noticed in library_breakages(description, cache):
            print(f"{'ok' if noticed else 'not ok'} - noticed: {what}")
            passed, failed = passed + noticed, failed + (not noticed)
    print(f"parity: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
