# SPDX-License-Identifier: Apache-2.0
"""A library of form plain: its handles are made, used and destroyed by generated code on both sides
(shim/libraries/common/plain.h, gpu-agent/worker/libraries/common/plain.h), and its status travels as
its own number.  By hand remain what is local and what an entry says.

A call's body is struct library_state, then what the call is learned by, then the rest: what is
varying, and where it fills memory.
"""
from . import library, text
from .agent import library_flags
from .api import ApiError, abis
from .wire import C_TYPE, Field, crossing, struct


def files(api, family):
    out = {name: content for name, content in library.files(api, family, common=True).items()}
    out[f"{family}_wire.h"] = wire_header(api, family)
    out[f"{family}_stubs.c"] = stubs(api, family)
    out[f"{family}_serve.c"] = serve_source(api, family)
    return out


def marked(entry, mark):
    return next((p for p in entry.params if p.mark == mark), None)


def is_hand(entry):
    return entry.hand("shim") or entry.hand("agent")


def fields(api, entry):
    """[key field], [other field]"""
    key, rest = [], []
    if marked(entry, "new"):
        rest.append(Field("major", "uint32_t", 4, 4))
    for p in entry.params:
        if p.mark in ("new", "gone") or library.is_handle(entry, p):
            continue
        if p.mark == "fills":
            rest.append(Field(p.name, "uint64_t", 8, 8))
            continue
        if p.mark not in ("", "varying"):
            raise ApiError(f"{entry.origin}: {entry.name}: {p.mark} does not suit form(plain)")
        kind = library.kind_of(api, entry, p)
        (rest if p.mark else key).append(Field(p.name, C_TYPE[kind.wire], kind.size, kind.align))
    key.sort(key=lambda f: -f.align)
    rest.sort(key=lambda f: -f.align)
    return key, rest


def wire_header(api, family):
    out = text.head(
        f"Bodies of {family}.api's frames: the handle's state, what the call is learned by, the rest.\n"
        "KEY_NAME: where the second part ends.",
        f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_WIRE_H",
        ["<stdint.h>", "", f'"protocol/libraries/{family}.h"'])
    for e in crossing(api, family):
        if is_hand(e):
            continue
        key, rest = fields(api, e)
        out += f"\n/* {e.verb} {e.op} */\n"
        out += struct(f"wire_{e.name}", [Field("state", "struct library_state", 32, 8)] + key + rest)
        out += f"#define KEY_{e.name} {32 + sum(f.size for f in key)}u\n"
    return out + "\n#endif\n"


def value(entry, p, api):
    wire = library.kind_of(api, entry, p).wire
    return f"(uint32_t){p.name}" if wire == "enum" else p.name


def front(api, family):
    one = api.libraries[family]
    kind = next(marked(e, "new").size for e in api.of(family) if marked(e, "new"))
    out = f"static const char soname[] =\n"
    *others, last = one.sonames
    for _, name in others:
        out += f'\tVCUDA_ABI == {name.rsplit(".", 1)[1]} ? "{name}" :\n'
    out += f'\t"{last[1]}";\n'
    out += "static int missing;\n"
    out += f"const struct library_front {family}_front = {{\n"
    out += f"\t.name = soname,\n\t.kind = KIND_{kind},\n\t.logged_once = &missing,\n"
    out += "".join(f"\t.{reason} = {number},\n" for reason, number in one.statuses.items())
    return out + "};\n"


def stub(api, entry):
    f = entry.family
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n{\n")
    plain = [p for p in entry.params if p.mark in ("", "varying") and
             not library.is_handle(entry, p)]
    init = [f".{p.name} = {value(entry, p, api)}," for p in plain]
    made, gone, filled = (marked(entry, m) for m in ("new", "gone", "fills"))
    if made:
        init.append(".major = VCUDA_ABI,")
    handle = gone or made or next(p for p in entry.params if library.is_handle(entry, p))
    body = "".join(f"\t\t{i}\n" for i in init)
    out += "\tstruct library_call call;\n"
    out += f"\tstruct wire_{entry.name} body = {{\n{body}\t}};\n\n" if body else \
        f"\tstruct wire_{entry.name} body = {{0}};\n\n"
    name = handle.name if not made else "NULL"
    out += text.wrap("\tvcuda_library_begin(", ["&call", f"&{f}_front", f"CALL_{entry.name}", name,
                                          "&body.state"], ");") + "\n"
    if filled:
        out += text.wrap("\tvcuda_library_fills(", ["&call", f"&body.{filled.name}", filled.name,
                                              filled.size, f"sizeof(*{filled.name})"], ");") + "\n"
    if entry.has("keeps"):
        word = entry.options["keeps"]
        out += f"\tvcuda_library_keeps(&call, {word}, (uint32_t){plain[0].name});\n"
    args = ["&call", f"OP_{entry.name}", "&body", "sizeof(body)"]
    if made:
        host = "true" if entry.has("on_host") else "false"
        args += [f'"{entry.name}"', host, f"(void **){made.name}"]
        return out + text.wrap("\treturn vcuda_library_create(", args, ");") + "\n}\n"
    if gone:
        return out + text.wrap("\treturn vcuda_library_destroy(", args, ");") + "\n}\n"
    return out + text.wrap("\treturn vcuda_library_send(", args + [f"KEY_{entry.name}"], ");") + "\n}\n"


def stream_stub(entry):
    handle, stream = entry.params
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n{\n")
    return out + f"\treturn vcuda_library_stream(&{entry.family}_front, CALL_{entry.name}, " \
        f"{handle.name}, {stream.name});\n}}\n"


def stub_of(api, e):
    if e.has("sets_stream"):
        return "\n" + stream_stub(e)
    if e.op and not is_hand(e):
        return f"\n/* {e.verb} {e.op} */\n" + stub(api, e)
    return "\n" + text.row("STUB", "library", e.result, e.name, f"hand_{e.name}",
                           text.grouped(library.items_of(e)),
                           text.grouped(p.name for p in e.params)) + "\n"


def stubs(api, family):
    out = text.head(
        f"The functions that {library.stem(api, family)} exports, compiled for each major, over\n"
        f"shim/libraries/common/plain.h; what is local goes to hand_NAME in shim/libraries/{family}/.",
        None, ["<stddef.h>", ""] + sorted(text.includes(
            *(f"{family}_{n}.h" for n in ("api", "hand", "ops", "wire"))) +
            ['"protocol/wire/handle.h"', '"shim/libraries/common/plain.h"',
             '"shim/libraries/common/stub.h"']))
    every = api.of(family)
    out += "\n" + front(api, family) + text.by_major(
        [(abis(e) if abis(e) != list(e.majors) else (0, 0), stub_of(api, e)) for e in every
         if e.verb != "refused"])
    return out


def glue(api, family):
    """What plain.c asks of the library."""
    one, entries = api.libraries[family], api.of(family)
    gone = next(e for e in entries if marked(e, "gone"))
    stream = next(e for e in entries if e.has("sets_stream"))
    kind = marked(gone, "gone").size
    out = f"""static int open_library(void *l, const char *path, struct error *error)
{{
	return {family}_library_open(l, path, error);
}}

static int destroy(const void *l, void *handle)
{{
	return ((const struct {family}_library *)l)->{gone.name}(handle);
}}

static int set_stream(const void *l, void *handle, CUstream stream)
{{
	return ((const struct {family}_library *)l)->{stream.name}(handle, stream);
}}

const struct plain_library {family}_plain = {{
	.library = LIBRARY_{family.upper()},
	.kind = KIND_{kind},
	.bytes = sizeof(struct {family}_library),
	.missing = {one.statuses["missing"]},
	.memory = {one.statuses["memory"]},
	.open = open_library,
	.destroy = destroy,
	.set_stream = set_stream,
}};

void {family}_warm(const struct worker *w, uint32_t major)
{{
	plain_warm(w, &{family}_plain, major);
}}

"""
    return out


def arguments(api, entry):
    out = []
    for p in entry.params:
        if p.mark == "new":
            out.append("&handle")
        elif library.is_handle(entry, p):
            out.append("s->handle")
        elif p.mark == "fills":
            out.append(p.name)
        else:
            wire = library.kind_of(api, entry, p).wire
            out.append(f"({p.type.strip()})body->{p.name}" if wire == "enum" else f"body->{p.name}")
    return out


def serve_create(api, e):
    f, one = e.family, e.library
    out = f"\tconst struct {f}_library *lib = plain_open(w, r, &{f}_plain, body->major);\n"
    out += f"\t{one.handle} handle = NULL;\n\tint status;\n\n"
    out += "\tif (!lib)\n\t\treturn r->refused;\n"
    out += f'\tif (!lib->{e.name})\n\t\treturn worker_lacks(w, "{e.name}");\n'
    out += text.wrap(f"\tstatus = lib->{e.name}(", arguments(api, e), ");") + "\n"
    return out + text.wrap("\treturn plain_bind(", [
        "w", "r", f"&{f}_plain", "lib", "status", "handle", "body->state.handle",
        "true" if e.has("on_host") else "false"], ");") + "\n}\n\n"


def serve_one(api, e):
    f = e.family
    out = f"/* {e.verb} {e.op} */\n"
    out += text.prototype("static CUresult", f"run_{e.name}",
                          ["struct worker *w", "struct request *r"], "\n{\n")
    out += text.wrap(f"\tconst struct wire_{e.name} *body =", ["(const void *)r->body"], ";") + "\n"
    if marked(e, "new"):
        return out + serve_create(api, e)
    if marked(e, "gone"):
        return out + f"\n\treturn plain_close(w, r, &{f}_plain, body->state.handle);\n}}\n\n"
    out += f"\tstruct plain_served *s = plain_use(w, r, &{f}_plain, &body->state);\n"
    out += f"\tconst struct {f}_library *lib = s ? s->library : NULL;\n"
    filled = marked(e, "fills")
    if filled:
        out += text.wrap(f"\tvoid *{filled.name} = plain_fills(", [
            "w", "r", "s", f"body->{filled.name}", f"body->{filled.size}",
            f"sizeof({filled.base})"], ");") + "\n"
    out += "\tint status;\n\n\tif (!lib || worker_refused(r))\n\t\treturn r->refused;\n"
    out += f'\tif (!lib->{e.name})\n\t\treturn worker_lacks(w, "{e.name}");\n'
    out += text.wrap(f"\tstatus = lib->{e.name}(", arguments(api, e), ");") + "\n"
    return out + "\treturn plain_answer(w, r, s, status);\n}\n\n"


def flags(entry):
    return "SERVE_POST | SERVE_CALL | SERVE_SLOW" if marked(entry, "gone") else library_flags(entry)


def serve_source(api, family):
    first = api.ops[family][0]
    out = text.head(
        f"Serve functions of {family}.api, over gpu-agent/worker/libraries/common/plain.h.", None,
        ['"gpu-agent/worker/libraries/common/plain.h"', '"gpu-agent/worker/warm.h"'] +
        text.includes(*(f"{family}_{n}.h" for n in ("library", "ops", "wire")))) + "\n"
    every = crossing(api, family)
    out += glue(api, family)
    out += "".join(serve_one(api, e) for e in every if not is_hand(e))
    out += "static const struct serve_entry entries[] = {\n"
    for e in every:
        reply = f"sizeof(struct wire_{e.name}_reply)" if is_hand(e) else \
            "0" if marked(e, "gone") else "sizeof(struct library_reply)"
        half = "serve" if is_hand(e) else "run"
        out += text.wrap(f"\t[OP_{e.name} - {first}] = {{",
                         [f"OP_{e.name}", f"sizeof(struct wire_{e.name})", reply, flags(e),
                          f"{half}_{e.name}", f'"{e.name}"'], "},", "\t\t") + "\n"
    return out + "};\n\n" + library.finder(family, first)
