# SPDX-License-Identifier: Apache-2.0
"""A library whose functions run on the agent, in its own library there (api.Library): the wire,
the app's stubs for each ABI, the agent's function table and serve functions.

A call's body is the handle's state, then what the call is learned by (all that goes by value), then
scalars and addresses.  Names of generated helpers begin with the family's.

An entry with hand(shim,agent) has only its stub, its opcode and its row in the agent's table made:
hand_NAME sends struct wire_NAME of protocol/libraries/FAMILY.h, serve_NAME serves it.  One with hand(shim)
and no opcode sends another's frame.
"""
import re

from . import text
from .agent import functions_list, library_flags, library_opened, members, opener
from .api import ApiError, abis
from .shim import version_map, wide_exported
from .wire import C_TYPE, Field, crossing, struct


def by_hand(entry):
    return entry.hand("shim") and entry.hand("agent")


def files(api, family, common=False):
    """{file: text}; COMMON: only those that a library has whatever its form."""
    out = {} if common else {
        f"{family}_wire.h": wire_header(api, family),
        f"{family}_stubs.c": stubs(api, family),
        f"{family}_serve.c": serve_source(api, family),
    }
    return {**out,
        f"{family}_ops.h": ops_header(api, family),
        f"{family}_api.h": api_header(api, family),
        f"{family}_hand.h": hand_header(api, family),
        f"{family}_library.h": library_header(api, family),
        f"{family}_library.c": library_source(api, family),
        f"{family}_library.inc": functions_list(offered(api, family), stem(api, family)),
        **{f"{stem(api, family)}{major}.map": exports(api, family, major)
           for major in api.libraries[family].majors},
    }


def stem(api, family):
    return api.libraries[family].stem


def is_handle(entry, param):
    return param.type.strip() == entry.library.handle


def is_made(entry):
    """Whether what is local, or the library's part of it, is made from the stanza."""
    return entry.verb == "local" and any(
        entry.has(o) for o in ("keeps", "tells", "sets_stream", "gets_stream"))


def words(param):
    """64-bit words that a scalar takes at most."""
    return 5 if param.size in ("20", "40") or param.size.endswith("* 5") else 2


def by_value(entry):
    return [p for p in entry.params if not p.mark and not is_handle(entry, p)]


def kind_of(api, entry, param):
    kind = api.types.get(param.base)
    if not kind or kind.wire not in C_TYPE:
        raise ApiError(f"{entry.origin}: {entry.name}: no type statement for {param.base}")
    return kind


def request_fields(api, entry):
    """[(key field)], [other fields]"""
    key, rest = [], []
    for p in by_value(entry):
        kind = kind_of(api, entry, p)
        key.append(Field(p.name, C_TYPE[kind.wire], kind.size, kind.align))
    key.sort(key=lambda f: -f.align)
    for p in entry.params:
        if p.mark in ("scalar", "result", "inout"):
            rest.append(Field(p.name, "uint64_t", 8 * words(p), 8, f"[{words(p)}]",
                              p.mark))
        elif p.mark == "device":
            rest.append(Field(p.name, "uint64_t", 8, 8))
    return key, rest


def reply_fields(entry):
    fields = []
    for p in entry.params:
        if p.mark in ("result", "inout"):
            fields.append(Field(p.name, "uint64_t", 8 * words(p), 8, f"[{words(p)}]"))
        elif p.mark == "info":
            fields.append(Field(p.name, "int32_t", 4, 4))
    return fields


def key_bytes(entry, key):
    return 32 + sum(f.size for f in key)


def ops_header(api, family):
    first, last = api.ops[family]
    out = text.head(f"Opcodes of {family}.api: {first} to {last}.",
                    f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_OPS_H")
    out += f"\nenum {family}_op {{\n"
    out += "".join(f"\tOP_{e.name} = {e.op},\n" for e in crossing(api, family))
    return out + "};\n\n#endif\n"


def wire_header(api, family):
    out = text.head(
        f"Bodies and replies of {family}.api's frames: the handle's state, what the call is learned\n"
        "by, then scalars and device addresses.  KEY_NAME: where the second part ends.  A call whose\n"
        "fields are another's shares its structs.",
        f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_WIRE_H",
        ["<stdint.h>", "", f'"protocol/libraries/{family}.h"'])
    first = {}
    for e in crossing(api, family):
        if by_hand(e):
            continue
        key, rest = request_fields(api, e)
        state = Field("state", f"struct {family}_state", 32, 8)
        layout = struct("", [state] + key + rest) + struct("", reply_fields(e))
        model = first.setdefault((layout, key_bytes(e, key)), e.name)
        if model != e.name:
            out += f"#define wire_{e.name} wire_{model}\n"
            out += f"#define wire_{e.name}_reply wire_{model}_reply\n" if reply_fields(e) else ""
            out += f"#define KEY_{e.name} KEY_{model}\n"
            continue
        out += f"\n/* {e.verb} {e.op} */\n"
        out += struct(f"wire_{e.name}", [state] + key + rest)
        out += f"#define KEY_{e.name} {key_bytes(e, key)}u\n"
        if reply_fields(e):
            out += struct(f"wire_{e.name}_reply", reply_fields(e))
    return out + "\n#endif\n"


def api_header(api, family):
    out = text.head(f"The functions that {stem(api, family)} exports; no header of NVIDIA's is needed.",
                    f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_API_H",
                    [f'"protocol/libraries/{family}.h"'])
    out += '\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    for e in api.of(family):
        for _, name in wide_exported([e]) if e.declared() else ():
            out += text.prototype(e.result, name, items_of(e, name != e.name) or ["void"]) + "\n"
    return out + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"


def hand_header(api, family):
    out = text.head(f"What shim/libraries/{family}/ writes by hand.",
                    f"VCUDA_SHIM_GENERATED_{family.upper()}_HAND_H",
                    [f'"protocol/libraries/{family}.h"'])
    if api.libraries[family].form == "plain":
        out += f"\nextern const struct library_front {family}_front; /* its stanza's */\n"
    for e in api.of(family):
        if (e.verb == "local" or e.hand("shim")) and not is_made(e):
            out += "\n" + text.prototype(e.result, f"hand_{e.name}", hand_items(e))
    return out + "\n\n#endif\n"


def widened(declaration):
    """int becomes int64_t; long long int stays."""
    return re.sub(r"(?<!long )\bint\b", "int64_t", declaration)


def items_of(entry, wide=False):
    items = [p.declaration for p in entry.params]
    return [widened(i) for i in items] if wide else items


def hand_items(entry):
    """Functions with a _64 form are written once, for the wider one."""
    return items_of(entry, entry.has("wide")) or ["void"]


def request_lines(api, entry):
    """Initializers, then statements."""
    init, lines = [], []
    f = entry.family
    for p in entry.params:
        if is_handle(entry, p):
            continue
        if not p.mark:
            wire = kind_of(api, entry, p).wire
            cast = f"({C_TYPE[wire]})" if wire == "enum" else ""
            init.append(f".{p.name} = {cast}{p.name}")
        elif p.mark == "device":
            init.append(f".{p.name} = (uint64_t)(uintptr_t){p.name}")
        elif p.mark in ("scalar", "inout", "result"):
            lines.append(f"{f}_{p.mark}(&call, body.{p.name}, {p.name}, {p.size});"
                         if p.mark != "result" else
                         f"{f}_result(&call, body.{p.name}, {p.name});")
    return init, lines


def stub(api, entry):
    f, handle = entry.family, next(p.name for p in entry.params if is_handle(entry, p))
    init, lines = request_lines(api, entry)
    reply = reply_fields(entry)
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, items_of(entry), "\n{\n")
    out += f"\tstruct {f}_call call;\n"
    out += f"\tstruct wire_{entry.name} body = {{\n"
    out += (text.wrap("\t\t", init, ",", "\t\t") + "\n" if init else "") + "\t};\n"
    out += f"\tstruct wire_{entry.name}_reply reply;\n" if reply else ""
    out += f"\t{entry.result} status;\n" if reply else ""
    out += f"\n\t{f}_begin(&call, CALL_{entry.name}, {handle}, &body.state);\n"
    out += "".join(f"\t{line}\n" for line in lines)
    args = ["&call", f"OP_{entry.name}", "&body", "sizeof(body)", f"KEY_{entry.name}"]
    args += ["&reply", "sizeof(reply)"] if reply else ["NULL", "0"]
    if not reply:
        return out + text.wrap(f"\treturn {f}_send(", args, ");") + "\n}\n"
    out += text.wrap(f"\tstatus = {f}_send(", args, ");") + "\n"
    for p in entry.params:
        if p.mark in ("result", "inout"):
            out += f"\t{f}_give(&call, {p.name}, reply.{p.name}, {p.size});\n"
        elif p.mark == "info":
            out += f"\tif ({p.name} && !status)\n\t\t*{p.name} = reply.{p.name};\n"
    return out + "\treturn status;\n}\n"


def wide_stub(entry):
    """NAME_64 of one that hands an int back: what fits goes to NAME."""
    f, checks, args, index = entry.family, [], [], ""
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name + "_64",
                         items_of(entry, True), "\n{\n")
    for p in entry.params:
        if p.type.strip() == "int":
            checks.append(f"{p.name} != (int){p.name}")
            args.append(f"(int){p.name}")
        elif p.mark == "result":
            index = p.name
            args.append("&narrow")
        else:
            args.append(p.name)
    handle = next(p.name for p in entry.params if is_handle(entry, p))
    out += f"\tint narrow = 0;\n\t{entry.result} status;\n\n"
    out += f"\tif (!{index})\n\t\treturn {f.upper()}_STATUS_INVALID_VALUE;\n"
    checks.append(f"vcuda_library_on_device(&{f}_front, {handle})")  # a device result would be too narrow
    out += text.wrap("\tif (", checks, ")", "\t    ", " ||") + "\n"
    out += f"\t\treturn {f.upper()}_STATUS_NOT_SUPPORTED;\n"
    out += text.wrap(f"\tstatus = {entry.name}(", args, ");") + "\n"
    return out + f"\tif (!status)\n\t\t*{index} = narrow;\n\treturn status;\n}}\n"


def wide_row(api, entry):
    """STUB_WIDE(NAME, …): which of its arguments are int64_t in NAME_64.  All must be of those that
    are passed in general registers."""
    for p in entry.params:
        kind = api.types.get(p.base)
        if not p.stars and kind and kind.wire in ("f32", "f64", "struct", "bytes"):
            raise ApiError(f"{entry.origin}: {entry.name}: wide: {p.name} is no integer or pointer")
    ints = sum(1 << i for i, p in enumerate(entry.params) if p.type.strip() == "int")
    return text.row("STUB_WIDE", entry.name, hex(ints)) + ";\n"


def narrows(entry):
    """Whether NAME_64 is NAME once its ints fit: it hands no int back."""
    return entry.has("wide") and entry.verb != "refused" and not entry.hand("shim") and \
        entry.verb != "local" and not any(p.mark == "result" and "int" in p.type.split() and p.stars
                                          for p in entry.params)


def wide_rows(api, family):
    """The rows of the NAME_64 that are NAME once their ints fit."""
    wide = [(abis(e), wide_row(api, e)) for e in api.of(family) if narrows(e)]
    if not wide:
        return ""
    unsupported = api.libraries[family].statuses["unsupported"]
    return f"\nSTUB_NARROW({unsupported});\n" + text.by_major(wide)


def stubs(api, family):
    out = text.head(
        f"The functions that {stem(api, family)} exports, compiled for each major\n"
        f"(shim/libraries/common/stub.h says what a row is).  What crosses goes through\n"
        f"shim/libraries/{family}/{family}.h; what is local goes to hand_NAME beside it.", None,
        ["<stddef.h>", ""] + sorted(text.includes(
            *(f"{family}_{n}.h" for n in ("api", "hand", "ops", "wire"))) +
            [f'"shim/libraries/{family}/{family}.h"', '"shim/libraries/common/stub.h"']))
    every = wide_exported(api.of(family))
    out += "\n" + text.by_major([(abis(e), stub_of(api, e, n)) for e, n in every
                                 if e.verb != "refused" and not (n != e.name and narrows(e))])
    return out + text.refusals(
        [(e, n) for e, n in every if e.verb == "refused"],
        lambda e, n: text.row("REFUSED", family, e.result, n) + "\n")


def stub_of(api, e, name):
    wide = name != e.name
    if e.verb == "local" or e.hand("shim"):
        return text.row("STUB", e.family, e.result, name, f"hand_{e.name}",
                        text.grouped(items_of(e, wide) or ["void"]),
                        text.grouped(p.name for p in e.params)) + "\n"
    return f"\n/* {e.verb} {e.op} */\n" + (wide_stub(e) if wide else stub(api, e))


def exports(api, family, major):
    entries = [e for e in api.of(family) if major in abis(e)]
    return version_map(f"{stem(api, family)}.so.{major}", {n for _, n in wide_exported(entries)})


def offered(api, family):
    """What the agent asks of the library: all that crosses, and what sets a handle's state."""
    return [e for e in api.of(family)
            if e.verb != "refused" and (e.op or e.result.endswith("Status_t"))]


def library_header(api, family):
    out = text.head(f"The agent's {stem(api, family)}, opened at run time: its functions by name.",
                    f"VCUDA_AGENT_GENERATED_{family.upper()}_LIBRARY_H",
                    ['"common/error.h"', '"gpu-agent/probe/library.h"', '"gpu-agent/worker/worker.h"'] +
                    text.includes(f"{family}_api.h"))
    out += f"\nstruct {family}_library {{\n\tvoid *library;\n" + members(f"{family}_library.inc")
    out += "};\n\n" + library_opened(family)
    out += "/* As serve_find, for this family's opcodes. */\n"
    out += f"const struct serve_entry *{family}_serve_find(uint16_t op);\n"
    if api.libraries[family].form == "plain":
        out += f"extern const struct plain_library {family}_plain; /* its stanza's */\n"
    hand = [e for e in crossing(api, family) if by_hand(e)]
    out += f"\n/* Written by hand in gpu-agent/worker/libraries/{family}. */\n" if hand else ""
    for e in hand:
        out += text.prototype("CUresult", f"serve_{e.name}",
                              ["struct worker *w", "struct request *r"]) + "\n"
    return out + "\n#endif\n"


def library_source(api, family):
    out = text.head(f"Opens a {stem(api, family)}.", None,
                    ["<dlfcn.h>", "<errno.h>", "<stddef.h>", "<string.h>", "",
                     *text.includes(f"{family}_library.h")])
    return out + opener(f"{family}_library", f"{family}_library.inc",
                        api.libraries[family].needs, stem(api, family))


def serve_one(api, entry):
    f, name = entry.family, entry.name
    locals_, args, after, before = [], [], [], []
    for p in entry.params:
        if is_handle(entry, p):
            args.append("handle")
        elif not p.mark:
            wire = kind_of(api, entry, p).wire
            args.append(f"({p.type.strip()})body->{p.name}" if wire == "enum" else
                        f"body->{p.name}")
        elif p.mark == "device":
            args.append(f"(void *)(uintptr_t)body->{p.name}")
        elif p.mark == "info":
            locals_.append(f"int {p.name} = 0;")
            args.append(f"&{p.name}")
            after.append(f"answer->{p.name} = {p.name};")
        else:
            n = words(p)
            locals_.append(f"_Alignas(16) uint64_t {p.name}[{n}];")
            args.append(f"{f}_at(&body->state, {p.name}, body->{p.name}, sizeof({p.name}))")
            before.append(f"{f}_check(w, r, &body->state, body->{p.name});")
            if p.mark != "scalar":
                after.append(f"memcpy(answer->{p.name}, {p.name}, sizeof(answer->{p.name}));")
    out = f"/* {entry.verb} {entry.op} */\n"
    out += text.prototype("static CUresult", f"run_{name}",
                          ["struct worker *w", "struct request *r"], "\n{\n")
    out += text.wrap(f"\tconst struct wire_{name} *body =", ["(const void *)r->body"], ";") + "\n"
    if after:
        out += text.wrap(f"\tstruct wire_{name}_reply *answer =", ["(void *)r->answer"],
                         ";") + "\n"
    out += f"\tconst struct {f}_library *lib;\n"
    out += text.wrap(f"\t{entry.library.handle} handle =", [f"{f}_use(w, r, &body->state, &lib)"],
                     ";") + "\n"
    out += "".join(f"\t{line}\n" for line in locals_)
    out += "\tCUresult status;\n" if after else ""
    out += "\n" + "".join(f"\t{line}\n" for line in before)
    out += "\tif (worker_refused(r))\n\t\treturn r->refused;\n"
    out += f'\tif (!lib->{name})\n\t\treturn worker_lacks(w, "{name}");\n'
    if not after:
        return out + text.wrap(f"\treturn {f}_result(lib->{name}(", args, "));",
                               "\t\t\t") + "\n}\n\n"
    out += text.wrap(f"\tstatus = {f}_result(lib->{name}(", args, "));", "\t\t\t") + "\n"
    out += "".join(f"\t{line}\n" for line in after)
    return out + "\treturn status;\n}\n\n"


def serve_source(api, family):
    first = api.ops[family][0]
    out = text.head(
        f"Serve functions of {family}.api: each takes the handle that the frame names, with the state\n"
        f"that came along (gpu-agent/worker/libraries/{family}/), and calls the agent's library.", None,
        ["<string.h>", "", f'"gpu-agent/worker/libraries/{family}/{family}.h"', '"gpu-agent/worker/worker.h"'] +
        text.includes(*(f"{family}_{n}.h" for n in ("library", "ops", "wire")))) + "\n"
    every = crossing(api, family)
    out += "".join(serve_one(api, e) for e in every if not by_hand(e))
    out += "static const struct serve_entry entries[] = {\n"
    for e in every:
        answers = e.verb != "learned" if by_hand(e) else reply_fields(e)
        reply = f"sizeof(struct wire_{e.name}_reply)" if answers else "0"
        half = "serve" if by_hand(e) else "run"
        out += text.wrap(f"\t[OP_{e.name} - {first}] = {{",
                         [f"OP_{e.name}", f"sizeof(struct wire_{e.name})", reply, library_flags(e),
                          f"{half}_{e.name}", f'"{e.name}"'], "},", "\t\t") + "\n"
    return out + "};\n\n" + finder(family, first)


def finder(family, first):
    """FAMILY_serve_find, over `entries`."""
    out = text.prototype("const struct serve_entry *", f"{family}_serve_find", ["uint16_t op"], "")
    return out + f"""
{{
	unsigned at = (unsigned)op - {first}u;

	if (at >= sizeof(entries) / sizeof(entries[0]) || !entries[at].serve)
		return NULL;
	return &entries[at];
}}
"""
