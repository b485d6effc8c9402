# SPDX-License-Identifier: Apache-2.0
"""Functions that take the same parameters but for what pointers point to share a prototype: PROTOTYPE_FIRST(name,
…), a macro named after the first of them, which FAMILY_api.h declares them by and their stubs begin with.  So has one
alone whose parameters take some lines."""
import re
from dataclasses import dataclass

from . import letters, shapes, text
from .library import items_of, widened


@dataclass
class Prototype:
    shape: shapes.Shape
    wide: bool      # its functions have _64 forms, which take int64_t for INT

    @property
    def name(self):
        return f"PROTOTYPE_{self.shape.entries[0].name}"

    def letters(self):
        return list(shapes.LETTERS[:len(self.shape.columns)])

    @property
    def alone(self):
        """Whether it is one function's: the macro takes nothing."""
        return not self.wide and len(self.shape.entries) == 1

    def of(self, entry, wide):
        """Its use for one function."""
        if self.alone:
            return self.name
        name = [f"{entry.name}_64", "int64_t"] if wide else [entry.name, "int"] if self.wide else [entry.name]
        return text.row(self.name, *name, *self.shape.types(entry))

    def of_stubs(self, shape, wide):
        """Its use in the macro of stubs, whose parameters are some of its types."""
        types = self.shape.types(shape.entries[0])
        for at, letter in shape.varies.items():
            if at in self.shape.varies:
                types[shapes.LETTERS.index(self.shape.varies[at])] = letter
        name = ["name##_64", "int64_t"] if wide else ["name", "int"] if self.wide else ["name"]
        return text.row(self.name, *name, *types)


def may_vary(api, entry, param):
    return shapes.is_open(api, entry, param) and not (entry.has("wide") and param.base == "int")


def head(entry):
    """The function's declaration, with INT for int where there is a _64 form."""
    items = [widened(i, "INT") for i in items_of(entry)] if entry.has("wide") else items_of(entry)
    return text.prototype(entry.result, entry.name, items or ["void"], "")


def group(api, family, has_stub):
    """{entry's name: its prototype} of those that share one, with others, with a _64 form or with a stub, which
    HAS_STUB(entry) says that there is, and are the shorter for it."""
    entries = [e for e in api.of(family) if e.declared()]
    found = shapes.group(api, entries, lambda e, m: (e.has("wide"), head(m)), may_vary)
    out = {}
    for entry in entries:
        shape = found.get(entry.name)
        if shape and entry is shape.entries[0]:
            one = Prototype(shape, entry.has("wide"))
            if one.wide or saves(one, has_stub):
                out.update((e.name, one) for e in shape.entries)
    return out


def saves(prototype, has_stub):
    entries = prototype.shape.entries
    if len(entries) > 1:
        return macro(prototype).count("\n") + len(entries) < sum(head(e).count("\n") + 1 for e in entries)
    lines = head(entries[0]).count("\n") + 1
    return has_stub(entries[0]) and macro(prototype).count("\n") + 2 < 2 * lines


def macro(prototype):
    if prototype.alone:
        return text.macro(prototype.name, head(prototype.shape.entries[0]))
    params = ", ".join(["name"] + (["INT"] if prototype.wide else []) + prototype.letters())
    body = head(shapes.first(prototype.shape)).replace(shapes.NAME, "name")
    return text.macro(f"{prototype.name}({params})", body)


def header(api, family, shared):
    """FAMILY_api.h"""
    out = text.head(f"The functions that {api.libraries[family].stem} exports; no header of NVIDIA's is needed.",
                    f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_API_H",
                    [f'"protocol/libraries/{family}.h"', letters.HEADER])
    if any(p.wide for p in shared.values()):
        out += "\n/* A function and its _64 form. */\n#define WITH_64(name, prototype, ...) \\\n" \
            "\tprototype(name, int, ##__VA_ARGS__); \\\n\tprototype(name##_64, int64_t, ##__VA_ARGS__)\n"
    out += '\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    for e in api.of(family):
        if not e.declared():
            continue
        one = shared.get(e.name)
        if one and e is one.shape.entries[0]:
            out += macro(one)
        if not one:
            out += text.prototype(e.result, e.name, items_of(e) or ["void"]) + "\n"
        elif one.wide:
            out += text.fitting(text.row("WITH_64", e.name, one.name, *one.shape.types(e)) + ";") + "\n"
        else:
            out += text.fitting(one.of(e, False) + ";") + "\n"
    return letters.shorter(out) + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
