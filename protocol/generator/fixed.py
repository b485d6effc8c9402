# SPDX-License-Identifier: Apache-2.0
"""Calls whose items (protocol/libraries/items.h) all have a known size: numbers, addresses, scalars.  Each
item's place in the key or in the varying part is known here, so the stub lays the body out as it is declared,
and the serve function checks each part once.
"""
import re
from dataclasses import dataclass, field

from . import library, text
from .api import ApiError

VALUES = ("scalar", "inout", "result")  # marks of bytes or an address, as the pointer mode says
# Of a number in the key: how the stub makes words of it, how the serve function reads them.
ONE, TWO = ("i32", "u32", "enum"), ("i64", "u64")


@dataclass
class Layout:
    """{parameter: its first word}, and how many words there are."""
    key: dict = field(default_factory=dict)
    varying: dict = field(default_factory=dict)
    out: dict = field(default_factory=dict)
    keys: int = 0
    varied: int = 0
    outs: int = 0


@dataclass(frozen=True)
class Sum:
    """A number of words, and how often it has those of a type that is not known here."""
    known: int
    types: tuple = ()

    def __radd__(self, known):
        return self + known

    def __add__(self, more):
        more = more if isinstance(more, Sum) else Sum(more)
        return Sum(self.known + more.known, self.types + more.types)

    def __str__(self):
        times = {t: self.types.count(t) for t in self.types}
        terms = [f"{n} * LIBRARY_WORDS({t})" if n > 1 else f"LIBRARY_WORDS({t})" for t, n in times.items()]
        return " + ".join(terms + ([str(self.known)] if self.known else []))


def words(param):
    """64-bit words that a scalar takes at most: one whose size is an expression has 16 bytes at most, or is the
    parameter of a modified rotation."""
    if param.size.isdigit():
        return (int(param.size) + 7) // 8
    if match := re.fullmatch(r"sizeof\((\S+)\)", param.size):
        return Sum(0, (match[1],))
    return 5 if param.size.endswith("* 5") else 2


def wire(api, entry, p):
    return library.kind_of(api, entry, p).wire


def layout(api, entry):
    out = Layout()
    for p in entry.params:
        if library.is_handle(entry, p):
            continue
        if p.mark == "info":
            out.out[p.name] = out.outs
            out.outs += 1
        elif p.mark in VALUES + ("device", "fills", "varying"):
            out.varying[p.name] = out.varied
            out.varied += words(p) if p.mark in VALUES else 1
            if p.mark in ("inout", "result"):
                out.out[p.name] = out.outs
                out.outs += words(p)
        elif p.mark:
            raise ApiError(f"{entry.origin}: {entry.name}: {p.mark} does not suit calls without descriptors")
        else:
            out.key[p.name] = out.keys
            out.keys += 1 if wire(api, entry, p) in ONE + ("f32",) else 2
    return out


def key_item(api, entry, p):
    of = wire(api, entry, p)
    if of in ONE:
        return f"(uint32_t){p.name}"
    if of in TWO:
        return f"LIBRARY_TWO({p.name})"
    return f"library_float_bits({p.name})" if of == "f32" else f"LIBRARY_TWO(library_double_bits({p.name}))"


def body(api, entry, places):
    """The declaration of a stub's body with all that goes by value in it."""
    key = [key_item(api, entry, p) for p in entry.params if p.name in places.key]
    varying, next_at = [], "0"
    for p in entry.params:
        if p.mark in ("device", "varying"):
            at = places.varying[p.name]
            value = f"(uint64_t)(uintptr_t){p.name}" if p.mark == "device" else p.name
            varying.append(value if str(at) == next_at else f"[{at}] = {value}")
            next_at = str(at + 1)
    parts = [("", [f".head.key_words = {places.keys}"], ",")]
    parts += [(f".{name} = {{", values, "},") for name, values in (("key", key), ("varying", varying)) if values]
    init = [head + ", ".join(values) + end[:-1] for head, values, end in parts]
    out = f"\tLIBRARY_BODY({places.keys}, {places.varied}) body = {{"
    if text.columns(out + ", ".join(init) + "};") <= text.WIDTH:
        return out + ", ".join(init) + "};\n"
    lines = [text.wrap("\t\t" + head, values, end, "\t\t\t") for head, values, end in parts]
    return "\n".join([out, *lines]) + "\n\t};\n"


def puts(entry, places):
    """Statements that put what is no value by itself into the body."""
    out = ""
    for p in entry.params:
        if p.mark not in VALUES + ("fills",):
            continue
        args = ["&call", f"&body.varying[{places.varying[p.name]}]", p.name]
        if p.mark != "result":
            args.append(p.size)
        if p.mark == "fills":
            args.append(f"sizeof(*{p.name})")
        out += text.wrap(f"\tvcuda_library_{p.mark}(", args, ");") + "\n"
    return out


def copies(entry, places):
    """Statements that copy what came back to the program."""
    out = ""
    for p in entry.params:
        if p.mark in ("result", "inout"):
            args = ["&call", p.name, f"&reply.out[{places.out[p.name]}]", p.size]
            out += text.wrap("\tvcuda_library_copy_result(", args, ");") + "\n"
        elif p.mark == "info":
            # Of a call that failed it says which argument is wrong; where the agent did not answer it is 0.
            at = f"reply.out[{places.out[p.name]}]"
            out += f"\tif ({p.name} && (!status || {at}))\n\t\t*{p.name} = (int){at};\n"
    return out


def stub(api, entry):
    places, f = layout(api, entry), entry.family
    handle = next(p for p in entry.params if library.is_handle(entry, p))
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n{\n")
    out += "\tstruct library_call call;\n" + body(api, entry, places)
    out += f"\tLIBRARY_RESULTS({places.outs}) reply;\n\tint status;\n" if places.outs else ""
    out += "\n" + text.wrap("\tvcuda_library_begin(", [
        "&call", f"&{f}_front", f"CALL_{entry.name}", handle.name, "&body.head.state"], ");") + "\n"
    out += puts(entry, places)
    if entry.has("keeps"):
        first = next(p for p in entry.params if not library.is_handle(entry, p))
        number = entry.library.word(entry.options["keeps"])
        cast = "(uintptr_t)" if first.mark == "device" else \
            "(uint32_t)" if wire(api, entry, first) == "enum" else ""
        out += f"\tvcuda_library_keeps(&call, {number}, (uint64_t){cast}{first.name});\n"
    args = ["&call", f"OP_{entry.name}", "&body", "sizeof(body)",
            f"LIBRARY_KEY_TO({places.keys})" if entry.verb == "learned" else "0"]
    if not places.outs:
        return out + text.wrap("\treturn vcuda_library_send(", args + ["NULL", "0"], ");") + "\n}\n"
    out += text.wrap("\tstatus = vcuda_library_send(", args + ["&reply", "sizeof(reply)"], ");") + "\n"
    return out + copies(entry, places) + "\treturn status;\n}\n"


def argument(api, entry, p, places):
    if library.is_handle(entry, p):
        return "f->handle"
    if p.mark == "device":
        return f"(void *)(uintptr_t)at[{places.varying[p.name]}]"
    if p.mark == "varying":
        return f"at[{places.varying[p.name]}]"
    if p.mark:
        return p.name
    at, of = places.key[p.name], wire(api, entry, p)
    kind = p.type.replace("const", "").strip()
    if of in ONE:
        return f"key[{at}]" if of == "u32" else f"({kind})key[{at}]"
    read = {"f32": "float", "f64": "double"}.get(of, "long")
    return f"({kind})library_{read}(key + {at})" if of == "i64" else f"library_{read}(key + {at})"


def declarations(api, entry, places):
    out = ""
    if places.keys:
        out += f"\tconst uint32_t *key = library_get_words(f, {places.keys});\n"
    if places.varied:
        out += f"\tconst uint64_t *at = library_get_bytes(f, {places.varied} * 8);\n"
    for p in entry.params:
        if p.mark in VALUES:
            get = "scalar_at" if p.mark == "scalar" else "result_at"
            out += f"\tvoid *{p.name} = library_get_{get}(f, at, {places.varying[p.name]}, {words(p)});\n"
        elif p.mark == "fills":
            count = places.key[p.size]
            args = ["f", "at", str(places.varying[p.name]), f"key ? library_long(key + {count}) : 0",
                    f"sizeof({p.base})"]
            out += text.wrap(f"\tvoid *{p.name} = library_get_filled(", args, ");") + "\n"
        elif p.mark == "info":
            out += f"\tint *{p.name} = library_get_out(f);\n"
    return out


def serve_parts(api, entry):
    """[declarations, arguments]."""
    places = layout(api, entry)
    return declarations(api, entry, places), [argument(api, entry, p, places) for p in entry.params]
