# SPDX-License-Identifier: Apache-2.0
"""The agent's side: the driver's function pointers, serve functions and the table by opcode."""
from . import text
from .api import ApiError
from .wire import crossing, on_the_wire, padded, reply_fields, request_fields


# cuda.h declares these under their own name too, beside the newer version.
KEPT = {"cuCtxGetDevice", "cuCtxSynchronize", "cuStreamGetCtx"}


def offered(api):
    """The driver's functions that serve functions may use.  Left out: names that cuda.h turns into
    a newer version by macro, and what the header does not know."""
    entries = api.of("cuda")
    renamed = {e.name.rsplit("_v", 1)[0] for e in entries
               if e.name[-3:-1] == "_v" and e.declared()} - KEPT
    return [e for e in entries
            if e.name not in renamed and not e.has("old") and e.declared()]


OPENED = "/* Opens LIBRARY with dlopen and fills in what it exports, into the struct above; a function\n" \
         " * that it lacks is NULL.  0, or -errno with *error naming the library or what is missing. */\n"


def opener(struct, rows, needed, is_none):
    """The table of a library's functions, by ROWS, and what opens one by it."""
    out = f"\nstatic const struct {{\n\tconst char *name;\n\tsize_t offset;\n}} functions[] = {{\n{rows}}};\n\n"
    out += text.prototype("int", f"{struct}_open", ["void *table", "const char *library",
                                                    "struct error *error"], "")
    lacks = text.wrap("\tif (", [f"!l->{n}" for n in needed], ") {", "\t    ", " ||")
    return out + f"""
{{
	struct {struct} *l = table;

	memset(l, 0, sizeof(*l));
	l->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!l->library)
		return error_set(error, 0, "cannot open %s", dlerror()); /* it names it */

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {{
		void *symbol = dlsym(l->library, functions[i].name);

		memcpy((char *)l + functions[i].offset, &symbol, sizeof(symbol));
	}}
{lacks}
		dlclose(l->library);
		l->library = NULL;
		return error_set(error, ENOSYS, "%s is no {is_none}", library);
	}}
	return 0;
}}
"""


def library_opened(family):
    """The declaration of what opens a library, and the one that is opened."""
    out = OPENED
    out += text.prototype("int", f"{family}_library_open", ["void *table", "const char *library",
                                                           "struct error *error"]) + "\n\n"
    out += "/* The one for a program that uses MAJOR, opened when it is first asked for (library_once);\n"
    out += " * NULL: there is none. */\n"
    out += text.prototype(f"static inline const struct {family}_library *", f"{family}_library_of",
                          ["const struct agent_config *config", "uint32_t major"], "\n{\n")
    out += text.wrap("\treturn library_once(", ["config", f"LIBRARY_{family.upper()}", "major",
                                               f"{family}_library_open",
                                               f"sizeof(struct {family}_library)"], ");")
    return out + "\n}\n\n"


def driver_rows(function):
    return f"#define FUNCTION(name) {function}\n#include {text.includes('cuda_driver.inc')[0]}\n"


def driver_header(api):
    out = text.head(
        "The driver's functions by name, NVIDIA's or the software GPU's, opened at run time.",
        "VCUDA_AGENT_GENERATED_CUDA_DRIVER_H", ["<cuda.h>", "", '"common/error.h"'])
    out += "\n/* Some are deprecated. */\n#pragma GCC diagnostic push\n"
    out += '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"\n'
    out += "struct cuda_driver {\n\tvoid *library;\n"
    out += "#define VERSION(name, parameters) CUresult(*name) parameters;\n"
    out += driver_rows("__typeof__(name) *name;") + "#undef FUNCTION\n#undef VERSION\n};\n#pragma GCC diagnostic pop\n\n"
    out += OPENED
    out += text.prototype("int", "cuda_driver_open", ["void *table", "const char *library",
                                                      "struct error *error"])
    return out + "\n\n#endif\n"


def driver_source(_api):
    out = text.head("Opens a libcuda.", None,
                    ["<dlfcn.h>", "<errno.h>", "<stddef.h>", "<string.h>", "",
                     *text.includes("cuda_driver.h")])
    out += "\n#define VERSION(name, parameters) FUNCTION(name)"
    rows = driver_rows("{#name, offsetof(struct cuda_driver, name)},")
    return out + opener("cuda_driver", rows, ["cuInit"],
                        "CUDA driver (no cuInit)")


def superseded(api, entry):
    """Whether cuda.h declares only a newer version of it."""
    return entry.name != entry.base and any(
        e.base == entry.base and e.since > entry.since and e.declared() for e in api.of("cuda"))


def driver_list(api):
    return text.table(
        "FUNCTION(NAME) for what the agent asks of libcuda, and VERSION(NAME, PARAMETERS) where\n"
        "cuda.h declares a newer version only.",
        text.packed([text.row("VERSION", e.name, text.grouped(text.parameters(e))) if superseded(api, e)
                     else f"FUNCTION({e.name})" for e in offered(api)], "FUNCTION", by_subject=True))


class Serve:
    """A serve function in the making: its locals, the driver's arguments, what goes back."""

    def __init__(self, api, entry):
        self.api, self.entry = api, entry
        self.lines, self.args, self.before, self.after = [], [], [], []
        for param in entry.params:
            self.add(param)

    def add(self, p):
        kind = self.api.types.get(p.base)
        if p.mark in ("new", "gone"):
            raise ApiError(f"{self.entry.origin}: {self.entry.name}: {p.mark} needs hand(agent)")
        if p.mark == "host":
            self.args.append("NULL")
        elif p.mark == "str":
            self.local(f"const char *{p.name} = worker_string(", ["r", f"&body->{p.name}"])
            self.args.append(p.name)
        elif p.mark == "device":
            self.add_device(p)
        elif p.mark and p.size:
            self.add_run(p)
        elif p.mark:
            self.add_pointer(p, kind)
        else:
            self.add_value(p, kind)

    def local(self, head, items):
        self.lines.append(text.wrap("\t" + head, items, ");"))

    def add_run(self, p):
        """Elements behind the body or the reply."""
        size = on_the_wire(self.entry, p.size)
        if p.base not in ("void", "char", "uint8_t"):
            size = f"serve_bytes({size}, sizeof({p.base}))"
        if p.mark == "in":
            self.local(f"const {p.base} *{p.name} = worker_in(", ["r", f"&body->{p.name}", size])
            self.args.append(p.name if "const" in p.type else f"({p.base} *){p.name}")
        else:
            raise ApiError(f"{self.entry.origin}: {self.entry.name}: {p.mark}({p.size}) "
                           "needs hand(agent)")

    def add_pointer(self, p, kind):
        """A pointer to one value: a local that the driver reads or fills."""
        n, opaque = p.name, kind.wire == "bytes"
        value = f"body->{n}" if p.mark in ("in", "inout") and not opaque else \
            "{0}" if kind.wire in ("struct", "bytes") else "0"
        self.lines.append(f"\t{p.base} {n} = {value};")
        self.args.append(f"&{n}")
        if p.mark in ("in", "inout") and opaque:
            self.before.append(f"memcpy(&{n}, body->{n}, sizeof({n}));")
        if p.mark != "in":
            cast = "(uint32_t)" if kind.wire == "enum" else ""
            self.after.append(f"memcpy(answer->{n}, &{n}, sizeof(answer->{n}));" if opaque else
                              f"answer->{n} = {cast}{n};")

    def add_device(self, p):
        cast = "(void *)" if p.stars else ""
        if p.size:
            self.local(f"CUdeviceptr {p.name} = worker_range(",
                       ["w", "r", f"body->{p.name}", on_the_wire(self.entry, p.size)])
            self.args.append(cast + p.name)
        else:
            self.args.append(f"{cast}body->{p.name}")

    def add_value(self, p, kind):
        n = p.name
        if kind.wire == "stream":
            self.local(f"CUstream {n} = worker_stream(", ["w", "r", f"body->{n}"])
            self.args.append(n)
        elif kind.wire in ("function", "handle"):
            what = kind.kind or "KIND_CUfunction"
            self.local(f"{p.base} {n} = worker_handle(", ["w", "r", f"body->{n}", what])
            self.args.append(n)
        elif kind.wire == "enum" or p.base in ("unsigned char", "unsigned short"):
            self.args.append(f"({p.base})body->{n}")
        else:
            self.args.append(f"body->{n}")


def serve_one(api, entry):
    serve = Serve(api, entry)
    out = f"/* {entry.verb} {entry.op} */\n"
    out += text.prototype("static CUresult", f"run_{entry.name}",
                          ["struct worker *w", "struct request *r"], "\n{\n")
    if request_fields(api, entry):
        out += text.wrap(f"\tconst struct wire_{entry.name} *body =", ["(const void *)r->body"],
                         ";") + "\n"
    if reply_fields(api, entry):
        out += text.wrap(f"\tstruct wire_{entry.name}_reply *answer =", ["(void *)r->answer"],
                         ";") + "\n"
    out += "\tconst struct cuda_driver *cuda = worker_driver(w);\n"
    out += "".join(f"{line}\n" for line in serve.lines)
    out += "\tCUresult status;\n" if serve.after else ""
    out += "\n\tif (worker_refused(r))\n\t\treturn r->refused;\n"
    out += f'\tif (!cuda->{entry.name})\n\t\treturn worker_lacks(w, "{entry.name}");\n'
    out += "".join(f"\t{line}\n" for line in serve.before)
    if not serve.after:
        return out + text.wrap(f"\treturn cuda->{entry.name}(", serve.args, ");",
                               "\t\t\t") + "\n}\n\n"
    out += text.wrap(f"\tstatus = cuda->{entry.name}(", serve.args, ");", "\t\t\t") + "\n"
    brace = len(serve.after) > 1
    out += "\tif (!status)" + (" {\n" if brace else "\n")
    out += "".join(f"\t\t{line}\n" for line in serve.after) + ("\t}\n" if brace else "")
    return out + "\treturn status;\n}\n\n"


def flags(entry):
    out = []
    if entry.has("payload"):
        out.append("SERVE_PAYLOAD")
    # Strict mode awaits everything, so every frame may come as a call.
    if entry.verb in ("post", "both", "learned"):
        out.append("SERVE_POST")
    out.append("SERVE_CALL")
    if entry.has("no_context"):
        out.append("SERVE_NO_CONTEXT")
    if entry.has("slow") or entry.has("waits"):
        out.append("SERVE_SLOW")
    if entry.has("waits"):
        out.append("SERVE_WAITS")
    if entry.has("idles"):
        out.append("SERVE_IDLES")
    if entry.has("holds"):
        out.append("SERVE_HOLDS")
    if entry.has("copied"):
        out.append("SERVE_COPIED")
    if entry.has("aside"):
        out.append("SERVE_ASIDE")
    if entry.has("stages"):
        out.append("SERVE_STAGES")
    if entry.has("overtakes"):
        out.append("SERVE_OVERTAKING")
    return " | ".join(out)


def asked_of_frames(api):
    """serve_stages and serve_overtaking: what stages() and overtakes() say of a frame."""
    staged, overtaking = [], []
    for e in crossing_all(api):
        if e.has("stages"):
            value, *more = (on_the_wire(e, part.strip()) for part in e.options["stages"].split("*"))
            for part in more:
                value = f"serve_bytes({value}, {part})"
            staged.append(one_case(e, value, "SERVE_NO_STAGING"))
        if e.has("overtakes"):
            value = on_the_wire(e, e.options["overtakes"]) or "SERVE_OVERTAKES"
            overtaking.append(one_case(e, value, "0"))
    return by_opcode("serve_stages", staged, "SERVE_NO_STAGING") + \
        by_opcode("serve_overtaking", overtaking, "0")


def one_case(entry, value, none):
    if "body->" not in value:
        return f"\tcase OP_{entry.name}: return {value};\n"
    value = value.replace(" : ", "\n\t\t\t: ") if len(value) > text.WIDTH - 30 else value
    out = f"\tcase OP_{entry.name}: {{\n\t\tconst struct wire_{entry.name} *body = frame;\n\n"
    return out + f"\t\tif (bytes < sizeof(*body))\n\t\t\treturn {none};\n\t\treturn {value};\n\t}}\n"


def by_opcode(name, cases, none):
    return text.prototype("uint64_t", name, ["uint16_t op", "const void *frame", "uint32_t bytes"],
                          "\n{\n\tswitch (op) {\n") + "".join(cases) + \
        f"\tdefault: return {none};\n\t}}\n}}\n\n"


def crossing_all(api):
    return [e for family in ("vcuda", "cuda") for e in crossing(api, family)]


def serve_header(api):
    out = text.head("The serve functions that stand in gpu-agent/, written by hand.",
                    "VCUDA_AGENT_GENERATED_SERVE_HAND_H", ['"gpu-agent/worker/worker.h"']) + "\n"
    for e in crossing_all(api):
        if e.hand("agent"):
            out += text.prototype("CUresult", f"serve_{e.name}",
                                  ["struct worker *w", "struct request *r"]) + "\n"
    return out + "\n#endif\n"


def serve_source(api):
    out = text.head(
        "Serve functions: what the worker does with a frame.  Each finds what the frame names,\n"
        "refuses once if anything violated the protocol, and calls the driver.  serve_vcuda… stand in\n"
        "gpu-agent/, written by hand; the libraries' functions have tables of their own.", None,
        ["<string.h>", "", '"gpu-agent/worker/worker.h"'] +
        text.includes(*(f"{family}_library.h" for family in api.libraries),
                      "cuda_driver.h", "cuda_ops.h", "cuda_wire.h", "serve_hand.h",
                      "vcuda_ops.h", "vcuda_wire.h"))
    out += """
/* COUNT elements of EACH bytes; a product that does not fit is more than any body holds. */
static inline uint64_t serve_bytes(uint64_t count, uint64_t each)
{
	uint64_t bytes;

	return __builtin_mul_overflow(count, each, &bytes) ? UINT64_MAX : bytes;
}

"""
    every = crossing_all(api)
    out += "".join(serve_one(api, e) for e in every if not e.hand("agent"))
    out += asked_of_frames(api)
    out += "/* By opcode: a frame is looked up in it several times on its way. */\n"
    out += "static const struct serve_entry entries[] = {\n"
    for e in every:
        half = "serve" if e.hand("agent") else "run"
        reply = f"sizeof(struct wire_{e.name}_reply)" if reply_fields(api, e) else "0"
        out += text.wrap(f"\t[OP_{e.name}] = {{", [
            f"OP_{e.name}", f"sizeof(struct wire_{e.name})", reply, flags(e),
            f"{half}_{e.name}", f'"{e.name}"'], "},", "\t ") + "\n"
    out += "};\n"
    served = [family for family in api.libraries if family in api.ops]
    if served:
        lowest = min(api.ops[family][0] for family in served)
        out += f'_Static_assert(sizeof(entries) / sizeof(entries[0]) <= {lowest}, "opcodes of a library");\n'
    out += """
/* Libraries have tables of their own, whose opcodes are above all these. */
const struct serve_entry *serve_find(uint16_t op)
{
	if (op < sizeof(entries) / sizeof(entries[0]))
		return entries[op].serve ? &entries[op] : NULL;
"""
    for family in served:
        first, last = api.ops[family]
        out += f"\tif (op >= {first} && op <= {last})\n"
        out += f"\t\treturn {family}_serve_find(op);\n"
    return out + "\treturn NULL;\n}\n"


def fuzz_dictionary(api):
    """Opcodes, and header fields with the right sizes, for the frame fuzzer."""
    out = "# Generated from protocol/api/*.api by protocol/generate.py: opcodes for the frame fuzzer.\n"
    out += 'magic="\\xa1\\xcd"\n'
    for family in ("vcuda", "cuda"):
        for e in crossing(api, family):
            fields = request_fields(api, e)
            size = padded(fields)[1] if fields else 8
            length = "".join(f"\\x{b:02x}" for b in size.to_bytes(4, "little"))
            op = "".join(f"\\x{b:02x}" for b in e.op.to_bytes(2, "little"))
            kind = "\\x01" if e.verb == "post" else "\\x02"
            out += f'{e.name}="{length}{op}{kind}\\x00"\n'
    return out
