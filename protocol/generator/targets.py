# SPDX-License-Identifier: Apache-2.0
"""What as(TARGET) and as(TARGET(ARGUMENT, …)) say: the function that does the work, and what it is given."""
import re

from .api import ApiError, split_top


def target(entry):
    """(name, [argument])"""
    match = re.match(r"([A-Za-z_]\w*)(?:\((.*)\))?$", entry.options["as"])
    if not match:
        raise ApiError(f"{entry.origin}: {entry.name}: as({entry.options['as']}): no call")
    if match.group(2) is None:
        return match.group(1), [p.name for p in entry.params]
    return match.group(1), split_top(match.group(2))


def unused(entry, args):
    """Parameters that the target does not get."""
    words = set(re.findall(r"\w+", " ".join(args)))
    names = [p.name for p in entry.params]
    if entry.twin and not entry.streams:
        names.append("null_stream")
    return "".join(f"\t(void){n};\n" for n in names if n not in words)


def kind(param):
    return re.sub(r"\s+", "", re.sub(r"\bunsigned\b(?! (int|long|char|short))", "unsigned int",
                                     param.type))


class Conversion:
    """The arguments of a driver function, made from those of a runtime function by their types."""

    def __init__(self, entry, other, args):
        self.locals, self.steps, self.asserts, self.args = [], [], [], []
        params = {p.name: p for p in entry.params}
        for arg, to in zip(args, other.params):
            self.args.append(self.convert(params[arg], to) if arg in params else arg)

    def convert(self, p, to):
        if to.type == "CUdevice" and p.type == "int":
            return self.found(p, "CUdevice", "runtime_device")
        if to.type == "CUfunction" and p.stars:
            return self.found(p, "CUfunction", "runtime_function")
        if kind(p) == kind(to) or p.type.replace("const ", "") == to.type.replace("const ", ""):
            drops = "const " in p.type and "const " not in to.type
            return f"({to.type}){p.name}" if drops else p.name
        if "void" not in (p.base, to.base) and p.stars and to.stars:
            self.asserts.append(f'_Static_assert(sizeof({p.base}) == sizeof({to.base}), "");\n')
        return f"({to.type}){p.name}"

    def found(self, p, c_type, by):
        """One that must be looked up, which enters by itself."""
        self.locals.append(f"{c_type} {p.name}_found;")
        self.steps.append(f"{by}({p.name}, &{p.name}_found)")
        return f"{p.name}_found"
