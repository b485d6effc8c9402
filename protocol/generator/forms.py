# SPDX-License-Identifier: Apache-2.0
"""Functions that are a form of another one, as(TARGET) or as(TARGET(ARGUMENT, …)): hand_NAME, made where the stub
does not call TARGET itself (targets.direct).

TARGET is a function of the same family, a function of the driver (for the runtime), or one of the
room's own that its forms.h declares.  An argument is an expression of parameters and null_stream.
"""
from . import text
from .api import abis
from .library import is_made, items_of
from .targets import Conversion, checked, direct, entering, unused

ROOMS = {"cuda": "driver", "cudart": "runtime"}


def room(family):
    return f"shim/{ROOMS.get(family, f'libraries/{family}')}"


def files(api):
    out = {}
    for family in sorted({e.family for e in api.entries if e.has("as") and not direct(api, e)}):
        entries = [e for e in api.of(family) if e.has("as") and not direct(api, e)]
        body = driver_form if family == "cudart" else plain_form
        out[f"{family}_forms.c"] = text.head(
            f"Functions of {family}.api that are a form of another one, called with what its as()\n"
            "says.", None, [f'"{room(family)}/forms.h"']) + text.by_major(
                [(abis(e), "\n" + body(api, e)) for e in entries])
    return out


def head_of(entry):
    """The definition's first lines."""
    extra = []
    if entry.twin and not entry.streams:
        extra = ["cudaStream_t null_stream" if entry.family == "cudart" else "CUstream null_stream"]
    return text.prototype(entry.result, f"hand_{entry.name}",
                          (items_of(entry, entry.has("wide")) + extra) or ["void"], "\n{\n")


def plain_form(api, entry):
    name, args, other = checked(api, entry)
    if other:
        name = f"hand_{name}"
    out = head_of(entry) + unused(entry, args)
    return out + text.wrap(f"\treturn {name}(", args, ");") + "\n}\n"


def driver_form(api, entry):
    name, args, other = checked(api, entry)
    if not other or other.family != "cuda":
        return plain_form(api, entry)
    c = Conversion(entry, other, args)
    outs = [p.name for p in entry.params if p.mark == "out"]
    out = "".join(c.asserts) + head_of(entry)
    if not c.steps and not outs:
        return out + unused(entry, args) + text.wrap(
            f"\treturn {entering(entry)}({name}(", c.args, "));") + "\n}\n"
    out += "".join(f"\t{line}\n" for line in c.locals)
    steps = c.steps or ["runtime_init()" if entry.has("no_context") else "runtime_enter()"]
    out += f"\tcudaError_t error = {steps[0]};\n\n" + unused(entry, args)
    out += "".join(f"\tif (!error)\n\t\terror = {step};\n" for step in steps[1:])
    if outs:
        out += text.wrap("\tif (", [f"!{n}" for n in outs], ")", "\t    ", " ||")
        out += "\n\t\treturn cudaErrorInvalidValue;\n"
    out += "\tif (error)\n\t\treturn error;\n"
    return out + text.wrap(f"\treturn runtime_status({name}(", c.args, "));") + "\n}\n"


def generated(entry):
    """Whether the shim's half of a function that is served is made from its description."""
    written = entry.verb == "local" or "shim" in entry.options.get("hand", "").split(",")
    return is_made(entry) or any(entry.has(o) for o in ("as", "same", "answers")) or not written


def counts(api, families):
    """(functions whose body is generated, functions that are served)"""
    served = [e for family in families for e in api.of(family) if e.verb != "refused"]
    return sum(generated(e) for e in served), len(served)
