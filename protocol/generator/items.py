# SPDX-License-Identifier: Apache-2.0
"""A library of form content (cuDNN): one on the agent whose calls carry descriptors by content, as a
sequence of items (protocol/libraries/items.h) that both ends read in the order of the parameters.  Made
here: stubs for each major, prototypes, the agent's function table and what calls it.
"""
from . import library, plain, text
from .agent import functions_list, library_flags, library_opened, members, opener
from .api import ApiError, abis
from .shim import version_map

F, MAJORS = "", ()  # the family that files() makes, and its majors
# How a number travels: representation -> the word that names it in library_put_… and library_get_….
NUMBERS = {"i32": "int", "u32": "int", "enum": "int", "i64": "long", "u64": "long",
           "f32": "float", "f64": "double"}


def files(api, family):
    global F, MAJORS
    F, MAJORS = family, api.libraries[family].majors
    out = {
        f"{F}_ops.h": ops_header(api),
        f"{F}_api.h": api_header(api),
        f"{F}_wire.h": plain.wire_header(api, F),
        f"{F}_hand.h": hand_header(api),
        f"{F}_library.h": library_header(api),
        f"{F}_library.c": library_source(api),
        f"{F}_library.inc": functions_list(offered(api), f"lib{F}"),
        f"{F}_serve.c": serve_source(api),
    }
    out[f"{F}_stubs.c"] = stubs(api)
    for major in MAJORS:
        out[f"lib{F}{major}.map"] = version_map(
            f"lib{F}.so.{major}", {e.name for e in api.of(F) if major in abis(e)})
    return out


def crossing(api):
    return [e for e in api.of(F) if e.op]


def items(api):
    """What crosses as a sequence of items: not what makes or ends a handle."""
    return [e for e in crossing(api) if not plain.is_framed(e)]


def is_handle(param):
    return param.type.strip() == f"{F}Handle_t"


def descriptor_kind(api, param):
    kind = api.types.get(param.base)
    return kind.kind if kind and kind.wire == "descriptor" else ""


def number(api, entry, param):
    kind = api.types.get(param.base)
    if not kind or kind.wire not in NUMBERS or param.stars:
        raise ApiError(f"{entry.origin}: {entry.name}: how {param.name} travels is not said")
    return NUMBERS[kind.wire]


def items_of(entry):
    return [p.declaration for p in entry.params] or ["void"]


def by_hand(entry):
    return not library.is_made(entry) and (entry.verb == "local" or entry.hand("shim"))


def ops_header(api):
    first, last = api.ops[F]
    out = text.head(f"Opcodes of {F}.api: {first} to {last}.",
                    f"VCUDA_PROTOCOL_GENERATED_{F.upper()}_OPS_H")
    out += f"\nenum {F}_op {{\n"
    out += "".join(f"\tOP_{e.name} = {e.op},\n" for e in crossing(api))
    return out + "};\n\n#endif\n"


def api_header(api):
    out = text.head(f"The functions that lib{F} exports; no header of NVIDIA's is needed.  What only\n"
                    f"8 has, or only 9, is declared in any case.",
                    f"VCUDA_PROTOCOL_GENERATED_{F.upper()}_API_H", [f'"protocol/libraries/{F}.h"'])
    out += '\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    for e in api.of(F):
        if e.declared():
            out += text.prototype(e.result, e.name, items_of(e)) + "\n"
    return out + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"


def hand_header(api):
    out = text.head(f"What shim/libraries/{F}/ writes by hand.",
                    f"VCUDA_SHIM_GENERATED_{F.upper()}_HAND_H", [f'"protocol/libraries/{F}.h"'])
    out += f"\nextern const struct library_front {F}_front; /* its stanza's */\n"
    for e in api.of(F):
        if by_hand(e) and e.verb != "refused":
            out += "\n" + text.prototype(e.result, f"hand_{e.name}", items_of(e))
    return out + "\n\n#endif\n"


def put_lines(api, entry):
    """What the stub puts into the call, in the order of the parameters."""
    lines = []
    for p in entry.params:
        n, kind = p.name, descriptor_kind(api, p)
        if is_handle(p):
            continue
        if p.mark == "each":
            put = ["put_each", n, p.size, kind]
        elif kind:
            put = ["put_descriptor", n, kind]
        elif p.mark == "device":
            put = ["put_device", n]
        elif p.mark in ("scalar", "ints"):
            put = [f"put_{p.mark}", n, p.size]
        elif p.mark in ("out", "out?"):
            put = ["out" if p.mark == "out" else "out_maybe", n, f"sizeof(*{n})"]
        elif p.mark == "perf":
            put = ["list", n, p.size, f"sizeof(*{n})"]
        else:
            word = number(api, entry, p)
            cast = {"int": "(uint32_t)", "long": "(uint64_t)"}.get(word, "")
            put = [f"put_{word}", f"{cast}{n}"]
        lines.append(text.wrap(f"\tlibrary_{put[0]}(", ["&items"] + put[1:], ");"))
    return lines


def stub(api, entry):
    handle = next(p.name for p in entry.params if is_handle(p))
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, items_of(entry), "\n{\n")
    out += "\tstruct library_items items;\n\n"
    out += text.wrap("\tlibrary_begin(", [
        "&items", f"&{F}_front", f"CALL_{entry.name}", f"OP_{entry.name}",
        f"LIBRARY_{entry.verb.upper()}", handle], ");") + "\n"
    out += "\n".join(put_lines(api, entry)) + "\n"
    return out + "\treturn library_send(&items);\n}\n"


def stubs(api):
    out = text.head(
        f"The functions that lib{F} exports, compiled for each major\n"
        f"(shim/libraries/common/stub.h says what a row is).  What crosses is put together with\n"
        f"shim/libraries/common/items.h; what is local goes to hand_NAME in shim/libraries/{F}/.", None,
        ["<stddef.h>", ""] +
        sorted(text.includes(*(f"{F}_{n}.h" for n in ("api", "hand", "ops", "wire"))) +
               ['"protocol/wire/handle.h"', f'"shim/libraries/{F}/{F}.h"',
                '"shim/libraries/common/stub.h"']))
    out += "\n" + plain.front(api, F) + text.by_major([(abis(e), stub_of(api, e)) for e in api.of(F)
                                 if e.verb != "refused"])
    return out + text.refusals([(e, e.name) for e in api.of(F) if e.verb == "refused"],
                               lambda e, n: text.row("REFUSED", F, e.result, n) + "\n")


def stub_of(api, e):
    if library.is_made(e):
        return "\n" + plain.local_stub(e)
    if plain.is_framed(e):
        return f"\n/* {e.verb} {e.op} */\n" + plain.stub(api, e)
    if not by_hand(e):
        return f"\n/* {e.verb} {e.op} */\n" + stub(api, e)
    form = "STUB_TOLD" if e.result == f"{F}Status_t" else "STUB"
    return text.row(form, F, e.result, e.name, f"hand_{e.name}", text.grouped(items_of(e)),
                    text.grouped(p.name for p in e.params)) + "\n"


def offered(api):
    """What the agent asks of the library."""
    return [e for e in api.of(F) if e.verb != "refused"]


def library_header(api):
    out = text.head(f"The agent's lib{F}, opened at run time: its functions by name.",
                    f"VCUDA_AGENT_GENERATED_{F.upper()}_LIBRARY_H",
                    ['"common/error.h"', '"gpu-agent/probe/library.h"', '"gpu-agent/worker/worker.h"'] + text.includes(f"{F}_api.h"))
    out += f"\nstruct {F}_library {{\n\tvoid *library;\n" + members(f"{F}_library.inc")
    out += "};\n\n" + library_opened(F)
    out += f"extern const struct plain_library {F}_plain; /* its stanza's */\n"
    out += "/* As serve_find, for this family's opcodes. */\n"
    out += f"const struct serve_entry *{F}_serve_find(uint16_t op);\n\n"
    out += "/* Those written by hand. */\nstruct library_frame;\n"
    for e in crossing(api):
        if e.hand("agent"):
            out += f"CUresult serve_{e.name}(struct worker *w, struct request *r);\n" \
                if plain.is_framed(e) else f"int run_{e.name}(struct library_frame *f);\n"
    return out + "\n#endif\n"


def library_source(api):
    out = text.head(f"Opens a lib{F}.", None,
                    ["<dlfcn.h>", "<errno.h>", "<stddef.h>", "<string.h>", "",
                     *text.includes(f"{F}_library.h")])
    return out + opener(f"{F}_library", f"{F}_library.inc",
                        api.libraries[F].needs, f"lib{F}")


def get_of(api, entry, p):
    """(C type, what it is cast from, function, its arguments) that reads one parameter."""
    kind = descriptor_kind(api, p)
    if p.mark == "each":
        return f"const {p.base} *", f"(const {p.base} *)", "each", [p.size, kind]
    if kind:
        return p.base + " ", "", "descriptor", [kind]
    if p.mark in ("device", "scalar"):
        return ("int *" if p.base in ("int", "int32_t") else "void *"), "", p.mark, []
    if p.mark in ("out", "out?"):
        return f"{p.base} *", "", "out", []
    if p.mark == "perf":
        return f"{p.base} *", "", "list", [p.size, f"sizeof({p.base})"]
    if p.mark == "ints":
        raise ApiError(f"{entry.origin}: {entry.name}: ints are checked by hand(agent)")
    plain_type = p.type.replace("const", "").strip()
    return plain_type + " ", f"({plain_type})", number(api, entry, p), []


def get_line(api, entry, p):
    """The declaration of one parameter that is read from the frame."""
    c_type, cast, function, args = get_of(api, entry, p)
    call = f"{cast}library_get_{function}(" + ", ".join(["f"] + args) + ")"
    line = text.wrap(f"\t{c_type}{p.name} =", [call], ";")
    if max(map(text.columns, line.split("\n"))) <= text.WIDTH:
        return line + "\n"
    head = f"\t{c_type}{p.name} =" + (f" {cast}\n\t\t" if cast else " ")
    return text.wrap(f"{head}library_get_{function}(", ["f"] + args, ");") + "\n"


def serve_one(api, entry):
    out = text.prototype("static int", f"run_{entry.name}", ["struct library_frame *f"], "\n{\n")
    out += f"\tconst struct {F}_library *l = f->library;\n"
    for p in entry.params:
        if not is_handle(p):
            out += get_line(api, entry, p)
    out += "\n" + text.wrap("\tif (library_stop(", ["f", f"!l->{entry.name}", f'"{entry.name}"'], "))",
                            "\t\t    ") + "\n\t\treturn f->status;\n"
    args = ["f->handle" if is_handle(p) else p.name for p in entry.params]
    return out + text.wrap(f"\treturn l->{entry.name}(", args, ");") + "\n}\n\n"


def answered(entry):
    """The bytes of its answer; written by hand, it may be the longest."""
    if entry.hand("agent") or entry.hand("shim"):
        return "sizeof(struct library_answer)"
    element = next((p.base for p in entry.params if p.mark == "perf"), "")
    if element:
        return f"LIBRARY_LIST_FROM + LIBRARY_LIST * sizeof({element})"
    return f"LIBRARY_ANSWER({sum(p.mark in ('out', 'out?') for p in entry.params)})"


def serve_source(api):
    first = api.ops[F][0]
    out = text.head(
        f"What calls the agent's lib{F}: each gets the call's items in the order in which the stub\n"
        "put them (gpu-agent/worker/libraries/common/items.h), refuses once, and calls.", None,
        ['"gpu-agent/worker/libraries/common/items.h"', f'"gpu-agent/worker/libraries/{F}/{F}.h"',
         '"gpu-agent/worker/worker.h"'] +
        text.includes(*(f"{F}_{n}.h" for n in ("library", "ops", "wire")))) + "\n"
    every = items(api)
    out += plain.glue(api, F)
    named = [e for e in crossing(api) if plain.is_framed(e)]
    out += "".join(plain.serve_one(api, e) for e in named if not e.hand("agent"))
    out += "".join(serve_one(api, e) for e in every if not e.hand("agent"))
    out += "static const library_run runs[] = {\n"
    out += "".join(text.wrap(f"\t[OP_{e.name} - {first}] =", [f"run_{e.name}"], ",") + "\n"
                   for e in every)
    out += "};\n\n"
    out += plain.function("CUresult", "serve_items", ["struct worker *w", "struct request *r"],
                          f"\treturn library_serve(w, r, &{F}_plain, runs[r->header.op - {first}]);\n")
    out += "static const struct serve_entry entries[] = {\n"
    for e in every:
        out += text.wrap(f"\t[OP_{e.name} - {first}] = {{",
                         [f"OP_{e.name}", "sizeof(struct library_body)", answered(e),
                          library_flags(e), "serve_items", f'"{e.name}"'], "},", "\t\t") + "\n"
    out += "".join(plain.row(e, first) for e in named)
    return out + "};\n\n" + library.finder(F, first)
