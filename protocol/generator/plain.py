# SPDX-License-Identifier: Apache-2.0
"""What both sides have of each library: its front, its handles, what is set and asked of them, and the tables
(shim/libraries/common/plain.h, gpu-agent/worker/libraries/common/plain.h).  Its calls' arguments travel as items
(items.py).  By hand remain what is local and what an entry says.

What makes or destroys a handle has a struct of its own: struct library_state, what goes by value, the major.
"""
from collections import Counter

from . import items, letters, library, prototypes, shapes, targets, text
from .api import ApiError, abis
from .wire import C_TYPE, Field, crossing, struct


def files(api, family):
    out = library.files(api, family)
    declared = prototypes.group(api, family, crosses)
    out[f"{family}_api.h"] = prototypes.header(api, family, declared)
    out[f"{family}_stubs.c"] = stubs(api, family, declared)
    if family in api.ops:
        out[f"{family}_wire.h"] = wire_header(api, family)
        out[f"{family}_serve.c"] = serve_source(api, family)
    return out


def marked(entry, mark):
    return next((p for p in entry.params if p.mark == mark), None)


def is_hand(entry):
    return entry.hand("shim") or entry.hand("agent")


def is_framed(entry):
    """Whether it makes or destroys a handle."""
    return marked(entry, "new") or marked(entry, "gone")


def made_by(api, family, mark, handle=""):
    """What makes a handle (new), or destroys it (gone), of its first type or of that C type; None: its handles
    are numbers of the program's."""
    handle = handle or api.libraries[family].handle
    return next((e for e in api.of(family)
                 if marked(e, mark) and library.handle_type(e) == handle), None)


def kind(api, family, handle=""):
    """enum handle_kind's of its handles, or of those of that C type."""
    gone = made_by(api, family, "gone", handle)
    return "KIND_" + marked(gone, "gone").size if gone else "KIND_NONE"


def fields(api, entry):
    """What stands behind the state."""
    out = []
    for p in entry.params:
        if not p.mark and not library.is_handle(entry, p):
            of = library.kind_of(api, entry, p)
            out.append(Field(p.name, C_TYPE[of.wire], of.size, of.align))
    return out + [Field("major", "uint32_t", 4, 4)] if marked(entry, "new") else out


def wire_header(api, family):
    out = text.head(
        f"Bodies of the frames that make and destroy the handles of {family}.api.",
        f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_WIRE_H",
        ["<stdint.h>", "", f'"protocol/libraries/{family}.h"', '"protocol/libraries/plain.h"'])
    for e in crossing(api, family):
        if is_framed(e):
            out += f"\n/* {e.verb} {e.op} */\n"
            out += struct(f"wire_{e.name}", [Field("state", "struct library_state", 32, 8)] + fields(api, e))
    return out + "\n#endif\n"


def statuses(one, indent, more=None):
    rows = [f".{reason} = {number}" for reason, number in {**one.statuses, **(more or {})}.items()]
    return text.wrap(f"{indent}.statuses = {{", rows, "},", indent + "\t") + "\n"


def word(one, name):
    return str(one.word(name)) if name in one.state else "LIBRARY_NO_WORD"


def has_descriptors(api, family):
    """Whether calls of the library carry descriptors by content."""
    return any(items.descriptor_kind(api, p) for e in api.of(family) if e.op for p in e.params)


def hooks(one, suffix, names):
    """Those of NAMES that the stanza says are written by hand: FAMILY_NAME."""
    return "".join(f"\t.{name} = {one.family}_{name}{suffix},\n" for name in names if name in one.hooks)


def soname(one):
    *others, (_, last) = one.sonames
    return "".join(f'VCUDA_ABI == {n.rsplit(".", 1)[1]} ? "{n}" : ' for _, n in others) + f'"{last}"'


def front(api, family):
    one = api.libraries[family]
    out = "static int logged_once;\n"
    out += "static _Atomic uint32_t opened_version;\n" if one.told else ""
    out += f"const struct library_front {family}_front = {{\n\t.name = {soname(one)},\n"
    out += f"\t.kind = {kind(api, family)},\n"
    out += f"\t.also = KIND_{one.also},\n" if one.also else ""
    out += f"\t.logged_once = &logged_once,\n"
    out += "\t.version = &opened_version,\n" if one.told else ""
    out += f"\t.pointer_mode = {word(one, 'pointer_mode')},\n\t.on_host = {word(one, 'on_host')},\n"
    out += f"\t.says = {one.says},\n" if one.says else ""
    out += hooks(one, "", ("explain", "answered", "program", "element"))
    out += f"\t.descriptor = {family}_put_descriptor,\n" if has_descriptors(api, family) else ""
    gone = made_by(api, family, "gone")
    out += "\t.major = VCUDA_ABI,\n" if gone and not gone.op else ""
    out += statuses(one, "\t")
    kept = [f"[{i}] = {value}" for i, value in enumerate(one.kept.values()) if value]
    out += text.wrap("\t.kept = {", kept, "},") + "\n" if kept else ""
    return out + "};\n" + other_fronts(api, family)


def other_fronts(api, family):
    """Of the handles of further types."""
    one, out = api.libraries[family], ""
    for handle, none in one.others.items():
        out += f"const struct library_front {library.side(one, handle)}_front = {{\n"
        out += f"\t.name = {soname(one)},\n\t.kind = {kind(api, family, handle)},\n\t.logged_once = &logged_once,\n"
        out += "\t.pointer_mode = LIBRARY_NO_WORD,\n\t.on_host = LIBRARY_NO_WORD,\n"
        out += f"\t.descriptor = {family}_put_descriptor,\n" if has_descriptors(api, family) else ""
        out += statuses(one, "\t", {"handle": none}) + "};\n"
    return out


def value(entry, p, api):
    wire = library.kind_of(api, entry, p).wire
    return f"(uint32_t){p.name}" if wire == "enum" else p.name


def stub(api, entry):
    """Of what makes or destroys a handle that the agent knows."""
    made, gone = (marked(entry, m) for m in ("new", "gone"))
    init = [f".{p.name} = {value(entry, p, api)}" for p in entry.params
            if not p.mark and not library.is_handle(entry, p)]
    init += [".major = VCUDA_ABI"] if made else []
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n{\n")
    out += "\tstruct library_call call;\n"
    out += f"\tstruct wire_{entry.name} body = {{\n" + text.wrap("\t\t", init, ",", "\t\t") + "\n\t};\n" \
        if init else f"\tstruct wire_{entry.name} body = {{0}};\n"
    if entry.has("null_too"):
        out += f"\n\tif (!{gone.name}) {{\n\t\tvcuda_count(CALL_{entry.name});\n\t\treturn 0;\n\t}}"
    out += "\n" + text.wrap("\tvcuda_library_begin(", [
        "&call", f"&{library.side_of(entry)}_front", f"CALL_{entry.name}",
        "NULL" if made else library.named(entry, gone), "&body.state"], ");") + "\n"
    if entry.has("keeps"):
        number = entry.library.word(entry.options["keeps"])
        first = next(p for p in entry.params if not p.mark)
        out += f"\tvcuda_library_keeps(&call, {number}, (uint64_t){value(entry, first, api)});\n"
    args = ["&call", f"OP_{entry.name}", "&body", "sizeof(body)"]
    if made:
        host = "true" if entry.has("on_host") else "false"
        args += [f'"{entry.base}"', host, f"(void **){made.name}"]
        return out + text.wrap("\treturn vcuda_library_create(", args, ");") + "\n}\n"
    return out + text.wrap("\treturn vcuda_library_destroy(", args, ");") + "\n}\n"


def name_stub(entry):
    """What makes or ends a handle that the agent does not know: a name, and what it stands for here."""
    f, made = entry.family, marked(entry, "new")
    handle = made or marked(entry, "gone")
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n{\n")
    out += "\tstruct library_state none;\n\tstruct library_call call;\n\n"
    out += text.wrap("\tvcuda_library_begin(", ["&call", f"&{f}_front", f"CALL_{entry.name}",
                                               "NULL" if made else handle.name, "&none"], ");") + "\n"
    if not made:
        return out + "\treturn vcuda_library_unname(&call);\n}\n"
    return out + text.wrap("\treturn vcuda_library_name(", [
        "&call", f"OP_{entry.options['asks']}", "VCUDA_ABI", f'"{entry.base}"',
        f"(void **){made.name}"], ");") + "\n}\n"


def local_stub(entry):
    """What is set or asked of a handle without a frame: its stream, or a word."""
    if marked(entry, "new") or marked(entry, "gone"):
        return name_stub(entry)
    f, (handle, other) = library.side_of(entry), entry.params
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n{\n")
    args = [f"&{f}_front", f"CALL_{entry.name}", handle.name]
    for what in ("set", "get"):
        if entry.has(f"{what}s_stream"):
            return out + text.wrap(f"\treturn vcuda_library_stream_{what}(", args + [other.name],
                                   ");") + "\n}\n"
    if entry.has("keeps"):
        name, largest = entry.options["keeps"].split(",")
        args += [str(entry.library.word(name)), other.name, largest]
        return out + text.wrap("\treturn vcuda_library_word_set(", args, ");") + "\n}\n"
    args += [str(entry.library.word(entry.options["tells"])), other.name, "&value"]
    to = other.type.strip()[:-1].strip()
    cast = f"({to})(uintptr_t)" if to.endswith("*") else f"({to})"
    out += "\tuint64_t value;\n" + text.wrap("\tint status = vcuda_library_word_get(", args, ");")
    return out + f"\n\n\tif (!status)\n\t\t*{other.name} = {cast}value;\n\treturn status;\n}}\n"


def render(api, e, wide):
    """The stub of what crosses, or of its _64 form."""
    return library.wide_stub(e) if wide else stub(api, e) if is_framed(e) else items.stub(api, e)


def crosses(e):
    return e.op and not e.hand("shim") and not library.is_made(e) and e.verb != "refused"


def about(stub, comment):
    """The stub below a comment that says how it crosses, where the stub does not say so itself."""
    return "\n" + ("" if "SEND_ITEMS(" in stub else f"/* {comment} */\n") + stub


def stub_of(api, e, name):
    wide = name != e.name
    if library.is_made(e):
        return "\n" + local_stub(e)
    if crosses(e):
        return about(render(api, e, wide), f"{e.verb} {e.op}")
    told = "program" in e.library.hooks and e.result.endswith("Status_t")
    _, function, args = targets.call(api, e, {p.name: p.name for p in e.params})
    return text.row("STUB_STATUS" if told else "STUB", e.family if told else "library", e.result, name, function,
                    text.grouped(library.items_of(e, wide) or ["void"]), text.grouped(args)) + "\n"


def refused(api, family):
    """What is refused, and what its rows answer by."""
    entries = [(e, n) for e, n in library.wide_exported(api.of(family)) if e.verb == "refused"]
    if not entries:
        return ""
    status = Counter(e.result for e, _ in entries).most_common(1)[0][0]
    out = f"\n#define NO(name) REFUSED({family}, {status}, name)\n"
    if "explain" not in entries[0][0].library.hooks:
        out += f"#define {family}_refused(call, name, why) front_refused(&{family}_front, call, name, why)\n"
    rows = text.refusals(entries, lambda e, n: f"NO({n})\n" if e.result == status
                         else text.row("REFUSED", family, e.result, n) + "\n")
    return out + "\n".join(text.packed(rows.split("\n"), "NO"))


def begun(stub, head):
    """The stub with HEAD, a macro, for what declares it."""
    return stub[:stub.index("STUB_EXPORT")] + text.fitting(f"STUB_EXPORT {head}") + "\n" + text.body(stub)


def exported(api, family, declared):
    """[(majors, stub)] of what is served."""
    every = [(e, n) for e, n in library.wide_exported(api.of(family))
             if e.verb != "refused" and not e.library.exported and not (n != e.name and library.narrows(e))]
    shared = {wide: shapes.group(
        api, [e for e, n in every if crosses(e) and (n != e.name) == wide],
        lambda e, m, wide=wide: (declared[e.name].name if e.name in declared else "", render(api, m, wide)))
              for wide in (False, True)}
    out = []
    for e, n in every:
        wide = n != e.name
        shape = shared[wide].get(e.name)
        if not shape or len(shape.entries) < 2:
            made = stub_of(api, e, n)
            if crosses(e) and e.name in declared:
                made = begun(made, declared[e.name].of(e, wide))
        elif e is not shape.entries[0]:
            made = shapes.row(shape, e, wide)
        else:
            head = declared[e.name].of_stubs(shape, wide) if e.name in declared else ""
            body = render(api, shapes.first(shape), wide)
            made = about(shapes.macro(shape, head, body, wide), e.verb) + shapes.row(shape, e, wide)
        out.append((abis(e) if abis(e) != list(e.majors) else (0, 0), made))
    return out


def stubs(api, family, declared):
    room = [f'"shim/libraries/{family}/{family}.h"'] if has_descriptors(api, family) else []
    room += [f'"shim/libraries/{family}/forms.h"'] if any(targets.direct(api, e) for e in api.of(family)) else []
    out = text.head(
        f"The functions that {library.stem(api, family)} exports, compiled for each major, over\n"
        f"shim/libraries/common/plain.h; what is local goes to hand_NAME in shim/libraries/{family}/.",
        None, ["<stddef.h>", ""] + sorted(text.includes(
            *(f"{family}_{n}.h" for n in ("api", "hand", *(("ops", "wire") if family in api.ops else ())))) +
            ['"protocol/libraries/items.h"', '"protocol/wire/handle.h"', '"shim/libraries/common/plain.h"',
             '"shim/libraries/common/stub.h"'] + room))
    one = api.libraries[family]
    if one.second:
        out += f"\n#undef STUB_SECOND\n#define STUB_SECOND(name, function) STUB_SECOND_IS({one.second}##name, name, function)\n"
    out += "\n" + front(api, family) + letters.shorter(text.by_major(exported(api, family, declared)))
    return out + library.wide_rows(api, family) + refused(api, family)


def function(result, name, params, body):
    return text.prototype(f"static {result}", name, params, "\n{\n") + body + "}\n\n"


def set_words(family, entries):
    """set_word and get_word of the words that the library's handles have too; "" where none do."""
    lib = f"\tconst struct {family}_library *l = functions;\n\n\tswitch (word) {{\n"
    sets = gets = ""
    for e in entries:
        if e.verb != "local" or not (e.has("keeps") or e.has("tells")):
            continue
        number = e.library.word(e.options.get("tells") or e.options["keeps"].split(",")[0])
        if number >= len(e.library.state):
            continue
        if e.has("keeps"):
            sets += f"\tcase {number}:\n\t\tif (l->{e.name})\n" \
                f"\t\t\treturn l->{e.name}(handle, (int)value);\n\t\tbreak;\n"
        else:
            gets += f"\tcase {number}:\n\t\tif (l->{e.name})\n\t\t\tl->{e.name}(handle, &value);\n" \
                "\t\treturn (uint32_t)value;\n"
    if not sets:
        return ""
    common = ["const void *functions", "void *handle", "uint32_t word"]
    return function("int", "set_word", common + ["uint32_t value"],
                    lib + sets + "\tdefault: break;\n\t}\n\treturn 0;\n") + \
        function("uint32_t", "get_word", common,
                 lib.replace("\n\n", "\n\tint value = 0;\n\n") + gets + "\tdefault: return 0;\n\t}\n")


def sets_stream(api, family, handle):
    return next((e for e in api.of(family) if e.has("sets_stream") and library.handle_type(e) == handle), None)


def other_sides(api, family):
    """What plain.c asks of the handles of further types; they have no state but a stream, or none."""
    one, out = api.libraries[family], ""
    table = f"((const struct {family}_library *)l)"
    for handle, none in one.others.items():
        side, gone = library.side(one, handle), made_by(api, family, "gone", handle)
        stream = sets_stream(api, family, handle)
        out += function("int", f"{side}_destroy", ["const void *l", "void *handle"],
                        f"\treturn {table}->{gone.name}(handle);\n")
        if stream:
            out += function("int", f"{side}_stream", ["const void *l", "void *handle", "CUstream stream"],
                            f"\treturn {table}->{stream.name}(handle, stream);\n")
        out += f"const struct plain_library {side}_plain = {{\n\t.library = LIBRARY_{family.upper()},\n"
        out += f"\t.kind = {kind(api, family, handle)},\n\t.bytes = sizeof(struct {family}_library),\n"
        out += statuses(one, "\t", {"handle": none})
        out += "\t.pointer_mode = LIBRARY_NO_WORD,\n\t.open = open_library,\n"
        out += f"\t.destroy = {side}_destroy,\n" + (f"\t.set_stream = {side}_stream,\n" if stream else "")
        out += f"\t.descriptor = {family}_get_descriptor,\n" if has_descriptors(api, family) else ""
        out += ("\t.beside = true,\n" if one.beside else "") + "};\n\n"
    return out


def glue(api, family):
    """What plain.c asks of the library.  One of form content, or whose handles are numbers, has a FAMILY_warm
    and a FAMILY_forget of its own."""
    one, entries = api.libraries[family], api.of(family)
    gone, made = (made_by(api, family, mark) for mark in ("gone", "new"))
    table = f"((const struct {family}_library *)l)"

    def numbered(status):
        return f"{one.numbered}(l, {status})" if one.numbered else status

    out = function("int", "open_library", ["void *l", "const char *path", "struct error *error"],
                   f"\treturn {family}_library_open(l, path, error);\n")
    rows = ""
    if not gone:
        pass
    elif gone.op:
        stream = sets_stream(api, family, one.handle)
        if "destroy" not in one.hooks:
            out += function("int", "destroy", ["const void *l", "void *handle"],
                            f"\treturn {numbered(f'{table}->{gone.name}(handle)')};\n")
            rows = "\t.destroy = destroy,\n"
        if stream:
            out += function("int", "set_stream", ["const void *l", "void *handle", "CUstream stream"],
                            f"\treturn {numbered(f'{table}->{stream.name}(handle, stream)')};\n")
            rows += "\t.set_stream = set_stream,\n"
    else:  # the agent has one for each context
        out += "static struct plain_shared shared[LIBRARY_MAJORS * CONTEXT_MAX];\n\n"
        out += function("int", "create", ["const void *l", "void **handle"],
                        f"\treturn {table}->{made.name}(({one.handle} *)handle);\n")
        rows = "\t.shared = shared,\n\t.create = create,\n"
    state = set_words(family, entries)
    out += state
    if one.told:
        out += function("uint32_t", "version", ["const void *functions", "void *handle"],
                        f"\tconst struct {family}_library *l = functions;\n\tint version = 0;\n\n"
                        f"\tif (l->{one.told})\n\t\tl->{one.told}(handle, &version);\n"
                        "\treturn (uint32_t)version;\n")
    out += f"""const struct plain_library {family}_plain = {{
	.library = LIBRARY_{family.upper()},
	.kind = {kind(api, family)},
	.bytes = sizeof(struct {family}_library),
{statuses(one, "	")}	.pointer_mode = {word(one, "pointer_mode")},
	.open = open_library,
{rows}"""
    out += "\t.set_word = set_word,\n\t.get_word = get_word,\n" if state else ""
    out += "\t.version = version,\n" if one.told else ""
    out += f"\t.numbered = {one.numbered},\n" if one.numbered else ""
    out += hooks(one, "", ("destroy", "kind_of", "ended")) + hooks(one, "_numbered", ("element",))
    out += f"\t.descriptor = {family}_get_descriptor,\n" if has_descriptors(api, family) else ""
    out += ("\t.beside = true,\n" if one.beside else "") + "};\n\n" + other_sides(api, family)
    if one.form == "content" or not gone:
        return out
    return out + f"""void {family}_warm(const struct worker *w, uint32_t major)
{{
	plain_warm(w, &{family}_plain, major);
}}

void {family}_forget(uint16_t context)
{{
	plain_forget(&{family}_plain, context);
}}

"""


def serve_create(api, e):
    f, one = e.family, e.library
    args = ["&handle" if p.mark == "new" else
            f"({p.type.strip()})body->{p.name}" if library.kind_of(api, e, p).wire == "enum" else f"body->{p.name}"
            for p in e.params]
    out = f"\tconst struct {f}_library *lib = plain_open(w, r, &{f}_plain, body->major);\n"
    out += f"\t{library.handle_type(e)} handle = NULL;\n\tint status;\n\n"
    out += "\tif (!lib)\n\t\treturn r->refused;\n"
    out += f'\tif (!lib->{e.name})\n\t\treturn worker_lacks(w, "{e.name}");\n'
    out += text.wrap(f"\tstatus = lib->{e.name}(", args, ");") + "\n"
    return out + text.wrap("\treturn plain_bind(", [
        "w", "r", f"&{library.side_of(e)}_plain", "lib", "status", "handle", "body->state.handle",
        "true" if e.has("on_host") else "false"], ");") + "\n}\n\n"


def serve_one(api, e):
    """Of what makes or destroys a handle."""
    out = text.prototype("static CUresult", f"run_{e.name}",
                         ["struct worker *w", "struct request *r"], "\n{\n")
    out += text.wrap(f"\tconst struct wire_{e.name} *body =", ["(const void *)r->body"], ";") + "\n"
    if marked(e, "new"):
        return out + serve_create(api, e)
    return out + f"\n\treturn plain_close(w, r, &{library.side_of(e)}_plain, body->state.handle);\n}}\n\n"


def answered(e):
    """The bytes of its answer."""
    if marked(e, "gone"):
        return "0"
    if marked(e, "new"):
        return "sizeof(struct library_opened)"
    return f"sizeof(struct wire_{e.name}_reply)" if e.verb != "learned" else "sizeof(struct library_reply)"


def row(e):
    """FRAME(NAME, VERB, SERVE, ANSWER)"""
    half = "serve" if is_hand(e) and not marked(e, "gone") else "run"
    return text.row("\tFRAME", e.name, e.verb, f"{half}_{e.name}", answered(e)) + ",\n"


def serve_source(api, family):
    first = api.ops[family][0]
    every = crossing(api, family)
    sent = [e for e in every if items.travels(api, e)]
    room = [f'"gpu-agent/worker/libraries/{family}/{family}.h"'] if has_descriptors(api, family) else []
    out = text.head(
        f"Serve functions of {family}.api, over gpu-agent/worker/libraries/common/.", None,
        ["<string.h>", "", '"gpu-agent/worker/libraries/common/items.h"', *room,
         '"gpu-agent/worker/warm.h"'] +
        text.includes(*(f"{family}_{n}.h" for n in ("library", "ops", "wire"))) + [letters.HEADER]) + "\n"
    out += glue(api, family)
    out += "".join(serve_one(api, e) for e in every if is_framed(e) and not e.hand("agent"))
    served, which = items.serve_all(api, sent)
    rows = [items.row(api, e, which) if e in sent else row(e) for e in every]
    return out + served + letters.shorter(items.table(family, first, rows)) + library.finder(family, first)
