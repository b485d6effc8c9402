# SPDX-License-Identifier: Apache-2.0
"""Calls whose arguments travel as items (protocol/libraries/items.h), which both ends read in the order of
the parameters: the stub puts each with shim/libraries/common/items.h, the serve function gets it with
gpu-agent/worker/libraries/common/items.h.  Where all items have a known size, both are shorter: fixed.py.
"""
from . import fixed, library, text
from .api import ApiError, split_top

# How a number travels: representation -> the word that names it in library_put_… and library_get_….
NUMBERS = {"i32": "int", "u32": "int", "enum": "int", "i64": "long", "u64": "long",
           "f32": "float", "f64": "double"}
# Numbers of the answer that a parameter takes.
OUTS = {"out": 1, "out?": 1, "inout": 1, "inout?": 1, "sized": 1, "result": 2}


def descriptor_kind(api, param):
    kind = api.own.get((param.family, param.base)) or api.types.get(param.base)
    return kind.kind if kind and kind.wire == "descriptor" else ""


def travels(api, entry):
    """Whether the call travels as items: not what makes or ends a handle, nor, but in form content, what is
    written by hand."""
    if any(p.mark in ("new", "gone") for p in entry.params):
        return False
    return entry.library.form == "content" or not (entry.hand("shim") or entry.hand("agent"))


def has_sizes(api, entry):
    """Whether some of its items have sizes that only the call knows: descriptors."""
    return travels(api, entry) and (
        entry.library.form == "content" or any(descriptor_kind(api, p) for p in entry.params))


def number(api, entry, param):
    kind = api.types.get(param.base)
    if not kind or kind.wire not in NUMBERS or param.stars:
        raise ApiError(f"{entry.origin}: {entry.name}: how {param.name} travels is not said")
    return NUMBERS[kind.wire]


def flagged(param, kind):
    """The kind of a descriptor, with what its mark says of it."""
    return {"stays": f"{kind} | LIBRARY_STAYS", "sized": f"{kind} | LIBRARY_SIZED"}.get(param.mark, kind)


def is_stream(api, param):
    kind = api.types.get(param.base)
    return kind and kind.wire == "stream" and not param.stars


def put_of(api, entry, p):
    """[function, its arguments behind the call] that puts one parameter."""
    n, kind = p.name, descriptor_kind(api, p)
    if p.mark == "each":
        return ["put_each", n, p.size, kind]
    if kind:
        return ["put_descriptor", n, flagged(p, kind)]
    if p.mark == "result":
        return ["put_result", n, p.size]
    if p.mark in ("inout", "inout?"):
        return ["put_inout" if p.mark == "inout" else "put_inout_maybe", n, f"sizeof(*{n})"]
    if p.mark in ("aligned", "device", "value"):
        more = [f"sizeof(*{n})"] if p.mark == "value" else [p.size or "NULL"] if p.mark == "aligned" else []
        return [f"put_{p.mark}", n] + more
    if p.mark == "scalar" and "," in p.size:
        size, place, *beside = split_top(p.size)
        return ["put_placed", f"{beside[0]} ? {n} : NULL" if beside else n, size,
                place.replace("mode", "items.mode"), "true" if beside else "false"]
    if p.mark in ("scalar", "ints"):
        return [f"put_{p.mark}", n, p.size]
    if p.mark in ("out", "out?"):
        return ["out" if p.mark == "out" else "out_maybe", n, f"sizeof(*{n})"]
    if p.mark == "perf":
        return ["list", n, p.size, f"sizeof(*{n})"]
    if is_stream(api, p):
        return ["put_stream", n]
    return [f"put_{number(api, entry, p)}", n]


def put(function, args):
    """The use of a macro of shim/libraries/common/items.h, or the call."""
    if function in ("out", "out_maybe", "list"):
        return f"PUT_{function.upper()}({', '.join(args[:-1])})"
    what = function[len("put_"):]
    return f"PUT_{what.upper()}({args[0]})" if what in ("int", "long") else f"PUT({', '.join([what] + args)})"


def stub(api, entry):
    if not has_sizes(api, entry):
        return fixed.stub(api, entry)
    # One that takes a stream and no handle has the front's own.
    with_one = library.carrier(entry)
    handle = library.named(entry, with_one) if with_one else f"{entry.family}_own()"
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n")
    puts = [library.side_of(entry), entry.name, entry.verb.upper(), handle]
    for p in entry.params:
        if p.mark == "workspace":
            puts.append(f"(void){p.name}")
        elif not library.is_handle(entry, p) and p.mark != "host":
            function, *args = put_of(api, entry, p)
            puts.append(put(function, args))
    if entry.has("requires"):
        puts.append(f"library_require(&items, {entry.options['requires']})")
    return out + text.broken_lines(text.wrap("SEND_ITEMS(", puts, ")", "\t"))


def get_of(api, entry, p):
    """(C type, what it is cast from, function, its arguments) that reads one parameter."""
    kind = descriptor_kind(api, p)
    if p.mark == "each":
        return f"const {p.base} *", f"(const {p.base} *)", "each", [p.size, kind]
    if kind:
        return f"{p.base} {'*' * p.stars}", "", "descriptor", [flagged(p, kind)]
    if p.mark in ("inout", "inout?"):
        return f"{p.base} *", "", "inout", []
    if p.mark == "numbers":
        return f"{p.base} *", "", p.mark, []
    if p.mark == "value":
        return f"const {p.base} *", "", p.mark, [f"sizeof({p.base})"]
    if p.mark == "scalar" and "," in p.size:
        _, place, *beside = split_top(p.size)
        return "void *", "", "placed", [place.replace("mode", "f->mode"), "true" if beside else "false"]
    if p.mark in ("aligned", "device", "scalar", "result"):
        return ("int *" if p.base in ("int", "int32_t") else "void *"), "", p.mark, []
    if p.mark in ("out", "out?"):
        return f"{p.base} *", "", "out", []
    if p.mark == "perf":
        return f"{p.base} *", "", "list", [p.size, f"sizeof({p.base})"]
    if p.mark == "ints":
        raise ApiError(f"{entry.origin}: {entry.name}: ints are checked by hand(agent)")
    if p.mark == "workspace":
        return "void *", "", p.mark, [p.size]
    plain_type = p.type.replace("const", "").strip()
    return plain_type + " ", f"({plain_type})", number(api, entry, p), []


def get(api, entry, p):
    """The declaration of one parameter that is read from the frame, by macros of
    gpu-agent/worker/libraries/common/items.h."""
    c_type, cast, function, args = get_of(api, entry, p)
    if function in ("int", "long") and cast:
        return f"GET_{function.upper()}({c_type.strip()}, {p.name})"
    if cast.startswith("(const"):
        return f"{c_type}{p.name} = {cast}library_get_{function}({', '.join(['f'] + args)})"
    return f"GET({', '.join([c_type.strip(), p.name, function] + args)})"


def argument(api, entry, p):
    return "f->handle" if library.is_handle(entry, p) else "f->stream" if is_stream(api, p) else p.name


def serve_parts(api, entry):
    """[declarations, arguments]."""
    if not has_sizes(api, entry):
        return fixed.serve_parts(api, entry)
    gets = []
    # What a workspace's size is made of may stand behind it.
    for p in sorted(entry.params, key=lambda p: p.mark == "workspace"):
        if p.mark == "host":
            gets.append(f"{p.base} *{p.name} = NULL")
        elif argument(api, entry, p) == p.name:
            gets.append(get(api, entry, p))
    out = text.statements(gets, ";") if gets else ""
    if entry.has("requires"):
        out += text.wrap("\tlibrary_require(", ["f", entry.options["requires"]], ");") + "\n"
    return out, [argument(api, entry, p) for p in entry.params]


def serve_all(api, entries):
    """(What calls the library, {name: which of it}).  Functions whose arguments are read in the same way share
    one: they differ in what their pointers point to, which is nothing to a call."""
    out, shapes, which = "", {}, {}
    for entry in entries:
        if entry.hand("agent"):
            which[entry.name] = f"run_{entry.name}"
            continue
        declarations, args = serve_parts(api, entry)
        shape = declarations, tuple(args), entry.result
        if shape not in shapes:
            shapes[shape] = f"run_{entry.name}"
            out += text.wrap(f"RUN({entry.name}, (", args, ")," if declarations else "))", "\t") + "\n"
            out += declarations.rstrip(";\n") + ")\n\n" if declarations else "\n"
        which[entry.name] = shapes[shape]
    return out, which


def outs(api, entry):
    """The numbers in its answer; written by hand, it may have as many as there can be."""
    if entry.hand("agent") or entry.hand("shim"):
        return "LIBRARY_OUTS"
    if not has_sizes(api, entry):
        return str(fixed.layout(api, entry).outs)
    return str(sum(OUTS.get(p.mark, 0) for p in entry.params))


def served(entry):
    """How it is served: what is asked once is posted from then on where it leaves something in a descriptor."""
    left = entry.verb == "cached" and any(p.mark == "stays" for p in entry.params)
    return "post" if left else entry.verb


def row(api, entry, which):
    """ITEMS(NAME, VERB, RUN, OUTS), or LIST(NAME, VERB, RUN, ELEMENT), or ITEMS_OF(NAME, SIDE, …); OWN(NAME, VERB, OUTS) where
    what calls the library is this function's alone.  WHICH: what each function is called by."""
    run = which[entry.name]
    element = next((p.base for p in entry.params if p.mark == "perf"), "")
    side = library.side_of(entry)
    if side != entry.family:
        return f"\tITEMS_OF({entry.name}, {side}, {entry.verb}, {run}, {outs(api, entry)}),\n"  # letters.py wraps it
    if not element and list(which.values()).count(run) == 1 and run == f"run_{entry.name}":
        return text.row("\tOWN", entry.name, served(entry), outs(api, entry)) + ",\n"
    return text.row("\tLIST" if element else "\tITEMS", entry.name, served(entry), run,
                    element or outs(api, entry)) + ",\n"


def table(family, first, rows):
    """What serves the family's calls, by opcode."""
    head = tail = ""
    if any(row.startswith(("\tITEMS", "\tOWN")) for row in rows):
        serve = "static CUresult serve_items(struct worker *w, struct request *r)"
        head = f"""{serve};

#define SERVED(of, name, verb, run, answer) \\
	[OP_##name - {first}] = {{{{OP_##name, sizeof(struct library_body), answer, \\
		LIBRARY_SERVED_##verb, serve_items, #name}}, &of##_plain, run, \\
		offsetof(struct {family}_library, name)}}
#define ITEMS(name, verb, run, outs) SERVED({family}, name, verb, run, LIBRARY_ANSWER(outs))
#define OWN(name, verb, outs) ITEMS(name, verb, run_##name, outs)
#define LIST(name, verb, run, element) \\
	SERVED({family}, name, verb, run, LIBRARY_LIST_FROM + LIBRARY_LIST * sizeof(element))
"""
        if any(row.startswith("\tITEMS_OF") for row in rows):
            head += "#define ITEMS_OF(name, of, verb, run, outs) SERVED(of, name, verb, run, LIBRARY_ANSWER(outs))\n"
        tail = f"""
{serve}
{{
	return library_serve(w, r, &runs[r->header.op - {first}]);
}}
"""
    return head + f"""#define FRAME(name, verb, serve, answer) \\
	[OP_##name - {first}] = {{.entry = {{OP_##name, sizeof(struct wire_##name), answer, \\
		LIBRARY_SERVED_##verb, serve, #name}}}}
static const struct library_run runs[] = {{
""" + "".join(rows) + "};\n" + tail + "\n"
