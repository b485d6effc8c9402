# SPDX-License-Identifier: Apache-2.0
"""Opcodes and the structs that travel: enum OP_…, struct wire_… and wire_…_reply."""
import re
from dataclasses import dataclass

from . import text
from .api import ApiError

C_TYPE = {"u32": "uint32_t", "i32": "int32_t", "enum": "uint32_t", "u64": "uint64_t", "i64": "int64_t",
          "f32": "float", "f64": "double", "stream": "uint64_t", "function": "uint64_t",
          "handle": "uint64_t"}


@dataclass
class Field:
    name: str
    c_type: str
    size: int
    align: int
    array: str = ""      # "[128]"
    note: str = ""

    @property
    def declaration(self):
        return f"{self.c_type} {self.name}{self.array};"


def value_field(api, entry, param):
    """The field that holds one value of the parameter's (pointed-to) type."""
    kind = api.types.get(param.base)
    if not kind:
        raise ApiError(f"{entry.origin}: {entry.name}: no type statement for {param.base}")
    if kind.wire == "struct":
        return Field(param.name, kind.name, kind.size, kind.align)
    if kind.wire == "bytes":
        return Field(param.name, "unsigned char", kind.size, 1, f"[{kind.size}]")
    return Field(param.name, C_TYPE[kind.wire], kind.size, kind.align)


def run_field(param, note):
    return Field(param.name, "struct wire_run", 8, 4, note=note)


def request_fields(api, entry):
    fields = []
    for p in entry.params:
        if p.mark in ("host", "out", "out?"):
            continue
        if p.mark in ("new", "gone"):
            note = "minted by the shim" if p.mark == "new" else "not valid after this"
            fields.append(Field(p.name, "uint64_t", 8, 8, note=f"KIND_{p.size}, {note}"))
        elif p.mark == "str":
            fields.append(run_field(p, "NUL-terminated"))
        elif p.mark in ("in", "inout") and p.size:
            fields.append(run_field(p, f"{p.size} x {element(p)}"))
        elif p.mark == "device":
            fields.append(Field(p.name, "uint64_t", 8, 8))
        else:
            field = value_field(api, entry, p)
            kind = api.types[p.base]
            if kind.wire in ("stream", "function", "handle"):
                field.note = "KIND_" + (kind.kind or p.base)
            fields.append(field)
    return fields


def reply_fields(api, entry):
    fields = []
    for p in entry.params:
        if p.mark not in ("out", "out?", "inout"):
            continue
        if p.size:
            fields.append(run_field(p, f"at most {p.size} x {element(p)}"))
        else:
            fields.append(value_field(api, entry, p))
    return fields


def element(param):
    """What a run counts."""
    return "byte" if param.base in ("void", "char", "uint8_t") else param.base


def padded(fields):
    """FIELDS with explicit padding; (fields, size)."""
    out, at, pads = [], 0, 0
    for field in fields + [Field("", "", 0, 8)]:
        gap = -at % field.align
        if gap == 4:
            out.append(Field(f"pad_{pads}", "uint32_t", 4, 4))
        elif gap:
            out.append(Field(f"pad_{pads}", "uint8_t", gap, 1, f"[{gap}]"))
        pads += 1 if gap else 0
        at += gap + field.size
        if field.name:
            out.append(field)
    return out, at


def asserted(c_type, size):
    return text.wrap("_Static_assert(", [f"sizeof({c_type}) ==", f'{size}, ""'], ");", separator="")


def struct(name, fields):
    """A struct with its size asserted."""
    fields = fields or [Field("reserved", "uint64_t", 8, 8)]
    fields, size = padded(fields)
    lines = [f"struct {name} {{"]
    for f in fields:
        note = f" /* {f.note} */" if f.note else ""
        lines.append(f"\t{f.declaration}{note}")
    lines += ["};", asserted(f"struct {name}", size), ""]
    return "\n".join(lines)


def crossing(api, family):
    """The entries that have a frame of their own, in opcode order."""
    return sorted((e for e in api.of(family) if e.op), key=lambda e: e.op)


def ops_header(api, family):
    first, last = api.ops[family]
    out = text.head(f"Opcodes of {family}.api: {first} to {last}.",
                    f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_OPS_H")
    out += f"\nenum {family}_op {{\n"
    for e in crossing(api, family):
        out += f"\tOP_{e.name} = {e.op},\n"
    return out + "};\n\n#endif\n"


def op_last(api):
    """The highest opcode that there may be, for who counts by opcode."""
    return text.head("The highest opcode of all descriptions' ranges.", "VCUDA_PROTOCOL_GENERATED_OP_LAST_H") + \
        f"\n#define OP_LAST {max(last for _, last in api.ops.values())}\n\n#endif\n"


def operations(api):
    """The name of each opcode, for people."""
    own = [family for family in api.ops if family not in api.libraries]
    entries = sorted((e for family in own for e in crossing(api, family)), key=lambda e: e.op)
    rows = text.packed([f"OPERATION({e.op}, {e.name})" for e in entries], "OPERATION", by_subject=True)
    rows += ["#define SENT(name, verb, op) OPERATION(op, name)", "#define LOCAL(name, verb)",
             "#define OTHER(name, verb)"]
    rows += [f"#include {text.includes(f'{family}_list.inc')[0]}" for family in api.libraries]
    rows += ["#undef SENT", "#undef LOCAL", "#undef OTHER"]
    return text.table("OPERATION(opcode, name) of each frame.", rows)


def wire_header(api, family):
    out = text.head(
        f"Bodies and replies of {family}.api's frames.  Fields stand in the order of the call's\n"
        "parameters and have their names; byte runs lie behind the struct.",
        f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_WIRE_H",
        ["<cuda.h>", "<stdint.h>", "", '"protocol/wire/frame.h"', '"protocol/wire/green.h"',
         '"protocol/wire/open.h"'])
    used = {p.base for e in crossing(api, family) for p in e.params}
    for kind in api.types.values():
        if kind.name in used and kind.wire in ("struct", "bytes"):
            out += "\n" + asserted(kind.name, kind.size)
    out += "\n"
    for e in crossing(api, family):
        out += f"\n/* {e.verb} {e.op} */\n"
        out += struct(f"wire_{e.name}", request_fields(api, e))
        reply = reply_fields(api, e)
        if reply:
            out += struct(f"wire_{e.name}_reply", reply)
    return out + "\n#endif\n"


def on_the_wire(entry, expression):
    """EXPRESSION over the call's parameters, as one over the frame's body."""
    names = {p.name for p in entry.params}
    return re.sub(r"\b[A-Za-z_]\w*\b",
                  lambda m: f"body->{m.group(0)}" if m.group(0) in names else m.group(0),
                  expression)
