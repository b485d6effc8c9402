# SPDX-License-Identifier: Apache-2.0
"""Functions that differ in their name and in the types that pointers point to: a library has many four times, for
the types of numbers.  Stubs of one shape share a macro, LIKE_FIRST, which is named after the first of them.
"""
from dataclasses import dataclass, replace

from . import text
from .api import abis

REALS = {"__half": 2, "float": 4, "double": 8, "cuComplex": 8, "cuDoubleComplex": 16}  # their bytes
NAME = "@"  # stands for the function's name until its macro's parameter does
LETTERS = ("TYPE", "OTHER", "THIRD", "FOURTH", "FIFTH")


@dataclass
class Shape:
    entries: list
    varies: dict   # position of a parameter -> the macro's parameter that is its type
    columns: list  # of the macro's parameters: the type in each entry

    def types(self, entry):
        """What an entry gives the macro's parameters."""
        at = self.entries.index(entry)
        return [types[at] for types in self.columns]


def is_open(api, _entry, param):
    """Whether the type that it points to may vary within a shape."""
    known = api.types.get(param.base)
    return param.stars and param.base.isidentifier() and param.base != "void" and \
        not (known and known.wire in ("descriptor", "handle")) and param.mark not in ("new", "gone", "each")


def model(entry, spelled):
    """The entry with NAME for its name, and SPELLED, {position: token}, for what pointers point to."""
    params = list(entry.params)
    for at, token in spelled.items():
        p = params[at]
        bytes_, comma, place = p.size.partition(",")
        size = f"sizeof({token}){comma}{place}" if bytes_ == str(REALS.get(p.base)) else p.size
        params[at] = replace(p, declaration=p.declaration.replace(p.base, token, 1), size=size)
    return replace(entry, name=NAME, params=params)


def group(api, entries, render, may_vary=is_open):
    """{entry's name: its shape}; the entries of one are those of which, and of whose models, RENDER makes the same."""
    alike = {}
    for entry in entries:
        places = {i: f"#{i}" for i, p in enumerate(entry.params) if may_vary(api, entry, p)}
        key = tuple(abis(entry)), render(entry, model(entry, places))
        alike.setdefault(key, []).append(entry)
    shapes = [shape_of(api, group, may_vary) for group in alike.values()]
    return {e.name: shape for shape in shapes for e in shape.entries if len(shape.columns) <= len(LETTERS)}


def shape_of(api, entries, may_vary):
    """Types that go together in all entries are one parameter of the macro; one that all have is none."""
    columns = {}
    for at, param in enumerate(entries[0].params):
        types = tuple(e.params[at].base for e in entries)
        if may_vary(api, entries[0], param) and len(set(types)) > 1:
            columns.setdefault(types, []).append(at)
    varies = {at: letter for places, letter in zip(columns.values(), LETTERS) for at in places}
    return Shape(entries, varies, list(columns))


def first(shape):
    """What the macro's body is made of."""
    return model(shape.entries[0], shape.varies)


def of(shape, wide):
    return f"LIKE_{shape.entries[0].name}" + ("_64" if wide else "")


def macro(shape, head, body, wide):
    """The definition of LIKE_FIRST; HEAD: what declares it, in the place of BODY's first lines."""
    if head:
        body = f"STUB_EXPORT {head}\n" + text.body(body)
    for prefix in ("CALL_", "OP_"):
        body = body.replace(prefix + NAME, f"{prefix}##name")
    body = body.replace(f"{NAME}_64", "name##_64").replace(NAME, "name")
    params = ", ".join(("name",) + LETTERS[:len(shape.columns)])
    return text.macro(f"{of(shape, wide)}({params})", body.strip("\n"))


def row(shape, entry, wide):
    return text.fitting(text.row(of(shape, wide), entry.name, *shape.types(entry))) + "\n"
