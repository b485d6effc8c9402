# SPDX-License-Identifier: Apache-2.0
"""The app's side of the driver front: exported stubs, hand_… prototypes, call numbers, names."""
from . import targets, text
from .api import abis
from .errors import ApiError


def handled(entry):
    """Whether hand-written code answers it."""
    return not entry.has("same") and not entry.has("answers") and (entry.verb == "local" or entry.hand("shim"))


def null_stream(entry):
    """The extra parameter of a hand function whose call names no stream itself."""
    return ["CUstream null_stream"] if entry.twin and not entry.streams else []


def exported(entries):
    """[(entry, name, is twin)] of every exported function."""
    out = []
    for e in entries:
        out.append((e, e.name, False))
        if e.twin:
            out.append((e, e.name + e.twin, True))
    return out


def arguments(entry, twin):
    """What a stub passes on: NULL streams are told apart here."""
    out = []
    for p in entry.params:
        if twin and p in entry.streams:
            out.append(f"{p.name} ? {p.name} : CU_STREAM_PER_THREAD")
        else:
            out.append(p.name)
    if null_stream(entry):
        out.append("CU_STREAM_PER_THREAD" if twin else "CU_STREAM_LEGACY")
    return out


def names(entry, passed):
    """The last of a stub's row: the parameters' names, where what is PASSED on is something else."""
    own = [p.name for p in entry.params]
    return [] if passed == own else [text.grouped(own)]


def checks(entry):
    """Pointers that must not be NULL, and counts from which more is taken away than there is."""
    refused = [f"!{p.name}" for p in entry.params if p.mark in ("in", "out", "inout", "str")]
    least = {}
    for p in entry.params:
        if p.mark in ("in", "inout") and p.size and " - " in p.size:
            count, less = p.size.split(" - ")
            least[count] = max(least.get(count, 0), int(less))
    refused += [f"{count} < {less}" for count, less in least.items()]
    if not refused:
        return ""
    condition = text.wrap("\tif (", refused, ")", "\t    ", " ||")
    return condition + "\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"


def request_lines(api, entry):
    """The lines that put the parameters into the body."""
    lines = []
    for p in entry.params:
        if p.mark in ("host", "out", "out?"):
            continue
        n = p.name
        kind = api.types.get(p.base)
        if p.mark == "str":
            lines.append(f"shim_put_string(&call, &body->{n}, {n});")
        elif p.mark in ("in", "inout") and p.size:
            size = bytes_of(p)
            lines.append(text.wrap("\tshim_put(", ["&call", f"&body->{n}", n, size], ");")[1:])
        elif p.mark == "device":
            lines.append(f"body->{n} = shim_address(&call, " +
                         (f"(uint64_t)(uintptr_t){n});" if p.stars else f"{n});"))
        elif p.mark in ("in", "inout"):
            lines.append(f"memcpy(body->{n}, {n}, sizeof(body->{n}));" if kind.wire == "bytes"
                         else f"body->{n} = *{n};")
        elif kind.wire == "stream":
            lines.append(f"body->{n} = shim_stream(&call, {n});")
        elif kind.wire == "function":
            lines.append(f"body->{n} = shim_function(&call, {n});")
        elif kind.wire == "handle":
            lines.append(f"body->{n} = shim_handle(&call, {n}, {kind.kind});")
        elif kind.wire == "enum":
            lines.append(f"body->{n} = (uint32_t){n};")
        elif kind.wire == "bytes":
            lines.append(f"memcpy(body->{n}, &{n}, sizeof(body->{n}));")
        elif p.base == "CUdevice":
            lines.append(f"body->{n} = shim_device(&call, {n});")
        else:
            lines.append(f"body->{n} = {n};")
    return ["\t" + line for line in lines]


def bytes_of(param):
    if param.base in ("void", "char", "uint8_t"):
        return param.size
    count = param.size if param.size.isidentifier() else f"({param.size})"
    return f"{count} * sizeof(*{param.name})"


def reply_lines(api, entry):
    """The lines that hand the answer out, under `if (reply)`."""
    lines = []
    for p in entry.params:
        if p.mark not in ("out", "out?", "inout"):
            continue
        n, kind = p.name, api.types.get(p.base)
        if p.size:
            raise ApiError(f"{entry.origin}: {entry.name}: {p.mark}({p.size}) needs hand(shim)")
        if kind.wire == "bytes":
            line = f"memcpy({n}, reply->{n}, sizeof(reply->{n}));"
        elif kind.wire == "enum":
            line = f"*{n} = ({p.base})reply->{n};"
        else:
            line = f"*{n} = reply->{n};"
        lines.append(f"if ({n})\n\t\t\t{line}" if p.mark == "out?" else line)
    return lines


def forget_lines(entry):
    names = entry.options.get("forgets", "")
    return [f"\tshim_forget(OP_{name});" for name in names.split(",") if name]


def crossing_body(api, entry):
    """A frame: checks, body, wait or post, result."""
    reply = reply_lines(api, entry)
    out = "\tstruct shim_call call;\n" + f"\tstruct wire_{entry.name} *body;\n"
    if reply:
        out += f"\tconst struct wire_{entry.name}_reply *reply;\n"
    forgets = forget_lines(entry)
    awaited = entry.verb in ("call", "cached")
    if forgets:
        out += "\tCUresult status;\n"
    refusals = checks(entry)
    out += "\n" + (refusals + "\n" if refusals else "")
    request = request_lines(api, entry)
    out += text.wrap("\tbody = shim_begin(", ["&call", f"OP_{entry.name}", "sizeof(*body)"],
                     ");") + "\n"
    out += "\n".join(request) + "\n" if request else "\t(void)body;\n"
    if awaited:
        wait = "shim_wait_cached" if entry.verb == "cached" else "shim_wait"
        size = "sizeof(*reply)" if reply else "0"
        if reply:
            out += f"\n\treply = {wait}(&call, {size});\n"
            brace = len(reply) > 1 or "\n" in reply[0]
            out += "\tif (reply)" + (" {\n" if brace else "\n")
            out += "".join(f"\t\t{line}\n" for line in reply) + ("\t}\n" if brace else "")
        else:
            out += f"\n\t{wait}(&call, {size});\n"
        last = "shim_end(&call)"
    else:
        out += "\n"
        last = f"shim_{'learned' if entry.verb == 'learned' else 'post'}(&call)"
    if forgets:
        return out + f"\tstatus = {last};\n" + "\n".join(forgets) + "\n\treturn status;\n"
    return out + f"\treturn {last};\n"


def moment(entry):
    """When the call may come: STUB_… of shim/engine/stub.h."""
    return next((when for when in ("early", "lasting", "current", "looks", "within") if entry.has(when)), "ready")


def target(api, entry, twin):
    """(function that a stub goes to, arguments)"""
    passed = dict(zip([p.name for p in entry.params] + ["null_stream"], arguments(entry, twin)))
    other = api.find(entry.options["same"]) if entry.has("same") else entry
    if entry.has("as"):
        return targets.call(api, entry, passed)[1:]
    return f"hand_{other.name}" if handled(other) else f"send_{other.name}", list(passed.values())


def capture_checks(entry, twin):
    """What the stub asks while something captures, by the entry's captured(); "" for nothing."""
    streams = [a for p, a in zip(entry.params, arguments(entry, twin)) if p in entry.streams]
    if null_stream(entry):
        streams = ["CU_STREAM_PER_THREAD" if twin else "CU_STREAM_LEGACY"]
    sent = entry.verb in ("call", "post", "learned")
    how = entry.options.get("captured", "node" if sent and streams else "own")
    if how == "own":
        return "CUDA_SUCCESS" if entry.streams else ""
    if how == "unsafe":
        return "capture_unsafe_slow()"
    how, _, unsafe = how.partition(",")
    asked = [f"capture_{how}({stream})" for stream in streams]
    return " ?: ".join(asked + [f"capture_elsewhere({stream})" for stream in streams if unsafe])


def stub(api, entry):
    """The exported functions of one entry that is served, and what they send."""
    out = ""
    if entry.has("answers"):
        return "".join(text.row("ANSWERS", moment(entry), name, entry.options["answers"]) + ";\n"
                       for _, name, _ in exported([entry]))
    if not handled(entry) and not entry.has("same"):
        out += f"\n/* {entry.verb} {entry.op} */\n"
        out += text.prototype("static CUresult", f"send_{entry.name}", text.parameters(entry),
                              "\n{\n")
        out += crossing_body(api, entry) + "}\n"
    for _, name, twin in exported([entry]):
        if not entry.declared():
            out += text.prototype("CUresult", name, text.parameters(entry)) + "\n"
        function, passed = target(api, entry, twin)
        rest = [name, function, text.grouped(text.parameters(entry)), text.grouped(passed)] + names(entry, passed)
        if entry.streams:
            of = [a for p, a in zip(entry.params, arguments(entry, twin)) if p in entry.streams]
            stream = of[0] if len(of) == 1 else f"stream_serving({', '.join(of)})"
            form = next((form for form in ("named", "unbound") if entry.has(form)), "stream")
            out += text.row(f"STUB_{form.upper()}", moment(entry), stream, capture_checks(entry, twin), *rest) + ";\n"
        elif asked := capture_checks(entry, twin):
            out += text.row("STUB_CAPTURED", moment(entry), asked, *rest) + ";\n"
        else:
            out += text.row("STUB", moment(entry), *rest) + ";\n"
    return out


def stubs(api):
    out = text.head(
        "The driver front's exported functions, one per entry of cuda.api (shim/engine/stub.h says\n"
        "what a row is).  Simple ones are whole; the others count the call and go to hand_NAME in\n"
        "shim/.  __CUDA_API_VERSION_INTERNAL makes cuda.h declare every version of every name, so\n"
        "that the compiler compares each definition with NVIDIA's declaration.",
        None, [])
    out += "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <string.h>\n\n"
    for path in ['"shim/driver/forms.h"', '"shim/driver/graph/capture.h"', '"shim/engine/stub.h"'] + text.includes("cuda_hand.h", "cuda_ops.h", "cuda_wire.h"):
        out += f"#include {path}\n"
    out += "\n"
    served = [e for e in api.of("cuda") if e.verb != "refused"]
    # send_… stand before who shares them
    out += "".join(stub(api, e) for e in sorted(served, key=lambda e: e.has("same")))
    refused = [(e, name) for e, name, _ in exported(api.of("cuda")) if e.verb == "refused"]
    return out + text.refusals(refused, lambda e, name: f"REFUSED({name});\n")


def hand_header(api):
    out = text.head(
        "What shim/ writes by hand for the driver front.  Streams come with NULL already turned\n"
        "into CU_STREAM_PER_THREAD for _ptsz forms; where a call names no stream, null_stream is\n"
        "the default one: CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.",
        "VCUDA_SHIM_GENERATED_CUDA_HAND_H", ["<cuda.h>", "", '"shim/engine/newer.h"'])
    for e in api.of("cuda"):
        if handled(e) and not targets.direct(api, e):
            out += "\n" + text.prototype("CUresult", f"hand_{e.name}",
                                         [p.declaration for p in e.params] + null_stream(e)
                                         or ["void"])
    return out + "\n\n#endif\n"


def runtime_exported(entries):
    seen, out = set(), []
    for e, name, twin in exported(entries):
        if name not in seen:
            seen.add(name)
            out.append((e, name, twin))
    return out


def wide_exported(entries):
    """[(entry, name)] of a library's functions, the _64 forms among them."""
    out = []
    for e in entries:
        out.append((e, e.name))
        if e.has("wide"):
            out.append((e, e.name + "_64"))
    return out


def every_exported(api):
    every = exported(api.of("cuda")) + runtime_exported(api.of("cudart"))
    for family in api.libraries:
        every += [(e, name, False) for e, name in wide_exported(api.of(family))]
    return every


def calls_header(api):
    out = text.head("A number for every exported function, for statistics and refusals.",
                    "VCUDA_SHIM_GENERATED_CUDA_CALLS_H")
    out += "\nenum cuda_call_number {\n#define CALL(name, verb) CALL_##name,\n"
    out += f"#include {text.includes('cuda_calls.inc')[0]}\n#undef CALL\n\tCALL_LAST,\n"
    for _, name, _ in runtime_exported(api.of("cudart"))[:1]:
        out += f"\tCALL_RUNTIME_FIRST = CALL_{name}\n"
    longest = max((len(name) for _, name, _ in every_exported(api)), default=0) + 1
    out += "};\n\n"
    out += "/* Arrays, not pointers: a preloaded library should cost the loader no relocations. */\n"
    out += f"struct cuda_call {{\n\tchar name[{longest}];\n\tchar verb[8];\n}};\n"
    return out + "extern const struct cuda_call cuda_calls[CALL_LAST];\n\n#endif\n"


def calls_source(_api):
    out = text.head("Names and verbs of every exported function, by number.", None,
                    text.includes("cuda_calls.h"))
    out += "\nconst struct cuda_call cuda_calls[CALL_LAST] = {\n"
    out += "#define CALL(name, verb) {#name, #verb},\n"
    return out + f"#include {text.includes('cuda_calls.inc')[0]}\n}};\n"


def calls_list(api):
    own = exported(api.of("cuda")) + runtime_exported(api.of("cudart"))
    rows = [f"CALL({name}, {e.verb})" for e, name, _ in own]
    out = text.table("CALL(NAME, VERB) for every exported function.", text.packed(rows, "CALL", by_subject=True))
    if not api.libraries:
        return out
    out += "#define SENT(name, verb, op) CALL(name, verb)\n#define LOCAL CALL\n#define OTHER CALL\n"
    out += "".join(f"#include {text.includes(f'{family}_list.inc')[0]}\n" for family in api.libraries)
    return out + "#undef SENT\n#undef LOCAL\n#undef OTHER\n"


def version_map(node, names):
    out = "/* Generated by protocol/generate.py: every name that is exported. */\n"
    out += (f"{node} " if node else "") + "{\nglobal:\n"
    out += text.wrap("\t", sorted(names), ";", "\t", ";") + "\n"
    return out + "local:\n\t*;\n};\n"


def maps(api):
    """{file name: text}"""
    # vcuda_*: what our other fronts ask of the driver front (counting calls).
    out = {"libcuda.map": version_map("", ["vcuda_*"] + [
        n for _, n, _ in exported(api.of("cuda"))])}
    for major in (12, 13):
        entries = [e for e in api.of("cudart") if major in abis(e)]
        out[f"libcudart{major}.map"] = version_map(
            f"libcudart.so.{major}", {n for _, n, _ in exported(entries)})
    return out
