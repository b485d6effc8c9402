# SPDX-License-Identifier: Apache-2.0
"""A library whose functions run on the agent, in its own library there (api.Library): its opcodes, what
it exports, the agent's function table, and what its parameters are.  plain.py makes both sides of its calls.

An entry with hand(shim,agent) has only its stub, its opcode and its row in the agent's table made:
hand_NAME sends struct wire_NAME of protocol/libraries/FAMILY.h, serve_NAME serves it.  One with hand(shim)
and no opcode sends another's frame.
"""
import re

from . import letters, targets, text
from .agent import library_opened, opener
from .api import ApiError, abis
from .shim import version_map, wide_exported
from .wire import C_TYPE, crossing


def by_hand(entry):
    return entry.hand("shim") and entry.hand("agent")


def files(api, family):
    """{file: text}"""
    return {
        f"{family}_list.inc": function_list(api, family),
        **({f"{family}_ops.h": ops_header(api, family)} if family in api.ops else {}),
        f"{family}_hand.h": hand_header(api, family),
        f"{family}_library.h": library_header(api, family),
        f"{family}_library.c": library_source(api, family),
    }


def stem(api, family):
    return api.libraries[family].stem


def carrier(entry):
    """The parameter that is the handle that a call is made with: the first of a handle's type."""
    if entry.library.named_at:
        return next((p for p in entry.params if p.base == entry.library.handle and p.mark != "new"), None)
    return next((p for p in entry.params
                 if p.type.strip() in (entry.library.handle, *entry.library.others)), None)


def named(entry, param):
    """The name of a handle, as the stub has it."""
    return f"library_named({param.name})" if entry.library.named_at else param.name


def is_handle(entry, param):
    return param is carrier(entry)


def handle_type(entry):
    """The C type of the handle that it is made with, or that it makes; without one, of the front's own."""
    made = next((p.base for p in entry.params if p.mark == "new"), "")
    with_one = carrier(entry)
    return made or (with_one.type.strip() if with_one and not entry.library.named_at else entry.library.handle)


def side(one, kind):
    """What the front, and the worker's part, of handles of that C type are called: as the family, or as they are
    where there are handles of several types."""
    return one.family if kind == one.handle else re.sub("_t$", "", kind)


def side_of(entry):
    return side(entry.library, handle_type(entry))


def is_made(entry):
    """Whether what is local, or the library's part of it, is made from the stanza."""
    return entry.verb == "local" and (
        any(entry.has(o) for o in ("keeps", "tells", "sets_stream", "gets_stream")) or
        any(p.mark in ("new", "gone") for p in entry.params))


def kind_of(api, entry, param):
    kind = api.types.get(param.base)
    if not kind or kind.wire not in C_TYPE:
        raise ApiError(f"{entry.origin}: {entry.name}: no type statement for {param.base}")
    return kind


def function_list(api, family):
    rows = []
    for e, name in wide_exported(api.of(family)):
        if name != e.name or not is_asked(e):
            rows.append(f"OTHER({name}, {e.verb})")
        else:
            rows.append(f"SENT({name}, {e.verb}, {e.op})" if e.op else f"LOCAL({name}, {e.verb})")
    return text.table(
        f"A row for each function of {family}.api: SENT(NAME, VERB, OPCODE) where it has a frame, LOCAL(NAME,\n"
        "VERB) where it has none and the agent's library is asked for it, OTHER(NAME, VERB) where it is not:\n"
        "a _64 form, or one that is refused.", text.packed(rows, "SENT", "LOCAL", "OTHER"))


def is_asked(entry):
    """Whether the agent asks the library for it: all that crosses, and what sets a handle's state."""
    return entry.verb != "refused" and not entry.has("opaque") and (
        entry.op or entry.result.endswith(("Status_t", "Result", "Result_t")) or entry.library.form == "content")


def listed(family, sent, local="", other=""):
    """The family's list, each row what is said here of name, verb and op."""
    rows = {"SENT(name, verb, op)": sent, "LOCAL(name, verb)": local, "OTHER(name, verb)": other}
    return "".join(f"#define {row} {what}".rstrip() + "\n" for row, what in rows.items()) + \
        f"#include {text.includes(f'{family}_list.inc')[0]}\n#undef SENT\n#undef LOCAL\n#undef OTHER\n"


def ops_header(api, family):
    first, last = api.ops[family]
    out = text.head(f"Opcodes of {family}.api: {first} to {last}.",
                    f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_OPS_H")
    return out + f"\nenum {family}_op {{\n{listed(family, 'OP_##name = op,')}}};\n\n#endif\n"


def hand_header(api, family):
    out = text.head(f"What shim/libraries/{family}/ writes by hand.",
                    f"VCUDA_SHIM_GENERATED_{family.upper()}_HAND_H",
                    [f'"protocol/libraries/{family}.h"'])
    out += f"\nextern const struct library_front {family}_front; /* its stanza's */\n"
    out += "".join(f"extern const struct library_front {side(api.libraries[family], handle)}_front;\n"
                   for handle in api.libraries[family].others)
    for e in api.of(family):
        if not e.library.exported and (e.verb == "local" or e.hand("shim")) and not is_made(e) and not targets.direct(api, e):
            out += "\n" + text.prototype(e.result, f"hand_{e.name}", hand_items(e))
    return out + "\n\n#endif\n"


def widened(declaration, to="int64_t"):
    """int becomes that; long long int stays."""
    return re.sub(r"(?<!long )\bint\b", to, declaration)


def items_of(entry, wide=False):
    items = [p.declaration for p in entry.params]
    return [widened(i) for i in items] if wide else items


def hand_items(entry):
    """Functions with a _64 form are written once, for the wider one."""
    return items_of(entry, entry.has("wide")) or ["void"]


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
    return f"\nSTUB_NARROW({unsupported});\n" + letters.shorter(text.by_major(wide))


def maps(api):
    """{file name: version script} of each major of each library."""
    out = {}
    for family, one in api.libraries.items():
        for major in one.majors:
            names = {n for _, n in wide_exported([e for e in api.of(family) if major in abis(e)])}
            out[f"{one.stem}{major}.map"] = version_map("" if one.nodeless else f"{one.stem}.so.{major}",
                                                        one.names(names))
    return out


def library_header(api, family):
    out = text.head(f"The agent's {stem(api, family)}, opened at run time: its functions by name.",
                    f"VCUDA_AGENT_GENERATED_{family.upper()}_LIBRARY_H",
                    ['"common/error.h"', '"gpu-agent/probe/library_search.h"', '"gpu-agent/worker/worker.h"'] +
                    text.includes(f"{family}_api.h"))
    out += f"\nstruct {family}_library {{\n\tvoid *library;\n" + \
        listed(family, *["__typeof__(name) *name;"] * 2)
    out += "};\n\n" + library_opened(family)
    if family not in api.ops:
        return out + "#endif\n"
    out += "/* As serve_find, for this family's opcodes. */\n"
    out += f"const struct serve_entry *{family}_serve_find(uint16_t op);\n"
    out += f"extern const struct plain_library {family}_plain; /* its stanza's */\n"
    out += "".join(f"extern const struct plain_library {side(api.libraries[family], handle)}_plain;\n"
                   for handle in api.libraries[family].others)
    hand = [e for e in crossing(api, family) if e.hand("agent")]
    out += f"\n/* Written by hand in gpu-agent/worker/libraries/{family}. */\n" if hand else ""
    content = api.libraries[family].form == "content"
    out += "struct library_frame;\n" if content else ""
    for e in hand:
        if content and not any(p.mark == "new" for p in e.params):
            out += text.prototype("int", f"run_{e.name}", ["struct library_frame *f"]) + "\n"
            continue
        out += text.prototype("CUresult", f"serve_{e.name}",
                              ["struct worker *w", "struct request *r"]) + "\n"
    return out + "\n#endif\n"


def library_source(api, family):
    out = text.head(f"Opens a {stem(api, family)}.", None,
                    ["<dlfcn.h>", "<errno.h>", "<stddef.h>", "<string.h>", "",
                     *text.includes(f"{family}_library.h")])
    row = f"{{#name, offsetof(struct {family}_library, name)}},"
    return out + opener(f"{family}_library", listed(family, row, row),
                        api.libraries[family].needs, stem(api, family))


def finder(family, first):
    """FAMILY_serve_find, over `runs`."""
    out = text.prototype("const struct serve_entry *", f"{family}_serve_find", ["uint16_t op"], "")
    return out + f"""
{{
	unsigned at = (unsigned)op - {first}u;

	if (at >= sizeof(runs) / sizeof(runs[0]) || !runs[at].entry.serve)
		return NULL;
	return &runs[at].entry;
}}
"""
