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


def checked(api, entry):
    """(name, [argument], the entry of that name or None)"""
    name, args = target(entry)
    other = api.find(name)
    if other and len(other.params) != len(args):
        raise ApiError(f"{entry.origin}: {entry.name}: as({name}): it takes {len(other.params)} arguments")
    return name, args, other


def direct(api, entry):
    """[asserts, function, arguments] of a stub that does by itself what as() says; None where hand_NAME does,
    because somebody else calls it too, or it is more than a call."""
    if not entry.has("as") or entry.called:
        return None
    name, args, other = checked(api, entry)
    if unused(entry, args):
        return None
    if entry.family != "cudart" or not other or other.family != "cuda":
        return [], f"hand_{name}" if other else name, args
    c = Conversion(entry, other, args)
    if c.steps or any(p.mark == "out" for p in entry.params):
        return None
    return c.asserts, entering(entry), [f"{name}({', '.join(c.args)})"]


def entering(entry):
    """The macro by which a function of the runtime calls the driver's."""
    return "RUNTIME_ANYWHERE" if entry.has("no_context") else "RUNTIME_DRIVER"


def call(api, entry, passed):
    """[asserts, function, arguments] of a stub which hands on PASSED, {parameter: expression}."""
    made = direct(api, entry)
    if not made:
        return [], f"hand_{entry.name}", list(passed.values())
    asserts, function, args = made
    for name, expression in passed.items():
        if expression != name:
            args = [expression if a == name else re.sub(rf"(?<![\w.>]){name}\b", f"({expression})", a) for a in args]
    return asserts, function, args


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
        # A device that the driver looks at itself: natively no context is made current for it.
        if not self.steps and any(arg.startswith("(CUdevice)") for arg in args):
            self.steps.append("runtime_init()")

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
