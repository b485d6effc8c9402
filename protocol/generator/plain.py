# SPDX-License-Identifier: Apache-2.0
"""A library of form plain: its handles are made, used and destroyed by generated code on both sides
(shim/libraries/common/plain.h, gpu-agent/worker/libraries/common/plain.h), and its status travels as
its own number.  By hand remain what is local and what an entry says.

A call's body is struct library_state, then what the call is learned by (all that goes by value), then
the rest: what is varying, scalars and device addresses.  Its answer is struct library_reply, then
what comes back.
"""
from . import items, library, text
from .agent import library_flags
from .api import ApiError, abis
from .wire import C_TYPE, Field, crossing, struct

VALUES = ("scalar", "inout", "result")  # marks of bytes or an address, as the pointer mode says


def files(api, family):
    out = library.files(api, family)
    out[f"{family}_wire.h"] = wire_header(api, family)
    out[f"{family}_stubs.c"] = stubs(api, family)
    out[f"{family}_serve.c"] = serve_source(api, family)
    return out


def marked(entry, mark):
    return next((p for p in entry.params if p.mark == mark), None)


def is_hand(entry):
    return entry.hand("shim") or entry.hand("agent")


def is_framed(api, entry):
    """Whether its frame is one of these, and what makes it is generated."""
    if items.is_items(api, entry):
        return False
    return marked(entry, "new") or marked(entry, "gone") or not is_hand(entry)


def made_by(api, family, mark):
    """What makes a handle (new), or destroys it (gone); None: its handles are numbers of the program's."""
    return next((e for e in api.of(family) if marked(e, mark)), None)


def kind(api, family):
    """enum handle_kind's of its handles."""
    gone = made_by(api, family, "gone")
    return "KIND_" + marked(gone, "gone").size if gone else "KIND_NONE"


def fields(api, entry):
    """[key field], [other field]"""
    key, rest = [], []
    if marked(entry, "new"):
        rest.append(Field("major", "uint32_t", 4, 4))
    for p in entry.params:
        if p.mark in ("new", "gone", "info") or library.is_handle(entry, p):
            continue
        if p.mark in ("fills", "device"):
            rest.append(Field(p.name, "uint64_t", 8, 8))
            continue
        if p.mark in VALUES:
            n = library.words(p)
            rest.append(Field(p.name, "uint64_t", 8 * n, 8, f"[{n}]", p.mark))
            continue
        if p.mark not in ("", "varying"):
            raise ApiError(f"{entry.origin}: {entry.name}: {p.mark} does not suit form(plain)")
        of = library.kind_of(api, entry, p)
        (rest if p.mark else key).append(Field(p.name, C_TYPE[of.wire], of.size, of.align))
    key.sort(key=lambda f: -f.align)
    rest.sort(key=lambda f: -f.align)
    return key, rest


def reply_fields(entry):
    """What comes back behind struct library_reply."""
    return library.reply_fields(entry)


def wire_header(api, family):
    out = text.head(
        f"Bodies of {family}.api's frames: the handle's state, what the call is learned by, the rest.\n"
        "KEY_NAME: where the second part ends.  A call whose fields are another's shares its structs.",
        f"VCUDA_PROTOCOL_GENERATED_{family.upper()}_WIRE_H",
        ["<stdint.h>", "", f'"protocol/libraries/{family}.h"', '"protocol/libraries/plain.h"'])
    first = {}
    for e in crossing(api, family):
        if not is_framed(api, e):
            continue
        key, rest = fields(api, e)
        body = [Field("state", "struct library_state", 32, 8)] + key + rest
        reply = [Field("first", "struct library_reply", 8, 4)] + reply_fields(e) \
            if reply_fields(e) else []
        ends = library.key_bytes(e, key)
        model = first.setdefault((struct("", body), struct("", reply), ends), e.name)
        if model != e.name:
            out += f"#define wire_{e.name} wire_{model}\n"
            out += f"#define wire_{e.name}_reply wire_{model}_reply\n" if reply else ""
            out += f"#define KEY_{e.name} KEY_{model}\n"
            continue
        out += f"\n/* {e.verb} {e.op} */\n"
        out += struct(f"wire_{e.name}", body)
        out += f"#define KEY_{e.name} {ends}u\n"
        out += struct(f"wire_{e.name}_reply", reply) if reply else ""
    return out + "\n#endif\n"


def statuses(one, indent):
    rows = [f".{reason} = {number}" for reason, number in one.statuses.items()]
    return text.wrap(f"{indent}.statuses = {{", rows, "},", indent + "\t") + "\n"


def word(one, name):
    return str(one.word(name)) if name in one.state else "LIBRARY_NO_WORD"


def has_descriptors(api, family):
    """Whether calls of the library carry descriptors by content."""
    return any(items.descriptor_kind(api, p) for e in api.of(family) if e.op for p in e.params)


def hooks(one, suffix, names):
    """Those of NAMES that the stanza says are written by hand: FAMILY_NAME."""
    return "".join(f"\t.{name} = {one.family}_{name}{suffix},\n" for name in names if name in one.hooks)


def front(api, family):
    one = api.libraries[family]
    *others, (_, last) = one.sonames
    name = "".join(f'VCUDA_ABI == {n.rsplit(".", 1)[1]} ? "{n}" : ' for _, n in others) + f'"{last}"'
    out = "static int missing;\n"
    out += "static _Atomic uint32_t opened_version;\n" if one.told else ""
    out += f"const struct library_front {family}_front = {{\n\t.name = {name},\n"
    out += f"\t.kind = {kind(api, family)},\n"
    out += f"\t.also = KIND_{one.also},\n" if one.also else ""
    out += f"\t.logged_once = &missing,\n"
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
    return out + "};\n"


def value(entry, p, api):
    if p.mark == "device":
        return f"(uint64_t)(uintptr_t){p.name}"
    wire = library.kind_of(api, entry, p).wire
    return f"(uint32_t){p.name}" if wire == "enum" else p.name


def puts(entry):
    """Statements that put what is no value by itself into the body."""
    out = ""
    for p in entry.params:
        where = ["&call", f"body.{p.name}", p.name]
        if p.mark == "fills":
            where = ["&call", f"&body.{p.name}", p.name, p.size, f"sizeof(*{p.name})"]
        elif p.mark in ("scalar", "inout"):
            where.append(p.size)
        elif p.mark != "result":
            continue
        out += text.wrap(f"\tvcuda_library_{p.mark}(", where, ");") + "\n"
    return out


def gives(entry):
    """Statements that hand over what came back."""
    out = ""
    for p in entry.params:
        if p.mark in ("result", "inout"):
            items = ["&call", p.name, f"reply.{p.name}", p.size]
            out += text.wrap("\tvcuda_library_give(", items, ");") + "\n"
        elif p.mark == "info":
            out += f"\tif ({p.name} && !status)\n\t\t*{p.name} = reply.{p.name};\n"
    return out


def stub(api, entry):
    f = entry.family
    passed = [p for p in entry.params if p.mark in ("", "varying", "device") and
              not library.is_handle(entry, p)]
    made, gone = (marked(entry, m) for m in ("new", "gone"))
    init = [f".{p.name} = {value(entry, p, api)}" for p in passed] + \
        ([".major = VCUDA_ABI"] if made else [])
    handle = gone or next((p for p in entry.params if library.is_handle(entry, p)), None)
    back = gives(entry)
    out = text.prototype(f"STUB_EXPORT {entry.result}", entry.name, library.items_of(entry), "\n{\n")
    out += "\tstruct library_call call;\n"
    out += f"\tstruct wire_{entry.name} body = {{\n" + text.wrap("\t\t", init, ",", "\t\t") + "\n\t};\n" \
        if init else f"\tstruct wire_{entry.name} body = {{0}};\n"
    out += f"\tstruct wire_{entry.name}_reply reply;\n\tint status;\n" if back else ""
    if entry.has("null_too"):
        out += f"\n\tif (!{handle.name}) {{\n\t\tvcuda_count(CALL_{entry.name});\n\t\treturn 0;\n\t}}"
    out += "\n" + text.wrap("\tvcuda_library_begin(", [
        "&call", f"&{f}_front", f"CALL_{entry.name}", "NULL" if made else handle.name,
        "&body.state"], ");") + "\n" + puts(entry)
    if entry.has("keeps"):
        number = entry.library.word(entry.options["keeps"])
        out += f"\tvcuda_library_keeps(&call, {number}, (uint64_t){value(entry, passed[0], api)});\n"
    args = ["&call", f"OP_{entry.name}", "&body", "sizeof(body)"]
    if made:
        host = "true" if entry.has("on_host") else "false"
        args += [f'"{entry.base}"', host, f"(void **){made.name}"]
        return out + text.wrap("\treturn vcuda_library_create(", args, ");") + "\n}\n"
    if gone:
        return out + text.wrap("\treturn vcuda_library_destroy(", args, ");") + "\n}\n"
    args += [f"KEY_{entry.name}" if entry.verb == "learned" else "0"]
    args += ["&reply", "sizeof(reply)"] if back else ["NULL", "0"]
    if not back:
        return out + text.wrap("\treturn vcuda_library_send(", args, ");") + "\n}\n"
    out += text.wrap("\tstatus = vcuda_library_send(", args, ");") + "\n"
    return out + back + "\treturn status;\n}\n"


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
    f, (handle, other) = entry.family, entry.params
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


def stub_of(api, e, name):
    wide = name != e.name
    if library.is_made(e):
        return "\n" + local_stub(e)
    if e.op and not e.hand("shim"):
        made = library.wide_stub(e) if wide else \
            items.stub(api, e) if items.is_items(api, e) else stub(api, e)
        return f"\n/* {e.verb} {e.op} */\n" + made
    told = "program" in e.library.hooks and e.result.endswith("Status_t")
    return text.row("STUB_TOLD" if told else "STUB", e.family if told else "library", e.result, name,
                    f"hand_{e.name}",
                    text.grouped(library.items_of(e, wide) or ["void"]),
                    text.grouped(p.name for p in e.params)) + "\n"


def refused_function(family, entries):
    """What the rows of REFUSED answer by."""
    if "explain" in entries[0].library.hooks or not any(e.verb == "refused" for e in entries):
        return ""
    return f"\n#define {family}_refused(call, name, why) front_refused(&{family}_front, call, name, why)\n"


def stubs(api, family):
    out = text.head(
        f"The functions that {library.stem(api, family)} exports, compiled for each major, over\n"
        f"shim/libraries/common/plain.h; what is local goes to hand_NAME in shim/libraries/{family}/.",
        None, ["<stddef.h>", ""] + sorted(text.includes(
            *(f"{family}_{n}.h" for n in ("api", "hand", "ops", "wire"))) +
            ['"protocol/wire/handle.h"', '"shim/libraries/common/plain.h"',
             '"shim/libraries/common/stub.h"'] +
            ([f'"shim/libraries/{family}/{family}.h"'] if has_descriptors(api, family) else [])))
    every = library.wide_exported(api.of(family))
    out += "\n" + front(api, family) + text.by_major(
        [(abis(e) if abis(e) != list(e.majors) else (0, 0), stub_of(api, e, n)) for e, n in every
         if e.verb != "refused" and not (n != e.name and library.narrows(e))])
    return out + library.wide_rows(api, family) + refused_function(family, api.of(family)) + \
        text.refusals([(e, n) for e, n in every if e.verb == "refused"],
                      lambda e, n: text.row("REFUSED", family, e.result, n) + "\n")


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
        stream = next(e for e in entries if e.has("sets_stream"))
        out += function("int", "destroy", ["const void *l", "void *handle"],
                        f"\treturn {numbered(f'{table}->{gone.name}(handle)')};\n")
        out += function("int", "set_stream", ["const void *l", "void *handle", "CUstream stream"],
                        f"\treturn {numbered(f'{table}->{stream.name}(handle, stream)')};\n")
        rows = "\t.destroy = destroy,\n\t.set_stream = set_stream,\n"
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
    out += hooks(one, "", ("kind_of",)) + hooks(one, "_numbered", ("element",))
    out += f"\t.descriptor = {family}_get_descriptor,\n" if has_descriptors(api, family) else ""
    out += "};\n\n"
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


def argument(api, entry, p):
    if p.mark == "new":
        return "&handle"
    if library.is_handle(entry, p):
        return "served->handle"
    if p.mark == "fills":
        return p.name
    if p.mark == "info":
        return f"&{p.name}"
    if p.mark == "device":
        return f"(void *)(uintptr_t)body->{p.name}"
    if p.mark in VALUES:
        return f"plain_at(served, {p.name}, body->{p.name}, sizeof({p.name}))"
    wire = library.kind_of(api, entry, p).wire
    return f"({p.type.strip()})body->{p.name}" if wire == "enum" else f"body->{p.name}"


def arguments(api, e):
    return [argument(api, e, p) for p in e.params]


def call_of(api, e):
    return text.wrap(f"\tstatus = lib->{e.name}(", arguments(api, e), ");") + "\n"


def serve_create(api, e):
    f, one = e.family, e.library
    out = f"\tconst struct {f}_library *lib = plain_open(w, r, &{f}_plain, body->major);\n"
    out += f"\t{one.handle} handle = NULL;\n\tint status;\n\n"
    out += "\tif (!lib)\n\t\treturn r->refused;\n"
    out += f'\tif (!lib->{e.name})\n\t\treturn worker_lacks(w, "{e.name}");\n' + call_of(api, e)
    return out + text.wrap("\treturn plain_bind(", [
        "w", "r", f"&{f}_plain", "lib", "status", "handle", "body->state.handle",
        "true" if e.has("on_host") else "false"], ");") + "\n}\n\n"


def serve_one(api, e):
    f = e.family
    out = text.prototype("static CUresult", f"run_{e.name}",
                         ["struct worker *w", "struct request *r"], "\n{\n")
    out += text.wrap(f"\tconst struct wire_{e.name} *body =", ["(const void *)r->body"], ";") + "\n"
    if marked(e, "new"):
        return out + serve_create(api, e)
    if marked(e, "gone"):
        return out + f"\n\treturn plain_close(w, r, &{f}_plain, body->state.handle);\n}}\n\n"
    if reply_fields(e):
        out += text.wrap(f"\tstruct wire_{e.name}_reply *answer =", ["(void *)r->answer"], ";") + "\n"
    out += f"\tstruct plain_served *served = plain_use(w, r, &{f}_plain, &body->state);\n"
    out += f"\tconst struct {f}_library *lib = served ? served->library : NULL;\n"
    checks = after = ""
    for p in e.params:
        if p.mark == "fills":
            out += text.wrap(f"\tvoid *{p.name} = plain_fills(", [
                "w", "r", "served", f"body->{p.name}", f"body->{p.size}", f"sizeof({p.base})"],
                ");") + "\n"
        elif p.mark in VALUES:
            out += f"\t_Alignas(16) uint64_t {p.name}[{library.words(p)}];\n"
            checks += f"\tplain_check(w, r, served, body->{p.name});\n"
        elif p.mark == "info":
            out += f"\tint {p.name} = 0;\n"
            after += f"\tanswer->{p.name} = {p.name};\n"
        if p.mark in ("result", "inout"):
            after += f"\tmemcpy(answer->{p.name}, {p.name}, sizeof(answer->{p.name}));\n"
    answer = f"\treturn plain_answer(w, r, served, lib->{e.name}("
    apart = after or text.columns(answer) > text.WIDTH
    out += "\tint status;\n" if apart else ""
    absent = f"\tif (!lib || worker_refused(r) || !lib->{e.name})\n"
    if text.columns(absent) > text.WIDTH:
        absent = absent.replace("|| !lib", "||\n\t\t!lib")
    out += f"\n{checks}{absent}" + text.wrap("\t\treturn plain_lacks(", [
        "w", "r", "served", f'"{e.name}"'], ");", "\t\t\t") + "\n"
    if not apart:
        return out + text.wrap(answer, arguments(api, e), "));", "\t\t\t") + "\n}\n\n"
    return out + call_of(api, e) + after + "\treturn plain_answer(w, r, served, status);\n}\n\n"


def flags(entry):
    return "SERVE_POST | SERVE_CALL | SERVE_SLOW" if marked(entry, "gone") else library_flags(entry)


def answered(e):
    """The bytes of its answer."""
    if marked(e, "gone"):
        return "0"
    if marked(e, "new"):
        return "sizeof(struct library_opened)"
    return f"sizeof(struct wire_{e.name}_reply)" if reply_fields(e) or e.verb != "learned" and is_hand(e) \
        else "sizeof(struct library_reply)"


def row(e, first):
    half = "serve" if is_hand(e) and not marked(e, "gone") else "run"
    return text.wrap(f"\t[OP_{e.name} - {first}] = {{",
                     [f"OP_{e.name}", f"sizeof(struct wire_{e.name})", answered(e), flags(e),
                      f"{half}_{e.name}", f'"{e.name}"'], "},", "\t\t") + "\n"


def serve_source(api, family):
    first = api.ops[family][0]
    every = crossing(api, family)
    sent = [e for e in every if items.is_items(api, e)]
    rooms = ['"gpu-agent/worker/libraries/common/items.h"',
             f'"gpu-agent/worker/libraries/{family}/{family}.h"'] if sent else []
    out = text.head(
        f"Serve functions of {family}.api, over gpu-agent/worker/libraries/common/.", None,
        ["<string.h>", "", '"gpu-agent/worker/libraries/common/plain.h"', *rooms,
         '"gpu-agent/worker/warm.h"'] +
        text.includes(*(f"{family}_{n}.h" for n in ("library", "ops", "wire")))) + "\n"
    out += glue(api, family)
    out += "".join(serve_one(api, e) for e in every if is_framed(api, e) and not e.hand("agent"))
    out += "".join(items.serve_one(api, e) for e in sent if not e.hand("agent"))
    out += items.runs(family, sent, first) if sent else ""
    out += "static const struct serve_entry entries[] = {\n"
    out += "".join((items.row if e in sent else row)(e, first) for e in every)
    return out + "};\n\n" + library.finder(family, first)
